"""Arguments that calls of an estimator may be given by mistake or on purpose; functions of a random source alone."""

from __future__ import annotations

import datetime
import decimal
import enum
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse
import torch

# ruff: noqa: ARG005 - all makers of one kind take the same arguments

__all__ = [
    "PARAMETERS",
    "hostile_option",
    "hostile_rows",
    "hostile_targets",
    "hostile_weights",
    "odd",
    "proper_rows",
    "proper_targets",
    "raising",
]

_EXTREMES = (3.4e38, -3.4e38, 1e30, 1e19, 1e16, 1e12, 1e-30, 1e-45, -0.0, 5e-324, float("inf"), float("nan"), 2.0**62)


class _Colour(enum.Enum):
    RED = 1


class _Evil:
    """Raises whatever it is asked, as no label should."""

    def __hash__(self) -> int:
        raise KeyError("hash")

    def __eq__(self, other: object) -> bool:
        raise KeyError("eq")

    def __array__(self, *_: object, **__: object) -> Any:
        raise KeyError("array")

    def __len__(self) -> int:
        raise KeyError("len")


_ASKED = (
    *("__array__", "__len__", "__iter__", "__getitem__", "__float__", "__int__", "__index__", "__bool__", "__repr__"),
    *("__hash__", "__eq__", "__le__", "__ge__", "__getattr__", "__array_interface__", "__array_struct__"),
    *("shape", "dtype", "columns", "index", "keys", "items", "values", "__dataframe__"),
)
_ERRORS = (KeyError, LookupError, AttributeError, RuntimeError, OverflowError, RecursionError, OSError, StopIteration)


def raising(random: Random, base: type = object) -> type:
    """Returns a type derived from another one that raises where it is asked some things.

    Args:
        random: Source of all choices.
        base: The other one.
    """
    asked, error = random.sample(_ASKED, random.choice((1, 2, 4, 8))), random.choice(_ERRORS)

    def raises(*_: object, **__: object) -> Any:
        raise error("asked")

    members = {
        name: raises if name.startswith("__") or name in ("keys", "items") else property(raises) for name in asked
    }
    return type("Raising", (base,), members | ({"__hash__": base.__hash__} if members.keys() == {"__eq__"} else {}))


class _Liar:
    """Claims a shape and rows that it does not have."""

    shape = (3, 4)
    dtype = np.dtype("float32")

    def __len__(self) -> int:
        return 3

    def __getitem__(self, index: Any) -> Any:
        raise IndexError(index)


def proper_rows(random: Random, n: int, d: int) -> np.ndarray:
    """Returns rows (n, d) of some clusters, as a stream would have them."""
    rng = np.random.default_rng(random.randrange(1 << 32))
    return rng.normal(size=(n, d)) + 4 * rng.integers(0, 3, size=(n, 1))


def proper_targets(random: Random, kind: str, n: int) -> Any:
    """Returns targets of n samples for an estimator of this kind: labels, values or none."""
    rng = np.random.default_rng(random.randrange(1 << 32))
    return {"classes": rng.integers(0, 4, n), "values": rng.normal(size=n), "none": None}[kind]


def hostile_rows(random: Random, n: int, d: int) -> Any:
    """Returns what may stand in place of rows (n, d), now and then proper rows.

    Args:
        random: Source of all choices.
        n: Rows that there should be.
        d: Features that there should be.
    """
    return random.choice(_ROWS)(random, proper_rows(random, n, d))


def hostile_targets(random: Random, n: int) -> Any:
    """Returns what may stand in place of n labels or values, now and then proper ones.

    Args:
        random: Source of all choices.
        n: Targets that there should be.
    """
    return random.choice(_TARGETS)(random, n)


_SPARSE = ("csr", "csc", "bsr", "coo", "lil", "dok", "dia")


def _unsound_sparse(random: Random, rows: np.ndarray) -> Any:
    """Returns a sparse matrix of which one number in its arrays of places is another."""
    kind = random.choice(("csr", "csc", "bsr", "coo"))
    made = scipy.sparse.csr_matrix(rows * (rows > 0)).asformat(kind)
    parts = (made.row, made.col) if kind == "coo" else (made.indices, made.indptr)
    places = random.choice([part for part in parts if len(part)] or [np.zeros(1, dtype=np.int64)])
    value = random.choice((-1, 1, 10**4, 2**31 - 1, -(2**31)))
    places[random.randrange(len(places))] = value if value == 2**31 - 1 else value + random.randrange(3)
    return made


def _masked_sparse(random: Random, rows: np.ndarray) -> Any:
    """Returns a sparse matrix of which a value is masked, or whose values have a second column."""
    made = scipy.sparse.csr_matrix(rows).asformat(random.choice(("csr", "csc", "coo")))
    masked, wide = np.ma.masked_array(made.data, mask=made.data == made.data[:1]), made.data[:, None].repeat(2, 1)
    made.data = random.choice((masked, wide))
    return made


def _of_another_shape(random: Random, rows: np.ndarray) -> Any:
    """Returns a sparse matrix that claims fewer or more rows, or columns, than it holds."""
    made = scipy.sparse.csr_matrix(rows * (rows > 0)).asformat(random.choice(_SPARSE))
    n, d = rows.shape
    made._shape = random.choice(((n // 2, d), (2 * n, d), (n, d // 2), (n, 2 * d), (n, 1 << 40)))
    return made


def hostile_weights(random: Random, n: int) -> Any:
    """Returns what may stand in place of the weights of n samples, now and then proper ones.

    Args:
        random: Source of all choices.
        n: Weights that there should be.
    """
    return random.choice((
        np.ones(n), [2.0] * n, 3, np.full(n, random.choice(_EXTREMES)), -np.ones(n), np.ones(n + 1), np.ones((n, 2)),
        np.ma.masked_array(np.ones(n), mask=[random.random() < 0.5 for _ in range(n)]), [np.ma.masked] * n,
        scipy.sparse.csr_matrix(np.ones((1, n))), torch.ones(n), pd.Series(np.ones(n)), ["a"] * n, odd(random),
        raising(random)(), [raising(random, float)(1)] * n,
    ))  # fmt: skip


def hostile_option(random: Random) -> Any:
    """Returns what may be given for a time that is asked about, or for a coverage, now and then a proper one.

    Args:
        random: Source of all choices.
    """
    return random.choice((
        "now", "next", "any", "NEXT", b"now", np.str_("any"), ["now"], 0.9, 1.0, 1e-300, True, np.float64(0.5),
        np.array([0.5, 0.9]), torch.tensor(0.5), 10**400, float("inf"), raising(random)(), raising(random, str)("now"),
        raising(random, float)(0.5), odd(random),
    ))  # fmt: skip


def _some(value: Any) -> Callable[[Random, np.ndarray], np.ndarray]:
    """Returns a function that puts a value at some places."""

    def put(random: Random, rows: np.ndarray) -> np.ndarray:
        rows = rows.astype(np.float64)
        for _ in range(random.choice((1, 1, 3, rows.size))):
            if rows.size:
                rows.flat[random.randrange(rows.size)] = value
        return rows

    return put


def _column(random: Random, rows: np.ndarray) -> np.ndarray:
    rows[:, random.randrange(rows.shape[1])] = random.choice(_EXTREMES)
    return rows


def _duplicates(random: Random, rows: np.ndarray) -> np.ndarray:
    return rows[:, [random.randrange(rows.shape[1]) for _ in range(rows.shape[1])]]


def _frame(random: Random, rows: np.ndarray) -> Any:
    frame = pd.DataFrame(rows, columns=random.choice((list("abcdefgh")[: rows.shape[1]], ["x"] * rows.shape[1])))
    return random.choice((frame, frame.astype(object), frame.assign(z="text"), frame.astype("Float64")))


_ROWS: tuple[Callable[[Random, np.ndarray], Any], ...] = (
    lambda r, x: x,
    lambda r, x: x.astype(np.float32),
    *(_some(value) for value in _EXTREMES),
    _column,
    _duplicates,
    _frame,
    lambda r, x: x * r.choice(_EXTREMES),
    lambda r, x: np.full_like(x, r.choice(_EXTREMES)),
    lambda r, x: np.repeat(x[:1], len(x), axis=0),
    lambda r, x: x[:, : r.randrange(x.shape[1])],
    lambda r, x: np.hstack([x, x]),
    lambda r, x: x[:0],
    lambda r, x: x.ravel(),
    lambda r, x: x[None],
    lambda r, x: x.reshape(len(x), -1, 1),
    lambda r, x: x.T,
    lambda r, x: x.tolist(),
    lambda r, x: [row[: r.randrange(len(row) + 1)] for row in x.tolist()],
    lambda r, x: x.astype(str),
    lambda r, x: x.astype(object),
    lambda r, x: np.array([[r.choice((None, "a", 1.0, [1])) for _ in row] for row in x], dtype=object),
    lambda r, x: x.astype(complex) + r.choice((0, 1j)),
    lambda r, x: x > 0,
    lambda r, x: (x * 1e17).astype(np.int64),
    lambda r, x: x.astype("datetime64[s]"),
    lambda r, x: scipy.sparse.csr_matrix(x),
    lambda r, x: scipy.sparse.coo_array(x),
    _unsound_sparse,
    _unsound_sparse,
    _of_another_shape,
    lambda r, x: scipy.sparse.random(*x.shape, density=0.5, random_state=0, format=r.choice(_SPARSE)),
    lambda r, x: [np.ma.masked_array(row, mask=row < r.choice((-100, 0))) for row in x],
    lambda r, x: [[np.ma.masked if r.random() < 0.1 else value for value in row] for row in x.tolist()],
    lambda r, x: np.ma.masked_array(x, mask=x < r.choice((-100, 0))),
    lambda r, x: np.asmatrix(x),
    lambda r, x: np.zeros(len(x), dtype=[("a", float), ("b", int)]),
    lambda r, x: torch.tensor(x),
    lambda r, x: torch.tensor(x, requires_grad=True),
    lambda r, x: torch.tensor(x).bfloat16(),
    lambda r, x: torch.tensor(x).to_sparse(),
    lambda r, x: torch.tensor(x, device="meta"),
    lambda r, x: torch.tensor(x).to(torch.complex64),
    lambda r, x: x[::-1, ::-1],
    lambda r, x: np.broadcast_to(x[:1], x.shape),
    lambda r, x: memoryview(np.ascontiguousarray(x)),  # type: ignore[arg-type]
    lambda r, x: (row for row in x),
    lambda r, x: pd.Series(list(x)),
    _masked_sparse,
    lambda r, x: raising(r)(),
    lambda r, x: raising(r, list)(x.tolist()),
    lambda r, x: [raising(r, list)(row) for row in x.tolist()],
    lambda r, x: [[raising(r, float)(value) for value in row] for row in x.tolist()],
    lambda r, x: x.view(raising(r, np.ndarray)),
    lambda r, x: odd(r),
)


def _tuple_of_depth(depth: int) -> Any:
    label: Any = 1
    for _ in range(depth):
        label = (label,)
    return label


_LABELS: tuple[Any, ...] = (
    0, 1, -5, True, None, 2**63, -(2**64), 2**200, 10**5000, 0.0, 1.5, 1e308, float("nan"), float("inf"), "", "a",
    "a\0", "\ud800", "a" * 5000, "=1+1", b"bytes", ("a", 1), ("a", ("b", None)), ((1, [2]), 3), frozenset({1}), [1], {},
    {"$tuple": [1]},
    ("$tuple",), decimal.Decimal(1), datetime.date(2020, 1, 1), _Colour.RED, np.float32(2), np.int8(3), np.str_("s"),
    np.datetime64("2020"), np.bool_(True), np.array(1), np.array([1, 2]), torch.tensor(1), pd.NA, pd.NaT, 1j, _Evil(),
    object(),
    _tuple_of_depth(40), _tuple_of_depth(100_000), Path("a"), range(3), len,
)  # fmt: skip


_DERIVED = ((tuple, (1, "a")), (str, "a"), (int, 3), (float, 2.5), (float, float("nan")))


def _as_objects(values: list[Any]) -> np.ndarray:
    array = np.empty(len(values), dtype=object)
    for i, value in enumerate(values):
        array[i] = value
    return array


_TARGETS: tuple[Callable[[Random, int], Any], ...] = (
    lambda r, n: [r.randrange(3) for _ in range(n)],
    lambda r, n: np.array([r.randrange(3) for _ in range(n)]),
    lambda r, n: np.array([r.random() for _ in range(n)]),
    lambda r, n: list(range(n)),
    lambda r, n: [f"label {i}" for i in range(n)],
    lambda r, n: [r.choice(_LABELS) for _ in range(n)],
    lambda r, n: [r.choice(_LABELS)] * n,
    lambda r, n: [r.choice(_LABELS)] * n,
    lambda r, n: tuple(r.choice(_LABELS[:20]) for _ in range(n)),
    lambda r, n: _as_objects([r.choice(_LABELS) for _ in range(n)]),
    lambda r, n: [0] * r.choice((0, max(0, n - 1), n + 1)),
    lambda r, n: np.zeros((n, r.choice((0, 1, 2, 3)))),
    lambda r, n: np.full(n, r.choice(_EXTREMES)),
    lambda r, n: np.array([r.choice(_EXTREMES) for _ in range(n)]),
    lambda r, n: np.zeros(n, dtype=complex),
    lambda r, n: raising(r)(),
    lambda r, n: raising(r, list)([0] * n),
    lambda r, n: [raising(r, kind)(value) for kind, value in r.choices(_DERIVED, k=n)],
    lambda r, n: np.zeros((n, 1, 1)),
    lambda r, n: np.array(["a", "b"] * n)[:n],
    lambda r, n: np.array(["2020"] * n, dtype="datetime64[Y]"),
    lambda r, n: np.ma.masked_array(np.zeros(n), mask=[r.random() < 0.5 for _ in range(n)]),
    lambda r, n: scipy.sparse.csr_matrix(np.eye(max(n, 1))),
    lambda r, n: pd.Series(["a", None] * n)[:n],
    lambda r, n: pd.Categorical(["a", "b"] * n)[:n],
    lambda r, n: pd.array([1, pd.NA] * n)[:n],
    lambda r, n: torch.zeros(n),
    lambda r, n: torch.zeros(n, device="meta"),
    lambda r, n: torch.arange(n),
    lambda r, n: iter(range(n)),
    lambda r, n: odd(r),
)


def odd(random: Random) -> Any:
    """Returns something that hardly any argument should be."""
    return random.choice((
        None, 0, -1, 1, 2.5, 10**30, float("nan"), "text", "", b"", (), [], {}, {"a": 1}, set(), object(), len, int,
        _Evil(), _Liar(), np.zeros(()), np.zeros((2, 0)), np.array(None), [[[1.0]]], [[], []], [_Evil()],
        True, 1j, slice(3),
    ))  # fmt: skip


PARAMETERS: dict[str, tuple[Any, ...]] = {
    "memory_size": (0, -1, 1, 2, 10**9, 10**30, "5", None, float("nan"), True, 2.0, 2.5, np.int64(7), [5]),
    "log_alpha": ("auto", "other", float("nan"), float("inf"), -400, 1e7, None, "3", 10**400, [1], np.float32(2)),
    "batch_size": (0, -1, 1, 3, 10**12, 10**30, "5", None, 2.0, True, np.int32(4)),
    "input_shape": (None, (), (4,), (2, 2), (1, 2, 2), [4], (2, -2), (4, 1), (4.0,), "4", 4, (10**30,), (True, 4)),
    "density": (None, object, len, 3, "vae"),
    "predictor": (None, object, len, 3, "net"),
    "features": (None, 3, "fourier", torch.nn.Identity(), torch.nn.Linear(3, 2), object()),
    "settings": (
        None, {}, [], "a", {"a": 1}, {"n_fourier": 10**30}, {"features": "identity"}, {"features": 3},
        {"experts": None},
        {1: 2},
        {"experts": {"kind": "none"}}, {"experts": {"kind": "gaussian", "features": {}}}, {"memory_size": 5},
        {"target": "none"},
        {"novelty": {"kind": "fixed", "log_alpha": 1}}, {"shrinkage": -1}, {"shrinkage": float("nan")}, {"window": 0},
        {"novelty_rate": 2}, {"features": "fourier", "n_fourier": 0}, {"anytime": "perhaps"}, {"experts": {}}, {"": {}},
    ),
    "n_exemplars": (0, 1, 5, -1, "a", None, 2.5, True, 10**30, np.int64(3)),
    "class_weight": (
        None, "balanced", "other", {}, {0: 2.0, 1: 1}, {"a": 3}, {True: 0.5, None: 2}, {("a", 1): 2.0}, {0: 0}, {0: -1},
        {0: float("nan")}, {0: 10**400}, {0: "a"}, {0: None}, {datetime.date(2020, 1, 1): 1}, [1, 2], 3,
    ),
    "device": ("cpu", "auto", "gpu", "cuda:99", None, 3, "", "meta"),
    "random_state": (None, 0, -1, 2**32, 2**70, "a", 1.5, np.random.RandomState(0), np.random.default_rng(0), object()),
}  # fmt: skip
"""Values that parameters may be set to, proper ones among them."""
