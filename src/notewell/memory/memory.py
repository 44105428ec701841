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
    BackendError,
    MemoryDisabledError,
    NotewellError,
    PathRefusedError,
    QueryError,
    RememberError,
)
from notewell.indexing.plan import SyncPolicy
from notewell.indexing.sync import BACKGROUND
from notewell.memory.answering import NO_NOTES, embedder_notes, search
from notewell.memory.components import open_components, sweep_conversations
from notewell.search.options import TIMELINE_LIMIT, build_request, no_source, sessions_off
from notewell.settings import Settings, checked_agent, load_settings
from notewell.settings.arguments import checked_calls
from notewell.settings.workspace import checked_workspace, create_workspace, expanded, is_workspace
from notewell.sources.privacy import Audience, Chat, audience_of
from notewell.text.entries import Entry
from notewell.types import Citation, Problem

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
    from notewell.search.qmd import Qmd
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

INDEX_COUNT_S = 0.5  # that `index` may take to count files that are no notes
LOOK_INTO_TRASH_S = 3600.0  # what is in it is erased after 30 days: an hour more is no matter


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
        parts: Components | None = None,  # those of another memory, to be shared
    ) -> None:
        self.workspace = workspace
        self.settings = settings
        self.agent = checked_agent(agent)
        self.audience = audience_of(chat, session)
        if parts is None:
            parts = open_components(workspace, settings, self.agent, embedder=embedder, tuning=tuning)
        self._parts = parts.seen_by(self.audience)
        self._narrowed: dict[Audience, Components] = {}  # what those see for whom single calls are
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
        """Open the memory of a workspace; `create` makes the folder one if it is none yet, as `notewell init` does.

        `chat="group"` shows neither `MEMORY.md` nor private notes, and of the conversations only that of `session`.

        Without `settings` they are read from the usual layers; `overrides` come last: `provider="none"`, or
        `query__max_results=10` for a nested key. An `embedder` of your own takes the place of the configured one.
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

        Watching ends, and so does the background sync, after the piece of work in progress.
        """
        while self._watching:
            self._watching.pop().stop()
        self._parts.close()

    @property
    def _components(self) -> Components:
        """The parts, while the workspace is there: one that moved away is an error, not one without notes."""
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
        """Bring the index up to date with the notes; `force` rebuilds it beside the old one.

        A file whose size, times and inode are as remembered is not read, unless `check` is given. If you know what
        changed, name those `paths`, as `search` gives them, or a `source`: only they are looked at, and named files are
        always read.

        `batch` embeds through the provider's batch jobs, which is cheaper and takes longer; `wait=False` leaves the
        vectors to a later call. Without them `remote.batch` decides.
        """
        self._check_writes()
        self._check_source(source)
        self._empty_trash()
        paths = _files_of(paths)
        report = self._components.sync.run(
            SyncPolicy(
                paths=paths,
                source=source,
                force=force,
                check=check or paths is not None,
                batch=batch,
                wait=wait,
                progress=progress,
            )
        )
        with self._components.index.use() as store:
            notes = list(store.notes) if store else []
        found = report.added or report.changed or report.renamed or report.unchanged
        if paths is None and source is None and not found and not self.files():
            notes = [NO_NOTES.format(workspace=self.workspace), *notes]
        if paths:
            missing = [path for path in paths if not any(each.exists(path) for each in self._components.sources)]
            notes += [f"there is no note {path}" for path in missing if len(missing) > report.removed]
        if paths is None and source is None:
            notes += self._components.uncovered_note(INDEX_COUNT_S)
            notes += self._components.unsearched_conversations()
        selection = self._components.embedders.selection
        named = self.settings.provider not in {"auto", "none"} and self.settings.store.vector.enabled
        if named and selection.embedder is None:
            problem = Problem("embedder", f"{selection.reason}; {selection.hint}".rstrip("; "))
            report = replace(report, complete=False, problems=(*report.problems, problem))
        else:
            notes += embedder_notes(self._components)
        if self._components.qmd and source != "sessions":
            notes += _update_notes(self._components.qmd)
        return replace(report, notes=(*report.notes, *notes))

    def uncovered(self) -> Uncovered:
        """Count the Markdown files of the workspace that are no notes of this memory, unless `include` is set.

        Only names are looked at. `index`, `doctor` and a search without hits mention them.
        """
        return self._components.uncovered()

    def unsearched_conversations(self) -> tuple[str, ...]:
        """Return notes on conversations of this agent and of OpenClaw that the settings leave out of search.

        Only names of files are looked at. `index`, `status` and a search without hits give the same notes.
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

        A category and an importance from 1 to 10 are kept with it, and `search(category=...)` finds it by the former.
        What a note says already is pointed out and not written twice, unless `force` is given. Secrets are redacted,
        unless `keep_secret` is given, recalled text is left out, and the next search finds the entry.

        `replaces` is the id or a citation of an older entry: it stays in its note, marked as replaced, and a search
        shows the new one first.
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
        `since` spares what is older. `match` finds whole words, unless `whole_words=False`. What is in the trash is
        found no more; `undo` restores it within 30 days, and then it is erased. A citation of lines that have moved or
        changed since they were shown is refused once, and the error says what they are now.

        `for_good` erases it without a trace instead, also from the trash: the index, the caches and their logs are
        wiped. `one_entry` refuses a citation of more than one entry, paragraph or list item. `dry_run` only reports
        what would be forgotten; `confirmed=` that report leaves out what has changed or was added since. A group can
        forget nothing of notes but the entries that it wrote.
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
        """Return what `undo` can restore, the newest first; of a group only what it forgot itself."""
        from notewell.memory.trash import trashed

        self._check_enabled()
        return trashed(self._components)

    def undo(self, trash_id: str | None = None) -> UndoReport:
        """Restore what was forgotten last, or under the id that `forget` returned, within 30 days.

        Nothing is overwritten: lines come back where they were, or at the end of a note that has changed too much, and
        a note whose name is taken comes back under another one. Raises TrashError when there is nothing to restore.
        """
        from notewell.memory.trash import undo

        self._check_writes()
        return undo(self._components, trash_id)

    def on_transcript_update(self, path: str | Path) -> bool:
        """Say that a conversation has grown; it is indexed soon, once it is quiet and has grown enough.

        `path` is the file, or its path as `search` gives it. Returns at once: False when conversations are not part of
        this memory. The thresholds are `sync.sessions`; the next search reports what went wrong.
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

        Of a memory that was opened for a group it holds that group's conversation only.
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
        """Append what must outlive the compaction of a session to today's note; the same messages never twice.

        `summarize` is a model that answers a prompt; without one the messages are shortened. All but the `keep_last`
        newest messages count; `through` of the answer is how many of them `conversations.compact` may remove.
        """
        from notewell.memory.remember import flush_session

        self._check_writes()
        return flush_session(self._components, self.conversations, session_id, summarize=summarize, keep_last=keep_last)

    def begin_session(self) -> None:
        """Sync in the background, as when an agent starts to work, if `sync.on_session_start` allows it.

        The next search reports what went wrong.
        """
        if self.settings.enabled and self.settings.sync.on_session_start and self._components.indexes.writable():
            self._components.sync.background.request()
        if self.settings.enabled and self._components.qmd:
            self._components.qmd.start()

    def wait_until_synced(self, timeout_s: float | None = None) -> bool:
        """Wait for the background sync; False when it takes longer."""
        return self._components.sync.background.wait(timeout_s)

    def watch(self, *, on_sync: Callable[[IndexReport | Exception], None] | None = None) -> Watching:
        """Keep the index fresh from now on: when files change, and every `sync.interval_minutes`.

        A thread does it, until `stop()` of what is returned, the end of its `with` block, or `close()`. `on_sync` is
        called in that thread with the report of each run, or with the error that ended it.
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
        `since`, `until` and `on` (a date, "2026-03", "last week") keep only notes of those days. `rerank` reorders the
        best hits with the configured reranker, or the one given. `chat` and `session` narrow the audience that the
        memory was opened for.

        What is new is indexed first, for `sync.search_budget_ms` at most; `sync=False` answers from the index as it is.
        """
        self._check_enabled()
        self._empty_trash()
        request = build_request(self.settings, query, options, opened_for=self.audience)
        parts = self._seen_by(options.get("chat"), options.get("session"))
        answer = search(parts, request, sync=options.get("sync"))
        self._shown(hit.path for hit in answer.hits)
        return answer

    def timeline(self, topic: str, **options: Unpack[SearchOptions]) -> SearchAnswer:
        """Return what `search` finds about a topic, by date: the oldest first, hits without a date last.

        The date is that of a remembered entry, of the note, or of the nearest heading that has one. The options are
        those of `search`; the limit is 20 unless given.
        """
        if options.get("limit") is None:
            options["limit"] = TIMELINE_LIMIT
        found = self.search(topic, **options)
        by_date = sorted(found.hits, key=lambda hit: (hit.dated or date.max, hit.replaced_by is None))
        return replace(found, hits=tuple(by_date))

    def files(self, source: SourceName | None = None) -> tuple[str, ...]:
        """Return the paths of the memory's files on disk now, as `search` cites them, or those of one source."""
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
        """Return lines of one memory file, as it is on disk now; paths outside the memory are refused.

        A citation such as `memory/a.md#L8-L10` is read as those lines, unless others are asked for. To a group, what it
        may not see does not exist.
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
        """Return remembered entries, notes and conversations as the files are now, the newest first.

        `since` and `until` are days, as for `search`. `path` is a file, a folder, a pattern such as `memory/p*.md`, or
        a citation. `by` is the author of entries; with `by` or `category` only entries are listed. A note counts by
        its date, or by its last change where it has none.
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
        """Return a remembered entry, by id or citation, with what replaced it and all that was replaced, newest first.

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

        It is for the system prompt, fenced as data, and fits into `max_chars`, by default `tools.injected_chars`. To a
        group, `MEMORY.md` and private notes do not exist. `report()` of the result says what became of each file.
        """
        from notewell.memory.reading import session_context

        self._check_enabled()
        return session_context(self._seen_by(chat, session), max_chars=max_chars, today=today)

    def status(self, *, deep: bool = False) -> Status:
        """Say where the memory is, what it holds and how it would answer; `deep` also checks that it all works."""
        from notewell.memory.health import memory_status

        return memory_status(self._components, deep=deep)

    def doctor(self, *, fix: bool = False) -> tuple[Check, ...]:
        """Check every part and return what was found, with the next step where something is wrong.

        `fix` first repairs what can be repaired: an index that is corrupt, inconsistent or out of date.
        """
        from notewell.memory.health import repair, run_checks

        return repair(self._components) if fix else tuple(run_checks(self._components))

    def verify(self) -> Verification:
        """Compare the index with the files and with a fresh index of them, built in memory; writes nothing."""
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
        """Return this memory as an audience sees it, such as a group; it shares everything that is open with this one.

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
        """Note that citations of these files have been given out as the files are now."""
        if self._parts.moved_file.exists():
            from notewell.memory.note_files import MovedLines

            MovedLines(self._parts).shown(paths)

    def _empty_trash(self) -> None:
        """Erase what has been in the trash for 30 days; looks once an hour."""
        now = time.monotonic()
        if self._trash_emptied_at is not None and now - self._trash_emptied_at < LOOK_INTO_TRASH_S:
            return
        self._trash_emptied_at = now
        if any(map(os.path.isdir, self._parts.trash_folders)):
            from notewell.memory.forget import erase_expired

            with suppress(NotewellError, OSError):  # a later call tries again; `forget` and `undo` say what is wrong
                erase_expired(self._components)

    def _check_enabled(self) -> None:
        if not self.settings.enabled:
            raise MemoryDisabledError

    def _check_writes(self) -> None:
        """Raise where nothing may be written: memory is off, or the notes are on other machines."""
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


def _update_notes(qmd: Qmd) -> list[str]:
    """Update QMD's index; return what went wrong."""
    try:
        if not qmd.update():
            return ["another process is updating QMD's index"]
    except BackendError as error:
        return [f"QMD's index could not be updated: {error.full_message}"]
    embedding = qmd.state().embedding
    return [f"QMD could not embed the notes: {embedding.reason}"] if embedding else []
