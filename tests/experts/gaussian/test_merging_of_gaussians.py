import pytest
import torch

from asking import found, learn, predictive
from cndpm.experts.features import IdentityFeatures
from cndpm.experts.gaussian import GaussianBank


@pytest.fixture
def bank() -> GaussianBank:
    """Returns two experts, of a label and a region each."""
    bank, random = GaussianBank(IdentityFeatures(), n_classes=2), torch.Generator().manual_seed(0)
    for label in range(2):
        found(bank, torch.randn(100, 2, generator=random) + 8 * label, torch.full((100,), label))
    return bank


def test_the_trace_of_a_sample_that_went_elsewhere_explains_no_expert(bank):
    """Four tenths of one sample of the other's label, in the other's place."""
    learn(bank, torch.full((1, 2), 8.0), torch.ones(1, dtype=torch.long), torch.tensor([[0.4, 0.6]]))
    explained = bank.explained(torch.full((2,), -1e9), [0, 1])
    assert torch.allclose(explained, torch.eye(2).double(), atol=0.01)


def test_an_expert_of_the_same_samples_explains_the_other_and_is_explained(bank):
    random = torch.Generator().manual_seed(1)
    found(bank, torch.randn(100, 2, generator=random), torch.zeros(100, dtype=torch.long))
    explained = bank.explained(torch.full((3,), -1e9), [0, 0, 1])
    assert explained[0, 2] == explained[2, 0] == 1
    assert explained[2, 1] == explained[1, 2] == 0


def test_labels_that_get_other_numbers_are_answered_by_them(bank):
    x = torch.tensor([[0.0, 0.0], [8.0, 8.0]])
    bank.relabel([2, 1], 3)
    each = predictive(bank, x)[[0, 1], [0, 1]]  # what each expert answers in its own region
    assert each.argmax(dim=1).tolist() == [2, 1]
