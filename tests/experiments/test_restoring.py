"""A state that somebody made up is refused when a run resumes, not somewhere on the way."""

import pytest
import torch

from cndpm.experiments.checkpoint_file import restore_learner
from cndpm.model.cndpm import CNDPM
from cndpm.model.settings import CNDPMSettings
from cndpm.state import StateError


def made():
    return CNDPM(CNDPMSettings(memory_size=20, features="identity"), input_shape=(2,), n_classes=2)


@pytest.fixture(scope="module")
def learned():
    learner, y = made(), torch.arange(100) % 2
    x = torch.randn(100, 2, generator=torch.Generator().manual_seed(0)) + 5 * y[:, None]
    learner.learn_block(x, y, 10)
    return learner


@pytest.mark.parametrize(
    ("part", "name", "why"), [("statistics", "counts", "not numbers"), ("routing", "cholesky", "a positive diagonal")]
)
def test_a_state_of_the_right_form_that_could_not_answer_is_refused(learned, part, name, why):
    state = learned.state_dict()
    state["bank"]["gaussians"][part][name].zero_()
    with pytest.raises(StateError, match=f"somewhere does not hold the state of this CNDPM: .*{why}"):
        restore_learner(made(), state, "somewhere")


def test_asking_once_changes_nothing_of_what_is_restored(learned):
    asked, plain = made(), made()
    restore_learner(asked, learned.state_dict(), "somewhere")
    plain.load_state_dict(learned.state_dict())
    x, y = torch.randn(40, 2, generator=torch.Generator().manual_seed(1)), torch.arange(40) % 2
    for learner in (asked, plain):
        learner.learn_block(x, y, 10)
    assert torch.equal(asked.predict_log_proba(x), plain.predict_log_proba(x))
    assert torch.equal(asked.log_joint(x, y), plain.log_joint(x, y))
