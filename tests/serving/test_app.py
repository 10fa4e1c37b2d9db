"""The endpoints, by a server that really runs."""

import numpy as np
from tests.serving.client import Client, clusters

from cndpm import CNDPMClassifier, CNDPMDensity, CNDPMRegressor
from cndpm.serving import Limits, Server

X, Y = clusters(60, seed=1)


def test_answers_are_the_models_own(served, model):
    status, answer = served.post("/predict", X=X[:5].tolist())
    assert (status, answer["prediction"]) == (200, model.predict(X[:5]).tolist())
    assert answer["classes"] == model.classes_.tolist()
    assert np.array_equal(answer["proba"], model.predict_proba(X[:5]))
    status, answer = served.post("/explain", X=X[:5].tolist())
    assert status == 200
    assert {name: values.tolist() for name, values in model.explain(X[:5]).columns().items()} == answer


def test_rows_that_were_learned_answer_and_are_there_after_a_restart(model_file):
    far = [[90.0, 90.0, 90.0, 90.0 + k] for k in range(3)]
    with Server(model_file, port=0) as server:
        client = Client(server.url)
        status, answer = client.post("/learn", X=far, y=["far"] * 3, id="mine")
        assert (status, answer) == (200, {"n_rows": 3, "record": 0, "row": 0})
        assert client.post("/predict", X=far)[1]["prediction"] == ["far"] * 3
        client.close()
    with Server(model_file, port=0) as server:
        client = Client(server.url)
        assert client.post("/predict", X=far)[1]["classes"][-1] == "far"
        assert client.post("/learn", X=far, y=["far"] * 3, id="mine")[1]["record"] == 0
        facts = client.get("/model")[1]
        assert (facts["n_samples"], facts["kind"]) == (93, "CNDPMClassifier")
        client.close()


def test_mistakes_are_named_and_change_nothing(served):
    before = served.get("/model")
    mistakes = {
        "every row has 4 numbers; got rows of [2]": {"X": [[1, 2]], "y": ["a"]},
        "numbers must be finite": {"X": [[1, 2, 3, float("inf")]], "y": ["a"]},
        "values up to": {"X": [[1, 2, 3, 1e30]], "y": ["a"]},
        "between 1 and 10000 rows; got 0": {"X": [], "y": []},
        "y is missing": {"X": [[1, 2, 3, 4]]},
        "1 rows and 2 in y": {"X": [[1, 2, 3, 4]], "y": ["a", "b"]},
        "labels must be hashable": {"X": [[1, 2, 3, 4]], "y": [[1.0]]},
    }
    for words, content in mistakes.items():
        status, answer = served.post("/learn", **content)
        assert status == 422 and words in answer["detail"], (words, answer)
    assert served("POST", "/learn", b"{")[0] == 422
    assert served.post("/learn", X=[[1, 2, 3, 4]], y=["a"], Id="mine")[0] == 422
    assert served.get("/model") == before


def test_events_are_those_of_the_model_after_a_sample(served, model):
    events = [event._asdict() for event in model.events_]
    assert served.get("/events")[1] == {"events": events, "n_samples": 90}
    first = events[0]["sample"]
    assert served.get(f"/events?since={first - 1}")[1]["events"] == events
    assert served.get(f"/events?since={first}")[1]["events"] == [event for event in events if event["sample"] > first]


def test_metrics_count_requests_and_rows(served):
    served.post("/predict", X=X[:5].tolist())
    served.post("/learn", X=X[:4].tolist(), y=Y[:4])
    served.post("/learn", X=[[1]], y=["a"])
    status, text = served.get("/metrics")
    lines = text.splitlines()
    assert status == 200
    for line in (
        'cndpm_requests_total{path="/learn",status="422"} 1.0',
        "cndpm_rows_learned_total 4.0",
        "cndpm_call_rows_sum 5.0",
        "cndpm_samples 94.0",
        "cndpm_waiting_rows 0.0",
    ):
        assert line in lines


def test_requests_are_described_and_healthy(served):
    assert served.get("/health") == (200, {"status": "ok", "reason": None})
    paths = served.get("/openapi.json")[1]["paths"]
    assert {"/predict", "/explain", "/learn", "/events", "/health", "/metrics"} <= set(paths)
    assert served.get("/docs")[0] == 200


def test_limits_hold(model_file):
    with Server(model_file, port=0, limits=Limits(rows=2, body_bytes=400)) as server:
        client = Client(server.url)
        assert client.post("/predict", X=X[:2].tolist())[0] == 200
        assert "between 1 and 2 rows; got 3" in client.post("/predict", X=np.zeros((3, 4)).tolist())[1]["detail"]
        assert client.post("/predict", X=X[:2].tolist(), filler="x" * 400)[0] == 413
        client.close()


def test_a_regressor_and_a_density_are_served(tmp_path):
    models = {
        "regressor": CNDPMRegressor(memory_size=30, random_state=0).fit(X, X[:, 0]),
        "density": CNDPMDensity(memory_size=30, random_state=0).fit(X),
    }
    for name, model in models.items():
        model.save(tmp_path / name)
        with Server(tmp_path / name, port=0) as server:
            client = Client(server.url)
            _, answer = client.post("/predict", X=X[:3].tolist())
            assert np.array_equal(answer["prediction"], model.predict(X[:3]))
            y = {"y": X[:4, 1].tolist()} if name == "regressor" else {}
            assert client.post("/learn", X=X[:4].tolist(), **y)[0] == 200
            wrong = {} if name == "regressor" else {"y": [1, 2, 3, 4]}
            assert client.post("/learn", X=X[:4].tolist(), **wrong)[0] == 422
            client.close()


def test_predictions_come_while_the_model_learns(served, model_file):
    """Answers are those of a model between two batches: one of the models that one after another learns."""
    other, allowed = CNDPMClassifier.load(model_file), []
    for k in range(4):
        allowed.append(other.predict_proba(X[:3]).tolist())
        other.partial_fit(X[10 * k : 10 * k + 10], Y[10 * k : 10 * k + 10])
    allowed.append(other.predict_proba(X[:3]).tolist())
    answers = []
    for k in range(4):
        served.post("/learn", X=X[10 * k : 10 * k + 10].tolist(), y=Y[10 * k : 10 * k + 10])
        answers.append(served.post("/predict", X=X[:3].tolist())[1]["proba"])
    assert answers == allowed[1:]
