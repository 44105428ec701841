"""Validates and combines vectors, and measures the cosines of a model."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from notewell.errors import BadVectorError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from notewell.protocols import Embedder, Matrix, Vector

    FloatArray = NDArray[np.float32]

_HINT = "the model or provider returned invalid vectors; nothing was stored for these texts"

# A model that cannot distinguish these texts (one without English) must not turn tiny differences into certainty.
MIN_COSINE_SPAN = 0.1

# Typical notes, each after a question that shares few words with it.
_QUESTIONS_AND_ANSWERS = """
What is the password of the guest wifi?
The guest network is called Lighthouse; visitors log in with the password on the fridge.
When does the dentist see me next?
Dentist appointment moved to Thursday 14 March at half past nine.
Which database did we choose for the billing service?
Decision: billing keeps its data in PostgreSQL 16, because finance needs SQL reports.
How do I roll back a failed deployment?
If a release misbehaves, run the rollback job with the previous tag and watch the error rate.
What does my sister like to eat?
Anna is vegetarian and loves mushroom risotto and lemon cake.
Why was the flight booked through Madrid?
The direct flight was sold out, so the trip to Lisbon goes via Madrid with a two hour stop.
"""


def unit_rows(raw: Any, *, count: int, dimensions: int) -> Matrix:
    """Return `raw` as `count` float32 rows of unit length; raise BadVectorError if that is impossible."""
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
        raise BadVectorError(f"vector {int(np.argmin(finite))} contains NaN or infinity", hint=_HINT)
    # Dividing by the largest value first keeps the squares of tiny and of huge numbers within range.
    largest = np.abs(rows).max(axis=1, keepdims=True, initial=0.0)
    if not largest.all():
        raise BadVectorError(f"vector {int(np.argmin(largest[:, 0]))} is zero and has no direction", hint=_HINT)
    rows = rows / largest
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    checked: Matrix = rows.astype(np.float32)
    return checked


def valid_rows(raw: Sequence[Any], *, dimensions: int) -> tuple[Matrix, dict[int, str]]:
    """Return unit rows and, by row, what is wrong with the invalid ones, which are zero.

    Where `unit_rows` rejects everything, this keeps the valid part of a response that was paid for.
    """
    try:
        return unit_rows(raw, count=len(raw), dimensions=dimensions), {}
    except BadVectorError:
        checked = np.zeros((len(raw), dimensions), dtype=np.float32)
    wrong: dict[int, str] = {}
    for at, row in enumerate(raw):
        try:
            checked[at] = unit_rows([row], count=1, dimensions=dimensions)[0]
        except BadVectorError as error:
            wrong[at] = error.message.replace("vector 0", "its vector").replace("the vectors are", "its vector is")
    return checked, wrong


def mean_direction(vectors: Sequence[Vector], weights: Sequence[float]) -> Vector:
    """Return the weighted mean of unit vectors, as a unit vector."""
    total = np.asarray(weights, dtype=np.float64) @ np.stack(vectors).astype(np.float64)
    length = float(np.linalg.norm(total))
    # Opposite vectors have no mean direction; then the first one will do.
    mean: Vector = (total / length).astype(np.float32) if length > 1e-9 else vectors[0]
    return mean


def embed_windows(
    windows_of_texts: Sequence[Sequence[list[int]]], embed: Callable[[Sequence[list[int]]], Sequence[FloatArray]]
) -> FloatArray:
    """Embed each text's windows of token ids; return one row per text, their mean direction weighted by length.

    The rows are not of unit length, and zero for a text whose windows are zero.
    """
    flat = [window for windows in windows_of_texts for window in windows]
    stacked = np.stack(embed(flat))
    lengths = np.linalg.norm(stacked, axis=1, keepdims=True)
    directions = np.divide(stacked, lengths, out=np.zeros_like(stacked), where=lengths > 0)
    weighted = directions * np.asarray([len(window) for window in flat], dtype=np.float32)[:, np.newaxis]
    first_windows = np.cumsum([0, *(len(windows) for windows in windows_of_texts[:-1])])
    rows: FloatArray = np.add.reduceat(weighted, first_windows, axis=0)
    return rows


def measure_cosine_range(embedder: Embedder) -> tuple[float, float]:
    """Return the mean cosine of questions with answers to other questions, and with their own."""
    lines = _QUESTIONS_AND_ANSWERS.strip().splitlines()
    questions = np.stack([embedder.embed_query(question) for question in lines[::2]])
    cosines = questions @ embedder.embed_documents(lines[1::2]).T
    own = float(np.trace(cosines)) / len(cosines)
    others = (float(cosines.sum()) - float(np.trace(cosines))) / (cosines.size - len(cosines))
    floor = min(others, 1 - MIN_COSINE_SPAN)
    return floor, max(own, floor + MIN_COSINE_SPAN)
