"""Mistral's embeddings, which know no sides."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from notewell.embedding.providers.api import Api, Model, Question, numbered_rows
from notewell.embedding.providers.opening import opened

if TYPE_CHECKING:
    from notewell.protocols import Embedder
    from notewell.settings import Settings


def _ask(question: Question) -> tuple[str, dict[str, Any]]:
    body: dict[str, Any] = {"model": question.model, "input": list(question.texts)}
    if question.dimensions:
        body["output_dimension"] = question.dimensions
    return "/embeddings", body


API = Api(
    name="mistral",
    title="Mistral",
    base_url="https://api.mistral.ai/v1",
    default_model="mistral-embed",
    models={"mistral-embed": Model(1024, 8192), "codestral-embed": Model(1536, 8192)},
    key_variables=("MISTRAL_API_KEY",),
    inputs_a_request=512,
    tokens_a_request=16_384,
    ask=_ask,
    rows=numbered_rows,
)


def open_mistral(settings: Settings) -> Embedder:
    """Return Mistral's embedder; the entry point `mistral` of the group `notewell.embedders`."""
    return opened(API, settings)
