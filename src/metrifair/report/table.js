// Tables that sort: headings are buttons, and tell how the table is sorted.

/** A row of headings. A press sorts by that column, a second one the other way round. */
function sortingHead(names, sort) {
  const row = html("tr");
  let now = { column: -1, descending: false };
  row.append(...names.map((name, column) => {
    const head = html("th", { scope: "col" });
    const button = html("button", { type: "button" });
    button.append(html("span", {}, name), html("span", { class: "arrow", "aria-hidden": "true" }));
    button.addEventListener("click", () => by(column, now.column === column && !now.descending));
    head.append(button);
    return head;
  }));

  function by(column, descending) {
    now = { column, descending };
    [...row.cells].forEach((head, at) => {
      if (at === column) head.setAttribute("aria-sort", descending ? "descending" : "ascending");
      else head.removeAttribute("aria-sort");
    });
    sort(column, descending);
  }

  return { row, by };
}

/** Order of two values, numbers or texts; what is missing comes last either way. */
function inOrder(a, b, descending) {
  if (a === null || b === null) return (a === null) - (b === null);
  const order = typeof a === "string" ? a.localeCompare(b, "en", { numeric: true }) : a - b;
  return descending ? -order : order;
}
