"""Conjugate Gaussian experts: closed-form evidence, learning by sums, exact merging."""

from cndpm.experts.gaussian.bank import GaussianBank

__all__ = ["GaussianBank"]
