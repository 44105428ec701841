"""AsyncMemory: the same memory for code that runs in an event loop; every call works in a thread of its own."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Self

from recollect.memory import Memory

if TYPE_CHECKING:
    from collections.abc import Collection
    from datetime import date
    from pathlib import Path

    from recollect.protocols import Embedder, Reranker
    from recollect.search.fusion import Fusion
    from recollect.settings import Settings
    from recollect.types import Check, IndexPreview, IndexReport, NoteText, ProgressCallback, SearchAnswer, Status


class AsyncMemory:
    """One agent's memory of one workspace; use it in an `async with` block, or close it."""

    def __init__(self, memory: Memory) -> None:
        self._memory = memory

    @classmethod
    async def open(
        cls,
        workspace: str | Path,
        *,
        agent: str = "main",
        settings: Settings | None = None,
        embedder: Embedder | None = None,
        **overrides: object,
    ) -> Self:
        """Open the memory of a workspace, as `Memory.open` does."""
        return cls(
            await asyncio.to_thread(
                Memory.open, workspace, agent=agent, settings=settings, embedder=embedder, **overrides
            )
        )

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        await asyncio.to_thread(self._memory.close)

    async def index(
        self,
        *,
        paths: Collection[str] | None = None,
        force: bool = False,
        progress: ProgressCallback | None = None,
    ) -> IndexReport:
        """Bring the index up to date; `progress` is called from another thread."""
        return await asyncio.to_thread(self._memory.index, paths=paths, force=force, progress=progress)

    async def preview(self) -> IndexPreview:
        return await asyncio.to_thread(self._memory.preview)

    async def search(
        self,
        query: str,
        *,
        limit: int | None = None,
        min_score: float | None = None,
        fusion: Fusion | None = None,
        keyword_only: bool = False,
        since: str | date | None = None,
        until: str | date | None = None,
        on: str | date | None = None,
        rerank: bool | Reranker | None = None,
        explain: bool = False,
        sync: bool | None = None,
    ) -> SearchAnswer:
        return await asyncio.to_thread(
            self._memory.search,
            query,
            limit=limit,
            min_score=min_score,
            fusion=fusion,
            keyword_only=keyword_only,
            since=since,
            until=until,
            on=on,
            rerank=rerank,
            explain=explain,
            sync=sync,
        )

    async def get(self, path: str, *, first_line: int = 1, lines: int | None = None) -> NoteText:
        return await asyncio.to_thread(self._memory.get, path, first_line=first_line, lines=lines)

    async def status(self, *, deep: bool = False) -> Status:
        return await asyncio.to_thread(self._memory.status, deep=deep)

    async def doctor(self) -> tuple[Check, ...]:
        return await asyncio.to_thread(self._memory.doctor)
