"""Resources and prompts of the MCP server, in the scopes of who asks."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial, wraps
from typing import Annotated, Any, ParamSpec

from mcp import MCPError
from mcp.server.mcpserver import MCPServer, ResourceSecurity
from mcp.server.mcpserver.exceptions import ResourceNotFoundError
from mcp.types import (
    INTERNAL_ERROR,
    INVALID_PARAMS,
    Completion,
    CompletionArgument,
    CompletionContext,
    PromptReference,
    ResourceTemplateReference,
)
from pydantic import Field

from graphmem.adapters.mcp.full import scope_stats
from graphmem.adapters.mcp.results import clean, episode_item, fenced
from graphmem.adapters.mcp.tools import ToolSet, fact_items
from graphmem.errors import GraphMemError, InvalidInput, NotFound
from graphmem.text import counted

_MOST_FACTS = 100  # facts of an entity in a resource
_MOST_EPISODES = 200  # episodes of a session in a resource
_MOST_NAMES = 2000  # entities or communities that a completion looks at
_MOST_VALUES = 100  # values of a completion, the limit of the protocol

P = ParamSpec("P")


def add_resources(server: MCPServer[Any], tools: ToolSet) -> None:
    """Add the resources of the memory to a server, in the scopes of who asks, and the completion of their names."""
    resource = partial(server.resource, mime_type="text/plain")
    # names are no paths: they may hold slashes and dots
    names = ResourceSecurity(reject_path_traversal=False, reject_absolute_paths=False)
    named = partial(resource, security=names)

    @resource("memory://stats", name="stats", title="Counts of the memory")
    @_errors_reported
    async def stats() -> str:
        """Return the counts of the scopes of the caller."""
        return fenced("\n".join(one.model_dump_json() for one in await scope_stats(tools.caller())))

    @named("memory://entity/{name}", name="entity", title="Facts of an entity")
    @_errors_reported
    async def entity(name: str) -> str:
        """Return the current facts of an entity, newest first."""
        caller = tools.caller()
        facts = await caller.memory.afacts(name, limit=_MOST_FACTS, scopes=caller.access.scopes)
        return _found(f"entity {name!r}", map(str, await fact_items(caller, facts)))

    @named("memory://session/{id}", name="session", title="Messages of a session")
    @_errors_reported
    async def session(id: str) -> str:  # noqa: A002 - the name in the URI
        """Return the last messages of a session in order."""
        caller = tools.caller()
        episodes = await caller.memory.asession(id, limit=_MOST_EPISODES, scopes=caller.access.scopes)
        return _found(f"session {id!r}", (str(episode_item(episode, {})) for episode in episodes))

    @named("memory://episode/{id}", name="episode", title="An episode in full")
    @_errors_reported
    async def episode(id: str) -> str:  # noqa: A002 - the name in the URI
        """Return the whole text of an episode that a result quotes."""
        caller = tools.caller()
        found = await caller.memory.aepisodes([id], scopes=caller.access.scopes)
        lines = (
            f"{one.occurred_at:%Y-%m-%d %H:%M}, {clean(one.speaker or one.title or one.source)}:\n{one.text}"
            for one in found
        )
        return _found(f"episode {id!r}", lines)

    @named("memory://community/{id}", name="community", title="A community")
    @_errors_reported
    async def community(id: str) -> str:  # noqa: A002 - the name in the URI
        """Return the summary and the members of a community."""
        caller = tools.caller()
        found = await caller.memory.acommunities(level=None, ids=[id], scopes=caller.access.scopes)
        lines = (
            f"{clean(one.name)}: {clean(one.summary)}\n" + "\n".join(f"- {clean(m.name)}" for m in one.members)
            for one in found
        )
        return _found(f"community {id!r}", lines)

    @server.completion()
    async def complete(
        ref: PromptReference | ResourceTemplateReference,
        argument: CompletionArgument,
        context: CompletionContext | None,
    ) -> Completion | None:
        """Complete the names of entities and the ids of communities."""
        del context
        caller, begun = tools.caller(), argument.value.casefold()
        if isinstance(ref, ResourceTemplateReference) and ref.uri == "memory://community/{id}":
            found = await caller.memory.acommunities(limit=_MOST_NAMES, scopes=caller.access.scopes)
            values = [one.id for one in found if one.id.startswith(begun)]
        elif argument.name == "name":
            scopes = caller.access.scopes
            entities = await caller.memory.aentities(limit=_MOST_NAMES, scopes=scopes)
            if argument.value.strip():
                entities = await caller.memory.aentities(argument.value, limit=_MOST_VALUES, scopes=scopes) + entities
            values = [clean(each.name) for each in entities if each.name.casefold().startswith(begun)]
        else:
            return None
        distinct = list(dict.fromkeys(values))
        return Completion(values=distinct[:_MOST_VALUES], total=len(distinct), has_more=len(distinct) > _MOST_VALUES)


def add_prompts(server: MCPServer[Any], tools: ToolSet) -> None:
    """Add the prompts: begin a session, review what is known, before forgetting."""

    @server.prompt(title="Begin a session")
    @_errors_reported
    async def begin_session(topic: Annotated[str, Field(description="what the session is about")]) -> str:
        """Begin with what the memory knows about a topic."""
        caller = tools.caller()
        known = await caller.memory.acontext(topic, budget_tokens=1500, **caller.question())
        return f"""We begin a session about: {clean(topic)}

What the memory knows:
{fenced(known.unfenced)}

Ask memory_context before you answer from it, and store what I tell you that lasts with memory_remember."""

    @server.prompt(title="Review what is known")
    @_errors_reported
    async def review(name: Annotated[str, Field(description="name of an entity")]) -> str:
        """Go through the facts of an entity and correct them."""
        caller = tools.caller()
        facts = await caller.memory.afacts(name, limit=_MOST_FACTS, scopes=caller.access.scopes)
        lines = "\n".join(map(str, await fact_items(caller, facts)))
        return f"""Review with me what the memory holds about {clean(name)}:
{fenced(lines)}

Ask me about doubtful and contradictory facts one at a time. Correct with memory_retract what was never true, with
memory_end what is over, and with memory_add_facts what is missing. Change nothing that I didn't confirm."""

    @server.prompt(title="Before forgetting")
    @_errors_reported
    async def before_forgetting(name: Annotated[str, Field(description="name of an entity")]) -> str:
        """Show what an erasure would take, before anything is erased."""
        caller = tools.caller()
        if not caller.access.permits("admin"):  # a dry run is a write transaction, and only an admin may erase
            raise MCPError(INVALID_PARAMS, "before_forgetting needs the right 'admin'")
        done = await caller.memory.aforget(name, dry_run=True)
        counts = (
            f"{counted(done.episodes, 'episode')}, {counted(done.entities, 'entity', 'entities')}, "
            f"{counted(done.facts, 'fact')}"
        )
        stays = fenced("\n".join(map(clean, done.remaining)))
        return f"""I consider erasing {clean(name)} from the memory. It would take {counts}. What stays:
{stays}

Explain this to me, and ask whether I want to erase it, and with with_episodes the episodes about it as well. Call
memory_forget only after I agreed."""


def _found(what: str, lines: Any) -> str:
    text = "\n".join(lines)
    if not text:
        raise ResourceNotFoundError(f"{clean(what)} is not in the memory")
    return fenced(text)


def _errors_reported(read: Callable[P, Awaitable[str]]) -> Callable[P, Awaitable[str]]:
    """Return a function that reports errors of the memory to the client."""

    @wraps(read)
    async def run(*args: P.args, **kwargs: P.kwargs) -> str:
        try:
            return await read(*args, **kwargs)
        except GraphMemError as error:
            code = INVALID_PARAMS if isinstance(error, (InvalidInput, NotFound)) else INTERNAL_ERROR
            raise MCPError(code, clean(str(error))) from error

    return run
