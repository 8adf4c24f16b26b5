"""Graph memory for AI agents: entities, dated facts and the episodes they came from.

>>> from graphmem import GraphMemory
>>> with GraphMemory.open("sqlite:///memory.db") as memory:  # doctest: +SKIP
...     memory.remember("I work at Initech.", speaker="Maya")
...     memory.flush()
...     print(memory.context("Where does Maya work?"))

What is listed in `__all__` is the public surface, together with the modules `graphmem.protocols`,
`graphmem.models` and `graphmem.testing` for those who write backends and extractors. Names are loaded when they
are first used: importing the package reads nothing and loads no library.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from graphmem.communities.results import FoundCommunity, Refreshed
    from graphmem.embed import Embeddings
    from graphmem.errors import (
        BackendUnavailable,
        Conflict,
        EmbeddingFailed,
        ExtractionFailed,
        ExtractorMisconfigured,
        ExtractorUnavailable,
        GraphMemError,
        GraphTooLarge,
        IndexMismatch,
        IndexUnavailable,
        InvalidEntityName,
        InvalidInput,
        MissingExtra,
        NotADatabase,
        NotFound,
        SchemaTooNew,
        StoreAccessDenied,
        StoreFull,
        StoreMoved,
        StoreReadOnly,
        UnknownBackend,
    )
    from graphmem.inference.service import Inferred
    from graphmem.inputs import Document, ItemFields, Triple, Turn
    from graphmem.memory import Administration, GraphMemory, Receipt
    from graphmem.messages import MessageLike, ToolCall
    from graphmem.models import AsOf, Attachment, EdgeType, Entity, Episode, EpisodeFilter, Merge, Scope, SessionSummary
    from graphmem.ontology import Ontology
    from graphmem.results import (
        Check,
        Diff,
        EntityCounts,
        Fact,
        LoadReport,
        Premise,
        QueueError,
        QueueState,
        RecallResult,
        Stats,
        Trace,
    )
    from graphmem.search.context import Context
    from graphmem.search.evaluation import Evaluation, Question
    from graphmem.search.rerank import CrossEncoder
    from graphmem.search.results import ExpansionConfig, SearchResults
    from graphmem.settings import Settings
    from graphmem.upkeep.eviction import Evicted
    from graphmem.upkeep.export import Exported
    from graphmem.upkeep.forget import Forgotten
    from graphmem.upkeep.importing import Imported
    from graphmem.upkeep.unmerge import Unmerged

_HOME = {
    "communities.results": "FoundCommunity Refreshed",
    "embed": "Embeddings",
    "errors": (
        "BackendUnavailable Conflict EmbeddingFailed ExtractionFailed ExtractorMisconfigured ExtractorUnavailable "
        "GraphMemError GraphTooLarge IndexMismatch IndexUnavailable InvalidEntityName InvalidInput MissingExtra "
        "NotADatabase NotFound SchemaTooNew StoreAccessDenied StoreFull StoreMoved StoreReadOnly UnknownBackend"
    ),
    "inference.service": "Inferred",
    "inputs": "Document ItemFields Triple Turn",
    "memory": "Administration GraphMemory Receipt",
    "messages": "MessageLike ToolCall",
    "models": "AsOf Attachment EdgeType Entity Episode EpisodeFilter Merge Scope SessionSummary",
    "ontology": "Ontology",
    "results": "Check Diff EntityCounts Fact LoadReport Premise QueueError QueueState RecallResult Stats Trace",
    "search.context": "Context",
    "search.evaluation": "Evaluation Question",
    "search.rerank": "CrossEncoder",
    "search.results": "ExpansionConfig SearchResults",
    "settings": "Settings",
    "upkeep.eviction": "Evicted",
    "upkeep.export": "Exported",
    "upkeep.forget": "Forgotten",
    "upkeep.importing": "Imported",
    "upkeep.unmerge": "Unmerged",
}
_MODULE_OF = {name: f"graphmem.{module}" for module, names in _HOME.items() for name in names.split()}

__version__ = "0.1.0"

__all__ = [
    "Administration",
    "AsOf",
    "Attachment",
    "BackendUnavailable",
    "Check",
    "Conflict",
    "Context",
    "CrossEncoder",
    "Diff",
    "Document",
    "EdgeType",
    "EmbeddingFailed",
    "Embeddings",
    "Entity",
    "EntityCounts",
    "Episode",
    "EpisodeFilter",
    "Evaluation",
    "Evicted",
    "ExpansionConfig",
    "Exported",
    "ExtractionFailed",
    "ExtractorMisconfigured",
    "ExtractorUnavailable",
    "Fact",
    "Forgotten",
    "FoundCommunity",
    "GraphMemError",
    "GraphMemory",
    "GraphTooLarge",
    "Imported",
    "IndexMismatch",
    "IndexUnavailable",
    "Inferred",
    "InvalidEntityName",
    "InvalidInput",
    "ItemFields",
    "LoadReport",
    "Merge",
    "MessageLike",
    "MissingExtra",
    "NotADatabase",
    "NotFound",
    "Ontology",
    "Premise",
    "Question",
    "QueueError",
    "QueueState",
    "RecallResult",
    "Receipt",
    "Refreshed",
    "SchemaTooNew",
    "Scope",
    "SearchResults",
    "SessionSummary",
    "Settings",
    "Stats",
    "StoreAccessDenied",
    "StoreFull",
    "StoreMoved",
    "StoreReadOnly",
    "ToolCall",
    "Trace",
    "Triple",
    "Turn",
    "UnknownBackend",
    "Unmerged",
]


def __getattr__(name: str) -> object:
    if name not in _MODULE_OF:
        raise AttributeError(f"module 'graphmem' has no attribute {name!r}")
    value = getattr(import_module(_MODULE_OF[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
