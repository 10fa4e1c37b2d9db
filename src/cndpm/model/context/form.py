"""The form of a saved present: checked before anything of it is taken over."""

from __future__ import annotations

import torch

from cndpm.model.context.former import MOST_FORMERS, Former
from cndpm.state import State, StateError, expect, maybe, part, tensor, whole

__all__ = ["check_present"]


def check_present(state: State, *, n_outputs: int, n_random_bytes: int) -> None:
    """Raises StateError where a present's own parts of a state have another form.

    Args:
        state: As :meth:`cndpm.model.context.present.Present.state_dict` returns it.
        n_outputs: Number of values; 0 where targets are classes.
        n_random_bytes: Bytes of a generator's state.
    """
    parts = dict.fromkeys(("representations", "rules"), maybe(part()))
    expect(state, {"width": whole(), "rows": part(), "schedule": part(), **parts})
    if (state["rules"] is None) != (state["representations"] is None):
        raise StateError("'rules' and 'representations' are there together, or neither is")
    numbers = dict.fromkeys(("n_seen", "asked_at"), whole())
    least, most = (n_outputs, n_outputs) if n_outputs else (0, 1 << 31)
    counts = tensor(0 if n_outputs else state["width"])
    n_units = 0 if state["rules"] is None else n_outputs
    of_targets = {"shift": tensor(n_units), "scale": tensor(n_units)}
    arrays = {"counts": counts, "current": tensor("experts"), **of_targets}
    formers = state.get("formers")
    if not isinstance(formers, list) or len(formers) > MOST_FORMERS or (formers and state["rules"] is None):
        raise StateError(f"'formers' must be a list of at most {MOST_FORMERS} beside a present")
    for former in formers:
        Former.check(former, n_outputs=n_units)
    generator = tensor(n_random_bytes, dtype=torch.uint8)
    expect(state, {"width": whole(least, most), "generator": generator, **numbers, **arrays})
