"""Steps that are recorded once as a CUDA graph and replayed.

A learner takes tens of thousands of small steps, so the overhead of one counts. Replaying a graph, the host starts one
graph instead of a hundred kernels, and nothing waits for it. A graph holds exactly the operations that would have been
run, random numbers included, so results do not depend on it. On a CPU nothing is recorded.
"""

from __future__ import annotations

import gc
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import torch
from torch import Tensor

_WARM_UP = 3
"""Calls before a step is recorded: libraries make their choices and allocate what they need."""

_UNROLLED = 10
"""Steps recorded in one graph where a step is taken many times in a row."""

_MAX_RECORDED = 4
"""Graphs kept per routine, one for each shape of its inputs; beyond, other shapes are not recorded."""

_recording = threading.Lock()


class StepRecorder:
    """Makes routines that share one stretch of device memory, so they must not run at the same time.

    Their random numbers are the generator's. Nothing is recorded on a CPU, or where it is not `enabled`.
    """

    def __init__(self, device: torch.device, generator: torch.Generator, *, enabled: bool = True) -> None:
        self.enabled = enabled and device.type == "cuda"
        self.generator = generator
        self._pool: Any = None
        self._anchor: torch.cuda.CUDAGraph | None = None
        self._stream: torch.cuda.Stream | None = None

    def routine(self, function: Callable[..., tuple[Tensor, ...] | None], *, draws: bool = True) -> Routine:
        """Returns a routine that runs `function`, recorded where possible."""
        return Routine(function, self, draws=draws)

    def record(self, function: Callable[[], None], *, draws: bool = True) -> torch.cuda.CUDAGraph | None:
        """Returns the graph of a function's operations; None where it cannot be recorded."""
        with _recording:
            if self._pool is None:
                # Memory stays with the pool as long as one graph uses it; this one is never run.
                self._pool = torch.cuda.graph_pool_handle()
                self._anchor = self._capture(lambda: torch.zeros(1, device=self.generator.device), draws=False)
            before = self.generator.get_state()
            try:
                return self._capture(function, draws=draws)
            except RuntimeError:
                self.enabled = False
                # A failed recording leaves the generator waiting for its end: go on with a fresh one in its place.
                fresh = torch.Generator(self.generator.device)
                fresh.set_state(before)
                self.generator.graphsafe_set_state(fresh.graphsafe_get_state())
                return None

    def _capture(self, function: Callable[[], object], *, draws: bool) -> torch.cuda.CUDAGraph:
        graph = torch.cuda.CUDAGraph()
        if draws:
            graph.register_generator_state(self.generator)
        # Always the same one, since memory that was used on one stream is not used again on another; of another
        # priority, since torch reuses a few streams, and nothing else may run on it.
        device = self.generator.device
        stream = self._stream = self._stream or torch.cuda.Stream(device, priority=-1)  # type: ignore[no-untyped-call]
        stream.wait_stream(torch.cuda.current_stream(device))
        with torch.cuda.stream(stream), _without_garbage_collection():
            # Other threads may go on allocating meanwhile: only this thread's mistakes are errors.
            graph.capture_begin(pool=self._pool, capture_error_mode="thread_local")
            try:
                function()
            finally:
                graph.capture_end()
        return graph


@contextmanager
def _without_garbage_collection() -> Iterator[None]:
    """Holds the garbage collector: an old graph that is freed while a new one is recorded would spoil it."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


class _Recording(NamedTuple):
    graph: torch.cuda.CUDAGraph
    inputs: tuple[Tensor, ...]
    outputs: tuple[Tensor, ...]


class Routine:
    """Calls a function of tensors, and records it once it has been called a few times with the same shapes.

    The function must depend on nothing but its inputs, tensors that stay in their place, and the recorder's generator,
    which it uses where it `draws`.
    """

    def __init__(
        self, function: Callable[..., tuple[Tensor, ...] | None], recorder: StepRecorder, *, draws: bool
    ) -> None:
        self._function = function
        self._draws = draws
        self._recorder = recorder
        self._calls: Counter[tuple[torch.Size, ...]] = Counter()
        self._recordings: dict[tuple[torch.Size, ...], _Recording] = {}
        self._many: torch.cuda.CUDAGraph | None = None
        self._steps = 0

    def __call__(self, *inputs: Tensor) -> tuple[Tensor, ...]:
        if not self._recorder.enabled:
            return self._function(*inputs) or ()
        shapes = tuple(tensor.shape for tensor in inputs)
        self._calls[shapes] += 1
        if shapes not in self._recordings and self._calls[shapes] > _WARM_UP and len(self._recordings) < _MAX_RECORDED:
            self._record(shapes, inputs)
        if shapes not in self._recordings:
            return self._function(*inputs) or ()
        recording = self._recordings[shapes]
        torch._foreach_copy_(recording.inputs, inputs)
        recording.graph.replay()
        # They lie in the shared memory, where other routines will overwrite them.
        return tuple(output.clone() for output in recording.outputs)

    def repeat(self, n: int) -> None:
        """Calls the function n times without arguments."""
        while n:
            if self._recorder.enabled and self._steps >= _WARM_UP and n >= _UNROLLED:
                self._many = self._many or self._recorder.record(lambda: self._take(_UNROLLED), draws=self._draws)
                if self._many is not None:
                    self._many.replay()
                    n -= _UNROLLED
                    continue
            self._take(1)
            self._steps += 1
            n -= 1

    def _take(self, n: int) -> None:
        for _ in range(n):
            self._function()

    def _record(self, shapes: tuple[torch.Size, ...], inputs: tuple[Tensor, ...]) -> None:
        kept = tuple(tensor.clone() for tensor in inputs)
        outputs: list[Tensor] = []
        if graph := self._recorder.record(lambda: outputs.extend(self._function(*kept) or ()), draws=self._draws):
            self._recordings[shapes] = _Recording(graph, kept, tuple(outputs))
