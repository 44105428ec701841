"""Offers notewell under OpenClaw's names: its memory search manager, the fallback manager and its helper functions.

For programs written for that interface. Functions and arguments are in snake case; returned dictionaries have
OpenClaw's field names, such as `startLine`. Everything is synchronous: in an event loop, use `asyncio.to_thread`.
"""

from __future__ import annotations

from notewell.openclaw.functions import (
    bm25_rank_to_score,
    build_file_entry,
    build_fts_query,
    chunk_id,
    chunk_markdown,
    cosine_similarity,
    hash_text,
    list_memory_files,
    merge_hybrid_results,
    parse_embedding,
    run_with_concurrency,
)
from notewell.openclaw.managers import (
    FallbackMemoryManager,
    MemoryIndexManager,
    MemorySearchManager,
    agent_of,
    get_memory_search_manager,
)

__all__ = [
    "FallbackMemoryManager",
    "MemoryIndexManager",
    "MemorySearchManager",
    "agent_of",
    "bm25_rank_to_score",
    "build_file_entry",
    "build_fts_query",
    "chunk_id",
    "chunk_markdown",
    "cosine_similarity",
    "get_memory_search_manager",
    "hash_text",
    "list_memory_files",
    "merge_hybrid_results",
    "parse_embedding",
    "run_with_concurrency",
]
