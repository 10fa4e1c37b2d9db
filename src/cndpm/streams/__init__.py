"""Datasets on disk or fetched, scenarios (recipes) and streams (batches).

scenario = load_scenario("split-mnist")
stream = scenario.build(seed=0)
for x, y in stream.batches():
    learner.learn(x, y)
"""

from cndpm.streams.dataset import Dataset, Split
from cndpm.streams.fetching import FetchError, fetch_dataset
from cndpm.streams.idx import DamagedFileError
from cndpm.streams.inventory import Check, DatasetStatus, dataset_status, verify_dataset
from cndpm.streams.loading import MissingDataError, dataset_names, load_dataset, resolve_data_dir
from cndpm.streams.names import UnknownNameError, nearest_names
from cndpm.streams.pickles import RefusedPickleError
from cndpm.streams.progress import progress_bar
from cndpm.streams.scenario import Blur, Scenario, Stage, Subset, Transform
from cndpm.streams.scenario_files import ScenarioFileError, load_scenario, scenario_names
from cndpm.streams.scenario_stream import ScenarioStream
from cndpm.streams.sources import SourceStream, drifting_clusters, stream_from
from cndpm.streams.stream import Batch, Stream, Task
from cndpm.streams.variations import VARIATIONS

__all__ = [
    "VARIATIONS",
    "Batch",
    "Blur",
    "Check",
    "DamagedFileError",
    "Dataset",
    "DatasetStatus",
    "FetchError",
    "MissingDataError",
    "RefusedPickleError",
    "Scenario",
    "ScenarioFileError",
    "ScenarioStream",
    "SourceStream",
    "Split",
    "Stage",
    "Stream",
    "Subset",
    "Task",
    "Transform",
    "UnknownNameError",
    "dataset_names",
    "dataset_status",
    "drifting_clusters",
    "fetch_dataset",
    "load_dataset",
    "load_scenario",
    "nearest_names",
    "progress_bar",
    "resolve_data_dir",
    "scenario_names",
    "stream_from",
    "verify_dataset",
]
