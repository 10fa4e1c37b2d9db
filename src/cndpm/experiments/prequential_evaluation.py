"""Prequential evaluation: every batch is answered first and learned afterwards, so that each sample tests the model.

    for window in prequential(model, stream):
        print(window.first, window["accuracy"])

Runs do the same with ``RunSettings(prequential=True)`` and leave a record.
"""

from __future__ import annotations

import inspect
import math
import pickle
import time
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Self

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.exceptions import NotFittedError
from torch import Tensor

from cndpm.experiments.meter import Answers, Meter, Window
from cndpm.experiments.scores import ClassAnswers, DensityAnswers, ValueAnswers
from cndpm.experiments.teaching import TaskNotices, ask, class_answers, expert_gate
from cndpm.learner import Footprint, Learner
from cndpm.streams import Batch, Stream, stream_from

__all__ = ["prequential"]


_BYTES = 4  # of one number that a learner keeps


def asked_model(model: Any, stream: Stream, classes: Sequence[Any] | None = None) -> AskedLearner | AskedEstimator:
    """Returns a learner or an estimator as a model that can be asked; TypeError for what is neither."""
    if isinstance(model, Learner):
        return AskedLearner(model, stream)
    if not hasattr(model, "partial_fit"):
        raise TypeError(
            f"a learner or an object with partial_fit is needed; got {type(model).__name__}. Give it a method "
            "partial_fit(X, y) that learns one batch."
        )
    if classes is None and stream.n_classes is not None:
        classes = range(stream.n_classes)
    return AskedEstimator(model, stream, classes)


class AskedLearner:
    """A learner that is asked about a batch and then taught it; what it computes of it to answer serves to learn it."""

    def __init__(self, learner: Learner, stream: Stream) -> None:
        self._learner, self._target, self._step = learner, stream.target, 0
        self._notices = None if learner.task_listener is None else TaskNotices(learner.task_listener, stream)

    def ask(self, batch: Batch) -> Answers | None:
        """Returns the answers to a batch beside the truth; None where the model cannot answer yet."""
        self._x, self._y = self._learner.prepare(batch.x), batch.y
        return ask(self._learner, self._x, batch.y, self._target)

    def gate(self) -> Tensor | None:
        """Returns the experts' log-probabilities for the batch, (batch, n_experts); None where there are no experts."""
        return expert_gate(self._learner, self._x)

    def learn(self) -> None:
        if self._notices is not None:
            self._notices.before_batch(self._step)
        self._learner.learn(self._x, self._y)
        self._step += 1
        if self._notices is not None:
            self._notices.after_batch(self._step)

    def memory(self) -> dict[str, int]:
        """Returns what the model keeps: bytes, and experts where it has any."""
        return _kept(self._learner.footprint())


class AskedEstimator:
    """An estimator that is asked, by what it has of `predict_proba`, `predict` and `score_samples`."""

    def __init__(self, model: Any, stream: Stream, classes: Sequence[Any] | None = None) -> None:
        self._model, self._target = model, stream.target
        takes_classes = "classes" in inspect.signature(model.partial_fit).parameters
        self._first = {"classes": np.asarray(classes)} if takes_classes and classes is not None else {}
        tells_times = hasattr(model, "predict") and "when" in inspect.signature(model.predict).parameters
        self._next: dict[str, Any] = {"when": "next"} if tells_times else {}

    def ask(self, batch: Batch) -> Answers | None:
        self._batch = batch
        x = batch.x.cpu().numpy()
        try:
            if self._target == "none":
                return DensityAnswers(torch.as_tensor(self._model.score_samples(x)), math.prod(x.shape[1:]))
            assert batch.y is not None
            return self._values(x, batch.y) if self._target == "values" else self._classes(x, batch.y)
        except NotFittedError:
            return None

    def gate(self) -> Tensor | None:
        learner = getattr(self._model, "learner_", None)
        return expert_gate(learner, self._batch.x) if isinstance(learner, Learner) else None

    def learn(self) -> None:
        x, y = self._batch.x.cpu().numpy(), self._batch.y
        if y is None:
            self._model.partial_fit(x)
        else:
            flat = y.squeeze(1) if y.dim() == 2 and y.shape[1] == 1 else y
            self._model.partial_fit(x, flat.cpu().numpy(), **self._first)
        self._first = {}

    def memory(self) -> dict[str, int]:
        learner = getattr(self._model, "learner_", None)
        if isinstance(learner, Learner):
            return _kept(learner.footprint())
        return {"memory_bytes": len(pickle.dumps(self._model))}

    def _classes(self, x: NDArray[np.float32], y: Tensor) -> ClassAnswers:
        truth = y.cpu()
        if not hasattr(self._model, "predict_proba"):
            return ClassAnswers(torch.as_tensor(np.asarray(self._model.predict(x))).long(), truth)
        proba = torch.as_tensor(np.asarray(self._model.predict_proba(x, **self._next))).double()
        known = torch.as_tensor(np.asarray(self._model.classes_)).long()
        by_class = torch.zeros(len(x), int(known.max()) + 1, dtype=torch.float64)
        by_class[:, known] = proba
        return class_answers(by_class.log(), truth)

    def _values(self, x: NDArray[np.float32], y: Tensor) -> ValueAnswers:
        truth = y.cpu().reshape(len(y), -1)
        if "return_std" in inspect.signature(self._model.predict).parameters:
            mean, deviation = (torch.as_tensor(part) for part in self._model.predict(x, return_std=True, **self._next))
            return ValueAnswers(mean.reshape(truth.shape), truth, deviation.reshape(truth.shape).square())
        return ValueAnswers(torch.as_tensor(np.asarray(self._model.predict(x))).reshape(truth.shape), truth)


def _kept(footprint: Footprint) -> dict[str, int]:
    """Returns the bytes of all numbers and samples that a learner keeps, and its experts."""
    n_bytes = _BYTES * footprint.n_numbers_kept + footprint.memory_bytes
    return {"memory_bytes": n_bytes, "n_experts": footprint.n_experts}


def prequential(
    model: Any, stream: Stream | Iterable[Any], *, window: int = 100, classes: Sequence[Any] | None = None
) -> Prequential:
    """Evaluates a model on a stream while it learns it: each batch is answered before it is learned.

    It is an iterator over windows, whose :meth:`~Prequential.summary` tells of all samples read so far.

    Args:
        model: A learner, or any object with `partial_fit`: a classifier with `predict` (and `predict_proba`), a
            regressor with `predict`, a density with `score_samples`. It has learned the stream afterwards. A batch that
            it cannot answer, as it has learned nothing yet, is not scored.
        stream: A stream, or batches as :func:`cndpm.streams.stream_from` takes them: pairs (x, y) of numbers, or x
            alone for a density. :func:`cndpm.streams.stream_of_rows` says where rows change.
        window: Samples of a window of the curve, and of those that tell when a change is over.
        classes: All labels there may be, for classifiers whose `partial_fit` asks for them; None: 0 to n_classes - 1
            where the stream knows that number.
    """
    made = stream if isinstance(stream, Stream) else stream_from(stream)
    meter = Meter(made.target, window=window, changes=made.changes)
    return Prequential(asked_model(model, made, classes), made.batches(), meter)


class Prequential:
    """Windows of answers, given while a stream is learned; see :func:`prequential`.

    Example:
        >>> from sklearn.naive_bayes import GaussianNB
        >>> from cndpm.streams import load_scenario
        >>> evaluation = prequential(GaussianNB(), load_scenario("drift-flip").build(seed=0)).run()
        >>> round(evaluation.summary()["accuracy"]), evaluation.summary()["recovery"][0]["change"]
        (52, 3000)
    """

    def __init__(self, model: AskedLearner | AskedEstimator, batches: Iterator[Batch], meter: Meter) -> None:
        self._model, self._batches, self._meter = model, batches, meter
        self.seconds = 0.0

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> Window:
        for batch in self._batches:
            window = self._step(batch)
            if window is not None:
                return window
        last = self._meter.close()
        if last is None:
            raise StopIteration
        return last

    def run(self) -> Self:
        """Reads the stream to its end."""
        for _ in self:
            pass
        return self

    def summary(self) -> dict[str, Any]:
        """Returns the scores of all answers so far.

        Beside those named by :class:`~cndpm.experiments.meter.Window` it has ``n_samples``, ``n_unanswered``, the
        ``recovery`` after each change (:class:`~cndpm.experiments.meter.Recovery`), ``seconds`` to answer and learn,
        and ``memory_bytes``: numbers and samples that a learner keeps, or the pickle of another model.
        """
        return self._meter.results() | {"seconds": self.seconds} | self._model.memory()

    def _step(self, batch: Batch) -> Window | None:
        """Asks about a batch and learns it; the clock stands still while answers are scored."""
        started = time.perf_counter()
        answers = self._model.ask(batch)
        asked = time.perf_counter()
        n = len(batch.x)
        window = self._meter.skip(n) if answers is None else self._meter.add(answers, self._model.gate())
        scored = time.perf_counter()
        self._model.learn()
        self.seconds += time.perf_counter() - scored + asked - started
        return window
