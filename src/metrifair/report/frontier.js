// The frontier: takes the numbers and texts of its JSON block and places them. The state: the row the slider stands on,
// and whether models that need the group are left out.

const data = dataOf("data");
const state = { row: data.start, without: false }; // without: only models that need no group at prediction
const REACH = 28; // pixels from which a dot still catches the pointer

function fillHighlights() {
  byId("highlights").append(...data.highlights.map((found) => {
    const [accuracy, gap, strength] = found.figures;
    const card = { heading: found.heading, figures: [accuracy, gap], sentence: found.sentence, where: strength.join(" ") };
    return highlightCard(card, found.row === null ? null : () => go(found.row));
  }));
}

// ---- slider -----------------------------------------------------------------------------------------------------

function setUpSlider() {
  const slider = byId("slider");
  slider.max = data.rows.length - 1;
  slider.disabled = data.rows.length < 2;
  slider.addEventListener("input", () => go(nearestShown(Number(slider.value))));
  byId("slider-label").textContent = data.names.strength;
  const home = byId("home");
  home.hidden = data.frontier.chosen === null || data.rows.length < 2;
  home.addEventListener("click", () => go(data.start));
  byId("stops").append(...stopIndices(data.rows.length).map(stopLabel));
}

/** At most five places for labels under the slider, evenly spread, both ends among them. */
function stopIndices(count) {
  const steps = Math.min(4, count - 1);
  return steps < 1 ? [0] : [...Array(steps + 1).keys()].map((step) => Math.round((step * (count - 1)) / steps));
}

function stopLabel(index) {
  const label = html("span", {}, data.rows[index].stop);
  const share = data.rows.length > 1 ? index / (data.rows.length - 1) : 0;
  label.style.left = `calc(11px + ${share} * (100% - 22px))`; // 11px: half the thumb
  return label;
}

// ---- filter -----------------------------------------------------------------------------------------------------

function isShown(index) { return !(state.without && data.rows[index].needsGroup); }

/** The row itself, or the nearest of those that are shown. */
function nearestShown(index) {
  const shown = [...data.rows.keys()].filter(isShown);
  return shown.reduce((best, other) => (Math.abs(other - index) < Math.abs(best - index) ? other : best), shown[0]);
}

/** There where some models need the group and some do not. */
function setUpFilter() {
  const needs = data.rows.map((row) => row.needsGroup);
  byId("without-label").hidden = !needs.includes(true) || !needs.includes(false);
  byId("without").addEventListener("change", (event) => {
    state.without = event.target.checked;
    for (const row of byId("table").tBodies[0].rows) row.classList.toggle("off", !isShown(Number(row.dataset.row)));
    drawFrontier();
    go(nearestShown(state.row));
  });
}

/** The one way to change the page: show the models of this row everywhere. */
function go(index) {
  state.row = index;
  const row = data.rows[index];
  const slider = byId("slider");
  slider.value = index;
  slider.setAttribute("aria-valuetext", row.spoken);
  byId("strength").textContent = row.text;
  byId("brief").textContent = row.brief;
  byId("home").disabled = index === data.start;
  showCurrent(row);
  moveMarker();
  showDistributions();
  markTableRow();
}

function showCurrent(row) {
  byId("current-title").textContent = `${data.names.strength} ${row.text}`;
  const host = byId("current");
  if (!row.usable) {
    host.replaceChildren(html("p", { class: "alarm" }, textOf("training_failed", row)));
    return;
  }
  const list = html("dl", { class: "current" });
  for (const figure of row.figures) list.append(html("dt", {}, figure.name), currentFigure(figure));
  const notes = [row.against && textOf("changes_from", { row: row.against }), row.state !== "ok" && textOf("training_state", row)];
  const warnings = [row.mark && sentence(row.mark), row.overfit];
  host.replaceChildren(
    ...warnings.filter(Boolean).map((text) => html("p", { class: "warning" }, text)),
    list,
    ...notes.filter(Boolean).map((note) => html("p", { class: "hint" }, note)),
  );
}

function sentence(text) { return `${text[0].toUpperCase()}${text.slice(1)}.`; }

function currentFigure(figure) {
  const value = html("dd");
  value.append(html("b", {}, figure.text));
  if (figure.change) value.append(html("span", { class: `change ${figure.trend}` }, figure.change));
  if (figure.bounds) value.append(html("small", {}, figure.bounds));
  return value;
}

// ---- frontier ---------------------------------------------------------------------------------------------------

const frontier = { host: byId("frontier"), figure: null, dots: [], marker: null, label: null, tip: null };

function drawFrontier() {
  const { host } = frontier;
  const { x, y } = data.frontier;
  const height = host.clientWidth < 500 ? 300 : 460;
  const titles = { xTitle: textOf("left_is_fairer", { name: data.names.gap }), yTitle: textOf("up_is_better", { name: data.names.utility }) };
  const figure = plot(host, { x, y, ...titles, height, labelledby: "frontier-title" });
  frontier.figure = figure;
  drawNoise(figure);
  drawLimit(figure);
  drawBaseline(figure);
  const line = state.without ? data.frontier.lineWithout : data.frontier.line;
  figure.layer.append(svg("path", { class: "front", d: linePath(line.map((p) => p[0]), line.map((p) => p[1]), figure.toX, figure.toY) }));
  frontier.dots = data.frontier.points.map((point) => drawDot(figure, point));
  frontier.dots.find((dot) => !dot.classList.contains("off"))?.setAttribute("tabindex", "0");
  drawConstant(figure);
  drawChosen(figure);
  frontier.marker = svg("g", { class: "marker", "aria-hidden": "true" });
  figure.layer.append(frontier.marker);
  labelChosen(figure);
  if (!data.frontier.points.length) figure.layer.append(svg("text", { class: "empty", x: figure.width / 2, y: height / 2, "text-anchor": "middle" }, textOf("nothing_drawn")));
  catchPointer(figure);
  moveMarker();
}

/** Unfairness in this strip cannot be distinguished from 0 with these rows. */
function drawNoise({ layer, toX, box }) {
  if (data.frontier.noise === null) return;
  const right = Math.min(toX(data.frontier.noise), box.right);
  layer.append(svg("rect", { class: "noise", x: box.left, y: box.top, width: right - box.left, height: box.bottom - box.top }));
}

/** The unfairness that the chosen model may have at most. */
function drawLimit({ layer, toX, box }) {
  if (data.frontier.limit === null) return;
  const x = toX(data.frontier.limit);
  layer.append(svg("line", { class: "limit-line", x1: x, x2: x, y1: box.top, y2: box.bottom }));
}

/** Where a model stands that decides the same for everyone: nothing below the line is worth having. */
function drawBaseline({ layer, toY, box }) {
  const { constant } = data.frontier;
  if (constant === null) return;
  layer.append(svg("line", { class: "baseline", x1: box.left, x2: box.right, y1: toY(constant.y), y2: toY(constant.y) }));
}

function drawConstant({ layer, toX, toY, box }) {
  const { constant } = data.frontier;
  if (constant === null) return;
  const [x, y] = [toX(constant.x), toY(constant.y)];
  const low = y + 24 > box.bottom;
  const left = x > box.right - 130;
  const mark = svg("rect", { class: "constant", x: x - 5.5, y: y - 5.5, width: 11, height: 11, tabindex: "0", role: "img", "aria-label": constant.text });
  mark.addEventListener("focus", () => showConstant(x, y));
  mark.addEventListener("blur", () => frontier.tip.hide());
  layer.append(mark, svg("text", { class: "constant-label", x: x + (left ? -12 : 12), y: low ? y - 9 : y + 17, "text-anchor": left ? "end" : "start" }, textOf("constant_label")));
}

function showConstant(x, y) {
  frontier.dots.forEach((dot) => dot.classList.remove("near"));
  frontier.tip.show(data.frontier.constant.lines, x, y);
}

/** Whether the pointer is at the constant model, and nearer to it than to any dot. */
function atConstant(figure, event, index) {
  const { constant } = data.frontier;
  if (constant === null) return false;
  const at = pointerIn(figure, event);
  const away = (x, y) => Math.hypot(x - at.x, y - at.y);
  const own = away(figure.toX(constant.x), figure.toY(constant.y));
  const dot = index < 0 ? null : frontier.dots[index];
  return own <= REACH && (dot === null || own < away(dot.getAttribute("cx"), dot.getAttribute("cy")));
}

function drawDot({ layer, toX, toY }, point) {
  const front = state.without ? point.frontWithout : point.front;
  const kind = `dot${front ? " best" : ""}${point.mark ? " alike" : ""}${isShown(point.row) ? "" : " off"}`;
  const dot = svg("circle", { class: kind, cx: toX(point.x), cy: toY(point.y), r: front ? 5 : 4, tabindex: "-1", role: "button" });
  dot.setAttribute("aria-label", [...point.lines.map((line) => line.join(" ")), ...(point.mark ? [point.mark] : [])].join(", "));
  dot.addEventListener("focus", () => showDot(dot, point));
  dot.addEventListener("blur", () => frontier.tip.hide());
  dot.addEventListener("keydown", (event) => onDotKey(event, dot, point));
  layer.append(dot);
  return dot;
}

function onDotKey(event, dot, point) {
  const steps = { ArrowRight: 1, ArrowUp: 1, ArrowLeft: -1, ArrowDown: -1 };
  if (event.key === "Enter" || event.key === " ") go(point.row);
  else if (event.key === "Escape") frontier.tip.hide();
  else if (event.key in steps) focusDot(frontier.dots.indexOf(dot) + steps[event.key], steps[event.key]);
  else return;
  event.preventDefault();
}

/** One dot is a stop of the tab key, arrows go on from there. */
function focusDot(index, step) {
  while (frontier.dots[index]?.classList.contains("off")) index += step;
  const dot = frontier.dots[index];
  if (!dot) return;
  frontier.dots.forEach((other) => other.setAttribute("tabindex", "-1"));
  dot.setAttribute("tabindex", "0");
  dot.focus();
}

function showDot(dot, point) {
  frontier.dots.forEach((other) => other.classList.toggle("near", other === dot));
  frontier.tip.show(point.lines, Number(dot.getAttribute("cx")), Number(dot.getAttribute("cy")), point.mark && sentence(point.mark));
}

function hideDot() {
  frontier.dots.forEach((dot) => dot.classList.remove("near"));
  frontier.tip.hide();
}

function nearest(figure, event) {
  const at = pointerIn(figure, event);
  const distance = (dot) => Math.hypot(dot.getAttribute("cx") - at.x, dot.getAttribute("cy") - at.y);
  const index = frontier.dots.reduce((best, dot, i, dots) => (!dot.classList.contains("off") && (best < 0 || distance(dot) < distance(dots[best])) ? i : best), -1);
  return index >= 0 && distance(frontier.dots[index]) <= REACH ? index : -1;
}

function catchPointer(figure) {
  figure.root.addEventListener("pointermove", (event) => {
    const index = nearest(figure, event);
    if (atConstant(figure, event, index)) showConstant(figure.toX(data.frontier.constant.x), figure.toY(data.frontier.constant.y));
    else if (index < 0) hideDot();
    else showDot(frontier.dots[index], data.frontier.points[index]);
  });
  figure.root.addEventListener("pointerleave", hideDot);
  figure.root.addEventListener("click", (event) => {
    const index = nearest(figure, event);
    if (index >= 0) go(data.frontier.points[index].row);
  });
}

function drawChosen({ layer, toX, toY }) {
  const { chosen } = data.frontier;
  if (chosen === null) return;
  const [x, y] = [toX(chosen.x), toY(chosen.y)];
  layer.append(svg("path", { class: "chosen", d: `M${x} ${y - 13}L${x + 13} ${y}L${x} ${y + 13}L${x - 13} ${y}Z` }));
}

/** Above everything else; where it stands is decided when the slider's dot has moved. */
function labelChosen({ layer }) {
  frontier.label = data.frontier.chosen === null ? null : svg("text", { class: "chosen-label" }, textOf("chosen_label"));
  if (frontier.label) layer.append(frontier.label);
}

/** A corner of the chosen model where neither the slider's dot, nor its cross, nor the constant model's name is. */
function placeLabel() {
  const { figure, label } = frontier;
  if (!label) return;
  const { toX, toY, box } = figure;
  const [x, y] = [toX(data.frontier.chosen.x), toY(data.frontier.chosen.y)];
  const width = label.getComputedTextLength();
  const taken = [...figure.layer.querySelectorAll(".now, .spread, .constant, .constant-label")].map((mark) => mark.getBBox());
  const free = ({ left, top }) =>
    left >= box.left && left + width <= box.right && top >= box.top && top + 14 <= box.bottom &&
    taken.every((mark) => left > mark.x + mark.width + 2 || left + width < mark.x - 2 || top > mark.y + mark.height + 2 || top + 14 < mark.y - 2);
  const corners = [[14, 9], [14, -23], [-14 - width, 9], [-14 - width, -23], [-width / 2, 18], [-width / 2, -32], [18, -7], [-18 - width, -7], [14, 30], [14, -44]];
  const places = corners.map(([across, down]) => ({ left: x + across, top: y + down }));
  const { left, top } = places.find(free) ?? places[0];
  label.setAttribute("x", left);
  label.setAttribute("y", top + 11);
}

/** The strong dot: the mean over the seeds of the row, with a cross from least to largest. */
function moveMarker() {
  const { figure, marker } = frontier;
  const row = data.rows[state.row];
  if (!figure) return;
  frontier.dots.forEach((dot, index) => dot.classList.toggle("mine", data.frontier.points[index].row === state.row));
  marker.replaceChildren();
  if (row.x === null || row.y === null) { placeLabel(); return; }
  const { toX, toY, box } = figure;
  const [across, up] = row.spread;
  const [x, y] = [toX(row.x), toY(row.y)];
  if (across) marker.append(svg("line", { class: "spread", x1: Math.max(toX(across[0]), box.left), x2: Math.min(toX(across[1]), box.right), y1: y, y2: y }));
  if (up) marker.append(svg("line", { class: "spread", x1: x, x2: x, y1: Math.min(toY(up[0]), box.bottom), y2: Math.max(toY(up[1]), box.top) }));
  marker.append(svg("circle", { class: row.mark ? "now alike" : "now", cx: x, cy: y, r: 7 }));
  placeLabel();
}

function fillFrontierKey() {
  byId("frontier-hint").hidden = byId("frontier-key").hidden = !data.frontier.points.length;
  const several = data.frontier.points.length > data.rows.filter((row) => row.usable).length;
  const entries = [["now", several ? "key_slider_seeds" : "key_slider"], ["dot", "key_model"], ["front", "key_front"]];
  if (data.frontier.chosen) entries.push(["chosen", "key_chosen"]);
  if (data.frontier.constant) entries.push(["constant", "key_constant"]);
  if (data.frontier.points.some((point) => point.mark)) entries.push(["dot alike", "key_alike"]);
  if (data.frontier.limit !== null) entries.push(["limit-line", "key_limit"]);
  if (data.frontier.noise !== null) entries.push(["noise", "key_noise"]);
  byId("area").textContent = data.frontier.area;
  byId("compared").textContent = data.compared;
  byId("frontier-key").append(...entries.map(([kind, text]) => keyEntry(keyShape(kind), textOf(text))));
}
