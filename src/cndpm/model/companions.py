"""The settings of networks that answer beside Gaussian experts."""

from __future__ import annotations

from pydantic import Field

from cndpm.learner import LearnerSettings

__all__ = ["CompanionSettings"]


class CompanionSettings(LearnerSettings):
    """How the networks beside Gaussian experts are made, learn and are weighed."""

    channels: int = Field(32, ge=1, description="channels of the first stage of a residual network, for images")
    hidden: int = Field(64, ge=1, description="units per layer of a fully connected network, for everything else")
    sharing: bool = Field(False, description="lateral connections to the features of earlier networks")
    lr: float = Field(1e-3, gt=0, description="Adam's learning rate")
    sleep_steps: int = Field(200, ge=0, description="steps on the memory that founds an expert")
    wake_steps: int = Field(1, ge=1, description="steps for every batch learned")
    content: float = Field(
        0.03, ge=0, description="no step for a batch whose labels the network predicted with a mean loss below this"
    )
    batch_size: int = Field(64, ge=1, description="samples per step")
    n_recent: int = Field(
        500, ge=0, description="the latest samples kept, from which these steps draw; 0 keeps none and takes the batch"
    )
    augment: bool = Field(True, description="whether images are shifted, and mirrored where the first memory admits it")
    average: float | None = Field(300.0, gt=1, description="steps over which weights are averaged to answer; null: not")
    horizon: float = Field(
        1000.0, gt=1, description="samples until evidence for or against a predictor has faded to 1/e"
    )
