"""The page of a server at `/`: what it serves, how that is doing, a form to try it, and requests to copy.

It is one file that asks nobody but the server it came from, and tells nothing by itself: a token, where one is needed,
is typed into it.
"""

from __future__ import annotations

from importlib import resources

from fastapi import FastAPI, Response

PAGES = ("/", "/docs")
"""Addresses of the page."""

_POLICY = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; connect-src 'self'; img-src data:"


def add_page(app: FastAPI) -> None:
    """Serves the page."""
    text = (resources.files("cndpm") / "serving" / "page.html").read_text(encoding="utf-8")
    headers = {"Content-Security-Policy": _POLICY, "X-Content-Type-Options": "nosniff"}

    async def page() -> Response:
        return Response(text, media_type="text/html", headers=headers)

    for path in PAGES:
        app.get(path, include_in_schema=False)(page)
