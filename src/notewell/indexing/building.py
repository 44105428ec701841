"""The files in, a complete and verified index beside the live one out; one that was cut short is gone on with."""

from __future__ import annotations

from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING

from notewell.errors import IndexBusyError, IndexCorruptError, StoreError
from notewell.files.faults import reach

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from notewell.indexing.deadline import Deadline
    from notewell.indexing.indexer import Indexer
    from notewell.protocols import Embedder, Source, Store
    from notewell.store.live_index import LiveIndex
    from notewell.store.state_folder import StateFolder
    from notewell.types import IndexReport, ProgressCallback

PROFILE = "profile"  # meta key: the rules by which the index was built
BUILDING = "building"  # meta key: "yes" until a rebuild is complete, so that it is never taken for an index
REASON_PROFILE = "it was built by other rules of chunking or word splitting"
REASON_EMBEDDER = "its vectors are those of another embedder"
ROOM_SHARE = 1.1  # a new index is about as large as the old one; its log comes on top
ROOM_LOG_BYTES = 4_096_000  # the size at which the log is folded back; that of a small index stays below its own
MOST_UNREAD = 2  # a new index with less than half of the notes is a failing disk's, not the memory's


def rebuild_reason(store: Store, profile: str, embedder: Embedder | None) -> str:
    """Say why the store cannot simply be updated; empty when it can."""
    with store.reading() as snapshot:
        built_by = snapshot.meta(PROFILE)
        built_with = snapshot.embedder()
        vectors = snapshot.counts().embedded > 0
    if built_by != profile:
        return REASON_PROFILE
    if embedder and vectors and built_with != embedder.identity:
        return REASON_EMBEDDER
    return ""


@dataclass(frozen=True, slots=True)
class Building:
    """Builds one index; the live one answers throughout and lends its vectors."""

    folder: StateFolder
    live: LiveIndex
    create_store: Callable[[Path], Store]
    sources: Sequence[Source]
    profile: str
    embedder: Embedder | None
    indexer: Callable[[Store, Store | None], Indexer]  # of a new store, and of the one whose vectors it may take over

    def run(
        self, progress: ProgressCallback | None, deadline: Deadline, *, trust_old: bool
    ) -> tuple[Path, IndexReport]:
        """Return a complete and verified index beside the live one; one that was killed or stopped is gone on with."""
        reach("rebuild.begin")
        self._check_room()
        path, store = self._begun_store()
        try:
            with self._older_store() if trust_old else nullcontext() as older:
                report = self.indexer(store, older).run(progress=progress, deadline=deadline)
            if deadline.passed and not report.complete:
                raise IndexBusyError("the rebuild was stopped", hint="run `notewell index` to go on with it")
            self._verify(path, store)
            reach("rebuild.finish")
            if (report.complete and not report.jobs) or not self.other_embedder():
                store.write_meta({BUILDING: ""})
        finally:
            store.close()
        return path, report

    def other_embedder(self) -> str:
        """Return whose vectors the live index holds, if they are not those asked for now; else nothing."""
        with ExitStack() as stack:
            try:
                store = stack.enter_context(self.live.use())
                if store is None or self.embedder is None:
                    return ""
                with store.reading() as snapshot:
                    built_with, vectors = snapshot.embedder(), snapshot.counts().embedded
            except StoreError:
                return ""
        return str(built_with) if vectors and built_with != self.embedder.identity else ""

    def _verify(self, path: Path, store: Store) -> None:
        """Raise unless the new index is fit to answer in place of the old one."""
        from notewell.indexing.verification import self_check  # only rebuilds need it

        reach("rebuild.verify")
        findings = self_check(store)
        if findings:
            raise IndexCorruptError(f"{path}: the new index is not right: {'; '.join(findings)}", path=path)
        with store.reading() as snapshot:
            indexed = snapshot.counts().files
        listed = sum(len(source.list().files) for source in self.sources)
        if indexed * MOST_UNREAD < listed:
            raise StoreError(
                f"only {indexed} of {listed} notes could be read: the index as it was stays in use",
                hint="check the disk that holds the notes and who may read them",
            )

    def _check_room(self) -> None:
        current = self.folder.current()
        if current is not None:
            begun = sum(self.folder.bytes_of(path) for path in self.folder.unfinished())
            size = self.folder.bytes_of(current)
            needed = int(size * ROOM_SHARE) + min(size, ROOM_LOG_BYTES) - begun
            self.folder.check_room(needed, "a rebuild")

    def _begun_store(self) -> tuple[Path, Store]:
        for path in self.folder.unfinished():
            try:
                store = self.create_store(path)
                with store.reading() as snapshot:
                    resumable = snapshot.meta(BUILDING) == "yes"
                if resumable and not rebuild_reason(store, self.profile, self.embedder):
                    return path, store
                store.close()
            except (StoreError, FileNotFoundError):
                continue  # remove_superseded() takes it away at the end
        path = self.folder.next_index_path()
        store = self.create_store(path)
        store.write_meta({PROFILE: self.profile, BUILDING: "yes"})
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
