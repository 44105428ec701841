"""The fakes show the faults they are told to, to any client, and end every connection with their block."""

from __future__ import annotations

import base64
import threading
import time

import httpx
import numpy as np
import pytest

from tests.fakes.providers import PROVIDERS, FakeOllama, FakeOpenAI, vector_of

TEXTS = ["one", "two", "three"]


def call(fake, client, texts=TEXTS):
    """Embed as each provider wants to be asked."""
    bearer = {"Authorization": f"Bearer {fake.key}"}
    if fake.name == "gemini":
        body = {"requests": [{"model": "models/m", "content": {"parts": [{"text": text}]}} for text in texts]}
        headers = {"x-goog-api-key": fake.key}
        return client.post(f"{fake.base_url}/models/m:batchEmbedContents", json=body, headers=headers)
    if fake.name == "ollama":
        return client.post(f"{fake.base_url}/api/embed", json={"model": "nomic-embed-text", "input": texts})
    return client.post(f"{fake.base_url}/embeddings", json={"model": "m", "input": texts}, headers=bearer)


def vectors_in(fake, answer):
    body = answer.json()
    if fake.name == "gemini":
        return [row["values"] for row in body["embeddings"]]
    return body["embeddings"] if fake.name == "ollama" else [row["embedding"] for row in body["data"]]


@pytest.fixture(params=PROVIDERS)
def fake(request):
    with PROVIDERS[request.param](dimensions=8) as fake:
        yield fake


@pytest.fixture
def client():
    with httpx.Client(timeout=0.3) as client:
        yield client


@pytest.mark.parametrize(
    ("fault", "status"),
    [("rate_limited", 429), ("quota", 429), ("unauthorized", 401), ("bad_request", 400), ("500", 500), ("503", 503)],
)
def test_a_status_is_answered_once_and_then_all_is_well(fake, client, fault, status):
    fake.inject(fault, retry_after="7")
    first = call(fake, client)
    assert (first.status_code, first.headers["retry-after"]) == (status, "7")
    assert first.json()
    assert call(fake, client).status_code == 200


@pytest.mark.slow
@pytest.mark.parametrize("fault", ["hang", "hang_mid_body", "reset"])
def test_the_wire_breaks(fake, client, fault):
    fake.inject(fault)
    with pytest.raises(httpx.TransportError):
        call(fake, client)
    assert call(fake, client).status_code == 200


@pytest.mark.slow
@pytest.mark.parametrize("fault", ["truncated_json", "html_200"])
def test_an_answer_that_is_no_json(fake, client, fault):
    fake.inject(fault)
    answer = call(fake, client)
    assert answer.status_code == 200
    with pytest.raises(ValueError, match=r"Expecting|Unterminated|delimiter"):
        answer.json()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("fault", "is_shown"),
    [
        pytest.param("nan", lambda rows: np.isnan(rows[0][1]), id="NaN"),
        pytest.param("inf", lambda rows: np.isinf(rows[0][1]), id="infinity"),
        pytest.param("zero", lambda rows: not any(rows[0]), id="zeros"),
        pytest.param("empty", lambda rows: rows == [], id="no vectors"),
        pytest.param("empty_vector", lambda rows: rows[0] == [], id="an empty vector"),
        pytest.param("wrong_dimensions", lambda rows: {len(row) for row in rows} == {7}, id="too short"),
        pytest.param("wrong_count", lambda rows: len(rows) == 2, id="one missing"),
    ],
)
def test_vectors_are_spoiled(fake, client, fault, is_shown):
    fake.inject(fault)
    assert is_shown(vectors_in(fake, call(fake, client)))
    assert not is_shown(vectors_in(fake, call(fake, client)))


def test_numbers_are_spoiled_where_there_are_numbers(fake, client):
    if not fake.numbered:
        with pytest.raises(ValueError, match="cannot show"):
            fake.inject("shuffled")
        return
    fake.inject("shuffled")
    fake.inject("duplicate_index")
    assert [row["index"] for row in call(fake, client).json()["data"]] == [2, 1, 0]
    assert [row["index"] for row in call(fake, client).json()["data"]] == [0, 1, 0]


def test_a_poisoned_text_spoils_its_request_only(fake, client):
    fake.poison("thr")
    assert call(fake, client).status_code == 400
    assert call(fake, client, ["one", "two"]).status_code == 200


def test_requests_are_recorded_with_their_connection(fake, client):
    for _ in range(3):
        call(fake, client)
    assert [request.route for request in fake.requests] == ["embed"] * 3
    assert {request.connection for request in fake.requests} == {1}
    assert fake.connections == 1


@pytest.mark.slow
def test_a_request_that_hangs_does_not_hold_up_the_others(fake):
    fake.inject("hang")
    with httpx.Client(timeout=30) as client:
        ended = []

        def hang():
            try:
                call(fake, client)
            except httpx.TransportError as error:
                ended.append(error)

        hanging = threading.Thread(target=hang)
        hanging.start()
        while not fake.requests:
            time.sleep(0.005)
        assert call(fake, client).status_code == 200
        fake.__exit__(None, None, None)  # ends what hangs
        hanging.join(10)
        assert len(ended) == 1
    assert len(fake.requests) == 2


def test_base64_and_numbers_are_the_same_vector(client):
    with FakeOpenAI(dimensions=8) as fake:
        body = {"model": "m", "input": "one", "encoding_format": "base64"}
        headers = {"Authorization": f"Bearer {fake.key}"}
        answer = client.post(f"{fake.base_url}/embeddings", json=body, headers=headers).json()
        packed = np.frombuffer(base64.b64decode(answer["data"][0]["embedding"]), "<f4")
        assert packed == pytest.approx(vector_of("one", 8, model="m"))
        assert packed == pytest.approx(np.array(vectors_in(fake, call(fake, client, ["one"]))[0]))


def test_ollama_has_no_batch_faults():
    with FakeOllama() as fake:
        assert not [name for name in fake.faults if name.startswith("batch_")]
