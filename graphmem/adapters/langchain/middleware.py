"""Long-term memory for LangChain agents: context before the model is called, messages stored after the agent."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from datetime import UTC, datetime
from functools import partial
from itertools import takewhile
from typing import Annotated, Any, Literal, NotRequired, TypedDict, cast

from langchain.agents.middleware.types import (
    AgentMiddleware,
    AgentState,
    ExtendedModelResponse,
    ModelRequest,
    ModelResponse,
    OmitFromInput,
    PrivateStateAttr,
)
from langchain_core.messages import AnyMessage, BaseMessage, SystemMessage
from langgraph.channels import UntrackedValue  # pyright: ignore[reportMissingTypeStubs]
from langgraph.config import get_config
from langgraph.runtime import Runtime
from langgraph.types import Command

from graphmem.adapters.conversation import Conversation, log_or_raise
from graphmem.adapters.langchain.compaction import GraphMemoryCompactor
from graphmem.adapters.langchain.new_messages import (
    is_checkpointed,
    is_of_user,
    key_of,
    last_of_user,
    presumed_keys,
    said_in,
    select_new,
)
from graphmem.errors import GraphMemError, InvalidInput
from graphmem.memory import GraphMemory
from graphmem.models import Scope, new_id
from graphmem.search.context import CountTokens, estimate_tokens

_MOST_COMPACTORS = 100  # of turns that didn't end, such as those of failed runs


@dataclass(frozen=True, kw_only=True)
class GraphMemoryContext:
    """Context of an agent's run: whose memory it uses, and who talks.

    Pass it as ``context=`` of ``invoke``; any object or mapping with some of these names will do. It comes from the
    application: no message and no model can change it.

    Attributes
    ----------
    user_id
        Id of the user, whose scope is ``users/ID``.
    scope
        Scope to use instead.
    user
        Name of the user, to whom "I" refers in messages and questions.
    session_id
        Id of the conversation; by default the thread id.
    """

    user_id: str | None = None
    scope: Scope | str | None = None
    user: str | None = None
    session_id: str | None = None


_NAMES = tuple(each.name for each in fields(GraphMemoryContext))


class Recalled(TypedDict):
    """Context that was recalled for a turn; `id` is of this recall, as a resumed run recalls again."""

    turn: str
    text: str
    id: str


def _merged(known: dict[str, str], new: dict[str, str]) -> dict[str, str]:
    """Return the entries of both; one with an empty value is removed."""
    return {name: value for name, value in {**known, **new}.items() if value}


class GraphMemoryState(AgentState[Any]):
    """State of an agent with a memory."""

    memory_unavailable: NotRequired[Annotated[str | None, OmitFromInput]]
    """Why the memory couldn't be read or written in the last run; None if it could."""
    memory_recalled: NotRequired[Annotated[Recalled, UntrackedValue, PrivateStateAttr]]
    """Context of the current turn; not in checkpoints, so that what is erased from the memory isn't kept there."""
    memory_places: NotRequired[Annotated[dict[str, str], PrivateStateAttr, _merged]]
    """Id of a message of the user → scope and session of its run; those of one thread may differ."""
    memory_times: NotRequired[Annotated[dict[str, str], PrivateStateAttr, _merged]]
    """Id of a message that isn't stored → time at which a run began with it; a run may be interrupted for days."""
    memory_stored: NotRequired[Annotated[list[str], PrivateStateAttr]]
    """Keys of the messages that were stored, so that those of them that were forgotten aren't stored again."""
    memory_begun: NotRequired[Annotated[list[str], UntrackedValue, PrivateStateAttr]]
    """Ids of the messages, up to that of the user, that were stored before the model was called."""


class GraphMemoryMiddleware(AgentMiddleware[GraphMemoryState, Any, Any]):
    """Long-term memory of an agent of ``create_agent``.

    Once a turn of the user, what the memory has on it is recalled and added to the system prompt of each model call,
    fenced as data. It is no message, so the conversation doesn't grow by it. After the agent, the new messages of user,
    assistant and tools are stored; facts are extracted in the background. `GraphMemoryContext` says whose memory it is.

    Nothing is stored twice when a run is interrupted, resumed, retried or streamed: with a checkpointer a message is
    known by its id and content. Without one, the messages since the last one of the user are new, and those before it
    are known by their content, whether the conversation is passed whole, in part, or not at all. Without a session,
    only the messages since the last one of the user are stored. What was forgotten isn't stored again: the checkpoints
    of a thread keep which messages were stored, and without them, messages before the last one of the user are stored
    only if nothing was ever erased from the scope. Without a checkpointer, the message of the user is stored before the
    model is called, so that it isn't lost if the model or a tool fails, or the stream is left.

    If the memory is unavailable, the agent goes on without it; `memory_unavailable` in its state says why, and so does
    a warning in the log. An invalid scope or setting is an error.

    Parameters
    ----------
    memory
        Memory to use; the scope of a run is that of its context, or else the memory's own.
    user, assistant
        Names of the user, if the context has none, and of the assistant.
    budget_tokens, count_tokens
        As in `GraphMemory.context`.
    compact_to_tokens
        If the messages and the context have more tokens than this, the model gets what `GraphMemoryCompactor` makes of
        the messages, with a digest in place of the context. The state keeps all messages.
    require_scope
        Whether a run is refused whose context names neither `user_id` nor `scope`. By default it is refused if it has
        a context without any of the names of `GraphMemoryContext`, as one with a misspelled name would be.
    store
        Whether messages are stored.
    """

    state_schema = GraphMemoryState

    def __init__(
        self,
        memory: GraphMemory,
        *,
        user: str | None = None,
        assistant: str | None = None,
        budget_tokens: int | None = None,
        count_tokens: CountTokens = estimate_tokens,
        compact_to_tokens: int | None = None,
        require_scope: bool | None = None,
        store: bool = True,
    ) -> None:
        super().__init__()
        self.tools = []
        self._memory = memory
        self._user = user
        self._assistant = assistant
        self._options = {"budget_tokens": budget_tokens, "count_tokens": count_tokens}
        self._count = count_tokens
        self._compact_to = compact_to_tokens
        self._require_scope = require_scope
        self._store = store
        self._compactors: OrderedDict[str, GraphMemoryCompactor] = OrderedDict()

    def before_agent(self, state: GraphMemoryState, runtime: Runtime[Any]) -> dict[str, Any]:
        """Recall the context of the turn."""
        turn, question = _question(state["messages"])
        conversation = self.conversation(runtime)
        update: dict[str, Any] = _places(state, conversation)
        try:
            update |= _initial_stored_keys(state, conversation)
            text = conversation.context(question, said_in(state["messages"]), **self._options)
        except GraphMemError as error:
            return _unavailable("read", error) | _recalled(turn, "") | update
        return {"memory_unavailable": None} | _recalled(turn, text) | update

    async def abefore_agent(self, state: GraphMemoryState, runtime: Runtime[Any]) -> dict[str, Any]:
        """Recall the context of the turn."""
        return await asyncio.to_thread(self.before_agent, state, runtime)

    def wrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], ModelResponse[Any]]
    ) -> ExtendedModelResponse[Any]:
        """Call the model with the context of the turn, which a resumed run recalls again."""
        prepared, update = self._prepared(request)
        response = handler(prepared)
        return ExtendedModelResponse(response, Command(update=update) if update else None)

    async def awrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], Awaitable[ModelResponse[Any]]]
    ) -> ExtendedModelResponse[Any]:
        """Call the model with the context of the turn, which a resumed run recalls again."""
        prepared, update = await asyncio.to_thread(self._prepared, request)
        response = await handler(prepared)
        return ExtendedModelResponse(response, Command(update=update) if update else None)

    def _prepared(self, request: ModelRequest[Any]) -> tuple[ModelRequest[Any], dict[str, Any]]:
        """Return a request with the context of the turn, compacted if it has too many tokens, and the state's update.

        Without a checkpointer, what the user said is stored.
        """
        state = cast("GraphMemoryState", request.state)
        update = {} if _is_recalled(state) else self.before_agent(state, request.runtime)
        current = {**state, **update}
        prepared = _with_context(request, current)
        if (compactor := self._compactor(prepared, current)) is not None:
            try:
                messages = compactor.compact(_all_messages(request), self._compact_to or 0, always=True)
            except GraphMemError as error:
                update |= _unavailable("read", error)
                messages = compactor.without_memory(_all_messages(request), self._compact_to or 0)
            prepared = _with_messages(request, messages)
        return prepared, update | self._store_question(state, request.runtime)

    def after_agent(self, state: GraphMemoryState, runtime: Runtime[Any]) -> dict[str, Any] | None:
        """Store the new messages."""
        self._end_turn(state)
        try:
            return self._store_new(state, self.conversation(runtime)) if self._store else None
        except GraphMemError as error:
            return _unavailable("written", error)

    async def aafter_agent(self, state: GraphMemoryState, runtime: Runtime[Any]) -> dict[str, Any] | None:
        """Store the new messages."""
        return await asyncio.to_thread(self.after_agent, state, runtime)

    def _store_new(self, state: GraphMemoryState, conversation: Conversation) -> dict[str, Any]:
        """Store the new messages of a state, and return an update with their keys and those of earlier ones."""
        before = _initial_stored_keys(state, conversation).get("memory_stored") or state.get("memory_stored") or []
        conversation = replace(conversation, times=state.get("memory_times") or {})
        known, begun = set(before), frozenset(state.get("memory_begun") or ())
        for each, said in _by_conversation(state, conversation):
            each.append(partial(select_new, each, said, frozenset(before), begun))
            known.update(map(key_of, said))
        stored = [key for message in state["messages"] if (key := key_of(message)) in known]
        return {"memory_stored": stored, "memory_times": dict.fromkeys(conversation.times, "")}

    def _store_question(self, state: GraphMemoryState, runtime: Runtime[Any]) -> dict[str, Any]:
        """Store what the user said before the model is called, and return an update with the ids of these messages.

        With a checkpointer, nothing is stored: what a run that fails leaves in its thread is stored by the next run.
        """
        conversation = self.conversation(runtime)
        if not self._store or is_checkpointed(conversation) or state.get("memory_begun") is not None:
            return {}
        said = said_in(state["messages"])
        begun = said[: last_of_user(said) + 1]
        try:
            conversation.append(partial(select_new, conversation, begun, frozenset(), frozenset()))
        except GraphMemError as error:  # stored after the agent
            log_or_raise("written", error)
            return {}
        return {"memory_begun": [message.id for message in begun]}

    def _compactor(self, request: ModelRequest[Any], state: Mapping[str, Any]) -> GraphMemoryCompactor | None:
        """Return the compactor of the turn for a request that has too many tokens."""
        if self._compact_to is None:
            return None
        recalled: str = state["memory_recalled"]["id"]
        if (compactor := self._compactors.get(recalled)) is None:
            conversation = self.conversation(request.runtime)
            compactor = GraphMemoryCompactor(
                conversation.memory,
                conversation.session_id,
                user=conversation.user,
                count_tokens=self._count,
                one_turn=True,
            )
        if compactor.cost(_all_messages(request)) <= self._compact_to:
            return None
        self._compactors[recalled] = compactor
        if len(self._compactors) > _MOST_COMPACTORS:
            self._compactors.popitem(last=False)
        return compactor

    def _end_turn(self, state: GraphMemoryState) -> None:
        if (recalled := state.get("memory_recalled")) is not None:
            self._compactors.pop(recalled["id"], None)

    def conversation(self, runtime: Runtime[Any]) -> Conversation:
        """Return the conversation of a run, by its context and thread id."""
        memory, context = self._memory, _fields(runtime.context)
        if (scope := context["scope"]) is not None:
            memory = memory.in_scope(scope)
        elif (user_id := context["user_id"]) is not None:
            memory = memory.in_scope(Scope("users", str(user_id)))
        elif self._require_scope:
            raise InvalidInput("context: expected user_id or scope, the run has neither; pass context= to the agent")
        elif self._require_scope is None and _has_user_id(runtime.context):
            raise InvalidInput("context: user_id is None; pass require_scope=False if the memory's own scope is meant")
        elif self._require_scope is None and runtime.context and not _is_named(runtime.context):
            raise InvalidInput(
                f"context: expected one of {', '.join(_NAMES)}, it has none of them; pass require_scope=False if all "
                "runs share the memory's own scope"
            )
        session = context["session_id"] or get_config().get("configurable", {}).get("thread_id")
        return Conversation(memory, session and str(session), context["user"] or self._user, self._assistant)


def recall_node(
    memory: GraphMemory, **options: Any
) -> Callable[[GraphMemoryState, Runtime[GraphMemoryContext]], dict[str, Any]]:
    """Return a node for LangGraph that writes the context of the last user message to `memory_context` of the state.

    Declare that key in your state, and put its text, if any, into the system prompt of your model call. `options` are
    those of `GraphMemoryMiddleware`.
    """
    middleware = GraphMemoryMiddleware(memory, **options)

    def recall(state: GraphMemoryState, runtime: Runtime[GraphMemoryContext]) -> dict[str, Any]:
        update = middleware.before_agent(state, runtime)
        return {"memory_context": update["memory_recalled"]["text"], **_checkpointed(update)}

    return recall


def remember_node(
    memory: GraphMemory, **options: Any
) -> Callable[[GraphMemoryState, Runtime[GraphMemoryContext]], dict[str, Any]]:
    """Return a node for LangGraph that stores the messages of the state that aren't stored yet."""
    middleware = GraphMemoryMiddleware(memory, **options)

    def remember(state: GraphMemoryState, runtime: Runtime[GraphMemoryContext]) -> dict[str, Any]:
        update = middleware.after_agent(state, runtime) or {}
        return _checkpointed(_places(state, middleware.conversation(runtime)) | update)

    return remember


def _checkpointed(update: Mapping[str, Any]) -> dict[str, Any]:
    """Return what an update keeps in the checkpoints of a bare graph."""
    return {name: update[name] for name in ("memory_places", "memory_times", "memory_stored") if name in update}


def _fields(context: object) -> dict[str, Any]:
    if isinstance(context, Mapping):
        return {name: cast("Mapping[str, Any]", context).get(name) for name in _NAMES}
    return {name: getattr(context, name, None) for name in _NAMES}


def _is_named(context: object) -> bool:
    """Return whether a context has any of the names, even without a value."""
    if isinstance(context, Mapping):
        return any(name in context for name in _NAMES)
    return any(hasattr(context, name) for name in _NAMES)


def _has_user_id(context: object) -> bool:
    """Return whether a context has a user id, perhaps None, that an application set: a field of its own type or key."""
    if isinstance(context, Mapping):
        return "user_id" in context
    return hasattr(context, "user_id") and not isinstance(context, GraphMemoryContext)


def _question(messages: Sequence[BaseMessage]) -> tuple[str, str]:
    """Return the id and the text of the last message of the user."""
    last = next((message for message in reversed(messages) if is_of_user(message)), None)
    return ("", "") if last is None else (last.id or str(last.text), str(last.text))


def _initial_stored_keys(state: GraphMemoryState, conversation: Conversation) -> dict[str, list[str]]:
    """Return an update with which a thread begins to keep the keys of its stored messages; an empty one if it has."""
    if state.get("memory_stored") is not None or not is_checkpointed(conversation):
        return {}
    return {"memory_stored": presumed_keys(state["messages"], conversation)}


def _place(conversation: Conversation) -> str:
    return f"{conversation.memory.scope}\n{conversation.session_id or ''}"


def _places(state: GraphMemoryState, conversation: Conversation) -> dict[str, dict[str, str]]:
    """Return an update that assigns what no earlier run had: messages of the user to this conversation, all to now."""
    known, messages, timed = state.get("memory_places") or {}, state["messages"], state.get("memory_times") or {}
    given = (message.id for message in messages if message.id and is_of_user(message))
    later = takewhile(lambda message: message.id not in known, reversed(messages))
    new = (message.id for message in later if message.id and message.id not in timed)
    return {
        "memory_places": {number: _place(conversation) for number in given if number not in known},
        "memory_times": dict.fromkeys(new, datetime.now(UTC).isoformat()),
    }


def _by_conversation(
    state: GraphMemoryState, conversation: Conversation
) -> Iterator[tuple[Conversation, list[BaseMessage]]]:
    """Yield the conversation of a run with the messages of its turns.

    The last turn may have begun in another session of the scope, as one that was interrupted and is resumed there.
    """
    places, here = state.get("memory_places") or {}, _place(conversation)
    said, place = dict[str, list[BaseMessage]](), here
    for message in said_in(state["messages"]):
        if is_of_user(message):
            place = places.get(message.id or "", here)
        said.setdefault(place, []).append(message)
    yield conversation, said.get(here, [])
    scope, _, session_id = place.partition("\n")
    if place != here and scope == str(conversation.memory.scope):
        yield replace(conversation, session_id=session_id), said[place]


def _recalled(turn: str, text: str) -> dict[str, Any]:
    return {"memory_recalled": Recalled(turn=turn, text=text, id=new_id())}


def _is_recalled(state: GraphMemoryState) -> bool:
    recalled = state.get("memory_recalled")
    return recalled is not None and recalled["turn"] == _question(state["messages"])[0]


def _unavailable(operation: Literal["read", "written"], error: GraphMemError) -> dict[str, Any]:
    log_or_raise(operation, error)
    return {"memory_unavailable": f"{type(error).__name__}: {error}"}


def _with_context(request: ModelRequest[Any], state: Mapping[str, Any]) -> ModelRequest[Any]:
    text = state["memory_recalled"]["text"]
    if not text:
        return request
    before = request.system_message.content_blocks if request.system_message else []
    blocks: list[Any] = [*before, {"type": "text", "text": text}]
    return request.override(system_message=SystemMessage(content=blocks))


def _all_messages(request: ModelRequest[Any]) -> list[BaseMessage]:
    return [*([request.system_message] if request.system_message else []), *request.messages]


def _with_messages(request: ModelRequest[Any], messages: Sequence[BaseMessage]) -> ModelRequest[Any]:
    system = next((message for message in messages if isinstance(message, SystemMessage)), None)
    others = [message for message in messages if not isinstance(message, SystemMessage)]
    return request.override(system_message=system, messages=cast("list[AnyMessage]", others))
