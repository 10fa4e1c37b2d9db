"""Builds wheel and sdist, and tries the wheel where nothing else is installed: a smoke test, a newcomer's pages.

python -m release build                      # dist/*.tar.gz, and dist/*.whl made of it
python -m release try --newest               # the newest dependencies, but for what --pin names
python -m release try --oldest               # the oldest that pyproject.toml allows, but for what --pin names
"""

from __future__ import annotations

import argparse
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
import venv
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

__all__ = ["build", "follow_pages", "main", "oldest", "try_wheel"]

ROOT = Path(__file__).parents[1]
DIST = ROOT / "dist"
EXTRAS = ("", "cli", "all")
"""What is installed, in this order: the smoke test of each begins when it is there."""
IN_ALL = ("backbones", "fast", "river", "serve")
"""Extras in `all` beside the command line."""


def build() -> list[Path]:
    """Builds the sdist, and the wheel from the sdist, so that what is missing in the one is noticed in the other."""
    shutil.rmtree(DIST, ignore_errors=True)
    subprocess.run([sys.executable, "-m", "build", "--outdir", DIST, ROOT], check=True)
    return sorted(DIST.iterdir())


def oldest(project: dict[str, object], extras: Iterable[str] = ("", "cli")) -> list[str]:
    """Returns the dependencies of a project table with their lower bounds as exact versions.

    Args:
        project: The table `project` of pyproject.toml.
        extras: Extras whose dependencies are counted too; "" is the package itself.

    Example:
        >>> oldest({"dependencies": ["numpy>=1.26"], "optional-dependencies": {"cli": ["rich>=13.7"]}})
        ['numpy==1.26', 'rich==13.7']
    """
    optional: dict[str, list[str]] = project["optional-dependencies"]  # type: ignore[assignment]
    bounds: dict[str, list[str]] = {"": list(project["dependencies"]), **optional}  # type: ignore[call-overload]
    needed = [one for extra in extras for one in bounds[extra]]
    found = [re.fullmatch(r"([\w.-]+)>=([\w.]+)", one) for one in needed]
    return [f"{match[1]}=={match[2]}" for match in found if match]


def try_wheel(wheel: Path, constraints: Mapping[str, Sequence[str]]) -> None:
    """Installs a wheel in an empty environment, step by step, and runs the smoke test after each step.

    Args:
        wheel: The wheel.
        constraints: For each of :data:`EXTRAS`, versions that dependencies must have.
    """
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        venv.create(home / "env", with_pip=True)
        python = home / "env" / ("Scripts" if sys.platform == "win32" else "bin") / "python"
        (home / "empty").mkdir()
        for extra in EXTRAS:
            (home / "constraints.txt").write_text("\n".join(constraints[extra]) + "\n")
            wanted = f"cndpm[{extra}] @ {wheel.resolve().as_uri()}" if extra else str(wheel.resolve())
            install = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
            subprocess.run([*install, "--constraint", home / "constraints.txt", wanted], check=True)
            smoke = [str(python), "-W", "error::DeprecationWarning:cndpm", str(Path(__file__).with_name("smoke.py"))]
            subprocess.run([*smoke, extra or "core"], check=True, cwd=home / "empty")
        follow_pages(python, home / "pages")
        subprocess.run([python, "-m", "pip", "check"], check=True)
        subprocess.run([python, "-m", "pip", "list", "--format=freeze"], check=True)


def follow_pages(python: Path, folder: Path) -> None:
    """Follows a newcomer's pages as printed, with what is installed and nothing of this checkout but the pages.

    Args:
        python: Of an environment that has the package.
        folder: Where the pages and their test are copied to; it must not exist.
    """
    shutil.copytree(ROOT / "docs", folder / "docs", ignore=shutil.ignore_patterns("results", "notebooks"))
    (folder / "tests" / "docs").mkdir(parents=True)
    for name in ("README.md", "tests/docs/test_newcomer.py"):
        shutil.copy(ROOT / name, folder / name)
    (folder / "pytest.ini").write_text("[pytest]\nmarkers = slow\n")
    install = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    subprocess.run([*install, "pandas", "pytest"], check=True)
    subprocess.run([python, "-m", "pytest", "-q", "tests"], check=True, cwd=folder)


def main() -> None:
    """Carries out one command."""
    parser = argparse.ArgumentParser(prog="python -m release", description=__doc__)
    parser.add_argument("command", choices=("build", "try"))
    bounds = parser.add_mutually_exclusive_group()
    bounds.add_argument("--newest", action="store_true", help="whatever the registry has (the default)")
    bounds.add_argument("--oldest", action="store_true", help="the lower bounds of pyproject.toml")
    parser.add_argument("--pin", action="append", default=[], metavar="NAME==VERSION", help="wins over either")
    given = parser.parse_args()
    if given.command == "build":
        print("\n".join(map(str, build())))
        return
    wheels = list(DIST.glob("*.whl"))
    if len(wheels) != 1:
        sys.exit(f"expected one wheel in {DIST}, found {len(wheels)}. Run `python -m release build` first.")
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    # Of `all` its own bounds alone: river asks for a newer scipy than the package does.
    groups = {"": ("", "cli"), "cli": ("", "cli"), "all": IN_ALL}
    bounds_wanted = {extra: oldest(project, names) if given.oldest else [] for extra, names in groups.items()}
    try_wheel(wheels[0], {extra: _pinned(wanted, given.pin) for extra, wanted in bounds_wanted.items()})


def _pinned(wanted: Sequence[str], pins: Sequence[str]) -> list[str]:
    """Returns exact versions, of which pins win."""
    names = [pin.partition("==")[0] for pin in pins]
    return [*(one for one in wanted if one.partition("==")[0] not in names), *pins]


if __name__ == "__main__":
    main()
