"""One step, taken many times, as fast as the device can.

The method does tens of thousands of small steps, so what counts is the overhead of one. This module owns the ways to
keep it low; learners and experts stay readable. On a CPU an optimiser takes its step in one fused operation. On a GPU a
step is recorded once as a CUDA graph and replayed: the host starts one graph instead of a hundred kernels, and nothing
waits for it. What is recorded is what would have been run, random numbers included, so results do not depend on it.
"""

from __future__ import annotations

import gc
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple, TypeVar

import torch
from torch import Tensor, nn

from cndpm.state import State

__all__ = ["Optimiser", "Recorder", "Routine"]

_WARM_UP = 3
"""Calls before a step is recorded: libraries make their choices and allocate what they need."""

_UNROLLED = 10
"""Steps recorded in one graph where a step is taken many times in a row."""

_MAX_RECORDED = 4
"""Graphs kept per routine, one for each shape of its inputs; beyond, other shapes are not recorded."""

_PIECE = 8192
"""Elements of a parameter that a GPU updates as one piece: few large ones would leave most of it idle."""

_recording = threading.Lock()

S = TypeVar("S")
T = TypeVar("T")


class Recorder:
    """Makes routines that share one stretch of device memory, so they must not run at the same time.

    Routines of a recorder and of the one :meth:`aside` of it may.

    Args:
        device: Where the routines run; nothing is recorded on a CPU.
        generator: The source of their random numbers.
        enabled: False takes every step as it comes.
    """

    def __init__(self, device: torch.device, generator: torch.Generator, *, enabled: bool = True) -> None:
        self.enabled = enabled and device.type == "cuda"
        self.generator = generator
        self._lender: torch.Generator | None = None
        self._work: torch.cuda.Stream | None = None
        self._branch: torch.cuda.Stream | None = None
        self._pool: Any = None
        self._anchor: torch.cuda.CUDAGraph | None = None
        self._stream: torch.cuda.Stream | None = None

    def routine(self, function: Callable[..., tuple[Tensor, ...] | None], *, draws: bool = True) -> Routine:
        """Something that is called often, with tensors of few different shapes; `draws` if it uses the generator."""
        return Routine(function, self, draws=draws)

    def aside(self) -> Recorder:
        """A recorder whose routines run beside this one's, on a stream of their own; on a CPU this one itself."""
        if not self.enabled:
            return self
        other = Recorder(self.generator.device, torch.Generator(self.generator.device))
        other._lender = self.generator
        other._work = torch.cuda.Stream(self.generator.device)  # type: ignore[no-untyped-call]
        return other

    @contextmanager
    def turn(self) -> Iterator[None]:
        """Where a recorder's routines must be called: it waits for all that was asked for before, not for what follows.

        Random numbers go on where the other recorder's stood, and it goes on where these end: they are the same as if
        everything were done in turn. A generator of its own is needed because a graph reads its state while it runs.
        """
        if self._lender is None or self._work is None:
            yield
            return
        self.generator.set_state(self._lender.get_state())
        self._work.wait_stream(torch.cuda.current_stream(self.generator.device))
        with torch.cuda.stream(self._work):
            yield
        self._lender.set_state(self.generator.get_state())

    def join(self) -> None:
        """What is asked for from now on waits for this recorder's routines."""
        if self._work is not None:
            torch.cuda.current_stream(self.generator.device).wait_stream(self._work)

    def side_by_side(self, first: Callable[[], S], second: Callable[[], T]) -> tuple[S, T]:
        """What both return: one after the other, or at the same time within a step that is being recorded.

        Neither may use what the other makes, what both use must outlive the call, and neither may call this again:
        branches within branches share memory without waiting for each other.
        """
        if not (self.enabled and torch.cuda.is_current_stream_capturing()):
            return first(), second()
        here = torch.cuda.current_stream(self.generator.device)
        branch = self._branch = self._branch or _recording_stream(self.generator.device)
        branch.wait_stream(here)
        with torch.cuda.stream(branch):
            one = first()
        other = second()
        here.wait_stream(branch)
        return one, other

    def record(self, function: Callable[[], None], *, draws: bool = True) -> torch.cuda.CUDAGraph | None:
        """The graph of what `function` does; None where it cannot be recorded, e.g. because it waits for the device."""
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
        # Always the same one, since memory that was used on one stream is not used again on another.
        stream = self._stream = self._stream or _recording_stream(self.generator.device)
        stream.wait_stream(torch.cuda.current_stream(self.generator.device))
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
    """An old graph that is thrown away while a new one is recorded would spoil it."""
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
    """A function of tensors that is recorded once it has been called a few times with the same shapes.

    It must depend on nothing but its inputs, tensors that stay in their place, and the recorder's generator.
    """

    def __init__(self, function: Callable[..., tuple[Tensor, ...] | None], recorder: Recorder, *, draws: bool) -> None:
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


def _recording_stream(device: torch.device) -> torch.cuda.Stream:
    """A stream on which nothing runs: torch hands out the same few again and again, so work has another priority."""
    return torch.cuda.Stream(device, priority=-1)  # type: ignore[no-untyped-call]


class Optimiser:
    """Adam (Kingma & Ba 2015) with gradients clipped by value and an optional squared-norm penalty.

    The gradients never reach the parameters' `grad`, and one fused operation takes the step: of a small step on a CPU
    this saves a fifth.

    Args:
        parameters: What to train.
        lr: Learning rate.
        clip: Largest absolute value of a gradient's entry.
        weight_decay: λ of the penalty λ‖w‖², applied by :meth:`step` when asked.
        slowdown: The learning rate falls with the number of steps t, as lr / √(1 + t / slowdown); None: it does not.
    """

    def __init__(
        self,
        parameters: Iterable[nn.Parameter],
        *,
        lr: float,
        clip: float,
        weight_decay: float,
        slowdown: int | None = None,
    ) -> None:
        self.parameters = list(parameters)
        self.lr = lr
        self.clip = clip
        self.weight_decay = weight_decay
        self.slowdown = slowdown
        self._moments = [_Moments.of(parameter) for parameter in self.parameters]

    def step(self, loss: Tensor, *, penalise: bool) -> None:
        """One step down the gradient of a scalar loss; parameters that it does not depend on stay as they are."""
        if not self.parameters:
            return
        found = torch.autograd.grad(loss, self.parameters, allow_unused=True)
        trained = zip(self.parameters, found, self._moments, strict=True)
        rows: list[tuple[Tensor, ...]] = [
            (p.detach(), g, m.first, m.second, m.step) for p, g, m in trained if g is not None
        ]
        if not rows:
            return
        with torch.no_grad():
            torch._foreach_add_([row[4] for row in rows], 1.0)
            self._descend(_in_pieces(rows) if loss.is_cuda else rows, penalise=penalise)

    def _descend(self, rows: list[tuple[Tensor, ...]], *, penalise: bool) -> None:
        """Clips and steps; a row has a parameter, its gradient, both moments and the number of steps."""
        parameters, gradients, first, second, steps = ([row[i] for row in rows] for i in range(5))
        if penalise and self.weight_decay:
            gradients = list(torch._foreach_add(gradients, parameters, alpha=2 * self.weight_decay))
        # Not in place at first: the gradients of two parameters may be one tensor, or one number seen many times.
        gradients = [g.contiguous() for g in torch._foreach_clamp_min(gradients, -self.clip)]
        torch._foreach_clamp_max_(gradients, self.clip)
        torch._fused_adam_(
            parameters,
            gradients,
            first,
            second,
            [],
            steps,
            lr=self._lr_after(steps[0]),
            beta1=0.9,
            beta2=0.999,
            weight_decay=0.0,
            eps=1e-8,
            amsgrad=False,
            maximize=False,
        )

    def _lr_after(self, n_steps: Tensor) -> float | Tensor:
        """The learning rate; a tensor where it falls, since a recorded step must not hold on to a number."""
        return self.lr if self.slowdown is None else self.lr * torch.rsqrt(1 + n_steps / self.slowdown)

    def scale_lr(self, factor: float) -> None:
        """Multiplies the learning rate."""
        self.lr *= factor

    def restart(self) -> None:
        """Forgets all steps: what follows has gradients of another scale."""
        self._moments = [_Moments.of(parameter) for parameter in self.parameters]

    def replace(self, old: nn.Parameter, new: nn.Parameter) -> None:
        """Goes on with an enlarged parameter: the moments of its first rows are kept, the others start at zero."""
        at = next(i for i, parameter in enumerate(self.parameters) if parameter is old)
        before = self._moments[at]
        self.parameters[at] = new
        self._moments[at] = _Moments(before.step, _enlarge(before.first, new), _enlarge(before.second, new))

    def state_dict(self) -> State:
        """Learning rate and moments, in the order of the parameters."""
        return {"lr": self.lr, "moments": [{k: v.clone() for k, v in m._asdict().items()} for m in self._moments]}

    def load_state_dict(self, state: State) -> None:
        """Restores the above; the parameters must have the shapes they had."""
        self.lr = state["lr"]
        self._moments = [
            _Moments(**{name: value.to(parameter.device, copy=True) for name, value in saved.items()})
            for parameter, saved in zip(self.parameters, state["moments"], strict=True)
        ]


class _Moments(NamedTuple):
    """What Adam remembers of one parameter."""

    step: Tensor
    first: Tensor
    second: Tensor

    @classmethod
    def of(cls, parameter: nn.Parameter) -> _Moments:
        return cls(
            torch.zeros((), device=parameter.device), torch.zeros_like(parameter.data), torch.zeros_like(parameter.data)
        )


def _in_pieces(rows: list[tuple[Tensor, ...]]) -> list[tuple[Tensor, ...]]:
    """Parameters, gradients and moments cut alike; every piece keeps the step count of its parameter."""
    pieces: list[tuple[Tensor, ...]] = []
    for *tensors, step in rows:
        cut = (torch.split(tensor.reshape(-1), _PIECE) for tensor in tensors)
        pieces += [(*piece, step) for piece in zip(*cut, strict=True)]
    return pieces


def _enlarge(moment: Tensor, parameter: nn.Parameter) -> Tensor:
    larger = torch.zeros_like(parameter.data)
    larger[: len(moment)] = moment
    return larger
