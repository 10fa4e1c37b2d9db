"""Independent parts in threads of their own, where many small operations do not gain from torch's threads."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor

import torch
from torch import Tensor

__all__ = ["map_in_threads"]


def map_in_threads(function: Callable[[Tensor], Tensor], parts: Sequence[Tensor]) -> list[Tensor]:
    """Applies a function to every part on a CPU, in as many threads as torch uses; within each torch uses one.

    Args:
        function: Takes and returns one tensor; independent of what the other threads do.
        parts: Tensors of any shapes.

    Returns:
        The results in the order of the parts.

    Example:
        >>> torch.cat(map_in_threads(torch.square, torch.arange(4).split(2)))
        tensor([0, 1, 4, 9])
    """
    n_threads = min(torch.get_num_threads(), len(parts))
    if n_threads < 2:
        return [function(part) for part in parts]
    with ThreadPoolExecutor(n_threads, initializer=torch.set_num_threads, initargs=(1,)) as threads:
        return list(threads.map(function, parts))
