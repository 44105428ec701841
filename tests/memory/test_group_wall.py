"""A memory that was opened for a group: canaries in every private place, and every way to ask for them.

Each call is made twice, in a workspace with private places and in one without. A group must not be able to tell the two
apart: no canary shows, and what is answered, counted and raised is the same.
"""

from __future__ import annotations

import asyncio
import dataclasses
import json
import os
import re
import shutil
import threading
from collections.abc import Iterator, Mapping
from datetime import date, datetime
from pathlib import Path

import pytest

from notewell import AsyncMemory, ConversationStore, Memory, NoteNotFoundError, NotewellError
from notewell.agents.adapters.shared import passages_for
from notewell.agents.tools import MemoryTools
from notewell.agents.tools.prompt import memory_prompt
from notewell.cli.main import run
from notewell.mcp.server import memory_resource, memory_resources, uri_of
from notewell.openclaw.managers import MemoryIndexManager
from notewell.sessions import LostPart

CANARY = re.compile(r"quux\w*", re.IGNORECASE)
# Below the workspace. A name is private, too.
PRIVATE_NOTES = {
    "MEMORY.md": "# quuxcurated\n\nthe harbour and quuxcurated\n<!-- notewell id=quuxentry -->\n",
    "memory/private/quuxfolder.md": "# Note\n\nthe harbour and quuxinfolder\n",
    "memory/deep/Private/quuxdeep.md": "the harbour and quuxindeep\n",
    "memory/quuxyaml.md": "---\nprivate: true\n---\nthe harbour and quuxinyaml\n",
    "memory/quuxflow.md": "---\n{title: x, private: yes}\n---\nthe harbour and quuxinflow\n",
    "memory/quuxtoml.md": "+++\nprivate = true\n+++\nthe harbour and quuxintoml\n",
    "memory/quuxjson.md": '{"private": true}\n\nthe harbour and quuxinjson\n',
    "memory/quuxlate.md": "\n\n---\nvisibility: private\n---\nthe harbour, QXL (quuxone xylophone lately)\n",
    "memory/2026-11-03-quuxday.md": "---\nprivate: true\n---\nthe harbour and quuxinday\n",
}
PUBLIC_NOTES = {
    "memory/open.md": "# Open\n\nthe harbour is open, and the ferry leaves at nine\n",
    "memory/2026-11-02.md": "# Day\n\nthe harbour was busy\n",
}
HIDDEN_SESSIONS = {"quuxmine": "direct", "quuxboard": "group", "quuxold": "direct"}
OTHER_PROGRAM = "quuxprogram"
SESSIONS = {"sources": ["memory", "sessions"], "experimental__session_memory": True}
GROUP = {"chat": "group", "session": "team"}
HIDDEN_PATHS = [
    *PRIVATE_NOTES,
    "sessions/chats/quuxmine.json5",
    "sessions/groups/quuxboard.json5",
    "sessions/archive/chats/quuxold.json5",
    f"sessions/@{OTHER_PROGRAM}/quuxlog.jsonl",
]
WORDS = ["harbour", "quuxcurated", "quuxcuratd", "quuxinf", "QXL", "quuxone xylophone lately", "sailing to quuxmine"]


def build(folder: Path, *, private: bool) -> None:
    workspace, elsewhere = folder / "workspace", folder / OTHER_PROGRAM
    for path, text in (PUBLIC_NOTES | (PRIVATE_NOTES if private else {})).items():
        (workspace / path).parent.mkdir(parents=True, exist_ok=True)
        (workspace / path).write_text(text)
        os.utime(workspace / path, (1_780_000_000, 1_780_000_000.5))
    elsewhere.mkdir()
    if private:
        (elsewhere / "quuxlog.jsonl").write_text(json.dumps({"role": "user", "content": "harbour quuxinlog"}) + "\n")
        (workspace / "memory/quuxlink.md").symlink_to(folder / "nowhere.md")
    with open_memory(folder) as memory:
        talk(memory.conversations, "team", "group", "the harbour is ours")
        if private:
            for name, kind in HIDDEN_SESSIONS.items():
                talk(memory.conversations, name, kind, f"harbour quuxin{name}")
            memory.conversations.archive("quuxold")
            memory.conversations.compact("quuxmine", "quuxsummary", keep_last=0)
            memory.remember("the harbour and quuxtrashed", to="MEMORY.md")
            memory.forget(match="quuxtrashed")
            talk(memory.conversations, "quuxgone", "direct", "harbour quuxingone")
            memory.forget(session="quuxgone")
        memory.index()


def talk(store: ConversationStore, name: str, kind: str, text: str) -> None:
    store.create(name, kind=kind, title=f"about {name}")
    store.append(name, {"role": "user", "content": text, "timestamp": 1_780_000_000_000})


def open_memory(folder: Path, **options) -> Memory:
    chosen = {} if "embedder" in options else {"provider": "none"}
    paths = {"sessions__paths": [str(folder / OTHER_PROGRAM)]}
    return Memory.open(folder / "workspace", **SESSIONS, **paths, **chosen, **options)


@pytest.fixture(scope="module")
def built(tmp_path_factory) -> dict[str, Path]:
    folders = {name: tmp_path_factory.mktemp(name) for name in ("with", "without")}
    for name, folder in folders.items():
        build(folder, private=name == "with")
    return folders


class Copies:
    """Lends copies of the two workspaces: the same ones again, unless something in them was changed."""

    def __init__(self, built: Mapping[str, Path], below: Path) -> None:
        self._built = built
        self._below = below
        self._stamps: dict[str, dict[str, object]] = {}
        self._private: dict[str, dict[str, bytes]] = {}

    def of(self, name: str) -> tuple[Path, dict[str, bytes]]:
        """Return a folder that is as it was built, and what is private in it."""
        folder = self._below / name / "x"
        if stamps_below(folder) != self._stamps.get(name):
            shutil.rmtree(folder, ignore_errors=True)
            shutil.copytree(self._built[name], folder, symlinks=True)
            with open_memory(folder) as memory:
                memory.index()  # what was copied has new stamps
            self._stamps[name], self._private[name] = stamps_below(folder), private_bytes(folder)
        return folder, self._private[name]


def stamps_below(folder: Path) -> dict[str, object]:
    """Return what changes with the content of any file below; an empty one is a lock."""
    found: dict[str, object] = {}
    for parent, folders, files in os.walk(folder):
        found |= dict.fromkeys((f"{parent}/{name}" for name in folders), "folder")
        for name in files:
            stat = os.lstat(f"{parent}/{name}")
            found[f"{parent}/{name}"] = (stat.st_size, stat.st_mode, stat.st_size and (stat.st_mtime_ns, stat.st_ino))
    return found


def private_bytes(folder: Path) -> dict[str, bytes]:
    """Return the private files, but for the registry and locks."""
    kept: dict[str, bytes] = {}
    for parent, _, files in os.walk(folder):
        below = parent.removeprefix(str(folder))
        for name in files:
            path = f"{below}/{name}"
            named = path == "/workspace/MEMORY.md" or ("quux" in name and ".lock" not in name)
            if (named or "/.trash" in below) and Path(parent, name).is_file():
                content = Path(parent, name).read_bytes()
                if named or b"quux" in content:
                    kept[path] = content
    return kept


@pytest.fixture(scope="module")
def copies(built, tmp_path_factory) -> Copies:
    return Copies(built, tmp_path_factory.mktemp("copies"))


# --- what a call shows ---------------------------------------------------------------------------


def shown(value: object) -> object:
    """Return all that a value says, as text and numbers."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: shown(getattr(value, field.name)) for field in dataclasses.fields(value)}
    if isinstance(value, Mapping):
        return {str(key): shown(each) for key, each in value.items()}
    if isinstance(value, Memory):
        return ["memory", shown(value.files()), shown(value.status())]
    if isinstance(value, Exception):
        return [type(value).__name__, str(value), shown(getattr(value, "hint", ""))]
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, str | int | float | bool | None):
        return value
    if isinstance(value, list | tuple | set | frozenset | Iterator):
        return [shown(each) for each in value]
    return repr(value)


def outcome(ask, memory: Memory) -> object:
    try:
        return shown(ask(memory))
    except (NotewellError, OSError, TypeError) as error:
        return shown(error)


def compared(outcome: object, folder: Path) -> str:
    """Return an outcome without what differs from one run to the next."""
    text = json.dumps(outcome, default=str).replace(str(folder), "FOLDER")
    text = re.sub(r"0x[0-9a-f]+|[\d,]+ MB free|\"(seconds|timestamp)\": [\d.e-]+", "_", text)
    text = re.sub(
        r"\"[a-z_]*(?:_at|A[tT])\": \d+|\d{4}-\d\d-\d\dT[\d:.+Z]*|\d{13,}|\"id\": \"[0-9a-f]{12}\"", "_", text
    )
    text = re.sub(r"\"(?:entry|undo|id)\": \"[a-z0-9]{8}\"|\d{4}-\d\d-\d\d \d\d:[\d:.+]*", "_", text)
    text = re.sub(r"datetime\.datetime\([^)]*\)[^)]*\)+", "_", text)
    # Scores depend a little on the mean length of all texts; see the test of guessed words.
    return re.sub(r"-?\d+(?:\.\d+)?e-\d+|-?\d+\.\d+", "_", text)


# --- every way to ask ----------------------------------------------------------------------------


def watched(memory: Memory) -> list[object]:
    reports, came = [], threading.Event()

    def on_sync(report) -> None:
        reports.append(report)
        came.set()

    with memory.watch(on_sync=on_sync):
        assert came.wait(20)
    return reports[:1]


def progress_of(memory: Memory) -> list[object]:
    steps: list[object] = []
    memory.index(force=True, progress=steps.append)
    return steps


CALLS = {
    "open": [],  # the fixture does it
    "close": [Memory.close],
    "seen_by": [
        lambda memory: memory.seen_by(chat="group"),
        lambda memory: memory.seen_by(chat="direct"),
        *(lambda memory, name=name: memory.seen_by(chat="group", session=name) for name in HIDDEN_SESSIONS),
    ],
    "index": [
        Memory.index,
        lambda memory: memory.index(force=True),
        lambda memory: memory.index(source="sessions"),
        progress_of,
        *(lambda memory, path=path: memory.index(paths=[path]) for path in HIDDEN_PATHS),
    ],
    "sync": [Memory.sync, *(lambda memory, path=path: memory.sync(paths=[path]) for path in HIDDEN_PATHS)],
    "remember": [
        lambda memory: memory.remember("the harbour and quuxcurated"[:11], to="memory/new.md"),
        lambda memory: memory.remember("the harbour was quiet", to="memory/open.md"),
        *(
            lambda memory, path=path: memory.remember("the harbour and more", to=path)
            for path in ("MEMORY.md", "memory/private/quuxfolder.md", "memory/private/new.md")
        ),
    ],
    "forget": [
        *(lambda memory, path=path: memory.forget(path=path) for path in HIDDEN_PATHS),
        *(lambda memory, path=path: memory.forget(path=path, dry_run=True) for path in HIDDEN_PATHS),
        *(lambda memory, name=name: memory.forget(session=name) for name in HIDDEN_SESSIONS),
        *(lambda memory, name=name: memory.forget(session=name, since="2020-01-01") for name in HIDDEN_SESSIONS),
        lambda memory: memory.forget(match="harbour", dry_run=True),
        lambda memory: memory.forget(match="quux", dry_run=True),
        lambda memory: memory.forget(match="harbour"),
        lambda memory: memory.forget(match="quux"),
        lambda memory: memory.forget(match="quux", whole_words=False, for_good=True),
        lambda memory: memory.forget(match="quuxtrashed", for_good=True),
        lambda memory: memory.forget("quuxentry"),
        *(lambda memory, path=path: memory.forget(f"{path}#L1-L3") for path in HIDDEN_PATHS),
        *(lambda memory, path=path: memory.forget(f"{path}#L1-L3", for_good=True) for path in HIDDEN_PATHS),
        lambda memory: memory.forget("memory/open.md#L3"),
        lambda memory: memory.forget(memory.remember("the harbour froze", to="memory/new.md").entry),
    ],
    "trash": [Memory.trash, lambda memory: (memory.forget(match="busy"), memory.trash())],
    "undo": [
        Memory.undo,
        lambda memory: memory.undo("aaaaaaaa"),
        lambda memory: (memory.forget(match="busy"), memory.undo(), memory.trash()),
    ],
    "on_transcript_update": [
        *(lambda memory, path=path: memory.on_transcript_update(path) for path in HIDDEN_PATHS[-4:]),
        lambda memory: memory.on_transcript_update(
            memory._components.sessions_folder / "chats" / "quuxmine.json5"  # what a client would guess
        ),
    ],
    "conversations": [],  # see STORE_CALLS
    "flush_session": [
        *(lambda memory, name=name: memory.flush_session(name, keep_last=0) for name in HIDDEN_SESSIONS),
    ],
    "begin_session": [lambda memory: (memory.begin_session(), memory.wait_until_synced(20))],
    "wait_until_synced": [Memory.wait_until_synced],
    "watch": [watched],
    "preview": [Memory.preview, lambda memory: memory.preview(force=True)],
    "search": [
        *(lambda memory, word=word: memory.search(word, limit=50, min_score=0.0, explain=True) for word in WORDS),
        *(lambda memory, word=word: memory.search(word, limit=50, min_score=0.0, sync=False) for word in WORDS),
        lambda memory: memory.search("harbour", source="sessions", limit=50, min_score=0.0),
        lambda memory: memory.search("last week", limit=50, min_score=0.0, since="2020"),
        lambda memory: memory.search("", limit=50, min_score=0.0),
        lambda memory: memory.search("harbour", chat="direct"),
        lambda memory: memory.search("harbour", session="quuxboard"),
    ],
    "files": [
        Memory.files,
        lambda memory: memory.files("sessions"),
        lambda memory: memory.files("memory"),
    ],
    "get": [*(lambda memory, path=path: memory.get(path) for path in HIDDEN_PATHS)],
    "list": [
        Memory.list,
        lambda memory: memory.list(source="sessions"),
        lambda memory: memory.list(by="main", limit=50),
        *(lambda memory, path=path: memory.list(path=path) for path in HIDDEN_PATHS),
    ],
    "timeline": [*(lambda memory, word=word: memory.timeline(word, min_score=0.0) for word in WORDS)],
    "history": [*(lambda memory, path=path: memory.history(f"{path}#L3") for path in HIDDEN_PATHS)],
    "session_context": [
        lambda memory: memory.session_context(today=date(2026, 11, 3)).report(),
        lambda memory: memory.session_context(today=date(2026, 11, 2)).text,
        lambda memory: memory.session_context(chat="direct"),
    ],
    "uncovered": [Memory.uncovered],
    "unsearched_conversations": [Memory.unsearched_conversations],
    "status": [Memory.status, lambda memory: memory.status(deep=True)],
    "doctor": [Memory.doctor, lambda memory: memory.doctor(fix=True)],
    "verify": [Memory.verify],
    "cache": [lambda memory: memory.cache],
    "price": [lambda memory: memory.price],
}
STORE_CALLS = {
    "folder": [],
    "on_update": [],  # calls back after appends of this very object
    "create": [
        *(lambda store, name=name: store.create(name, kind="group").kind for name in HIDDEN_SESSIONS),
        *(lambda store, name=name: store.create(name).kind for name in HIDDEN_SESSIONS),
        lambda store: store.create().kind,
        lambda store: store.create("team", kind="group"),
    ],
    "restore": [lambda store: store.restore(dataclasses.replace(store.get("team"), entry=other_entry(store)))],
    "list": [ConversationStore.list, lambda store: store.list(archived=True), lambda store: store.list(kind="direct")],
    "search": [*(lambda store, word=word: store.search(word) for word in WORDS)],
    "rebuild_registry": [ConversationStore.rebuild_registry],
    "sweep": [ConversationStore.sweep],
    "ids": [ConversationStore.ids],
    "owns": [lambda store: store.owns(store.folder / "chats" / "unknown.txt")],
    **{
        name: [*(lambda store, name=name, each=each: getattr(store, name)(each) for each in HIDDEN_SESSIONS)]
        for name in "get entry exists path_of files_of delete archive unarchive repair take_last".split()
    },
    "export_jsonl": [*(lambda store, name=name: list(store.export_jsonl(name)) for name in HIDDEN_SESSIONS)],
    "append": [
        *(lambda store, name=name: store.append(name, {"role": "user", "content": "x"}) for name in HIDDEN_SESSIONS)
    ],
    "update": [*(lambda store, name=name: store.update(name, title="x") for name in HIDDEN_SESSIONS)],
    "set_state": [*(lambda store, name=name: store.set_state(name, x=1) for name in HIDDEN_SESSIONS)],
    "flushing": [*(lambda store, name=name: store.flushing(name).__enter__() for name in HIDDEN_SESSIONS)],
    "compact": [*(lambda store, name=name: store.compact(name, "x", keep_last=0) for name in HIDDEN_SESSIONS)],
    "count_unwanted": [
        *(lambda store, name=name: store.count_unwanted(name, lambda *_: True) for name in HIDDEN_SESSIONS)
    ],
    "put_back": [
        *(
            lambda store, name=name: store.put_back(
                LostPart(name, {f"chats/{name}.json5": b"{}", f"groups/{name}.json5": b"{}"}, left="x")
            )
            for name in HIDDEN_SESSIONS
        )
    ],
    "remove_messages": [
        *(lambda store, name=name: store.remove_messages(name, lambda *_: True) for name in HIDDEN_SESSIONS)
    ],
}


def other_entry(store: ConversationStore):
    return dataclasses.replace(store.entry("team"), session_id="quuxmine")


def tool_call(name: str, **arguments):
    return lambda memory: MemoryTools(memory).call(name, arguments).document


def command(*arguments: str):
    """Return what a command of the command line prints; it opens the memory itself."""

    def ask(memory: Memory) -> object:
        elsewhere = memory.workspace.parent / OTHER_PROGRAM
        settings = ["sources=memory,sessions", "experimental.session_memory=true", "provider=none"]
        chosen = [word for each in (*settings, f"sessions.paths={elsewhere}") for word in ("--set", each)]
        return run([*arguments, "--chat", "group", "-w", str(memory.workspace), *chosen])

    return ask


async def asked_async(memory: Memory) -> object:
    twin = AsyncMemory(memory)
    group = await twin.seen_by(chat="group", session="team")
    return [shown(await group.search("quuxcurated harbour", min_score=0.0)), shown(await group.status())]


def manager_of(memory: Memory) -> MemoryIndexManager:
    return MemoryIndexManager(memory)


MANAGER_CALLS = {
    "search": [
        lambda memory: manager_of(memory).search("harbour quuxcurated", min_score=0.0),
        lambda memory: manager_of(memory).search("harbour", min_score=0.0, session_key="agent:main:direct:quuxmine"),
        lambda memory: manager_of(memory).search("harbour", min_score=0.0, session_key="agent:main:group:quuxboard"),
    ],
    "status": [lambda memory: manager_of(memory).status()],
    "sync": [lambda memory: manager_of(memory).sync(force=True)],
    "probe_embedding_availability": [lambda memory: manager_of(memory).probe_embedding_availability()],
    "probe_vector_availability": [lambda memory: manager_of(memory).probe_vector_availability()],
    "read_file": [*(lambda memory, path=path: manager_of(memory).read_file(path) for path in HIDDEN_PATHS)],
    "backend": [lambda memory: manager_of(memory).backend],
    "close": [],
}
SURFACES = {
    "memory_search": [tool_call("memory_search", query=word, limit=50) for word in WORDS],
    "memory_get": [tool_call("memory_get", path=path) for path in HIDDEN_PATHS],
    "memory_list": [
        tool_call("memory_list"),
        tool_call("memory_list", source="sessions", maxResults=50),
        tool_call("memory_list", since="2020", by="main"),
        *(tool_call("memory_list", path=path) for path in HIDDEN_PATHS),
    ],
    "memory_write": [
        tool_call("memory_write", text="the harbour is closed", path="memory/new.md"),
        tool_call("memory_write", text="the harbour is closed", path="memory/new.md", replaces="quuxentry"),
        *(tool_call("memory_write", text="the harbour shut", replaces=f"{path}#L3") for path in HIDDEN_PATHS),
    ],
    "memory_forget": [
        tool_call("memory_forget", entry="quuxentry"),
        tool_call("memory_forget", entry="memory/open.md#L3"),
        *(tool_call("memory_forget", entry=path) for path in HIDDEN_PATHS),
        *(tool_call("memory_forget", entry=f"{path}#L1-L3") for path in HIDDEN_PATHS),
    ],
    "status": [lambda memory: memory_resource(MemoryTools(memory), "memory://status")],
    "prompt": [
        memory_prompt,
        lambda memory: MemoryTools(memory).prompt(),
        lambda memory: memory_prompt(memory, chat="group"),
    ],
    "resources": [
        lambda memory: memory_resources(MemoryTools(memory)),
        *(lambda memory, path=path: memory_resource(MemoryTools(memory), uri_of(path)) for path in HIDDEN_PATHS),
    ],
    "retrievers": [
        *(
            lambda memory, word=word: passages_for(memory, word, whole=True, fenced=True, options={"min_score": 0.0})
            for word in WORDS
        )
    ],
    **{f"openclaw {name}": asks for name, asks in MANAGER_CALLS.items()},
    "async": [lambda memory: asyncio.run(asked_async(memory))],
    "command search": [command("search", word, "--json", "--min-score", "0") for word in WORDS],
    "command get": [command("get", path, "--json") for path in HIDDEN_PATHS],
    "command list": [command("list", "--json"), command("list", "--path", "memory/private")],
    "command timeline": [command("timeline", "harbour", "--json")],
    "command history": [command("history", "MEMORY.md#L3")],
    "command prompt": [command("prompt")],
}


def members_of(kind: type) -> set[str]:
    return {name for name in dir(kind) if not name.startswith("_")}


def test_every_public_member_of_a_memory_is_asked():
    assert set(CALLS) == members_of(Memory)


def test_every_public_member_of_the_session_store_is_asked():
    assert set(STORE_CALLS) == members_of(ConversationStore) | {"folder"}


def test_every_public_member_of_openclaw_s_manager_is_asked():
    assert set(MANAGER_CALLS) == members_of(MemoryIndexManager)


def test_every_tool_is_asked():
    specs = {spec.name for spec in MemoryTools.__init__.__globals__["BY_NAME"].values()}
    assert specs <= set(SURFACES)


ASKED = [
    *(pytest.param(ask, id=f"{name} {n}") for name, asks in CALLS.items() for n, ask in enumerate(asks)),
    *(
        pytest.param(lambda memory, ask=ask: ask(memory.conversations), id=f"conversations.{name} {n}")
        for name, asks in STORE_CALLS.items()
        for n, ask in enumerate(asks)
    ),
    *(pytest.param(ask, id=f"{name} {n}") for name, asks in SURFACES.items() for n, ask in enumerate(asks)),
]


@pytest.mark.parametrize("opened", ["for the group", "and narrowed"])
@pytest.mark.parametrize("ask", ASKED)
def test_a_group_cannot_tell_whether_there_is_anything_private(built, copies, capsys, ask, opened):
    outcomes = []
    for each in built:
        copy, before = copies.of(each)
        with open_memory(copy, **(GROUP if opened == "for the group" else {})) as memory:
            group = memory if opened == "for the group" else memory.seen_by(**GROUP)
            found = outcome(ask, group)
        printed = capsys.readouterr()
        outcomes.append(compared([found, printed.out, printed.err], copy))
        assert private_bytes(copy) == before, "a group changed or deleted what is private"
    assert outcomes[0] == outcomes[1]


@pytest.mark.parametrize("note", ["the quuxcurated", "harbour quuxcurated", "quuxinfolder harbour ferry"])
def test_a_guessed_word_in_a_note_of_the_group_does_not_tell_whether_others_hold_it(built, tmp_path, note):
    scores = []
    for each, folder in built.items():
        shutil.copytree(folder, tmp_path / each, symlinks=True)
        with open_memory(tmp_path / each, **GROUP) as memory:
            memory.remember(note, to="memory/guess.md")
            hits = memory.search(note, min_score=0.0, limit=50, explain=True).hits
            scores.append({hit.path: hit.text_score for hit in hits})
    assert scores[0] == pytest.approx(scores[1], rel=0.1)


@pytest.mark.parametrize(
    "ask",
    [
        Memory.preview,
        Memory.verify,
        Memory.status,
        Memory.doctor,
        Memory.files,
        Memory.index,
        lambda memory: memory.search("harbour", sync=False, min_score=0.0, explain=True),
        lambda memory: memory.forget(match="harbour", dry_run=True),
        lambda memory: memory.get("memory/quuxopen.md"),
    ],
)
def test_a_note_is_hidden_as_soon_as_its_file_says_so(tmp_path, ask):
    note = tmp_path / "workspace" / "memory" / "quuxopen.md"
    build(tmp_path, private=False)
    note.write_text("the harbour and quuxsoon\n")
    with open_memory(tmp_path) as memory:
        memory.index()
        group = memory.seen_by(**GROUP)
        assert "memory/quuxopen.md" in group.files()
        note.write_text("---\nprivate: true\n---\nthe harbour and quuxsoon\n")
        found = json.dumps(outcome(ask, group)).replace("no such note: 'memory/quuxopen.md'", "")
        assert not CANARY.search(found)


@pytest.mark.parametrize("below", ["private", "Private/vault"])
def test_an_extra_path_in_a_private_folder_is_private(tmp_path, below):
    outside = tmp_path / "elsewhere" / below
    outside.mkdir(parents=True)
    (outside / "plan.md").write_text("the harbour and quuxplan\n")
    (tmp_path / "workspace/memory").mkdir(parents=True)
    with Memory.open(tmp_path / "workspace", provider="none", extra_paths=[str(outside)]) as memory:
        (hit,) = memory.search("harbour").hits
        group = memory.seen_by(chat="group")
        assert group.files() == ()
        assert group.search("harbour").hits == ()
        assert group.status().chunks == 0
        with pytest.raises(NoteNotFoundError):
            group.get(hit.path)


def test_another_name_of_a_private_note_is_private(tmp_path):
    for path, text in {"MEMORY.md": "the harbour and quuxcurated", "memory/private/plan.md": "the harbour"}.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(f"{text}\n")
    (tmp_path / "memory/first.md").hardlink_to(tmp_path / "MEMORY.md")
    (tmp_path / "memory/zoo.md").hardlink_to(tmp_path / "memory/private/plan.md")
    (tmp_path / "memory/open.md").write_text("the harbour is open\n")
    (tmp_path / "memory/open-too.md").hardlink_to(tmp_path / "memory/open.md")
    with Memory.open(tmp_path, provider="none") as memory:
        memory.index()
        group = memory.seen_by(chat="group")
        for path in ("memory/first.md", "memory/zoo.md"):
            assert memory.get(path).text
            with pytest.raises(NoteNotFoundError):
                group.get(path)
        assert [hit.path for hit in group.search("harbour").hits] == ["memory/open-too.md"]
        assert group.files() == ("memory/open-too.md",)
        assert group.get("memory/open.md").text == "the harbour is open"
