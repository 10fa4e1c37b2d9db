"""Dirichlet-process mathematics on plain tensors: responsibilities, novelty, similarity and pruning of experts."""

from cndpm.mixture.inference import log_gate, log_mixture_density, mix_gaussians, mix_log_proba
from cndpm.mixture.pruning import Merge, plan_merges, similarity
from cndpm.mixture.responsibility import Routing, log_responsibilities, route

__all__ = [
    "Merge",
    "Routing",
    "log_gate",
    "log_mixture_density",
    "log_responsibilities",
    "mix_gaussians",
    "mix_log_proba",
    "plan_merges",
    "route",
    "similarity",
]
