// The page shows the state of the session and sends choices; every text from data is text, never markup.

const byId = (id) => document.getElementById(id);
const all = (selector) => [...document.querySelectorAll(selector)];
const STEPS = ["inspect", "audit", "pdf", "evidence", "compare", "train", "choose"];
const RESULTS = ["audit", "pdf", "evidence", "compare", "train", "choose"];
const TEXTS = JSON.parse(byId("texts").textContent);
const SINGLE = ["score", "label", "weight", "id"]; // roles of one column
const ROLES = ["score", "label", "group", "weight", "id", "ignore"];
const OUTPUTS = ["score", "decision"]; // what the columns of a model's output are suggested as
const KEY = "metrifair-key"; // in sessionStorage: it survives a reload, and other tabs and other ports cannot read it
const MOST_LEVELS = 100; // of a column that is searched: more are ids, or free text
const PAUSE = 2000; // milliseconds, before the page asks again
let state = null;

/** A text of the page, with values in its places. */
function textOf(name, values = {}) {
  return TEXTS[name].replace(/\{(\w+)\}/g, (_, place) => values[place]);
}

/** An element with properties and children. */
function make(tag, properties = {}, ...children) {
  const element = document.createElement(tag);
  Object.assign(element, properties);
  element.append(...children);
  return element;
}

/** Asks the studio, with its key; without a valid key the page is locked. */
async function ask(path, options = {}) {
  const headers = { Authorization: `Bearer ${sessionStorage.getItem(KEY)}` };
  const answer = await fetch(path, { ...options, headers });
  if (answer.status === 403) lock(textOf("other_tab"));
  return answer;
}

/** Exchanges the token of the address for the key. A token works once, so it leaves the address at once. */
async function enter() {
  const token = new URLSearchParams(location.hash.slice(1)).get("token");
  if (token === null) return;
  history.replaceState(null, "", location.pathname);
  try {
    const { key } = await (await fetch("key", { method: "POST", body: token })).json();
    if (key) sessionStorage.setItem(KEY, key);
    else if (!sessionStorage.getItem(KEY)) lock(textOf("used_address"));
  } catch {
    lock(textOf("no_response"));
  }
}

/** Hides the studio, and says how to open it. */
function lock(reason) {
  sessionStorage.removeItem(KEY);
  byId("lock-reason").textContent = reason;
  byId("locked").hidden = false;
  for (const part of all("main, nav")) part.hidden = true;
  showStatus("");
}

/** Sends a request; a refusal is shown where it belongs. */
async function send(step, path, options) {
  showFailure(step, "");
  try {
    const answer = await ask(path, options);
    if (answer.status === 403) return false;
    if (!answer.ok) showFailure(step, (await answer.json()).error);
    return answer.ok;
  } catch {
    showStatus(textOf("no_response_start"));
    return false;
  }
}

/** Buttons that start work: one step runs at a time. */
const STARTERS = "button[type=submit], #notes button, #close, [data-runs]";
const run = (step, choices = {}) => send(step, `run/${step}`, { method: "POST", body: JSON.stringify(choices) });
const upload = (step, which, file) => send(step, `upload/${which}?name=${encodeURIComponent(file.name)}`, { method: "PUT", body: file });

function showFailure(step, text) {
  const place = document.querySelector(`[data-failed="${step}"]`);
  if (place && place.textContent !== text) place.textContent = text;
}

function showStatus(text) {
  if (byId("status-text").textContent !== text) byId("status-text").textContent = text;
}

/** What a form says: text, flags, and lists of the boxes that are checked or of words between commas. */
function choicesOf(form) {
  const found = {};
  for (const input of form.elements) {
    if (!input.name || input.disabled) continue;
    if ("list" in input.dataset) found[input.name] = input.value.split(",").map((word) => word.trim()).filter(Boolean);
    else if ("many" in input.dataset) (found[input.name] ??= []).push(...(input.value ? [input.value] : []));
    else if (input.type !== "checkbox") found[input.name] = input.value;
    else if (input.value === "on") found[input.name] = input.checked;
    else (found[input.name] ??= []).push(...(input.checked ? [input.value] : []));
  }
  return found;
}

/** Sets a form to choices that were sent before, from this tab or another. */
function restore(form, choices) {
  for (const input of form.elements) {
    const value = choices?.[input.name];
    if (value === undefined) continue;
    if ("many" in input.dataset) input.value = [...input.options].map((option) => option.value).find((own) => value.includes(own)) ?? "";
    else if (input.type === "checkbox") input.checked = input.value === "on" ? value : value.includes(input.value);
    else input.value = Array.isArray(value) ? value.join(", ") : value;
  }
}

const shortName = (path) => path.split("/").at(-1);
const columnNamed = (name) => state.columns?.columns.find((column) => column.name === name);

function options(select, values, empty) {
  select.replaceChildren(make("option", { value: "", textContent: empty }));
  for (const value of values) select.append(make("option", { value, textContent: value }));
}

/** A table with a head and rows of text or elements. */
function fill(table, headings, rows) {
  const head = make("tr", {}, ...headings.map((text) => make("th", { scope: "col", textContent: text })));
  const body = rows.map((cells) => make("tr", {}, ...cells.map((text) => make("td", {}, text ?? ""))));
  table.replaceChildren(make("thead", {}, head), make("tbody", {}, ...body));
}

function showColumns({ rows, columns, head, notes, spellings }) {
  const counts = { rows: rows.toLocaleString("en"), columns: columns.length.toLocaleString("en") };
  byId("columns-title").textContent = textOf("columns_title", { file: shortName(state.file), ...counts });
  byId("notes").replaceChildren(...spellings.map(offerSpelling), ...notes.map((text) => make("li", { textContent: text })));
  const spelled = (value) => value === value.trim() ? value : `“${value}”`;
  const values = (column) => column.low === null ? column.values.slice(0, 6).map(([value]) => spelled(value)).join(", ") : textOf("range", column);
  const missing = ({ missing }) => missing ? `${missing.toLocaleString("en")} (${(100 * missing / rows).toFixed(1)}%)` : textOf("none");
  fill(byId("columns"), ["column", "role", "type", "missing", "distinct", "values"].map((name) => textOf(`head_${name}`)),
    columns.map((column) => [column.name, roleCell(column), column.kind, missing(column), column.distinct.toLocaleString("en"), values(column)]));
  fill(byId("head"), columns.map((column) => column.name), head);
  showRoles(columns);
}

/** A note on the spelling of values, with a button that reads the file again with one spelling. */
function offerSpelling({ text, offer, option, values }) {
  const button = make("button", { type: "button", textContent: offer });
  button.onclick = () => {
    const reading = state.choices.reading;
    for (const other of all("#notes button")) other.disabled = true; // until the page shows the file as it is read then
    run("inspect", { ...reading, [option]: [...(reading[option] ?? []), ...values] });
  };
  return make("li", {}, text, " ", button);
}

/** The role of a column as a drop-down, with the reason of a suggestion. */
function roleCell(column) {
  const select = make("select", {}, make("option", { value: "", textContent: textOf("role_none") }),
    ...ROLES.map((role) => make("option", { value: role, textContent: nameOfRole(role) })));
  select.dataset.column = column.name;
  select.setAttribute("aria-label", textOf("role_of", column));
  select.onchange = () => giveRole(column, select.value);
  return make("div", {}, select, make("small"));
}

const nameOfRole = (role) => document.querySelector(`dl [data-option="${role}"]`).textContent;
const roleLists = () => all("select[data-column]");
const columnsOf = (role) => roleLists().filter((select) => select.value === role).map((select) => select.dataset.column);
const columnOf = (role) => columnsOf(role)[0] ?? "";

/** Gives a role to a column. A role of one column leaves the column that had it; another model's output then stays excluded. */
function giveRole(column, role) {
  for (const select of roleLists()) {
    const other = columnNamed(select.dataset.column);
    if (other.name === column.name || select.value !== role || !SINGLE.includes(role)) continue;
    select.value = OUTPUTS.includes(other.role) ? "ignore" : "";
  }
  showValues();
  showFoundColumns();
}

/** The roles that are suggested, each with its reason, or those that were confirmed. */
function showRoles(columns) {
  const confirmed = state.choices.roles;
  const suggested = suggestedRoles(columns);
  for (const select of roleLists()) {
    const column = columnNamed(select.dataset.column);
    const guess = suggested.get(column.name) ?? "";
    select.value = confirmed ? confirmedRole(confirmed, column.name) : guess;
    select.nextSibling.textContent = guess ? textOf(guess === "ignore" ? "suggested_ignore" : "suggested", { ...column, role: nameOfRole(guess) }) : "";
  }
  showValues();
  restore(byId("roles-form"), confirmed);
  showFoundColumns();
}

/** The suggested role of each column that has one. A role of one column is that of the first; further outputs are excluded. */
function suggestedRoles(columns) {
  const roles = new Map(columns.filter(({ role }) => role === "group").map(({ name }) => [name, "group"]));
  for (const role of SINGLE) {
    const kinds = role === "score" ? OUTPUTS : [role];
    const first = kinds.map((kind) => columns.find((column) => column.role === kind)).find(Boolean);
    if (first) roles.set(first.name, role);
  }
  for (const { name, role } of columns) if (OUTPUTS.includes(role) && !roles.has(name)) roles.set(name, "ignore");
  return roles;
}

function confirmedRole(roles, name) {
  return ROLES.find((role) => [roles[role] ?? []].flat().includes(name)) ?? "";
}

/** What the form of the roles says: one column, or a list of them, for each role. */
function rolesOf(form) {
  const chosen = ROLES.map((role) => [role, SINGLE.includes(role) ? columnOf(role) : columnsOf(role)]);
  return { ...choicesOf(form), ...Object.fromEntries(chosen) };
}

/** Shows the columns whose names have the typed text, and on request only those with a role. */
function showFoundColumns() {
  const text = byId("find-column").value.trim().toLowerCase();
  let shown = 0;
  for (const select of roleLists()) {
    const found = select.dataset.column.toLowerCase().includes(text) && (select.value !== "" || !byId("only-roles").checked);
    select.closest("tr").hidden = !found;
    shown += found;
  }
  const total = roleLists().length;
  byId("columns-shown").textContent = shown < total ? textOf("columns_shown", { shown, total }) : "";
}

/** Values to choose among: of decisions that are no numbers, and of a label with few values. Only a positive label that the values show is preselected. */
function showValues() {
  const score = columnNamed(columnOf("score"));
  const label = columnNamed(columnOf("label"));
  const decisions = score && score.kind !== "number";
  const classes = label?.target === "classes" && label.distinct === label.values.length;
  for (const [name, needed, column] of [["favorable_decision", decisions, score], ["positive", classes, label]]) {
    const select = byId(name);
    byId(name === "positive" ? "positive-field" : "favorable-field").hidden = !needed;
    select.disabled = !needed;
    select.required = Boolean(needed);
    options(select, needed ? column.values.map(([value]) => value) : [], textOf("choose_value"));
  }
  const shown = classes && label.positive !== null;
  const meaning = textOf("positive_label");
  byId("positive-why").textContent = meaning;
  if (!shown) return;
  const [last, ...others] = label.values.map(([value]) => value).sort().reverse();
  const values = textOf("two_values", { values: others.reverse().join(", "), last });
  byId("positive").value = label.positive;
  byId("positive-why").textContent = textOf("suggested_label", { name: label.positive, values, meaning });
}

/** The controls of the audit, by the roles that were confirmed. */
function showAuditForm(roles) {
  const score = columnNamed(roles.score);
  const probabilities = score?.kind === "number" && score.low >= 0 && score.high <= 1;
  byId("threshold-field").hidden = score?.kind !== "number";
  byId("threshold-slider").hidden = !probabilities;
  byId("audit-groups").replaceChildren(...roles.group.map((name) =>
    make("label", { className: "check" }, make("input", { type: "checkbox", name: "group", value: name, checked: true }), name)));
  byId("references").replaceChildren(...roles.group.map(referenceChoice));
  showAmong(roles);
  byId("threshold").value = "";
  byId("threshold-slider").value = 0.5;
  restore(byId("audit-form"), state.choices.audit);
  showSearch();
  showReferences();
  if (byId("threshold").value) byId("threshold-slider").value = byId("threshold").value;
}

/** The columns whose conditions a search can combine: those without a role that have few values, or numbers. */
function showAmong(roles) {
  const taken = new Set([roles.score, roles.label, roles.weight, roles.id, ...roles.group, ...(roles.ignore ?? [])]);
  const free = state.columns.columns.filter((column) => !taken.has(column.name));
  byId("among").replaceChildren(...free.map(({ name, kind, distinct }) => {
    const checked = kind === "number" || distinct <= MOST_LEVELS;
    return make("label", { className: "check" }, make("input", { type: "checkbox", name: "among", value: name, checked }), name);
  }));
  for (const option of all("#find_groups [data-label]")) option.disabled = !roles.label;
}

/** A reference group for each column, of the standard that compares with one. */
function showReferences() {
  const needed = byId("audit-form").elements.standard.value === "credit";
  const checked = new Set([...byId("audit-groups").querySelectorAll(":checked")].map((box) => box.value));
  byId("reference-field").hidden = !needed;
  for (const select of byId("references").querySelectorAll("select")) {
    select.disabled = !needed || !checked.has(select.dataset.column);
    select.closest("label").hidden = select.disabled;
    select.required = !select.disabled;
  }
}

/** A drop-down with the groups of a column. */
function referenceChoice(name) {
  const select = make("select", { name: "reference" }, make("option", { value: "", textContent: textOf("choose_value") }),
    ...columnNamed(name).values.map(([value]) => make("option", { value: `${name}=${value}`, textContent: value })));
  Object.assign(select.dataset, { many: "", column: name });
  return make("label", {}, name, select);
}

/** The columns are shown once there is an outcome to search by. */
function showSearch() {
  byId("among-field").hidden = !byId("find_groups").value || !byId("among").children.length;
}

/** An address that opens a result once: frames and links send no key. */
async function ticketFor(step, name) {
  const answer = await ask(`tickets/${step}/${name}`, { method: "POST" });
  return answer.ok ? (await answer.json()).address : null;
}

/** A link to a result. Whatever may have used its address gives it another one. */
function resultLink(step, name, properties, suffix = "") {
  const link = make("a", properties);
  const renew = async () => {
    const address = await ticketFor(step, name);
    if (address) link.href = address + suffix;
  };
  for (const kind of ["click", "auxclick", "contextmenu"]) link.addEventListener(kind, renew);
  renew();
  return link;
}

/** A report in a frame, loaded again only if it is a new one. */
async function showResult(place) {
  const { file, title } = place.dataset;
  const step = place.dataset.result.split(" ").find((name) => state.done[name]?.files[file]);
  const shown = step ? `${step} ${state.done[step].number}` : "";
  if ((place.dataset.shown ?? "") === shown) return;
  place.dataset.shown = shown;
  if (!step) {
    place.replaceChildren();
    return;
  }
  const address = await ticketFor(step, file);
  if (!address || place.dataset.shown !== shown) return; // a later result is on its way
  const link = resultLink(step, file, { target: "_blank", rel: "noopener", textContent: textOf("new_tab") });
  place.replaceChildren(make("p", {}, title, link), make("iframe", { src: address, title }));
}

/** A text with a button that copies it; ``whose`` tells the buttons of several results apart. */
function copied(title, text, whose) {
  const button = make("button", { type: "button", textContent: textOf("copy") });
  button.setAttribute("aria-label", textOf("copy_of", { title, whose }));
  button.onclick = async () => {
    await navigator.clipboard.writeText(text);
    button.textContent = textOf("copied");
  };
  return [make("div", { className: "copied" }, make("h3", { textContent: title }), button), make("pre", { tabIndex: 0, textContent: text })];
}

/** The other forms of an audit: a PDF file, and evidence with its minimum cell. */
function furtherForms() {
  const runs = (step, textContent) => {
    const button = make("button", { type: "button", textContent, onclick: () => run(step, step === "evidence" ? { min_cell: least.value } : {}) });
    button.dataset.runs = step;
    return button;
  };
  const least = make("input", { type: "number", min: 1, step: 1, value: 1 });
  const name = make("span", { textContent: textOf("minimum_rows") });
  name.dataset.option = "min-cell";
  const label = make("label", {}, name, " ", least);
  const hint = make("small", { textContent: textOf("minimum_hint") });
  return [make("div", { className: "further" }, runs("pdf", textOf("print_pdf"))), make("div", { className: "further" }, runs("evidence", textOf("write_evidence")), label), hint];
}

function showDownloads() {
  const steps = RESULTS.filter((step) => state.done[step]);
  const shown = steps.map((step) => `${step}${state.done[step].number}`).join();
  byId("nothing").hidden = steps.length > 0;
  if (byId("downloads").dataset.shown === shown) return;
  byId("downloads").dataset.shown = shown;
  byId("downloads").replaceChildren(...steps.map((step) => {
    const { files, commands, python, notes } = state.done[step];
    const links = Object.entries(files).map(([name, title]) =>
      make("li", {}, resultLink(step, name, { download: name, textContent: name }, "?download"), ` ${title}`));
    const card = make("div", { className: "card" }, make("h2", { textContent: textOf(`result_${step}`) }), make("ul", { className: "files" }, ...links));
    card.append(...notes.map((text) => make("p", { className: "hint", textContent: text })));
    if (step === "audit") card.append(...furtherForms());
    const summary = make("summary", { textContent: textOf("the_same") });
    const texts = [[textOf("command_line"), commands.join("\n")], [textOf("python"), python]];
    card.append(make("details", {}, summary, ...texts.flatMap(([title, text]) => copied(title, text, textOf(`result_${step}`)))));
    return card;
  }));
}

/** What runs: the step, of several commands the current one, of training the family. */
function showWork() {
  const { running, part, progress: { families, total } } = state;
  const work = byId("work");
  work.hidden = true;
  if (!running) return showStatus("");
  let done = null;
  let text = textOf(`step_${running}`);
  if (running === "train" && total) {
    done = { value: Math.max(families.length - 1, 0), max: total };
    text = textOf("training_family", { family: families.length, total });
  } else if (part && part.total > 1) {
    done = { value: part.place - 1, max: part.total };
    text = textOf("part", { step: text, ...part, name: textOf(`part_${part.command}`) });
  }
  if (done) Object.assign(work, { ...done, hidden: false });
  showStatus(text);
}

function showFamilies() {
  const { families } = state.progress;
  const after = textOf(state.running === "train" ? "family_running" : "family_stopped");
  byId("families").replaceChildren(...families.map(([name, seconds]) => {
    const text = seconds === null ? after : textOf("family_finished", { seconds });
    return make("li", {}, make("code", { textContent: name }), " ", make("strong", { textContent: text }));
  }));
  byId("trained-notes").textContent = state.done.train?.notes.join(" ") ?? "";
  byId("kept").hidden = !state.has_ledger;
}

function showHash() {
  const steps = all("[data-step]");
  const shown = steps.find((step) => `#${step.id}` === location.hash) ?? steps[0];
  for (const step of steps) step.hidden = step !== shown;
  for (const link of all("nav a")) {
    if (link.hash === `#${shown.id}`) link.setAttribute("aria-current", "step");
    else link.removeAttribute("aria-current");
  }
}

/** Shows the new state; forms are rebuilt only if what they are about has changed, so that nothing typed is lost. */
function show(next) {
  const before = state;
  state = next;
  const same = (part) => before !== null && JSON.stringify(part(before)) === JSON.stringify(part(next));
  document.title = next.file ? textOf("studio_of", { file: shortName(next.file) }) : textOf("studio");
  byId("title").textContent = next.file ? shortName(next.file) : textOf("title");
  showWork();
  byId("cancel").hidden = !next.running;
  if (!same((one) => one.failed)) for (const step of STEPS) showFailure(step, next.failed[step] ?? "");
  byId("file-label").textContent = textOf(next.file ? "choose_other_file" : "choose_file");
  byId("close").hidden = !next.file;
  byId("found").hidden = !next.columns;
  if (!same((one) => one.choices.reading)) restore(byId("reading-form"), next.choices.reading);
  if (next.columns && !same((one) => [one.file, one.columns, one.choices.roles])) showColumns(next.columns);
  const has = { roles: next.choices.roles, audit: next.done.audit, train: next.done.train };
  for (const part of all("[data-after]")) part.hidden = !has[part.dataset.after];
  for (const part of all("[data-before]")) part.hidden = Boolean(has[part.dataset.before]);
  if (has.roles && !same((one) => one.choices.roles)) showAuditForm(has.roles);
  if (!same((one) => one.choices.train)) {
    restore(byId("train-form"), next.choices.train);
    restore(byId("choose-form"), next.choices.train); // the limit
  }
  byId("second-name").textContent = next.second ? textOf("second_file", { file: next.second }) : "";
  showFamilies();
  all("[data-result]").forEach(showResult);
  showDownloads();
  for (const button of all(STARTERS)) button.disabled = Boolean(next.running);
}

async function refresh() {
  const answer = await ask("state");
  if (answer.ok) show(await answer.json());
}

function onSubmit(id, step, then = () => {}, choices = choicesOf) {
  byId(id).addEventListener("submit", async (event) => {
    event.preventDefault();
    if (await run(step, choices(event.target))) then();
  });
}

onSubmit("reading-form", "inspect");
onSubmit("roles-form", "roles", () => { location.hash = columnOf("score") ? "#audit" : "#train"; }, rolesOf);
onSubmit("audit-form", "audit");
onSubmit("compare-form", "compare");
onSubmit("train-form", "train");
onSubmit("choose-form", "choose");
byId("file").addEventListener("change", ({ target }) => target.files[0] && upload("inspect", "file", target.files[0]));
byId("second").addEventListener("change", ({ target }) => target.files[0] && upload("compare", "second", target.files[0]));
byId("find-column").addEventListener("input", showFoundColumns);
byId("find-column").addEventListener("keydown", (event) => { if (event.key === "Enter") event.preventDefault(); }); // it confirms nothing
byId("only-roles").addEventListener("change", showFoundColumns);
byId("find_groups").addEventListener("change", showSearch);
byId("cancel").addEventListener("click", () => run("cancel"));
byId("close").addEventListener("click", () => run("close"));
byId("forget").addEventListener("click", () => run("forget"));
byId("threshold-slider").addEventListener("input", ({ target }) => { byId("threshold").value = target.value; });
byId("threshold").addEventListener("input", ({ target }) => { byId("threshold-slider").value = target.value || 0.5; });
byId("audit-form").addEventListener("change", showReferences);
// Live: once there is a report, every control computes it again.
byId("audit-form").addEventListener("change", () => { if (state.done.audit && !state.running) byId("audit-form").requestSubmit(); });
for (const [kind, over] of [["dragover", true], ["dragleave", false], ["drop", false]]) {
  byId("drop").addEventListener(kind, (event) => {
    event.preventDefault();
    byId("drop").classList.toggle("over", over);
    if (kind === "drop" && event.dataTransfer.files[0]) upload("inspect", "file", event.dataTransfer.files[0]);
  });
}
addEventListener("hashchange", () => {
  if (location.hash.startsWith("#token=")) location.reload(); // another address was typed into this tab
  showHash();
  byId("main").focus();
});

/** Shows each change of the state. EventSource would send no key. */
async function follow() {
  while (sessionStorage.getItem(KEY)) {
    try {
      const events = (await ask("events")).body.getReader();
      while (sessionStorage.getItem(KEY) && !(await events.read()).done) await refresh();
    } catch {
      // The studio ended, or the connection broke.
    }
    if (sessionStorage.getItem(KEY)) showStatus(textOf("no_response_stopped"));
    await new Promise((resolve) => setTimeout(resolve, PAUSE));
  }
}

await enter();
showHash();
if (sessionStorage.getItem(KEY)) follow();
else if (byId("locked").hidden) lock(textOf("no_connection"));
