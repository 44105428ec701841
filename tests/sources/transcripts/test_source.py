"""Listing and reading transcripts: stable paths, true line numbers, bad lines counted, nothing outside readable."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest

from notewell.errors import NoteNotFoundError, PathRefusedError
from notewell.sources.transcripts import growing
from notewell.sources.transcripts.growing import LONGEST_LINE
from notewell.sources.transcripts.source import TranscriptSource
from notewell.types import FileStamp, Problem
from tests.sources.transcripts.records import claude, jsonl, openclaw


@pytest.fixture
def own(tmp_path) -> Path:
    folder = tmp_path / "state" / "sessions"
    folder.mkdir(parents=True)
    return folder


@pytest.fixture
def source(own) -> TranscriptSource:
    return TranscriptSource(own)


def pieces(source, path, position=None):
    return list(source.read_on(FileStamp("sessions", path, 0, 0), position))


def read(source, path) -> tuple[list[tuple[int, str]], tuple[Problem, ...]]:
    found = pieces(source, path)
    return [(line.line, line.text) for piece in found for line in piece.lines], found[-1].problems


# --- listing -------------------------------------------------------------------------------------


def test_a_folder_that_is_not_there_yet_holds_nothing(tmp_path):
    listing = TranscriptSource(tmp_path / "none").list()
    assert (listing.files, listing.problems) == ((), ())


def test_paths_are_stable_and_tell_where_a_transcript_comes_from(tmp_path, own):
    files = [
        own / "chats/a.json5",
        own / "old.jsonl",
        own / "registry.json5",
        own / "damaged/broken.json5",
        own / ".locks/a.jsonl",
        tmp_path / ".claude/projects/-home-x/1.jsonl",
        tmp_path / ".codex/sessions/2026/03/04/rollout-1.jsonl",
        tmp_path / "other/.codex/sessions/rollout-2.jsonl",
        tmp_path / "talks/b.jsonl",
        tmp_path / "talks/notes.md",
        tmp_path / "single.jsonl",
    ]
    for file in files:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(jsonl(openclaw("user", "x")))
    roots = [".claude/projects", ".codex/sessions", "other/.codex/sessions", "talks", "single.jsonl"]
    source = TranscriptSource(own, [tmp_path / root for root in roots])
    listing = source.list()
    assert listing.problems == ()
    assert [stamp.path for stamp in listing.files] == [
        "sessions/@claude/-home-x/1.jsonl",
        "sessions/@codex-2/rollout-2.jsonl",
        "sessions/@codex/2026/03/04/rollout-1.jsonl",
        "sessions/@single.jsonl",
        "sessions/@talks/b.jsonl",
        "sessions/chats/a.json5",
        "sessions/old.jsonl",
    ]
    for stamp in listing.files:
        assert source.stamp_of(stamp.path) == stamp
        assert source.exists(stamp.path)
        assert source.may_hold(stamp.path)
    assert source.stored_path(tmp_path / "talks/b.jsonl") == "sessions/@talks/b.jsonl"
    assert source.stored_path(own / "chats/a.json5") == "sessions/chats/a.json5"
    assert source.stored_path(tmp_path / "single.jsonl") == "sessions/@single.jsonl"
    assert source.stored_path(tmp_path / "elsewhere.jsonl") is None


def test_the_same_file_under_two_roots_is_listed_once(tmp_path, own):
    talks = tmp_path / "talks"
    (talks / "inner").mkdir(parents=True)
    (talks / "inner/a.jsonl").write_bytes(jsonl(openclaw("user", "x")))
    source = TranscriptSource(own, [talks, talks / "inner"])
    assert [stamp.path for stamp in source.list().files] == ["sessions/@talks/inner/a.jsonl"]


def test_a_configured_folder_that_is_missing_is_a_problem(tmp_path, own):
    listing = TranscriptSource(own, [tmp_path / "missing"]).list()
    assert [problem.path for problem in listing.problems] == ["sessions/@missing"]


# --- escapes -------------------------------------------------------------------------------------

ESCAPES = [
    "sessions/../secret.jsonl",
    "sessions/a/../../secret.jsonl",
    "sessions/./a.jsonl",
    "sessions//a.jsonl",
    "/sessions/a.jsonl",
    "/etc/passwd",
    "sessions/a.jsonl\0.md",
    "sessions/\ud800.jsonl",
    "sessions/..%2fsecret.jsonl",
    "sessions/..\u2215secret.jsonl",
    "sessions\\..\\secret.jsonl",
    "sessions/link.jsonl",
    "sessions/linked/secret.jsonl",
    "sessions/folder.jsonl",
    "sessions/.hidden.jsonl",
    "sessions/registry.json5",
    "sessions/damaged/a.json5",
    "sessions/notes.md",
    "sessions/@nowhere/a.jsonl",
    "sessions",
    "",
    "secret.jsonl",
    "~/secret.jsonl",
    "C:\\secret.jsonl",
]


@pytest.mark.parametrize("path", ESCAPES, ids=ascii)
def test_nothing_outside_is_read(path, own, source, tmp_path):
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "secret.jsonl").write_bytes(jsonl(openclaw("user", "secret")))
    (own.parent / "secret.jsonl").write_bytes(jsonl(openclaw("user", "secret")))
    (own / "folder.jsonl").mkdir()
    (own / "damaged").mkdir()
    for name in (".hidden.jsonl", "registry.json5", "damaged/a.json5"):
        (own / name).write_bytes(jsonl(openclaw("user", "secret")))
    (own / "link.jsonl").symlink_to(outside / "secret.jsonl")
    (own / "linked").symlink_to(outside)
    with pytest.raises(PathRefusedError):
        source.stamp_of(path)
    with pytest.raises((OSError, ValueError)):
        pieces(source, path)
    assert "secret" not in str(source.list().files)


def test_a_transcript_that_is_not_there(source):
    with pytest.raises(NoteNotFoundError):
        source.stamp_of("sessions/none.jsonl")
    assert source.list(["sessions/none.jsonl"]).files == ()


# --- reading -------------------------------------------------------------------------------------


def test_lines_are_those_of_the_file(own, source):
    (own / "a.jsonl").write_bytes(
        jsonl(
            {"type": "session"},
            openclaw("user", "first"),
            openclaw("toolResult", "noise"),
            b"",
            openclaw("assistant", "second"),
        )
    )
    assert read(source, "sessions/a.jsonl") == ([(2, "User: first"), (5, "Assistant: second")], ())
    assert source.read(source.stamp_of("sessions/a.jsonl")).text == "\nUser: first\n\n\nAssistant: second\n"
    assert list(source.rendered("sessions/a.jsonl", 3)) == ["", "", "Assistant: second"]


def test_bad_and_giant_lines_are_counted_and_the_rest_is_read(own, source):
    giant = json.dumps(openclaw("user", "x" * LONGEST_LINE)).encode()
    lines = jsonl(openclaw("user", "one"), b"{bad", b"also bad", giant, openclaw("user", "two"))
    (own / "a.jsonl").write_bytes(lines + b'{"type": "mess')
    said, problems = read(source, "sessions/a.jsonl")
    assert said == [(1, "User: one"), (5, "User: two")]
    assert problems == (
        Problem(
            "sessions/a.jsonl",
            "left out: 2 lines are not JSON records (line 2 first); line 4 is longer than 4 MB; "
            "the last line is still incomplete",
        ),
    )


def test_a_byte_order_mark_and_windows_line_ends_are_no_trouble(own, source):
    lines = jsonl(openclaw("user", "one"), openclaw("user", "two")).replace(b"\n", b"\r\n")
    (own / "a.jsonl").write_bytes(b"\xef\xbb\xbf" + lines)
    assert read(source, "sessions/a.jsonl") == ([(1, "User: one"), (2, "User: two")], ())


def test_secrets_are_marked_before_anyone_sees_the_text(own):
    source, token = TranscriptSource(own), "ghp_" + "a1B2c3D4e5F6" * 3
    (own / "a.jsonl").write_bytes(jsonl(openclaw("user", f"the key is {token}")))
    stamp = source.stamp_of("sessions/a.jsonl")
    shown = [str(pieces(source, stamp.path)), source.read(stamp).text, str(list(source.rendered(stamp.path, 1)))]
    assert all("[secret:" in text and token not in text for text in shown)


def test_it_is_dated_by_its_last_message(own, source):
    (own / "a.jsonl").write_bytes(
        jsonl(openclaw("user", "x", at="2026-01-02T12:00:00Z"), openclaw("user", "y", at="2026-03-04T12:00:00Z"))
        + jsonl(openclaw("user", "z", at=None))
    )
    assert pieces(source, "sessions/a.jsonl")[-1].dated.isoformat() == "2026-03-04"


def test_reading_goes_on_where_it_stopped(own, source):
    file = own / "a.jsonl"
    file.write_bytes(jsonl(claude("user", "one")))
    first = pieces(source, "sessions/a.jsonl")[-1]
    with file.open("ab") as handle:
        handle.write(jsonl(claude("assistant", "two")))
    (second,) = pieces(source, "sessions/a.jsonl", first.position)
    assert [tuple(line) for line in second.lines] == [(2, "Assistant: two", 2)]
    assert not second.from_start
    assert second.content_hash == pieces(source, "sessions/a.jsonl")[-1].content_hash


def test_messages_are_numbered_whatever_lies_between_them(own, source, monkeypatch):
    records = [{"type": "session"}]
    for number in range(1, 10):
        records += [openclaw("user", f"message {number}"), openclaw("toolResult", "noise")]
    (own / "a.jsonl").write_bytes(jsonl(*records))
    at_once = [line for piece in pieces(source, "sessions/a.jsonl") for line in piece.lines]
    assert [(line.line, line.turn) for line in at_once] == [(2 * number, number) for number in range(1, 10)]
    monkeypatch.setattr(growing, "PIECE_CHARS", 40)
    several = pieces(source, "sessions/a.jsonl")
    assert len(several) > 2
    assert [line for piece in several for line in piece.lines] == at_once
    (rest,) = pieces(source, "sessions/a.jsonl", several[-2].position)
    assert rest.lines == several[-1].lines


def test_a_line_that_gets_its_newline_later_is_read_once(own, source):
    file = own / "a.jsonl"
    whole = jsonl(openclaw("user", "one"), openclaw("user", "two"))
    file.write_bytes(whole[:-1])
    first = pieces(source, "sessions/a.jsonl")[-1]
    assert [line.line for line in first.lines] == [1, 2]
    file.write_bytes(whole + jsonl(openclaw("user", "three")))
    (second,) = pieces(source, "sessions/a.jsonl", first.position)
    assert [(line.line, second.from_start) for line in second.lines] == [(3, False)]
    file.write_bytes(whole[:-1] + b" and more\n")
    assert pieces(source, "sessions/a.jsonl", first.position)[-1].from_start


REWRITES = {
    "cut short": lambda text: text[: len(text) // 2],
    "emptied": lambda text: b"",
    "another beginning": lambda text: b"X" * 20 + text,
    "another end": lambda text: text[:-20] + b"Y" * 20 + b"\n" + text,
    "one byte in the middle": lambda text: text[:20_000] + b"Z" + text[20_001:],
}


@pytest.mark.parametrize("rewrite", REWRITES)
def test_a_rewritten_file_is_read_from_its_beginning(rewrite, own, source):
    file = own / "a.jsonl"
    text = jsonl(*(openclaw("user", f"message {number} " + "word " * 20) for number in range(400)))
    file.write_bytes(text)
    position = pieces(source, "sessions/a.jsonl")[-1].position
    file.write_bytes(REWRITES[rewrite](text))
    os.utime(file, ns=(1, 1))
    assert pieces(source, "sessions/a.jsonl", position)[0].from_start


def test_a_file_put_in_place_of_another_is_read_from_its_beginning(own, source):
    file, draft = own / "a.jsonl", own / "draft"
    text = jsonl(*(openclaw("user", f"message {number} " + "word " * 20) for number in range(400)))
    file.write_bytes(text)
    position = pieces(source, "sessions/a.jsonl")[-1].position
    draft.write_bytes(text[:20_000] + b"Z" + text[20_001:] + jsonl(openclaw("user", "more")))
    draft.replace(file)
    assert pieces(source, "sessions/a.jsonl", position)[0].from_start


@pytest.mark.parametrize("position", ["", "{}x", "[]", '{"unknown": 1}', '{"position": "{}", "open": []}'])
def test_a_position_that_is_none_means_the_beginning(position, own, source):
    (own / "a.jsonl").write_bytes(jsonl(openclaw("user", "one")))
    assert pieces(source, "sessions/a.jsonl", position)[0].from_start


# --- the session store's own files ---------------------------------------------------------------

HEAD = b'{\n  // a comment\n  sessionId: "a",\n  messages: [\n'
FOOT = b"  ], // end of messages\n  updatedAt: 3,\n}\n"


def session_file(*elements: bytes) -> bytes:
    """Return a session file exactly as the store writes it."""
    body = HEAD + b"".join(elements)
    return body + FOOT.removesuffix(b"}\n") + b"  messagesEnd: %d,\n}\n" % len(body)


def element(role: str, content: str) -> bytes:
    return b"    " + json.dumps({"role": role, "content": content, "timestamp": 1704067200000}).encode() + b",\n"


def test_a_session_file_grows_in_front_of_its_foot(own, source):
    file = own / "chats/a.json5"
    file.parent.mkdir()
    elements = [element("user", "one"), element("tool", "x")]
    file.write_bytes(session_file(*elements))
    first = pieces(source, "sessions/chats/a.json5")[-1]
    assert [tuple(line) for line in first.lines] == [(5, "User: one", 1)]
    assert first.problems == ()
    file.write_bytes(session_file(*elements, element("assistant", "two")))
    (second,) = pieces(source, "sessions/chats/a.json5", first.position)
    assert [tuple(line) for line in second.lines] == [(7, "Assistant: two", 2)]
    assert not second.from_start
    assert list(source.rendered("sessions/chats/a.json5", 5)) == ["User: one", "", "Assistant: two"]


def test_a_message_that_a_person_wrote_in_json5_is_read(own, source):
    file = own / "chats/a.json5"
    file.parent.mkdir()
    file.write_bytes(HEAD + b"    // mine\n    {role: 'user', content: 'by hand',},\n" + FOOT)
    assert read(source, "sessions/chats/a.json5") == ([(6, "User: by hand")], ())


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        pytest.param(b"{role: ", "line 5: not valid JSON5", id="cut"),
        pytest.param(b"{role: 'user', content: }", "line 5: not valid JSON5", id="no value"),
        pytest.param(b"oops", "line 5: not valid JSON5", id="no message"),
        pytest.param(b"[1]", "message 1: a message needs a role", id="a list"),
    ],
)
def test_a_message_that_a_person_broke_is_told(line, reason, own, source):
    file = own / "chats/a.json5"
    file.parent.mkdir()
    file.write_bytes(HEAD + b"    " + line + b",\n" + element("user", "whole") + FOOT)
    said, problems = read(source, "sessions/chats/a.json5")
    assert said == [(6, "User: whole")]
    [problem] = problems
    assert problem.path == "sessions/chats/a.json5"
    assert problem.reason.startswith(f"cannot be read as a session: {reason}")
    assert problem.reason.endswith("; run `notewell sessions repair a`")


OTHER_LAYOUTS = [
    pytest.param(
        '{messages: [{role: "user", content: "x"}, {role: "assistant", content: "y"}]}', [1, 1], id="one line"
    ),
    pytest.param(
        json.dumps(
            {"messages": [{"role": "user", "content": "x"}, {"role": "assistant", "content": "y"}], "tag": 1}, indent=4
        ),
        [3, 7],
        id="as an editor formats it",
    ),
    pytest.param(
        "\ufeff{\r\n  messages: [\r\n  {role: 'user', content: 'x'},\r\n/* { */\r\n"
        "  {role: 'assistant', content: 'y'},\r\n ],\r\n}",
        [3, 5],
        id="Windows",
    ),
    pytest.param(
        "{messages: [\n{role: 'user', content: 'x'}, // {\n{role: 'assistant', content: 'y'}],\n"
        "compactedHistory: [{role: 'system', content: 'z'}]}",
        [2, 3],
        id="fields after the messages",
    ),
]


@pytest.mark.parametrize(("text", "lines"), OTHER_LAYOUTS)
def test_a_session_file_in_any_layout_is_read_with_its_lines(text, lines, own, source):
    file = own / "chats/a.json5"
    file.parent.mkdir()
    file.write_bytes(text.encode())
    said = list(zip(lines, ["User: x", "Assistant: y"], strict=True))
    assert read(source, "sessions/chats/a.json5") == (said, ())
    shown = dict(enumerate(source.rendered("sessions/chats/a.json5", 1), start=1))
    assert all(text in shown[line] for line, text in said)
    position = pieces(source, "sessions/chats/a.json5")[-1].position
    (again,) = pieces(source, "sessions/chats/a.json5", position)
    assert (again.lines, again.from_start) == ((), False)
    file.write_bytes(text.encode() + b"\n// more\n")
    assert pieces(source, "sessions/chats/a.json5", position)[-1].from_start


def test_a_session_file_that_cannot_be_read_is_told_every_time_until_it_is_fixed(own, source):
    file = own / "chats/a.json5"
    file.parent.mkdir()
    file.write_bytes(HEAD + element("user", "one") + b"oops\n" + FOOT)
    first = pieces(source, "sessions/chats/a.json5")[-1]
    assert first.stamp.mtime_ns == 0  # so that the next run looks at it again
    (again,) = pieces(source, "sessions/chats/a.json5", first.position)
    assert (again.lines, again.from_start, again.problems) == ((), False, first.problems)
    file.write_bytes(HEAD + element("user", "one") + FOOT)
    (fixed,) = pieces(source, "sessions/chats/a.json5", first.position)
    assert (fixed.from_start, fixed.problems, [line.text for line in fixed.lines]) == (True, (), ["User: one"])


def test_a_session_file_of_a_newer_release_is_told(own, source):
    file = own / "chats/a.json5"
    file.parent.mkdir()
    file.write_bytes(b"{version: 9, messages: [{role: 'user', content: 'x'}]}")
    said, [problem] = read(source, "sessions/chats/a.json5")
    assert said == []
    assert problem.reason.endswith("was written by a newer release (format 9); upgrade notewell")


def test_the_stores_own_layout_needs_no_json5_parser(own, source, monkeypatch):
    file = own / "chats/a.json5"
    file.parent.mkdir()
    file.write_bytes(session_file(element("user", "one"), element("assistant", "two")))
    monkeypatch.setitem(sys.modules, "pyjson5", None)  # as if it were not installed
    assert read(source, "sessions/chats/a.json5") == ([(5, "User: one"), (6, "Assistant: two")], ())
    file.write_bytes(session_file(element("user", "one"), b'    {"content": "no role"},\n'))
    assert "a message needs a role" in read(source, "sessions/chats/a.json5")[1][0].reason
    file.write_bytes(b"{messages: [{role: 'user', content: 'x'}]}")
    said, [problem] = read(source, "sessions/chats/a.json5")
    assert said == []
    assert 'run `pip install "notewell[sessions]"`' in problem.reason
