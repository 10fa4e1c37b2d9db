"""The paper's experiments as data, its published cells, and their reproduction."""

from typing import TYPE_CHECKING

from cndpm.extras import require_extra
from cndpm.lazy import lazily

require_extra("filelock", "rich", purpose="cndpm.paper")

if TYPE_CHECKING:
    from cndpm.paper.experiment import EXPERIMENTS, find_experiment
    from cndpm.paper.reproduction import load_run, reproduce

__all__ = ["EXPERIMENTS", "find_experiment", "load_run", "reproduce"]

__getattr__ = lazily(__name__)
