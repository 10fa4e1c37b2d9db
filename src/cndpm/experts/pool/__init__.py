"""Models of one representation that forget at several rates: the members of a pool."""

from cndpm.experts.pool.discriminants import Discriminants
from cndpm.experts.pool.family import ClassFamily, Family, ValueFamily
from cndpm.experts.pool.regressions import Regressions

__all__ = ["ClassFamily", "Discriminants", "Family", "Regressions", "ValueFamily"]
