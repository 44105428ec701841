"""Google's Gemini embeddings, which tell queries from documents by their task type."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from notewell.embedding.providers.api import Api, Model, Nonsense, Question, plain_rows
from notewell.embedding.providers.opening import opened

if TYPE_CHECKING:
    from notewell.protocols import Embedder
    from notewell.settings import Settings

TASK_TYPES = {"query": "RETRIEVAL_QUERY", "document": "RETRIEVAL_DOCUMENT"}


def model_name(name: str) -> str:
    """Return the name without the folder that Google writes before it."""
    return name.removeprefix("models/")


def one_request(question: Question, text: str) -> dict[str, Any]:
    """Return what Google calls an EmbedContentRequest, for one text."""
    entry: dict[str, Any] = {
        "model": f"models/{model_name(question.model)}",
        "content": {"parts": [{"text": text}]},
        "taskType": TASK_TYPES[question.side],
    }
    if question.dimensions:
        entry["outputDimensionality"] = question.dimensions
    return entry


def _ask(question: Question) -> tuple[str, dict[str, Any]]:
    path = f"/models/{quote(model_name(question.model), safe='')}:batchEmbedContents"
    return path, {"requests": [one_request(question, text) for text in question.texts]}


def _rows(answer: Any) -> list[Any]:
    items = plain_rows(answer.get("embeddings") if isinstance(answer, dict) else None)
    if not all(isinstance(item, dict) for item in items):
        raise Nonsense("no list of embeddings")
    return [item.get("values") for item in items]


API = Api(
    name="gemini",
    title="Gemini",
    base_url="https://generativelanguage.googleapis.com/v1beta",
    default_model="gemini-embedding-001",
    models={"gemini-embedding-001": Model(3072, 2048), "text-embedding-004": Model(768, 2048)},
    key_variables=("GEMINI_API_KEY", "GOOGLE_API_KEY"),
    inputs_a_request=100,
    tokens_a_request=20_000,
    ask=_ask,
    rows=_rows,
    key_header="x-goog-api-key",
    key_form="{key}",
    model_of=model_name,
)


def open_gemini(settings: Settings) -> Embedder:
    """Return Gemini's embedder; the entry point `gemini` of the group `notewell.embedders`."""
    return opened(API, settings)
