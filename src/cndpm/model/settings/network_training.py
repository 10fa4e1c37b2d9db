"""Settings of training: how the networks of neural experts learn, asleep and awake."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from cndpm.experts import neural
from cndpm.model.settings.section import Section


class Training(Section):
    """Sets rates, steps and schedules of densities and predictors."""

    density_lr: float = Field(default=4e-4, gt=0, description="Adam's learning rate of the densities")
    predictor_lr: float = Field(default=1e-4, gt=0, description="Adam's learning rate of the predictors")
    density_wake_lr_factor: float = Field(default=1.0, gt=0, description="multiplies density_lr when an expert wakes")
    predictor_wake_lr_factor: float = Field(
        default=1.0, gt=0, description="multiplies predictor_lr when an expert wakes"
    )
    density_lr_slowdown: int | None = Field(
        default=None,
        ge=1,
        description="density_lr falls as 1 / sqrt(1 + steps / this), counted anew when an expert wakes; null: not",
    )
    density_sleep_steps: int = Field(default=8000, ge=0, description="steps of a density's sleep, at most")
    predictor_sleep_steps: int = Field(default=2000, ge=0, description="steps of a predictor's sleep, at most")
    sleep_batch_size: int = Field(default=50, ge=1, le=1 << 16, description="samples per step of a sleep")
    sleep_until: Literal["steps", "converged"] = Field(
        default="steps", description="take all steps, or end when converged"
    )
    sleep_check_every: int = Field(
        default=100, ge=1, description="steps between looks at the held-out part of the memory, until converged"
    )
    sleep_patience: int = Field(default=5, ge=1, description="looks without improvement that end a sleep")
    weight_decay: float = Field(default=1e-5, ge=0, description="squared-norm penalty while asleep")
    clip: float = Field(default=0.5, gt=0, description="gradients are clipped by value")

    def of_densities(self) -> neural.PartTraining:
        """Returns how densities learn."""
        slowdown = self.density_lr_slowdown
        return self._of(self.density_lr, self.density_wake_lr_factor, self.density_sleep_steps, slowdown)

    def of_predictors(self) -> neural.PartTraining:
        """Returns how predictors learn."""
        return self._of(self.predictor_lr, self.predictor_wake_lr_factor, self.predictor_sleep_steps, None)

    def _of(self, lr: float, wake_lr_factor: float, n_steps: int, slowdown: int | None) -> neural.PartTraining:
        return neural.PartTraining(
            lr=lr,
            wake_lr_factor=wake_lr_factor,
            clip=self.clip,
            weight_decay=self.weight_decay,
            slowdown=slowdown,
            sleep=neural.LessonSchedule(
                max_steps=n_steps,
                batch_size=self.sleep_batch_size,
                until=self.sleep_until,
                check_every=self.sleep_check_every,
                patience=self.sleep_patience,
            ),
        )
