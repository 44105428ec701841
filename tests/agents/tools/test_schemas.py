"""Tool descriptions: small, pinned, valid JSON Schema, and in the formats of OpenAI and Anthropic."""

from __future__ import annotations

import hashlib
import json

import pytest

from notewell.agents import tools as memory_tools
from notewell.agents.tools import MemoryTools
from notewell.agents.tools.schemas import BY_NAME
from notewell.mcp.server import tool_document

CHARS_PER_TOKEN = 4

# What models are told decides how they behave: a change here is a decision, made together with this list.
PINNED = {
    "memory_search": "43c4f04072f5b26d",
    "memory_get": "285935d320e930cc",
    "memory_list": "6b84ca0cbf8d6be8",
    "memory_write": "418cc2fdfbacaf4a",
    "memory_forget": "29ffb2a532a5c2ee",
}


def listed(names=BY_NAME):
    return [tool_document(BY_NAME[name]) for name in names]


@pytest.mark.parametrize("name", BY_NAME)
def test_tool_descriptions_are_pinned(name):
    canonical = json.dumps(tool_document(BY_NAME[name]), sort_keys=True, ensure_ascii=False)
    assert hashlib.sha256(canonical.encode()).hexdigest()[:16] == PINNED[name]


def test_the_whole_list_is_under_1200_tokens():
    sent = json.dumps({"tools": listed()}, separators=(",", ":"), ensure_ascii=False)
    assert len(sent) / CHARS_PER_TOKEN < 1200


@pytest.mark.parametrize("spec", BY_NAME.values(), ids=BY_NAME)
def test_limits_of_a_tool(spec):
    assert len(spec.parameters["properties"]) <= 8
    assert len(spec.description.split()) <= 80


@pytest.mark.parametrize("spec", BY_NAME.values(), ids=BY_NAME)
def test_the_schemas_are_valid(spec):
    jsonschema = pytest.importorskip("jsonschema")
    for schema in (spec.parameters, spec.result):
        jsonschema.Draft202012Validator.check_schema(schema)
        assert schema["type"] == "object"


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("memory_search", {"query": "printer"}),
        ("memory_search", {"query": "nothing like this at all"}),
        ("memory_get", {"path": "MEMORY.md"}),
        ("memory_get", {"path": "MEMORY.md", "lines": 1}),
        ("memory_list", {}),
        ("memory_list", {"maxResults": 2, "source": "memory"}),
        ("memory_write", {"text": "The pelican eats at nine.", "category": "fact", "importance": 7}),
        ("memory_forget", {"entry": "MEMORY.md#L3"}),
    ],
)
def test_results_match_their_schema(tools, name, arguments):
    jsonschema = pytest.importorskip("jsonschema")
    spec = BY_NAME[name]
    jsonschema.validate(arguments, spec.parameters)
    jsonschema.validate(json.loads(tools.call(name, arguments).text), spec.result)


def test_openai_function_calling():
    chat = memory_tools.openai()
    assert [tool["type"] for tool in chat] == ["function"] * 3
    assert [tool["function"]["name"] for tool in chat] == ["memory_search", "memory_get", "memory_list"]
    assert chat[0]["function"]["parameters"]["required"] == ["query"]
    responses = memory_tools.openai(api="responses")
    assert [tool["name"] for tool in responses] == ["memory_search", "memory_get", "memory_list"]
    assert responses[0]["parameters"] == chat[0]["function"]["parameters"]


def test_anthropic_function_calling():
    assert [(tool["name"], set(tool)) for tool in memory_tools.anthropic()] == [
        ("memory_search", {"name", "description", "input_schema"}),
        ("memory_get", {"name", "description", "input_schema"}),
        ("memory_list", {"name", "description", "input_schema"}),
    ]


def test_a_read_only_memory_offers_no_tool_that_writes(memory):
    reading = ["memory_search", "memory_get", "memory_list"]
    every = MemoryTools(memory)
    assert [tool["name"] for tool in every.anthropic()] == [*reading, "memory_write", "memory_forget"]
    assert "memory_write" in every.prompt()
    assert "memory_forget only when the person you work for asks" in every.prompt()
    some = MemoryTools(memory, read_only=True)
    assert [tool["function"]["name"] for tool in some.openai()] == reading
    assert "memory_write" not in some.prompt()
    for name, arguments in (("memory_write", {"text": "x y z"}), ("memory_forget", {"entry": "MEMORY.md#L3"})):
        assert "there is no tool" in some.call(name, arguments).document["error"]["message"]
