"""Shows a fitted mixture in a notebook: its experts, how much each has learned, and the samples in the memory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
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


def mixture_html(
    title: str,
    counts: Sequence[float],
    *,
    memory: tuple[int, int],
    facts: Mapping[str, object] | None = None,
    labels: Sequence[str] | None = None,
) -> str:
    """Returns a small HTML table of each expert's samples, in which every text is escaped.

    `memory` are the samples that wait and its capacity, `facts` further lines, `labels` a note per expert.
    """
    if labels is not None and len(labels) != len(counts):
        raise ValueError(f"labels has one note per expert; got {len(labels)} for {len(counts)} experts")
    size, capacity = memory
    n = len(counts)
    head = f"{escape(title)}: {n} expert{'' if n == 1 else 's'}, {size} of {capacity} samples in the memory"
    header = "<tr><th>expert</th>" + ("<th>notes</th>" if labels else "") + "<th>samples</th><th>share</th></tr>"
    total = sum(counts) or 1.0
    rows = [_row(k, counts[k], total, None if labels is None else labels[k]) for k in range(min(n, _MAX_EXPERTS))]
    if n > _MAX_EXPERTS:
        rows.append(f"<tr><td>and {n - _MAX_EXPERTS} more</td><td></td><td></td></tr>")
    lines = [f"<div>{escape(str(name))}: {escape(str(value))}</div>" for name, value in (facts or {}).items()]
    table = f"<table><caption>{head}</caption>{header if n else ''}{''.join(rows)}</table>"
    return f'<style>{_STYLE}</style><div class="cndpm">{table}{"".join(lines)}</div>'


def _row(k: int, count: float, total: float, label: str | None) -> str:
    note = "" if label is None else f"<td>{escape(label)}</td>"
    share = 100 * count / total
    bar = f'<i style="width:{share / 25:.2f}em" role="presentation"></i>'
    return f"<tr><td>{k + 1}</td>{note}<td>{count:,.0f}</td><td>{bar} {share:.0f} %</td></tr>"
