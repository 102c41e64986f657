// All streams at a glance.

import { count, h, keyed, plural, rate, sentence, setText, share } from "./dom.js";
import { sparkline } from "./charts.js";

const FILTER_FROM = 9; // so many streams get a box to search in

export function streamPath(name, tab = "") {
  return `/streams/${encodeURIComponent(name)}${tab}`;
}

// A command to copy.
export function command(text) {
  const button = h("button", { type: "button", class: "quiet" }, "Copy");
  button.addEventListener("click", async () => {
    try {
      await navigator.clipboard.writeText(text);
      setText(button, "Copied");
    } catch {
      setText(button, "Select it"); // clipboards need https or localhost
    }
    setTimeout(() => setText(button, "Copy"), 2000);
  });
  return h("div", { class: "command" }, h("pre", { tabindex: "0", role: "group", "aria-label": "Command" }, h("code", {}, text)), button);
}

// Names may hold quotes: what is pasted into a shell stays one word.
const quoted = (text) => `'${text.replaceAll("'", "'\\''")}'`;

export function curl(app, method, path, body) {
  const token = app.tokens ? ' -H "Authorization: Bearer $TOKEN"' : "";
  return `curl -X ${method} ${quoted(location.origin + path)}${token} \\\n  -H 'Content-Type: application/json' \\\n  -d ${quoted(JSON.stringify(body))}`;
}

export const firstRow = (classes) => ({ rows: [{ id: "m1", votes: { anna: classes[0], ben: classes[1], chris: classes[0] } }] });

function figure(label) {
  const value = h("span", { class: "value" });
  const place = h("dd", {}, value);
  return { node: h("div", {}, h("dt", {}, label), place), place, set: (text) => setText(value, text) };
}

const RECENT = 10_000; // rows for which an event counts as news, as in the server's verdict

// Whether somebody should look at a stream with so many rows, after this event.
export function streamStatus(rows, lastEvent) {
  if (rows === 0) return { tone: "", text: "Waiting for rows" };
  return lastEvent && lastEvent.row >= rows - RECENT ? { tone: "bad", text: "Changed" } : { tone: "good", text: "Steady" };
}

function streamCard() {
  const link = h("a", { class: "name" });
  const chip = h("span", { class: "chip" });
  const verdict = h("p", { class: "about" });
  const spark = h("span", { class: "spark-place" });
  const figures = [figure("Rows"), figure("Rows per second"), figure("Votes disagree"), figure("Events")];
  figures[2].place.prepend(spark);
  const node = h(
    "li",
    { class: "card stream" },
    h("div", { class: "what" }, h("h2", {}, link), h("p", { class: "chips" }, chip), verdict),
    h("dl", { class: "figures" }, ...figures.map((one) => one.node)),
  );
  node.update = (stream) => {
    setText(link, stream.name);
    link.href = streamPath(stream.name);
    const status = streamStatus(stream.rows, stream.last_event);
    chip.className = `chip ${status.tone}`;
    setText(chip, status.text);
    setText(verdict, sentence(stream.verdict));
    verdict.title = verdict.textContent; // two lines are shown
    spark.replaceChildren(stream.spark?.length > 1 ? sparkline(stream.spark) : "");
    const texts = [count(stream.rows), rate(stream.rows_per_second), stream.rows ? share(stream.in_dispute) : "–", count(stream.events)];
    figures.forEach((one, i) => one.set(texts[i]));
  };
  return node;
}

function emptyState(app) {
  return h(
    "section",
    { class: "card empty" },
    h("h2", {}, "No streams yet"),
    h("p", { class: "about" }, "A stream is what your labelers vote on, in time order. Create one, then send it rows; this page shows them as they arrive."),
    h("h3", {}, "1. Create a stream"),
    command(curl(app, "PUT", "/v1/streams/messages", { classes: ["safe", "unsafe"] })),
    h("h3", {}, "2. Send votes"),
    command(curl(app, "POST", "/v1/streams/messages/rows", firstRow(["safe", "unsafe"]))),
  );
}

export function streamsView(app) {
  const summary = h("p", { class: "lead" });
  const list = h("ul", { class: "streams" });
  const filter = h("input", { type: "search", id: "filter", placeholder: "Name" });
  const search = h("div", { class: "filter", hidden: true }, h("label", { for: "filter" }, "Find a stream"), filter);
  const nothing = h("p", { class: "notice", hidden: true }, "No stream has this name.");
  const empty = emptyState(app);
  empty.hidden = true;
  const node = h("div", {}, h("div", { class: "heading" }, h("div", {}, h("h1", {}, "Streams"), summary), search), nothing, list, empty);
  let streams = [];

  function update() {
    const words = filter.value.trim().toLowerCase();
    const shown = streams.filter((stream) => stream.name.toLowerCase().includes(words));
    const rank = (stream) => (streamStatus(stream.rows, stream.last_event).tone === "bad" ? 0 : 1);
    shown.sort((a, b) => rank(a) - rank(b) || a.name.localeCompare(b.name)); // those that changed first
    keyed(list, shown, (stream) => stream.name, streamCard);
    search.hidden = streams.length < FILTER_FROM;
    nothing.hidden = shown.length > 0 || streams.length === 0;
    empty.hidden = streams.length > 0;
    const sum = (field) => streams.reduce((total, stream) => total + (stream[field] ?? 0), 0);
    const all = [plural(streams.length, "stream"), plural(sum("rows"), "row"), `${rate(sum("rows_per_second"))} rows per second`, plural(sum("events"), "event")];
    setText(summary, streams.length ? all.join(" · ") : "");
  }
  filter.addEventListener("input", update);
  const take = (message) => {
    streams = message.streams;
    update();
  };
  const stop = app.listen("/v1/live", { streams: take }, () => {});
  app.api("/v1/streams").then(take, (error) => setText(summary, error.message));
  return { node, title: "Streams", path: "/", stop };
}
