"""The watch of a mixture: known rows look known, by the density that suits them, at any time and after loading."""

import numpy as np
import pytest
import torch

from cndpm.model.cndpm import CNDPM
from cndpm.model.settings import CNDPMSettings


def learner_on(x, *, n_exemplars=500, **settings):
    learner = CNDPM(CNDPMSettings(target="none", **settings), input_shape=(x.shape[1],), n_exemplars=n_exemplars)
    learner.learn_block(torch.tensor(x).float(), None, 10)
    return learner


def alarms(learner, x, rate):
    return float((learner.watch.log_density(torch.tensor(x).float()) < learner.watch.level(rate)).mean())


def moons(rng, n):
    angle = rng.uniform(0, np.pi, n)
    upper = np.stack([np.cos(angle), np.sin(angle)], axis=1)
    return np.where(rng.random((n, 1)) < 0.5, upper, [1, 0.5] - upper) + rng.normal(0, 0.1, (n, 2))


def test_gaussians_answer_where_rows_are_gaussian_and_kernels_where_they_are_not():
    rng = np.random.default_rng(0)
    assert not learner_on(rng.normal(size=(1000, 6))).watch.has_kernels
    assert learner_on(moons(rng, 1000)).watch.has_kernels


@pytest.mark.parametrize("target", ["classes", "values"])
def test_with_targets_kernels_answer_even_where_rows_are_gaussian(target):
    """Experts of labels lie where labels do, and their density is not what a row's novelty is told by."""
    x = torch.tensor(np.random.default_rng(0).normal(size=(400, 6))).float()
    y = torch.zeros(400, dtype=torch.long) if target == "classes" else x[:, :1]
    learner = CNDPM(CNDPMSettings(target=target, features="identity"), input_shape=(6,), n_exemplars=100)
    learner.learn_block(x, y, 10)
    learner.consolidate()
    learner.finish()
    assert learner.n_experts == 1 and learner.watch.has_kernels


def test_a_column_of_few_values_does_not_decide():
    """A column that is nearly always 0 has as large a density as one likes; spread over what was rounded it has not."""
    rng = np.random.default_rng(0)
    x = np.concatenate([moons(rng, 1000), (rng.random((1000, 1)) < 0.002)], axis=1)
    assert learner_on(x).watch.has_kernels


@pytest.mark.parametrize("rate", [0.02, 0.1])
@pytest.mark.parametrize("kind", ["gaussian", "moons"])
def test_false_alarms_come_at_the_rate_asked_for(kind, rate):
    rates = []
    for seed in range(3):
        rng = np.random.default_rng(seed)
        x = rng.normal(size=(3000, 5)) @ rng.normal(size=(5, 5)) if kind == "gaussian" else moons(rng, 3000)
        rates.append(alarms(learner_on(x[:1000]), x[1000:], rate))
    assert np.mean(rates) == pytest.approx(rate, rel=1 / 3)


def test_leaving_a_row_out_of_a_gaussian_is_what_the_correction_says():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(60, 3))
    learner = learner_on(x, memory_size=60)
    learner.finish()
    with_it = learner.watch._experts_at(torch.tensor(x).float())
    alone = learner.watch._experts_alone(torch.tensor(x).float())
    far = np.argsort(with_it)[:3]
    for i in far:
        others = learner_on(np.delete(x, i, axis=0), memory_size=59)
        exact = others.watch._experts_at(torch.tensor(x[i : i + 1]).float())[0]
        assert abs(alone[i] - exact) < 0.5 * abs(with_it[i] - exact)


def test_nothing_is_new_before_anything_is_known():
    learner = CNDPM(CNDPMSettings(target="none"), input_shape=(2,), n_exemplars=100)
    assert learner.watch.novelty(torch.randn(3, 2)).tolist() == [0, 0, 0]
    assert learner.watch.level(0.1) == -np.inf


def test_watching_changes_nothing_that_is_learned():
    x = np.random.default_rng(0).normal(size=(700, 4))
    seen, unseen = learner_on(x), learner_on(x, n_exemplars=0)
    assert torch.equal(seen.log_prob(torch.randn(5, 4, generator=torch.Generator().manual_seed(0))),
                       unseen.log_prob(torch.randn(5, 4, generator=torch.Generator().manual_seed(0))))  # fmt: skip
    assert unseen.watch is None and unseen.state_dict()["watch"] is None


def test_asking_and_loading_change_no_bit():
    rng = np.random.default_rng(0)
    x, asked = moons(rng, 900), torch.tensor(moons(rng, 20)).float()
    whole = learner_on(x)
    half = learner_on(x[:450])
    half.watch.novelty(asked)
    loaded = CNDPM(half.settings, input_shape=(2,), n_exemplars=500)
    loaded.load_state_dict(half.state_dict())
    loaded.learn_block(torch.tensor(x[450:]).float(), None, 10)
    assert (loaded.watch.novelty(asked) == whole.watch.novelty(asked)).all()


def test_networks_are_asked_themselves():
    quick = {"experts": "neural", "likelihood": "gaussian", "log_alpha": -400.0, "density_sleep_steps": 30, "hidden": 8}
    learner = learner_on(np.random.default_rng(0).normal(size=(200, 3)), memory_size=100, **quick)
    assert learner.watch.is_ready and not learner.watch.has_kernels
    far = learner.watch.novelty(torch.full((1, 3), 50.0))
    assert far[0] > learner.watch.novelty(torch.zeros(1, 3))[0]


def test_gaussians_that_answer_are_restored_as_they_were_and_five_rows_suffice():
    x = np.random.default_rng(0).normal(size=(1000, 6))
    learner = learner_on(x)
    loaded = CNDPM(learner.settings, input_shape=(6,), n_exemplars=500)
    loaded.load_state_dict(learner.state_dict())
    asked = torch.randn(20, 6, generator=torch.Generator().manual_seed(1))
    assert not loaded.watch.has_kernels
    assert (loaded.watch.novelty(asked) == learner.watch.novelty(asked)).all()
    assert learner_on(x[:8]).watch.is_ready and not learner_on(x[:4]).watch.is_ready


def test_all_rows_count_once_a_stream_has_settled():
    learner = learner_on(np.random.default_rng(0).normal(size=(437, 2)))
    assert learner.watch.n_rows < 437
    learner.watch.settle()
    assert learner.watch.n_rows == 437
