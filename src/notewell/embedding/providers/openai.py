"""OpenAI's embeddings, and those of every server that speaks its language: LM Studio, vLLM, llama-server."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from notewell.embedding.providers.api import Api, Model, Question, numbered_rows
from notewell.embedding.providers.open_models import OPEN_MODELS, open_model_name
from notewell.embedding.providers.opening import opened

if TYPE_CHECKING:
    from notewell.protocols import Embedder
    from notewell.settings import Settings


def _ask(question: Question) -> tuple[str, dict[str, Any]]:
    # base64 is a quarter of the size of written numbers; servers that do not know it send numbers.
    body: dict[str, Any] = {"model": question.model, "input": list(question.texts), "encoding_format": "base64"}
    if question.dimensions:
        body["dimensions"] = question.dimensions
    return "/embeddings", body


API = Api(
    name="openai",
    title="OpenAI",
    base_url="https://api.openai.com/v1",
    default_model="text-embedding-3-small",
    models={
        "text-embedding-3-small": Model(1536, 8191),
        "text-embedding-3-large": Model(3072, 8191),
        "text-embedding-ada-002": Model(1536, 8191),
        **OPEN_MODELS,
    },
    key_variables=("OPENAI_API_KEY",),
    inputs_a_request=2048,
    tokens_a_request=300_000,
    ask=_ask,
    rows=numbered_rows,
    model_of=open_model_name,
)


def open_openai(settings: Settings) -> Embedder:
    """Return OpenAI's embedder; the entry point `openai` of the group `notewell.embedders`."""
    return opened(API, settings)
