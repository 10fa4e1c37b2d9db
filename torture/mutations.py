"""Damage to files: pure functions of bytes and a generator."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from random import Random
from typing import Literal

__all__ = ["MUTATIONS", "mutate"]

Mutation = Callable[[bytes, Random], bytes]

_EDGE = 300  # bytes at either end, where headers, tags and directories lie
_EXTREMES = (0, 1, 0x7F, 0x80, 0xFF, 0x7FFF, 0x8000, 0xFFFF, 0x7FFF_FFFF, 0x8000_0000, 0xFFFF_FFFF, (1 << 63) - 1)


def _place(content: bytes, rng: Random) -> int:
    """Returns an offset: anywhere, or, three times out of four, near the beginning or the end."""
    near = min(_EDGE, len(content))
    choice = rng.randrange(4)
    if choice == 0 or near == 0:
        return rng.randrange(len(content) + 1)
    return rng.randrange(near) if choice < 3 else len(content) - 1 - rng.randrange(near)


def _length(content: bytes, rng: Random) -> int:
    return min(len(content), 1 + int(rng.expovariate(1 / 24)))


def _flip_bits(content: bytes, rng: Random) -> bytes:
    changed = bytearray(content)
    for _ in range(rng.choice((1, 1, 1, 2, 4, 16))):
        at = min(_place(content, rng), len(content) - 1)
        changed[at] ^= 1 << rng.randrange(8)
    return bytes(changed)


def _truncate(content: bytes, rng: Random) -> bytes:
    return content[: _place(content, rng)]


def _insert(content: bytes, rng: Random) -> bytes:
    at = _place(content, rng)
    return content[:at] + rng.randbytes(_length(content, rng)) + content[at:]


def _remove(content: bytes, rng: Random) -> bytes:
    at = _place(content, rng)
    return content[:at] + content[at + _length(content, rng) :]


def _set_extreme(content: bytes, rng: Random) -> bytes:
    """Overwrites 1, 2, 4 or 8 bytes, as if they were a length, by an extreme or a neighbouring number."""
    width = rng.choice((1, 2, 4, 8))
    at = min(_place(content, rng), max(0, len(content) - width))
    order: Literal["little", "big"] = rng.choice(("little", "big"))
    if rng.randrange(3):
        value = rng.choice(_EXTREMES)
    else:
        value = int.from_bytes(content[at : at + width], order) + rng.choice((-8, -1, 1, 8))
    return content[:at] + (value % (1 << 8 * width)).to_bytes(width, order) + content[at + width :]


def _swap_blocks(content: bytes, rng: Random) -> bytes:
    a, b, c, d = sorted(_place(content, rng) for _ in range(4))
    return content[:a] + content[c:d] + content[b:c] + content[a:b] + content[d:]


def _repeat_block(content: bytes, rng: Random) -> bytes:
    at = _place(content, rng)
    block = content[at : at + _length(content, rng)]
    return content[:at] + block * rng.choice((2, 3, 50)) + content[at + len(block) :]


def _zero_run(content: bytes, rng: Random) -> bytes:
    at = _place(content, rng)
    n = len(content[at : at + _length(content, rng)])
    return content[:at] + bytes(n) + content[at + n :]


def _splice(other: bytes, content: bytes, rng: Random) -> bytes:
    at = _place(content, rng)
    return content[:at] + other[at if rng.randrange(2) else _place(other, rng) :]


MUTATIONS: dict[str, Mutation] = {
    "bit flips": _flip_bits,
    "truncation": _truncate,
    "insertion": _insert,
    "removal": _remove,
    "extreme length": _set_extreme,
    "swapped blocks": _swap_blocks,
    "repeated block": _repeat_block,
    "zero run": _zero_run,
}


def mutate(content: bytes, other: bytes, rng: Random) -> tuple[str, bytes]:
    """Damages a file once, or, one time out of four, several times.

    Args:
        content: A valid file, not empty.
        other: Another valid file of the same format, for splices.
        rng: The only source of chance.

    Returns:
        The names of what was done, and the damaged content.
    """
    choices = MUTATIONS | {"splice": partial(_splice, other)}
    done = []
    for _ in range(rng.choice((1, 1, 1, rng.randint(2, 4)))):
        if not content:
            break
        name = rng.choice(list(choices))
        content = choices[name](content, rng)
        done.append(name)
    return " + ".join(done), content
