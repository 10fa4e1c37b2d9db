"""Places: what lies apart is not overwritten, what changes at the same x is a rule, what is wrong is refused."""

import numpy as np
import pytest
import torch

from cndpm.experts.pool import ClassPool, ValuePool
from cndpm.model.cndpm import CNDPM
from cndpm.model.places import Places
from cndpm.model.settings import CNDPMSettings
from cndpm.state import StateError

SETTINGS = CNDPMSettings(memory_size=60)
FAR = 25.0


def domain(n, where, rule=1, seed=0):
    """Two blobs, moved along a column, whose labels are exchanged by the rule -1."""
    rng = np.random.default_rng(seed)
    blob = rng.integers(2, size=n)
    x = rng.normal(size=(n, 6)) + 3 * np.random.default_rng(3).normal(size=(2, 6))[blob]
    x[:, 0] += where
    return torch.from_numpy(x).float(), torch.from_numpy(blob if rule == 1 else 1 - blob)


def taught(*parts, learner=None, settings=SETTINGS, batch=10):
    learner = learner or CNDPM(settings, input_shape=(6,))
    for x, y in parts:
        learner.learn_block(x, y, batch)
    return learner


def accuracy(learner, x, y, when="now"):
    return float((learner.predict_log_proba(x, when=when).argmax(dim=1) == y).double().mean())


@pytest.fixture(scope="module")
def two_domains():
    return taught(domain(400, 0.0), domain(400, FAR, rule=-1, seed=1))


def test_domains_far_apart_with_opposite_rules_have_places_and_both_are_answered(two_domains):
    places = two_domains.places
    assert len(places.pools) == 2 and set(places.of_experts) == {0, 1} and places.n_rules == 2
    for when in ("now", "any"):
        assert accuracy(two_domains, *domain(300, 0.0, seed=2), when=when) > 0.93
        assert accuracy(two_domains, *domain(300, FAR, rule=-1, seed=3), when=when) > 0.93


def test_every_row_is_kept_where_it_lies(two_domains):
    near, far = (pool.rows for pool in two_domains.places.pools)
    assert len(near) == len(far) == near.n == far.n == 400
    assert near.x[:, 0].max() < far.x[:, 0].min()


def test_what_comes_later_elsewhere_does_not_move_an_answer_by_a_bit(two_domains):
    learner = CNDPM(SETTINGS, input_shape=(6,))
    learner.load_state_dict(two_domains.state_dict())
    x = domain(50, 0.0, seed=4)[0].double().numpy()
    before = learner.places.pools[0].answer(x)
    taught(domain(300, FAR, seed=5), learner=learner)
    np.testing.assert_array_equal(learner.places.pools[0].answer(x), before)


def test_a_rule_that_is_reversed_at_the_same_x_is_a_rule_and_no_place():
    learner = taught(domain(400, 0.0), domain(300, 0.0, rule=-1, seed=1))
    assert len(learner.places.pools) == 1 and learner.places.n_rules == 2
    assert learner.describe()["n_rules"] == 2
    assert accuracy(learner, *domain(300, 0.0, rule=-1, seed=2)) > 0.9


def test_labels_that_are_new_need_no_place():
    x, y = domain(400, FAR, seed=1)
    learner = taught(domain(400, 0.0), (x, y + 2))
    assert len(learner.places.pools) == 1
    assert accuracy(learner, *domain(200, 0.0, seed=2)) > 0.93
    asked, truth = domain(200, FAR, seed=3)
    assert accuracy(learner, asked, truth + 2) > 0.93


def test_values_of_a_domain_far_away_are_not_overwritten():
    settings = CNDPMSettings(memory_size=60, target="values")
    parts = [(x, sign * x.sum(dim=1, keepdim=True)) for sign, (x, _) in ((1, domain(300, 0.0)), (-1, domain(300, 9.0)))]
    learner = taught(*parts, settings=settings)
    assert len(learner.places.pools) == 2
    for x, y in parts:
        told = learner.predict_moments(x)
        assert float((told[:, 0] - y).abs().mean()) < 0.3 and (told[:, 1] > 0).all()


@pytest.mark.parametrize("kept_rows", [0, 5000])
@pytest.mark.parametrize("batch", [1, 10])
def test_a_scale_that_changes_begins_a_place_and_answers_never_stop(kept_rows, batch):
    settings = CNDPMSettings(memory_size=60, kept_rows=kept_rows)
    x, y = domain(300, 0.0)
    learner = taught((x, y), settings=settings)
    far, labels = domain(120, 0.0, rule=-1, seed=1)
    far = far * 1e4
    for start in range(0, 120, batch):
        part = slice(start, start + batch)
        told = learner.predict_log_proba(torch.cat([far[part], x[:3]]))
        assert told.exp().sum(dim=1).sub(1).abs().max() < 1e-3
        learner.learn(far[part], labels[part])
    if kept_rows:
        assert len(learner.places.pools) == 2
        assert accuracy(learner, *domain(200, 0.0, seed=2)) > 0.9
        assert accuracy(learner, far, labels) > 0.85


def test_rows_that_visit_fields_in_turn_and_then_come_from_everywhere_begin_no_place():
    generator = torch.Generator().manual_seed(0)
    fields = torch.cat([torch.zeros(2, 2), torch.randint(6, (14, 2), generator=generator)]).repeat_interleave(50, dim=0)
    x = torch.cat([fields + torch.rand(800, 2, generator=generator), 6 * torch.rand(300, 2, generator=generator)])
    y = (x.floor() @ torch.tensor([3.0, 5.0]) % 4).long()
    learner = CNDPM(CNDPMSettings(memory_size=60), input_shape=(2,))  # its first expert is founded on one field
    learner.learn_block(x, y, batch_size=10)
    assert learner.n_experts > 1 and len(learner.places.pools) == 1


def test_an_expert_that_is_removed_takes_only_itself_away(two_domains):
    learner = CNDPM(SETTINGS, input_shape=(6,))
    learner.load_state_dict(two_domains.state_dict())
    places, before = learner.places, list(learner.places.of_experts)
    places.removed(0)
    assert places.of_experts == before[1:]
    places.removed(len(before))  # one that was founded and merged before it had a place
    assert places.of_experts == before[1:] and len(places.pools) == 2


def test_at_the_limit_on_experts_every_one_of_them_has_a_place():
    parts = [domain(150, where, seed=i) for i, where in enumerate((0.0, FAR, -FAR, 3 * FAR))]
    with pytest.warns(UserWarning, match="limit on experts"):
        learner = taught(*parts, settings=CNDPMSettings(memory_size=40, max_experts=2))
    assert len(learner.places.of_experts) == learner.n_experts == 2
    copy = CNDPM(learner.settings, input_shape=(6,))
    copy.load_state_dict(learner.state_dict())
    assert torch.equal(copy.predict_log_proba(parts[0][0]), learner.predict_log_proba(parts[0][0]))


@pytest.mark.parametrize("stop", [200, 430, 500])
def test_it_resumes_to_the_bit_around_the_beginning_of_a_place(two_domains, stop):
    x, y = (torch.cat(both) for both in zip(domain(400, 0.0), domain(400, FAR, rule=-1, seed=1), strict=True))
    resumed = CNDPM(SETTINGS, input_shape=(6,))
    resumed.load_state_dict(taught((x[:stop], y[:stop])).state_dict())
    taught((x[stop:], y[stop:]), learner=resumed)
    for when in ("now", "next", "any"):
        told = [one.predict_log_proba(x[::20], when=when) for one in (resumed, two_domains)]
        assert torch.equal(*told)
    assert resumed.places.of_experts == two_domains.places.of_experts


def plain_places(n_places=2, make=lambda: ClassPool(2)):
    """Places around 0, 10, ... with the squared distance as the density of an expert at each."""
    centres = 10.0 * np.arange(n_places)
    places = Places(make, lambda rows: -((rows[:, :1] - centres) ** 2))
    places.pools = [make() for _ in centres]
    places.of_experts = list(range(n_places))
    return places


def lines(n, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, 2)) + [[10.0, 0.0]] * rng.integers(2, size=(n, 1))
    return x, (x[:, 1] > 0).astype(int) ^ (x[:, 0] > 5)


def test_a_batch_is_shared_out_by_where_its_rows_lie():
    places, (x, y) = plain_places(), lines(400)
    places.learn(x, y)
    is_near = x[:, 0] < 5
    assert [pool.n_seen for pool in places.pools] == [is_near.sum(), (~is_near).sum()]
    np.testing.assert_array_equal(places.pools[0].rows.x, x[is_near])
    alone = ClassPool(2)
    alone.learn(x[is_near], y[is_near])
    np.testing.assert_allclose(places.answer(x[is_near]), alone.answer(x[is_near]), atol=1e-5)


def test_between_places_answers_are_mixed_by_the_density():
    places, (x, y) = plain_places(), lines(400)
    places.learn(x, y)
    asked = np.array([[4.95, 1.0], [5.0, 1.0], [5.05, 1.0]])
    each = [np.exp(pool.answer(asked)) for pool in places.pools]
    weighted = np.exp(-np.stack([asked[:, 0] ** 2, (asked[:, 0] - 10) ** 2], axis=1))
    shares = weighted / weighted.sum(axis=1, keepdims=True)
    expected = shares[:, :1] * each[0] + shares[:, 1:] * each[1]
    np.testing.assert_allclose(np.exp(places.answer(asked)), expected / expected.sum(axis=1, keepdims=True))


def test_mixed_values_have_the_variance_between_places():
    places, (x, y) = plain_places(make=lambda: ValuePool(2, 1)), lines(400)
    places.learn(x, y[:, None].astype(float))
    asked = np.array([[5.0, 1.0]])
    mean, variance = np.stack([pool.answer(asked)[0, :, 0] for pool in places.pools]).T
    told = places.answer(asked)[0, :, 0]
    assert told[0] == pytest.approx(mean.mean())
    assert told[1] == pytest.approx((variance + mean**2).mean() - mean.mean() ** 2)


def test_a_place_that_cannot_answer_yet_is_left_out():
    places, (x, y) = plain_places(), lines(400)
    near = x[:, 0] < 5
    places.learn(x[near], y[near])
    told = places.answer(x)
    assert np.isfinite(told).all()
    np.testing.assert_allclose(told, places.pools[0].answer(x), atol=1e-5)


def test_extending_unites_the_first_places_and_keeps_the_others_apart():
    one, other = plain_places(), plain_places()
    for seed, places in enumerate((one, other)):
        places.learn(*lines(200, seed))
    seen = [pool.n_seen for pool in (*one.pools, *other.pools)]
    one.extend(other)
    assert [pool.n_seen for pool in one.pools] == [seen[0] + seen[2], seen[1], seen[3]]
    assert one.of_experts == [0, 1, 0, 2]


def test_relabelling_reaches_every_place():
    places, (x, y) = plain_places(), lines(400)
    places.learn(x, y)
    before = places.answer(x)
    places.relabel(np.array([1, 0]))
    np.testing.assert_allclose(places.answer(x)[:, [1, 0]], before, atol=1e-9)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("pools", []),
        ("pools", None),
        ("pools", [{}, {}]),
        ("pools", [{}] * 17),
        ("of_experts", [0]),
        ("of_experts", [0, 2]),
        ("of_experts", [0, -1]),
        ("of_experts", "01"),
        ("pending", 2),
        ("pending", -2),
        ("latest", 2),
        ("latest", None),
    ],
)
def test_a_wrong_state_is_refused(name, value):
    places = plain_places()
    places.learn(*lines(100))
    state = places.state_dict()
    with pytest.raises(StateError):
        plain_places().load_state_dict({**state, name: value}, 2)
    del state[name]
    with pytest.raises(StateError, match=name):
        plain_places().load_state_dict(state, 2)
