"""Training of one network on the whole memory during sleep, resumable at every step."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from cndpm.state import State, expect, integers, whole
from cndpm.training.optimiser import Optimiser
from cndpm.training.recorded_steps import Routine, StepRecorder


@dataclass(frozen=True)
class LessonSchedule:
    """Length and batches of the training of a network on the memory."""

    max_steps: int  # at most; exactly so many when `until` is "steps"
    batch_size: int = 50  # samples a step, drawn with replacement
    until: Literal["steps", "converged"] = "steps"
    check_every: int = 100  # steps between two looks at the held-out part
    patience: int = 5  # looks without improvement before the lesson ends
    holdout: float = 0.1  # part of the memory held out when `until` is "converged"


class Lesson:
    """Minimises a loss over rows of the memory: `loss` maps row indices (n,) to (n,) and may draw random numbers.

    With ``until="converged"`` a part of the memory is held out, the lesson ends when its loss, `held_out_loss`, has not
    improved for `patience` looks, and the best parameters are restored. Batches come from the recorder's generator.
    """

    def __init__(
        self,
        loss: Callable[[Tensor], Tensor],
        held_out_loss: Callable[[Tensor], Tensor],
        optimiser: Optimiser,
        schedule: LessonSchedule,
        n_rows: int,
        recorder: StepRecorder,
    ) -> None:
        self.loss = loss
        self.held_out_loss = held_out_loss
        self.optimiser = optimiser
        self.schedule = schedule
        self.recorder = recorder
        self._routine: Routine | None = None
        self.step = 0
        self.best = float("inf")
        self.bad_looks = 0
        self.best_parameters: list[Tensor] = []
        n_held_out = int(n_rows * schedule.holdout) if schedule.until == "converged" else 0
        rows = torch.arange(n_rows, device=recorder.generator.device)
        if n_held_out:
            rows = torch.randperm(n_rows, generator=recorder.generator, device=rows.device)
        self.held_out, self.rows = rows[:n_held_out], rows[n_held_out:]

    @property
    def is_over(self) -> bool:
        """Whether nothing is left to do."""
        return self.step >= self.schedule.max_steps or self.bad_looks >= self.schedule.patience

    def advance(self, max_steps: int) -> int:
        """Takes up to `max_steps` steps; returns how many were taken. Interruptions change nothing in the result."""
        taken = 0
        while taken < max_steps and not self.is_over:
            to_look = self.schedule.check_every - self.step % self.schedule.check_every
            n = min(max_steps - taken, to_look, self.schedule.max_steps - self.step)
            self._routine = self._routine or self.recorder.routine(self._step)
            self._routine.repeat(n)
            self.step += n
            taken += n
            if len(self.held_out) and n == to_look:
                self._look()
        if self.is_over:
            self._end()
        return taken

    def _step(self) -> None:
        draw = torch.randint(
            len(self.rows), (self.schedule.batch_size,), generator=self.recorder.generator, device=self.rows.device
        )
        # Without a held-out part the rows are all rows, in order.
        rows = self.rows[draw] if len(self.held_out) else draw
        self.optimiser.step(self.loss(rows).mean(), penalise=True)

    @torch.no_grad()
    def _look(self) -> None:
        held_out_loss = self.held_out_loss(self.held_out).mean().item()
        if held_out_loss < self.best:
            self.best, self.bad_looks = held_out_loss, 0
            self.best_parameters = [p.detach().clone() for p in self.optimiser.parameters]
        else:
            self.bad_looks += 1

    @torch.no_grad()
    def _end(self) -> None:
        """Restores the best parameters where there are any, and drops the recorded step.

        The step and the lesson refer to each other: such a circle would keep a memory's features, of many experts more
        than a gigabyte, until the garbage collector finds it.
        """
        self._routine = None
        if self.best_parameters:
            for parameter, best in zip(self.optimiser.parameters, self.best_parameters, strict=True):
                parameter.copy_(best)
            self.best_parameters = []

    def state_dict(self) -> State:
        """Returns the progress, without the optimiser and the network."""
        return {
            "step": self.step,
            "best": self.best,
            "bad_looks": self.bad_looks,
            "best_parameters": [p.clone() for p in self.best_parameters],
            "held_out": self.held_out.clone(),
            "rows": self.rows.clone(),
        }

    def load_state_dict(self, state: State) -> None:
        rows = integers("rows", low=0, below=1 << 40)
        expect(state, {"step": whole(), "bad_looks": whole(), "rows": rows, "held_out": integers("held", low=0)})
        device = self.rows.device
        self.step, self.best, self.bad_looks = state["step"], state["best"], state["bad_looks"]
        self.best_parameters = [p.to(device, copy=True) for p in state["best_parameters"]]
        self.held_out, self.rows = state["held_out"].to(device), state["rows"].to(device)
