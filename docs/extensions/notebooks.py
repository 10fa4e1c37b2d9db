"""Shows notebooks as pages of the site, and carries them out: ``python docs/extensions/notebooks.py docs/notebooks/*``.

A notebook keeps what its cells printed and drew, so that it can be read without being run. Nothing of Jupyter is needed
for either.
"""

import ast
import base64
import io
import json
import sys
from collections.abc import Iterator
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

__all__ = ["carry_out", "code_cells", "setup", "to_markdown"]


def code_cells(notebook: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Returns the cells of a notebook that hold code."""
    return (cell for cell in notebook["cells"] if cell["cell_type"] == "code")


def to_markdown(notebook: dict[str, Any]) -> str:
    """Returns a notebook as Markdown, with what its cells printed and drew.

    Example:
        >>> cells = [{"cell_type": "code", "source": ["1 + 1"], "outputs": [{"name": "stdout", "text": ["2"]}]}]
        >>> print(to_markdown({"cells": cells}))
        ```python
        1 + 1
        ```
        <BLANKLINE>
        ```text
        2
        ```
    """
    parts = []
    for cell in notebook["cells"]:
        source = "".join(cell["source"])
        if cell["cell_type"] == "code":
            parts += [f"```python\n{source}\n```", *map(_shown, cell["outputs"])]
        else:
            parts.append(source)
    return "\n\n".join(parts)


def _shown(output: dict[str, Any]) -> str:
    if "text" in output:
        return "```text\n" + "".join(output["text"]).rstrip() + "\n```"
    picture = "".join(output["data"]["image/png"]).strip()
    return f"![{''.join(output['data']['text/plain'])}](data:image/png;base64,{picture})"


def carry_out(notebook: dict[str, Any], name: str) -> None:
    """Runs the cells of a notebook one after the other, and stores what they print and draw in it.

    Args:
        notebook: Is changed.
        name: Of the file, for errors.
    """
    names: dict[str, Any] = {"__name__": "__notebook__"}
    _figures()  # what others left open is not the notebook's
    for number, cell in enumerate(code_cells(notebook), start=1):
        source, printed = "".join(cell["source"]), io.StringIO()
        with redirect_stdout(printed):
            exec(compile(ast.parse(source), f"{name}, cell {number}", "exec"), names)
        text = printed.getvalue().splitlines(keepends=True)
        cell["execution_count"] = number
        cell["outputs"] = [{"output_type": "stream", "name": "stdout", "text": text}] if text else []
        cell["outputs"] += [_picture(figure) for figure in _figures()]


def _figures() -> list[Any]:
    """Returns the figures that are open, if anything was drawn."""
    if "matplotlib.pyplot" not in sys.modules:
        return []
    from matplotlib import pyplot

    found = [pyplot.figure(number) for number in pyplot.get_fignums()]
    pyplot.close("all")
    return found


def _picture(figure: Any) -> dict[str, Any]:
    file = io.BytesIO()
    figure.savefig(file, format="png", dpi=80, bbox_inches="tight", metadata={"Software": None})
    words = figure.get_label() or "figure"
    data = {"image/png": base64.b64encode(file.getvalue()).decode(), "text/plain": [words]}
    return {"output_type": "display_data", "metadata": {}, "data": data}


def _read(app: Any, name: str, content: list[str]) -> None:
    if name.startswith("notebooks/") and content[0].startswith("{"):
        content[0] = to_markdown(json.loads(content[0]))


def setup(app: Any) -> dict[str, bool]:
    """Turns notebooks into Markdown when they are read."""
    app.connect("source-read", _read)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def _main() -> None:
    import os
    import tempfile

    import matplotlib

    matplotlib.use("agg")
    for path in [Path(argument).resolve() for argument in sys.argv[1:]]:
        notebook = json.loads(path.read_text())
        with tempfile.TemporaryDirectory() as folder:
            os.chdir(folder)
            carry_out(notebook, path.name)
        path.write_text(json.dumps(notebook, indent=1, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    _main()
