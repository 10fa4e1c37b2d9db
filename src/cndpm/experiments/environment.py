"""Describes where and with what a run was made, so that its numbers can be traced."""

from __future__ import annotations

import platform
import subprocess
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy
import torch

import cndpm


def describe_environment(device: str, command: str | None = None) -> dict[str, Any]:
    """Returns the command, versions, commit, machine, device and time."""
    return {
        "command": command,
        "cndpm": cndpm.__version__,
        "commit": _commit(),
        "python": platform.python_version(),
        "torch": torch.__version__,
        "numpy": numpy.__version__,
        "platform": platform.platform(),
        "device": torch.cuda.get_device_name(device) if device.startswith("cuda") else platform.machine(),
        "n_threads": torch.get_num_threads(),
        "started": datetime.now(UTC).isoformat(timespec="seconds"),
    }


def _commit() -> str | None:
    """Returns the commit of the source tree that the package runs from, with "+" where it was changed; else None."""
    folder = Path(__file__).parent
    try:
        commit = _git(folder, "rev-parse", "HEAD")
        return commit + ("+" if _git(folder, "status", "--porcelain", "--", ".") else "")
    except (OSError, subprocess.SubprocessError):
        return None


def _git(folder: Path, *arguments: str) -> str:
    command = ["git", "-C", str(folder), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True, timeout=10).stdout.strip()
