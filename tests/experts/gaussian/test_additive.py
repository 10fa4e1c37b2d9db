"""What Gaussian banks for labels and for targets do alike: found, remove, save."""

import pytest
import torch

from asking import found, log_joint, n_experts
from cndpm.experts.chunks import Samples
from cndpm.experts.features import IdentityFeatures
from cndpm.experts.gaussian import GaussianBank, GaussianRegressionBank
from cndpm.experts.gaussian.additive import AdditiveBank
from cndpm.state import StateError, load_state, save_state

KINDS = ["shared", "own", "regression"]


def make(kind: str) -> AdditiveBank:
    if kind == "regression":
        return GaussianRegressionBank(IdentityFeatures())
    return GaussianBank(IdentityFeatures(), n_classes=2, covariance=kind)


def memory(kind: str, centre: float) -> tuple[torch.Tensor, torch.Tensor]:
    x = centre + torch.randn(40, 3, generator=torch.Generator().manual_seed(1))
    return x, x.sum(dim=1, keepdim=True) if kind == "regression" else torch.arange(40) % 2


def begin(bank: AdditiveBank, x: torch.Tensor, y: torch.Tensor) -> None:
    bank.found(Samples(x), y)


def founded(kind: str, *centres: float) -> AdditiveBank:
    bank = make(kind)
    for centre in centres:
        found(bank, *memory(kind, centre))
    return bank


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("n_before", [0, 1])
def test_a_memory_that_waited_in_a_file_becomes_the_same_expert(tmp_path, kind, n_before):
    whole, restored = founded(kind, *range(n_before)), make(kind)
    begin(whole, *memory(kind, 10.0))
    save_state(tmp_path / "state", whole.state_dict(), kind="bank")
    restored.load_state_dict(load_state(tmp_path / "state", kind="bank"))
    for bank in (whole, restored):
        assert bank.train(0) == 0.0
        assert n_experts(bank) == n_before
        assert bank.train(1) == 1.0
    x, y = memory(kind, 10.0)
    assert n_experts(restored) == n_before + 1
    assert torch.equal(log_joint(restored, x, y), log_joint(whole, x, y))


@pytest.mark.parametrize("kind", KINDS)
def test_loading_forgets_a_memory_that_waited(kind):
    state, bank = founded(kind, 0.0).state_dict(), make(kind)
    begin(bank, *memory(kind, 10.0))
    bank.load_state_dict(state)
    assert bank.train(0) == 1.0
    assert n_experts(bank) == 1


@pytest.mark.parametrize("kind", KINDS)
def test_misuse_is_named(kind):
    bank = founded(kind, 0.0, 10.0)
    with pytest.raises(ValueError, match="two different experts below 2; got 1 and 1"):
        bank.remove(1, into=1)
    with pytest.raises(ValueError, match="two different experts below 2; got 2 and 0"):
        bank.remove(2, into=0)
    with pytest.raises(ValueError, match="two different experts below 2; got 1 and None"):
        bank.remove(1, into=None)
    assert bank.train(1) == 1.0
    assert n_experts(bank) == 2
    with pytest.raises(ValueError, match="at least one"):
        begin(bank, *(part[:0] for part in memory(kind, 0.0)))
    begin(bank, *memory(kind, 0.0))
    with pytest.raises(RuntimeError, match="already in training"):
        begin(bank, *memory(kind, 0.0))


@pytest.mark.parametrize("template", [float("nan"), {}])
def test_a_template_without_the_features_that_it_is_of_is_refused(template):
    bank = make("regression")
    with pytest.raises(StateError, match="template"):
        bank.load_state_dict({**bank.state_dict(), "template": template})
