"""Every learner by its name on the command line."""

from __future__ import annotations

import difflib

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

__all__ = ["LEARNERS", "learner_class"]

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
    """The learner of this name.

    Raises:
        ValueError: There is none; the message gives the nearest name.
    """
    if name in LEARNERS:
        return LEARNERS[name]
    nearest = difflib.get_close_matches(name, LEARNERS, n=1, cutoff=0.4)
    hint = f"did you mean {nearest[0]!r}? " if nearest else ""
    raise ValueError(f"no learner is called {name!r}; {hint}Known learners: {', '.join(LEARNERS)}.")
