"""Loopback fakes of two model APIs. Their model asks for one tool once, then answers with the citation it was given.

Only what the clients under test use is there: Anthropic's Messages API and OpenAI's Responses API, both streamed.
"""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

CITATION = re.compile(r"[\w/.-]+\.md#L\d+-L\d+")
TOOL = "memory_search"


class FakeModel:
    """A scripted model: `question` goes to the tool, the tool's citation into the answer."""

    def __init__(self, question: str) -> None:
        self.question = question
        self.requests: list[dict[str, Any]] = []
        self.base_url = ""

    def answer(self, results: str) -> str:
        found = CITATION.search(results)
        return f"From memory. Source: {found[0]}" if found else f"No citation in: {results[:200]}"


def _events(handler: BaseHTTPRequestHandler, events: list[dict[str, Any]]) -> None:
    body = "".join(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n" for event in events).encode()
    handler.send_response(200)
    handler.send_header("content-type", "text/event-stream")
    handler.send_header("content-length", str(len(body)))
    handler.end_headers()
    handler.wfile.write(body)


def _json(handler: BaseHTTPRequestHandler, document: dict[str, Any], status: int = 200) -> None:
    body = json.dumps(document).encode()
    handler.send_response(status)
    handler.send_header("content-type", "application/json")
    handler.send_header("content-length", str(len(body)))
    handler.end_headers()
    handler.wfile.write(body)


# --- Anthropic's Messages API -------------------------------------------------------------------


def _message_events(block: dict[str, Any], delta: dict[str, Any], stop: str) -> list[dict[str, Any]]:
    usage = {"input_tokens": 10, "output_tokens": 10}
    message: dict[str, Any] = {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "claude-fake",
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
        "usage": usage,
    }
    return [
        {"type": "message_start", "message": message},
        {"type": "content_block_start", "index": 0, "content_block": block},
        {"type": "content_block_delta", "index": 0, "delta": delta},
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": {"stop_reason": stop, "stop_sequence": None}, "usage": usage},
        {"type": "message_stop"},
    ]


def _messages(model: FakeModel, asked: dict[str, Any]) -> list[dict[str, Any]]:
    names = [tool["name"] for tool in asked.get("tools", [])]
    wanted = next((name for name in names if name.endswith(TOOL)), None)
    blocks = [block for message in asked["messages"] for block in message["content"] if isinstance(block, dict)]
    results = [block for block in blocks if block.get("type") == "tool_result"]
    if wanted and not results:
        block = {"type": "tool_use", "id": "toolu_1", "name": wanted, "input": {}}
        delta = {"type": "input_json_delta", "partial_json": json.dumps({"query": model.question})}
        return _message_events(block, delta, "tool_use")
    text = model.answer(json.dumps(results)) if results else "ok"
    return _message_events({"type": "text", "text": ""}, {"type": "text_delta", "text": text}, "end_turn")


# --- OpenAI's Responses API ---------------------------------------------------------------------


def _response_events(item: dict[str, Any]) -> list[dict[str, Any]]:
    usage = {"input_tokens": 10, "output_tokens": 10, "total_tokens": 20}
    response = {"id": "resp_1", "object": "response", "status": "in_progress", "model": "gpt-fake", "output": []}
    done = response | {"status": "completed", "output": [item], "usage": usage}
    return [
        {"type": "response.created", "response": response},
        {"type": "response.output_item.done", "output_index": 0, "item": item},
        {"type": "response.completed", "response": done},
    ]


def _responses(model: FakeModel, asked: dict[str, Any]) -> list[dict[str, Any]]:
    results = [item for item in asked["input"] if item.get("type") == "function_call_output"]
    function = _function(asked.get("tools", []))
    if results or not function:
        text = model.answer(json.dumps(results)) if results else f"no {TOOL} among {json.dumps(asked.get('tools'))}"
        content = [{"type": "output_text", "text": text, "annotations": []}]
        return _response_events({"type": "message", "id": "msg_1", "role": "assistant", "content": content})
    call = {"type": "function_call", "id": "fc_1", "call_id": "call_1"} | function
    return _response_events(call | {"arguments": json.dumps({"query": model.question})})


def _function(tools: list[dict[str, Any]]) -> dict[str, str]:
    """Return how the tool is named: by itself, or inside a namespace; nothing when it is not offered."""
    for tool in tools:
        if tool.get("type") == "namespace":
            for inner in tool["tools"]:
                if inner.get("name", "").endswith(TOOL):
                    return {"name": inner["name"], "namespace": tool["name"]}
        elif tool.get("name", "").endswith(TOOL):
            return {"name": tool["name"]}
    return {}


# --- serving ------------------------------------------------------------------------------------


@contextmanager
def fake_model(question: str) -> Iterator[FakeModel]:
    """Serve both APIs on a free port; `requests` holds what the client asked the model."""
    model = FakeModel(question)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            _json(self, {"data": [], "object": "list", "models": []})

        def do_HEAD(self) -> None:
            self.send_response(200)
            self.end_headers()

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers.get("content-length", 0)))
            path = self.path.partition("?")[0]
            if path.endswith("/count_tokens"):
                _json(self, {"input_tokens": 10})
                return
            if not path.endswith(("/messages", "/responses")):
                _json(self, {})
                return
            asked = json.loads(body)
            model.requests.append(asked)
            _events(self, (_messages if path.endswith("/messages") else _responses)(model, asked))

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    model.base_url = f"http://127.0.0.1:{server.server_port}"
    try:
        yield model
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
