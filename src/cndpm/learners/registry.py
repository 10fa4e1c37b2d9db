"""Every learner by its name on the command line."""

from __future__ import annotations

import difflib

from cndpm.learners.a_gem import AGEM
from cndpm.learners.cndpm import CNDPM, TaskLabelledCNDPM
from cndpm.learners.der import DER, DERPlusPlus
from cndpm.learners.dgr import DGR
from cndpm.learners.er_ace import ERACE
from cndpm.learners.ewc import EWC, OnlineEWC
from cndpm.learners.finetune import FineTune
from cndpm.learners.gdumb import GDumb
from cndpm.learners.gem import GEM
from cndpm.learners.gss import GSS
from cndpm.learners.iid import IIDOffline, IIDOnline
from cndpm.learners.learner import Learner
from cndpm.learners.lwf import LwF
from cndpm.learners.mas import MAS
from cndpm.learners.mir import MIR
from cndpm.learners.pec import PEC
from cndpm.learners.reservoir import Reservoir
from cndpm.learners.rtf import RtF
from cndpm.learners.scr import SCR
from cndpm.learners.si import SI
from cndpm.learners.slda import SLDA

__all__ = ["LEARNERS", "learner_class"]

LEARNERS: dict[str, type[Learner]] = {
    "cndpm": CNDPM,
    "cndpm-tasks": TaskLabelledCNDPM,
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
    """The learner of this name.

    Raises:
        ValueError: There is none; the message gives the nearest name.
    """
    if name in LEARNERS:
        return LEARNERS[name]
    nearest = difflib.get_close_matches(name, LEARNERS, n=1, cutoff=0.4)
    hint = f"did you mean {nearest[0]!r}? " if nearest else ""
    raise ValueError(f"no learner is called {name!r}; {hint}Known learners: {', '.join(LEARNERS)}.")
