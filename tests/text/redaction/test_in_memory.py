"""Redaction in use: no secret of a conversation, or of a note by setting, reaches index, cache or answer."""

from __future__ import annotations

import json

import pytest

from notewell import Memory
from notewell.embedding.hashing import HashingEmbedder

TOKEN = "ghp_" + "a1B2c3D4e5F6" * 3
KEY = "\n".join(
    ["-----BEGIN PRIVATE KEY-----", *["MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcw"] * 6, "-----END PRIVATE KEY-----"]
)


class Listening(HashingEmbedder):
    """Remembers what it was given to embed."""

    def __init__(self) -> None:
        super().__init__()
        self.heard: list[str] = []

    def embed_documents(self, texts):
        self.heard += texts
        return super().embed_documents(texts)


def holders(folder) -> list[str]:
    """Return the files below a folder that hold the secret, as it is written or as its term."""
    forms = (TOKEN.encode(), TOKEN.lower().encode(), b"MIIEvQIBADANBg", b"miievqibadanbg")
    return [
        path.name for path in folder.rglob("*") if path.is_file() and any(form in path.read_bytes() for form in forms)
    ]


@pytest.fixture
def noted(workspace):
    text = (
        f"# Keys\n\nThe deploy token is {TOKEN} since May.\n\n{KEY}\n\n## Printer\n\nThe orchid printer is upstairs.\n"
    )
    (workspace / "memory" / "keys.md").write_text(text)
    return workspace


def test_secrets_of_notes_stay_unless_the_setting_says_otherwise(noted):
    with Memory.open(noted, embedder=HashingEmbedder()) as memory:
        memory.index()
        assert TOKEN in memory.get("memory/keys.md").text


def test_with_the_setting_no_secret_of_a_note_gets_anywhere(noted):
    embedder = Listening()
    with Memory.open(noted, embedder=embedder, redaction__notes=True) as memory:
        memory.index()
        shown = memory.get("memory/keys.md").text
        (hit, *_) = memory.search("orchid printer").hits
        token = memory.search("deploy token").hits[0].snippet
    assert holders(noted / ".notewell") == []
    assert TOKEN not in "".join(embedder.heard)
    assert "[secret:github-token:" in shown
    assert "[secret:github-token:" in token
    lines = (noted / "memory" / "keys.md").read_text().split("\n")
    assert hit.first_line <= lines.index("The orchid printer is upstairs.") + 1 <= hit.last_line
    assert TOKEN in (noted / "memory" / "keys.md").read_text()


def test_turning_it_on_builds_the_index_anew(noted):
    with Memory.open(noted, embedder=HashingEmbedder()) as memory:
        memory.index()
    with Memory.open(noted, embedder=HashingEmbedder(), redaction__notes=True) as memory:
        assert memory.index().rebuilt
        assert TOKEN not in memory.search("deploy token").hits[0].snippet
        memory.forget(match="a text that is nowhere", for_good=True)  # which also wipes what the cache knew
    assert holders(noted / ".notewell") == []


def test_secrets_of_conversations_never_get_anywhere(workspace, tmp_path):
    transcripts = tmp_path / "other"
    transcripts.mkdir()
    messages = [
        {"role": "user", "content": f"use {TOKEN} for the orchid deploy"},
        {"role": "assistant", "content": [{"type": "text", "text": f"here is the key\n{KEY}\ndone"}]},
    ]
    lines = [json.dumps({"type": "message", "message": message}) for message in messages]
    (transcripts / "a.jsonl").write_text("\n".join(lines) + "\n")
    embedder = Listening()
    options = {
        "sources": ["memory", "sessions"],
        "experimental__session_memory": True,
        "sessions__paths": [str(transcripts)],
    }
    with Memory.open(workspace, embedder=embedder, **options) as memory:
        memory.index()
        (hit, *_) = memory.search("orchid deploy").hits
        assert "[secret:github-token:" in hit.snippet
        assert TOKEN not in memory.get(hit.path).text
    assert holders(workspace) == []
    assert "MIIEvQ" not in "".join(embedder.heard)
