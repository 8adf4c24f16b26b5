"""Protocols of embedding models: the LangChain interface, and token vectors for models that provide them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray


@runtime_checkable
class Embeddings(Protocol):
    """Embedding model; any ``langchain_core.embeddings.Embeddings`` conforms."""

    def embed_documents(self, texts: list[str], /) -> list[list[float]]:
        """Return a vector for each text to index."""
        ...

    def embed_query(self, text: str, /) -> list[float]:
        """Return the vector of a query."""
        ...


@dataclass(frozen=True, slots=True)
class TokenVectors:
    """Token vectors and pooled vector of a text from one forward pass.

    Parameters
    ----------
    pieces
        The m tokens of the text, without special tokens of the model.
    vectors
        float32 (m, dimension), unit length: one contextual vector per token.
    offsets
        int64 (m, 2): start and end of each token in the text, in characters.
    pooled
        float32 (dimension,), unit length: the vector of the whole text, special tokens included, as returned by
        ``embed_documents`` and ``embed_query``.
    vocabulary_coverage
        How well the vocabulary of the model covers the text, in [0, 1]: 0 if it splits all words into characters, as
        those of a script that it wasn't trained on. The weight of the vectors of a question is multiplied by it.
    """

    pieces: tuple[str, ...]
    vectors: NDArray[np.float32]
    offsets: NDArray[np.int64]
    pooled: NDArray[np.float32]
    vocabulary_coverage: float = 1.0


@runtime_checkable
class TokenEmbeddings(Embeddings, Protocol):
    """Embedding model with token vectors for late interaction; it embeds queries and documents alike."""

    def embed_tokens(self, texts: Sequence[str], /) -> list[TokenVectors]:
        """Return the token vectors and the pooled vector of each text from one forward pass."""
        ...
