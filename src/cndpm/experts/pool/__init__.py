"""Pools that answer p(y | x) at a place: members over numpy arrays, weighed by evidence."""

from cndpm.experts.pool.class_pool import ClassPool
from cndpm.experts.pool.value_pool import ValuePool

__all__ = ["ClassPool", "ValuePool"]
