"""The state folder and the files in, an index that matches them out: updated where possible, else rebuilt beside."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from notewell.errors import IndexBusyError, IndexCorruptError, IndexReadOnlyError, StoreError, as_store_errors
from notewell.files.faults import reach
from notewell.indexing.building import PROFILE, REASON_PROFILE, Building, rebuild_reason
from notewell.indexing.deadline import NEVER, Deadline
from notewell.indexing.indexer import Indexer
from notewell.indexing.plan import plan_changes
from notewell.indexing.waited_for import WaitedFor
from notewell.types import IndexReport

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence
    from pathlib import Path

    from notewell.indexing.preparation import Preparation
    from notewell.indexing.waited_for import BatchStep
    from notewell.protocols import Embedder, EmbeddingCache, Source, Store
    from notewell.store.live_index import LiveIndex
    from notewell.store.state_folder import StateFolder
    from notewell.types import ProgressCallback

PATIENCE_S = 120.0  # how long `index` waits for a process at work that writes nothing: a slow model's batch is shorter


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
    batch: BatchStep | None = None  # None: no jobs are made, and what a job has is left alone

    def run(
        self,
        *,
        paths: Collection[str] | None = None,
        force: bool = False,
        progress: ProgressCallback | None = None,
        deadline: Deadline = NEVER,
        tidy: bool = False,
    ) -> IndexReport:
        """Bring the index up to date, waiting for another process if need be; rebuild it if it has to be.

        With `paths` only those notes are looked at, unless the whole must be rebuilt. `tidy` tidies up also when
        nothing changed, for runs that left it to a later one.
        """
        if not self.folder.writable():
            raise IndexReadOnlyError(
                f"cannot write to {self.folder.path}", hint="set store.path to a folder you can write to"
            )
        with (
            as_store_errors(self.folder.path),
            self.folder.write_lock(PATIENCE_S, give_up=lambda: deadline.passed),
        ):
            return self._healed(lambda: self._run(paths, force=force, progress=progress, deadline=deadline, tidy=tidy))

    def run_within(self, seconds: float) -> IndexReport:
        """Do what can be done in `seconds`; never waits for another process, never rebuilds.

        What keeps it from writing is told in the report: the index as it is can still answer.
        """
        if self.is_up_to_date():
            return IndexReport()
        if not self.folder.writable():
            return IndexReport(complete=False, notes=("the index is read-only: changes to the notes are not seen",))
        try:
            with as_store_errors(self.folder.path), self.folder.write_lock(0):
                return self._healed(lambda: self._run_within(Deadline.after(seconds)))
        except IndexBusyError:
            return IndexReport(
                complete=False, notes=("another process is indexing: its newest changes may be missing",)
            )
        except IndexCorruptError:
            raise
        except StoreError as error:
            return IndexReport(complete=False, notes=(f"new notes are not indexed: {error.message}; {error.hint}",))

    def heal(self, error: IndexCorruptError, seconds: float) -> IndexReport:
        """Set aside the index that a search found damaged, unless another process did, and begin a new one."""
        if not self.folder.writable():
            raise error
        try:
            with as_store_errors(self.folder.path), self.folder.write_lock(seconds):
                current = self.folder.current()
                notes: tuple[str, ...] = ()
                if current is not None and error.path in {None, current}:
                    notes = (self._set_aside(error, current),)
                report = self._healed(lambda: self._run_within(Deadline.after(seconds)))
        except IndexBusyError:
            if self.folder.current() == error.path:
                raise error from None  # whoever is at work has not seen the damage yet
            return IndexReport(complete=False, notes=("another process builds the index anew: notes may be missing",))
        return replace(report, notes=(*notes, *report.notes))

    def mend(self, why: str, *, progress: ProgressCallback | None = None) -> IndexReport:
        """Build a new index from the files and the cache alone, and keep the one that is not right under another name.

        As far as the old one can answer, it does so until the new one is complete.
        """
        with as_store_errors(self.folder.path), self.folder.write_lock(PATIENCE_S):
            current = self.folder.current()
            if current is None:
                return self._run(None, force=False, progress=progress, deadline=NEVER, tidy=False)
            path, report = self._building().run(progress, NEVER, trust_old=False)
            note = self._set_aside(IndexCorruptError(why), current)
            self.folder.switch_to(path)
            self.live.refresh()
            self.folder.remove_superseded()
        return replace(report, rebuilt=True, notes=(note, *report.notes))

    def _set_aside(self, error: IndexCorruptError, path: Path) -> str:
        self.live.close()  # Windows renames no open file
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

    def _run(
        self,
        paths: Collection[str] | None,
        *,
        force: bool,
        progress: ProgressCallback | None,
        deadline: Deadline,
        tidy: bool,
    ) -> IndexReport:
        reason = self._create_or_reason(force=force)
        if reason:
            report = self._rebuild(progress, deadline)
            if not report.rebuilt:
                return report  # what was built so far stays beside, for the next run to go on with
        else:
            report = self._incremental(self.embedder, deadline, progress, paths, tidy=tidy)
        self.live.refresh()
        self.folder.remove_superseded()
        return replace(report, notes=(f"rebuilt: {reason}", *report.notes)) if reason else report

    def _run_within(self, deadline: Deadline) -> IndexReport:
        reason = self._create_or_reason(force=False)
        if reason == REASON_PROFILE:
            return IndexReport(complete=False, notes=(f"the index is out of date ({reason}): run `notewell index`",))
        # Vectors of another embedder: keep the text fresh, leave the vectors alone.
        return self._incremental(None if reason else self.embedder, deadline, None)

    def rebuild_reason(self, store: Store) -> str:
        """Say why the store cannot simply be updated; empty when it can."""
        return rebuild_reason(store, self.preparation.profile, self.embedder)

    def is_up_to_date(self) -> bool:
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
        names = {source.name for source in self.sources}
        plan = plan_changes(
            (stamp for listing in listings for stamp in listing.files),
            {key: document for key, document in stored.items() if key[0] in names},
        )
        return plan.is_empty and not (self.embedder and pending)

    def _create_or_reason(self, *, force: bool) -> str:
        if force and self.folder.current():
            return "asked for"
        self._leave_read_only()
        with self.live.use() as store:
            if store is not None:
                return self.rebuild_reason(store)
        path = self.folder.next_index_path()
        store = self.create_store(path)
        store.write_meta({PROFILE: self.preparation.profile})
        store.close()
        self.folder.switch_to(path)
        return ""

    def _leave_read_only(self) -> None:
        """Open an index anew that could only be read when it was opened, say on a full disk; raises why it still is."""
        with self.live.use() as store:
            read_only = store is not None and store.read_only
        current = self.folder.current()
        if read_only and current is not None:
            self.live.close()
            self.create_store(current).close()

    def _incremental(
        self,
        embedder: Embedder | None,
        deadline: Deadline,
        progress: ProgressCallback | None,
        paths: Collection[str] | None = None,
        *,
        tidy: bool = False,
    ) -> IndexReport:
        with self.live.use() as store:
            if store is None:
                raise StoreError("the index vanished while it was being updated", hint="run `notewell index` again")
            report = self._indexer(store, embedder).run(paths=paths, deadline=deadline, progress=progress)
            did_nothing = not (report.added or report.changed or report.removed or report.embedded)
            if tidy and did_nothing and not deadline.passed:  # else the run has tidied up already
                reach("index.tidy")
                store.optimize()
            return report

    def _rebuild(self, progress: ProgressCallback | None, deadline: Deadline) -> IndexReport:
        """Build beside the live index, which answers throughout, then switch.

        If the embedder fails on the way and the live index has the vectors of another one, there is no switch: those
        stay until the new ones are complete.
        """
        building = self._building()
        path, report = building.run(progress, deadline, trust_old=True)
        if (report.jobs or not report.complete) and (built_with := building.other_embedder()):
            return self._kept(report, built_with, deadline, progress)
        self.folder.switch_to(path)
        return replace(report, rebuilt=True)

    def _kept(
        self, built: IndexReport, built_with: str, deadline: Deadline, progress: ProgressCallback | None
    ) -> IndexReport:
        """Bring the text of the live index up to date and leave its vectors; what was built is gone on with later."""
        report = self._incremental(None, deadline, progress)
        note = f"the vectors of {built_with} stay in use until the new ones are complete: {built.pending} are missing"
        return replace(
            report,
            embedded=built.embedded,
            reused=built.reused,
            jobs=built.jobs,
            complete=built.complete,  # what a batch job has yet to give is no failure
            problems=tuple(dict.fromkeys((*report.problems, *built.problems))),
            notes=(*report.notes, *built.notes, note),
        )

    def _building(self) -> Building:
        return Building(
            self.folder,
            self.live,
            self.create_store,
            self.sources,
            self.preparation.profile,
            self.embedder,
            lambda store, older: self._indexer(store, self.embedder, older),
        )

    def _indexer(self, store: Store, embedder: Embedder | None, older: Store | None = None) -> Indexer:
        batch = self.batch or WaitedFor(self.folder.path)
        return Indexer(store, self.sources, self.preparation, embedder, self.cache, older, batch)
