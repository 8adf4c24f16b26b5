"""Pydantic AI: long-term memory as a capability, and its tools as a toolset (docs/how-to/agents.md)."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import partial
from typing import Any

from graphmem.adapters.conversation import Conversation, log_or_raise
from graphmem.adapters.notes import ACTIONS, MANAGE, SEARCH, Action, Notes
from graphmem.errors import GraphMemError, MissingExtra
from graphmem.memory import GraphMemory

try:
    from pydantic_ai import AgentRunResult, FunctionToolset, RunContext
    from pydantic_ai.capabilities import AbstractCapability, WrapRunHandler
    from pydantic_ai.messages import (
        CachePoint,
        ModelMessage,
        ModelRequest,
        SystemPromptPart,
        TextPart,
        ToolCallPart,
        ToolReturnPart,
        UserPromptPart,
    )
    from pydantic_ai.models import ModelRequestContext
except ImportError as error:
    raise MissingExtra("graphmem.adapters.pydantic_ai", "pydantic-ai") from error


@dataclass
class GraphMemoryCapability(AbstractCapability[Any]):
    """Long-term memory of an agent in one conversation; pass it as one of ``capabilities`` of the agent or the run.

    What the memory has on the prompt is recalled once a run and precedes the messages of each request, fenced as data;
    it isn't kept in the history. After the run its messages are stored, and also those before it that aren't stored,
    unless something was erased from the scope, which may be one of them. Of a run that fails, the prompt is stored. If
    the memory is unavailable, the agent goes on without it, with a warning in the log.

    Attributes
    ----------
    memory
        Memory in the scope of the user.
    session_id
        Id of the conversation; by default the one of Pydantic AI.
    user, assistant
        Names of the speakers; "I" in a message refers to them.
    budget_tokens
        As in `GraphMemory.context`.
    """

    memory: GraphMemory
    session_id: str | None = None
    user: str | None = None
    assistant: str | None = None
    budget_tokens: int | None = None
    _recalled: str | None = field(default=None, repr=False)

    async def for_run(self, ctx: RunContext[Any]) -> GraphMemoryCapability:
        """Return a copy that keeps the context of one run."""
        del ctx
        return replace(self, _recalled=None)

    async def before_model_request(
        self, ctx: RunContext[Any], request_context: ModelRequestContext
    ) -> ModelRequestContext:
        """Add the context to a request."""
        if self._recalled is None:
            self._recalled = ""
            question = "\n".join(_texts([ctx.prompt] if isinstance(ctx.prompt, str) else ctx.prompt or ()))
            try:
                said = list(_messages(request_context.messages))
                self._recalled = await self._conversation(ctx).acontext(
                    question, said, budget_tokens=self.budget_tokens
                )
            except GraphMemError as error:
                log_or_raise("read", error)
        first, *rest = request_context.messages
        if self._recalled and isinstance(first, ModelRequest):
            request_context.messages = [replace(first, parts=[SystemPromptPart(self._recalled), *first.parts]), *rest]
        return request_context

    async def after_run(self, ctx: RunContext[Any], *, result: AgentRunResult[Any]) -> AgentRunResult[Any]:
        """Store the messages of the conversation that aren't stored yet."""
        await self._store(ctx, result.all_messages(), result.new_messages())
        return result

    async def wrap_run(self, ctx: RunContext[Any], *, handler: WrapRunHandler) -> AgentRunResult[Any]:
        """Run the agent; store its prompt if the run fails or is cancelled. A repeated run stores it once."""
        try:
            return await handler()
        except (Exception, asyncio.CancelledError):  # nothing can be awaited after a GeneratorExit
            if ctx.prompt:
                history = [message for message in ctx.messages if message.run_id != ctx.run_id]
                prompt = ModelRequest(parts=[UserPromptPart(ctx.prompt)])
                await self._store(ctx, [*history, prompt], [prompt])
            raise

    async def _store(self, ctx: RunContext[Any], messages: Sequence[ModelMessage], new: Sequence[ModelMessage]) -> None:
        """Store new messages, and those before them that aren't stored."""
        turn = list(_messages(new))
        history = list(_messages(messages[: len(messages) - len(new)]))
        conversation = self._conversation(ctx)
        try:
            await conversation.aappend(partial(conversation.select_turn, history, turn))
        except GraphMemError as error:
            log_or_raise("written", error)

    def _conversation(self, ctx: RunContext[Any]) -> Conversation:
        return Conversation(self.memory, self.session_id or ctx.conversation_id, self.user, self.assistant)


def memory_toolset(
    memory: GraphMemory, *, user: str | None = None, limit: int = 10, actions: Sequence[Action] = ACTIONS
) -> FunctionToolset[Any]:
    """Return the tools `manage_memory` and `search_memory`; parameters as in `graphmem.adapters.langchain`."""
    notes, toolset = Notes(memory, user, limit, actions), FunctionToolset[Any]()
    toolset.add_function(notes.manage_memory, takes_ctx=False, name="manage_memory", description=MANAGE)
    toolset.add_function(notes.search_memory, takes_ctx=False, name="search_memory", description=SEARCH)
    return toolset


def _messages(history: Iterable[ModelMessage]) -> Iterator[dict[str, Any]]:
    """Yield the messages of a history in the form of `graphmem.messages`, without system prompts and reasoning."""
    for message in history:
        if isinstance(message, ModelRequest):
            for part in message.parts:
                if isinstance(part, UserPromptPart):
                    given = [part.content] if isinstance(part.content, str) else part.content
                    yield {
                        "role": "user",
                        "content": [_part(each) for each in given if not isinstance(each, CachePoint)],
                        "occurred_at": _aware(part.timestamp),
                    }
                elif isinstance(part, ToolReturnPart):
                    yield {
                        "role": "tool",
                        "name": part.tool_name,
                        "content": part.model_response_str(),
                        "tool_call_id": part.tool_call_id,
                        "status": None if part.outcome == "success" else "error",
                        "occurred_at": _aware(part.timestamp),
                    }
            continue
        calls = [part for part in message.parts if isinstance(part, ToolCallPart)]
        yield {
            "role": "assistant",
            "content": "".join(part.content for part in message.parts if isinstance(part, TextPart)),
            "tool_calls": [_call(part) for part in calls],
            "occurred_at": _aware(message.timestamp),
        }


def _aware(time: datetime) -> datetime:
    """Return a time of a message; one without a time zone, as histories may have, is in UTC."""
    return time if time.tzinfo is not None else time.replace(tzinfo=UTC)


def _call(part: ToolCallPart) -> dict[str, Any]:
    return {"id": part.tool_call_id, "name": part.tool_name, "arguments": part.args_as_json_str()}


def _part(content: Any) -> dict[str, Any]:
    """Return a part of a prompt in the form of `graphmem.messages`."""
    if isinstance(content, str):
        return {"type": "text", "text": content}
    if (text := getattr(content, "content", None)) is not None:
        return {"type": "text", "text": str(text)}
    kind = str(getattr(content, "kind", "file")).partition("-")[0]
    data = getattr(content, "data", None)
    try:
        media_type = getattr(content, "media_type", None)
    except ValueError:  # a URL without an extension
        media_type = None
    return {
        "type": kind if kind in ("image", "audio", "video") else "file",
        "url": getattr(content, "url", None),
        "file_id": getattr(content, "file_id", None),
        "media_type": media_type,
        "data": base64.b64encode(data).decode() if isinstance(data, bytes) else None,
    }


def _texts(content: Iterable[object]) -> list[str]:
    return [each for each in content if isinstance(each, str)]
