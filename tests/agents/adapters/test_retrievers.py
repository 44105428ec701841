"""LangChain's and LlamaIndex's retrievers on a memory, in chains with a fake model."""

from __future__ import annotations

import asyncio

import pytest

from notewell import Memory, QueryError

pytestmark = pytest.mark.slow


def langchain_retriever(memory, **options):
    pytest.importorskip("langchain_core", reason="needs the extra `langchain`")
    from notewell.agents.adapters.langchain import MemoryRetriever

    retriever = MemoryRetriever(memory=memory, **options)

    def ask(query):
        return [(each.id, each.page_content, each.metadata) for each in retriever.invoke(query)]

    async def ask_later(query):
        return [(each.id, each.page_content, each.metadata) for each in await retriever.ainvoke(query)]

    return ask, ask_later


def llama_index_retriever(memory, **options):
    pytest.importorskip("llama_index.core", reason="needs the extra `llama-index`")
    from notewell.agents.adapters.llama_index import MemoryRetriever

    retriever = MemoryRetriever(memory, **options)

    def ask(query):
        return [(each.node.node_id, each.node.get_content(), each.node.metadata) for each in retriever.retrieve(query)]

    async def ask_later(query):
        return [
            (each.node.node_id, each.node.get_content(), each.node.metadata)
            for each in await retriever.aretrieve(query)
        ]

    return ask, ask_later


@pytest.fixture(params=[langchain_retriever, llama_index_retriever], ids=["langchain", "llama_index"])
def opened(request):
    return request.param


def test_passages_come_with_their_citation_and_how_they_were_found(opened, memory):
    ask, ask_later = opened(memory, limit=1)
    [(own_id, text, metadata)] = ask("guest wifi network name")
    hit = memory.search("guest wifi network name", limit=1).hits[0]
    assert own_id == hit.citation == metadata["citation"]
    assert "VLAN 30, its name is heron-guest" in text
    assert metadata | {"score": None} == {
        "path": "memory/network.md",
        "first_line": hit.first_line,
        "last_line": hit.last_line,
        "citation": hit.citation,
        "score": None,
        "source": "memory",
        "found_by": "keyword",
        "mode": "keyword",
    }
    assert metadata["score"] == pytest.approx(hit.score)
    assert asyncio.run(ask_later("guest wifi network name")) == [(own_id, text, metadata)]


def test_the_options_are_those_of_search(opened, workspace):
    (workspace / "memory" / "long.md").write_text(
        "# Long\n\n" + "The heron stands still. " * 80 + "\n", encoding="utf-8"
    )
    with Memory.open(workspace, provider="none") as memory:
        ask, _ = opened(memory, since="2026-11-01", until="2026-11-01")
        assert [each[2]["path"] for each in ask("PostgreSQL billing")] == ["memory/2026-11-01.md"]
        ask, _ = opened(memory, chat="group")
        assert "MEMORY.md" not in [each[2]["path"] for each in ask("tea over coffee")]
        whole, _ = opened(memory, limit=1)
        short, _ = opened(memory, limit=1, whole_passages=False)
        assert len(whole("heron stands")[0][1]) > 1000
        assert len(short("heron stands")[0][1]) <= 700
        fenced, _ = opened(memory, limit=1, fenced=True)
        assert fenced("printer")[0][1].startswith('<recalled-memory origin="memory/network.md#L')


@pytest.mark.parametrize(
    ("options", "mode"),
    [
        ({}, "hybrid"),
        ({"mode": "hybrid"}, "hybrid"),
        ({"mode": "semantic"}, "semantic"),
        ({"mode": "keyword"}, "keyword"),
        ({"keyword_only": True}, "keyword"),
    ],
    ids=str,
)
def test_each_mode(opened, workspace, options, mode):
    with Memory.open(workspace, provider="hashing") as memory:
        memory.index()
        ask, _ = opened(memory, limit=1, **options)
        [(_, _, metadata)] = ask("guest wifi network name")
        assert (metadata["path"], metadata["mode"]) == ("memory/network.md", mode)
        ask, _ = opened(memory, mode="semantic", keyword_only=True)
        with pytest.raises(QueryError, match="keyword_only contradicts mode 'semantic'"):
            ask("guest wifi network name")


def test_errors_are_raised_and_notes_are_logged(opened, tmp_path, caplog):
    (tmp_path / "memory").mkdir()
    with Memory.open(tmp_path, provider="none") as memory:
        ask, _ = opened(memory, limit=0)
        with pytest.raises(QueryError):
            ask("anything")
        ask, _ = opened(memory)
        assert ask("anything") == []
    assert "no notes yet" in caplog.text


def test_a_langchain_chain_answers_from_it(memory):
    pytest.importorskip("langchain_core", reason="needs the extra `langchain`")
    from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
    from langchain_core.messages import AIMessage
    from langchain_core.prompts import ChatPromptTemplate
    from langchain_core.runnables import RunnablePassthrough

    from notewell.agents.adapters.langchain import MemoryRetriever

    seen = []

    class Model(GenericFakeChatModel):
        def _generate(self, messages, *args, **kwargs):
            seen.append(messages[-1].content)
            return super()._generate(messages, *args, **kwargs)

    prompt = ChatPromptTemplate.from_template("{context}\n\n{question}")
    context = MemoryRetriever(memory=memory, limit=1) | (lambda found: found[0].page_content)
    chain = (
        {"context": context, "question": RunnablePassthrough()} | prompt | Model(messages=iter([AIMessage("VLAN 30")]))
    )
    assert chain.invoke("which VLAN has the guest network?").content == "VLAN 30"
    assert "heron-guest" in seen[0]


def test_a_llama_index_query_engine_answers_from_it(memory):
    pytest.importorskip("llama_index.core", reason="needs the extra `llama-index`")
    from llama_index.core.llms import MockLLM
    from llama_index.core.query_engine import RetrieverQueryEngine
    from llama_index.core.response_synthesizers import get_response_synthesizer

    from notewell.agents.adapters.llama_index import MemoryRetriever

    engine = RetrieverQueryEngine(
        MemoryRetriever(memory, limit=1), response_synthesizer=get_response_synthesizer(llm=MockLLM())
    )
    answer = engine.query("which VLAN has the guest network?")
    assert "heron-guest" in str(answer)  # the mock says what it was asked
    assert [each.node.metadata["path"] for each in answer.source_nodes] == ["memory/network.md"]
