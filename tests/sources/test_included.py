"""Which files `include` adds to a memory: patterns, .gitignore, and what is left out unless it is asked for."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pathspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from notewell.errors import PathRefusedError
from notewell.sources.included import _patterns, count_uncovered
from notewell.sources.notes import NotesSource

EVERY = ("**/*.md",)


def write(folder: Path, *paths: str, text: str = "a note\n") -> None:
    for path in paths:
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text, encoding="utf-8")


def listed(notes: NotesSource) -> list[str]:
    return [stamp.path for stamp in notes.list().files]


def found(folder: Path, include: tuple[str, ...] | None = EVERY, **options) -> list[str]:
    notes = NotesSource(folder, include=include, **options)
    paths = listed(notes)
    for path in paths:  # whatever is listed can be read, and nothing else
        assert notes.exists(path)
        assert notes.stored_path(folder / path) == path
    return paths


@pytest.mark.parametrize(
    ("include", "expected"),
    [
        pytest.param(None, [], id="not set"),
        pytest.param((), [], id="nothing"),
        pytest.param(EVERY, ["a.md", "docs/b.md", "docs/deep/c.md", "old/d.md"], id="all"),
        pytest.param(("*.md",), ["a.md", "docs/b.md", "docs/deep/c.md", "old/d.md"], id="a name in every folder"),
        pytest.param(("/*.md",), ["a.md"], id="the top only"),
        pytest.param(("docs/",), ["docs/b.md", "docs/deep/c.md"], id="a folder"),
        pytest.param(("docs/*.md",), ["docs/b.md"], id="a folder without those below"),
        pytest.param(("docs/deep/**", "old/d.md"), ["docs/deep/c.md", "old/d.md"], id="two places"),
        pytest.param(("**/*.md", "!old/"), ["a.md", "docs/b.md", "docs/deep/c.md"], id="all but a folder"),
        pytest.param(("../**/*.md", "[", "nowhere/**"), [], id="patterns that match nothing"),
    ],
)
def test_patterns(tmp_path, include, expected):
    write(tmp_path, "a.md", "docs/b.md", "docs/deep/c.md", "old/d.md", "docs/no.txt", ".hidden/x.md", "docs/.x.md")
    write(tmp_path, "node_modules/p/README.md", "venv/lib/site-packages/p/README.md", "MEMORY.md", "memory/m.md")
    assert [path for path in found(tmp_path, include) if not path.lower().startswith("memory")] == expected
    assert {"MEMORY.md", "memory/m.md"} <= set(found(tmp_path, include))


@pytest.mark.parametrize("in_git", [True, False])
def test_what_gitignore_ignores_is_left_out_but_never_of_the_memory_itself(tmp_path, in_git):
    ignored = ["build/x.md", "notes/draft-1.md", "notes/deep/secret.md", "logs/today.md"]
    kept = ["README.md", "notes/one.md", "notes/draft-keep.md", "deep/build.md", "notes/deep/open.md"]
    write(tmp_path, *ignored, *kept, "MEMORY.md", "memory/private/m.md", "extra/e.md")
    write(
        tmp_path,
        ".gitignore",
        text="build/\n# a comment\ndraft-*.md\n!draft-keep.md\nmemory/\nMEMORY.md\nextra/\n/logs\n",
    )
    write(tmp_path, "notes/deep/.gitignore", text="secret.md\n")
    if in_git:
        subprocess.run(["git", "init", "-q"], cwd=tmp_path, check=True)
        told = subprocess.run(
            ["git", "check-ignore", *ignored, *kept], cwd=tmp_path, check=False, capture_output=True, text=True
        )
        assert told.stdout.split() == ignored
    assert found(tmp_path, extra_paths=[Path("extra")]) == sorted(
        [*kept, "MEMORY.md", "memory/private/m.md", "extra/e.md"]
    )
    notes = NotesSource(tmp_path, include=EVERY)
    for path in ignored:
        with pytest.raises(PathRefusedError):
            notes.resolve(path)


def test_a_changed_gitignore_counts_at_once(tmp_path):
    write(tmp_path, "a/b/one.md", "a/b/two.md")
    for folder, _, files in os.walk(tmp_path):  # settled, so that the walk remembers the folders
        for name in (".", *files):
            os.utime(Path(folder) / name, (1_780_000_000, 1_780_000_000.5))
    notes = NotesSource(tmp_path, include=EVERY)
    assert listed(notes) == ["a/b/one.md", "a/b/two.md"]
    write(tmp_path, ".gitignore", text="two.md\n")
    assert listed(notes) == ["a/b/one.md"]
    with (tmp_path / ".gitignore").open("a") as file:  # in place: the time of its folder stays
        file.write("!two.md\none.md\n")
    assert listed(notes) == ["a/b/two.md"]
    write(tmp_path, "a/.gitignore", text="b/\n")
    assert listed(notes) == []
    (tmp_path / "a/.gitignore").unlink()
    (tmp_path / ".gitignore").unlink()
    assert listed(notes) == ["a/b/one.md", "a/b/two.md"]


def test_a_workspace_inside_a_repository_obeys_the_files_above_it(tmp_path):
    workspace = tmp_path / "docs" / "notes"
    write(tmp_path, "docs/notes/a.md", "docs/notes/tmp/b.md", "docs/notes/old.md")
    write(tmp_path, ".gitignore", text="docs/notes/tmp/\n")
    write(tmp_path, "docs/.gitignore", text="old.md\n")
    assert found(workspace) == ["a.md", "old.md", "tmp/b.md"]  # no repository: nothing above counts
    (tmp_path / ".git").mkdir()
    assert found(workspace) == ["a.md"]


@pytest.mark.parametrize(
    ("include", "expected"),
    [
        pytest.param(None, ["MEMORY.md"], id="nothing asked for"),
        pytest.param(EVERY, ["MEMORY.md", "n.md"], id="everything"),
        pytest.param(("**/*.md", "CLAUDE.md"), ["CLAUDE.md", "MEMORY.md", "n.md", "sub/CLAUDE.md"], id="instructions"),
        pytest.param(
            ("memory/dreaming/**",),
            ["MEMORY.md", "memory/dreaming/deep/2026-11-01.md", "memory/dreaming/light.md"],
            id="reports",
        ),
    ],
)
def test_instructions_and_reports_are_left_out_unless_they_are_named(tmp_path, include, expected):
    write(tmp_path, "MEMORY.md", "n.md", "CLAUDE.md", "AGENTS.md", "sub/CLAUDE.md", "CLAUDE.local.md")
    write(tmp_path, "memory/dreaming/light.md", "memory/dreaming/deep/2026-11-01.md", "memory/.dreams/x.md")
    assert found(tmp_path, include) == expected
    refused = {"CLAUDE.md", "memory/dreaming/light.md"} - set(expected)
    for path in refused:
        assert not NotesSource(tmp_path, include=include).exists(path)
        with pytest.raises(PathRefusedError):
            NotesSource(tmp_path, include=include).resolve(path)


def test_links_in_a_folder_of_any_kind_are_passed_over(tmp_path):
    workspace, outside = tmp_path / "w", tmp_path / "outside"
    write(workspace, "a.md")
    write(outside, "secret.md")
    (workspace / "link.md").symlink_to(outside / "secret.md")
    (workspace / "folder").symlink_to(outside)
    notes = NotesSource(workspace, include=EVERY)
    assert listed(notes) == ["a.md"]
    assert notes.list().problems == ()
    for path in ("link.md", "folder/secret.md", "../outside/secret.md"):
        with pytest.raises(PathRefusedError):
            notes.resolve(path)


@pytest.mark.skipif(os.name == "nt" or os.geteuid() == 0, reason="needs permissions that bind")
def test_a_folder_that_cannot_be_read_is_a_problem_and_the_rest_is_listed(tmp_path):
    write(tmp_path, "a.md", "locked/b.md")
    (tmp_path / "locked").chmod(0)
    try:
        listing = NotesSource(tmp_path, include=EVERY).list()
        assert [stamp.path for stamp in listing.files] == ["a.md"]
        assert [problem.path for problem in listing.problems] == ["locked"]
        uncovered = count_uncovered(str(tmp_path))
        assert (uncovered.count, [problem.path for problem in uncovered.problems]) == (1, ["locked"])
    finally:
        (tmp_path / "locked").chmod(0o700)


def test_what_is_not_covered_is_counted(tmp_path):
    write(tmp_path, "MEMORY.md", "memory/m.md", "a.md", "docs/b.md", "docs/c.md", "AGENTS.md", "x/.gitignore", "y/d.md")
    write(tmp_path, "x/e.md")
    write(tmp_path, "x/.gitignore", text="*\n")
    assert str(count_uncovered(str(tmp_path))) == "4 Markdown files"
    assert str(count_uncovered(str(tmp_path), {"docs", "y"})) == "1 Markdown file"
    given_up = count_uncovered(str(tmp_path), limit_s=0)
    assert (given_up.count, given_up.complete, str(given_up)) == (0, False, "more than 0 Markdown files")


# --- hostile patterns ----------------------------------------------------------------------------

LONG_NAME = f"{'a' * 240}.md"
DEEP = f"{'a/' * 120}z.md"


@pytest.mark.parametrize(
    ("pattern", "left_out"),
    [
        pytest.param("*a" * 60 + "b", [], id="stars"),
        pytest.param("?*[a]*" * 30 + "b", [], id="stars and classes"),
        pytest.param("[!b]*" * 60 + "b", [], id="stars and classes of all else"),
        pytest.param("**/a/" * 40 + "b", [], id="folders at any depth"),
        pytest.param("a/" + "**/a*a*/" * 20 + "b", [], id="stars in folders at any depth"),
        pytest.param("*a" * 60 + "*", [LONG_NAME], id="stars that match"),
        pytest.param("**/a/" * 20 + "z.md", [DEEP], id="folders that match"),
        pytest.param("**/" * 300_000, [], id="a line longer than any path"),
    ],
)
def test_no_pattern_takes_forever(tmp_path, pattern, left_out):
    """A workspace comes with its patterns, perhaps from somebody else; these took years."""
    write(tmp_path, LONG_NAME, DEEP, "b.md")
    write(tmp_path, ".gitignore", text=f"{pattern}\n")
    assert sorted(found(tmp_path)) == sorted({LONG_NAME, DEEP, "b.md"} - set(left_out))
    (tmp_path / ".gitignore").unlink()
    assert set(found(tmp_path, (pattern,))) - {"b.md"} == set(left_out)


@given(
    pattern=st.lists(
        st.sampled_from(["a", "b", "*", "*a", "?", "/", "**/", "/**/", "[ab]", r"\*", "!", "."]), min_size=1, max_size=9
    ).map("".join),
    path=st.lists(st.text("aab.*", min_size=1, max_size=5), min_size=1, max_size=6).map("/".join),
    of_git=st.booleans(),
)
def test_patterns_match_what_they_matched_before(pattern, path, of_git):
    kind, name = (pathspec.GitIgnoreSpec, None) if of_git else (pathspec.PathSpec, "gitignore")
    try:
        plain = kind.from_lines(*filter(None, [name]), [pattern])
    except ValueError:
        return
    steady = _patterns([pattern], of_git=of_git)
    for each in (path, f"{path}/"):
        assert steady.check_file(each).include == plain.check_file(each).include
