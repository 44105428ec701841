"""`notewell mcp` on stdin and stdout: both generations of the protocol, clean output, a clean end."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest

from mcp import Client, StdioServerParameters, stdio_client
from notewell import Memory
from notewell.agents.documents import status_document
from notewell.agents.tools import MemoryTools
from tests.end_to_end.processes.plug_in import install

from .conftest import COMMAND, server_environment
from .wire import MODERN, PATIENCE_S, wire

pytestmark = pytest.mark.slow

HANDSHAKES = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
TOOLS = ["memory_search", "memory_get", "memory_list", "memory_write", "memory_forget"]


@pytest.mark.parametrize("version", [*HANDSHAKES, MODERN])
def test_every_generation_finds_a_note(indexed, version):
    with wire(indexed) as line:
        began = line.discover() if version == MODERN else line.shake_hands(version)
        if version == MODERN:
            assert version in began["supportedVersions"]
        else:
            assert began["protocolVersion"] == version
        assert "holds 7 files of notes. Search is keyword-only:" in began["instructions"]
        listed = line.ask("tools/list")["result"]["tools"]
        assert [tool["name"] for tool in listed] == TOOLS
        assert all("outputSchema" in tool for tool in listed)  # those before 2025-06-18 do not look at it
        found = line.call("memory_search", query="printer address")
        assert json.loads(found["content"][0]["text"])["hits"][0]["path"] == "memory/network.md"
        assert line.call("memory_get", path="../secret.md")["isError"] is True
        code, rest, errors = line.end()
    assert (code, rest, errors) == (0, [], "")


def test_a_version_nobody_knows_is_answered_with_one_we_speak(indexed):
    with wire(indexed) as line:
        assert line.shake_hands("1999-01-01")["protocolVersion"] == HANDSHAKES[-1]


@pytest.mark.parametrize("mode", ["legacy", "auto"])
def test_the_sdk_client(indexed, mode):
    """Everything the server offers, through the official client, which checks results against their schemas."""
    parameters = StdioServerParameters(
        command=sys.executable, args=[*COMMAND[1:], "-w", str(indexed)], env=server_environment()
    )

    async def talk():
        async with Client(stdio_client(parameters), mode=mode) as client:
            said = {"version": client.protocol_version, "instructions": client.instructions}
            said["tools"] = (await client.list_tools()).tools
            said["search"] = await client.call_tool("memory_search", {"query": "guest network"})
            said["get"] = await client.call_tool("memory_get", {"path": "memory/network.md", "from": 3, "lines": 3})
            said["status"] = (await client.read_resource("memory://status")).contents[0]
            said["mistake"] = await client.call_tool("memory_search", {"query": "x", "maxResults": 0})
            said["unknown"] = await client.call_tool("memory_status", {})
            said["append"] = await client.call_tool("memory_write", {"text": "The pelican sleeps."})
            said["again"] = await client.call_tool("memory_search", {"query": "pelican"})
            said["resources"] = (await client.list_resources()).resources
            said["templates"] = (await client.list_resource_templates()).resource_templates
            said["file"] = (await client.read_resource("memory://file/memory/%E4%B8%AD%E6%96%87.md")).contents[0]
            said["prompts"] = (await client.list_prompts()).prompts
            said["recall"] = await client.get_prompt("recall", {"question": "guest network?"})
            said["start"] = await client.get_prompt("start")
            said["recall nothing"] = await client.get_prompt("recall", {"question": "xylophone?"})
            return said

    said = asyncio.run(asyncio.wait_for(talk(), 60))
    with Memory.open(indexed, provider="none") as memory:
        tools = MemoryTools(memory)
        expected = tools.call("memory_search", {"query": "guest network"}).document
        status = status_document(memory.status())
    assert said["version"] == ("2025-11-25" if mode == "legacy" else MODERN)
    assert "keep it with memory_write" in said["instructions"]
    assert [tool.name for tool in said["tools"]] == TOOLS
    assert [tool.annotations.read_only_hint for tool in said["tools"]] == [True, True, True, False, False]
    assert [tool.annotations.destructive_hint for tool in said["tools"][-2:]] == [False, True]
    found = said["search"].structured_content
    assert json.loads(said["search"].content[0].text) == found
    assert [hit["citation"] for hit in found["hits"]] == [hit["citation"] for hit in expected["hits"]]
    assert set(found) == set(expected)
    assert "heron-guest" in said["get"].structured_content["text"]
    assert set(json.loads(said["status"].text)) == set(status)
    assert said["mistake"].is_error
    assert "at least 1, got 0" in said["mistake"].content[0].text
    assert said["unknown"].is_error
    assert "memory_get" in said["unknown"].content[0].text
    assert said["append"].structured_content["written"] is True
    assert said["again"].structured_content["hits"][0]["path"] == said["append"].structured_content["path"]
    assert "memory://file/memory/%E4%B8%AD%E6%96%87.md" in [str(resource.uri) for resource in said["resources"]]
    assert [template.uri_template for template in said["templates"]] == ["memory://file/{+path}"]
    assert "数据库迁移" in said["file"].text
    assert [prompt.name for prompt in said["prompts"]] == ["recall", "start"]
    assert "lives in Lisbon" in said["start"].messages[0].content.text
    assert "The pelican sleeps." in said["start"].messages[0].content.text  # today's note
    listed = {file["path"]: file for file in said["start"].meta["notewell/files"]}
    assert listed["MEMORY.md"]["injectedChars"] == listed["MEMORY.md"]["rawChars"] > 0
    assert listed["MEMORY.md"]["truncated"] is listed["MEMORY.md"]["missing"] is False
    assert "heron-guest" in said["recall"].messages[0].content.text
    assert "holds nothing that fits" in said["recall nothing"].messages[0].content.text


def test_each_mode_of_a_search(workspace):
    with Memory.open(workspace, provider="hashing") as memory:
        memory.index()
    with wire(workspace, NOTEWELL_PROVIDER="hashing") as line:
        line.shake_hands()
        listed = {tool["name"]: tool for tool in line.ask("tools/list")["result"]["tools"]}
        modes = listed["memory_search"]["inputSchema"]["properties"]["mode"]["enum"]
        assert modes == ["hybrid", "semantic", "keyword"]
        for mode in modes:
            found = line.call("memory_search", query="printer address", mode=mode)["structuredContent"]
            assert (found["mode"], found["hits"][0]["path"]) == (mode, "memory/network.md")
        refused = line.call("memory_search", query="printer", mode="fuzzy")
        assert refused["isError"] is True
        assert "'mode' must be 'hybrid' or 'semantic' or 'keyword'" in refused["content"][0]["text"]


def test_a_group_is_shown_no_private_resource(indexed):
    with wire(indexed, "--chat", "group") as line:
        line.shake_hands()
        listed = [resource["name"] for resource in line.ask("resources/list")["result"]["resources"]]
        assert "memory/network.md" in listed
        assert "MEMORY.md" not in listed
        refused = line.ask("resources/read", {"uri": "memory://file/MEMORY.md"})
        assert refused["error"]["code"] == -32002
        assert "Lisbon" not in json.dumps(refused)
        assert "Lisbon" not in json.dumps(line.call("memory_search", query="tea coffee"))
        started = line.ask("prompts/get", {"name": "start"})["result"]
        assert "holds neither MEMORY.md nor notes of today" in started["messages"][0]["content"]["text"]
        assert str(indexed) not in json.dumps(started)
        assert "citation" not in json.dumps(line.call("memory_search", query="printer")["structuredContent"]["hits"])


# --- clean output and a clean end ---------------------------------------------------------------


def test_nothing_but_the_protocol_is_on_stdout(workspace, tmp_path):
    site = install(tmp_path, "chatty", before="print('loading...'); import os; os.system('echo noise')")
    with wire(workspace, NOTEWELL_PROVIDER="chatty", PYTHONPATH=str(site)) as line:
        line.shake_hands()
        found = line.call("memory_search", query="printer")
        assert found["structuredContent"]["hits"]
        code, rest, errors = line.end()
    assert (code, rest) == (0, [])
    assert "loading..." in errors


def test_lines_that_are_no_requests_do_not_end_it(indexed):
    with wire(indexed) as line:
        line.shake_hands()
        for noise in (
            b"\n",
            b"not json\n",
            b"[]\n",
            b'{"jsonrpc": "2.0"}\n',
            b'"\\ud800"\n',
            b"\xff\xfe\n",
            b"{}" * 99 + b"\n",
        ):
            line.process.stdin.write(noise)
        line.process.stdin.flush()
        assert line.ask("nonsense/method")["error"]["code"] == -32601
        assert line.call("memory_search", query="printer")["structuredContent"]["hits"]


@pytest.mark.skipif(os.name == "nt", reason="Windows has no such signals")
@pytest.mark.parametrize("name", ["SIGTERM", "SIGHUP", "SIGINT"])
def test_it_ends_cleanly_when_asked_to(indexed, name):
    with wire(indexed) as line:
        line.shake_hands()
        assert line.call("memory_search", query="printer")["structuredContent"]["hits"]
        line.process.send_signal(getattr(signal, name))
        assert line.process.wait(30) == 0
        assert "Traceback" not in line.process.stderr.read().decode()


@pytest.mark.skipif(os.name == "nt", reason="ends by a signal there")
@pytest.mark.parametrize("way", ["stdin closed", "SIGTERM"])
def test_it_ends_in_time_while_an_embedder_hangs(workspace, tmp_path, way):
    site = install(tmp_path, "hangs", before="import time; time.sleep(600)")
    with wire(workspace, NOTEWELL_PROVIDER="hangs", PYTHONPATH=str(site)) as line:
        line.shake_hands()
        assert line.ask("tools/list")["result"]["tools"]
        line.send(
            {"id": 9999, "method": "tools/call", "params": {"name": "memory_search", "arguments": {"query": "a"}}}
        )
        assert line.call("memory_get", path="MEMORY.md")["isError"] is False  # others are answered meanwhile
        if way == "SIGTERM":
            line.process.send_signal(signal.SIGTERM)
        else:
            line.process.stdin.close()
        assert line.process.wait(PATIENCE_S) == 0
    with Memory.open(workspace, provider="none") as memory:
        memory.index()  # the first search has no more than its budget for it
        assert memory.search("printer").hits
        assert all(check.ok for check in memory.doctor() if check.name in {"index", "folder"})


def test_a_client_that_goes_before_saying_anything(indexed):
    with wire(indexed) as line:
        assert line.end() == (0, [], "")


def test_a_memory_that_is_turned_off_says_so(indexed):
    with wire(indexed, "--set", "enabled=false") as line:
        line.shake_hands()
        refused = line.call("memory_search", query="printer")
        assert refused["isError"] is True
        assert "memory is turned off" in refused["content"][0]["text"]
        for asked in ({"name": "recall", "arguments": {"question": "printer?"}}, {"name": "start"}):
            assert "memory is turned off" in line.ask("prompts/get", asked)["error"]["message"]


def test_many_clients_on_one_workspace(workspace):
    """Four servers start on a workspace that nobody has indexed, and answer at once; nobody is in anybody's way."""

    def work(number: int) -> int:
        with wire(workspace) as line:
            line.shake_hands()
            for turn in range(5):
                (workspace / "memory" / f"by{number}-{turn}.md").write_text(f"Word{number}x{turn} of this client.\n")
                found = line.call("memory_search", query=f"Word{number}x{turn}")
                assert found["isError"] is False, found
                assert found["structuredContent"]["notes"] is not None
            return line.end()[0]

    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(work, range(4))) == [0, 0, 0, 0]
    with Memory.open(workspace, provider="none") as memory:
        memory.index()
        assert memory.status().files == 27


# --- the command --------------------------------------------------------------------------------


def test_without_the_package_it_says_what_to_install(indexed):
    code = (
        "import sys; sys.modules['mcp'] = None\n"
        "from notewell.cli.main import run\n"
        f"sys.exit(run(['mcp', '-w', {str(indexed)!r}]))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env=server_environment(), timeout=60, check=False
    )
    assert done.returncode == 1
    assert "pip install 'notewell[mcp]'" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_server_prints_no_document(notewell, indexed):
    done = notewell("mcp", "--json", "-w", indexed)
    assert (done.code, done.document["error"]["kind"]) == (2, "usage")


def test_it_loads_only_what_a_server_needs(indexed):
    """What keeps the time to the first response short: no model, no index."""
    code = (
        "import sys\n"
        "import notewell.mcp.transports, mcp.server.stdio\n"
        "heavy = {'numpy', 'onnxruntime', 'apsw', 'httpx', 'jsonschema'}\n"
        "print(sorted(heavy & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout == "[]\n"


def test_in_a_project_without_a_workspace_it_is_idle(tmp_path):
    """What the plugin of Claude Code starts: connecting succeeds, and there is nothing to call."""
    command = StdioServerParameters(
        command=sys.executable, args=[*COMMAND[1:], "--optional"], env=server_environment(), cwd=tmp_path
    )

    async def talk():
        async with Client(stdio_client(command)) as client:
            return client.instructions, (await client.list_tools()).tools

    instructions, tools = asyncio.run(asyncio.wait_for(talk(), 60))
    assert tools == []
    assert "`notewell init`" in instructions
    words = [sys.executable, *COMMAND[1:]]
    done = subprocess.run(words, cwd=tmp_path, env=server_environment(), capture_output=True, check=False, timeout=60)
    assert done.returncode == 1


def test_read_only_leaves_two_tools_out(indexed):
    with wire(indexed, "--read-only") as line:
        began = line.shake_hands()
        assert [tool["name"] for tool in line.ask("tools/list")["result"]["tools"]] == TOOLS[:3]
        assert "memory_write" not in began["instructions"]
        assert line.call("memory_write", text="The pelican sleeps.")["isError"] is True


def test_the_status_is_a_resource(indexed):
    with wire(indexed) as line:
        line.shake_hands()
        listed = line.ask("resources/list")["result"]["resources"]
        assert listed[0]["uri"] == "memory://status"
        (content,) = line.ask("resources/read", {"uri": "memory://status"})["result"]["contents"]
        assert json.loads(content["text"])["files"] == 7
    with wire(indexed, "--chat", "group") as line:
        line.shake_hands()
        (content,) = line.ask("resources/read", {"uri": "memory://status"})["result"]["contents"]
        assert set(json.loads(content["text"])) == {"files", "chunks", "pending", "mode", "stale"}
