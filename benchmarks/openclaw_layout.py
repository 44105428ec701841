"""The notes in, answers out of the layout notewell started from: text ids, vectors as JSON, FTS5 with its own text.

It is written down as it is described, with one kindness: each file is written in one transaction.
"""

from __future__ import annotations

import hashlib
import json
import re
import time
from typing import TYPE_CHECKING, Any

import apsw
import numpy as np
import sqlite_vec

from benchmarks.contestant import CANDIDATES, Ground, Place, merged

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from notewell.protocols import Vector

MODEL = "mixture"
PROVIDER = "bench"
CHUNK_CHARS = 1_600  # 400 tokens of four characters
OVERLAP_CHARS = 320
DECIMALS = 8  # of a vector's numbers in JSON
DELETES_UP_TO = 20_000  # chunks; see `build`
_TOKEN = re.compile(r"[A-Za-z0-9_]+")

_SCHEMA = """
CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE files (
  path TEXT PRIMARY KEY, source TEXT NOT NULL DEFAULT 'memory', hash TEXT NOT NULL, mtime INTEGER NOT NULL,
  size INTEGER NOT NULL
);
CREATE TABLE chunks (
  id TEXT PRIMARY KEY, path TEXT NOT NULL, source TEXT NOT NULL DEFAULT 'memory', start_line INTEGER NOT NULL,
  end_line INTEGER NOT NULL, hash TEXT NOT NULL, model TEXT NOT NULL, text TEXT NOT NULL, embedding TEXT NOT NULL,
  updated_at INTEGER NOT NULL
);
CREATE TABLE embedding_cache (
  provider TEXT NOT NULL, model TEXT NOT NULL, provider_key TEXT NOT NULL, hash TEXT NOT NULL, embedding TEXT NOT NULL,
  dims INTEGER, updated_at INTEGER NOT NULL, PRIMARY KEY (provider, model, provider_key, hash)
);
CREATE INDEX idx_chunks_path ON chunks(path);
CREATE INDEX idx_chunks_source ON chunks(source);
CREATE INDEX idx_embedding_cache_updated_at ON embedding_cache(updated_at);
CREATE VIRTUAL TABLE chunks_fts USING fts5(
  text, id UNINDEXED, path UNINDEXED, source UNINDEXED, model UNINDEXED, start_line UNINDEXED, end_line UNINDEXED
);
CREATE VIRTUAL TABLE chunks_vec USING vec0(id TEXT PRIMARY KEY, embedding FLOAT[384]);
"""
_VECTOR_SQL = """
SELECT c.id, c.path, c.start_line, c.end_line, c.text, c.source, vec_distance_cosine(v.embedding, ?) AS dist
  FROM chunks_vec v JOIN chunks c ON c.id = v.id
 WHERE c.model = ? AND c.source IN ('memory') ORDER BY dist ASC LIMIT ?
"""
_KEYWORD_SQL = """
SELECT id, path, source, start_line, end_line, text, bm25(chunks_fts) AS rank
  FROM chunks_fts WHERE chunks_fts MATCH ? AND model = ? AND source IN ('memory') ORDER BY rank ASC LIMIT ?
"""


class OpenClawLayout:
    """Implements `Contestant`. `as_blob` keeps the vectors in the chunks and the cache as bytes instead of JSON."""

    def __init__(self, ground: Ground, *, as_blob: bool = False) -> None:
        self.name = "openclaw-blob" if as_blob else "openclaw-json"
        self._ground = ground
        self._as_blob = as_blob
        self.embedder = ground.embedder()
        self._path = ground.state(self.name) / "index.sqlite"
        is_new = not self._path.exists()
        self._db = apsw.Connection(str(self._path))
        self._db.enable_load_extension(True)
        self._db.load_extension(sqlite_vec.loadable_path())
        if is_new:
            for statement in _SCHEMA.split(";"):
                self._db.execute(statement)
        self._deletes_first = True

    # --- writing ---------------------------------------------------------------------------------

    def build(self) -> None:
        """Index every note.

        The layout deletes the rows of every file before it inserts them, new or not, and finds those of the FTS5 table
        by scanning it. Beyond some size that never ends, so a first build of so many notes leaves the deletes out.
        """
        files = list(self._files())
        self._deletes_first = len(files) * 7 <= DELETES_UP_TO
        for path in files:
            self._index_if_changed(path)
        self._deletes_first = True

    def sync(self) -> bool:
        """Read and hash every file; index those whose hash is not the stored one."""
        stored = {path for (path,) in self._rows("SELECT path FROM files WHERE source = 'memory'")}
        for path in self._files():
            stored.discard(self._index_if_changed(path))
        assert not stored, "the benchmark removes no file"
        return True

    def update(self, path: Path) -> None:
        """A change is found by the same reading and hashing of everything, whichever file it was."""
        assert path.exists()
        self.sync()

    def _files(self) -> Iterator[Path]:
        yield self._ground.workspace / "MEMORY.md"
        yield from sorted((self._ground.workspace / "memory").rglob("*.md"))

    def _index_if_changed(self, path: Path) -> str:
        info = path.stat()
        text = path.read_text(encoding="utf-8")
        digest = _sha256(text)
        relative = path.relative_to(self._ground.workspace).as_posix()
        known = self._rows("SELECT hash FROM files WHERE path = ? AND source = ?", (relative, "memory"))
        if not known or known[0][0] != digest:
            with self._db:
                self._index_file(relative, text)
                self._db.execute(
                    "INSERT INTO files (path, source, hash, mtime, size) VALUES (?, 'memory', ?, ?, ?)"
                    " ON CONFLICT(path) DO UPDATE"
                    " SET hash = excluded.hash, mtime = excluded.mtime, size = excluded.size",
                    (relative, digest, info.st_mtime_ns // 1_000_000, info.st_size),
                )
        return relative

    def _index_file(self, path: str, text: str) -> None:
        chunks = [(first, last, body, _sha256(body)) for first, last, body in chunk_lines(text) if body.strip()]
        vectors = self._embedded([(digest, body) for _, _, body, digest in chunks])
        now = time.time_ns() // 1_000_000
        if self._deletes_first:
            self._db.execute(
                "DELETE FROM chunks_vec WHERE id IN (SELECT id FROM chunks WHERE path = ? AND source = 'memory')",
                (path,),
            )
            self._db.execute("DELETE FROM chunks_fts WHERE path = ? AND source = 'memory' AND model = ?", (path, MODEL))
            self._db.execute("DELETE FROM chunks WHERE path = ? AND source = 'memory'", (path,))
        for first, last, body, digest in chunks:
            stored, blob = vectors[digest]
            key = _sha256(f"memory:{path}:{first}:{last}:{digest}:{MODEL}")
            self._db.execute(
                "INSERT INTO chunks VALUES (?, ?, 'memory', ?, ?, ?, ?, ?, ?, ?) ON CONFLICT(id) DO UPDATE SET"
                " hash = excluded.hash, text = excluded.text, embedding = excluded.embedding",
                (key, path, first, last, digest, MODEL, body, stored, now),
            )
            self._db.execute("DELETE FROM chunks_vec WHERE id = ?", (key,))
            self._db.execute("INSERT INTO chunks_vec (id, embedding) VALUES (?, ?)", (key, blob))
            self._db.execute(
                "INSERT INTO chunks_fts (text, id, path, source, model, start_line, end_line)"
                " VALUES (?, ?, ?, 'memory', ?, ?, ?)",
                (body, key, path, MODEL, first, last),
            )

    def _embedded(self, texts: list[tuple[str, str]]) -> dict[str, tuple[Any, bytes]]:
        """Return by hash the vectors as stored and as bytes; those the cache does not know are embedded and kept."""
        found: dict[str, tuple[Any, bytes]] = {}
        for digest, _ in texts:
            row = self._rows(
                "SELECT embedding FROM embedding_cache"
                " WHERE provider = ? AND model = ? AND provider_key = '' AND hash = ?",
                (PROVIDER, MODEL, digest),
            )
            if row:
                stored = row[0][0]
                found[digest] = stored, stored if self._as_blob else np.array(json.loads(stored), "<f4").tobytes()
        fresh = {digest: body for digest, body in texts if digest not in found}
        if fresh:
            matrix = self.embedder.embed_documents(list(fresh.values())).astype("<f4")
            for digest, row in zip(fresh, matrix, strict=True):
                found[digest] = self._stored_form(row), row.tobytes()
            self._db.executemany(
                "INSERT OR REPLACE INTO embedding_cache VALUES (?, ?, '', ?, ?, 384, ?)",
                [(PROVIDER, MODEL, digest, found[digest][0], time.time_ns() // 1_000_000) for digest in fresh],
            )
        return found

    def _stored_form(self, row: Vector) -> Any:
        if self._as_blob:
            return row.tobytes()
        return json.dumps(np.round(row.astype(np.float64), DECIMALS).tolist(), separators=(",", ":"))

    # --- reading ---------------------------------------------------------------------------------

    def hybrid(self, query: str, vector: Vector) -> list[Place]:
        return merged(self._by_vector(vector), self._by_keyword(query))

    def keyword_leg(self, query: str) -> list[Place]:
        return [place for place, _ in self._by_keyword(query)]

    def vector_leg(self, vector: Vector) -> list[Place]:
        return [place for place, _ in self._by_vector(vector)]

    def _by_vector(self, vector: Vector) -> list[tuple[Place, float]]:
        rows = self._rows(_VECTOR_SQL, (vector.astype("<f4").tobytes(), MODEL, CANDIDATES))
        return [((path, first, last), 1 - distance) for _, path, first, last, _, _, distance in rows]

    def _by_keyword(self, query: str) -> list[tuple[Place, float]]:
        tokens = _TOKEN.findall(query)
        if not tokens:
            return []
        expression = " AND ".join(f'"{token}"' for token in tokens)
        rows = self._rows(_KEYWORD_SQL, (expression, MODEL, CANDIDATES))
        # bm25() is negative, so max() makes every score 1: that is how the layout is used.
        return [((path, first, last), 1 / (1 + max(0.0, rank))) for _, path, _, first, last, _, rank in rows]

    def chunks(self) -> Iterator[tuple[Place, str]]:
        for path, first, last, text in self._rows("SELECT path, start_line, end_line, text FROM chunks"):
            yield (path, first, last), text

    def disk_bytes(self) -> tuple[int, int]:
        self._db.close()
        whole = self._path.stat().st_size
        with apsw.Connection(str(self._path)) as db:
            cache = db.execute("SELECT sum(pgsize) FROM dbstat WHERE name LIKE '%embedding_cache%'").get
        assert isinstance(cache, int)
        return whole - cache, whole

    def _rows(self, sql: str, values: tuple[Any, ...] = ()) -> list[Any]:
        return self._db.execute(sql, values).fetchall()

    def close(self) -> None:
        self._db.close()


def chunk_lines(text: str) -> Iterator[tuple[int, int, str]]:
    """Yield (first line, last line, text): lines up to a limit, the last ones again in the next chunk."""
    current: list[tuple[int, str]] = []
    size = 0
    for number, line in enumerate(text.split("\n"), start=1):
        for start in range(0, max(1, len(line)), CHUNK_CHARS):
            segment = line[start : start + CHUNK_CHARS]
            if current and size + len(segment) + 1 > CHUNK_CHARS:
                yield current[0][0], current[-1][0], "\n".join(part for _, part in current)
                current = _overlap(current)
                size = sum(len(part) + 1 for _, part in current)
            current.append((number, segment))
            size += len(segment) + 1
    if current:
        yield current[0][0], current[-1][0], "\n".join(part for _, part in current)


def _overlap(lines: list[tuple[int, str]]) -> list[tuple[int, str]]:
    kept, size = 0, 0
    while kept < len(lines) and size < OVERLAP_CHARS:
        kept += 1
        size += len(lines[-kept][1]) + 1
    return lines[len(lines) - kept :]


def _sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
