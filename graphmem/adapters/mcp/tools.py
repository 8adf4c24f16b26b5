"""Declaration of tools (rights, compact schemas, access of the caller), and those of the profile ``core``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal, TypeVar, cast

from mcp.server.auth.middleware.auth_context import get_access_token
from mcp.server.auth.provider import AccessToken
from mcp.server.mcpserver import Context, Elicit
from mcp.server.mcpserver.exceptions import ToolError
from mcp.server.mcpserver.tools import Tool
from mcp.types import CallToolResult, ToolAnnotations
from mcp.types.version import is_version_at_least
from pydantic import BaseModel, ConfigDict, Field

from graphmem.adapters.mcp.keys import Access, KeyFile, Rights
from graphmem.adapters.mcp.results import (
    EXAMPLES,
    Added,
    Episodes,
    FactItem,
    Facts,
    Remembered,
    Text,
    clean,
    episode_item,
    fact_item,
    fenced,
    listed,
    paged,
    plain,
    result,
)
from graphmem.memory import GraphMemory
from graphmem.models.metadata import INJECTION_FLAG, SKIPPED, TRUST
from graphmem.recall.options import MAX_RECALLED
from graphmem.results import Fact
from graphmem.search.passages import term_weights
from graphmem.text import counted
from graphmem.text.normalize import canonical

Time = Annotated[str | None, Field(description="ISO 8601")]
Limit = Annotated[int, Field(ge=1, le=100)]
Offset = Annotated[int, Field(ge=0, le=10_000)]
Budget = Annotated[int, Field(ge=50, le=100_000)]
Filters = dict[str, Any] | None
Name = Annotated[str, Field(description="name or id")]

F = TypeVar("F", bound=Callable[..., Any])

_SPEC = "_tool_spec"
_ASKS_BY_RESULT = "2026-07-28"  # from this version on, a question is a result and needs no connection back


@dataclass(frozen=True, slots=True)
class ToolSpec:
    """Declaration of a tool; fields as in `tool`."""

    title: str
    rights: Rights
    destructive: bool
    idempotent: bool
    page: str | None = None

    @property
    def annotations(self) -> ToolAnnotations:
        """The annotations of the tool; it reaches nothing but the memory."""
        return ToolAnnotations(
            read_only_hint=self.rights == "read",
            destructive_hint=self.destructive,
            idempotent_hint=self.idempotent or self.rights == "read",
            open_world_hint=False,
        )


def can_ask(ctx: Context[Any, Any]) -> bool:
    """Return whether the client can show a question to its user, and the transport can carry it."""
    capabilities = ctx.client_capabilities
    asked = None if capabilities is None else capabilities.elicitation
    has_forms = asked is not None and (asked.form is not None or asked.url is None)
    stateless = ctx.protocol_version is not None and is_version_at_least(ctx.protocol_version, _ASKS_BY_RESULT)
    return has_forms and (stateless or ctx.session.can_send_request)


def tool(
    title: str,
    rights: Rights = "read",
    *,
    destructive: bool = False,
    idempotent: bool = False,
    page: str | None = None,
) -> Callable[[F], F]:
    """Declare a method of a `ToolSet` as a tool; its docstring is the description.

    Parameters
    ----------
    title, rights
        Title of the tool, and rights that a caller needs; a tool that needs ``read`` changes nothing.
    destructive, idempotent
        Whether calls erase data, and whether repeating one has no further effect.
    page
        URI of the page that shows its results in hosts with MCP Apps.
    """

    def declare(function: F) -> F:
        setattr(function, _SPEC, ToolSpec(title, rights, destructive, idempotent, page))
        return function

    return declare


class KeyToken(AccessToken):
    """A verified token with the access that its key gives."""

    access: Access


class KeyVerifier:
    """Verifies bearer tokens by a file of keys; the token verifier of the SDK's HTTP server."""

    def __init__(self, keys: KeyFile) -> None:
        self._keys = keys

    async def verify_token(self, token: str) -> AccessToken | None:
        """Return the access of a token, or None if it has none."""
        key = self._keys.verify(token)
        if key is None:
            return None
        return KeyToken(
            token=key.id, client_id=key.id, scopes=[key.access.rights], subject=key.access.user, access=key.access
        )


@dataclass(frozen=True, slots=True)
class Caller:
    """Who calls: a memory in the first scope of its access, and the access."""

    memory: GraphMemory
    access: Access

    def question(self, as_of: str | None = None, filters: Filters = None) -> dict[str, Any]:
        """Return the arguments of a question: the given ones, with who asks in which scopes."""
        return {"asked_by": self.access.user, "as_of": as_of, "filters": filters, "scopes": self.access.scopes}


class ToolSet:
    """Tools over one memory: the methods that are declared with `tool`.

    Parameters
    ----------
    memory
        An open memory.
    access
        Access of callers without a token: on stdio, and over HTTP without keys. None refuses them.
    """

    def __init__(self, memory: GraphMemory, access: Access | None) -> None:
        self._memory = memory
        self._access = access

    def caller(self) -> Caller:
        """Return who calls now, by the token of the request alone.

        Raises
        ------
        ToolError
            If the caller has no access.
        """
        token = get_access_token()
        access = token.access if isinstance(token, KeyToken) else self._access if token is None else None
        if access is None:
            raise ToolError("a key is required: send Authorization: Bearer TOKEN")
        return Caller(self._memory.in_scope(access.scopes[0]), access)

    def tools(self) -> list[tuple[Tool, ToolSpec]]:
        """Return the declared tools in the order of their definition, with compact schemas."""
        names = [name for kind in reversed(type(self).__mro__) for name in vars(kind)]
        methods = [getattr(self, name) for name in dict.fromkeys(names)]
        return [(_made(method), spec) for method in methods if (spec := getattr(method, _SPEC, None)) is not None]


def toolset_of(ctx: Context[Any, Any]) -> ToolSet:
    """Return the tools of the server that handles a request."""
    return cast("ToolSet", getattr(ctx.mcp_server, "toolset"))  # noqa: B009 - an attribute of MemoryServer


class Consent(BaseModel):
    """Answer of a user."""

    erase: Annotated[bool, Field(description="Erase it? It can't be undone.")]


async def ask_before_erasing(
    ctx: Context[Any, Any],
    entity: str | None,
    episode: str | None,
    session: str | None,
    speaker: str | None,
    with_episodes: bool,
    dry_run: bool,
    confirm: bool,
) -> Consent | Elicit[Consent]:
    """Ask the user, with the counts of a dry run; where the client can't ask, `confirm` decides."""
    if dry_run or not can_ask(ctx):
        return Consent(erase=confirm)
    tools = toolset_of(ctx)
    what: dict[str, Any] = {"entity": entity, "episode": episode, "session": session, "speaker": speaker}
    plan = await tools.caller().memory.aforget(**what, with_episodes=with_episodes, dry_run=True)
    [named] = [f"{kind} {clean(name)!r}" for kind, name in what.items() if name is not None]
    counts = ", ".join(f"{number} {name}" for name, number in plan.counts.items())
    stays = "".join(f" {clean(each)}." for each in plan.remaining[:EXAMPLES])
    return Elicit(f"Erase {named} from the memory? It has {counts or 'no rows'}.{stays}", Consent)


def _made(method: Callable[..., Any]) -> Tool:
    spec: ToolSpec = getattr(method, _SPEC)
    text = " ".join((method.__doc__ or "").split())
    made = Tool.from_function(method, title=spec.title, description=text, annotations=spec.annotations)
    made.meta = None if spec.page is None else {"ui": {"resourceUri": spec.page}}
    made.parameters = {**compact(made.parameters), "additionalProperties": False}
    if made.fn_metadata.output_schema is not None:
        made.fn_metadata.output_schema = compact(made.fn_metadata.output_schema, result=True)
    return made


# what is left out of published schemas: calls are still checked for it
_TITLES = frozenset({"title", "$defs"})
_LIMITS = frozenset({"minimum", "maximum", "minItems", "maxItems"})
_OF_ARGUMENTS = _TITLES | _LIMITS
_OF_RESULTS = _TITLES | _LIMITS | {"default", "required", "description"}


def compact(schema: dict[str, Any], *, result: bool = False) -> dict[str, Any]:
    """Return a JSON schema of fewer tokens: without titles, definitions, limits, and null for optional fields.

    Parameters
    ----------
    schema
        Schema of the arguments or, if `result`, of the result of a tool. Results leave out fields that are null.
    """
    definitions = cast("dict[str, Any]", schema.get("$defs", {}))
    return cast("dict[str, Any]", _compact(schema, definitions, _OF_RESULTS if result else _OF_ARGUMENTS))


def _compact(node: Any, definitions: dict[str, Any], unwanted: frozenset[str]) -> Any:
    if isinstance(node, list):
        return [_compact(each, definitions, unwanted) for each in cast("list[Any]", node)]
    if not isinstance(node, dict):
        return node
    given = cast("dict[str, Any]", node)
    if (reference := given.get("$ref")) is not None:
        given = {**given, **definitions[reference.rpartition("/")[2]]}
        del given["$ref"]
    kept = [each for each in given.get("anyOf", ()) if each != {"type": "null"}]
    if len(kept) == 1:
        given = {**{k: v for k, v in given.items() if k not in ("anyOf", "default")}, **kept[0]}
        return _compact(given, definitions, unwanted)
    if "properties" in given:
        fields = {name: _compact(field, definitions, unwanted) for name, field in given["properties"].items()}
        given = {k: v for k, v in given.items() if k != "description"} | {"properties": fields}
    is_flag = isinstance(given.get("additionalProperties"), bool)  # true changes nothing, false is still checked
    left_out = unwanted | {"properties", "additionalProperties"} if is_flag else unwanted | {"properties"}
    rest = {k: _compact(v, definitions, unwanted) for k, v in given.items() if k not in left_out}
    return rest if "properties" not in given else {**rest, "properties": given["properties"]}


# Profile core -------------------------------------------------------------------------------------


_REFUSED = 20  # refused facts that a result lists
_SOURCES = 3  # episodes of a fact that a result names


class GivenFact(BaseModel):
    """A ready-made fact."""

    model_config = ConfigDict(extra="forbid")

    subject: str
    relation: str
    object: str
    fact: Annotated[str, Field(description="sentence")] = ""
    valid_from: str | None = None
    valid_to: str | None = None
    confidence: float = 1.0


class CoreTools(ToolSet):
    """The six everyday tools."""

    @tool("Context for an answer")
    async def memory_context(
        self, query: str, budget_tokens: Budget = 800, as_of: Time = None, filters: Filters = None
    ) -> Annotated[CallToolResult, Text]:
        """Return facts and dated quotes for a question, within a budget.

        Call it before you answer about people, decisions or the past. Not for ids: use memory_recall.
        """
        caller = self.caller()
        text = await caller.memory.acontext(query, budget_tokens=budget_tokens, **caller.question(as_of, filters))
        return result(Text(text=plain(text.unfenced)), fenced(text.unfenced))

    @tool("Search episodes")
    async def memory_search(
        self,
        query: str,
        as_of: Time = None,
        filters: Annotated[Filters, Field(description="session_ids, speakers, roles, since, until, metadata")] = None,
        limit: Limit = 10,
        offset: Offset = 0,
        budget_tokens: Budget = 2000,
    ) -> Annotated[CallToolResult, Episodes]:
        """Return messages and passages for a question, best first, with date, speaker and id.

        For exact words. Not for current facts: use memory_recall.
        """
        caller = self.caller()
        found = await caller.memory.asearch(query, k=offset + limit + 1, **caller.question(as_of, filters))
        weights = term_weights(query, [one.episode.searchable_text for one in found])
        items = [episode_item(one.episode, weights, one.confidence) for one in found]
        shown, after = paged(items, offset, limit, budget_tokens)
        page = Episodes(episodes=shown, next_offset=after, notes=list(found.degraded) or None)
        return listed(page, page.episodes)

    @tool("Recall facts")
    async def memory_recall(
        self,
        query: str,
        as_of: Time = None,
        filters: Filters = None,
        limit: Limit = 10,
        offset: Offset = 0,
        budget_tokens: Budget = 2000,
    ) -> Annotated[CallToolResult, Facts]:
        """Return facts for a question, best first, with dates, sources and ids.

        Not for exact words: use memory_search.
        """
        caller = self.caller()
        found = await caller.memory.arecall(
            query, limit=min(MAX_RECALLED, offset + limit + 1), **caller.question(as_of, filters)
        )
        return await facts_page(caller, list(found), offset, limit, budget_tokens)

    @tool("History of an entity")
    async def memory_history(
        self,
        name: Name,
        relation: str | None = None,
        as_of: Time = None,
        limit: Limit = 20,
        offset: Offset = 0,
        budget_tokens: Budget = 2000,
    ) -> Annotated[CallToolResult, Facts]:
        """Return all versions of an entity's facts, newest first: current, ended and retracted. Not for questions."""
        caller = self.caller()
        found = await caller.memory.ahistory(
            name, relation, as_of=as_of, limit=offset + limit + 1, scopes=caller.access.scopes
        )
        return await facts_page(caller, list(found), offset, limit, budget_tokens)

    @tool("Remember a message", "write")
    async def memory_remember(
        self,
        text: str,
        role: Literal["user", "assistant", "tool"] = "user",
        speaker: str | None = None,
        session_id: str | None = None,
        occurred_at: Time = None,
        external_id: Annotated[str | None, Field(description="repeats store nothing")] = None,
        metadata: dict[str, Any] | None = None,
        expires_in: Annotated[str | None, Field(description="30d")] = None,
    ) -> Annotated[CallToolResult, Remembered]:
        """Store a message or note.

        One message a call, in its own words; role tool for pages, files. Not for secrets, reasoning, memory results.
        """
        caller = self.caller()
        authors = authorship(caller)
        if authors and (named := {"user", "agent"} & (metadata or {}).keys()):
            raise ToolError(f"metadata: {' and '.join(sorted(named))} come from the key; leave them out")
        if metadata and (stated := {TRUST, INJECTION_FLAG, SKIPPED} & metadata.keys()):
            raise ToolError(f"metadata: {' and '.join(sorted(stated))} is set by the program that runs the server")
        stored = await caller.memory.aremember(
            text,
            role=role,
            speaker=speaker_of(caller, role, speaker),
            session_id=session_id,
            occurred_at=occurred_at,
            external_id=external_id,
            metadata={**(metadata or {}), **authors},
            expires_in=expires_in,
        )
        done = "Stored" if stored.created else "Already stored: nothing changed"
        return result(
            Remembered(episode_id=stored.episode_id, created=stored.created), f"{done} (episode {stored.episode_id})."
        )

    @tool("Add facts", "write")
    async def memory_add_facts(
        self, facts: Annotated[list[GivenFact], Field(min_length=1, max_length=10_000)]
    ) -> Annotated[CallToolResult, Added]:
        """Store ready-made facts; a new value of a single-valued relation ends the old one, which history keeps.

        Not for text: use memory_remember.
        """
        caller = self.caller()
        properties = authorship(caller)
        triples = [{**fact.model_dump(exclude_none=True), "metadata": properties} for fact in facts]
        report = await caller.memory.aadd_facts(triples, skip_invalid=True)
        refused = [clean(f"fact {one.number}: {one.reason}")[:300] for one in report.rejected[:_REFUSED]]
        added = Added(
            received=report.received,
            new=report.edges,
            confirmed=report.supported,
            ended=report.ended,
            refused=refused,
        )
        lines = [
            f"{added.new} new, {added.confirmed} confirmed, {added.ended} ended of {counted(added.received, 'fact')}."
        ]
        if report.rejected_count:
            lines += [f"Refused: {report.rejected_count}", fenced("\n".join(refused))]
        return result(added, "\n".join(lines))


async def facts_page(
    caller: Caller, facts: Sequence[Fact], offset: int, limit: int, budget_tokens: int
) -> CallToolResult:
    """Return a page of facts as the result of a tool."""
    items = await fact_items(caller, facts[: offset + limit + 1])
    shown, after = paged(items, offset, limit, budget_tokens)
    return listed(Facts(facts=shown, next_offset=after), shown)


async def fact_items(caller: Caller, facts: Sequence[Fact]) -> list[FactItem]:
    """Return facts with the first episodes that state them."""
    ids = [i for fact in facts for i in fact.episode_ids[:_SOURCES]]
    episodes = {e.id: e for e in await caller.memory.aepisodes(ids, scopes=caller.access.scopes)}
    return [fact_item(fact, episodes) for fact in facts]


def speaker_of(caller: Caller, role: str, speaker: str | None) -> str | None:
    """Return the speaker of a message: the user or agent of the key, or a given one where the key names none.

    Raises
    ------
    ToolError
        If another speaker than that of the key is given, a speaker of an assistant whose name the key leaves out, or
        the user or agent as the speaker of an external source.
    """
    user, agent = caller.access.user, caller.access.agent
    fixed = {"user": user, "assistant": agent}.get(role)
    if fixed and speaker not in (None, fixed):
        raise ToolError(f"speaker: messages of the role {role} are stored as those of {fixed!r}; leave speaker out")
    if speaker and role == "assistant" and user and not agent:
        raise ToolError("speaker: the key names no agent, so the role assistant has no speaker; leave speaker out")
    if speaker and role == "tool" and canonical(speaker) in {canonical(name) for name in (user, agent) if name}:
        raise ToolError(f"speaker: {clean(speaker)[:60]!r} says nothing as a tool; leave speaker out")
    return fixed or speaker


def authorship(caller: Caller) -> dict[str, Any]:
    """Return the user and agent of the key as metadata of what they store."""
    given = {"user": caller.access.user, "agent": caller.access.agent}
    return {name: value for name, value in given.items() if value is not None}
