"""The clients themselves, where Node and npm are there: they read what `notewell install` writes; the plugin works."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from notewell import Memory

pytest.importorskip("mcp", reason="the extra `mcp` is not installed")
pytest.importorskip("pyjson5", reason="needs the extra `sessions`")

from . import node
from .fake_models import fake_model

pytestmark = pytest.mark.slow

PLUGIN = Path(__file__).parents[3] / "plugins" / "claude-code"


@pytest.fixture
def home(tmp_path):
    for name in ("home", "project"):
        (tmp_path / name).mkdir()
    return tmp_path


def need(package: str) -> None:
    try:
        node.find_node()
        node.install(package)
    except node.Unavailable as reason:
        pytest.skip(str(reason))


def environment(home: Path, **more: str) -> dict[str, str]:
    own = {"HOME": str(home / "home"), "USERPROFILE": str(home / "home")}
    found = node.environment(**own, **more)
    return found | {"PATH": os.pathsep.join([str(Path(sys.executable).parent), found["PATH"]])}


def install(client: str, workspace: Path, env: dict[str, str]) -> None:
    words = [sys.executable, "-m", "notewell", "install", client, "-w", str(workspace)]
    done = subprocess.run(words, capture_output=True, text=True, timeout=60, check=False, env=env)
    assert done.returncode == 0, done.stderr


def test_claude_code_connects_to_what_is_installed(home, workspace):
    need(node.CLAUDE_CODE)
    env = environment(home)
    install("claude-code", workspace, env)
    listed = node.run(node.CLAUDE_CODE, "claude", "mcp", "list", env=env, cwd=home / "project")
    assert listed.returncode == 0, listed.stdout + listed.stderr
    assert "memory: " in listed.stdout
    assert "Connected" in listed.stdout


def test_codex_reads_what_is_installed(home, workspace):
    need(node.CODEX)
    env = environment(home, CODEX_HOME=str(home / "codex"))
    (home / "codex").mkdir()
    (home / "codex" / "config.toml").write_text('# mine\nmodel = "gpt-fake"\n')
    install("codex", workspace, env)
    listed = node.run(node.CODEX, "codex", "mcp", "get", "memory", "--json", env=env, cwd=home / "project")
    assert listed.returncode == 0, listed.stdout + listed.stderr
    transport = json.loads(listed.stdout)["transport"]
    assert transport["args"][-3:] == ["mcp", "--workspace", str(workspace)]


def test_openclaw_probes_what_is_installed(home, workspace):
    need(node.OPENCLAW)
    env = environment(home, OPENCLAW_STATE_DIR=str(home / "home" / ".openclaw"))
    install("openclaw", workspace, env)
    probed = node.run(node.OPENCLAW, "openclaw", "mcp", "probe", "memory", env=env, cwd=home)
    assert probed.returncode == 0, probed.stdout + probed.stderr
    assert "5 tools" in probed.stdout


def test_the_plugin_is_valid(home):
    need(node.CLAUDE_CODE)
    checked = node.run(
        node.CLAUDE_CODE, "claude", "plugin", "validate", "--strict", str(PLUGIN), env=environment(home), cwd=home
    )
    assert checked.returncode == 0, checked.stdout + checked.stderr
    assert "Validation passed" in checked.stdout


def test_a_session_with_the_plugin_recalls_searches_and_is_kept(home, workspace):
    need(node.CLAUDE_CODE)
    tool = "mcp__plugin_notewell_memory__memory_search"
    with fake_model("what did we decide about PostgreSQL for billing?") as model:
        done = node.run(
            node.CLAUDE_CODE,
            "claude",
            *("-p", "What is our database for billing?", "--plugin-dir", str(PLUGIN)),
            *("--allowedTools", tool, "--output-format", "json"),
            cwd=workspace,
            env=environment(
                home,
                ANTHROPIC_BASE_URL=model.base_url,
                ANTHROPIC_API_KEY="sk-ant-not-a-key",
                CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC="1",
                ENABLE_TOOL_SEARCH="false",
                MCP_CONNECTION_NONBLOCKING="0",
            ),
        )
    assert done.returncode == 0, done.stdout + done.stderr
    result = json.loads(done.stdout)
    assert result["result"] == "From memory. Source: memory/2026-11-01.md#L1-L3"
    first = json.dumps(model.requests[0]["messages"])
    assert "recalled-memory origin=" in first
    assert "lives in Lisbon" in first
    with Memory.open(
        workspace, provider="none", sources=("memory", "sessions"), experimental__session_memory=True
    ) as memory:
        kept = memory.conversations.get(result["session_id"])
        assert kept.messages[0].text == "What is our database for billing?"
        assert kept.messages[-1].text == result["result"]
        memory.index()
        assert [hit.path for hit in memory.search("Lisbon").hits] == ["MEMORY.md"]  # recalled, and not captured again
