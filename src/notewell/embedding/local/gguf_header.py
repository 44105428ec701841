"""Reads the header of a GGUF file, without touching the weights.

Its layout: `GGUF`, the version, the number of tensors, the number of entries, then each entry: name, type, value.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from notewell.errors import EmbedderUnavailableError

_MAGIC = b"GGUF"
_VERSIONS = (2, 3)  # version 1 had other lengths and was in use for weeks in 2023; big-endian files show as neither
_STRING, _ARRAY = 8, 9
_FORMATS = {0: "<B", 1: "<b", 2: "<H", 3: "<h", 4: "<I", 5: "<i", 6: "<f", 7: "<?", 10: "<Q", 11: "<q", 12: "<d"}
_LONGEST_STRING = 1 << 24  # chat templates have some thousand characters; more is a corrupt length
_POOLINGS = {0: "none", 1: "mean", 2: "cls", 3: "last", 4: "rank"}  # llama.cpp's enum llama_pooling_type
DEFAULT_CONTEXT = 512  # tokens; BERT's, when a file says nothing

Value = int | float | bool | str | None


@dataclass(frozen=True, slots=True)
class GgufHeader:
    """What a GGUF file says about its model."""

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
    """Return the error for a file that the system does not let us read."""
    return EmbedderUnavailableError(
        f"the model file {path} cannot be read: {error.strerror or error}", hint="check the permissions of the file"
    )


def invalid_file(path: Path, reason: str) -> EmbedderUnavailableError:
    """Return the error for a file that exists but cannot be used."""
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
        # Vocabularies of 260,000 words come last and take a quarter of a second to read; what we need comes before.
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
    """Reads values one after another and never past the end."""

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
