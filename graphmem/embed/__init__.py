"""Embedding models: the built-in one, LangChain's, and what makes any of them safe to build on.

Nothing heavy is imported until a model is used.
"""

from graphmem.embed.choose import choose_embeddings
from graphmem.embed.embedder import CacheInfo, Embedder
from graphmem.embed.interface import Embeddings, TokenEmbeddings, TokenVectors
from graphmem.embed.minilm import MiniLM

__all__ = [
    "CacheInfo",
    "Embedder",
    "Embeddings",
    "MiniLM",
    "TokenEmbeddings",
    "TokenVectors",
    "choose_embeddings",
]
