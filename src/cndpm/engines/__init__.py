"""Engines: the same work on this machine's processes or on a Ray cluster, and models learned in shards.

from cndpm import CNDPMClassifier
from cndpm.engines import fit_sharded

model = fit_sharded(CNDPMClassifier(), ["part-0.parquet", "part-1.parquet"], target="y", workers=2)
"""

from typing import TYPE_CHECKING

from cndpm.lazy import lazily

if TYPE_CHECKING:
    from cndpm.engines.engine import Attempt, Engine, LostWorkerError
    from cndpm.engines.local import LocalEngine
    from cndpm.engines.named_engines import ENGINES, make_engine
    from cndpm.engines.ray import RayEngine
    from cndpm.engines.ray_data import RayShard
    from cndpm.engines.sharding import ShardedError, fit_sharded, predict_sharded
    from cndpm.engines.shards import ArrayShard, FileShard, Shard, ShardError, as_shard, split

__all__ = [
    "ENGINES",
    "ArrayShard",
    "Attempt",
    "Engine",
    "FileShard",
    "LocalEngine",
    "LostWorkerError",
    "RayEngine",
    "RayShard",
    "Shard",
    "ShardError",
    "ShardedError",
    "as_shard",
    "fit_sharded",
    "make_engine",
    "predict_sharded",
    "split",
]

__getattr__ = lazily(__name__)
