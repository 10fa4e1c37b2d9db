// Pages before names of the reference, and both before the log and the list of changes.
const behind = [[/^reference\//, 30], [/^(log|changelog|mutants)$/, 40]];

var Scorer = {
  score: ([page, , , , score]) => score - behind.reduce((sum, [pattern, n]) => sum + (pattern.test(page) ? n : 0), 0),
  objNameMatch: 11,
  objPartialMatch: 6,
  objPrio: { 0: 15, 1: 5, 2: -5 },
  objPrioDefault: 0,
  title: 15,
  partialTitle: 7,
  term: 5,
  partialTerm: 2,
};
