"""Dirichlet-process mathematics on plain tensors: responsibilities, novelty, similarity and pruning of experts."""

from cndpm.mixture.episodes import largest_concept
from cndpm.mixture.inference import log_gate, log_mixture_density, mix_gaussians, mix_log_proba
from cndpm.mixture.margin_levels import accepts_expert, margins
from cndpm.mixture.redundancy import Merge, plan_merges, similarity
from cndpm.mixture.responsibility import Routing, is_new, log_responsibilities, route

__all__ = [
    "Merge",
    "Routing",
    "accepts_expert",
    "is_new",
    "largest_concept",
    "log_gate",
    "log_mixture_density",
    "log_responsibilities",
    "margins",
    "mix_gaussians",
    "mix_log_proba",
    "plan_merges",
    "route",
    "similarity",
]
