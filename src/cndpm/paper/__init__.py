"""The paper's experiments as data, its published cells, and their reproduction."""

from cndpm.paper.analyses import load_run
from cndpm.paper.paper import EXPERIMENTS, find_experiment
from cndpm.paper.reproduce import reproduce

__all__ = ["EXPERIMENTS", "find_experiment", "load_run", "reproduce"]
