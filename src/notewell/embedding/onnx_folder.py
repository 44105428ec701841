"""Any sentence model in a folder: `model.onnx` and `tokenizer.json` come in, an embedder goes out.

The files beside them say how to use it, as sentence-transformers writes them: `1_Pooling/config.json`,
`config_sentence_transformers.json` and `sentence_bert_config.json`. What is absent takes the usual default.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from notewell.embedding.onnx_folder_files import FolderModel, read_folder
from notewell.errors import EmbedderUnavailableError
from notewell.types import EmbedderIdentity, hash_text

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from notewell.embedding.inference import Session
    from notewell.embedding.windows import Window, WindowTokenizer
    from notewell.protocols import Matrix, Vector

MOST_UNKNOWN_TOKENS = 0.3  # a script the vocabulary lacks gives unknown tokens nearly throughout; a typo gives one
_UNKNOWN_TOKENS = ("[UNK]", "<unk>")  # as WordPiece and SentencePiece vocabularies call it
_READY_OUTPUT = "sentence_embedding"  # the name sentence-transformers exports a pooled vector under


class OnnxFolderEmbedder:
    """A sentence model read from a folder. Safe to call from several threads."""

    def __init__(self, folder: Path) -> None:
        self._files = read_folder(folder)
        self._lock = threading.Lock()
        self._tokenizer: WindowTokenizer | None = None
        self._session: Session | None = None
        self._known_identity: EmbedderIdentity | None = None
        self._known_cosine_range: tuple[float, float] | None = None

    @property
    def identity(self) -> EmbedderIdentity:
        """Covers the content of every file that changes a vector; reading them takes about 1 s for 1.5 GB, once."""
        if self._known_identity is None:
            files = self._files
            facts = {
                "weights": files.weights_sha256(),
                "tokenizer": hash_text(files.tokenizer_json().decode("utf-8", "replace")),
                "pooling": files.pooling,
                "prompts": [files.query_prompt, files.document_prompt],
                "max_tokens": files.max_tokens,
                "dimensions": files.dimensions,
            }
            self._known_identity = EmbedderIdentity(
                provider="local",
                model=files.folder.name,
                key=hash_text(json.dumps(facts, sort_keys=True)),
                dimensions=files.dimensions,
            )
        return self._known_identity

    @property
    def quantization(self) -> Literal["bits", "int8"]:
        return "bits"

    @property
    def cosine_range(self) -> tuple[float, float]:
        """Measured with a few questions and answers, once: models differ too much for any fixed numbers."""
        if self._known_cosine_range is None:
            from notewell.embedding.cosines import measured_cosine_range

            self._known_cosine_range = measured_cosine_range(self)
        return self._known_cosine_range

    def knows(self, text: str) -> bool:
        tokenizer = self._opened_tokenizer()
        unknown = {tokenizer.token_id(token) for token in _UNKNOWN_TOKENS} - {None}
        ids = tokenizer.plain_ids(text)
        return sum(token in unknown for token in ids) <= MOST_UNKNOWN_TOKENS * len(ids)

    def embed_documents(self, texts: Sequence[str]) -> Matrix:
        return self._embed([self._files.document_prompt + text for text in texts])

    def embed_query(self, text: str) -> Vector:
        vector: Vector = self._embed([self._files.query_prompt + text])[0]
        return vector

    def close(self) -> None:
        """Release session and tokenizer; a later call loads them again."""
        with self._lock:
            self._session = None
            self._tokenizer = None

    def _embed(self, texts: Sequence[str]) -> Matrix:
        from notewell.embedding.checks import unit_rows  # choosing an embedder must not cost NumPy
        from notewell.embedding.inference import on_all_cores
        from notewell.embedding.windows import vectors_of

        rows: Any = ()
        if texts:
            tokenizer, session = self._opened_tokenizer(), self._opened_session()
            rows = vectors_of(
                [tokenizer.windows(text) for text in texts],
                lambda windows: on_all_cores(lambda window: _vector(session, self._files, window), windows),
            )
        return unit_rows(rows, count=len(texts), dimensions=self._files.dimensions)

    def _opened_tokenizer(self) -> WindowTokenizer:
        from notewell.embedding.windows import WindowTokenizer

        with self._lock:
            if self._tokenizer is None:
                try:
                    self._tokenizer = WindowTokenizer(self._files.tokenizer_json(), max_tokens=self._files.max_tokens)
                except EmbedderUnavailableError:
                    raise
                except Exception as error:  # tokenizers raises plain Exception
                    raise _broken(self._files.tokenizer_file, error) from error
            return self._tokenizer

    def _opened_session(self) -> Session:
        from notewell.embedding.inference import Session

        with self._lock:
            if self._session is None:
                try:
                    session = Session(self._files.model_file)
                except EmbedderUnavailableError:
                    raise
                except Exception as error:  # onnxruntime's own classes share no other base
                    raise _broken(self._files.model_file, error) from error
                strange = sorted(
                    set(session.inputs) - {"input_ids", "attention_mask", "token_type_ids", "position_ids"}
                )
                if strange or "input_ids" not in session.inputs:
                    raise EmbedderUnavailableError(
                        f"{self._files.model_file} is not a sentence model: its inputs are {', '.join(session.inputs)}",
                        hint="export the model with input_ids and attention_mask as its inputs",
                    )
                self._session = session
            return self._session


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
    result = session.run(_READY_OUTPUT if _READY_OUTPUT in session.outputs else session.outputs[0], inputs)
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
            f"{files.model_file} gives vectors of {len(pooled)} dimensions, its configuration says {files.dimensions}",
            hint=f"correct word_embedding_dimension in {files.folder / '1_Pooling' / 'config.json'}",
        )
    return pooled


def _broken(path: Path, error: Exception) -> EmbedderUnavailableError:
    return EmbedderUnavailableError(
        f"{path} cannot be used: {error}", hint=f"put a complete copy of {path.name} into {path.parent}"
    )
