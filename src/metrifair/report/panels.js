// Below the frontier: the groups' distributions and the table; then everything starts.

function keyEntry(shape, text) {
  const entry = html("li");
  const sample = svg("svg", { viewBox: "0 0 28 14", width: 28, height: 14, "aria-hidden": "true" });
  sample.append(shape);
  entry.append(sample, html("span", {}, text));
  return entry;
}

function keyShape(kind) {
  if (kind === "front") return svg("path", { class: "front", d: "M1 11H14V4H27" });
  if (kind === "floor") return svg("rect", { class: "floor", width: 28, height: 14 });
  if (kind === "chosen") return svg("path", { class: "chosen", d: "M14 1L20 7L14 13L8 7Z" });
  return svg("circle", { class: kind, cx: 14, cy: 7, r: kind === "now" ? 6 : 4 });
}

// ---- distributions ----------------------------------------------------------------------------------------------

const SHARES = { low: 0, high: 1, ticks: [[0, "0%"], [0.25, "25%"], [0.5, "50%"], [0.75, "75%"], [1, "100%"]] };
const panels = {
  density: { host: byId("density"), yTitle: "density", text: (value) => value.toPrecision(3) },
  cumulative: { host: byId("cumulative"), yTitle: "share below", text: (value) => `${(100 * value).toFixed(1)}%` },
};

function fillGroups() {
  const line = (index) => svg("line", { class: groupClass(index), x1: 1, x2: 27, y1: 7, y2: 7 });
  byId("groups").append(...data.groups.map((name, index) => keyEntry(line(index), name)));
}

function currentCurves() {
  const curves = data.distributions?.rows[state.row];
  return curves ? { ...curves, grid: data.distributions.grids[curves.grid] } : null;
}

function showDistributions() {
  if (!data.distributions) return;
  const curves = currentCurves();
  byId("gap").textContent = curves ? (curves.gap?.text ?? "") + data.distributions.note : "There are no distributions for this strength.";
  drawPanel("density", curves, curves?.top);
  drawPanel("cumulative", curves, SHARES);
  if (curves?.gap) drawGap(panels.cumulative.figure, curves.gap);
}

function drawPanel(kind, curves, y) {
  const panel = panels[kind];
  panel.host.classList.toggle("blank", !curves);
  if (!curves) return;
  const figure = plot(panel.host, { x: data.distributions.x, y, xTitle: "score", yTitle: panel.yTitle, height: 270, labelledby: `${kind}-title` });
  panel.figure = figure;
  curves[kind].forEach((values, index) => {
    if (!values) return;
    const path = linePath(curves.grid, values, figure.toX, figure.toY);
    if (kind === "density" && curves.density.length <= 3) figure.layer.append(svg("path", { class: `area c${index % 7}`, d: areaPath(path, curves.grid, figure) }));
    figure.layer.append(svg("path", { class: groupClass(index), d: path }));
  });
  panel.cross = svg("line", { class: "cross", y1: figure.box.top, y2: figure.box.bottom, visibility: "hidden" });
  figure.layer.append(panel.cross);
  figure.root.addEventListener("pointermove", (event) => showScore(panel, curves, kind, pointerIn(figure, event)));
  figure.root.addEventListener("pointerleave", () => hideScore(panel));
}

function areaPath(path, grid, { toX, box }) {
  return path.includes("M", 1) || !path ? "" : `${path}L${toX(grid.at(-1))} ${box.bottom}L${toX(grid[0])} ${box.bottom}Z`;
}

function showScore(panel, curves, kind, at) {
  const { toX, box } = panel.figure;
  if (at.x < box.left || at.x > box.right) { hideScore(panel); return; }
  const index = curves.grid.reduce((best, score, i, grid) => (Math.abs(toX(score) - at.x) < Math.abs(toX(grid[best]) - at.x) ? i : best), 0);
  const x = toX(curves.grid[index]);
  panel.cross.setAttribute("x1", x);
  panel.cross.setAttribute("x2", x);
  panel.cross.setAttribute("visibility", "visible");
  const values = data.groups.map((name, group) => [name, curves[kind][group]?.[index]]);
  const lines = values.map(([name, value]) => [name, value === null || value === undefined ? "\u2013" : panel.text(value)]);
  panel.tip.show(lines, x, at.y, `score ${curves.grid[index].toPrecision(3)}`);
}

function hideScore(panel) {
  panel.cross.setAttribute("visibility", "hidden");
  panel.tip.hide();
}

/** The largest difference of the shares, as a bracket. */
function drawGap({ layer, toX, toY, box }, gap) {
  const [x, low, high] = [toX(gap.x), toY(gap.low), toY(gap.high)];
  const left = x > box.right - 70;
  const middle = Math.min(Math.max((low + high) / 2 + 4, box.top + 12), box.bottom - 6);
  layer.append(
    svg("path", { class: "gap", d: `M${x - 5} ${low}H${x + 5}M${x - 5} ${high}H${x + 5}M${x} ${low}V${high}` }),
    svg("text", { class: "gap-label", x: x + (left ? -10 : 10), y: middle, "text-anchor": left ? "end" : "start" }, gap.size),
  );
}

// ---- table ------------------------------------------------------------------------------------------------------

function buildTable() {
  const head = html("tr");
  data.table.columns.forEach((name, column) => head.append(columnHead(name, column)));
  const body = html("tbody");
  data.table.rows.forEach((cells, index) => body.append(tableRow(cells, index)));
  const thead = html("thead");
  thead.append(head);
  byId("table").append(html("caption", { class: "unseen" }, `${data.title}: figures by strength`), thead, body);
  sortTable(0, false);
}

function columnHead(name, column) {
  const head = html("th", { scope: "col" });
  const button = html("button", { type: "button" });
  button.append(html("span", {}, name), html("span", { class: "arrow", "aria-hidden": "true" }));
  button.addEventListener("click", () => sortTable(column, state.sort.column === column && !state.sort.descending));
  head.append(button);
  return head;
}

function tableRow(cells, index) {
  const row = html("tr", { "data-row": index });
  cells.forEach((cell, column) => {
    if (column > 0) { row.append(html("td", {}, cell.text)); return; }
    const head = html("th", { scope: "row" });
    const button = html("button", { type: "button", "aria-label": data.rows[index].spoken }, cell.text);
    button.addEventListener("click", () => go(index));
    head.append(button);
    row.append(head);
  });
  row.classList.toggle("failed", !data.rows[index].usable);
  return row;
}

/** Rows in the order of a column; rows that lack the figure come last either way. */
function sortTable(column, descending) {
  state.sort = { column, descending };
  const value = (row) => data.table.rows[row.dataset.row][column].value;
  const order = (a, b) => {
    if (value(a) === null || value(b) === null) return (value(a) === null) - (value(b) === null);
    return (value(a) - value(b)) * (descending ? -1 : 1) || a.dataset.row - b.dataset.row;
  };
  const body = byId("table").tBodies[0];
  body.append(...[...body.rows].sort(order));
  [...byId("table").tHead.rows[0].cells].forEach((head, at) => {
    if (at === column) head.setAttribute("aria-sort", descending ? "descending" : "ascending");
    else head.removeAttribute("aria-sort");
  });
}

function markTableRow() {
  for (const row of byId("table").tBodies[0].rows) {
    if (Number(row.dataset.row) === state.row) row.setAttribute("aria-current", "true");
    else row.removeAttribute("aria-current");
  }
}

// ---- start ------------------------------------------------------------------------------------------------------

function start() {
  fillHead();
  fillFrontierKey();
  fillGroups();
  buildTable();
  setUpSlider();
  frontier.tip = tooltip(frontier.host);
  for (const panel of Object.values(panels)) panel.tip = tooltip(panel.host);
  byId("distributions").hidden = !data.distributions;
  go(state.row);
  drawn(frontier.host, drawFrontier);
  if (data.distributions) drawn(panels.density.host, showDistributions);
}

start();
