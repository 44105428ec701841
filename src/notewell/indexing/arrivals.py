"""Who waits for which vector: chunks come in while texts are sent, their vectors go out to all of them when they come.

Chunks with the same text wait for one vector, so that no text is embedded twice.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from notewell.protocols import EmbeddedPart, Vector
    from notewell.types import PendingChunk


@dataclass(slots=True)
class Arrivals:
    """The texts under way, by their position in the stream."""

    done: int = 0  # chunks that wait no longer
    split: int = 0  # texts that the embedder had to cut in pieces
    _sent: int = 0
    _waiting: dict[int, list[PendingChunk]] = field(default_factory=dict)
    _positions: dict[str, int] = field(default_factory=dict)  # by embedded hash

    def expect(self, chunks: Iterable[PendingChunk]) -> Iterator[str]:
        """Yield the texts to be sent, each once."""
        for chunk in chunks:
            position = self._positions.get(chunk.embedded_hash)
            if position is not None:
                self._waiting[position].append(chunk)
                continue
            self._positions[chunk.embedded_hash] = self._sent
            self._waiting[self._sent] = [chunk]
            self._sent += 1
            yield chunk.embedded_text

    def arrived(self, part: EmbeddedPart) -> tuple[dict[str, Vector], list[PendingChunk]]:
        """Return the vectors by embedded hash, and the chunks they are for."""
        fresh: dict[str, Vector] = {}
        chunks: list[PendingChunk] = []
        for position, vector in zip(part.positions, part.vectors, strict=True):
            waiting = self._taken(position)
            fresh[waiting[0].embedded_hash] = vector
            chunks += waiting
        self.split += len(part.split)
        return fresh, chunks

    def failed(self, part: EmbeddedPart) -> Iterator[tuple[list[int], str]]:
        """Yield the chunks that get no vector, and why."""
        for position, reason in part.failed.items():
            yield [chunk.id for chunk in self._taken(position)], reason

    def _taken(self, position: int) -> list[PendingChunk]:
        waiting = self._waiting.pop(position)
        del self._positions[waiting[0].embedded_hash]
        self.done += len(waiting)
        return waiting
