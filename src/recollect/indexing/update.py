"""The state folder and the files in, an index that matches them out: updated where possible, else rebuilt beside."""

from __future__ import annotations

from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from recollect.errors import DiskFullError, IndexBusyError, IndexCorruptError, IndexReadOnlyError, StoreError
from recollect.indexing.indexer import NEVER, Deadline, Indexer
from recollect.indexing.plan import plan_changes
from recollect.types import IndexReport

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Sequence
    from pathlib import Path

    from recollect.indexing.preparation import Preparation
    from recollect.protocols import Embedder, EmbeddingCache, Source, Store
    from recollect.store.live_index import LiveIndex
    from recollect.store.state_folder import StateFolder
    from recollect.types import ProgressCallback

PROFILE = "profile"  # meta key: the rules by which the index was built
BUILDING = "building"  # meta key: "yes" until a rebuild is complete, so that it is never taken for an index
PATIENCE_S = 30.0  # how long `index` waits for another process that is indexing


@dataclass(frozen=True, slots=True)
class IndexUpdate:
    """Everything an update needs; `run` may be called again and again."""

    folder: StateFolder
    live: LiveIndex
    create_store: Callable[[Path], Store]
    sources: Sequence[Source]
    preparation: Preparation
    embedder: Embedder | None
    cache: EmbeddingCache | None

    def run(
        self,
        *,
        paths: Collection[str] | None = None,
        force: bool = False,
        progress: ProgressCallback | None = None,
    ) -> IndexReport:
        """Bring the index up to date, waiting for another process if need be; rebuild it if it has to be.

        With `paths` only those notes are looked at, unless the whole must be rebuilt.
        """
        if not self.folder.writable():
            raise IndexReadOnlyError(
                f"cannot write to {self.folder.path}", hint="set store.path to a folder you can write to"
            )
        with self.folder.write_lock(PATIENCE_S):
            return self._healed(lambda: self._run(paths, force=force, progress=progress))

    def run_within(self, seconds: float) -> IndexReport:
        """Do what can be done in `seconds`; never waits for another process, never rebuilds."""
        if self._is_up_to_date():
            return IndexReport()
        if not self.folder.writable():
            return IndexReport(complete=False, notes=("the index is read-only: changes to the notes are not seen",))
        try:
            with self.folder.write_lock(0):
                return self._healed(lambda: self._run_within(Deadline.after(seconds)))
        except IndexBusyError:
            return IndexReport(
                complete=False, notes=("another process is indexing: its newest changes may be missing",)
            )
        except DiskFullError as error:
            return IndexReport(complete=False, notes=(f"new notes are not indexed: {error.message}; {error.hint}",))

    def heal(self, error: IndexCorruptError, seconds: float) -> IndexReport:
        """Set aside the index that a search found damaged, unless another process did, and begin a new one."""
        if not self.folder.writable():
            raise error
        with self.folder.write_lock(PATIENCE_S):
            current = self.folder.current()
            notes: tuple[str, ...] = ()
            if current is not None and error.path in {None, current}:
                notes = (self._set_aside(error, current),)
            report = self._healed(lambda: self._run_within(Deadline.after(seconds)))
        return replace(report, notes=(*notes, *report.notes))

    def _set_aside(self, error: IndexCorruptError, path: Path) -> str:
        kept = self.folder.set_aside(path)
        return f"{error.message}; it was kept as {kept.name} and the index is built anew from the notes"

    def _healed(self, work: Callable[[], IndexReport]) -> IndexReport:
        """Do the work; if the index turns out damaged or foreign, keep it under another name and begin a new one."""
        try:
            return work()
        except IndexCorruptError as error:
            damaged = error.path or self.folder.current()
            if damaged is None or damaged.parent != self.folder.path or not damaged.exists():
                raise
            note = self._set_aside(error, damaged)
            report = work()
            return replace(report, notes=(note, *report.notes))

    def _run(self, paths: Collection[str] | None, *, force: bool, progress: ProgressCallback | None) -> IndexReport:
        reason = self._create_or_reason(force=force)
        report = self._rebuild(progress) if reason else self._incremental(self.embedder, NEVER, progress, paths)
        self.folder.remove_superseded()
        return replace(report, notes=(f"rebuilt: {reason}", *report.notes)) if reason else report

    def _run_within(self, deadline: Deadline) -> IndexReport:
        reason = self._create_or_reason(force=False)
        if reason == REASON_PROFILE:
            return IndexReport(complete=False, notes=(f"the index is out of date ({reason}): run `recollect index`",))
        # Vectors of another embedder: keep the text fresh, leave the vectors alone.
        return self._incremental(None if reason else self.embedder, deadline, None)

    def rebuild_reason(self, store: Store) -> str:
        """Say why the store cannot simply be updated; empty when it can."""
        with store.reading() as snapshot:
            profile = snapshot.meta(PROFILE)
            built_with = snapshot.embedder()
            vectors = snapshot.counts().embedded > 0
        if profile != self.preparation.profile:
            return REASON_PROFILE
        if self.embedder and vectors and built_with != self.embedder.identity:
            return REASON_EMBEDDER
        return ""

    def _is_up_to_date(self) -> bool:
        """Say whether nothing is to be done, without the lock: most searches find it so."""
        try:
            with self.live.use() as store:
                if store is None or self.rebuild_reason(store):
                    return False
                with store.reading() as snapshot:
                    stored, pending = snapshot.documents(), snapshot.counts().pending
        except IndexCorruptError:
            return False
        listings = [source.list() for source in self.sources]
        plan = plan_changes((stamp for listing in listings for stamp in listing.files), stored)
        return plan.is_empty and not (self.embedder and pending)

    def _create_or_reason(self, *, force: bool) -> str:
        if force and self.folder.current():
            return "asked for"
        with self.live.use() as store:
            if store is not None:
                return self.rebuild_reason(store)
        path = self.folder.next_index_path()
        store = self.create_store(path)
        store.write_meta({PROFILE: self.preparation.profile})
        store.close()
        self.folder.switch_to(path)
        return ""

    def _incremental(
        self,
        embedder: Embedder | None,
        deadline: Deadline,
        progress: ProgressCallback | None,
        paths: Collection[str] | None = None,
    ) -> IndexReport:
        with self.live.use() as store:
            if store is None:
                raise StoreError("the index vanished while it was being updated", hint="run `recollect index` again")
            return self._indexer(store, embedder).run(paths=paths, deadline=deadline, progress=progress)

    def _rebuild(self, progress: ProgressCallback | None) -> IndexReport:
        """Build beside the live index, which answers throughout, then switch; a killed rebuild is gone on with."""
        path, store = self._building_store()
        try:
            with self._older_store() as older:
                report = self._indexer(store, self.embedder, older).run(progress=progress)
            store.write_meta({BUILDING: ""})
        finally:
            store.close()
        self.folder.switch_to(path)
        return replace(report, rebuilt=True)

    def _building_store(self) -> tuple[Path, Store]:
        for path in self.folder.unfinished():
            try:
                store = self.create_store(path)
                with store.reading() as snapshot:
                    resumable = snapshot.meta(BUILDING) == "yes"
                if resumable and not self.rebuild_reason(store):
                    return path, store
                store.close()
            except StoreError:
                continue  # remove_superseded() takes it away at the end
        path = self.folder.next_index_path()
        store = self.create_store(path)
        store.write_meta({PROFILE: self.preparation.profile, BUILDING: "yes"})
        return path, store

    @contextmanager
    def _older_store(self) -> Iterator[Store | None]:
        """Yield the live store if its vectors can be taken over; one that cannot be read is simply replaced."""
        with ExitStack() as stack:
            try:
                store = stack.enter_context(self.live.use())
                usable = store is not None and self._same_embedder(store)
            except StoreError:
                store, usable = None, False
            yield store if usable else None

    def _same_embedder(self, store: Store) -> bool:
        with store.reading() as snapshot:
            return self.embedder is not None and snapshot.embedder() == self.embedder.identity

    def _indexer(self, store: Store, embedder: Embedder | None, older: Store | None = None) -> Indexer:
        return Indexer(store, self.sources, self.preparation, embedder, self.cache, older)


REASON_PROFILE = "it was built by other rules of chunking or word splitting"
REASON_EMBEDDER = "its vectors are those of another embedder"
