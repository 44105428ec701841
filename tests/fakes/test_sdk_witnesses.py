"""The providers' own SDKs embed and run batch jobs against the fakes: the fakes are as good as what they accept.

Voyage's SDK has no batch jobs: its routes are spoken to over plain HTTP, as Voyage's own documentation does.
"""

from __future__ import annotations

import io
import json
import warnings

import httpx
import numpy as np
import pytest

from tests.fakes.providers import FakeGemini, FakeMistral, FakeOllama, FakeOpenAI, FakeVoyage, vector_of

pytestmark = pytest.mark.slow

TEXTS = ["the guest network is VLAN 30", "服务器将在下周进行数据库迁移", "tea over coffee"]


def sdk(name):
    """Return an SDK; what it warns of while it is loaded is its own affair."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return pytest.importorskip(name, reason=f"{name} is a development dependency that is not installed")


def expected(dimensions, *, model, side=""):
    return np.stack([vector_of(text, dimensions, side=side, model=model) for text in TEXTS])


def jsonl(lines):
    return "".join(json.dumps(line) + "\n" for line in lines).encode()


# --- OpenAI --------------------------------------------------------------------------------------


@pytest.fixture
def openai_pair():
    openai = sdk("openai")
    with FakeOpenAI() as fake, openai.OpenAI(api_key=fake.key, base_url=fake.base_url, max_retries=0) as client:
        yield openai, client, fake


def test_openai_embeds(openai_pair):
    _, client, fake = openai_pair
    answer = client.embeddings.create(model="text-embedding-3-small", input=TEXTS)
    assert fake.requests[0].json["encoding_format"] == "base64"
    assert np.array([row.embedding for row in answer.data]) == pytest.approx(
        expected(1536, model="text-embedding-3-small"), abs=1e-7
    )
    short = client.embeddings.create(
        model="text-embedding-3-small", input=TEXTS, dimensions=256, encoding_format="float"
    )
    assert {len(row.embedding) for row in short.data} == {256}


def test_openai_raises_its_own_errors(openai_pair):
    openai, client, fake = openai_pair
    fake.inject("rate_limited", retry_after="1")
    fake.inject("quota")
    fake.inject("unauthorized")
    fake.inject("500")
    for kind in (openai.RateLimitError, openai.RateLimitError, openai.AuthenticationError, openai.InternalServerError):
        with pytest.raises(kind):
            client.embeddings.create(model="m", input=TEXTS)
    with pytest.raises(openai.BadRequestError, match="maximum length 2048"):
        client.embeddings.create(model="m", input=["x"] * 2049)
    with pytest.raises(openai.AuthenticationError), openai.OpenAI(api_key="wrong", base_url=fake.base_url) as stranger:
        stranger.embeddings.create(model="m", input=TEXTS)


def test_openai_runs_a_batch_job(openai_pair):
    _, client, fake = openai_pair
    lines = [
        {
            "custom_id": f"c{at}",
            "method": "POST",
            "url": "/v1/embeddings",
            "body": {"model": "text-embedding-3-small", "input": text},
        }
        for at, text in enumerate(TEXTS)
    ]
    file = client.files.create(file=("in.jsonl", jsonl(lines)), purpose="batch")
    job = client.batches.create(
        input_file_id=file.id, endpoint="/v1/embeddings", completion_window="24h", metadata={"mark": "m1"}
    )
    assert client.batches.retrieve(job.id).status == "in_progress"
    done = client.batches.retrieve(job.id)
    assert (done.status, done.request_counts.completed) == ("completed", 3)
    answers = [json.loads(line) for line in client.files.content(done.output_file_id).text.splitlines()]
    by_id = {answer["custom_id"]: answer["response"]["body"]["data"][0]["embedding"] for answer in answers}
    assert np.array([by_id[f"c{at}"] for at in range(3)]) == pytest.approx(
        expected(1536, model="text-embedding-3-small"), abs=1e-7
    )
    assert [found.metadata for found in client.batches.list()] == [{"mark": "m1"}]
    client.files.delete(file.id)
    assert file.id not in fake.book.files


# --- Gemini --------------------------------------------------------------------------------------


@pytest.fixture
def gemini_pair():
    genai = sdk("google.genai")
    with FakeGemini() as fake:
        options = genai.types.HttpOptions(base_url=fake.root_url)
        client = genai.Client(api_key=fake.key, http_options=options)
        yield genai, client, fake
        client.close()


def test_gemini_embeds(gemini_pair):
    genai, client, fake = gemini_pair
    config = genai.types.EmbedContentConfig(task_type="RETRIEVAL_DOCUMENT")
    answer = client.models.embed_content(model="gemini-embedding-001", contents=TEXTS, config=config)
    assert fake.requests[0].path.endswith("/models/gemini-embedding-001:batchEmbedContents")
    assert np.array([row.values for row in answer.embeddings]) == pytest.approx(
        expected(3072, model="gemini-embedding-001", side="RETRIEVAL_DOCUMENT"), abs=1e-7
    )


def test_gemini_raises_its_own_errors(gemini_pair):
    genai, client, fake = gemini_pair
    fake.inject("quota")
    with pytest.raises(genai.errors.ClientError, match="RESOURCE_EXHAUSTED"):
        client.models.embed_content(model="gemini-embedding-001", contents=TEXTS)
    fake.key = "another"
    with pytest.raises(genai.errors.ClientError, match="API key not valid"):
        client.models.embed_content(model="gemini-embedding-001", contents=TEXTS)


@pytest.mark.filterwarnings("ignore:batches.create_embeddings.. is experimental")
def test_gemini_runs_a_batch_job(gemini_pair):
    genai, client, fake = gemini_pair
    lines = [
        {"key": f"c{at}", "request": {"content": {"parts": [{"text": text}]}, "taskType": "RETRIEVAL_DOCUMENT"}}
        for at, text in enumerate(TEXTS)
    ]
    upload = genai.types.UploadFileConfig(mime_type="application/jsonl", display_name="in")
    file = client.files.upload(file=io.BytesIO(jsonl(lines)), config=upload)
    job = client.batches.create_embeddings(
        model="gemini-embedding-001",
        src=genai.types.EmbeddingsBatchJobSource(file_name=file.name),
        config=genai.types.CreateEmbeddingsBatchJobConfig(display_name="m1"),
    )
    assert client.batches.get(name=job.name).state == "JOB_STATE_RUNNING"
    done = client.batches.get(name=job.name)
    assert done.state == "JOB_STATE_SUCCEEDED"
    content = client.files.download(file=done.dest.file_name)
    by_id = {
        answer["key"]: answer["response"]["embedding"]["values"] for answer in map(json.loads, content.splitlines())
    }
    assert np.array([by_id[f"c{at}"] for at in range(3)]) == pytest.approx(
        expected(3072, model="gemini-embedding-001", side="RETRIEVAL_DOCUMENT"), abs=1e-7
    )
    assert [found.display_name for found in client.batches.list()] == ["m1"]
    client.files.delete(name=file.name)
    assert file.name not in fake.book.files


# --- Voyage --------------------------------------------------------------------------------------


def test_voyage_embeds_both_sides():
    voyageai = sdk("voyageai")
    with FakeVoyage() as fake:
        client = voyageai.Client(api_key=fake.key, base_url=fake.base_url, max_retries=0)
        for side in ("document", "query"):
            answer = client.embed(TEXTS, model="voyage-4-large", input_type=side)
            assert np.array(answer.embeddings) == pytest.approx(
                expected(1024, model="voyage-4-large", side=side), abs=1e-7
            )
        fake.inject("rate_limited", times=None)
        with pytest.raises(voyageai.error.RateLimitError):
            client.embed(TEXTS, model="voyage-4-large")
        fake.clear_faults()
        stranger = voyageai.Client(api_key="wrong", base_url=fake.base_url, max_retries=0)
        with pytest.raises(voyageai.error.AuthenticationError):
            stranger.embed(TEXTS, model="voyage-4-large")


def test_voyage_runs_a_batch_job():
    with FakeVoyage() as fake, httpx.Client(headers={"Authorization": f"Bearer {fake.key}"}) as client:
        lines = [{"custom_id": f"c{at}", "body": {"input": [text]}} for at, text in enumerate(TEXTS)]
        files = {"file": ("in.jsonl", jsonl(lines), "application/jsonl")}
        file = client.post(f"{fake.base_url}/files", files=files, data={"purpose": "batch"}).raise_for_status().json()
        request = {
            "input_file_id": file["id"],
            "endpoint": "/v1/embeddings",
            "completion_window": "12h",
            "request_params": {"model": "voyage-4-large", "input_type": "document"},
            "metadata": {"mark": "m1"},
        }
        job = client.post(f"{fake.base_url}/batches", json=request).raise_for_status().json()
        states = [client.get(f"{fake.base_url}/batches/{job['id']}").raise_for_status().json() for _ in range(2)]
        assert [state["status"] for state in states] == ["in_progress", "completed"]
        output = client.get(f"{fake.base_url}/files/{states[1]['output_file_id']}/content").raise_for_status()
        answers = {answer["custom_id"]: answer for answer in map(json.loads, output.text.splitlines())}
        vectors = [answers[f"c{at}"]["response"]["body"]["data"][0]["embedding"] for at in range(3)]
        assert np.array(vectors) == pytest.approx(expected(1024, model="voyage-4-large", side="document"), abs=1e-7)


# --- Mistral -------------------------------------------------------------------------------------


@pytest.fixture
def mistral_pair():
    mistral = sdk("mistralai.client")
    with FakeMistral() as fake, mistral.Mistral(api_key=fake.key, server_url=fake.root_url) as client:
        yield mistral, client, fake


def test_mistral_embeds(mistral_pair):
    mistral, client, _ = mistral_pair
    answer = client.embeddings.create(model="mistral-embed", inputs=TEXTS)
    assert np.array([row.embedding for row in answer.data]) == pytest.approx(
        expected(1024, model="mistral-embed"), abs=1e-7
    )
    with pytest.raises(mistral.errors.SDKError, match="Too many inputs"):
        client.embeddings.create(model="mistral-embed", inputs=["x"] * 513)


def test_mistral_runs_a_batch_job(mistral_pair):
    _, client, _ = mistral_pair
    lines = [{"custom_id": f"c{at}", "body": {"input": text}} for at, text in enumerate(TEXTS)]
    file = client.files.upload(file={"file_name": "in.jsonl", "content": jsonl(lines)}, purpose="batch")
    job = client.batch.jobs.create(
        endpoint="/v1/embeddings",
        input_files=[file.id],
        model="mistral-embed",
        metadata={"mark": "m1"},
        timeout_hours=24,
    )
    assert client.batch.jobs.get(job_id=job.id).status == "RUNNING"
    done = client.batch.jobs.get(job_id=job.id)
    assert (done.status, done.succeeded_requests) == ("SUCCESS", 3)
    content = client.files.download(file_id=done.output_file).read()
    answers = {answer["custom_id"]: answer for answer in map(json.loads, content.splitlines())}
    vectors = [answers[f"c{at}"]["response"]["body"]["data"][0]["embedding"] for at in range(3)]
    assert np.array(vectors) == pytest.approx(expected(1024, model="mistral-embed"), abs=1e-7)
    assert [found.metadata for found in client.batch.jobs.list().data] == [{"mark": "m1"}]


# --- Ollama --------------------------------------------------------------------------------------


def test_ollama_embeds():
    ollama = sdk("ollama")
    with FakeOllama() as fake:
        client = ollama.Client(host=fake.base_url)
        answer = client.embed(model="nomic-embed-text", input=TEXTS)
        assert np.array(answer.embeddings) == pytest.approx(expected(768, model="nomic-embed-text"), abs=1e-7)
        with pytest.raises(ollama.ResponseError, match="try pulling it first"):
            client.embed(model="absent", input=TEXTS)
        client._client.close()
