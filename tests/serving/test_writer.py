import contextlib
import threading

import numpy as np
import pytest
from tests.serving.client import clusters

from cndpm import CNDPMClassifier
from cndpm.serving import Limits, Store
from cndpm.serving.row_log import Acknowledgement
from cndpm.serving.writer import BusyError, LearnRequest, OtherRowsError, Writer, WriterFailedError

X, Y = clusters(60, seed=1)


@pytest.fixture
def store(model_file, tmp_path):
    return Store(model_file, tmp_path / "served")


def request(start, stop, name=None, *, y=None):
    return LearnRequest(X[start:stop], Y[start:stop] if y is None else y, name)


class Held:
    """Lets a writer take its first request and holds it there, so that others wait together."""

    def __init__(self, store):
        self._taken, self._go_on = threading.Event(), threading.Event()
        learn = store.model.partial_fit

        def partial_fit(*args):
            self._taken.set()
            self._go_on.wait(120)
            return learn(*args)

        store.model.partial_fit = partial_fit

    def __enter__(self):
        return self

    def wait(self):
        assert self._taken.wait(120)

    def __exit__(self, *_):
        self._go_on.set()


def test_rows_are_learned_in_the_order_in_which_they_came(store, model_file):
    writer = Writer(store)
    for start in range(0, 30, 5):
        writer.submit(request(start, start + 5)).result(120)
    writer.close()
    other = CNDPMClassifier.load(model_file)
    for start in range(0, 30, 5):
        other.partial_fit(X[start : start + 5], Y[start : start + 5])
    assert np.array_equal(store.model.predict_proba(X), other.predict_proba(X))


def test_requests_that_wait_share_a_record(store):
    writer = Writer(store, Limits(batch_rows=6))
    with Held(store) as held:
        first = writer.submit(request(0, 1))
        held.wait()
        others = [writer.submit(request(k, k + 2)) for k in (1, 3, 5, 7)]
    assert first.result(120) == Acknowledgement(0, 0)
    places = [(1, 0), (1, 2), (1, 4), (2, 0)]  # three requests of two rows fill a call
    assert [other.result(120) for other in others] == [Acknowledgement(*place) for place in places]
    writer.close()


def test_a_refused_request_spoils_none_that_came_with_it(store):
    writer = Writer(store)
    with Held(store) as held:
        first = writer.submit(request(0, 1))
        held.wait()
        good, bad, late = (
            writer.submit(request(1, 3)),
            writer.submit(request(3, 5, y=["a", float("nan")])),
            writer.submit(request(5, 6)),
        )
    assert [one.result(120).record for one in (first, good, late)] == [0, 1, 2]
    with pytest.raises(ValueError, match="NaN"):
        bad.result(120)
    writer.close()
    assert store.model.learner_.events.n_samples == 90 + 1 + 2 + 1


def test_the_same_id_is_learned_once(store):
    writer = Writer(store)
    first = writer.submit(request(0, 4, "mine")).result(120)
    assert writer.submit(request(0, 4, "mine")).result(120) == first
    with Held(store) as held:
        writer.submit(request(4, 5))
        held.wait()
        twice = [writer.submit(request(5, 8, "yours")) for _ in range(2)]
    assert twice[0].result(120) == twice[1].result(120)
    writer.close()
    assert store.model.learner_.events.n_samples == 90 + 4 + 1 + 3


def test_too_many_waiting_rows_are_turned_away(store):
    writer = Writer(store, Limits(waiting_rows=5))
    with Held(store) as held:
        writer.submit(request(0, 3))
        held.wait()
        writer.submit(request(3, 5))
        with pytest.raises(BusyError, match="5 rows wait"):
            writer.submit(request(5, 6))
    writer.close()


def test_a_record_that_cannot_be_written_is_not_acknowledged_and_ends_learning(store, monkeypatch):
    writer = Writer(store)

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(store, "append", full)
    with pytest.raises(WriterFailedError, match="No space left"):
        writer.submit(request(0, 2)).result(120)
    with pytest.raises(WriterFailedError, match="Start the server again"):
        writer.submit(request(2, 4))
    writer.close()
    assert not list(store.folder.glob("model-*1.cndpm"))  # the model is ahead of its log and must not be kept


def test_a_checkpoint_is_written_when_it_is_due_and_at_the_end(model_file, tmp_path):
    store = Store(model_file, tmp_path / "served", checkpoint_rows=4)
    told = []
    writer = Writer(store, learned=told.append, checkpointed=lambda: told.append("checkpoint"))
    writer.submit(request(0, 4)).result(120)
    writer.submit(request(4, 5)).result(120)
    writer.close()
    assert told == [4, "checkpoint", 1, "checkpoint"]


def test_the_same_id_with_other_rows_is_refused(store):
    writer = Writer(store)
    writer.submit(request(0, 4, "mine")).result(120)
    with pytest.raises(OtherRowsError, match="'mine' belongs to other rows, which were learned as record 0"):
        writer.submit(request(4, 8, "mine")).result(120)
    writer.close()
    assert store.model.learner_.events.n_samples == 90 + 4


def test_a_request_that_is_cancelled_before_its_turn_is_not_learned(store):
    writer = Writer(store)
    with Held(store) as held:
        first = writer.submit(request(0, 1))
        held.wait()
        gone, late = writer.submit(request(1, 3)), writer.submit(request(3, 4))
        assert gone.cancel()
        assert not first.cancel()  # it is being learned
    assert (first.result(120), late.result(120)) == (Acknowledgement(0, 0), Acknowledgement(1, 0))
    writer.close()
    assert (store.model.learner_.events.n_samples, writer.n_waiting) == (90 + 1 + 1, 0)


def test_a_writer_that_ends_tells_everybody(store):
    def broken(_):
        raise SystemExit("the thread ends")

    writer = Writer(store, learned=broken)
    with Held(store) as held:
        first = writer.submit(request(0, 1))
        held.wait()
        second = writer.submit(request(1, 2))
    for one in (first, second):
        with pytest.raises(WriterFailedError, match="the thread ends"):
            one.result(120)
    assert "the thread ends" in str(writer.failure)
    with pytest.raises(WriterFailedError, match="Start the server again"):
        writer.submit(request(2, 4))
    writer.close()


def test_an_id_whose_first_request_was_refused_may_come_again(store):
    writer = Writer(store)
    with Held(store) as held:
        writer.submit(request(0, 1))
        held.wait()
        bad = writer.submit(request(1, 3, "mine", y=["a", float("nan")]))
        good = writer.submit(request(1, 3, "mine"))
    with pytest.raises(ValueError, match="NaN"):
        bad.result(120)
    assert good.result(120) == Acknowledgement(1, 0)
    writer.close()


def test_what_waits_behind_a_record_that_could_not_be_written_is_not_learned(store, monkeypatch):
    writer, append = Writer(store, Limits(batch_rows=1)), store.append

    def full(*_):
        monkeypatch.setattr(store, "append", append)
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(store, "append", full)
    with Held(store) as held:
        first = writer.submit(request(0, 1))
        held.wait()
        second = writer.submit(request(1, 2))
    for one in (first, second):
        with pytest.raises(WriterFailedError, match="No space left"):
            one.result(120)
    writer.close()
    assert store.model.learner_.events.n_samples == 90 + 1 and store.n_records == 0


def test_a_request_longer_than_what_may_wait_is_taken_where_nothing_waits_and_waits_no_longer(store):
    writer = Writer(store, Limits(waiting_rows=2))
    writer.submit(request(0, 4)).result(120)
    writer.close()
    assert writer.n_waiting == 0


def test_rows_wait_no_longer_when_their_client_hears_of_them(store):
    writer = Writer(store)
    heard = []
    with Held(store) as held:
        learned = writer.submit(request(0, 4))
        held.wait()
        refused = writer.submit(LearnRequest(X[:2, :1], Y[:2]))
        for future in (learned, refused):
            future.add_done_callback(lambda _: heard.append(writer.n_waiting))
    writer.close()
    assert heard == [2, 0]


def test_a_writer_that_is_closed_takes_nothing(store):
    writer = Writer(store)
    writer.close()
    with pytest.raises(BusyError, match="being stopped"):
        writer.submit(request(0, 1))


def test_labels_end_at_a_limit_and_known_ones_are_learned_on(store):
    n_known = len(store.model.classes_)
    writer = Writer(store, Limits(labels=n_known + 2))
    X = np.zeros((3, store.model.n_features_in_), dtype=np.float32)
    known = store.model.classes_[0].item()
    assert writer.submit(LearnRequest(X, ["new", "new", known])).result().record == 0
    with pytest.raises(ValueError, match=rf"2 new labels beside the {n_known + 1} .* allows {n_known + 2} in all"):
        writer.submit(LearnRequest(X, ["newer", "newest", known])).result()
    with pytest.raises(TypeError, match="labels must be hashable"):
        writer.submit(LearnRequest(X, [["new"], ["newer"], ["newest"]])).result()
    writer.submit(LearnRequest(X, ["newer", "new", known])).result()
    with pytest.raises(ValueError, match="1 new labels"):
        writer.submit(LearnRequest(X, ["newest"] * 3)).result()
    assert writer.submit(LearnRequest(X, [known] * 3)).result().record == 2
    writer.close()
    assert len(store.model.classes_) == n_known + 2


def test_labels_that_a_checkpoint_could_not_hold_are_refused_before_they_are_learned(store, model_file, tmp_path):
    writer, refused = Writer(store), 0
    for i in range(6):
        labels = [f"{i} {k} " + "\U0001f600" * 990 for k in range(60)]
        rows = np.random.default_rng(i).normal(size=(60, store.model.n_features_in_)).astype(np.float32)
        try:
            writer.submit(LearnRequest(rows, labels)).result()
        except ValueError as error:
            assert "200000 characters together" in str(error)
            refused += 1
    writer.close()  # writes a checkpoint
    assert refused == 3
    again = Store(model_file, tmp_path / "served")
    assert len(again.model.classes_) == len(store.model.classes_) == 183
    again.close()


@pytest.mark.parametrize("is_due", [True, False])
def test_a_checkpoint_that_fails_is_not_counted_and_leaves_the_folder_to_the_next(store, model_file, tmp_path, is_due):
    def fail():
        raise OSError("the disk is full")

    written = []
    store.checkpoint, store.checkpoint_rows = fail, 1 if is_due else 1000
    writer = Writer(store, checkpointed=lambda: written.append(1))
    assert writer.submit(request(0, 3)).result().record == 0
    with contextlib.nullcontext() if is_due else pytest.raises(OSError, match="the disk is full"):
        writer.close()
    assert written == []
    Store(model_file, tmp_path / "served").close()
