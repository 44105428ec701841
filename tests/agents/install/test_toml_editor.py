"""TOML settings: one table changes, comments and everything else stay."""

from __future__ import annotations

import tomllib

import pytest

from notewell.agents.editing import with_table, without_table

KEYS = ("mcp_servers", "memory")
ENTRY = {"command": 'C:\\Program "x"\\notewell.exe', "args": ["mcp", "--workspace", "/höme/you"]}

FULL = """\
# my settings
model = "gpt-5.5" # the best

[mcp_servers.other]
command = "x"
args = [
  "[mcp_servers.memory]", # not a table
]

# about profiles
[profiles.fast]
model = "mini"
"""


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("", id="empty"),
        pytest.param("# only a comment", id="no newline at the end"),
        pytest.param(FULL, id="other servers and comments"),
        pytest.param(FULL.replace("\n", "\r\n"), id="Windows"),
    ],
)
def test_a_table_is_added_and_removed_again(text):
    added = with_table(text, KEYS, ENTRY)
    plain = tomllib.loads(text.replace("\r\n", "\n"))
    assert tomllib.loads(added.replace("\r\n", "\n")) == {
        **plain,
        "mcp_servers": {**plain.get("mcp_servers", {}), "memory": ENTRY},
    }
    assert added.startswith(text)
    assert without_table(added, KEYS).strip() == text.strip()


@pytest.mark.parametrize(
    "header", ["[mcp_servers.memory]", '[ mcp_servers . "memory" ]  # mine', "[mcp_servers.'memory']"]
)
def test_a_table_is_replaced_in_place(header):
    rest = '# about profiles\n[profiles.fast]\nmodel = "mini"\n'
    old = f'{header}\ncommand = "old"\n[mcp_servers.memory.env]\nA = "1"\n\n{rest}'
    new = with_table(old, KEYS, ENTRY)
    assert tomllib.loads(new) == {"mcp_servers": {"memory": ENTRY}, "profiles": {"fast": {"model": "mini"}}}
    assert new.index("mcp_servers") < new.index("# about profiles")
    assert without_table(new, KEYS) == rest


def test_what_people_added_to_the_entry_is_kept():
    entry = ENTRY | {"env": {"OPENAI_API_KEY": "x"}, "enabled": True}
    added = with_table('[mcp_servers.memory]\ncommand = "old"\n[mcp_servers.memory.env]\nA = "1"\n', KEYS, entry)
    assert tomllib.loads(added) == {"mcp_servers": {"memory": entry}}
