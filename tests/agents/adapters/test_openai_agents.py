"""The OpenAI Agents SDK: function tools and the session, run by the SDK's runner with a fake model."""

from __future__ import annotations

import asyncio
import json
import random

import pytest

pytest.importorskip("agents", reason="needs the extra `openai-agents`")

from agents.items import ModelResponse
from agents.memory import Session, SessionSettings
from agents.models.interface import Model
from agents.usage import Usage
from openai.types.responses import (
    ResponseFunctionToolCall,
    ResponseOutputMessage,
    ResponseOutputText,
)

from agents import Agent, RunConfig, Runner, SQLiteSession
from notewell import Memory
from notewell.agents.adapters.openai_agents import ConversationSession, memory_function_tools
from notewell.agents.tools import MemoryTools
from notewell.sessions import Message

pytest.importorskip("pyjson5", reason="needs the extra `sessions`")


class ScriptedModel(Model):
    """Answers with one prepared output after the other, and remembers what it was asked."""

    def __init__(self, *outputs) -> None:
        self.outputs = list(outputs)
        self.inputs: list = []
        self.tools: list = []

    async def get_response(self, system_instructions, input, model_settings, tools, *args, **kwargs):  # noqa: A002
        self.inputs.append(input)
        self.tools = tools
        return ModelResponse(output=[self.outputs.pop(0)], usage=Usage(), response_id=None)

    async def stream_response(self, *args, **kwargs):
        raise AssertionError("nothing here streams")
        yield


def said(text: str) -> ResponseOutputMessage:
    content = ResponseOutputText(type="output_text", text=text, annotations=[])
    return ResponseOutputMessage(id="msg_1", type="message", role="assistant", status="completed", content=[content])


def call(name: str, **arguments) -> ResponseFunctionToolCall:
    return ResponseFunctionToolCall(
        id="fc_1", type="function_call", call_id=f"call_{name}", name=name, arguments=json.dumps(arguments)
    )


def run(model: Model, question: str, **options):
    agent = Agent(name="test", model=model, tools=options.pop("tools", []))
    return Runner.run(agent, question, run_config=RunConfig(tracing_disabled=True), **options)


# --- tools ------------------------------------------------------------------------------------------


def test_the_runner_calls_the_tools(memory):
    model = ScriptedModel(
        call("memory_search", query="guest wifi", maxResults=1), call("memory_get", path="../x.md"), said("VLAN 30")
    )
    result = asyncio.run(run(model, "which VLAN?", tools=memory_function_tools(memory)))
    assert result.final_output == "VLAN 30"
    assert [tool.name for tool in model.tools] == [spec.name for spec in MemoryTools(memory).specs]
    outputs = [item["output"] for item in result.to_input_list() if item.get("type") == "function_call_output"]
    expected = MemoryTools(memory).call("memory_search", {"query": "guest wifi", "maxResults": 1}).document
    assert json.loads(outputs[0]) == expected
    assert json.loads(outputs[1])["error"]["kind"] == "path_refused"


# --- the session ------------------------------------------------------------------------------------


def test_it_is_a_session(memory):
    assert isinstance(ConversationSession(memory, "x"), Session)


def test_a_conversation_goes_on_where_it_ended(memory):
    first = ScriptedModel(call("memory_search", query="tea"), said("Noted: Pixel."))
    session = ConversationSession(memory, "Customer #42")
    tools = memory_function_tools(memory)
    asyncio.run(run(first, "my cat is called Pixel", session=session, tools=tools))
    second = ScriptedModel(said("Pixel."))
    asyncio.run(run(second, "what is my cat called?", session=ConversationSession(memory, "Customer #42")))
    kinds = [item.get("type") or item["role"] for item in second.inputs[0]]
    assert kinds == ["user", "function_call", "function_call_output", "message", "user"]
    stored = memory.conversations.get(session.stored_id)
    assert session.stored_id.startswith("customer-42-")
    assert [(message.role, message.text) for message in stored.messages if message.text and message.role != "tool"] == [
        ("user", "my cat is called Pixel"),
        ("assistant", "Noted: Pixel."),
        ("user", "what is my cat called?"),
        ("assistant", "Pixel."),
    ]


ITEMS = [
    {"role": "user", "content": "hello"},
    {
        "role": "user",
        "content": [{"type": "input_text", "text": "look"}, {"type": "input_image", "image_url": "data:x"}],
    },
    {
        "type": "message",
        "role": "assistant",
        "id": "m",
        "status": "completed",
        "content": [{"type": "output_text", "text": "ok", "annotations": []}],
    },
    {"type": "function_call", "call_id": "c1", "name": "f", "arguments": '{"a": 1}'},
    {"type": "function_call_output", "call_id": "c1", "output": "done"},
    {"type": "reasoning", "id": "r", "summary": [{"type": "summary_text", "text": "hm"}]},
    {"role": "developer", "content": "be brief"},
    {"role": "assistant", "content": "ünï ✓\nline"},
    {"type": "file_search_call", "id": "s", "queries": ["q"], "status": "completed", "results": None},
]


@pytest.mark.parametrize("seed", range(6))
def test_it_does_what_the_sdks_own_session_does(seed, memory):
    async def use() -> None:
        rng = random.Random(seed)
        ours, theirs = ConversationSession(memory, f"s{seed}"), SQLiteSession(f"s{seed}")
        try:
            for _ in range(15):
                added = rng.choices(ITEMS, k=rng.randint(0, 3))
                action = rng.choice(["add", "add", "pop", "clear"] if rng.random() < 0.2 else ["add", "pop"])
                for session in (ours, theirs):
                    if action == "add":
                        await session.add_items(added)
                    elif action == "clear":
                        await session.clear_session()
                if action == "pop":
                    assert await ours.pop_item() == await theirs.pop_item()
                limit = rng.choice([None, 0, 1, 2, 50])
                assert await ours.get_items(limit) == await theirs.get_items(limit)
        finally:
            theirs.close()

    asyncio.run(use())


def test_the_settings_limit_what_is_read(memory):
    async def use() -> list:
        await ConversationSession(memory, "x").add_items(ITEMS)
        return await ConversationSession(memory, "x", session_settings=SessionSettings(limit=2)).get_items()

    assert asyncio.run(use()) == ITEMS[-2:]


def test_a_session_of_another_program_is_read_and_popped(memory):
    memory.conversations.create("other")
    call_message = {
        "role": "assistant",
        "content": "I look",
        "toolCalls": [{"id": "t", "name": "f", "arguments": {"a": 1}}],
    }
    memory.conversations.append("other", {"role": "user", "content": "hi"}, call_message)
    memory.conversations.append("other", Message("tool", "found", tool_call_id="t"))

    async def use() -> None:
        session = ConversationSession(memory, "other")
        said_first = [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "I look"}]
        calling = {"type": "function_call", "call_id": "t", "name": "f", "arguments": '{"a": 1}'}
        answer = {"type": "function_call_output", "call_id": "t", "output": "found"}
        assert await session.get_items() == [*said_first, calling, answer]
        assert await session.pop_item() == answer
        assert await session.pop_item() == calling
        assert await session.get_items() == said_first

    asyncio.run(use())


def test_compacted_messages_appear_as_their_summary(memory):
    async def use() -> list:
        session = ConversationSession(memory, "x")
        await session.add_items([{"role": "user", "content": f"message {n}"} for n in range(5)])
        await asyncio.to_thread(memory.conversations.compact, "x", "They counted.", keep_last=1)
        return await session.get_items()

    assert asyncio.run(use()) == [
        {"role": "system", "content": "They counted."},
        {"role": "user", "content": "message 4"},
    ]


def test_messages_are_searchable(workspace):
    with Memory.open(
        workspace, provider="none", sources=("memory", "sessions"), experimental__session_memory=True
    ) as memory:
        asyncio.run(
            ConversationSession(memory, "x").add_items([{"role": "user", "content": "the boat is called Andorinha"}])
        )
        memory.index(source="sessions")
        assert [hit.path for hit in memory.search("Andorinha").hits] == ["sessions/chats/x.json5"]
