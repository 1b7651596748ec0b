// The table of all findings: searched, sorted, one page at a time; then everything starts.

const PAGE = 25;
const table = { query: "", order: null, page: 0, open: new Set(), found: rows };

// Columns of names, which rows have by number, and of several fields.
const NAMED = {
  groups: { text: pairName, under: (row) => `${data.attributes[row.attribute].name}, ${data.places[row.place].within}` },
  attribute: { text: (row) => data.attributes[row.attribute].name },
  within: { text: (row) => data.places[row.place].within, under: (row) => data.places[row.place].criterion },
  metric: { text: (row) => data.metrics[row.metric].short },
  significance: {
    text: (row) => data.significances[row.significance] || "\u2013",
    under: (row) => data.tests[row.tested_by],
    value: (row) => data.significances[row.significance] || null,
    detail: (row) => (row.tested_by ? textOf("significance_by", { significance: data.significances[row.significance], test: data.tests[row.tested_by] }) : data.significances[row.significance]),
  },
  sizes: { text: (row) => [row.leftSize, row.rightSize].map(countText).join(" / "), value: (row) => Math.min(row.leftSize, row.rightSize) },
};
// All other columns: their values have their keys, and a format.
const FORMATS = { number: numberText, percent: percentText, p_value: pText, text: (value) => value ?? "\u2013" };

function cellsOf(column) {
  const { key, format } = column;
  if (NAMED[key]) return { ...column, ...NAMED[key] };
  const ends = [`${key}_low`, `${key}_high`];
  if (format === "range") return { ...column, text: (row) => rangeText(...ends.map((end) => row[end])), value: (row) => row[ends[0]] };
  return { ...column, text: (row) => FORMATS[format](row[key]), value: (row) => row[key] };
}

const columns = data.columns.map(cellsOf);
const details = data.details.map(cellsOf);

/** What a search looks through. */
function wordsOf(row) {
  return ["groups", "attribute", "within", "metric"].map((key) => `${NAMED[key].text(row)} ${NAMED[key].under?.(row) ?? ""}`).join(" ").toLowerCase();
}

function setUpTable() {
  const head = sortingHead(columns.map(({ name }) => name), (column, descending) => {
    const { text, value = text } = columns[column];
    table.order = (a, b) => inOrder(value(a), value(b), descending) || a.index - b.index;
    listFindings();
  });
  const thead = html("thead");
  thead.append(head.row);
  byId("findings").hidden = false;
  byId("findings").replaceChildren(html("caption", { class: "unseen" }, textOf("all_findings")), thead, html("tbody"));
  byId("search-choice").hidden = false;
  byId("search").addEventListener("input", () => { table.query = byId("search").value; listFindings(); });
  byId("previous").addEventListener("click", () => turn(-1));
  byId("next").addEventListener("click", () => turn(1));
  listFindings();
}

function listFindings() {
  const words = table.query.toLowerCase().split(/\s+/).filter(Boolean);
  const found = rows.filter((row) => { const text = words.length ? wordsOf(row) : ""; return words.every((word) => text.includes(word)); });
  table.found = table.order ? found.sort(table.order) : found;
  table.page = 0;
  showPage();
}

function turn(step) {
  table.page += step;
  showPage();
}

/** Groups of too few rows come last, under a line that says so. */
function linesOf(part, before) {
  return part.flatMap((row, at) => {
    const first = !table.order && tooFew(row) && !(at ? tooFew(part[at - 1]) : before && tooFew(before));
    return [...(first ? [fewLine()] : []), findingRow(row), ...(table.open.has(row.index) ? [detailRow(row)] : [])];
  });
}

function tooFew(row) { return row.significance === data.significances.length - 1; }

function fewLine() {
  const line = html("tr", { class: "apart" });
  line.append(html("th", { colspan: columns.length, scope: "colgroup" }, data.few));
  return line;
}

function showPage() {
  const { found, page } = table;
  const start = page * PAGE;
  const part = found.slice(start, start + PAGE);
  byId("findings").tBodies[0].replaceChildren(...linesOf(part, found[start - 1]));
  byId("findings-hint").textContent = countLine(found.length, start, part.length);
  byId("pager").hidden = found.length <= PAGE;
  byId("page").textContent = textOf("page", { page: page + 1, pages: Math.max(1, Math.ceil(found.length / PAGE)) });
  byId("previous").disabled = page === 0;
  byId("next").disabled = start + PAGE >= found.length;
}

function countLine(count, start, shown, isPrinted = false) {
  if (!rows.length) return textOf("nothing_compared");
  if (!count) return textOf("no_match");
  const places = { first: countText(start + 1), last: countText(start + shown), count: countText(count) };
  const listed = textOf(count === 1 ? "one_finding" : count > PAGE ? "findings_from_to" : "findings", places);
  const order = table.order || count === 1 ? "" : textOf("findings_order");
  const opened = isPrinted ? "" : textOf("open_row");
  const kept = data.total > rows.length ? textOf("file_lists", { listed: countText(rows.length), all: countText(data.total) }) : "";
  return [listed, order, opened, kept].filter(Boolean).join(" ");
}

function findingRow(row) {
  const line = html("tr", { "data-row": row.index });
  if (row.index === state.row) line.setAttribute("aria-current", "true");
  columns.forEach(({ text, under }, column) => {
    if (column) {
      const cell = html("td");
      cell.append(html("span", {}, text(row)), ...(under ? [html("small", {}, under(row))] : []));
      line.append(cell);
      return;
    }
    const head = html("th", { scope: "row" });
    const button = html("button", { type: "button", class: "opener", "aria-expanded": table.open.has(row.index) }, text(row));
    button.addEventListener("click", () => toggle(row, button, line));
    head.append(button, html("small", { class: "narrow" }, under(row)));
    line.append(head);
  });
  return line;
}

function toggle(row, button, line) {
  const open = !table.open.has(row.index);
  button.setAttribute("aria-expanded", open);
  if (open) { table.open.add(row.index); line.after(detailRow(row)); }
  else { table.open.delete(row.index); line.nextElementSibling.remove(); }
}

function detailRow(row) {
  const [sentence, meaning] = data.texts[row.index] ?? ["", ""];
  const inside = html("div");
  const unsaid = row.index >= data.texts.length ? textOf("sentences_left_out") : "";
  inside.append(...[sentence, meaning, unsaid, textOf("by_where", { where: whereText(row) })].filter(Boolean).map((text) => html("p", {}, text)));
  const list = html("dl", { class: "facts" });
  for (const [name, text] of figuresOf(row)) {
    const entry = html("div");
    entry.append(html("dt", {}, name), html("dd", {}, text));
    list.append(entry);
  }
  const show = html("button", { type: "button", class: "link" }, textOf("show_in_charts"));
  show.addEventListener("click", () => goAndLook(row.index));
  inside.append(list, show);
  const cell = html("td", { colspan: columns.length });
  cell.append(inside);
  const line = html("tr", { class: "details" });
  line.append(cell);
  return line;
}

function figuresOf(row) {
  const known = details.filter(({ value }) => value(row) !== null);
  const nameOf = ({ key, name }) => (key === "value" ? data.metrics[row.metric].name : name);
  const sizes = [["left", row.leftSize], ["right", row.rightSize]].map(([side, size]) => [textOf("figure_rows", { group: groupName(row, side) }), countText(size)]);
  return [...known.map((column) => [nameOf(column), (column.detail ?? column.text)(row)]), ...sizes];
}

function markFinding() {
  for (const line of byId("findings").tBodies[0].querySelectorAll("[data-row]")) {
    if (Number(line.dataset.row) === state.row) line.setAttribute("aria-current", "true");
    else line.removeAttribute("aria-current");
  }
}

// Paper has no pager: all findings are printed.
window.addEventListener("beforeprint", () => {
  byId("findings").tBodies[0].replaceChildren(...linesOf(table.found));
  byId("findings-hint").textContent = countLine(table.found.length, 0, table.found.length, true);
});
window.addEventListener("afterprint", showPage);

function start() {
  byId("drawings").hidden = !rows.length && !data.highlights.length;
  setUpTable();
  fillHighlights();
  for (const id of ["choosers", "scored", "sure", "told"]) byId(id).hidden = !rows.length;
  if (!rows.length) return;
  setUpChoosers();
  byId("certain-more").setAttribute("aria-expanded", "false");
  byId("certain-more").addEventListener("click", () => {
    const button = byId("certain-more");
    button.setAttribute("aria-expanded", button.getAttribute("aria-expanded") !== "true");
    showCertain();
  });
  go(data.highlights[0]?.row ?? 0);
  drawn(byId("scored-density"), showScored);
  drawn(byId("witness"), showWitness);
}

start();
