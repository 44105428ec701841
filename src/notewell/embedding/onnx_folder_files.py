"""Reads what a sentence-model folder says about itself: a folder comes in, a checked description goes out."""

from __future__ import annotations

import hashlib
import json
import mmap
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from notewell.errors import EmbedderUnavailableError

Pooling = Literal["cls", "mean"]

DEFAULT_MAX_TOKENS = 512  # BERT's limit, which most small sentence models inherit
_NO_LIMIT = 1_000_000  # transformers writes 10**30 for "not known" into tokenizer_config.json
_MODEL_FILES = ("model.onnx", "onnx/model.onnx")
_NOT_WEIGHTS = {".onnx", ".json", ".txt", ".md", ".py", ".model"}  # what else usually lies beside a graph
_SUPPORTED_MODULES = ("Transformer", "Pooling", "Normalize")


@dataclass(frozen=True)
class FolderModel:
    """Where the files of a sentence model are and how it wants to be used."""

    folder: Path
    model_file: Path
    tokenizer_file: Path
    pooling: Pooling
    query_prompt: str
    document_prompt: str
    max_tokens: int
    dimensions: int
    unsupported_modules: tuple[str, ...]  # steps after the transformer that only the graph itself could hold

    def tokenizer_json(self) -> bytes:
        return _read(self.tokenizer_file)

    def weights_sha256(self) -> list[str]:
        """Return the hashes of the graph and of the data files beside it that it names."""
        beside = sorted(path for path in self.model_file.parent.iterdir() if path.suffix not in _NOT_WEIGHTS)
        named = _names_within(self.model_file, [path.name for path in beside if path.is_file()])
        return [_sha256(self.model_file), *(_sha256(self.model_file.parent / name) for name in named)]


def read_folder(folder: Path) -> FolderModel:
    """Return the description; raise EmbedderUnavailableError naming the file that is missing or broken."""
    if not folder.is_dir():
        raise EmbedderUnavailableError(
            f"the model folder does not exist: {folder}", hint="set local.model_path to a folder with model.onnx in it"
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
    )


def _pooling(folder: Path) -> Pooling:
    path = folder / "1_Pooling" / "config.json"
    config = _json(path)
    if config.get("include_prompt") is False:
        raise EmbedderUnavailableError(
            f"{path} leaves the prompt out of the pooling, which notewell cannot do",
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
        raise _wrong(path, "prompts must be texts by name")
    return prompts.get("query", default), prompts.get("document", prompts.get("passage", default))


def _max_tokens(folder: Path) -> int:
    for name, key in (("sentence_bert_config.json", "max_seq_length"), ("tokenizer_config.json", "model_max_length")):
        limit = _json(folder / name).get(key)
        if isinstance(limit, int | float) and limit < _NO_LIMIT:
            if limit < 8:  # start, end and at least something in between
                raise _wrong(folder / name, f"{key} is {limit}")
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
                    raise _wrong(path, f"{key} is {values[key]!r}")
                return int(values[key])
    raise EmbedderUnavailableError(
        f"nothing in {folder} says how many dimensions its vectors have",
        hint=f'write {{"word_embedding_dimension": 384}}, with the right number, into {pooling}',
    )


def _unsupported_modules(folder: Path) -> tuple[str, ...]:
    modules = _json(folder / "modules.json", default=[])
    names = [str(module.get("type", "")).rpartition(".")[2] for module in modules if isinstance(module, dict)]
    return tuple(name for name in names if name not in _SUPPORTED_MODULES)


def _json(path: Path, *, default: Any = None) -> Any:
    """Return the content of an optional file."""
    empty = {} if default is None else default
    if not path.is_file():
        return empty
    try:
        content = json.loads(_read(path))
    except ValueError as error:
        raise _wrong(path, f"not valid JSON: {error}") from error
    if not isinstance(content, type(empty)):
        raise _wrong(path, "not the expected kind of JSON")
    return content


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise _wrong(path, str(error)) from error


def _sha256(path: Path) -> str:
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise _wrong(path, str(error)) from error


def _names_within(path: Path, names: list[str]) -> list[str]:
    """Return those of `names` that the file mentions, as a graph does with files that hold its tensors."""
    if not names:
        return []
    try:
        with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
            return [name for name in names if content.find(name.encode()) >= 0]
    except (OSError, ValueError) as error:  # ValueError: an empty file cannot be mapped
        raise _wrong(path, str(error)) from error


def _missing(path: Path) -> EmbedderUnavailableError:
    return EmbedderUnavailableError(
        f"{path.name} is missing in {path.parent}", hint=f"put {path.name} of a sentence model there"
    )


def _wrong(path: Path, reason: str) -> EmbedderUnavailableError:
    return EmbedderUnavailableError(f"{path} cannot be used: {reason}", hint=f"replace or correct {path}")
