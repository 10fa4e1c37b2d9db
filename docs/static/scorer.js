// Pages before names of the reference, unless a class or function is meant by itself; both before the log and the changes.
const behind = ([page, , anchor, , score]) =>
  /^(log|changelog|mutants)$/.test(page) ? 40 : /^reference\//.test(page) && (score < 16 || /^#module-/.test(anchor)) ? 30 : 0;

var Scorer = {
  score: (found) => found[4] - behind(found),
  objNameMatch: 11,
  objPartialMatch: 6,
  objPrio: { 0: 15, 1: 5, 2: -5 },
  objPrioDefault: 0,
  title: 15,
  partialTitle: 7,
  term: 5,
  partialTerm: 2,
};
