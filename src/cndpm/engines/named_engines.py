"""Engines by name, as the command line and functions take them."""

from __future__ import annotations

from cndpm.engines.engine import Engine
from cndpm.engines.local import LocalEngine
from cndpm.engines.ray import RayEngine
from cndpm.names import UnknownNameError
from cndpm.validation import ConfigError

ENGINES = ("local", "ray")
"""The engines there are."""


def make_engine(
    name: str | Engine, n_workers: int, *, address: str | None = None, n_gpus: float = 0.0, retries: int = 2
) -> Engine:
    """Returns an engine; one that is given is returned as it is.

    Args:
        name: "local", processes of this machine, or "ray".
        n_workers: Tasks at the same time.
        address: Of a Ray cluster that runs.
        n_gpus: GPUs, or a fraction of one, that a task takes on a Ray cluster.
        retries: How often a task whose worker was lost is begun again.
    """
    if isinstance(name, Engine):
        return name
    if name not in ENGINES:
        raise UnknownNameError("engine called", name, ENGINES)
    if name == "ray":
        return RayEngine(n_workers, address=address, n_gpus=n_gpus, retries=retries)
    if address is not None or n_gpus:
        raise ConfigError("--address and --gpus belong to --engine ray; leave them out, or add --engine ray")
    return LocalEngine(n_workers, retries=retries)
