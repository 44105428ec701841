"""Settings of OpenClaw under our names: what is translated, what is left out, and what the file then means."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

import pytest

from notewell.errors import SettingsError
from notewell.settings import load_settings
from notewell.settings.openclaw_import import (
    NOT_TRANSLATED,
    RENAMED,
    ignored_settings,
    translate_file,
    write_settings,
)

PAGE = Path(__file__).parents[2] / "docs" / "openclaw.md"

FULL_YAML = """
memory:
  enabled: true
  sources:
    - memory        # MEMORY.md and memory/
    - sessions      # Session transcripts
  provider: auto    # auto, openai, gemini, voyage, local
  model: text-embedding-3-small
  fallback: gemini
  chunking:
    tokens: 512
    overlap: 128
  query:
    hybrid:
      enabled: true
      vectorWeight: 0.7
      keywordWeight: 0.3
  cache:
    enabled: true
    maxEntries: 10000
"""
SHORT_YAML = """
# config.yaml
memory:
  enabled: true
  workspace: ./workspace
  chunkSize: 2048
  embedding:
    provider: openai
    model: text-embedding-3-small
  cache:
    maxEntries: 1000
"""
AGENTS_JSON5 = """{
  gateway: {port: 18789},  // not about memory
  memory: {citations: "on"},
  agents: {
    defaults: {
      workspace: "~/clawd",
      memorySearch: {
        extraPaths: ["../shared"],
        remote: {baseUrl: "https://gateway.example/v1", apiKey: "${OPENAI_API_KEY}", headers: {"X-Team": "memory"},
                 batch: {enabled: true, pollIntervalMs: 2000.0, timeoutMinutes: 60}},
        local: {modelPath: "hf:ggml-org/embeddinggemma-300M-GGUF/embeddinggemma-300M-Q8_0.gguf"},
        store: {driver: "sqlite", path: "~/.openclaw/memory/{agentId}.sqlite", vector: {enabled: true}},
        sync: {onSessionStart: true, watchDebounceMs: 1500, sessions: {deltaBytes: 100000, deltaMessages: 50}},
        query: {maxResults: 6, minScore: 0.35,
                hybrid: {candidateMultiplier: 4, temporalDecay: {enabled: false, halfLifeDays: 90},
                         mmr: {enabled: true, lambda: 0.6}}},
      },
    },
    list: [
      {id: "main", default: true},
      {id: "Rev", memorySearch: {query: {maxResults: 3}, remote: {apiKey: "sk-secret-of-rev"}}},
      {id: "../up", memorySearch: {enabled: true}},
    ],
  },
}"""


RESOLVED = {  # every key of OpenClaw's ResolvedMemorySearchConfig, with its default where it has one
    "enabled": True,
    "sources": ["memory", "sessions"],
    "extraPaths": ["../shared"],
    "provider": "openai",
    "remote": {
        "baseUrl": "https://gateway.example/v1",
        "apiKey": "sk-of-the-gateway",
        "headers": {"X-Team": "memory"},
        "batch": {"enabled": True, "wait": True, "concurrency": 2, "pollIntervalMs": 2000, "timeoutMinutes": 60},
    },
    "experimental": {"sessionMemory": True},
    "fallback": "local",
    "model": "text-embedding-3-small",
    "local": {"modelPath": "/models/x.gguf", "modelCacheDir": "/models"},
    "store": {
        "driver": "sqlite",
        "path": "~/.openclaw/memory/{agentId}.sqlite",
        "vector": {"enabled": True, "extensionPath": "/lib/vec0.so"},
    },
    "chunking": {"tokens": 400, "overlap": 80},
    "sync": {
        "onSessionStart": True,
        "onSearch": True,
        "watch": True,
        "watchDebounceMs": 1500,
        "intervalMinutes": 0,
        "sessions": {"deltaBytes": 100_000, "deltaMessages": 50},
    },
    "query": {
        "maxResults": 6,
        "minScore": 0.35,
        "hybrid": {"enabled": True, "vectorWeight": 0.7, "textWeight": 0.3, "candidateMultiplier": 4},
    },
    "cache": {"enabled": True, "maxEntries": 50_000},
}


@pytest.fixture
def imported(tmp_path):
    """Translate a text and load the file that is made of it."""

    def translate(text: str, name: str = "config.yaml", agent: str = "main"):
        source, target = tmp_path / name, tmp_path / "made.toml"
        source.write_text(text, encoding="utf-8")
        done = translate_file(source)
        target.write_text(done.to_toml(), encoding="utf-8")
        return done, load_settings(None, user_file=target, environ={}, agent=agent).settings

    return translate


def left_out(done):
    return {each.key: each.reason for each in done.left_out}


def test_the_full_yaml_of_the_documents(imported):
    done, settings = imported(FULL_YAML)
    assert not done.left_out
    assert (settings.sources, settings.provider, settings.fallback) == (("memory", "sessions"), "auto", "gemini")
    assert settings.model == "text-embedding-3-small"
    assert (settings.chunking.tokens, settings.chunking.overlap) == (512, 128)
    assert (settings.query.hybrid.vector_weight, settings.query.hybrid.text_weight) == (0.7, 0.3)
    assert settings.cache.max_entries == 10_000


def test_the_short_yaml_of_the_documents(imported):
    done, settings = imported(SHORT_YAML)
    assert left_out(done) == {"memory.workspace": NOT_TRANSLATED["workspace"]}
    assert (settings.provider, settings.model) == ("openai", "text-embedding-3-small")
    assert settings.chunking.tokens == 512  # 2,048 characters
    assert settings.cache.max_entries == 1000


def test_every_setting_of_openclaw_but_its_database(imported):
    done, settings = imported(json.dumps({"agents": {"defaults": {"memorySearch": RESOLVED}}}), "openclaw.json")
    assert list(left_out(done)) == ["agents.defaults.memorySearch.store.path"]
    assert settings.remote.base_url == "https://gateway.example/v1"
    assert settings.local.model_cache_dir == "/models"
    assert settings.store.vector.extension_path == "/lib/vec0.so"
    assert settings.query.hybrid.candidate_multiplier == 4
    assert settings.sync.sessions.delta_messages == 50


def test_defaults_and_overrides_of_agents(imported):
    done, settings = imported(AGENTS_JSON5, "openclaw.json", agent="rev")
    assert (settings.query.max_results, settings.remote.api_key) == (3, "sk-secret-of-rev")
    assert settings.tools.citations == "on"
    assert settings.remote.headers == {"X-Team": "memory"}
    assert settings.remote.batch.poll_interval_ms == 2000
    assert (settings.query.decay.enabled, settings.query.decay.half_life_days) == (False, 90)
    assert (settings.query.diversity.enabled, settings.query.diversity.relevance) == (True, 0.6)
    assert settings.sync.sessions.delta_bytes == 100_000
    assert settings.local.model_path.startswith("hf:")
    reasons = left_out(done)
    assert set(reasons) == {
        "gateway",
        "agents.defaults.workspace",
        "agents.defaults.memorySearch.remote.apiKey",
        "agents.defaults.memorySearch.store.path",
        "agents.list[0]",
        "agents.list[2]",
    }
    assert "OPENAI_API_KEY" in reasons["agents.defaults.memorySearch.remote.apiKey"]
    _, settings = imported(AGENTS_JSON5, "openclaw.json")
    assert (settings.query.max_results, settings.remote.api_key) == (6, "")


@pytest.mark.parametrize(
    ("text", "enabled"),
    [
        pytest.param("memory: {provider: local}", True, id="OpenClaw's default"),
        pytest.param("memory: {query: {hybrid: {temporalDecay: {enabled: false}}}}", False, id="turned off there"),
    ],
)
def test_importing_turns_decay_on(imported, text, enabled):
    done, settings = imported(text)
    assert settings.query.decay.enabled is enabled
    assert bool(done.notes) is enabled


@pytest.mark.parametrize(
    ("text", "name"),
    [
        pytest.param("maxResults: 4\nminScore: 0.2", "bare.yaml", id="a block alone"),
        pytest.param('{"memorySearch": {"query": {"maxResults": 4, "minScore": 0.2}}}', "a.json", id="JSON"),
        pytest.param("[query]\nmaxResults = 4\nmin_score = 0.2", "notewell.toml", id="TOML with camelCase"),
        pytest.param("memory:\r\n  maxResults: 4\r\n  minScore: 0.2\r\n", "\ufeffconfig.yml", id="CRLF"),
        pytest.param("base: &b {maxResults: 4}\nmemory: {query: *b, minScore: 0.2}", "c.yaml", id="an alias"),
    ],
)
def test_every_form_of_file(imported, text, name):
    _, settings = imported(text, name)
    assert (settings.query.max_results, settings.query.min_score) == (4, 0.2)


def test_citations_on_is_a_text_and_not_true(imported):
    _, settings = imported("memory:\n  citations: on\n")
    assert settings.tools.citations == "on"


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        pytest.param("provider: bedrock", "there is no provider 'bedrock'", id="a provider that we do not have"),
        pytest.param("query: {maxResults: many}", "query.max_results must be a whole number", id="a wrong type"),
        pytest.param("multimodal: {enabled: true}", "there is no such setting", id="an unknown key"),
        pytest.param("chunkSize: big", "chunking.tokens must be a whole number", id="characters that are no number"),
        pytest.param("sources: [&a [x], *a]", "sources must be a list", id="nested lists"),
    ],
)
def test_a_value_that_cannot_be_translated_is_named(imported, line, reason):
    done, _ = imported(f"memory:\n  enabled: true\n  {line}\n")
    assert [reason in each.reason for each in done.left_out] == [True]


def test_secrets_are_masked_where_they_are_shown_and_kept_in_the_file(imported):
    done, settings = imported(AGENTS_JSON5, "openclaw.json", agent="rev")
    assert settings.remote.api_key == "sk-secret-of-rev"
    assert "sk-secret" in done.to_toml()
    assert "sk-secret" not in done.to_toml(public=True)


def test_odd_texts_survive_the_file(imported):
    odd = 'quote " backslash \\ tab \t del \x7f snow ☃ 😀'
    _, settings = imported(json.dumps({"memory": {"model": odd, "remote": {"headers": {odd: odd}}}}), "odd.json")
    assert settings.model == odd
    assert settings.remote.headers == {odd: odd}


@pytest.mark.parametrize(
    ("text", "name", "message"),
    [
        pytest.param("memory: [", "x.yaml", r"x\.yaml:1: not valid YAML", id="broken YAML"),
        pytest.param("a: 1\na: 2\n", "x.yaml", r"x\.yaml:2: not valid YAML: .*duplicate", id="a key twice"),
        pytest.param(
            "memory: !!python/object/apply:os.getpid []", "x.yaml", "not valid YAML", id="a tag that runs code"
        ),
        pytest.param("{memory: ", "x.json5", "not valid JSON5", id="broken JSON5"),
        pytest.param("memory = ", "x.toml", "not valid TOML", id="broken TOML"),
        pytest.param("- memory", "x.yaml", "not a table", id="a list"),
        pytest.param("{}", "x.json", "no settings of the memory", id="an empty object"),
        pytest.param("", "x.yaml", "not a table", id="an empty file"),
        pytest.param("gateway: {port: 1}\nagents: {}", "x.yaml", "no settings of the memory", id="nothing of ours"),
        pytest.param("memory: &m {x: *m}", "x.yaml", "more than 2,000", id="a loop of aliases"),
        pytest.param("memory: " + "[" * 100_000, "x.yaml", "not valid YAML", id="too deep", marks=pytest.mark.slow),
    ],
)
def test_a_file_that_cannot_be_translated(imported, text, name, message):
    with pytest.raises(SettingsError, match=message):
        imported(text, name)


def test_aliases_that_multiply_end_soon(imported):
    levels = "\n".join(f"l{n}: &l{n} {{{', '.join(f'k{k}: *l{n - 1}' for k in range(9))}}}" for n in range(1, 9))
    with pytest.raises(SettingsError, match="more than 2,000"):
        imported(f"l0: &l0 {{x: 1}}\n{levels}\nmemory: *l8\n")


def test_a_file_that_is_not_there(tmp_path):
    with pytest.raises(SettingsError, match="cannot be read: No such file"):
        translate_file(tmp_path / "none.yaml")


@pytest.mark.parametrize(
    ("package", "name", "extra"), [("ruamel.yaml", "a.yaml", "yaml"), ("pyjson5", "a.json5", "sessions")]
)
def test_a_missing_package_is_named_with_its_extra(tmp_path, monkeypatch, package, name, extra):
    monkeypatch.setitem(sys.modules, package, None)
    (tmp_path / name).write_text("{memory: {enabled: true}}", encoding="utf-8")
    with pytest.raises(SettingsError) as caught:
        translate_file(tmp_path / name)
    assert f"notewell[{extra}]" in (caught.value.hint or "")


# --- the page and the files ------------------------------------------------------------------------


def test_the_table_of_the_page_is_the_table_of_the_code():
    section = PAGE.read_text(encoding="utf-8").partition("\n## Settings\n")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| `([^`]+)` \| (?:`([^`]+)` )?\|", section, re.MULTILINE)
    same_in_snake_case = {"experimental.sessionMemory": "experimental.session_memory"}
    assert dict(rows) == {**RENAMED, **same_in_snake_case, **dict.fromkeys(NOT_TRANSLATED, "")}


def test_an_existing_file_is_only_replaced_when_told_and_is_kept(tmp_path):
    target = tmp_path / "folder" / "config.toml"
    assert write_settings(target, "enabled = true\n", replace=False) is None
    if sys.platform != "win32":
        assert target.stat().st_mode & 0o777 == 0o600
    with pytest.raises(SettingsError, match="exists already"):
        write_settings(target, "enabled = false\n", replace=False)
    backup = write_settings(target, "enabled = false\n", replace=True)
    assert backup is not None
    assert (backup.read_text(), target.read_text()) == ("enabled = true\n", "enabled = false\n")


@pytest.mark.skipif(sys.platform == "win32", reason="no /dev/null")
def test_a_device_is_never_replaced():
    with pytest.raises(SettingsError, match="exists already"):
        write_settings(Path("/dev/null"), "enabled = true\n", replace=True)


@pytest.mark.parametrize(
    ("name", "text", "mentioned"),
    [
        ("config.yaml", SHORT_YAML, True),
        ("notewell.yml", "provider: local", True),
        ("config.yaml", "title: a site of Hugo", False),
        ("config.toml", "", False),
    ],
)
def test_yaml_that_is_ignored_is_mentioned(workspace, tmp_path, name, text, mentioned):
    (workspace / name).write_text(text, encoding="utf-8")
    notes = list(ignored_settings(workspace, {"NOTEWELL_CONFIG": str(tmp_path / "own" / "config.toml")}))
    assert [name in note and "notewell config import" in note for note in notes] == [True] * mentioned
