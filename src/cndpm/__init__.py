"""Task-free continual learning with a Dirichlet-process mixture of neural experts (CN-DPM)."""

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
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    """Lists the estimators too, before they are imported."""
    return sorted({*globals(), *__all__})
