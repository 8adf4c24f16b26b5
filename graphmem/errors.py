"""Every error that graphmem raises on purpose.

The tree (the builtin that each one also is stands in brackets):

    GraphMemError
    ├── InvalidInput (ValueError)            a value that can't be taken: names field, value and limit
    │   └── InvalidEntityName (ValueError)   a name with too little left after cleaning
    ├── NotFound (LookupError)               an entity, edge or episode that isn't in the scope
    ├── Conflict                             another row holds this unique key
    ├── UnknownBackend (LookupError)         no installed backend serves this URL scheme
    ├── MissingExtra (ImportError)           an optional dependency is absent: names the pip install
    ├── ExtractionFailed                     an extractor gave nothing usable for one episode
    │   ├── ExtractorUnavailable             its model is away or overloaded: tried again later, however often
    │   └── ExtractorMisconfigured           it can't work until somebody repairs it: extraction pauses
    ├── EmbeddingFailed                      an embedding model gave no usable vectors, or none in time
    ├── IndexMismatch                        the index was built with another embedding model: names `graphmem reindex`
    ├── IndexUnavailable (ConnectionError)   a vector index outside of the store can't be reached, opened or written
    └── BackendUnavailable (ConnectionError) the store can't be reached, opened or written
        ├── NotADatabase                     the file is something else, or damaged
        ├── StoreReadOnly                    the store can be read but not written
        ├── StoreFull                        no space is left where the store is
        ├── GraphTooLarge                    the store lacks the memory to work on the whole graph of a scope
        └── SchemaTooNew                     written by a newer graphmem; nothing was touched
"""

from __future__ import annotations

__all__ = [
    "BackendUnavailable",
    "Conflict",
    "EmbeddingFailed",
    "ExtractionFailed",
    "ExtractorMisconfigured",
    "ExtractorUnavailable",
    "GraphMemError",
    "GraphTooLarge",
    "IndexMismatch",
    "IndexUnavailable",
    "InvalidEntityName",
    "InvalidInput",
    "MissingExtra",
    "NotADatabase",
    "NotFound",
    "SchemaTooNew",
    "StoreFull",
    "StoreReadOnly",
    "UnknownBackend",
]


class GraphMemError(Exception):
    """Root of all errors raised by graphmem."""


class InvalidInput(GraphMemError, ValueError):
    """A value that can't be taken; the message names the field, the value and the limit."""


class InvalidEntityName(InvalidInput):
    """A name of which too little is left after cleaning."""


class NotFound(GraphMemError, LookupError):
    """Something that is not in the scope that was asked."""


class Conflict(GraphMemError):
    """Another row holds this unique key; nothing was written."""


class UnknownBackend(GraphMemError, LookupError):
    """No installed backend serves this URL scheme."""


class MissingExtra(GraphMemError, ImportError):
    """An optional dependency is absent; the message names the ``pip install`` that brings it."""

    def __init__(self, what: str, extra: str) -> None:
        super().__init__(f"{what} needs an optional dependency: pip install 'graphmem[{extra}]'")


class ExtractionFailed(GraphMemError):
    """An extractor gave nothing usable for an episode; the episode stays queued with this as its error."""


class ExtractorUnavailable(ExtractionFailed):
    """The model of an extractor is away, overloaded or too slow; says nothing about the episode."""


class ExtractorMisconfigured(ExtractionFailed):
    """An extractor can't work until somebody repairs it: its key is refused, its model unknown, a package absent."""


class EmbeddingFailed(GraphMemError):
    """An embedding model gave no usable vectors, or none in time; the message names the model and what happened."""


class IndexMismatch(GraphMemError):
    """The index of a scope was built with another embedding model; `graphmem reindex` rebuilds it."""


class IndexUnavailable(GraphMemError, ConnectionError):
    """A vector index outside of the store can't be reached, opened or written; the store itself goes on."""


class BackendUnavailable(GraphMemError, ConnectionError):
    """The store can't be reached, opened or written; the message names the URL without a password."""


class NotADatabase(BackendUnavailable):
    """The file is not a graphmem store, or it is damaged."""


class StoreReadOnly(BackendUnavailable):
    """The store can be read but not written."""


class StoreFull(BackendUnavailable):
    """No space is left where the store is."""


class GraphTooLarge(BackendUnavailable):
    """The store lacks the memory to work on the whole graph of a scope; nothing was begun."""


class SchemaTooNew(BackendUnavailable):
    """The store was written by a newer graphmem; nothing was touched."""
