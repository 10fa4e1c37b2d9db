"""How old a figure is: how often the package has changed since the commit that it was measured at."""

from __future__ import annotations

import subprocess
from functools import lru_cache
from pathlib import Path

__all__ = ["changes_since"]


@lru_cache(maxsize=1024)
def changes_since(root: Path, commit: str, of: str = "src/cndpm") -> int | None:
    """Returns how many commits since another have changed a folder; None where no repository knows that one.

    Args:
        root: The project.
        commit: Its name, or the beginning of it.
        of: The folder, below the root.
    """
    command = ["git", "-C", str(root), "rev-list", "--count", f"{commit}..HEAD", "--", of]
    try:
        counted = subprocess.run(command, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return None
    return int(counted.stdout)
