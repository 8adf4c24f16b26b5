"""Embedding models of hashed words, which cost nothing."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence

import numpy as np

from graphmem.embed.interface import TokenVectors
from graphmem.text.terms import terms


class WordVectors:
    """Vectors by hashed words: texts with the same words are near. `broken` makes each call fail."""

    def __init__(self, dimension: int = 64) -> None:
        self.model_name, self.dimension = f"words-{dimension}", dimension
        self.broken = False

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        if self.broken:
            raise ConnectionError("the model is away")
        return [self._vector(text) for text in texts]

    def embed_query(self, text: str) -> list[float]:
        return self.embed_documents([text])[0]

    def _vector(self, text: str) -> list[float]:
        vector = np.full(self.dimension, 0.01)
        for term in terms(text):
            vector[int.from_bytes(hashlib.blake2b(term.encode()).digest()[:4]) % self.dimension] += 1
        return vector.tolist()


class TokenWordVectors(WordVectors):
    """The same, with a vector for each word of a text."""

    def embed_tokens(self, texts: Sequence[str], /) -> list[TokenVectors]:
        return [self._tokens(text) for text in texts]

    def _tokens(self, text: str) -> TokenVectors:
        words = list(re.finditer(r"\w+", text))
        rows = np.array(self.embed_documents([*(word[0] for word in words), text]), np.float32)
        rows /= np.linalg.norm(rows, axis=1, keepdims=True)
        offsets = np.array([word.span() for word in words], np.int64).reshape(-1, 2)
        return TokenVectors(tuple(word[0].lower() for word in words), rows[:-1], offsets, rows[-1])
