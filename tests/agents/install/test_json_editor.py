"""Settings in JSON, JSON with comments and JSON5: one member changes, everything else stays."""

from __future__ import annotations

import json
import random

import pytest

from notewell.agents.editing import values_of, with_member, without_member
from notewell.sources.transcripts.json5 import Json5Error, container_at

ENTRY = {"command": "notewell", "args": ["mcp"]}
KEYS = ("mcpServers", "memory")

COMMENTED = """\
// my own settings
{
\t/* servers */
\t"mcpServers": {
\t\t"other": { "command": "x", }, // keep me
\t\t// and me
\t},
\tunquoted: 'single \\'quoted\\' // not a comment',
\t"numbers": [1, -2.5, 0x10, .5, +1e3,],
}
"""


@pytest.mark.parametrize(
    ("before", "after"),
    [
        pytest.param("", '{\n  "mcpServers": {\n    "memory": @\n  }\n}\n', id="an empty file"),
        pytest.param("{}", '{\n  "mcpServers": {\n    "memory": @\n  }\n}', id="an empty object"),
        pytest.param('{"a": 1}', '{"a": 1, "mcpServers": {\n  "memory": @\n}}', id="one line"),
        pytest.param(
            '{\n    "a": 1\n}\n',
            '{\n    "a": 1,\n    "mcpServers": {\n        "memory": @\n    }\n}\n',
            id="four blanks",
        ),
        pytest.param(
            '{\n\t"mcpServers": {}\n}', '{\n\t"mcpServers": {\n\t\t"memory": @\n\t}\n}', id="an empty table, tabs"
        ),
        pytest.param(
            '{\n  "a": 1, // why\n  // the end\n}',
            '{\n  "a": 1, // why\n  // the end\n  "mcpServers": {\n    "memory": @\n  },\n}',
            id="a trailing comma and comments",
        ),
        pytest.param(
            '{\r\n  "a": 1\r\n}\r\n',
            '{\r\n  "a": 1,\r\n  "mcpServers": {\r\n    "memory": @\r\n  }\r\n}\r\n',
            id="Windows",
        ),
    ],
)
def test_a_member_is_added_in_the_style_of_the_file(before, after):
    added = with_member(before, KEYS, ENTRY)
    servers = container_at(added).item("mcpServers").value_start
    entry = container_at(added, servers).item("memory")
    assert values_of(added)["mcpServers"]["memory"] == ENTRY
    assert f"{added[: entry.value_start]}@{added[entry.value_end :]}" == after


def test_comments_and_json5_syntax_are_kept():
    assert values_of(COMMENTED) == {
        "mcpServers": {"other": {"command": "x"}},
        "unquoted": "single 'quoted' // not a comment",
        "numbers": [1, -2.5, 16, 0.5, 1000.0],
    }
    added = with_member(COMMENTED, KEYS, ENTRY)
    for kept in ("// my own settings", "/* servers */", "// keep me", "// and me", "unquoted: 'single", "0x10, .5"):
        assert kept in added
    assert values_of(added)["mcpServers"] == {"other": {"command": "x"}, "memory": ENTRY}
    assert without_member(added, KEYS) == COMMENTED


def test_an_entry_is_replaced_in_place():
    text = '{\n  "mcpServers": {\n    "memory": {"command": "old"}, // mine\n    "z": {}\n  }\n}\n'
    changed = with_member(text, KEYS, ENTRY)
    assert changed.index('"memory"') < changed.index("// mine") < changed.index('"z"')
    assert values_of(changed)["mcpServers"] == {"memory": ENTRY, "z": {}}


def random_value(rng: random.Random, depth: int = 0) -> object:
    kind = rng.choice(["object", "list", "text", "number", "word"] if depth < 3 else ["text", "number", "word"])
    if kind == "object":
        return {rng.choice("abcdefg") + str(n): random_value(rng, depth + 1) for n in range(rng.randint(0, 4))}
    if kind == "list":
        return [random_value(rng, depth + 1) for _ in range(rng.randint(0, 3))]
    return {
        "text": rng.choice(["", 'a"b', "// no", "/* no */", "{", "ü\n"]),
        "number": rng.choice([0, -1, 2.5]),
        "word": None,
    }[kind]


@pytest.mark.parametrize("seed", range(60))
def test_adding_and_removing_leaves_every_file_as_it_was(seed):
    rng = random.Random(seed)
    value = {f"key{n}": random_value(rng) for n in range(rng.randint(0, 4))}
    if rng.random() < 0.5:
        value[KEYS[0]] = {"other": random_value(rng)}
    text = json.dumps(value, indent=rng.choice([None, 1, 2, 4, "\t"]), ensure_ascii=rng.random() < 0.5)
    text += rng.choice(["", "\n"])
    assert values_of(text) == value
    added = with_member(text, KEYS, ENTRY)
    assert values_of(added) == {**value, KEYS[0]: {**value.get(KEYS[0], {}), "memory": ENTRY}}
    json.loads(added)  # what was strict JSON still is
    removed = without_member(added, KEYS)
    assert json.loads(removed) == value
    if value and "\n" in text.strip():
        assert removed == text


@pytest.mark.parametrize(
    "text",
    [
        "{",
        "{]",
        '{"a" 1}',
        '{"a": }',
        '{"a": 1} x',
        '{"a": "x',
        '{"a": [1 2]}',
        '{"a": "\\u12"}',
        '{"a": nope}',
        '{"a": ' + "[" * 300,
        '{"a": ' + "[" * 300 + "]" * 300 + "}",
        "{'a': \"x\ny\"}",
    ],
)
def test_invalid_json_is_refused_with_its_line(text):
    with pytest.raises(Json5Error, match=r"line \d"):
        values_of(text)


@pytest.mark.parametrize("text", ["[]", "1", '"x"'])
def test_a_file_that_is_not_an_object_is_refused(text):
    with pytest.raises(Json5Error, match="object"):
        values_of(text)


def test_a_number_of_more_digits_than_python_reads_is_told_with_its_line():
    with pytest.raises(Json5Error, match=r"^line 2: .*digits"):
        values_of('{\n"a": ' + "9" * 5000 + "}")
