"""Names and values of metrics as every table shows them."""

from __future__ import annotations

METRICS = {
    "accuracy": "accuracy (%)",
    "bits_per_dim": "bits/dim",
    "prequential_accuracy": "prequential (%)",
    "prequential_error": "mean abs. error",
    "prequential_bits_per_dim": "prequential bits/dim",
    "classifier_accuracy_init": "classifier, init (%)",
    "classifier_accuracy_final": "classifier, final (%)",
    "gating_accuracy": "gating (%)",
    "forgetting": "forgetting (%)",
    "n_experts": "experts",
    "n_parameters": "parameters",
    "n_numbers_kept": "numbers kept",
    "memory_samples": "in memory",
    "seconds": "time (s)",
}
"""Metrics in the order of their columns, with units."""


def format_count(n: float) -> str:
    """Writes a count as the paper prints it.

    Example:
        >>> format_count(478410), format_count(11173962), format_count(5)
        ('478K', '11.2M', '5')
    """
    for unit, size in (("G", 1e9), ("M", 1e6), ("K", 1e3)):
        if n >= size:
            return f"{n / size:.3g}{unit}"
    return f"{n:.4g}"


def format_value(metric: str, value: float | None, error: float | None = None) -> str:
    """Writes a value and its standard error as a table shows them; a dash where there is none."""
    if value is None or value != value:
        return "–"
    if metric in ("n_parameters", "n_numbers_kept"):
        return format_count(value)
    if metric == "n_experts" and not error and value == int(value):
        return f"{value:.0f}"
    digits = {
        "bits_per_dim": 4,
        "prequential_bits_per_dim": 4,
        "prequential_error": 3,
        "memory_samples": 0,
        "seconds": 1,
    }.get(metric, 2)
    return f"{value:.{digits}f}" + (f" ± {error:.{digits}f}" if error is not None else "")
