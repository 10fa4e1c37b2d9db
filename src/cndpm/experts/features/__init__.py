"""Feature maps: fitted on the first memory, frozen, stored with the state."""

from cndpm.experts.features.feature_map import FeatureMap, NotInvertibleError
from cndpm.experts.features.patches import PatchFeatures
from cndpm.experts.features.standardised import FunctionFeatures, ModuleFeatures
from cndpm.experts.features.vectors import FourierFeatures, IdentityFeatures, PrincipalFeatures

__all__ = [
    "FeatureMap",
    "FourierFeatures",
    "FunctionFeatures",
    "IdentityFeatures",
    "ModuleFeatures",
    "NotInvertibleError",
    "PatchFeatures",
    "PrincipalFeatures",
]
