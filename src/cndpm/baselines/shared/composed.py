"""Learners composed of parts: construction, checks of what arrives, state and footprint, written once.

A learner adds the one thing it is about, `learn`; whatever it stores is a part.
"""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from cndpm.baselines.shared.components import LearnerPart, NetworkSettings, RandomSource, Trainer, total_footprint
from cndpm.baselines.shared.networks import LogitNetwork, PixelVAE, build_classifier, build_vae
from cndpm.learner import Footprint, Learner
from cndpm.state import State

__all__ = ["ClassifierLearner", "ComposedLearner"]


class ComposedLearner(Learner):
    """A learner made of parts: its state is theirs by name, its footprint their sum.

    Args:
        settings: Of this learner; subclasses make their parts of them in `_make`.
        **facts: Of the stream; see :class:`cndpm.learner.Learner`.

    Attributes:
        random: The learner's own random numbers; torch's global ones are never touched.
        parts: Everything that holds state, by name.

    Example:
        >>> from cndpm.baselines.pec import PEC
        >>> sorted(PEC(PEC.Settings(hidden=8, outputs=5), input_shape=(4,), n_classes=2).parts)
        ['random', 'student_0', 'student_1', 'teacher']
    """

    def __init__(self, settings: Any, **facts: Any) -> None:
        super().__init__(settings, **facts)
        self.random = RandomSource(self.seed)
        self.parts: dict[str, LearnerPart] = {"random": self.random}
        self._make()

    def _make(self) -> None:
        """Makes the learner's own parts of `settings` and the facts of the stream, and adds them to `parts`."""

    def received(self, x: Tensor, y: Tensor | None) -> tuple[Tensor, Tensor | None]:
        """Checks a batch and moves it to this learner's device.

        Args:
            x: Inputs, (batch, *input_shape).
            y: Class indices, (batch,); None on an unlabelled stream.
        """
        if tuple(x.shape[1:]) != self.input_shape:
            raise ValueError(f"each sample of x must have shape {self.input_shape}; got x of shape {tuple(x.shape)}")
        if (y is None) != (self.n_classes is None):
            made_for = "no labels" if self.n_classes is None else f"labels of {self.n_classes} classes"
            raise ValueError(f"{type(self).__name__} was made for {made_for}; got {'none' if y is None else 'labels'}")
        if y is None:
            return x.to(self.device), None
        if y.shape != x.shape[:1] or y.dtype != torch.int64:
            raise ValueError(f"y must be int64 of shape ({len(x)},); got {y.dtype} of shape {tuple(y.shape)}")
        return x.to(self.device), y.to(self.device)

    def labelled(self, x: Tensor, y: Tensor | None) -> tuple[Tensor, Tensor]:
        """Checks a batch that must have labels and moves it to this learner's device.

        Args:
            x: Inputs, (batch, *input_shape).
            y: Class indices, (batch,).
        """
        x, y = self.received(x, y)
        if y is None:
            raise ValueError(f"{type(self).__name__} learns from labels; got none")
        return x, y

    def required_classes(self) -> int:
        """Returns the number of classes; raises ValueError for an unlabelled stream."""
        if self.n_classes is None:
            raise ValueError(f"{type(self).__name__} learns from labels: n_classes must be a number; got None")
        return self.n_classes

    def _new_classifier(self, n_outputs: int, random: RandomSource) -> LogitNetwork:
        chosen: Any = self.settings
        network = build_classifier(chosen.network, self.input_shape, n_outputs, random.generator, hidden=chosen.hidden)
        return network.to(self.device)

    def _new_vae(self, **options: Any) -> PixelVAE:
        sizes: dict[str, int] = {name: getattr(self.settings, name) for name in ("hidden", "latent")}
        return build_vae(self.input_shape, self.random.generator, **sizes, **options).to(self.device)

    def footprint(self) -> Footprint:
        return total_footprint(self.parts.values())

    def state_dict(self) -> State:
        return {name: part.state_dict() for name, part in self.parts.items()}

    def load_state_dict(self, state: State) -> None:
        if state.keys() != self.parts.keys():
            raise ValueError(f"{type(self).__name__} has the parts {sorted(self.parts)}; the state has {sorted(state)}")
        for name, part in self.parts.items():
            part.load_state_dict(state[name])


class ClassifierLearner(ComposedLearner):
    """One classifier with one optimiser.

    Attributes:
        network: The classifier; calling it gives logits.
        trainer: Takes its steps.

    Example:
        >>> class Plain(ClassifierLearner):
        ...     Settings = NetworkSettings
        ...     def learn(self, x, y):
        ...         x, y = self.labelled(x, y)
        ...         self.trainer.step(F.cross_entropy(self.network.train()(x), y))
        >>> learner = Plain(NetworkSettings(hidden=8), input_shape=(4,), n_classes=2)
        >>> learner.learn(torch.rand(6, 4), torch.arange(6) % 2)
    """

    settings: NetworkSettings

    def _make(self) -> None:
        self.network = self._new_classifier(self._n_outputs(), self.random)
        self.trainer = Trainer(self.network, self.settings)
        self.parts["trainer"] = self.trainer

    def _n_outputs(self) -> int:
        return self.required_classes()

    @torch.no_grad()
    def predict_log_proba(self, x: Tensor) -> Tensor:
        self.network.eval()
        return F.log_softmax(self.network(x.to(self.device)), dim=1)


class ObjectiveLearner(ClassifierLearner):
    """A classifier on a labelled stream; on an unlabelled one a VAE, whose loss is its negative ELBO."""

    def _make(self) -> None:
        if self.n_classes is not None:
            super()._make()
            return
        self.vae = self._new_vae()
        self.trainer = Trainer(self.vae, self.settings)
        self.parts["trainer"] = self.trainer

    def train_on(self, x: Tensor, y: Tensor | None) -> None:
        """Takes one optimiser step on the mean loss of a batch that is on the device."""
        if y is None:  # the bound of a VAE draws random numbers, which cannot be recorded
            noise = self.random.normal(1, len(x), self.vae.latent).to(x.device)
            self.trainer.step(-self.vae.train().elbo(x, noise).mean())
        else:
            self.trainer.recorded(self._step, x, y)

    def _step(self, x: Tensor, y: Tensor) -> None:
        self.trainer.step(F.cross_entropy(self.network.train()(x), y, reduction="none").mean())

    def predict_log_proba(self, x: Tensor) -> Tensor:
        if self.n_classes is None:
            raise NotImplementedError(f"a VAE predicts no classes for its {len(x)} inputs; give a labelled stream")
        return super().predict_log_proba(x)

    @torch.no_grad()
    def log_prob(self, x: Tensor) -> Tensor:
        """Returns the ELBO averaged over latent samples with fixed noise, (batch,)."""
        if self.n_classes is not None:
            raise NotImplementedError(f"a classifier models no density of its {len(x)} inputs; give no labels")
        noise = self.random.restarted().normal(self.settings.test_latent_samples, 1, self.vae.latent)
        return self.vae.eval().elbo(x.to(self.device), noise.to(self.device))
