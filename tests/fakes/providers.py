"""The embedding providers on the loopback interface, each as its official SDK knows it.

with FakeOpenAI() as provider:
    provider.inject("rate_limited", retry_after="0")
    ...  # remote.base_url = provider.base_url, remote.api_key = provider.key
assert len(provider.requests_to("embed")) == 2
"""

from __future__ import annotations

from tests.fakes.faults import BATCH_FAULTS, INDEX_FAULTS, STATUS_FAULTS, VECTOR_FAULTS, WIRE_FAULTS
from tests.fakes.gemini import FakeGemini
from tests.fakes.loopback import Request
from tests.fakes.mistral import FakeMistral
from tests.fakes.ollama import FakeOllama
from tests.fakes.openai import FakeOpenAI
from tests.fakes.provider import FakeProvider
from tests.fakes.vectors import vector_of
from tests.fakes.voyage import FakeVoyage

PROVIDERS: dict[str, type[FakeProvider]] = {
    fake.name: fake for fake in (FakeOpenAI, FakeGemini, FakeVoyage, FakeMistral, FakeOllama)
}

__all__ = [
    "BATCH_FAULTS",
    "INDEX_FAULTS",
    "PROVIDERS",
    "STATUS_FAULTS",
    "VECTOR_FAULTS",
    "WIRE_FAULTS",
    "FakeGemini",
    "FakeMistral",
    "FakeOllama",
    "FakeOpenAI",
    "FakeProvider",
    "FakeVoyage",
    "Request",
    "vector_of",
]
