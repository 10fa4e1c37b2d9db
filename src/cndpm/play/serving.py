"""Serves the page to the browser of this machine, and takes the drawings that it sends."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from http.server import ThreadingHTTPServer
from importlib import resources
from string import Template
from typing import Any

from cndpm.loopback import Answer, Request, serve_on_loopback
from cndpm.play.drawings import DrawingError
from cndpm.play.sketchbook import Sketchbook

_LARGEST = 200_000
"""Bytes of the largest drawing that is read."""


def make_play_server(*, port: int = 0) -> ThreadingHTTPServer:
    """Returns a server of the page, bound to loopback and ready for ``serve_forever()``; port 0 takes any free one."""
    book = Sketchbook()
    page = render_play_page().encode()
    calls: Mapping[str, Callable[[dict[str, Any]], Any]] = {
        "/state": lambda _: book.state(),
        "/forget": lambda _: book.forget(),
        "/guess": lambda sent: book.guess(sent.get("strokes")),
        "/learn": lambda sent: book.learn(sent.get("strokes"), sent.get("name")),
    }

    def answer(request: Request) -> Answer | None:
        if request.body is None:
            return Answer(page, "text/html") if request.path == "/" else None
        return _answered(calls[request.path], request.body) if request.path in calls else None

    return serve_on_loopback(answer, port=port, largest_body=_LARGEST)


def _answered(call: Callable[[dict[str, Any]], Any], body: bytes) -> Answer:
    try:
        sent = json.loads(body)
        if not isinstance(sent, dict):
            raise DrawingError("a drawing comes as an object")
        return Answer(json.dumps(call(sent)).encode())
    except (ValueError, RecursionError) as error:  # also of bytes that are no text, and numbers without end
        return Answer(json.dumps({"error": str(error)}).encode(), status=400)


def render_play_page() -> str:
    """Returns the page, with its style and script."""
    rooms = resources.files("cndpm")  # the colours are those of reports, which need not be imported for them
    page = rooms / "play" / "page"
    style = [rooms / "reports" / "page" / "colours.css", page / "play.css"]
    script = [page / name for name in ("ink.js", "cards.js", "play.js")]
    return Template((page / "play.html").read_text(encoding="utf-8")).substitute(
        style="\n".join(file.read_text(encoding="utf-8") for file in style),
        script="\n".join(file.read_text(encoding="utf-8") for file in script),
    )
