"""Conjugate Gaussian experts: closed-form evidence, learning by sums, exact merging."""

from cndpm.experts.gaussian.classes import GaussianBank
from cndpm.experts.gaussian.ranged import RangedGaussianBank
from cndpm.experts.gaussian.regression import GaussianRegressionBank

__all__ = ["GaussianBank", "GaussianRegressionBank", "RangedGaussianBank"]
