"""Colours that people with any kind of colour vision can tell apart.

Up to seven things take the colours of Okabe and Ito (2008); more are ordered along cividis (Nuñez et al., 2018), and
told apart by their labels and, for lines, by their dashes.
"""

from __future__ import annotations

from matplotlib import colormaps
from matplotlib.colors import to_hex

__all__ = ["RAMP", "colour", "dashes"]

_DISTINCT = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#7F7F7F")
_DASHES = ("solid", "dashed", "dotted", "dashdot")

RAMP = "cividis"
"""The colour map of heat maps."""


def colour(i: int, n: int) -> str:
    """The colour of thing i of n, as #rrggbb."""
    return _DISTINCT[i] if n <= len(_DISTINCT) else to_hex(colormaps[RAMP](i / (n - 1)))


def dashes(i: int, n: int) -> str:
    """How line i of n is drawn."""
    return _DASHES[0] if n <= len(_DISTINCT) else _DASHES[i % len(_DASHES)]
