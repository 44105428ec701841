"""What a provider's embedding API looks like, as data: its address, its limits, and how requests and answers read."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from notewell.errors import BadVectorError

Side = Literal["query", "document"]


@dataclass(frozen=True, slots=True)
class Question:
    """One request for vectors, in nobody's words yet."""

    model: str
    texts: Sequence[str]
    side: Side
    dimensions: int = 0  # 0: as many as the model gives by itself


@dataclass(frozen=True, slots=True)
class Model:
    """What is known of a model without asking for it."""

    dimensions: int
    input_tokens: int  # the longest text it takes
    query_prefix: str = ""
    document_prefix: str = ""
    english_only: bool = False


@dataclass(frozen=True, slots=True)
class Api:
    """One provider. `ask` gives the path and the body of a request, `rows` the vectors in an answer, in order."""

    name: str
    title: str
    base_url: str
    default_model: str
    models: Mapping[str, Model]
    key_variables: tuple[str, ...]
    inputs_a_request: int
    tokens_a_request: int
    ask: Callable[[Question], tuple[str, dict[str, Any]]]
    rows: Callable[[Any], Sequence[Any]]
    key_header: str = "Authorization"
    key_form: str = "Bearer {key}"
    needs_key: bool = True
    is_local: bool = False  # runs on this machine as a rule: slow to start, and no key
    unreachable_hint: str = "check the network and remote.base_url"
    missing_hint: str = "check model and remote.base_url"
    model_of: Callable[[str], str] = field(default=str)  # the name under which `models` knows a model

    def model(self, name: str) -> Model | None:
        """Return what is known of this model; None for one that has to be asked."""
        return self.models.get(self.model_of(name))


class Nonsense(ValueError):  # noqa: N818 - turned into a failure of the call by who asked
    """An answer that is not what was asked for; the text says how."""


def numbered_rows(answer: Any) -> list[Any]:
    """Return the vectors of `{"data": [{"index": 0, "embedding": ...}]}` in the order of their numbers."""
    items = answer.get("data") if isinstance(answer, dict) else None
    if not isinstance(items, list) or not all(isinstance(item, dict) for item in items):
        raise Nonsense("no list of data")
    rows: dict[int, Any] = {}
    for place, item in enumerate(items):
        index = item.get("index", place)
        if isinstance(index, bool) or not isinstance(index, int) or not 0 <= index < len(items) or index in rows:
            raise Nonsense("an index that is out of range or there twice")
        rows[index] = decoded(item.get("embedding"))
    return [rows[index] for index in range(len(items))]


def plain_rows(items: Any) -> list[Any]:
    """Return the vectors of a list that has no numbers: its order is theirs."""
    if not isinstance(items, list):
        raise Nonsense("no list of embeddings")
    return items


def decoded(value: Any) -> Any:
    """Return one vector: numbers as they are, or little-endian float32 in base64."""
    if not isinstance(value, str):
        return value
    import numpy as np

    try:
        raw = base64.b64decode(value, validate=True)
    except (binascii.Error, ValueError):
        raise Nonsense("a vector that is no base64") from None
    if len(raw) % 4:
        raise BadVectorError("a vector is cut off in the middle of a number")
    return np.frombuffer(raw, dtype="<f4")
