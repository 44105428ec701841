"""A LangChain retriever for chains and agents."""

from __future__ import annotations

import asyncio
from datetime import date
from typing import TYPE_CHECKING, Any

from notewell.agents.adapters.shared import needs_extra, passages_for
from notewell.search.options import SearchOptions

with needs_extra("langchain"):
    from langchain_core.documents import Document
    from langchain_core.retrievers import BaseRetriever

if TYPE_CHECKING:
    from langchain_core.callbacks import AsyncCallbackManagerForRetrieverRun, CallbackManagerForRetrieverRun

__all__ = ["MemoryRetriever"]


class MemoryRetriever(BaseRetriever):
    """Retrieves passages from a memory: `MemoryRetriever(memory=memory, limit=4).invoke("what did we decide?")`.

    The options are those of `Memory.search`. A document holds the whole passage; its `id` is the citation.
    """

    memory: Any  # a notewell.Memory; Any keeps pydantic from validating it
    limit: int | None = None
    min_score: float | None = None
    source: str | None = None
    since: str | date | None = None
    until: str | date | None = None
    chat: str | None = None
    mode: str | None = None
    keyword_only: bool = False
    whole_passages: bool = True
    fenced: bool = False

    def _get_relevant_documents(
        self,
        query: str,
        *,
        run_manager: CallbackManagerForRetrieverRun | None = None,  # noqa: ARG002
    ) -> list[Document]:
        options: Any = {name: value for name, value in self if name in SearchOptions.__annotations__}
        found = passages_for(self.memory, query, whole=self.whole_passages, fenced=self.fenced, options=options)
        return [Document(id=facts["citation"], page_content=text, metadata=facts) for text, facts in found]

    async def _aget_relevant_documents(
        self,
        query: str,
        *,
        run_manager: AsyncCallbackManagerForRetrieverRun | None = None,  # noqa: ARG002
    ) -> list[Document]:
        return await asyncio.to_thread(self._get_relevant_documents, query)
