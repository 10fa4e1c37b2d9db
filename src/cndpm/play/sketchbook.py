"""The model behind the page: learns named drawings, guesses others, and tells what happened."""

from __future__ import annotations

import base64
import math
from collections import Counter
from threading import Lock
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from cndpm.estimators import CNDPMClassifier
from cndpm.play.drawings import DrawingError, images, read_strokes, rows, variations

__all__ = ["Sketchbook"]

N_COPIES = 8
"""Copies of a drawing, itself included, that are learned as one batch: one drawing alone says little about others."""
MEMORY = 3
"""Drawings that found an expert."""
_NOISE = 0.1
"""Noise of a row's numbers: frequencies that hardly vary in the first drawings must not count for much."""
_CORRECTION = 3
"""Times as many copies are learned where a drawing that was known gets another name: old drawings outnumber it."""
_LOG_ALPHA = -20.0
"""Concentration at which drawings of a new kind wait for an expert and those of known ones do not."""
_N_DREAMS = 6
_N_DRAWN = 64
_MOST_NAMES, _LONGEST_NAME, _N_SHOWN = 40, 24, 80
_LEAST = 0.1
"""Share of an expert's draws below which a name is not shown."""
_STRANGE = math.log(100)
"""Novelty from which on a drawing looks like none before: one known row in a hundred is as strange."""
_SPREAD = 0.35
"""Spread of dreams: at the full one, draws show the noise of a few drawings more than their form."""
_SURE = 0.6
"""Probability from which on another name than expected counts as a change."""


class Sketchbook:
    """Learns drawings one by one, in any order; any name may come at any time, and change its meaning.

    Answers are plain values, as the page takes them. It may be used by several threads. The seed is of every random
    choice.

    Example:
        >>> book = Sketchbook()
        >>> told = book.learn([[[0, 0], [1, 1]]], "slash")
        >>> told["drawing"]["name"], told["memory"]
        ('slash', {'n': 1, 'capacity': 3})
        >>> book.guess([[[0, 0], [2, 2]]])["names"][0]["name"]
        'slash'
    """

    def __init__(self, seed: int = 0) -> None:
        self._seed = seed
        self._lock = Lock()
        self.forget()

    def forget(self) -> dict[str, Any]:
        """Begins with an empty page; returns the state."""
        with self._lock:
            self._model = CNDPMClassifier(
                memory_size=MEMORY * N_COPIES,
                log_alpha=_LOG_ALPHA,
                batch_size=N_COPIES,
                settings={"features": "identity", "representations": "pool"},
                device="cpu",
                random_state=self._seed,
            )
            self._n_of = Counter[str]()
            self._n_drawings = 0
            self._shown: list[dict[str, Any]] = []
            self._random = np.random.default_rng(self._seed)
            return self._state()

    def state(self) -> dict[str, Any]:
        """Returns names, experts with their dreams, the memory, and the latest drawings."""
        with self._lock:
            return self._state()

    def guess(self, strokes: Any) -> dict[str, Any]:
        """Returns the names that a drawing may have, and the experts that may be responsible.

        Args:
            strokes: As for :func:`cndpm.play.drawings.read_strokes`.
        """
        seen = rows(variations(read_strokes(strokes), 1, self._random))
        with self._lock:
            return self._guess(seen)

    def learn(self, strokes: Any, name: Any) -> dict[str, Any]:
        """Learns a drawing; returns the state, the drawing as it was learned, and the guess before that.

        Args:
            strokes: As for :func:`cndpm.play.drawings.read_strokes`.
            name: Its name.
        """
        read, word = read_strokes(strokes), self._admitted(name)
        with self._lock:
            before = self._guess(rows(variations(read, 1, self._random)))
            instead_of = self._instead_of(word, before)
            waiting, counts, n_events = self._n_waiting, self._counts, len(self._events)
            self._learn(read, word, N_COPIES * (1 if instead_of is None else _CORRECTION))
            happened = [{"kind": one.kind, "expert": one.expert} for one in self._events[n_events:]]
            drawing = {
                "number": self._n_drawings,
                "name": word,
                "strokes": [np.round(stroke, 1).tolist() for stroke in read],
                "expert": self._learned_by(counts, happened),
                "is_new": self._n_waiting - waiting >= N_COPIES / 2 or len(self._counts) > len(counts),
                "happened": happened,
                "instead_of": instead_of,
            }
            self._shown = [*self._shown, drawing][-_N_SHOWN:]
            return {**self._state(), "drawing": drawing, "before": before}

    # Inside; the lock is held

    def _learn(self, strokes: list[NDArray[np.float64]], word: str, n_copies: int) -> None:
        seen = rows(variations(strokes, n_copies, self._random))
        noise = self._random.normal(0, _NOISE, seen.shape).astype(np.float32)
        self._model.partial_fit(seen + noise, [word] * n_copies)
        self._n_drawings += 1
        self._n_of[word] += 1

    def _guess(self, seen: NDArray[np.float32]) -> dict[str, Any]:
        if not self._n_drawings:
            return {"names": [], "experts": [], "memory": 0.0, "is_new": True}
        now = self._model.predict_proba(seen)[0]
        ever = self._model.predict_proba(seen, when="any")[0]
        shares = self._model.learner_.responsible_log_proba(torch.from_numpy(seen)).exp()[0].tolist()
        named = zip(self._model.classes_.tolist(), now.tolist(), ever.tolist(), strict=True)
        names = [{"name": name, "now": p, "ever": q} for name, p, q in named]
        names.sort(key=lambda one: -one["now"])
        is_new = bool(self._model.novelty(seen)[0] > _STRANGE)
        return {"names": names, "experts": shares[:-1], "memory": shares[-1], "is_new": is_new}

    def _state(self) -> dict[str, Any]:
        return {
            "n_drawings": self._n_drawings,
            "names": [{"name": name, "n": n} for name, n in self._n_of.items()],
            "experts": [self._expert(k) for k in range(len(self._counts))],
            "memory": {"n": self._n_waiting // N_COPIES, "capacity": MEMORY},
            "shown": self._shown,
        }

    def _expert(self, k: int) -> dict[str, Any]:
        """Describes an expert by the drawings that it learned, and by draws from it for each of its names."""
        x, y, _ = self._model.learner_.sample(_N_DRAWN, seed=self._n_drawings, expert=k)
        assert y is not None  # it has labels
        drawn, classes, names = x.numpy(), y.numpy(), list(self._n_of)
        dreams = []
        for index, n in Counter(classes.tolist()).most_common():
            if n >= _LEAST * _N_DRAWN:
                mine = drawn[classes == index]
                mean = mine.mean(axis=0, keepdims=True)
                pictures = np.concatenate([mean, mean + _SPREAD * (mine[:_N_DREAMS] - mean)])
                encoded = [base64.b64encode(image.tobytes()).decode() for image in images(pictures)]
                dreams.append({"name": names[index], "share": n / _N_DRAWN, "pictures": encoded})
        return {"n": float(self._counts[k]) / N_COPIES, "dreams": dreams}

    def _learned_by(self, before: NDArray[np.float64], happened: list[dict[str, Any]]) -> int:
        """Returns the expert that learned most of a drawing; -1 where it waits in the memory."""
        founded = [one["expert"] for one in happened if one["kind"] == "founded"]
        if founded:
            return int(founded[-1])
        grown = self._counts[: len(before)] - before
        return int(grown.argmax()) if len(grown) and grown.sum() >= N_COPIES / 2 else -1

    def _instead_of(self, word: str, before: dict[str, Any]) -> str | None:
        """Returns the name by which the drawing was known until now, where another one was expected."""
        if before["is_new"] or before["names"][0]["now"] < _SURE:
            return None
        name: str = before["names"][0]["name"]
        return name if name != word and self._n_of[name] >= 2 else None

    def _admitted(self, name: Any) -> str:
        word = " ".join(name.split()) if isinstance(name, str) else ""
        if not 0 < len(word) <= _LONGEST_NAME or not word.isprintable():
            raise DrawingError(f"a name has 1 to {_LONGEST_NAME} letters")
        if word not in self._n_of and len(self._n_of) >= _MOST_NAMES:
            raise DrawingError(f"there are {_MOST_NAMES} names already; begin anew, or take one of them")
        return word

    @property
    def _counts(self) -> NDArray[np.float64]:
        return self._model.counts_ if self._n_drawings else np.zeros(0)

    @property
    def _events(self) -> list[Any]:
        return self._model.events_ if self._n_drawings else []

    @property
    def _n_waiting(self) -> int:
        return len(self._model.learner_.memory) if self._n_drawings else 0
