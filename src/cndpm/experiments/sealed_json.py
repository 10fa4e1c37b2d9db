"""JSON files that carry a checksum of what they say: written whole, and refused when they were changed.

The key ``sha256`` holds the checksum of everything else, in a spelling that does not depend on spaces or order.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

from cndpm.errors import CNDPMError
from cndpm.storage import replace_file

__all__ = ["RecordError"]

_SEAL = "sha256"
_MOST_BYTES = 1 << 28


class RecordError(CNDPMError, RuntimeError):
    """A record cannot be read or written; the message says why and what to do."""


def write_json(path: Path, content: dict[str, Any], *, sealed: bool = True, beside: Any = None) -> None:
    """Writes a file whole or not at all; RecordError where the folder cannot be written, or the disk is full."""
    seal = {_SEAL: _checksum(content, beside)} if sealed else {}
    try:
        replace_file(path, [json.dumps(content | seal, indent=2).encode() + b"\n"])
    except OSError as error:
        raise RecordError(f"cannot write {path}: {error.strerror or error}") from error


def read_json(path: Path, *, beside: Any = None) -> tuple[dict[str, Any], bool]:
    """Returns what :func:`write_json` wrote, and whether it carries a checksum; RecordError where that is not right."""
    try:
        if path.stat().st_size > _MOST_BYTES:
            raise RecordError(f"{path} is damaged: it has {path.stat().st_size} bytes")
        content = json.loads(path.read_bytes())
        if not isinstance(content, dict):
            raise RecordError(f"{path} is damaged: it holds no JSON object")
        sealed, seal = _SEAL in content, content.pop(_SEAL, None)
        if sealed and seal != _checksum(content, beside):
            raise RecordError(f"{path} is damaged: its checksum does not fit its content")
    except OSError as error:
        raise RecordError(f"cannot read {path}: {error.strerror or error}") from error
    except (ValueError, RecursionError) as error:
        raise RecordError(f"{path} is damaged: {str(error)[:200]}") from error
    return content, sealed


def _checksum(content: dict[str, Any], beside: Any) -> str:
    plain = json.loads(json.dumps([content, beside]))  # as it will be read: keys are text, tuples are lists
    return hashlib.sha256(json.dumps(plain, sort_keys=True, separators=(",", ":")).encode()).hexdigest()
