// The audit: one state, the finding that is shown. Choosers, highlights and bars lead to findings.

const data = dataOf("audit-data");
const rows = data.rows.map((values, index) => {
  const row = { index, ...Object.fromEntries(data.fields.map((name, at) => [name, values[at]])) };
  return { ...row, attribute: data.places[row.place].attribute, pair: `${row.left},${row.right}` };
});
const state = { row: 0 };

function groupName(row, side) { return data.attributes[row.attribute].groups[row[side]]; }
function pairName(row) { return textOf("versus", { left: groupName(row, "left"), right: groupName(row, "right") }); }
function placeName(place) { return textOf("place", { within: place.within, criterion: place.criterion.toLowerCase() }); }
function whereText(row) { return textOf("where", { attribute: data.attributes[row.attribute].name, place: placeName(data.places[row.place]) }); }
function countText(count) { return count.toLocaleString("en"); }
function rangeText(low, high) { return low === null ? "\u2013" : textOf("range", { low: numberText(low), high: numberText(high) }); }
function intervalText(row) { return rangeText(row.interval_low, row.interval_high); }

/** Three decimals, or four digits where there are more before the point; as the texts made in Python. */
function numberText(value) {
  if (value === null) return "\u2013";
  const size = Math.abs(value);
  const plain = size === 0 || (size >= 0.0001 && size < 1e5);
  const decimals = size > 0 && size < 0.001 ? 4 : size < 10 ? 3 : Math.max(0, 3 - Math.floor(Math.log10(size)));
  const text = plain ? value.toFixed(decimals) : value.toExponential(2).replace("e+", "e");
  return text.replaceAll("-", "\u2212");
}

/** A share in percent; as the texts made in Python. */
function percentText(value) { return value === null ? "\u2013" : `${(100 * value).toFixed(1).replaceAll("-", "\u2212")}%`; }

/** A p-value in four decimals; "at most" where no permutation was as extreme; as the texts made in Python. */
function pText(value) {
  if (value === null) return "\u2013";
  const least = 1 / (1 + data.draws);
  if (data.draws > 0 && value <= least * (1 + 1e-9)) return textOf("p_at_most", { bound: Number((Math.ceil(least * 1e4) / 1e4).toPrecision(6)) });
  return value >= 1e-4 ? value.toFixed(4) : "< 0.0001";
}

// ---- choosers ---------------------------------------------------------------------------------------------------

const now = () => rows[state.row];
const CHOOSERS = {
  attribute: { within: () => true, text: (row) => data.attributes[row.attribute].name },
  place: { within: (row) => row.attribute === now().attribute, text: (row) => placeName(data.places[row.place]) },
  metric: { within: (row) => row.place === now().place, text: (row) => data.metrics[row.metric].name },
  pair: { within: (row) => row.place === now().place && row.metric === now().metric, text: pairName },
};

function setUpChoosers() {
  for (const [key, { within }] of Object.entries(CHOOSERS)) {
    const chooser = byId(`choose-${key}`);
    chooser.addEventListener("change", () => go(nearestTo(rows.filter((row) => within(row) && String(row[key]) === chooser.value))));
  }
}

/** Of some findings the one most like the one shown: same place by its name, same metric, same groups; else the worst. */
function nearestTo(found) {
  const named = (row) => placeName(data.places[row.place]);
  const same = (row) => row.attribute === now().attribute && row.pair === now().pair;
  const likeness = (row) => 4 * (named(row) === named(now())) + 2 * (row.metric === now().metric) + same(row);
  return found.reduce((best, row) => (likeness(row) > likeness(best) ? row : best)).index;
}

function fillChoosers() {
  for (const [key, { within, text }] of Object.entries(CHOOSERS)) {
    const options = new Map(rows.filter(within).map((row) => [row[key], text(row)]));
    const chooser = byId(`choose-${key}`);
    chooser.replaceChildren(...[...options].map(([value, name]) => html("option", { value }, name)));
    chooser.value = now()[key];
    byId(`${key}-choice`).hidden = options.size < 2;
  }
  const row = now();
  const names = { left: groupName(row, "left"), right: groupName(row, "right"), where: whereText(row) };
  byId("showing").textContent = textOf("showing", { ...names, metric: data.metrics[row.metric].name, value: numberText(row.value) });
}

/** The one way to change the page: show this finding everywhere. */
function go(index) {
  state.row = index;
  fillChoosers();
  showScored();
  showCertain();
  showWitness();
  markFinding();
}

function fillHighlights() {
  byId("audit-highlights").append(...data.highlights.map((found) => highlightCard(found, () => {
    if (found.row !== null) goAndLook(found.row);
    else if (found.decisions !== null) lookAtRates(byId(`ratios-${found.decisions}`));
  })));
}

function lookAtRates(heading) {
  heading.scrollIntoView();
  heading.nextElementSibling.focus({ preventScroll: true });
}

/** Show a finding, and move there: for the eye and for the keyboard. */
function goAndLook(index) {
  go(index);
  byId("choosers").scrollIntoView();
  byId("choosers").focus({ preventScroll: true });
}
