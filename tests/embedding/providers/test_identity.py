"""What makes two remote embedders the same space, and what does not."""

from __future__ import annotations

import pytest

from notewell import Memory
from notewell.embedding.selection import open_provider
from notewell.settings import RemoteSettings, Settings
from tests.fakes.providers import FakeOpenAI

from .opening import open_memory

BASE = {"base_url": "https://gateway.example/v1", "api_key": "key-one"}


def identity(*, provider="openai", model="text-embedding-3-small", **remote):
    return open_provider(
        provider, Settings(provider=provider, model=model, remote=RemoteSettings(**{**BASE, **remote}))
    ).identity


@pytest.mark.parametrize(
    "remote",
    [
        pytest.param({"api_key": "key-two"}, id="another key"),
        pytest.param({"headers": {"Authorization": "Bearer other"}}, id="a secret header"),
        pytest.param({"headers": {"X-Anything": "sk-0451deadbeef0451"}}, id="a header that looks like a key"),
        pytest.param({"base_url": "https://ana:pass@gateway.example/v1"}, id="a login"),
        pytest.param({"base_url": "https://GATEWAY.example/v1/"}, id="another spelling"),
        pytest.param({"dimensions": 1536}, id="the model's own length, said aloud"),
        pytest.param({"concurrency": 2, "query_timeout_seconds": 3}, id="how it is asked"),
    ],
)
def test_the_same_space(remote):
    assert identity(**remote) == identity()


@pytest.mark.parametrize(
    "changed",
    [
        pytest.param({"base_url": "https://other.example/v1"}, id="another address"),
        pytest.param({"model": "text-embedding-3-large"}, id="another model"),
        pytest.param({"dimensions": 512}, id="shorter vectors"),
        pytest.param({"headers": {"X-Model-Revision": "7"}}, id="a header that is no secret"),
        pytest.param({"provider": "mistral", "dimensions": 1536}, id="another provider"),
    ],
)
def test_another_space(changed):
    assert identity(**changed) != identity()


def test_no_secret_is_in_it():
    named = identity(headers={"X-Api-Key": "0451", "X-Team": "memory"}, base_url="https://ana:pass@gateway.example/v1")
    assert not any(secret in str(named) + named.key for secret in ("key-one", "0451", "pass"))


def test_another_key_or_place_embeds_nothing_again(workspace, tmp_path):
    with FakeOpenAI() as fake:
        with open_memory(workspace, fake) as memory:
            memory.index()
        before = len(fake.requests)
        fake.key = "sk-proj-another"
        moved = workspace.rename(tmp_path / "elsewhere")
        with open_memory(moved, fake) as memory:
            report = memory.index()
            assert (report.embedded, report.rebuilt, report.pending) == (0, False, 0)
        assert len(fake.requests) == before


def test_there_and_back_again_embeds_nothing_on_the_return(workspace):
    with FakeOpenAI() as fake:
        for model, embeds in (
            ("text-embedding-3-small", True),
            ("text-embedding-3-large", True),
            ("text-embedding-3-small", False),
            ("text-embedding-3-large", False),
        ):
            before = len(fake.requests)
            with open_memory(workspace, fake, model=model) as memory:
                report = memory.index()
                assert report.pending == 0
                assert memory.search("guest wifi", sync=False).mode == "hybrid"
            assert (report.embedded > 0) is embeds
            if not embeds:
                assert len(fake.requests) == before + 1  # the query


def test_a_model_that_nobody_knows_needs_no_network_once_it_is_indexed(workspace):
    with FakeOpenAI(dimensions=99) as fake:
        with open_memory(workspace, fake, model="house-model") as memory:
            memory.index()
        address = fake.base_url
    with Memory.open(
        workspace, provider="openai", model="house-model", remote__base_url=address, remote__api_key="any"
    ) as memory:
        assert memory._components.embedders.selection.embedder.identity.dimensions == 99
        answer = memory.search("guest wifi", sync=False)
        assert answer.mode == "keyword"
        assert answer.hits
        assert any("cannot be reached" in note for note in answer.notes)
        assert memory.search("guest wifi", keyword_only=True).notes == ()


def test_a_model_that_nobody_knows_and_nobody_serves_leaves_the_words(workspace):
    with Memory.open(
        workspace, provider="openai", model="house-model", remote__base_url="http://127.0.0.1:9", remote__api_key="any"
    ) as memory:
        report = memory.index()
        assert report.added
        assert any("cannot be reached" in problem.reason for problem in report.problems)
        assert memory.search("guest wifi").hits
        assert memory.status().embedder is None
