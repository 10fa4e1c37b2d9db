import numpy as np
from tests.engines.test_sharding import Here

from cndpm import CNDPMClassifier
from cndpm.engines import local


def test_files_become_a_model(cndpm, tmp_path, monkeypatch):
    monkeypatch.setattr(local, "make_engine", lambda *_, **__: Here())
    y = np.arange(300) % 2
    X = np.random.default_rng(0).normal(size=(300, 2)) + 6 * y[:, None]
    lines = ["a,b,kind", *(f"{a},{b},{'even' if k == 0 else 'odd'}" for (a, b), k in zip(X.tolist(), y, strict=True))]
    (tmp_path / "rows.csv").write_text("\n".join(lines))
    settings = ("--set", "memory_size=30", "--set", "features=identity", "--set", "representations=one")
    outcome = cndpm("fit", "rows.csv", "--target", "kind", "-o", "model.cndpm", *settings, "--json")
    assert outcome.code == 0, outcome.err
    assert (outcome.json["n_rows"], outcome.json["n_shards"]) == (300, 2)
    model = CNDPMClassifier.load(tmp_path / "model.cndpm")
    assert model.predict([[0.0, 0.0], [6.0, 6.0]]).tolist() == ["even", "odd"]
    assert model.memory_size == 30


def test_mistakes_are_one_line(cndpm, tmp_path):
    (tmp_path / "rows.csv").write_text("a,b\n1,2\n")
    fit = ("fit", "rows.csv", "-o", "m")
    assert "there is no kind of model called 'regresor'" in cndpm(*fit, "--kind", "regresor").err
    assert "memory_size" in cndpm(*fit, "--set", "memory_size=none").err
    outcome = cndpm(*fit, "--target", "c")
    assert (outcome.code, outcome.err.count("\n")) == (1, 1)
    assert "has no column 'c'; it has a, b" in outcome.err
