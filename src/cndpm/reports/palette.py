"""Colours that remain distinct with any kind of colour vision.

Up to seven items take the colours of Okabe and Ito (2008), up to fourteen also lighter versions of them; more are
ordered along cividis (Nuñez et al., 2018). Labels and, for lines, dashes distinguish them too.
"""

from __future__ import annotations

from matplotlib import colormaps
from matplotlib.colors import to_hex, to_rgb

_DISTINCT = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#7F7F7F")
_DASHES = ("solid", "dashed", "dotted", "dashdot")

RAMP = "cividis"
"""The colour map of heat maps."""


def colour(i: int, n: int) -> str:
    """Returns the colour number i of n, as #rrggbb."""
    if n > 2 * len(_DISTINCT):
        return to_hex(colormaps[RAMP](i / (n - 1)))
    red, green, blue = to_rgb(_DISTINCT[i % len(_DISTINCT)])
    if i < len(_DISTINCT):
        return to_hex((red, green, blue))
    return to_hex((0.45 * red + 0.55, 0.45 * green + 0.55, 0.45 * blue + 0.55))


def dashes(i: int, n: int) -> str:
    """Returns matplotlib's name of a line's style."""
    if n <= len(_DISTINCT):
        return _DASHES[0]
    return _DASHES[(i if n > 2 * len(_DISTINCT) else i // len(_DISTINCT)) % len(_DASHES)]
