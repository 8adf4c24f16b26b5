"""A memory in LangChain: a retriever over its episodes, and a chat history that writes into it (docs/langchain.md)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any
from urllib.parse import quote

from pydantic import ConfigDict, Field, field_validator

from graphmem.errors import InvalidInput, MissingExtra
from graphmem.inputs import to_as_of, to_limit, to_scopes
from graphmem.memory import GraphMemory
from graphmem.models import AsOf, Episode, Scope
from graphmem.rag.found import Found, SearchResults
from graphmem.rag.options import ExpansionConfig

try:
    from langchain_core.callbacks import AsyncCallbackManagerForRetrieverRun, CallbackManagerForRetrieverRun
    from langchain_core.chat_history import BaseChatMessageHistory
    from langchain_core.documents import Document
    from langchain_core.messages import (
        AIMessage,
        BaseMessage,
        ChatMessage,
        HumanMessage,
        SystemMessage,
        ToolMessage,
    )
    from langchain_core.retrievers import BaseRetriever
except ImportError as error:
    raise MissingExtra("graphmem.adapters.langchain", "langchain") from error

Moment = AsOf | datetime | str

_ROLES = {"human": "user", "ai": "assistant"}  # LangChain's type of a message → role of a turn
_CALL_ID = "tool_call_id"


class GraphMemoryRetriever(BaseRetriever):
    """Retrieves the episodes that answer a question, best first, each with the reasons why in its metadata.

    What is read is fixed when the retriever is made: nothing in a question, or in the arguments of a call, can name
    another scope. ``invoke(question, k=3)`` and ``as_of=…`` change the two for one call.

    Attributes
    ----------
    memory
        Where to look; it stays open as long as the retriever is used.
    k
        Documents at most; defaults to the setting `search_limit`.
    as_of
        Only what had occurred and was recorded by then.
    expansion
        Whether and how names that the question doesn't mention lead further.
    scopes
        Scopes, or their texts, to read instead of the memory's own.
    """

    model_config = ConfigDict(arbitrary_types_allowed=True, extra="forbid")

    memory: GraphMemory = Field(exclude=True, repr=False)
    k: int | None = None
    as_of: Moment | None = None
    expansion: ExpansionConfig = ExpansionConfig()
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
            "as_of": self.as_of if as_of is None else as_of,
            "expansion": self.expansion,
            "scopes": self.scopes,
        }


def _documents(results: SearchResults) -> list[Document]:
    return [_document(found, results.degraded) for found in results]


def _document(found: Found, degraded: Sequence[str]) -> Document:
    episode = found.episode
    return Document(
        id=episode.id,
        page_content=episode.text,
        metadata={
            **{name: value for name, value in episode.metadata.items() if value is not None},
            "score": found.score,
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


class GraphMemoryChatMessageHistory(BaseChatMessageHistory):
    """The messages of a session, kept as turns of a memory: they can be searched, and facts are read from them.

    A message with an id is stored once, however often it is added. Messages without text (calls of tools) are left
    out; what tools say is stored, and no facts are read from it.

    Parameters
    ----------
    memory
        Where to.
    session_id
        Which conversation.
    user, assistant
        Names of the speakers where a message has none; "I" in a message means them.
    limit
        Messages that `messages` returns at most, the last ones.
    """

    def __init__(
        self,
        memory: GraphMemory,
        session_id: str,
        *,
        user: str | None = None,
        assistant: str | None = None,
        limit: int = 1000,
    ) -> None:
        super().__init__()
        if not session_id:
            raise InvalidInput("session_id: expected the name of a conversation, got none")
        self._memory = memory
        self._session_id = session_id
        # of external ids: they are unique in a scope, ids of messages in a session; no prefix begins with another
        self._prefix = f"{quote(session_id, safe='')}:"
        self._names = {"user": user, "assistant": assistant}
        self._limit = to_limit(limit)

    @property
    def messages(self) -> list[BaseMessage]:  # pyright: ignore[reportIncompatibleVariableOverride] - as LangChain's own
        """The last messages of the session, oldest first."""
        said = self._memory.session(self._session_id, limit=self._limit)
        return [_message(episode, self._prefix) for episode in said]

    def add_messages(self, messages: Sequence[BaseMessage]) -> None:
        """Store messages durably; facts are read from them behind your back."""
        for message in messages:
            text = str(message.text)
            if not text.strip():
                continue
            role = _role(message)
            self._memory.remember(
                text,
                role=role,
                speaker=message.name or self._names.get(role),
                session_id=self._session_id,
                external_id=f"{self._prefix}{message.id}" if message.id else None,
                metadata={_CALL_ID: message.tool_call_id} if isinstance(message, ToolMessage) else {},
            )

    def clear(self) -> None:
        """Refuse: a memory keeps what was said.

        Raises
        ------
        InvalidInput
            Always.
        """
        raise InvalidInput(
            f"session {self._session_id!r} can't be cleared: a memory keeps what was said; "
            "a new conversation is another session_id"
        )


def _role(message: BaseMessage) -> str:
    return message.role if isinstance(message, ChatMessage) else _ROLES.get(message.type, message.type)


def _message(episode: Episode, prefix: str) -> BaseMessage:
    """Return a turn as a message; its id is what it came with, else that of the episode."""
    given = (episode.external_id or "").startswith(prefix)
    number = (episode.external_id or "").removeprefix(prefix) if given else episode.id
    shared: dict[str, Any] = {"content": episode.text, "id": number, "name": episode.speaker}
    if episode.role == "assistant":
        return AIMessage(**shared)
    if episode.role == "system":
        return SystemMessage(**shared)
    if episode.role == "tool":
        return ToolMessage(**shared, tool_call_id=str(episode.metadata.get(_CALL_ID) or ""))
    if episode.role in ("user", None):
        return HumanMessage(**shared)
    return ChatMessage(**shared, role=episode.role)
