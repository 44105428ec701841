"""Memory: builds the parts from the settings and joins the write path, the read path and the health checks."""

from __future__ import annotations

import threading
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Self, Unpack

from notewell.errors import IndexCorruptError, MemoryDisabledError
from notewell.indexing.background import BackgroundSync, sync_before_search
from notewell.indexing.patience import due_paths, postponed_by
from notewell.indexing.with_jobs import JobsAsked
from notewell.memory.answering import NO_NOTES, Answering
from notewell.memory.following import SESSIONS_FOLDER, Follower, open_conversations, stored_transcript_path
from notewell.memory.parts import Parts
from notewell.memory.reading import read_note, read_transcript
from notewell.search.options import build_request
from notewell.settings import Settings, checked_agent, load_settings
from notewell.settings.workspace import checked_workspace, expanded
from notewell.sources.privacy import Chat, audience_of
from notewell.types import IndexReport

if TYPE_CHECKING:
    from collections.abc import Callable, Collection
    from contextlib import AbstractContextManager
    from datetime import date

    from notewell.embedding.selection import Embedders, Selection
    from notewell.indexing.deadline import Deadline
    from notewell.indexing.update import IndexUpdate
    from notewell.indexing.watch import Watching
    from notewell.protocols import Embedder, Source, Store
    from notewell.search.options import SearchOptions, SearchRequest
    from notewell.search.tuning import Tuning
    from notewell.sessions import ConversationStore, Flushed
    from notewell.store.sqlite.cache import SqliteEmbeddingCache
    from notewell.store.state_folder import StateFolder
    from notewell.types import (
        Check,
        ForgetReport,
        IndexPreview,
        NoteText,
        Price,
        ProgressCallback,
        Remembered,
        SearchAnswer,
        SourceName,
        Status,
        Verification,
    )


class Memory:
    """One agent's memory of one workspace. Safe to use from several threads; close it, or use it in a `with` block."""

    def __init__(
        self,
        workspace: Path,
        settings: Settings,
        *,
        agent: str = "main",
        embedder: Embedder | None = None,
        chat: Chat | None = None,
        session: str | None = None,
        tuning: Tuning | None = None,
    ) -> None:
        self.workspace = workspace
        self.settings = settings
        self.agent = checked_agent(agent)
        self.audience = audience_of(chat, session)
        self.parts = Parts(workspace, settings, self.agent, embedder)
        self._answering = Answering(self.parts, tuning)
        self._lock = threading.Lock()
        self._follower: Follower | None = None
        self._conversations: ConversationStore | None = None
        self._behind = BackgroundSync(self._catch_up)
        self._watching: list[Watching] = []

    @classmethod
    def open(
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
        """Open the memory of a workspace.

        `chat="group"` shows neither `MEMORY.md` nor private notes, and of the conversations only that of `session`.

        Without `settings` they are read from the usual layers; `overrides` come last: `provider="none"`, or
        `query__max_results=10` for a nested key. An `embedder` of your own takes the place of the configured one.
        """
        folder = checked_workspace(expanded(Path(workspace)))
        if settings is None:
            flags = {key.replace("__", "."): value for key, value in overrides.items()}
            settings = load_settings(folder, agent=agent, flags=flags).settings
        return cls(folder, settings, agent=agent, embedder=embedder, chat=chat, session=session)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Release the index, the cache and the embedder; the next call opens them again.

        Watching ends, and so does indexing in the background, after the piece of work in flight.
        """
        while self._watching:
            self._watching.pop().stop()
        self._behind.stop()
        with self._lock:
            follower, self._follower = self._follower, None
        if follower:
            follower.close()
        self.parts.close()
        self._answering.forget_queries()

    # --- writing ---------------------------------------------------------------------------------

    def index(
        self,
        *,
        paths: Collection[str] | None = None,
        source: SourceName | None = None,
        force: bool = False,
        batch: bool | None = None,
        wait: bool | None = None,
        progress: ProgressCallback | None = None,
    ) -> IndexReport:
        """Bring the index up to date with the notes; `force` builds it anew beside the old one.

        Who knows what changed can name those `paths`, as `search` gives them, or a `source`: the others are not looked
        at.

        `batch` embeds through the provider's batch jobs, which is cheaper and takes longer; `wait=False` leaves the
        vectors to a later call. Without them `remote.batch` decides.
        """
        self._check_enabled()
        if source is not None:
            paths = [*(paths or ()), *self.parts.paths_of(source)]
        jobs = JobsAsked(self.settings.remote.batch, batch=batch, wait=wait)
        report = self.parts.indexed(
            lambda update, again: jobs.run(update, paths=paths, force=force and not again, progress=progress)
        )
        if paths is None and not (report.added or report.changed or report.renamed or report.unchanged):
            report = replace(report, notes=(*report.notes, NO_NOTES.format(workspace=self.workspace)))
        return replace(report, notes=(*report.notes, *self._answering.embedder_notes()))

    def remember(
        self,
        text: str,
        *,
        to: str | None = None,
        who: str | None = None,
        source: str = "the library",
        force: bool = False,
        chat: Chat | None = None,
    ) -> Remembered:
        """Append `text` to today's note, or to the note `to`, with who noted it, when and from where.

        What a note says already is pointed out and not written twice, unless `force` is given. Secrets are hidden,
        recalled text is left out, and the entry is found by the next search.
        """
        from notewell.memory.remembering.remember import remember_in

        self._check_enabled()
        return remember_in(self, text, to=to, who=who or self.agent, source=source, force=force, chat=chat)

    def forget(
        self,
        *,
        session: str | None = None,
        path: str | None = None,
        match: str | None = None,
        since: str | date | None = None,
        dry_run: bool = False,
    ) -> ForgetReport:
        """Delete a conversation, a memory file, or every line and message that says something, without a trace.

        Exactly one of `session`, `path` and `match` is given; `since` spares what is older. What the index, the caches
        and their logs knew of it is wiped, too. `dry_run` only says what would go.
        """
        from notewell.memory.forgetting import forget_in

        self._check_enabled()
        self._behind.stop()
        return forget_in(self, session=session, path=path, match=match, since=since, dry_run=dry_run)

    def on_transcript_update(self, path: str | Path) -> bool:
        """Say that a conversation has grown; it is indexed soon, once it is quiet and enough has come together.

        `path` is the file, or its path as `search` gives it. Returns at once: False when conversations are no part of
        this memory. The thresholds are `sync.sessions`; what keeps it from being indexed is told by the next search.
        """
        self._check_enabled()
        if self.parts.transcripts is None:
            return False
        stored = stored_transcript_path(self.parts.transcripts, path)
        with self._lock:
            if self._follower is None:
                self._follower = Follower(self._index_grown, self.settings.sync.sessions.debounce_ms / 1000)
            follower = self._follower
        follower.announce(stored)
        return True

    @property
    def conversations(self) -> ConversationStore:
        """The agent's session store; what is appended through it is indexed soon, as `on_transcript_update` says."""
        with self._lock:
            if self._conversations is None:
                self._conversations = open_conversations(self.state.path, self._transcript_grew)
            return self._conversations

    def _transcript_grew(self, path: Path) -> None:
        if self.settings.enabled:
            self.on_transcript_update(path)

    def flush_session(
        self, session_id: str, *, summarize: Callable[[str], str] | None = None, keep_last: int = 20
    ) -> Flushed:
        """Append what must outlive the compaction of a session to today's note; the same messages never twice.

        `summarize` is a model that answers a prompt; without one the messages are shortened. All but the `keep_last`
        newest messages count; `through` of the answer is how many of them `conversations.compact` may take away.
        """
        from notewell.memory.session_flush import flush_session

        self._check_enabled()
        return flush_session(self, session_id, summarize=summarize, keep_last=keep_last)

    def begin_session(self) -> None:
        """Let the index catch up in the background, as when an agent starts to work; `sync.on_session_start` allows it.

        What keeps it from doing so is told by the next search.
        """
        if self.settings.enabled and self.settings.sync.on_session_start and self.state.writable():
            self._behind.request()

    def wait_until_synced(self, timeout_s: float | None = None) -> bool:
        """Wait for the indexing that goes on in the background; False when that takes longer."""
        return self._behind.wait(timeout_s)

    def watch(self, *, on_sync: Callable[[IndexReport | Exception], None] | None = None) -> Watching:
        """Keep the index fresh from now on: when files change, and every `sync.interval_minutes`.

        A thread does it, until `stop()` of what is returned, the end of its `with` block, or `close()`. `on_sync` is
        called with the report of each run, or with what kept it from running, in that thread.
        """
        self._check_enabled()
        from notewell.indexing.watch import watching_of

        watching = watching_of(
            self.workspace,
            self.settings,
            self.sources(),
            self._behind,
            transcripts=self.state.path / SESSIONS_FOLDER,
            on_sync=on_sync,
        )
        self._watching.append(watching)
        return watching.start()

    def preview(self, *, paths: Collection[str] | None = None, force: bool = False) -> IndexPreview:
        """Say what `index` with the same arguments would do and what its embedding would cost; nothing is written."""
        from notewell.indexing.preview import Preview  # takes 10 ms that no search should pay

        update = self.update(self.selection.embedder)
        with self.store() as store:
            reason = ("asked for" if force else update.rebuild_reason(store)) if store else ""
            estimate = self.parts.estimate()
            preview = Preview(store, self.sources(), update.preparation, update.embedder, update.cache, estimate)
            return preview.run(paths=paths, rebuild_reason=reason)

    # --- reading ---------------------------------------------------------------------------------

    def search(self, query: str, **options: Unpack[SearchOptions]) -> SearchAnswer:
        """Return the best hits for `query`, how they were found and how fresh the index is.

        `mode` is "hybrid", "semantic" (vectors alone) or "keyword" (words alone, and no model is loaded); without it
        `query.mode` decides. `keyword_only=True` is the same as `mode="keyword"`.
        `source` asks notes ("memory") or conversations ("sessions") alone; None and "all" ask whatever is indexed.
        `since`, `until` and `on` (a date, "2026-03", "last week") let only notes of those days through. `rerank` asks
        the configured reranker, or the one given, for a second look at the best. `chat` and `session` say who listens,
        where those are fewer than the memory was opened for.

        What is new is indexed first, for `sync.search_budget_ms` at most; `sync=False` answers from the index as it is.
        """
        self._check_enabled()
        request = build_request(self.settings, query, options, opened_for=self.audience)
        budget_s = self.settings.sync.search_budget_ms / 1000
        sync = options.get("sync")
        wanted = self.settings.sync.on_search if sync is None else sync
        synced = self._sync(request, budget_s) if wanted else None
        try:
            answer = self._answering.answer(request, synced)
        except IndexCorruptError as error:
            synced = self.parts.unasked(self._embedder_for(request)).heal(error, budget_s)
            if not synced.complete:
                self._behind.request(at_once=False)
            answer = self._answering.answer(request, synced)
        trouble = self._follower.trouble if self._follower else ""
        return replace(answer, notes=(*answer.notes, trouble)) if trouble else answer

    def files(self, source: SourceName | None = None) -> tuple[str, ...]:
        """Return the paths of the memory's files on disk now, as `search` cites them, or those of one source."""
        if source == "sessions" and self.parts.transcripts is None:
            from notewell.search.options import sessions_off

            raise sessions_off()
        listed = (each.list().files for each in self.parts.sources() if source in {None, each.name})
        return tuple(stamp.path for files in listed for stamp in files)

    def get(
        self,
        path: str,
        *,
        first_line: int = 1,
        lines: int | None = None,
        chat: Chat | None = None,
        session: str | None = None,
    ) -> NoteText:
        """Return lines of one memory file, as it is on disk now; paths outside the memory are refused.

        What a group may not see is to it as if it were not there.
        """
        self._check_enabled()
        audience = audience_of(chat, session, self.audience)
        transcripts = self.parts.transcripts
        if transcripts and transcripts.may_hold(path):
            return read_transcript(transcripts, path, first_line=first_line, lines=lines, audience=audience)
        return read_note(self.parts.notes, path, first_line=first_line, lines=lines, audience=audience)

    def status(self, *, deep: bool = False) -> Status:
        """Say where the memory is, what it holds and how it would answer; `deep` also checks that it all works."""
        from notewell.memory.health import memory_status

        return memory_status(self, deep=deep)

    def doctor(self, *, fix: bool = False) -> tuple[Check, ...]:
        """Try every part and return what was found, with the next step where something is wrong.

        `fix` first puts right what can be: an index that is damaged, out of step with itself or with the files.
        """
        if fix:
            from notewell.memory.mending import mend_memory

            return mend_memory(self)
        from notewell.memory.health import run_checks

        return tuple(run_checks(self))

    def verify(self) -> Verification:
        """Hold the index against the files and against a fresh index of them, built in memory; nothing is written."""
        from notewell.memory.mending import verify_memory

        return verify_memory(self)

    # --- parts -----------------------------------------------------------------------------------

    @property
    def state(self) -> StateFolder:
        """The folder with everything that is kept: index, cache, conversations."""
        return self.parts.state

    def store(self) -> AbstractContextManager[Store | None]:
        """Lend the store that answers now; None when nothing has been indexed."""
        return self.parts.store()

    def sources(self) -> list[Source]:
        """Return where the documents come from."""
        return self.parts.sources()

    @property
    def embedders(self) -> Embedders:
        """Who embeds, who answers and who is the fallback."""
        return self.parts.embedders

    @property
    def selection(self) -> Selection:
        """Which embedder is used, and why; a provider that cannot run here leaves keyword search, with the reason."""
        return self.parts.embedders.selection

    @property
    def cache(self) -> SqliteEmbeddingCache | None:
        """The embedding cache, if it is turned on."""
        return self.parts.cache

    @property
    def price(self) -> Price | None:
        """What the embedder in use charges; None without one."""
        return self.parts.price

    def update(self, embedder: Embedder | None) -> IndexUpdate:
        """Return the way to write the index, for those who mend it."""
        return self.parts.update(embedder)

    def _check_enabled(self) -> None:
        if not self.settings.enabled:
            raise MemoryDisabledError

    def _embedder_for(self, request: SearchRequest) -> Embedder | None:
        """Return the embedder to index with before a search; a keyword search loads none."""
        return None if request.mode == "keyword" else self.parts.embedder_in_use()

    def _sync(self, request: SearchRequest, budget_s: float) -> IndexReport:
        update = self.parts.unasked(self._embedder_for(request), patient=True)
        report = sync_before_search(update, self._behind, budget_s)
        return replace(report, postponed=postponed_by(update.sources))

    def _catch_up(self, deadline: Deadline, files: frozenset[str] | None) -> IndexReport:
        paths = None if files is None else self.parts.stored_paths(files)
        if paths is not None and not paths:
            return IndexReport()
        return self.parts.catch_up(paths=paths, deadline=deadline)

    def _index_grown(self, paths: Collection[str]) -> None:
        transcripts = self.parts.transcripts
        if transcripts is not None:
            due = due_paths(transcripts, paths, self.parts.stored("sessions"), self.settings.sync.sessions)
            if due:
                self.parts.catch_up(paths=due)
