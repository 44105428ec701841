"""Offers notewell under the names of OpenClaw's memory: its search manager, its fallback and its small functions.

For programs that know that interface. Functions and arguments are in snake case; dictionaries that leave a call have
OpenClaw's own field names, such as `startLine`. Everything is synchronous: in an event loop, use `asyncio.to_thread`.
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
