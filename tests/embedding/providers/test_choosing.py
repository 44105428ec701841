"""Which provider is chosen, what is said when it cannot be used, and who sees which key."""

from __future__ import annotations

import socket

import pytest

from notewell import Memory
from notewell.embedding import http_calls, local
from notewell.embedding.providers.apis import IN_ORDER
from notewell.embedding.selection import for_provider, select_embedder
from notewell.errors import EmbedderUnavailableError
from notewell.settings import RemoteSettings, Settings
from tests.fakes.providers import PROVIDERS, FakeOpenAI

from .opening import open_memory

VARIABLES = {
    "openai": "OPENAI_API_KEY",
    "gemini": "GEMINI_API_KEY",
    "voyage": "VOYAGE_API_KEY",
    "mistral": "MISTRAL_API_KEY",
}


@pytest.fixture
def without_local(monkeypatch):
    monkeypatch.setattr(local, "PACKAGES", ("onnxruntime_that_is_not_installed",))


@pytest.fixture
def without_httpx(monkeypatch):
    monkeypatch.setattr(http_calls, "PACKAGES", ("httpx_that_is_not_installed",))


# --- auto ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("missing", range(4))
def test_auto_takes_the_first_provider_with_a_key(without_local, monkeypatch, missing):
    present = list(VARIABLES)[missing:]
    for name in present:
        monkeypatch.setenv(VARIABLES[name], "some-key")
    selection = select_embedder(Settings())
    assert selection.embedder.identity.provider == present[0]
    assert VARIABLES[present[0]] in selection.reason


def test_auto_knows_google_s_other_variable(without_local, monkeypatch):
    monkeypatch.setenv("GOOGLE_API_KEY", "some-key")
    assert select_embedder(Settings()).embedder.identity.provider == "gemini"


def test_auto_prefers_what_runs_here(pack, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "some-key")
    assert select_embedder(Settings()).embedder.identity.provider == "local"


def test_auto_gives_nobody_a_key_or_an_address_that_may_be_somebody_else_s(without_local, monkeypatch):
    monkeypatch.setenv("VOYAGE_API_KEY", "voyage-key")
    remote = RemoteSettings(api_key="of-whom", base_url="http://127.0.0.1:9", headers={"X-Key": "0451"})
    embedder = select_embedder(Settings(remote=remote)).embedder
    assert embedder.service.base_url == "https://api.voyageai.com/v1"
    assert embedder.service.headers == {"Authorization": "Bearer voyage-key"}


def test_auto_with_a_key_but_without_the_package_says_so(without_local, without_httpx, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "some-key")
    selection = select_embedder(Settings())
    assert selection.embedder is None
    assert "OPENAI_API_KEY is set, but OpenAI needs httpx" in selection.hint


def test_auto_with_nothing_is_keyword_search(without_local):
    selection = select_embedder(Settings())
    assert selection.embedder is None
    assert selection.warning.startswith("keyword search only: ")


def test_the_order_is_the_documented_one():
    assert [api.name for api in IN_ORDER] == ["openai", "gemini", "voyage", "mistral"]


# --- four things that can be wrong, four next steps ----------------------------------------------


def missing_key(fake):
    return {"provider": fake.name, "remote__api_key": ""}


def wrong_key(fake):
    return {"provider": fake.name, "remote__base_url": fake.base_url, "remote__api_key": "sk-wrong-0451deadbeef"}


def unreachable(fake):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    return {"provider": fake.name, "remote__base_url": f"http://127.0.0.1:{port}", "remote__api_key": "any"}


@pytest.mark.parametrize("name", sorted(VARIABLES))
def test_four_messages_with_four_next_steps(name, workspace, monkeypatch):
    found = {}
    with PROVIDERS[name]() as fake:
        for case in (missing_key, wrong_key, unreachable):
            with Memory.open(workspace, **case(fake)) as memory:
                report = memory.index()
                found[case.__name__] = [*report.notes, *(problem.reason for problem in report.problems)]
                answer = memory.search("guest wifi", sync=False)
                assert answer.hits
                assert (answer.mode, bool(answer.notes)) == ("keyword", True)
        monkeypatch.setattr(http_calls, "PACKAGES", ("httpx_that_is_not_installed",))
        with Memory.open(workspace, **wrong_key(fake)) as memory:
            found["package"] = [problem.reason for problem in memory.index().problems]
    told = {case: " ".join(lines) for case, lines in found.items()}
    assert "needs an API key" in told["missing_key"]
    assert f"set {VARIABLES[name]}" in told["missing_key"]
    assert "refused the API key" in told["wrong_key"]
    assert f"check {VARIABLES[name]}" in told["wrong_key"]
    assert "cannot be reached" in told["unreachable"]
    assert "check the network and remote.base_url" in told["unreachable"]
    assert "(not installed)" in told["package"]
    assert 'pip install "notewell[remote]"' in told["package"]
    assert "0451" not in str(told)


def test_ollama_says_how_to_start_it(workspace):
    with PROVIDERS["ollama"]() as fake, Memory.open(workspace, **unreachable(fake)) as memory:
        (problem,) = memory.index().problems
    assert "ollama serve" in problem.reason


def test_ollama_says_how_to_get_a_model(workspace):
    with PROVIDERS["ollama"](models=()) as fake, open_memory(workspace, fake) as memory:
        (problem,) = memory.index().problems
    assert "ollama pull nomic-embed-text" in problem.reason


@pytest.mark.parametrize("key", ["ключ", "a\nb", "a\x00b"])
def test_a_key_that_cannot_be_sent_is_told_without_it(key):
    settings = Settings(provider="openai", remote=RemoteSettings(api_key=key))
    with pytest.raises(EmbedderUnavailableError, match="cannot be sent") as raised:
        select_embedder(settings)
    assert key not in raised.value.message + raised.value.hint


def test_blanks_around_a_key_are_no_part_of_it(workspace):
    with FakeOpenAI() as fake, open_memory(workspace, fake, remote__api_key=f" {fake.key}\n") as memory:
        assert memory.index().problems == ()


def test_the_variable_of_the_provider(workspace, monkeypatch):
    with FakeOpenAI() as fake:
        monkeypatch.setenv("OPENAI_API_KEY", fake.key)
        with open_memory(workspace, fake, remote__api_key="") as memory:
            assert memory.index().problems == ()


def test_another_provider_is_opened_without_the_first_one_s_secrets():
    remote = RemoteSettings(base_url="http://a", api_key="k", headers={"X": "y"}, dimensions=7, concurrency=2)
    other = for_provider(Settings(provider="openai", model="m", remote=remote), "gemini")
    assert (other.provider, other.model) == ("gemini", "")
    assert other.remote == RemoteSettings(concurrency=2)


# --- what status and doctor say ------------------------------------------------------------------


def test_status_deep_tries_the_embedder_and_the_vectors(workspace):
    with FakeOpenAI() as fake, open_memory(workspace, fake) as memory:
        memory.index()
        checks = {check.name: check for check in memory.status(deep=True).checks}
        assert checks["embedder"].ok
        assert checks["nearest"].ok
        fake.inject("unauthorized", times=None)
        checks = {check.name: check for check in memory.status(deep=True).checks}
        assert not checks["embedder"].ok
        assert "refused the API key" in checks["embedder"].detail
        assert "OPENAI_API_KEY" in checks["embedder"].hint
        assert checks["nearest"].ok


def test_status_that_is_not_deep_calls_nobody(workspace):
    with FakeOpenAI() as fake, open_memory(workspace, fake) as memory:
        memory.index()
        before = len(fake.requests)
        assert memory.status().mode == "hybrid"
        assert len(fake.requests) == before
