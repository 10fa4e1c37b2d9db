"""Scenarios (recipes) and streams (batches).

A scenario becomes a stream when it is given data and a seed:

    stream = load_scenario("split-mnist").build(seed=0)
    for x, y in stream.batches():
        learner.learn(x, y)
"""

from typing import TYPE_CHECKING

from cndpm.lazy import lazily

if TYPE_CHECKING:
    from cndpm.streams.drift import DriftScenario
    from cndpm.streams.rows import Rows, stream_of_rows
    from cndpm.streams.scenario import Blur, Scenario, Stage, Subset, Transform
    from cndpm.streams.scenario_files import ScenarioFileError, load_scenario, scenario_names
    from cndpm.streams.sources import drifting_clusters, stream_from
    from cndpm.streams.stream import Batch, Block, Stream, Task
    from cndpm.streams.variations import VARIATIONS

__all__ = [
    "VARIATIONS",
    "Batch",
    "Block",
    "Blur",
    "DriftScenario",
    "Rows",
    "Scenario",
    "ScenarioFileError",
    "Stage",
    "Stream",
    "Subset",
    "Task",
    "Transform",
    "drifting_clusters",
    "load_scenario",
    "scenario_names",
    "stream_from",
    "stream_of_rows",
]

__getattr__ = lazily(__name__)
