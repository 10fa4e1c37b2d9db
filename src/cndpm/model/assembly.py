"""Builds the bank of experts that the settings describe."""

from __future__ import annotations

from typing import Any

from cndpm.experts.bank import Bank
from cndpm.model.settings import CNDPMSettings, CustomDensity, CustomPredictor

__all__ = ["CustomDensity", "CustomPredictor", "make_bank"]


def make_bank(settings: CNDPMSettings, **facts: Any) -> Bank:
    """Makes a bank without experts; `facts` are those of `settings.experts.build` that settings do not hold."""
    return settings.experts.build(target=settings.target, n_outputs=settings.n_outputs, **facts)
