"""A memory whose files have changed in, its index, caches, logs and leftovers without a trace of what they held out."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from notewell.embedding.batch.ledger import Ledger
from notewell.types import Problem

if TYPE_CHECKING:
    from notewell.memory.memory import Memory

PATIENCE_S = 120.0  # as long as `index` waits for a process at work that writes nothing


@dataclass(frozen=True, slots=True)
class Erased:
    """How much of what was derived is gone."""

    chunks: int = 0
    vectors: int = 0
    problems: tuple[Problem, ...] = ()


def erase_traces(memory: Memory) -> Erased:
    """Bring the index up to date and wipe what it, the cache, batch jobs and older files still know.

    The cache keeps only vectors of texts that are still in the memory: an earlier wording of a note may have said what
    is to be forgotten, and its vector has no name by which it could be found.
    """
    if memory.state.current() is None and not memory.state.path.exists():
        return Erased()
    before = _hashes(memory)
    # Whoever is at work has the lock: a run that embeds the text right now ends before anything is wiped.
    memory.update(None).run()
    with memory.state.write_lock(PATIENCE_S):
        with memory.store() as store:
            kept = store.embedded_hashes() if store else set()
            if store:
                store.erase_deleted()
        vectors = memory.cache.keep_only(kept) if memory.cache else 0
        ledger = Ledger(memory.state.path)
        ledger.forget({digest for record in ledger.records() for digest in record.wanted} - kept)
        problems = tuple(_remove_leftovers(memory.state.path, memory.state.current()))
    return Erased(len(before - kept), vectors, problems)


def _hashes(memory: Memory) -> set[str]:
    with memory.store() as store:
        return store.embedded_hashes() if store else set()


def _remove_leftovers(folder: Path, current: Path | None) -> list[Problem]:
    """Delete databases that are no longer used: unfinished, replaced or set aside as damaged, with their logs."""
    problems = []
    in_use = {"cache.sqlite"} | ({current.name} if current else set())
    for path in sorted(folder.glob("*.sqlite*")):
        owner = path.name
        for suffix in ("-wal", "-shm", ".in-use"):
            owner = owner.removesuffix(suffix)
        if owner in in_use:
            continue
        try:
            with suppress(FileNotFoundError):
                path.unlink()
        except OSError as error:  # Windows deletes no open file
            problems.append(Problem(path.name, f"cannot be deleted now: {error.strerror}; run the same command again"))
    return problems
