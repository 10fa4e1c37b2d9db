"""The errors whose message is all a user needs; anything else is a bug and shows its trace."""

from __future__ import annotations

from cndpm.experiments.overrides import ConfigError
from cndpm.experiments.record import RecordError
from cndpm.state import StateError
from cndpm.streams import (
    DamagedFileError,
    FetchError,
    MissingDataError,
    RefusedPickleError,
    ScenarioFileError,
    UnknownNameError,
)

__all__ = ["FAILED", "MISUSED"]

MISUSED = (ConfigError, UnknownNameError, ScenarioFileError)
FAILED = (RecordError, StateError, MissingDataError, DamagedFileError, RefusedPickleError, FetchError)
