"""The public API: one agent's memory of one workspace."""

from __future__ import annotations

import os
import threading
import time
from contextlib import suppress
from dataclasses import replace
from datetime import date
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Literal, Self, Unpack

from notewell.errors import (
    MemoryDisabledError,
    NotewellError,
    PathRefusedError,
    QueryError,
    RememberError,
)
from notewell.indexing.plan import SyncPolicy
from notewell.indexing.sync import BACKGROUND
from notewell.memory.answering import search, with_notes
from notewell.memory.components import open_components, sweep_conversations
from notewell.search.options import TIMELINE_LIMIT, build_request, no_source, sessions_off
from notewell.settings import Settings, checked_agent, load_settings
from notewell.settings.arguments import checked_calls
from notewell.settings.workspace import checked_workspace, create_workspace, expanded, is_workspace
from notewell.sources.privacy import Audience, Chat, audience_of
from notewell.text.entries import Entry
from notewell.types import Citation

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable

    from notewell.indexing.watch import Watching
    from notewell.memory.components import Components
    from notewell.protocols import Embedder, EmbeddingCache
    from notewell.reports import (
        ForgetReport,
        IndexPreview,
        Listed,
        MemoryList,
        Remembered,
        SessionContext,
        Status,
        Trashed,
        UndoReport,
        Verification,
    )
    from notewell.search.options import SearchOptions
    from notewell.search.tuning import Tuning
    from notewell.sessions import ConversationStore, Flushed
    from notewell.types import (
        Category,
        Check,
        IndexReport,
        NoteText,
        Price,
        ProgressCallback,
        SearchAnswer,
        SourceName,
        Uncovered,
    )

LOOK_INTO_TRASH_S = 3600.0  # between two checks for items that are older than 30 days


@checked_calls(QueryError, remember=RememberError)
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
        parts: Components | None = None,  # shared with another memory
    ) -> None:
        self.workspace = workspace
        self.settings = settings
        self.agent = checked_agent(agent)
        self.audience = audience_of(chat, session)
        if parts is None:
            parts = open_components(workspace, settings, self.agent, embedder=embedder, tuning=tuning)
        self._parts = parts.seen_by(self.audience)
        self._narrowed: dict[Audience, Components] = {}  # the parts that other audiences see
        self._lock = threading.Lock()
        self._conversations: ConversationStore | None = None
        self._watching: list[Watching] = []
        self._trash_emptied_at: float | None = None  # on the monotonic clock

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
        create: bool = False,
        **overrides: object,
    ) -> Self:
        """Open the memory of a workspace; `create` turns the folder into one if needed, as `notewell init` does.

        `chat="group"` hides `MEMORY.md`, private notes and every conversation except that of `session`. Without
        `settings` they are read from the usual layers, and `overrides` take precedence: `provider="none"`, or
        `query__max_results=10` for a nested key. An `embedder` of your own replaces the configured one.
        """
        folder = expanded(Path(workspace))
        if create and not is_workspace(folder):
            create_workspace(folder)
        folder = checked_workspace(folder)
        if settings is None:
            flags = {key.replace("__", "."): value for key, value in overrides.items()}
            settings = load_settings(folder, agent=agent, flags=flags).settings
        memory = cls(folder, settings, agent=agent, embedder=embedder, chat=chat, session=session)
        sweep_conversations(memory._components.sessions_folder)
        return memory

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Release the index, the cache and the embedder; the next call opens them again.

        Watching and the background sync end after the step in progress.
        """
        while self._watching:
            self._watching.pop().stop()
        self._parts.close()

    @property
    def _components(self) -> Components:
        """The parts; raises WorkspaceError if the workspace was moved away."""
        self._parts.place.require()
        return self._parts

    # --- writing ---------------------------------------------------------------------------------

    def index(
        self,
        *,
        paths: Collection[str] | None = None,
        source: SourceName | None = None,
        force: bool = False,
        check: bool = False,
        batch: bool | None = None,
        wait: bool | None = None,
        progress: ProgressCallback | None = None,
    ) -> IndexReport:
        """Bring the index up to date with the notes; `force` rebuilds it.

        Files with unchanged size, times and inode are not read, unless `check` is set. If you know what changed, name
        those `paths`, as `search` returns them, or a `source`; named files are always read.

        `batch` embeds through the provider's batch jobs, which is cheaper and slower; `wait=False` leaves the vectors
        to a later call. The default of both is `remote.batch`.
        """
        self._check_writes()
        self._check_source(source)
        self._empty_trash()
        paths = _files_of(paths)
        policy = SyncPolicy(
            paths=paths,
            source=source,
            force=force,
            check=check or paths is not None,
            batch=batch,
            wait=wait,
            progress=progress,
        )
        return with_notes(self._components, self._components.sync.run(policy), policy)

    def uncovered(self) -> Uncovered:
        """Count the Markdown files of the workspace that are not indexed; 0 if `include` is set.

        Only file names are read. `index`, `doctor` and a search without hits report the count.
        """
        return self._components.uncovered()

    def unsearched_conversations(self) -> tuple[str, ...]:
        """Return notes on conversations of this agent and of other programs that search leaves out.

        Only file names are read. `index`, `status` and a search without hits return the same notes.
        """
        return self._components.unsearched_conversations()

    def sync(self, *, paths: Collection[str] | None = None) -> IndexReport:
        """Index what changed, or the changed `paths`, as the background sync does.

        Embedding that would cost more than `cost.confirm_above_usd` is left to `index`.
        """
        self._check_writes()
        self._empty_trash()
        return self._components.sync.run(replace(BACKGROUND, paths=paths))

    def remember(
        self,
        text: str,
        *,
        to: str | None = None,
        who: str | None = None,
        source: str = "the library",
        category: Category = "other",
        importance: int = 5,
        force: bool = False,
        keep_secret: bool = False,
        replaces: str | None = None,
        chat: Chat | None = None,
    ) -> Remembered:
        """Append `text` to today's note, or to the note `to`, as an entry with an id, author, time and origin.

        A category and an importance from 1 to 10 are stored with it; `search(category=...)` filters by the former. What
        a note already says is not written again, unless `force` is set. Secrets are redacted, unless `keep_secret` is
        set, and recalled text is left out. The next search finds the entry.

        `replaces` is the id or a citation of an older entry, which stays in its note and is marked as replaced; a
        search shows the new one first.
        """
        from notewell.memory.remember import remember

        self._check_writes()
        entry = Entry(text, author=who or self.agent, source=source, category=category, importance=importance)
        parts = self._seen_by(chat, None)
        return remember(parts, entry, to=to, force=force, keep_secret=keep_secret, replaces=replaces)

    def forget(
        self,
        *entries: str,
        session: str | None = None,
        path: str | None = None,
        match: str | None = None,
        since: str | date | None = None,
        whole_words: bool = True,
        for_good: bool = False,
        one_entry: bool = False,
        dry_run: bool = False,
        confirmed: ForgetReport | None = None,
    ) -> ForgetReport:
        """Move entries, a conversation, a memory file, or every line and message containing a text to the trash.

        Give `entries` by id or citation (`memory/a.md#L8-L10`), or exactly one of `session`, `path` and `match`;
        `since` keeps what is older. `match` finds whole words, unless `whole_words=False`. Searches no longer find what
        is in the trash; `undo` restores it within 30 days, after which it is erased. A citation of lines that moved or
        changed since they were shown is refused once, with the current lines in the error.

        `for_good` erases it without a trace, also from the trash, the index, the caches and their logs. `one_entry`
        refuses a citation of more than one entry, paragraph or list item. `dry_run` only reports what would be
        forgotten; passing that report as `confirmed` skips what has changed since. In notes a group can forget only the
        entries that it wrote.
        """
        from notewell.memory.forget import forget
        from notewell.memory.forget_targets import checked_query

        self._check_writes()
        self._components.sync.background.stop()
        query = checked_query(entries, session, path, match, since, whole_words=whole_words, for_good=for_good)
        report = forget(self._components, query, one_entry=one_entry, dry_run=dry_run, confirmed=confirmed)
        if dry_run:
            self._shown(each.path for each in report.forgotten)
        return report

    def trash(self) -> tuple[Trashed, ...]:
        """Return what `undo` can restore, newest first; for a group, only what it forgot itself."""
        from notewell.memory.trash import trashed

        self._check_enabled()
        return trashed(self._components)

    def undo(self, trash_id: str | None = None) -> UndoReport:
        """Restore what was forgotten last, or under the id that `forget` returned, within 30 days.

        Nothing is overwritten: lines return to their place, or to the end of a note that has changed too much, and a
        note whose name is taken gets another name. Raises TrashError if there is nothing to restore.
        """
        from notewell.memory.trash import undo

        self._check_writes()
        return undo(self._components, trash_id)

    def on_transcript_update(self, path: str | Path) -> bool:
        """Announce that a conversation has grown; it is indexed when it is quiet and has grown enough.

        `path` is the file, or its path as `search` returns it. Returns immediately: False if conversations are not part
        of this memory. The next search reports failures.
        """
        self._check_writes()
        transcripts = self._components.transcripts
        if transcripts is None:
            return False
        is_stored = isinstance(path, str) and transcripts.may_hold(path)
        stored = str(path) if is_stored else transcripts.stored_path(Path(path))
        if stored is None:
            raise PathRefusedError(str(path))
        self._components.sync.follower.announce(stored)
        return True

    @property
    def conversations(self) -> ConversationStore:
        """The agent's session store; what is appended through it is indexed soon, see `on_transcript_update`.

        In a memory opened for a group it holds only that group's conversation.
        """
        if self._components.storage.follows:
            raise self._components.indexes.read_only_error()
        with self._lock:
            if self._conversations is None:
                self._conversations = self._components.conversations()
                if self.settings.enabled:
                    self._conversations.on_update(lambda update: self.on_transcript_update(update.path))
            return self._conversations

    def flush_session(
        self, session_id: str, *, summarize: Callable[[str], str] | None = None, keep_last: int = 20
    ) -> Flushed:
        """Append what should outlive the compaction of a session to today's note, each message once.

        `summarize` is a model that answers a prompt; without one the messages are shortened. The `keep_last` newest
        messages are left alone; `through` of the result is how many messages `conversations.compact` may remove.
        """
        from notewell.memory.remember import flush_session

        self._check_writes()
        return flush_session(self._components, self.conversations, session_id, summarize=summarize, keep_last=keep_last)

    def begin_session(self) -> None:
        """Start a background sync, if `sync.on_session_start` is set; the next search reports failures."""
        if self.settings.enabled and self.settings.sync.on_session_start and self._components.indexes.writable():
            self._components.sync.background.request()
        if self.settings.enabled and self._components.qmd:
            self._components.qmd.start()

    def wait_until_synced(self, timeout_s: float | None = None) -> bool:
        """Wait for the background sync; False if it takes longer."""
        return self._components.sync.background.wait(timeout_s)

    def watch(self, *, on_sync: Callable[[IndexReport | Exception], None] | None = None) -> Watching:
        """Keep the index up to date: when files change, and every `sync.interval_minutes`.

        This happens in a thread until `stop()` of the returned handle, the end of its `with` block, or `close()`.
        `on_sync` is called in that thread with the report of each run, or with the error that ended it.
        """
        self._check_writes()
        from notewell.indexing.watch import watch_workspace

        watching = watch_workspace(
            self.workspace,
            self.settings,
            self._components.sources,
            self._components.sync.background,
            transcripts=self._components.sessions_folder,
            on_sync=self._components.sync.shown_to(on_sync),
        )
        self._watching.append(watching)
        if self._components.qmd:
            self._components.qmd.start()
        return watching.start()

    def preview(
        self, *, paths: Collection[str] | None = None, force: bool = False, check: bool = False
    ) -> IndexPreview:
        """Report what `index` with the same arguments would do and what its embedding would cost; writes nothing."""
        from notewell.embedding.prices import estimate
        from notewell.indexing.preview import Preview  # takes 10 ms that no search should pay

        parts, paths = self._components, _files_of(paths)
        embedder = parts.embedders.for_indexing(renew=force)
        cost = partial(estimate, embedder, self.settings) if embedder else None
        with parts.index.use() as store:
            preview = Preview(store, parts.sources, parts.sync.preparation, embedder, parts.cache, cost)
            return preview.run(paths=paths, check=check or paths is not None, force=force)

    # --- reading ---------------------------------------------------------------------------------

    def search(self, query: str, **options: Unpack[SearchOptions]) -> SearchAnswer:
        """Return the best hits for `query`, how they were found and how fresh the index is.

        `mode` is "hybrid", "semantic" (vectors only) or "keyword" (words only; no model is loaded); without it
        `query.mode` decides. `keyword_only=True` is the same as `mode="keyword"`.
        `source` searches only notes ("memory") or conversations ("sessions"); None and "all" search both.
        `since`, `until` and `on` (a date, "2026-03", "last week") filter by date. `rerank` reorders the best hits with
        the configured reranker, or the one given. `chat` and `session` narrow the audience of the memory.

        What is new is indexed first, until the deadline `sync.search_budget_ms`; `sync=False` skips that.
        """
        self._check_enabled()
        self._empty_trash()
        request = build_request(self.settings, query, options, opened_for=self.audience)
        parts = self._seen_by(options.get("chat"), options.get("session"))
        answer = search(parts, request, sync=options.get("sync"))
        self._shown(hit.path for hit in answer.hits)
        return answer

    def timeline(self, topic: str, **options: Unpack[SearchOptions]) -> SearchAnswer:
        """Return what `search` finds about a topic by date: oldest first, hits without a date last.

        The date is that of a remembered entry, of the note, or of the nearest heading with one. The options are those
        of `search`, with a limit of 20.
        """
        if options.get("limit") is None:
            options["limit"] = TIMELINE_LIMIT
        found = self.search(topic, **options)
        by_date = sorted(found.hits, key=lambda hit: (hit.dated or date.max, hit.replaced_by is None))
        return replace(found, hits=tuple(by_date))

    def files(self, source: SourceName | None = None) -> tuple[str, ...]:
        """Return the paths of the memory's files on disk, or of one source's, as `search` cites them."""
        self._check_source(source)
        listed = (each.list().files for each in self._components.sources if source in {None, each.name})
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
        """Return lines of a memory file as it is on disk now; paths outside the memory are refused.

        A citation such as `memory/a.md#L8-L10` returns those lines, unless others are given. For a group, what it may
        not see does not exist.
        """
        from notewell.memory.reading import read_note, read_transcript

        self._check_enabled()
        parts = self._seen_by(chat, session)
        cited = Citation.parse(path)
        path, (first_line, lines) = cited.path, cited.lines_to_read(first_line, lines)
        if parts.transcripts and parts.transcripts.may_hold(path):
            return read_transcript(parts.transcripts, path, first_line=first_line, lines=lines)
        note = read_note(parts.notes, path, first_line=first_line, lines=lines)
        self._shown([note.path])
        return note

    def list(
        self,
        *,
        since: str | date | None = None,
        until: str | date | None = None,
        source: SourceName | Literal["all"] | None = None,
        path: str | None = None,
        by: str | None = None,
        category: Category | None = None,
        limit: int = 20,
        chat: Chat | None = None,
        session: str | None = None,
    ) -> MemoryList:
        """Return remembered entries, notes and conversations as they are on disk now, newest first.

        `since` and `until` are days, as for `search`. `path` is a file, a folder, a pattern such as `memory/p*.md`, or
        a citation. `by` is the author of entries; with `by` or `category` only entries are listed. A note without a
        date is listed by its last change.
        """
        from notewell.memory.reading import list_memory

        self._check_enabled()
        found = list_memory(
            self._seen_by(chat, session),
            since=since,
            until=until,
            source=source,
            path=path,
            by=by,
            category=category,
            limit=limit,
        )
        self._shown(item.path for item in found.items)
        return found

    def history(self, entry: str, *, chat: Chat | None = None, session: str | None = None) -> tuple[Listed, ...]:
        """Return a remembered entry, by id or citation, and those that replaced it or were replaced, newest first.

        Raises EntryNotFoundError.
        """
        from notewell.memory.reading import entry_history

        self._check_enabled()
        found = entry_history(self._seen_by(chat, session), entry)
        self._shown(item.path for item in found)
        return found

    def session_context(
        self,
        *,
        max_chars: int | None = None,
        chat: Chat | None = None,
        session: str | None = None,
        today: date | None = None,
    ) -> SessionContext:
        """Return what an agent should know at the start of a session: `MEMORY.md` and the notes of today and yesterday.

        The text is for the system prompt, fenced as data, and fits into `max_chars`, by default `tools.injected_chars`.
        Groups get neither `MEMORY.md` nor private notes. `report()` of the result describes what was done with each
        file.
        """
        from notewell.memory.reading import session_context

        self._check_enabled()
        return session_context(self._seen_by(chat, session), max_chars=max_chars, today=today)

    def status(self, *, deep: bool = False) -> Status:
        """Return what is indexed, how fresh it is and how a search would answer; `deep` adds the checks of `doctor`."""
        from notewell.memory.health import memory_status

        return memory_status(self._components, deep=deep)

    def doctor(self, *, fix: bool = False) -> tuple[Check, ...]:
        """Check every part and return the results, with a hint where something is wrong.

        `fix` first repairs what it can: an index that is corrupt, inconsistent or out of date.
        """
        from notewell.memory.health import repair, run_checks

        return repair(self._components) if fix else tuple(run_checks(self._components))

    def verify(self) -> Verification:
        """Compare the index with the files and with a fresh index built in memory; writes nothing."""
        from notewell.memory.health import verify

        return verify(self._components)

    @property
    def cache(self) -> EmbeddingCache | None:
        """The embedding cache, if it is turned on."""
        return self._components.cache

    @property
    def price(self) -> Price | None:
        """What the embedder in use charges; None without one."""
        from notewell.embedding.prices import price_of

        embedder = self._components.embedders.selection.embedder
        return price_of(embedder, self.settings) if embedder else None

    def seen_by(self, *, chat: Chat, session: str | None = None) -> Memory:
        """Return this memory as an audience such as a group sees it; both share everything that is open.

        Raises QueryError for an audience that would see more than this memory.
        """
        audience = audience_of(chat, session, self.audience)
        if audience == self.audience:
            return self
        return Memory(
            self.workspace,
            self.settings,
            agent=self.agent,
            chat=audience.chat,
            session=audience.session,
            parts=self._components,
        )

    def _seen_by(self, chat: Chat | None, session: str | None) -> Components:
        """Return the parts as the audience of one call sees them."""
        audience = audience_of(chat, session, self.audience)
        if audience not in self._narrowed:
            self._narrowed[audience] = self._components.seen_by(audience)
        return self._narrowed[audience]

    def _shown(self, paths: Iterable[str]) -> None:
        """Record that citations of these files were shown in their current state."""
        if self._parts.moved_file.exists():
            from notewell.memory.note_files import notes_shown

            notes_shown(self._parts, paths)

    def _empty_trash(self) -> None:
        """Erase what has been in the trash for 30 days; checks once an hour."""
        now = time.monotonic()
        if self._trash_emptied_at is not None and now - self._trash_emptied_at < LOOK_INTO_TRASH_S:
            return
        self._trash_emptied_at = now
        if any(map(os.path.isdir, self._parts.trash_folders)):
            from notewell.memory.forget import erase_expired

            with suppress(NotewellError, OSError):  # a later call tries again; `forget` and `undo` report the problem
                erase_expired(self._components)

    def _check_enabled(self) -> None:
        if not self.settings.enabled:
            raise MemoryDisabledError

    def _check_writes(self) -> None:
        """Raise if nothing may be written: memory is off, or the notes are on other machines."""
        self._check_enabled()
        if self._components.storage.follows:
            raise self._components.indexes.read_only_error()

    def _check_source(self, source: SourceName | None) -> None:
        if source not in {None, "memory", "sessions"}:
            raise no_source(source)
        if source == "sessions" and self._components.transcripts is None:
            raise sessions_off()


def _files_of(paths: Collection[str] | None) -> Collection[str] | None:
    """Return the files that paths or citations name."""
    return None if paths is None else [Citation.parse(path).path for path in paths]
