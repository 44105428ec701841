"""`notewell download` from a hub on 127.0.0.1: where the model is, and what the user reads when it cannot come."""

from __future__ import annotations

import pytest

from tests.embedding.local.loopback_hub import Hub, serving

NAME = "hf:owner/repository/tiny.gguf"


@pytest.fixture
def hub(monkeypatch, tmp_path):
    with serving(Hub(b"GGUF" + bytes(3_000_000))) as served:
        monkeypatch.setenv("NOTEWELL_LOCAL__HUB_URL", served.address)
        monkeypatch.setenv("NOTEWELL_LOCAL__MODEL_CACHE_DIR", str(tmp_path / "models"))
        yield served


def test_a_model_comes_once(notewell, workspace, hub, tmp_path):
    expected = tmp_path / "models" / "owner--repository" / "main" / "tiny.gguf"
    assert notewell("download", NAME, "-w", workspace).out == f"{expected}\n"
    assert expected.read_bytes() == hub.content
    again = notewell("download", NAME, "-w", workspace, "--json").document
    assert again == {"path": str(expected), "bytes": len(hub.content)}
    assert len(hub.requests) == 2  # the hub and where it leads, once


def test_the_model_of_the_settings(notewell, workspace, hub):
    assert notewell("download", "-w", workspace, "--set", f"model={NAME}").out.endswith("tiny.gguf\n")
    assert hub.requests[0][0] == "/owner/repository/resolve/main/tiny.gguf"


def test_the_default_model(notewell, workspace, hub):
    assert notewell("download", "-w", workspace).out.endswith("embeddinggemma-300M-Q8_0.gguf\n")


def test_a_name_that_means_nothing(notewell, workspace, hub):
    done = notewell("download", "gpt-5", "-w", workspace, "--json")
    assert (done.code, done.document["error"]["kind"]) == (1, "embedder_unavailable")
    assert "hf:owner/repository/file.gguf" in done.document["error"]["hint"]


def test_a_model_that_the_hub_does_not_have(notewell, workspace, hub):
    hub.codes = [404]
    done = notewell("download", NAME, "-w", workspace)
    assert done.code == 1
    assert "the hub does not have http://127.0.0.1" in done.err
    assert "check the name" in done.err


def test_before_it_came_the_search_says_how_to_get_it(notewell, workspace, hub):
    done = notewell("search", "printer", "-w", workspace, "--set", "provider=local", "--set", f"model={NAME}", "--json")
    assert done.document["mode"] == "keyword"
    assert any("is not downloaded yet; run `notewell download`" in note for note in done.document["notes"])


@pytest.mark.parametrize("name", ["embeddinggemma-300m-qat-q8_0", "embeddinggemma-300M-QAT-Q8_0.gguf"])
def test_openclaws_default_model_by_its_name(notewell, workspace, hub, name):
    assert notewell("download", name, "-w", workspace).out.endswith("embeddinggemma-300m-qat-Q8_0.gguf\n")
    path = "/ggml-org/embeddinggemma-300m-qat-q8_0-GGUF/resolve/main/embeddinggemma-300m-qat-Q8_0.gguf"
    assert hub.requests[0][0] == path


def test_no_workspace_is_needed(notewell, hub, tmp_path, monkeypatch):
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    monkeypatch.chdir(elsewhere)
    done = notewell("download", NAME)
    assert (done.code, done.err) == (0, "")
    assert done.out.endswith("tiny.gguf\n")
    assert list(elsewhere.iterdir()) == []
    assert notewell("download", NAME, "-w", elsewhere / "none").code == 1  # a workspace that is named must exist
