"""Prequential evaluation from Python: it is the loop that one would write by hand."""

import numpy as np
import pytest
import torch
from sklearn.naive_bayes import GaussianNB

from cndpm import CNDPMClassifier
from cndpm.baselines.slda import SLDA
from cndpm.experiments import prequential
from cndpm.model.cndpm import CNDPM
from cndpm.streams import load_scenario, stream_of_rows


def short(n=400, change=200):
    rows = load_scenario("drift-flip").draw(0)
    return stream_of_rows(rows.x[:n], np.where(np.arange(n) < change, rows.y[:n], 1 - rows.y[:n]), changes=(change,))


@pytest.mark.parametrize(("kind", "settings"), [(CNDPM, {}), (SLDA, {"n_features": 20})])
def test_a_learner_is_asked_before_it_learns_as_in_a_loop_by_hand(kind, settings):
    stream = short()
    model, twin = (kind(kind.Settings(**settings), input_shape=(5,), n_classes=2) for _ in range(2))
    hits, losses = [], []
    for x, y in stream:
        prepared = twin.prepare(x)
        log_proba = twin.predict_for(prepared, "next")
        hits += (log_proba.argmax(1) == y).tolist()
        losses += (-log_proba.gather(1, y[:, None])[:, 0]).double().tolist()
        twin.learn(prepared, y)
    evaluation = prequential(model, stream, window=50)
    windows = list(evaluation)
    assert [window["accuracy"] for window in windows] == [100 * np.mean(part) for part in np.reshape(hits, (8, 50))]
    summary = evaluation.summary()
    assert summary["accuracy"] == pytest.approx(100 * np.mean(hits))
    assert summary["log_loss"] == pytest.approx(np.mean(np.minimum(losses, 36.04365)))
    assert torch.equal(model.predict_log_proba(stream.x), twin.predict_log_proba(stream.x))
    assert summary["seconds"] > 0 and summary["recovery"][0]["change"] == 200


def test_an_estimator_is_asked_with_predict_and_taught_with_partial_fit():
    stream, twin, hits = short(), GaussianNB(), []
    for i, (x, y) in enumerate(stream):
        if i:
            hits += (twin.predict(x.numpy()) == y.numpy()).tolist()
        twin.partial_fit(x.numpy(), y.numpy(), classes=[0, 1])
    summary = prequential(GaussianNB(), stream).run().summary()
    assert summary["accuracy"] == pytest.approx(100 * np.mean(hits)) and summary["n_unanswered"] == 10


def test_the_summary_tells_of_what_was_read_and_reading_goes_on():
    evaluation = prequential(CNDPMClassifier(random_state=0), short(), window=100)
    first = next(evaluation)
    assert (first.first, first.n_samples, evaluation.summary()["n_samples"]) == (0, 90, 90)
    assert [window.first for window in evaluation] == [100, 200, 300]
    assert evaluation.summary()["n_samples"] == 390 and list(evaluation) == []


def test_batches_may_come_from_anywhere():
    rng = np.random.default_rng(0)
    batches = [(x := rng.normal(size=(10, 3)), (x[:, 0] > 0).astype(int)) for _ in range(20)]
    summary = prequential(CNDPMClassifier(random_state=0), iter(batches)).run().summary()
    assert summary["n_samples"] == 190 and summary["recovery"] == [] and summary["accuracy"] > 70


def test_a_mixture_tells_which_expert_answered():
    rows = load_scenario("drift-scales").draw(0)
    stream = stream_of_rows(rows.x[:600], rows.y[:600])
    learner = CNDPM(CNDPM.Settings(memory_size=50), input_shape=(8,), n_classes=2)
    windows = list(prequential(learner, stream))
    assert all(sum(window.experts) == 100 for window in windows[1:])
    assert sum(windows[0].experts) == 50  # there was no expert before the memory was full


def test_the_last_window_is_told_though_it_is_not_full():
    windows = list(prequential(GaussianNB(), short(130, change=100), window=50))
    assert [(window.first, window.n_samples) for window in windows] == [(0, 40), (50, 50), (100, 30)]
