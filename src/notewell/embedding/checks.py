"""Checks vectors of any origin: numbers come in, float32 rows of unit length go out, or an error that names the row."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from notewell.errors import BadVectorError

if TYPE_CHECKING:
    from notewell.protocols import Matrix

_HINT = "the model or provider answered nonsense; nothing was stored for these texts"


def unit_rows(raw: Any, *, count: int, dimensions: int) -> Matrix:
    """Return `raw` as `count` float32 rows of unit length; raise BadVectorError for anything that cannot be one."""
    try:
        rows = np.asarray(raw, dtype=np.float64)  # squares of large float32 values overflow in float32
    except (TypeError, ValueError) as error:
        raise BadVectorError("the vectors are not rows of numbers, all of one length", hint=_HINT) from error
    if count == 0 and rows.size == 0:
        return np.empty((0, dimensions), dtype=np.float32)
    if rows.ndim != 2 or rows.shape[0] != count:
        raise BadVectorError(f"expected {count} vectors, got an array of shape {rows.shape}", hint=_HINT)
    if rows.shape[1] != dimensions:
        raise BadVectorError(f"vector 0 has {rows.shape[1]} dimensions, expected {dimensions}", hint=_HINT)
    finite = np.isfinite(rows).all(axis=1)
    if not finite.all():
        raise BadVectorError(f"vector {int(np.argmin(finite))} holds NaN or infinity", hint=_HINT)
    # Dividing by the largest value first keeps the squares of tiny and of huge numbers within range.
    largest = np.abs(rows).max(axis=1, keepdims=True, initial=0.0)
    if not largest.all():
        raise BadVectorError(f"vector {int(np.argmin(largest[:, 0]))} is zero and has no direction", hint=_HINT)
    rows = rows / largest
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    checked: Matrix = rows.astype(np.float32)
    return checked


def sound_rows(raw: Sequence[Any], *, dimensions: int) -> tuple[Matrix, dict[int, str]]:
    """Return unit rows and, by row, what is wrong with those that are none; the rows of those are zero.

    Where `unit_rows` refuses the whole, this keeps what is good of an answer that was paid for.
    """
    try:
        checked = unit_rows(raw, count=len(raw), dimensions=dimensions)
    except BadVectorError:
        checked = np.zeros((len(raw), dimensions), dtype=np.float32)
    else:
        return checked, {}
    wrong: dict[int, str] = {}
    for at, row in enumerate(raw):
        try:
            checked[at] = unit_rows([row], count=1, dimensions=dimensions)[0]
        except BadVectorError as error:
            wrong[at] = error.message.replace("vector 0", "its vector").replace("the vectors are", "its vector is")
    return checked, wrong
