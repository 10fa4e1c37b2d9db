"""Banks asked with plain tensors, as tests hold them."""

from typing import Any

from torch import Tensor

from cndpm.experts.bank import Bank
from cndpm.experts.chunks import Samples
from cndpm.model.settings import CNDPMSettings
from cndpm.model.settings.facts import Facts

__all__ = [
    "found",
    "learn",
    "log_density",
    "log_joint",
    "log_leave_one_out",
    "log_new",
    "make_bank",
    "n_experts",
    "predictive",
]


def make_bank(settings: CNDPMSettings, **facts: Any) -> Bank:
    """Makes the bank that settings describe."""
    parts = {name: facts.pop(name) for name in ("density", "predictor", "feature_map") if name in facts}
    return settings.experts.build(Facts(settings.target, settings.n_outputs, **facts), **parts)


def n_experts(bank: Bank) -> int:
    """K."""
    return len(bank.counts)


def log_joint(bank: Bank, x: Tensor, y: Tensor | None) -> Tensor:
    """Returns log p(x, y | k) as routing sees it, (B, K), without the experts' counts."""
    return bank.evidence(Samples(x), y).log_known - bank.counts.log()


def log_new(bank: Bank, x: Tensor, y: Tensor | None) -> Tensor:
    """Returns log p(x, y | new), (B,)."""
    return bank.evidence(Samples(x), y).log_new


def log_leave_one_out(bank: Bank, x: Tensor, y: Tensor | None) -> Tensor | None:
    """Returns log p(x_i, y_i | the others), (M,)."""
    return bank.log_leave_one_out(Samples(x), y)


def log_density(bank: Bank, x: Tensor, *, exact: bool = True) -> Tensor:
    """Returns log p(x | k), (B, K)."""
    return bank.log_density(Samples(x), exact=exact)


def predictive(bank: Bank, x: Tensor, *, exact: bool = True) -> Tensor:
    """Returns p(y | x, k), (B, K, ...)."""
    return bank.predictive(Samples(x), exact=exact)


def found(bank: Bank, x: Tensor, y: Tensor | None, *, max_steps: int = 100) -> None:
    """Makes an expert of a memory (M, ...), trained to the end."""
    bank.found(Samples(x), y)
    while bank.train(max_steps) < 1:
        pass


def learn(bank: Bank, x: Tensor, y: Tensor | None, responsibilities: Tensor) -> None:
    """Teaches a batch with responsibilities (B, K) of any precision."""
    bank.learn(Samples(x), y, responsibilities.double())
