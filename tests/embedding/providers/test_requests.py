"""What is sent to each provider and what is made of the answer, against faithful servers on the loopback interface."""

from __future__ import annotations

import threading

import numpy as np
import pytest

from notewell.errors import BadVectorError, ProviderError
from tests.fakes.providers import FakeGemini, FakeMistral, FakeOllama, FakeOpenAI, FakeVoyage, vector_of

from .opening import open_embedder

TEXTS = ["the guest network is VLAN 30", "the printer jams on thick paper", "tea over coffee"]
SIDES = {  # what the fake's vectors depend on: (document side, query side)
    "gemini": ("RETRIEVAL_DOCUMENT", "RETRIEVAL_QUERY"),
    "voyage": ("document", "query"),
}
PREFIXES = {"ollama": ("search_document: ", "search_query: ")}


def expected(fake, text, *, query=False, dimensions=None):
    side = SIDES.get(fake.name, ("", ""))[query]
    prefix = PREFIXES.get(fake.name, ("", ""))[query]
    model = (
        {"ollama": "nomic-embed-text"}.get(fake.name) or fake.requests[-1].json.get("model") or "gemini-embedding-001"
    )
    return vector_of(prefix + text, dimensions or fake.dimensions, side=side, model=model)


def assert_same(vector, wanted):
    """Compare two vectors; `approx` would take longer than the requests."""
    np.testing.assert_allclose(vector, wanted, rtol=0, atol=1e-5)


def test_each_text_gets_its_own_vector(fake, embedder):
    rows = embedder.embed_documents(TEXTS)
    assert rows.shape == (3, fake.default_dimensions)
    for text, row in zip(TEXTS, rows, strict=True):
        assert_same(row, expected(fake, text))


def test_a_query_is_asked_for_as_a_query(fake, embedder):
    assert_same(embedder.embed_query(TEXTS[0]), expected(fake, TEXTS[0], query=True))


def test_nothing_to_embed_is_no_call(fake, embedder):
    assert embedder.embed_documents([]).shape == (0, fake.default_dimensions)
    assert fake.requests == []


def test_opening_and_the_identity_call_nobody(fake, embedder):
    assert embedder.identity.dimensions == fake.default_dimensions
    assert fake.requests == []


def test_openai_s_request():
    with FakeOpenAI() as fake:
        open_and_embed(fake)
    (request,) = fake.requests
    assert (request.path, request.headers["authorization"]) == ("/v1/embeddings", f"Bearer {fake.key}")
    assert request.json == {"model": "text-embedding-3-small", "input": TEXTS, "encoding_format": "base64"}


def test_gemini_s_request():
    with FakeGemini() as fake:
        open_and_embed(fake)
    (request,) = fake.requests
    assert request.path == "/v1beta/models/gemini-embedding-001:batchEmbedContents"
    assert request.headers["x-goog-api-key"] == fake.key
    assert request.json["requests"][0] == {
        "model": "models/gemini-embedding-001",
        "content": {"parts": [{"text": TEXTS[0]}]},
        "taskType": "RETRIEVAL_DOCUMENT",
    }


def test_voyage_s_request():
    with FakeVoyage() as fake:
        open_and_embed(fake)
    (request,) = fake.requests
    assert request.json == {
        "model": "voyage-4-large",
        "input": TEXTS,
        "input_type": "document",
        "truncation": False,
        "output_dtype": "float",
        "encoding_format": "base64",
    }


def test_mistral_s_request():
    with FakeMistral() as fake:
        open_and_embed(fake)
    assert fake.requests[0].json == {"model": "mistral-embed", "input": TEXTS}


def test_ollama_s_request():
    with FakeOllama() as fake:
        open_and_embed(fake)
    (request,) = fake.requests
    assert request.path == "/api/embed"
    assert "authorization" not in request.headers
    assert request.json["model"] == "nomic-embed-text"
    assert request.json["input"] == [f"search_document: {text}" for text in TEXTS]
    assert request.json["truncate"] is False


def open_and_embed(fake):
    embedder = open_embedder(fake)
    embedder.embed_documents(TEXTS)
    embedder.close()


@pytest.mark.parametrize(
    ("provider", "model", "field"),
    [
        (FakeOpenAI, "", "dimensions"),
        (FakeVoyage, "", "output_dimension"),
        (FakeMistral, "codestral-embed", "output_dimension"),
        (FakeOllama, "", "dimensions"),
    ],
)
def test_fewer_dimensions_where_the_model_can(provider, model, field):
    with provider() as fake:
        embedder = open_embedder(fake, model=model, dimensions=256)
        assert embedder.identity.dimensions == 256
        assert embedder.embed_documents(TEXTS).shape == (3, 256)
        embedder.close()
        assert fake.requests[0].json[field] == 256


def test_gemini_s_shorter_vectors_are_normalised_here():
    with FakeGemini() as fake:
        embedder = open_embedder(fake, dimensions=768)
        rows = embedder.embed_documents(TEXTS)
        embedder.close()
        assert fake.requests[0].json["requests"][0]["outputDimensionality"] == 768
    assert np.linalg.norm(rows, axis=1) == pytest.approx([1, 1, 1])


def test_a_model_that_nobody_knows_is_asked_once():
    with FakeOpenAI(dimensions=321) as fake:
        embedder = open_embedder(fake, model="house-model")
        assert embedder.known_identity is None
        assert embedder.identity.dimensions == 321
        embedder.embed_documents(TEXTS)
        embedder.embed_query(TEXTS[0])
        again = open_embedder(fake, model="house-model")
        again.recall(embedder.identity)
        assert again.known_identity == embedder.identity
        embedder.close()
        assert len(fake.requests) == 3  # the question, the texts, the query


def test_a_server_that_sends_numbers_in_place_of_base64():
    class Plain(FakeOpenAI):
        def embeddings(self, body, texts, vectors, order):
            return super().embeddings({**body, "encoding_format": "float"}, texts, vectors, order)

    with Plain() as fake:
        embedder = open_embedder(fake)
        assert_same(embedder.embed_documents(TEXTS)[1], expected(fake, TEXTS[1]))
        embedder.close()


def test_a_server_of_your_own_needs_no_key():
    class Open(FakeOpenAI):
        def check_key(self, request):
            assert "authorization" not in request.headers

    with Open() as fake:
        embedder = open_embedder(fake, api_key="")
        assert len(embedder.embed_documents(TEXTS)) == 3
        embedder.close()


def test_prefixes_of_open_models_behind_an_openai_compatible_server():
    with FakeOpenAI(dimensions=768) as fake:
        embedder = open_embedder(fake, model="text-embedding-nomic-embed-text-v1.5")
        embedder.embed_query("wifi")
        embedder.close()
        assert fake.requests[0].json["input"] == ["search_query: wifi"]


def test_headers_of_your_own_are_sent(fake):
    embedder = open_embedder(fake, headers={"X-Team": "memory"})
    embedder.embed_query("wifi")
    embedder.close()
    assert fake.requests[0].headers["x-team"] == "memory"


# --- several requests --------------------------------------------------------------------------


def many(count=120):
    return [f"note {number} " + "about the harbour and its sheds " * 40 for number in range(count)]


@pytest.mark.slow
def test_requests_are_packed_and_order_is_kept(fake, embedder):
    texts = many()
    rows = embedder.embed_documents(texts)
    requests = fake.requests_to("embed")
    assert 4 < len(requests) < 12  # 320 tokens a text, 8,000 tokens a request at most
    for at in (0, 1, 57, 99, 119):
        assert_same(rows[at], expected(fake, texts[at]))


def test_four_at_once_over_four_connections():
    with FakeOpenAI(latency=0.05) as fake:
        embedder = open_embedder(fake)
        embedder.embed_documents(many(400))
        embedder.close()
        assert fake.peak == 4
        assert fake.connections == 4


def test_the_number_at_once_can_be_set():
    with FakeOpenAI(latency=0.02) as fake:
        embedder = open_embedder(fake, concurrency=2)
        embedder.embed_documents(many(200))
        embedder.close()
        assert fake.peak == 2


@pytest.mark.parametrize("fault", ["unauthorized", "quota"])
def test_a_terminal_failure_is_one_call_however_much_there_is_to_do(fake, embedder, fault):
    fake.inject(fault, times=None)
    with pytest.raises(ProviderError):
        embedder.embed_documents(many())
    assert len(fake.requests_to("embed")) == 1


def test_a_terminal_failure_later_on_stops_the_rest():
    with FakeOpenAI(latency=0.02) as fake:
        embedder = open_embedder(fake)
        parts = embedder.stream_documents(many(800))
        next(parts)
        fake.inject("unauthorized", times=None)
        with pytest.raises(ProviderError):
            list(parts)
        embedder.close()
        assert len(fake.requests_to("embed")) <= 2 + 2 * 4  # what was pending or answered when it began


def test_texts_are_drawn_no_faster_than_they_are_sent():
    drawn = 0

    def texts():
        nonlocal drawn
        for text in many(800):
            drawn += 1
            yield text

    with FakeOpenAI() as fake:
        embedder = open_embedder(fake)
        parts = embedder.stream_documents(texts())
        next(parts)
        assert drawn < 60
        parts.close()
        embedder.close()


def test_who_is_over_time_gets_nothing_more():
    with FakeOpenAI() as fake:
        fake.inject("hang", times=None)
        embedder = open_embedder(fake)
        over = threading.Event()
        threading.Timer(0.1, over.set).start()
        assert list(embedder.stream_documents(many(), is_over=over.is_set)) == []
        embedder.close()


def test_several_threads_at_once(fake, embedder):
    found = {}

    def ask(number):
        found[number] = embedder.embed_query(f"text {number}")

    threads = [threading.Thread(target=ask, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for number in range(6):
        assert_same(found[number], expected(fake, f"text {number}", query=True))


# --- texts that are too long, and texts that are refused -----------------------------------------


def test_a_text_over_the_limit_is_embedded_in_pieces_and_said_to_be(fake, embedder):
    long = " ".join(f"word{number}" for number in range(40_000))
    parts = list(embedder.stream_documents(["short", long]))
    assert [position for part in parts for position in part.split] == [1]
    rows = embedder.embed_documents([long])
    assert np.linalg.norm(rows[0]) == pytest.approx(1)
    sent = [request for request in fake.requests_to("embed") if request.json]
    assert all(len(str(request.json)) < 400_000 for request in sent)


def test_a_text_that_turns_out_too_long_is_split_then():
    """Signs of which every one is a token: far more tokens than its length tells."""

    class Strict(FakeOpenAI):
        def check_limits(self, texts, body):
            if any(len(text) > 3000 for text in texts):
                from tests.fakes.openai import ApiFailure, problem

                raise ApiFailure(400, problem("This model's maximum context length is 3000 tokens"))

    with Strict() as fake:
        embedder = open_embedder(fake)
        (part,) = embedder.stream_documents(["short", "§ " * 4000])
        embedder.close()
    assert sorted(part.positions) == [0, 1]
    assert part.split == [1]
    assert part.failed == {}


@pytest.mark.slow
@pytest.mark.parametrize("poisoned", [[0], [119], [3, 4, 60]])
def test_a_poisoned_text_costs_itself(fake, embedder, poisoned):
    texts = [f"{text} thermonuclear" if at in poisoned else text for at, text in enumerate(many())]
    fake.poison("thermonuclear")
    done, failed = set(), {}
    for part in embedder.stream_documents(texts):
        done |= set(part.positions)
        failed |= part.failed
    assert sorted(failed) == poisoned
    assert done == set(range(120)) - set(poisoned)
    assert all("refused" in reason for reason in failed.values())
    assert len(fake.requests_to("embed")) < 20 + 20 * len(poisoned)


def test_a_server_that_refuses_everything_is_asked_twice(fake, embedder):
    fake.inject("bad_request", times=None)
    with pytest.raises(ProviderError) as raised:
        embedder.embed_documents(many())
    assert raised.value.reason == "refused"
    each = 2 if fake.name == "openai" else 1  # also without base64
    assert len(fake.requests_to("embed")) == 2 * each  # the texts, and a harmless one


@pytest.mark.parametrize("fault", ["nan", "inf", "zero", "empty_vector"])
def test_a_vector_that_is_none_is_asked_for_again_and_then_costs_one_text(fake, embedder, fault):
    fake.inject(fault, times=1)
    assert len(embedder.embed_documents(TEXTS)) == 3
    fake.inject(fault, times=None)
    (part,) = embedder.stream_documents(TEXTS)
    assert list(part.failed) == [0]
    assert sorted(part.positions) == [1, 2]
    with pytest.raises(BadVectorError, match="returned an invalid vector"):
        embedder.embed_query("wifi")
