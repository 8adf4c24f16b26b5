"""External vector indexes and their synchronization with the store (docs/how-to/vector-indexes.md)."""

from graphmem.index.follower import VectorFollower
from graphmem.vectors.points import ExactVectorIndex

__all__ = ["ExactVectorIndex", "VectorFollower"]
