"""The state folder and the files in, an index that matches them out: updated where possible, else rebuilt beside."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from recollect.errors import IndexCorruptError, IndexReadOnlyError, StoreError
from recollect.indexing.indexer import NEVER, Deadline, Indexer
from recollect.types import IndexReport

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
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

    def run(self, *, force: bool = False, progress: ProgressCallback | None = None) -> IndexReport:
        """Bring the index up to date, waiting for another process if need be; rebuild it if it has to be."""
        if not self.folder.writable():
            raise IndexReadOnlyError(
                f"cannot write to {self.folder.path}", hint="set store.path to a folder you can write to"
            )
        with self.folder.write_lock(PATIENCE_S):
            notes = self._set_damage_aside()
            reason = self._create_or_reason(force=force)
            report = self._rebuild(progress) if reason else self._incremental(self.embedder, NEVER, progress)
            self.folder.remove_superseded()
        return replace(report, notes=(*notes, *([f"rebuilt: {reason}"] if reason else []), *report.notes))

    def run_within(self, seconds: float) -> IndexReport:
        """Do what can be done in `seconds`; never waits for another process, never rebuilds."""
        if not self.folder.writable():
            return IndexReport(complete=False, notes=("the index is read-only: changes to the notes are not seen",))
        try:
            with self.folder.write_lock(0):
                notes = self._set_damage_aside()
                reason = self._create_or_reason(force=False)
                embedder, deadline = self.embedder, Deadline.after(seconds)
                if reason == REASON_PROFILE:
                    note = f"the index is out of date ({reason}): run `recollect index`"
                    return IndexReport(complete=False, notes=(*notes, note))
                if reason:  # vectors of another embedder: keep the text fresh, leave the vectors alone
                    embedder = None
                report = self._incremental(embedder, deadline, None)
        except TimeoutError:
            return IndexReport(
                complete=False, notes=("another process is indexing: its newest changes may be missing",)
            )
        return replace(report, notes=(*notes, *report.notes))

    def rebuild_reason(self, store: Store) -> str:
        """Say why the store cannot simply be updated; empty when it can."""
        with store.reading() as snapshot:
            profile = snapshot.meta(PROFILE)
            built_with = snapshot.embedder()
            vectors = snapshot.counts().chunks > snapshot.counts().pending
        if profile != self.preparation.profile:
            return REASON_PROFILE
        if self.embedder and vectors and built_with != self.embedder.identity:
            return REASON_EMBEDDER
        return ""

    def _create_or_reason(self, *, force: bool) -> str:
        with self.live.use() as store:
            if store is not None:
                return "asked for" if force else self.rebuild_reason(store)
        path = self.folder.next_index_path()
        store = self.create_store(path)
        store.write_meta({PROFILE: self.preparation.profile})
        store.close()
        self.folder.switch_to(path)
        return ""

    def _set_damage_aside(self) -> list[str]:
        """Open the index; if it is damaged or foreign keep it under another name, so that a new one can be built."""
        path = self.folder.current()
        if path is None:
            return []
        try:
            with self.live.use():
                return []
        except IndexCorruptError as error:
            aside = self.folder.set_aside(path)
            return [f"{error.message}; it was kept as {aside.name} and the index is built anew from the notes"]

    def _incremental(
        self, embedder: Embedder | None, deadline: Deadline, progress: ProgressCallback | None
    ) -> IndexReport:
        with self.live.use() as store:
            if store is None:
                raise StoreError("the index vanished while it was being updated", hint="run `recollect index` again")
            return self._indexer(store, embedder).run(deadline=deadline, progress=progress)

    def _rebuild(self, progress: ProgressCallback | None) -> IndexReport:
        """Build beside the live index, which answers throughout, then switch; a killed rebuild is gone on with."""
        path, store = self._building_store()
        try:
            with self.live.use() as live:
                older = live if live and self._same_embedder(live) else None
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

    def _same_embedder(self, store: Store) -> bool:
        with store.reading() as snapshot:
            return self.embedder is not None and snapshot.embedder() == self.embedder.identity

    def _indexer(self, store: Store, embedder: Embedder | None, older: Store | None = None) -> Indexer:
        return Indexer(store, self.sources, self.preparation, embedder, self.cache, older)


REASON_PROFILE = "it was built by other rules of chunking or word splitting"
REASON_EMBEDDER = "its vectors are those of another embedder"
