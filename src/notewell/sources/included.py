"""Decides which Markdown files beyond `MEMORY.md`, `memory/` and the extra paths are notes; counts what is left out.

The setting `include` has patterns as a `.gitignore` has them. What a `.gitignore` ignores is left out, and so are the
instructions that agents load themselves, and reports that programs write.
"""

from __future__ import annotations

import os
import re
import shlex
import stat
import time
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from itertools import takewhile
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from notewell.files.no_follow import read_below
from notewell.settings.workspace import EVERY_NOTE
from notewell.sources.transcripts import ARCHIVE, COMPACTED, CORRUPT, REGISTRY, SESSION_ENDING
from notewell.sources.walk import ROOT_FILES, ROOT_FOLDER, is_markdown, is_skipped, is_text
from notewell.types import Problem, Uncovered

if TYPE_CHECKING:
    import pathspec
    from pathspec import Pattern

    from notewell.settings import Settings

    PathSpec = pathspec.PathSpec[Pattern]

GITIGNORE = ".gitignore"
INSTRUCTIONS = frozenset({"claude.md", "claude.local.md", "agents.md", "gemini.md"})  # agents load them themselves
REPORTS = ("memory/dreaming",)  # folders that programs write: OpenClaw's reports on what it promoted, and why
PACKAGES = frozenset({"site-packages"})  # folders of installed programs, besides those that are skipped everywhere
LARGEST_GITIGNORE = 1_000_000  # bytes; a longer one is no list of patterns
MOST_ABOVE = 40  # folders between a workspace and the top of its repository

LONGEST_PATTERN = 4096  # characters, as a path may have

# What pathspec makes of `**/` at the beginning and further on, and of what is between two `*` of one name.
_LEADING_FOLDERS, _FOLDERS = "^(?:.+/)?", "(?:/.+)?"
_BETWEEN_STARS = re.compile(r"\[\^/\]\*((?:\[\^/\](?!\*)|[^/\[]|\[(?!\^/\]))*?)(?=\[\^/\]\*)")
_ANYTHING_BUT = re.compile(r"(?<!\\)\[\^(?!/\])")

Stamp = tuple[int, ...]


class _Ignoring(NamedTuple):
    """The patterns of one `.gitignore`, and how a path of the workspace reads from its folder."""

    spec: PathSpec
    skip: int  # characters at the beginning of the path
    lead: str  # folders between the file and the workspace, if it lies above

    def says(self, path: str) -> bool | None:
        return self.spec.check_file(self.lead + path[self.skip :]).include


@dataclass(frozen=True, slots=True, eq=False)
class FolderRules:
    """What holds for the entries of one folder. The same object comes back for as long as nothing has changed."""

    inclusion: Inclusion
    ignoring: tuple[_Ignoring, ...]  # the nearest first
    stamp: Stamp | None  # of the folder's own .gitignore
    below: dict[str, FolderRules] = field(default_factory=dict)  # by the path of a folder

    def selects(self, path: str) -> bool:
        """Say whether a Markdown file of this folder is a note."""
        return self.inclusion.matches(path) and not self._ignores(path)

    def enters(self, path: str) -> bool:
        """Say whether notes may lie below a folder of this one."""
        return self.inclusion.may_hold(path) and not self._ignores(f"{path}/")

    def _ignores(self, path: str) -> bool:
        return next((said for each in self.ignoring if (said := each.says(path)) is not None), False)


class Inclusion:
    """The patterns of `include` in one workspace."""

    def __init__(self, workspace: str, patterns: Sequence[str]) -> None:
        self._workspace = workspace  # a real path
        self.patterns = tuple(patterns)
        wanted = [pattern for pattern in patterns if not pattern.startswith("!")]
        names = {pattern.rstrip("/").rpartition("/")[2].casefold() for pattern in wanted}
        self._left_out = INSTRUCTIONS - names  # who names a file wants it
        self.reports = tuple(
            folder for folder in REPORTS if not any(p.lstrip("/").startswith(folder) for p in wanted)
        )  # that stay left out
        self._tops = tuple(map(_literal_folders, wanted))
        self._top: FolderRules | None = None
        self._above: tuple[tuple[str, Stamp | None], ...] = ()

    @cached_property
    def _spec(self) -> PathSpec | None:
        return None if self.patterns == (EVERY_NOTE,) else _patterns(self.patterns)

    def matches(self, path: str) -> bool:
        """Say whether a path is one of those that the patterns name."""
        if path in ROOT_FILES or path.rpartition("/")[2].casefold() in self._left_out:
            return False
        return self._spec is None or self._spec.check_file(path).include is True

    def may_hold(self, folder: str) -> bool:
        """Say whether a folder may hold what the patterns name."""
        if folder == ROOT_FOLDER or folder.rpartition("/")[2].lower() in PACKAGES:  # memory/ has rules of its own
            return False
        return any(
            not top or top == folder or top.startswith(f"{folder}/") or folder.startswith(f"{top}/")
            for top in self._tops
        )

    def holds(self, path: str) -> bool:
        """Say whether a file of the workspace is a note by these rules, whether it is there or not."""
        if not is_markdown(path):
            return False
        *folders, _ = path.split("/")
        rules, above = self.top(), ""
        for name in folders:
            folder = f"{above}/{name}" if above else name
            if not rules.enters(folder):
                return False
            rules, above = self.within(rules, folder), folder
        return rules.selects(path)

    def top(self) -> FolderRules:
        """Return the rules of the workspace itself; its repository may begin further up."""
        above = tuple((folder, _stamp_of(folder)) for folder in _repository_above(self._workspace))
        own = _stamp_of(self._workspace)
        if self._top is None or self._above != above or self._top.stamp != own:
            ignoring = [_Ignoring(_spec_of(self._workspace, own), 0, "")] if own else []
            for folder, stamp in above:
                if stamp:
                    lead = os.path.relpath(self._workspace, folder).replace(os.sep, "/") + "/"
                    ignoring.append(_Ignoring(_spec_of(folder, stamp), 0, lead))
            self._above, self._top = above, FolderRules(self, tuple(ignoring), own)
        return self._top

    def rules_of(self, folder: str, known: dict[str, FolderRules]) -> FolderRules:
        """Return the rules of a folder in a walk, which comes to the folder above first; `known` holds those so far."""
        if folder not in known:
            known[folder] = self.within(known[folder.rpartition("/")[0]], folder)
        return known[folder]

    def within(self, above: FolderRules, folder: str) -> FolderRules:
        """Return the rules of a folder by those of the folder above it."""
        real = os.path.join(self._workspace, *folder.split("/"))  # noqa: PTH118 - strings, as the walk
        stamp = _stamp_of(real)
        known = above.below.get(folder)
        if known is None or known.stamp != stamp:
            own = (_Ignoring(_spec_of(real, stamp), len(folder) + 1, ""),) if stamp else ()
            known = above.below[folder] = FolderRules(self, (*own, *above.ignoring), stamp)
        return known


def count_uncovered(workspace: str, covered: Collection[str] = (), *, limit_s: float | None = None) -> Uncovered:
    """Count the files that `include = ["**/*.md"]` would add; only names are looked at.

    `covered` are stored paths of files and folders that are part of the memory already. After `limit_s` the count ends
    as it is.
    """
    ends_at = None if limit_s is None else time.monotonic() + limit_s
    inclusion = Inclusion(workspace, (EVERY_NOTE,))
    count = 0
    problems: list[Problem] = []
    waiting = [(workspace, "", inclusion.top())]
    while waiting:
        if ends_at is not None and time.monotonic() >= ends_at:
            return Uncovered(count, complete=False, problems=tuple(problems))
        real, folder, rules = waiting.pop()
        try:
            with os.scandir(real) as entries:
                found = [(entry.name, entry.is_dir(follow_symlinks=False), entry.is_symlink()) for entry in entries]
        except OSError as error:
            problems.append(Problem(folder or ".", f"cannot be read: {error.strerror}"))
            continue
        for name, is_folder, is_link in found:
            path = f"{folder}/{name}" if folder else name
            if is_link or is_skipped(name) or path in covered or not is_text(name):
                continue
            if is_folder:
                if rules.enters(path):
                    below = os.path.join(real, name)  # noqa: PTH118
                    waiting.append((below, path, inclusion.within(rules, path)))
            elif is_markdown(name):
                count += rules.selects(path)
    return Uncovered(count, complete=True, problems=tuple(sorted(problems, key=lambda problem: problem.path)))


# --- .gitignore ----------------------------------------------------------------------------------


def _repository_above(workspace: str) -> Iterator[str]:
    """Yield the folders above a workspace up to the top of the git repository that it lies in, the nearest first."""
    if os.path.exists(os.path.join(workspace, ".git")):  # noqa: PTH110, PTH118
        return
    above: list[str] = []
    folder = os.path.dirname(workspace)  # noqa: PTH120
    while len(above) < MOST_ABOVE:
        above.append(folder)
        if os.path.exists(os.path.join(folder, ".git")):  # noqa: PTH110, PTH118
            yield from above
            return
        folder, last = os.path.dirname(folder), folder  # noqa: PTH120
        if folder == last:
            return


def _stamp_of(folder: str) -> Stamp | None:
    """Return what tells the folder's `.gitignore` from a changed one; None where there is none."""
    try:
        info = os.lstat(f"{folder}{os.sep}{GITIGNORE}")
    except OSError:
        return None
    if not stat.S_ISREG(info.st_mode):
        return None
    return info.st_mtime_ns, info.st_ctime_ns, info.st_size, info.st_ino


@lru_cache(maxsize=1024)  # as many folders of one workspace have rules of their own
def _spec_of(folder: str, stamp: Stamp) -> PathSpec:  # noqa: ARG001 - the stamp tells when to read it again
    try:
        raw, _ = read_below(folder, (GITIGNORE,), most_bytes=LARGEST_GITIGNORE)
    except OSError:  # gone, or unreadable: git, too, goes on without it
        raw = b""
    return _patterns(raw.decode("utf-8", "replace").splitlines(), of_git=True)


def _patterns(lines: Iterable[str], *, of_git: bool = False) -> PathSpec:
    import pathspec  # 7 ms, for those who have such patterns
    from pathspec.patterns.gitignore.basic import GitIgnoreBasicPattern
    from pathspec.patterns.gitignore.spec import GitIgnoreSpecPattern

    class Steady(GitIgnoreSpecPattern if of_git else GitIgnoreBasicPattern):  # type: ignore[misc]
        @classmethod
        def pattern_to_regex(cls, pattern: Any) -> tuple[Any, bool | None]:
            regex, include = super().pattern_to_regex(pattern)
            return regex and _without_second_thoughts(regex), include

    # To git a folder that is ignored counts more than a file that is not; in `include` the last match decides.
    kind = pathspec.GitIgnoreSpec if of_git else pathspec.PathSpec

    def made(lines: Iterable[str]) -> PathSpec:
        return kind.from_lines(Steady, lines)

    def is_pattern(line: str) -> bool:
        try:
            made([line])
        except ValueError:
            return False
        return True

    lines = [line for line in lines if len(line) <= LONGEST_PATTERN]
    try:
        return made(lines)
    except ValueError:  # git passes over a line that is no pattern
        return made(filter(is_pattern, lines))


def _without_second_thoughts(regex: str) -> str:
    """Return the regular expression of a pattern so that `*a*a*a*a*b` takes no exponential time.

    What is between two wildcards is taken where it first fits, for good: what follows a later place fits there, too.
    """
    regex = _BETWEEN_STARS.sub(r"(?>[^/]*?\1)", regex)
    regex = _ANYTHING_BUT.sub("(?!/)[^", regex)  # as in git, `[!a]` is no slash
    first, *middle = regex.split(_FOLDERS)
    if not middle:
        return regex
    last = middle.pop()
    if first.startswith(_LEADING_FOLDERS):
        first = f"^(?>(?:.+?/)??{first.removeprefix(_LEADING_FOLDERS)}(?=/))"
    return "".join([first, *(f"(?>(?:/.+?)??{part}(?=/))" for part in middle), _FOLDERS, last])


def _literal_folders(pattern: str) -> str:
    """Return the folders at the beginning of a pattern that hold no wildcard; empty: it may match anywhere."""
    folders = pattern.strip("/").split("/")[:-1]
    return "/".join(takewhile(lambda part: not any(char in part for char in "*?[\\"), folders))


# --- conversations that are left out -----------------------------------------------------------


def unsearched_conversations(
    settings: Settings, agent: str, own_folder: Path, workspace: Path, *, own: bool = False
) -> Iterator[str]:
    """Yield notes on the conversations of the agent itself and of other programs that are left out of search.

    `own_folder` is the folder of the session store; with `own` only what it holds counts. Only names are looked at.
    """
    if not settings.sessions.offer or (own and not own_folder.is_dir()):
        return
    if "sessions" not in settings.sources:
        if settings.sessions.paths:
            why = "while `sources` leaves out conversations"
            yield f"sessions.paths has no effect {why}: run `notewell sessions enable`"
        elif count := _count([own_folder]):
            yield _left_out(count, "this agent")
    if own:
        return
    programs = {
        "OpenClaw": openclaw_folders(agent),
        "Claude Code": claude_code_folders(workspace),
        "Codex": codex_folders(),
    }
    for program, folders in programs.items():
        missing = [folder for folder in folders if not _is_among(folder, settings.sessions.paths)]
        if count := _count(missing):
            yield _left_out(count, program, *map(_for_a_shell, missing))


def _left_out(count: int, whose: str, *folders: str) -> str:
    conversations = f"{count:,} conversations" if count > 1 else "1 conversation"
    command = " ".join(["notewell sessions enable", *folders])
    return f"{conversations} of {whose} {'are' if count > 1 else 'is'} not searched: run `{command}`"


def openclaw_folders(agent: str) -> list[Path]:
    """Return where OpenClaw keeps conversations: of its agent of that name, else of all, and those of no agent."""
    top = Path(os.environ.get("OPENCLAW_STATE_DIR") or "~/.openclaw").expanduser()
    own = top / "agents" / agent / "sessions"
    folders = [own] if own.is_dir() else sorted((top / "agents").glob("*/sessions"))
    return [folder for folder in (*folders, top / "sessions") if folder.is_dir()]


def claude_code_folders(workspace: Path) -> list[Path]:
    """Return where Claude Code keeps conversations: those of the workspace's own project, else all."""
    top = Path(os.environ.get("CLAUDE_CONFIG_DIR") or "~/.claude").expanduser() / "projects"
    own = top / re.sub(r"[^A-Za-z0-9]", "-", os.path.realpath(workspace))
    return [folder for folder in ([own] if own.is_dir() else [top]) if folder.is_dir()]


def codex_folders() -> list[Path]:
    """Return where Codex keeps conversations."""
    folder = Path(os.environ.get("CODEX_HOME") or "~/.codex").expanduser() / "sessions"
    return [folder] if folder.is_dir() else []


def _count(folders: Iterable[Path]) -> int:
    """Count conversations by the names of their files; folders that cannot be listed are passed over."""
    count = 0
    for _, below, names in (walked for folder in folders for walked in os.walk(folder)):
        below[:] = [name for name in below if name not in {CORRUPT, COMPACTED, ARCHIVE} and not name.startswith(".")]
        count += sum(
            name.endswith((".jsonl", SESSION_ENDING)) and name != REGISTRY and not name.startswith(".")
            for name in names
        )
    return count


def _is_among(folder: Path, named: Collection[Path]) -> bool:
    real = Path(os.path.realpath(folder))
    return any(real.is_relative_to(os.path.realpath(path)) for path in named)


def _for_a_shell(folder: Path) -> str:
    home = Path("~").expanduser()
    if folder.is_relative_to(home):
        return f"~/{shlex.quote(folder.relative_to(home).as_posix())}"
    return shlex.quote(str(folder))
