// Pages before names of the reference, unless a name is meant by itself, and both before the log and the list of changes.
const behind = ([page, , , , score]) =>
  /^(log|changelog|mutants)$/.test(page) ? 40 : /^reference\//.test(page) && score < 16 ? 30 : 0;

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
