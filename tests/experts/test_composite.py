"""Banks made of two banks: both have the same experts at any time, and the one that chooses decides."""

import pytest
import torch
from cndpm.model.assembly import make_bank

from cndpm.experts.bank import Bank
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
    bank.admit(torch.arange(2))
    return bank, bank.gaussians, bank.networks


def memory(kind: str, centre: float) -> tuple[torch.Tensor, torch.Tensor | None]:
    x = centre + torch.randn(40, 4, generator=torch.Generator().manual_seed(1))
    return x, torch.arange(40) % 2 if kind == "combined" else None


@pytest.mark.parametrize("kind", ["combined", "selected"])
def test_an_expert_counts_once_both_banks_have_it(kind):
    bank, chooser, companion = make(kind, steps=25)
    for k in range(2):
        bank.start_expert(*memory(kind, 10.0 * k))
        progress = []
        while not bank.train_expert(10):
            assert bank.in_training
            assert chooser.in_training
            assert bank.n_experts == chooser.n_experts == companion.n_experts == k
            progress.append(bank.training_progress())
        assert progress == sorted(set(progress))
        assert len(progress) == 2
        assert bank.n_experts == chooser.n_experts == companion.n_experts == k + 1
        assert not (bank.in_training or chooser.in_training or companion.in_training)


@pytest.mark.parametrize("kind", ["combined", "selected"])
def test_a_companion_without_steps_to_take_is_ready_when_none_are_granted(kind):
    bank, _, _ = make(kind, steps=0)
    bank.start_expert(*memory(kind, 0.0))
    assert bank.train_expert(0)
    assert bank.n_experts == 1


@pytest.mark.parametrize("kind", ["combined", "selected"])
def test_the_chooser_decides_and_what_is_kept_is_both(kind):
    bank, chooser, companion = make(kind, steps=5)
    for centre in (0.0, 10.0):
        bank.start_expert(*memory(kind, centre))
        while not bank.train_expert(100):
            pass
    x, y = memory(kind, 10.0)
    assert torch.equal(bank.log_joint(x, y), chooser.log_joint(x, y))
    assert torch.equal(bank.log_joint_new(x, y), chooser.log_joint_new(x, y))
    assert torch.equal(bank.log_leave_one_out(x, y), chooser.log_leave_one_out(x, y))
    assert bank.n_parameters == chooser.n_parameters + companion.n_parameters
    assert bank.n_numbers_kept >= chooser.n_numbers_kept + companion.n_numbers_kept
    bank.remove(0, into=1)
    assert bank.n_experts == chooser.n_experts == companion.n_experts == 1
