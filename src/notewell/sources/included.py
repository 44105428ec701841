"""Chooses notes by the patterns of `include`, and counts files and conversations that are not indexed.

The patterns are those of a `.gitignore`. Ignored files are left out, and so are instructions that agents load
themselves and reports that programs write.
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
REPORTS = ("memory/dreaming",)  # written by programs: OpenClaw's reports on promoted memories
PACKAGES = frozenset({"site-packages"})  # installed programs, in addition to folders that are always skipped
LARGEST_GITIGNORE = 1_000_000  # bytes; a longer file is not a list of patterns
MOST_ABOVE = 40  # folders checked above a workspace for the top of its repository

LONGEST_PATTERN = 4096  # characters, as a path may have

# How pathspec translates a leading `**/`, a later one, and what is between two `*` of one name.
_LEADING_FOLDERS, _FOLDERS = "^(?:.+/)?", "(?:/.+)?"
_BETWEEN_STARS = re.compile(r"\[\^/\]\*((?:\[\^/\](?!\*)|[^/\[]|\[(?!\^/\]))*?)(?=\[\^/\]\*)")
_ANYTHING_BUT = re.compile(r"(?<!\\)\[\^(?!/\])")

Stamp = tuple[int, ...]


class _Ignoring(NamedTuple):
    """The patterns of one `.gitignore`, and how to make a path of the workspace relative to its folder."""

    spec: PathSpec
    skip: int  # characters at the beginning of the path
    lead: str  # folders between the file and the workspace, if it lies above

    def says(self, path: str) -> bool | None:
        return self.spec.check_file(self.lead + path[self.skip :]).include


@dataclass(frozen=True, slots=True, eq=False)
class FolderRules:
    """The rules for the entries of one folder; the same object is returned until something changes."""

    inclusion: Inclusion
    ignoring: tuple[_Ignoring, ...]  # the nearest first
    stamp: Stamp | None  # of the folder's own .gitignore
    below: dict[str, FolderRules] = field(default_factory=dict)  # by the path of a folder

    def selects(self, path: str) -> bool:
        """Return whether a Markdown file of this folder is a note."""
        return self.inclusion.matches(path) and not self._ignores(path)

    def enters(self, path: str) -> bool:
        """Return whether notes may lie below a folder of this one."""
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
        self._left_out = INSTRUCTIONS - names  # a file that is named is wanted
        self.reports = tuple(
            folder for folder in REPORTS if not any(p.lstrip("/").startswith(folder) for p in wanted)
        )  # still left out
        self._tops = tuple(map(_literal_folders, wanted))
        self._top: FolderRules | None = None
        self._above: tuple[tuple[str, Stamp | None], ...] = ()

    @cached_property
    def _spec(self) -> PathSpec | None:
        return None if self.patterns == (EVERY_NOTE,) else _patterns(self.patterns)

    def matches(self, path: str) -> bool:
        """Return whether a path matches the patterns."""
        if path in ROOT_FILES or path.rpartition("/")[2].casefold() in self._left_out:
            return False
        return self._spec is None or self._spec.check_file(path).include is True

    def may_hold(self, folder: str) -> bool:
        """Return whether a folder may contain matching files."""
        if folder == ROOT_FOLDER or folder.rpartition("/")[2].lower() in PACKAGES:  # memory/ is indexed anyway
            return False
        return any(
            not top or top == folder or top.startswith(f"{folder}/") or folder.startswith(f"{top}/")
            for top in self._tops
        )

    def holds(self, path: str) -> bool:
        """Return whether a path of the workspace is a note by these rules, even if it does not exist."""
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
        """Return the rules of the workspace itself, including those of its repository above."""
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
        """Return the rules of a folder during a walk, in which its parent comes first; `known` caches them."""
        if folder not in known:
            known[folder] = self.within(known[folder.rpartition("/")[0]], folder)
        return known[folder]

    def within(self, above: FolderRules, folder: str) -> FolderRules:
        """Return the rules of a folder, given those of its parent."""
        real = os.path.join(self._workspace, *folder.split("/"))  # noqa: PTH118 - strings, as the walk
        stamp = _stamp_of(real)
        known = above.below.get(folder)
        if known is None or known.stamp != stamp:
            own = (_Ignoring(_spec_of(real, stamp), len(folder) + 1, ""),) if stamp else ()
            known = above.below[folder] = FolderRules(self, (*own, *above.ignoring), stamp)
        return known


def count_uncovered(workspace: str, covered: Collection[str] = (), *, limit_s: float | None = None) -> Uncovered:
    """Count the files that `include = ["**/*.md"]` would add, by their names only.

    `covered` are stored paths that are already part of the memory. Counting stops after `limit_s`.
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
    """Yield the folders above a workspace up to the top of its git repository, nearest first."""
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
    """Return the state of a folder's `.gitignore`; None if there is none."""
    try:
        info = os.lstat(f"{folder}{os.sep}{GITIGNORE}")
    except OSError:
        return None
    if not stat.S_ISREG(info.st_mode):
        return None
    return info.st_mtime_ns, info.st_ctime_ns, info.st_size, info.st_ino


@lru_cache(maxsize=1024)  # more folders than one workspace has `.gitignore` files
def _spec_of(folder: str, stamp: Stamp) -> PathSpec:  # noqa: ARG001 - part of the cache key
    try:
        raw, _ = read_below(folder, (GITIGNORE,), most_bytes=LARGEST_GITIGNORE)
    except OSError:  # gone or unreadable: git ignores that, too
        raw = b""
    return _patterns(raw.decode("utf-8", "replace").splitlines(), of_git=True)


def _patterns(lines: Iterable[str], *, of_git: bool = False) -> PathSpec:
    import pathspec  # takes 7 ms
    from pathspec.patterns.gitignore.basic import GitIgnoreBasicPattern
    from pathspec.patterns.gitignore.spec import GitIgnoreSpecPattern

    class Steady(GitIgnoreSpecPattern if of_git else GitIgnoreBasicPattern):  # type: ignore[misc]
        @classmethod
        def pattern_to_regex(cls, pattern: Any) -> tuple[Any, bool | None]:
            regex, include = super().pattern_to_regex(pattern)
            return regex and _without_second_thoughts(regex), include

    # In git an ignored folder wins over a file that is not ignored; in `include` the last match decides.
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
    except ValueError:  # git skips invalid lines
        return made(filter(is_pattern, lines))


def _without_second_thoughts(regex: str) -> str:
    """Return the regular expression of a pattern without exponential backtracking, as for `*a*a*a*a*b`.

    What is between two wildcards matches at its first place only: whatever follows matches from there, too.
    """
    regex = _BETWEEN_STARS.sub(r"(?>[^/]*?\1)", regex)
    regex = _ANYTHING_BUT.sub("(?!/)[^", regex)  # as in git, `[!a]` does not match a slash
    first, *middle = regex.split(_FOLDERS)
    if not middle:
        return regex
    last = middle.pop()
    if first.startswith(_LEADING_FOLDERS):
        first = f"^(?>(?:.+?/)??{first.removeprefix(_LEADING_FOLDERS)}(?=/))"
    return "".join([first, *(f"(?>(?:/.+?)??{part}(?=/))" for part in middle), _FOLDERS, last])


def _literal_folders(pattern: str) -> str:
    """Return the leading folders of a pattern without wildcards; empty if it may match anywhere."""
    folders = pattern.strip("/").split("/")[:-1]
    return "/".join(takewhile(lambda part: not any(char in part for char in "*?[\\"), folders))


# --- conversations that are left out -----------------------------------------------------------


def unsearched_conversations(
    settings: Settings, agent: str, own_folder: Path, workspace: Path, *, own: bool = False
) -> Iterator[str]:
    """Yield notes on conversations of the agent and of other programs that search leaves out, by file names only.

    `own_folder` is the folder of the session store; `own` considers only that.
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
    """Return OpenClaw's folders of conversations: those of the agent of this name, else of all agents."""
    top = Path(os.environ.get("OPENCLAW_STATE_DIR") or "~/.openclaw").expanduser()
    own = top / "agents" / agent / "sessions"
    folders = [own] if own.is_dir() else sorted((top / "agents").glob("*/sessions"))
    return [folder for folder in (*folders, top / "sessions") if folder.is_dir()]


def claude_code_folders(workspace: Path) -> list[Path]:
    """Return Claude Code's folder of conversations: that of the workspace's project, else of all."""
    top = Path(os.environ.get("CLAUDE_CONFIG_DIR") or "~/.claude").expanduser() / "projects"
    own = top / re.sub(r"[^A-Za-z0-9]", "-", os.path.realpath(workspace))
    return [folder for folder in ([own] if own.is_dir() else [top]) if folder.is_dir()]


def codex_folders() -> list[Path]:
    """Return Codex's folder of conversations."""
    folder = Path(os.environ.get("CODEX_HOME") or "~/.codex").expanduser() / "sessions"
    return [folder] if folder.is_dir() else []


def _count(folders: Iterable[Path]) -> int:
    """Count conversations by file names; folders that cannot be listed are skipped."""
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
