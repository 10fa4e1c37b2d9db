"""Models merged in Python and on the command line, whatever order their labels came in."""

import numpy as np
import pytest

from cndpm import CNDPMClassifier, CNDPMDensity, merge
from cndpm.cli import main


def blobs(labels, n=60, seed=0):
    rng = np.random.default_rng(seed)
    centres = {label: 6 * np.random.default_rng(ord(label)).normal(size=3) for label in "abcd"}
    y = np.repeat(list(labels), n)
    return np.stack([centres[label] for label in y]) + rng.normal(size=(len(y), 3)), y


@pytest.fixture
def parts():
    first = CNDPMClassifier(memory_size=30, random_state=0, settings={"n_fourier": 8}).partial_fit(*blobs("bd"))
    return [first, first.with_same_representation().partial_fit(*blobs("cab", seed=1))]


def test_labels_met_in_different_orders_mean_the_same_afterwards(parts):
    X, y = blobs("abcd", seed=2)
    for models in (parts, parts[::-1]):
        both = merge(models)
        assert both.classes_.tolist() == ["a", "b", "c", "d"]
        assert (both.predict(X) == y).all()
        assert both.partial_fit(X, y).score(X, y) == 1
    assert parts[0].classes_.tolist() == ["b", "d"]


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
