"""Protocols of the pluggable parts: stores, extractors and vector indexes. Implementations need no base class.

A store implements `GraphBackend`, the union of the roles below, and is tested with
`graphmem.testing.GraphBackendTests`. Members marked ``@abstractmethod`` are required; the others have
default implementations based on them. Common rules:

- **Scope**: every row has one and a read sees only the scopes it names. An id of another scope is
  treated as absent.
- **Bulk**: writes take many rows and are atomic.
- **Time**: reads take `as_of`; `graphmem.models.is_visible` defines which rows they see.
- **Order**: pages are in ascending order of id, which is the order of creation, and start after
  the id given as `after`.
- **Threads**: any method may be called from any thread at any time.
- **Errors**: a store that is unreachable, damaged or full raises a `BackendUnavailable`; a duplicate
  unique key raises `Conflict`; values have been validated by the models.
- **Empty**: in a query None doesn't restrict; an empty tuple matches nothing.
"""

from graphmem.protocols.backend import (
    CommunityDetector,
    Explorer,
    GraphBackend,
    Maintenance,
    enter_background,
    in_background,
    pages,
    run_and_roll_back,
)
from graphmem.protocols.expiry import expired_entities, find_premises, has_expired, without_expired
from graphmem.protocols.extraction import (
    EndingReason,
    ExtractedEdge,
    ExtractedEnding,
    ExtractedEntity,
    Extraction,
    ExtractionRequest,
    Extractor,
    ExtractorWrapper,
    Known,
    KnownFact,
    KnownName,
    Redactor,
    concurrency_of,
    problem_of,
    reads_known,
    turns_per_call_of,
)
from graphmem.protocols.full_text import (
    COLLECTION_SIZE,
    NAME_WEIGHT,
    index_words,
    question_words,
    word_scores,
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
    distinct_episodes,
    require_no_cursor,
    require_scope,
)
from graphmem.protocols.vectors import VectorHit, VectorIndex, VectorRows, VectorState

__all__ = [
    "COLLECTION_SIZE",
    "NAME_WEIGHT",
    "CommunityDetector",
    "CommunityStore",
    "EdgeStore",
    "EndingReason",
    "EntityStore",
    "EpisodeStore",
    "Explorer",
    "ExtractedEdge",
    "ExtractedEnding",
    "ExtractedEntity",
    "Extraction",
    "ExtractionRequest",
    "Extractor",
    "ExtractorWrapper",
    "GraphBackend",
    "IndexStore",
    "Known",
    "KnownFact",
    "KnownName",
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
    "distinct_episodes",
    "enter_background",
    "expired_entities",
    "find_premises",
    "has_expired",
    "in_background",
    "index_words",
    "pages",
    "problem_of",
    "question_words",
    "reads_known",
    "require_no_cursor",
    "require_scope",
    "run_and_roll_back",
    "turns_per_call_of",
    "without_expired",
    "word_scores",
]
