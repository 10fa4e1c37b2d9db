"""Numbers as they are printed: where they stand in a text, and which values are printed as one of them.

A printed number has a decimal point or a unit (%, s, ms, MiB, M and the like) and stands outside of code and of the
tables that ``figures`` writes. Behind a number, M and K are millions and thousands, and GiB may be 1,024 MiB.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass

__all__ = ["Printed", "places_of", "printed_in"]

_WRITTEN = re.compile(r"<!-- figures: .*?<!-- end -->", re.DOTALL)
_CODE = re.compile(r"^```[\s\S]*?^```|^ {4,}\S.*$|`[^`\n]*`|\]\([^)]*\)|(?:torch|Python) \d+\.\d+", re.MULTILINE)
_UNITS = r"[MK]\b| ?%| (?:per cent|s|ms|seconds|microseconds|KiB|MiB|GiB)\b"
_NUMBER = re.compile(rf"(?<![\w.,])(\d[\d,]*\.\d+|\d[\d,]*(?={_UNITS}))(?![\w.]*\.\d)(M|K| GiB)?")
_SCALES = {"M": (1e-6,), "K": (1e-3,), " GiB": (1.0, 1 / 1024), "": (1.0,)}


@dataclass(frozen=True)
class Printed:
    """A number as it is printed.

    Attributes:
        text: The number without its unit.
        scales: A value times one of these is what is printed.

    Example:
        >>> Printed("19.0", (1e-6,)).is_in([18_975_759.0])
        True
    """

    text: str
    scales: tuple[float, ...] = (1.0,)

    @property
    def value(self) -> float:
        """The number."""
        return float(self.text.replace(",", ""))

    @property
    def half(self) -> float:
        """Half a unit of the last digit, and a little for rounding."""
        return float(0.5 * 10 ** -len(self.text.partition(".")[2])) * (1 + 1e-6)

    def is_in(self, values: Sequence[float]) -> bool:
        """Returns whether one of some sorted values is printed so."""
        low, high = self.value - self.half, self.value + self.half
        return any(bisect_left(values, low / scale) < bisect_right(values, high / scale) for scale in self.scales)

    def printed(self, value: float) -> str:
        """Returns another value with as many digits, in the unit that is nearest to this number.

        Example:
            >>> Printed("19.0", (1e-6,)).printed(1_234_567_890.0)
            '1,234.6'
        """
        nearest = min((scale * value for scale in self.scales), key=lambda scaled: abs(scaled - self.value))
        return f"{nearest:,.{len(self.text.partition('.')[2])}f}"


def places_of(text: str) -> list[tuple[int, Printed]]:
    """Returns where numbers begin in a text, and the numbers, in order."""
    read = _CODE.sub(_blank, _WRITTEN.sub(_blank, text))
    return [(found.start(), Printed(found[1], _SCALES[found[2] or ""])) for found in _NUMBER.finditer(read)]


def printed_in(text: str) -> list[Printed]:
    """Returns the numbers of a text, each once, in order."""
    return list(dict.fromkeys(number for _, number in places_of(text)))


def _blank(found: re.Match[str]) -> str:
    """Returns as many blanks, on as many lines."""
    return re.sub(r"[^\n]", " ", found[0])
