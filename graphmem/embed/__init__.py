"""Embedding models: the built-in one, LangChain models, and a validating wrapper with a cache.

Heavy dependencies are imported on first use of a model.
"""

from graphmem.embed.embedder import Embedder, choose_embeddings
from graphmem.embed.interface import Embeddings, TokenEmbeddings, TokenVectors
from graphmem.embed.minilm import MiniLM

__all__ = [
    "Embedder",
    "Embeddings",
    "MiniLM",
    "TokenEmbeddings",
    "TokenVectors",
    "choose_embeddings",
]
