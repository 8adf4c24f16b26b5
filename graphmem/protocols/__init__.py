"""What graphmem needs of its parts: stores and extractors. Implement these, no base class is shared.

A store implements `GraphBackend`, the union of the roles below, and proves itself with
`graphmem.testing.GraphBackendTests`. Members marked ``@abstractmethod`` are required; the others are
derived from them once, here. Rules that hold for all of them:

- **Scope**: every row has one and a read sees only the scopes it names. An id of another scope is
  treated as absent.
- **Bulk**: writes take many rows; all of them are stored or none.
- **Time**: reads take `as_of`; `graphmem.models.is_visible` is the definition of what they see.
- **Order**: pages are in ascending order of id, which is the order of creation, and go on behind
  the id given as `after`.
- **Threads**: any method may be called from any thread at any time.
- **Errors**: a store that is away, damaged or full raises a `BackendUnavailable`; a unique key that is
  taken raises `Conflict`; values were validated by the models before.
- **Empty**: in a query None doesn't restrict; an empty tuple allows nothing, so nothing is found.
"""

from graphmem.protocols.backend import (
    CommunityDetector,
    Explorer,
    GraphBackend,
    Maintenance,
    pages,
    question_words,
    split_words,
)
from graphmem.protocols.extraction import (
    ExtractedEdge,
    ExtractedEnding,
    ExtractedEntity,
    Extraction,
    ExtractionRequest,
    Extractor,
    Redactor,
    concurrency_of,
)
from graphmem.protocols.stores import (
    CommunityStore,
    EdgeStore,
    EntityStore,
    EpisodeStore,
    IndexStore,
    MergeStore,
    RecallStore,
    Traversal,
    UpkeepStore,
)
from graphmem.protocols.vectors import VectorHit, VectorIndex, VectorRows, VectorState

__all__ = [
    "CommunityDetector",
    "CommunityStore",
    "EdgeStore",
    "EntityStore",
    "EpisodeStore",
    "Explorer",
    "ExtractedEdge",
    "ExtractedEnding",
    "ExtractedEntity",
    "Extraction",
    "ExtractionRequest",
    "Extractor",
    "GraphBackend",
    "IndexStore",
    "Maintenance",
    "MergeStore",
    "RecallStore",
    "Redactor",
    "Traversal",
    "UpkeepStore",
    "VectorHit",
    "VectorIndex",
    "VectorRows",
    "VectorState",
    "concurrency_of",
    "pages",
    "question_words",
    "split_words",
]
