"""What many tests share: a clean environment and small real workspaces."""

from __future__ import annotations

import gc
import os
import shutil
from collections.abc import Generator, Iterator
from pathlib import Path

import pytest
from hypothesis import settings

from notewell.store.sqlite import connection

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # as the command does: tests run side by side
settings.register_profile("untimed", deadline=None)  # the machine that runs this may be busy
settings.load_profile("untimed")

LONG_AGO = 1_780_000_000  # seconds; any time that is past
REPOSITORY = Path(__file__).parent.parent
FSYNC, SYNCHRONOUS = os.fsync, connection.SYNCHRONOUS
GOLDEN = REPOSITORY.parent / "shared" / "golden"


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """What collecting leaves in memory stays there: looking for garbage in it takes longer than most tests."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()
        gc.freeze()
        gc.set_threshold(20_000, 10, 10)  # few tests leave that much; those of leaks collect by themselves


@pytest.fixture(scope="session", autouse=True)
def no_power_cut() -> Iterator[None]:
    """Files are written as ever, but no test waits for the disk, which takes longer than all else; see `synced`."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", os.fstat)  # fails for what is not open, too
        patch.setattr(connection, "SYNCHRONOUS", "OFF")
        yield


@pytest.fixture(scope="module")
def synced(no_power_cut: None) -> Iterator[None]:
    """Files are brought to disk as in production, for tests of failing disks."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", FSYNC)
        patch.setattr(connection, "SYNCHRONOUS", SYNCHRONOUS)
        yield


@pytest.fixture(autouse=True)
def clean_environment(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> None:
    """No setting of the person who runs the tests gets in."""
    for name in [name for name in os.environ if name.startswith("NOTEWELL_")]:
        monkeypatch.delenv(name)
    for provider in ("OPENAI", "GEMINI", "GOOGLE", "VOYAGE", "MISTRAL"):
        monkeypatch.delenv(f"{provider}_API_KEY", raising=False)
    monkeypatch.setenv("NOTEWELL_CONFIG", os.devnull)
    for program in ("OPENCLAW_STATE_DIR", "CLAUDE_CONFIG_DIR", "CODEX_HOME"):  # whose conversations are offered
        monkeypatch.setenv(program, str(tmp_path_factory.getbasetemp() / "no-such-program"))
    monkeypatch.setenv("NOTEWELL_REDACTION_KEY_FILE", str(tmp_path_factory.getbasetemp() / "redaction.key"))


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    """A small memory: durable facts, dated notes, a nested folder, three languages."""
    folder = tmp_path / "workspace"
    notes = {
        "MEMORY.md": "# Memory\n\n- Owner: Dana Whitfield, lives in Lisbon.\n- Prefers tea over coffee.\n",
        "memory/network.md": (
            "# Network\n\n## Guest wifi\n\nThe guest network is VLAN 30, its name is heron-guest.\n\n"
            "## Printer\n\nThe printer has the address 192.168.10.7 and jams on thick paper.\n"
        ),
        "memory/2026-11-01.md": "# 2026-11-01\n\nDecided to keep PostgreSQL for billing; ticket HARB-214 is closed.\n",
        "memory/projects/queue.md": "# Queue\n\nRestart the queue with `systemctl restart harbor-queue`.\n",
        "memory/中文.md": "# 采购\n\n服务器将在下周进行数据库迁移。\n",
        "memory/日本語.md": "# 運用\n\nデータベースのバックアップは毎晩二時に実行する。\n",
        "memory/한국어.md": "# 회의\n\n데이터베이스 이전은 금요일에 진행합니다.\n",
    }
    for path, text in notes.items():
        file = folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
        os.utime(file, (LONG_AGO, LONG_AGO))  # a note that was just written is looked at once more by the next sync
    return folder


@pytest.fixture
def example(tmp_path: Path) -> Path:
    """A copy of the example workspace."""
    folder = tmp_path / "example"
    shutil.copytree(REPOSITORY / "examples" / "workspace", folder, ignore=shutil.ignore_patterns(".notewell"))
    return folder


@pytest.fixture(scope="session")
def golden() -> Path:
    """What OpenClaw answers on a fixed workspace; not part of the project."""
    if not GOLDEN.is_dir():
        pytest.skip("the recorded answers of OpenClaw are not beside the repository (../shared/golden)")
    return GOLDEN
