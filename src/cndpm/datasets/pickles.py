"""Pickled arrays without pickled code.

CIFAR10 and CIFAR100 are published as pickles: programs for a small machine that can name any function and have it
called. Python's own unpickler runs them and can be told which names to admit, but it still sets memory aside as the
file says and lets it change what it was admitted to. Here the programs are decoded by :mod:`pickletools`, which runs
nothing, and carried out by :class:`~cndpm.datasets.pickle_machine.PickleMachine`, which knows the instructions (of
protocol 2 and later) for plain containers and numpy arrays.
"""

from __future__ import annotations

import pickletools
from collections.abc import Callable
from pathlib import Path
from typing import Any

from cndpm.datasets.files import RefusedPickleError, read_bytes
from cndpm.datasets.pickle_machine import PickleMachine

__all__ = ["read_pickle"]

_MOST_INSTRUCTIONS = 4_000_000  # CIFAR100's training set takes about 300,000


def _append(machine: PickleMachine, values: list[Any]) -> None:
    machine.top(list).extend(values)


def _take(n: int) -> Callable[[PickleMachine, Any], None]:
    """Returns the instruction that makes a tuple of the last `n` values."""

    def make(machine: PickleMachine, _: Any) -> None:
        machine.push(tuple([machine.pop() for _ in range(n)][::-1]))

    return make


def _push_text_as_bytes(machine: PickleMachine, text: Any) -> None:
    machine.push(text.encode("latin1"))  # Python 2's strings


_PUSHED = """
    LONG1 LONG4 BININT BININT1 BININT2 BINFLOAT
    BINUNICODE SHORT_BINUNICODE BINUNICODE8 BINBYTES SHORT_BINBYTES BINBYTES8
"""
_INSTRUCTIONS: dict[str, Callable[[PickleMachine, Any], None]] = {
    **dict.fromkeys(("PROTO", "FRAME"), lambda _machine, _: None),
    **dict.fromkeys(_PUSHED.split(), PickleMachine.push),
    **dict.fromkeys(("BINSTRING", "SHORT_BINSTRING"), _push_text_as_bytes),
    "NONE": lambda machine, _: machine.push(None),
    "NEWTRUE": lambda machine, _: machine.push(True),
    "NEWFALSE": lambda machine, _: machine.push(False),
    "EMPTY_LIST": lambda machine, _: machine.push([]),
    "EMPTY_DICT": lambda machine, _: machine.push({}),
    "EMPTY_TUPLE": _take(0),
    "TUPLE1": _take(1),
    "TUPLE2": _take(2),
    "TUPLE3": _take(3),
    "MARK": lambda machine, _: machine.mark(),
    "TUPLE": lambda machine, _: machine.push(tuple(machine.pop_to_mark())),
    "APPEND": lambda machine, _: _append(machine, [machine.pop()]),
    "APPENDS": lambda machine, _: _append(machine, machine.pop_to_mark()),
    "SETITEM": lambda machine, _: machine.set_items([machine.pop(), machine.pop()][::-1]),
    "SETITEMS": lambda machine, _: machine.set_items(machine.pop_to_mark()),
    **dict.fromkeys(("BINPUT", "LONG_BINPUT", "MEMOIZE"), PickleMachine.put),
    **dict.fromkeys(("BINGET", "LONG_BINGET"), PickleMachine.get),
    "GLOBAL": PickleMachine.name,
    "STACK_GLOBAL": lambda machine, _: machine.name_from_stack(),
    "REDUCE": lambda machine, _: machine.call(),
    "BUILD": lambda machine, _: machine.build(),
}


def read_pickle(path: Path) -> Any:
    """Reads a pickle of arrays, lists, dictionaries, tuples, numbers and strings (Python 2's become bytes).

    Raises:
        DamagedFileError: The file cannot be read.
        RefusedPickleError: The file would call or import something else, holds objects, or is damaged.
    """
    content = read_bytes(path)
    try:
        return _carry_out(content)
    except RefusedPickleError as error:
        raise RefusedPickleError(f"{path} is refused: {error}. Get the file anew.") from None
    except Exception as error:  # the decoder raises many kinds for garbage
        raise RefusedPickleError(f"{path} is not a readable pickle: {error}. Get the file anew.") from error


def _carry_out(content: bytes) -> Any:
    machine = PickleMachine(len(content))
    for n, (opcode, argument, _) in enumerate(pickletools.genops(content)):
        if opcode.name == "STOP":
            break
        if opcode.name not in _INSTRUCTIONS:
            raise RefusedPickleError(
                f"the pickle uses the instruction {opcode.name}; only arrays and plain containers are admitted"
            )
        if n >= _MOST_INSTRUCTIONS:
            raise RefusedPickleError(f"the pickle has more than {_MOST_INSTRUCTIONS} instructions")
        _INSTRUCTIONS[opcode.name](machine, argument)
    return machine.result()
