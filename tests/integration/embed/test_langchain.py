"""The built-in model where LangChain wants its own class."""

from __future__ import annotations

import asyncio

import pytest

pytest.importorskip("langchain_core")

from langchain_core.embeddings import DeterministicFakeEmbedding, Embeddings
from langchain_core.vectorstores import InMemoryVectorStore

from graphmem.embed import Embedder
from graphmem.embed.langchain import LangChainEmbeddings
from tests.integration.embed.support import real_model


@pytest.fixture(scope="module")
def embeddings() -> LangChainEmbeddings:
    return LangChainEmbeddings(real_model())


def test_adapter_is_langchains_embeddings(embeddings: LangChainEmbeddings) -> None:
    assert isinstance(embeddings, Embeddings)


def test_vector_store_finds_by_meaning(embeddings: LangChainEmbeddings) -> None:
    store = InMemoryVectorStore(embeddings)
    store.add_texts(["Interest rates rose again.", "Melanie painted a sunrise."])
    assert store.similarity_search("Who makes pictures?", k=1)[0].page_content == "Melanie painted a sunrise."


def test_async_twins_give_the_same_vectors(embeddings: LangChainEmbeddings) -> None:
    assert asyncio.run(embeddings.aembed_query("x")) == embeddings.embed_query("x")
    assert asyncio.run(embeddings.aembed_documents(["x"])) == embeddings.embed_documents(["x"])


def test_langchains_own_embeddings_are_taken() -> None:
    embedder = Embedder(DeterministicFakeEmbedding(size=8))
    assert embedder.vectors(["a", "b"]).shape == (2, 8)
    assert embedder.dimension == 8
    assert embedder.token_vectors(["a"]) is None
