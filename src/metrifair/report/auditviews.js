// What the audit draws: the groups' distributions, bars of what is certain, the witness.

const scored = distributionPlots(byId("scored-density"), byId("scored-cumulative"));
const witness = linePlot(byId("witness"));
const FEW = 8; // bars shown before one asks for all

function showScored() {
  const row = now();
  const found = data.distributions[data.places[row.place].distribution];
  byId("scored").hidden = !data.distributions.length;
  if (!found) {
    byId("scored-gap").textContent = textOf("not_in_file");
    byId("scored-groups").replaceChildren();
    scored.show(null, {});
    return;
  }
  const names = found.members.map((group) => data.attributes[row.attribute].groups[group]);
  const pair = [row.left, row.right].map((group) => found.members.indexOf(group));
  const gap = found.gaps[row.pair] ?? found.gap;
  const rest = found.left_out ? textOf("groups_drawn", { drawn: found.members.length, all: found.members.length + found.left_out }) : "";
  byId("scored-gap").textContent = [gap?.text, rest].filter(Boolean).join(" ");
  byId("scored-groups").replaceChildren(...groupEntries(names, found.members));
  byId("scored-density").parentElement.hidden = !found.density.some(Boolean);
  const strong = names.length > 3 && found.gaps[row.pair] ? pair : null;
  scored.show({ ...found, gap }, { groups: names, x: found.x, strong, colors: found.members });
}

// ---- what is certain --------------------------------------------------------------------------------------------

const MARKS = {
  value: { draw: (x) => svg("circle", { class: "measured", cx: x, cy: 14, r: 5.5 }) },
  interval_low: { span: ["interval_low", "interval_high"], draw: (x, end) => svg("line", { class: "between", x1: x, x2: end, y1: 14, y2: 14 }) },
  divided: { draw: (x) => svg("circle", { class: "measured hollow", cx: x, cy: 14, r: 5.5 }) },
  certified: { draw: (x) => svg("line", { class: "bound", x1: x, x2: x, y1: 5, y2: 23 }) },
  certified_jointly: { draw: (x) => svg("line", { class: "bound jointly", x1: x, x2: x, y1: 1, y2: 27 }) },
  bracket_low: { span: ["bracket_low", "bracket_high"], draw: (x, end) => joinedMarks(inset(x, svg("path", { class: "proven", d: "M3 4H0V24H3" })), inset(end, svg("path", { class: "proven", d: "M-3 4H0V24H-3" }))) },
};

/** A drawing at a place that is given in percent. */
function inset(x, shape) {
  const frame = svg("svg", { x, overflow: "visible" });
  frame.append(shape);
  return frame;
}

function joinedMarks(...marks) {
  const group = svg("g");
  group.append(...marks);
  return group;
}

function percentOn(axis) {
  return (value) => `${Math.min(100, Math.max(0, (100 * (value - axis.low)) / (axis.high - axis.low))).toFixed(2)}%`;
}

function showCertain() {
  const shown = now();
  const metric = data.metrics[shown.metric];
  const alike = rows.filter((row) => row.place === shown.place && row.metric === shown.metric);
  byId("certain-hint").textContent = textOf("distances", { metric: metric.name, where: whereText(shown), meaning: metric.meaning });
  byId("certain-said").textContent = (data.texts[shown.index] ?? []).filter(Boolean).join(" ");
  const all = byId("certain-more").getAttribute("aria-expanded") === "true";
  const first = all ? alike : alike.slice(0, FEW);
  const listed = first.includes(shown) ? first : [...first, shown];
  byId("certain").replaceChildren(...listed.map((row) => bar(row, metric.axis)));
  byId("certain-more").hidden = alike.length <= FEW;
  byId("certain-more").textContent = all ? textOf("show_fewer") : textOf("show_all", { count: alike.length });
  drawBarAxis(metric.axis);
  fillCertainKey(alike);
}

function bar(row, axis) {
  const at = percentOn(axis);
  const item = html("li", row.index === state.row ? { "aria-current": "true" } : {});
  const name = html("button", { type: "button" }, pairName(row));
  name.addEventListener("click", () => { go(row.index); byId("certain").querySelector("[aria-current] button").focus(); });
  const drawing = svg("svg", { class: "bar", height: 28, width: "100%", "aria-hidden": "true" });
  const end = row.certified_jointly ?? row.certified;
  if (end !== null) drawing.append(svg("rect", { class: "possible", y: 7, height: 14, width: at(end) }));
  for (const [key, { span, draw }] of Object.entries(MARKS).reverse()) {
    if (row[key] === null) continue;
    if (row[key] > axis.high) drawing.append(inset("100%", svg("path", { class: "beyond", d: "M2 9L9 14L2 19Z" })));
    else drawing.append(draw(at(row[key]), span && at(row[span[1]])));
  }
  item.append(name, html("span", { class: "numbers" }, barText(row)), drawing);
  return item;
}

function barText(row) {
  const bound = row.certified_jointly ?? row.certified;
  const text = numberText(row.value) + (row.interval_low === null ? "" : ` (${intervalText(row)})`);
  return bound === null ? text : textOf("at_most", { text, bound: numberText(bound) });
}

function drawBarAxis(axis) {
  const at = percentOn(axis);
  const drawing = svg("svg", { height: 22, width: "100%", overflow: "visible" });
  axis.ticks.forEach(([value, text], index) => {
    const anchor = index === 0 ? "start" : value > axis.low + 0.95 * (axis.high - axis.low) ? "end" : "middle";
    drawing.append(svg("line", { class: "axis", x1: at(value), x2: at(value), y1: 0, y2: 5 }), svg("text", { class: "tick", x: at(value), y: 18, "text-anchor": anchor }, text));
  });
  byId("certain-axis").replaceChildren(drawing);
}

function fillCertainKey(alike) {
  const known = Object.entries(MARKS).filter(([key]) => alike.some((row) => row[key] !== null));
  const isBeyond = (key) => alike.some((row) => row[key] > data.metrics[row.metric].axis.high);
  byId("certain-key").replaceChildren(...known.map(([key, { draw, span }]) => {
    const mark = textOf(`mark_${key}`, data);
    const sample = keyEntry(draw(span ? "5" : "14", "23"), isBeyond(key) ? textOf("beyond_axis", { mark }) : mark);
    sample.firstChild.setAttribute("viewBox", "0 0 28 28");
    sample.firstChild.setAttribute("height", 18);
    return sample;
  }));
}

// ---- witness ----------------------------------------------------------------------------------------------------

function showWitness() {
  const row = now();
  const found = data.witnesses[row.index];
  const kept = Object.keys(data.witnesses).length;
  byId("told").hidden = !kept;
  byId("witness-hint").textContent = found
    ? textOf("witness")
    : textOf("no_witness", { count: countText(kept) });
  byId("witness-text").textContent = found?.text ?? "";
  byId("witness-key").hidden = byId("witness").hidden = !found;
  if (!found) return;
  const names = [groupName(row, "left"), groupName(row, "right")];
  const averages = found.expected.map((level, side) => ({ name: textOf("average_of", { group: names[side] }), kind: groupClass([row.left, row.right][side]), values: found.grid.map(() => level) }));
  const lines = [{ name: textOf("benefit"), kind: "front", values: found.utility }, ...averages];
  witness.draw({ grid: found.grid, lines, x: found.x, y: found.y, yTitle: textOf("benefit"), text: digitsText, height: 250 });
  byId("witness-key").replaceChildren(
    keyEntry(svg("path", { class: "front", d: "M1 11L14 4L27 11" }), textOf("benefit_by_score")),
    ...groupEntries(names.map((name) => textOf("average_of", { group: name })), [row.left, row.right]),
  );
}
