"""The kill loop over conversations, bounded; `python -m tests.soak conversations` is the long one."""

from __future__ import annotations

import pytest

from tests.soak import conversations

pytestmark = pytest.mark.slow


def test_kills_lose_no_message_double_none_and_leave_nothing_that_was_forgotten(tmp_path, monkeypatch):
    monkeypatch.setenv("NOTEWELL_CONFIG", "/dev/null")
    assert conversations.run(tmp_path, count=15, seed=20261118)
