"""Every search option is declared once and offered by the surfaces that its declaration names."""

from __future__ import annotations

import json

import click
import pytest

import notewell
from notewell.agents.tools.schemas import SEARCH
from notewell.cli.reading import search
from notewell.search.options import SearchOptions, build_request, declared_options
from notewell.settings import Settings


def test_the_command_offers_what_is_declared_for_it():
    offered = {parameter.name: set(parameter.opts) for parameter in search.params}
    for name, option in declared_options().items():
        assert offered.get(name, set()) == set(option.flags)


def test_the_tool_offers_what_is_declared_for_it_and_eight_parameters_at_most():
    declared = {option.tool for option in declared_options().values() if option.tool}
    assert set(SEARCH.parameters["properties"]) == {"query", *declared}
    assert len(SEARCH.parameters["properties"]) <= 8
    json.dumps(SEARCH.parameters)


def test_every_option_says_what_it_does():
    for name, option in declared_options().items():
        assert option.help.endswith((".", "]")), name
        assert option.flags or option.tool, name
    assert set(declared_options()) == set(SearchOptions.__annotations__)


def test_none_means_what_the_settings_say():
    settings = Settings()
    nothing = build_request(settings, "door", {})
    spelled_out = build_request(settings, "door", {"limit": None, "min_score": None, "mode": None, "source": None})
    assert spelled_out == nothing
    assert (nothing.limit, nothing.min_score, nothing.mode) == (6, 0.35, "hybrid")


def test_an_unknown_option_is_a_type_error(tmp_path):
    (tmp_path / "MEMORY.md").write_text("The door is green.\n", encoding="utf-8")
    unknown = pytest.raises(TypeError, match="unexpected keyword argument 'limits'")
    with notewell.Memory.open(tmp_path, provider="none") as memory, unknown:
        memory.search("door", limits=3)


def test_a_flag_without_a_value_stands_for_its_switch():
    context = search.make_context("search", ["door", "--no-sync", "--explain"])
    assert context.params["sync"] is False
    assert context.params["explain"] is True
    assert context.params["rerank"] is None
    assert isinstance(search, click.Command)
