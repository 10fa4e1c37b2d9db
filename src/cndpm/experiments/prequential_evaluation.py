"""Prequential evaluation: every batch is answered first and learned afterwards, so that each sample tests the model.

    for window in prequential(model, stream):
        print(window.first, window["accuracy"])

Runs do the same with ``RunSettings(prequential=True)`` and leave a record.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Self

from cndpm.experiments.asked_models import AskedModel, asked_model
from cndpm.experiments.meter import Meter, Window
from cndpm.streams import Batch, Stream, stream_from

__all__ = ["Prequential", "prequential"]


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

    Example:
        >>> from cndpm import CNDPMClassifier
        >>> from cndpm.streams import load_scenario
        >>> stream = load_scenario("drift-flip").build(seed=0)
        >>> evaluation = prequential(CNDPMClassifier(random_state=0), stream, window=500)
        >>> window = next(evaluation)
        >>> window.first, window.n_samples, window["accuracy"] > 80
        (0, 490, True)
        >>> evaluation.summary()["n_unanswered"]
        10
    """
    made = stream if isinstance(stream, Stream) else stream_from(stream)
    meter = Meter(made.target, window=window, changes=made.changes)
    return Prequential(asked_model(model, made, classes), made.batches(), meter)


class Prequential:
    """Windows of answers, given while a stream is learned; see :func:`prequential`.

    Args:
        model: Is asked about each batch and learns it.
        batches: The batches, in order.
        meter: Scores the answers.

    Attributes:
        seconds: Time that the model took to answer and to learn.

    Example:
        >>> from sklearn.naive_bayes import GaussianNB
        >>> from cndpm.streams import load_scenario
        >>> evaluation = prequential(GaussianNB(), load_scenario("drift-flip").build(seed=0)).run()
        >>> round(evaluation.summary()["accuracy"]), evaluation.summary()["recovery"][0]["change"]
        (52, 3000)
    """

    def __init__(self, model: AskedModel, batches: Iterator[Batch], meter: Meter) -> None:
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
        ``recovery`` after each change (:class:`~cndpm.experiments.recovery.Recovery`), ``seconds`` to answer and learn,
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
