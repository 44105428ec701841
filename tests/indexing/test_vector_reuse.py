"""Text that was embedded once is not sent again: models there and back, another key, another place, a new index."""

from __future__ import annotations

import shutil

import pytest

from notewell import Memory
from tests.fakes.providers import PROVIDERS, FakeOpenAI

pytestmark = pytest.mark.slow


@pytest.fixture
def provider():
    with FakeOpenAI() as fake:
        yield fake


def options(provider, **more):
    return {
        "provider": provider.name,
        "remote__base_url": provider.base_url,
        "remote__api_key": provider.key,
        **more,
    }


def index(workspace, provider, **more):
    """Index, and return the report with how many requests it took."""
    before = len(provider.requests_to("embed"))
    with Memory.open(workspace, **options(provider, **more)) as memory:
        report = memory.index()
        identity = memory._components.embedders.selection.embedder.identity
    assert report.complete, report
    assert report.pending == 0
    return report, identity, len(provider.requests_to("embed")) - before


def test_from_one_model_to_another_and_back(workspace, provider):
    first, small, calls = index(workspace, provider)
    assert (first.embedded > 0, calls > 0) == (True, True)
    other, large, _ = index(workspace, provider, model="text-embedding-3-large")
    assert other.rebuilt
    assert (other.embedded, large == small) == (first.embedded, False)
    back, again, calls = index(workspace, provider)
    assert (back.rebuilt, back.embedded, back.reused, calls) == (True, 0, first.embedded, 0)
    assert again == small
    with Memory.open(workspace, **options(provider)) as memory:
        assert memory.search("guest wifi").mode == "hybrid"


def forget_index(workspace):
    for file in (workspace / ".notewell" / "main").iterdir():
        if file.name.startswith(("index", "CURRENT")):
            file.unlink()


@pytest.mark.parametrize("name", [name for name in PROVIDERS if name != "ollama"])
def test_another_key_is_the_same_space(workspace, name):
    with PROVIDERS[name]() as provider:
        first, identity, calls = index(workspace, provider)
        assert calls > 0
        keys = [provider.key, "another-key-of-the-same-account"]
        provider.key = keys[1]
        report, again, calls = index(workspace, provider)
        assert (again, calls, report.rebuilt) == (identity, 0, False)
        forget_index(workspace)
        report, _, calls = index(workspace, provider)
        assert (report.reused, calls) == (first.embedded, 0)
    for file in (workspace / ".notewell").rglob("*"):
        assert not (file.is_file() and any(key.encode() in file.read_bytes() for key in keys)), file


def test_a_workspace_that_moved_brings_its_vectors_along(workspace, provider, tmp_path):
    _, first, _ = index(workspace, provider)
    moved = tmp_path / "elsewhere" / "notes"
    moved.parent.mkdir()
    shutil.move(workspace, moved)
    report, second, calls = index(moved, provider)
    assert (second, calls, report.embedded, report.rebuilt) == (first, 0, 0, False)


def test_a_lost_index_is_built_from_the_cache(workspace, provider):
    first, _, _ = index(workspace, provider)
    forget_index(workspace)
    again, _, calls = index(workspace, provider)
    assert (again.embedded, again.reused, calls) == (0, first.embedded, 0)


@pytest.mark.parametrize(
    "change",
    [
        pytest.param({"model": "text-embedding-3-large"}, id="model"),
        pytest.param({"remote__dimensions": 256}, id="dimensions"),
        pytest.param({"remote__headers": {"X-Region": "eu"}}, id="a header that is no secret"),
    ],
)
def test_what_changes_a_vector_is_another_space(workspace, provider, change):
    _, first, _ = index(workspace, provider)
    report, second, calls = index(workspace, provider, **change)
    assert second != first
    assert (report.rebuilt, calls > 0) == (True, True)


def test_the_hit_rate_tells(workspace, provider):
    first, _, _ = index(workspace, provider)
    index(workspace, provider, model="text-embedding-3-large")
    index(workspace, provider)
    with Memory.open(workspace, **options(provider)) as memory:
        stats = memory.cache.stats()
    assert (stats.hits, stats.misses) == (first.embedded, 2 * first.embedded)
    assert stats.hit_rate == pytest.approx(1 / 3)
