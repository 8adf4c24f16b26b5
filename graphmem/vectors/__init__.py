"""Indexes of vectors outside of the store, and what keeps them up with it (docs/how-to/vector-indexes.md)."""

from graphmem.vectors.exact import ExactVectorIndex
from graphmem.vectors.follow import VectorFollower

__all__ = ["ExactVectorIndex", "VectorFollower"]
