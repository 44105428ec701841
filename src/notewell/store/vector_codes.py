"""Encodes vectors with one bit or one byte per dimension, and estimates cosines from the codes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Literal

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray  # costs 10 ms, and only annotations use it

    from notewell.protocols import Matrix, Vector

    Codes = NDArray[np.uint8]  # one row of bytes a vector, as stored
    Estimates = NDArray[np.float32]

Quantization = Literal["bits", "int8"]
_WIDE_ROWS = 256  # 0.4 MB at 384 dimensions: stays in the second-level cache
REFIT_GROWTH = 4  # the mean of a quarter of the vectors is still close to that of all
QUERY_BITS = 4  # recall@24 of 1,000 candidates among 100,000: .986 with plain Hamming distance, 1.0 with 4 bits


def codec_of(name: Quantization, dimensions: int, mean: Vector) -> Codec:
    """Return a codec by name."""
    return BitsCodec(dimensions, mean) if name == "bits" else Int8Codec(dimensions)


@dataclass(frozen=True, slots=True)
class BitsCodec:
    """One bit per dimension: the sign of the row minus the mean of all rows, and two numbers that correct the estimate.

    With c = row - mean and y = query - mean, <row, query> = <c, y> + <c, mean> + a constant; <c, y> is estimated as
    |c|^2 / sum|c| x <sign(c), y>, which makes the estimate unbiased (Gao & Long 2024, RaBitQ, without the rotation).
    """

    dimensions: int
    mean: Vector
    slots: ClassVar = 8192  # codes in a segment: 0.4 MB at 384 dimensions fit the second-level cache

    @property
    def words(self) -> int:
        return -(-self.dimensions // 64)

    @property
    def code_bytes(self) -> int:
        return self.words * 8 + 8

    def encode(self, matrix: Matrix) -> Codes:
        centred = matrix - self.mean
        size = np.abs(centred).sum(axis=1)
        scale = np.divide(np.einsum("ij,ij->i", centred, centred), size, out=np.zeros_like(size), where=size > 0)
        offset = centred @ self.mean
        codes = np.zeros((len(matrix), self.code_bytes), np.uint8)
        bits = np.packbits(centred > 0, axis=1)
        codes[:, : bits.shape[1]] = bits
        codes[:, -8:] = np.stack([scale, offset], axis=1).astype("<f4").view(np.uint8)
        return codes

    def ready(self, codes: Codes) -> ReadyBits:
        """Prepare codes for scanning."""
        signs = np.ascontiguousarray(np.ascontiguousarray(codes[:, :-8]).view(np.uint64).T)
        numbers = np.ascontiguousarray(codes[:, -8:]).view("<f4").astype(np.float32)
        ones = np.bitwise_count(signs).sum(axis=0, dtype=np.float32)
        return ReadyBits(signs, numbers[:, 0].copy(), numbers[:, 1].copy(), ones)

    def scan(self, vector: Vector) -> BitsScan:
        return BitsScan(self, vector - self.mean)


@dataclass(frozen=True, slots=True)
class ReadyBits:
    """Sign bits, stored word by word for all rows."""

    signs: NDArray[np.uint64]  # words x rows
    scale: NDArray[np.float32]
    offset: NDArray[np.float32]
    ones: NDArray[np.float32]  # how many bits are set in each row


class BitsScan:
    """A query with a few bits per dimension; its scratch space is for one thread at a time."""

    def __init__(self, codec: BitsCodec, centred: Vector) -> None:
        self._lowest = np.float32(centred.min())
        self._step = (np.float32(centred.max()) - self._lowest) / np.float32(2**QUERY_BITS - 1) or np.float32(1)
        self._sum = np.float32(centred.sum())
        levels = np.rint((centred - self._lowest) / self._step).astype(np.uint8)
        planes = np.zeros((QUERY_BITS, codec.words * 8), np.uint8)
        for row, bit in enumerate(reversed(range(QUERY_BITS))):  # from the highest on: double, add, double, add
            packed = np.packbits((levels >> bit) & 1)
            planes[row, : len(packed)] = packed
        self._planes = planes.view(np.uint64)[:, :, None]
        self._counter = np.uint16 if codec.dimensions * (2**QUERY_BITS - 1) < 2**16 else np.uint32
        self._both = np.empty(codec.words * codec.slots, np.uint64)
        self._counts = np.empty(codec.words * codec.slots, np.uint8)

    def estimates(self, codes: ReadyCodes) -> Estimates:
        """Return estimates of the cosine of each row with the query, up to a constant."""
        assert isinstance(codes, ReadyBits)
        signs = codes.signs
        both = self._both[: signs.size].reshape(signs.shape)
        counts = self._counts[: signs.size].reshape(signs.shape)
        total: NDArray[np.unsignedinteger] = np.zeros(signs.shape[1], self._counter)
        for plane in self._planes:
            np.bitwise_and(signs, plane, out=both)
            np.bitwise_count(both, out=counts)
            total += total
            total += counts.sum(axis=0, dtype=self._counter)
        chosen = total.astype(np.float32)  # becomes the sum of the query over the set bits
        chosen *= self._step
        chosen += codes.ones * self._lowest
        chosen += chosen
        chosen -= self._sum  # now <sign(c), y>
        chosen *= codes.scale
        chosen += codes.offset
        return chosen


@dataclass(frozen=True, slots=True)
class Int8Codec:
    """One byte per dimension and a scale per row: safe for every model, eight times the size of bits."""

    dimensions: int
    slots: ClassVar = 2048  # 0.8 MB of codes at 384 dimensions

    @property
    def code_bytes(self) -> int:
        return self.dimensions + 4

    def encode(self, matrix: Matrix) -> Codes:
        scale = np.maximum(np.abs(matrix).max(axis=1), np.float32(1e-12)) / np.float32(127)
        codes = np.empty((len(matrix), self.code_bytes), np.uint8)
        codes[:, :-4] = np.rint(matrix / scale[:, None]).astype(np.int8).view(np.uint8)
        codes[:, -4:] = scale.astype("<f4")[:, None].view(np.uint8)
        return codes

    def ready(self, codes: Codes) -> ReadyInt8:
        scale = np.ascontiguousarray(codes[:, -4:]).view("<f4")[:, 0].astype(np.float32)
        return ReadyInt8(np.ascontiguousarray(codes[:, :-4]).view(np.int8), scale)

    def scan(self, vector: Vector) -> Int8Scan:
        return Int8Scan(vector)


@dataclass(frozen=True, slots=True)
class ReadyInt8:
    """Bytes by row, which a scan converts to floats a few rows at a time."""

    levels: NDArray[np.int8]
    scale: NDArray[np.float32]


class Int8Scan:
    """A query in full precision; its scratch space is for one thread at a time."""

    def __init__(self, vector: Vector) -> None:
        self._vector = vector
        self._wide = np.empty((_WIDE_ROWS, len(vector)), np.float32)

    def estimates(self, codes: ReadyCodes) -> Estimates:
        assert isinstance(codes, ReadyInt8)
        product = np.empty(len(codes.levels), np.float32)
        for start in range(0, len(product), _WIDE_ROWS):
            levels = codes.levels[start : start + _WIDE_ROWS]
            wide = self._wide[: len(levels)]
            np.copyto(wide, levels)
            np.matmul(wide, self._vector, out=product[start : start + _WIDE_ROWS])
        product *= codes.scale
        return product


Codec = BitsCodec | Int8Codec
ReadyCodes = ReadyBits | ReadyInt8
