"""The size of the house: lines, public names, constants, file names, contracts, concepts; words of the documentation.

    python -m benchmarks.house [--root FOLDER]

Executable lines are lines that are neither blank, nor a comment, nor part of a docstring; continued lines count. A
function's size is all of its lines, signature and docstring included. A concept of a file is a name of the package
that the file defines in ``__all__`` or imports. A word is what a reader reads: what stands between spaces or bars and
has a letter or a digit, without comments and targets of links. ``tests/test_house.py`` keeps what was reached.
"""

from __future__ import annotations

import argparse
import ast
import re
import statistics
import tokenize
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from io import StringIO
from pathlib import Path

__all__ = ["CONTRACTS", "ROOMS_OF_CONSTANTS", "House", "Source", "n_words", "words_of_pages"]

ROOT = Path(__file__).parents[1]
ROOMS_OF_CONSTANTS = ("model", "experts", "mixture")
"""The rooms whose numbers decide an answer."""
CONTRACTS = (
    ("learner.py", "Learner"),
    ("experts/bank.py", "Bank"),
    ("experts/bank.py", "Merging"),
    ("streams/stream.py", "Stream"),
    ("experiments/monitor.py", "Monitor"),
    ("engines/engine.py", "Engine"),
)
"""Classes that somebody else may implement: file and name."""
_PAGES = ("*.md", ".github/**/*.md", "docs/**/*.md")
_UNREAD = re.compile(r"<!--[\s\S]*?-->|^\[[^]]+\]: \S+$|(?<=\])\([^)\s]*\)|^ *```.*$", re.MULTILINE)
"""Comments, targets of links, and what opens and closes code."""
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_SILENT = (tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER)


@dataclass(frozen=True)
class Source:
    """One module.

    Args:
        name: Its path within the package.
        text: What is written in it.

    Example:
        >>> Source("a.py", '__all__ = ["f"]\\n\\ndef f():\\n    "Says one."\\n    return 1\\n').public_names
        ('f',)
    """

    name: str
    text: str

    @cached_property
    def tree(self) -> ast.Module:
        """The parsed module."""
        return ast.parse(self.text)

    @property
    def n_lines(self) -> int:
        """All lines."""
        return len(self.text.splitlines())

    @cached_property
    def docstring_lines(self) -> frozenset[int]:
        """Lines that are part of a docstring, those after constants included."""
        texts = [node for node in ast.walk(self.tree) if isinstance(node, ast.Expr) and _is_text(node.value)]
        return frozenset(line for node in texts for line in range(node.lineno, (node.end_lineno or node.lineno) + 1))

    @cached_property
    def executable_lines(self) -> frozenset[int]:
        """Lines that carry code."""
        tokens = tokenize.generate_tokens(StringIO(self.text).readline)
        code = (token for token in tokens if token.type not in _SILENT)
        lines = frozenset(line for token in code for line in range(token.start[0], token.end[0] + 1))
        return lines - self.docstring_lines

    @cached_property
    def public_names(self) -> tuple[str, ...]:
        """What ``__all__`` lists."""
        for node in self.tree.body:
            if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
                return tuple(ast.literal_eval(node.value))
        return ()

    def function_sizes(self) -> Iterator[int]:
        """Yields the size of every function."""
        for node in ast.walk(self.tree):
            if isinstance(node, _FUNCTIONS):
                yield (node.end_lineno or node.lineno) - node.lineno + 1

    def numeric_constants(self) -> list[str]:
        """Returns the names in capitals that are assigned a number, or an expression of numbers, at the top level."""
        found = []
        for node in self.tree.body:
            targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
            names = [target.id for target in targets if isinstance(target, ast.Name)]
            value = getattr(node, "value", None)
            if names and names[0].isupper() and value is not None and _is_numeric(value):
                found += names
        return found

    def concepts(self) -> frozenset[str]:
        """Returns the names of the package that one meets in this file."""
        imported = (node for node in ast.walk(self.tree) if isinstance(node, ast.ImportFrom))
        names = [alias.name for node in imported if (node.module or "").startswith("cndpm") for alias in node.names]
        return frozenset((*names, *self.public_names))

    def members(self, class_name: str) -> list[str]:
        """Returns the public members of a class that are defined in its own body."""
        classes = [n for n in self.tree.body if isinstance(n, ast.ClassDef) and n.name == class_name]
        names = [_member(node) for cls in classes for node in cls.body]
        return sorted({name for name in names if name and not name.startswith("_")})


def _is_text(value: ast.expr) -> bool:
    return isinstance(value, ast.Constant) and isinstance(value.value, str)


def _member(node: ast.stmt) -> str:
    if isinstance(node, _FUNCTIONS):
        return node.name
    if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
        return node.target.id
    return ""


def _is_numeric(value: ast.expr) -> bool:
    parts = list(ast.walk(value))
    allowed = (ast.Constant, ast.UnaryOp, ast.BinOp, ast.Tuple, ast.operator, ast.unaryop, ast.expr_context)
    numbers = [p for p in parts if isinstance(p, ast.Constant) and type(p.value) in (int, float)]
    return bool(numbers) and all(isinstance(part, allowed) for part in parts)


class House:
    """All modules of the package.

    Args:
        sources: The modules.

    Example:
        >>> House([Source("a.py", "A = 1\\n"), Source("b/a.py", "")]).repeated_file_names()
        {'a.py': 2}
    """

    def __init__(self, sources: Sequence[Source]) -> None:
        self.sources = tuple(sources)

    @staticmethod
    def of(root: Path) -> House:
        """Reads the package in a project's folder."""
        package = root / "src" / "cndpm"
        files = sorted(package.rglob("*.py"))
        return House([Source(file.relative_to(package).as_posix(), file.read_text()) for file in files])

    def sizes(self) -> dict[str, int]:
        """Returns the counts that the test keeps."""
        functions = [size for source in self.sources for size in source.function_sizes()]
        deciding = [source for source in self.sources if source.name.split("/")[0] in ROOMS_OF_CONSTANTS]
        return {
            "modules": len(self.sources),
            "lines": sum(source.n_lines for source in self.sources),
            "executable lines": sum(len(source.executable_lines) for source in self.sources),
            "docstring lines": sum(len(source.docstring_lines) for source in self.sources),
            "functions": len(functions),
            "function median": int(statistics.median(functions)),
            "function 90 %": int(statistics.quantiles(functions, n=10)[-1]),
            "function longest": max(functions),
            "public names": sum(len(source.public_names) for source in self.sources),
            "numeric constants": sum(len(source.numeric_constants()) for source in deciding),
            "file names used twice": len(self.repeated_file_names()),
        }

    def repeated_file_names(self) -> dict[str, int]:
        """Returns file names that occur in more than one folder."""
        names = Counter(Path(source.name).name for source in self.sources)
        return {name: n for name, n in sorted(names.items()) if n > 1 and name != "__init__.py"}

    def members(self) -> dict[str, int]:
        """Returns the number of members of every contract."""
        by_name = {source.name: source for source in self.sources}
        return {cls: len(by_name[file].members(cls)) for file, cls in CONTRACTS if file in by_name}

    def rooms(self) -> dict[str, int]:
        """Returns the lines of every room, the largest first."""
        lines: Counter[str] = Counter()
        for source in self.sources:
            lines[source.name.split("/")[0].removesuffix(".py")] += source.n_lines
        return dict(lines.most_common())

    def concepts(self) -> dict[str, int]:
        """Returns the number of concepts of every file, the richest first."""
        counts = {source.name: len(source.concepts()) for source in self.sources}
        return dict(sorted(counts.items(), key=lambda pair: -pair[1]))


def n_words(text: str) -> int:
    """Returns the number of words that a reader of a page reads, its tables and code included.

    Args:
        text: Of the page, in Markdown.

    Example:
        >>> n_words("| [two words](page.md#section) | -- | <!-- figures: none --> 93.2 |")
        3
        >>> n_words("```python\\nx = 1\\n```\\nOne more [word][w].\\n\\n[w]: https://example.org\\n")
        5
    """
    return sum(any(letter.isalnum() for letter in part) for part in re.split(r"[\s|]+", _UNREAD.sub(" ", text)))


def words_of_pages(root: Path) -> dict[str, int]:
    """Returns the words of every page that is written by hand, the longest first.

    Args:
        root: The project's folder.
    """
    paths = {path for pattern in _PAGES for path in root.glob(pattern) if "reference" not in path.parts}
    counts = {path.relative_to(root).as_posix(): n_words(path.read_text(encoding="utf-8")) for path in paths}
    return dict(sorted(counts.items(), key=lambda pair: -pair[1]))


def _print(title: str, counts: dict[str, int], limit: int = 1000) -> None:
    print(f"\n{title}")
    for name, count in list(counts.items())[:limit]:
        print(f"{count:8,}  {name}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--root", type=Path, default=ROOT, help="the project's folder")
    root: Path = parser.parse_args().root
    house, words = House.of(root), words_of_pages(root)
    _print("Sizes", house.sizes())
    _print("Members of contracts", house.members())
    _print("Lines by room", house.rooms())
    _print("Concepts by file", house.concepts(), 20)
    _print("File names used twice", house.repeated_file_names())
    _print("Words of documentation", {"all pages": sum(words.values()), **words})
