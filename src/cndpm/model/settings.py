"""The settings of CN-DPM, with the paper's names and where the paper or its release gives the value."""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self

from pydantic import Field, model_validator

from cndpm.experts.neural.lesson import Schedule
from cndpm.experts.neural.likelihoods import LikelihoodName
from cndpm.experts.neural.neural_expert import PartTraining
from cndpm.experts.neural.vae import Bound
from cndpm.learner import LearnerSettings
from cndpm.model.companions import CompanionSettings

__all__ = ["CNDPMSettings"]


class CNDPMSettings(LearnerSettings):
    """Everything that can be set about CN-DPM. The defaults are those of the paper's Split-MNIST classification."""

    target: Literal["classes", "values", "none"] = Field(
        "classes", description="what y is: class indices, real values (regression), or absent (density only)"
    )
    n_outputs: int = Field(1, ge=1, description="number of real-valued targets, for target='values'")

    # The mixture
    log_alpha: Annotated[float, Field(allow_inf_nan=False)] | Literal["auto"] = Field(
        -400.0, description="log concentration: how readily data is new; 'auto' is set by the model as it learns"
    )
    novelty_rate: float = Field(
        0.01, gt=0, lt=0.5, description="for log_alpha='auto': how often a known sample may be called new"
    )
    novelty_window: int = Field(10, ge=1, description="for log_alpha='auto': consecutive samples judged together")
    novelty_threshold: float | None = Field(
        None, gt=0, lt=1, description="SVA's ε: new where ρ_new exceeds it; by default where 'new' is the best"
    )
    memory_size: int = Field(500, ge=1, description="capacity M of the short-term memory, in samples")
    min_share: float = Field(0.1, ge=0, lt=1, description="an expert is updated when its share of a batch exceeds this")
    anytime: bool = Field(False, description="whether what waits in the memory takes part in predictions")
    standardise: bool = Field(False, description="whether features are scaled by the statistics of the first memory")

    # The experts
    experts: Literal["neural", "gaussian"] = Field(
        "neural", description="networks trained by gradient, or conjugate Gaussians over fixed features"
    )
    features: Literal["auto", "identity", "fourier", "patches"] = Field(
        "auto",
        description="of Gaussian experts; 'auto': patches for images, Fourier features for rows; without labels the "
        "principal directions of patches, and rows as they are",
    )
    covariance: Literal["auto", "shared", "own"] = Field(
        "auto", description="of Gaussian experts: one for all, or one each; 'auto': shared with labels, own without"
    )
    classifier: Literal["auto", "gaussian", "both"] = Field(
        "gaussian",
        description="of Gaussian experts: they answer themselves, or together with a network, pooled by evidence; "
        "'auto': both for labelled images that 'architecture' would give a residual network",
    )
    companions: CompanionSettings = Field(
        CompanionSettings.model_validate({}), description="the networks beside Gaussian experts, for classifier='both'"
    )
    n_patches: Annotated[int, Field(ge=1)] | Literal["auto"] = Field(
        "auto",
        description="filters of each of three patch sizes, for features='patches'; 'auto': 128, fewer for small images",
    )
    n_fourier: int = Field(256, ge=1, description="random features, for features='fourier'")
    architecture: Literal["auto", "mlp", "resnet", "resnet18"] = Field(
        "auto",
        description="of the predictors; the densities of the last two are convolutional. 'auto': 'resnet' for samples "
        "(channels, height, width) with several channels and sides of at least 16 divisible by 4, else 'mlp'",
    )
    channels: int = Field(20, ge=1, description="channels of the first stage of the first expert's residual network")
    channel_growth: int = Field(4, ge=1, description="channels that each later expert adds to it")
    density: Literal["vae", "autoregressive"] = Field(
        "vae", description="of neural experts: the paper's, or an exact one for binary or 8-bit images"
    )
    selection: Literal["density", "gaussian"] = Field(
        "density",
        description="what tells who learns a sample and what is new: the experts' densities themselves, or, for "
        "target='none', a Gaussian over fixed features beside each of them",
    )
    inherit: bool = Field(
        False,
        description="whether a density starts as the one that explains its memory best; not with sharing",
    )
    density_channels: int = Field(32, ge=1, description="channels of the first layer of a convolutional density")
    density_blocks: int = Field(7, ge=0, description="residual blocks of an autoregressive density")
    density_components: int = Field(10, ge=1, description="logistics that an 8-bit pixel of it is a mixture of")
    density_dropout: float = Field(0.1, ge=0, lt=1, description="channels of it that a training step leaves out")
    density_channel_growth: int = Field(4, ge=1, description="channels that each later expert adds to it")
    hidden: int = Field(64, ge=1, description="units per layer of the first expert")
    hidden_growth: int = Field(16, ge=1, description="units per layer that each later expert adds")
    n_layers: int = Field(2, ge=1, description="hidden layers of encoder, decoder and predictor")
    sharing: bool = Field(True, description="lateral connections to the features of earlier experts")
    latent_dim: int = Field(16, ge=1, description="dimension of the VAE's code")
    likelihood: LikelihoodName = Field(
        "unit-gaussian",
        description="p(x | code); with density='autoregressive' 'logistic' is for 8-bit pixels, and 'bernoulli' or the "
        "default for pixels of zeros and ones",
    )
    min_variance: float = Field(1e-4, gt=0, description="a learned variance of p(x | code) does not fall below")
    n_latent_samples: int = Field(16, ge=1, description="latent samples when a density is evaluated")
    n_train_latent_samples: int | None = Field(None, ge=1, description="the same in training; by default as many")
    bound: Bound = Field("elbo", description="mean of the ELBOs, or the importance-weighted bound")
    temperature: float = Field(0.01, gt=0, description="of the predictor, in the value that routing sees")
    unseen_probability: float = Field(1e-3, gt=0, lt=1, description="of all classes an expert has never seen")

    # Their training
    density_lr: float = Field(4e-4, gt=0, description="Adam's learning rate of the densities")
    predictor_lr: float = Field(1e-4, gt=0, description="Adam's learning rate of the predictors")
    density_wake_lr_factor: float = Field(1.0, gt=0, description="multiplies it when an expert wakes")
    predictor_wake_lr_factor: float = Field(1.0, gt=0, description="multiplies it when an expert wakes")
    variance_lr_factor: float = Field(
        1.0, gt=0, description="multiplies it for a learned variance of p(x | code), which has a longer way to go"
    )
    density_lr_slowdown: int | None = Field(
        None, ge=1, description="it falls as 1 / sqrt(1 + steps / this), counted anew when an expert wakes"
    )
    density_sleep_steps: int = Field(8000, ge=0, description="steps of a sleep, at most")
    predictor_sleep_steps: int = Field(2000, ge=0, description="steps of a sleep, at most")
    sleep_batch_size: int = Field(50, ge=1, description="samples per step of a sleep")
    sleep_until: Literal["steps", "converged"] = Field("steps", description="take all steps, or end when converged")
    sleep_check_every: int = Field(100, ge=1, description="steps between looks at the held-out part of the memory")
    sleep_patience: int = Field(5, ge=1, description="looks without improvement that end a sleep")
    weight_decay: float = Field(1e-5, ge=0, description="squared-norm penalty while asleep")
    clip: float = Field(0.5, gt=0, description="gradients are clipped by value")

    def density_training(self) -> PartTraining:
        """How densities learn."""
        return self._training(
            self.density_lr, self.density_wake_lr_factor, self.density_sleep_steps, self.density_lr_slowdown
        )

    def predictor_training(self) -> PartTraining:
        """How predictors learn."""
        return self._training(self.predictor_lr, self.predictor_wake_lr_factor, self.predictor_sleep_steps)

    def resolved_architecture(self, input_shape: tuple[int, ...]) -> Literal["mlp", "resnet", "resnet18"]:
        """What 'auto' means for samples of this shape."""
        if self.architecture != "auto":
            return self.architecture
        is_image = len(input_shape) == 3 and input_shape[0] > 1
        return "resnet" if is_image and all(n >= 16 and n % 4 == 0 for n in input_shape[1:]) else "mlp"

    def has_networks(self, input_shape: tuple[int, ...]) -> bool:
        """Whether networks answer beside Gaussian experts for samples of this shape."""
        if self.classifier == "auto":
            return self.target == "classes" and self.resolved_architecture(input_shape) != "mlp"
        return self.classifier == "both"

    def of_companions(self) -> CNDPMSettings:
        """The settings of neural experts by which the networks beside Gaussian ones are made."""
        own = self.companions
        names = {"channels", "sharing", "hidden"}
        values = {name: getattr(own, name) for name in names} | {
            "channel_growth": own.channels,
            "hidden_growth": own.hidden,
            "density_sleep_steps": 0,
            "predictor_lr": own.lr,
            "predictor_wake_lr_factor": 1.0,
            "predictor_sleep_steps": own.sleep_steps,
            "sleep_batch_size": own.batch_size,
        }
        return self.model_copy(update=values)

    @model_validator(mode="after")
    def _labels_for_networks(self) -> Self:
        if self.classifier == "both" and (self.experts != "gaussian" or self.target != "classes"):
            raise ValueError(
                "classifier='both' puts networks beside Gaussians for class labels: it needs experts='gaussian' and "
                f"target='classes'; got {self.experts!r} and {self.target!r}. Leave it out."
            )
        return self

    @model_validator(mode="after")
    def _pixels_that_are_counted(self) -> Self:
        if self.density == "autoregressive" and self.likelihood in ("gaussian", "pixel-gaussian"):
            raise ValueError(
                "density='autoregressive' is for pixels of zeros and ones (likelihood='bernoulli') or of 8 bits "
                f"('logistic'); got likelihood={self.likelihood!r}"
            )
        return self

    def widths(self, *, first: bool) -> tuple[int, ...]:
        """Units of each layer of an expert's columns."""
        return (self.hidden if first else self.hidden_growth,) * self.n_layers

    def _training(self, lr: float, wake_lr_factor: float, steps: int, slowdown: int | None = None) -> PartTraining:
        schedule: dict[str, Any] = {
            "max_steps": steps,
            "batch_size": self.sleep_batch_size,
            "until": self.sleep_until,
            "check_every": self.sleep_check_every,
            "patience": self.sleep_patience,
        }
        return PartTraining(
            lr=lr,
            wake_lr_factor=wake_lr_factor,
            clip=self.clip,
            weight_decay=self.weight_decay,
            slowdown=slowdown,
            sleep=Schedule(**schedule),
        )
