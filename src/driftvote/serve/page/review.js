// The review queue of a stream: one question at a time, answered by key or tap, and what the answers have changed.

import { count, h, keyed, percent, plural, setText, when } from "./dom.js";

const AHEAD = 5; // questions asked for at a time
const KEYS = 9; // classes with a key of their own
const LONG = 60; // a field with more letters is shown as text, not as a line of a table

const keysKept = "driftvote-keys";
function keysOn() {
  try {
    return localStorage.getItem(keysKept) !== "off";
  } catch {
    return true;
  }
}

function fieldText(value) {
  return typeof value === "string" ? value : JSON.stringify(value);
}

// The buttons of the classes; with many, those in dispute are seen and the others fold away.
function answers(buttons) {
  const rest = buttons.slice(KEYS);
  const first = h("div", { class: buttons.length <= 4 ? "answers few" : "answers", role: "group", "aria-label": "Your answer" }, ...buttons.slice(0, KEYS));
  if (!rest.length) return first;
  return h("div", {}, first, h("details", {}, h("summary", {}, `${count(rest.length)} other classes`), h("div", { class: "answers", role: "group", "aria-label": "Other classes" }, ...rest)));
}

// The row's own fields: long texts as paragraphs, the others as a list.
function fields(data) {
  if (!data || !Object.keys(data).length) return [];
  const entries = Object.entries(data).map(([name, value]) => [name, fieldText(value)]);
  const long = entries.filter(([name, text]) => text.length > LONG || name === "text");
  const short = entries.filter((entry) => !long.includes(entry));
  return [
    ...long.map(([name, text]) => h("figure", { class: "text" }, h("figcaption", {}, name), h("blockquote", {}, text))),
    short.length && h("dl", { class: "facts" }, ...short.map(([name, text]) => h("div", {}, h("dt", {}, name), h("dd", {}, text)))),
  ];
}

// Who voted for what: the classes in dispute first, then those who did not vote.
function votesTable(question, labelers) {
  const accuracy = new Map(labelers.map((labeler) => [labeler.name, labeler.accuracy]));
  const voters = (wanted) => Object.entries(question.votes).filter(([, vote]) => (vote ?? null) === wanted).map(([name]) => name);
  const line = (name, who) =>
    h(
      "tr",
      {},
      h("th", { scope: "row", class: "name" }, name),
      h("td", { class: "n" }, count(who.length)),
      h("td", {}, h("ul", { class: "voters" }, ...who.map((one) => h("li", {}, h("span", { class: "name" }, one), accuracy.has(one) && h("small", {}, percent(accuracy.get(one))))))),
    );
  const named = question.classes.map((one) => [one, voters(one)]).filter(([, who]) => who.length);
  const silent = voters(null);
  return h(
    "table",
    { class: "votes" },
    h("caption", {}, "Votes, with how often each labeler is right"),
    h("thead", { class: "unseen" }, h("tr", {}, h("th", { scope: "col" }, "Class"), h("th", { scope: "col" }, "Votes"), h("th", { scope: "col" }, "Labelers"))),
    h("tbody", {}, ...named.map(([one, who]) => line(String(one), who)), silent.length > 0 && line("no vote", silent)),
  );
}

export function reviewView(path, app, takeStream) {
  let stream = null;
  let queue = []; // questions not yet shown to an end; the first is on the page
  let note = "";
  let busy = false;
  let loaded = false;
  let stopped = false;
  const skipped = new Set();
  const done = []; // answers of this visit, for undo: {question, class}

  const card = h("section", { class: "card question", "aria-labelledby": "question-title" });
  const problem = h("p", { class: "problem", role: "alert" });
  const keys = h("input", { type: "checkbox", id: "keys" });
  keys.checked = keysOn();
  keys.addEventListener("change", () => {
    try {
      localStorage.setItem(keysKept, keys.checked ? "on" : "off");
    } catch {
      // The choice then lasts as long as the page.
    }
  });
  const shortcuts = h("p", { class: "about keys" }, keys, h("label", { for: "keys" }, "Answer by key: 1 to 9 for the classes, S to skip, U to undo"));
  const changes = h("section", { class: "card changes" });
  const node = h("div", { class: "review" }, h("div", {}, card, problem, shortcuts), changes);

  async function load() {
    try {
      const answer = await app.api(`${path}/questions?n=${AHEAD + skipped.size}`);
      const answered = new Set(done.map((one) => one.question.id));
      queue = answer.questions.filter((question) => !skipped.has(question.id) && !answered.has(question.id));
      note = answer.note ?? "";
      setText(problem, "");
    } catch (error) {
      setText(problem, error.message);
    }
    loaded = true;
  }

  // Show the first question. `focus` moves the keyboard there, after an answer.
  function show(focus = false) {
    if (stopped) return;
    const question = queue[0];
    shortcuts.hidden = !question || !app.canReview;
    const title = h("h2", { id: "question-title", tabindex: "-1" }, question ? "Which class is right?" : loaded ? "No question at the moment" : "Looking for questions…");
    const button = (name, i) =>
      h("button", { type: "button", class: "answer", click: () => answer(question, name) }, i < KEYS && h("kbd", {}, String(i + 1)), h("span", { class: "name" }, String(name)));
    const others = [];
    if (app.canReview) {
      if (question) others.push(h("button", { type: "button", class: "quiet", click: skip }, h("kbd", {}, "S"), "Skip"));
      if (lastAnswer()) others.push(h("button", { type: "button", class: "quiet", click: undo }, h("kbd", {}, "U"), "Undo the last answer"));
      if (!question && skipped.size) others.push(h("button", { type: "button", class: "quiet", click: again }, `Show ${plural(skipped.size, "skipped question")} again`));
    }
    const place = question && [`Row ${count(question.row)}`, question.id !== String(question.row) && question.id, when(question.time)].filter(Boolean).join(" · ");
    card.replaceChildren(
      ...[
        place && h("p", { class: "kicker name" }, place),
        title,
        ...(question
          ? [
              ...fields(question.data),
              votesTable(question, stream?.labelers ?? []),
              h(
                "div",
                { class: "why" },
                h("p", {}, question.label === null ? "It has no label yet: the votes are tied." : `Its label was ${question.label}, ${percent(question.probability)} sure.`),
                h("p", { class: "about" }, `What the label models say: ${question.why}`),
              ),
              app.canReview ? answers(question.classes.map(button)) : h("p", { class: "notice" }, "Your token may read, not review."),
            ]
          : [loaded && h("p", { class: "about" }, note || "Questions appear when label models disagree on enough rows. This page checks again automatically.")]),
        others.length > 0 && h("div", { class: "others" }, ...others),
      ].filter(Boolean),
    );
    if (focus) title.focus({ preventScroll: matchMedia("(min-width: 900px)").matches });
  }

  const lastAnswer = () => done.at(-1)?.question.id ?? stream?.answers?.last?.at(-1)?.id ?? null;

  // One request at a time: a second key press while the first is on its way is ignored.
  async function once(action) {
    if (busy) return;
    busy = true;
    card.setAttribute("aria-busy", "true");
    try {
      await action();
      setText(problem, "");
    } catch (error) {
      setText(problem, error.message);
    }
    busy = false;
    card.removeAttribute("aria-busy");
  }

  async function next(said) {
    if (!queue.length) await load();
    show(true);
    app.announce(`${said} ${queue.length ? "Next question." : "No more questions at the moment."}`);
  }

  const answer = (question, name) =>
    once(async () => {
      try {
        await app.api(`${path}/feedback`, "POST", { answers: [{ id: question.id, class: name }] });
      } catch (error) {
        if (error.status === 404) await forget(); // the row is no longer stored
        throw error;
      }
      done.push({ question, class: name });
      queue.shift();
      refresh();
      await next(`Answered ${name}.`);
    });

  async function forget() {
    skipped.add(queue.shift().id);
    if (!queue.length) await load();
    show(true);
  }

  const skip = () =>
    once(async () => {
      if (!queue.length) return;
      skipped.add(queue.shift().id);
      await next("Skipped.");
    });

  const again = () =>
    once(async () => {
      skipped.clear();
      queue = [];
      await next("");
    });

  const undo = () =>
    once(async () => {
      const id = lastAnswer();
      if (!id) return;
      const last = done.at(-1)?.question.id === id ? done.pop() : null;
      try {
        await app.api(`${path}/feedback/${encodeURIComponent(id)}`, "DELETE");
      } catch (error) {
        if (last && error.status !== 404) done.push(last);
        throw error;
      }
      if (last) queue.unshift(last.question);
      else await load();
      refresh();
      show(true);
      app.announce("The last answer was undone.");
    });

  // The weights are shown as soon as they are known; the next question does not wait for them.
  function refresh() {
    app.api(path).then(takeStream, (error) => setText(problem, error.message));
  }

  function onKey(event) {
    if (!keys.checked || !app.canReview || event.ctrlKey || event.metaKey || event.altKey || event.repeat) return;
    if (event.target.closest?.("input:not([type=checkbox]), textarea, select")) return;
    const key = event.key.toLowerCase();
    const question = queue[0];
    if (/^[1-9]$/.test(key) && question?.classes[Number(key) - 1] !== undefined) answer(question, question.classes[Number(key) - 1]);
    else if (key === "s") skip();
    else if (key === "u") undo();
    else return;
    event.preventDefault();
  }
  document.addEventListener("keydown", onKey);

  // What the answers have changed so far.
  const bars = h("ul", { class: "weights" });
  const tally = h("p", { class: "tally" });
  const moved = h("p", { class: "about" });
  const legend = h("p", { class: "about legend" }, h("i", { class: "before" }), "by votes alone", h("i", { class: "after" }), "with your answers");
  const mine = h("ul", { class: "mine" });
  const mineTitle = h("h3", {}, "Latest answers");
  const barsTitle = h("h3", {}, "How much each label model counts");
  changes.append(h("h2", {}, "What the answers changed"), tally, moved, barsTitle, bars, legend, mineTitle, mine);
  function weightBar() {
    const name = h("span", { class: "name" });
    const text = h("span", { class: "value" });
    const bar = h("span", { class: "bars", "aria-hidden": "true" }, h("i", { class: "before" }), h("i", { class: "after" }));
    const item = h("li", {}, name, text, bar);
    item.update = ([member, now, before, most]) => {
      setText(name, member);
      setText(text, before === null || percent(before) === percent(now) ? percent(now) : `${percent(before)} → ${percent(now)}`);
      bar.classList.toggle("single", before === null);
      bar.style.setProperty("--before", `${(100 * (before ?? now)) / most}%`);
      bar.style.setProperty("--after", `${(100 * now) / most}%`);
    };
    return item;
  }
  function answerItem() {
    const item = h("li");
    item.update = (one) => item.replaceChildren(h("span", { class: "name" }, String(one.id)), h("b", { class: "name" }, String(one.class)));
    return item;
  }
  function showChanges() {
    const answers = stream?.answers ?? { count: 0, last: [] };
    const before = answers.count ? stream.mixture_before_answers : null;
    setText(tally, answers.count ? plural(answers.count, "answer") : "No answers yet");
    const known = typeof answers.labels_moved === "number";
    const text = !answers.count ? "Each answer shows which label models to trust, so it can change the labels of other rows." : known ? `${plural(answers.labels_moved, "row")} would get another label now.` : "";
    setText(moved, text);
    const members = Object.entries(stream?.mixture ?? {}).sort(([a], [b]) => a.localeCompare(b));
    const most = Math.max(0.4, ...Object.values(stream?.mixture ?? {}), ...Object.values(before ?? {})); // as long as the card
    keyed(bars, members.map(([member, now]) => [member, now, before?.[member] ?? null, most]), ([member]) => member, weightBar);
    barsTitle.hidden = !members.length;
    legend.hidden = !before;
    mineTitle.hidden = !answers.last?.length;
    keyed(mine, [...(answers.last ?? [])].reverse().slice(0, 5), (one) => one.id, answerItem);
  }

  // While there is nothing to ask, look again now and then: new rows bring new questions.
  const waiting = setInterval(async () => {
    if (document.hidden || busy || !loaded || queue.length) return;
    await load();
    if (queue.length) show();
  }, 5000);

  show();
  load().then(() => show());
  return {
    node,
    takeStream(next) {
      const first = stream === null;
      stream = next;
      showChanges();
      if (first && loaded) show();
    },
    stop() {
      stopped = true;
      clearInterval(waiting);
      document.removeEventListener("keydown", onKey);
    },
  };
}
