"""Completes tables of contents, and leads links to files of the repository's root to the pages that show them.

In a table of contents a line with a star stands for all pages that begin so and are not named elsewhere.

Sphinx has such lines too, but warns where one stands for nothing; here it keeps a place for pages to come. A star alone
stands for all pages that are left, so that none is out of reach.
"""

from pathlib import Path

from sphinx.application import Sphinx

__all__ = ["complete", "setup"]

DOCS = Path(__file__).parents[1]
FOLDERS = {"index": (".", "howto"), "results/index": (".",)}
"""For every page with such lines, the folders, seen from its own, whose pages it has to reach."""


ROOT_FILES = {
    "CHANGELOG.md": "changelog.md",
    "CODE_OF_CONDUCT.md": "conduct.md",
    "CONTRIBUTING.md": "contributing.md",
    "SECURITY.md": "reporting.md",
}
"""Files beside docs/, with the pages of docs/ that include them."""


def complete(contents: str, pages: list[str]) -> str:
    """Replaces lines that end with a star by the pages that they stand for.

    Args:
        contents: The text of a page with tables of contents.
        pages: The pages that it has to reach.

    Example:
        >>> complete("start\\ndrift*\\nriver*\\n*", ["start", "drift", "log"])
        'start\\ndrift\\nlog'
    """
    lines = contents.splitlines()
    left = [page for page in pages if page not in lines]
    empty: set[int] = set()
    for line in sorted(range(len(lines)), key=lambda i: lines[i] == "*"):  # a star alone takes what others left
        if _is_open(lines[line]):
            found = [page for page in left if page.startswith(lines[line][:-1])]
            left = [page for page in left if page not in found]
            lines[line] = "\n".join(found)
            empty |= set() if found else {line}
    return "\n".join(line for i, line in enumerate(lines) if i not in empty)


def _is_open(line: str) -> bool:
    return line.endswith("*") and " " not in line and not line.endswith("**")


def _read(app: Sphinx, name: str, content: list[str]) -> None:
    if name in FOLDERS:
        home = (DOCS / name).parent
        found = [path for folder in FOLDERS[name] for path in sorted((home / folder).glob("*.md"))]
        pages = [path.relative_to(home).with_suffix("").as_posix() for path in found if path.stem != "index"]
        content[0] = complete(content[0], pages)
    for file, page in ROOT_FILES.items():
        content[0] = content[0].replace(f"](../{file})", f"]({page})")


def setup(app: Sphinx) -> dict[str, bool]:
    """Completes the pages when they are read."""
    app.connect("source-read", _read)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
