"""What the files are now and what the store remembers in, what has to be done out; pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from notewell.types import FileStamp, SourceName, StoredDocument


FINE_TICK_NS = 10_000_000  # Linux stamps files by the scheduler's clock, 1 to 10 ms
COARSE_TICK_NS = 1_000_000_000  # whole seconds: old or foreign file systems


@dataclass(frozen=True, slots=True)
class Plan:
    """What to read and what to remove; a file to read may still turn out to hold the same text."""

    added: tuple[FileStamp, ...]
    touched: tuple[tuple[FileStamp, StoredDocument], ...]  # size or time differ from what the store remembers
    removed: tuple[StoredDocument, ...]
    unchanged: int

    @property
    def is_empty(self) -> bool:
        return not (self.added or self.touched or self.removed)


def plan_changes(
    listed: Iterable[FileStamp],
    stored: Mapping[tuple[SourceName, str], StoredDocument],
    *,
    unlisted: Iterable[str] = (),
) -> Plan:
    """Compare by size and time of change, without reading a file.

    Documents below an `unlisted` path stay as they are: a folder that could not be listed is not a folder that is gone.
    """
    added: list[FileStamp] = []
    touched: list[tuple[FileStamp, StoredDocument]] = []
    gone = dict(stored)
    unchanged = 0
    for stamp in listed:
        known = gone.pop((stamp.source, stamp.path), None)
        if known is None:
            added.append(stamp)
        elif known.stamp == stamp:
            unchanged += 1
        else:
            touched.append((stamp, known))
    kept = tuple(unlisted)
    removed = tuple(document for (_, path), document in gone.items() if not _is_below(path, kept))
    return Plan(tuple(added), tuple(touched), removed, unchanged + len(gone) - len(removed))


def trusted_stamp(stamp: FileStamp, *, now_ns: int) -> FileStamp:
    """Return the stamp as it may be remembered: without a time if the file could change again within the same tick.

    A file written twice within one tick of the file system's clock keeps its time, and perhaps its size. A stamp
    without a time never equals a listed one, so such a file is read once more, by hash, the next time.
    """
    tick = COARSE_TICK_NS if stamp.mtime_ns % COARSE_TICK_NS == 0 else FINE_TICK_NS
    return stamp if abs(now_ns - stamp.mtime_ns) > 2 * tick else stamp._replace(mtime_ns=0)


def _is_below(path: str, folders: tuple[str, ...]) -> bool:
    return any(path == folder or path.startswith(f"{folder}/") for folder in folders)
