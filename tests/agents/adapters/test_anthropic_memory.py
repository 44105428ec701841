"""Anthropic's memory tool on a workspace, beside the SDK's own tool and in the SDK's tool runner."""

from __future__ import annotations

import asyncio
import json
import os
import random
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

anthropic = pytest.importorskip("anthropic", reason="needs the extra `anthropic`")

from anthropic.tools import ToolError  # noqa: E402
from anthropic.tools.memory import BetaLocalFilesystemMemoryTool  # noqa: E402

from notewell import Memory, MemoryDisabledError, QueryError  # noqa: E402
from notewell.agents.adapters.anthropic_memory import AsyncWorkspaceMemoryTool, WorkspaceMemoryTool  # noqa: E402
from tests.end_to_end.test_bad_input import escapes  # noqa: E402

SEQUENCES, CALLS = 40, 40


# --- call by call beside the SDK's own --------------------------------------------------------------


class Beside:
    """Our tool and the SDK's on folders of their own, called with the same commands."""

    def __init__(self, folder: Path, memory: Memory) -> None:
        self.theirs = BetaLocalFilesystemMemoryTool(str(folder / "theirs"))
        self.their_root = folder / "theirs" / "memories"
        self.our_root = memory.workspace / "memory"
        self.ours = WorkspaceMemoryTool(memory)

    def call(self, command: dict) -> tuple[str, str, bool]:
        """Return what each of the two answers, and whether the SDK's answer was meant for a model."""
        before = folders_below(self.their_root)
        theirs, meant = answer_of(self.theirs, command)
        if theirs.startswith("error") and command["command"] == "rename":
            # A rename of theirs that fails has made the folders of the new name before it found out; ours has not.
            for folder in sorted(folders_below(self.their_root) - before, reverse=True):
                (self.their_root / folder).rmdir()
        return answer_of(self.ours, command)[0], theirs, meant


def answer_of(tool, command: dict) -> tuple[str, bool]:
    try:
        return tool.call(command), True
    except ToolError as error:
        return f"error: {error.content}", True
    except OSError as error:
        return f"error: {error!r}", False


def folders_below(root: Path) -> set[str]:
    return {path.relative_to(root).as_posix() for path in root.rglob("*") if path.is_dir()}


def files_below(root: Path) -> dict[str, bytes]:
    return {path.relative_to(root).as_posix(): path.read_bytes() for path in root.rglob("*") if path.is_file()}


NAMES = [
    "a.md",
    "b.md",
    "odd.md",
    "folder",
    "folder/c.md",
    "folder/inner",
    "folder/inner/d.md",
    "x/y/z/deep.md",
    "ä ö.md",
]
NOTE_NAMES = [name for name in NAMES if name.endswith(".md")]
WORDS = ["tea", "coffee", "queue", "Lisbon", "the printer jams", "ü", "文"]


def random_path(rng: random.Random, root: Path, *, note: bool = False, new: bool = False) -> str:
    there = [path.relative_to(root).as_posix() for path in sorted(root.rglob("*")) if path.is_file() or not note]
    names = there if there and not new and rng.random() < 0.7 else NAMES if not note else NOTE_NAMES
    name = rng.choice(["", *names] if not note and rng.random() < 0.2 else names)
    return f"/memories/{name}" if name else "/memories"


def random_text(rng: random.Random) -> str:
    lines = [" ".join(rng.choices(WORDS, k=rng.randint(0, 4))) for _ in range(rng.randint(0, 6))]
    ending = rng.choice(["\n", "\n", "\r\n"])
    return ending.join(lines) + rng.choice(["", ending, "\n\n"])


KINDS = [
    "view",
    "view",
    "create",
    "create",
    "str_replace",
    "str_replace",
    "insert",
    "insert",
    "delete",
    "rename",
    "rename",
]


def random_command(rng: random.Random, root: Path) -> dict:
    kind = rng.choice(KINDS)
    if kind == "view":
        command = {"path": random_path(rng, root)}
        if rng.random() < 0.3:
            first = rng.randint(-1, 3)
            command["view_range"] = [first, rng.choice([-1, max(first, 1) + rng.randint(0, 5)])]
    elif kind == "create":
        command = {"path": random_path(rng, root, note=True, new=True), "file_text": random_text(rng)}
    elif kind == "str_replace":
        old = rng.choice([*WORDS, "e\nt", "ee"])
        command = {"path": random_path(rng, root), "old_str": old, "new_str": random_text(rng)}
    elif kind == "insert":
        command = {"path": random_path(rng, root), "insert_line": rng.randint(-1, 5), "insert_text": random_text(rng)}
    elif kind == "delete":
        command = {"path": random_path(rng, root, note=rng.random() < 0.7)}
    else:
        note = rng.random() < 0.6
        command = {
            "old_path": random_path(rng, root, note=note),
            "new_path": random_path(rng, root, note=note, new=True),
        }
    return {"command": kind, **command}


def is_documented(command: dict, ours: str, theirs: str) -> bool:
    """Say whether the two may differ in this: the differences that the page on the tool lists."""
    if command["command"] == "view" and "Invalid `view_range`" in ours:
        return theirs.endswith("with line numbers:\n")  # theirs is an empty success
    if command["command"] == "rename":
        return "does not end in .md" in ours and not theirs.startswith("error")
    return False


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(SEQUENCES))
def test_the_same_calls_give_the_same_answers_and_files(seed, tmp_path):
    rng = random.Random(seed)
    (tmp_path / "workspace" / "memory").mkdir(parents=True)
    with Memory.open(tmp_path / "workspace", provider="none") as memory:
        both = Beside(tmp_path, memory)
        for number in range(CALLS):
            command = random_command(rng, both.our_root)
            ours, theirs, meant = both.call(command)
            where = f"call {number}: {command}"
            if is_documented(command, ours, theirs):
                if not theirs.startswith("error") and command["command"] == "rename":
                    both.theirs.call(
                        {"command": "rename", "old_path": command["new_path"], "new_path": command["old_path"]}
                    )
                    prune(both.their_root, folders_below(both.our_root))
                continue
            if (
                meant and command.get("old_path") != "/memories"
            ):  # which refusal comes first depends on the SDK's release
                assert ours == theirs, where
            else:
                assert ours.startswith("error: "), where
                assert theirs.startswith("error: "), where
            assert files_below(both.our_root) == files_below(both.their_root), where
            assert folders_below(both.our_root) == folders_below(both.their_root), where
        assert_found(memory, both.our_root)


def prune(root: Path, kept: set[str]) -> None:
    for folder in sorted(folders_below(root) - kept, reverse=True):
        (root / folder).rmdir()


def assert_found(memory: Memory, root: Path) -> None:
    """Every note that is there is indexed as it is now, and none that is not; nothing is left for a sync to do."""
    report = memory.index()
    assert (report.added, report.changed, report.renamed, report.removed) == (0, 0, 0, 0)
    assert report.unchanged == len(files_below(root))


# --- what is stricter, and what is added ------------------------------------------------------------

ESCAPES = [
    "/etc/passwd",
    "memories/a.md",
    "/memoriesX/a.md",
    "/memories../a.md",
    "/memories/../MEMORY.md",
    "/memories/../../a.md",
    "/memories/./a.md",
    "/memories//a.md",
    "/memories/a/../../b.md",
    "/memories/.hidden.md",
    "/memories/.git/config.md",
    "/memories/node_modules/a.md",
    "/memories/a\0.md",
    "/memories/%2e%2e/a.md",
    "/memories/..%2fa.md",
    "/memories/a\\..\\b.md",
    "/memories/C:a.md",
    "/memories/con.md",
    "/memories/nul/a.md",
    "/memories/․․/a.md",
    "/memories/．．/a.md",
    "/memories/a∕b.md",
    "/memories/a\u202eb.md",
    "/memories/a\n.md",
    "/memories/trailing ./a.md",
    "/memories/\ud800.md",
    "/memories/" + "a/" * 2000 + "b.md",
]


@pytest.mark.parametrize("path", ESCAPES, ids=ascii)
def test_a_path_that_is_not_plainly_below_memories_is_refused(path, memory):
    tool = WorkspaceMemoryTool(memory)
    before = files_below(memory.workspace)
    for command in (
        {"command": "view", "path": path},
        {"command": "create", "path": path, "file_text": "x"},
        {"command": "str_replace", "path": path, "old_str": "a", "new_str": "b"},
        {"command": "insert", "path": path, "insert_line": 0, "insert_text": "x"},
        {"command": "delete", "path": path},
        {"command": "rename", "old_path": path, "new_path": "/memories/free.md"},
        {"command": "rename", "old_path": "/memories/network.md", "new_path": path},
    ):
        with pytest.raises(ToolError):
            tool.call(command)
    after = {
        path: content for path, content in files_below(memory.workspace).items() if not path.startswith(".notewell")
    }
    assert after == before


@pytest.mark.slow
def test_three_hundred_escapes_lead_nowhere(tmp_path):
    """Whatever form a path takes below /memories, only plain notes of memory/ are ever shown or made."""
    guarded = [
        "outside/secret.md",
        "workspace/memory/.hidden.md",
        "workspace/memory/data.txt",
        "workspace/memory/.git/x.md",
    ]
    for name in [*guarded, "workspace/memory/a.md"]:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("pelican\n" if name in guarded else "heron\n")
    paths = escapes(tmp_path)
    assert len(paths) >= 300
    with Memory.open(tmp_path / "workspace", provider="none") as memory:
        tool = WorkspaceMemoryTool(memory)
        for path in paths:
            for asked in {path, f"/memories/{path}", f"/memories/{path.lstrip('/')}", f"/memories{path}"}:
                for command in (
                    {"command": "view", "path": asked},
                    {"command": "create", "path": asked, "file_text": "stork"},
                    {"command": "str_replace", "path": asked, "old_str": "peli", "new_str": "stork"},
                    {"command": "rename", "old_path": asked, "new_path": "/memories/taken.md"},
                    {"command": "delete", "path": "/memories/taken.md"},
                ):
                    assert "pelican" not in answer_of(tool, command)[0], asked
    for name in guarded:
        assert (tmp_path / name).read_text() == "pelican\n", name
    for file in set(tmp_path.rglob("*")) - {tmp_path / name for name in guarded}:
        if file.is_file() and ".notewell" not in file.parts:
            below = file.relative_to(tmp_path / "workspace" / "memory").parts
            assert below[-1].lower().endswith(".md")
            assert not any(part.startswith(".") for part in below)


@pytest.mark.skipif(not hasattr(os, "symlink"), reason="the system has no symbolic links")
def test_links_are_never_followed(memory, tmp_path):
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "secret.md").write_text("hidden\n")
    try:
        (memory.workspace / "memory" / "link").symlink_to(outside, target_is_directory=True)
        (memory.workspace / "memory" / "file.md").symlink_to(outside / "secret.md")
    except OSError:
        pytest.skip("this user may not make symbolic links")
    tool = WorkspaceMemoryTool(memory)
    for command in (
        {"command": "view", "path": "/memories/link"},
        {"command": "view", "path": "/memories/link/secret.md"},
        {"command": "view", "path": "/memories/file.md"},
        {"command": "create", "path": "/memories/link/new.md", "file_text": "x"},
        {"command": "str_replace", "path": "/memories/file.md", "old_str": "hidden", "new_str": "x"},
        {"command": "delete", "path": "/memories/link"},
        {"command": "rename", "old_path": "/memories/file.md", "new_path": "/memories/mine.md"},
        {"command": "rename", "old_path": "/memories/network.md", "new_path": "/memories/link/network.md"},
    ):
        with pytest.raises(ToolError):
            tool.call(command)
    assert "link" not in tool.call({"command": "view", "path": "/memories"})
    assert files_below(outside) == {"secret.md": b"hidden\n"}


def test_what_is_written_is_found_by_the_next_search(memory):
    tool = WorkspaceMemoryTool(memory)
    search = lambda words: [hit.path for hit in memory.search(words, sync=False).hits]  # noqa: E731
    tool.call({"command": "create", "path": "/memories/people/rosa.md", "file_text": "# Rosa\n\nplays the marimba\n"})
    assert search("marimba") == ["memory/people/rosa.md"]
    tool.call(
        {"command": "str_replace", "path": "/memories/people/rosa.md", "old_str": "marimba", "new_str": "bassoon"}
    )
    assert (search("marimba"), search("bassoon")) == ([], ["memory/people/rosa.md"])
    tool.call({"command": "rename", "old_path": "/memories/people", "new_path": "/memories/friends"})
    assert search("bassoon") == ["memory/friends/rosa.md"]
    tool.call({"command": "delete", "path": "/memories/friends"})
    assert search("bassoon") == []


def test_the_curated_memory_is_shown_and_edited_as_a_file_of_memories(memory):
    tool = WorkspaceMemoryTool(memory)
    assert "\t/memories/MEMORY.md\n" in tool.call({"command": "view", "path": "/memories"})
    tool.call({"command": "str_replace", "path": "/memories/MEMORY.md", "old_str": "Lisbon", "new_str": "Porto"})
    assert "lives in Porto" in (memory.workspace / "MEMORY.md").read_text(encoding="utf-8")
    assert not (memory.workspace / "memory" / "MEMORY.md").exists()


@pytest.mark.parametrize(
    ("command", "message"),
    [
        pytest.param(
            {"command": "create", "path": "/memories/a.txt", "file_text": "x"}, "such as /memories/a.md", id="text file"
        ),
        pytest.param(
            {"command": "create", "path": "/memories", "file_text": "x"}, "such as /memories/notes.md", id="the top"
        ),
        pytest.param({"command": "create", "path": "/memories/a.md"}, "needs `file_text`", id="left out"),
        pytest.param({"command": "create", "path": 7, "file_text": "x"}, "must be text", id="a number"),
        pytest.param({"command": "wipe"}, "Unknown command: wipe. Use one of view, create", id="unknown command"),
        pytest.param(
            {"command": "view", "path": "/memories/network.md", "view_range": [40, 50]},
            "lines 1 to",
            id="past the end",
        ),
        pytest.param(
            {"command": "str_replace", "path": "/memories/network.md", "old_str": "", "new_str": "x"},
            "is empty",
            id="nothing to replace",
        ),
        pytest.param(
            {"command": "rename", "old_path": "/memories/projects", "new_path": "/memories/projects/in"},
            "into itself",
            id="into itself",
        ),
        pytest.param(
            {"command": "create", "path": "/memories/network.md/x.md", "file_text": ""},
            "below a file",
            id="below a file",
        ),
    ],
)
def test_a_refusal_says_what_to_do_instead(command, message, memory):
    with pytest.raises(ToolError, match=message):
        WorkspaceMemoryTool(memory).call(command)


def test_secrets_and_recalled_text_are_not_written(memory):
    tool = WorkspaceMemoryTool(memory)
    text = 'key: AKIAIOSFODNN7EXAMPLQ\n<recalled-memory origin="MEMORY.md#L1">\nold\n</recalled-memory>\nnew\n'
    answer = tool.call({"command": "create", "path": "/memories/keys.md", "file_text": text})
    written = (memory.workspace / "memory" / "keys.md").read_text(encoding="utf-8")
    assert "AKIAIOSFODNN7EXAMPLQ" not in written
    assert "old" not in written
    assert "new" in written
    assert "Note: recalled memory was left out" in answer
    assert "Note: secrets were redacted: " in answer


def test_a_folder_with_other_files_is_not_deleted(memory):
    picture = memory.workspace / "memory" / "projects" / "plan.png"
    picture.write_bytes(b"png")
    with pytest.raises(ToolError, match=r"contains something that is not a note \(projects/plan.png\)"):
        WorkspaceMemoryTool(memory).call({"command": "delete", "path": "/memories/projects"})
    assert picture.exists()
    assert (memory.workspace / "memory" / "projects" / "queue.md").exists()


def test_a_note_that_is_not_utf8_is_left_to_people(memory):
    note = memory.workspace / "memory" / "old.md"
    note.write_bytes(b"caf\xe9\n")
    tool = WorkspaceMemoryTool(memory)
    with pytest.raises(ToolError, match="not valid UTF-8"):
        tool.call({"command": "insert", "path": "/memories/old.md", "insert_line": 0, "insert_text": "x"})
    assert note.read_bytes() == b"caf\xe9\n"


def test_it_is_not_for_groups_nor_for_a_memory_that_is_off(workspace):
    with (
        Memory.open(workspace, provider="none", chat="group") as memory,
        pytest.raises(QueryError, match="not for groups"),
    ):
        WorkspaceMemoryTool(memory)
    with Memory.open(workspace, provider="none", enabled=False) as memory:
        tool = WorkspaceMemoryTool(memory)
        with pytest.raises(MemoryDisabledError):
            tool.call({"command": "view", "path": "/memories"})


def test_many_threads_lose_no_edit(memory):
    tool = WorkspaceMemoryTool(memory)
    tool.call({"command": "create", "path": "/memories/log.md", "file_text": ""})
    errors: list[Exception] = []

    def write(who: int) -> None:
        try:
            for number in range(8):
                tool.call(
                    {
                        "command": "insert",
                        "path": "/memories/log.md",
                        "insert_line": 0,
                        "insert_text": f"{who}-{number}",
                    }
                )
        except ToolError as error:
            errors.append(error)

    threads = [threading.Thread(target=write, args=(who,)) for who in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert not errors
    lines = (memory.workspace / "memory" / "log.md").read_text().split()
    assert sorted(lines) == sorted(f"{who}-{number}" for who in range(4) for number in range(8))


# --- in the SDK's tool runner -----------------------------------------------------------------------


class FakeMessages(BaseHTTPRequestHandler):
    """The Messages API: the model asks for one memory command after the other, then says it is done."""

    commands: list[dict]
    requests: list[dict]

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.requests.append(body)
        done = len(self.requests) - 1
        if done < len(self.commands):
            content = [{"type": "tool_use", "id": f"call_{done}", "name": "memory", "input": self.commands[done]}]
        else:
            content = [{"type": "text", "text": "Noted."}]
        reply = json.dumps(
            {
                "id": "msg_1",
                "type": "message",
                "role": "assistant",
                "model": "fake",
                "content": content,
                "stop_reason": "tool_use" if content[0]["type"] == "tool_use" else "end_turn",
                "stop_sequence": None,
                "usage": {"input_tokens": 1, "output_tokens": 1},
            }
        ).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(reply)))
        self.end_headers()
        self.wfile.write(reply)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def messages_api():
    handler = type("Handler", (FakeMessages,), {"requests": [], "commands": []})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.daemon_threads = False
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    yield handler, f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()
    thread.join(10)


COMMANDS = [
    {"command": "view", "path": "/memories"},
    {"command": "create", "path": "/memories/tea.md", "file_text": "Dana drinks gunpowder tea.\n"},
    {"command": "create", "path": "/memories/tea.md", "file_text": "again"},
]


def tool_results(requests: list[dict]) -> list[tuple[str, bool]]:
    """Return what the model was told, whether each request repeats the conversation or goes on with it."""
    messages = [message for request in requests for message in request["messages"] if message["role"] == "user"]
    blocks = [block for message in messages for block in message["content"] if isinstance(block, dict)]
    results = list({block["tool_use_id"]: block for block in blocks if block["type"] == "tool_result"}.values())
    texts = [each["content"] if isinstance(each["content"], str) else each["content"][0]["text"] for each in results]
    return [(text, bool(each.get("is_error"))) for text, each in zip(texts, results, strict=True)]


def check_run(handler, memory: Memory, said: str) -> None:
    assert said == "Noted."
    assert handler.requests[0]["tools"] == [{"type": "memory_20250818", "name": "memory"}]
    listing, created, refused = tool_results(handler.requests)
    assert listing[0].startswith("Here're the files and directories up to 2 levels deep in /memories")
    assert created == ("File created successfully at: /memories/tea.md", False)
    assert refused == ("File /memories/tea.md already exists", True)
    assert [hit.path for hit in memory.search("gunpowder", sync=False).hits] == ["memory/tea.md"]


def test_the_tool_runner_drives_it(memory, messages_api):
    handler, url = messages_api
    handler.commands.extend(COMMANDS)
    with anthropic.Anthropic(api_key="not-a-key", base_url=url, max_retries=0) as client:
        runner = client.beta.messages.tool_runner(
            model="fake",
            max_tokens=100,
            tools=[WorkspaceMemoryTool(memory)],
            messages=[{"role": "user", "content": "Remember my tea"}],
        )
        final = runner.until_done()
    check_run(handler, memory, final.content[0].text)


def test_the_asynchronous_tool_runner_drives_the_async_tool(memory, messages_api):
    handler, url = messages_api
    handler.commands.extend(COMMANDS)

    async def converse() -> str:
        async with anthropic.AsyncAnthropic(api_key="not-a-key", base_url=url, max_retries=0) as client:
            runner = client.beta.messages.tool_runner(
                model="fake",
                max_tokens=100,
                tools=[AsyncWorkspaceMemoryTool(memory)],
                messages=[{"role": "user", "content": "Remember my tea"}],
            )
            final = await runner.until_done()
            return final.content[0].text

    check_run(handler, memory, asyncio.run(converse()))
