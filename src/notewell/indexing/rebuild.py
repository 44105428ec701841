"""Builds a complete, verified index beside the one in use, and continues interrupted rebuilds."""

from __future__ import annotations

from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from notewell.errors import IndexBusyError, IndexCorruptError, StoreError
from notewell.files.faults import reach
from notewell.indexing.plan import find_changes

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from notewell.indexing.indexer import Indexer
    from notewell.indexing.plan import SyncPolicy
    from notewell.protocols import Embedder, Snapshot, Store
    from notewell.store.live_index import Generations, StoreAccess
    from notewell.types import IndexReport

PROFILE = "profile"  # meta key: the rules that the index was built by
BUILDING = "building"  # meta key: "yes" until the rebuild is complete
REASON_PROFILE = "the rules for chunking or splitting words have changed"
REASON_EMBEDDER = "its vectors are from another embedding model"
MOST_UNREAD = 2  # if less than half of the notes can be read, the disk is failing


def rebuild_reason(snapshot: Snapshot, profile: str, embedder: Embedder | None) -> str:
    """Return why an index must be rebuilt; empty when it can be updated."""
    if snapshot.meta(PROFILE) != profile:
        return REASON_PROFILE
    if embedder and snapshot.counts().embedded and snapshot.embedder() != embedder.identity:
        return REASON_EMBEDDER
    return ""


@dataclass(frozen=True, slots=True)
class Rebuild:
    """Builds one index while the one in use answers, and takes over its vectors."""

    indexes: Generations
    live: StoreAccess
    create_store: Callable[[Path], Store]
    indexer: Indexer

    def run(self, policy: SyncPolicy) -> tuple[Path, IndexReport]:
        """Return a complete, verified index of all files; a repair does not trust the vectors in use."""
        reach("rebuild.begin")
        self.indexes.check_room_for_rebuild()
        path, store = self._begun_store()
        policy = replace(policy, paths=None, source=None, thresholds=None)
        try:
            with store.reading() as snapshot:
                changes = find_changes(self.indexer.sources, snapshot, policy)
            with nullcontext() if policy.repair else self._older_store() as older:
                report = self.indexer.run(store, policy, older_store=older, changes=changes)
            if policy.deadline.passed and not report.complete:
                raise IndexBusyError("the rebuild was stopped", hint="run `notewell index` to continue it")
            self._verify(path, store, changes.listed)
            reach("rebuild.finish")
            if (report.complete and not report.jobs) or not self.other_embedder():
                store.write_meta({BUILDING: ""})
        finally:
            store.close()
        return path, report

    def other_embedder(self) -> str:
        """Return the identity of the vectors in use if another embedder made them; otherwise nothing."""
        embedder = self.indexer.embedder
        with ExitStack() as stack:
            try:
                store = stack.enter_context(self.live.use())
                if store is None or embedder is None:
                    return ""
                with store.reading() as snapshot:
                    built_with, vectors = snapshot.embedder(), snapshot.counts().embedded
            except StoreError:
                return ""
        return str(built_with) if vectors and built_with != embedder.identity else ""

    def _verify(self, path: Path, store: Store, listed: int) -> None:
        """Raise unless the new index can replace the old one."""
        from notewell.indexing.verification import self_check  # only rebuilds need it

        reach("rebuild.verify")
        findings = self_check(store, keywords=self.indexer.preparation.keywords)
        if findings:
            raise IndexCorruptError(f"{path}: the new index is inconsistent: {'; '.join(findings)}", path=path)
        with store.reading() as snapshot:
            indexed = snapshot.counts().files
        if indexed * MOST_UNREAD < listed:
            raise StoreError(
                f"only {indexed} of {listed} notes could be read: the old index stays in use",
                hint="check the disk that holds the notes and their permissions",
            )

    def _begun_store(self) -> tuple[Path, Store]:
        profile = self.indexer.preparation.profile
        for path in self.indexes.unfinished():
            try:
                store = self.create_store(path)
                with store.reading() as snapshot:
                    resumable = snapshot.meta(BUILDING) == "yes"
                    if resumable and not rebuild_reason(snapshot, profile, self.indexer.embedder):
                        return path, store
                store.close()
            except (StoreError, FileNotFoundError):
                continue  # remove_superseded() deletes it at the end
        path = self.indexes.next_index_path()
        store = self.create_store(path)
        store.write_meta({PROFILE: profile, BUILDING: "yes"})
        return path, store

    @contextmanager
    def _older_store(self) -> Iterator[Store | None]:
        """Yield the store in use if its vectors can be reused; one that cannot be read is ignored."""
        embedder = self.indexer.embedder
        with ExitStack() as stack:
            try:
                store = stack.enter_context(self.live.use())
                if store is not None:
                    with store.reading() as snapshot:
                        usable = embedder is not None and snapshot.embedder() == embedder.identity
                    store = store if usable else None
            except StoreError:
                store = None
            yield store
