"""Learners by name: those that come with the package, and one's own as ``package.module:Class``."""

from __future__ import annotations

from cndpm.baselines.a_gem import AGEM
from cndpm.baselines.der import DER, DERPlusPlus
from cndpm.baselines.dgr import DGR
from cndpm.baselines.er_ace import ERACE
from cndpm.baselines.ewc import EWC, OnlineEWC
from cndpm.baselines.finetune import FineTune
from cndpm.baselines.gdumb import GDumb
from cndpm.baselines.gem import GEM
from cndpm.baselines.gss import GSS
from cndpm.baselines.iid import IIDOffline, IIDOnline
from cndpm.baselines.lwf import LwF
from cndpm.baselines.mas import MAS
from cndpm.baselines.mir import MIR
from cndpm.baselines.pec import PEC
from cndpm.baselines.reservoir import Reservoir
from cndpm.baselines.rtf import RtF
from cndpm.baselines.scr import SCR
from cndpm.baselines.si import SI
from cndpm.baselines.slda import SLDA
from cndpm.learner import Learner
from cndpm.model.cndpm import CNDPM
from cndpm.names import ObjectNameError, UnknownNameError, is_object_name, load_object, object_name

__all__ = ["LEARNERS", "learner_class", "learner_name"]

LEARNERS: dict[str, type[Learner]] = {
    "cndpm": CNDPM,
    "cndpm-tasks": CNDPM,
    "finetune": FineTune,
    "reservoir": Reservoir,
    "iid-online": IIDOnline,
    "iid-offline": IIDOffline,
    "gss": GSS,
    "ewc": EWC,
    "online-ewc": OnlineEWC,
    "si": SI,
    "mas": MAS,
    "lwf": LwF,
    "gem": GEM,
    "a-gem": AGEM,
    "dgr": DGR,
    "rtf": RtF,
    "mir": MIR,
    "der": DER,
    "der++": DERPlusPlus,
    "er-ace": ERACE,
    "scr": SCR,
    "gdumb": GDumb,
    "slda": SLDA,
    "pec": PEC,
}
"""Names and classes, in the order of the documentation."""


def learner_class(name: str) -> type[Learner]:
    """Returns the learner of this name; imports the module of one of one's own.

    Args:
        name: A key of :data:`LEARNERS`, or ``package.module:Class``.

    Raises:
        UnknownNameError: There is no learner of this name; the nearest names are suggested.
        ObjectNameError: The class cannot be imported, or is no complete learner.

    Example:
        >>> learner_class("reservoir").__name__
        'Reservoir'
        >>> learner_class("cndpm.baselines.reservoir:Reservoir").__name__
        'Reservoir'
    """
    if is_object_name(name):
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
    """Returns the name that a record gives to a learner: the registered one, or ``package.module:Class``.

    Example:
        >>> learner_name(CNDPM)
        'cndpm'
    """
    return next((name for name, known in LEARNERS.items() if known is learner_class), object_name(learner_class))
