"""Experts made of memories: what is held out, what earns its place, and where the rest goes."""

from collections.abc import Callable

import pytest
import torch

from cndpm.experts.bank import Evidence
from cndpm.experts.chunks import Samples
from cndpm.model.cndpm import CNDPM
from cndpm.model.founding import EarnedFounding, teach
from cndpm.model.memory import SampleBatch
from cndpm.model.settings import CNDPMSettings

TINY = {"hidden": 4, "hidden_growth": 2, "latent_dim": 2, "density_sleep_steps": 3, "predictor_sleep_steps": 3}


def blob(n: int, centre: float, label: int, *, seed: int) -> SampleBatch:
    x = torch.randn(n, 3, generator=torch.Generator().manual_seed(seed)) + centre
    return SampleBatch(Samples(x), torch.full((n,), label))


def learner_of(*founded: SampleBatch, memory_size: int = 50) -> CNDPM:
    """A learner with an expert of each of some memories."""
    learner = CNDPM(CNDPMSettings(memory_size=memory_size, features="identity"), input_shape=(3,))
    learner.meet(4)
    for batch in founded:
        learner.memory.add(batch)
        consolidate(learner)
    assert learner.n_experts == len(founded)
    return learner


def consolidate(learner: CNDPM) -> None:
    learner.founding.consolidate(learner.bank, learner.memory, learner.novelty, lambda done: None)


def sleep(learner: CNDPM) -> None:
    learner.founding.sleep(learner.bank, learner.memory, learner.novelty, lambda done: None)


@pytest.fixture
def sizes(monkeypatch) -> Callable[[CNDPM], list[int]]:
    """Notes how many samples a bank learns at once."""

    def watch(learner: CNDPM) -> list[int]:
        noted, learn = [], learner.bank.learn
        monkeypatch.setattr(
            learner.bank, "learn", lambda samples, *rest, **named: (noted.append(len(samples)), learn(samples, *rest))
        )
        return noted

    return watch


def test_every_fifth_sample_calibrates_the_expert_that_the_others_made(sizes):
    learner = learner_of()
    taught = sizes(learner)
    learner.memory.add(blob(50, 0.0, 0, seed=0))
    consolidate(learner)
    record = learner.novelty.state_dict()["record"]["values"]
    assert int((~record.isnan()).sum()) == 10 and taught == [10]
    assert learner.counts.tolist() == pytest.approx([50.0])


def test_of_nine_samples_none_is_held_out_and_of_ten_two_are():
    for n, n_held_out in ((9, 0), (10, 2)):
        learner = learner_of(blob(n, 0.0, 0, seed=0))
        assert int((~learner.novelty.state_dict()["record"]["values"].isnan()).sum()) == n_held_out


def test_samples_are_given_back_ten_at_a_time(sizes):
    learner = learner_of(blob(50, 0.0, 0, seed=0))
    taught = sizes(learner)
    teach(learner.bank, learner.novelty, blob(25, 0.0, 0, seed=1))
    assert taught == [10, 10, 5]


def test_a_memory_of_what_is_known_founds_nothing_and_is_learned():
    learner = learner_of(blob(50, 0.0, 0, seed=0))
    learner.memory.add(blob(50, 0.0, 0, seed=1))
    sleep(learner)
    assert learner.n_experts == 1 and learner.counts.sum().item() + len(learner.memory) == pytest.approx(100)
    assert learner.counts.sum().item() > 50


def test_half_a_memory_that_is_left_founds_an_expert_and_less_does_not():
    for n_new, n_experts in ((30, 2), (18, 1)):
        learner = learner_of(blob(50, 0.0, 0, seed=0))
        teach(learner.bank, learner.novelty, blob(400, 0.0, 0, seed=5))
        learner.memory.add(blob(50 - n_new, 0.0, 0, seed=1))
        learner.memory.add(blob(n_new, 9.0, 1, seed=2))
        sleep(learner)
        assert learner.n_experts == n_experts


def test_a_memory_of_two_concepts_founds_two_experts_one_after_the_other():
    learner = learner_of()
    learner.memory.add(blob(30, 0.0, 0, seed=0))
    learner.memory.add(blob(20, 9.0, 1, seed=1))
    sleep(learner)
    assert learner.counts.tolist() == pytest.approx([30.0]) and len(learner.memory) == 20
    learner.consolidate()
    assert learner.counts.tolist() == pytest.approx([30.0, 20.0]) and len(learner.memory) == 0


def test_concepts_of_a_memory_are_told_apart_by_labels_alone():
    """Without them, or with less than a fifth of the memory, there is one expert."""
    learner = learner_of()
    learner.memory.add(blob(42, 0.0, 0, seed=0))
    learner.memory.add(blob(8, 9.0, 1, seed=1))
    sleep(learner)
    assert learner.counts.tolist() == pytest.approx([50.0])
    unlabelled = CNDPM(CNDPMSettings(memory_size=50, features="identity", target="none"), input_shape=(3,))
    unlabelled.memory.add(SampleBatch(Samples(torch.cat([torch.randn(30, 3), torch.randn(20, 3) + 9])), None))
    sleep(unlabelled)
    assert unlabelled.n_experts == 1 and not len(unlabelled.memory)


def test_an_expert_must_gain_the_logarithm_of_the_samples_known():
    """Held-out evidence that an expert improves by a little less, and by a little more, than it costs."""
    learner = learner_of(blob(50, 0.0, 0, seed=0), blob(50, 9.0, 1, seed=1))
    founding, founders = EarnedFounding(for_labels=True), blob(50, 9.0, 1, seed=1)
    cost = torch.tensor(50.0).log()
    for gain, earned in ((cost - 0.1, False), (cost + 0.1, True)):
        known, n = torch.zeros(1, 2, dtype=torch.float64), learner.counts.sum()
        # log((e^a + e^b) / n) - a + log 50 = gain, solved for b with a = 0.
        known[0, 1] = torch.log(torch.exp(gain) * n / 50 - 1)
        evidence = Evidence(known, torch.zeros(1, dtype=torch.float64))
        assert founding._is_earned(learner.bank, evidence, founders) is earned


def test_founders_judge_an_expert_made_of_the_others_where_none_is_held_out():
    """Under itself the expert of a single sample explains it perfectly; made of the others there is nothing."""
    learner = learner_of(blob(50, 0.0, 0, seed=0))
    learner.memory.add(blob(1, 1.0, 0, seed=3))
    consolidate(learner)
    assert learner.n_experts == 1 and learner.counts.tolist() == pytest.approx([51.0])


def test_what_a_dismissed_expert_was_made_of_goes_to_the_nearest():
    learner = learner_of(blob(50, 0.0, 0, seed=0), blob(50, 9.0, 0, seed=1))
    learner.memory.add(blob(8, 9.0, 0, seed=2))
    consolidate(learner)
    assert learner.counts.tolist() == pytest.approx([50.0, 58.0], abs=0.01)


def test_strays_are_given_back_once_ten_of_their_label_are_known():
    learner = learner_of(blob(50, 0.0, 0, seed=0))
    for n, left in ((9, 9), (10, 0)):
        learner.memory.clear()
        learner.memory.add(blob(n, 0.0, 0, seed=4))
        learner.founding.review(learner.bank, learner.memory, learner.novelty)
        assert len(learner.memory) == left


def test_strays_of_a_label_that_is_new_wait():
    learner = learner_of(blob(50, 0.0, 0, seed=0))
    known, new = blob(100, 0.0, 0, seed=5), blob(12, 0.0, 3, seed=4)
    learner.learn(known.samples.x, known.y)
    learner.learn(new.samples.x + 30, new.y)
    assert len(learner.memory) == 12
    learner.founding.review(learner.bank, learner.memory, learner.novelty)
    assert len(learner.memory) == 12


def test_a_network_is_founded_of_a_whole_memory():
    settings = CNDPMSettings(experts="neural", memory_size=20, **TINY)
    learner = CNDPM(settings, input_shape=(3,), n_classes=3)
    learner.memory.add(blob(20, 0.0, 0, seed=0))
    sleep(learner)
    assert learner.n_experts == 1
    # Ten samples of a label that is known go back; the ten that remain are less than a memory.
    learner.memory.add(blob(10, 0.0, 0, seed=1))
    learner.memory.add(blob(10, 5.0, 1, seed=2))
    learner.novelty._by_label.push(torch.ones(10, dtype=torch.bool).numpy(), torch.full((10,), 1).numpy())
    learner.novelty._by_label.push(torch.zeros(10, dtype=torch.bool).numpy(), torch.zeros(10).long().numpy())
    sleep(learner)
    assert learner.n_experts == 1 and len(learner.memory) == 10


def test_a_dismissed_network_gives_its_samples_to_those_that_remain(monkeypatch):
    learner = CNDPM(CNDPMSettings(experts="neural", memory_size=20, **TINY), input_shape=(3,), n_classes=3)
    founding = EarnedFounding(for_labels=False)
    monkeypatch.setattr(founding, "_is_earned", lambda *_: False)
    for seed in range(2):
        learner.memory.add(blob(20, 0.0, 0, seed=seed))
        founding.consolidate(learner.bank, learner.memory, learner.novelty, lambda done: None)
    assert learner.counts.tolist() == pytest.approx([40.0])
