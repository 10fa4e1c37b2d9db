"""Arrays as they come from outside: the one place where objects of others are read.

Tensors of any kind, sparse matrices whose parts do not fit each other, masked values, values that are too large, and
things that only look like arrays and raise what they like. Plain arrays of numbers in which there is nothing to find
fault with pass by (:func:`plain_rows`): scikit-learn's validation takes as long as learning a row.
"""

from __future__ import annotations

from collections.abc import Callable
from numbers import Integral, Real
from reprlib import repr as shown
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from scipy import sparse
from torch import Tensor

from cndpm.model.extremes import LARGEST

_TABLES = ("pandas", "polars", "pyarrow")
_PLAIN = (str, bytes, bool, int, float, complex, dict, set, frozenset, np.generic, type(None))

CHANNELS = (1, 3, 4)
"""Of images: grey, colours, colours and opacity."""

_FEW = 20
"""Labels up to which scikit-learn draws no conclusions from their number; it warns where half of more are different."""


def as_array(values: Any, name: str) -> Any:
    """Returns what can be read without surprises: plain arrays, lists and tuples, tables, sparse rows that are sound.

    A message calls it by `name`. ValueError: there are masked values, or parts of a sparse matrix do not fit each
    other.
    """
    if type(values) is np.ndarray and values.dtype.kind != "O":
        return values
    with readable(name):
        if isinstance(values, Tensor):
            return _from_torch(values, name)
        if sparse.issparse(values):
            return _sound(values, name)
        if isinstance(values, np.ndarray | list | tuple):
            return _unmasked(values, name)
        is_table = hasattr(values, "__dataframe__") or type(values).__module__.partition(".")[0] in _TABLES
        if is_table or isinstance(values, _PLAIN) or not (hasattr(values, "__array__") or hasattr(values, "__len__")):
            return values
        if not hasattr(values, "__array__"):
            return _unmasked(list(values), name)
        return np.asarray(_unmasked(np.asanyarray(values), name))  # `asarray` alone would drop a mask


def _from_torch(values: Tensor, name: str) -> NDArray[Any]:
    values = values.detach()
    if values.is_meta:
        raise ValueError(f"{name} is a tensor on the device 'meta', which has no values")
    if values.is_complex():
        raise ValueError(f"Complex data not supported: {name} is a tensor of {values.dtype}")
    if values.layout is torch.sparse_coo:
        parts = values._indices(), values._values()  # as they are: `coalesce` would follow indices that do not fit
        values = torch.sparse_coo_tensor(*parts, values.shape, check_invariants=True).to_dense()
    elif values.layout is not torch.strided:
        if values.layout in (torch.sparse_csr, torch.sparse_bsr):
            places = values.crow_indices(), values.col_indices()
        else:
            places = values.ccol_indices(), values.row_indices()
        options: Any = {"size": values.shape, "layout": values.layout, "check_invariants": True}
        values = torch.sparse_compressed_tensor(*places, values.values(), **options).to_dense()
    return (values.float() if values.is_floating_point() and values.element_size() < 4 else values).cpu().numpy()


def _unmasked(values: Any, name: str) -> Any:
    """Returns arrays, and lists of rows, once nothing in them is masked."""
    if n_masked := _n_masked(values):
        raise ValueError(f"{name} has {n_masked} masked values, which cannot be learned. Impute or drop them.")
    return values.data if isinstance(values, np.ma.MaskedArray) else values


def _n_masked(values: Any, depth: int = 2) -> int:
    """Counts masked values in lists of lists; only kinds of values that are there are looked at."""
    if isinstance(values, np.ma.MaskedArray):
        return int(np.ma.getmaskarray(values).sum())
    inner = isinstance(values, list | tuple) or (isinstance(values, np.ndarray) and values.dtype.kind == "O")
    if depth and inner and any(issubclass(kind, list | tuple | np.ndarray) for kind in set(map(type, values))):
        return sum(_n_masked(value, depth - 1) for value in values)
    return 0


def _sound(X: Any, name: str) -> Any:
    """Returns a sparse matrix as CSR once its parts fit each other: compiled code follows them wherever they point."""
    if len(X.shape) != 2:
        raise ValueError(f"{name} is a sparse array of shape {X.shape}; rows (n, n_features) were expected")
    n_rows, n_columns = X.shape
    _unmasked(X.data if hasattr(X, "data") else list(X.values()), name)
    if X.format in ("csr", "csc"):
        sides = (n_rows, n_columns) if X.format == "csr" else (n_columns, n_rows)
        if np.ndim(X.data) != 1 or not _fit(X.data, X.indices, X.indptr, *sides):
            raise _unsound(name)
        return X if X.format == "csr" else X.tocsr()
    if X.format == "bsr":
        height, width = np.shape(X.data)[1:]
        if not _fit(X.data, X.indices, X.indptr, n_rows // height, n_columns // width):
            raise _unsound(name)
    if X.format == "lil" and (len(X.rows) != n_rows or list(map(len, X.rows)) != list(map(len, X.data))):
        raise _unsound(name)
    if X.format == "dia" and (np.ndim(X.data) != 2 or np.shape(X.offsets) != np.shape(X.data)[:1]):
        raise _unsound(name)
    coo = X.tocoo()
    if len(coo.row) != len(coo.data) or not (_within(coo.row, n_rows) and _within(coo.col, n_columns)):
        raise _unsound(name)
    return coo.tocsr()


def _fit(data: Any, indices: Any, indptr: Any, n_outer: int, n_inner: int) -> bool:
    """Tells whether the arrays of a compressed matrix point into each other."""
    are_as_long = np.shape(indptr) == (n_outer + 1,) and np.ndim(indices) == 1 and len(data) == len(indices)
    starts_well = are_as_long and indptr.dtype.kind == "i" and indptr[0] == 0 and (indptr[1:] >= indptr[:-1]).all()
    return bool(starts_well) and indptr[-1] <= len(indices) and _within(indices, n_inner)


def _within(places: Any, n: int) -> bool:
    return places.dtype.kind == "i" and (not len(places) or bool(places.min() >= 0 and places.max() < n))


def _unsound(name: str) -> ValueError:
    return ValueError(
        f"{name} is a sparse matrix whose indices do not fit its shape or each other. Make it anew of its values: "
        "scipy.sparse.csr_matrix((values, (rows, columns)), shape=shape)."
    )


class readable:
    """Turns whatever is raised by things that only look like arrays into a TypeError."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __enter__(self) -> None: ...

    def __exit__(self, _kind: Any, error: BaseException | None, _trace: Any) -> None:
        if isinstance(error, Exception) and not isinstance(error, ValueError | TypeError | Warning | MemoryError):
            said = f"{self.name} cannot be read as an array of numbers: {type(error).__name__}: {error}"
            raise TypeError(said) from error


def scored_by(measure: Callable[..., Any]) -> Callable[..., float]:
    """Returns a method `score` by a measure of scikit-learn; targets and weights are read as everywhere else."""

    def score(self: Any, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Returns the accuracy of labels, or R2 of numbers, for rows, targets and weights as :meth:`fit` takes them."""
        said = self.predict(X)
        with readable("y or sample_weight"):
            return float(measure(as_array(y, "y"), said, sample_weight=as_array(sample_weight, "sample_weight")))

    return score


def admit_magnitude(values: NDArray[Any], name: str) -> None:
    """Refuses (ValueError) finite numbers that are too large to be squared and added; the message says where."""
    if values.size and max(float(values.max()), -float(values.min())) > LARGEST:
        place = np.unravel_index(np.abs(values).argmax(), values.shape)
        where = ", ".join(str(int(i)) for i in place)
        raise ValueError(
            f"{name}[{where}] is {float(values[place]):g}; values up to {LARGEST:g} can be learned. Scale that column, "
            "or leave out the row if the value stands for something that is missing."
        )


def whole_number(value: Any, name: str, *, least: int, most: int | None = None) -> int:
    """Returns an argument that is a whole number from `least` on, to `most` where that is given."""
    if isinstance(value, bool) or not isinstance(value, Integral):
        raise TypeError(f"{name} must be a whole number; got {shown(value)}")
    if int(value) < least or (most is not None and int(value) > most):
        allowed = f"be at least {least}" if most is None else f"lie between {least} and {most}"
        raise ValueError(f"{name} must {allowed}; got {value}")
    return int(value)


def admit_number(value: Any, name: str) -> float:
    """Returns an argument that is a real number, not NaN."""
    if isinstance(value, bool) or not isinstance(value, Real):
        raise TypeError(f"{name} must be a number; got {shown(value)}")
    if np.isnan(float(value)):
        raise ValueError(f"{name} must be a number; got nan")
    return float(value)


def flat_rows(X: Any, input_shape: tuple[int, ...] | None) -> Any:
    """Turns tensors into arrays and images into rows, grey ones also without their channel; tables (pandas) stay."""
    X = as_array(X, "X")
    if isinstance(X, list | tuple) and len(X) and np.ndim(X[0]) > 1:
        X = np.asarray(X)
    if isinstance(X, np.ndarray) and X.ndim > 2:
        if input_shape is None or tuple(input_shape) not in (X.shape[1:], (1, *X.shape[1:])):
            raise ValueError(_unshaped(X.shape, input_shape))
        return X.reshape(len(X), -1)
    return X


def _unshaped(shape: tuple[int, ...], input_shape: tuple[int, ...] | None) -> str:
    """Words the error of samples that come in a shape that was not announced."""
    if len(shape) == 4 and shape[3] in CHANNELS and shape[1] not in CHANNELS:
        turned = (shape[3], *shape[1:3])
        return f"X has shape {shape}: channels last. Give X.transpose(0, 3, 1, 2), and input_shape={turned}."
    if shape == input_shape:
        return f"X has shape {shape}, as one sample; give X[None]"
    announced = (1, *shape[1:]) if len(shape) == 3 else shape[1:]
    rows = "rows (n, n_features)" if input_shape is None else f"rows (n, n_features) or (n, *{input_shape})"
    return (
        f"X has shape {shape}, expected {rows}; input_shape is {input_shape}. "
        f"Set input_shape={announced} for such samples, or flatten them to rows."
    )


def plain_rows(X: Any, n_features: int, input_shape: tuple[int, ...] | None = None) -> NDArray[np.float32] | None:
    """Returns X as float32, (n, n_features), if it is a plain array of numbers that can be learned; None otherwise."""
    if type(X) is not np.ndarray or X.dtype.kind not in "fiu" or not len(X):
        return None
    if input_shape is not None and X.shape[1:] == tuple(input_shape):
        X = X.reshape(len(X), -1)
    if X.ndim != 2 or X.shape[1] != n_features:
        return None
    with np.errstate(over="ignore"):
        rows = X.astype(np.float32)
    # Neither a NaN nor an infinite number passes.
    return rows if np.abs(rows).max(initial=0.0) <= LARGEST else None


def plain_labels(y: Any) -> NDArray[Any] | None:
    """Returns y if it is a plain array of whole numbers, truths or words, (n,), most of them repeated; else None."""
    if type(y) is not np.ndarray or y.ndim != 1 or y.dtype.kind not in "iubU" or not len(y):
        return None
    return y if len(y) <= _FEW or len(set(y.tolist())) <= len(y) / 2 else None
