"""What to say when a name is not known: the nearest ones that are."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches

__all__ = ["UnknownNameError", "nearest_names"]


class UnknownNameError(ValueError):
    """A dataset, scenario or field was asked for by a name that does not exist; the message suggests those that do.

    Args:
        kind: What was asked for ("dataset", "scenario", ...).
        name: The name received.
        names: The names that exist.
    """

    def __init__(self, kind: str, name: str, names: Iterable[str]) -> None:
        known = tuple(names)
        near = nearest_names(name, known)
        hint = f"Did you mean {' or '.join(near)}?" if near else f"Known: {', '.join(known)}."
        super().__init__(f"there is no {kind} {name!r}. {hint}")
        self.name = name
        self.suggestions = near


def nearest_names(name: str, names: Iterable[str], *, n: int = 3) -> tuple[str, ...]:
    """Up to `n` of `names` that look like `name`, the nearest first.

    Example:
        >>> nearest_names("split-mnits", ["split-mnist", "split-cifar10", "digits"])[0]
        'split-mnist'
    """
    return tuple(get_close_matches(name.lower(), list(names), n=n, cutoff=0.6))
