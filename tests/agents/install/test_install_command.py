"""`notewell install` for every client: install, reinstall and uninstall."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
import tomllib
from contextlib import chdir, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path

import pytest

from notewell.agents.editing import values_of
from notewell.agents.install import CLIENTS
from notewell.cli.main import run

FILES = {
    "claude-code": ".claude.json",
    "claude-desktop": {
        "darwin": "Library/Application Support/Claude/claude_desktop_config.json",
        "win32": "AppData/Roaming/Claude/claude_desktop_config.json",
    }.get(sys.platform, ".config/Claude/claude_desktop_config.json"),
    "codex": ".codex/config.toml",
    "openclaw": ".openclaw/openclaw.json",
    "cursor": ".cursor/mcp.json",
    "vscode": {
        "darwin": "Library/Application Support/Code/User/mcp.json",
        "win32": "AppData/Roaming/Code/User/mcp.json",
    }.get(sys.platform, ".config/Code/User/mcp.json"),
}
OTHERS = {
    "claude-code": '{\n  "numStartups": 3,\n  "mcpServers": {\n    "other": {\n      "command": "x"\n    }\n  }\n}\n',
    "claude-desktop": '{\n  "shortcut": "",\n  "mcpServers": {\n    "other": {\n      "command": "x"\n    }\n  }\n}\n',
    "codex": '# mine\nmodel = "gpt-5.5"\n\n[mcp_servers.other]\ncommand = "x"\n',
    "openclaw": "{\n  // mine\n  mcp: {\n    servers: {\n      other: { command: 'x' },\n    },\n  },\n}\n",
    "cursor": '{"mcpServers": {"other": {"command": "x"}}}',
    "vscode": '{\n\t// mine\n\t"servers": {\n\t\t"other": {\n\t\t\t"command": "x",\n\t\t},\n\t},\n\t"inputs": [],\n}\n',
}


@pytest.fixture
def home(tmp_path, monkeypatch):
    folder = tmp_path / "home"
    folder.mkdir()
    for name in ("CLAUDE_CONFIG_DIR", "CODEX_HOME", "XDG_CONFIG_HOME", "APPDATA"):
        monkeypatch.delenv(name, raising=False)
    for name in [name for name in os.environ if name.startswith("OPENCLAW_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(folder))
    monkeypatch.setenv("USERPROFILE", str(folder))
    return folder


@dataclass(frozen=True)
class Done:
    """What the command printed."""

    stdout: str
    stderr: str


def install(*words: object, cwd: Path | None = None, code: int = 0) -> Done:
    """Run the command in this process."""
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err), chdir(cwd or Path.cwd()):
        returned = run(["install", *map(str, words)])
    assert returned == code, out.getvalue() + err.getvalue()
    return Done(out.getvalue(), err.getvalue())


def servers_in(client: str, file: Path) -> dict:
    text = file.read_text(encoding="utf-8")
    values = tomllib.loads(text) if client == "codex" else values_of(text)
    for key in CLIENTS[client].keys:
        values = values.get(key, {})
    return values


@pytest.mark.parametrize("client", FILES)
def test_install_reinstall_and_uninstall(client, home, workspace):
    file = home / FILES[client]
    install(client, "-w", workspace)
    entry = servers_in(client, file)["memory"]
    assert entry["args"][-3:] == ["mcp", "--workspace", str(workspace)]
    assert Path(entry["command"]).is_absolute()
    first = file.read_bytes()
    assert "already in" in install(client, "-w", workspace).stdout
    assert file.read_bytes() == first
    assert [path.name for path in file.parent.iterdir() if path.name.endswith(".bak")] == []
    if os.name != "nt":
        assert file.stat().st_mode & 0o777 == 0o600
    install(client, "--uninstall")
    assert servers_in(client, file) == {}
    assert "not in" in install(client, "--uninstall").stdout


@pytest.mark.parametrize("client", FILES)
def test_other_settings_stay_and_a_backup_is_kept(client, home, workspace):
    file = home / FILES[client]
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(OTHERS[client], encoding="utf-8", newline="\n")
    done = json.loads(install(client, "-w", workspace, "--json").stdout)
    assert Path(done["backup"]).read_text(encoding="utf-8") == OTHERS[client]
    assert set(servers_in(client, file)) == {"other", "memory"}
    if "mine" in OTHERS[client]:
        assert "mine" in file.read_text(encoding="utf-8")
    install(client, "--uninstall")
    assert file.read_text(encoding="utf-8") == OTHERS[client]
    assert not list(file.parent.glob("*.tmp"))


@pytest.mark.parametrize("client", FILES)
def test_a_dry_run_shows_the_change_and_writes_nothing(client, home, workspace):
    shown = install(client, "-w", workspace, "--dry-run").stdout
    assert "+" in shown
    assert "memory" in shown
    assert list(home.rglob("*")) == []


def test_a_move_changes_the_entry_and_keeps_what_people_added_to_it(home, workspace, tmp_path):
    install("claude-code", "-w", workspace)
    file = home / ".claude.json"
    values = json.loads(file.read_text())
    values["mcpServers"]["memory"]["env"] = {"NOTEWELL_PROVIDER": "none"}
    file.write_text(json.dumps(values, indent=2))
    other = tmp_path / "other"
    (other / "memory").mkdir(parents=True)
    install("claude-code", "-w", other, "--agent", "helper", "--read-only")
    entry = servers_in("claude-code", file)["memory"]
    assert entry["args"][-6:] == ["mcp", "--workspace", str(other), "--agent", "helper", "--read-only"]
    assert entry["env"] == {"NOTEWELL_PROVIDER": "none"}


@pytest.mark.parametrize(
    ("client", "name", "args"),
    [
        pytest.param("claude-code", ".mcp.json", ["mcp"], id="claude-code"),
        pytest.param("cursor", ".cursor/mcp.json", ["mcp", "--workspace", "${workspaceFolder}"], id="cursor"),
        pytest.param("vscode", ".vscode/mcp.json", ["mcp", "--workspace", "${workspaceFolder}"], id="vscode"),
    ],
)
def test_a_projects_settings_hold_no_path_of_this_machine(client, name, args, home, workspace):
    install(client, "--scope", "project", cwd=workspace)
    entry = servers_in(client, workspace / name)["memory"]
    assert (entry["command"], entry["args"]) == ("notewell", args)
    assert str(home) not in (workspace / name).read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("words", "text", "message", "hint"),
    [
        pytest.param(["claude-code"], '{"a": ', "is not valid JSON: line 1", "fix it by hand", id="broken JSON"),
        pytest.param(["codex"], "a = \n", "is not valid TOML", "fix it by hand", id="broken TOML"),
        pytest.param(
            ["claude-code"],
            '{"mcpServers": {"memory": {"command": "npx", "args": ["-y", "server-memory"]}}}',
            "another server called 'memory'",
            "--name notewell",
            id="somebody else's server",
        ),
        pytest.param(
            ["codex"], "mcp_servers = {a = {command = 'x'}}\n", "cannot be changed safely", "by hand", id="inline table"
        ),
        pytest.param(["cursor"], '{"mcpServers": []}', "is not a table", "by hand", id="a list of servers"),
        pytest.param(["cursor", "--name", "a b"], "{}", "cannot be a server's name", "letters", id="a bad name"),
        pytest.param(
            ["codex", "--scope", "project"], "", "no trusted project settings", "--scope user", id="no project"
        ),
    ],
)
def test_an_error_changes_nothing(words, text, message, hint, home, workspace):
    file = home / FILES[words[0]]
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, encoding="utf-8", newline="\n")
    done = install(*words, "-w", workspace, code=1)
    assert message in done.stderr
    assert hint in done.stderr
    assert file.read_text(encoding="utf-8") == text


@pytest.mark.skipif(os.name == "nt", reason="links need rights on Windows")
def test_a_link_to_the_settings_stays_a_link(home, workspace, tmp_path):
    real = tmp_path / "dotfiles" / "claude.json"
    real.parent.mkdir()
    real.write_text("{}")
    (home / ".claude.json").symlink_to(real)
    install("claude-code", "-w", workspace)
    assert (home / ".claude.json").is_symlink()
    assert "memory" in servers_in("claude-code", real)


@pytest.mark.parametrize(
    ("client", "variable", "file"),
    [
        pytest.param("claude-code", "CLAUDE_CONFIG_DIR", "there/.claude.json", id="claude-code"),
        pytest.param("codex", "CODEX_HOME", "there/config.toml", id="codex"),
        pytest.param("openclaw", "OPENCLAW_STATE_DIR", "there/openclaw.json", id="openclaw"),
        pytest.param("openclaw", "OPENCLAW_HOME", "there/.openclaw/openclaw.json", id="openclaw's home"),
    ],
)
def test_the_clients_own_variables_are_honoured(client, variable, file, home, workspace, tmp_path, monkeypatch):
    monkeypatch.setenv(variable, str(tmp_path / "there"))
    install(client, "-w", workspace)
    assert "memory" in servers_in(client, tmp_path / file)


@pytest.mark.parametrize(
    ("platform", "expected"),
    [
        pytest.param("linux", ".config/Code/User/mcp.json", id="Linux"),
        pytest.param("darwin", "Library/Application Support/Code/User/mcp.json", id="macOS"),
        pytest.param("win32", "AppData/Roaming/Code/User/mcp.json", id="Windows"),
    ],
)
def test_visual_studio_code_keeps_its_settings_elsewhere_on_each_system(platform, expected, home, monkeypatch):
    monkeypatch.setattr(sys, "platform", platform)
    assert CLIENTS["vscode"].user_file(dict(os.environ)) == home / expected


@pytest.mark.slow
def test_it_works_as_a_process_of_its_own(home, workspace):
    words = [sys.executable, "-m", "notewell", "install", "cursor", "-w", str(workspace)]
    done = subprocess.run(words, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout) == (0, f"memory added to {home / '.cursor' / 'mcp.json'}\n")


@pytest.mark.parametrize(("words", "tools"), [([], 5), (["--read-only"], 3), (["--set", "tools.read_only=true"], 3)])
def test_it_says_which_tools_are_installed(home, workspace, words, tools):
    done = install("claude-desktop", "-w", workspace, *words)
    told = next(line for line in done.stderr.splitlines() if "tools: " in line)
    assert told.count("memory_") == tools
    assert ("read-only" in told) is (tools == 3)
    document = json.loads(install("claude-desktop", "-w", workspace, *words, "--json").stdout)
    assert len(document["tools"]) == tools


def test_openclaw_is_told_that_it_has_memory_tools_of_its_own(home, workspace):
    told = install("openclaw", "-w", workspace).stderr
    assert "OpenClaw's own memory tools stay beside these" in told
    assert "openclaw config set plugins.slots.memory none" in told
    assert "notewell install openclaw --uninstall" in told
    assert "stay beside" not in install("codex", "-w", workspace).stderr
