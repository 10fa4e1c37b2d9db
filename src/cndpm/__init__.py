"""Task-free continual learning with a Dirichlet-process mixture of neural experts (CN-DPM)."""

import sys
from typing import TYPE_CHECKING, Any

from cndpm.version import __version__

if TYPE_CHECKING:
    from cndpm.estimators import CNDPMClassifier, CNDPMDensity, CNDPMRegressor, merge

__all__ = ["CNDPMClassifier", "CNDPMDensity", "CNDPMRegressor", "__version__", "merge"]


def __getattr__(name: str) -> Any:
    """Imports the estimators when they are first asked for, so that `cndpm --help` need not wait for torch."""
    if name in __all__:
        from cndpm import estimators

        return getattr(estimators, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}", name=name, obj=sys.modules[__name__])


def __dir__() -> list[str]:
    """Lists the estimators, also before they are imported, and rooms that are; not what this file needs for itself."""
    rooms = {name for name in globals() if f"{__name__}.{name}" in sys.modules}
    return sorted({*(name for name in globals() if name.startswith("__")), *rooms, *__all__})
