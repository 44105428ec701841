"""Workspaces with conversations, for tests: transcripts are written, grown and rewritten as programs do it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from notewell import Memory

WORDS = "harbour boat printer network queue postgres backup garden tea Lisbon 数据库 バックアップ".split()


def message(number: int, words: int = 12) -> dict[str, Any]:
    """Return a record of OpenClaw; every number says something else."""
    said = " ".join(
        WORDS[(number * 7 + step) % len(WORDS)] + ("" if step % 9 else f" at{step}") for step in range(words)
    )
    role = "assistant" if number % 2 else "user"
    at = f"2026-03-{number % 28 + 1:02d}T12:00:00Z"
    return {"type": "message", "timestamp": at, "message": {"role": role, "content": f"subject{number} {said}"}}


def lines(first: int, stop: int, words: int = 12) -> bytes:
    return b"".join(json.dumps(message(number, words)).encode() + b"\n" for number in range(first, stop))


def append(file: Path, text: bytes) -> None:
    with file.open("ab") as handle:
        handle.write(text)


def open_memory(workspace: Path, talks: Path, *, provider: str = "hashing", **options: Any) -> Memory:
    """Open a memory whose conversations lie in `talks`."""
    workspace.mkdir(exist_ok=True)
    return Memory.open(
        workspace,
        provider=provider,
        sources=["memory", "sessions"],
        experimental__session_memory=True,
        sessions__paths=[str(talks)],
        **options,
    )


def documents_of(memory: Memory) -> dict[str, tuple[int, str, object]]:
    """Return size, hash and date of every transcript, as remembered."""
    with memory._components.index.use() as store:
        assert store is not None
        with store.reading() as snapshot:
            stored = dict(snapshot.documents("sessions"))
    return {path: (each.stamp.size, each.content_hash, each.dated) for (_, path), each in stored.items()}


def position_of(memory: Memory, path: str) -> int:
    """Return the byte up to which a transcript is indexed."""
    with memory._components.index.use() as store:
        assert store is not None
        with store.reading() as snapshot:
            cursor = snapshot.cursor("sessions", path)
    return int(json.loads(cursor)["bytes"]) if cursor else 0
