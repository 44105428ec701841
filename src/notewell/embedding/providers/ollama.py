"""Ollama, a server for open models, as a rule on this machine and without a key."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from notewell.embedding.providers.api import Api, Question, plain_rows
from notewell.embedding.providers.open_models import OPEN_MODELS, open_model_name
from notewell.embedding.providers.opening import opened

if TYPE_CHECKING:
    from notewell.protocols import Embedder
    from notewell.settings import Settings


def _ask(question: Question) -> tuple[str, dict[str, Any]]:
    # Without `truncate: false` a text that is too long would be cut off silently.
    body: dict[str, Any] = {"model": question.model, "input": list(question.texts), "truncate": False}
    if question.dimensions:
        body["dimensions"] = question.dimensions
    return "/api/embed", body


def _rows(answer: Any) -> list[Any]:
    return plain_rows(answer.get("embeddings") if isinstance(answer, dict) else None)


API = Api(
    name="ollama",
    title="Ollama",
    base_url="http://127.0.0.1:11434",
    default_model="nomic-embed-text",
    models=OPEN_MODELS,
    key_variables=(),
    inputs_a_request=512,  # it sets no limit of its own
    tokens_a_request=100_000,
    ask=_ask,
    rows=_rows,
    needs_key=False,
    is_local=True,
    unreachable_hint="start it with `ollama serve`, or check remote.base_url",
    missing_hint="run `ollama pull {model}`, or check model and remote.base_url",
    model_of=open_model_name,
)


def open_ollama(settings: Settings) -> Embedder:
    """Return Ollama's embedder; the entry point `ollama` of the group `notewell.embedders`."""
    return opened(API, settings)
