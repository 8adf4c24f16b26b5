"""The interface of an embedding model: LangChain's, and token vectors where a model has them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray


@runtime_checkable
class Embeddings(Protocol):
    """A model that gives texts vectors; any ``langchain_core.embeddings.Embeddings`` is one."""

    def embed_documents(self, texts: list[str], /) -> list[list[float]]:
        """Return a vector for each text that is to be found."""
        ...

    def embed_query(self, text: str, /) -> list[float]:
        """Return the vector of a text that is searched with."""
        ...


@dataclass(frozen=True, slots=True)
class TokenVectors:
    """What one pass of a model tells about a text.

    Parameters
    ----------
    pieces
        The m tokens of the text itself, without the model's special ones.
    vectors
        float32 (m, dimension), each of unit length: the piece in its context.
    offsets
        int64 (m, 2): where a piece starts and ends in the text, in characters.
    pooled
        float32 (dimension,), of unit length: the vector of the whole text, special tokens included; what
        ``embed_documents`` and ``embed_query`` give for it.
    """

    pieces: tuple[str, ...]
    vectors: NDArray[np.float32]
    offsets: NDArray[np.int64]
    pooled: NDArray[np.float32]


@runtime_checkable
class TokenEmbeddings(Embeddings, Protocol):
    """A model that also gives its tokens' vectors, which late interaction needs; it reads questions like any text."""

    def embed_tokens(self, texts: Sequence[str], /) -> list[TokenVectors]:
        """Return the token vectors and the pooled vector of each text, from one pass."""
        ...
