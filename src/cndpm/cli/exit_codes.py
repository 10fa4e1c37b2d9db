"""Errors whose message is enough for the user; any other error is a bug and shows its traceback."""

from __future__ import annotations

from cndpm.errors import CNDPMError
from cndpm.experiments.workers import RunsFailedError
from cndpm.names import ObjectNameError, UnknownNameError
from cndpm.streams import ScenarioFileError
from cndpm.validation import ConfigError

_MISUSED = (ConfigError, ObjectNameError, UnknownNameError, ScenarioFileError)


def exit_code(error: Exception) -> int | None:
    """Returns 2 for a mistake in the command, 1 for an expected failure, None for a bug."""
    if isinstance(error, RunsFailedError):
        return None if any(exit_code(one) is None for one in error.failures.values()) else 1
    return 2 if isinstance(error, _MISUSED) else 1 if isinstance(error, CNDPMError) else None
