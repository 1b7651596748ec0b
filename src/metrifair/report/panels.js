// Below the frontier: the groups' distributions and the table; then everything starts.

function keyShape(kind) {
  if (kind === "front") return svg("path", { class: "front", d: "M1 11H14V4H27" });
  if (kind === "noise") return svg("rect", { class: "noise", width: 28, height: 14 });
  if (kind === "limit-line") return svg("line", { class: kind, x1: 14, x2: 14, y1: 0, y2: 14 });
  if (kind === "constant") return [svg("line", { class: "baseline", x1: 0, x2: 28, y1: 7, y2: 7 }), svg("rect", { class: "constant", x: 9, y: 2, width: 10, height: 10 })];
  if (kind === "chosen") return svg("path", { class: "chosen", d: "M14 1L20 7L14 13L8 7Z" });
  return svg("circle", { class: kind, cx: 14, cy: 7, r: kind === "now" ? 6 : 4 });
}

// ---- distributions ----------------------------------------------------------------------------------------------

const distributions = distributionPlots(byId("density"), byId("cumulative"));

function currentCurves() {
  const curves = data.distributions?.rows[state.row];
  return curves ? { ...curves, grid: data.distributions.grids[curves.grid] } : null;
}

function showDistributions() {
  if (!data.distributions) return;
  const curves = currentCurves();
  byId("gap").textContent = curves ? (curves.gap?.text ?? "") + data.distributions.note : textOf("no_distributions");
  const drawn = [...data.groups.keys()].filter((index) => !curves || curves.cumulative[index]); // of one attribute
  byId("groups").replaceChildren(...groupEntries(drawn.map((index) => data.groups[index]), drawn));
  const own = (kind) => drawn.map((index) => curves[kind][index]);
  const shown = curves && { ...curves, density: own("density"), cumulative: own("cumulative") };
  distributions.show(shown, { groups: drawn.map((index) => data.groups[index]), x: data.distributions.x, colors: drawn });
}

// ---- table ------------------------------------------------------------------------------------------------------

function buildTable() {
  const head = sortingHead(data.table.columns, sortTable);
  const thead = html("thead");
  thead.append(head.row);
  const body = html("tbody");
  data.table.rows.forEach((cells, index) => body.append(tableRow(cells, index)));
  byId("table").append(html("caption", { class: "unseen" }, textOf("figures_by_model", data)), thead, body);
  byId("table-notes").append(...data.table.notes.map((note) => html("li", {}, note)));
  head.by(0, false);
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
  row.classList.toggle("alike", Boolean(data.rows[index].mark));
  return row;
}

function sortTable(column, descending) {
  const value = (row) => data.table.rows[row.dataset.row][column].value;
  const body = byId("table").tBodies[0];
  body.append(...[...body.rows].sort((a, b) => inOrder(value(a), value(b), descending) || a.dataset.row - b.dataset.row));
}

function markTableRow() {
  for (const row of byId("table").tBodies[0].rows) {
    if (Number(row.dataset.row) === state.row) row.setAttribute("aria-current", "true");
    else row.removeAttribute("aria-current");
  }
}

// ---- start ------------------------------------------------------------------------------------------------------

function start() {
  fillHighlights();
  fillFrontierKey();
  buildTable();
  setUpSlider();
  setUpFilter();
  frontier.tip = tooltip(frontier.host);
  byId("distributions").hidden = !data.distributions;
  go(state.row);
  drawn(frontier.host, drawFrontier);
  if (data.distributions) drawn(byId("density"), showDistributions);
}

start();
