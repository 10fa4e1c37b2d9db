"""Reads docstrings as they are written: shapes such as (batch, *input_shape), indented code, names of re-exports."""

import importlib
import re
from typing import Any

from docutils import nodes
from sphinx.addnodes import pending_xref
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment

__all__ = ["plain", "setup"]

_CODE = re.compile(r"(``.+?``|:\w+:`[^`]+`|`[^`]+`)")
_MARKS = re.compile(r"\*(?=[\w(])|\||(?<=\w)_(?!\w)")
_EXAMPLE = re.compile(r"\s*(>>>|\.\.\.)")


def plain(line: str) -> str:
    """Escapes stars, bars and final underscores of a line outside of its code: none of them is meant as a mark.

    Example:
        >>> plain("x: (B, *input_shape), see `*args` and n_experts_")
        'x: (B, \\\\*input_shape), see `*args` and n_experts\\\\_'
    """
    parts = _CODE.split(line)
    return "".join(part if i % 2 else _MARKS.sub(r"\\\g<0>", part) for i, part in enumerate(parts))


def _literal_blocks(lines: list[str]) -> list[str]:
    """Marks indented paragraphs after unindented text as code; those of a section, list or directive are not."""
    made: list[str] = []
    inside, text = False, ""
    for line in lines:
        is_indented = line.startswith("    ")
        opens = is_indented and not inside and made and not made[-1].strip() and not re.match(r"- |\w+:$|\.\. ", text)
        if opens and not _EXAMPLE.match(line):
            made += ["::", ""]
            inside = True
        inside = inside and (is_indented or not line.strip())
        text = line if line.strip() and not is_indented else text
        is_code = inside or _EXAMPLE.match(line) or text.startswith(".. ")
        made.append(line if is_code else plain(line))
    return made


def _process(app: Sphinx, what: str, name: str, thing: object, options: object, lines: list[str]) -> None:
    lines[:] = _literal_blocks(lines)


def _skip(app: Sphinx, what: str, name: str, thing: object, skip: bool, options: object) -> bool | None:
    """Leaves out what scikit-learn adds for routing metadata: it is described there."""
    return True if re.fullmatch(r"set_\w+_request|(get_)?metadata_routing", name) else None


def _resolve(app: Sphinx, env: BuildEnvironment, node: pending_xref, content: nodes.TextElement) -> Any:
    """Finds what a package exports where it is defined; what exists, but is private, becomes plain text."""
    if node.get("refdomain") != "py":
        return None
    module, owner = node.get("py:module"), node.get("py:class")
    found = _find(node["reftarget"], [f"{module}.{owner}"] * bool(owner) + [module] * bool(module))
    if found is None:
        return None
    defined = f"{getattr(found, '__module__', '')}.{getattr(found, '__qualname__', '')}"
    domain = env.domains.python_domain
    kind = node["reftype"] if node["reftype"] != "obj" else "class"
    return domain.resolve_xref(env, node["refdoc"], app.builder, kind, defined, node, content) or content


def _find(target: str, places: list[str]) -> object | None:
    """Imports a dotted name, as it is or below one of `places`; None where there is no such thing."""
    for name in [target, *(f"{place}.{target}" for place in places)]:
        parts = name.split(".")
        for cut in range(len(parts), 0, -1):
            try:
                thing: Any = importlib.import_module(".".join(parts[:cut]))
                for part in parts[cut:]:
                    thing = getattr(thing, part)
            except (ImportError, AttributeError):
                continue
            return thing
    return None


def setup(app: Sphinx) -> dict[str, bool]:
    """Registers all three, before the sections of docstrings are read."""
    app.connect("autodoc-process-docstring", _process, priority=400)
    app.connect("autodoc-skip-member", _skip)
    app.connect("missing-reference", _resolve)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
