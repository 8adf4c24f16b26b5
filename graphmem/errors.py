"""Error classes of graphmem.

Hierarchy, with the builtin base class in brackets:

    GraphMemError
    ├── InvalidInput (ValueError)            an invalid value: names field, value and limit
    │   └── InvalidEntityName (ValueError)   a name that is too short after cleaning
    ├── NotFound (LookupError)               an entity, edge or episode that isn't in the scope
    ├── Conflict                             another row holds this unique key
    ├── UnknownBackend (LookupError)         no installed backend serves this URL scheme
    ├── MissingExtra (ImportError)           an optional dependency is missing: names the pip install
    ├── ExtractionFailed                     an extractor returned no usable result for an episode
    │   ├── ExtractorUnavailable             its model is unavailable or overloaded: retried without using up attempts
    │   └── ExtractorMisconfigured           its configuration has to be repaired: extraction pauses
    ├── EmbeddingFailed                      an embedding model returned no usable vectors, or none in time
    ├── IndexMismatch                        the index was built with another embedding model: names `graphmem reindex`
    ├── IndexUnavailable (ConnectionError)   a vector index outside of the store can't be reached, opened or written
    └── BackendUnavailable (ConnectionError) the store can't be reached, opened or written
        ├── NotADatabase                     the file is not a graphmem store, or damaged
        ├── StoreAccessDenied                the store refuses the user name or the password
        ├── StoreReadOnly                    the store can be read but not written
        ├── StoreFull                        no space is left on the device of the store
        ├── GraphTooLarge                    the store lacks memory to process the whole graph of a scope
        ├── SchemaTooNew                     written by a newer graphmem; nothing was changed
        └── StoreMoved                       the store is in a migration, or was left; names the store to open
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from graphmem.models import Move

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
    "StoreAccessDenied",
    "StoreFull",
    "StoreMoved",
    "StoreReadOnly",
    "UnknownBackend",
]


class GraphMemError(Exception):
    """Root of all errors raised by graphmem."""


class InvalidInput(GraphMemError, ValueError):
    """An invalid value; the message names the field, the value and the limit."""


class InvalidEntityName(InvalidInput):
    """A name that is too short after cleaning."""


class NotFound(GraphMemError, LookupError):
    """An item that is not in the requested scope."""


class Conflict(GraphMemError):
    """Another row holds this unique key; nothing was written."""


class UnknownBackend(GraphMemError, LookupError):
    """No installed backend serves this URL scheme."""


class MissingExtra(GraphMemError, ImportError):
    """An optional dependency is missing; the message names the ``pip install`` command for it."""

    def __init__(self, what: str, extra: str) -> None:
        super().__init__(f"{what} needs an optional dependency: pip install 'graphmem[{extra}]'")


class ExtractionFailed(GraphMemError):
    """An extractor returned no usable result for an episode; the episode stays queued with this error."""


class ExtractorUnavailable(ExtractionFailed):
    """The model of an extractor is unavailable, overloaded or too slow, independently of the episode."""


class ExtractorMisconfigured(ExtractionFailed):
    """The configuration of an extractor has to be repaired: key refused, model unknown or package missing."""


class EmbeddingFailed(GraphMemError):
    """An embedding model returned no usable vectors, or none in time; the message names the model and the cause."""


class IndexMismatch(GraphMemError):
    """The index of a scope was built with another embedding model; `graphmem reindex` rebuilds it."""


class IndexUnavailable(GraphMemError, ConnectionError):
    """A vector index outside of the store can't be reached, opened or written; the store still works."""


class BackendUnavailable(GraphMemError, ConnectionError):
    """The store can't be reached, opened or written; the message names the URL without a password."""


class NotADatabase(BackendUnavailable):
    """The file is not a graphmem store, or it is damaged."""


class StoreAccessDenied(BackendUnavailable):
    """The store refuses the user name or the password."""


class StoreReadOnly(BackendUnavailable):
    """The store can be read but not written."""


class StoreFull(BackendUnavailable):
    """No space is left on the device of the store."""


class GraphTooLarge(BackendUnavailable):
    """The store lacks memory to process the whole graph of a scope; the work was not started."""


class SchemaTooNew(BackendUnavailable):
    """The store was written by a newer graphmem; nothing was changed."""


class StoreMoved(BackendUnavailable):
    """The migration of the store isn't at the state that the caller knows; nothing was written.

    Attributes
    ----------
    move
        The mark that the store has now; None if it has none.
    """

    def __init__(self, message: str, move: Move | None = None) -> None:
        super().__init__(message)
        self.move = move
