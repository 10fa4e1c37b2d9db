"""Engines: the same work on this machine's processes or on a Ray cluster, and models learned in shards.

from cndpm import CNDPMClassifier
from cndpm.engines import fit_sharded

model = fit_sharded(CNDPMClassifier(), ["part-0.parquet", "part-1.parquet"], target="y", workers=2)
"""

from typing import TYPE_CHECKING

from cndpm.lazy import lazily

if TYPE_CHECKING:
    from cndpm.engines.engine import LostWorkerError
    from cndpm.engines.sharding import ShardedError, fit_sharded, predict_sharded
    from cndpm.engines.shards import ShardError

__all__ = ["LostWorkerError", "ShardError", "ShardedError", "fit_sharded", "predict_sharded"]

__getattr__ = lazily(__name__)
