"""Models merged in Python and on the command line, whatever order their labels came in."""

import pickle

import numpy as np
import pandas as pd
import pytest

from cndpm import CNDPMClassifier, CNDPMDensity, merge
from cndpm.cli import main
from cndpm.estimators.guarded import NumericalError
from cndpm.estimators.merging_models import merge_in_turn


def blobs(labels, n=60, seed=0):
    rng = np.random.default_rng(seed)
    centres = {label: 6 * np.random.default_rng(ord(label)).normal(size=3) for label in "abcd"}
    y = np.repeat(list(labels), n)
    return np.stack([centres[label] for label in y]) + rng.normal(size=(len(y), 3)), y


@pytest.fixture(scope="module")
def pickled_parts():
    first = CNDPMClassifier(memory_size=30, random_state=0, settings={"n_fourier": 8}).partial_fit(*blobs("bd"))
    return pickle.dumps([first, first.with_same_representation().partial_fit(*blobs("cab", seed=1))])


@pytest.fixture
def parts(pickled_parts):
    return pickle.loads(pickled_parts)


def test_labels_met_in_different_orders_mean_the_same_afterwards(parts):
    X, y = blobs("abcd", seed=2)
    for models in (parts, parts[::-1]):
        both = merge(models)
        assert both.classes_.tolist() == ["a", "b", "c", "d"]
        assert (both.predict(X) == y).all()
        assert both.partial_fit(X, y).score(X, y) == 1
        assert both._codec.count("b") == 120 + 60
    assert parts[0].classes_.tolist() == ["b", "d"]


def test_labels_that_each_met_alone_are_numbered_alike_whoever_is_first(parts):
    with_c, with_a = (parts[0].with_same_representation().partial_fit(*blobs(label, n=20)) for label in "ca")
    assert merge([with_c, with_a])._codec.labels == merge([with_a, with_c])._codec.labels == ["a", "b", "c", "d"]


def test_the_command_writes_the_same_model(parts, tmp_path, capsys):
    files = [str(tmp_path / name) for name in ("a.cndpm", "b.cndpm", "c.cndpm")]
    for model, file in zip(parts, files, strict=False):
        model.save(file)
    with pytest.raises(SystemExit) as end:
        main(["merge", *files[:2], "-o", files[2]])
    assert not end.value.code
    assert "experts" in capsys.readouterr().out
    X, _ = blobs("abcd", seed=3)
    np.testing.assert_array_equal(CNDPMClassifier.load(files[2]).predict_proba(X), merge(parts).predict_proba(X))


def test_models_of_different_kinds_are_refused(parts):
    with pytest.raises(ValueError, match="one class"):
        merge([parts[0], CNDPMDensity().fit(blobs("a")[0])])


SOME = [(("ab", "b"), 30), (("ab", "cd"), 30), (("abc", "b"), 500), (("ba", "ac"), 500)]


@pytest.mark.parametrize(("labels", "memory_size"), SOME)
def test_labels_that_only_some_have_met_are_those_of_all(labels, memory_size):
    first = CNDPMClassifier(memory_size=memory_size, random_state=0, settings={"n_fourier": 8})
    first.partial_fit(*blobs(labels[0])).consolidate()
    second = first.with_same_representation().partial_fit(*blobs(labels[1], seed=1))
    every = sorted(set("".join(labels)))
    X, y = blobs(every, seed=2)
    for models in ([first, second], [second, first]):
        both = merge(models)
        assert both.classes_.tolist() == every
        assert both.score(X, y) > 0.95
        assert both.partial_fit(X, y).score(X, y) > 0.95


def test_the_same_shard_is_not_counted_twice(parts, tmp_path):
    merged = merge(parts)
    merged.save(tmp_path / "merged")
    kept = CNDPMClassifier.load(tmp_path / "merged")
    twice = [[parts[0], parts[0]], [*parts, parts[1]], [merged, parts[1]], [parts[1], kept], [pickled(kept), parts[0]]]
    for models in twice:
        with pytest.raises(ValueError, match="its samples would count twice"):
            merge(models)
    blank = parts[0].with_same_representation()
    assert merge([parts[0], blank, blank]).counts_.sum() == parts[0].counts_.sum()  # they have learned nothing
    later = pickled(parts[1]).partial_fit(*blobs("a", seed=9))
    assert len(merge([parts[0], later]).classes_) == 4


def pickled(model):
    return pickle.loads(pickle.dumps(model))


def test_what_cannot_be_merged_is_refused_by_what_differs(parts):
    table = pd.DataFrame(blobs("ab")[0], columns=["x", "y", "z"]).assign(c=pd.Categorical(["u", "v"] * 60))
    y = blobs("ab")[1]
    named = CNDPMClassifier(memory_size=30, random_state=0).fit(table, y)
    other = CNDPMClassifier(memory_size=30, random_state=0).fit(table[["y", "x", "z", "c"]], y)
    more = CNDPMClassifier(memory_size=30, random_state=0)
    more.fit(table.assign(c=pd.Categorical(["u", "v"] * 60, ["u", "v", "w"])), y)
    weighted = CNDPMClassifier(class_weight="balanced", memory_size=30, random_state=0, settings={"n_fourier": 8})
    closed = [CNDPMClassifier(memory_size=30, random_state=0).partial_fit(*blobs("ab"), classes=["a", "b"])]
    closed.append(CNDPMClassifier(memory_size=30, random_state=0).partial_fit(*blobs("cd"), classes=["c", "d"]))
    wide = CNDPMClassifier(memory_size=30, random_state=0).fit(np.hstack([blobs("ab")[0]] * 2), y)
    for words, models in {
        "the same columns, in the same order; model 1 has": [named, other],
        "the same categories of columns": [named, more],
        "the same features": [parts[0], wide],
        "the same class_weight": [parts[0], weighted.fit(*blobs("ab"))],
        "models with a closed list of classes": closed,
        "model 1 of those that are merged has learned nothing": [parts[0], CNDPMClassifier()],
        "takes at least one model": [],
    }.items():
        with pytest.raises(ValueError, match=words):
            merge(models)
    for model in ("model.cndpm", None, 3):
        with pytest.raises(TypeError, match="model 1 of those that are merged is a"):
            merge_in_turn([pickled(parts[0]), model])
        with pytest.raises(TypeError, match="model 0 of those that are merged is a"):
            merge([model])
    with pytest.raises(TypeError, match="merge takes a list of models; got a str"):
        merge("model.cndpm")


def test_models_whose_numbers_cannot_be_computed_with_are_refused(parts):
    for pool in (model.learner_.places.pools[0] for model in parts):
        pool._now.curvature[:] = 1e99  # of files that were made up
    with pytest.raises(NumericalError, match="merge met numbers"):
        merge(parts)
