"""Figures beside the twelve streams of benchmarks.drift: one section each, printed as lines of name and value.

    python -m benchmarks.evidence                       # all sections, about ten minutes on one core
    python -m benchmarks.evidence returning calibration --seeds 0,1,2
    python -m benchmarks.evidence --rows-by-seed                 # other rows for every seed, where rows are generated

Nothing here is a setting: models are the defaults throughout, and every section says what it measures on. The rows of
generated streams are those of seed 0 and seeds are the models', unless `--rows-by-seed` draws others for every seed.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Iterator, Sequence
from statistics import fmean
from typing import Any, Literal, NamedTuple

import numpy as np
from figures.facts import add_options, facts
from scipy.optimize import minimize_scalar
from scipy.special import log_softmax
from sklearn import datasets
from sklearn.metrics import log_loss, r2_score, roc_auc_score
from sklearn.model_selection import train_test_split

from benchmarks.tables import clustered
from cndpm import CNDPMClassifier, CNDPMDensity, CNDPMRegressor
from cndpm.experiments import configure, prequential
from cndpm.streams import DriftScenario, drifting_clusters, load_scenario
from cndpm.streams.rows import flipped_rule, tripling_scales

Figures = Iterator[tuple[str, Any]]
Split = tuple[Any, Any, Any, Any]
When = Literal["now", "any"]


class Seed(NamedTuple):
    """What a model is seeded with, and what its rows are drawn with where they are generated."""

    model: int
    rows: int


def returning(seeds: Sequence[Seed]) -> Figures:
    """Samples until 95 % of the former accuracy after each change; experts; accuracy; ten rows a batch."""
    for name in ("drift-flip", "drift-rotate", "drift-in-turn", "drift-sine", "drift-sine-in-turn", "drift-turning"):
        found = [_ahead(name, seed) for seed in seeds]
        over = [[row["samples"] for row in one["recovery"]] for one in found]
        yield f"{name}: samples until each change is over, by seed", over
        yield f"{name}: experts, by seed", [one["n_experts"] for one in found]
        yield f"{name}: accuracy", fmean(one["accuracy"] for one in found)


def regression(seeds: Sequence[Seed]) -> Figures:
    """Prequential error of two streams; R squared and intervals on 30 % held out, ten splits."""
    yield "drift-sign: mean absolute error", fmean(_ahead("drift-sign", seed)["absolute_error"] for seed in seeds)
    scenario = load_scenario("drift-water-flow")
    assert isinstance(scenario, DriftScenario)
    flow = scenario.draw().y
    before = np.cumsum(flow)[:-1] / np.arange(1, len(flow))
    yield "drift-water-flow: mean absolute error of the running mean", float(np.abs(flow[1:] - before).mean())
    yield (
        "drift-water-flow: mean absolute error",
        fmean(_ahead("drift-water-flow", seed)["absolute_error"] for seed in seeds),
    )
    for name, load in (("diabetes", _diabetes), ("friedman1", _friedman)):
        scores = [_intervals(_split(*load(seed), seed)) for seed in range(10)]
        yield f"{name}: R squared", fmean(score for score, _ in scores)
        yield f"{name}: share inside the 90 % intervals (%)", 100 * fmean(inside for _, inside in scores)


def scales(seeds: Sequence[Seed]) -> Figures:
    """Five domains whose scale triples: every fifth row is held out, the others are learned in order."""
    models, right = [], []
    for seed in seeds:
        rows = tripling_scales(seed.rows)
        held = np.arange(len(rows.x)) % 5 == 4
        models.append(CNDPMClassifier(random_state=seed.model).partial_fit(rows.x[~held], rows.y[~held]))
        right.append(_accuracy(models[-1], rows.x[held], rows.y[held]))
    yield "five scales: accuracy on held-out rows of all domains", fmean(right)
    yield "five scales: experts, by seed", [model.n_experts_ for model in models]
    yield "five scales: prequential accuracy", fmean(_ahead("drift-scales", seed)["accuracy"] for seed in seeds)


def columns(seeds: Sequence[Seed]) -> Figures:
    """A linear rule; all columns are multiplied by 100 after row 600; 500 such rows follow, then 1,000 of each test."""
    found = []
    for seed in seeds:
        rows = flipped_rule(seed.rows)
        x, y = rows.x[:3000], rows.y[:3000]
        model = CNDPMClassifier(random_state=seed.model).partial_fit(x[:600], y[:600])
        before = _accuracy(model, x[2000:], y[2000:])
        model.partial_fit(100 * x[600:1100], y[600:1100])
        found.append((before, _accuracy(model, x[2000:], y[2000:]), _accuracy(model, 100 * x[1100:2000], y[1100:2000])))
    before, after, new = (fmean(values) for values in zip(*found, strict=True))
    yield "columns times 100: old rows before and after", [before, after]
    yield "columns times 100: new rows after 500", new


def calibration(_: Sequence[Seed]) -> Figures:
    """Log loss on 30 % held out, ten splits, and at the best single temperature; for now and for any time."""
    loaders = {"breast cancer": datasets.load_breast_cancer, "digits": datasets.load_digits, "wine": datasets.load_wine}
    for name, load in loaders.items():
        data: tuple[Any, Any] = load(return_X_y=True)
        yield from _calibrated(name, [_split(*data, seed) for seed in range(10)])
    yield from _calibrated("moons", [_split(*_moons(seed), seed) for seed in range(10)])
    made = [_split(*clustered(2000, seed), seed) for seed in range(10)]
    yield from _calibrated("made, 10 classes of 3 clusters", made)


def outliers(seeds: Sequence[Seed]) -> Figures:
    """One feature of row 150 of 300 is replaced; accuracy, R squared or area under the curve on 1,000 others (%)."""
    for name, score in (
        ("classifier", _classified),
        ("the paper's classifier", _classified_as_the_paper),
        ("regressor", _regressed),
        ("density", _described),
    ):
        for value in (None, 1e4, 1e8, 1e10, 3e38):
            row = "no outlier" if value is None else f"{value:g}"
            yield f"{name}, {row}", _tried(score, value, seeds)


def novelty(seeds: Sequence[Seed]) -> Figures:
    """Area under the curve of minus the log density, known rows that were held out against new ones."""
    for name, draw in {
        "digits 8 and 9 among the others": _digits,
        "two moons against their box": _moons_in_a_box,
        "drifting sensors against others": _sensors,
    }.items():
        yield name, fmean(_area(*draw(seed.rows), seed.model) for seed in seeds)


def intervals(seeds: Sequence[Seed]) -> Figures:
    """Rows inside 90 % intervals in every fifth of x: a sine with noise of one size, and with noise that grows."""
    for name, deviation in {"grows": lambda x: 0.1 + x, "same": lambda x: np.full_like(x, 0.3)}.items():
        for n in (300, 1000, 2000):
            inside = [_inside_by_fifths(deviation, n, seed) for seed in seeds]
            shares = np.mean(inside, axis=0)
            yield f"noise {name}, {n} rows: share inside the 90 % intervals by fifths of x (%)", shares.tolist()


def weights(seeds: Sequence[Seed]) -> Figures:
    """Log loss on 30 % held out where all rows have one weight, and where they have weights of 1 to 3 at random."""
    for name, load in {"breast cancer": datasets.load_breast_cancer, "wine": datasets.load_wine}.items():
        for weight in (None, 1, 2, 5, 0.3, "1 to 3"):
            found = [_weighted_loss(load(return_X_y=True), weight, seed) for seed in seeds]
            yield f"{name}, weights {weight}: log loss", fmean(loss for loss, _ in found)
            yield f"{name}, weights {weight}: experts, by seed", [n_experts for _, n_experts in found]


SECTIONS: dict[str, Callable[[Sequence[Seed]], Figures]] = {
    section.__name__: section
    for section in (returning, regression, intervals, weights, scales, columns, calibration, outliers, novelty)
}


def _ahead(name: str, seed: Seed) -> dict[str, Any]:
    """Answers and learns a scenario in batches of ten; returns the summary."""
    stream = load_scenario(name).build(seed=seed.rows)
    learner = configure(name, seed=seed.model, device="cpu").build_learner(stream)
    return prequential(learner, stream).run().summary()


def _inside_by_fifths(deviation: Callable[[Any], Any], n: int, seed: Seed) -> list[float]:
    """Returns the share (%) of 1,000 further rows that the intervals hold in each fifth of x."""
    rng = np.random.default_rng([seed.rows, 5])
    x = rng.uniform(0, 1, (n + 1000, 1))
    y = (np.sin(6 * x) + deviation(x) * rng.normal(size=x.shape))[:, 0]
    bounds = CNDPMRegressor(random_state=seed.model).fit(x[:n], y[:n]).predict_interval(x[n:])
    is_inside, fifths = (bounds[:, 0] < y[n:]) & (y[n:] < bounds[:, 1]), np.minimum(5 * x[n:, 0], 4).astype(int)
    return [float(100 * is_inside[fifths == k].mean()) for k in range(5)]


def _weighted_loss(table: tuple[Any, Any], weight: Any, seed: Seed) -> tuple[float, int]:
    """Returns the log loss on 30 % held out, and the experts."""
    x, held, y, truth = _split(*table, seed.model)
    drawn = np.random.default_rng(seed.model).integers(1, 4, len(y)) if weight == "1 to 3" else None
    given = drawn if drawn is not None or weight is None else np.full(len(y), weight)
    model = CNDPMClassifier(random_state=seed.model).fit(x, y, sample_weight=given)
    return float(log_loss(truth, model.predict_proba(held))), model.n_experts_


def _accuracy(model: CNDPMClassifier, x: Any, y: Any) -> float:
    return 100 * float((model.predict(x) == y).mean())


def _digits(seed: int) -> tuple[Any, Any, Any]:
    """Returns digits 0 to 7 to learn, others of them, and 8 and 9."""
    x, y = datasets.load_digits(return_X_y=True)
    train, known = train_test_split(x[y < 8], test_size=0.3, random_state=seed)
    return train, known, x[y >= 8]


def _moons_in_a_box(seed: int) -> tuple[Any, Any, Any]:
    """Returns rows of two moons to learn, others of them, and rows of a box around them."""
    moons = datasets.make_moons(2000, noise=0.1, random_state=seed)[0]
    return moons[:1000], moons[1000:], np.random.default_rng(seed).uniform([-2, -1.5], [3, 2], size=(1000, 2))


def _sensors(seed: int) -> tuple[Any, Any, Any]:
    """Returns rows of sensors that drift to learn, the rows that follow, and those of other sensors."""
    draw = drifting_clusters(seed=seed, n_classes=6)
    parts = (range(900), range(900, 1000), range(1000, 1100))
    learned, later, other = (np.concatenate([draw(i)[0].numpy() for i in some]) for some in parts)
    return learned, later, other


def _diabetes(_: int) -> tuple[Any, Any]:
    data: tuple[Any, Any] = datasets.load_diabetes(return_X_y=True)
    return data


def _friedman(seed: int) -> tuple[Any, Any]:
    data: tuple[Any, Any] = datasets.make_friedman1(2000, noise=1.0, random_state=seed)
    return data


def _moons(seed: int) -> tuple[Any, Any]:
    data: tuple[Any, Any] = datasets.make_moons(1000, noise=0.2, random_state=seed)
    return data


def _split(x: Any, y: Any, seed: int) -> Split:
    made: Split = tuple(train_test_split(x, y, test_size=0.3, random_state=seed))
    return made


def _intervals(split: Split) -> tuple[float, float]:
    """Returns R squared, and the share of targets within 1.645 deviations of the mean."""
    x, held, y, truth = split
    mean, deviation = CNDPMRegressor(random_state=0).fit(x, y).predict(held, return_std=True)
    return float(r2_score(truth, mean)), float((np.abs(truth - mean) < 1.645 * deviation).mean())


def _calibrated(name: str, splits: Sequence[Split]) -> Figures:
    models = [CNDPMClassifier(random_state=0).fit(x, y) for x, _, y, _ in splits]
    times: tuple[tuple[When, str], ...] = (("now", ""), ("any", ", any"))
    for when, suffix in times:
        losses = []
        for model, (_, held, _, truth) in zip(models, splits, strict=True):
            log_proba = np.maximum(model.predict_log_proba(held, when=when), -700)
            losses.append(_tempered(log_proba, truth))
        own, best = (fmean(pair[i] for pair in losses) for i in range(2))
        yield f"{name}{suffix}: log loss, at the best temperature, ratio", [own, best, own / best]


def _tempered(log_proba: Any, truth: Any) -> tuple[float, float]:
    """Returns the log loss of log probabilities (n, C), and at the best single temperature."""

    def loss(t: float) -> float:
        return float(log_loss(truth, np.exp(log_softmax(log_proba / np.exp(t), axis=1))))

    return loss(0.0), min(loss(0.0), minimize_scalar(loss, bounds=(-3, 5), method="bounded").fun)


def _rows(value: float | None, seed: int) -> tuple[Any, Any]:
    """Draws 300 rows to learn, one of them with an outlier, and 1,000 others, (1300, 4)."""
    rng = np.random.default_rng(seed)
    y = rng.integers(2, size=1300)
    x = rng.normal(size=(1300, 4)) + 2 * y[:, None] * np.array([1, 0, 0, 1])
    if value is not None:
        x[150, 2] = value
    return x, y


def _tried(score: Callable[[float | None, int], float], value: float | None, seeds: Sequence[Seed]) -> float | str:
    """Returns the mean score over seeds, or the reason why a model refuses the rows."""
    try:
        return fmean(score(value, seed.model) for seed in seeds)
    except (ValueError, RuntimeError) as error:
        return f"refused: {str(error)[:80]}"


def _classified(value: float | None, seed: int, model: Any = None) -> float:
    x, y = _rows(value, seed)
    model = model or CNDPMClassifier(random_state=seed)
    return 100 * float(model.partial_fit(x[:300], y[:300]).score(x[300:], y[300:]))


def _classified_as_the_paper(value: float | None, seed: int) -> float:
    few = {"density_sleep_steps": 300, "predictor_sleep_steps": 300, "hidden": 32, "likelihood": "gaussian"}
    rates = {"density_lr": 1e-3, "predictor_lr": 1e-3}
    model = CNDPMClassifier.paper(log_alpha=-1000.0, memory_size=100, settings=few | rates, random_state=seed)
    return _classified(value, seed, model)


def _regressed(value: float | None, seed: int) -> float:
    x, y = _rows(value, seed)
    target = x[:, 0] - x[:, 1] + y
    model = CNDPMRegressor(random_state=seed).partial_fit(x[:300], target[:300])
    return 100 * float(model.score(x[300:], target[300:]))


def _described(value: float | None, seed: int) -> float:
    x, _ = _rows(value, seed)
    box = np.random.default_rng(seed).uniform(-5, 7, size=(1000, 4))
    return 100 * _area(x[:300], x[300:], box, seed)


def _area(train: Any, known: Any, new: Any, seed: int) -> float:
    model = CNDPMDensity(random_state=seed).partial_fit(train)
    scores = -model.score_samples(np.concatenate([known, new]))
    return float(roc_auc_score(np.arange(len(scores)) >= len(known), scores))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sections", nargs="*", help=f"of {', '.join(SECTIONS)}; all where none is named")
    parser.add_argument("--seeds", default="0,1,2", help="of the models")
    parser.add_argument("--rows-by-seed", action="store_true", help="draw the rows of every seed, not those of seed 0")
    add_options(parser)
    options = parser.parse_args()
    seeds, found = [int(seed) for seed in options.seeds.split(",")], {}
    for section in options.sections or SECTIONS:
        print(f"\n{section}: {(SECTIONS[section].__doc__ or '').strip()}")
        for name, value in SECTIONS[section]([Seed(seed, seed * options.rows_by_seed) for seed in seeds]):
            found[name] = value
            print(f"  {name}: {_short(value)}", flush=True)
    if options.out:
        made_by = facts(commit=options.commit) | {"seeds": seeds}
        options.out.write_text(json.dumps(made_by | {"figures": found}, indent=1) + "\n", encoding="utf-8")


def _short(value: Any) -> str:
    if isinstance(value, list):
        return ", ".join(_short(one) for one in value)
    return f"{value:.4g}" if isinstance(value, float) else str(value)


if __name__ == "__main__":
    main()
