"""``cndpm serve``: a model behind HTTP."""

from __future__ import annotations

import os
from typing import Annotated

import typer


def add_serve_command(app: typer.Typer) -> None:
    """Adds `serve` to the command line."""
    app.command()(serve)


def serve(
    model: Annotated[str, typer.Argument(metavar="MODEL", help="File that `save` wrote; it is not changed.")],
    folder: Annotated[
        str | None,
        typer.Option(metavar="DIR", help="Folder of checkpoints and logs.", show_default="MODEL.served"),
    ] = None,
    host: Annotated[str, typer.Option(metavar="H", help="Address; others than loopback need a token.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(metavar="P", min=0, max=65535, help="Port; 0 takes any free one.")] = 8000,
    checkpoint_rows: Annotated[int, typer.Option(metavar="N", min=1, help="Rows between checkpoints.")] = 10_000,
    max_rows: Annotated[int, typer.Option(metavar="N", min=1, help="Rows of one request.")] = 10_000,
    max_mib: Annotated[int, typer.Option(metavar="N", min=1, help="MiB of one request.")] = 4,
    window_ms: Annotated[
        float, typer.Option(metavar="MS", min=0, help="Time that a prediction waits for others to share a call.")
    ] = 0.0,
    salvage: Annotated[
        bool, typer.Option("--salvage", help="Go on without the rows that a damaged log has lost.")
    ] = False,
) -> None:
    """Serve a model over HTTP: predict, learn, explain, watch.

    Rows are acknowledged when they are learned and on the disk; started again,
    the server goes on where it was. CNDPM_TOKEN in the environment is the token
    that clients must send. The page /docs describes all requests.

    Example: cndpm serve model.cndpm --port 8000
    """
    from cndpm.serving import Limits, Server

    limits = Limits(body_bytes=max_mib * 2**20, rows=max_rows, window=window_ms / 1000)
    server = Server(
        model,
        folder=folder,
        host=host,
        port=port,
        token=os.environ.get("CNDPM_TOKEN") or None,
        limits=limits,
        checkpoint_rows=checkpoint_rows,
        salvage=salvage,
    )
    print(f"serving {model} at {server.url}/ (page: {server.url}/docs; Ctrl-C ends it)", flush=True)
    try:
        server.run()
    except KeyboardInterrupt:
        print()
