"""An embedding model of graphmem where LangChain insists on its own class."""

from __future__ import annotations

from graphmem.embed.interface import Embeddings
from graphmem.errors import MissingExtra

try:
    from langchain_core.embeddings import Embeddings as LangChainBase
except ImportError as error:
    raise MissingExtra("graphmem.embed.langchain", "langchain") from error


class LangChainEmbeddings(LangChainBase):
    """Gives any model with ``embed_documents`` and ``embed_query`` LangChain's base class, and so its async twins.

    Parameters
    ----------
    model
        For example a `MiniLM`.
    """

    def __init__(self, model: Embeddings) -> None:
        self._model = model

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        """Return a vector for each text."""
        return self._model.embed_documents(texts)

    def embed_query(self, text: str) -> list[float]:
        """Return the vector of a question."""
        return self._model.embed_query(text)
