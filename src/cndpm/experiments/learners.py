"""Learners by name: those of the package, one's own as ``package.module:Class``, models of scikit-learn and river.

Those of the package are data: ``learners.toml`` beside this file.
"""

from __future__ import annotations

import tomllib
from collections import UserDict
from importlib.resources import files
from typing import TYPE_CHECKING, Any, NamedTuple

from cndpm.names import ObjectNameError, UnknownNameError, is_object_name, load_object, object_name

if TYPE_CHECKING:
    from cndpm.learner import Learner

__all__ = ["LEARNERS", "learner_class"]


class _Known(NamedTuple):
    """Where a learner is, and a line about it."""

    path: str
    summary: str


class Learners(UserDict[str, Any]):
    """Learners by name; a class is imported when it is asked for."""

    def __getitem__(self, name: str) -> type[Learner]:
        found = self.data[name]
        return load_object(found.path) if isinstance(found, _Known) else found  # type: ignore[no-any-return]

    def summaries(self) -> dict[str, str]:
        """Returns a line about each."""
        return {name: found.summary for name, found in self.data.items()}


_TABLE = tomllib.loads(files("cndpm.experiments").joinpath("learners.toml").read_text(encoding="utf-8"))
LEARNERS = Learners({name: _Known(**facts) for name, facts in _TABLE.items()})
"""Names and classes, in the order of the documentation."""


def learner_class(name: str) -> type[Learner]:
    """Returns the learner of this name; imports the module of one of one's own.

    Args:
        name: A key of :data:`LEARNERS`, ``package.module:Class``, or ``sklearn:...`` and ``river:...`` for models of
            others (:mod:`cndpm.baselines.others`).

    Raises:
        UnknownNameError: There is no learner of this name; the nearest names are suggested.
        ObjectNameError: The class cannot be imported, or is no complete learner.
    """
    if name.startswith(("sklearn:", "river:")):
        from cndpm.baselines.others import others_learner

        return others_learner(name)
    if is_object_name(name):
        from cndpm.learner import Learner

        found: type[Learner] = load_object(name, Learner)
        missing = sorted(getattr(found, "__abstractmethods__", ()))
        missing = missing if hasattr(found, "Settings") else ["Settings", *missing]
        if missing:
            raise ObjectNameError(
                f"{name} is no complete learner: it has no {', '.join(missing)}. Write them, or derive the class from "
                "one that has them; `cndpm.checks.check_learner` checks the rest."
            )
        return found
    if name not in LEARNERS:
        raise UnknownNameError("learner", name, [*LEARNERS, "package.module:Class"])
    return LEARNERS[name]


def learner_name(learner_class: type[Learner]) -> str:
    """Returns the name that a record gives to a learner: the registered one, or ``package.module:Class``."""
    path, known = object_name(learner_class), LEARNERS.data.items()
    return next((name for name, one in known if one is learner_class or getattr(one, "path", "") == path), path)


def shown_learner(name: str) -> str:
    """Returns the name of a learner as a person reads it: models of other libraries go by their class.

    Example:
        >>> shown_learner("river:river.forest.ARFClassifier"), shown_learner("der++")
        ('ARFClassifier (river)', 'der++')
    """
    library, _, path = name.partition(":")
    return f"{path.replace(':', '.').rpartition('.')[2]} ({library})" if library in ("sklearn", "river") else name
