"""Inputs of estimators: checked, read, completed, and given their shape."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from sklearn.utils import check_array, check_X_y
from sklearn.utils.validation import _check_feature_names, _check_n_features, check_is_fitted, validate_data
from torch import Tensor

from cndpm.estimators.arrays import admit_magnitude, flat_rows, plain_rows, readable
from cndpm.estimators.missing import Completions, complete_rows, fill_missing
from cndpm.estimators.readers import Reader, ReadRows, admit_numbers, make_reader, restore_reader, without_na
from cndpm.estimators.saved import Saved
from cndpm.model.extremes import LARGEST
from cndpm.state import State


class Reading(Saved):
    """Reads what may come as X: arrays, tensors, tables, sparse rows, rows with missing values; abstract."""

    input_shape: tuple[int, ...] | None
    n_exemplars: int
    n_projected: int

    def _input_shape(self) -> tuple[int, ...]:
        width = self.n_features_in_ if self._reader is None else self._reader.width
        shape = tuple(self.input_shape) if self.input_shape is not None else (width,)
        if math.prod(shape) != width:
            raise ValueError(f"input_shape={shape} has {math.prod(shape)} values a sample; X has {width} features")
        return shape

    @property
    def _reader(self) -> Reader | None:
        """Turns inputs that are no rows into such; None where the first ones were rows."""
        return vars(self).get("_reads")

    def _validate(self, X: ArrayLike | Tensor | ReadRows, *, reset: bool, fills: bool = True, **checks: Any) -> Any:
        """Returns X as float32 (n, n_features), checked against what was fitted; images may come in their own shape.

        Missing values are filled as for learning, or stay NaN unless `fills`.
        """
        if isinstance(X, ReadRows) and not checks:
            return self._completed(X.values) if fills else X.values
        if not (reset or checks or self._reader is not None or hasattr(self, "feature_names_in_")):
            plain = plain_rows(X, self.n_features_in_, self.input_shape)
            if plain is not None:
                return plain
        with readable("X or y" if checks else "X"):
            checked = self._read(flat_rows(X, self.input_shape), reset=reset, **checks)
        if fills:
            checked = (self._completed(checked[0]), *checked[1:]) if checks else self._completed(checked)
        self._admit_magnitude(checked[0] if isinstance(checked, tuple) else checked, is_first=reset)
        return checked

    def _read(self, X: Any, *, reset: bool, **checks: Any) -> Any:
        """Returns X as float32 (n, width), with NaN where values are missing, and y where it is among the checks."""
        X = without_na(X)
        rules = {"dtype": np.float32, "ensure_all_finite": "allow-nan", **checks}
        if isinstance(X, ReadRows):
            return check_X_y(X.values, estimator=self, **rules)
        if reset and (reader := make_reader(X, width=self.n_projected)) is not None:
            self._reads = reader
        if self._reader is None:
            if not reset:  # the first ones were looked at when the reader was chosen
                admit_numbers(X)
                if sparse.issparse(X):
                    _check_n_features(self, X, reset=False)  # before so many columns are written out
            return validate_data(self, X=X.toarray() if sparse.issparse(X) else X, reset=reset, **rules)
        if len(np.shape(X)) != 2:
            check_array(X, estimator=self, dtype=None)  # says how a row or a column becomes a table
        _check_feature_names(self, X, reset=reset)
        _check_n_features(self, X, reset=reset)
        rows = self._reader(X)
        return check_X_y(rows, estimator=self, **rules) if checks else check_array(rows, estimator=self, **rules)

    def _completed(self, rows: NDArray[np.float32]) -> NDArray[np.float32]:
        """Returns rows (n, width) that are to be learned, with missing values filled."""
        return fill_missing(rows, self._known_rows(rows[:0])) if np.isnan(rows).any() else rows

    def _asked(self, X: ArrayLike | Tensor) -> tuple[Tensor, Completions | None]:
        """Returns samples to answer for, and the ways in which those with missing values were completed.

        The samples are all completions, (N, *input_shape); None stands for one each, where nothing is missing.
        """
        check_is_fitted(self, "learner_")
        rows = self._validate(X, reset=False, fills=False)
        ways = complete_rows(rows, self._known_rows(rows[:0])) if np.isnan(rows).any() else None
        return self._tensor(rows if ways is None else ways.rows), ways

    def _known_rows(self, none: NDArray[np.float32]) -> NDArray[np.float32]:
        """Returns the rows that are kept, (m, width); `none` before anything was learned."""
        if self.n_exemplars == 0:
            raise ValueError(
                "X holds missing values (NaN), which are filled from kept rows; n_exemplars=0 keeps none. Take 1000, "
                "the default, or complete the rows before"
            )
        watch = self._learner.watch if "_learner" in vars(self) else None
        return none if watch is None else watch.rows

    def _export(self) -> State:
        reader = self._reader
        return {**super()._export(), "reader": None if reader is None else reader.state_dict()}

    def _import(self, state: State) -> None:
        if (reader := restore_reader(state["reader"])) is not None:
            self._reads = reader
        super()._import(state)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.allow_nan = True
        return tags

    def _admit_magnitude(self, rows: NDArray[Any], *, is_first: bool) -> None:
        """Refuses samples with values that are too large, unless they are rows: learners set single ones aside.

        Where nothing is left of the first rows there would be a model that has nothing to answer with.
        """
        are_images = self.input_shape is not None and len(self.input_shape) > 1
        if are_images or (is_first and bool((np.abs(rows) > LARGEST).any(axis=1).all())):
            admit_magnitude(rows, "X")

    def _tensor(self, X: NDArray[np.float32]) -> Tensor:
        # A copy in memory of torch, which is aligned: numpy's is so by luck, and bits must not depend on that.
        return torch.tensor(np.ascontiguousarray(X)).reshape(len(X), *self._input_shape())
