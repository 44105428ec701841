"""A LlamaIndex retriever for query engines."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from notewell.agents.adapters.shared import needs_extra, passages_for

with needs_extra("llama-index"):
    from llama_index.core.retrievers import BaseRetriever
    from llama_index.core.schema import NodeWithScore, QueryBundle, TextNode

if TYPE_CHECKING:
    from typing import Unpack

    from llama_index.core.callbacks import CallbackManager

    from notewell.memory.memory import Memory
    from notewell.search.options import SearchOptions

__all__ = ["MemoryRetriever"]


class MemoryRetriever(BaseRetriever):
    """Retrieves passages from a memory; the options are those of `Memory.search`. A node's id is its citation."""

    def __init__(
        self,
        memory: Memory,
        *,
        whole_passages: bool = True,
        fenced: bool = False,
        callback_manager: CallbackManager | None = None,
        verbose: bool = False,
        **options: Unpack[SearchOptions],
    ) -> None:
        super().__init__(callback_manager=callback_manager, verbose=verbose)
        self._memory = memory
        self._whole = whole_passages
        self._fenced = fenced
        self._options = options

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        found = passages_for(
            self._memory, query_bundle.query_str, whole=self._whole, fenced=self._fenced, options=self._options
        )
        return [
            NodeWithScore(node=TextNode(id_=facts["citation"], text=text, metadata=facts), score=facts["score"])
            for text, facts in found
        ]

    async def _aretrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        return await asyncio.to_thread(self._retrieve, query_bundle)
