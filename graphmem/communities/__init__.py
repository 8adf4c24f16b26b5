"""Communities: groups of entities with more facts among themselves than with others."""

from graphmem.communities.detection import InProcessDetector
from graphmem.communities.matching import kept_keys

__all__ = ["InProcessDetector", "kept_keys"]
