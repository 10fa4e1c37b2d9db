"""What answers p(y | x) at a place: a pool of members over numpy arrays, weighed by evidence."""

from cndpm.experts.pool.class_pool import ClassPool
from cndpm.experts.pool.value_pool import ValuePool

__all__ = ["ClassPool", "ValuePool"]
