"use strict";
(function () {
  const root = document.documentElement;
  const spec = JSON.parse(document.getElementById("charts").textContent);
  const dark = window.matchMedia("(prefers-color-scheme: dark)");
  const button = document.getElementById("theme");
  const LETTER = 6.7, LINE = 16; // width of a letter and height of a label, about, in pixels
  let chosen = null; // the theme that the reader clicked; null follows the system
  let range = null; // the part of the axis that is shown; null is all of it
  let paper = null; // width of charts on paper

  const svg = (name, attributes, ...children) => {
    const node = document.createElementNS("http://www.w3.org/2000/svg", name);
    for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
    node.append(...children);
    return node;
  };
  const html = (name, className, text) => {
    const node = document.createElement(name);
    node.className = className;
    node.textContent = text;
    return node;
  };
  const brief = (text, most) => (text.length <= most ? text : `${text.slice(0, most - 1).trimEnd()}…`);

  // -- numbers and dates as text --------------------------------------------------------------------

  const percent = (tenths) => `${(tenths / 10).toFixed(1).replace(/\.0$/, "")}%`;
  const count = (value) => Math.round(value).toLocaleString("en-US");
  const shown = { percent, rows: count };
  const short = (row) => (Math.abs(row) >= 1e6 ? `${+(row / 1e6).toFixed(2)}M` : Math.abs(row) >= 1e5 ? `${+(row / 1e3).toFixed(1)}k` : count(row));
  const iso = (ms) => new Date(ms).toISOString();
  const moment = (ms) => iso(ms).slice(0, 16).replace("T", " ").replace(" 00:00", "");
  const MONTHS = "Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec".split(" ");

  // Round values between two ends, about so many.
  function ticks(low, high, parts) {
    const rough = (high - low) / Math.max(1, parts) || 1, power = 10 ** Math.floor(Math.log10(rough));
    const step = [1, 2, 5, 10].map((factor) => factor * power).find((size) => size >= rough * 0.75);
    const found = [];
    for (let n = Math.ceil(low / step - 1e-9); n * step <= high + step * 1e-9; n++) found.push(n * step + 0); // + 0: no minus zero
    return found;
  }
  const powers = (low, high) => {
    const found = [];
    for (let value = 1; value <= high * 1.01; value *= 4) if (value >= low * 0.99) found.push(value);
    return found;
  };
  const MINUTE = 6e4, HOUR = 36e5, DAY = 864e5;
  const STEPS = [1e3, 5e3, 15e3, 3e4, MINUTE, 5 * MINUTE, 15 * MINUTE, 30 * MINUTE, HOUR, 3 * HOUR, 6 * HOUR, 12 * HOUR, DAY, 2 * DAY, 7 * DAY, 14 * DAY];
  function dateTicks(low, high, parts) {
    const rough = (high - low) / Math.max(1, parts), step = STEPS.find((size) => size >= rough * 0.75);
    const found = [];
    if (step) {
      for (let at = Math.ceil(low / step) * step; at <= high; at += step) found.push(at);
      return found.map((at) => [at, step >= DAY ? `${new Date(at).getUTCDate()} ${MONTHS[new Date(at).getUTCMonth()]}` : iso(at).slice(11, step >= MINUTE ? 16 : 19)]);
    }
    const months = [1, 2, 3, 6, 12, 24, 60, 120, 240, 1200].find((n) => n * 30.4 * DAY >= rough) || 12000, start = new Date(low);
    for (let m = Math.ceil((start.getUTCFullYear() * 12 + start.getUTCMonth()) / months) * months; ; m += months) {
      const at = Date.UTC(Math.floor(m / 12), m % 12, 1);
      if (at > high) return found;
      if (at >= low) found.push([at, months >= 12 ? String(Math.floor(m / 12)) : `${MONTHS[m % 12]} ${Math.floor(m / 12)}`]);
    }
  }
  const place = (x) => (spec.axis.kind === "date" ? moment(x) : spec.axis.kind === "row" ? `row ${count(x)}` : String(+x.toPrecision(6)));

  // -- a chart --------------------------------------------------------------------------------------

  // Move labels apart, as little as needed.
  function spread(labels, top, bottom) {
    labels.sort((a, b) => a.y - b.y);
    let edge = top;
    for (const label of labels) edge = (label.place = Math.max(label.y, edge)) + LINE;
    edge = bottom;
    for (const label of [...labels].reverse()) edge = (label.place = Math.min(label.place, edge)) - LINE;
  }

  class Chart {
    constructor(node) {
      this.node = node;
      Object.assign(this, spec.charts[node.dataset.chart]);
      this.x ??= spec.x;
      this.log = this.unit === "rows";
      this.legend = html("p", "legend", "");
      this.svg = svg("svg", { class: "plot" });
      this.tip = html("div", "tip", "");
      this.tip.hidden = true;
      node.append(this.legend, this.svg, this.tip);
      this.listen();
    }

    get drawn() {
      return this.lines.filter((line) => line.shown);
    }

    draw() {
      const width = paper ?? this.node.clientWidth;
      if (!width) return;
      const { height } = this, [first, last] = range ?? [spec.axis.low, spec.axis.high];
      const direct = width >= 620 && this.drawn.length <= 10 && this.drawn.length > 1; // names at the ends of lines
      const right = direct ? Math.min(170, Math.round(Math.max(...this.drawn.map((line) => Math.min(22, line.name.length))) * LETTER) + 22) : 8;
      const left = this.log ? 52 : 44, top = 22, bottom = height - (spec.axis.times ? 40 : 24), end = width - right;
      const scale = this.log ? Math.log : (value) => value;
      const [low, high] = [scale(this.low * (this.log ? 0.9 : 1)), scale(this.high * (this.log ? 1.1 : 1))];
      const xOf = (value) => left + ((end - left) * (value - first)) / (last - first || 1);
      const yOf = (value) => bottom - ((bottom - top) * (scale(value) - low)) / (high - low || 1);
      Object.assign(this, { xOf, yOf, first, last, left, end, top, bottom, width });
      const values = this.log ? powers(this.low, this.high) : ticks(this.low, this.high, 4);
      const parts = values.flatMap((value) => [
        svg("path", { class: "grid", d: `M${left},${yOf(value)}H${end}` }),
        svg("text", { class: "tick", x: left - 7, y: yOf(value) + 4, "text-anchor": "end" }, shown[this.unit](value)),
      ]);
      parts.push(...this.across());
      const box = [left, top - 2, Math.max(1, end - left), bottom - top + 4]; // bands end at the axes
      const plot = svg("svg", { x: box[0], y: box[1], width: box[2], height: box[3], viewBox: box.join(" ") });
      plot.append(...this.marked(), ...this.drawn.filter((line) => line.strong && line.low).map((line) => this.band(line)));
      plot.append(...[...this.drawn].sort((a, b) => a.strong - b.strong).map((line) => this.line(line)));
      this.cursor = svg("g", { class: "cursor" });
      parts.push(plot, ...this.numbers(), ...(direct ? this.names() : []), this.cursor);
      this.svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
      this.svg.setAttribute("width", width);
      this.svg.setAttribute("height", height);
      this.svg.replaceChildren(...parts);
      this.legend.hidden = direct || this.drawn.length < 2;
      this.legend.replaceChildren(...this.drawn.map((line) => {
        const name = html("span", line.strong ? "" : "faint", brief(line.name, 28));
        name.prepend(html("i", `swatch ${line.colour}`, ""));
        return name;
      }));
    }

    // The horizontal axis.
    across() {
      const { first, last, bottom, end, left } = this, parts = Math.max(2, Math.floor((end - left) / 105)), { kind, times } = spec.axis;
      const y = bottom + 17;
      const text = (x, label, below = 0) => svg("text", { class: "tick", x: this.xOf(x), y: y + below, "text-anchor": this.xOf(x) > end - 20 ? "end" : "middle" }, label);
      if (times && !range) {
        const some = times.filter((_, at) => at % Math.ceil(times.length / parts) === 0);
        return some.flatMap(([row, time]) => [text(row, time), text(row, short(row), 15)]);
      }
      if (kind === "date") return dateTicks(first, last, parts).map(([at, label]) => text(at, label));
      const places = ticks(first, last + (last - first) / 500, parts); // 2,000 rows end at row 1,999
      if (kind === "row" && end - this.xOf(places.at(-1)) > 80) places.push(Math.floor(last)); // the axis names the last row
      const found = places.map((at) => text(at, kind === "row" ? short(at) : String(+at.toPrecision(6))));
      return kind === "row" ? [...found, svg("text", { class: "tick", x: left - 12, y, "text-anchor": "end" }, "row")] : found;
    }

    points(values) {
      const found = [[]];
      this.x.forEach((x, at) => (values[at] === null ? found.push([]) : found.at(-1).push(`${this.xOf(x).toFixed(1)},${this.yOf(values[at]).toFixed(1)}`)));
      return found.filter((run) => run.length);
    }

    line(line) {
      const d = this.points(line.values).map((run) => `M${run.length > 1 ? run.join("L") : `${run[0]}h.1`}`).join("");
      return svg("path", { class: `line ${line.colour}${line.strong ? "" : " faint"}`, d });
    }

    band(line) {
      const below = this.points(line.low);
      const d = this.points(line.high).map((run, at) => (run.length > 1 ? `M${run.join("L")}L${[...below[at]].reverse().join("L")}Z` : "")).join("");
      return svg("path", { class: `band ${line.colour}`, d });
    }

    marked() {
      return spec.marks.flatMap((mark) => {
        const { top, bottom } = this, x = this.xOf(mark.at), noticed = this.xOf(mark.noticed);
        const shade = svg("rect", { x, y: top, width: Math.max(2, noticed - x), height: bottom - top });
        return [svg("g", { class: "mark" }, shade, svg("path", { d: `M${x},${top}V${bottom}` }))];
      });
    }

    // The numbers of events, above their lines, where there is room.
    numbers() {
      let last = -Infinity;
      return spec.marks.filter((mark) => mark.number && mark.at >= this.first && mark.at <= this.last).flatMap((mark) => {
        const x = this.xOf(mark.at), half = 5 + 4 * String(mark.number).length;
        if (x - last < 2 * half + 3) return [];
        last = x;
        const text = svg("text", { x, y: 15, "text-anchor": "middle" }, String(mark.number));
        return [svg("a", { class: "number", href: `#event-${mark.number}` }, svg("title", {}, mark.text), svg("rect", { x: x - half, y: 2, width: 2 * half, height: 18, rx: 9 }), text)];
      });
    }

    // Names at the ends of lines.
    names() {
      const labels = this.drawn.map((line) => {
        const value = line.values.findLast((one) => one !== null);
        return { y: this.yOf(value ?? this.low), line };
      });
      spread(labels, this.top + 6, this.bottom - 2);
      return labels.flatMap(({ y, place: at, line }) => [
        svg("path", { class: `leader ${line.colour}`, d: `M${this.end + 2},${y}L${this.end + 13},${at}` }),
        svg("text", { class: `end${line.strong ? "" : " faint"}`, x: this.end + 17, y: at + 4 }, brief(line.name, 22), svg("title", {}, line.name)),
      ]);
    }

    // The cursor at the point nearest to a place on the axis; null takes it away.
    point(value, mine) {
      this.cursor?.replaceChildren();
      this.tip.hidden = true;
      if (value === null || !this.cursor) return;
      let at = 0;
      this.x.forEach((x, one) => { if (Math.abs(x - value) < Math.abs(this.x[at] - value)) at = one; });
      const x = this.xOf(this.x[at]);
      if (x < this.left - 1 || x > this.end + 1) return;
      this.cursor.append(svg("path", { d: `M${x},${this.top}V${this.bottom}` }));
      const known = this.drawn.filter((line) => line.values[at] !== null).sort((a, b) => b.values[at] - a.values[at]);
      this.cursor.append(...known.map((line) => svg("circle", { class: line.colour, cx: x, cy: this.yOf(line.values[at]), r: 3 })));
      if (!mine) return;
      const rows = known.slice(0, 12).map((line) => {
        const row = html("div", "", "");
        const band = line.low && line.low[at] !== line.high[at] ? ` (${shown[this.unit](line.low[at])} to ${shown[this.unit](line.high[at])})` : "";
        row.append(html("i", `swatch ${line.colour}`, ""), brief(line.name, 28), html("b", "", shown[this.unit](line.values[at])), html("small", "", band));
        return row;
      });
      this.tip.replaceChildren(html("strong", "", place(this.x[at])), ...rows);
      this.tip.hidden = false;
      const half = this.tip.offsetWidth;
      this.tip.style.left = `${Math.max(0, x + 14 + half > this.width ? x - 14 - half : x + 14)}px`;
      this.tip.style.top = `${this.svg.offsetTop + this.top}px`;
    }

    listen() {
      let start = null;
      const at = (event) => this.first + ((this.last - this.first) * (event.clientX - this.svg.getBoundingClientRect().left - this.left)) / (this.end - this.left);
      const clamp = (value) => Math.min(this.last, Math.max(this.first, value));
      this.svg.addEventListener("pointermove", (event) => {
        const value = clamp(at(event));
        charts.forEach((chart) => chart.point(value, chart === this));
        if (start === null) return;
        const [a, b] = [start, value].sort((x, y) => x - y).map(this.xOf);
        this.cursor.append(svg("rect", { x: a, y: this.top, width: b - a, height: this.bottom - this.top }));
      });
      this.svg.addEventListener("pointerleave", (event) => { if (event.pointerType !== "touch") charts.forEach((chart) => chart.point(null)); });
      this.svg.addEventListener("pointerdown", (event) => { if (event.pointerType === "mouse" && event.button === 0) start = clamp(at(event)); });
      window.addEventListener("pointerup", (event) => {
        if (start === null) return;
        const ends = [start, clamp(at(event))].sort((x, y) => x - y);
        start = null;
        if (this.xOf(ends[1]) - this.xOf(ends[0]) > 8) zoom(ends);
      });
      this.svg.addEventListener("dblclick", () => zoom(null));
    }
  }

  const nodes = Array.from(document.querySelectorAll(".chart")).filter((node) => spec.charts[node.dataset.chart]);
  const charts = nodes.map((node) => new Chart(node));
  const drawAll = () => charts.forEach((chart) => chart.draw());

  // One zoom for all charts: they have one axis.
  function zoom(ends) {
    range = ends;
    drawAll();
    document.getElementById("zoom-out").hidden = range === null;
  }
  document.getElementById("zoom-out").addEventListener("click", () => zoom(null));
  new ResizeObserver(() => { if (!paper) drawAll(); }).observe(document.querySelector("main"));

  // -- theme, paper, table --------------------------------------------------------------------------

  const wanted = () => chosen || (dark.matches ? "dark" : "light");
  function setTheme(name) {
    root.dataset.theme = name;
    button.textContent = name === "dark" ? "Light" : "Dark";
  }
  button.addEventListener("click", () => { chosen = root.dataset.theme === "dark" ? "light" : "dark"; setTheme(chosen); });
  dark.addEventListener("change", () => setTheme(wanted()));

  window.addEventListener("beforeprint", () => {
    setTheme("light");
    document.querySelectorAll("details").forEach((more) => { more.open = true; });
    paper = 680;
    drawAll();
  });
  window.addEventListener("afterprint", () => { paper = null; setTheme(wanted()); drawAll(); });

  // The table of labelers: ticks draw a line, headings sort.
  document.querySelectorAll("input[data-labeler]").forEach((box) => {
    box.addEventListener("change", () => {
      const chart = charts.find((one) => one.node.dataset.chart === "accuracy"), line = chart.lines[Number(box.dataset.labeler)];
      line.shown = box.checked;
      line.strong ||= box.checked; // whoever is asked for is drawn well
      chart.draw();
    });
  });
  document.querySelectorAll("table.sortable").forEach((table) => {
    const heads = Array.from(table.tHead.rows[0].cells);
    heads.forEach((head, column) => {
      if (head.dataset.plain !== undefined || head.classList.contains("tick")) return;
      head.tabIndex = 0;
      const sort = () => {
        const up = head.getAttribute("aria-sort") === "descending";
        heads.forEach((other) => other.removeAttribute("aria-sort"));
        head.setAttribute("aria-sort", up ? "ascending" : "descending");
        const key = (row) => {
          const cell = row.cells[column];
          return cell.dataset.value === undefined ? cell.textContent.trim() : Number(cell.dataset.value);
        };
        const rows = Array.from(table.tBodies[0].rows);
        rows.sort((a, b) => {
          const x = key(a), y = key(b);
          const order = typeof x === "number" ? x - y : y.localeCompare(x);
          return up ? order : -order;
        });
        table.tBodies[0].append(...rows);
      };
      head.addEventListener("click", sort);
      head.addEventListener("keydown", (event) => { if (event.key === "Enter" || event.key === " ") { event.preventDefault(); sort(); } });
    });
  });

  setTheme(wanted());
  drawAll();
  root.dataset.ready = "yes";
})();
