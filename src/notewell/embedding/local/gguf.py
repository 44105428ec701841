"""Embeds with a sentence model in a GGUF file, llama.cpp's format.

The header of the file says how the model pools and how long texts may be; the model is loaded with the first text.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib.util
import json
import re
import struct
import threading
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Literal, NamedTuple

from notewell.errors import EmbedderUnavailableError
from notewell.files.atomic import write_atomically
from notewell.types import EmbedderIdentity, hash_text

if TYPE_CHECKING:
    from notewell.embedding.local.llama_runtime import LlamaRuntime
    from notewell.protocols import Matrix, Vector

PACKAGE = "llama_cpp"
INSTALL_HINT = 'run `pip install "notewell[gguf]"`; it compiles llama.cpp, which needs a C++ compiler and CMake'
MAX_TOKENS = 2048  # embeddinggemma's limit; memory for attention grows with the square
MAX_UNKNOWN_TOKENS = 0.3  # in a script that the vocabulary lacks, nearly all tokens are unknown
FACTS_FILE = "facts.json"
YOUNG_S = 4.0  # with time stamps of one or two seconds, a younger file may change and keep its stamp
_MAX_FACTS = 64  # files, with some hundred bytes each


class Prefixes(NamedTuple):
    """The prefixes of queries and documents that a model was trained with."""

    query: str = ""
    document: str = ""


# By the architecture or the name in the file, first match wins; from the model cards.
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

    quantization: Literal["bits", "int8"] = "bits"

    def __init__(self, path: Path, facts: FileFacts) -> None:
        """Read the header; raise EmbedderUnavailableError when the package is missing or the file cannot be used."""
        if importlib.util.find_spec(PACKAGE) is None:
            raise EmbedderUnavailableError(
                f"the GGUF model {path.name} needs llama-cpp-python (not installed)", hint=INSTALL_HINT
            )
        self._path = path.absolute()
        self._facts = facts
        self._header = read_header(self._path)
        self._pooling = _pooling(self._path, self._header)
        self._prefixes = prefixes_of(self._header)
        self._max_tokens = min(MAX_TOKENS, self._header.context)
        self._lock = threading.Lock()
        self._runtime: LlamaRuntime | None = None
        self._known_identity: EmbedderIdentity | None = None

    @property
    def identity(self) -> EmbedderIdentity:
        """Covers the file's content, whose hash is stored between runs."""
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
    def cosine_range(self) -> tuple[float, float]:
        """Measured once per file, with a few questions and answers."""
        name = f"cosines {self.identity.key}"
        known = self._facts.get(self._path).get(name)
        if isinstance(known, list) and len(known) == 2:
            return float(known[0]), float(known[1])
        from notewell.embedding.unit_vectors import measure_cosine_range

        measured = measure_cosine_range(self)
        self._facts.put(self._path, {name: list(measured)})
        return measured

    def knows(self, text: str) -> bool:
        return text.isascii() or self._loaded().unknown_share(text) <= MAX_UNKNOWN_TOKENS

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
        from notewell.embedding.unit_vectors import (  # choosing an embedder must not import NumPy
            embed_windows,
            unit_rows,
        )

        rows: Any = ()
        if texts:
            runtime = self._loaded()
            rows = embed_windows([runtime.windows(prefix, text) for text in texts], runtime.vectors)
        return unit_rows(rows, count=len(texts), dimensions=self._header.dimensions)

    def _loaded(self) -> LlamaRuntime:
        from notewell.embedding.local.llama_runtime import LlamaRuntime

        with self._lock:
            if self._runtime is None:
                runtime = LlamaRuntime(self._path, pooling=self._pooling, max_tokens=self._max_tokens)
                if runtime.dimensions != self._header.dimensions:
                    runtime.close()
                    raise EmbedderUnavailableError(
                        f"{self._path} returns vectors of {runtime.dimensions} dimensions, its header says "
                        f"{self._header.dimensions}",
                        hint="use a GGUF file of a sentence model",
                    )
                self._runtime = runtime
            return self._runtime


def prefixes_of(header: GgufHeader) -> Prefixes:
    """Return the prefixes that the model was trained with; empty for an unknown model."""
    known_as = f"{header.architecture} {header.name}".lower().replace(" ", "-").replace("_", "-")
    return next((prefixes for pattern, prefixes in PREFIXES if re.search(pattern, known_as)), Prefixes())


def _pooling(path: Path, header: GgufHeader) -> str:
    if header.pooling == "rank":
        raise EmbedderUnavailableError(
            f"{path} is a reranking model, not an embedding model",
            hint="set local.model_path to the GGUF file of an embedding model",
        )
    return header.pooling if header.pooling in {"mean", "cls", "last"} else "mean"


class FileFacts:
    """Stores facts about model files between runs, in a JSON file.

    They are valid while size and modification time stay the same: hashing a model of 300 MB at every start would take
    longer than a search. Facts that cannot be written are determined again.
    """

    def __init__(self, folder: Path) -> None:
        self._path = folder / FACTS_FILE

    def sha256(self, path: Path) -> str:
        """Return the SHA-256 of the file's content, in hex."""
        known = self.get(path).get("sha256")
        if isinstance(known, str):
            return known
        try:
            with path.open("rb") as file:
                digest = hashlib.file_digest(file, "sha256").hexdigest()
        except OSError as error:
            raise unreadable(path, error) from error
        self.put(path, {"sha256": digest})
        return digest

    def get(self, path: Path) -> dict[str, Any]:
        """Return the facts about the current file."""
        record = self._read().get(str(path), {})
        return dict(record.get("facts", {})) if record.get("stamp") == _stamp(path) else {}

    def put(self, path: Path, facts: dict[str, Any]) -> None:
        """Add facts about the current file."""
        stamp = _stamp(path)
        if stamp is None or time.time() - stamp[1] / 1e9 < YOUNG_S:
            return
        known = self._read()
        merged = self.get(path) | facts
        known.pop(str(path), None)
        known[str(path)] = {"stamp": stamp, "facts": merged}
        self._write(dict(list(known.items())[-_MAX_FACTS:]))

    def _read(self) -> dict[str, Any]:
        try:
            content = json.loads(self._path.read_bytes())
        except (OSError, ValueError):
            return {}
        if not isinstance(content, dict):
            return {}
        return {path: record for path, record in content.items() if isinstance(record, dict)}

    def _write(self, content: dict[str, Any]) -> None:
        """Replace the file atomically, if permitted."""
        with contextlib.suppress(OSError):
            self._path.parent.mkdir(parents=True, exist_ok=True)
            write_atomically(self._path, json.dumps(content, indent=1), mode=0o600)


def _stamp(path: Path) -> list[int] | None:
    try:
        status = path.stat()
    except OSError:
        return None
    return [status.st_size, status.st_mtime_ns]


# --- the header ----------------------------------------------------------------------------------
#
# Its layout: `GGUF`, the version, the number of tensors, the number of entries, then each entry: name, type, value.

_MAGIC = b"GGUF"
_VERSIONS = (2, 3)  # version 1 was used for weeks in 2023; big-endian files have neither
_STRING, _ARRAY = 8, 9
_FORMATS = {0: "<B", 1: "<b", 2: "<H", 3: "<h", 4: "<I", 5: "<i", 6: "<f", 7: "<?", 10: "<Q", 11: "<q", 12: "<d"}
_LONGEST_STRING = 1 << 24  # chat templates have some thousand characters; beyond it, the length is corrupt
_POOLINGS = {0: "none", 1: "mean", 2: "cls", 3: "last", 4: "rank"}  # llama.cpp's enum llama_pooling_type
DEFAULT_CONTEXT = 512  # tokens, as of BERT

Value = int | float | bool | str | None


@dataclass(frozen=True, slots=True)
class GgufHeader:
    """The facts about a model in its GGUF file."""

    architecture: str  # "gemma-embedding", "bert", ...
    name: str
    dimensions: int
    context: int  # tokens that the model was trained for
    pooling: str  # "mean", "cls", "last", "rank", "none"; empty when the file does not say


def read_header(path: Path) -> GgufHeader:
    """Return the header; raise EmbedderUnavailableError when the file is missing, incomplete or not GGUF."""
    try:
        with path.open("rb") as file:
            return _header(path, _entries(_Reader(file, path.stat().st_size)))
    except FileNotFoundError as error:
        raise EmbedderUnavailableError(
            f"there is no model file {path}", hint="set local.model_path to a GGUF file that exists"
        ) from error
    except OSError as error:
        raise unreadable(path, error) from error
    except (struct.error, ValueError, UnicodeDecodeError) as error:
        raise invalid_file(path, str(error)) from error


def unreadable(path: Path, error: OSError) -> EmbedderUnavailableError:
    """Return the error for a file that cannot be read."""
    return EmbedderUnavailableError(
        f"the model file {path} cannot be read: {error.strerror or error}", hint="check the permissions of the file"
    )


def invalid_file(path: Path, reason: str) -> EmbedderUnavailableError:
    """Return the error for a file that cannot be used."""
    return EmbedderUnavailableError(
        f"the model file {path} is corrupt or not a GGUF model: {reason}",
        hint=f"copy or download {path.name} again, and compare its size with the original",
    )


def _entries(reader: _Reader) -> dict[str, Value]:
    if reader.take(4) != _MAGIC:
        raise ValueError("it does not start with GGUF")
    version = reader.number("<I")
    if version not in _VERSIONS:
        raise ValueError(f"its version is {version}, supported are {' and '.join(map(str, _VERSIONS))}")
    reader.number("<Q")  # tensors
    entries: dict[str, Value] = {}
    for _ in range(int(reader.number("<Q"))):
        name = reader.text()
        architecture = entries.get("general.architecture")
        # The vocabulary comes last; one of 260,000 words takes a quarter of a second to read.
        if name.startswith("tokenizer.") and f"{architecture}.embedding_length" in entries:
            break
        entries[name] = reader.value(int(reader.number("<I")))
    return entries


def _header(path: Path, entries: dict[str, Value]) -> GgufHeader:
    architecture = entries.get("general.architecture")
    dimensions = entries.get(f"{architecture}.embedding_length_out") or entries.get(f"{architecture}.embedding_length")
    if not isinstance(architecture, str) or not isinstance(dimensions, int) or dimensions < 1:
        raise ValueError("it does not name its architecture or the number of dimensions")
    context = entries.get(f"{architecture}.context_length")
    pooling = entries.get(f"{architecture}.pooling_type")
    name = entries.get("general.name")
    if pooling is not None and pooling not in _POOLINGS:
        raise ValueError(f"its pooling is {pooling}, supported are 0 to 4")
    return GgufHeader(
        architecture=architecture,
        name=name if isinstance(name, str) else path.stem,
        dimensions=dimensions,
        context=context if isinstance(context, int) and context > 0 else DEFAULT_CONTEXT,
        pooling=_POOLINGS[pooling] if isinstance(pooling, int) else "",
    )


class _Reader:
    """Reads values in sequence, never past the end."""

    def __init__(self, file: BinaryIO, size: int) -> None:
        self._file = file
        self._size = size

    def take(self, count: int) -> bytes:
        content = self._file.read(count)
        if len(content) < count:
            raise ValueError("it ends in the middle of its header")
        return content

    def number(self, form: str) -> int | float | bool:
        value: int | float | bool = struct.unpack(form, self.take(struct.calcsize(form)))[0]
        return value

    def text(self) -> str:
        return self.take(self._length()).decode("utf-8")

    def value(self, kind: int) -> Value:
        if kind == _STRING:
            return self.text()
        if kind == _ARRAY:
            self._skip_array()
            return None
        if kind not in _FORMATS:
            raise ValueError(f"it contains a value of the unknown type {kind}")
        return self.number(_FORMATS[kind])

    def _skip_array(self) -> None:
        kind, count = int(self.number("<I")), int(self.number("<Q"))
        if kind in _FORMATS:
            self._skip(count * struct.calcsize(_FORMATS[kind]))
        elif kind in {_STRING, _ARRAY}:
            for _ in range(count):
                if kind == _STRING:
                    self._skip(self._length())
                else:
                    self._skip_array()
        else:
            raise ValueError(f"it contains a list of the unknown type {kind}")

    def _length(self) -> int:
        length = int(self.number("<Q"))
        if length > _LONGEST_STRING:
            raise ValueError(f"it contains a text of {length} bytes")
        return length

    def _skip(self, count: int) -> None:
        if self._file.tell() + count > self._size:
            raise ValueError("it ends in the middle of its header")
        self._file.seek(count, 1)
