"""A workspace and a user file in a temporary folder, and a loader that sees nothing of the machine it runs on."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from notewell.settings import Resolved, load_settings

Load = Callable[..., Resolved]


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    folder = tmp_path / "workspace"
    folder.mkdir()
    return folder


@pytest.fixture
def user_file(tmp_path: Path) -> Path:
    return tmp_path / "config.toml"


@pytest.fixture
def load(workspace: Path, user_file: Path) -> Load:
    def load_texts(
        *,
        user: str = "",
        shared: str | None = None,
        environ: Mapping[str, str] | None = None,
        flags: Mapping[str, object] | None = None,
        agent: str = "main",
    ) -> Resolved:
        user_file.write_text(user, encoding="utf-8")
        if shared is not None:
            (workspace / "notewell.toml").write_text(shared, encoding="utf-8")
        return load_settings(workspace, agent=agent, flags=flags or {}, environ=environ or {}, user_file=user_file)

    return load_texts
