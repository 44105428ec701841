"""Every command: what it prints where, its JSON, its exit code."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import click
import pytest

from notewell import Memory, __version__
from notewell.cli.main import COMMANDS, cli
from notewell.embedding.local.models import hub_file
from tests.postgres_server import shared_database

from .conftest import run_process

HIT_KEYS = {
    "path",
    "startLine",
    "endLine",
    "score",
    "snippet",
    "source",
    "citation",
    "vectorScore",
    "textScore",
    "foundBy",
}
REPORT_KEYS = {
    "added",
    "changed",
    "renamed",
    "removed",
    "unchanged",
    "embedded",
    "reused",
    "unknown",
    "pending",
    "rebuilt",
    "jobs",
    "postponed",
    "bytesRead",
    "complete",
    "seconds",
    "problems",
    "notes",
}


def ruin(workspace: Path, content: bytes = b"not a database, but somebody's notes. " * 200) -> Path:
    """Overwrite the current index."""
    with Memory.open(workspace, provider="none") as memory:
        path = memory._components.folder.current()
    for suffix in ("-wal", "-shm"):
        path.with_name(path.name + suffix).unlink(missing_ok=True)
    path.write_bytes(content)
    return path


# --- init ---------------------------------------------------------------------------------------


def test_init_makes_a_workspace(notewell, tmp_path):
    folder = tmp_path / "new" / "notes"
    done = notewell("init", folder)
    assert done.code == 0
    assert (folder / "MEMORY.md").read_text(encoding="utf-8").startswith("# Memory")
    assert (folder / "memory").is_dir()
    assert str(folder / "MEMORY.md") in done.out
    assert notewell("index", "-w", folder).code == 0


def test_init_leaves_what_is_there_alone(notewell, workspace):
    before = {path: path.read_bytes() for path in workspace.rglob("*.md")}
    done = notewell("init", workspace)
    assert done.code == 0
    assert "is already a workspace" in done.out
    assert {path: path.read_bytes() for path in workspace.rglob("*.md")} == before


def test_init_of_the_current_folder(notewell, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert notewell("init", "--json").document == {
        "workspace": str(tmp_path),
        "made": [str(tmp_path / "memory"), str(tmp_path / "MEMORY.md")],
        "found": 0,
        "include": None,
        "notes": [],
        "problems": [],
    }
    assert notewell("init", "--json").document["made"] == []


@pytest.mark.parametrize("below", ["", "inner"], ids=["the file itself", "below the file"])
def test_init_where_a_file_is(notewell, tmp_path, below):
    (tmp_path / "file").write_text("mine", encoding="utf-8")
    done = notewell("init", tmp_path / "file" / below, "--json")
    assert done.code == 1
    assert done.document["error"]["kind"] == "workspace"
    assert "choose a folder that you can write to" in done.err
    assert (tmp_path / "file").read_text(encoding="utf-8") == "mine"


@pytest.mark.skipif(not Path("/proc").is_dir(), reason="needs a folder that nobody may write to: /proc")
def test_init_where_nothing_may_be_written(notewell):
    done = notewell("init", "/proc/notes", "--json")
    assert (done.code, done.document["error"]["kind"]) == (1, "workspace")


# --- index --------------------------------------------------------------------------------------


def test_index_first_and_again(notewell, workspace):
    first = notewell("index", "-w", workspace, "--json")
    assert first.code == 0
    assert set(first.document) == REPORT_KEYS
    assert (first.document["added"], first.document["pending"], first.document["complete"]) == (7, 0, True)
    again = notewell("index", "-w", workspace, "--json").document
    assert (again["added"], again["unchanged"], again["embedded"]) == (0, 7, 0)


def test_index_in_words(notewell, workspace):
    assert re.match(r"notes: 7 new; chunks: \d+ embedded \(\d+\.\d s\)\n", notewell("index", "-w", workspace).out)
    assert re.match(r"notes: 7 unchanged \(\d+\.\d s\)\n", notewell("index", "-w", workspace).out)


def test_index_force_builds_anew_and_embeds_nothing_again(notewell, indexed):
    report = notewell("index", "-w", indexed, "--force", "--json").document
    assert (report["rebuilt"], report["embedded"], report["added"]) == (True, 0, 7)
    assert report["notes"] == ["rebuilt: requested"]


def test_index_dry_run_writes_nothing(notewell, workspace):
    done = notewell("index", "-w", workspace, "--dry-run", "--json")
    assert done.code == 0
    preview = done.document
    assert set(preview) == {
        "added",
        "changed",
        "removed",
        "unchanged",
        "chunks",
        "tokens",
        "known",
        "pending",
        "rebuildReason",
        "problems",
        "toEmbed",
        "cost",
    }
    assert len(preview["added"]) == 7
    assert preview["tokens"] > preview["chunks"] > 0
    assert notewell("status", "-w", workspace, "--json").document["chunks"] == 0


def test_index_dry_run_in_words(notewell, indexed):
    (indexed / "memory/new.md").write_text("# New\n\nNews.\n", encoding="utf-8")
    (indexed / "MEMORY.md").write_text("# Memory\n\nOther.\n", encoding="utf-8")
    (indexed / "memory/network.md").unlink()
    done = notewell("index", "-w", indexed, "--dry-run")
    assert "new      memory/new.md" in done.out
    assert "changed  MEMORY.md" in done.out
    assert "removed  memory/network.md" in done.out
    assert "1 new, 1 changed, 1 removed, 5 unchanged" in done.out


def test_index_says_what_could_not_be_read(notewell, workspace):
    try:
        (workspace / "memory/link.md").symlink_to(workspace / "MEMORY.md")
    except OSError as error:
        pytest.skip(f"no symbolic links here: {error}")
    done = notewell("index", "-w", workspace, "--json")
    assert done.document["problems"] == [
        {"path": "memory/link.md", "reason": "is a symbolic link, and links are not followed"}
    ]
    assert "memory/link.md: is a symbolic link" in done.err


# --- search -------------------------------------------------------------------------------------


def test_the_json_of_a_search_is_exactly_what_is_documented(notewell, indexed):
    done = notewell("search", "guest network name", "-w", indexed, "--json")
    assert (done.code, done.err) == (0, "")
    document = done.document
    keys = ["query", "mode", "hits", "index", "notes", "backend", "fallback", "provider", "model"]
    assert list(document) == keys
    assert (document["query"], document["mode"], document["notes"]) == ("guest network name", "hybrid", [])
    assert document["index"] == {"files": 7, "chunks": document["index"]["chunks"], "pending": 0, "stale": False}
    assert document["hits"]
    for hit in document["hits"]:
        assert set(hit) == HIT_KEYS
        assert 0 <= hit["score"] <= 1
        assert hit["citation"] == f"{hit['path']}#L{hit['startLine']}-L{hit['endLine']}"
        assert hit["source"] == "memory"
    assert document["hits"][0]["path"] == "memory/network.md"


def test_a_search_in_words(notewell, indexed):
    done = notewell("search", "guest network name", "-w", indexed)
    assert re.match(r"memory/network\.md#L\d+-L\d+  [01]\.\d\d hybrid\n  ", done.out)
    assert done.err == ""


def test_no_hits_is_no_failure(notewell, indexed):
    done = notewell("search", "xylophone", "-w", indexed, "--min-score", 1, "--json")
    assert (done.code, done.document["hits"]) == (0, [])
    done = notewell("search", "xylophone", "-w", indexed, "--min-score", 1)
    assert (done.code, done.out) == (0, "no hits\n")


@pytest.mark.parametrize("query", ["", "   ", "?!", '"', "*", "NEAR(", "'; DROP TABLE chunks; --", "x" * 100_000, "🎉"])
def test_no_query_fails(notewell, indexed, query):
    done = notewell("search", "-w", indexed, "--json", "--", query)
    assert (done.code, done.document["query"].removesuffix("...")) == (0, query[:397])


def test_an_empty_query_says_so(notewell, indexed):
    assert "note: the query is empty" in notewell("search", "", "-w", indexed).err


@pytest.mark.parametrize("limit", [0, -1, -(10**9)])
def test_a_limit_below_one_is_usage(notewell, indexed, limit):
    done = notewell("search", "network", "-w", indexed, "--limit", limit, "--json")
    assert (done.code, done.document["error"]["kind"]) == (2, "query")
    assert "at least 1" in done.document["error"]["message"]


@pytest.mark.parametrize(("limit", "count"), [(1, 1), (2, 2), (10**9, None), (10**30, None)])
def test_limits(notewell, indexed, limit, count):
    hits = notewell("search", "database", "-w", indexed, "-n", limit, "--min-score", 0, "--json").document["hits"]
    assert len(hits) == count if count else len(hits) >= 7


@pytest.mark.parametrize("score", ["-0.1", "1.01", "nan", "inf"])
def test_a_minimum_score_out_of_range_is_usage(notewell, indexed, score):
    done = notewell("search", "network", "-w", indexed, "--min-score", score, "--json")
    assert (done.code, done.document["error"]["kind"]) == (2, "query")


def test_a_minimum_score_leaves_out_what_is_below(notewell, indexed):
    hits = notewell("search", "guest network", "-w", indexed, "--min-score", 0.5, "--json").document["hits"]
    assert hits
    assert all(hit["score"] >= 0.5 for hit in hits)


@pytest.mark.parametrize("fusion", ["balanced", "weighted", "rrf"])
def test_every_fusion_finds_it(notewell, indexed, fusion):
    found = notewell("search", "guest network", "-w", indexed, "--fusion", fusion, "--min-score", 0, "--json")
    assert found.document["hits"][0]["path"] == "memory/network.md"


@pytest.mark.parametrize("mode", ["hybrid", "semantic", "keyword"])
def test_each_mode_says_how_it_found_what_it_found(notewell, indexed, mode):
    for words in (("--mode", mode), ("--set", f"query.mode={mode}")):
        done = notewell("search", "printer", "-w", indexed, *words, "--json")
        hit = done.document["hits"][0]
        assert (done.code, done.err) == (0, "")
        assert (done.document["mode"], hit["path"], hit["foundBy"]) == (mode, "memory/network.md", mode)
        assert (hit["vectorScore"] is None) is (mode == "keyword")
        assert (hit["textScore"] is None) is (mode == "semantic")


@pytest.mark.parametrize(
    "words",
    [
        pytest.param(("--mode", "keyword"), id="mode"),
        pytest.param(("--keyword-only",), id="the older option"),
        pytest.param(("--keyword-only", "--mode", "keyword"), id="both"),
        pytest.param(("--set", "query.mode=keyword"), id="setting"),
        pytest.param(("--keyword-only", "--set", "query.mode=semantic"), id="the older option before the setting"),
    ],
)
def test_keyword_search_loads_no_model(notewell, indexed, words, monkeypatch):
    def refuse(*_):
        raise AssertionError("a model was asked for")

    monkeypatch.setattr("notewell.embedding.selection.select_embedder", refuse)
    (indexed / "memory/new.md").write_text("The zebra protocol.\n", encoding="utf-8")
    found = notewell("search", "zebra", "-w", indexed, *words, "--json").document
    assert (found["mode"], found["notes"], found["index"]["pending"]) == ("keyword", [], 1)
    assert (found["hits"][0]["path"], found["hits"][0]["vectorScore"]) == ("memory/new.md", None)


@pytest.mark.parametrize("mode", ["hybrid", "semantic"])
def test_keyword_only_beside_another_mode_is_usage(notewell, indexed, mode):
    done = notewell("search", "printer", "-w", indexed, "--keyword-only", "--mode", mode, "--json")
    assert (done.code, done.document["error"]["kind"]) == (2, "usage")
    assert done.document["error"]["message"] == f"--keyword-only contradicts --mode {mode}: leave one of them out."


def test_an_unknown_mode_is_usage(notewell, indexed):
    done = notewell("search", "printer", "-w", indexed, "--mode", "fuzzy", "--json")
    assert (done.code, done.document["error"]["kind"]) == (2, "usage")
    assert all(mode in done.document["error"]["message"] for mode in ("hybrid", "semantic", "keyword"))


def test_help_offers_the_mode_and_hides_the_older_option(notewell):
    shown = " ".join(notewell("search", "--help").out.split())
    assert "--mode [hybrid|semantic|keyword] Search mode. [default: query.mode, hybrid]" in shown
    assert "--keyword-only" not in shown


@pytest.mark.parametrize(
    ("setting", "reason"),
    [
        ("provider=none", "provider is none"),
        ("store.vector.enabled=false", "vectors are turned off (store.vector.enabled)"),
    ],
)
def test_semantic_search_without_a_model_says_so(notewell, indexed, setting, reason):
    words = ("search", "printer", "-w", indexed, "--mode", "semantic", "--set", setting)
    note = f"semantic search is not available: {reason}; keyword search answered instead"
    found = notewell(*words, "--json").document
    assert (found["mode"], found["hits"][0]["path"]) == ("keyword", "memory/network.md")
    assert found["notes"] == [note]
    assert notewell(*words).err == f"note: {note}\n"


def test_explain(notewell, indexed):
    found = notewell("search", "printer", "-w", indexed, "--explain", "--json").document
    assert set(found["hits"][0]) == HIT_KEYS | {"explanation"}
    assert {"cosine", "bm25"} <= set(found["hits"][0]["explanation"])
    assert "bm25=" in notewell("search", "printer", "-w", indexed, "--explain").out


def test_no_sync_answers_from_the_index_as_it_is(notewell, indexed):
    (indexed / "memory/new.md").write_text("The zebra protocol.\n", encoding="utf-8")
    before = notewell("search", "zebra protocol", "-w", indexed, "--no-sync", "--json").document
    assert "memory/new.md" not in [hit["path"] for hit in before["hits"]]
    after = notewell("search", "zebra protocol", "-w", indexed, "--json").document
    assert after["hits"][0]["path"] == "memory/new.md"


def test_a_search_before_anything_is_indexed(notewell, workspace):
    never = notewell("search", "printer", "-w", workspace, "--no-sync", "--json").document
    assert (never["hits"], never["index"]["stale"]) == ([], True)
    assert never["notes"] == ["nothing is indexed yet: run `notewell index`"]
    assert notewell("search", "printer", "-w", workspace, "--json").document["hits"]


# --- get ----------------------------------------------------------------------------------------


def test_the_json_of_get_is_exactly_what_is_documented(notewell, workspace):
    done = notewell("get", "memory/network.md", "--from", 3, "--lines", 1, "-w", workspace, "--json")
    assert done.document == {
        "path": "memory/network.md",
        "text": "## Guest wifi",
        "from": 3,
        "lines": 1,
        "truncated": False,
        "nextFrom": 4,
    }


def test_get_in_words(notewell, workspace):
    assert notewell("get", "MEMORY.md", "--lines", 1, "-w", workspace).out == "# Memory\n"
    (workspace / "memory/long.md").write_text("".join(f"line {i}\n" for i in range(1, 301)), encoding="utf-8")
    long = notewell("get", "memory/long.md", "-w", workspace)
    assert long.out.splitlines() == [f"line {i}" for i in range(1, 121)]
    assert long.err == "note: there is more: notewell get memory/long.md --from 121\n"


def test_get_reads_on_to_the_end_as_it_says(notewell, workspace):
    text = "".join(f"line {i}\n" for i in range(1, 301))
    (workspace / "memory/long.md").write_text(text, encoding="utf-8")
    first, pieces = 1, []
    while first:
        piece = notewell("get", "memory/long.md", "--from", first, "-w", workspace, "--json").document
        pieces.append(piece["text"])
        first = piece["nextFrom"]
    assert "\n".join(pieces) + "\n" == text


@pytest.mark.parametrize("words", [("--from", 0), ("--from", -5), ("--lines", 0), ("--lines", -1)])
def test_get_of_impossible_lines_is_usage(notewell, workspace, words):
    done = notewell("get", "MEMORY.md", *words, "-w", workspace, "--json")
    assert (done.code, done.document["error"]["kind"]) == (2, "query")


def test_get_beyond_the_end(notewell, workspace):
    for first in (500, 10**30):
        done = notewell("get", "MEMORY.md", "--from", first, "-w", workspace, "--json")
        assert (done.code, done.document["text"], done.document["nextFrom"]) == (0, "", None)


# --- status and doctor --------------------------------------------------------------------------


def test_status(notewell, indexed):
    done = notewell("status", "-w", indexed, "--json")
    status = done.document
    assert done.code == 0
    assert (status["files"], status["pending"], status["mode"], status["stale"]) == (7, 0, "hybrid", False)
    assert status["indexEmbedder"] == status["embedder"]
    assert status["checks"] == []
    words = notewell("status", "-w", indexed).out
    for name in ("workspace", "agent", "notes", "search", "embedder", "index", "cache", "fresh"):
        assert re.search(rf"^{name} ", words, re.MULTILINE)


def test_status_deep_lists_the_checks_of_doctor(notewell, indexed):
    checks = notewell("status", "-w", indexed, "--deep", "--json").document["checks"]
    assert [check["name"] for check in checks] == [
        "notes",
        "folder",
        "index",
        "fresh",
        "vectors",
        "embedder",
        "nearest",
        "cache",
    ]
    assert all(check["ok"] for check in checks)


def test_status_of_an_empty_workspace(notewell, tmp_path):
    done = notewell("status", "-w", tmp_path, "--json")
    assert (done.code, done.document["files"], done.document["stale"]) == (0, 0, True)


def test_doctor_finds_nothing_wrong(notewell, indexed):
    done = notewell("doctor", "-w", indexed, "--json")
    assert (done.code, done.document["ok"]) == (0, True)
    assert notewell("doctor", "-w", indexed).out.count("ok  ") == 8


@pytest.mark.parametrize(
    ("spoil", "name", "hint"),
    [
        pytest.param(lambda w: (w / "memory/new.md").write_text("x"), "fresh", "run `notewell index`", id="stale"),
        pytest.param(lambda w: None, "embedder", "", id="an embedder that is not there"),
    ],
)
def test_doctor_says_what_can_be_mended(notewell, indexed, spoil, name, hint):
    spoil(indexed)
    more = ("--set", "provider=nonesuch") if name == "embedder" else ()
    done = notewell("doctor", "-w", indexed, "--json", *more)
    assert (done.code, done.document["ok"]) == (1, False)
    bad = [check for check in done.document["checks"] if not check["ok"]]
    assert [check["name"] for check in bad] == [name]
    assert hint in bad[0]["hint"]
    assert bad[0]["hint"]


def test_doctor_before_anything_is_indexed(notewell, workspace):
    done = notewell("doctor", "-w", workspace)
    assert done.code == 1
    assert "FAIL index     nothing is indexed yet" in done.out


def test_doctor_of_an_unusable_index(notewell, indexed):
    ruin(indexed)
    done = notewell("doctor", "-w", indexed, "--json")
    assert done.code == 3
    assert [check["name"] for check in done.document["checks"] if check["unusable"]] == ["index"]


# --- cache, config, completion, version ---------------------------------------------------------


def test_cache(notewell, indexed):
    stats = notewell("cache", "stats", "-w", indexed, "--json").document
    assert set(stats) == {
        "enabled", "entries", "bytes", "maxEntries", "hits", "misses", "hitRate", "oldestUse",
    }  # fmt: skip
    assert stats["entries"] > 0
    assert (stats["hits"], stats["misses"], stats["hitRate"]) == (0, stats["entries"], 0)
    assert "hit rate 0%" in notewell("cache", "stats", "-w", indexed).out
    assert "of 50,000 vectors" in notewell("cache", "stats", "-w", indexed).out
    assert notewell("cache", "prune", "--older-than", "30d", "-w", indexed, "--json").document == {"removed": 0}
    assert notewell("cache", "clear", "-w", indexed, "--json").document == {"removed": stats["entries"]}
    assert notewell("cache", "clear", "-w", indexed).out == "0 vectors deleted\n"
    assert notewell("search", "printer", "-w", indexed, "--json").document["mode"] == "hybrid"


@pytest.mark.parametrize("command", ["stats", "prune", "clear"])
def test_a_cache_that_was_never_filled(notewell, workspace, command):
    assert notewell("cache", command, "-w", workspace, "--json").code == 0


@pytest.mark.parametrize("days", ["soon", "-3", "3 weeks", "", "9" * 30])
def test_a_span_that_is_no_number_of_days(notewell, workspace, days):
    done = notewell("cache", "prune", "-w", workspace, "--json", f"--older-than={days}")
    assert (done.code, done.document["error"]["kind"]) == (2, "query")


def test_config_show(notewell, workspace):
    done = notewell("config", "show", "-w", workspace, "--set", "query.max_results=3", "--json")
    settings = done.document["settings"]
    assert settings["query.max_results"] == {"value": 3, "from": "flag"}
    assert settings["provider"]["from"] == "environment NOTEWELL_PROVIDER"
    assert settings["query.min_score"] == {"value": 0.35, "from": "default"}
    assert re.search(
        r"^query\.max_results +3  \(flag\)$",
        notewell("config", "show", "-w", workspace, "--set", "query.max_results=3").out,
        re.MULTILINE,
    )


def test_config_show_masks_secrets(notewell, workspace, monkeypatch):
    monkeypatch.setenv("NOTEWELL_REMOTE_API_KEY", "sk-very-secret-key-1234567890")
    for words in ((), ("--json",)):
        done = notewell("config", "show", "-w", workspace, *words)
        assert "very-secret" not in done.out + done.err


def test_config_path(notewell, workspace):
    files = notewell("config", "path", "-w", workspace, "--json").document
    assert files["workspace"] == {"path": str(workspace / "notewell.toml"), "exists": False}
    assert "(does not exist)" in notewell("config", "path", "-w", workspace).out


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion(notewell, shell):
    done = notewell("completion", shell)
    assert (done.code, done.err) == (0, "")
    assert "_NOTEWELL_COMPLETE" in done.out


@pytest.mark.slow
def test_completion_answers_a_shell(workspace):
    done = run_process(_NOTEWELL_COMPLETE="bash_complete", COMP_WORDS="notewell se", COMP_CWORD="1")
    assert "search" in done.out


def test_the_version(notewell):
    assert notewell("--version").out == f"notewell, version {__version__}\n"


# --- usage --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["serch", "x"], "Did you mean 'search'?"),
        (["xyzzy"], "No such command 'xyzzy'."),
        (["search"], "Missing argument 'QUERY...'"),
        (["get"], "Missing argument 'PATH'"),
        (["search", "x", "--limmit", "3"], "No such option"),
        (["search", "x", "--limit", "many"], "not a valid integer"),
        (["search", "x", "--fusion", "magic"], "magic"),
        (["get", "x", "y"], "unexpected extra argument"),
        (["completion", "tcsh"], "tcsh"),
        (["cache", "burn"], "No such command 'burn'"),
        (["--nonsense"], "No such option"),
    ],
    ids=" ".join,
)
def test_a_command_that_cannot_be_understood_is_usage(notewell, words, message):
    done = notewell(*words)
    assert (done.code, done.out) == (2, "")
    assert message in done.err
    assert "--help`" in done.err
    as_json = notewell(*words, "--json")
    assert (as_json.code, as_json.document["error"]["kind"]) == (2, "usage")


def test_a_bare_dash_dash_ends_the_options(notewell, indexed):
    assert notewell("search", "-w", indexed, "--json", "--", "--limit").document["query"] == "--limit"
    done = notewell("search", "-w", indexed / "nowhere", "--", "--json")
    assert (done.code, done.out) == (1, "")


# --- which workspace, which settings ------------------------------------------------------------


def test_the_nearest_workspace_upwards_is_used(notewell, workspace, monkeypatch):
    monkeypatch.chdir(workspace / "memory" / "projects")
    assert notewell("status", "--json").document["workspace"] == str(workspace)


def test_notewell_workspace_names_one(notewell, workspace, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("NOTEWELL_WORKSPACE", str(workspace))
    assert notewell("status", "--json").document["workspace"] == str(workspace)
    other = tmp_path / "other"
    other.mkdir()
    assert notewell("status", "-w", other, "--json").document["workspace"] == str(other)


@pytest.mark.parametrize(
    "named",
    ["nowhere", "workspace/MEMORY.md", "~no-such-user-here/x", "x" * 5000, "workspace/MEMORY.md/inner"],
    ids=["missing", "a file", "a home of nobody", "too long", "below a file"],
)
def test_a_workspace_that_is_none(notewell, workspace, monkeypatch, named):
    monkeypatch.chdir(workspace.parent)
    done = notewell("status", "-w", named, "--json")
    assert (done.code, done.document["error"]["kind"]) == (1, "workspace")
    assert done.document["error"]["hint"]


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="Windows does not let go of the current folder")
def test_a_current_folder_that_is_gone(tmp_path):
    gone = tmp_path / "gone"
    gone.mkdir()
    script = "import os, sys; os.rmdir(os.getcwd()); os.execv(sys.executable, [sys.executable, *sys.argv[1:]])"
    done = subprocess.run(
        [sys.executable, "-c", script, "-m", "notewell", "status", "--json"],
        cwd=gone,
        capture_output=True,
        check=False,
        env={**os.environ, "NOTEWELL_CONFIG": os.devnull},
    )
    assert done.returncode == 1
    assert json.loads(done.stdout)["error"]["kind"] == "workspace_not_found"


def test_provider_none_by_variable(notewell, workspace, monkeypatch):
    monkeypatch.setenv("NOTEWELL_PROVIDER", "none")
    found = notewell("search", "printer", "-w", workspace, "--json").document
    assert (found["mode"], found["notes"]) == ("keyword", ["keyword search only: provider is none"])
    assert found["hits"][0]["path"] == "memory/network.md"


def test_set_overrides_everything_else(notewell, indexed):
    overrides = ("--set", "query.max_results=2", "--set", "query.min_score=0")
    assert len(notewell("search", "database", "-w", indexed, "--json", *overrides).document["hits"]) == 2


@pytest.mark.parametrize("text", ["query.max_results", "=3", "query.max_result=3", "query.max_results=many", "=", ""])
def test_a_setting_that_is_none(notewell, workspace, text):
    done = notewell("search", "x", "-w", workspace, "--json", "--set", text)
    assert (done.code, done.document["error"]["kind"]) == (1, "settings")
    assert done.document["error"]["hint"]


def test_agents_have_memories_of_their_own(notewell, indexed, monkeypatch):
    assert notewell("status", "-w", indexed, "--agent", "other", "--json").document["chunks"] == 0
    monkeypatch.setenv("NOTEWELL_AGENT", "other")
    assert notewell("status", "-w", indexed, "--json").document["agent"] == "other"


# --- help and examples --------------------------------------------------------------------------


def commands() -> dict[str, click.Command]:
    """Return every command and sub-command by its words."""
    found: dict[str, click.Command] = {"": cli}
    for name in COMMANDS:
        command = cli.get_command(click.Context(cli), name)
        assert command is not None
        assert command.name == name
        found[name] = command
        for inner in command.commands if isinstance(command, click.Group) else ():
            found[f"{name} {inner}"] = command.commands[inner]
    return found


@pytest.fixture(scope="module")
def imported_by_command() -> dict[str, set[str]]:
    """The modules of the command line that the help of each command imports, from one process for all of them."""
    code = (
        "import contextlib, io, json, sys\n"
        "from notewell.cli.main import run\n"
        "at_start, imported = set(sys.modules), {}\n"
        "for name in sys.argv[1:]:\n"
        "    for module in set(sys.modules) - at_start:\n"
        "        if module.startswith('notewell.cli.'):\n"
        "            del sys.modules[module]\n"
        "            vars(sys.modules['notewell.cli']).pop(module.split('.')[2], None)\n"
        "    with contextlib.redirect_stdout(io.StringIO()): run([name, '--help'])\n"
        "    imported[name] = [module for module in sys.modules if module.startswith('notewell.cli.')]\n"
        "print(json.dumps(imported))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, *COMMANDS], capture_output=True, text=True, timeout=60, check=True
    )
    return {name: set(modules) for name, modules in json.loads(done.stdout).items()}


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_imports_only_its_own_module(name, imported_by_command):
    """Whatever the others need must not slow it down."""
    shared = {"notewell.cli.main", "notewell.cli.options", "notewell.cli.terminal"}
    assert imported_by_command[name] - shared == {f"notewell.cli.{COMMANDS[name].partition(':')[0]}"}


def write_test_set(folder: Path) -> None:
    """Write a set of two documents and one query in BEIR layout."""
    folder.mkdir(parents=True)
    documents = [{"_id": "d1", "title": "", "text": "red roses"}, {"_id": "d2", "title": "", "text": "blue boats"}]
    (folder / "corpus.jsonl").write_text("".join(json.dumps(d) + "\n" for d in documents), encoding="utf-8")
    (folder / "queries.jsonl").write_text(json.dumps({"_id": "q1", "text": "roses"}) + "\n", encoding="utf-8")
    (folder / "qrels.tsv").write_text("query-id\tcorpus-id\tscore\nq1\td1\t1\n", encoding="utf-8")


def test_eval_measures_documents_or_evidence(notewell, tmp_path):
    write_test_set(tmp_path / "set")
    done = notewell("eval", tmp_path / "set", "--measure", "documents", "--json")
    assert done.code == 0, done.err
    without_sessions = notewell("eval", tmp_path / "set", "--measure", "evidence", "--json")
    assert (without_sessions.code, "session" in without_sessions.document["error"]["message"]) == (1, True)
    assert notewell("eval", tmp_path / "set", "--mode", "evidence", "--json").code == 2


def write_conversations(example: Path, home: Path, session_id: str) -> None:
    """Put one conversation into the session store of the example, and the transcript of another program into `home`."""
    with Memory.open(example, provider="none") as memory:
        memory.conversations.create(session_id=session_id)
        for number in range(30):
            memory.conversations.append(session_id, {"role": "user", "content": f"Message {number} is about boats."})
    transcript = home / ".claude" / "projects" / "notes" / "talk.jsonl"
    transcript.parent.mkdir(parents=True)
    line = {"type": "user", "sessionId": "5f0e", "message": {"role": "user", "content": "Fix the wifi"}}
    transcript.write_text(json.dumps(line) + "\n", encoding="utf-8")


@pytest.mark.slow
@pytest.mark.parametrize("name", commands(), ids=lambda name: name or "notewell")
def test_every_help_ends_with_an_example_that_runs(notewell, example, monkeypatch, name, tmp_path):
    help_text = notewell(*name.split(), "--help")
    assert (help_text.code, help_text.err) == (0, "")
    last = help_text.out.strip().splitlines()[-1].strip()
    assert last.startswith("Example: ")
    line = last.removeprefix("Example: ")
    shell = re.fullmatch(r'eval "\$\((.+)\)"', line)
    words = shlex.split(shell[1] if shell else line)
    assert words[0] == "notewell"
    assert name in " ".join(words[1:])
    monkeypatch.chdir(example)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("USERPROFILE", str(tmp_path))
    monkeypatch.setenv("NOTEWELL_CONFIG", str(tmp_path / "config.toml"))  # some examples change the settings
    settings = ""
    if name == "migrate":
        pytest.importorskip("psycopg", reason="psycopg is not installed")
        settings = f'[store]\nurl = "{shared_database()}"\ntenant = "example-{os.getpid()}"\n'
    (tmp_path / "config.toml").write_text(settings, encoding="utf-8")
    notewell("index")
    if name.startswith("sessions"):
        monkeypatch.setenv("NOTEWELL_SOURCES", "memory,sessions")
        write_conversations(example, tmp_path, "7f3a")
    if name.startswith("hook"):
        write_conversations(example, tmp_path, "7f3a")
        transcript = next(tmp_path.rglob("talk.jsonl"))
        (example / "event.json").write_text(json.dumps({"transcript_path": str(transcript)}), encoding="utf-8")
    if name == "history":
        note = "We keep PostgreSQL.\n<!-- notewell id=k3f9a2qx category=decision -->\n"
        (example / "memory/decision.md").write_text(note, encoding="utf-8")
    if name == "config import":
        (tmp_path / ".openclaw").mkdir()
        (tmp_path / ".openclaw" / "openclaw.json").write_text(
            '{"memory": {"query": {"hybrid": {"temporalDecay": {"enabled": true}}}}}', encoding="utf-8"
        )
    if "evals/corpus" in words:
        write_test_set(example / "evals/corpus")
    if "download" in words:  # one that is there already is not fetched
        monkeypatch.setenv("NOTEWELL_LOCAL__MODEL_CACHE_DIR", str(tmp_path / "models"))
        model = hub_file(words[-1]).path_in(tmp_path / "models")
        model.parent.mkdir(parents=True)
        model.write_bytes(b"GGUF")
    if name == "mcp":  # a server: it ends with its client, and the process with it
        command = [sys.executable, "-m", "notewell", *words[1:]]
        served = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, timeout=60, check=False)
        assert (served.returncode, served.stdout, served.stderr) == (0, b"", b"")
        return
    done = notewell(*words[1:])
    assert done.code == 0
    assert done.out
    told = "error" if name in {"migrate", "hook session-end"} else "error|note"  # these say what they changed
    assert not re.search(f"^({told}):", done.err, re.MULTILINE)


# --- JSON in every state ------------------------------------------------------------------------


COMMANDS_WITH_JSON = [
    ["index"],
    ["index", "--force"],
    ["index", "--dry-run"],
    ["search", "printer"],
    ["search", "printer", "--no-sync"],
    ["get", "MEMORY.md"],
    ["status"],
    ["status", "--deep"],
    ["doctor"],
    ["cache", "stats"],
    ["cache", "prune"],
    ["cache", "clear"],
    ["config", "show"],
    ["config", "path"],
]


def state_folder_is_a_file(workspace: Path) -> None:
    with Memory.open(workspace, provider="none") as memory:
        top = memory._components.folder.path.parent
    shutil.rmtree(top)
    top.write_text("not a folder", encoding="utf-8")


STATES = {
    "well": lambda workspace: None,
    "no notes": lambda workspace: [path.unlink() for path in workspace.rglob("*.md")],
    "corrupt index": ruin,
    "empty index": lambda workspace: ruin(workspace, b""),
    "missing workspace": lambda workspace: workspace.rename(workspace.with_name("elsewhere")),
    "workspace is a file": lambda workspace: (
        workspace.rename(workspace.with_name("elsewhere")),
        workspace.write_text("x"),
    ),
    "broken settings file": lambda workspace: (workspace / "notewell.toml").write_text("query = [[["),
    "state folder is a file": state_folder_is_a_file,
}


@pytest.mark.parametrize("words", COMMANDS_WITH_JSON, ids=" ".join)
@pytest.mark.parametrize("state", STATES)
def test_exactly_one_json_document_in_every_state(notewell, indexed, state, words):
    STATES[state](indexed)
    done = notewell(*words, "-w", indexed, "--json")
    document = done.document
    assert isinstance(document, dict)
    assert done.code in {0, 1, 2, 3}
    assert ("error" in document) <= (done.code != 0)
    if "error" in document:
        assert set(document["error"]) == {"kind", "message", "hint"}
        assert document["error"]["message"] in done.err


@pytest.mark.slow
@pytest.mark.parametrize("encoding", ["utf-8", "ascii", "cp1252", "latin-1"])
def test_json_is_json_whatever_stdout_can_hold(workspace, encoding):
    (workspace / "memory/odd.md").write_text("# Café 🎉\n\nCrème brûlée, 数据库, \u2028 and ☂.\n", encoding="utf-8")
    env = {"PYTHONIOENCODING": encoding, "PYTHONUTF8": "0"}
    done = run_process("search", "brûlée 🎉", "-w", workspace, "--json", **env)
    assert done.code == 0
    assert done.document["query"] == "brûlée 🎉"
    assert "🎉" in done.document["hits"][0]["snippet"]


@pytest.mark.slow
def test_words_are_shown_as_far_as_stdout_can_hold_them(workspace):
    done = run_process("search", "데이터베이스", "-w", workspace, PYTHONIOENCODING="cp1252", PYTHONUTF8="0")
    assert done.code == 0
    assert "\\ub370" in done.out


# --- as a process -------------------------------------------------------------------------------


@pytest.mark.slow
def test_the_same_answer_in_this_process_in_another_and_from_python(notewell, indexed):
    here = notewell("search", "printer", "-w", indexed, "--json").document
    assert run_process("search", "printer", "-w", indexed, "--json").document == here
    with Memory.open(indexed, provider="hashing") as memory:
        hits = memory.search("printer").hits
    assert [(hit.citation, hit.score) for hit in hits] == [(hit["citation"], hit["score"]) for hit in here["hits"]]


@pytest.mark.slow
def test_exit_codes_of_a_process(indexed):
    assert run_process("search", "printer", "-w", indexed).code == 0
    assert run_process("get", "../x", "-w", indexed).code == 1
    assert run_process("search", "-w", indexed).code == 2
    ruin(indexed)
    assert run_process("status", "-w", indexed).code == 3


@pytest.mark.slow
def test_a_reader_that_has_seen_enough_is_no_failure(example):
    env = {**os.environ, "NOTEWELL_PROVIDER": "hashing", "NOTEWELL_CONFIG": os.devnull}
    process = subprocess.Popen(
        [sys.executable, "-m", "notewell", "search", "the", "-n", "50", "--min-score", "0", "-w", str(example)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=env,
    )
    process.stdout.close()
    _, err = process.communicate(timeout=60)
    assert (process.returncode, err) == (0, b"")


@pytest.mark.slow
def test_no_colour_where_there_is_no_terminal(indexed):
    for words in (["search", "printer"], ["doctor"], ["get", "../x"]):
        done = run_process(*words, "-w", indexed)
        assert "\x1b" not in done.out + done.err


# --- with the real model ------------------------------------------------------------------------


@pytest.fixture(scope="module")
def by_meaning(tmp_path_factory):
    """A few notes, indexed once with the packaged model."""
    folder = tmp_path_factory.mktemp("model")
    notes = {
        "MEMORY.md": "# Memory\n\n- Dana takes tea in the afternoon, never coffee.\n",
        "memory/garden.md": "# Garden\n\nPrune the roses in late winter, before new leaves appear.\n",
        "memory/server.md": "# Server\n\nThe nightly backup of the database runs at two o'clock.\n",
    }
    for path, text in notes.items():
        (folder / path).parent.mkdir(exist_ok=True)
        (folder / path).write_text(text, encoding="utf-8")
    done = run_process("index", "-w", folder, "--json", NOTEWELL_PROVIDER="auto")
    if done.document["notes"]:
        pytest.skip(f"the local model does not run here: {done.document['notes']}")
    assert done.document["pending"] == 0
    return folder


@pytest.mark.slow
@pytest.mark.parametrize(
    ("query", "path"),
    [
        ("what does she like to drink?", "MEMORY.md"),
        ("when should the flowers be cut back?", "memory/garden.md"),
        ("how is our data saved against loss?", "memory/server.md"),
    ],
)
def test_the_local_model_finds_by_meaning(notewell, by_meaning, query, path):
    found = notewell("search", query, "-w", by_meaning, "--set", "provider=auto", "--min-score", 0, "--json").document
    assert (found["mode"], found["notes"]) == ("hybrid", [])
    assert found["hits"][0]["path"] == path
    assert 0 < found["hits"][0]["vectorScore"] <= 1


@pytest.mark.slow
def test_the_local_model_is_named_by_status_and_passes_doctor(notewell, by_meaning):
    status = notewell("status", "-w", by_meaning, "--set", "provider=auto", "--json").document
    assert status["embedder"].startswith("local/")
    assert status["embedderReason"] == "the local model is installed"
    assert notewell("doctor", "-w", by_meaning, "--set", "provider=auto").code == 0
