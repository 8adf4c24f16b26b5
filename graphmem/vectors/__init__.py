"""Indexes of vectors outside of the store, and what keeps them up with it (docs/how-to/vector-indexes.md)."""

from graphmem.index.follower import VectorFollower
from graphmem.vectors.exact import ExactVectorIndex

__all__ = ["ExactVectorIndex", "VectorFollower"]
