"""kill -9 over append, compact, flush, import, forget and repair: no message lost or doubled, nothing forgotten stays.

A worker process does one call after the other and says when it begins and ends one. It is killed at a random moment.
Then a new opening must find every message that was confirmed exactly once, in the session or in its archives, and no
byte of a text that was forgotten for good in any file of the workspace.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import random
import re
import time
from collections import Counter
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from notewell import Memory
from notewell.sessions import ConversationStore, import_file, plain_summary

OPTIONS = {"provider": "none", "sources": ["memory", "sessions"], "experimental__session_memory": True}
CALLS = ("append", "append", "append", "compact", "flush", "import", "forget", "repair")
TOLD_EVERY = 50
_TEXT = re.compile(r"msg-[0-9a-f]{8}")


def run(folder: Path, *, count: int, seed: int) -> bool:
    """Kill so many times; after each kill check everything."""
    chance = random.Random(seed)
    workspace = folder / "notes"
    (workspace / "memory").mkdir(parents=True)
    (workspace / "memory" / "stays.md").write_text("# Stays\n\nThis note stays.\n")
    known = Known()
    during: Counter[str] = Counter()
    killed = 0
    # Each worker is a process of its own, made from one that has imported everything: starting an interpreter takes
    # longer than what a worker does until it is killed.
    method = "forkserver" if "forkserver" in multiprocessing.get_all_start_methods() else "spawn"
    context: Any = multiprocessing.get_context(method)
    if method == "forkserver":
        context.set_forkserver_preload(["tests.soak.conversations"])
    while killed < count:
        receiver, sender = context.Pipe(duplex=False)
        worker = context.Process(target=work, args=(workspace, chance.randrange(2**32), sender))
        worker.start()
        sender.close()
        for _ in range(chance.randint(2, 24)):
            known.told(receiver)
        time.sleep(chance.random() * 0.02)
        worker.kill()
        while known.told(receiver):
            pass
        worker.join(30)
        receiver.close()
        killed += 1
        during[known.pending_call()] += 1
        wrong = check(workspace, known)
        if wrong:
            print(f"kill {killed}, during {known.pending_call()}: {wrong}", flush=True)
            return False
        if killed % TOLD_EVERY == 0:
            print(f"{killed} kills, {len(known.said)} messages, {len(known.forgotten)} forgotten", flush=True)
    spread = ", ".join(f"{name} {number}" for name, number in sorted(during.items()))
    print(f"{killed} kills ({spread}): {len(known.said)} messages, none lost or doubled;")
    print(f"{len(known.forgotten)} texts forgotten, no byte of them left")
    return True


class Known:
    """What the worker said it did, and what it was doing when it was killed."""

    def __init__(self) -> None:
        self.said: set[str] = set()  # confirmed: must be there once
        self.maybe: set[str] = set()  # begun and never confirmed: once or not at all
        self.forgotten: set[str] = set()  # must be nowhere
        self.pending: tuple[str, list[str]] = ("", [])

    def told(self, receiver: Connection) -> bool:
        """Take in the next thing that the worker says; False when it says nothing more."""
        try:
            verb, call, texts = receiver.recv()
        except (EOFError, OSError):  # it is gone, perhaps in the middle of a word
            return False
        if verb == "begin":
            self.pending = (call, texts)
            return True
        self.pending = ("", [])
        if call in {"append", "import"}:
            self.said |= set(texts)
        elif call == "forget":
            self.said -= set(texts)
            self.maybe -= set(texts)
            self.forgotten |= set(texts)
        return True

    def pending_call(self) -> str:
        return self.pending[0] or "between calls"


def check(workspace: Path, known: Known) -> str:
    """Return what is wrong after a kill; empty when nothing is."""
    call, texts = known.pending
    with Memory.open(workspace, **OPTIONS) as memory:  # type: ignore[arg-type]
        store = memory.conversations
        if call == "forget":  # the same command does the rest
            for text in texts:
                memory.forget(match=text, for_good=True)
            known.said -= set(texts)
            known.maybe -= set(texts)
            known.forgotten |= set(texts)
        elif call in {"append", "import"}:
            known.maybe |= set(texts)
        damaged = [entry for entry in store.list() if entry.damage]
        for entry in damaged:
            store.repair(entry.session_id)
        left = [path.name for path in store.folder.rglob("*") if path.name.endswith((".tmp", ".pending"))]
        if left:
            return f"debris is left: {left}"
        held = Counter(_messages(store))
        memory.index()
        hits = _hits(memory, chosen=sorted(known.said)[-3:])
    doubled = [text for text, times in held.items() if times > 1]
    lost = [text for text in known.said if text not in held]
    unknown = [text for text in held if text not in known.said and text not in known.maybe]
    known.said |= {text for text in known.maybe if text in held}
    known.maybe -= known.said
    traces = _traces(workspace, known.forgotten)
    wrong = {"lost": lost, "doubled": doubled, "back": unknown, "traces": traces, "hits": hits}
    return "; ".join(f"{name} {found[:3]}" for name, found in wrong.items() if found)


def _messages(store: ConversationStore) -> list[str]:
    """Return every text that a session or an archive holds as a message."""
    found = [message.text for entry in store.list() for message in store.get(entry.session_id).messages]
    for path in (store.folder / "compacted").glob("*.jsonl"):
        lines = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
        found += [line["message"]["content"] for line in lines if "message" in line]
    return [match for text in found for match in _TEXT.findall(text)]


def _hits(memory: Memory, chosen: list[str]) -> list[str]:
    """Return the texts that a search does not find in exactly one conversation."""
    wrong = []
    for text in chosen:
        found = memory.search(f'"{text}"', source="sessions", sync=False).hits
        if len({hit.path for hit in found if text in hit.snippet}) != 1:
            wrong.append(f"{text}: {[hit.citation for hit in found]}")
    return wrong


def _traces(workspace: Path, forgotten: set[str]) -> list[str]:
    """Return the files that hold a forgotten text anywhere, as `grep -a` would."""
    wanted = {text.encode() for text in forgotten}
    pattern = re.compile(_TEXT.pattern.encode())
    return [
        f"{path.relative_to(workspace)}: {found.decode()}"
        for path in workspace.rglob("*")
        if path.is_file()
        for found in set(pattern.findall(path.read_bytes())) & wanted
    ]


# --- the worker ----------------------------------------------------------------------------------


def work(workspace: Path, seed: int, sender: Connection) -> None:
    """Do random calls until killed, and say when each begins and ends."""
    chance = random.Random(seed)
    with Memory.open(workspace, **OPTIONS) as memory:  # type: ignore[arg-type]
        while True:
            _call(memory, chance.choice(CALLS), chance, sender)


def _call(memory: Memory, name: str, chance: random.Random, sender: Connection) -> None:
    store = memory.conversations
    session = f"s{chance.randrange(3)}"
    if not store.exists(session):
        store.create(session)
    texts: list[str] = []
    if name in {"append", "import"}:
        texts = [f"msg-{chance.getrandbits(32):08x}" for _ in range(chance.randint(1, 3))]
    elif name == "forget":
        texts = [chance.choice(held)] if (held := _messages(store)) else ["nothing of the kind"]
    sender.send(("begin", name, texts))
    messages = [{"role": "user", "content": f"{text} is what the user said"} for text in texts]
    if name == "append":
        store.append(session, *messages)
    elif name == "compact":
        kept = chance.randrange(4)
        going = store.get(session).messages[: -kept or None]
        store.compact(session, plain_summary(going), keep_last=kept)
    elif name == "flush":
        memory.flush_session(session, keep_last=chance.randrange(4))
    elif name == "forget":
        memory.forget(match=texts[0], for_good=True)
    else:
        {"import": _import, "repair": _repair}[name](memory, chance, session, messages)
    sender.send(("end", name, texts))


def _import(memory: Memory, chance: random.Random, _: str, messages: list[dict[str, str]]) -> None:
    source = memory.workspace.parent / "transcript.jsonl"
    source.write_text("\n".join(json.dumps({"type": "message", "message": each}) for each in messages))
    session = f"i{chance.getrandbits(32):08x}"
    import_file(memory.conversations, source, session_id=session)
    if chance.random() < 0.5:
        memory.conversations.compact(session, "imported", keep_last=1)
    import_file(memory.conversations, source, session_id=session)  # again: nothing in it is new


def _repair(memory: Memory, chance: random.Random, session: str, _: list[dict[str, str]]) -> None:
    if chance.random() < 0.5:  # tear the end of the file, as a disk would; the messages before it are whole
        path = memory.conversations.path_of(session)
        os.truncate(path, path.read_bytes().rindex(b"]"))
    memory.conversations.repair(session)
