"""The answer of `explain`: for every row, which expert answered, how sure it was, and how new the row is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from html import escape
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["Explanation"]


@dataclass(frozen=True)
class Explanation:
    """Explains answers, one entry for each of n rows.

    Attributes:
        expert: The expert most probably responsible, (n,); -1 where it is the provisional model of samples that wait in
            the memory, and before anything was learned.
        expert_proba: The probability that it is responsible, (n,).
        prediction: What `predict` answers, (n,), or (n, n_outputs) for several targets.
        novelty: How new the row is, (n,): the negative log of the share of known rows that look at least as strange.
        proba: The probability of the label, (n,); of classifiers.
        std: The standard deviation of the target, (n,) or (n, n_outputs); of regressors.
        log_density: The log density of the row, (n,); of densities of x itself.

    Example:
        >>> from cndpm import CNDPMClassifier
        >>> X = np.random.default_rng(0).normal(size=(200, 2))
        >>> model = CNDPMClassifier(random_state=0).fit(X, X[:, 0] > 0)
        >>> answer = model.explain([[2.0, 0.0], [2.0, 9.0]])
        >>> bool(answer.prediction[0]), answer.expert.tolist(), (answer.novelty > 5).tolist()
        (True, [0, 0], [False, True])
        >>> list(answer.columns())
        ['expert', 'expert_proba', 'prediction', 'novelty', 'proba']
    """

    expert: NDArray[np.int64]
    expert_proba: NDArray[np.float64]
    prediction: NDArray[Any]
    novelty: NDArray[np.float64]
    proba: NDArray[np.float64] | None = None
    std: NDArray[np.float64] | None = None
    log_density: NDArray[np.float64] | None = None

    def __len__(self) -> int:
        return len(self.expert)

    def columns(self) -> dict[str, NDArray[Any]]:
        """Returns the fields that are there by name, as `pandas.DataFrame` takes them."""
        named = {field.name: getattr(self, field.name) for field in fields(self)}
        return {name: values for name, values in named.items() if values is not None}


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
