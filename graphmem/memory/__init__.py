"""The face of graphmem: `GraphMemory`."""

from graphmem.memory.memory import GraphMemory
from graphmem.memory.writing import Receipt

__all__ = ["GraphMemory", "Receipt"]
