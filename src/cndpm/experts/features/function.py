"""Any function of arrays as a feature map, for example an encoder of another framework."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from cndpm.experts.features.standardised import StandardisedFeatures
from cndpm.state import State

__all__ = ["FunctionFeatures"]


class FunctionFeatures(StandardisedFeatures):
    """The flattened output of a function of arrays, standardised on the first memory.

    The function is code, which no state holds: to load a state, make the map with the same function.

    Args:
        function: Maps an array (B, *input_shape), float32, to an array with B rows. It must always give the same rows
            for the same samples.
        chunk_size: Samples per call.

    Example:
        >>> features = FunctionFeatures(lambda x: np.stack([x.sum(axis=1), x.max(axis=1)], axis=1))
        >>> x = torch.rand(20, 5)
        >>> features.fit(x, generator=torch.Generator())
        >>> features(x).shape
        torch.Size([20, 2])
    """

    def __init__(self, function: Callable[[NDArray[np.float32]], Any], *, chunk_size: int = 256) -> None:
        super().__init__()
        self.function, self.chunk_size = function, chunk_size

    def _rows(self, x: Tensor) -> Tensor:
        return torch.cat([self._part(part) for part in torch.split(x, self.chunk_size)])

    def _part(self, x: Tensor) -> Tensor:
        made = np.asarray(self.function(x.cpu().numpy()), dtype=np.float32)
        if made.ndim < 1 or len(made) != len(x):
            raise ValueError(f"features gave an array of shape {made.shape} for {len(x)} samples; one row each is due")
        if not np.isfinite(made).all():
            raise ValueError("features gave NaN or infinity; only finite values can be learned")
        return torch.from_numpy(made.reshape(len(made), -1)).to(x.device)

    @property
    def n_numbers_kept(self) -> int:
        return self._standardised.n_numbers_kept

    def state_dict(self) -> State:
        return {"standardised": self._standardised.state_dict()}

    def load_state_dict(self, state: State) -> None:
        self._standardised.load_state_dict(state["standardised"])
