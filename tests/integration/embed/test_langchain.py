"""Models of LangChain in place of the built-in one."""

from __future__ import annotations

import pytest

pytest.importorskip("langchain_core")

from langchain_core.embeddings import DeterministicFakeEmbedding

from graphmem.embed import Embedder


def test_langchains_own_embeddings_are_taken() -> None:
    embedder = Embedder(DeterministicFakeEmbedding(size=8))
    assert embedder.vectors(["a", "b"]).shape == (2, 8)
    assert embedder.dimension == 8
    assert embedder.token_vectors(["a"]) is None
