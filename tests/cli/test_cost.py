"""What embedding costs is said before it happens: in `index --dry-run`, in a question, and in a refusal."""

from __future__ import annotations

import os
import select
import subprocess
import sys

import pytest

from notewell import Memory
from tests.fakes.providers import FakeOpenAI

PRICE = 'cost.prices={"openai/text-embedding-3-small": "10000"}'  # dear enough for a small workspace to cost something


@pytest.fixture
def provider():
    with FakeOpenAI() as fake:
        yield fake


@pytest.fixture
def paid(provider, workspace):
    """The options of a workspace whose embedding costs money, for all that the command knows."""
    return (
        *("-w", workspace, "--set", "provider=openai", "--set", f"remote.base_url={provider.base_url}"),
        *("--set", f"remote.api_key={provider.key}", "--set", PRICE),
    )


def test_the_price_of_a_run(notewell, paid, provider):
    said = notewell("index", "--dry-run", "--json", *paid).document
    assert said["chunks"] == said["toEmbed"] == 7
    assert said["known"] == 0
    assert said["cost"] == {
        "provider": "openai",
        "model": "text-embedding-3-small",
        "tokens": said["tokens"],
        "usd": pytest.approx(said["tokens"] / 100),
        "batchUsd": pytest.approx(said["tokens"] / 100),
        "basis": "cost.prices in the settings",
    }
    lines = notewell("index", "--dry-run", *paid).out
    assert f"to embed: 7 texts, about {said['tokens']:,} tokens, with openai/text-embedding-3-small; price: $" in lines
    assert provider.requests == []


def test_what_was_embedded_before_costs_nothing(notewell, paid, workspace):
    assert notewell("index", "--yes", *paid).code == 0
    (workspace / "memory" / "new.md").write_text("# New\n\nThe lighthouse keeper is called Aurora.\n", encoding="utf-8")
    said = notewell("index", "--dry-run", "--force", "--json", *paid).document
    assert (said["chunks"], said["known"], said["toEmbed"]) == (8, 7, 1)
    assert said["cost"]["tokens"] < said["tokens"]
    assert "7 already embedded (88%)" in notewell("index", "--dry-run", "--force", *paid).out
    assert notewell("index", "--dry-run", "--json", *paid).document["toEmbed"] == 1


def test_texts_that_waited_since_an_earlier_run_are_counted(notewell, paid, workspace):
    assert notewell("index", "-w", workspace, "--set", "provider=none").code == 0
    said = notewell("index", "--dry-run", "--json", *paid).document
    assert (said["chunks"], said["pending"], said["toEmbed"]) == (0, 7, 7)
    assert said["cost"]["tokens"] > 0


def test_a_dry_run_of_some_paths(notewell, paid):
    said = notewell("index", "memory/network.md", "--dry-run", "--json", *paid).document
    assert said["added"] == ["memory/network.md"]
    assert said["toEmbed"] == 1


def test_looking_changes_nothing(notewell, paid, workspace):
    notewell("index", "--yes", *paid)
    state = sorted((workspace / ".notewell").rglob("*"))
    before = {path: path.stat().st_mtime_ns for path in state if path.is_file()}
    assert notewell("index", "--dry-run", "--force", *paid).code == 0
    assert {path: path.stat().st_mtime_ns for path in state if path.is_file() and "-shm" not in path.name} == {
        path: stamp for path, stamp in before.items() if "-shm" not in path.name
    }


@pytest.mark.parametrize(
    ("options", "price"),
    [
        pytest.param(("--set", "provider=hashing"), "price: $0 (runs on this machine", id="on this machine"),
        pytest.param(
            ("--set", "provider=openai", "--set", "model=brand-new", "--set", "remote.dimensions=64"),
            "price: unknown (no price is known for openai/brand-new; set one in cost.prices)",
            id="unknown",
        ),
        pytest.param(
            ("--set", "provider=openai"),
            "price: less than $0.0001, or less than $0.0001 as a batch job (list price",
            id="listed",
        ),
    ],
)
def test_the_price_in_words(notewell, workspace, options, price):
    done = notewell("index", "--dry-run", "-w", workspace, "--set", "remote.api_key=k", *options)
    assert done.code == 0
    assert price in done.out


def test_without_an_embedder_there_is_no_price(notewell, workspace):
    done = notewell("index", "--dry-run", "-w", workspace, "--set", "provider=none")
    assert "price" not in done.out


def test_nobody_to_ask(notewell, paid, provider, workspace):
    done = notewell("index", "--json", *paid)
    assert (done.code, done.document["error"]["kind"]) == (1, "cost_limit")
    assert "more than cost.confirm_above_usd ($1.00)" in done.document["error"]["message"]
    assert "notewell index --yes" in done.document["error"]["hint"]
    assert provider.requests == []
    with Memory.open(workspace, provider="none") as memory:
        assert memory.status().files == 0


@pytest.mark.parametrize("words", [("sessions", "index"), ("doctor", "--fix")], ids=" ".join)
def test_other_commands_that_would_embed_do_not_do_so_unasked_either(notewell, paid, provider, words):
    sessions = ("--set", "sources=memory,sessions")
    told = notewell("search", "printer", *paid, *sessions).err
    assert "7 chunks have no vector yet" in told
    done = notewell(*words, "--json", *paid, *sessions)
    assert (done.code, done.document["error"]["kind"]) == (1, "cost_limit")
    assert provider.requests == []


@pytest.mark.parametrize(
    "agreed",
    [
        pytest.param(("--yes",), id="for this run"),
        pytest.param(("--set", "cost.confirm_above_usd=1000000"), id="by a higher limit"),
        pytest.param(("memory/none-there.md",), id="nothing to embed"),
    ],
)
def test_agreed(notewell, paid, agreed):
    assert notewell("index", *agreed, *paid).code == 0


def test_keyword_indexing_is_never_asked_about(notewell, workspace):
    assert notewell("index", "-w", workspace, "--set", "cost.confirm_above_usd=0").code == 0


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="there are no pseudo-terminals")
@pytest.mark.parametrize(("answer", "code"), [("y", 0), ("n", 1)])
def test_the_question_on_a_terminal(paid, provider, answer, code):
    import pty

    ours, theirs = pty.openpty()
    try:
        command = [sys.executable, "-m", "notewell", "index", *map(str, paid)]
        environment = {**os.environ, "TERM": "dumb"}
        process = subprocess.Popen(command, stdin=theirs, stdout=subprocess.PIPE, stderr=theirs, env=environment)
        said = b""
        while b"[y/N]" not in said:
            assert select.select([ours], [], [], 60)[0], said
            said += os.read(ours, 1000)
        os.write(ours, f"{answer}\n".encode())
        out, _ = process.communicate(timeout=60)
        rest = os.read(ours, 1000) if select.select([ours], [], [], 0)[0] else b""
    finally:
        os.close(theirs)
        os.close(ours)
    assert b"Embed for about $" in said
    if code:
        assert b"note: nothing was embedded" in rest
    assert process.returncode == code
    assert (b"7 embedded" in out) is (code == 0)
    assert bool(provider.requests) is (code == 0)
