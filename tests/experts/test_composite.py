"""Banks made of two banks: both have the same experts at any time, and the one that chooses decides."""

import pytest
import torch

from asking import found, log_joint, log_leave_one_out, log_new, make_bank, n_experts
from cndpm.experts.bank import Bank
from cndpm.experts.chunks import Samples
from cndpm.model.settings import CNDPMSettings

SELECTED = {
    "experts": "neural",
    "target": "none",
    "selection": "gaussian",
    "features": "identity",
    "likelihood": "gaussian",
    "hidden": 8,
    "hidden_growth": 4,
    "latent_dim": 2,
    "n_latent_samples": 2,
}
COMBINED = {"experts": "gaussian", "classifier": "both", "features": "identity"}


def make(kind: str, *, steps: int) -> tuple[Bank, Bank, Bank]:
    """A bank, its chooser and its companion."""
    selected, companions = SELECTED | {"density_sleep_steps": steps}, {"hidden": 8, "sleep_steps": steps}
    own = COMBINED | {"companions": companions} if kind == "combined" else selected
    bank = make_bank(CNDPMSettings(**own), input_shape=(4,), n_classes=None, seed=0, device=torch.device("cpu"))
    if kind == "selected":
        return bank, bank.selector, bank.describer
    bank.admit(2)
    return bank, bank.gaussians, bank.networks


def memory(kind: str, centre: float) -> tuple[torch.Tensor, torch.Tensor | None]:
    x = centre + torch.randn(40, 4, generator=torch.Generator().manual_seed(1))
    return x, torch.arange(40) % 2 if kind == "combined" else None


@pytest.mark.parametrize("kind", ["combined", "selected"])
def test_an_expert_counts_once_both_banks_have_it(kind):
    bank, chooser, companion = make(kind, steps=25)
    for k in range(2):
        x, y = memory(kind, 10.0 * k)
        bank.found(Samples(x), y)
        progress = []
        while (done := bank.train(10)) < 1:
            assert bank.train(0) < 1
            assert chooser.train(0) < 1
            assert n_experts(bank) == n_experts(chooser) == n_experts(companion) == k
            progress.append(done)
        assert progress == sorted(set(progress))
        assert len(progress) == 2
        assert n_experts(bank) == n_experts(chooser) == n_experts(companion) == k + 1
        assert bank.train(0) == chooser.train(0) == companion.train(0) == 1


@pytest.mark.parametrize("kind", ["combined", "selected"])
def test_a_companion_without_steps_to_take_is_ready_at_the_first_step(kind):
    bank, _, companion = make(kind, steps=0)
    x, y = memory(kind, 0.0)
    bank.found(Samples(x), y)
    assert bank.train(0) < 1
    assert n_experts(bank) == 0
    assert bank.train(1) == 1.0
    assert n_experts(bank) == n_experts(companion) == 1


@pytest.mark.parametrize("kind", ["combined", "selected"])
def test_the_chooser_decides_and_what_is_kept_is_both(kind):
    bank, chooser, companion = make(kind, steps=5)
    for centre in (0.0, 10.0):
        found(bank, *memory(kind, centre))
    x, y = memory(kind, 10.0)
    assert torch.equal(log_joint(bank, x, y), log_joint(chooser, x, y))
    assert torch.equal(log_new(bank, x, y), log_new(chooser, x, y))
    assert torch.equal(log_leave_one_out(bank, x, y), log_leave_one_out(chooser, x, y))
    kept, of_chooser, of_companion = (each.footprint() for each in (bank, chooser, companion))
    assert kept.n_parameters == of_chooser.n_parameters + of_companion.n_parameters
    assert kept.n_numbers_kept >= of_chooser.n_numbers_kept + of_companion.n_numbers_kept
    bank.remove(0, into=1)
    assert n_experts(bank) == n_experts(chooser) == n_experts(companion) == 1
