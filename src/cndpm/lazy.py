"""Rooms whose names are imported when they are first asked for."""

from __future__ import annotations

import ast
import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any


def lazily(room: str) -> Callable[[str], Any]:
    """Returns the ``__getattr__`` of a package: its names are those that it imports under ``if TYPE_CHECKING``."""
    tree = ast.parse(Path(sys.modules[room].__file__ or "").read_text())
    for_types = (node for node in tree.body if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING")
    imports = [node for block in for_types for node in block.body if isinstance(node, ast.ImportFrom)]
    homes = {alias.asname or alias.name: (node.module or "", alias.name) for node in imports for alias in node.names}

    def find(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f"module {room!r} has no attribute {name!r}", name=name, obj=sys.modules[room])
        module, original = homes[name]
        found = getattr(import_module(module), original)
        setattr(sys.modules[room], name, found)
        return found

    return find
