"""The notes in, answers out of notewell itself: `Memory` as any program uses it, with the vectors of the benchmark."""

from __future__ import annotations

from typing import TYPE_CHECKING

from benchmarks.contestant import Ground, Place
from notewell import Memory, Settings
from notewell.memory.components import open_components
from notewell.search.query import keyword_query
from notewell.search.tuning import TUNING
from notewell.types import EVERYTHING, embedded_text

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from notewell.protocols import Vector
    from notewell.types import EmbedderIdentity

EVERY_SIDE = Settings().query.hybrid.candidates_per_side  # what a leg gives to the hybrid search by default


class Notewell:
    """Implements `Contestant`. The index is in the workspace, where the command looks for it, too."""

    name = "notewell"

    def __init__(self, ground: Ground, settings: Settings = Settings()) -> None:  # noqa: B008 - it is frozen
        self.embedder = ground.embedder(local_identity())
        self._memory = Memory(ground.workspace, settings, embedder=self.embedder)
        self._parts = open_components(ground.workspace, settings, "main")  # for single legs of a search

    def build(self) -> None:
        report = self._memory.index()
        assert not report.problems, report.problems
        assert report.complete
        assert not report.pending

    def sync(self) -> bool:
        report = self._memory.index()
        assert report.complete
        return True

    def update(self, path: Path) -> None:
        assert path.exists()
        report = self._memory.index()
        assert report.changed == 1, report

    def update_named(self, path: Path) -> bool:
        report = self._memory.index(paths=[path.relative_to(self._memory.workspace).as_posix()])
        assert report.changed == 1, report
        return True

    def hybrid(self, query: str, vector: Vector) -> list[Place]:
        del vector  # the embedder looks it up by the query
        answer = self._memory.search(query, sync=False)
        assert answer.mode == "hybrid", answer.notes
        return [(hit.path, hit.first_line, hit.last_line) for hit in answer.hits]

    def keyword_leg(self, query: str) -> list[Place]:
        with self._parts.index.use() as store:
            assert store is not None
            with store.reading() as snapshot:
                keywords = keyword_query(snapshot, query, TUNING)
                matches = snapshot.keyword_matches(
                    keywords.terms, limit=EVERY_SIDE, scope=EVERYTHING, led_by=keywords.led_by
                )
                return [(str(match.chunk_id), 0, 0) for match in matches]

    def vector_leg(self, vector: Vector) -> list[Place]:
        with self._parts.index.use() as store:
            assert store is not None
            with store.reading() as snapshot:
                matches = snapshot.vector_matches(vector, limit=EVERY_SIDE, scope=EVERYTHING)
                return [(str(match.chunk_id), 0, 0) for match in matches]

    def chunks(self) -> Iterator[tuple[Place, str]]:
        """Yield every chunk under its id, as the legs name it."""
        with self._parts.index.use() as store:
            assert store is not None
            with store.reading() as snapshot:
                count = snapshot.counts().chunks
                some = self.embedder.embed_query("any")
                ids = [match.chunk_id for match in snapshot.vector_matches(some, limit=count, scope=EVERYTHING)]
                for start in range(0, len(ids), 1_000):
                    for chunk_id, chunk in snapshot.chunks(ids[start : start + 1_000]).items():
                        yield (str(chunk_id), 0, 0), embedded_text(chunk.context, chunk.text)

    def disk_bytes(self) -> tuple[int, int]:
        self.close()
        files = [path for path in self._parts.folder.path.rglob("*") if path.is_file()]
        whole = sum(path.stat().st_size for path in files)
        cache = sum(path.stat().st_size for path in files if path.name.startswith(self._parts.folder.cache_path.name))
        return whole - cache, whole

    def close(self) -> None:
        self._parts.close()
        self._memory.close()


def local_identity() -> EmbedderIdentity | None:
    """Return the name of the local model's vectors, if it is installed.

    The benchmark's vectors are stored under it, so that the command can search the same index with the real model: what
    it finds means nothing, what it costs is true.
    """
    from notewell.embedding.selection import select_embedder
    from notewell.errors import EmbedderError

    try:
        embedder = select_embedder(Settings()).embedder
    except EmbedderError:
        return None
    return embedder.identity if embedder else None
