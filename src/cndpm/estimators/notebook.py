"""Shows a fitted mixture in a notebook: its experts, how much each has learned, and the samples in the memory."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

_MAX_EXPERTS = 20
_STYLE = (
    ".cndpm{font:14px system-ui,sans-serif;max-width:32em}"
    ".cndpm table{border-collapse:collapse;width:100%}"
    ".cndpm caption{text-align:left;font-weight:600;padding:4px 0}"
    ".cndpm th,.cndpm td{padding:3px 8px;text-align:right;border-bottom:1px solid #8884}"
    ".cndpm th:first-child,.cndpm td:first-child{text-align:left}"
    ".cndpm i{display:inline-block;height:.6em;background:#0072b2;border-radius:2px}"
)


def mixture_html(title: str, counts: Sequence[float], *, memory: tuple[int, int]) -> str:
    """Returns a small HTML table of each expert's samples; `memory` are the samples that wait, and its capacity."""
    size, capacity = memory
    n, total = len(counts), sum(counts) or 1.0
    head = f"{escape(title)}: {n} expert{'' if n == 1 else 's'}, {size} of {capacity} samples in the memory"
    header = "<tr><th>expert</th><th>samples</th><th>share</th></tr>" if n else ""
    rows = [_row(k, count, 100 * count / total) for k, count in enumerate(counts[:_MAX_EXPERTS], start=1)]
    if n > _MAX_EXPERTS:
        rows.append(f"<tr><td>and {n - _MAX_EXPERTS} more</td><td></td><td></td></tr>")
    table = f"<table><caption>{head}</caption>{header}{''.join(rows)}</table>"
    return f'<style>{_STYLE}</style><div class="cndpm">{table}</div>'


def _row(number: int, count: float, share: float) -> str:
    bar = f'<i style="width:{share / 25:.2f}em" role="presentation"></i>'
    return f"<tr><td>{number}</td><td>{count:,.0f}</td><td>{bar} {share:.0f} %</td></tr>"
