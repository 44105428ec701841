"""The Claude Code plugin's files: its commands exist and its version is the package's; Claude Code checks the rest."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import click
import pytest

import notewell
from notewell.cli.main import cli
from notewell.sources.notes import split_front_matter

PLUGIN = Path(__file__).parents[3] / "plugins" / "claude-code"


def test_the_version_is_that_of_the_package():
    manifest = json.loads((PLUGIN / ".claude-plugin" / "plugin.json").read_text(encoding="utf-8"))
    assert manifest["version"] == notewell.__version__
    market = json.loads((PLUGIN.parent.parent / ".claude-plugin" / "marketplace.json").read_text(encoding="utf-8"))
    [listed] = market["plugins"]
    assert listed["name"] == manifest["name"]
    assert (PLUGIN.parent.parent / listed["source"]).resolve() == PLUGIN.resolve()


def called() -> list[str]:
    servers = json.loads((PLUGIN / ".mcp.json").read_text(encoding="utf-8"))["mcpServers"]
    events = json.loads((PLUGIN / "hooks" / "hooks.json").read_text(encoding="utf-8"))["hooks"]
    hooks = [hook["command"] for groups in events.values() for group in groups for hook in group["hooks"]]
    return [*(shlex.join([server["command"], *server["args"]]) for server in servers.values()), *hooks]


@pytest.mark.parametrize("command", called())
def test_its_commands_exist(command):
    program, *words = shlex.split(command)
    assert program == "notewell"
    found: click.Command | None = cli
    options = [word for word in words if word.startswith("-")]
    for word in words[: len(words) - len(options)]:
        assert isinstance(found, click.Group)
        found = found.get_command(click.Context(found), word)
        assert found is not None, command
    declared = {flag for parameter in found.params for flag in parameter.opts}
    assert declared.issuperset(options)


def test_the_skill_says_what_it_is_for():
    head, _ = split_front_matter((PLUGIN / "skills" / "recall" / "SKILL.md").read_text(encoding="utf-8"))
    assert head["name"] == "recall"
    assert len(head["description"]) <= 1024  # as long as a skill's description may be
