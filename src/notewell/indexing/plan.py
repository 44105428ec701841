"""Plans a sync: compares the files with the index, and decides what to read and what to remove."""

from __future__ import annotations

import threading
import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from notewell.errors import PathRefusedError
from notewell.protocols import GrowingSource
from notewell.types import FileStamp, Listing, Problem, SourceName, StoredDocument

if TYPE_CHECKING:
    from notewell.protocols import Snapshot, Source
    from notewell.settings.model import SessionSyncSettings
    from notewell.types import ProgressCallback

EMBEDDER = "embedder"  # in place of a path, in the problem of a run with a failed embedder
FINE_TICK_NS = 10_000_000  # Linux stamps files by the scheduler's clock, 1 to 10 ms
COARSE_TICK_NS = 1_000_000_000  # whole seconds: old or foreign file systems

StoredDocuments = Mapping[tuple[SourceName, str], StoredDocument]


@dataclass(frozen=True, slots=True)
class Deadline:
    """The time after which no new work is started."""

    at: float | None = None  # time.monotonic(); None is never
    stop: threading.Event | None = None  # set to end the work early

    @classmethod
    def after(cls, seconds: float) -> Deadline:
        return cls(time.monotonic() + seconds)

    @property
    def passed(self) -> bool:
        stopped = self.stop is not None and self.stop.is_set()
        return stopped or (self.at is not None and time.monotonic() >= self.at)


NEVER = Deadline()


@dataclass(frozen=True, slots=True)
class SyncPolicy:
    """What one sync covers and what it may do."""

    paths: Collection[str] | None = None  # only these files, unless the index must be rebuilt
    source: SourceName | None = None  # only this source, and `paths`
    thresholds: SessionSyncSettings | None = None  # skip transcripts that grew by less
    deadline: Deadline = NEVER
    lock_wait_s: float | None = None  # for another process; None: the default
    embed: bool = True  # False updates the text only
    spending_limit: bool = False  # embed only what `cost.confirm_above_usd` allows, and start no batch jobs
    batch: bool | None = None  # embed through batch jobs; None: as the settings say
    wait: bool | None = None  # wait for those jobs
    may_rebuild: bool = True
    force: bool = False  # rebuild even if nothing requires it
    check: bool = False  # read every file, also those whose size and times are unchanged
    repair: str = ""  # what is wrong with the index: rebuild it from the files and the cache alone
    tidy: bool = False  # optimize the index even if nothing changed
    progress: ProgressCallback | None = None


EVERYTHING = SyncPolicy()


@dataclass(frozen=True, slots=True)
class Plan:
    """What to read and what to remove; a file that is read may turn out to be unchanged."""

    added: tuple[FileStamp, ...]
    touched: tuple[tuple[FileStamp, StoredDocument], ...]  # with another stamp than the stored one
    removed: tuple[StoredDocument, ...]
    unchanged: int
    postponed: int = 0  # transcripts that grew by too little

    @property
    def is_empty(self) -> bool:
        return not (self.added or self.touched or self.removed)


@dataclass(frozen=True, slots=True)
class Changes:
    """A plan and what it is based on."""

    plan: Plan
    stored: StoredDocuments
    listed: int  # files
    problems: tuple[Problem, ...]


def find_changes(
    sources: Sequence[Source],
    snapshot: Snapshot | None,
    policy: SyncPolicy = EVERYTHING,
    known: Changes | None = None,
) -> Changes:
    """List the files and compare them with the index, or with nothing.

    `known` changes are returned as they are if the index has not been written since.
    """
    stored = _stored(snapshot, sources, policy) if snapshot else {}
    if known is not None and known.stored == stored:
        return known
    listings = _listings(sources, policy)
    problems = tuple(problem for listing in listings for problem in listing.problems)
    plan = plan_changes(
        (stamp for listing in listings for stamp in listing.files),
        stored,
        unlisted=[problem.path for problem in problems],
        check=policy.check,
    )
    if policy.thresholds and plan.touched:
        plan = _postponing(plan, sources, policy.thresholds)
    return Changes(plan, stored, sum(len(listing.files) for listing in listings), problems)


def plan_changes(
    listed: Iterable[FileStamp], stored: StoredDocuments, *, unlisted: Iterable[str] = (), check: bool = False
) -> Plan:
    """Compare size, times and inode without reading a file; `check` plans to read every file.

    Documents below an `unlisted` path are kept: that a folder cannot be listed does not mean that it was deleted.
    """
    added: list[FileStamp] = []
    touched: list[tuple[FileStamp, StoredDocument]] = []
    gone = dict(stored)
    unchanged = 0
    for stamp in listed:
        known = gone.pop((stamp.source, stamp.path), None)
        if known is None:
            added.append(stamp)
        elif known.stamp == stamp and not check:
            unchanged += 1
        else:
            touched.append((stamp, known))
    kept = tuple(unlisted)
    removed = tuple(document for (_, path), document in gone.items() if not _is_below(path, kept))
    return Plan(tuple(added), tuple(touched), removed, unchanged + len(gone) - len(removed))


def trusted_stamp(stamp: FileStamp, *, now_ns: int) -> FileStamp:
    """Return the stamp to store: without a time if the file could change again within the same clock tick.

    A file written twice within one tick of the file system's clock has the same time, and perhaps the same size. A
    stamp without a time never equals a listed one, so the next sync reads and hashes such a file again.
    """
    tick = COARSE_TICK_NS if stamp.mtime_ns % COARSE_TICK_NS == 0 else FINE_TICK_NS
    return stamp if abs(now_ns - stamp.mtime_ns) > 2 * tick else stamp._replace(mtime_ns=0)


def _listings(sources: Sequence[Source], policy: SyncPolicy) -> list[Listing]:
    """Return a listing of each source that the policy covers; raise PathRefusedError for a path of none."""
    if policy.paths is None and policy.source is None:
        return [source.list() for source in sources]
    wanted: dict[SourceName, list[str]] = {source.name: [] for source in sources}
    for path in policy.paths or ():
        holder = next((source for source in sources if source.may_hold(path)), None)
        if holder is None:
            raise PathRefusedError(path)
        wanted[holder.name].append(path)
    return [
        source.list(None if source.name == policy.source else wanted[source.name])
        for source in sources
        if wanted[source.name] or source.name == policy.source
    ]


def _stored(snapshot: Snapshot, sources: Sequence[Source], policy: SyncPolicy) -> StoredDocuments:
    """Return what the index remembers of what the policy covers; sources that are turned off keep their documents."""
    named = policy.paths if policy.source is None else policy.paths or ()
    stored: dict[tuple[SourceName, str], StoredDocument] = {}
    for source in sources:
        stored |= snapshot.documents(source.name, None if source.name == policy.source else named)
    return stored


def _postponing(plan: Plan, sources: Sequence[Source], thresholds: SessionSyncSettings) -> Plan:
    """Return the plan without transcripts that grew by less than the thresholds.

    Otherwise the last chunk of a conversation in progress would be embedded again after every message.
    """
    growing = {source.name: source for source in sources if isinstance(source, GrowingSource)}
    due = tuple(
        (stamp, known)
        for stamp, known in plan.touched
        if stamp.source not in growing or _is_due(growing[stamp.source], stamp, known.stamp, thresholds)
    )
    postponed = len(plan.touched) - len(due)
    return Plan(plan.added, due, plan.removed, plan.unchanged + postponed, postponed)


def _is_due(source: GrowingSource, now: FileStamp, known: FileStamp, thresholds: SessionSyncSettings) -> bool:
    """Return whether a transcript grew by enough bytes or messages, or changed without growing."""
    grown = now.size - known.size
    if grown <= 0 or grown >= thresholds.delta_bytes:
        return True
    try:
        return source.new_lines(now.path, known.size) >= thresholds.delta_messages
    except OSError:
        return True  # reading it will say what is wrong


def _is_below(path: str, folders: tuple[str, ...]) -> bool:
    return any(path == folder or path.startswith(f"{folder}/") for folder in folders)
