"""Merged learners against one that was given everything; and merging in any order, at once or by pairs."""

import pytest
import torch
from benchmarks.merging import merge, sums
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.datasets import load_digits

from cndpm.experts.gaussian.shared_covariance import SharedGaussians
from cndpm.model.cndpm import CNDPM
from cndpm.model.merging import with_same_representation
from cndpm.model.settings import CNDPMSettings
from cndpm.state.tree import detach_tensors


def concepts(seed: int, *, n: int = 60, n_concepts: int = 3, d: int = 4):
    """Blobs of two classes each, far apart, one after the other."""
    generator = torch.Generator().manual_seed(seed)
    centres = 8 * torch.randn(2 * n_concepts, d, generator=generator)
    y = torch.cat([2 * concept + torch.randint(2, (n,), generator=generator) for concept in range(n_concepts)])
    return centres[y] + torch.randn(len(y), d, generator=generator), y


def new(target: str = "classes", **options) -> CNDPM:
    return CNDPM(CNDPMSettings(memory_size=20, target=target, **options), input_shape=(4,))


def learn(learner: CNDPM, x, y) -> CNDPM:
    learner.learn_block(x, y if learner.settings.target != "none" else None, 10)
    return learner


def sharded(learner: CNDPM, x, y, n_shards: int = 3) -> list[CNDPM]:
    """Learners of every third sample each; the first shares its representation."""
    parts = [slice(start, None, n_shards) for start in range(n_shards)]
    first = learn(learner, x[parts[0]], y[parts[0]])
    return [first, *(learn(with_same_representation(first), x[part], y[part]) for part in parts[1:])]


def finished(learner: CNDPM) -> CNDPM:
    learner.consolidate()
    learner.finish()
    return learner


def answers(learner: CNDPM, x) -> torch.Tensor:
    if learner.settings.target == "classes":
        return learner.predict_log_proba(x, exact=True).exp()
    return learner.predict_moments(x, exact=True) if learner.settings.target == "values" else learner.log_prob(x)


def assert_same(a: CNDPM, b: CNDPM, x) -> None:
    torch.testing.assert_close(a.counts.sort().values, b.counts.sort().values, rtol=1e-9, atol=1e-6)
    torch.testing.assert_close(answers(a, x), answers(b, x), rtol=1e-5, atol=1e-6)


@settings(deadline=None, max_examples=3)
@given(seed=st.integers(0, 10_000))
def test_neither_the_order_of_merging_nor_its_grouping_matters_to_experts(seed):
    x, y = concepts(seed)
    shards = sharded(new(n_fourier=8, representations="one"), x, y)
    at_once = merge(shards)
    a, b, c = shards
    for merged in (merge([c, a, b]), merge([merge([a, b]), c]), merge([merge([c, b]), a])):
        assert_same(merged, at_once, x)


def test_order_and_grouping_do_not_matter_to_experts_after_more_is_learned():
    x, y = concepts(3)
    a, b, c = sharded(new(n_fourier=8, representations="one"), x, y)
    later, labels = concepts(3, n=30)
    both = [learn(merged, later, labels) for merged in (merge([merge([c, a]), b]), merge([a, merge([b, c])]))]
    assert_same(*(finished(learner) for learner in both), x)


def test_merged_statistics_are_those_of_a_single_pass():
    x, y = concepts(1, n=300)
    shards = sharded(new(n_fourier=8), x, y)
    single = with_same_representation(shards[0])
    learn(single, x, y)
    merged = merge(shards)
    finished(single), finished(merged)
    assert merged.n_experts == single.n_experts == 3
    torch.testing.assert_close(merged.counts, single.counts, rtol=1e-9, atol=1e-6)
    for mine, theirs, rtol in zip(sums(merged), sums(single), (1e-9, 1e-9, 1e-7), strict=True):
        torch.testing.assert_close(mine, theirs, rtol=rtol, atol=1e-6)


@pytest.mark.parametrize("target", ["classes", "values"])
def test_a_merged_model_answers_as_one_that_learned_the_rows_of_the_first_and_then_those_of_the_second(target):
    x = torch.randn(400, 4, generator=torch.Generator().manual_seed(0))
    y = (x[:, 0] > x[:, 1]).long() if target == "classes" else x[:, :1] - x[:, 1:2]
    first = learn(new(target), x[:200], y[:200])
    second = learn(with_same_representation(first), x[200:], y[200:])
    merged = merge([first, second])
    single = learn(learn(new(target), x[:200], y[:200]), x[200:], y[200:])
    ask = CNDPM.predict_moments if target == "values" else CNDPM.predict_log_proba
    torch.testing.assert_close(ask(merged, x), ask(single, x), rtol=1e-9, atol=1e-9)


def test_sleeping_on_memories_that_were_merged_does_not_move_what_pools_answer_where_columns_wander():
    generator = torch.Generator().manual_seed(2)
    x = torch.randn(900, 8, generator=generator)
    y = (x.sum(dim=1) + torch.sin(2 * x[:, 0]) > 0).long()
    x += 8 * torch.linspace(0, 1, 900)[:, None]
    first = learn(CNDPM(CNDPMSettings(memory_size=400), input_shape=(8,)), x[:300], y[:300])
    first.consolidate()
    others = [learn(with_same_representation(first), x[part], y[part]) for part in (slice(300, 600), slice(600, 900))]
    merged = merge([first, *others])
    assert len(merged.memory) == 600  # sorted by label, so that what is founded first is of one label
    before = [merged.predict_log_proba(x, when=when) for when in ("now", "any")]
    merged.consolidate()
    assert merged.n_experts > 1 and len(merged.places.pools) == 1
    for when, told in zip(("now", "any"), before, strict=True):
        assert torch.equal(merged.predict_log_proba(x, when=when), told)


def test_sums_about_different_origins_are_brought_to_one():
    x, y = concepts(2)
    a, b = (CNDPM(CNDPMSettings(memory_size=20, features="identity"), input_shape=(4,)) for _ in range(2))
    learn(a, x, y)
    b.bank.adopt({**a.bank.representation(), "template": None})
    learn(b, x[60:], y[60:])
    merged = merge([a, b])
    counts, features, scatter = sums(merged)
    of_parts = [sums(learner) for learner in (a, b)]
    torch.testing.assert_close(counts, of_parts[0][0] + of_parts[1][0])
    torch.testing.assert_close(features, of_parts[0][1] + of_parts[1][1])
    scatters = of_parts[0][2] + of_parts[1][2]
    together = CNDPM(a.settings, input_shape=(4,))
    together.bank.adopt(a.bank.representation())
    assert float(scatter.diagonal().sum()) >= float(scatters.diagonal().sum()) * 0.999


@pytest.mark.parametrize("target", ["none", "values"])
def test_experts_with_covariances_of_their_own_merge_exactly(target):
    x, y = concepts(5, n=90)
    values = (x @ torch.ones(4, 1)) if target == "values" else y
    shards = sharded(new(target, representations="one"), x, values)
    merged = merge(shards)
    assert_same(merge([merge([shards[2], shards[1]]), shards[0]]), merged, x)
    assert round(float(merged.counts.sum())) + len(merged.memory) == len(x)
    assert merged.n_experts < sum(shard.n_experts for shard in shards)


def test_digits_in_four_shards_merge_to_the_experts_of_a_single_pass():
    digits, labels = load_digits(return_X_y=True)
    order = torch.cat([torch.nonzero(torch.tensor(labels) // 2 == task)[:, 0] for task in range(5)])
    x, y = torch.tensor(digits, dtype=torch.float32)[order].reshape(-1, 1, 8, 8) / 16, torch.tensor(labels)[order]
    learner = CNDPM(CNDPMSettings(memory_size=40, n_patches=6), input_shape=(1, 8, 8))
    shards = sharded(learner, x, y, n_shards=4)
    single = finished(learn(with_same_representation(shards[0]), x, y))
    merged = finished(merge(shards))
    assert float(merged.counts.sum()) == pytest.approx(len(x))
    torch.testing.assert_close(sums(merged)[:2], sums(single)[:2], rtol=1e-6, atol=1e-4)
    right = [(one.predict_log_proba(x).argmax(1) == y).double().mean() for one in (single, merged)]
    assert abs(right[0] - right[1]) < 0.01


def test_a_model_that_has_only_a_memory_gives_it_to_the_others():
    x, y = concepts(4)
    full, empty = learn(new(), x, y), learn(new(), x[:5], y[:5])
    for models in ([full, empty], [empty, full]):
        merged = merge(models)
        assert len(merged.memory) == len(full.memory) + 5
        assert merged.n_experts == full.n_experts


def test_learners_are_left_alone():
    x, y = concepts(6)
    shards = sharded(new(), x, y)
    before = [answers(shard, x) for shard in shards]
    learn(merge(shards), x, y)
    assert all(torch.equal(answers(shard, x), was) for shard, was in zip(shards, before, strict=True))


def test_a_model_that_took_over_a_representation_keeps_no_more_than_the_first():
    x, y = concepts(8)
    first, second = sharded(new(n_fourier=8), x, y, n_shards=2)
    assert size(with_same_representation(first)) < size(first)
    assert second.n_experts == first.n_experts
    assert second.bank.state_dict()["template"] is None


def size(learner: CNDPM) -> int:
    tensors: dict[str, torch.Tensor] = {}
    detach_tensors(learner.state_dict(), tensors)
    return sum(tensor.numel() for tensor in tensors.values())


def test_a_representation_carries_what_the_covariance_is_shrunk_for():
    x, y = concepts(9)
    shards = sharded(new("none", covariance="shared"), x, y, n_shards=2)
    assert [shard.bank.ready().choice.for_classes for shard in shards] == [False, False]


def test_a_memory_that_merging_has_filled_waits_until_more_is_learned():
    x, y = concepts(4)
    full, *others = learn(new(), x, y), learn(new(), x[:15], y[:15]), learn(new(), x[:15], y[:15])
    merged = merge([merge([full, *others]), learn(new(), x[:5], y[:5])])
    assert len(merged.memory) == len(full.memory) + 35 > merged.memory.capacity


def test_many_are_merged_at_the_price_of_one(monkeypatch):
    x, y = concepts(2)
    shards = sharded(new(n_fourier=8), x, y, n_shards=4)
    made = []
    factorise = SharedGaussians.factorise
    monkeypatch.setattr(SharedGaussians, "factorise", lambda *args, **how: made.append(1) or factorise(*args, **how))
    merge(shards)
    assert len(made) == 2  # side by side, and united


def test_networks_are_put_side_by_side():
    x, y = concepts(7, n=30, n_concepts=2)
    options = {
        "experts": "neural",
        "sharing": False,
        "hidden": 8,
        "latent_dim": 2,
        "standardise": True,
        "likelihood": "gaussian",
    }
    brief = {"density_sleep_steps": 5, "predictor_sleep_steps": 5}
    first = CNDPM(CNDPMSettings(memory_size=20, log_alpha=-50, **options, **brief), input_shape=(4,))
    learn(first, x, y)
    second = learn(with_same_representation(first), x, y)
    merged = merge([first, second])
    assert merged.n_experts == first.n_experts + second.n_experts
    joint = torch.cat([learner.log_joint(x, y) for learner in (first, second)], dim=1)
    torch.testing.assert_close(merged.log_joint(x, y), joint, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(
    ("other", "why"),
    [
        (lambda: learn(new(), *concepts(8)), "with_same_representation"),
        (lambda: CNDPM(CNDPMSettings(memory_size=21), input_shape=(4,)), "same settings"),
    ],
)
def test_models_that_cannot_be_merged_are_refused_with_the_reason(other, why):
    with pytest.raises(ValueError, match=why):
        merge([learn(new(), *concepts(9)), other()])


def test_networks_that_look_at_each_other_cannot_be_merged():
    x, y = concepts(7, n=30, n_concepts=2)
    options = {"experts": "neural", "hidden": 8, "latent_dim": 2, "likelihood": "gaussian"}
    options |= {"density_sleep_steps": 2, "predictor_sleep_steps": 2}
    first = learn(CNDPM(CNDPMSettings(memory_size=20, log_alpha=-50, **options), input_shape=(4,)), x, y)
    with pytest.raises(ValueError, match="sharing=False"):
        merge([first, learn(with_same_representation(first), x, y)])
