// Drawing: SVG elements, axes, plots. Nothing here knows what is drawn.

function byId(id) { return document.getElementById(id); }

/** The values of a part of the page, from its JSON block. */
function dataOf(id) { return JSON.parse(byId(id).textContent); }

const TEXTS = dataOf("texts");

/** A text of the page, with values in its places. */
function textOf(name, values = {}) { return TEXTS[name].replace(/\{(\w+)\}/g, (_, place) => values[place]); }

// Read off an element, so that the file holds no address at all.
const SVG = byId("blank").namespaceURI;

/** An HTML element with attributes and text; text is never parsed as markup. */
function html(tag, attributes = {}, text = "") {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  if (text) element.textContent = text;
  return element;
}

/** An SVG element, the same way. */
function svg(tag, attributes = {}, text = "") {
  const element = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  if (text) element.textContent = text;
  return element;
}

function linear(axis, start, end) {
  const scale = (end - start) / (axis.high - axis.low);
  return (value) => start + (value - axis.low) * scale;
}

/** An empty plot with grid, ticks and titles, as wide as its host. Gives the scales and the layer to draw on. */
function plot(host, { x, y, xTitle, yTitle, height, labelledby }) {
  const width = Math.max(host.clientWidth, 240);
  const margin = { left: 64, right: 14, top: 12, bottom: 44 };
  const box = { left: margin.left, right: width - margin.right, top: margin.top, bottom: height - margin.bottom };
  const root = svg("svg", { viewBox: `0 0 ${width} ${height}`, role: "group", "aria-labelledby": labelledby });
  const toX = linear(x, box.left, box.right);
  const toY = linear(y, box.bottom, box.top);
  const frame = svg("g", { "aria-hidden": "true" });
  drawTicks(frame, x, y, toX, toY, box);
  frame.append(
    svg("text", { class: "axis-title", x: (box.left + box.right) / 2, y: height - 6, "text-anchor": "middle" }, xTitle),
    svg("text", { class: "axis-title", transform: `translate(12 ${(box.top + box.bottom) / 2}) rotate(-90)`, "text-anchor": "middle" }, yTitle),
  );
  const layer = svg("g");
  root.append(frame, layer);
  host.querySelector("svg")?.remove();
  host.prepend(root);
  return { root, layer, toX, toY, box, width, height };
}

function drawTicks(frame, x, y, toX, toY, box) {
  for (const [at, text] of y.ticks) {
    frame.append(
      svg("line", { class: "grid", x1: box.left, x2: box.right, y1: toY(at), y2: toY(at) }),
      svg("text", { class: "tick", x: box.left - 8, y: toY(at) + 4, "text-anchor": "end" }, text),
    );
  }
  const narrow = (box.right - box.left) / x.ticks.length < 42;
  x.ticks.forEach(([at, text], index) => {
    frame.append(svg("line", { class: "grid", x1: toX(at), x2: toX(at), y1: box.top, y2: box.bottom }));
    if (narrow && index % 2) return;
    frame.append(svg("text", { class: "tick", x: toX(at), y: box.bottom + 17, "text-anchor": "middle" }, text));
  });
  frame.append(svg("line", { class: "axis", x1: box.left, x2: box.right, y1: box.bottom, y2: box.bottom }));
}

/** Path through the values that exist; a missing one interrupts it. */
function linePath(xs, ys, toX, toY) {
  let path = "";
  let pen = "M";
  xs.forEach((x, index) => {
    const y = ys[index];
    if (y === null) { pen = "M"; return; }
    path += `${pen}${toX(x).toFixed(1)} ${toY(y).toFixed(1)}`;
    pen = "L";
  });
  return path;
}

/** A number in three digits, with the minus sign of the texts made in Python. */
function digitsText(value) { return value.toPrecision(3).replaceAll("-", "\u2212"); }

/** The box that follows the pointer: one per plot, filled with names and texts. */
function tooltip(host) {
  const box = html("div", { class: "tooltip", role: "status", hidden: "" });
  host.append(box);
  return {
    show(lines, x, y, heading = "") {
      const list = html("dl");
      for (const [name, text] of lines) list.append(html("dt", {}, name), html("dd", {}, text));
      box.replaceChildren(...(heading ? [html("p", {}, heading)] : []), list);
      box.hidden = false;
      placeBeside(box, host, x, y);
    },
    hide() { box.hidden = true; },
  };
}

function placeBeside(box, host, x, y) {
  const right = x + 16 + box.offsetWidth <= host.clientWidth;
  const left = right ? x + 16 : Math.max(0, x - 16 - box.offsetWidth);
  box.style.left = `${left}px`;
  box.style.top = `${Math.max(0, y - box.offsetHeight / 2)}px`;
}

/** Pointer position in the plot's own units. */
function pointerIn(figure, event) {
  const frame = figure.root.getBoundingClientRect();
  const scale = figure.width / frame.width;
  return { x: (event.clientX - frame.left) * scale, y: (event.clientY - frame.top) * scale };
}

/** Draw now, and again whenever the width of the host changes. */
function drawn(host, draw) {
  let width = host.clientWidth;
  draw();
  new ResizeObserver(() => {
    if (host.clientWidth === width) return;
    width = host.clientWidth;
    draw();
  }).observe(host);
}

/** Class names of a group: seven colors, and dashes so that color is never the only difference. */
function groupClass(index) {
  return `group c${index % 7} d${((index % 7) + Math.floor(index / 7)) % 4}`;
}

/** An entry of a legend: a small drawing and its meaning. */
function keyEntry(shape, text) {
  const entry = html("li");
  const sample = svg("svg", { viewBox: "0 0 28 14", width: 28, height: 14, "aria-hidden": "true" });
  sample.append(...[shape].flat());
  entry.append(sample, html("span", {}, text));
  return entry;
}

/** Legend of groups, in the colors of their lines. */
function groupEntries(names, colors = [...names.keys()]) {
  const line = (color) => svg("line", { class: groupClass(color), x1: 1, x2: 27, y1: 7, y2: 7 });
  return names.map((name, index) => keyEntry(line(colors[index]), name));
}

/** A card with two figures and a sentence; pressing it goes where the figures are shown. */
function highlightCard({ heading, figures, sentence, where }, onPress) {
  const card = html("button", { type: "button", class: "highlight" });
  const row = html("span", { class: "figures" });
  for (const [name, text] of figures) {
    const figure = html("span", { class: "figure" });
    figure.append(html("b", {}, text), html("span", {}, name));
    row.append(figure);
  }
  card.append(html("span", { class: "heading" }, heading), row, html("span", { class: "sentence" }, sentence), html("span", { class: "where" }, where));
  if (onPress) card.addEventListener("click", onPress);
  else card.disabled = true;
  return card;
}
