"""Makes pages and reports of records that are damaged in a way that only shows when they are drawn.

A record may be whole and still hold what no figure can be made of, because another program wrote it. Such a run is left
out, with the reason; the others are shown.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

from cndpm.errors import CNDPMError
from cndpm.reports.collection import collect
from cndpm.reports.content import Content, gather
from cndpm.reports.html import page_values

Made = TypeVar("Made")


def shown(paths: Sequence[str | Path], make: Callable[[Content], Made], **options: Any) -> tuple[Content, Made]:
    """Returns the content of all runs that can be shown, and what was made of it."""
    try:
        content = gather(paths, **options)
        return content, make(content)
    except (CNDPMError, OSError):
        raise
    except Exception:
        unshown = _unshowable(paths)
        if not unshown:
            raise
        content = gather(paths, **options, without=unshown)
        return content, make(content)


def _unshowable(paths: Sequence[str | Path]) -> dict[Path, str]:
    """Returns the folders of runs that cannot be shown on their own, with the reason."""
    found = {}
    for run in collect(paths).runs:
        try:
            page_values(gather([run.record.folder]))
        except Exception as error:
            reason = f"the record cannot be shown: {type(error).__name__}: {str(error)[:200]}"
            found[run.record.folder] = reason
    return found
