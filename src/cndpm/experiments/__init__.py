"""Configuration, the one loop that runs a learner on a stream, metrics, and records on disk.

The same from Python as on the command line, and any learner on any stream:

    from cndpm.experiments import configure, prequential, read_record, run, run_config

    run_config(configure("split-digits", learner="reservoir"), "runs/mine")
    read_record("runs/mine").column("accuracy")
    run(my_learner, my_stream, "runs/own")
    prequential(my_model, my_stream).run().summary()
"""

from typing import TYPE_CHECKING

from cndpm.extras import require_extra
from cndpm.lazy import lazily

require_extra("filelock", "rich", purpose="cndpm.experiments")

if TYPE_CHECKING:
    from cndpm.experiments.checkpoint_file import read_checkpoint
    from cndpm.experiments.config import RunConfig, RunSettings, configure
    from cndpm.experiments.loop import run, run_config
    from cndpm.experiments.monitor import Monitor, Monitors
    from cndpm.experiments.prequential_evaluation import prequential
    from cndpm.experiments.record import Record, RecordError, find_records, read_record
    from cndpm.experiments.sweep import compare_learners, run_seeds
    from cndpm.experiments.terminal import TerminalMonitor
    from cndpm.experiments.workers import RunsFailedError
    from cndpm.validation import ConfigError

__all__ = [
    "ConfigError",
    "Monitor",
    "Monitors",
    "Record",
    "RecordError",
    "RunConfig",
    "RunSettings",
    "RunsFailedError",
    "TerminalMonitor",
    "compare_learners",
    "configure",
    "find_records",
    "prequential",
    "read_checkpoint",
    "read_record",
    "run",
    "run_config",
    "run_seeds",
]

__getattr__ = lazily(__name__)
