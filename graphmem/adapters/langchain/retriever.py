"""LangChain retriever over the episodes of a memory, and tools by which an agent manages and searches it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Annotated, Any

from langchain_core.callbacks import AsyncCallbackManagerForRetrieverRun, CallbackManagerForRetrieverRun
from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever
from langchain_core.tools import BaseTool, StructuredTool
from pydantic import BaseModel, ConfigDict, Field, field_validator

from graphmem.adapters.notes import ACTIONS, MANAGE, SEARCH, Action, Notes
from graphmem.inputs import to_as_of, to_limit, to_scopes
from graphmem.memory import GraphMemory
from graphmem.models import AsOf, EpisodeFilter, Scope
from graphmem.models.metadata import ATTACHMENTS
from graphmem.search.results import ExpansionConfig, Found, SearchResults
from graphmem.trust import Trust

Moment = AsOf | datetime | str


class GraphMemoryRetriever(BaseRetriever):
    """Retriever of the episodes that answer a question, best first, with the reasons in the metadata.

    The scopes are fixed when the retriever is created: neither a question nor the arguments of a call can select
    another scope. ``invoke(question, k=3)`` and ``as_of=…`` override `k` and `as_of` for one call.

    Attributes
    ----------
    memory
        Memory to search; it has to stay open while the retriever is used.
    k
        Maximum number of documents; defaults to the setting `search_limit`.
    asked_by
        Name of who asks: "I" and "my" in the question are that person.
    as_of
        Return only episodes that had occurred and were recorded by this time.
    expansion
        Expansion of the results in the graph.
    filters, min_trust, min_confidence
        As in `GraphMemory.search`.
    scopes
        Scopes, or their texts, to search instead of the memory's own.
    """

    model_config = ConfigDict(arbitrary_types_allowed=True, extra="forbid")

    memory: GraphMemory = Field(exclude=True, repr=False)
    k: int | None = None
    asked_by: str | None = None
    as_of: Moment | None = None
    expansion: ExpansionConfig = ExpansionConfig()
    filters: EpisodeFilter | None = None
    min_trust: Trust = "untrusted"
    min_confidence: float | None = None
    scopes: tuple[Scope, ...] | None = None

    @field_validator("k")
    @classmethod
    def _is_a_limit(cls, value: int | None) -> int | None:
        return None if value is None else to_limit(value)

    @field_validator("as_of", mode="before")
    @classmethod
    def _is_a_moment(cls, value: Any) -> AsOf | None:
        return to_as_of(value)

    @field_validator("scopes", mode="before")
    @classmethod
    def _are_scopes(cls, value: Any) -> tuple[Scope, ...] | None:
        return None if value is None else to_scopes(value)

    def _get_relevant_documents(
        self,
        query: str,
        *,
        run_manager: CallbackManagerForRetrieverRun,
        k: int | None = None,
        as_of: Moment | None = None,
    ) -> list[Document]:
        del run_manager
        return _documents(self.memory.search(query, **self._options(k, as_of)))

    async def _aget_relevant_documents(
        self,
        query: str,
        *,
        run_manager: AsyncCallbackManagerForRetrieverRun,
        k: int | None = None,
        as_of: Moment | None = None,
    ) -> list[Document]:
        del run_manager
        return _documents(await self.memory.asearch(query, **self._options(k, as_of)))

    def _options(self, k: int | None, as_of: Moment | None) -> Mapping[str, Any]:
        return {
            "k": self.k if k is None else k,
            "asked_by": self.asked_by,
            "as_of": self.as_of if as_of is None else as_of,
            "expansion": self.expansion,
            "filters": self.filters,
            "min_trust": self.min_trust,
            "min_confidence": self.min_confidence,
            "scopes": self.scopes,
        }


def _documents(results: SearchResults) -> list[Document]:
    return [_document(found, results.degraded) for found in results]


def _document(found: Found, degraded: Sequence[str]) -> Document:
    episode, attached = found.episode, found.episode.attachments
    return Document(
        id=episode.id,
        page_content=episode.text,
        metadata={
            **{name: value for name, value in episode.metadata.items() if value is not None},
            **({ATTACHMENTS: [each.model_dump(exclude_none=True) for each in attached]} if attached else {}),
            "score": found.score,
            "confidence": found.confidence,
            "trust": found.trust,
            "reasons": [reason.model_dump(mode="json", exclude_defaults=True) for reason in found.reasons],
            "episode_id": episode.id,
            "scope": str(episode.scope),
            "source": episode.source,
            "session_id": episode.session_id,
            "speaker": episode.speaker,
            "role": episode.role,
            "title": episode.title,
            "occurred_at": episode.occurred_at.isoformat(),
            "external_id": episode.external_id,
            "degraded": list(degraded),
        },
    )


# Tools --------------------------------------------------------------------------------------------


class _Manage(BaseModel):
    content: Annotated[str | None, Field(description="text of the note, to create or update")] = None
    action: Action = "create"
    id: Annotated[str | None, Field(description="id of the note, to update or delete")] = None


class _Search(BaseModel):
    query: Annotated[str, Field(description="a question in plain words")]


def memory_tools(
    memory: GraphMemory, *, user: str | None = None, limit: int = 10, actions: Sequence[Action] = ACTIONS
) -> list[BaseTool]:
    """Return the tools `manage_memory` and `search_memory`, named as in LangMem.

    What the model reads has dates and speakers. The scope is that of the memory: no argument of a call selects another.

    Parameters
    ----------
    user
        Name of the user, to whom "I" refers in questions.
    limit
        Maximum numbers of facts and of quotes that a search returns.
    actions
        What `manage_memory` may do, of "create", "update" and "delete". It changes only notes that it created itself.
    """
    notes = Notes(memory, user, limit, actions)
    manage = StructuredTool.from_function(
        notes.manage_memory, name="manage_memory", description=MANAGE, args_schema=_Manage
    )
    search = StructuredTool.from_function(
        notes.search_memory, name="search_memory", description=SEARCH, args_schema=_Search
    )
    return [manage, search]
