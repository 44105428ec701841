from __future__ import annotations

import pkgutil
import subprocess
import sys
import tomllib
from dataclasses import replace
from pathlib import Path

import pytest

from notewell.embedding import local
from notewell.embedding.hashing import HashingEmbedder
from notewell.embedding.local.models import memory_model_folder, open_local
from notewell.embedding.selection import BUILT_IN, ENTRY_POINT_GROUP, select_embedder
from notewell.errors import EmbedderUnavailableError
from notewell.settings import LocalSettings, Settings

from .local.sentence_folder import write_sentence_folder


def asking_for(provider: str, *, fallback: str = "none", model_path: str = "") -> Settings:
    return replace(Settings(), provider=provider, fallback=fallback, local=LocalSettings(model_path=model_path))


@pytest.fixture
def without_onnxruntime(monkeypatch):
    monkeypatch.setattr(local, "PACKAGES", ("onnxruntime_that_is_not_installed", "tokenizers"))


def test_auto_takes_the_local_model(pack):
    selection = select_embedder(asking_for("auto"))
    assert selection.embedder is not None
    expected = "notewell-memory" if memory_model_folder() else "granite-embedding-30m-english"
    assert selection.embedder.identity.model == expected
    assert "local" in selection.reason


def test_auto_without_packages_says_what_mends_it(without_onnxruntime):
    selection = select_embedder(asking_for("auto"))
    assert selection.embedder is None
    assert "onnxruntime_that_is_not_installed" in selection.reason
    assert 'pip install "notewell[local]"' in selection.hint


def test_none_is_a_choice():
    selection = select_embedder(asking_for("none", fallback="hashing"))
    assert (selection.embedder, selection.reason) == (None, "provider is none")


def test_hashing_by_name():
    selection = select_embedder(asking_for("hashing"))
    assert isinstance(selection.embedder, HashingEmbedder)
    assert selection.reason == "provider is hashing"


def test_local_that_was_named_and_cannot_run_is_an_error(without_onnxruntime):
    with pytest.raises(EmbedderUnavailableError, match="onnxruntime_that_is_not_installed") as caught:
        select_embedder(asking_for("local"))
    assert 'pip install "notewell[local]"' in caught.value.hint


@pytest.mark.parametrize("provider", ["local", "auto"])
def test_the_fallback_keeps_the_reason(without_onnxruntime, provider):
    selection = select_embedder(asking_for(provider, fallback="hashing"))
    assert isinstance(selection.embedder, HashingEmbedder)
    assert "onnxruntime_that_is_not_installed" in selection.reason
    assert "fallback hashing" in selection.reason
    assert selection.hint


@pytest.mark.parametrize("fallback", ["local", "openai"], ids=["itself", "not available either"])
def test_a_fallback_that_cannot_run_leaves_the_first_error(without_onnxruntime, fallback):
    with pytest.raises(EmbedderUnavailableError, match="onnxruntime_that_is_not_installed"):
        select_embedder(asking_for("local", fallback=fallback))


def test_a_provider_nobody_offers_names_those_available():
    with pytest.raises(EmbedderUnavailableError, match=r"'no-such-provider'.*hashing.*local"):
        select_embedder(asking_for("no-such-provider"))


def test_a_model_folder(tmp_path):
    folder = write_sentence_folder(tmp_path / "tiny-model")
    embedder = open_local(asking_for("local", model_path=str(folder)))
    assert (embedder.identity.provider, embedder.identity.model) == ("local", "tiny-model")


def test_gguf_is_refused(tmp_path):
    with pytest.raises(EmbedderUnavailableError, match="GGUF"):
        open_local(asking_for("local", model_path=str(tmp_path / "model.GGUF")))


def test_built_ins_are_the_package_s_own_entry_points():
    project = tomllib.loads(Path(__file__).parents[2].joinpath("pyproject.toml").read_text(encoding="utf-8"))
    assert project["project"]["entry-points"][ENTRY_POINT_GROUP] == BUILT_IN


@pytest.mark.parametrize("target", BUILT_IN.values())
def test_entry_points_resolve(target):
    assert callable(pkgutil.resolve_name(target))


PLUG_IN = """
from notewell.embedding.hashing import HashingEmbedder

def open_mine(settings):
    return HashingEmbedder(dimensions=32)
"""


@pytest.fixture
def plug_in(tmp_path, monkeypatch):
    (tmp_path / "my_plug_in.py").write_text(PLUG_IN, encoding="utf-8")
    information = tmp_path / "my_plug_in-1.0.dist-info"
    information.mkdir()
    (information / "METADATA").write_text("Metadata-Version: 2.1\nName: my-plug-in\nVersion: 1.0\n", encoding="utf-8")
    (information / "entry_points.txt").write_text(
        f"[{ENTRY_POINT_GROUP}]\nmine = my_plug_in:open_mine\nbroken = my_plug_in:open_nothing\n", encoding="utf-8"
    )
    monkeypatch.syspath_prepend(tmp_path)


def test_a_plug_in_is_found_by_its_entry_point(plug_in):
    selection = select_embedder(asking_for("mine"))
    assert selection.embedder is not None
    assert selection.embedder.identity.dimensions == 32


def test_a_plug_in_that_does_not_load_is_named(plug_in):
    with pytest.raises(EmbedderUnavailableError, match="'broken' cannot be loaded from my_plug_in:open_nothing"):
        select_embedder(asking_for("broken"))


@pytest.mark.slow
def test_choosing_loads_nothing(pack):
    program = """
import sys
from notewell.embedding.selection import select_embedder
from notewell.settings import Settings
selection = select_embedder(Settings())
print(selection.embedder.identity.dimensions)
print(sorted({"numpy", "onnxruntime", "tokenizers", "importlib.metadata"} & set(sys.modules)))
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.split("\n")[:2] == ["384", "[]"]
