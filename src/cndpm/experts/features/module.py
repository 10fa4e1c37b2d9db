"""Any torch module as a feature map, for example a pretrained backbone."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from cndpm.experts.features.standardised import StandardisedFeatures
from cndpm.state import State

__all__ = ["ModuleFeatures"]


class ModuleFeatures(StandardisedFeatures):
    """The flattened output of a frozen module, standardised on the first memory.

    The module is put into evaluation mode and never trained. Its weights travel with the state, its code does not: to
    load a state, construct the map with a module of the same shape.

    Args:
        module: Maps (B, *input_shape) to (B, ...).
        chunk_size: Samples per forward pass.

    Example:
        >>> features = ModuleFeatures(nn.Conv2d(1, 2, 3))
        >>> x = torch.rand(20, 1, 5, 5)
        >>> features.fit(x, generator=torch.Generator())
        >>> features(x).shape
        torch.Size([20, 18])
    """

    def __init__(self, module: nn.Module, *, chunk_size: int = 256) -> None:
        super().__init__()
        self.module = module.eval().requires_grad_(False)
        self.chunk_size = chunk_size

    @torch.no_grad()
    def _rows(self, x: Tensor) -> Tensor:
        self.module.to(x.device)
        try:
            return torch.cat([self.module(chunk).flatten(1).float() for chunk in torch.split(x, self.chunk_size)])
        except (RuntimeError, AttributeError) as error:
            raise ValueError(
                f"the module given as features cannot be applied to samples of shape {tuple(x.shape[1:])}: {error}"
            ) from error

    @property
    def n_numbers_kept(self) -> int:
        n_module: int = sum(value.numel() for value in self.module.state_dict().values())
        return n_module + self._standardised.n_numbers_kept

    def state_dict(self) -> State:
        weights = {name: value.clone() for name, value in self.module.state_dict().items()}
        return {"module": weights, "standardised": self._standardised.state_dict()}

    def load_state_dict(self, state: State) -> None:
        self.module.load_state_dict(state["module"])
        self._standardised.load_state_dict(state["standardised"])
