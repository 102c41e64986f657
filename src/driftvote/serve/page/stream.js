// One stream: its verdict, charts over time, labelers, events.

import { between, count, h, keyed, percent, plural, rate, sentence, setText, share, signed, when } from "./dom.js";
import { Chart } from "./charts.js";
import { reviewView } from "./review.js";
import { command, curl, firstRow, streamPath, streamStatus } from "./streams.js";

const COLOURS = 8;
const POINTS = 300; // of the charts over time
const MOST_STRONG = 3; // labelers that changed are drawn boldly, unless most of them did
const TALL = 14; // so many labelers scroll in a frame
const MOST_CLASSES = 6; // shown one by one in the label mix

// Which labelers have a colour in the charts. Up to eight: all, in their order. With more, those that changed, until
// somebody chooses others. A labeler keeps its colour.
class Palette {
  constructor() {
    this.slots = new Map();
    this.chosen = null; // names, once somebody has clicked
  }

  update(labelers) {
    if (labelers.length <= COLOURS) {
      labelers.forEach((labeler, i) => this.slots.set(labeler.name, i));
      this.shown = this.chosen ?? new Set(labelers.map((labeler) => labeler.name));
    } else {
      const changed = labelers.filter((labeler) => labeler.changed).map((labeler) => labeler.name);
      this.shown = this.chosen ?? new Set(changed.slice(0, COLOURS));
      for (const name of this.shown) this.give(name);
    }
  }

  give(name) {
    if (this.slots.has(name)) return;
    const taken = new Set([...this.shown].map((other) => this.slots.get(other)));
    const free = [...Array(COLOURS).keys()].find((slot) => !taken.has(slot));
    this.slots.set(name, free ?? this.slots.size % COLOURS);
  }

  toggle(name) {
    this.chosen ??= new Set(this.shown);
    if (!this.chosen.delete(name)) this.chosen.add(name);
    this.shown = this.chosen;
    this.give(name);
  }

  // The colour of a labeler, or null for grey.
  of(name) {
    return this.shown?.has(name) ? this.slots.get(name) : null;
  }
}

// The lowest and highest value of the accuracy chart: whole tens around all bands.
function accuracyRange(lines) {
  const lows = lines.flatMap((line) => line.lows ?? line.values).filter((value) => value !== null);
  const low = Math.floor(10 * Math.min(0.5, ...lows) + 1e-9) / 10;
  return { low: Math.max(0, low), high: 1, format: percent };
}

// Points about evenly spaced, so that the newest part does not look busier; the last one stays.
function thinned(points) {
  const step = (points.at(-1)?.row - points[0]?.row) / POINTS;
  let last = -Infinity;
  return points.filter((point, i) => {
    if (point.row - last < step && i < points.length - 1) return false;
    last = point.row;
    return true;
  });
}

const column = (points, read) => points.map((point) => read(point) ?? null);

function overview(app) {
  const palette = new Palette();
  let stream = null;
  let timeline = { points: [], events: [] };

  // Charts and their shared cursor.
  const charts = {};
  const readouts = {};
  const tooltip = h("div", { class: "tooltip", hidden: true });
  const slider = h("input", { type: "range", class: "slider", min: 0, max: 0, "aria-label": "Place in the stream, for the values in all charts" });
  function onCursor(at, chart) {
    for (const one of Object.values(charts)) one.showCursor(at);
    showReadouts(at);
    showTooltip(chart === charts.accuracy ? at : null);
  }
  const tapOutside = (event) => event.target.closest?.(".chart") || onCursor(null, charts.accuracy);
  document.addEventListener("pointerdown", tapOutside);
  const make = (name, height, label) => (charts[name] = new Chart({ height, label, onCursor }));
  make("accuracy", 340, "Accuracy of each labeler over time; the table below has the latest values");
  make("window", 130, "Window over time");
  make("mix", 130, "Share of each label over time");
  make("dispute", 130, "Share of rows on which votes disagree, over time");
  make("speed", 130, "Rows per second over time");
  charts.accuracy.node.append(slider, tooltip);
  slider.addEventListener("input", () => moveSlider());
  slider.addEventListener("focus", () => moveSlider());
  slider.addEventListener("blur", () => onCursor(null, charts.accuracy));
  function moveSlider() {
    const at = Number(slider.value);
    const point = points[at];
    if (!point) return;
    onCursor(at, charts.accuracy);
    const values = Object.entries(point.accuracies).filter(([name]) => palette.of(name) !== null);
    const texts = values.map(([name, value]) => `${name} ${percent(value?.[0])}`);
    slider.setAttribute("aria-valuetext", `row ${count(point.row)}: ${texts.join(", ")}`);
  }

  function showTooltip(at) {
    const point = at === null ? null : points[at];
    tooltip.hidden = !point;
    if (!point) return;
    const lines = Object.entries(point.accuracies).filter(([name, value]) => value && palette.of(name) !== null);
    lines.sort(([, a], [, b]) => b[0] - a[0]);
    const rows = lines.map(([name, [middle, low, high]]) =>
      h(
        "li",
        {},
        h("i", { class: `swatch c${palette.of(name)}` }),
        h("span", { class: "name" }, name),
        h("b", {}, percent(middle)),
        h("small", {}, between(low, high)),
      ),
    );
    const time = when(point.time);
    tooltip.replaceChildren(h("p", {}, `Row ${count(point.row)}${time ? ` · ${time}` : ""}`), h("ul", {}, ...rows));
    const x = charts.accuracy.xs[at];
    const width = charts.accuracy.node.clientWidth;
    const own = tooltip.offsetWidth;
    const left = x + 16 + own < width ? x + 16 : Math.max(0, x - 16 - own);
    tooltip.style.setProperty("--x", `${left}px`);
  }

  function showReadouts(at) {
    const source = points[at] ?? stream;
    if (!source) return;
    setText(readouts.window, plural(source.window, "row"));
    setText(readouts.dispute, share(source.in_dispute));
    setText(readouts.speed, rate(source.rows_per_second));
    const shares = Object.entries(source.label_shares ?? {}).sort((a, b) => b[1] - a[1]);
    setText(readouts.mix, shares.length ? `${percent(shares[0][1])} ${shares[0][0]}` : "–");
  }

  function small(name, title, about) {
    readouts[name] = h("span", { class: "readout" });
    return h("figure", { class: "small" }, h("figcaption", {}, h("h3", {}, title), readouts[name], h("p", { class: "about" }, about)), charts[name].node);
  }

  // Once for all messages of a frame.
  let drawing = 0;
  function draw() {
    cancelAnimationFrame(drawing);
    drawing = requestAnimationFrame(drawCharts);
  }

  // The points of the timeline and, as the newest, what the stream is now: the charts reach up to the last row.
  function pointsNow() {
    const row = (stream?.rows ?? 0) - 1;
    if (row <= (timeline.points.at(-1)?.row ?? -1)) return timeline.points;
    const accuracies = Object.fromEntries(stream.labelers.map((one) => [one.name, [one.accuracy, one.low, one.high]]));
    return [...timeline.points, { ...stream, row, time: null, accuracies }];
  }

  let points = []; // as drawn
  function drawCharts() {
    points = pointsNow();
    const { events } = timeline;
    const rows = points.map((point) => point.row);
    slider.max = Math.max(0, points.length - 1);
    const labelers = stream?.labelers ?? [];
    const few = labelers.filter((labeler) => labeler.changed).length <= MOST_STRONG;
    const lines = labelers.map(({ name, changed }) => ({
      name,
      slot: palette.of(name),
      strong: changed && few,
      values: column(points, (point) => point.accuracies[name]?.[0]),
      lows: column(points, (point) => point.accuracies[name]?.[1]),
      highs: column(points, (point) => point.accuracies[name]?.[2]),
    }));
    charts.accuracy.draw({ rows, lines, events, numbered: true, y: accuracyRange(lines) });
    const one = (read) => [{ name: "", slot: 0, values: column(points, read) }];
    const highest = (values, least) => Math.max(least, ...values.filter((value) => value !== null)) * 1.08;
    const plain = (name, read, least, format) => {
      const drawn = one(read);
      charts[name].draw({ rows, lines: drawn, events, ends: false, y: { low: 0, high: highest(drawn[0].values, least), format } });
    };
    plain("window", (point) => point.window, 10, count);
    plain("dispute", (point) => point.in_dispute, 0.05, percent);
    plain("speed", (point) => point.rows_per_second, 1, rate);
    charts.mix.draw({ rows, events, stacks: labelMix(points, stream?.classes ?? []), y: { low: 0, high: 1, format: percent } });
    showReadouts(charts.accuracy.at ?? null);
  }

  // The most frequent classes one by one, the others together.
  function labelMix(points, classes) {
    const now = points.at(-1)?.label_shares ?? {};
    const ordered = classes.length > MOST_CLASSES ? [...classes].sort((a, b) => (now[b] ?? 0) - (now[a] ?? 0)) : classes;
    const single = ordered.slice(0, classes.length > MOST_CLASSES ? MOST_CLASSES - 1 : MOST_CLASSES);
    const stacks = single.map((name) => ({ name: String(name), values: column(points, (point) => point.label_shares?.[name] ?? 0) }));
    const rest = ordered.slice(single.length);
    const sum = (point) => rest.reduce((total, name) => total + (point.label_shares?.[name] ?? 0), 0);
    if (rest.length) stacks.push({ name: `${rest.length} others`, values: column(points, sum) });
    return stacks;
  }

  // Labelers
  const body = h("tbody");
  const chooser = h("p", { class: "about" });
  // What the latest event says of a labeler.
  function changeOf(labeler) {
    if (!labeler.changed) return { tone: "", text: "Steady", was: "" };
    const event = timeline.events.findLast((one) => one.labelers.includes(labeler.name));
    const kind = event?.changes?.find((one) => one.name === labeler.name)?.change ?? (labeler.accuracy < labeler.before ? "worse" : "better");
    const was = event?.before?.[labeler.name] ?? labeler.before;
    const tone = kind === "better" || kind === "votes more" ? "good" : "bad";
    return { tone, text: kind.charAt(0).toUpperCase() + kind.slice(1), was: typeof was === "number" ? `was ${percent(was)}` : "" };
  }
  function labelerRow() {
    const swatch = h("i", { class: "swatch" });
    const label = h("span", { class: "name" });
    const button = h("button", { type: "button", class: "labeler" }, swatch, label);
    const middle = h("b");
    const around = h("small");
    const range = h("span", { class: "range", "aria-hidden": "true" }, h("i"), h("b"));
    const change = h("td", {}, h("span"), h("small"));
    const weight = h("td", { class: "n" });
    const node = h("tr", {}, h("th", { scope: "row" }, button), h("td", { class: "accuracy" }, h("span", { class: "value" }, middle, around), range), change, weight);
    button.addEventListener("click", () => {
      palette.toggle(label.textContent);
      update();
    });
    node.update = (labeler) => {
      setText(label, labeler.name);
      const slot = palette.of(labeler.name);
      swatch.className = slot === null ? "swatch" : `swatch c${slot}`;
      button.setAttribute("aria-pressed", slot !== null);
      button.title = slot === null ? "Show in the chart" : "Show in grey";
      setText(middle, percent(labeler.accuracy));
      setText(around, between(labeler.low, labeler.high));
      for (const key of ["low", "high", "accuracy"]) range.style.setProperty(`--${key}`, `${100 * (labeler[key] ?? 0)}%`);
      const move = changeOf(labeler);
      change.className = `change ${move.tone}`;
      setText(change.firstChild, move.text);
      setText(change.lastChild, move.was);
      setText(weight, signed(labeler.weight));
    };
    return node;
  }
  const table = h(
    "table",
    { class: "labelers" },
    h("thead", {}, h("tr", {}, h("th", { scope: "col" }, "Labeler"), h("th", { scope: "col" }, "Accuracy"), h("th", { scope: "col" }, "Change"), h("th", { scope: "col", class: "n" }, "Weight"))),
    body,
  );

  const frame = h("div", { class: "frame" }, table);

  // Events, newest first
  const list = h("ol", { class: "events", reversed: true });
  const noEvents = h("p", { class: "about" }, "No lasting change so far. A change that chance does not explain is reported here once, with the labelers that changed.");
  function eventItem(event) {
    const worse = /worse|most labelers/.test(event.kind);
    const better = /better/.test(event.kind);
    const time = when(event.time);
    const node = h(
      "li",
      {},
      h("span", { class: "number", "aria-hidden": "true" }, String(event.number)),
      h("div", {}, h("p", {}, sentence(event.text)), h("p", { class: "about" }, h("span", { class: `chip ${better ? "good" : worse ? "bad" : ""}` }, event.kind), ` noticed at row ${count(event.row)}`, time && ", ", time && h("span", { class: "once" }, time))),
    );
    node.update = () => {};
    return node;
  }

  const tiles = {};
  const tile = (name, label) => h("div", { class: "tile" }, h("dt", {}, label), (tiles[name] = h("dd")));
  const facts = h("dl", { class: "tiles" }, tile("rows", "Rows"), tile("speed", "Rows per second"), tile("dispute", "Votes disagree"), tile("differs", "Differ from majority"), tile("window", "Window"), tile("events", "Events"));
  const waiting = h("section", { class: "card empty", hidden: true });
  const data = h(
    "div",
    { hidden: true },
    facts,
    h("section", { class: "card" }, h("h2", {}, "How often each labeler is right"), h("p", { class: "about wide" }, "Estimated from how labelers agree, without true labels, with 95% bands. Numbers mark events; the shaded part ends where the event was noticed."), charts.accuracy.node),
    h(
      "div",
      { class: "columns" },
      h("section", { class: "card" }, h("h2", {}, "Labelers"), chooser, frame),
      h("section", { class: "card" }, h("h2", {}, "Events"), noEvents, list),
    ),
    h(
      "section",
      { class: "card" },
      h("h2", {}, "The stream over time"),
      h(
        "div",
        { class: "smalls" },
        small("mix", "Label mix", "Share of each label in the last rows."),
        small("dispute", "Votes disagree", "Share of the last 1,000 rows on which not all votes are the same."),
        small("window", "Window", "Number of recent rows that the estimates come from. It shrinks when something changes."),
        small("speed", "Rows per second", "How fast rows arrive."),
      ),
    ),
  );
  const node = h("div", {}, waiting, data);

  function update() {
    if (!stream) return;
    waiting.hidden = stream.rows > 0;
    data.hidden = stream.rows === 0;
    if (stream.rows === 0) return;
    palette.update(stream.labelers);
    setText(tiles.rows, count(stream.rows));
    setText(tiles.speed, rate(stream.rows_per_second));
    setText(tiles.dispute, share(stream.in_dispute));
    setText(tiles.differs, share(stream.differs_from_majority));
    setText(tiles.window, count(stream.window));
    setText(tiles.events, count(stream.events));
    const many = stream.labelers.length > COLOURS;
    setText(chooser, `${many ? "Choose which are coloured in the chart; first those that changed. " : ""}Weight is how much a vote counts. A vote with weight 0 counts nothing; a negative weight counts against its class.`);
    frame.classList.toggle("tall", stream.labelers.length > TALL);
    const order = many ? [...stream.labelers].sort((a, b) => Number(b.changed) - Number(a.changed)) : stream.labelers;
    keyed(body, order, (labeler) => labeler.name, labelerRow);
    noEvents.hidden = timeline.events.length > 0;
    keyed(list, [...timeline.events].sort((a, b) => b.number - a.number), (event) => event.number, eventItem);
    draw();
  }

  return {
    node,
    takeStream(next) {
      stream = next;
      if (next.rows === 0 && !waiting.firstChild) {
        const path = `/v1${streamPath(next.name)}/rows`;
        waiting.append(h("h2", {}, "Waiting for the first rows"), h("p", { class: "about" }, "Send votes and they appear here at once."), command(curl(app, "POST", path, firstRow(next.classes))));
      }
      update();
    },
    takeTimeline(next) {
      timeline = { points: thinned(next.points), events: next.events };
      update();
    },
    takePoint(point) {
      if (point.row <= (timeline.points.at(-1)?.row ?? -1)) return;
      timeline.points = thinned([...timeline.points, point]);
      if (stream) draw();
    },
    takeEvent(event) {
      if (timeline.events.some((one) => one.number === event.number)) return;
      timeline.events.push(event);
      update();
    },
    events: () => timeline.events,
    stop() {
      document.removeEventListener("pointerdown", tapOutside);
      cancelAnimationFrame(drawing);
      Object.values(charts).forEach((chart) => chart.stop());
    },
  };
}

export function streamView(name, app) {
  const path = `/v1${streamPath(name)}`;
  const chip = h("span", { class: "chip" });
  const verdict = h("p", { class: "verdict" });
  const problem = h("p", { class: "problem", role: "alert" });
  const tabs = { "": h("a", { href: streamPath(name) }, "Overview"), "#review": h("a", { href: streamPath(name, "#review") }, "Review") };
  const place = h("div");
  const parts = overview(app);
  let stream = null;
  let review = null;
  let eventsAsked = 0;
  let stopped = false;
  const node = h(
    "div",
    {},
    h("nav", { class: "crumbs", "aria-label": "Breadcrumb" }, h("a", { href: "/" }, "Streams")),
    h("div", { class: "heading" }, h("h1", { class: "name" }, name), h("nav", { class: "tabs", "aria-label": "Parts of the stream" }, ...Object.values(tabs))),
    h("div", { class: "verdict-line" }, chip, verdict),
    problem,
    place,
  );

  // Overview or review, by the hash of the address.
  function moved() {
    const tab = location.hash === "#review" ? "#review" : "";
    for (const [key, link] of Object.entries(tabs)) {
      if (key === tab) link.setAttribute("aria-current", "page");
      else link.removeAttribute("aria-current");
    }
    node.classList.toggle("reviewing", tab !== "");
    review?.stop();
    review = tab ? reviewView(path, app, (next) => takeStream(next)) : null;
    place.replaceChildren(review ? review.node : parts.node);
    if (review && stream) review.takeStream(stream);
  }

  function showStatus() {
    const status = streamStatus(stream.rows, parts.events().at(-1));
    chip.className = `chip ${status.tone}`;
    setText(chip, status.text);
  }

  function takeStream(next) {
    stream = next;
    showStatus();
    setText(verdict, sentence(next.verdict));
    parts.takeStream(next);
    review?.takeStream(next);
    if (next.events > eventsAsked) {
      eventsAsked = next.events; // one that came while nobody listened
      if (next.events > parts.events().length) load();
    }
  }

  async function load() {
    try {
      const [one, timeline] = await Promise.all([app.api(path), app.api(`${path}/timeline?points=${POINTS}`)]);
      setText(problem, "");
      parts.takeTimeline(timeline);
      takeStream(one);
    } catch (error) {
      setText(problem, error.message);
    }
  }

  const handlers = {
    stream: takeStream,
    point: parts.takePoint,
    drift: (event) => {
      parts.takeEvent(event);
      if (stream) showStatus();
      app.announce(`Event ${event.number}: ${sentence(event.text)}`);
    },
  };
  let stopListening = () => {};
  // Load first: a stream that does not exist gets its sentence instead of a connection that fails.
  load().then(() => {
    if (stream && !stopped) stopListening = app.listen(`${path}/live`, handlers, (again) => again && load());
  });
  moved();
  return {
    node,
    title: name,
    path: location.pathname,
    moved,
    stop() {
      stopped = true;
      stopListening();
      review?.stop();
      parts.stop();
    },
  };
}
