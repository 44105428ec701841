"""Embeds with any sentence model in a folder with `model.onnx` and `tokenizer.json`, such as the packaged model.

A `notewell.json` marks this project's own exports: short questions can use them without the large libraries.
"""

from __future__ import annotations

import hashlib
import json
import mmap
import threading
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from notewell.embedding.local import with_unused_key
from notewell.errors import EmbedderUnavailableError
from notewell.text.languages import language_of
from notewell.types import EmbedderIdentity, hash_text

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from notewell.embedding.local.cold_start import ColdStartModel, QuickStart, VectorsOfWindows
    from notewell.embedding.local.inference import Session
    from notewell.embedding.local.token_ids import ShortTextTokenizer, Window, WindowTokenizer
    from notewell.protocols import Matrix, Vector

MAX_UNKNOWN_TOKENS = 0.3  # in a script that the vocabulary lacks, nearly all tokens are unknown

# A byte-level vocabulary has no unknown tokens: a letter of a script that it lacks takes two or three, other letters
# 0.2 (English) to 0.9 (Chinese).
MAX_TOKENS_PER_LETTER = 1.3

_INPUTS = {"input_ids", "attention_mask", "token_type_ids", "position_ids"}
_UNKNOWN_TOKENS = ("[UNK]", "<unk>")  # in WordPiece and SentencePiece vocabularies
_POOLED_OUTPUT = "sentence_embedding"  # the name sentence-transformers exports a pooled vector under


class OnnxFolderEmbedder:
    """A sentence model read from a folder. Safe to call from several threads."""

    quantization: Literal["bits", "int8"] = "bits"

    def __init__(self, folder: Path, *, reinstall_hint: str = "") -> None:
        self._files = read_folder(folder)
        self._reinstall_hint = reinstall_hint
        self._lock = threading.Lock()
        self._model: ColdStartModel | None = None
        self._known_identity: EmbedderIdentity | None = None
        self._known_cosine_range = self._files.card.cosine_range if self._files.card else None

    @property
    def identity(self) -> EmbedderIdentity:
        """Covers the content of all files; hashing 1.5 GB takes about 1 s, once."""
        if self._known_identity is None:
            files = self._files
            facts = {
                "weights": files.weights_sha256(),
                "tokenizer": files.tokenizer_hash(),
                "pooling": files.pooling,
                "prompts": [files.query_prompt, files.document_prompt],
                "max_tokens": files.max_tokens,
                "dimensions": files.dimensions,
            }
            self._known_identity = EmbedderIdentity(
                provider="local",
                model=files.name,
                key=hash_text(json.dumps(facts, sort_keys=True)),
                dimensions=files.dimensions,
            )
        return self._known_identity

    @property
    def cosine_range(self) -> tuple[float, float]:
        """From the card, or measured once with a few questions and answers."""
        if self._known_cosine_range is None:
            from notewell.embedding.unit_vectors import measure_cosine_range

            self._known_cosine_range = measure_cosine_range(self)
        return self._known_cosine_range

    @property
    def language_weights(self) -> Mapping[str, float]:
        """From the card; empty for a model that was not measured."""
        return self._files.card.language_weights if self._files.card else {}

    def knows(self, text: str) -> bool:
        if self.language_weights and (language := language_of(text)):
            return self.language_weights.get(language, 0) > 0
        if self._files.card:
            return text.isascii() or self._has_script(text)
        tokenizer = self._loaded().full_tokenizer()
        unknown = {tokenizer.token_id(token) for token in _UNKNOWN_TOKENS} - {None}
        ids = tokenizer.plain_ids(text)
        return sum(token in unknown for token in ids) <= MAX_UNKNOWN_TOKENS * len(ids)

    def _has_script(self, text: str) -> bool:
        """Return whether a byte-level vocabulary supports the script of a text."""
        written = "".join(character for character in text if unicodedata.category(character) != "So")  # emoji
        return len(self._loaded().tokenizer_for([written]).plain_ids(written)) <= MAX_TOKENS_PER_LETTER * len(written)

    def embed_documents(self, texts: Sequence[str]) -> Matrix:
        return self._embed([self._files.document_prompt + text for text in texts])

    def embed_query(self, text: str) -> Vector:
        vector: Vector = self._embed([self._files.query_prompt + text])[0]
        return vector

    def close(self) -> None:
        """Release session and tokenizer; a later call loads them again."""
        with self._lock:
            self._model = None

    def _embed(self, texts: Sequence[str]) -> Matrix:
        from notewell.embedding.unit_vectors import unit_rows  # choosing an embedder must not import NumPy

        rows: Any = self._loaded().vectors(texts) if texts else ()
        return unit_rows(rows, count=len(texts), dimensions=self._files.dimensions)

    def _loaded(self) -> ColdStartModel:
        from notewell.embedding.local.cold_start import ColdStartModel

        with self._lock:
            if self._model is None:
                self._files.verify(self._reinstall_hint)
                self._model = ColdStartModel(
                    open_tokenizer=self._open_tokenizer,
                    open_session=self._open_session,
                    quick_start=self._quick_start() if self._files.card else None,
                )
            return self._model

    def _quick_start(self) -> QuickStart:
        from notewell.embedding.local.cold_start import QuickStart
        from notewell.embedding.local.numpy_inference import NumpyGraph

        with using(self._files.model_file):
            return QuickStart(self._open_short_tokenizer, NumpyGraph(self._files.model_file).vector)

    def _open_short_tokenizer(self) -> ShortTextTokenizer:
        from notewell.embedding.local.token_ids import ShortTextTokenizer

        with using(self._files.tokenizer_file):
            return ShortTextTokenizer(self._files.tokenizer_json())

    def _open_tokenizer(self) -> WindowTokenizer:
        from notewell.embedding.local.token_ids import WindowTokenizer

        with using(self._files.tokenizer_file):
            return WindowTokenizer(self._files.tokenizer_json(), max_tokens=self._files.max_tokens)

    def _open_session(self) -> VectorsOfWindows:
        from notewell.embedding.local.inference import Session, on_all_cores

        with using(self._files.model_file):
            session = Session(self._files.model_file)
        if not {"input_ids"} <= set(session.inputs) <= _INPUTS:
            raise EmbedderUnavailableError(
                f"{self._files.model_file} is not a sentence model: its inputs are {', '.join(session.inputs)}",
                hint="export the model with input_ids and attention_mask as its inputs",
            )
        return lambda windows: on_all_cores(lambda window: _vector(session, self._files, window), windows)


def _vector(session: Session, files: FolderModel, window: Window) -> NDArray[np.float32]:
    import numpy as np

    count = len(window)
    available = {
        "input_ids": window,
        "attention_mask": [1] * count,
        "token_type_ids": [0] * count,
        "position_ids": range(count),
    }
    inputs = {
        name: np.asarray([available[name]], dtype=np.int32 if kind == "tensor(int32)" else np.int64)
        for name, kind in session.inputs.items()
    }
    result = session.run(_POOLED_OUTPUT if _POOLED_OUTPUT in session.outputs else session.outputs[0], inputs)
    pooled: NDArray[np.float32]
    if result.ndim == 2:  # pooled within the graph
        pooled = result[0]
    elif files.unsupported_modules:
        raise EmbedderUnavailableError(
            f"{files.folder / 'modules.json'} asks for {', '.join(files.unsupported_modules)}, "
            f"which {files.model_file} does not contain",
            hint="export the model with its sentence embedding as output",
        )
    else:
        pooled = np.asarray(result[0, 0] if files.pooling == "cls" else result[0].mean(axis=0))
    if len(pooled) != files.dimensions:
        raise EmbedderUnavailableError(
            f"{files.model_file} returns vectors of {len(pooled)} dimensions, its settings say {files.dimensions}",
            hint=f"correct word_embedding_dimension in {files.folder / '1_Pooling' / 'config.json'}",
        )
    return pooled


# --- the files -----------------------------------------------------------------------------------
#
# `1_Pooling/config.json`, `config_sentence_transformers.json` and `sentence_bert_config.json` are those of
# sentence-transformers, with its defaults for missing files. The card `notewell.json` has what would otherwise be
# measured, and the checksums of the two large files.

Pooling = Literal["cls", "mean"]

DEFAULT_MAX_TOKENS = 512  # BERT's limit, which most small sentence models inherit
_NO_LIMIT = 1_000_000  # transformers writes 10**30 for "not known" into tokenizer_config.json
_MODEL_FILES = ("model.onnx", "onnx/model.onnx")
_NOT_WEIGHTS = {".onnx", ".json", ".txt", ".md", ".py", ".model"}  # other files that usually lie beside a graph
_SUPPORTED_MODULES = ("Transformer", "Pooling", "Normalize")


@dataclass(frozen=True)
class Card:
    """The content of `notewell.json`."""

    name: str
    cosine_range: tuple[float, float]
    sha256: Mapping[str, str]  # by file name: model.onnx and tokenizer.json
    language_weights: Mapping[str, float]  # by ISO 639-1 code, 0 to 1; empty: not measured


@dataclass(frozen=True)
class FolderModel:
    """The files of a sentence model, and how to use it."""

    folder: Path
    model_file: Path
    tokenizer_file: Path
    pooling: Pooling
    query_prompt: str
    document_prompt: str
    max_tokens: int
    dimensions: int
    unsupported_modules: tuple[str, ...]  # steps after the transformer that only the graph can do
    card: Card | None

    @property
    def name(self) -> str:
        return self.card.name if self.card else self.folder.name

    def tokenizer_json(self) -> bytes:
        return _read(self.tokenizer_file)

    def tokenizer_hash(self) -> str:
        if self.card:
            return self.card.sha256[self.tokenizer_file.name]
        return hash_text(self.tokenizer_json().decode("utf-8", "replace"))

    def verify(self, hint: str) -> None:
        """Compare the files with the card's checksums; 50 MB take 25 ms. Does nothing without a card."""
        for path in (self.model_file, self.tokenizer_file) if self.card else ():
            found, expected = _sha256(path), self.card.sha256[path.name] if self.card else ""
            if found != expected:
                raise EmbedderUnavailableError(
                    f"the local model is corrupt: checksum mismatch of {path}: sha256 is {found}, expected {expected}",
                    hint=with_unused_key(hint or f"replace {path} with a complete and valid copy"),
                )

    def weights_sha256(self) -> list[str]:
        """Return the hashes of the graph and its data files, from the card if there is one."""
        if self.card:
            return [self.card.sha256[self.model_file.name]]
        beside = sorted(path for path in self.model_file.parent.iterdir() if path.suffix not in _NOT_WEIGHTS)
        named = _names_within(self.model_file, [path.name for path in beside if path.is_file()])
        return [_sha256(self.model_file), *(_sha256(self.model_file.parent / name) for name in named)]


def read_folder(folder: Path) -> FolderModel:
    """Return the description; raise EmbedderUnavailableError naming the file that is missing or invalid."""
    if not folder.is_dir():
        raise EmbedderUnavailableError(
            f"the model folder does not exist: {folder}",
            hint="set local.model_path to a folder that contains model.onnx",
        )
    model_file = next((folder / name for name in _MODEL_FILES if (folder / name).is_file()), None)
    if model_file is None:
        raise _missing(folder / _MODEL_FILES[0])
    tokenizer_file = folder / "tokenizer.json"
    if not tokenizer_file.is_file():
        raise _missing(tokenizer_file)
    query_prompt, document_prompt = _prompts(folder)
    return FolderModel(
        folder=folder.resolve(),
        model_file=model_file,
        tokenizer_file=tokenizer_file,
        pooling=_pooling(folder),
        query_prompt=query_prompt,
        document_prompt=document_prompt,
        max_tokens=_max_tokens(folder),
        dimensions=_dimensions(folder),
        unsupported_modules=_unsupported_modules(folder),
        card=_card(folder),
    )


def _card(folder: Path) -> Card | None:
    path = folder / "notewell.json"
    facts = _json(path)
    if not facts:
        return None
    try:
        low, high = map(float, facts["cosine_range"])
        checksums = {name: str(facts["sha256"][name]) for name in ("model.onnx", "tokenizer.json")}
        weights = {str(language): float(weight) for language, weight in facts.get("languages", {}).items()}
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise _unusable(path, f"it needs name, cosine_range and sha256 ({error!r})") from error
    if not all(0 <= weight <= 1 for weight in weights.values()):
        raise _unusable(path, "a weight in languages is not between 0 and 1")
    return Card(str(facts["name"]), (low, high), checksums, weights)


def _pooling(folder: Path) -> Pooling:
    path = folder / "1_Pooling" / "config.json"
    config = _json(path)
    if config.get("include_prompt") is False:
        raise EmbedderUnavailableError(
            f"{path} excludes the prompt from pooling, which notewell does not support",
            hint="use a model without include_prompt = false",
        )
    modes = [name for name, chosen in config.items() if name.startswith("pooling_mode_") and chosen is True]
    mode = config.get("pooling_mode") or (modes[0] if len(modes) == 1 else "several" if modes else "mean")
    match mode:
        case "cls" | "pooling_mode_cls_token":
            return "cls"
        case "mean" | "pooling_mode_mean_tokens":
            return "mean"
    raise EmbedderUnavailableError(
        f"{path} asks for pooling {', '.join(modes) or mode}", hint="use a model that pools by cls or mean"
    )


def _prompts(folder: Path) -> tuple[str, str]:
    path = folder / "config_sentence_transformers.json"
    config = _json(path)
    prompts = config.get("prompts") or {}
    default = prompts.get(config.get("default_prompt_name"), "") if isinstance(prompts, dict) else None
    if not isinstance(default, str) or not all(isinstance(prompt, str) for prompt in prompts.values()):
        raise _unusable(path, "prompts must map names to texts")
    return prompts.get("query", default), prompts.get("document", prompts.get("passage", default))


def _max_tokens(folder: Path) -> int:
    for name, key in (("sentence_bert_config.json", "max_seq_length"), ("tokenizer_config.json", "model_max_length")):
        limit = _json(folder / name).get(key)
        if isinstance(limit, int | float) and limit < _NO_LIMIT:
            if limit < 8:  # start, end and something in between
                raise _unusable(folder / name, f"{key} is {limit}")
            return int(limit)
    return DEFAULT_MAX_TOKENS


def _dimensions(folder: Path) -> int:
    pooling, config = folder / "1_Pooling" / "config.json", folder / "config.json"
    for path, keys in (
        (pooling, ("word_embedding_dimension", "embedding_dimension")),
        (config, ("hidden_size", "dim")),
    ):
        values = _json(path)
        for key in keys:
            if key in values:
                if not isinstance(values[key], int) or values[key] < 1:
                    raise _unusable(path, f"{key} is {values[key]!r}")
                return int(values[key])
    raise EmbedderUnavailableError(
        f"no file in {folder} gives the number of dimensions",
        hint=f'write {{"word_embedding_dimension": 384}}, with the right number, to {pooling}',
    )


def _unsupported_modules(folder: Path) -> tuple[str, ...]:
    modules = _json(folder / "modules.json", list)
    names = [str(module.get("type", "")).rpartition(".")[2] for module in modules if isinstance(module, dict)]
    return tuple(name for name in names if name not in _SUPPORTED_MODULES)


def _json(path: Path, kind: type = dict) -> Any:
    """Return the content of an optional file."""
    if not path.is_file():
        return kind()
    try:
        content = json.loads(_read(path))
    except ValueError as error:
        raise _unusable(path, f"not valid JSON: {error}") from error
    if not isinstance(content, kind):
        raise _unusable(path, "unexpected JSON")
    return content


def _read(path: Path) -> bytes:
    with using(path):
        return path.read_bytes()


def _sha256(path: Path) -> str:
    with using(path), path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _names_within(path: Path, names: list[str]) -> list[str]:
    """Return the names that occur in the file: data files of a graph do."""
    if not names:
        return []
    with using(path), path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
        return [name for name in names if content.find(name.encode()) >= 0]


@contextmanager
def using(path: Path) -> Iterator[None]:
    """Name the file in all errors: tokenizers and onnxruntime raise plain Exceptions."""
    try:
        yield
    except EmbedderUnavailableError:
        raise
    except Exception as error:
        raise _unusable(path, error) from error


def _missing(path: Path) -> EmbedderUnavailableError:
    return EmbedderUnavailableError(
        f"{path.name} is missing in {path.parent}", hint=f"add the {path.name} of a sentence model"
    )


def _unusable(path: Path, reason: object) -> EmbedderUnavailableError:
    return EmbedderUnavailableError(
        f"{path} cannot be used: {reason}", hint=f"replace {path} with a complete and valid copy"
    )
