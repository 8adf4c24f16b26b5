"""Adapter from embedding models of graphmem to the LangChain base class."""

from __future__ import annotations

from graphmem.embed.interface import Embeddings
from graphmem.errors import MissingExtra

try:
    from langchain_core.embeddings import Embeddings as LangChainBase
except ImportError as error:
    raise MissingExtra("graphmem.embed.langchain", "langchain") from error


class LangChainEmbeddings(LangChainBase):
    """Adapter of any model with ``embed_documents`` and ``embed_query`` to LangChain, including the async methods.

    Parameters
    ----------
    model
        The model, for example a `MiniLM`.
    """

    def __init__(self, model: Embeddings) -> None:
        self._model = model

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        """Return a vector for each text."""
        return self._model.embed_documents(texts)

    def embed_query(self, text: str) -> list[float]:
        """Return the vector of a query."""
        return self._model.embed_query(text)
