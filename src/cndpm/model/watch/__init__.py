"""Says how new a row is: rows that are kept as known, a density around them, and the place of a value among theirs."""

from cndpm.model.watch.watch import Watch as Watch
