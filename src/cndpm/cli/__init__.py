"""The command line: parses and calls; each command is one function call from Python.

Nothing heavy is imported before a command runs, so that ``cndpm --help`` answers at once.
"""

from __future__ import annotations

import shlex
import sys
from collections.abc import Sequence

from cndpm.extras import MissingExtraError, require_extra

__all__ = ["main"]

_STOPPED = 130


def main(arguments: Sequence[str] | None = None) -> None:
    """Runs the command line and ends the process.

    The exit code is 0 for success, 1 for a failure, 2 for a mistake in the command, 130 when stopped by Ctrl-C.

    Args:
        arguments: The words after ``cndpm``; None takes those of this process.
    """
    words = sys.argv[1:] if arguments is None else list(arguments)
    try:
        require_extra("typer", "rich", purpose="the command line")
        from cndpm.cli.commands import app

        app(words, prog_name="cndpm", obj=shlex.join(["cndpm", *words]))
    except SystemExit as end:
        if end.code == _STOPPED:  # typer turns Ctrl-C into this
            _say("stopped; the same command with --resume goes on from the last checkpoint")
        raise
    except MissingExtraError as error:
        _say(f"error: {error}")
        sys.exit(1)
    except Exception as error:
        code = exit_code(error)
        if code is None:
            raise
        _say(f"error: {error}")
        sys.exit(code)


def exit_code(error: Exception) -> int | None:
    """Returns 2 for a mistake in the command, 1 for an expected failure, None for a bug, which shows its traceback."""
    from cndpm.errors import CNDPMError
    from cndpm.experiments.workers import RunsFailedError
    from cndpm.names import ObjectNameError, UnknownNameError
    from cndpm.streams import ScenarioFileError
    from cndpm.validation import ConfigError

    if isinstance(error, RunsFailedError):
        return None if any(exit_code(one) is None for one in error.failures.values()) else 1
    misused = isinstance(error, (ConfigError, ObjectNameError, UnknownNameError, ScenarioFileError))
    return 2 if misused else 1 if isinstance(error, CNDPMError) else None


def _say(text: str) -> None:
    print(f"cndpm: {text}", file=sys.stderr)
