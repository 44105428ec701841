"""Which reranker the settings choose, whose key it gets, and what is said when there is none."""

from __future__ import annotations

import pkgutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from notewell.embedding import http_calls
from notewell.errors import RerankerError, SettingsError
from notewell.search.rerankers import APIS, BUILT_IN, ENTRY_POINT_GROUP, open_reranker
from notewell.settings import QuerySettings, RemoteSettings, RerankSettings, Settings, load_settings, to_public_dict

from .provider import running

pytest.importorskip("httpx", reason="the extra `remote` is not installed")


def asking_for(provider: str, *, embedder: str = "auto", embedder_key: str = "", **rerank: object) -> Settings:
    return Settings(
        provider=embedder,
        remote=RemoteSettings(api_key=embedder_key),
        query=QuerySettings(rerank=RerankSettings(provider=provider, **rerank)),
    )


@pytest.fixture(autouse=True)
def without_keys(monkeypatch):
    for api in APIS.values():
        monkeypatch.delenv(api.key_variable, raising=False)


def key_sent(settings_for):
    """Return the key that a provider gets to see."""
    with running("voyage") as provider:
        open_reranker(settings_for(provider.url)).rerank("q", ["text"])
        return provider.headers[0].get("Authorization")


@pytest.mark.parametrize("provider", sorted(APIS))
def test_a_built_in_by_name(provider, monkeypatch):
    monkeypatch.setenv(APIS[provider].key_variable, "key")
    assert open_reranker(asking_for(provider)).name == f"{provider}/{APIS[provider].default_model}"


@pytest.mark.parametrize("provider", sorted(APIS))
def test_without_a_key_it_is_said_where_to_put_one(provider):
    with pytest.raises(RerankerError, match="needs an API key") as raised:
        open_reranker(asking_for(provider))
    assert APIS[provider].key_variable in raised.value.hint


def test_the_key_of_the_provider_s_own_variable(monkeypatch):
    monkeypatch.setenv("VOYAGE_API_KEY", " from-variable\n")
    assert key_sent(lambda url: asking_for("voyage", base_url=url)) == "Bearer from-variable"


def test_the_key_of_the_settings_comes_first(monkeypatch):
    monkeypatch.setenv("VOYAGE_API_KEY", "from-variable")
    assert key_sent(lambda url: asking_for("voyage", base_url=url, api_key="own")) == "Bearer own"


def test_the_embedder_s_key_serves_if_it_is_the_same_provider():
    settings = {"embedder": "voyage", "embedder_key": "shared"}
    assert key_sent(lambda url: asking_for("voyage", base_url=url, **settings)) == "Bearer shared"


@pytest.mark.parametrize("embedder", ["openai", "auto"])
def test_no_provider_gets_another_s_key(embedder):
    settings = {"embedder": embedder, "embedder_key": "not for voyage"}
    assert key_sent(lambda url: asking_for("voyage", base_url=url, **settings)) is None


@pytest.mark.parametrize("key", ["schlüssel", "two\nlines"])
def test_a_key_that_cannot_be_sent_is_not_quoted(key):
    with pytest.raises(RerankerError, match="contains characters that cannot be sent") as raised:
        open_reranker(asking_for("cohere", api_key=key))
    assert key not in raised.value.message + raised.value.hint


def test_nothing_chosen():
    with pytest.raises(RerankerError, match="no reranker is configured") as raised:
        open_reranker(asking_for(""))
    assert "cohere, jina, voyage" in raised.value.hint


def test_a_name_nobody_offers():
    with pytest.raises(RerankerError, match=r"'nonesuch'; available are: cohere, jina, voyage"):
        open_reranker(asking_for("nonesuch"))


def test_without_httpx_it_is_said_how_to_install_it(monkeypatch):
    monkeypatch.setattr(http_calls, "PACKAGES", ("httpx_that_is_not_installed",))
    with pytest.raises(RerankerError, match="needs httpx") as raised:
        open_reranker(asking_for("cohere", api_key="key"))
    assert 'pip install "notewell[remote]"' in raised.value.hint


def test_built_ins_are_the_package_s_own_entry_points():
    project = tomllib.loads(Path(__file__).parents[3].joinpath("pyproject.toml").read_text(encoding="utf-8"))
    assert project["project"]["entry-points"][ENTRY_POINT_GROUP] == BUILT_IN
    assert all(callable(pkgutil.resolve_name(target)) for target in BUILT_IN.values())


PLUG_IN = """
class Lengths:
    name = "lengths"

    def rerank(self, query, texts):
        return [len(text) for text in texts]


def open_lengths(settings):
    return Lengths()
"""


@pytest.fixture
def plug_in(tmp_path, monkeypatch):
    (tmp_path / "my_reranker.py").write_text(PLUG_IN, encoding="utf-8")
    information = tmp_path / "my_reranker-1.0.dist-info"
    information.mkdir()
    (information / "METADATA").write_text("Metadata-Version: 2.1\nName: my-reranker\nVersion: 1.0\n", encoding="utf-8")
    (information / "entry_points.txt").write_text(
        f"[{ENTRY_POINT_GROUP}]\nlengths = my_reranker:open_lengths\nbroken = my_reranker:open_nothing\n",
        encoding="utf-8",
    )
    monkeypatch.syspath_prepend(tmp_path)


def test_a_plug_in_is_found_by_its_entry_point(plug_in):
    assert open_reranker(asking_for("lengths")).rerank("q", ["a", "bcd"]) == [1, 3]


def test_a_plug_in_that_does_not_load_is_named(plug_in):
    with pytest.raises(RerankerError, match="'broken' cannot be loaded from my_reranker:open_nothing"):
        open_reranker(asking_for("broken"))


@pytest.mark.slow
def test_choosing_loads_nothing():
    program = f"""
import os, sys
from notewell.search.rerankers import open_reranker
from notewell.settings import QuerySettings, RerankSettings, Settings
for name in {sorted(BUILT_IN)!r}:
    open_reranker(Settings(query=QuerySettings(rerank=RerankSettings(provider=name, api_key="key"))))
print(sorted({{"numpy", "httpx", "importlib.metadata"}} & set(sys.modules)))
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


# --- who may set it ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "line",
    [
        "enabled = true",
        'provider = "cohere"',
        'model = "x"',
        'base_url = "https://elsewhere.example"',
        'api_key = "k"',
        "candidates = 100",
        "weight = 1.0",
    ],
)
def test_a_workspace_file_cannot_send_notes_anywhere(tmp_path, line):
    (tmp_path / "notewell.toml").write_text(f"[query.rerank]\n{line}\n", encoding="utf-8")
    with pytest.raises(SettingsError, match=r"query\.rerank\."):
        load_settings(tmp_path)


def test_a_workspace_file_may_turn_it_off(tmp_path):
    (tmp_path / "notewell.toml").write_text("[query.rerank]\nenabled = false\n", encoding="utf-8")
    assert load_settings(tmp_path).settings.query.rerank.enabled is False


def test_the_key_is_never_shown():
    settings = asking_for("cohere", api_key="sesame-0451")
    assert "sesame-0451" not in repr(settings) + repr(to_public_dict(settings))
