"""A GGUF sentence model as an embedder: a file of llama.cpp's format comes in, an embedder goes out.

The head of the file says how the model pools and how long its texts may be; nothing is loaded until the first text.
"""

from __future__ import annotations

import importlib.util
import json
import re
import threading
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from notewell.embedding.gguf_header import GgufHeader, read_header
from notewell.errors import EmbedderUnavailableError
from notewell.types import EmbedderIdentity, hash_text

if TYPE_CHECKING:
    from notewell.embedding.file_facts import FileFacts
    from notewell.embedding.llama_runtime import LlamaRuntime
    from notewell.protocols import Matrix, Vector

PACKAGE = "llama_cpp"
INSTALL_HINT = 'run `pip install "notewell[gguf]"`'
MOST_TOKENS = 2048  # embeddinggemma's own limit; memory for attention grows with the square
MOST_UNKNOWN_TOKENS = 0.3  # as for models in a folder: a script the vocabulary lacks is unknown nearly throughout


class Prefixes(NamedTuple):
    """What a model was trained to see before a query and before a text to be found."""

    query: str = ""
    document: str = ""


# By the architecture or the name in the file, first match wins; from the models' own cards.
_BGE_QUERY = "Represent this sentence for searching relevant passages: "
PREFIXES: tuple[tuple[str, Prefixes], ...] = (
    (r"gemma-embedding|embedding-?gemma", Prefixes("task: search result | query: ", "title: none | text: ")),
    (r"nomic-bert|nomic-embed", Prefixes("search_query: ", "search_document: ")),
    (
        r"qwen3-embedding",
        Prefixes(
            "Instruct: Given a web search query, retrieve relevant passages that answer the query\nQuery:",
        ),
    ),
    (r"\be5-(small|base|large)(?!-instruct)", Prefixes("query: ", "passage: ")),
    (r"bge-(small|base|large)-en|mxbai-embed-large|arctic-embed-(xs|s|m|l)\b(?!-v2)", Prefixes(_BGE_QUERY)),
)


class GgufEmbedder:
    """A sentence model in one GGUF file. Safe to call from several threads."""

    def __init__(self, path: Path, facts: FileFacts) -> None:
        """Read the head of the file; raise EmbedderUnavailableError when the package or the file cannot be used."""
        if importlib.util.find_spec(PACKAGE) is None:
            raise EmbedderUnavailableError(
                f"the GGUF model {path.name} needs llama-cpp-python, not installed here", hint=INSTALL_HINT
            )
        self._path = path.absolute()
        self._facts = facts
        self._header = read_header(self._path)
        self._pooling = _pooling(self._path, self._header)
        self._prefixes = prefixes_of(self._header)
        self._max_tokens = min(MOST_TOKENS, self._header.context)
        self._lock = threading.Lock()
        self._runtime: LlamaRuntime | None = None
        self._known_identity: EmbedderIdentity | None = None

    @property
    def identity(self) -> EmbedderIdentity:
        """Covers the file's content; its hash is kept between runs, so that only a new file is read for it."""
        if self._known_identity is None:
            facts = {
                "weights": self._facts.sha256(self._path),
                "header": asdict(self._header),
                "pooling": self._pooling,
                "prefixes": self._prefixes,
                "max_tokens": self._max_tokens,
            }
            self._known_identity = EmbedderIdentity(
                provider="local",
                model=self._path.stem,
                key=hash_text(json.dumps(facts, sort_keys=True)),
                dimensions=self._header.dimensions,
            )
        return self._known_identity

    @property
    def quantization(self) -> Literal["bits", "int8"]:
        return "bits"

    @property
    def cosine_range(self) -> tuple[float, float]:
        """Measured with a few questions and answers, once a file: models differ too much for any fixed numbers."""
        name = f"cosines {self.identity.key}"
        known = self._facts.get(self._path).get(name)
        if isinstance(known, list) and len(known) == 2:
            return float(known[0]), float(known[1])
        from notewell.embedding.cosines import measured_cosine_range

        measured = measured_cosine_range(self)
        self._facts.put(self._path, {name: list(measured)})
        return measured

    def knows(self, text: str) -> bool:
        return text.isascii() or self._loaded().unknown_share(text) <= MOST_UNKNOWN_TOKENS

    def embed_documents(self, texts: Sequence[str]) -> Matrix:
        return self._embed(self._prefixes.document, texts)

    def embed_query(self, text: str) -> Vector:
        vector: Vector = self._embed(self._prefixes.query, [text])[0]
        return vector

    def close(self) -> None:
        """Release the model; a later call loads it again."""
        with self._lock:
            if self._runtime:
                self._runtime.close()
            self._runtime = None

    def _embed(self, prefix: str, texts: Sequence[str]) -> Matrix:
        from notewell.embedding.checks import unit_rows  # choosing an embedder must not cost NumPy
        from notewell.embedding.windows import vectors_of

        rows: Any = ()
        if texts:
            runtime = self._loaded()
            rows = vectors_of([runtime.windows(prefix, text) for text in texts], runtime.vectors)
        return unit_rows(rows, count=len(texts), dimensions=self._header.dimensions)

    def _loaded(self) -> LlamaRuntime:
        from notewell.embedding.llama_runtime import LlamaRuntime

        with self._lock:
            if self._runtime is None:
                runtime = LlamaRuntime(self._path, pooling=self._pooling, max_tokens=self._max_tokens)
                if runtime.dimensions != self._header.dimensions:
                    runtime.close()
                    raise EmbedderUnavailableError(
                        f"{self._path} gives vectors of {runtime.dimensions} dimensions, its head says "
                        f"{self._header.dimensions}",
                        hint="use a GGUF file of a sentence model",
                    )
                self._runtime = runtime
            return self._runtime


def prefixes_of(header: GgufHeader) -> Prefixes:
    """Return what the model wants to see before queries and texts; nothing for a model that is not known here."""
    known_as = f"{header.architecture} {header.name}".lower().replace(" ", "-").replace("_", "-")
    return next((prefixes for pattern, prefixes in PREFIXES if re.search(pattern, known_as)), Prefixes())


def _pooling(path: Path, header: GgufHeader) -> str:
    if header.pooling == "rank":
        raise EmbedderUnavailableError(
            f"{path} is a model that ranks texts, not one that embeds them",
            hint="set local.model_path to the GGUF file of an embedding model",
        )
    return header.pooling if header.pooling in {"mean", "cls", "last"} else "mean"
