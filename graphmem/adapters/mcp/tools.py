"""Declaration of tools: their rights and annotations, compact schemas, and the access of the current caller."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any, TypeVar, cast

from mcp.server.auth.middleware.auth_context import get_access_token
from mcp.server.auth.provider import AccessToken
from mcp.server.mcpserver import Context
from mcp.server.mcpserver.exceptions import ToolError
from mcp.server.mcpserver.tools import Tool
from mcp.types import ToolAnnotations
from mcp.types.version import is_version_at_least
from pydantic import Field

from graphmem.adapters.mcp.keys import Access, KeyFile, Rights
from graphmem.memory import GraphMemory

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
