"""The endpoints, by a server that really runs."""

import asyncio
import contextlib
import json
import threading

import numpy as np
import pandas as pd
import pytest
from fastapi import Request
from tests.serving.client import Client, clusters

from cndpm import CNDPMClassifier, CNDPMDensity, CNDPMRegressor
from cndpm.serving import Limits, Server, Store, create_app
from cndpm.serving import app as app_module

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


def test_answers_with_many_labels_are_bounded_and_written_beside_the_loop(model_file, model, monkeypatch):
    threads = []
    write = app_module._json
    monkeypatch.setattr(
        app_module, "_json", lambda *args: threads.append(threading.current_thread().name) or write(*args)
    )
    with Server(model_file, port=0, limits=Limits(answer_values=60)) as server:
        client = Client(server.url)
        status, answer = client.post("/predict", X=X[:20].tolist())
        assert (status, answer["prediction"]) == (200, model.predict(X[:20]).tolist())
        assert np.array_equal(answer["proba"], model.predict_proba(X[:20]))
        status, answer = client.post("/predict", X=X[:21].tolist())  # 63 probabilities
        assert (status, answer["detail"][:45]) == (422, "a request has between 1 and 20 rows; got 21. ")
        assert client.post("/explain", X=X[:21].tolist())[0] == 200
        client.close()
    assert threads[0] != "cndpm-server"


def test_a_body_that_names_something_twice_is_refused(served):
    before = served.get("/model")
    status, answer = served("POST", "/learn", '{"X": [[1, 2, 3, 4]], "y": ["a"], "X": [[5, 6, 7, 8]], "id": "a: b"}')
    assert (status, answer["detail"]) == (422, "the body is an object with X and nothing but X, id, y, each named once")
    assert served.get("/model") == before
    assert served("POST", "/learn", '{"X": [[1, 2, 3, 4]], "y": ["a:"], "id": "a: \\": b"}')[0] == 200


def test_mistakes_are_named_and_change_nothing(served):
    before = served.get("/model")
    mistakes = {
        "every row has 4 values; 1 of 1 rows have not: row 0 has 2": {"X": [[1, 2]], "y": ["a"]},
        "which has no NaN or Infinity": {"X": [[1, 2, 3, float("inf")]], "y": ["a"]},
        "row 0 holds nothing but null": {"X": [[None] * 4], "y": ["a"]},
        "1 of 2 rows hold something else": {"X": [[1, 2, 3, 4], [1, 2, 3, "4"]], "y": ["a", "b"]},
        "X holds a whole number that is too large": {"X": [[1, 2, 3, 10**400]], "y": ["a"]},
        "a label has at most 1000 characters; got 2000": {"X": [[1, 2, 3, 4]], "y": ["a" * 2000]},
        "id is a text of 1 to 100 characters": {"X": [[1, 2, 3, 4]], "y": ["a"], "id": ""},
        "X is a list of rows, and each a list of 4 values": {"X": [1, 2, 3, 4], "y": ["a"]},
        "one JSON object, without others in it: a row is a list, not an object": {"X": [[1, 2, 3, 4]], "y": [{}]},
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
    assert "one JSON object" in served("POST", "/learn", b" []")[1]["detail"]
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


def runs(n, length=10, seed=0):
    """Rows that tell nothing, whose labels come in runs."""
    x = np.random.default_rng(seed).normal(size=(n, 2)).round(3)
    return x, np.array(["a", "b"])[np.arange(n) // length % 2]


@pytest.fixture
def in_runs(tmp_path):
    x, y = runs(405)
    model = CNDPMClassifier(memory_size=50, random_state=0)
    for i in range(405):
        model.partial_fit(x[i : i + 1], y[i : i + 1])
    model.save(tmp_path / "runs.cndpm")
    return model, tmp_path / "runs.cndpm"


def test_rows_that_come_next_are_answered_by_the_labels_before(in_runs):
    model, file = in_runs
    x = [[0.1, 0.2]]
    with Server(file, port=0) as server, contextlib.closing(Client(server.url)) as client:
        for when in ("now", "any"):
            expected = model.predict_proba(x, when=when)
            assert np.array_equal(client.post("/predict", X=x, when=when)[1]["proba"], expected)
        assert client.post("/predict", X=x)[1] == client.post("/predict", X=x, when="now")[1]
        assert client.post("/predict", X=x, when="next")[1]["proba"] == model.predict_proba(x, when="next").tolist()
        assert model.predict_proba(x, when="next")[0, 0] > 0.7 > model.predict_proba(x)[0, 0]
        status, said = client.post("/predict", X=x, when="then")
        assert (status, said["detail"]) == (422, "when is one of now, next, any")
        assert client.post("/explain", X=x, when="next")[0] == 422


def test_labels_that_come_late_are_counted(in_runs):
    model, file = in_runs
    x = runs(8, seed=1)[0].tolist()
    with Server(file, port=0) as server, contextlib.closing(Client(server.url)) as client:
        one_by_one = [client.post("/predict", X=[row], when="next")[1]["proba"][0] for row in x]
        assert np.allclose(one_by_one, model.predict_proba(x, when="next"), atol=1e-12)  # the fourth is the fourth
        client.post("/learn", X=x, y=["a"] * 8)
        model.partial_fit(x, ["a"] * 8)
        caught_up = client.post("/predict", X=x[:1], when="next")[1]["proba"]
        assert np.allclose(caught_up, model.predict_proba(x[:1], when="next"), atol=1e-12)


def test_what_json_cannot_repeat_is_answered_in_few_words(served):
    bodies = {
        "nan": b'{"X": [[NaN, 1, 2, 3]]}',
        "infinity": b'{"X": [[-Infinity, 1, 2, 3]]}',
        "huge": b'{"X": [[1e999, 1, 2, 3]]}',
        "surrogate": b'{"X": [[1, 2, 3, 4]], "y": ["\\ud800"]}',
        "no text": b'{"X": [["\xff", 1, 2, 3]]}',
        "deep": b"[" * 100_000,
        "flat": b'{"X": [' + b"0," * 1_000_000 + b"0]}",
        "long": b'{"X": [[' + b"1" * 3_000_000 + b"]]}",
        "strings": b'{"X": [' + b'"",' * 1_000_000 + b'""]}',
        "wide": b'{"X": [[' + b"0," * 1_000_000 + b"0]]}",
        "many": b'{"X": [' + b"[]," * 1_000_000 + b"[]]}",
        "nothing": b"",
    }
    for path in ("/predict", "/learn"):
        for name, body in bodies.items():
            status, answer = served("POST", path, body)
            assert status == 422 and len(answer["detail"]) < 300, (path, name, answer)
    assert served.get("/events?since=" + "9" * 5000 + "x")[0] == 422
    assert served.get("/model")[1]["n_samples"] == 90


def test_labels_may_hold_what_bodies_are_counted_by(served):
    label = 'a, "b", [c], {d}: \\' * 20
    status, answer = served.post("/learn", X=[[1, 2, 3, 4]] * 3, y=[label] * 3, id='x,"[{')
    assert status == 200, answer
    assert label in served.get("/model")[1]["classes"]


def test_null_is_a_missing_value(served, model):
    rows = [[None, 2.0, 3.0, 4.0], [8.0, 8.0, None, None]]
    expected = model.predict_proba(np.array(rows, dtype=np.float64))
    assert np.array_equal(served.post("/predict", X=rows)[1]["proba"], expected)
    assert served.post("/learn", X=rows, y=["class 0", "class 2"])[0] == 200


def test_the_same_id_with_other_rows_is_refused(served):
    assert served.post("/learn", X=X[:2].tolist(), y=Y[:2], id="mine")[0] == 200
    for rows, y in ((X[1:3].tolist(), Y[:2]), (X[:2].tolist(), Y[1:3]), (X[:1].tolist(), Y[:1])):
        status, answer = served.post("/learn", X=rows, y=y, id="mine")
        assert status == 409 and "'mine' belongs to other rows" in answer["detail"]
    assert served.post("/learn", X=X[:2].tolist(), y=Y[:2], id="mine") == (200, {"n_rows": 2, "record": 0, "row": 0})


def test_a_model_with_categories_is_served_and_comes_back(tmp_path):
    colours = ["red", "blue", "green"]
    table = pd.DataFrame({"size": X[:, 0], "colour": pd.Categorical([colours[i % 3] for i in range(60)])})
    model = CNDPMClassifier(memory_size=30, random_state=0).fit(table, Y)
    model.save(tmp_path / "model")
    rows = [[1.5, "blue"], [None, "red"], [2.0, None], [3.0, "unknown"]]
    with Server(tmp_path / "model", port=0) as server:
        client = Client(server.url)
        facts = client.get("/model")[1]
        assert facts["columns"] == ["size", "colour"] and facts["categories"] == [None, sorted(colours)]
        values = {"size": [1.5, np.nan, 2.0, 3.0], "colour": pd.Categorical(["blue", "red", None, None], colours)}
        answer = client.post("/predict", X=rows)[1]
        assert np.allclose(answer["proba"], model.predict_proba(pd.DataFrame(values)))
        assert "column 'size' holds numbers" in client.post("/predict", X=[["blue", 1.5]])[1]["detail"]
        assert client.post("/learn", X=rows, y=Y[:4])[0] == 200
        answer = client.post("/predict", X=rows)[1]
        assert client.post("/explain", X=rows)[0] == 200
        client.close()
    with Server(tmp_path / "model", port=0) as server:
        client = Client(server.url)
        assert client.post("/predict", X=rows)[1] == answer
        client.close()


def test_a_handler_that_is_cancelled_ends_nothing(model_file, tmp_path):
    """As a middleware with a time limit, or another ASGI server, cancels them."""
    store = Store(model_file, tmp_path / "served")
    app = create_app(store)
    learn = next(route.endpoint for route in app.routes if getattr(route, "path", "") == "/learn")

    def request(k):
        body = json.dumps({"X": X[k : k + 1].tolist(), "y": Y[k : k + 1]}).encode()

        async def receive():
            return {"type": "http.request", "body": body, "more_body": False}

        return Request({"type": "http", "path": "/learn", "headers": [], "server": ("x", 1)}, receive)

    async def cancel_and_go_on():
        for k in range(20):
            task = asyncio.create_task(learn(request(k)))
            await asyncio.sleep(0)
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task
        return await asyncio.wait_for(learn(request(20)), 300)

    assert asyncio.run(cancel_and_go_on()).status_code == 200
    service = learn.__self__
    assert service.writer.failure is None
    service.writer.close()
    assert service.writer.n_waiting == 0
    assert store.model.learner_.events.n_samples >= 91
