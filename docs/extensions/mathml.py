"""Mathematics as MathML, written when the site is built: a page needs no script and no font for it."""

import re

from docutils import nodes
from latex2mathml.converter import convert
from sphinx.application import Sphinx
from sphinx.errors import SphinxError
from sphinx.writers.html5 import HTML5Translator

__all__ = ["setup", "to_mathml"]

_ARG = re.compile(r"\\arg\b")  # the one command of our formulas that the converter lacks


def to_mathml(latex: str, *, block: bool) -> str:
    """Returns a formula as MathML.

    Args:
        latex: The formula, without dollars.
        block: Whether it stands on a line of its own.

    Raises:
        SphinxError: The formula has a command that is not known, or is not closed.
    """
    try:
        made = convert(_ARG.sub(r"\\operatorname{arg}", latex), display="block" if block else "inline")
    except Exception as error:  # the converter raises errors of many kinds
        raise SphinxError(f"the formula {latex!r} cannot be read: {type(error).__name__} {error}") from error
    if "\\" in made:
        raise SphinxError(f"the formula {latex!r} has a command that MathML does not know")
    return made


def _visit_inline(translator: HTML5Translator, node: nodes.Element) -> None:
    translator.body.append(to_mathml(node.astext(), block=False))
    raise nodes.SkipNode


def _visit_block(translator: HTML5Translator, node: nodes.Element) -> None:
    translator.body.append(f'<div class="formula">{to_mathml(node.astext(), block=True)}</div>')
    raise nodes.SkipNode


def setup(app: Sphinx) -> dict[str, bool]:
    """Registers the renderer."""
    app.add_html_math_renderer("mathml", (_visit_inline, None), (_visit_block, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
