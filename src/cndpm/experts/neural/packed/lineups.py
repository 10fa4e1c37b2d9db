"""All experts' networks as one, answers included: packed columns, packed heads, batched decoders."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

import torch
from torch import Tensor, nn

from cndpm.experts.neural.lateral import Features
from cndpm.experts.neural.lateral_predictors import Classifier, Regressor, gaussian_moments, open_log_softmax
from cndpm.experts.neural.lineup import Lineup, LoopedLineup
from cndpm.experts.neural.packed.packed_columns import PackedColumns, each, pack_columns
from cndpm.experts.neural.parts import Density, Predictor
from cndpm.experts.neural.vae import VAE, lower_bound

_MOST_OUTPUTS = 1 << 28
"""Outputs of decoders that are held at once: a gibibyte. A thousand experts with 250 samples would have 3 * 10^9."""


class PackedHeads:
    """One linear layer on top of every column that answers, with the same number of outputs."""

    def __init__(self, columns: PackedColumns, heads: Sequence[nn.Linear | None]) -> None:
        self.columns = columns
        self.heads = heads
        answering = [k for k, head in enumerate(heads) if head is not None]
        self.position = {k: i for i, k in enumerate(answering)}
        like = columns.like
        n_outputs = next(head.out_features for head in heads if head is not None)
        self.weight = like.new_zeros(len(answering), n_outputs, columns.ends[-1][-1])
        self.bias = like.new_zeros(len(answering), n_outputs)
        for k in answering:
            self.refresh(k)

    @torch.no_grad()
    def refresh(self, k: int) -> None:
        """Copies the parameters of the head of column k."""
        head = self.heads[k]
        if head is not None:
            self.weight[self.position[k], :, self.columns.seen(k, -1)] = head.weight
            self.bias[self.position[k]] = head.bias

    def __call__(self, top: Tensor) -> Tensor:
        """Returns outputs (batch, n answering, n_outputs) for the last layer's features (batch, total width)."""
        flat = torch.addmm(self.bias.flatten(), top, self.weight.flatten(0, 1).t())
        return flat.view(len(top), *self.bias.shape)


class SeparateHeads:
    """One linear layer on top of each of columns that do not look at each other: no zeros between them."""

    def __init__(self, heads: Sequence[nn.Linear | None]) -> None:
        self.heads = [head for head in heads if head is not None]
        if len(self.heads) < len(heads):
            raise ValueError(
                "columns that share nothing need a head each; got one without: drop the columns of retired experts"
            )
        self.position = {k: k for k in range(len(self.heads))}
        self.weight = torch.stack([head.weight.detach() for head in self.heads])
        self.bias = torch.stack([head.bias.detach() for head in self.heads])

    @torch.no_grad()
    def refresh(self, k: int) -> None:
        """Copies the parameters of the head of column k."""
        self.weight[k], self.bias[k] = self.heads[k].weight, self.heads[k].bias

    def __call__(self, top: Tensor) -> Tensor:
        """Returns outputs (batch, n_experts, n_outputs) for the last layer's features (batch, total width)."""
        return each(top, self.weight, self.bias)


def pack_heads(columns: PackedColumns, heads: Sequence[nn.Linear | None]) -> PackedHeads | SeparateHeads:
    """Packs the heads of columns into one layer."""
    return PackedHeads(columns, heads) if columns.sharing else SeparateHeads(heads)


class _Packed(Lineup):
    """One kind of part of all experts, evaluated together."""

    columns: PackedColumns
    heads: PackedHeads | SeparateHeads

    @property
    def n_shared(self) -> int:
        return len(self.columns.ends)

    @torch.no_grad()
    def survey(self, x: Tensor) -> Features:
        return self.columns.features(x)

    def lateral(self, k: int, survey: Features) -> Features:
        return self.columns.lateral(k, survey)

    def refresh(self, k: int) -> None:
        self.columns.refresh(k)
        self.heads.refresh(k)


class PackedVAEs(_Packed):
    """log p(x | k) of all experts, (batch, n_experts)."""

    def __init__(self, vaes: Sequence[VAE], retired: Sequence[bool], columns: PackedColumns) -> None:
        self.columns = columns
        self.heads = pack_heads(columns, [None if gone else vae.code for vae, gone in zip(vaes, retired, strict=True)])
        self.vaes = [vae for vae, gone in zip(vaes, retired, strict=True) if not gone]
        self.is_linear = isinstance(self.vaes[0].decoder[-1], nn.Linear)
        # On a CPU the last layer is used where it is, expert by expert: it is as fast, and needs no second copy.
        self.batched = self.vaes[0].noise.is_cuda
        self.own = [torch.stack(tensors) for tensors in zip(*map(self._own, self.vaes), strict=True)]

    def _own(self, vae: VAE) -> list[Tensor]:
        """Returns the parameters that are stacked without lateral connections: the decoder's, then the likelihood's."""
        if not self.is_linear:
            return []
        parts = [vae.decoder, vae.likelihood] if self.batched else [vae.decoder[:-1]]
        return [tensor.detach() for part in parts for tensor in part.parameters()]

    @torch.no_grad()
    def refresh(self, k: int) -> None:
        super().refresh(k)
        if self.own and k in self.heads.position:
            at = self.heads.position[k]
            torch._foreach_copy_([stacked[at] for stacked in self.own], self._own(self.vaes[at]))

    def answers(self, x: Tensor, survey: Features) -> Tensor:
        mean, log_variance = self.heads(self.columns.top(survey)).transpose(0, 1).chunk(2, dim=2)
        noise = self.vaes[0].noise[:, None, None]
        z = mean + (0.5 * log_variance).exp() * noise
        log_x = self._log_x(x.flatten(1), z.transpose(0, 1)).transpose(0, 1)
        return lower_bound(self.vaes[0].bound, log_x, mean, log_variance, noise).t()

    def scores(self, y: Tensor, answers: Tensor) -> Tensor:
        raise TypeError("a density knows nothing of y")

    def _log_x(self, x: Tensor, z: Tensor) -> Tensor:
        """Returns log p(x | z), (K, S, B), for x (B, d) and z (K, S, B, latent)."""
        if not self.is_linear:
            return torch.stack([vae.log_x(x, own) for vae, own in zip(self.vaes, z, strict=True)])
        hidden = z.flatten(1, 2)
        n_hidden = len(self.vaes[0].decoder) // 2
        for i in range(n_hidden):
            hidden = torch.relu_(self._linear(i, hidden))
        if self.batched:
            return self._log_x_in_groups(x, hidden.view(*z.shape[:3], -1), n_hidden)
        rows = [
            vae.likelihood.linear_log_prob(x, own, cast(nn.Linear, vae.decoder[-1]))
            for vae, own in zip(self.vaes, hidden.view(*z.shape[:3], -1), strict=True)
        ]
        return torch.stack(rows)

    def _log_x_in_groups(self, x: Tensor, hidden: Tensor, last: int) -> Tensor:
        """Returns log p(x | z), (K, S, B), of `hidden` (K, S, B, n_hidden), in groups that keep outputs small."""
        group = max(1, _MOST_OUTPUTS // (hidden[0, ..., 0].numel() * x.shape[1]))
        parts = []
        for first in range(0, len(hidden), group):
            of = slice(first, first + group)
            output = self._linear(last, hidden[of].flatten(1, 2), of).view(*hidden[of].shape[:3], -1)
            parts.append(self._log_prob(x, output, [learned[of] for learned in self.own[2 * last + 2 :]]))
        return torch.cat(parts) if len(parts) > 1 else parts[0]

    def _log_prob(self, x: Tensor, output: Tensor, learned: list[Tensor]) -> Tensor:
        """Returns log p(x | output) where every expert's likelihood has its own parameters, stacked."""
        likelihood = self.vaes[0].likelihood
        if not learned:
            return likelihood.log_prob(x, output)
        names = [name for name, _ in likelihood.named_parameters()]
        call = torch.func.functional_call
        of_all = torch.func.vmap(lambda own, of_one: call(likelihood, own, (x, of_one)))
        return cast(Tensor, of_all(dict(zip(names, learned, strict=True)), output))

    def _linear(self, i: int, inputs: Tensor, of: slice = slice(None)) -> Tensor:
        """Applies layer i of some experts' decoders to (K, n, inputs)."""
        weight, bias = self.own[2 * i][of], self.own[2 * i + 1][of]
        return torch.baddbmm(bias.unsqueeze(1), inputs, weight.transpose(1, 2))


class PackedPredictors(_Packed):
    """p(y | x, k) of all experts: class log-probabilities (batch, n_experts, C) or moments (batch, n_experts, 2, n)."""

    def __init__(
        self, predictors: Sequence[Classifier | Regressor], retired: Sequence[bool], columns: PackedColumns
    ) -> None:
        self.columns = columns
        heads = [None if gone else predictor.head for predictor, gone in zip(predictors, retired, strict=True)]
        self.heads = pack_heads(columns, heads)
        self.predictors = [predictor for predictor, gone in zip(predictors, retired, strict=True) if not gone]

    def answers(self, x: Tensor, survey: Features) -> Tensor:
        output = self.heads(self.columns.top(survey))
        classifiers = [predictor for predictor in self.predictors if isinstance(predictor, Classifier)]
        if not classifiers:
            return gaussian_moments(output)
        seen = torch.stack([classifier.seen for classifier in classifiers])
        return open_log_softmax(output, seen, classifiers[0].unseen_probability)

    def scores(self, y: Tensor, answers: Tensor) -> Tensor:
        return self.predictors[0].log_prob(y, answers)


def line_up_densities(parts: Sequence[Density], retired: Sequence[bool], *, sharing: bool) -> Lineup:
    """Lines densities up, packed where all are :class:`VAE`, not subclasses, and their columns can be packed."""
    vaes = [part for part in parts if type(part) is VAE]
    if len(vaes) == len(parts) and (columns := pack_columns([vae.encoder for vae in vaes], sharing=sharing)):
        return PackedVAEs(vaes, retired, columns)
    return LoopedLineup(parts, retired, sharing=sharing)


def line_up_predictors(parts: Sequence[Predictor], retired: Sequence[bool], *, sharing: bool) -> Lineup:
    """Lines predictors up, packed where all are of one kind, not subclasses, and their columns can be packed."""
    for kind in (Classifier, Regressor):
        alike = [part for part in parts if type(part) is kind]
        if len(alike) == len(parts) and (columns := pack_columns([part.trunk for part in alike], sharing=sharing)):
            return PackedPredictors(alike, retired, columns)
    return LoopedLineup(parts, retired, sharing=sharing)
