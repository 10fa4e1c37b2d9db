"""The scikit-learn face of the mixture."""

from cndpm.estimators.classifier import CNDPMClassifier
from cndpm.estimators.density import CNDPMDensity
from cndpm.estimators.merging_models import merge
from cndpm.estimators.regressor import CNDPMRegressor

__all__ = ["CNDPMClassifier", "CNDPMDensity", "CNDPMRegressor", "merge"]
