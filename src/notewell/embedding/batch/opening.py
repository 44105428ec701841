"""Opens the batch jobs of an embedder: an embedder and the state folder come in, its jobs go out."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from notewell.embedding.batch.ledger import Ledger
from notewell.embedding.http.patience import Patience

if TYPE_CHECKING:
    from pathlib import Path

    from notewell.embedding.batch.jobs import BatchJobs
    from notewell.protocols import Embedder

WITH_JOBS = ("openai", "gemini", "voyage", "mistral")


def has_jobs(embedder: Embedder | None) -> bool:
    """Say whether the embedder's provider takes batch jobs."""
    from notewell.embedding.providers.embedder import RemoteEmbedder

    return isinstance(embedder, RemoteEmbedder) and embedder.api.name in WITH_JOBS


def open_jobs(
    embedder: Embedder,
    state_folder: Path,
    *,
    patience: Patience | None = None,
    pause: Callable[[float], None] = time.sleep,
) -> BatchJobs:
    """Return the jobs of an embedder that `has_jobs`; nothing is called yet."""
    from notewell.embedding.batch.calls import JobCalls
    from notewell.embedding.batch.driver import JobDriver
    from notewell.embedding.batch.gemini import GeminiJobs
    from notewell.embedding.batch.jobs import BatchJobs
    from notewell.embedding.batch.openai_family import OpenAIFamilyJobs
    from notewell.embedding.providers.embedder import RemoteEmbedder

    assert isinstance(embedder, RemoteEmbedder)
    calls = JobCalls(embedder.service, patience or Patience())
    driver: JobDriver = (
        GeminiJobs(calls, embedder) if embedder.api.name == "gemini" else OpenAIFamilyJobs(calls, embedder)
    )
    return BatchJobs(driver, Ledger(state_folder), embedder, pause=pause)
