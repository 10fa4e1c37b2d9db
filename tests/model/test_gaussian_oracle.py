"""The shipped default against the plain loops of its oracle, on the same streams with the same seed."""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import pytest
import torch
from sklearn.datasets import load_digits
from torch import Tensor

from cndpm.experts.chunks import Samples
from cndpm.experts.gaussian import GaussianBank, choice, shared_covariance
from cndpm.mixture import accepts_expert
from cndpm.model.cndpm import CNDPM
from cndpm.model.settings import CNDPMSettings
from oracles import plain_gaussians
from oracles.gaussians import GaussianOracle

Stream = tuple[Tensor, Tensor]


def around(centres: list[tuple[float, float]], labels: list[int], n: int, *, seed: int, spread: float = 1.0) -> Stream:
    """Rows of five features that scatter about centres in the plane of the first two."""
    generator = torch.Generator().manual_seed(seed)
    chosen = torch.randint(len(centres), (n,), generator=generator)
    rows = torch.tensor(centres)[chosen] @ torch.eye(2, 5) + spread * torch.randn(n, 5, generator=generator)
    return rows, torch.tensor(labels)[chosen]


def joined(*parts: Stream) -> Stream:
    return torch.cat([x for x, _ in parts]), torch.cat([y for _, y in parts])


def with_strays(stream: Stream, *, seed: int) -> Stream:
    """Every ninth sample lies anywhere."""
    x, y = stream[0].clone(), stream[1]
    x[::9] = 5 * torch.randn(len(x[::9]), 5, generator=torch.Generator().manual_seed(seed))
    return x, y


def new_classes() -> Stream:
    """Three tasks of two classes each."""
    return joined(*(around([(6.0 * t, 0.0), (6.0 * t, 4.0)], [2 * t, 2 * t + 1], 110, seed=t) for t in range(3)))


def overlapping(gap: float = 8.0) -> Stream:
    """The same two classes here, then there, then in between and with strays: two experts share what comes."""
    here = around([(0.0, 0.0), (0.0, 3.0)], [0, 1], 110, seed=11)
    there = around([(gap, 0.0), (gap, 3.0)], [0, 1], 110, seed=12)
    centres = [(gap / 2, 0.0), (gap / 2, 3.0), (0.0, 0.0), (gap, 3.0)]
    between = around(centres, [0, 1, 0, 1], 150, seed=13, spread=2.0)
    return joined(here, there, with_strays(between, seed=14))


def far_apart() -> Stream:
    """Overlapping, farther apart: with a small memory an expert is founded that does not earn its place."""
    return overlapping(gap=12.0)


def returning() -> Stream:
    """The first two classes come back, then one of them beside a new one."""
    here = [(0.0, 0.0), (0.0, 3.0)]
    return joined(
        around(here, [0, 1], 110, seed=1),
        around([(7.0, 0.0), (7.0, 3.0)], [2, 3], 110, seed=2),
        around(here, [0, 1], 60, seed=5),
        around([(1.0, 0.0), (7.0, 3.0)], [0, 4], 110, seed=6),
    )


def digits() -> Stream:
    """Images of 8 x 8: three tasks of two digits each."""
    data = load_digits()
    x, y = torch.tensor(data.images / 16).float().unsqueeze(1), torch.tensor(data.target)
    tasks = [(y // 2 == t).nonzero()[:110, 0] for t in range(3)]
    return x[torch.cat(tasks)], y[torch.cat(tasks)]


STREAMS: dict[str, Callable[[], Stream]] = {
    made.__name__: made for made in (new_classes, overlapping, far_apart, returning, digits)
}


def make(stream: Stream, **changes: Any) -> tuple[CNDPM, GaussianOracle]:
    """Both, with covariances in double precision."""
    settings = CNDPMSettings(
        **{"memory_size": 40, "n_fourier": 16, "n_patches": 2, "representations": "one", **changes}
    )
    shape = tuple(stream[0].shape[1:])
    return CNDPM(settings, input_shape=shape, seed=3), GaussianOracle(settings, input_shape=shape, seed=3)


class Moment(NamedTuple):
    """What shows which samples were new."""

    n_experts: int
    labels: list[int]
    x: list[list[float]]


class Pair(NamedTuple):
    """Learner and oracle after a stream, and after each of its batches."""

    stream: Stream
    learner: CNDPM
    oracle: GaussianOracle
    of_learner: list[Moment]
    of_oracle: list[Moment]


def moment_of_learner(learner: CNDPM) -> Moment:
    state = learner.memory.state_dict()
    if state["x"] is None:
        return Moment(learner.n_experts, [], [])
    return Moment(learner.n_experts, state["y"].tolist(), state["x"].flatten(1).tolist())


def moment_of_oracle(oracle: GaussianOracle) -> Moment:
    labels, x = [int(y) for _, y in oracle.memory], [x.flatten().tolist() for x, _ in oracle.memory]
    return Moment(oracle.n_experts, labels, x)


def learn_both(stream: Stream, batch_size: int, *, by_block: bool, **changes: Any) -> Pair:
    learner, oracle = make(stream, **changes)
    pair = Pair(stream, learner, oracle, [], [])
    x, y = stream
    if by_block:
        learner.learn_block(x, y, batch_size, after_batch=lambda _: pair.of_learner.append(moment_of_learner(learner)))
    for rows in torch.split(torch.arange(len(x)), batch_size):
        if not by_block:
            learner.learn(x[rows], y[rows])
            pair.of_learner.append(moment_of_learner(learner))
        oracle.learn(x[rows], y[rows])
        pair.of_oracle.append(moment_of_oracle(oracle))
    return pair


@pytest.fixture(scope="module", autouse=True)
def _double_precision():
    """The oracle knows no other; how much single precision changes is a test of its own."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(shared_covariance.SharedGaussians, "routing_dtype", torch.float64)
        yield


CASES = [
    ("new_classes", 10, "block", 40),
    ("new_classes", 37, "learn", 60),
    ("overlapping", 10, "block", 40),
    ("overlapping", 37, "learn", 40),
    ("far_apart", 10, "block", 8),
    ("far_apart", 10, "learn", 20),
    ("returning", 10, "learn", 40),
    ("returning", 1, "block", 40),
    ("digits", 10, "block", 40),
    ("digits", 37, "learn", 40),
]


@pytest.fixture(scope="module", params=CASES, ids=lambda case: "-".join(map(str, case)))
def pair(request, _double_precision) -> Pair:
    name, batch_size, through, memory_size = request.param
    return learn_both(STREAMS[name](), batch_size, by_block=through == "block", memory_size=memory_size)


def assert_agree(learner: CNDPM, oracle: GaussianOracle, stream: Stream) -> None:
    """Counts, renewals, choices, evidence and answers agree."""
    torch.testing.assert_close(learner.counts, oracle.counts, rtol=0, atol=1e-6)
    x, y = stream[0][::7], stream[1][::7]
    if learner.n_experts:
        gaussians, plain = learner.bank._gaussians, oracle.gaussians  # type: ignore[attr-defined]
        assert gaussians.routing().count == pytest.approx(plain.routing.n_samples, rel=1e-9)
        chosen = (gaussians.choice.density, gaussians.choice.accuracy, gaussians.choice.tail)
        assert chosen == pytest.approx((plain.density, plain.accuracy, plain.tail), rel=1e-9)
    evidence, expected = learner.bank.evidence(Samples(x), y), oracle.evidence(x, y)
    torch.testing.assert_close(evidence.log_known, expected.log_known, rtol=1e-6, atol=1e-9)
    torch.testing.assert_close(evidence.log_new, expected.log_new, rtol=1e-6, atol=1e-9)
    for exact in (True, False):
        answers = learner.predict_log_proba(x, exact=exact)
        torch.testing.assert_close(answers, oracle.predict_log_proba(x, exact=exact), rtol=1e-6, atol=1e-6)


def test_the_same_samples_are_new_and_the_same_experts_are_founded(pair):
    assert pair.of_learner == pair.of_oracle
    assert pair.learner.n_experts >= 2
    assert max(len(moment.labels) for moment in pair.of_learner) >= 7


def test_counts_choices_evidence_and_answers_agree(pair):
    assert_agree(pair.learner, pair.oracle, pair.stream)


@pytest.mark.parametrize("batch_size", [10, 37])
def test_overlapping_classes_are_shared_softly(batch_size):
    oracle = learn_both(overlapping(), batch_size, by_block=True).oracle
    shares = [share for _, shares in oracle.gaussians.rows for share in shares.values()]
    assert sum(0.05 < share < 0.95 for share in shares) >= 20


def test_an_expert_that_does_not_earn_its_place_is_dismissed(monkeypatch):
    removed = []
    remove = GaussianBank.remove
    monkeypatch.setattr(GaussianBank, "remove", lambda bank, k, into: removed.append(k) or remove(bank, k, into))
    learn_both(far_apart(), 10, by_block=False, memory_size=20)
    assert removed == [2]


@pytest.mark.parametrize("memory_size", [8, 20])
def test_gains_and_costs_of_experts_agree(memory_size, monkeypatch):
    weighed: dict[str, list[list[float]]] = {"founding": [], "gaussians": []}

    def weigh(module: str, log_candidate: Tensor, log_mixture: Tensor, cost: float) -> bool:
        weighed[module].append([*log_candidate.tolist(), *log_mixture.tolist(), cost])
        return accepts_expert(log_candidate, log_mixture, cost=cost)

    for module, name in (("founding", "cndpm.model.founding"), ("gaussians", "oracles.gaussians")):
        monkeypatch.setattr(f"{name}.accepts_expert", partial(weigh, module))
    learn_both(far_apart(), 10, by_block=True, memory_size=memory_size)
    assert len(weighed["founding"]) == len(weighed["gaussians"]) >= 2
    for given, expected in zip(*weighed.values(), strict=True):
        assert given == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("anytime", [True, False])
@pytest.mark.parametrize("n", [1, 25, 110, 135])
def test_answers_agree_while_samples_wait_in_the_memory(n, anytime):
    x, y = new_classes()
    pair = learn_both((x[:n], y[:n]), 10, by_block=False, anytime=anytime)
    assert len(pair.oracle.memory) == {1: 1, 25: 25, 110: 0, 135: 25}[n]
    assert_agree(pair.learner, pair.oracle, (x, y.clamp_max(int(y[:n].max()))))


@pytest.mark.parametrize(
    ("n_before", "labels", "n_experts"),
    [(0, [0, 1, 1], 1), (110, [2] * 3, 2), (110, [2] * 25, 2), (110, [0, 1, 2, 2], 2)],
    ids=["the first memory", "too few to hold any out", "enough", "some are known"],
)
def test_what_waits_is_consolidated_alike(n_before, labels, n_experts):
    x, y = new_classes()
    waiting, _ = around([(9.0, 2.0)], [0], len(labels), seed=8)
    pair = make((x, y))
    for learning in pair:
        for start in range(0, n_before, 10):
            learning.learn(x[start : start + 10], y[start : start + 10])
        for row, label in zip(waiting, labels, strict=True):
            learning.learn(row[None], torch.tensor([label]))
        learning.consolidate()
        assert learning.n_experts == n_experts
    assert_agree(*pair, (x, y.clamp_max(max(labels))))


@pytest.mark.parametrize(("stream", "memory_size"), [(far_apart, 20), (overlapping, 40)])
def test_shrinkages_that_are_judged_at_every_renewal_agree(stream, memory_size, monkeypatch):
    monkeypatch.setattr(choice, "GRID_STEP", 1.0)
    monkeypatch.setattr(plain_gaussians, "GRID_STEP", 1.0)
    pair = learn_both(stream(), 10, by_block=True, memory_size=memory_size)
    assert pair.of_learner == pair.of_oracle
    assert_agree(pair.learner, pair.oracle, pair.stream)


def test_rows_that_judge_a_shrinkage_are_at_most_a_block(monkeypatch):
    monkeypatch.setattr(shared_covariance, "BLOCK_SIZE", 16)
    monkeypatch.setattr(plain_gaussians, "BLOCK", 16)
    pair = learn_both(returning(), 5, by_block=True)
    assert pair.of_learner == pair.of_oracle
    assert_agree(pair.learner, pair.oracle, pair.stream)


def test_single_precision_changes_no_decision_and_answers_by_little(monkeypatch):
    monkeypatch.setattr(shared_covariance.SharedGaussians, "routing_dtype", torch.float32)
    (x, y), learner, oracle, of_learner, of_oracle = learn_both(returning(), 10, by_block=True)
    assert of_learner == of_oracle
    evidence, expected = learner.bank.evidence(Samples(x), y), oracle.evidence(x, y)
    torch.testing.assert_close(evidence.log_known, expected.log_known, rtol=1e-4, atol=1e-4)
    answers = learner.predict_log_proba(x)
    torch.testing.assert_close(answers, oracle.predict_log_proba(x), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("changes", [{"novelty": "fixed"}, {"covariance": "own"}, {"classifier": "both"}])
def test_the_oracle_refuses_settings_that_it_does_not_implement(changes):
    with pytest.raises(ValueError, match="the oracle knows"):
        GaussianOracle(CNDPMSettings(**changes), input_shape=(5,))
