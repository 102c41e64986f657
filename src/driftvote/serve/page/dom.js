// Elements and numbers. Names of streams, labelers and classes may be anything: they become text, never markup.

const SVG = "http://www.w3.org/2000/svg";

function build(element, attributes, children) {
  for (const [key, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (key.startsWith("--")) element.style.setProperty(key, value);
    else if (typeof value === "function") element.addEventListener(key, value);
    else element.setAttribute(key, value === true ? "" : value);
  }
  element.append(...children.flat().filter((child) => child !== null && child !== undefined && child !== false));
  return element;
}

// An element: h("p", {class: "about", click: go, "--share": "40%"}, "text", h("b", {}, "more")).
export const h = (tag, attributes = {}, ...children) => build(document.createElement(tag), attributes, children);

// The same for SVG.
export const s = (tag, attributes = {}, ...children) => build(document.createElementNS(SVG, tag), attributes, children);

// Write text only where it differs, so that nothing blinks and selections stay.
export function setText(element, text) {
  if (element.textContent !== String(text)) element.textContent = text;
}

// Make the children of `parent` one node for each item, reusing the nodes of keys that were there before.
// `make(item)` returns a node with a method `update(item)`.
export function keyed(parent, items, key, make) {
  const before = parent.nodesByKey ?? new Map();
  const after = new Map();
  let place = parent.firstChild;
  for (const item of items) {
    const name = key(item);
    const node = before.get(name) ?? make(item);
    node.update(item);
    after.set(name, node);
    if (node === place) place = place.nextSibling;
    else parent.insertBefore(node, place);
  }
  for (const [name, node] of before) if (after.get(name) !== node) node.remove();
  parent.nodesByKey = after;
}

const whole = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });
const tenths = new Intl.NumberFormat("en", { minimumFractionDigits: 1, maximumFractionDigits: 1 });
const short = new Intl.NumberFormat("en", { notation: "compact", maximumFractionDigits: 1 });
const known = (value) => typeof value === "number" && Number.isFinite(value);

export const count = (value) => (known(value) ? whole.format(value) : "–");
export const compact = (value) => (known(value) ? short.format(value) : "–");
export const rate = (value) => (known(value) ? (value > 0 && value < 9.95 ? tenths : whole).format(value) : "–");
export const percent = (value) => (known(value) ? `${whole.format(100 * value)}%` : "–");
// Small shares keep a digit: 0.4% is not 0%.
export const share = (value) => (known(value) && value > 0 && value < 0.0995 ? `${tenths.format(100 * value)}%` : percent(value));
export const between = (low, high) => (known(low) && known(high) ? `${whole.format(100 * low)}–${percent(high)}` : "");
export const signed = (value) => (known(value) ? value.toFixed(2).replace("-", "−") : "–");
export const plural = (value, one, many = `${one}s`) => `${count(value)} ${value === 1 ? one : many}`;
export const brief = (text, most) => (text.length > most ? `${text.slice(0, most - 1)}…` : text);

// Times as they were given, without the punctuation of ISO 8601.
const plainTimes = (text) => text.replace(/(\d{4}-\d\d-\d\d)T(\d\d:\d\d(?::\d\d)?)(?:\.\d+)?(?:Z|\+00:00)?/g, "$1 $2");
export const when = (time) => (time === null || time === undefined ? "" : plainTimes(String(time)));

// A message of the server as a sentence: some begin small and end without a stop.
export function sentence(message) {
  const text = plainTimes(message);
  return `${text.charAt(0).toUpperCase()}${text.slice(1)}${/[.!?]$/.test(text) ? "" : "."}`;
}
