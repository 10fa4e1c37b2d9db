"""State that is data and never code: trees of tensors and plain values in one file with a checksum over everything.

:func:`save_state` writes a tree, :func:`load_state` reads it back to the bit and refuses what is damaged, of another
kind or of a version that it does not know. :func:`expect` holds a state against the shapes that settings give.
"""

from cndpm.state.container import StateError
from cndpm.state.expecting import Keeps, expect, flag, integers, listed, maybe, nothing, number, part, tensor, whole
from cndpm.state.state_file import FORMAT_VERSION, StateFile, load_state, read_state, save_state, state_kind
from cndpm.state.tree import State, check_same_form, copied, non_finite

__all__ = [
    "FORMAT_VERSION",
    "Keeps",
    "State",
    "StateError",
    "StateFile",
    "check_same_form",
    "copied",
    "expect",
    "flag",
    "integers",
    "listed",
    "load_state",
    "maybe",
    "non_finite",
    "nothing",
    "number",
    "part",
    "read_state",
    "save_state",
    "state_kind",
    "tensor",
    "whole",
]
