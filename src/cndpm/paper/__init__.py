"""The paper's experiments as data, its published cells, and their reproduction."""

from typing import TYPE_CHECKING

from cndpm.lazy import lazily

if TYPE_CHECKING:
    from cndpm.paper.analyses import load_run
    from cndpm.paper.paper import EXPERIMENTS, find_experiment
    from cndpm.paper.reproduction import reproduce

__all__ = ["EXPERIMENTS", "find_experiment", "load_run", "reproduce"]

__getattr__ = lazily(__name__)
