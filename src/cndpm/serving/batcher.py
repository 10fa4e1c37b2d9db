"""Batches questions: those that come within a few milliseconds, or while a call is going on, are answered in one call.

A call of the model costs about as much for ten rows as for one, so a server that answers one request a call is slow
for no reason. Every request is checked before it comes here, so that none can spoil the call for the others.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from concurrent.futures import Executor
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cndpm.serving.limits import Limits

Columns = Mapping[str, list[Any]]
"""Answers by name, each a list with an entry for every row."""

Answered = tuple[Columns, Mapping[str, Any]]
"""Answers for every row, and values that hold for all."""

_Question = tuple[NDArray[np.float32], "asyncio.Future[dict[str, Any]]"]


class Batcher:
    """Collects rows and asks about them together, by a call of `answer` in `executor`; `asked` is told how many."""

    def __init__(
        self,
        answer: Callable[[NDArray[np.float32]], Answered],
        executor: Executor,
        limits: Limits | None = None,
        *,
        asked: Callable[[int], None] = lambda _: None,
    ) -> None:
        self._answer, self._executor, self._limits, self._asked = answer, executor, limits or Limits(), asked
        self._waiting: list[_Question] = []
        self._task: asyncio.Task[None] | None = None

    async def ask(self, X: NDArray[np.float32]) -> dict[str, Any]:
        """Returns the answers for rows, (n, n_features), when the call that they are part of is done."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[dict[str, Any]] = loop.create_future()
        self._waiting.append((X, future))
        if self._task is None or self._task.done():
            self._task = loop.create_task(self._run())
        return await future

    async def _run(self) -> None:
        while self._waiting:
            if sum(len(X) for X, _ in self._waiting) < self._limits.batch_rows:
                await asyncio.sleep(self._limits.window)
            await self._call(self._take())

    def _take(self) -> list[_Question]:
        """Takes the next questions, as many as fit into a call."""
        n, n_rows = 0, 0
        while n < len(self._waiting) and (n == 0 or n_rows + len(self._waiting[n][0]) <= self._limits.batch_rows):
            n_rows += len(self._waiting[n][0])
            n += 1
        taken, self._waiting = self._waiting[:n], self._waiting[n:]
        return taken

    async def _call(self, questions: list[_Question]) -> None:
        """Answers questions in one call, and one by one if that fails; each has its own answer or error."""
        X = questions[0][0] if len(questions) == 1 else np.concatenate([X for X, _ in questions])
        self._asked(len(X))
        try:
            columns, shared = await asyncio.get_running_loop().run_in_executor(self._executor, self._answer, X)
        except Exception as error:
            if len(questions) > 1:
                for question in questions:
                    await self._call([question])
            elif not questions[0][1].done():
                questions[0][1].set_exception(error)
            return
        start = 0
        for rows, future in questions:
            if not future.done():  # its client may have gone
                own = {name: values[start : start + len(rows)] for name, values in columns.items()}
                future.set_result({**own, **shared})
            start += len(rows)
