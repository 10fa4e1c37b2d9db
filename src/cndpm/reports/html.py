"""Renders a report as one self-contained HTML page, with its style, script, numbers and images.

A record may be whole and still hold what no figure can be made of, because another program wrote it. Such a run is left
out, with the reason; the others are shown. The page of runs that go on updates itself: it is served on loopback only,
at ``/`` and ``/data.json``, and records are read again when they have changed.
"""

from __future__ import annotations

import html
import json
from collections.abc import Callable, Sequence
from dataclasses import asdict
from http.server import ThreadingHTTPServer
from importlib import resources
from pathlib import Path
from string import Template
from threading import Lock
from typing import Any, TypeVar

import cndpm
from cndpm.errors import CNDPMError
from cndpm.experiments.record import RecordError
from cndpm.loopback import Answer, Request, ServingError, serve_on_loopback
from cndpm.reports.anatomy import anatomy
from cndpm.reports.collection import collect
from cndpm.reports.content import FIGURES, Content, Part, gather
from cndpm.reports.groups import Comparison
from cndpm.reports.payload import figure_values, ramp_values, table_values
from cndpm.reports.run import Run
from cndpm.reports.stories import comparison_story, progress_words, repeat_command, run_facts, run_story, title_of

_PAPERS = "The paper's values beside ours; a difference is ours minus theirs."
_PAGE_BYTES = 4_800_000
"""The largest size of a page. Figures of runs for which no room is left are left out, so pages stay below 5 MB."""


def render_page(content: Content, *, refresh_seconds: float | None = None) -> str:
    """Returns the page as HTML."""
    values = page_values(content, refresh_seconds=refresh_seconds)
    folder = resources.files("cndpm.reports") / "page"
    script = "\n".join((folder / name).read_text(encoding="utf-8") for name in ("charts.js", "page.js"))
    style = "\n".join((folder / name).read_text(encoding="utf-8") for name in ("colours.css", "page.css"))
    return Template((folder / "page.html").read_text(encoding="utf-8")).substitute(
        title=html.escape(values["title"]),
        style=style,
        data=encode(values),
        script=script,
        connect="'self'" if refresh_seconds else "'none'",
    )


def encode(values: Any) -> str:
    """Encodes values as JSON for a script element: no text in it can end the element or open another."""
    text = json.dumps(values, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    return text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")


def page_values(content: Content, *, refresh_seconds: float | None = None) -> dict[str, Any]:
    """Returns everything on the page as plain values."""
    comparisons = content.comparisons
    several = len(content.collection.runs) > 1
    parts = [_part_values(part, _PAPERS) for part in content.exhibits]
    alone = len(comparisons) == 1  # then the page's summary has described the stream
    for one, part in zip(comparisons, content.parts, strict=True) if several else ():
        parts.append(_part_values(part, "" if alone else one.summary, metric=one.metric, coloured=True))
    values = {
        "title": title_of(comparisons),
        "summary": _summary(content, comparisons),
        "parts": parts,
        "runs": [_one_run(run, label) for label, run in _in_order(content)],
        "problems": [{"folder": str(one.folder), "reason": one.reason} for one in content.collection.problems],
        "ramp": ramp_values(),
        "refresh_seconds": refresh_seconds,
        "footer": f"Made by cndpm {cndpm.__version__} from {len(content.collection.runs)} records; "
        "every number above is in them.",
    }
    _add_figures(values, [run for _, run in _in_order(content)], several=several)
    return values


def _summary(content: Content, comparisons: Sequence[Comparison]) -> list[str]:
    """Summarises the report in paragraphs; of many streams, the first three."""
    if len(content.collection.runs) == 1:
        return [run_story(content.collection.runs[0])]
    return [text for comparison in comparisons[:3] for text in comparison_story(comparison)]


def _part_values(part: Part, note: str, **options: Any) -> dict[str, Any]:
    return {
        "title": part.table.title,
        "note": note,
        "table": table_values(part.table, **options),
        "missing": list(map(asdict, part.table.missing)),
        "figures": list(map(figure_values, part.figures)),
    }


def _in_order(content: Content) -> list[tuple[str, Run]]:
    """Returns every run with its group's label; mixtures come first, since they have the most figures."""
    groups = [group for comparison in content.comparisons for group in comparison.groups]
    named = [(group.label, run) for group in groups for run in group.runs]
    return sorted(named, key=lambda item: "expert_counts" not in item[1].last)


def _add_figures(values: dict[str, Any], runs: Sequence[Run], *, several: bool) -> None:
    """Adds the runs' figures until the page is full; a single run also has its own curves."""
    room = _PAGE_BYTES - len(encode(values).encode())
    for one, run in zip(values["runs"], runs, strict=True):
        own = [FIGURES[name](run) for name in ("prequential", "accuracy", "tasks")] if not several else []
        figures = [figure_values(figure) for figure in [*own, *anatomy(run)] if figure is not None]
        size = len(encode(figures).encode())
        if size <= room:
            one["figures"] = figures
            room -= size
        else:
            one["left_out"] = f"Its figures are left out to keep this page small: cndpm report {run.record.folder}"


def _one_run(run: Run, label: str) -> dict[str, Any]:
    return {
        "title": f"{run.scenario} · {label} · seed {run.seed}",
        "status": run.record.status,
        "progress": progress_words(run),
        "story": run_story(run),
        "facts": run_facts(run),
        "figures": [],
        "left_out": "",
        "command": repeat_command(run),
        "folder": str(run.record.folder),
        "config": _summarised(run.config),
        "environment": run.record.environment,
    }


def _summarised(config: dict[str, Any]) -> dict[str, Any]:
    """Returns the configuration with at most 12 stages; the number of the others is given."""
    stages = config["scenario"].get("stages") or []
    if len(stages) <= 12:
        return config
    scenario = {**config["scenario"], "stages": [*stages[:12], f"and {len(stages) - 12} more, see config.json"]}
    return {**config, "scenario": scenario}


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


REFRESH_SECONDS = 2.0
"""Seconds between two looks of the page at the records."""


class Watched:
    """Renders the page of some folders again when a file in them has changed."""

    def __init__(self, paths: Sequence[str | Path], refresh_seconds: float) -> None:
        self.paths = [Path(path) for path in paths]
        self.refresh_seconds = refresh_seconds
        self._lock = Lock()
        self._state: object = None
        self._answers: dict[str, Answer] = {}

    def answer(self, request: Request) -> Answer | None:
        """Returns the content of an address; None where there is nothing."""
        with self._lock:
            state = self._files()
            if state != self._state:
                self._answers = shown(self.paths, self._rendered)[1]
                self._state = state
            return self._answers.get(request.path)

    def _rendered(self, content: Content) -> dict[str, Answer]:
        values = page_values(content, refresh_seconds=self.refresh_seconds)
        page = render_page(content, refresh_seconds=self.refresh_seconds)
        return {"/": Answer(page.encode(), "text/html"), "/data.json": Answer(json.dumps(values).encode())}

    def _files(self) -> list[tuple[str, int, int]]:
        kinds = ("*.json", "*.jsonl", "*.npz")
        files = {file for path in self.paths for kind in kinds for file in path.rglob(kind)}
        return [(str(file), *_size_and_time(file)) for file in sorted(files)]


def make_server(
    paths: Sequence[str | Path], *, port: int = 0, refresh_seconds: float = REFRESH_SECONDS
) -> ThreadingHTTPServer:
    """Returns a server bound to loopback and ready for ``serve_forever()``, or raises RecordError."""
    for path in paths:
        if not Path(path).is_dir():
            raise RecordError(f"there is no folder {path} to watch")
    try:
        return serve_on_loopback(Watched(paths, refresh_seconds).answer, port=port)
    except ServingError as error:
        raise RecordError(str(error)) from error


def _size_and_time(file: Path) -> tuple[int, int]:
    try:
        found = file.stat()
    except OSError:  # replaced just now
        return 0, 0
    return found.st_size, found.st_mtime_ns
