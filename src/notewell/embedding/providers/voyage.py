"""Voyage's embeddings, which tell queries from documents by their input type."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from notewell.embedding.providers.api import Api, Model, Question, numbered_rows
from notewell.embedding.providers.opening import opened

if TYPE_CHECKING:
    from notewell.protocols import Embedder
    from notewell.settings import Settings


def _ask(question: Question) -> tuple[str, dict[str, Any]]:
    body: dict[str, Any] = {
        "model": question.model,
        "input": list(question.texts),
        "input_type": question.side,
        "truncation": False,  # a text that is too long is split here, and said to be, rather than cut off there
        "output_dtype": "float",
        "encoding_format": "base64",
    }
    if question.dimensions:
        body["output_dimension"] = question.dimensions
    return "/embeddings", body


_ALIKE = (
    "voyage-4-large",
    "voyage-4",
    "voyage-4-lite",
    "voyage-3-large",
    "voyage-3.5",
    "voyage-3.5-lite",
    "voyage-code-3",
)

API = Api(
    name="voyage",
    title="Voyage",
    base_url="https://api.voyageai.com/v1",
    default_model="voyage-4-large",
    models={name: Model(1024, 32_000) for name in _ALIKE},
    key_variables=("VOYAGE_API_KEY",),
    inputs_a_request=1000,
    tokens_a_request=120_000,
    ask=_ask,
    rows=numbered_rows,
)


def open_voyage(settings: Settings) -> Embedder:
    """Return Voyage's embedder; the entry point `voyage` of the group `notewell.embedders`."""
    return opened(API, settings)
