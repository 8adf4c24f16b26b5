"""LangChain adapters: retriever, chat history, middleware, tools and compaction (docs/how-to/langchain.md)."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from graphmem.errors import MissingExtra

if TYPE_CHECKING:
    from graphmem.adapters.langchain.chat_history import GraphMemoryChatMessageHistory
    from graphmem.adapters.langchain.compaction import GraphMemoryCompactor
    from graphmem.adapters.langchain.middleware import (
        GraphMemoryContext,
        GraphMemoryMiddleware,
        recall_node,
        remember_node,
    )
    from graphmem.adapters.langchain.retriever import GraphMemoryRetriever, memory_tools

__all__ = [
    "GraphMemoryChatMessageHistory",
    "GraphMemoryCompactor",
    "GraphMemoryContext",
    "GraphMemoryMiddleware",
    "GraphMemoryRetriever",
    "memory_tools",
    "recall_node",
    "remember_node",
]

# loaded on first use: the middleware imports LangGraph, which takes a second
_MODULE_OF = {
    "GraphMemoryChatMessageHistory": "chat_history",
    "GraphMemoryCompactor": "compaction",
    "GraphMemoryContext": "middleware",
    "GraphMemoryMiddleware": "middleware",
    "GraphMemoryRetriever": "retriever",
    "memory_tools": "retriever",
    "recall_node": "middleware",
    "remember_node": "middleware",
}

try:
    import langchain_core as _  # noqa: F401
except ImportError as error:
    raise MissingExtra("graphmem.adapters.langchain", "langchain") from error


def __getattr__(name: str) -> object:
    if name not in _MODULE_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        value = getattr(import_module(f"{__name__}.{_MODULE_OF[name]}"), name)
    except ImportError as error:
        raise MissingExtra(f"{__name__}.{name}", "langchain") from error
    globals()[name] = value
    return value
