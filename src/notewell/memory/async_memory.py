"""AsyncMemory: the same memory for code that runs in an event loop; every call works in a thread of its own."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Self, Unpack

from notewell.memory.memory import Memory

if TYPE_CHECKING:
    from collections.abc import Callable, Collection
    from datetime import date
    from pathlib import Path

    from notewell.indexing.watch import Watching
    from notewell.protocols import Embedder
    from notewell.search.options import SearchOptions
    from notewell.sessions import ConversationStore, Flushed
    from notewell.settings import Settings
    from notewell.sources.privacy import Chat
    from notewell.types import (
        Check,
        ForgetReport,
        IndexPreview,
        IndexReport,
        NoteText,
        ProgressCallback,
        Remembered,
        SearchAnswer,
        SourceName,
        Status,
        Verification,
    )


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
        chat: Chat | None = None,
        session: str | None = None,
        **overrides: object,
    ) -> Self:
        """Open the memory of a workspace, as `Memory.open` does."""
        return cls(
            await asyncio.to_thread(
                Memory.open,
                workspace,
                agent=agent,
                settings=settings,
                embedder=embedder,
                chat=chat,
                session=session,
                **overrides,
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
        source: SourceName | None = None,
        force: bool = False,
        batch: bool | None = None,
        wait: bool | None = None,
        progress: ProgressCallback | None = None,
    ) -> IndexReport:
        """Bring the index up to date; `progress` is called from another thread."""
        return await asyncio.to_thread(
            self._memory.index, paths=paths, source=source, force=force, batch=batch, wait=wait, progress=progress
        )

    async def preview(self, *, paths: Collection[str] | None = None, force: bool = False) -> IndexPreview:
        return await asyncio.to_thread(self._memory.preview, paths=paths, force=force)

    async def search(self, query: str, **options: Unpack[SearchOptions]) -> SearchAnswer:
        return await asyncio.to_thread(self._memory.search, query, **options)

    async def files(self, source: SourceName | None = None) -> tuple[str, ...]:
        return await asyncio.to_thread(self._memory.files, source)

    async def get(
        self,
        path: str,
        *,
        first_line: int = 1,
        lines: int | None = None,
        chat: Chat | None = None,
        session: str | None = None,
    ) -> NoteText:
        return await asyncio.to_thread(
            self._memory.get, path, first_line=first_line, lines=lines, chat=chat, session=session
        )

    async def remember(
        self,
        text: str,
        *,
        to: str | None = None,
        who: str | None = None,
        source: str = "the library",
        force: bool = False,
        chat: Chat | None = None,
    ) -> Remembered:
        return await asyncio.to_thread(
            self._memory.remember, text, to=to, who=who, source=source, force=force, chat=chat
        )

    async def forget(
        self,
        *,
        session: str | None = None,
        path: str | None = None,
        match: str | None = None,
        since: str | date | None = None,
        dry_run: bool = False,
    ) -> ForgetReport:
        return await asyncio.to_thread(
            self._memory.forget, session=session, path=path, match=match, since=since, dry_run=dry_run
        )

    async def status(self, *, deep: bool = False) -> Status:
        return await asyncio.to_thread(self._memory.status, deep=deep)

    async def doctor(self, *, fix: bool = False) -> tuple[Check, ...]:
        return await asyncio.to_thread(self._memory.doctor, fix=fix)

    async def verify(self) -> Verification:
        return await asyncio.to_thread(self._memory.verify)

    @property
    def conversations(self) -> ConversationStore:
        """The agent's session store; its calls block for some milliseconds, so use `asyncio.to_thread`."""
        return self._memory.conversations

    async def flush_session(
        self, session_id: str, *, summarize: Callable[[str], str] | None = None, keep_last: int = 20
    ) -> Flushed:
        """Append what must outlive the compaction of a session to today's note; `summarize` runs in another thread."""
        return await asyncio.to_thread(self._memory.flush_session, session_id, summarize=summarize, keep_last=keep_last)

    async def on_transcript_update(self, path: str | Path) -> bool:
        return await asyncio.to_thread(self._memory.on_transcript_update, path)

    async def begin_session(self) -> None:
        await asyncio.to_thread(self._memory.begin_session)

    async def wait_until_synced(self, timeout_s: float | None = None) -> bool:
        return await asyncio.to_thread(self._memory.wait_until_synced, timeout_s)

    async def watch(self, *, on_sync: Callable[[IndexReport | Exception], None] | None = None) -> Watching:
        """Keep the index fresh from now on; `on_sync` is called from another thread."""
        return await asyncio.to_thread(self._memory.watch, on_sync=on_sync)
