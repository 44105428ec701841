"""Appends and rewrites that are cut short: after recovery a session is as it was before or as it should be after."""

from __future__ import annotations

import errno
import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from notewell import DiskFullError
from notewell.files import faults
from notewell.sessions import ConversationStore
from notewell.sessions.append_journal import is_unfinished, overwrite_end, recover

from .conftest import texts


def caught(store, chat, new):
    """Return the file before and after an append, and the journal as it is while the append is under way."""
    path, journal = store.path_of(chat), store.folder / ".journal" / chat
    before, seen = path.read_bytes(), []
    with faults.planted(lambda point: seen.append(journal.read_bytes()) if point == "session.write" else None):
        store.append(chat, *new)
    return before, path.read_bytes(), seen[0]


def states(before: bytes, after: bytes, offset: int):
    """Yield every state that a cut-off write can leave: a prefix of the new bytes over the old ones."""
    old, new = before[offset:], after[offset:]
    for written in range(len(new) + 1):
        yield before[:offset] + new[:written] + old[written:]


@pytest.mark.slow
@pytest.mark.parametrize(
    "new",
    [
        pytest.param([{"role": "user", "content": "short"}], id="a short message"),
        pytest.param(
            [{"role": "user", "content": "long " * 12}, {"role": "assistant", "content": "x"}], id="two messages"
        ),
    ],
)
def test_a_write_torn_at_any_byte_is_finished(store, chat, new):
    path, journal = store.path_of(chat), store.folder / ".journal" / chat
    before, after, noted = caught(store, chat, new)
    offset = next(n for n, (old, fresh) in enumerate(zip(before, after, strict=False)) if old != fresh)
    offset = before.rindex(b"\n", 0, offset) + 1
    count = 0
    for state in states(before, after, offset):
        path.write_bytes(state)
        journal.write_bytes(noted)
        assert len(texts(store.get(chat))) in (2, 2 + len(new))
        store.set_state(chat)  # any writer settles it first
        session = store.get(chat)
        expected = [] if state == before else [each["content"] for each in new]
        assert texts(session) == ["Where do we go?", "To Lisbon.", *expected]
        assert session.entry.message_count == 2 + len(expected)
        assert not is_unfinished(journal)
        count += 1
    assert count > 100


def test_a_journal_torn_at_any_byte_means_that_nothing_was_written(store, chat):
    path, journal = store.path_of(chat), store.folder / ".journal" / chat
    before, _, noted = caught(store, chat, [{"role": "user", "content": "new"}])
    facts = json.loads(noted.partition(b"\n")[0])
    whole = noted.index(b"\n") + 1 + facts["oldSize"] + facts["newSize"]  # behind it is what a longer one left
    for length in range(0, whole, 7):
        path.write_bytes(before)
        journal.write_bytes(noted[:length])
        assert texts(store.get(chat)) == ["Where do we go?", "To Lisbon."]
        assert recover(path, journal) is False
        assert path.read_bytes() == before
    store.append(chat, {"role": "user", "content": "later"})
    assert texts(store.get(chat)) == ["Where do we go?", "To Lisbon.", "later"]


@pytest.mark.slow
@settings(max_examples=150)
@given(
    old=st.binary(min_size=1, max_size=80),
    new=st.binary(min_size=1, max_size=120),
    data=st.data(),
)
def test_blocks_that_reach_the_disk_in_any_order_are_put_right(tmp_path_factory, old, new, data):
    """A power cut may keep later blocks and lose earlier ones, and a block that was not written reads as zeros."""
    folder = tmp_path_factory.mktemp("blocks")
    path, journal = folder / "file", folder / "journal"
    path.write_bytes(b"head\n" + old)
    noted = []
    with faults.planted(lambda point: noted.append(journal.read_bytes()) if point == "session.write" else None):
        overwrite_end(path, journal, 5, new)
    assert path.read_bytes() == b"head\n" + new
    longest, shortest = max(len(old), len(new)), min(len(old), len(new))
    size = data.draw(st.integers(shortest, longest))
    mixed = bytes(
        data.draw(st.sampled_from([source[at] if at < len(source) else 0 for source in (old, new)]))
        for at in range(size)
    )
    path.write_bytes(b"head\n" + mixed)
    journal.write_bytes(noted[0])
    recover(path, journal)
    assert path.read_bytes() == b"head\n" + (old if mixed == old else new)


def test_an_edit_after_a_crash_is_not_undone(store, chat):
    path, journal = store.path_of(chat), store.folder / ".journal" / chat
    _, after, noted = caught(store, chat, [{"role": "user", "content": "new"}])
    edited = after.replace(b'"new"', b'"newer, said Dana"')
    for state in (edited, edited[: len(edited) // 3], b"{messages: []}"):
        path.write_bytes(state)
        journal.write_bytes(noted)
        recover(path, journal)
        assert path.read_bytes() == state
        assert not is_unfinished(journal)


def test_a_journal_without_its_file_is_nothing(store, chat):
    _, _, noted = caught(store, chat, [{"role": "user", "content": "new"}])
    journal = store.folder / ".journal" / chat
    store.path_of(chat).unlink()
    journal.write_bytes(noted)
    assert recover(store.folder / "chats" / "chat-1.json5", journal) is False
    assert not is_unfinished(journal)


def test_the_journal_keeps_nothing_of_what_was_said(store, chat):
    for size in (10, 200_000):
        store.append(chat, {"role": "user", "content": "canary-5512 " * size})
        assert b"canary-5512" not in (store.folder / ".journal" / chat).read_bytes()
    assert (store.folder / ".journal" / chat).stat().st_size < 100_000


# --- a disk that fails ---------------------------------------------------------------------------

POINTS = (
    "session.journal",
    "session.write",
    "session.fsync",
    "session.rename",
    "session.draft.open",
    "session.draft.write",
    "session.draft.fsync",
    "session.draft.rename",
    "session.draft.fsync_folder",
)


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EIO], ids=["full", "broken"])
@pytest.mark.parametrize("on_call", [1, 2, 3])
@pytest.mark.parametrize("point", POINTS)
@pytest.mark.parametrize("call", ["create", "append", "update", "compact", "archive"])
def test_a_step_that_fails_leaves_the_state_before_or_after(store, chat, call, point, on_call, number):
    calls = {
        "create": lambda: store.create("new", title="New"),
        "append": lambda: store.append(chat, {"role": "user", "content": "three"}),
        "update": lambda: store.update(chat, title="Other"),
        "compact": lambda: store.compact(chat, "Talk.", keep_last=1),
        "archive": lambda: store.archive(chat),
    }

    def state():
        everything = [*store.list(), *store.list(archived=True)]
        assert not any(entry.damage for entry in everything)
        return {
            entry.session_id: (entry.title, entry.session_file, texts(store.get(entry.session_id)))
            for entry in everything
        }

    before = state()
    refused = False
    with faults.failing(point, number, on_call=on_call, times=1) as failures:
        try:
            calls[call]()
        except DiskFullError:
            refused = number == errno.ENOSPC
        except OSError as error:
            refused = error.errno == number
    assert refused == bool(failures())
    between = state()
    if not refused:
        assert between != before
    if not (call == "create" and "new" in between):
        calls[call]()
    done = state()
    assert done != before
    assert list(store.folder.rglob("*.tmp")) == []
    if call == "append":
        assert done[chat][2].count("three") == (1 if refused else 2)


def test_a_failed_append_is_as_if_it_had_never_been(store, chat):
    before = store.path_of(chat).read_bytes()
    with (
        faults.failing("session.fsync", errno.ENOSPC),
        pytest.raises(DiskFullError, match="the disk is full: cannot write") as raised,
    ):
        store.append(chat, {"role": "user", "content": "lost"})
    assert "free some space" in raised.value.hint
    assert store.path_of(chat).read_bytes() == before
    assert not is_unfinished(store.folder / ".journal" / chat)


# --- any sequence of calls -----------------------------------------------------------------------

NAMES = st.sampled_from(["a", "b"])
TEXT = st.text(max_size=30)
STEPS = st.one_of(
    st.tuples(st.just("create"), NAMES, st.sampled_from(["direct", "group"])),
    st.tuples(st.just("append"), NAMES, st.lists(TEXT, min_size=1, max_size=3)),
    st.tuples(st.just("update"), NAMES, TEXT),
    st.tuples(st.just("compact"), NAMES, st.integers(0, 3)),
    st.tuples(st.just("archive"), NAMES, st.booleans()),
    st.tuples(st.just("delete"), NAMES, st.none()),
    st.tuples(st.just("edit"), NAMES, st.sampled_from(["// note", "/* more\n lines */", "tag: 'x',"])),
    st.tuples(st.just("reopen"), NAMES, st.none()),
    st.tuples(st.just("no registry"), NAMES, st.none()),
)


class Model:
    """What the store should hold, in plain Python."""

    def __init__(self):
        self.sessions = {}

    def apply(self, step, name, value):
        known = self.sessions.get(name)
        if step == "create" and known is None:
            self.sessions[name] = {"kind": value, "texts": [], "title": None, "gone": 0, "archived": False}
        elif known is None:
            return
        elif step == "append":
            known["texts"] += [text.encode("utf-8", "replace").decode() for text in value]
        elif step == "update":
            known["title"] = value or None
        elif step == "compact":
            gone = max(0, len(known["texts"]) - value)
            known["gone"] += gone
            known["texts"] = known["texts"][gone:]
        elif step == "archive":
            known["archived"] = value
        elif step == "delete":
            del self.sessions[name]


def do(store, step, name, value):
    if step == "create":
        store.create(name, kind=value)
    elif step == "append":
        store.append(name, *({"role": "user", "content": text} for text in value))
    elif step == "update":
        store.update(name, title=value or None)
    elif step == "compact":
        store.compact(name, "summary", keep_last=value)
    elif step == "archive":
        (store.archive if value else store.unarchive)(name)
    elif step == "delete":
        store.delete(name)
    elif step == "edit":
        path = store.path_of(name)
        path.write_bytes(path.read_bytes().replace(b"{\n", b"{\n  " + value.encode() + b"\n", 1))
    elif step == "no registry":
        (store.folder / "registry.json5").unlink(missing_ok=True)


def seen(store):
    found = {}
    for archived in (False, True):
        for entry in store.list(archived=archived):
            session = store.get(entry.session_id)
            assert entry.message_count == len(session.messages) == session.entry.message_count
            found[entry.session_id] = {
                "kind": entry.kind,
                "texts": texts(session),
                "title": entry.title or None,
                "gone": sum(summary.original_message_count for summary in session.summaries),
                "archived": archived,
            }
    return found


@pytest.mark.slow
@settings(max_examples=60)
@given(steps=st.lists(STEPS, max_size=14))
def test_any_sequence_of_calls_gives_what_a_plain_model_gives(tmp_path_factory, steps):
    store, model = ConversationStore(tmp_path_factory.mktemp("model") / "sessions"), Model()
    for step, name, value in steps:
        if step == "reopen":
            store = ConversationStore(store.folder)
        elif (name in model.sessions) != (step == "create"):
            do(store, step, name, value)
        model.apply(step, name, value)
    assert seen(store) == model.sessions
    assert store.rebuild_registry() == len(model.sessions)
