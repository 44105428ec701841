"""All errors that notewell raises on purpose.

    NotewellError                  exit 1
    ├── SettingsError               exit 1   a settings file, variable or flag is invalid
    ├── MemoryDisabledError         exit 1   the settings turn memory off
    ├── WorkspaceError              exit 1   the workspace is missing, not a folder, unreadable
    │   └── WorkspaceNotFoundError
    ├── PathRefusedError            exit 1   a path that is not part of the memory
    ├── NoteNotFoundError           exit 1   a path that could be a note, but does not exist
    ├── EntryNotFoundError          exit 1   an id or citation that matches no remembered entry, or several
    ├── NoteUnreadableError         exit 1   a note that cannot be read
    ├── NotesBusyError              exit 1   another process kept writing notes for too long
    ├── TrashError                  exit 1   the trash cannot be written, or holds nothing to restore
    ├── RememberError               exit 2   a text that cannot be remembered
    ├── QueryError                  exit 2   an invalid search (a limit below 1)
    ├── EmbedderError               exit 1   an embedder is missing, broken or returned invalid vectors
    │   ├── EmbedderUnavailableError
    │   ├── ProviderError                    a remote provider is unreachable, refuses, or sends an invalid response
    │   └── BadVectorError
    ├── CostLimitError              exit 1   embedding would cost more than the settings allow without confirmation
    ├── BackendError                exit 1   the configured search program cannot answer
    ├── RerankerError               exit 1   a reranker is missing, unreachable or sent an invalid response
    ├── ConversationError           exit 1   the session store cannot do what was requested
    │   ├── SessionNotFoundError
    │   ├── SessionExistsError
    │   ├── SessionBusyError
    │   ├── SessionDamagedError
    │   ├── SessionTooNewError
    │   └── SessionInputError
    └── StoreError                  exit 3   the index cannot be used
        ├── IndexCorruptError
        ├── IndexTooNewError
        ├── IndexMismatchError
        ├── IndexForeignError       exit 1
        ├── TenantClaimedError      exit 1
        ├── IndexReadOnlyError      exit 1
        ├── IndexBusyError          exit 1
        ├── StoreUnavailableError   exit 1   the database cannot be reached or gave up; trying again may help
        └── DiskFullError           exit 1

Each error says what happened, and `hint` says what to do next.
"""

from __future__ import annotations

import errno
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import ClassVar

LONGEST_MESSAGE = 2_000  # characters; longer ones repeat user input


def _shortened(text: str) -> str:
    half = LONGEST_MESSAGE // 2
    return text if len(text) <= LONGEST_MESSAGE else f"{text[:half]} ... {text[-half:]}"


class NotewellError(Exception):
    """Base class of all errors that users may see."""

    exit_code: ClassVar[int] = 1

    def __init__(self, message: str, *, hint: str = "") -> None:
        message, hint = _shortened(message), _shortened(hint)
        super().__init__(message)
        self.message = message
        self.hint = hint

    @property
    def full_message(self) -> str:
        """The message and the hint."""
        return f"{self.message}; {self.hint}" if self.hint else self.message

    @property
    def kind(self) -> str:
        """A stable name for programs: `PathRefusedError` is `path_refused`."""
        name = type(self).__name__.removesuffix("Error")
        return "".join(f"_{c.lower()}" if c.isupper() else c for c in name).lstrip("_")


class SettingsError(NotewellError):
    """A settings file, environment variable or flag is invalid."""


class MemoryDisabledError(NotewellError):
    """The settings turn memory off."""

    def __init__(self) -> None:
        super().__init__("memory is turned off", hint="set enabled = true in the settings, or use --set enabled=true")


class WorkspaceError(NotewellError):
    """The workspace cannot be used."""


class WorkspaceNotFoundError(WorkspaceError):
    """No workspace was named, and none was found in the current folder or above."""


class PathRefusedError(NotewellError):
    """The path is not part of the memory; the message does not say why."""

    def __init__(self, path: str, *, similar: tuple[str, ...] = ()) -> None:
        hint = "use a path that a search shows, such as MEMORY.md or memory/topic.md"
        super().__init__(f"not a memory file: {path!r}", hint=_did_you_mean(similar) or hint)


class NoteNotFoundError(NotewellError):
    """The path could be a note of this memory, but no such file exists."""

    def __init__(self, path: str, *, similar: tuple[str, ...] = ()) -> None:
        hint = "the file may have been renamed: search for its content"
        super().__init__(f"no such note: {path!r}", hint=_did_you_mean(similar) or hint)


def _did_you_mean(similar: tuple[str, ...]) -> str:
    return f"did you mean {' or '.join(similar)}?" if similar else ""


class EntryNotFoundError(NotewellError):
    """No remembered entry has this id or citation, or several do."""

    def __init__(self, reference: str, *, count: int = 0) -> None:
        self.count = count
        if count:
            super().__init__(
                f"{reference!r} names {count} remembered entries", hint="name one by its own citation, such as path#L5"
            )
        else:
            super().__init__(
                f"no remembered entry: {reference!r}",
                hint="`notewell list` shows the ids and citations of remembered entries",
            )


class NoteUnreadableError(NotewellError):
    """The note exists, but cannot be read."""

    def __init__(self, path: str, reason: str | OSError) -> None:
        told = (reason.strerror or str(reason)) if isinstance(reason, OSError) else reason
        too_large = isinstance(reason, OSError) and reason.errno == errno.EFBIG
        hint = "split it into several notes" if too_large else "check the file and its permissions"
        super().__init__(f"cannot read {path!r}: {told}", hint=hint)


class NotesBusyError(NotewellError):
    """Another process keeps writing notes of this workspace, or a note keeps changing."""

    def __init__(self, where: str) -> None:
        super().__init__(f"another process is writing notes: {where}", hint="try again when it has finished")


class TrashError(NotewellError):
    """The trash cannot be written, or holds nothing to restore."""


class RememberError(NotewellError):
    """The text cannot be remembered."""

    exit_code = 2


class QueryError(NotewellError):
    """The search is invalid."""

    exit_code = 2


class EmbedderError(NotewellError):
    """An embedder is missing, broken or returned invalid vectors."""


class EmbedderUnavailableError(EmbedderError):
    """The configured embedder cannot run here: a package, model file or key is missing."""


class ProviderError(EmbedderError):
    """A remote provider is unreachable, refuses the key or the request, or sends an invalid response.

    `reason` is a stable word: unreachable, timeout, connection_lost, rate_limited, quota, key, refused, missing,
    server, invalid_response or wrong_dimensions.
    """

    def __init__(self, message: str, *, hint: str = "", reason: str = "server") -> None:
        super().__init__(message, hint=hint)
        self.reason = reason


class BadVectorError(EmbedderError):
    """A vector was NaN, infinite, zero or of the wrong length."""


class CostLimitError(NotewellError):
    """Embedding would cost more than the spending limit, and there is no terminal to confirm it."""


class BackendError(NotewellError):
    """The search program that the settings name is missing, broken or too slow; the builtin index answers instead."""


class RerankerError(NotewellError):
    """A reranker is missing, unreachable or sent an invalid response; a search then keeps its own order."""


class ConversationError(NotewellError):
    """The session store cannot do what was requested."""


class SessionNotFoundError(ConversationError):
    """There is no session with this id."""

    def __init__(self, session_id: str, *, hint: str = "`notewell sessions list` lists all sessions") -> None:
        super().__init__(f"no such session: {session_id!r}", hint=hint)


class SessionExistsError(ConversationError):
    """There is already a session with this id."""

    def __init__(self, session_id: str) -> None:
        super().__init__(f"session {session_id!r} already exists", hint="append to it, or choose another id")


class SessionBusyError(ConversationError):
    """Another process holds the session's lock."""


class SessionDamagedError(ConversationError):
    """A session's file cannot be read; `path` is that file. No other session is affected."""

    def __init__(self, message: str, *, hint: str = "", path: Path | None = None) -> None:
        super().__init__(message, hint=hint)
        self.path = path


class SessionTooNewError(ConversationError):
    """A newer release of notewell wrote the session."""


class SessionInputError(ConversationError):
    """An id, a message or a field that the session store cannot store."""


class StoreError(NotewellError):
    """The index cannot be used."""

    exit_code = 3


REBUILD_HINT = "run `notewell index --force` to rebuild it from the notes; nothing is lost"


class IndexCorruptError(StoreError):
    """An index file is corrupt or is not an index; `path` is that file, if known."""

    def __init__(self, message: str, *, hint: str = REBUILD_HINT, path: Path | None = None) -> None:
        super().__init__(message, hint=hint)
        self.path = path


class IndexTooNewError(StoreError):
    """A newer release of notewell wrote the index."""


class IndexMismatchError(StoreError):
    """The index holds vectors of another embedder than the configured one."""

    def __init__(self, built_with: str, asked_for: str) -> None:
        super().__init__(
            f"the index was built with {built_with}, settings ask for {asked_for}",
            hint="run `notewell index`, or restore the previous embedder",
        )


class IndexForeignError(StoreError):
    """The state folder holds the index and the conversations of another workspace."""

    exit_code = 1

    def __init__(self, folder: Path, owner: str, mark: str) -> None:
        super().__init__(
            f"{folder} belongs to the workspace {owner}",
            hint="write {workspace} into store.path, so that each workspace has a folder of its own; "
            f"if this workspace was moved from there, delete {folder / mark}",
        )


class TenantClaimedError(StoreError):
    """The tenant in the database holds the notes of another workspace."""

    exit_code = 1

    def __init__(self, tenant: str, owner: str) -> None:
        super().__init__(
            f"the tenant {tenant} holds the notes of another workspace (its id is {owner})",
            hint="choose another store.tenant, or read it with store.follow = true; if this is a copy of that"
            " workspace, write its id into .notewell/workspace-id",
        )


class IndexReadOnlyError(StoreError):
    """The index would have to be written, but its folder is read-only."""

    exit_code = 1


class IndexBusyError(StoreError):
    """Another process holds the index's lock."""

    exit_code = 1


class StoreUnavailableError(StoreError):
    """The database cannot be reached, closed the connection or gave up on a statement; trying again may help.

    `unreached` says that it was already tried for some time.
    """

    exit_code = 1

    def __init__(self, message: str, *, hint: str = "", unreached: bool = False) -> None:
        super().__init__(message, hint=hint)
        self.unreached = unreached


class DiskFullError(StoreError):
    """The disk of the index is full; what was committed is intact."""

    exit_code = 1


# --- errors of the operating system -------------------------------------------------------------

NO_SPACE = {errno.ENOSPC, errno.EFBIG, getattr(errno, "EDQUOT", errno.ENOSPC)}  # Windows has no EDQUOT
_NOT_PERMITTED = {errno.EACCES, errno.EPERM, errno.EROFS}


def system_error(error: OSError, path: Path | None = None) -> NotewellError:
    """Return an OSError as a NotewellError with a hint; `path` is named if the error names none."""
    where = error.filename or path
    message = f"{where}: {error.strerror or error}" if where else error.strerror or str(error)
    if error.errno in NO_SPACE:
        return DiskFullError(message, hint="free some space; what was written before is intact")
    return NotewellError(message, hint="check the path and its permissions")


def store_error(error: OSError, path: Path) -> StoreError:
    """Return the StoreError for a failed file operation at or below `path`, where an index is stored."""
    translated = system_error(error, path)
    if isinstance(translated, DiskFullError):
        return translated
    if error.errno in _NOT_PERMITTED:
        return IndexReadOnlyError(translated.message, hint="check the permissions of the folder that holds the index")
    return StoreError(translated.message, hint="check that the disk that holds the index is readable and writable")


@contextmanager
def as_store_errors(path: Path) -> Iterator[None]:
    """Raise OSErrors as StoreErrors, except failed connections to a provider."""
    try:
        yield
    except (ConnectionError, TimeoutError):
        raise
    except OSError as error:
        raise store_error(error, path) from error
