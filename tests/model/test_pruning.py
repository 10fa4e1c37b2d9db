"""Pruning of networks: what is learned again, on what it is judged, and what is counted."""

import pytest
import torch

from asking import make_bank
from cndpm.experts.chunks import Samples
from cndpm.mixture import log_gate, mix_log_proba
from cndpm.model.cndpm import CNDPM
from cndpm.model.events import EventLog
from cndpm.model.memory import SampleBatch
from cndpm.model.novelty import FixedLevel
from cndpm.model.pruning import _learn_again, _mean_score, log_joint, prune
from cndpm.model.settings import CNDPMSettings

TINY = {"hidden": 4, "hidden_growth": 2, "latent_dim": 2, "density_sleep_steps": 30, "predictor_sleep_steps": 30}


def data(n: int, seed: int = 0) -> SampleBatch:
    x = torch.rand(n, 4, generator=torch.Generator().manual_seed(seed))
    return SampleBatch(Samples(x), (x[:, 0] > 0.5).long())


@pytest.fixture
def bank():
    settings = CNDPMSettings.paper(**TINY, density_lr=1e-2, predictor_lr=1e-2)
    made = make_bank(settings, input_shape=(4,), n_classes=2, seed=0, device=torch.device("cpu"))
    for seed in (1, 1, 2):
        made.found(*data(20, seed))
        while made.train(10) < 1:
            pass
    return made


def weights(bank) -> list[torch.Tensor]:
    return [p.clone() for expert in bank.experts for part, _ in expert.parts for p in part.parameters()]


def test_the_joint_density_has_no_counts_in_it(bank):
    before = log_joint(bank, data(6, 5))
    bank._counts = bank._counts * torch.tensor([1.0, 10.0, 100.0])
    torch.testing.assert_close(log_joint(bank, data(6, 5)), before)


def test_networks_that_remain_learn_again_and_count_nothing_twice(bank, monkeypatch):
    taught, learn = [], bank.learn

    def noted(samples, *rest, **named):
        taught.append(len(samples))
        assert named == {"counted": False}
        learn(samples, *rest, **named)

    monkeypatch.setattr(bank, "learn", noted)
    total = bank.counts.sum().item()
    events = EventLog()
    events.follow(3)
    assert len(prune(bank, FixedLevel(0.0), events, data(50, 3), threshold=-1.1, classes=True)) == 2
    assert taught == [10, 10, 10, 10]  # four fifths of the data, ten at a time
    assert bank.counts.tolist() == [pytest.approx(total)]
    assert [event.kind for event in events.events[3:]] == ["merged", "merged"]


def test_what_was_learned_again_is_dropped_where_the_held_out_fifth_is_predicted_worse(bank):
    """Labels that are wrong in the four fifths and right in the last one: learning them cannot help."""
    batch = data(50, 3)
    order = torch.randperm(50, generator=torch.Generator().manual_seed(0))
    wrong = batch.y.clone()
    wrong[order[10:]] = 1 - wrong[order[10:]]
    before = weights(bank)
    _learn_again(bank, SampleBatch(batch.samples, wrong), classes=True)
    assert all(torch.equal(a, b) for a, b in zip(before, weights(bank), strict=True))


def test_classes_are_judged_by_their_probability_and_other_data_by_its_density(bank):
    batch = data(12, 4)
    gate = log_gate(bank.log_density(batch.samples), bank.counts)
    of_labels = mix_log_proba(gate, bank.predictive(batch.samples)).gather(1, batch.y[:, None]).mean()
    assert _mean_score(bank, batch, classes=True) == pytest.approx(float(of_labels), rel=1e-5)
    joint = bank.evidence(*batch).log_known.logsumexp(dim=1).mean()
    assert _mean_score(bank, batch, classes=False) == pytest.approx(float(joint), rel=1e-5)


def test_experts_that_are_merged_one_after_the_other_are_numbered_as_before():
    learner = CNDPM(CNDPMSettings(memory_size=20, features="identity", log_alpha=-5.0), input_shape=(2,))
    for centre in (0.0, 50.0, 50.1, 100.0, 101.5):
        x = torch.randn(20, 2, generator=torch.Generator().manual_seed(int(centre))) * 3 + centre
        learner.memory.add(SampleBatch(Samples(x), torch.zeros(20, dtype=torch.long)))
        learner.meet(1)
        learner.consolidate()
    x = torch.cat([torch.randn(20, 2) * 3 + centre for centre in (0.0, 50.0, 100.0)])
    merges = learner.prune(x, torch.zeros(60, dtype=torch.long), threshold=0.9)
    assert sorted(tuple(sorted(merge)) for merge in merges) == [(1, 2), (3, 4)]
    assert sorted(learner.counts.tolist()) == [20.0, 40.0, 40.0]
