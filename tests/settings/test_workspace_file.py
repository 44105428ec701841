"""What a file that came with somebody else's folder may set, and every trick that is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from notewell.errors import SettingsError
from notewell.settings import OPTIONS, flatten, load_settings

NEVER = [
    "model",
    "qmd.command",
    "qmd.mode",
    "qmd.update_minutes",
    "qmd.on_start",
    "qmd.timeout_ms",
    "qmd.max_rss_mb",
    "remote.base_url",
    "remote.api_key",
    "remote.headers",
    "remote.dimensions",
    "remote.concurrency",
    "remote.query_timeout_seconds",
    "remote.index_timeout_seconds",
    "remote.batch.enabled",
    "remote.batch.wait",
    "remote.batch.concurrency",
    "remote.batch.poll_interval_ms",
    "remote.batch.timeout_minutes",
    "experimental.session_memory",
    "local.model_path",
    "local.model_cache_dir",
    "local.hub_url",
    "store.driver",
    "store.url",
    "store.read_url",
    "store.tenant",
    "store.follow",
    "store.path",
    "store.vector.driver",
    "store.vector.extension_path",
    "query.rerank.provider",
    "query.rerank.model",
    "query.rerank.base_url",
    "query.rerank.api_key",
    "query.rerank.candidates",
    "query.rerank.weight",
    "sessions.paths",
    "cache.enabled",
    "cache.max_entries",
    "cache.max_age_days",
    "cost.confirm_above_usd",
    "cost.prices",
    "mcp.token",
]


def toml_value(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, dict):
        return '{ A = "b" }'
    if isinstance(value, tuple):
        return '["somewhere"]'
    return f'"{value}"' if isinstance(value, str) else str(value)


def test_the_list_of_what_it_may_never_set_is_complete():
    assert [key for key, option in OPTIONS.items() if option.workspace == "no"] == NEVER


def test_it_is_refused_before_its_value_is_looked_at(load):
    with pytest.raises(SettingsError, match=r"a workspace file may not set store\.path"):
        load(shared="[store]\npath = 3")


@pytest.mark.parametrize("key", NEVER)
@pytest.mark.parametrize("prefix", ["", "defaults.", "agents.main.", "agents.somebody-else."])
def test_what_it_may_not_set(load, workspace, user_file, key, prefix):
    with pytest.raises(SettingsError) as caught:
        load(shared=f"# hello\n{prefix}{key} = {toml_value(OPTIONS[key].default)}\n")
    assert caught.value.message == f"{workspace / 'notewell.toml'}:2: a workspace file may not set {key}"
    variable = "NOTEWELL_" + key.upper().replace(".", "__")
    assert caught.value.hint == f"set it in your own file, {user_file}, or as {variable}"


def test_what_it_may_set(load, workspace):
    resolved = load(
        shared="""
            enabled = false
            sources = ["memory"]
            extra_paths = ["docs", "a/b.md", "."]
            provider = "local"
            fallback = "none"
            [store.vector]
            enabled = false
            [chunking]
            tokens = 300
            overlap = 10
            style = "lines"
            [sync]
            watch = false
            sessions.delta_messages = 5
            [query]
            mode = "keyword"
            fusion = "weighted"
            hybrid.candidate_multiplier = 2
            """,
        user='sources = ["memory", "sessions"]',
    )
    settings = resolved.settings
    assert settings.enabled is False
    assert settings.sources == ("memory",)
    assert settings.extra_paths == (workspace / "docs", workspace / "a" / "b.md", workspace)
    assert settings.provider == "local"
    assert settings.store.vector.enabled is False
    assert settings.chunking.style == "lines"
    assert settings.sync.sessions.delta_messages == 5
    assert settings.query.hybrid.candidates_per_side == 32
    assert settings.query.default_mode == "keyword"


@pytest.mark.parametrize("sources", ['["memory", "sessions"]', '["sessions"]'])
@pytest.mark.parametrize("user", ["", 'sources = ["memory", "sessions"]', "[experimental]\nsession_memory = true"])
def test_it_cannot_have_conversations_indexed(load, workspace, user, sources):
    with pytest.raises(SettingsError) as caught:
        load(shared=f"sources = {sources}", user=user)
    assert caught.value.message == (
        f'{workspace / "notewell.toml"}:1: a workspace file may set sources only to ["memory"], got {sources}'
    )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        pytest.param(
            'provider = "openai"',
            'a workspace file may set provider only to "local" or "none", got "openai"',
            id="a remote provider",
        ),
        pytest.param(
            'provider = "auto"',
            'a workspace file may set provider only to "local" or "none", got "auto"',
            id="auto, which may undo the user's none",
        ),
        pytest.param(
            'fallback = "voyage"',
            'a workspace file may set fallback only to "local" or "none", got "voyage"',
            id="a remote fallback",
        ),
        pytest.param(
            "enabled = true", "a workspace file may set enabled only to false, got true", id="turning memory on"
        ),
    ],
)
def test_values_it_may_not_choose(load, workspace, text, message):
    with pytest.raises(SettingsError) as caught:
        load(user='provider = "none"\nenabled = false', shared=text)
    assert caught.value.message == f"{workspace / 'notewell.toml'}:1: {message}"


ESCAPES = [
    "/etc",
    "//server/share",
    "\\\\server\\share",
    "\\etc",
    "C:\\Users",
    "C:/Users",
    "C:notes",
    "..",
    "../sibling",
    "docs/../../sibling",
    "docs/../inside",
    "docs\\..\\..\\sibling",
    "~",
    "~/notes",
    "~root",
    " ~/notes",
]


@pytest.mark.parametrize("path", ESCAPES)
def test_paths_that_lead_outside_are_refused(load, workspace, path):
    with pytest.raises(SettingsError) as caught:
        load(shared=f"extra_paths = ['docs',\n  '{path}']")
    assert caught.value.message.startswith(
        f"{workspace / 'notewell.toml'}:1: a workspace file may name only paths inside the workspace in extra_paths"
    )
    assert "NOTEWELL_EXTRA_PATHS" in caught.value.hint


def link(place: Path, target: Path) -> None:
    try:
        place.symlink_to(target, target_is_directory=True)
    except OSError as error:
        pytest.skip(f"this system does not let us make links: {error}")


@pytest.mark.parametrize(
    "named", [pytest.param("door", id="the link itself"), pytest.param("door/private/x.md", id="something behind it")]
)
def test_links_that_lead_outside_are_refused(load, workspace, tmp_path, named):
    (tmp_path / "outside" / "private").mkdir(parents=True)
    link(workspace / "door", tmp_path / "outside")
    with pytest.raises(SettingsError, match="only paths inside the workspace"):
        load(shared=f'extra_paths = ["{named}"]')


def test_a_neighbour_whose_name_starts_alike_is_outside(load, workspace, tmp_path):
    (tmp_path / "workspace-private").mkdir()
    link(workspace / "door", tmp_path / "workspace-private")
    with pytest.raises(SettingsError, match="only paths inside the workspace"):
        load(shared='extra_paths = ["door"]')


def test_a_loop_of_links_is_refused(load, workspace):
    link(workspace / "a", workspace / "b")
    link(workspace / "b", workspace / "a")
    with pytest.raises(SettingsError, match="only paths inside the workspace"):
        load(shared='extra_paths = ["a/x"]')


def test_links_inside_are_fine_also_when_the_workspace_is_reached_by_one(load, workspace, tmp_path, user_file):
    (workspace / "real").mkdir()
    link(workspace / "alias", workspace / "real")
    link(tmp_path / "way-in", workspace)
    (workspace / "notewell.toml").write_text('extra_paths = ["alias", "real"]', encoding="utf-8")
    user_file.write_text("", encoding="utf-8")
    settings = load_settings(tmp_path / "way-in", environ={}, user_file=user_file).settings
    assert settings.extra_paths == (tmp_path / "way-in" / "alias", tmp_path / "way-in" / "real")


@pytest.mark.parametrize("path", ["../sibling", "/somewhere/else"])
def test_the_user_may_go_outside(load, workspace, path):
    resolved = load(user=f'extra_paths = ["{path}"]')
    expected = (workspace / path) if path.startswith("/") else workspace.parent / "sibling"
    assert flatten(resolved.settings)["extra_paths"] == (Path(expected).absolute(),)
