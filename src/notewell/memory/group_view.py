"""Narrows the parts of a memory to what a group may see, so that no code above can reveal the rest.

Hidden notes and conversations are not in the sources, and their chunks not in the index, not even in counts. There is
one index for everyone: a sync started by a group also covers private notes, and its report leaves them out.
"""

from __future__ import annotations

from collections import Counter
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

from notewell.errors import BackendError, NotewellError
from notewell.indexing.plan import EMBEDDER, EVERYTHING
from notewell.indexing.sync import BUSY, IN_PROGRESS, READ_ONLY, REBUILDING
from notewell.types import Counts, IndexReport, IndexState, Problem

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
    from contextlib import AbstractContextManager

    from notewell.errors import IndexCorruptError
    from notewell.indexing.background_sync import BackgroundSync, Follower
    from notewell.indexing.plan import SyncPolicy
    from notewell.indexing.preparation import Preparation
    from notewell.indexing.sync import Sync
    from notewell.protocols import ReadableStore, Snapshot, Source, Store
    from notewell.search.options import SearchRequest
    from notewell.search.qmd import Qmd
    from notewell.store.live_index import ReadAccess, StoreAccess
    from notewell.types import PendingChunk, Scope, SearchAnswer, SourceName, StoredDocument

TOLD = frozenset({IN_PROGRESS, BUSY, READ_ONLY, REBUILDING})  # notes that reveal nothing about what is indexed
FAILED = ("new notes are not indexed", "indexing in the background failed")
NOT_TOLD = "some changes are not indexed; the owner sees why with `notewell status`"
INCONSISTENT = "the index is inconsistent"
NOT_FOLLOWED = "a conversation could not be indexed; the owner sees why with `notewell status`"
QMD_FAILED = "the owner sees why with `notewell status`"
EMBEDDER_FAILED = "embedding failed; the owner sees why with `notewell index`"


class GroupIndex:
    """Opens the index for reading without what is hidden.

    `hides` tells whether a note became private after it was indexed. That check reads every note, so a search skips it
    and checks only the notes that it found.
    """

    def __init__(self, live: StoreAccess, scope: Scope, hides: Callable[[str], bool] | None = None) -> None:
        self._live = live
        self._scope = scope
        self._hides = hides

    @contextmanager
    def use(self) -> Iterator[ReadableStore | None]:
        """Yield the current store, or None when nothing has been indexed yet."""
        with self._live.use() as store:
            yield GroupStore(store, self._narrowed(store)) if store else None

    def _narrowed(self, store: Store) -> Scope:
        if self._hides is None:
            return self._scope
        with store.reading_within(self._scope) as snapshot:
            indexed = [path for _, path in snapshot.documents("memory")]
        return replace(self._scope, without=frozenset(filter(self._hides, indexed)))

    def close(self) -> None:
        """Close what is open; the next use opens it again."""
        self._live.close()


class GroupStore:
    """Reads a store within a scope. Figures that exist only for the whole store are left out."""

    def __init__(self, store: Store, scope: Scope) -> None:
        self._store = store
        self._scope = scope

    @property
    def read_only(self) -> bool:
        return self._store.read_only

    @property
    def notes(self) -> Sequence[str]:
        return self._store.notes

    def reading(self) -> AbstractContextManager[Snapshot]:
        """Open a snapshot of what may be seen."""
        return self._store.reading_within(self._scope)

    def pending(self, limit: int, *, after: int = 0) -> Sequence[PendingChunk]:
        """Return chunks without a vector, except hidden ones."""
        while found := self._store.pending(limit, after=after):
            with self.reading() as snapshot:
                seen = snapshot.places([chunk.id for chunk in found])
            if seen:
                return [chunk for chunk in found if chunk.id in seen]
            after = found[-1].id
        return []

    def embedded_hashes(self) -> set[str]:
        """Return none: a hash would reveal that a text exists."""
        return set()

    def verify(self) -> Sequence[str]:
        """Return that something is wrong, but not what: findings may name hidden notes."""
        return (INCONSISTENT,) if self._store.verify() else ()

    def size_bytes(self) -> int:
        """Return 0: the size of the file includes hidden notes."""
        return 0


class GroupSync:
    """Syncs the whole index, and reports only on the part that the group may see."""

    def __init__(self, whole: Sync, index: ReadAccess, sources: Sequence[Source]) -> None:
        self._whole = whole
        self._index = index
        self.sources = sources
        self.follower = GroupFollower(whole.follower, sources)

    @property
    def preparation(self) -> Preparation:
        return self._whole.preparation

    @property
    def background(self) -> BackgroundSync:
        return self._whole.background

    def run(self, policy: SyncPolicy = EVERYTHING) -> IndexReport:
        """Sync the index; progress is not reported, because it counts hidden chunks."""
        before, _ = self._look()
        return self._shown(self._whole.run(replace(policy, progress=None)), before, policy.paths)

    def before_search(self, budget_s: float, *, embed: bool) -> IndexReport:
        """Index what is new before a search."""
        done = self._whole.before_search(budget_s, embed=embed)
        return IndexReport(complete=done.complete, notes=_told(done.notes))

    def replace_corrupt(self, error: IndexCorruptError, budget_s: float, *, embed: bool) -> IndexReport:
        """Start a new index in place of one that is corrupt."""
        done = self._whole.replace_corrupt(error, budget_s, embed=embed)
        return IndexReport(complete=done.complete, notes=_told(done.notes))

    def shown_to(self, on_sync: Callable[[IndexReport | Exception], None] | None) -> Callable[..., None] | None:
        """Return a listener that learns only whether a sync succeeded."""
        if on_sync is None:
            return None

        def told(outcome: IndexReport | Exception) -> None:
            if isinstance(outcome, Exception):
                on_sync(NotewellError(NOT_TOLD))
            else:
                on_sync(IndexReport(complete=outcome.complete, seconds=outcome.seconds, notes=_told(outcome.notes)))

        return told

    def _look(self) -> tuple[Mapping[tuple[SourceName, str], StoredDocument], Counts]:
        with self._index.use() as store:
            if store is None:
                return {}, Counts(0, 0, 0, 0)
            with store.reading() as snapshot:
                return snapshot.documents(), snapshot.counts()

    def _shown(
        self, done: IndexReport, before: Mapping[tuple[SourceName, str], StoredDocument], paths: Collection[str] | None
    ) -> IndexReport:
        """Return the report of a run for the documents that the group could see before it and can see now."""
        after, counts = self._look()
        asked = None if paths is None else set(paths)
        common = [key for key in before.keys() & after.keys() if asked is None or key[1] in asked]
        changed = sum(before[key].content_hash != after[key].content_hash for key in common)
        added = Counter(after[key].content_hash for key in after.keys() - before.keys())
        removed = Counter(before[key].content_hash for key in before.keys() - after.keys())
        renamed = (added & removed).total()
        named = {path for _, path in after}
        return IndexReport(
            added=added.total() - renamed,
            changed=changed,
            renamed=renamed,
            removed=removed.total() - renamed,
            unchanged=len(common) - changed,
            pending=counts.pending,
            rebuilt=done.rebuilt,
            complete=done.complete,
            seconds=done.seconds,
            problems=(
                *(Problem(EMBEDDER, EMBEDDER_FAILED) for problem in done.problems if problem.path == EMBEDDER),
                *(problem for problem in done.problems if problem.path in named),
            ),
            notes=_told(done.notes),
        )


class GroupFollower:
    """Announces only conversations that the group may see."""

    def __init__(self, whole: Follower, sources: Sequence[Source]) -> None:
        self._whole = whole
        self._sources = sources

    @property
    def problem(self) -> str:
        return NOT_FOLLOWED if self._whole.problem else ""

    def announce(self, path: str) -> None:
        """Announce that a transcript has grown."""
        if any(source.name == "sessions" and source.exists(path) for source in self._sources):
            self._whole.announce(path)

    def stop(self) -> None:
        """Finish what is in progress."""
        self._whole.stop()


def search_qmd_for_group(qmd: Qmd, notes: Source, request: SearchRequest) -> SearchAnswer:
    """Search with QMD, whose index is shared, and remove hidden notes and its figures from the answer."""
    try:
        answer = qmd.search(request)
    except BackendError:
        raise BackendError(QMD_FAILED) from None  # what it printed may name any note
    hits = tuple(hit for hit in answer.hits if notes.exists(hit.path))
    files = notes.list().files
    updated_at = qmd.state().updated_at
    index = IndexState(len(files), 0, 0, stale=any(stamp.ctime_ns / 1e9 > updated_at for stamp in files))
    return replace(answer, hits=hits, index=index, notes=())


def _told(notes: Sequence[str]) -> tuple[str, ...]:
    """Return the notes of a sync that reveal nothing about what is hidden."""
    told = [NOT_TOLD if note.startswith(FAILED) else note for note in notes if note in TOLD or note.startswith(FAILED)]
    return tuple(dict.fromkeys(told))
