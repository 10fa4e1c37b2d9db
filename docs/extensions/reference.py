"""Writes the pages of the API reference: one for each package, with every public name of its modules.

Public is what a module, or a package around it, names in `__all__`. A public name without a docstring is a warning,
and so ends a strict build.
"""

import ast
from collections.abc import Iterator
from pathlib import Path

from sphinx.application import Sphinx
from sphinx.util import logging

__all__ = ["all_names", "public_names", "setup", "write_reference"]

SOURCE = Path(__file__).parents[2] / "src"
PAGES = Path(__file__).parents[1] / "reference"
FIRST = ("estimators", "", "streams", "datasets", "model", "model.settings", "mixture", "experts", "experiments")
"""The packages that come first; all others follow in the order of their names."""
OPENING = ("classifier", "regressor", "density")
"""The modules that come first on their page; all others follow in the order of their names."""
COMMANDS = "cli"
"""The room of the command line, whose functions are commands and not called from Python."""

logger = logging.getLogger(__name__)


def write_reference(folder: Path = PAGES) -> list[Path]:
    """Writes the pages and a table of contents; pages that have not changed keep their time.

    Args:
        folder: Where to write them.
    """
    packages = sorted((file.parent for file in _packages()), key=_rank)
    pages = {f"{_dotted(package)}.rst": _page(package) for package in packages}
    listed = "\n".join(f"   {name.removesuffix('.rst')}" for name in pages)
    pages["index.rst"] = f"API reference\n=============\n\n{_OPENING}\n.. toctree::\n   :maxdepth: 1\n\n{listed}\n"
    folder.mkdir(exist_ok=True)
    for old in set(folder.glob("*.rst")) - {folder / name for name in pages}:
        old.unlink()
    for name, text in pages.items():
        if not (folder / name).exists() or (folder / name).read_text() != text:
            (folder / name).write_text(text)
    return [folder / name for name in pages]


_OPENING = """\
Most programs need one of three classes: :class:`~cndpm.estimators.classifier.CNDPMClassifier`,
:class:`~cndpm.estimators.regressor.CNDPMRegressor` and :class:`~cndpm.estimators.density.CNDPMDensity`; and, for
experiments, :mod:`cndpm.streams` and :mod:`cndpm.experiments`. Below is every public name, room by room: what a module
lists in ``__all__``. The test suite runs every example.
"""


def public_names(file: Path) -> list[tuple[str, bool]]:
    """Returns the public names that a module defines itself, each with whether it has a docstring."""
    body = ast.parse(file.read_text()).body
    packages = [folder / "__init__.py" for folder in file.parents if folder.is_relative_to(SOURCE / "cndpm")]
    public = {name for one in [file, *packages] for name in _listed(one)}
    found = []
    for node, after in zip(body, [*body[1:], None], strict=True):
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            found.append((node.name, ast.get_docstring(node) is not None))
        else:
            is_text = isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant)
            found += [(name, is_text) for name in _targets(node)]
    return [(name, documented) for name, documented in dict(found).items() if name in public]


def all_names() -> dict[str, bool]:
    """Returns the public names of all modules, but the command line's, each with whether it has a docstring."""
    return {
        f"{_dotted(file)}.{name}": documented
        for file in [*_modules(SOURCE / "cndpm", deep=True), *_packages()]
        for name, documented in public_names(file)
    }


def _listed(file: Path) -> list[str]:
    """Returns what `__all__` lists."""
    body = ast.parse(file.read_text()).body
    return next((ast.literal_eval(node.value) for node in body if _targets(node) == ["__all__"]), [])  # type: ignore[attr-defined]


def _targets(node: ast.stmt) -> list[str]:
    targets = node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
    single = [name for target in targets for name in (target.elts if isinstance(target, ast.Tuple) else [target])]
    return [name.id for name in single if isinstance(name, ast.Name)]


def _modules(package: Path, *, deep: bool = False) -> list[Path]:
    found = package.rglob("*.py") if deep else package.glob("*.py")
    hidden = ("__init__.py", "__main__.py")
    shown = [file for file in found if file.name not in hidden and COMMANDS not in file.parts]
    return sorted(shown, key=lambda file: (OPENING.index(file.stem) if file.stem in OPENING else len(OPENING), file))


def _packages() -> list[Path]:
    return [file for file in (SOURCE / "cndpm").rglob("__init__.py") if COMMANDS not in file.parts]


def _dotted(path: Path) -> str:
    return ".".join(path.relative_to(SOURCE).with_suffix("").parts).removesuffix(".__init__")


def _rank(package: Path) -> tuple[int, str]:
    name = _dotted(package).removeprefix("cndpm").removeprefix(".")
    return (FIRST.index(name) if name in FIRST else len(FIRST)), name


def _page(package: Path) -> str:
    name = _dotted(package)
    lines = [name, "=" * len(name), "", *_documented(package / "__init__.py")]
    for file in _modules(package):
        lines += [file.stem, "-" * len(file.stem), "", *_documented(file)]
    return "\n".join(lines) + "\n"


def _documented(file: Path) -> Iterator[str]:
    public = [name for name, _ in public_names(file)]
    yield f".. automodule:: {_dotted(file)}"
    yield from (
        [f"   :members: {', '.join(public)}", "   :show-inheritance:", ""] if public else ["   :no-members:", ""]
    )


def _prepare(app: Sphinx) -> None:
    write_reference()
    for name in [name for name, documented in all_names().items() if not documented]:
        logger.warning("%s is public and has no docstring", name)


def setup(app: Sphinx) -> dict[str, bool]:
    """Writes the pages before sources are looked for."""
    app.connect("builder-inited", _prepare)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
