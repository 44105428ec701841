"""Copies an index into another storage engine, with the text from the files and the vectors from the index in use.

The copy is built next to what the other engine holds, resumes after a kill, and is verified before the switch.
"""

from __future__ import annotations

import time
from contextlib import ExitStack, closing
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal, cast

from notewell.errors import EmbedderError, IndexCorruptError, SettingsError, StoreError
from notewell.indexing.embedding_run import pending_pages
from notewell.indexing.indexer import Indexer
from notewell.indexing.plan import SyncPolicy
from notewell.indexing.rebuild import PROFILE, Rebuild
from notewell.indexing.sync import LOCK_WAIT_S
from notewell.memory.components import open_components
from notewell.reports import Migration
from notewell.settings import check_settings

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from notewell.memory.components import Components
    from notewell.memory.memory import Memory
    from notewell.protocols import EmbeddingCache, Matrix, Store, Vector
    from notewell.types import EmbedderIdentity, ProgressCallback

SQLITE = "sqlite"  # where to, in place of a URL
COMPARED_AT_ONCE = 500  # vectors: a megabyte or two
SAME_VECTOR = 1e-3  # both engines keep 16-bit floats


def migrate_index(memory: Memory, to: str, *, progress: ProgressCallback | None = None) -> Migration:
    """Copy the index of a memory to a PostgreSQL URL, or to `sqlite`, and let that copy answer there.

    Nothing is embedded: vectors come from the index in use, and chunks without one stay without. The index in use is
    left as it is. Which of the two is used is up to the settings (`store.url`).
    """
    started = time.monotonic()
    here = memory.settings.store
    url = "" if to == SQLITE else to
    if here.follow:
        raise SettingsError(
            "this memory only follows its tenant (store.follow = true): it does not hold the notes",
            hint="run `notewell migrate` on a machine that holds them",
        )
    if url == here.url:
        where = "that database" if url else "SQLite"
        raise SettingsError(f"the index is already kept in {where}", hint="name another place with --to")
    there = replace(memory.settings, store=replace(here, url=url, read_url=""))
    check_settings(there, workspace=memory.workspace)  # an invalid URL is said before anything is opened
    with ExitStack() as stack:
        source = open_components(memory.workspace, memory.settings, memory.agent)
        stack.callback(source.close)
        target = open_components(memory.workspace, there, memory.agent)
        stack.callback(target.close)
        found = _migrated(source, target, progress)
    return replace(found, seconds=time.monotonic() - started)


def _migrated(source: Components, target: Components, progress: ProgressCallback | None) -> Migration:
    source.folder.ensure()  # the lock of its indexes is a file in it
    with source.storage.live.use() as found:
        if found is None:
            raise StoreError(f"{source.indexes.shown} holds no index", hint="run `notewell index` first")
    if not target.indexes.writable():
        raise target.indexes.read_only_error()
    target.indexes.ensure()
    before = target.indexes.current()
    # Always the files' lock first: two processes that migrate in opposite directions must not wait for each other.
    first, second = sorted((source.indexes, target.indexes), key=lambda indexes: indexes is not source.folder)
    with first.write_lock(LOCK_WAIT_S), second.write_lock(LOCK_WAIT_S), source.storage.live.use() as older:
        if older is None:
            raise StoreError(f"{source.indexes.shown} holds no index any more", hint="run `notewell index`")
        current = target.indexes.current()
        if current is not None and current != before:  # another process has migrated while we waited for its lock
            notes: tuple[str, ...] = ("another process has just migrated this index; its copy was verified again",)
        else:
            current, notes = _copy(source, target, older, progress), ()
        with closing(target.storage.create_store(current)) as store:
            findings = _compare(older, store, target.storage.caches.open())
            with store.reading() as snapshot:
                counts = snapshot.counts()
        if findings:
            raise IndexCorruptError(
                f"the copy in {target.indexes.shown} differs: {'; '.join(findings)}",
                hint="nothing was switched; run the same command again",
            )
        target.indexes.switch_to(current)
        target.storage.live.close()
        with target.storage.live.use():  # releases the index that was replaced
            target.indexes.remove_superseded()
    return Migration(
        source=source.indexes.shown,
        target=target.indexes.shown,
        files=counts.files,
        chunks=counts.chunks,
        vectors=counts.embedded,
        pending=counts.pending,
        notes=notes,
    )


def _copy(source: Components, target: Components, older: Store, progress: ProgressCallback | None) -> Path:
    """Fill a new index next to the target's current one, or continue an interrupted copy."""
    with older.reading() as snapshot:
        identity, vectors = snapshot.embedder(), snapshot.counts().embedded
        quantization = cast("Literal['bits', 'int8']", snapshot.meta("quantization") or "bits")
        same_rules = snapshot.meta(PROFILE) == target.sync.preparation.profile
    if not same_rules:
        raise StoreError("the index was built by other rules than those in use", hint="run `notewell index` first")
    embedder = StoredVectors(identity, quantization) if identity and vectors else None
    indexer = Indexer(source.sources, target.sync.preparation, embedder, known_only=True)
    rebuild = Rebuild(target.indexes, source.storage.live, target.storage.create_store, indexer)
    path, report = rebuild.run(SyncPolicy(progress=progress))
    if report.problems:
        problem = report.problems[0]
        raise StoreError(
            f"{len(report.problems)} documents could not be copied, such as {problem.path}: {problem.reason}",
            hint="nothing was switched; fix them, or run `notewell doctor`, and run the same command again",
        )
    with closing(target.storage.create_store(path)) as store:
        _skip_what_was_skipped(older, store)
    return path


def _skip_what_was_skipped(older: Store, store: Store) -> None:
    """Mark chunks as keyword-only if they are in the source, so that they do not count as pending."""
    waiting = {chunk.embedded_hash for page in pending_pages(older) for chunk in page}
    known = older.embedded_hashes()
    for page in pending_pages(store):
        store.skip_vectors(
            [chunk.id for chunk in page if chunk.embedded_hash in known and chunk.embedded_hash not in waiting]
        )


def _compare(older: Store, store: Store, cache: EmbeddingCache | None) -> list[str]:
    """Return how the copy differs, and put its vectors into the target's cache."""
    import numpy as np

    findings = list(store.verify())
    shared = sorted(older.embedded_hashes() & store.embedded_hashes())
    with older.reading() as one, store.reading() as other:
        identity = one.embedder()
        for start in range(0, len(shared) if identity else 0, COMPARED_AT_ONCE):
            hashes = shared[start : start + COMPARED_AT_ONCE]
            expected, found = one.known_vectors(hashes), other.known_vectors(hashes)
            if missing := len(expected.keys() - found.keys()):
                findings.append(f"{missing} vectors are missing")
            if any(np.abs(expected[key] - found[key]).max() > SAME_VECTOR for key in expected.keys() & found.keys()):
                findings.append("vectors differ")
            if cache and identity and expected:
                absent = expected.keys() - cache.known(identity, list(expected))
                cache.put_many(identity, {key: expected[key] for key in absent})
    return list(dict.fromkeys(findings))


@dataclass(frozen=True, slots=True)
class StoredVectors:
    """Implements `Embedder` for vectors that are all known: it names them and embeds nothing."""

    identity: EmbedderIdentity
    quantization: Literal["bits", "int8"]

    @property
    def cosine_range(self) -> tuple[float, float]:
        return (0.0, 1.0)

    def knows(self, text: str) -> bool:
        return bool(text)

    def embed_documents(self, texts: Sequence[str]) -> Matrix:
        raise EmbedderError(f"{len(texts)} texts would have to be embedded", hint="run `notewell index` first")

    def embed_query(self, text: str) -> Vector:
        raise EmbedderError(f"{text[:40]!r} would have to be embedded", hint="search when the index is copied")

    def close(self) -> None:
        """Nothing is held open."""
