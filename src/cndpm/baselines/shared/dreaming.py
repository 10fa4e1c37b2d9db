"""Settings of networks that dream their past: deep generative replay and replay through feedback."""

from __future__ import annotations

from pydantic import Field

from cndpm.baselines.shared.training import NetworkSettings


class DreamerSettings(NetworkSettings):
    """A generator and its steps, as van de Ven and Tolias (2018) trained theirs: Adam, no decay, no clipping.

    Where the loss has become flat, Adam divides a decay of the weights by its own size: whatever a task does not use
    shrinks by a whole step size at every step and is gone before the next task needs it. A replaying network learns
    each task for thousands of steps, and hardly any of its weights gets a gradient in all of them.
    """

    latent: int = Field(100, ge=1, description="latent dimension of the generator")
    n_steps: int = Field(5, ge=1, description="steps on each batch, with fresh dreams at every one")
    learning_rate: float = Field(1e-3, gt=0, le=10, description="step size")
    weight_decay: float = Field(0.0, ge=0, description="squared-norm penalty on the weights; costs what no task uses")
    clip_value: float | None = Field(None, gt=0, description="largest absolute value of a gradient; null: no limit")
