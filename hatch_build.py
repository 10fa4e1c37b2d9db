"""Gives wheel and sdist the README that a package index can show."""

from __future__ import annotations

import runpy
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface


class ReadmeHook(MetadataHookInterface):  # type: ignore[misc]  # known where something is built
    """Fills in ``project.readme``."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Sets the text by :mod:`release.readme`, which is not installed where something is built."""
        root = Path(self.root)
        adapted = runpy.run_path(str(root / "release" / "readme.py"))["for_an_index"]
        text = adapted((root / "README.md").read_text(encoding="utf-8"))
        metadata["readme"] = {"content-type": "text/markdown", "text": text}
