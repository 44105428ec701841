"""Embeds with any sentence model in a folder that contains `model.onnx` and `tokenizer.json`.

The packaged model is such a folder. Its `notewell.json` says that the files are those of this project's own export:
short questions can use that vocabulary and graph without the large libraries.
"""

from __future__ import annotations

import json
import threading
import unicodedata
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from notewell.embedding.local.model_folder import FolderModel, read_folder, using
from notewell.embedding.local.time_limit import BATCH_LIMIT_S, QUERY_LIMIT_S, TimeLimit
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

MAX_UNKNOWN_TOKENS = 0.3  # a script that the vocabulary lacks gives unknown tokens nearly throughout; a typo gives one

# A byte-level vocabulary has no unknown tokens: a script that it lacks is spelled out in two or three bytes per letter,
# while a letter of one that it has takes 0.2 (English) to 0.9 (Chinese) tokens.
MAX_TOKENS_PER_LETTER = 1.3

_INPUTS = {"input_ids", "attention_mask", "token_type_ids", "position_ids"}
_UNKNOWN_TOKENS = ("[UNK]", "<unk>")  # in WordPiece and SentencePiece vocabularies
_POOLED_OUTPUT = "sentence_embedding"  # the name sentence-transformers exports a pooled vector under


class OnnxFolderEmbedder:
    """A sentence model read from a folder. Safe to call from several threads."""

    def __init__(self, folder: Path, *, reinstall_hint: str = "") -> None:
        self._files = read_folder(folder)
        self._reinstall_hint = reinstall_hint
        self._lock = threading.Lock()
        self._limit = TimeLimit()
        self._model: ColdStartModel | None = None
        self._known_identity: EmbedderIdentity | None = None
        self._known_cosine_range = self._files.card.cosine_range if self._files.card else None

    @property
    def identity(self) -> EmbedderIdentity:
        """Covers the content of every file that changes a vector; hashing takes about 1 s for 1.5 GB, once."""
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
    def quantization(self) -> Literal["bits", "int8"]:
        return "bits"

    @property
    def cosine_range(self) -> tuple[float, float]:
        """Measured once, with a few questions and answers: models differ too much for fixed numbers."""
        if self._known_cosine_range is None:
            from notewell.embedding.unit_vectors import measure_cosine_range

            self._known_cosine_range = measure_cosine_range(self)
        return self._known_cosine_range

    @property
    def language_weights(self) -> Mapping[str, float]:
        """What `notewell.json` says; empty for a model that was not measured."""
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
        """Tell whether a byte-level vocabulary has words or letters of the text's script."""
        written = "".join(character for character in text if unicodedata.category(character) != "So")  # emoji
        return len(self._loaded().tokenizer_for(written).plain_ids(written)) <= MAX_TOKENS_PER_LETTER * len(written)

    def embed_documents(self, texts: Sequence[str]) -> Matrix:
        prompts = [self._files.document_prompt + text for text in texts]
        return self._limit.run(lambda: self._embed(prompts), BATCH_LIMIT_S)

    def embed_query(self, text: str) -> Vector:
        prompts = [self._files.query_prompt + text]
        vector: Vector = self._limit.run(lambda: self._embed(prompts), QUERY_LIMIT_S)[0]
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
