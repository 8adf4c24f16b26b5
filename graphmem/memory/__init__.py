"""`GraphMemory` and its administration."""

from graphmem.memory.admin import Administration
from graphmem.memory.base import Receipt
from graphmem.memory.memory import GraphMemory

__all__ = ["Administration", "GraphMemory", "Receipt"]
