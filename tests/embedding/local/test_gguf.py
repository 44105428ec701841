"""GGUF models: what their files say, what is wrong with broken ones, and real vectors through llama.cpp."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

from notewell import Memory
from notewell.embedding.local import gguf
from notewell.embedding.local.gguf import FileFacts, GgufEmbedder, GgufHeader, Prefixes, prefixes_of, read_header
from notewell.embedding.local.models import hub_file, open_local
from notewell.embedding.selection import select_embedder
from notewell.errors import EmbedderError, EmbedderUnavailableError
from notewell.settings import LocalSettings, Settings, load_settings

from .tiny_gguf import SIZE, write_bert, write_embedding_gemma, write_gguf

NOTE = "the guest wifi password is lighthouse"
OTHER = "a dentist on thursday"


def age(path: Path, seconds: int = 3600) -> Path:
    """Make a file look as if it had been there for a while: the facts of a young one are not kept."""
    stat = path.stat()
    os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns - seconds * 10**9))
    return path


@pytest.fixture
def facts(tmp_path) -> FileFacts:
    return FileFacts(tmp_path / "models")


@pytest.fixture
def llama():
    """The real package, with its own class as a witness."""
    if importlib.util.find_spec("llama_cpp") is None:
        pytest.skip("llama-cpp-python is not installed (the extra `gguf`)")
    import llama_cpp

    return llama_cpp


@pytest.fixture(params=[pytest.param(write_bert, id="bert"), pytest.param(write_embedding_gemma, id="embeddinggemma")])
def model_file(request, tmp_path) -> Path:
    return age(request.param(tmp_path / "tiny.gguf"))


@pytest.fixture
def embedder(llama, model_file, facts):
    opened = GgufEmbedder(model_file, facts)
    yield opened
    opened.close()


# --- what a file says of itself ------------------------------------------------------------------


def test_the_head_of_a_file(tmp_path):
    assert read_header(write_bert(tmp_path / "b.gguf", name="x")) == GgufHeader("bert", "x", SIZE, 64, "mean")
    header = read_header(write_embedding_gemma(tmp_path / "g.gguf"))
    assert (header.architecture, header.name) == ("gemma-embedding", "Embeddinggemma 300m")


def test_entries_may_stand_in_any_order(tmp_path):
    late = {"tokenizer.ggml.tokens": ["a", "b"], "tokenizer.n": [[1, 2], [3]][0], "x.embedding_length": 8}
    path = write_gguf(tmp_path / "late.gguf", {**late, "x.pooling_type": 3, "general.architecture": "x"}, {})
    assert read_header(path) == GgufHeader("x", "late", 8, 512, "last")


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        pytest.param(b"", "ends in the middle", id="empty"),
        pytest.param(b"<html>404</html>", "does not start with GGUF", id="a web page"),
        pytest.param(b"version https://git-lfs.github.com/spec/v1\n", "does not start with GGUF", id="a pointer"),
        pytest.param(b"GGUF\0\0\0\3" + b"\0" * 16, "version is 50331648", id="big-endian"),
        pytest.param(b"GGUF\1\0\0\0" + b"\0" * 16, "version is 1", id="version 1"),
        pytest.param(b"GGUF\3\0\0\0" + b"\0" * 16, "does not name its architecture", id="no entries"),
        pytest.param(b"GGUF\3\0\0\0" + b"\0" * 8 + b"\1" + b"\0" * 7 + b"\xff" * 8, "text of", id="endless name"),
    ],
)
def test_a_file_that_is_no_model(tmp_path, content, reason):
    path = tmp_path / "broken.gguf"
    path.write_bytes(content)
    with pytest.raises(
        EmbedderUnavailableError, match=rf"broken.gguf is corrupt or not a GGUF model: .*{reason}"
    ) as no:
        read_header(path)
    assert "download broken.gguf again" in no.value.hint


def test_a_head_cut_anywhere_is_damaged(tmp_path):
    entries = {
        "general.tags": ["a", "b"],
        "general.counts": [1, 2, 3],
        "general.architecture": "x",
        "x.context_length": 8,
        "x.embedding_length": 8,
    }
    whole = write_gguf(tmp_path / "whole.gguf", entries, {}).read_bytes().rstrip(b"\0")
    cut = tmp_path / "cut.gguf"
    for length in range(len(whole)):
        cut.write_bytes(whole[:length])
        with pytest.raises(EmbedderUnavailableError, match="corrupt or not a GGUF model"):
            read_header(cut)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        pytest.param(
            "embeddinggemma-300M-Q8_0",
            Prefixes("task: search result | query: ", "title: none | text: "),
            id="embeddinggemma",
        ),
        pytest.param("nomic-embed-text-v1.5", Prefixes("search_query: ", "search_document: "), id="nomic"),
        pytest.param("multilingual-e5-small", Prefixes("query: ", "passage: "), id="e5"),
        pytest.param("multilingual-e5-large-instruct", Prefixes(), id="e5 with instructions"),
        pytest.param(
            "bge-small-en-v1.5", Prefixes("Represent this sentence for searching relevant passages: "), id="bge"
        ),
        pytest.param("all-MiniLM-L6-v2", Prefixes(), id="none"),
    ],
)
def test_every_model_gets_the_prefixes_it_was_trained_with(name, expected):
    assert prefixes_of(GgufHeader("bert", name, 384, 512, "mean")) == expected


# --- three different messages --------------------------------------------------------------------


def local(path: object, tmp_path: Path, **more: str) -> Settings:
    cache = str(tmp_path / "models")
    return Settings(provider="local", local=LocalSettings(model_path=str(path), model_cache_dir=cache), **more)


def test_without_the_package(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "llama_cpp", None)
    with pytest.raises(EmbedderUnavailableError, match=r"tiny.gguf needs llama-cpp-python \(not installed\)") as raised:
        open_local(local(write_bert(tmp_path / "tiny.gguf"), tmp_path))
    assert raised.value.hint.startswith('run `pip install "notewell[gguf]"`; it compiles llama.cpp')


def test_without_the_file(tmp_path, llama):
    with pytest.raises(EmbedderUnavailableError, match=r"there is no model file .*none.gguf") as raised:
        open_local(local(tmp_path / "none.gguf", tmp_path))
    assert "local.model_path" in raised.value.hint


def test_with_a_broken_head(tmp_path, llama):
    (tmp_path / "broken.gguf").write_bytes(b"not a model")
    with pytest.raises(EmbedderUnavailableError, match=r"broken.gguf is corrupt or not a GGUF model"):
        open_local(local(tmp_path / "broken.gguf", tmp_path))


def test_with_half_of_the_weights(tmp_path, llama):
    path = write_bert(tmp_path / "half.gguf")
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    embedder = open_local(local(path, tmp_path))
    with pytest.raises(EmbedderUnavailableError, match=r"half.gguf is corrupt or not a GGUF model: \S+") as raised:
        embedder.embed_query(NOTE)
    assert "no reason" not in raised.value.message
    embedder.close()


def test_a_model_that_ranks_does_not_embed(tmp_path, llama, facts):
    with pytest.raises(EmbedderUnavailableError, match="is a reranking model, not an embedding model"):
        GgufEmbedder(write_bert(tmp_path / "rank.gguf", pooling=4), facts)


# --- names ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("where", ["model", "local.model_path"])
def test_a_model_of_the_hub_is_found_where_it_was_downloaded(tmp_path, llama, where):
    name = "hf:owner/repository/tiny.gguf"
    chosen = load_settings(tmp_path, flags={"provider": "local", where: name, "local.model_cache_dir": str(tmp_path)})
    with pytest.raises(EmbedderUnavailableError, match=r"the model hf:\S+ is not downloaded yet") as raised:
        open_local(chosen.settings)
    assert raised.value.hint == "run `notewell download`"
    write_bert(hub_file(name).path_in(tmp_path))
    assert open_local(chosen.settings).identity.model == "tiny"


def test_the_default_gguf_model_serves_where_the_packaged_one_cannot(tmp_path, llama, monkeypatch):
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    settings = Settings(local=LocalSettings(model_cache_dir=str(tmp_path)))
    assert "onnxruntime" in select_embedder(settings).reason
    write_embedding_gemma(hub_file("embeddinggemma-300m").path_in(tmp_path))
    chosen = select_embedder(settings).embedder
    assert chosen is not None
    assert chosen.identity.model == "embeddinggemma-300M-Q8_0"


def test_an_unknown_name_is_no_model(tmp_path):
    with pytest.raises(EmbedderUnavailableError, match="there is no local model named 'nonesuch'") as raised:
        open_local(Settings(provider="local", model="nonesuch"))
    assert "embeddinggemma-300m" in raised.value.hint


# --- identity and facts --------------------------------------------------------------------------


def test_the_identity_covers_weights_pooling_and_name(tmp_path, llama, facts):
    def key(**changes) -> str:
        embedder = GgufEmbedder(write_bert(tmp_path / "m.gguf", **changes), FileFacts(tmp_path / "nowhere"))
        return embedder.identity.key

    assert key() == key()
    assert len({key(), key(seed=2), key(pooling=2), key(name="nomic-embed-text")}) == 4


def test_the_place_of_the_file_is_not_part_of_it(tmp_path, llama, facts):
    one = GgufEmbedder(write_bert(tmp_path / "one" / "tiny.gguf"), facts)
    other = GgufEmbedder(write_bert(tmp_path / "other" / "tiny.gguf"), facts)
    assert one.identity == other.identity


def test_a_file_is_hashed_once(tmp_path, facts):
    path = age(write_bert(tmp_path / "m.gguf"))
    digest = facts.sha256(path)
    stat = path.stat()
    path.write_bytes(b"\0" * stat.st_size)  # another content under the same stamp shows that it is not read again
    os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    assert FileFacts(tmp_path / "models").sha256(path) == digest
    age(path, 1)
    assert facts.sha256(path) != digest


def test_the_facts_of_a_young_file_are_not_kept(tmp_path, facts):
    path = write_bert(tmp_path / "m.gguf")
    facts.put(path, {"x": 1})
    assert facts.get(path) == {}
    facts.put(age(path, int(gguf.YOUNG_S) + 1), {"x": 1})
    assert facts.get(path) == {"x": 1}


@pytest.mark.parametrize("content", ["", "[]", '{"m.gguf": 3}', "\0"], ids=["empty", "a list", "a number", "not JSON"])
def test_corrupt_facts_are_determined_again(tmp_path, facts, content):
    path = age(write_bert(tmp_path / "m.gguf"))
    digest = facts.sha256(path)
    (tmp_path / "models" / "facts.json").write_text(content)
    assert facts.sha256(path) == digest


def test_facts_need_no_right_to_write(tmp_path):
    path = age(write_bert(tmp_path / "m.gguf"))
    blocked = tmp_path / "a file"
    blocked.write_text("")
    assert re.fullmatch("[0-9a-f]{64}", FileFacts(blocked).sha256(path))


def test_facts_of_old_files_make_room(tmp_path, facts, monkeypatch):
    monkeypatch.setattr(gguf, "_MAX_FACTS", 3)
    paths = [age(write_gguf(tmp_path / f"{number}.gguf", {}, {})) for number in range(5)]
    for number, path in enumerate(paths):
        facts.put(path, {"number": number})
    assert [facts.get(path).get("number") for path in paths] == [None, None, 2, 3, 4]
    assert sorted(file.name for file in (tmp_path / "models").iterdir()) == ["facts.json"]


def test_cosines_are_measured_once(embedder, facts, model_file):
    low, high = embedder.cosine_range
    assert 0 < high - low <= 2
    kept = json.loads((model_file.parent / "models" / "facts.json").read_text())[str(model_file)]["facts"]
    assert kept[f"cosines {embedder.identity.key}"] == [low, high]
    again = GgufEmbedder(model_file, facts)
    assert again.cosine_range == (low, high)
    assert again._runtime is None  # nothing was loaded for it


# --- vectors, for real ---------------------------------------------------------------------------


def witness(llama, path: Path, text: str) -> np.ndarray:
    """Embed with llama-cpp-python's own class, which computes attention in another precision."""
    model = llama.Llama(str(path), embedding=True, n_ctx=64, n_batch=64, n_ubatch=64, verbose=False)
    try:
        return np.asarray(model.embed(text, normalize=True), np.float32)
    finally:
        model.close()


def test_vectors_are_those_of_llama_cpp(embedder, llama, model_file):
    prefixes = prefixes_of(read_header(model_file))
    for text in (NOTE, OTHER):
        (row,) = embedder.embed_documents([text])
        np.testing.assert_allclose(row, witness(llama, model_file, prefixes.document + text), atol=1e-3)
        query = embedder.embed_query(text)
        np.testing.assert_allclose(query, witness(llama, model_file, prefixes.query + text), atol=1e-3)
    if prefixes.query:
        assert not np.allclose(query, row, atol=1e-2)


def test_texts_that_share_words_are_closer(embedder):
    rows = embedder.embed_documents([NOTE, "what is the guest wifi password", OTHER])
    assert rows[0] @ rows[1] > rows[0] @ rows[2]


def test_a_long_text_counts_to_its_end(embedder):
    beginning = "the printer network " * 30  # longer than the 64 tokens of the model
    one, other = embedder.embed_documents([beginning + "dentist " * 40, beginning + "password " * 40])
    assert one @ other < 0.9999
    again = embedder.embed_documents([beginning + "dentist " * 40])[0]
    np.testing.assert_allclose(one, again, atol=1e-6)


def test_every_token_of_a_long_text_is_in_one_window(embedder):
    text = "what is the password : a note of the printer " * 20
    runtime, prefix = embedder._loaded(), embedder._prefixes.document
    whole = runtime._tokens(prefix + text)
    first, *rest = [
        window[len(runtime._before) : len(window) - len(runtime._after)] for window in runtime.windows(prefix, text)
    ]
    repeated = len(runtime._tokens(prefix))
    assert first + [token for window in rest for token in window[repeated:]] == whole
    assert rest
    assert all(len(window) <= 64 for window in runtime.windows(prefix, text))


def test_a_writing_without_words_in_the_vocabulary(llama, tmp_path, facts):
    bert, gemma = write_bert(tmp_path / "b.gguf"), write_embedding_gemma(tmp_path / "g.gguf")
    for path, knows in ((bert, False), (gemma, True)):  # embeddinggemma falls back to bytes
        embedder = GgufEmbedder(path, facts)
        assert embedder.knows("密码是什么") is knows
        assert embedder.knows("the guest wifi")
        embedder.close()


def test_nothing_is_printed(embedder, capfd):
    embedder.embed_query(NOTE)
    embedder.close()
    assert capfd.readouterr() == ("", "")


def test_a_closed_model_opens_again(embedder):
    before = embedder.embed_query(NOTE)
    embedder.close()
    np.testing.assert_allclose(embedder.embed_query(NOTE), before, atol=1e-6)


def test_closing_while_others_embed_is_safe(embedder):
    """Whoever was at it gets a vector or is told to try again; freed memory is never read."""
    outcomes: list[object] = []

    def work() -> None:
        for _ in range(30):
            try:
                outcomes.append(embedder.embed_documents([NOTE, OTHER]).shape)
            except EmbedderError as error:
                outcomes.append(error.hint)

    threads = [threading.Thread(target=work) for _ in range(3)]
    for thread in threads:
        thread.start()
    for _ in range(20):
        embedder.close()
    for thread in threads:
        thread.join(timeout=60)
    assert set(outcomes) <= {(2, SIZE), "try again"}
    assert len(outcomes) == 90


def test_a_memory_with_a_gguf_model(llama, workspace, model_file, tmp_path):
    with Memory.open(workspace, local__model_path=model_file, local__model_cache_dir=tmp_path / "models") as memory:
        report = memory.index()
        assert report.complete
        assert report.embedded
        assert report.embedded + report.unknown >= 7
        answer = memory.search("guest wifi password")
        assert (answer.mode, answer.hits[0].path) == ("hybrid", "memory/network.md")
        assert memory.status().embedder.startswith("local/tiny@")
        assert memory.index().embedded == 0
