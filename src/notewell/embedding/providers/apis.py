"""Describes the embedding APIs of the providers: addresses, limits, models, requests and responses."""

from __future__ import annotations

import base64
import binascii
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal
from urllib.parse import quote

from notewell.embedding.http_calls import FailureKind
from notewell.errors import BadVectorError

Side = Literal["query", "document"]


@dataclass(frozen=True, slots=True)
class Question:
    """A request for vectors, independent of the provider."""

    model: str
    texts: Sequence[str]
    side: Side
    dimensions: int = 0  # 0: the model's own


@dataclass(frozen=True, slots=True)
class Model:
    """What is known about a model without asking the provider."""

    dimensions: int
    input_tokens: int  # the longest text it accepts
    query_prefix: str = ""
    document_prefix: str = ""
    english_only: bool = False


Request = Callable[[Question], tuple[str, dict[str, Any]]]


@dataclass(frozen=True, slots=True)
class Alternative:
    """Another request, for servers that support only part of the API."""

    after: FailureKind  # the failure of the usual request that suggests it
    request: Request
    rows: Callable[[Any], Sequence[Any]]
    one_text: bool = False  # a request


@dataclass(frozen=True, slots=True)
class Api:
    """One provider. `request` gives path and body of a request, `rows` the vectors of a response, in order."""

    name: str
    title: str
    base_url: str
    default_model: str
    models: Mapping[str, Model]
    key_variables: tuple[str, ...]
    inputs_a_request: int
    tokens_a_request: int
    request: Request
    rows: Callable[[Any], Sequence[Any]]
    alternative: Alternative | None = None
    key_header: str = "Authorization"
    key_form: str = "Bearer {key}"
    needs_key: bool = True
    is_local: bool = False  # usually on this machine: slow to start, without a key
    unreachable_hint: str = "check the network and remote.base_url"
    missing_hint: str = "check model and remote.base_url"
    canonical_model: Callable[[str], str] = field(default=str)  # returns the name in `models`

    def model(self, name: str) -> Model | None:
        """Return the facts about a model; None if it is unknown."""
        return self.models.get(self.canonical_model(name))


class InvalidResponse(ValueError):  # noqa: N818 - becomes a RemoteFailure, or the reason why one text has no vector
    """An invalid response, and why."""


def _indexed_rows(answer: Any) -> list[Any]:
    """Return the vectors of `{"data": [{"index": 0, "embedding": ...}]}` in the order of their indexes."""
    items = answer.get("data") if isinstance(answer, dict) else None
    if not isinstance(items, list) or not all(isinstance(item, dict) for item in items):
        raise InvalidResponse("no list in data")
    rows: dict[int, Any] = {}
    for place, item in enumerate(items):
        index = item.get("index", place)
        if isinstance(index, bool) or not isinstance(index, int) or not 0 <= index < len(items) or index in rows:
            raise InvalidResponse("an index is out of range or repeated")
        rows[index] = _decoded(item.get("embedding"))
    return [rows[index] for index in range(len(items))]


def _ollama_rows(answer: Any) -> list[Any]:
    rows = answer.get("embeddings") if isinstance(answer, dict) else None
    if not isinstance(rows, list):
        raise InvalidResponse("no list of embeddings")
    return rows


def _gemini_rows(answer: Any) -> list[Any]:
    items = _ollama_rows(answer)
    if not all(isinstance(item, dict) for item in items):
        raise InvalidResponse("no list of embeddings")
    return [item.get("values") for item in items]


def _decoded(value: Any) -> Any:
    """Return one vector: numbers as they are, or little-endian float32 in base64."""
    if not isinstance(value, str):
        return value
    import numpy as np

    try:
        raw = base64.b64decode(value, validate=True)
    except (binascii.Error, ValueError):
        raise InvalidResponse("a vector is not valid base64") from None
    if len(raw) % 4:
        raise BadVectorError("a vector ends in the middle of a number")
    return np.frombuffer(raw, dtype="<f4")


def _request(path: str, *, dimensions: str, side: str = "", **fixed: Any) -> Request:
    """Return a function that builds requests with these fields, for APIs like OpenAI's."""

    def request(question: Question) -> tuple[str, dict[str, Any]]:
        body: dict[str, Any] = {"model": question.model, "input": list(question.texts), **fixed}
        if side:
            body[side] = question.side
        if question.dimensions:
            body[dimensions] = question.dimensions
        return path, body

    return request


def gemini_model(name: str) -> str:
    """Return the name without Google's prefix."""
    return name.removeprefix("models/")


def gemini_content(question: Question, text: str) -> dict[str, Any]:
    """Return an EmbedContentRequest for one text."""
    entry: dict[str, Any] = {
        "model": f"models/{gemini_model(question.model)}",
        "content": {"parts": [{"text": text}]},
        "taskType": f"RETRIEVAL_{question.side.upper()}",
    }
    if question.dimensions:
        entry["outputDimensionality"] = question.dimensions
    return entry


def _gemini_path(question: Question, method: str) -> str:
    return f"/models/{quote(gemini_model(question.model), safe='')}:{method}"


def _gemini_request(question: Question) -> tuple[str, dict[str, Any]]:
    requests = [gemini_content(question, text) for text in question.texts]
    return _gemini_path(question, "batchEmbedContents"), {"requests": requests}


def _gemini_single_request(question: Question) -> tuple[str, dict[str, Any]]:
    return _gemini_path(question, "embedContent"), gemini_content(question, question.texts[0])


def _gemini_single_row(answer: Any) -> list[Any]:
    return _gemini_rows({"embeddings": [answer.get("embedding") if isinstance(answer, dict) else None]})


# From the model cards: dimensions, context, prefixes of queries and documents, which Ollama, LM Studio, vLLM and
# llama-server leave to their clients.
OPEN_MODELS: dict[str, Model] = {
    "nomic-embed-text": Model(768, 2048, "search_query: ", "search_document: ", english_only=True),
    "mxbai-embed-large": Model(
        1024, 512, "Represent this sentence for searching relevant passages: ", english_only=True
    ),
    "all-minilm": Model(384, 256, english_only=True),
    "bge-m3": Model(1024, 8192),
    "snowflake-arctic-embed2": Model(1024, 8192, "query: "),
    "embeddinggemma": Model(768, 2048, "task: search result | query: ", "title: none | text: "),
}


def _open_model(name: str) -> str:
    """Return the name in `OPEN_MODELS` for a server's name of a model, or the name itself.

    `nomic-embed-text:v1.5`, `text-embedding-nomic-embed-text-v1.5@q8_0` and `nomic-ai/nomic-embed-text-v1.5` are one
    model; a name with another word, such as `nomic-embed-text-v2-moe`, is another model.
    """
    plain = name.lower().rpartition("/")[2].partition("@")[0].partition(":")[0].removeprefix("text-embedding-")
    for ending in ("-gguf", "-v1.5", "-v1", "-300m", "-l6-v2"):
        plain = plain.removesuffix(ending)
    return plain if plain in OPEN_MODELS else name


OPENAI = Api(  # and every server with the same API: LM Studio, vLLM, llama-server
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
    # base64 has a quarter of the size of decimal numbers. Servers without it send numbers, or refuse it.
    request=_request("/embeddings", dimensions="dimensions", encoding_format="base64"),
    rows=_indexed_rows,
    alternative=Alternative(
        "refused", _request("/embeddings", dimensions="dimensions", encoding_format="float"), _indexed_rows
    ),
    canonical_model=_open_model,
)

MISTRAL = Api(
    name="mistral",
    title="Mistral",
    base_url="https://api.mistral.ai/v1",
    default_model="mistral-embed",
    models={"mistral-embed": Model(1024, 8192), "codestral-embed": Model(1536, 8192)},
    key_variables=("MISTRAL_API_KEY",),
    inputs_a_request=512,
    tokens_a_request=16_384,
    request=_request("/embeddings", dimensions="output_dimension"),
    rows=_indexed_rows,
)

_VOYAGE_MODELS = "4-large 4 4-lite 3-large 3.5 3.5-lite code-3"

VOYAGE = Api(
    name="voyage",
    title="Voyage",
    base_url="https://api.voyageai.com/v1",
    default_model="voyage-4-large",
    models={f"voyage-{name}": Model(1024, 32_000) for name in _VOYAGE_MODELS.split()},
    key_variables=("VOYAGE_API_KEY",),
    inputs_a_request=1000,
    tokens_a_request=120_000,
    request=_request(
        "/embeddings",
        dimensions="output_dimension",
        side="input_type",
        truncation=False,  # a text that is too long is split here and reported, rather than cut off there
        output_dtype="float",
        encoding_format="base64",
    ),
    rows=_indexed_rows,
)

OLLAMA = Api(
    name="ollama",
    title="Ollama",
    base_url="http://127.0.0.1:11434",
    default_model="nomic-embed-text",
    models=OPEN_MODELS,
    key_variables=(),
    inputs_a_request=512,  # it sets no limit of its own
    tokens_a_request=100_000,
    request=_request("/api/embed", dimensions="dimensions", truncate=False),  # or long text would be cut off silently
    rows=_ollama_rows,
    needs_key=False,
    is_local=True,
    unreachable_hint="start it with `ollama serve`, or check remote.base_url",
    missing_hint="run `ollama pull {model}`, or check model and remote.base_url",
    canonical_model=_open_model,
)

GEMINI = Api(
    name="gemini",
    title="Gemini",
    base_url="https://generativelanguage.googleapis.com/v1beta",
    default_model="gemini-embedding-001",
    models={"gemini-embedding-001": Model(3072, 2048), "text-embedding-004": Model(768, 2048)},
    key_variables=("GEMINI_API_KEY", "GOOGLE_API_KEY"),
    inputs_a_request=100,
    tokens_a_request=20_000,
    request=_gemini_request,
    rows=_gemini_rows,
    alternative=Alternative("missing", _gemini_single_request, _gemini_single_row, one_text=True),
    key_header="x-goog-api-key",
    key_form="{key}",
    canonical_model=gemini_model,
)

IN_ORDER = (OPENAI, GEMINI, VOYAGE, MISTRAL)  # in which `auto` looks for a key after the local model


def providers_with_key() -> Iterator[tuple[str, str]]:
    """Yield the providers whose key is in the environment, each with the variable that holds it."""
    for api in IN_ORDER:
        for variable in api.key_variables:
            if os.environ.get(variable, "").strip():
                yield api.name, variable
                break
