"""Real clients from npm: the inspector, the conformance suite, Claude Code, Codex and OpenClaw."""

from __future__ import annotations

import json
import os
import sys

import pytest

from tests.mcp.conftest import COMMAND, http_server

from . import node
from .fake_models import fake_model

pytestmark = pytest.mark.slow

QUESTION = "what did we decide about PostgreSQL for billing?"
CITATION = "memory/2026-11-01.md#L1-L3"


@pytest.fixture
def home(tmp_path):
    """A home of its own for clients that keep settings there, and a project folder."""
    (tmp_path / "home").mkdir()
    (tmp_path / "project").mkdir()
    return tmp_path


TOOLS = ["memory_search", "memory_get", "memory_list", "memory_write", "memory_forget"]


def client_environment(home, **more: str) -> dict[str, str]:
    return node.environment(HOME=str(home / "home"), USERPROFILE=str(home / "home"), **more)


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        pytest.param(
            ["--method", "tools/list"],
            lambda said: [tool["name"] for tool in said["tools"]] == TOOLS,
            id="tools",
        ),
        pytest.param(
            ["--method", "tools/call", "--tool-name", "memory_search", "--tool-arg", f"query={QUESTION}"],
            lambda said: said["structuredContent"]["hits"][0]["citation"] == CITATION,
            id="a search",
        ),
        pytest.param(
            ["--method", "resources/read", "--uri", "memory://file/memory/network.md"],
            lambda said: "heron-guest" in said["contents"][0]["text"],
            id="a resource",
        ),
        pytest.param(
            ["--method", "prompts/get", "--prompt-name", "recall", "--prompt-args", f"question={QUESTION}"],
            lambda said: CITATION in said["messages"][0]["content"]["text"],
            id="the prompt",
        ),
    ],
)
def test_the_inspector_on_stdio(client_from_npm, home, indexed, words, expected):
    client_from_npm(node.INSPECTOR)
    done = node.run(
        node.INSPECTOR,
        "mcp-inspector",
        "--cli",
        *COMMAND,
        "-w",
        str(indexed),
        *words,
        env=client_environment(home, NOTEWELL_PROVIDER="none"),
        cwd=home,
    )
    assert done.returncode == 0, done.stderr
    assert expected(json.loads(done.stdout)), done.stdout


def test_the_inspector_over_http(client_from_npm, home, indexed):
    client_from_npm(node.INSPECTOR)
    with http_server(indexed) as address:
        done = node.run(
            node.INSPECTOR,
            "mcp-inspector",
            "--cli",
            address,
            "--transport",
            "http",
            "--method",
            "tools/list",
            env=client_environment(home),
            cwd=home,
        )
    assert done.returncode == 0, done.stderr
    assert "memory_search" in done.stdout


def test_the_conformance_scenarios_that_apply(client_from_npm, home, indexed):
    client_from_npm(node.CONFORMANCE)
    # The others want a server with tools made for the suite: images, sampling, elicitation and the like.
    scenarios = (
        "server-initialize",
        "ping",
        "tools-list",
        "resources-list",
        "prompts-list",
        "dns-rebinding-protection",
    )
    with http_server(indexed) as address:
        for scenario in scenarios:
            words = ("server", "--url", address, "--scenario", scenario)
            done = node.run(node.CONFORMANCE, "conformance", *words, env=client_environment(home), cwd=home)
            assert done.returncode == 0, done.stdout + done.stderr
            assert " 0 failed, 0 warnings" in done.stdout, done.stdout


def test_claude_code_searches_and_cites(client_from_npm, home, indexed):
    client_from_npm(node.CLAUDE_CODE)
    server = {"command": sys.executable, "args": [*COMMAND[1:], "-w", str(indexed)]}
    with fake_model(QUESTION) as model:
        done = node.run(
            node.CLAUDE_CODE,
            "claude",
            *("-p", "What is our database for billing?"),
            *("--mcp-config", json.dumps({"mcpServers": {"memory": server}}), "--strict-mcp-config"),
            *("--allowedTools", "mcp__memory__memory_search", "--output-format", "json"),
            cwd=home / "project",
            env=client_environment(
                home,
                ANTHROPIC_BASE_URL=model.base_url,
                ANTHROPIC_API_KEY="sk-ant-not-a-key",
                CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC="1",
                ENABLE_TOOL_SEARCH="false",
                MCP_CONNECTION_NONBLOCKING="0",
            ),
        )
    assert done.returncode == 0, done.stdout + done.stderr
    assert json.loads(done.stdout)["result"] == f"From memory. Source: {CITATION}"
    assert "recalled-memory" in json.dumps(model.requests[-1]["messages"])


def test_codex_searches_and_cites(client_from_npm, home, indexed):
    client_from_npm(node.CODEX)
    with fake_model(QUESTION) as model:
        provider = f'{{name="fake",base_url="{model.base_url}/v1",wire_api="responses",env_key="FAKE_KEY"}}'
        arguments = json.dumps([*COMMAND[1:], "-w", str(indexed)])
        variables = f'{{NOTEWELL_PROVIDER="none",NOTEWELL_CONFIG={json.dumps(os.devnull)}}}'
        memory = f"{{command={json.dumps(sys.executable)},args={arguments},required=true,env={variables}}}"
        done = node.run(
            node.CODEX,
            "codex",
            *("exec", "--skip-git-repo-check", "--json", "-c", 'model_provider="fake"', "-c", 'model="gpt-fake"'),
            *("-c", f"model_providers.fake={provider}", "-c", f"mcp_servers.memory={memory}"),
            "What is our database for billing?",
            cwd=home / "project",
            env=client_environment(home, FAKE_KEY="not-a-key", CODEX_HOME=str(home / "home")),
        )
    assert done.returncode == 0, done.stdout + done.stderr
    said = [json.loads(line) for line in done.stdout.splitlines()]
    answers = [each["item"]["text"] for each in said if each.get("item", {}).get("type") == "agent_message"]
    assert answers == [f"From memory. Source: {CITATION}"]


def test_openclaw_probes_the_server(client_from_npm, home, indexed):
    client_from_npm(node.OPENCLAW)
    environment = client_environment(home, OPENCLAW_STATE_DIR=str(home / "home" / ".openclaw"))
    words = [word for argument in [*COMMAND[1:], "-w", str(indexed)] for word in ("--arg", argument)]
    added = node.run(
        node.OPENCLAW,
        "openclaw",
        "mcp",
        "add",
        "memory",
        "--command",
        sys.executable,
        *words,
        env=environment,
        cwd=home,
    )
    told = added.stdout + added.stderr
    assert added.returncode == 0 or 'MCP server "memory" already exists' in told, told  # it may have run itself twice
    saved = json.loads((home / "home" / ".openclaw" / "openclaw.json").read_text(encoding="utf-8"))
    assert saved["mcp"]["servers"]["memory"]["command"] == sys.executable
    assert saved["mcp"]["servers"]["memory"]["args"] == [*COMMAND[1:], "-w", str(indexed)]
    probed = node.run(node.OPENCLAW, "openclaw", "mcp", "probe", "memory", env=environment, cwd=home)
    assert probed.returncode == 0, probed.stdout + probed.stderr
    assert "5 tools, resources, prompts" in probed.stdout
