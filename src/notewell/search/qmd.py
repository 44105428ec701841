"""Searches with QMD, a program with an index of its own, and keeps that index up to date in the background."""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
import threading
import time
import weakref
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

import filelock

from notewell.errors import BackendError, NotewellError, StoreError
from notewell.files.atomic import write_atomically
from notewell.files.bounded_process import LimitExceededError, run_bounded
from notewell.files.no_follow import read_regular
from notewell.search.qmd_output import Result, hit_of, parse_results, plain
from notewell.search.query import LONGEST_QUERY
from notewell.sources.notes import roots_of
from notewell.sources.walk import ROOT_FILES, ROOT_FOLDER
from notewell.text import valid_unicode
from notewell.text.redaction import redact
from notewell.types import Fallback, FileStamp, IndexState, SearchAnswer, hash_text

if TYPE_CHECKING:
    from collections.abc import Iterable
    from subprocess import CompletedProcess

    from notewell.search.options import SearchRequest
    from notewell.settings import Settings
    from notewell.sources.notes import NotesSource
    from notewell.store.state_folder import StateFolder
    from notewell.types import Document, Hit, Listing, Scope, SearchMode

MODES: dict[str, SearchMode] = {"search": "keyword", "vsearch": "semantic", "query": "hybrid"}
COMMANDS = {mode: command for command, mode in MODES.items()}
SUPPORTED = ((2, 6), (3, 0))  # from, below: before 2.6 it changed the names of files; 2.8.3 is tested
INSTALL = "`npm install -g @tobilu/qmd`"
MARKDOWN = "*.[mM][dD]"
UPDATE_S = EMBED_S = 120.0  # OpenClaw's limits
CLOSE_WAIT_S = 2.0  # for an update in progress: a command that ends right after its answer must finish some
FIRST_PAUSE_S, LONGEST_PAUSE_S = 2.0, 300.0  # before QMD is searched again after a failure; doubled each time
FIRST_EMBED_PAUSE_S, LONGEST_EMBED_PAUSE_S = 60.0, 3600.0  # OpenClaw's
_VERSION = re.compile(r"\bqmd (\d+)\.(\d+)\S*")
_UNEMBEDDED = re.compile(r"(?<!\d)(\d+) documents (?:\(\d+%\) )?need embeddings")
_TYPED = re.compile(r"\s*(?:lex|vec|hyde|intent):\s*\S", re.IGNORECASE)
_OWN_COLLECTION = re.compile(r"^  (notes-[0-9a-f]{12}):", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Trouble:
    """Why QMD did not answer, and when it is tried again."""

    reason: str
    failures: int
    retry_at: float


@dataclass(frozen=True, slots=True)
class State:
    """What is remembered from one process to the next."""

    program: str = ""  # the file whose version was checked
    version: str = ""
    files: str = ""  # identifies the notes as they were at the last update
    updated_at: float = 0.0  # 0: never
    problem: str = ""  # why the last update failed
    troubles: dict[str, Trouble] = field(default_factory=dict)  # by QMD's mode
    embedding: Trouble | None = None


@dataclass(frozen=True, slots=True)
class Collection:
    """A folder as QMD is told of it, and the pattern of the notes in it."""

    folder: Path
    mask: str

    @property
    def name(self) -> str:
        return f"notes-{hash_text(f'{self.folder}|{self.mask}')[:12]}"


class Qmd:
    """QMD's index of one agent's notes. Every method raises BackendError for what QMD cannot do."""

    def __init__(self, settings: Settings, workspace: Path, state_folder: StateFolder, notes: NotesSource) -> None:
        self._settings = settings
        self._workspace = workspace
        self._state_folder = state_folder
        self._notes = notes
        self.folder = state_folder.path / "qmd"
        self._state_file = self.folder / "notewell.json"
        self._lock = threading.Lock()  # of the state and the thread
        self._stop, self._wake = threading.Event(), threading.Event()
        self._thread: threading.Thread | None = None
        self._uses_vectors = settings.qmd.mode != "search"

    # --- searching -------------------------------------------------------------------------------

    def search(self, request: SearchRequest) -> SearchAnswer:
        """Return QMD's answer about notes. While a pause after a failure lasts, the failure is raised again."""
        self.start()
        command = COMMANDS[request.asked_mode] if request.asked_mode else self._settings.qmd.mode
        self._uses_vectors = self._uses_vectors or command != "search"
        state = self.state()
        if not state.updated_at:
            raise BackendError(state.problem or "QMD has not indexed the notes yet", hint="run `notewell index`")
        trouble = state.troubles.get(command)
        if trouble and time.time() < trouble.retry_at:
            raise BackendError(trouble.reason)
        try:
            answer = self._answer(request, command)
        except (BackendError, OSError, ValueError) as error:
            failed = _trouble(error, trouble, FIRST_PAUSE_S, LONGEST_PAUSE_S)
            self._remember(troubles=self.state().troubles | {command: failed})
            raise BackendError(failed.reason) from error
        if trouble:
            self._remember(troubles={mode: kept for mode, kept in self.state().troubles.items() if mode != command})
        return answer

    def _answer(self, request: SearchRequest, command: str) -> SearchAnswer:
        give_up = time.monotonic() + self._settings.qmd.timeout_ms / 1000
        version = self.version(give_up - time.monotonic())
        listing = self._notes.list()
        stale = _identity_of(listing) != self.state().files
        notes = [f"answered by qmd {version} ({command}); min_score is not applied to its scores"]
        # One result a file, so that as many as there are files are all; what is filtered out below must be made up for.
        wanted, most = request.limit, len(listing.files) * len(self._collections())
        while True:
            results, told = self._results(request.query, command, wanted, give_up - time.monotonic())
            hits, changed = self._hits(results, request, MODES[command])
            if len(hits) >= request.limit or len(results) < wanted or wanted >= most:
                break
            wanted = min(most, wanted * 8)
        notes += told
        if changed:
            notes.append(f"{changed} results are left out: their notes changed since QMD's last update")
        if self.state().problem:
            notes.append(f"QMD's index could not be updated: {self.state().problem}")
        elif stale:
            notes.append("some notes changed since QMD's last update")
            if self._settings.sync.on_search:
                self._wake.set()
        index = IndexState(len(listing.files), 0, 0, stale=stale)
        hits = hits[: request.limit]
        return SearchAnswer(request.query, MODES[command], tuple(hits), index, tuple(notes), backend="qmd")

    def _results(self, query: str, command: str, limit: int, timeout_s: float) -> tuple[list[Result], list[str]]:
        """Ask QMD; return its results, best first, and what the reader should know."""
        chosen = [word for collection in self._collections() for word in ("-c", collection.name)]
        words = (command, "--json", "-n", str(limit), *chosen, "--", _one_line(query))
        done = self._run(*words, timeout_s=timeout_s)
        parsed = parse_results(done.stdout)
        if parsed is None:
            raise BackendError(f"`qmd {command}` printed no results that can be read")  # nor quoted: text of any note
        results, complete = parsed
        notes = [] if complete else [f"QMD's output was cut off after {len(results)} results"]
        unembedded = _UNEMBEDDED.search(plain(done.stderr)) if command != "search" else None
        if unembedded and not results:  # it exits 0 with an empty list
            raise BackendError(f"QMD has no vectors yet for {unembedded[1]} notes", hint="run `notewell index`")
        if unembedded:
            notes.append(f"{unembedded[1]} notes have no vectors in QMD yet")
        return results, notes

    def _hits(self, results: Iterable[Result], request: SearchRequest, found_by: SearchMode) -> tuple[list[Hit], int]:
        """Return the hits that this audience may see, and how many results no longer match their note."""
        folders = {collection.name: collection.folder for collection in self._collections()}
        hits: dict[str, Hit] = {}
        changed = 0
        for result in results:
            folder = folders.get(result.collection)
            path = self._notes.stored_path(folder / result.path) if folder else None
            if path is None or path in hits:  # none of ours, or a note of two collections
                continue
            try:
                document = self._notes.read(FileStamp("memory", path, 0, 0))
            except OSError:
                changed += 1
                continue
            if not _in_scope(document, request.scope):
                continue
            if self._settings.redaction.notes:
                result = replace(result, text=redact(result.text).text)  # noqa: PLW2901
            hit = hit_of(result, document, request.query, found_by=found_by, explain=request.explain)
            if hit is None:
                changed += 1
            else:
                hits[path] = hit
        return list(hits.values()), changed

    @property
    def mode(self) -> SearchMode:
        """How searches compare that ask for no mode."""
        return MODES[self._settings.qmd.mode]

    def fallback(self) -> Fallback | None:
        """Return why QMD would not answer a search in its configured mode; None when it would."""
        state = self.state()
        trouble = state.troubles.get(self._settings.qmd.mode)
        reason = trouble.reason if trouble else ""
        if not state.updated_at:
            reason = state.problem or "QMD has not indexed the notes yet"
        return Fallback("qmd", reason) if reason else None

    # --- its index -------------------------------------------------------------------------------

    def start(self) -> None:
        """Update the index in the background from now on: at once if `qmd.on_start`, then at every interval."""
        with self._lock:
            if self._thread is not None and self._thread.is_alive():
                return
            interval_s = self._settings.qmd.update_minutes * 60.0
            left_s = self.state().updated_at + interval_s - time.time()
            first_s = 0.0 if self._settings.qmd.on_start else max(0.0, left_s)
            self._stop, self._wake = threading.Event(), threading.Event()
            arguments = (weakref.ref(self), self._stop, self._wake, first_s, interval_s)
            self._thread = threading.Thread(target=_cycle, args=arguments, name="notewell-qmd", daemon=True)
            weakref.finalize(self, _end, self._stop, self._wake, self._thread)
            self._thread.start()

    def close(self) -> None:
        """End the background work, after a short wait for an update in progress; a later search starts it again."""
        with self._lock:
            thread, self._thread = self._thread, None
        if thread is None:
            return
        with suppress(filelock.Timeout, BackendError), self._update_lock(CLOSE_WAIT_S):
            pass
        _end(self._stop, self._wake, thread)

    def update(self, *, wait_s: float = UPDATE_S, stop: threading.Event | None = None) -> bool:
        """Index what changed, then embed it if a mode with vectors is used; False when another update went on."""
        try:
            with self._update_lock(wait_s):
                began, files = time.time(), _identity_of(self._notes.list())
                self.version()
                self._share_models()
                if not self._set_collections(stop):
                    self._run("update", timeout_s=UPDATE_S, stop=stop)
                self._remember(updated_at=began, files=files, problem="")
                if self._uses_vectors:
                    self._embed(stop)
        except filelock.Timeout:
            return False
        except (BackendError, OSError) as error:
            if stop is None or not stop.is_set():
                self._remember(problem=str(error))
            raise BackendError(str(error), hint=error.hint if isinstance(error, BackendError) else "") from error
        return True

    def erase(self) -> None:
        """Delete QMD's index, with every text in it; the next update makes a new one."""
        self.close()
        try:
            with self._update_lock(UPDATE_S):
                for file in (self.folder / "xdg-cache" / "qmd").glob("index.sqlite*"):
                    file.unlink(missing_ok=True)
                self._remember(updated_at=0.0, files="", problem="", troubles={}, embedding=None)
        except filelock.Timeout as error:
            raise BackendError("another process is updating QMD's index", hint="try again later") from error

    def _share_models(self) -> None:
        """Use the models that the user's own QMD has downloaded, if there are any: 2 GB."""
        cache = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")  # noqa: PTH111
        downloaded = Path(cache) / "qmd" / "models"
        link = self.folder / "xdg-cache" / "qmd" / "models"
        if downloaded.is_dir() and not link.exists():
            link.parent.mkdir(parents=True, exist_ok=True)
            with suppress(OSError):  # QMD downloads its own
                link.symlink_to(downloaded)

    def _set_collections(self, stop: threading.Event | None) -> bool:
        """Tell QMD which folders to index, and return whether it has just indexed them all for that."""
        config = self.folder / "xdg-config" / "qmd" / "index.yml"
        text = read_regular(config).decode("utf-8", "replace") if config.exists() else ""
        known = set(_OWN_COLLECTION.findall(text))
        wanted = {collection.name: collection for collection in self._collections()}
        for name in sorted(known - wanted.keys()):
            self._run("collection", "remove", name, timeout_s=UPDATE_S, stop=stop)
        new = sorted(wanted.keys() - known)
        for name in new:
            add = ("collection", "add", str(wanted[name].folder), "--name", name, "--mask", wanted[name].mask)
            self._run(*add, timeout_s=UPDATE_S, stop=stop)
        return len(new) == len(wanted)

    def _collections(self) -> list[Collection]:
        """Return what to index: the workspace's own notes as one collection, each extra path as one more."""
        own = ",".join((*ROOT_FILES, f"{ROOT_FOLDER}/**/{MARKDOWN}"))
        mask = f"**/{MARKDOWN}" if self._settings.include else f"{{{own}}}"  # more than is included; we filter
        found = [Collection(Path(os.path.realpath(self._workspace)), mask)]
        for root in roots_of(self._workspace, self._settings.extra_paths)[0]:
            path = Path(root.real_path)
            if root.is_extra and path.is_dir():
                found.append(Collection(path, f"**/{MARKDOWN}"))
            elif root.is_extra and path.is_file():  # characters with a meaning in patterns stand for any; we filter
                found.append(Collection(path.parent, re.sub(r"[^\w.-]", "?", path.name)))
        return found

    def _embed(self, stop: threading.Event | None) -> None:
        earlier = self.state().embedding
        if earlier and time.time() < earlier.retry_at:
            return
        try:
            self._run("embed", timeout_s=EMBED_S, stop=stop)
        except BackendError as error:
            if stop is None or not stop.is_set():
                failed = _trouble(error, earlier, FIRST_EMBED_PAUSE_S, LONGEST_EMBED_PAUSE_S)
                self._remember(embedding=failed)
        else:
            self._remember(embedding=None)

    # --- the program and its state ---------------------------------------------------------------

    def version(self, timeout_s: float = UPDATE_S) -> str:
        """Return the version; asked for once for each program file. Unknown flags do not make QMD fail."""
        program = Path(self._program()).resolve()
        info = program.stat()
        checked = f"{program}:{info.st_mtime_ns}:{info.st_size}"
        state = self.state()
        if state.program == checked:
            return state.version
        done = self._run("--version", timeout_s=timeout_s)
        found = _VERSION.search(plain(done.stdout))
        low, high = SUPPORTED
        if not found or not low <= (int(found[1]), int(found[2])) < high:
            which = found[0] if found else f"the version of {self._settings.qmd.command!r}"
            raise BackendError(f"{which} is not supported", hint=f"{INSTALL}: 2.6 or later, before 3")
        version = found[0].removeprefix("qmd ")
        self._remember(program=checked, version=version)
        return version

    def _program(self) -> str:
        if sys.platform == "win32":  # nothing there ends a whole group of processes, or quotes for a .cmd file
            raise BackendError("the QMD backend does not run on Windows", hint='set backend = "builtin"')
        command = os.path.expanduser(self._settings.qmd.command)  # noqa: PTH111 - `~nobody` is no error here
        if found := shutil.which(command):
            return str(Path(found).absolute())
        raise BackendError(f"the program {command!r} was not found", hint=f"{INSTALL}, or set qmd.command")

    def _run(self, *words: str, timeout_s: float, stop: threading.Event | None = None) -> CompletedProcess[str]:
        """Run QMD with its index in our folder, whatever other configuration there is; raises BackendError."""
        self._make_folder()
        # `--index` keeps it from taking a `.qmd` folder here or in any folder above, such as the workspace.
        line = [self._program(), "--index", "index", *words]
        called = " ".join(("qmd", *words[: 2 if words[0] == "collection" else 1]))
        elsewhere = {"INDEX_PATH", "QMD_CONFIG_DIR"}
        environment = {name: value for name, value in os.environ.items() if name not in elsewhere} | {
            "XDG_CONFIG_HOME": str(self.folder / "xdg-config"),
            "XDG_CACHE_HOME": str(self.folder / "xdg-cache"),
            "PWD": str(self.folder),
            "NO_COLOR": "1",
        }
        try:
            done = run_bounded(
                line,
                folder=self.folder,
                environment=environment,
                timeout_s=timeout_s,
                max_rss_mb=self._settings.qmd.max_rss_mb,
                stop=stop,
            )
        except LimitExceededError as error:
            raise BackendError(f"`{called}` {error}", hint="see qmd.timeout_ms and qmd.max_rss_mb") from error
        except OSError as error:
            raise BackendError(f"`{called}` cannot be run: {error.strerror or error}") from error
        if done.returncode:
            said = _complaint(done.stderr)
            raise BackendError(f"`{called}` failed with exit code {done.returncode}: {said}".removesuffix(": "))
        return done

    def _make_folder(self) -> None:
        try:
            self._state_folder.ensure()
            self.folder.mkdir(exist_ok=True)
        except (StoreError, OSError) as error:
            raise BackendError(f"{self.folder} cannot be created: {error}") from error

    def _update_lock(self, timeout_s: float) -> filelock.BaseFileLock:
        """Return the lock that one update holds, of all threads and processes."""
        self._make_folder()
        return filelock.FileLock(self.folder / "update.lock", timeout=timeout_s)

    def state(self) -> State:
        """Return what is remembered; a file that cannot be read is as none."""
        try:
            values = json.loads(read_regular(self._state_file))
            troubles = {mode: Trouble(**values) for mode, values in values.pop("troubles").items()}
            embedding = values.pop("embedding")
            return State(**values, troubles=troubles, embedding=Trouble(**embedding) if embedding else None)
        except (OSError, ValueError, TypeError, KeyError, AttributeError, RecursionError):
            return State()

    def _remember(self, **values: object) -> None:
        with self._lock:
            self._make_folder()
            try:
                write_atomically(self._state_file, json.dumps(asdict(replace(self.state(), **values))))  # type: ignore[arg-type]
            except OSError as error:
                raise BackendError(f"{self._state_file} cannot be written: {error.strerror or error}") from error


def _cycle(
    qmd: weakref.ref[Qmd], stop: threading.Event, wake: threading.Event, pause_s: float, interval_s: float
) -> None:
    """Update at every interval, or when woken, for as long as somebody holds the backend."""
    while True:
        wake.wait(pause_s)
        wake.clear()
        backend = None if stop.is_set() else qmd()
        if backend is None:
            return
        with suppress(NotewellError):  # kept in its state, for the next answer to tell
            backend.update(wait_s=0, stop=stop)
        del backend
        pause_s = interval_s


def _end(stop: threading.Event, wake: threading.Event, thread: threading.Thread) -> None:
    stop.set()
    wake.set()
    if thread.is_alive() and thread is not threading.current_thread():
        thread.join()


def _trouble(error: Exception, earlier: Trouble | None, first_pause_s: float, longest_pause_s: float) -> Trouble:
    failures = earlier.failures + 1 if earlier else 1
    pause_s = min(longest_pause_s, first_pause_s * 2 ** min(failures - 1, 30))
    return Trouble(str(error), failures, time.time() + pause_s)


def _in_scope(document: Document, scope: Scope) -> bool:
    """Return whether a search may show a note: QMD knows neither private notes nor dates."""
    if scope.public_only and document.private:
        return False
    if document.dated is None:
        return scope.undated or (scope.since is None and scope.until is None)
    return (scope.since is None or document.dated >= scope.since) and (
        scope.until is None or document.dated <= scope.until
    )


def _identity_of(listing: Listing) -> str:
    return hash_text(repr(listing.files))


def _one_line(query: str) -> str:
    """Return a query as QMD takes it: on one line, unless every line is of a type that it knows."""
    query = valid_unicode(query[:LONGEST_QUERY].replace("\0", " "))
    lines = [line for line in query.split("\n") if line.strip()]
    return "\n".join(lines) if all(map(_TYPED.match, lines)) else " ".join(query.split())


def _complaint(text: str) -> str:
    """Return the line of stderr that says what is wrong: the first that names an error, else the last."""
    lines = [line.strip()[:200] for line in plain(text).splitlines() if line.strip()]
    return next((line for line in lines if "Error:" in line), lines[-1] if lines else "")
