"""Learners by name: those of the package, one's own as ``package.module:Class``, models of scikit-learn and river."""

from __future__ import annotations

from collections import UserDict
from typing import TYPE_CHECKING, Any, NamedTuple

from cndpm.names import ObjectNameError, UnknownNameError, is_object_name, load_object, object_name

if TYPE_CHECKING:
    from cndpm.learner import Learner

__all__ = ["LEARNERS", "learner_class"]


class _Known(NamedTuple):
    """Where a learner is, and a line about it."""

    path: str
    summary: str


class Learners(UserDict[str, Any]):
    """Learners by name; a class is imported when it is asked for."""

    def __getitem__(self, name: str) -> type[Learner]:
        found = self.data[name]
        return load_object(found.path) if isinstance(found, _Known) else found  # type: ignore[no-any-return]

    def summaries(self) -> dict[str, str]:
        """Returns a line about each."""
        return {name: found.summary for name, found in self.data.items()}


LEARNERS = Learners(
    {
        "cndpm": _Known(
            "cndpm.model.cndpm:CNDPM", "the paper's method: a Dirichlet-process mixture of experts that grows by itself"
        ),
        "cndpm-tasks": _Known("cndpm.model.cndpm:CNDPM", "the same, told in training where tasks begin and end"),
        "finetune": _Known("cndpm.baselines.finetune:FineTune", "one step on every batch, nothing against forgetting"),
        "reservoir": _Known(
            "cndpm.baselines.reservoir:Reservoir", "experience replay from a uniform sample of the stream (ER)"
        ),
        "iid-online": _Known(
            "cndpm.baselines.iid:IIDOnline", "reference: the plain network, one pass over shuffled data"
        ),
        "iid-offline": _Known(
            "cndpm.baselines.iid:IIDOffline", "reference: all data collected, many epochs with augmentation and decay"
        ),
        "gss": _Known(
            "cndpm.baselines.gss:GSS", "gradient-based sample selection (greedy): a memory of diverse gradients"
        ),
        "ewc": _Known(
            "cndpm.baselines.ewc:EWC", "elastic weight consolidation: a quadratic penalty for every past task"
        ),
        "online-ewc": _Known(
            "cndpm.baselines.ewc:OnlineEWC", "online EWC: one running penalty, anchored at the last task"
        ),
        "si": _Known("cndpm.baselines.si:SI", "synaptic intelligence: penalty by each weight's share in past progress"),
        "mas": _Known(
            "cndpm.baselines.mas:MAS", "memory-aware synapses: penalty by the answer's sensitivity to each weight"
        ),
        "lwf": _Known(
            "cndpm.baselines.lwf:LwF", "learning without forgetting: distils the previous network on new data"
        ),
        "gem": _Known(
            "cndpm.baselines.gem:GEM", "gradient episodic memory: steps projected so that no past task's loss rises"
        ),
        "a-gem": _Known(
            "cndpm.baselines.a_gem:AGEM", "averaged GEM: steps projected so that the memory's loss does not rise"
        ),
        "dgr": _Known("cndpm.baselines.dgr:DGR", "deep generative replay: a VAE dreams past inputs"),
        "rtf": _Known("cndpm.baselines.rtf:RtF", "replay through feedback: generator and classifier in one network"),
        "mir": _Known(
            "cndpm.baselines.mir:MIR", "maximally interfered retrieval: replays what the next step would hurt"
        ),
        "der": _Known("cndpm.baselines.der:DER", "dark experience replay: replays stored logits"),
        "der++": _Known("cndpm.baselines.der:DERPlusPlus", "DER++: replays stored logits and labels"),
        "er-ace": _Known("cndpm.baselines.er_ace:ERACE", "ER-ACE: replay with an asymmetric cross entropy"),
        "scr": _Known("cndpm.baselines.scr:SCR", "supervised contrastive replay, nearest class mean"),
        "gdumb": _Known(
            "cndpm.baselines.gdumb:GDumb", "GDumb: a balanced memory, and a fresh network trained on it when asked"
        ),
        "slda": _Known("cndpm.baselines.slda:SLDA", "streaming linear discriminant analysis on fixed features"),
        "pec": _Known("cndpm.baselines.pec:PEC", "prediction-error classification: one small network per class"),
    }
)
"""Names and classes, in the order of the documentation."""


def learner_class(name: str) -> type[Learner]:
    """Returns the learner of this name; imports the module of one of one's own.

    Args:
        name: A key of :data:`LEARNERS`, ``package.module:Class``, or ``sklearn:...`` and ``river:...`` for models of
            others (:mod:`cndpm.baselines.others`).

    Raises:
        UnknownNameError: There is no learner of this name; the nearest names are suggested.
        ObjectNameError: The class cannot be imported, or is no complete learner.
    """
    if name.startswith(("sklearn:", "river:")):
        from cndpm.baselines.others import others_learner

        return others_learner(name)
    if is_object_name(name):
        from cndpm.learner import Learner

        found: type[Learner] = load_object(name, Learner)
        missing = sorted(getattr(found, "__abstractmethods__", ()))
        missing = missing if hasattr(found, "Settings") else ["Settings", *missing]
        if missing:
            raise ObjectNameError(
                f"{name} is no complete learner: it has no {', '.join(missing)}. Write them, or derive the class from "
                "one that has them; `cndpm.checks.check_learner` checks the rest."
            )
        return found
    if name not in LEARNERS:
        raise UnknownNameError("learner", name, [*LEARNERS, "package.module:Class"])
    return LEARNERS[name]


def learner_name(learner_class: type[Learner]) -> str:
    """Returns the name that a record gives to a learner: the registered one, or ``package.module:Class``."""
    path, known = object_name(learner_class), LEARNERS.data.items()
    return next((name for name, one in known if one is learner_class or getattr(one, "path", "") == path), path)
