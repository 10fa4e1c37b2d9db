"""The mixture in river's words: a classifier, a regressor and an anomaly detector that learn row by row."""

from cndpm.extras import require_extra

require_extra("river", purpose="cndpm.river")

from cndpm.river.anomaly import CNDPMAnomaly
from cndpm.river.classifier import CNDPMClassifier
from cndpm.river.regressor import CNDPMRegressor

__all__ = ["CNDPMAnomaly", "CNDPMClassifier", "CNDPMRegressor"]
