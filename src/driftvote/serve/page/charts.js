// Charts over the rows of a stream, drawn as SVG. All charts of a view share one cursor: the place that is looked at.

import { brief, compact, h, s } from "./dom.js";

const LETTER = 6.9; // width of a letter of the labels, about, in pixels
const LINE = 17; // height of a label at the end of a line

// Round values that divide lowest..highest into about `parts`.
function ticks(lowest, highest, parts) {
  const rough = (highest - lowest) / Math.max(1, parts) || 1;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((factor) => factor * power).find((size) => size >= rough * 0.75);
  const found = [];
  for (let n = Math.ceil(lowest / step - 1e-9); n * step <= highest + step * 1e-9; n++) found.push(n * step + 0);
  return found;
}

// Runs of known values, as lists of [x, y]: a labeler that did not vote leaves a gap.
function runs(xs, ys) {
  const found = [[]];
  xs.forEach((x, i) => {
    if (ys[i] === null) found.push([]);
    else found.at(-1).push([x, ys[i]]);
  });
  return found.filter((run) => run.length);
}

const dots = (points) => points.map(([x, y]) => `${x.toFixed(1)},${y.toFixed(1)}`).join("L");
const linePath = (xs, ys) => runs(xs, ys).map((run) => `M${dots(run.length > 1 ? run : [run[0], run[0]])}`).join("");

function bandPath(xs, lows, highs) {
  const below = runs(xs, lows);
  return runs(xs, highs)
    .map((run, i) => (run.length > 1 && below[i]?.length === run.length ? `M${dots([...run, ...below[i].reverse()])}Z` : ""))
    .join("");
}

// Move labels apart, as little as needed, between top and bottom.
function spread(labels, top, bottom) {
  labels.sort((a, b) => a.y - b.y);
  let edge = top;
  for (const label of labels) edge = (label.place = Math.max(label.y, edge)) + LINE;
  edge = bottom;
  for (const label of [...labels].reverse()) edge = (label.place = Math.min(label.place, edge)) - LINE;
}

// One chart. A picture of it is
// {rows, y: {low, high, format}, lines: [{name, slot, values, lows, highs, strong}], stacks: [{name, values}], events, numbered, ends},
// each list of values as long as `rows`. `slot` is a colour, null is grey. `ends` writes names at the ends of lines,
// `numbered` numbers at the events.
export class Chart {
  constructor({ height, label, onCursor }) {
    this.height = height;
    this.picture = null;
    this.svg = s("svg", { class: "plot", role: "img", "aria-label": label });
    this.node = h("div", { class: "chart" }, this.svg);
    this.watcher = new ResizeObserver(() => this.redraw());
    this.watcher.observe(this.node);
    const look = (event) => this.picture?.rows.length && onCursor(this.nearest(event), this);
    this.node.addEventListener("pointermove", look);
    this.node.addEventListener("pointerdown", look);
    // A finger that is lifted leaves too; what it pointed at stays until another tap.
    this.node.addEventListener("pointerleave", (event) => event.pointerType !== "touch" && onCursor(null, this));
  }

  stop() {
    this.watcher.disconnect();
  }

  draw(picture) {
    this.picture = picture;
    this.redraw();
  }

  // The number of the point that is nearest to the pointer.
  nearest(event) {
    const x = event.clientX - this.svg.getBoundingClientRect().left;
    let best = 0;
    this.xs.forEach((place, i) => {
      if (Math.abs(place - x) < Math.abs(this.xs[best] - x)) best = i;
    });
    return best;
  }

  redraw() {
    const width = this.node.clientWidth;
    const { picture } = this;
    if (!picture || !width) return;
    const { height } = this;
    const { rows, y, ends = true } = picture;
    const lines = picture.lines ?? [];
    const stacks = picture.stacks ?? [];
    const named = ends ? [...lines.filter((line) => line.slot !== null && line.slot !== undefined), ...stacks] : [];
    const longest = Math.min(width < 520 ? 12 : 22, Math.max(0, ...named.map((one) => one.name.length)));
    const figures = !stacks.length && width >= 520; // values behind the names, where there is room
    const right = named.length ? Math.round(longest * LETTER + (stacks.length ? 10 : figures ? 62 : 22)) : 6;
    const left = Math.round(Math.max(...[y.low, y.high].map((value) => y.format(value).length)) * LETTER + 10);
    const numbered = picture.numbered && picture.events.length > 0;
    const top = numbered ? 26 : 8;
    const bottom = height - 22;
    this.frame = { left, right: width - right, top, bottom, width, height };
    const span = rows.length > 1 ? rows.at(-1) - rows[0] : 1;
    const xOf = (row) => left + ((width - right - left) * (rows.length > 1 ? row - rows[0] : 1)) / span;
    this.yOf = (value) => (value === null || value === undefined ? null : bottom - ((bottom - top) * (value - y.low)) / (y.high - y.low));
    this.xs = rows.map(xOf);
    const parts = [];
    for (const value of ticks(y.low, y.high, Math.max(3, Math.floor((bottom - top) / 40)))) {
      const at = this.yOf(value);
      parts.push(s("path", { class: "grid", d: `M${left},${at}H${width - right}` }));
      parts.push(s("text", { class: "tick", x: left - 8, y: at + 4, "text-anchor": "end" }, y.format(value)));
    }
    const places = rows.length > 1 ? ticks(rows[0], rows.at(-1), Math.max(4, Math.floor((width - right - left) / 110))) : rows;
    for (const row of places) {
      parts.push(s("text", { class: "tick", x: xOf(row), y: height - 4, "text-anchor": "middle" }, compact(row)));
    }
    parts.push(s("text", { class: "tick", x: left - 8, y: height - 4, "text-anchor": "end" }, "row"));
    parts.push(...this.drawStacks(stacks), ...this.drawEvents(picture.events ?? [], xOf, numbered), ...this.drawLines(lines));
    if (ends) parts.push(...this.drawEnds(lines, stacks, longest, figures));
    this.cursor = s("g", { class: "cursor" });
    this.svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
    this.svg.setAttribute("height", height);
    this.svg.replaceChildren(...parts, this.cursor);
    this.showCursor(this.at ?? null);
  }

  drawLines(lines) {
    const ordered = [...lines].sort((a, b) => (a.slot === null ? 0 : 1) - (b.slot === null ? 0 : 1));
    return ordered.flatMap((line) => {
      const kind = `${line.slot === null || line.slot === undefined ? "grey" : `c${line.slot}`}${line.strong ? " strong" : ""}`;
      const ys = line.values.map(this.yOf);
      const path = s("path", { class: `line ${kind}`, d: linePath(this.xs, ys) });
      if (!line.lows || line.slot === null) return [path];
      const band = bandPath(this.xs, line.lows.map(this.yOf), line.highs.map(this.yOf));
      return [s("path", { class: `band ${kind}`, d: band }), path];
    });
  }

  // Shares on top of each other. Each stack gets `floor` and `roof`, where it begins and ends.
  drawStacks(stacks) {
    let floor = this.xs.map(() => 0);
    return stacks.map((stack, i) => {
      const roof = floor.map((value, t) => value + (stack.values[t] ?? 0));
      const path = bandPath(this.xs, floor.map(this.yOf), roof.map(this.yOf));
      stack.middle = (floor.at(-1) + roof.at(-1)) / 2;
      floor = roof;
      return s("path", { class: `stack k${i}`, d: path });
    });
  }

  // A line where each change began, shaded until it was noticed, with its number in the list of events.
  drawEvents(events, xOf, numbered) {
    const { left, right, top, bottom } = this.frame;
    let last = -Infinity;
    return events
      .filter((event) => xOf(event.since_row) >= left && xOf(event.since_row) <= right)
      .map((event) => {
        const x = xOf(event.since_row);
        const noticed = Math.min(right, xOf(event.row));
        const shade = s("path", { class: "shade", d: `M${x},${top}H${noticed}V${bottom}H${x}Z` });
        const mark = s("g", { class: "event" }, s("title", {}, event.text), shade, s("path", { d: `M${x},${numbered ? 20 : top}V${bottom}` }));
        if (numbered && x - last > 22) {
          const text = String(event.number);
          const half = 5 + 4 * text.length;
          mark.append(s("rect", { x: x - half, y: 1, width: 2 * half, height: 19, rx: 9.5 }));
          mark.append(s("text", { x, y: 15, "text-anchor": "middle" }, text));
          last = x;
        }
        return mark;
      });
  }

  drawEnds(lines, stacks, longest, figures) {
    const { right, top, bottom } = this.frame;
    const labels = [];
    for (const line of lines) {
      const value = line.values.findLast((one) => one !== null);
      if (line.slot === null || line.slot === undefined || value === undefined) continue;
      labels.push({ y: this.yOf(value), name: line.name, text: this.picture.y.format(value), slot: line.slot, strong: line.strong });
    }
    stacks.forEach((stack) => labels.push({ y: this.yOf(stack.middle), name: stack.name, text: "" }));
    spread(labels, top + 4, bottom - 2);
    return labels.map((label) => {
      const start = stacks.length ? 4 : 18;
      const text = s("text", { class: label.strong ? "end strong" : "end", x: right + start, y: label.place + 4 }, brief(label.name, longest));
      text.append(s("title", {}, label.name));
      const group = s("g", {}, text);
      if (figures) text.append(s("tspan", { class: "value", dx: 6 }, label.text));
      if (!stacks.length) {
        const d = `M${right + 1},${label.y}L${right + 14},${label.place}`;
        group.prepend(s("path", { class: `leader c${label.slot}`, d }));
      }
      return group;
    });
  }

  // Show the point with this number in the chart; null shows none.
  showCursor(at) {
    this.at = at;
    if (!this.cursor) return;
    this.cursor.replaceChildren();
    if (at === null || at >= this.xs.length) return;
    const x = this.xs[at];
    this.cursor.append(s("path", { d: `M${x},${this.frame.top}V${this.frame.bottom}` }));
    for (const line of this.picture.lines ?? []) {
      if (line.slot === null || line.slot === undefined || line.values[at] === null || line.values[at] === undefined) continue;
      this.cursor.append(s("circle", { class: `c${line.slot}`, cx: x, cy: this.yOf(line.values[at]), r: 3.5 }));
    }
  }
}

// A small line without axes, from 0 to the highest value.
export function sparkline(values) {
  const width = 96;
  const height = 24;
  const high = Math.max(...values, 0.001);
  const xs = values.map((_, i) => (width * i) / Math.max(1, values.length - 1));
  const ys = values.map((value) => height - 2 - ((height - 4) * value) / high);
  const area = `${linePath(xs, ys)}L${width},${height}L0,${height}Z`;
  return s(
    "svg",
    { class: "spark", viewBox: `0 0 ${width} ${height}`, width, height, "aria-hidden": "true" },
    values.length > 1 && s("path", { class: "under", d: area }),
    values.length > 1 && s("path", { d: linePath(xs, ys) }),
  );
}
