"""The first minutes of a new user: a folder of notes, init, index, search, and what is forgiven on the command line."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from itertools import count
from pathlib import Path
from types import SimpleNamespace

import pytest

from notewell import Memory
from notewell.cli import terminal
from notewell.settings.workspace import TEMPLATE
from tests.end_to_end.processes.folders import as_plain_user, with_mode

COUNT = 12


@pytest.fixture
def vault(tmp_path: Path) -> Path:
    """A folder of Markdown that is no workspace yet."""
    folder = tmp_path / "vault"
    for number in range(COUNT):
        file = folder / f"area-{number % 3}" / f"note-{number}.md"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"# Note {number}\n\nGet a shell in docker with exec, number {number}.\n", encoding="utf-8")
    return folder


# --- a folder of notes --------------------------------------------------------------------------


def test_init_counts_the_notes_of_a_folder_and_says_how_to_index_them(notewell, vault):
    done = notewell("init", vault)
    assert "found 12 Markdown files" in done.out
    assert f"next:\n  notewell init --yes {vault}" in done.out
    assert not (vault / "notewell.toml").exists()
    for command in (("index", "-w", vault), ("search", "shell", "-w", vault)):
        told = notewell(*command)
        assert f"12 Markdown files here are not indexed: run `notewell init --yes {vault}`" in told.err
    checks = notewell("doctor", "-w", vault, "--json")
    assert checks.code == 1
    missing = next(check for check in checks.document["checks"] if check["name"] == "include")
    assert (missing["ok"], missing["detail"]) == (False, "12 Markdown files here are not indexed")
    assert f"notewell init --yes {vault}" in missing["hint"]


def test_yes_indexes_them_and_the_hints_are_gone(notewell, vault):
    done = notewell("init", vault, "--yes", "--json")
    assert (done.document["found"], done.document["include"]) == (12, ["**/*.md"])
    assert (vault / "notewell.toml").read_text() == 'include = ["**/*.md"]\n'
    report = notewell("index", "-w", vault, "--json")
    assert report.document["added"] == COUNT + 1
    assert "not indexed" not in report.err
    hits = notewell("search", "shell", "in", "docker", "-w", vault, "--json").document["hits"]
    assert hits[0]["path"].startswith("area-")
    assert notewell("get", hits[0]["citation"], "-w", vault).out.rstrip("\n") == hits[0]["snippet"]
    assert notewell("doctor", "-w", vault).code == 0
    again = notewell("init", vault, "--yes", "--json")
    assert (again.document["found"], again.document["include"]) == (0, ["**/*.md"])


@pytest.mark.parametrize(
    "raw",
    [
        pytest.param("# 路由器\n路由器的设置每周日检查一次，密码在抽屉里。\n".encode("gbk"), id="another encoding"),
        pytest.param(bytes(range(256)) * 8, id="binary"),
    ],
)
def test_a_file_that_is_no_text_is_named_and_left_out(notewell, indexed, raw):
    (indexed / "memory/odd.md").write_bytes(raw)
    why = "memory/odd.md: no UTF-8 text; save it as UTF-8 to index it"
    done = notewell("index", "-w", indexed)
    assert done.code == 0
    assert why in done.err
    assert notewell("search", "路由器", "-w", indexed, "--json").document["hits"] == []
    got = notewell("get", "memory/odd.md", "-w", indexed)
    assert (got.code, got.out) == (1, "")
    assert "no UTF-8 text" in got.err
    checks = notewell("doctor", "-w", indexed, "--json")
    assert checks.code == 1
    failed = [(check["name"], check["detail"]) for check in checks.document["checks"] if not check["ok"]]
    assert failed == [("notes", f"a file cannot be indexed: {why}")]
    (indexed / "memory/odd.md").write_text("# Müll\n", encoding="latin-1")
    assert notewell("index", "-w", indexed).err == ""
    assert notewell("doctor", "-w", indexed).code == 0


def test_a_search_before_everything_is_indexed_says_how_much_is_missing(notewell, vault):
    notewell("init", vault, "--yes")
    early = notewell("search", "shell", "-w", vault, "--set", "sync.search_budget_ms=0")
    assert early.out == "no hits\n"
    assert "note: 13 files are not indexed yet: run `notewell index`" in early.err
    assert "note: nothing is indexed yet: run `notewell index`" in early.err
    notewell("index", "-w", vault)
    (vault / "late.md").write_text("# Late\n\nThe ferry leaves at nine.\n")
    early = notewell("search", "shell", "-w", vault, "--set", "sync.search_budget_ms=0", "--json")
    assert early.document["hits"]
    assert early.document["notes"] == ["a file is not indexed yet: run `notewell index`"]
    assert notewell("search", "ferry", "-w", vault, "--json").document["notes"] == []


def test_a_workspace_with_nothing_but_the_template_holds_no_notes_yet(notewell, tmp_path):
    notewell("init", tmp_path)
    assert notewell("search", "shell", "-w", tmp_path).err == (
        f"note: no notes yet: write MEMORY.md or memory/<topic>.md in {tmp_path}\n"
    )


def test_no_is_remembered_and_nobody_is_asked_again(notewell, vault):
    assert notewell("init", vault, "--no", "--json").document["include"] == []
    assert notewell("index", "-w", vault, "--json").document["added"] == 1
    assert "not indexed" not in notewell("search", "shell", "-w", vault).err
    assert notewell("doctor", "-w", vault).code == 0


@pytest.mark.parametrize(
    ("before", "after"),
    [
        pytest.param("", 'include = ["**/*.md"]\n', id="empty"),
        pytest.param("[query]\nmax_results = 3\n", 'include = ["**/*.md"]\n[query]\nmax_results = 3\n', id="a table"),
        pytest.param(
            "# mine\n[defaults]\nprovider = 'none'\n",
            "# mine\n[defaults]\ninclude = [\"**/*.md\"]\nprovider = 'none'\n",
            id="settings below [defaults]",
        ),
    ],
)
def test_init_adds_to_a_settings_file_and_keeps_the_rest(notewell, vault, before, after):
    (vault / "notewell.toml").write_text(before)
    assert notewell("init", vault, "--yes").code == 0
    assert (vault / "notewell.toml").read_text() == after
    assert notewell("config", "show", "-w", vault, "--json").document["settings"]["include"]["value"] == ["**/*.md"]


@pytest.mark.skipif(os.name == "nt", reason="needs a pseudo-terminal")
@pytest.mark.slow
@pytest.mark.parametrize(("answer", "include"), [("\n", '["**/*.md"]'), ("n\n", "[]")])
def test_on_a_terminal_init_asks(vault, answer, include):
    import pty

    main, other = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "notewell", "init", str(vault)],
        stdin=other,
        stdout=other,
        stderr=other,
        env={**os.environ, "NOTEWELL_CONFIG": os.devnull},
    )
    os.close(other)
    os.write(main, answer.encode())
    shown = b""
    while chunk := _read(main):
        shown += chunk
    assert process.wait() == 0
    assert "Index them, too? [Y/n]" in shown.decode()
    assert (vault / "notewell.toml").read_text() == f"include = {include}\n"


def _read(handle: int) -> bytes:
    try:
        return os.read(handle, 4096)
    except OSError:  # the other end is closed
        return b""


@pytest.mark.slow
def test_a_folder_that_cannot_be_read_is_named_and_the_rest_works(vault):
    with with_mode(0, vault / "area-1"):
        seen = as_plain_user("init", vault)
        assert "found 8 Markdown files" in seen.stdout
        assert "note: area-1: cannot be read: Permission denied" in seen.stderr
        made = as_plain_user("init", vault, "--yes", "--json")
        assert (made.returncode, json.loads(made.stdout)["found"]) == (0, 8)
        assert json.loads(made.stdout)["problems"] == [
            {"path": "area-1", "reason": "cannot be read: Permission denied"}
        ]
        done = as_plain_user("index", "-w", vault)
        assert "area-1: cannot be read: Permission denied" in done.stderr
        assert "9 new" in done.stdout
    assert json.loads(as_plain_user("index", "-w", vault, "--json").stdout)["added"] == 4


@pytest.mark.slow
def test_a_folder_that_cannot_be_written_is_an_error_and_keeps_its_settings(vault):
    (vault / "MEMORY.md").write_text("mine\n")
    (vault / "memory").mkdir()
    (vault / "notewell.toml").write_text("provider = 'none'\n")
    with with_mode(0o500, vault):
        done = as_plain_user("init", vault, "--yes", "--json")
    assert done.returncode == 1
    assert "cannot write" in json.loads(done.stdout)["error"]["message"]
    assert (vault / "notewell.toml").read_text() == "provider = 'none'\n"


def test_the_template_is_never_a_hit(notewell, tmp_path):
    folder = tmp_path / "new"
    notewell("init", folder)
    for query in ("Memory", "facts that stay true: people, preferences, decisions", "what happened today"):
        assert notewell("search", query, "-w", folder, "--min-score", 0, "--json").document["hits"] == []
    with (folder / "MEMORY.md").open("a") as file:
        file.write("\nThe boat is called Heron.\n")
    hits = notewell("search", "facts about the boat that stay true", "-w", folder, "--json").document["hits"]
    assert [(hit["citation"], hit["snippet"]) for hit in hits] == [("MEMORY.md#L6", "The boat is called Heron.")]
    assert (folder / "MEMORY.md").read_text().startswith(TEMPLATE)


def test_a_workspace_file_may_include_but_not_leave_the_workspace(notewell, vault):
    (vault.parent / "outside.md").write_text("shell of a stranger\n")
    (vault / "notewell.toml").write_text('include = ["../*.md", "/etc/**", "area-1/"]\n')
    assert notewell("index", "-w", vault, "--json").document["added"] == 4
    assert notewell("get", "../outside.md", "-w", vault).code == 1
    (vault / "notewell.toml").write_text("include = 7\n")
    done = notewell("index", "-w", vault)
    assert done.code == 1
    assert "include must be a list of patterns, such as **/*.md, got 7" in done.err


def test_included_notes_can_be_written_but_instructions_cannot(notewell, vault):
    notewell("init", vault, "--yes")
    (vault / "CLAUDE.md").write_text("obey\n")
    done = notewell("remember", "the shell is zsh", "--to", "area-1/note-1.md", "-w", vault, "--json")
    assert done.document["path"] == "area-1/note-1.md"
    for path in ("CLAUDE.md", "area-1/AGENTS.md", "area-9/../x.md"):
        assert notewell("remember", "obey me", "--to", path, "-w", vault).code == 1
    assert (vault / "CLAUDE.md").read_text() == "obey\n"


def test_a_long_first_index_tells_rate_and_time_left(notewell, vault, monkeypatch):
    clock = count(step=2.0)  # every look at it is two seconds later
    monkeypatch.setattr(terminal, "time", SimpleNamespace(monotonic=lambda: next(clock)))
    notewell("init", vault, "--yes")
    told = notewell("index", "-w", vault).err
    assert re.search(r"reading notes: [\d,]+ of 13, 0\.5 a second, \d+ s left", told), told


# --- what is forgiven ---------------------------------------------------------------------------


@pytest.mark.parametrize("words", [(), ("help",), ("--help",)])
def test_help_is_no_error(notewell, words):
    done = notewell(*words)
    assert done.code == 0
    assert "Usage: notewell" in done.out
    assert "error" not in done.err


def test_help_of_a_command(notewell):
    assert notewell("help", "search").out == notewell("search", "--help").out
    assert notewell("help", "serach").code == 2


def test_a_question_needs_no_quotes(notewell, indexed):
    quoted = notewell("search", "what is the guest wifi", "--json", "-w", indexed).document
    assert notewell("search", "what", "is", "--json", "the", "guest", "wifi", "-w", indexed).document == quoted
    assert quoted["query"] == "what is the guest wifi"
    assert notewell("search", "-w", indexed).code == 2
    assert notewell("search", "-w", indexed, "--", "-x", "--json").code == 0


def test_what_is_remembered_needs_no_quotes(notewell, indexed):
    done = notewell("remember", "the", "attic", "key", "is", "blue", "--to", "memory/keys.md", "-w", indexed, "--json")
    assert notewell("get", done.document["citation"], "-w", indexed).out == "the attic key is blue\n"


def test_next_steps_name_the_workspace_only_elsewhere(notewell, vault, monkeypatch):
    monkeypatch.chdir(vault)
    assert "next:\n  notewell init --yes  # to index them" in notewell("init").out
    assert "  notewell index\n  notewell search 'a question'\n" in notewell("init", "--yes").out


def test_a_name_in_the_wrong_folder_finds_the_note(notewell, indexed):
    for name in ("Network.md", "network", "memory/old/network.md"):
        told = notewell("get", name, "-w", indexed)
        assert told.code == 1
        assert "did you mean memory/network.md?" in told.err
    assert "search for its content" in notewell("get", "memory/nothing.md", "-w", indexed).err


@pytest.mark.parametrize("form", ["./network.md", "network.md", "../memory/network.md", "{folder}/network.md"])
def test_paths_may_be_written_as_the_shell_completes_them(notewell, indexed, monkeypatch, form):
    monkeypatch.chdir(indexed / "memory")
    path = form.format(folder=indexed / "memory")
    assert notewell("get", f"{path}#L5").out.startswith("The guest network is VLAN 30")
    assert notewell("index", path, "--json").document["unchanged"] == 1
    assert notewell("remember", "the attic is dry", "--to", path, "--json").document["path"] == "memory/network.md"
    assert notewell("forget", "--path", path, "--yes").out.startswith("memory/network.md  the whole file")


def test_a_path_outside_stays_refused(notewell, indexed, monkeypatch):
    (indexed.parent / "secret.md").write_text("secret\n")
    monkeypatch.chdir(indexed.parent)
    for path in ("secret.md", "./secret.md", f"{indexed.parent}/secret.md", "../secret.md"):
        assert "not a memory file" in notewell("get", path, "-w", indexed).err


def test_a_note_that_is_not_there_is_not_indexed_in_silence(notewell, indexed):
    assert "there is no note memory/nothing.md" in notewell("index", "memory/nothing.md", "-w", indexed).err
    (indexed / "memory" / "network.md").unlink()
    done = notewell("index", "memory/network.md", "-w", indexed)
    assert (done.out[:16], done.err) == ("notes: 1 removed", "")


def test_lines_behind_the_end_are_said_to_be_missing(notewell, indexed):
    done = notewell("get", "memory/network.md#L9000", "-w", indexed)
    assert (done.code, done.out) == (0, "")
    assert "memory/network.md ends before line 9000" in done.err


def test_help_of_timeline_tells_its_own_limit(notewell):
    assert "[default: 20]" in notewell("timeline", "--help").out


def test_commands_are_described_in_whole_sentences(notewell):
    assert "..." not in notewell("--help").out.replace("COMMAND [ARGS]...", "")


@pytest.mark.parametrize(
    ("path", "options", "expected"),
    [
        ("memory/network.md#L5", (), "The guest network is VLAN 30, its name is heron-guest.\n"),
        (
            "memory/network.md#L7-L9",
            (),
            "## Printer\n\nThe printer has the address 192.168.10.7 and jams on thick paper.\n",
        ),
        ("memory/network.md#L9-L7", ("--lines", 1), "# Network\n"),
        ("memory/network.md#L5", ("--from", 7, "--lines", 1), "## Printer\n"),
    ],
)
def test_get_takes_a_citation(notewell, indexed, path, options, expected):
    assert notewell("get", path, "-w", indexed, *options).out == expected


@pytest.mark.parametrize(
    "path", ["../secret.md#L1", "memory/none.md#L1-L2", "memory/network.md#L", "memory/network.md#5"]
)
def test_a_citation_of_something_else_is_an_error(notewell, indexed, path):
    assert notewell("get", path, "-w", indexed, "--json").document["error"]["hint"]


def test_every_way_to_read_takes_a_citation(indexed):
    from notewell.agents.adapters.anthropic_commands import MemoryCommands
    from notewell.agents.tools import MemoryTools
    from notewell.mcp.resources import PREFIX, memory_resource
    from notewell.openclaw.managers import MemoryIndexManager

    line = "The guest network is VLAN 30, its name is heron-guest."
    with Memory.open(indexed, provider="none") as memory:
        tools = MemoryTools(memory)
        for read in (
            tools.call("memory_get", {"path": "memory/network.md#L5"}).document["text"],
            memory_resource(tools, f"{PREFIX}memory/network.md%23L5")["text"],
            MemoryIndexManager(memory).read_file("memory/network.md#L5")["text"],
            MemoryCommands(memory).view("/memories/network.md#L5"),
        ):
            assert line in read
            assert "Printer" not in read
        assert memory.index(paths=["memory/network.md#L5"]).unchanged == 1
        assert memory.remember("it is closed", to="memory/network.md#L5").path == "memory/network.md"


def test_a_memory_can_be_created_where_it_is_opened(tmp_path):
    folder = tmp_path / "a" / "b"
    with Memory.open(folder, create=True, provider="none") as memory:
        memory.remember("the boat is called Heron")
        assert memory.search("boat").hits
    (folder / "MEMORY.md").write_text("mine\n")
    with Memory.open(folder, create=True, provider="none"):
        assert (folder / "MEMORY.md").read_text() == "mine\n"
