"""Stores in real folders, and what a store looks like to somebody who only reads its files."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("pyjson5", reason="conversations need the extra `sessions`")

from notewell.sessions import ConversationStore, Session


@pytest.fixture
def store(tmp_path: Path) -> ConversationStore:
    return ConversationStore(tmp_path / "sessions", lock_timeout_s=5)


@pytest.fixture
def chat(store: ConversationStore) -> str:
    """A session with two messages; gives its id."""
    name = store.create("chat-1", title="Trip").session_id
    store.append(name, {"role": "user", "content": "Where do we go?"}, {"role": "assistant", "content": "To Lisbon."})
    return name


def texts(session: Session) -> list[str]:
    return [message.text for message in session.messages]
