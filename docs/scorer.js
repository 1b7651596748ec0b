// Order of search results: pages to read, then the reference, then the gallery; results and notes for developers last.
// "names" are pages whose title is what was searched for: an exact name stays first.
var Scorer = {
  score: ([page, title, anchor, , score, , kind]) => {
    const developers = /^(results|changelog|architecture|releasing|contribute|about|intervals)\b/;
    if (developers.test(page) && kind !== "index") return score - 20;
    if (page.startsWith("gallery/")) return score + 1;
    if (page.startsWith("reference/")) return score + (kind === "title" ? 12 : 2) - (kind === "object" ? 6 : 0);
    return score + (anchor ? 3 : 6);
  },
  objNameMatch: 11,
  objPartialMatch: 6,
  objPrio: { 0: 15, 1: 5, 2: -5 },
  objPrioDefault: 0,
  title: 15,
  partialTitle: 7,
  term: 5,
  partialTerm: 2,
};
