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
        from cndpm.cli.exit_codes import exit_code

        code = exit_code(error)
        if code is None:
            raise
        _say(f"error: {error}")
        sys.exit(code)


def _say(text: str) -> None:
    print(f"cndpm: {text}", file=sys.stderr)
