"""Keeps an index up to date: everything that writes one goes through `Sync`."""

from __future__ import annotations

import time
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from notewell.embedding import JOBS_FOLDER
from notewell.errors import IndexBusyError, IndexCorruptError, StoreError, StoreUnavailableError, as_store_errors
from notewell.indexing.background_sync import BackgroundSync, Follower
from notewell.indexing.plan import EMBEDDER, EVERYTHING, Deadline, SyncPolicy, find_changes
from notewell.indexing.rebuild import PROFILE, REASON_PROFILE, Rebuild, rebuild_reason
from notewell.indexing.spending import SpendingLimit
from notewell.types import IndexReport

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence

    from notewell.embedding.selection import Embedders
    from notewell.indexing.batch_jobs import BatchRun
    from notewell.indexing.indexer import Indexer
    from notewell.indexing.plan import Changes
    from notewell.indexing.preparation import Preparation
    from notewell.protocols import Embedder, EmbeddingCache, ReadableStore, Source, Store
    from notewell.settings import Settings
    from notewell.store.live_index import Generations, StoreAccess
    from notewell.store.state_folder import StateFolder
    from notewell.types import EmbedderIdentity, FileStamp

LOCK_WAIT_S = 120.0  # for a process that holds the lock and writes nothing; a batch of a slow model takes less
GO_ON_S = 60.0  # for a lost database: a restart or failover takes seconds
PAUSE_S = 0.2
IN_PROGRESS = "indexing continues in the background: recent changes may be missing"
BUSY = "another process is indexing: recent changes may be missing"
READ_ONLY = "the index is read-only: changes to the notes are not seen"
REBUILDING = "another process is rebuilding the index: notes may be missing"
OUT_OF_DATE = "the index is out of date ({reason}): run `notewell index`"
NO_JOBS = "only OpenAI, Gemini, Voyage and Mistral offer batch jobs: the chunks were embedded without them"
BACKGROUND = SyncPolicy(spending_limit=True, tidy=True)


class Sync:
    """Writes one index. Safe to use from several threads and processes: one at a time holds the write lock."""

    def __init__(
        self,
        *,
        folder: StateFolder,
        indexes: Generations,
        live: StoreAccess,
        create_store: Callable[[Path], Store],
        sources: Sequence[Source],
        preparation: Preparation,
        embedders: Embedders,
        cache: Callable[[], EmbeddingCache | None],
        settings: Settings,
    ) -> None:
        self.folder = folder
        self.indexes = indexes
        self.live = live
        self.sources = sources
        self.preparation = preparation
        self._create_store = create_store
        self._embedders = embedders
        self._cache = cache
        self._settings = settings
        self.background = BackgroundSync(self._run_in_background)
        self.follower = Follower(self._run_after_growth, settings.sync.sessions.debounce_ms / 1000)

    # --- ways to write the index -----------------------------------------------------------------

    def run(self, policy: SyncPolicy = EVERYTHING) -> IndexReport:
        """Bring the index up to date, or rebuild it where necessary; wait for other processes that write.

        If the embedder fails, the fallback embeds. The write lock is released while batch jobs run. After a lost
        database connection the run continues with what is not committed yet.
        """
        if not self.indexes.writable():
            raise self.indexes.read_only_error()
        started = time.monotonic()
        embedder = self._embedders.for_indexing(renew=policy.force) if policy.embed else None
        upgrade = self._embedders.selection.upgrade if embedder else ""
        report: IndexReport | None = None
        while True:
            until = time.monotonic() + GO_ON_S
            with self._open_batch(embedder, policy) as batch:
                done: IndexReport | None = None
                while done is None:
                    try:
                        done = self._update(policy, embedder, batch)
                    except StoreUnavailableError as error:
                        if error.unreached or policy.deadline.passed or time.monotonic() >= until:
                            raise
                        time.sleep(PAUSE_S)
                policy = replace(policy, force=False, repair="")
                while batch and batch.wait(policy, embedded=done.embedded):
                    done = _merged(done, self._update(policy, embedder, batch))
                note = batch.note() if batch else NO_JOBS if policy.batch and embedder else ""
            report = _with_notes(done if report is None else _after_fallback(report, done), note)
            problem = next((problem for problem in done.problems if problem.path == EMBEDDER), None)
            fallback = self._embedders.fall_back(problem.reason) if problem else None
            if fallback is None:
                break
            embedder = fallback
        if policy.embed:
            with self.live.use() as store:
                if store is not None:
                    self._embedders.remember_fallback(store)
        return _with_notes(replace(report, seconds=time.monotonic() - started), upgrade)

    def before_search(self, budget_s: float, *, embed: bool) -> IndexReport:
        """Index what is new within `budget_s`; leave the rest to the background sync.

        Never waits for another process or a long run, and never rebuilds. If it cannot write, the report says why: the
        old index can still answer.
        """
        if not self.indexes.writable() and self.indexes is not self.folder:
            return IndexReport()  # the machines that hold the notes sync them
        started = time.monotonic()
        policy = self._search_policy(embed=embed)
        embedder, changes, up_to_date = self._look(policy)
        if changes and up_to_date:
            return IndexReport(postponed=changes.plan.postponed)
        if not self.background.join_recent(budget_s):
            return IndexReport(complete=False, notes=(IN_PROGRESS,))
        if not self.indexes.writable():
            return IndexReport(complete=False, notes=(READ_ONLY,))
        deadline = Deadline.after(max(0.0, budget_s - (time.monotonic() - started)))
        try:
            report = self._update(replace(policy, deadline=deadline), embedder, changes=changes)
        except IndexBusyError:
            report = IndexReport(complete=False, notes=(BUSY,))
        except IndexCorruptError:
            raise
        except StoreError as error:
            report = IndexReport(complete=False, notes=(f"new notes are not indexed: {error.message}; {error.hint}",))
        if report.complete:
            return report
        self.background.request(at_once=False)
        failure = self.background.failure
        return _with_notes(report, f"indexing in the background failed: {failure}" if failure else "")

    def replace_corrupt(self, error: IndexCorruptError, budget_s: float, *, embed: bool) -> IndexReport:
        """Replace an index that a search found corrupt, unless another process has done so."""
        if not self.indexes.writable():
            raise error
        policy = replace(self._search_policy(embed=embed), deadline=Deadline.after(budget_s), lock_wait_s=budget_s)
        embedder, _, _ = self._look(policy)
        try:
            report = self._update(policy, embedder, corrupt=error)
        except IndexBusyError:
            if self.indexes.current() == error.path:
                raise error from None  # the process at work has not noticed yet
            report = IndexReport(complete=False, notes=(REBUILDING,))
        if not report.complete:
            self.background.request(at_once=False)
        return report

    def _search_policy(self, *, embed: bool) -> SyncPolicy:
        return SyncPolicy(
            embed=embed,
            spending_limit=True,
            may_rebuild=False,
            lock_wait_s=0,
            thresholds=self._settings.sync.sessions,
        )

    def _run_in_background(self, deadline: Deadline, files: frozenset[str] | None) -> IndexReport:
        """Sync what changed on disk: the `files`, or everything."""
        if files is None:
            return self.run(replace(BACKGROUND, deadline=deadline))
        stored = (source.stored_path(Path(file)) for source in self.sources for file in files)
        paths = sorted(filter(None, stored))  # the others are no part of this memory
        return self.run(replace(BACKGROUND, paths=paths, deadline=deadline)) if paths else IndexReport()

    def _run_after_growth(self, paths: Collection[str]) -> None:
        policy = replace(BACKGROUND, paths=paths, thresholds=self._settings.sync.sessions)
        _, changes, _ = self._look(replace(policy, embed=False))
        if changes is None or not changes.plan.is_empty:
            self.run(policy)

    # --- reading ---------------------------------------------------------------------------------

    def shown_to(self, on_sync: Callable[[IndexReport | Exception], None] | None) -> Callable[..., None] | None:
        """Return the listener for background syncs."""
        return on_sync

    def _look(self, policy: SyncPolicy) -> tuple[Embedder | None, Changes | None, bool]:
        """Return the embedder in use, the changes, and whether the index is up to date, as before most searches.

        Takes no lock. Changes are None if the index has to be created, rebuilt or replaced.
        """
        try:
            with self.live.use() as store:
                if store is None:
                    return self._embedder_for(None, policy), None, False
                with store.reading() as snapshot:
                    counts = snapshot.counts()
                    embedder = self._embedder_for(snapshot.embedder() if counts.embedded else None, policy)
                    limit = SpendingLimit.of(embedder, self._settings)
                    if limit and embedder and limit.remembered_note(snapshot, embedder.identity):
                        embedder = None  # everything pending is known to exceed the limit
                    if rebuild_reason(snapshot, self.preparation.profile, embedder):
                        return embedder, None, False
                    changes = find_changes(self.sources, snapshot, policy)
                    return embedder, changes, changes.plan.is_empty and not (embedder and counts.pending)
        except IndexCorruptError:
            return self._embedder_for(None, policy), None, False

    def _embedder_for(self, built_with: EmbedderIdentity | None, policy: SyncPolicy) -> Embedder | None:
        return self._embedders.answering(built_with)[0] if policy.embed else None

    # --- writing, one process at a time ----------------------------------------------------------

    def _update(
        self,
        policy: SyncPolicy,
        embedder: Embedder | None,
        batch: BatchRun | None = None,
        *,
        changes: Changes | None = None,
        corrupt: IndexCorruptError | None = None,
    ) -> IndexReport:
        """Bring the index up to date under the write lock; replace a corrupt one."""
        from notewell.indexing.indexer import Indexer  # 5 ms, which a search that finds nothing new does not pay

        self.folder.ensure()
        if self.indexes is not self.folder:
            self.indexes.ensure()
        limit = SpendingLimit.of(embedder, self._settings) if policy.spending_limit else None
        indexer = Indexer(
            self.sources, self.preparation, embedder, self._cache(), batch, limit, jobs_folder=self.folder.path
        )
        notes: list[str] = []
        lock_wait_s = LOCK_WAIT_S if policy.lock_wait_s is None else policy.lock_wait_s
        with (
            as_store_errors(self.folder.path),
            self.indexes.write_lock(lock_wait_s, give_up=lambda: policy.deadline.passed),
        ):
            current = self.indexes.current() if corrupt else None
            if corrupt and current is not None and corrupt.path in {None, current}:
                notes.append(self._set_aside(corrupt, current))
            for can_retry in (True, False):
                try:
                    reason = self._create_or_reason(policy, embedder)
                    note = self._note_on_switch(limit, embedder) if reason and policy.may_rebuild else ""
                    if reason and policy.may_rebuild and not note:
                        report = self._rebuild(indexer, policy, reason)
                    elif reason == REASON_PROFILE:
                        report = IndexReport(complete=False, notes=(OUT_OF_DATE.format(reason=reason),))
                    else:
                        # The vectors of another embedder stay as they are; the text is kept fresh.
                        fresh = replace(indexer, embedder=None) if reason else indexer
                        with self.live.use() as store:
                            report = fresh.run(_existing(store), policy, changes=changes)
                    break
                except IndexCorruptError as error:
                    found = error.path or self.indexes.current()
                    if not can_retry or found is None or not self.indexes.holds(found):
                        raise
                    notes.append(self._set_aside(error, found))
            if policy.may_rebuild and (not reason or note or report.rebuilt):
                with self.live.use():  # lets go of an index that was replaced
                    self.indexes.remove_superseded()
        return _with_notes(replace(report, notes=(*notes, *report.notes)), note)

    def _rebuild(self, indexer: Indexer, policy: SyncPolicy, reason: str) -> IndexReport:
        """Build a new index beside the one in use, then switch.

        Do not switch if the embedder failed and the index in use has vectors of another one: they stay until the new
        ones are complete.
        """
        rebuild = Rebuild(self.indexes, self.live, self._create_store, indexer)
        path, report = rebuild.run(policy)
        note = f"rebuilt: {reason}"
        if policy.repair:
            current = self.indexes.current()
            note = self._set_aside(IndexCorruptError(policy.repair), current) if current else note
        elif (report.jobs or not report.complete) and (built_with := rebuild.other_embedder()):
            return self._without_switch(indexer, policy, report, built_with)
        self.indexes.switch_to(path)
        return replace(report, rebuilt=True, notes=(note, *report.notes))

    def _without_switch(self, indexer: Indexer, policy: SyncPolicy, built: IndexReport, built_with: str) -> IndexReport:
        """Update the text of the index in use and keep its vectors; the next run continues the rebuild."""
        with self.live.use() as store:
            report = replace(indexer, embedder=None).run(_existing(store), replace(policy, paths=None, source=None))
        note = f"the vectors of {built_with} stay in use until the new ones are complete: {built.pending} are missing"
        return replace(
            report,
            embedded=built.embedded,
            reused=built.reused,
            jobs=built.jobs,
            complete=built.complete,  # pending batch jobs are no failure
            problems=tuple(dict.fromkeys((*report.problems, *built.problems))),
            notes=(*report.notes, *built.notes, note),
        )

    def _create_or_reason(self, policy: SyncPolicy, embedder: Embedder | None) -> str:
        """Create the index if there is none; otherwise return why it has to be rebuilt, or nothing."""
        current = self.indexes.current()
        if current and (policy.force or policy.repair):
            return "requested"
        with self.live.use() as store:
            read_only = store is not None and store.read_only
        if read_only and current is not None:  # opened on a full disk, perhaps: this raises if it still is
            self.live.close()
            self._create_store(current).close()
        with self.live.use() as store:
            if store is not None:
                with store.reading() as snapshot:
                    return rebuild_reason(snapshot, self.preparation.profile, embedder)
        path = self.indexes.next_index_path()
        store = self._create_store(path)
        store.write_meta({PROFILE: self.preparation.profile})
        store.close()
        self.indexes.switch_to(path)
        return ""

    def _note_on_switch(self, limit: SpendingLimit | None, embedder: Embedder | None) -> str:
        if limit is None or embedder is None:
            return ""
        with self.live.use() as store, _existing(store).reading() as snapshot:
            return limit.note_on_switch(snapshot, embedder, self._cache())

    def _set_aside(self, error: IndexCorruptError, path: Path) -> str:
        self.live.close()  # Windows renames no open file
        kept = self.indexes.set_aside(path)
        return f"{error.message}; it was kept as {kept.name} and the index is rebuilt from the notes"

    def _open_batch(self, embedder: Embedder | None, policy: SyncPolicy) -> BatchRun | nullcontext[None]:
        settings, folder = self._settings.remote.batch, self.folder.path
        makes_jobs = settings.enabled if policy.batch is None else policy.batch
        if embedder is None or policy.spending_limit or not (makes_jobs or (folder / JOBS_FOLDER).exists()):
            return nullcontext()
        from notewell.indexing.batch_jobs import open_batch

        return open_batch(embedder, settings, policy, folder, makes_jobs=makes_jobs) or nullcontext()


def is_stale(store: ReadableStore, sources: Sequence[Source]) -> bool:
    """Return whether files of the sources have changed since they were indexed."""
    with store.reading() as snapshot:
        plan = find_changes(sources, snapshot).plan
    return bool(plan.added or plan.removed or any(_is_newer(stamp, known.stamp) for stamp, known in plan.touched))


def _existing(store: Store | None) -> Store:
    if store is None:
        raise StoreError("the index vanished while it was being updated", hint="run `notewell index` again")
    return store


def _is_newer(stamp: FileStamp, known: FileStamp) -> bool:
    """Return whether a file was written or replaced since it was read.

    A stamp has no time if the file had just been written, and no ctime in an index of an older release: then only the
    rest is compared.
    """
    if not known.mtime_ns:
        return stamp.size != known.size
    if not known.ctime_ns:
        stamp = stamp._replace(ctime_ns=0, inode=0)
    return stamp != known


def _with_notes(report: IndexReport, *notes: str) -> IndexReport:
    added = tuple(filter(None, notes))
    return replace(report, notes=(*report.notes, *added)) if added else report


def _merged(first: IndexReport, later: IndexReport) -> IndexReport:
    """Return the report of two steps: the work of both, and what the later one left."""
    return replace(
        later,
        added=first.added + later.added,
        changed=first.changed + later.changed,
        renamed=first.renamed + later.renamed,
        removed=first.removed + later.removed,
        unchanged=first.unchanged,
        embedded=first.embedded + later.embedded,
        reused=first.reused + later.reused,
        unknown=first.unknown + later.unknown,
        rebuilt=first.rebuilt or later.rebuilt,
        problems=tuple(dict.fromkeys((*first.problems, *later.problems))),
        notes=tuple(dict.fromkeys((*first.notes, *later.notes))),
    )


def _after_fallback(first: IndexReport, second: IndexReport) -> IndexReport:
    """Return the report of a run that indexed the text and one that embedded it with the fallback."""
    others = tuple(problem for problem in first.problems if problem.path != EMBEDDER)
    text = replace(first, embedded=0, reused=0, unknown=0, rebuilt=False, problems=others)
    return _merged(text, replace(second, added=0, changed=0, renamed=0, removed=0))
