"""LlamaIndex: a memory block of `Memory` (docs/how-to/agents.md)."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

from graphmem.adapters.conversation import Conversation, log_or_raise
from graphmem.adapters.message_keys import batch_keys
from graphmem.errors import GraphMemError, MissingExtra
from graphmem.memory import GraphMemory
from graphmem.trust import role_kind

try:
    from llama_index.core.base.llms.types import (
        AudioBlock,
        ChatMessage,
        DocumentBlock,
        ImageBlock,
        MessageRole,
        ToolCallBlock,
    )
    from llama_index.core.bridge.pydantic import Field, PrivateAttr
    from llama_index.core.memory.memory import BaseMemoryBlock
except ImportError as error:
    raise MissingExtra("graphmem.adapters.llama_index", "llama-index") from error


class GraphMemoryBlock(BaseMemoryBlock[str]):
    """Block of a LlamaIndex `Memory` that gives what a graph memory has on the last message, fenced as data.

    Messages that `Memory` passes on, when they leave its short-term part, are stored as turns of the memory, once, also
    if an agent is given its history again, as with ``agent.run(…, chat_history=…)``. Forgotten messages of such a
    history aren't stored again if a message that follows them, and is passed on with them, is stored. If the memory is
    unavailable, the block is empty, with a warning in the log.
    """

    name: str = "GraphMemory"
    memory: GraphMemory = Field(exclude=True, repr=False)
    user: str | None = Field(default=None, description='name of the user, to whom "I" refers')
    assistant: str | None = Field(default=None, description="name of the assistant")
    budget_tokens: int | None = Field(default=None, description="as in GraphMemory.context")
    _places: dict[str, int | None] = PrivateAttr(default_factory=dict)
    """Session → how many of its messages were given again, from its beginning on; None after a new one."""

    async def _aget(self, messages: list[ChatMessage] | None = None, **block_kwargs: Any) -> str:
        del block_kwargs
        said = [m.content for m in messages or () if m.role == MessageRole.USER and m.content]
        conversation = Conversation(self.memory, user=self.user)
        try:
            return await conversation.acontext(said[-1], budget_tokens=self.budget_tokens) if said else ""
        except GraphMemError as error:
            log_or_raise("read", error)
            return ""

    async def _aput(self, messages: list[ChatMessage]) -> None:
        sessions: dict[str | None, list[dict[str, Any]]] = {}
        for message in messages:
            fields = _fields(message)
            content = fields["content"]
            if not isinstance(content, str) or content.strip() or fields["tool_calls"] or fields["tool_call_id"]:
                sessions.setdefault(message.additional_kwargs.get("session_id"), []).append(fields)
        try:
            for session, said in sessions.items():
                conversation = Conversation(self.memory, session, self.user, self.assistant)
                await conversation.aappend(partial(self._keyed, session, said))
        except GraphMemError as error:
            log_or_raise("written", error)

    def _keyed(
        self, session: str | None, said: Sequence[dict[str, Any]], stored: Sequence[str]
    ) -> tuple[Sequence[dict[str, Any]], Sequence[str | None]]:
        """Return the new messages with their keys. A history may be given again, from its beginning."""
        if session is None:
            return said, [None] * len(said)
        keys, self._places[session] = batch_keys(said, stored, self._places.get(session, 0))
        return said[len(said) - len(keys) :], keys


def _fields(message: ChatMessage) -> dict[str, Any]:
    """Return a message in the form of `graphmem.messages`."""
    calls = [block for block in message.blocks if isinstance(block, ToolCallBlock)]
    media = [_attachment(block) for block in message.blocks if isinstance(block, _MEDIA)]
    return {
        "role": "assistant" if role_kind(message.role.value) == "assistant" else message.role.value,
        "name": message.additional_kwargs.get("name"),
        "content": [{"type": "text", "text": message.content or ""}, *media] if media else message.content or "",
        "tool_calls": [{"id": c.tool_call_id, "name": c.tool_name, "arguments": c.tool_kwargs} for c in calls],
        "tool_call_id": message.additional_kwargs.get("tool_call_id"),
    }


_MEDIA = (ImageBlock, AudioBlock, DocumentBlock)


def _attachment(block: ImageBlock | AudioBlock | DocumentBlock) -> dict[str, Any]:
    """Return an image, recording or document in the form of `graphmem.messages`, without its content."""
    kind = str(block.block_type)
    media_type = next((getattr(block, name, None) for name in ("image_mimetype", "document_mimetype")), None)
    return {
        "type": kind if kind in ("image", "audio") else "file",
        "url": None if block.url is None else str(block.url),
        "media_type": media_type,
        "name": getattr(block, "title", None) or (None if block.path is None else Path(block.path).name),
    }
