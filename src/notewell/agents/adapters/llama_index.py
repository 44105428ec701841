"""A LlamaIndex retriever for query engines."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Literal

from notewell.agents.adapters.shared import needs_extra, passages_for

with needs_extra("llama-index"):
    from llama_index.core.retrievers import BaseRetriever
    from llama_index.core.schema import NodeWithScore, QueryBundle, TextNode

if TYPE_CHECKING:
    from datetime import date

    from notewell.memory.memory import Memory
    from notewell.sources.privacy import Chat
    from notewell.types import SearchMode, SourceName

__all__ = ["MemoryRetriever"]


class MemoryRetriever(BaseRetriever):
    """Retrieves passages from a memory; the options are those of `Memory.search`. A node's id is its citation."""

    def __init__(
        self,
        memory: Memory,
        *,
        limit: int | None = None,
        min_score: float | None = None,
        source: SourceName | Literal["all"] | None = None,
        since: str | date | None = None,
        until: str | date | None = None,
        chat: Chat | None = None,
        mode: SearchMode | None = None,
        keyword_only: bool = False,
        whole_passages: bool = True,
        fenced: bool = False,
        **kwargs: Any,
    ) -> None:
        self._memory = memory
        self._options: dict[str, Any] = {
            "limit": limit,
            "min_score": min_score,
            "source": source,
            "since": since,
            "until": until,
            "chat": chat,
            "mode": mode,
            "keyword_only": keyword_only,
        }
        self._whole = whole_passages
        self._fenced = fenced
        super().__init__(**kwargs)

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        found = passages_for(
            self._memory, query_bundle.query_str, whole=self._whole, fenced=self._fenced, options=self._options
        )
        return [
            NodeWithScore(node=TextNode(id_=each.citation, text=each.text, metadata=each.metadata), score=each.score)
            for each in found
        ]

    async def _aretrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        return await asyncio.to_thread(self._retrieve, query_bundle)
