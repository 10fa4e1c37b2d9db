"""``cndpm play``: a page on which one draws symbols and names them."""

from __future__ import annotations

from typing import Annotated

import typer


def add_play_command(app: typer.Typer) -> None:
    """Adds `play` to the command line."""
    app.command()(play)


def play(
    port: Annotated[int, typer.Option(metavar="P", min=0, max=65535, help="Port; 0 takes any free one.")] = 8764,
    open_: Annotated[bool, typer.Option("--open/--no-open", help="Open the page in a browser.")] = True,
) -> None:
    """Draw symbols on a page, name them, and watch it learn.

    Only this machine can open the page. Nothing is kept. Ctrl-C ends it.

    Example: cndpm play
    """
    import webbrowser

    from cndpm.play import make_play_server

    with make_play_server(port=port) as server:
        address = f"http://127.0.0.1:{server.server_port}/"
        print(f"playing at {address} (Ctrl-C ends it)", flush=True)
        if open_:
            webbrowser.open(address)
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            print()
