"""Any function of arrays is a feature map."""

import numpy as np
import pytest
import torch

from cndpm import CNDPMClassifier
from cndpm.experts.features import FunctionFeatures


def squares(x):
    return np.stack([x[:, 0] ** 2, x[:, 1] ** 2], axis=1)


def test_features_are_the_functions_values_standardised():
    x = torch.randn(300, 2, generator=torch.Generator().manual_seed(0))
    features = FunctionFeatures(squares)
    features.fit(x, generator=torch.Generator())
    made = x.square()
    torch.testing.assert_close(features(x), (made - made.mean(dim=0)) / made.std(dim=0, correction=0))
    restored = FunctionFeatures(squares)
    restored.load_state_dict(features.state_dict())
    assert torch.equal(restored(x), features(x))


def test_a_classifier_takes_a_function_as_features():
    x = np.random.default_rng(0).normal(size=(400, 2))
    y = (x**2).sum(axis=1) > 1.4
    model = CNDPMClassifier(features=squares, memory_size=100, random_state=0).fit(x, y)
    assert model.score(x, y) > 0.8  # half of the labels are True
    with pytest.raises(ValueError, match="code"):
        model.save("model.cndpm")


@pytest.mark.parametrize("wrong", [lambda x: x[:1], lambda x: x.sum(), lambda x: np.full((len(x), 2), np.nan)])
def test_functions_that_give_something_else_are_refused(wrong):
    with pytest.raises(ValueError, match="features gave"):
        FunctionFeatures(wrong).fit(torch.ones(5, 2), generator=torch.Generator())


@pytest.mark.parametrize("features", ["fourier", 3, dict])
def test_what_is_no_function_is_refused(features):
    with pytest.raises(TypeError, match="features must be"):
        CNDPMClassifier(features=features).fit(np.zeros((4, 2)), [0, 1, 0, 1])
