"""Everything that can be set about CN-DPM: a tree of sections, each of which builds its own part.

    CNDPMSettings
      target, n_outputs, memory_size, anytime
      novelty       auto | fixed | tasks
      experts       gaussian: features, covariance, classifier (with its companions)
                    neural:   density, predictor, architecture, selection, training

The same settings may be written nested or by their names alone; see :mod:`cndpm.model.settings.spelling`.
"""

from cndpm.model.settings.facts import CustomDensity, CustomPredictor
from cndpm.model.settings.gaussian import GaussianExperts
from cndpm.model.settings.neural import NeuralExperts
from cndpm.model.settings.settings import PAPER, AutoNovelty, CNDPMSettings, FixedNovelty, TaskNovelty

__all__ = [
    "PAPER",
    "AutoNovelty",
    "CNDPMSettings",
    "CustomDensity",
    "CustomPredictor",
    "FixedNovelty",
    "GaussianExperts",
    "NeuralExperts",
    "TaskNovelty",
]
