"use strict";
(function () {
  const root = document.documentElement;
  const charts = JSON.parse(document.getElementById("charts").textContent);
  const dark = window.matchMedia("(prefers-color-scheme: dark)");
  const narrow = window.matchMedia("(max-width: 640px)");
  const touch = window.matchMedia("(pointer: coarse)");
  const button = document.getElementById("theme");
  const drawn = new Map();
  let chosen = null; // what the reader clicked; null follows the system

  const colour = (name) => getComputedStyle(root).getPropertyValue(name).trim();
  const faint = (hex, alpha) => {
    const part = (at) => parseInt(hex.slice(at, at + 2), 16);
    return `rgba(${part(1)},${part(3)},${part(5)},${alpha})`;
  };

  // Colours live in the style sheet; a trace names the one it wants.
  function painted(trace, slot) {
    const [kind, place] = slot.split("-");
    if (kind === "heat") {
      const scale = [[0, colour("--heat-low")], [0.5, colour("--heat-mid")], [1, colour("--heat-high")]];
      const bar = { ...trace.colorbar, tickfont: { color: colour("--muted") }, len: narrow.matches ? 0.9 : 0.4 };
      return { ...trace, colorscale: scale, colorbar: bar };
    }
    const hue = colour(`--c${place}`);
    if (kind === "fill") return { ...trace, fillcolor: faint(hue, 0.11), line: { ...trace.line, color: hue } };
    return { ...trace, line: { ...trace.line, color: hue }, marker: { color: hue } };
  }

  const fewer = (given) => {
    const some = (list) => list.filter((_, place) => place % 3 === 0);
    return given.tickvals ? { tickvals: some(given.tickvals), ticktext: some(given.ticktext) } : { nticks: 5 };
  };

  function laidOut(chart, element) {
    const ink = colour("--ink"), muted = colour("--muted"), grid = colour("--grid");
    const axis = (given, across) => ({
      automargin: true, gridcolor: grid, linecolor: colour("--line"), zeroline: false, tickfont: { color: muted },
      fixedrange: !across || !chart.time, ...given,
      title: { standoff: 8, font: { color: muted, size: 12 }, ...(given.title || {}) },
      ...(narrow.matches && across && chart.time ? fewer(given) : {}),
    });
    const before = drawn.has(element) ? element.layout.xaxis : null;
    const shapes = (chart.layout.shapes || []).map((shape) => {
      const color = shape.name === "event" ? colour("--bad") : muted;
      const label = shape.label ? { label: { ...shape.label, font: { size: 11, color } } } : {};
      return { ...shape, ...label, line: { ...shape.line, color }, ...(shape.type === "rect" ? { fillcolor: color, opacity: 0.16 } : {}) };
    });
    const layout = {
      ...chart.layout, shapes, height: chart.height,
      font: { family: getComputedStyle(document.body).fontFamily, size: 12, color: ink },
      paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)",
      margin: { l: narrow.matches ? 44 : 64, r: 12, t: 12, b: 8 }, autosize: true,
      xaxis: axis(chart.layout.xaxis, true), yaxis: axis(chart.layout.yaxis, false),
      showlegend: Boolean(chart.layout.showlegend),
      legend: { orientation: "h", x: 0, xanchor: "left", y: 1.02, yanchor: "bottom", font: { color: ink, size: 12 } },
      hoverlabel: { bgcolor: colour("--surface"), bordercolor: colour("--line"), font: { color: ink, size: 12 } },
      dragmode: chart.time && !touch.matches ? "zoom" : false,
    };
    if (narrow.matches) layout.yaxis.title = { text: "" };
    if (before && chart.time && before.range) Object.assign(layout.xaxis, { range: before.range.slice(), autorange: false });
    return layout;
  }

  const config = {
    responsive: true, displaylogo: false, displayModeBar: false, doubleClick: "reset",
  };

  function draw(element) {
    const chart = charts[element.dataset.chart];
    const now = drawn.has(element) ? element.data.map((trace) => trace.visible) : null;
    const data = chart.data.map((trace, place) => {
      const shown = painted(trace, chart.slots[place]);
      if (now && now[place] !== undefined) shown.visible = now[place];
      return shown;
    });
    return Plotly.react(element, data, laidOut(chart, element), config).then(() => {
      if (!drawn.has(element)) {
        drawn.set(element, true);
        if (chart.time) element.on("plotly_relayout", (change) => link(element, change));
      }
    });
  }

  const elements = Array.from(document.querySelectorAll(".chart")).filter((element) => charts[element.dataset.chart]);
  const drawAll = () => Promise.all(elements.map(draw));

  // One zoom for all charts over time.
  let linking = false;
  function link(source, change) {
    if (linking) return;
    let update = null;
    if (change["xaxis.range[0]"] !== undefined) {
      update = { "xaxis.range": [change["xaxis.range[0]"], change["xaxis.range[1]"]], "xaxis.autorange": false };
    } else if (change["xaxis.range"] || change["xaxis.autorange"]) {
      update = { "xaxis.range": source.layout.xaxis.range.slice(), "xaxis.autorange": false };
    }
    if (!update) return;
    linking = true;
    const others = elements.filter((element) => element !== source && charts[element.dataset.chart].time);
    Promise.all(others.map((element) => Plotly.relayout(element, { ...update }))).finally(() => { linking = false; });
  }

  function setTheme(name) {
    root.dataset.theme = name;
    button.textContent = name === "dark" ? "Light" : "Dark";
    return drawAll();
  }
  const wanted = () => chosen || (dark.matches ? "dark" : "light");
  button.addEventListener("click", () => { chosen = root.dataset.theme === "dark" ? "light" : "dark"; setTheme(chosen); });
  dark.addEventListener("change", () => setTheme(wanted()));
  narrow.addEventListener("change", drawAll);

  // Paper is white and narrow.
  window.addEventListener("beforeprint", () => {
    root.dataset.theme = "light";
    document.querySelectorAll("details").forEach((more) => { more.open = true; });
    elements.forEach((element) => {
      draw(element);
      Plotly.relayout(element, { width: Math.min(680, element.clientWidth), autosize: false });
    });
  });
  window.addEventListener("afterprint", () => { setTheme(wanted()); });

  // The table of labelers: ticks draw a line, headings sort.
  document.querySelectorAll("input[data-labeler]").forEach((box) => {
    box.addEventListener("change", () => {
      const element = elements.find((one) => one.dataset.chart === "accuracy");
      const place = Number(box.dataset.labeler), n = element.data.length / 2;
      Plotly.restyle(element, { visible: box.checked }, [place, n + place]);
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

  setTheme(wanted()).then(() => { root.dataset.ready = "yes"; });
})();
