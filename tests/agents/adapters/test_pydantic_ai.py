"""The pydantic-ai toolset, driven by pydantic-ai's own fake models."""

from __future__ import annotations

import asyncio

import pytest

pytest.importorskip("pydantic_ai", reason="needs the extra `pydantic-ai`")

from pydantic_ai import Agent, UnexpectedModelBehavior
from pydantic_ai.messages import ModelResponse, RetryPromptPart, TextPart, ToolCallPart, ToolReturnPart
from pydantic_ai.models.function import FunctionModel
from pydantic_ai.models.test import TestModel

from notewell.agents.adapters.pydantic_ai import MemoryToolset
from notewell.agents.tools import MemoryTools

TestModel.__test__ = False  # a model, not a test


def run(agent: Agent, question: str):
    return asyncio.run(agent.run(question))


def parts_of(result, kind) -> list:
    return [part for message in result.all_messages() for part in message.parts if isinstance(part, kind)]


def scripted(*calls: ToolCallPart):
    """A model that makes one call after the other, whatever comes back, and then says it is done."""
    seen = []

    def answer(messages, info):
        seen.append(info)
        made = sum(isinstance(part, ToolCallPart) for message in messages for part in message.parts)
        return ModelResponse([calls[made]] if made < len(calls) else [TextPart("done")])

    return FunctionModel(answer), seen


def test_every_tool_can_be_called_by_the_test_model(memory):
    model = TestModel(call_tools=["memory_search", "memory_list"])
    result = run(Agent(model, toolsets=[MemoryToolset(memory)]), "hello")
    returned = {part.tool_name: part.content for part in parts_of(result, ToolReturnPart)}
    assert returned["memory_list"]["total"] == 7
    assert set(returned["memory_search"]) >= {"hits", "mode", "notes"}
    assert {tool.name for tool in model.last_model_request_parameters.function_tools} == {
        "memory_search",
        "memory_get",
        "memory_list",
        "memory_write",
        "memory_forget",
    }


def test_the_model_gets_the_tool_result_and_the_prompt_section(memory):
    memory.index()
    model, seen = scripted(
        ToolCallPart("memory_search", {"query": "guest wifi", "maxResults": 1}),
        ToolCallPart("memory_get", {"path": "memory/network.md", "from": 3, "lines": 3}),
    )
    result = run(Agent(model, toolsets=[MemoryToolset(memory)]), "which VLAN?")
    assert result.output == "done"
    found, read = [part.content for part in parts_of(result, ToolReturnPart)]
    assert found == MemoryTools(memory).call("memory_search", {"query": "guest wifi", "maxResults": 1}).document
    assert found["hits"][0]["snippet"].startswith("<recalled-memory origin=")
    assert "VLAN 30" in read["text"]
    assert seen[0].instructions.startswith("## Memory\nLong-term memory holds 7 files")
    specs = {tool.name: tool for tool in seen[0].function_tools}
    for spec in MemoryTools(memory).specs:
        assert specs[spec.name].description == spec.description
        assert specs[spec.name].parameters_json_schema == spec.parameters


def test_an_error_asks_the_model_to_try_again_with_the_next_step(memory):
    model, _ = scripted(
        ToolCallPart("memory_get", {"path": "../secret.md"}), ToolCallPart("memory_search", {"query": "printer"})
    )
    result = run(Agent(model, toolsets=[MemoryToolset(memory)]), "x")
    told = parts_of(result, (RetryPromptPart, ToolReturnPart))  # older releases have a part of its own for it
    assert "not a memory file" in told[0].content
    assert isinstance(told[0], RetryPromptPart) or told[0].outcome == "retried"
    assert result.output == "done"


def test_a_model_that_never_learns_ends_the_run(memory):
    model, _ = scripted(*[ToolCallPart("memory_search", {"max": 1})] * 4)
    with pytest.raises(UnexpectedModelBehavior):
        run(Agent(model, toolsets=[MemoryToolset(memory, max_retries=1)]), "x")


def test_appending_is_offered_when_asked_for(memory):
    model, _ = scripted(ToolCallPart("memory_write", {"text": "The cat is called Pixel.", "path": "memory/pets.md"}))
    run(Agent(model, toolsets=[MemoryToolset(memory, instructions=False)]), "x")
    assert "The cat is called Pixel." in (memory.workspace / "memory" / "pets.md").read_text(encoding="utf-8")
