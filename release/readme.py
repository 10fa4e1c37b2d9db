"""The README as a package index shows it: files beside it are not there, so what links to them is plain text."""

from __future__ import annotations

import re

__all__ = ["for_an_index"]

_ELSEWHERE = r"(?!https?://|mailto:|#)"


def for_an_index(readme: str) -> str:
    """Returns a README of which pictures and links to files beside it are left out, with the words of the links.

    Args:
        readme: Markdown.

    Example:
        >>> for_an_index("![a picture](docs/a.png)\\n\\nSee [a page](docs/a.md) and [the web](https://example.org).")
        'See a page and [the web](https://example.org).'
    """
    without_pictures = re.sub(rf"!\[[^]]*\]\({_ELSEWHERE}[^)]*\)\n*", "", readme)
    return re.sub(rf"\[([^]]*)\]\({_ELSEWHERE}[^)]*\)", r"\1", without_pictures)
