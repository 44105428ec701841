"""Records as the programs write them, for tests: shapes checked against real transcripts, contents our own."""

from __future__ import annotations

import json
from typing import Any

AT = "2026-03-04T10:00:00.000Z"


def openclaw(role: str, content: object, *, at: object = AT) -> dict[str, Any]:
    return {
        "type": "message",
        "id": "a1",
        "parentId": None,
        "timestamp": at,
        "message": {"role": role, "content": content},
    }


def claude(role: str, content: object, *, at: object = AT, **marks: object) -> dict[str, Any]:
    record = {"parentUuid": None, "isSidechain": False, "userType": "external", "cwd": "/home/x", "sessionId": "s1"}
    return record | {"type": role, "message": {"role": role, "content": content}, "uuid": "u1", "timestamp": at} | marks


def codex(payload: dict[str, Any], *, kind: str = "response_item", at: object = AT) -> dict[str, Any]:
    return {"timestamp": at, "type": kind, "payload": payload}


def codex_message(role: str, text: str) -> dict[str, Any]:
    block = "output_text" if role == "assistant" else "input_text"
    return codex({"type": "message", "role": role, "content": [{"type": block, "text": text}]})


def text_block(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}


def jsonl(*records: object) -> bytes:
    """Return records as lines; bytes are taken as a line of their own."""
    lines = [record if isinstance(record, bytes) else json.dumps(record).encode() for record in records]
    return b"".join(line + b"\n" for line in lines)
