"""Command `mcp`, which serves the memory to agents, and the commands of its keys."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Generator
from contextlib import contextmanager
from datetime import UTC, datetime
from importlib.util import find_spec
from typing import TYPE_CHECKING, Annotated, get_args

import typer

from graphmem.adapters.cli.session import Session, command, moment, one_of

if TYPE_CHECKING:
    from graphmem.adapters.mcp.keys import Key, Rights
    from graphmem.adapters.mcp.server import MemoryServer
    from graphmem.memory import GraphMemory

_log = logging.getLogger(__name__)

_GREETING = 0.5  # seconds for the first answers of a server, before it loads models, which takes the interpreter
_LOADING = 5.0  # seconds that the end of a server waits for models that are being loaded
_KEYS = "graphmem-keys.json"

KeysOption = Annotated[str, typer.Option("--keys", metavar="FILE", help="The file of keys.")]
RightsOption = Annotated[str, typer.Option("--rights", metavar="NAME", help="read, write or admin.")]
UserOption = Annotated[
    str | None, typer.Option("--user", metavar="NAME", help="The person: who I is, and the speaker of messages.")
]
AgentOption = Annotated[str | None, typer.Option("--agent", metavar="NAME", help="The program that uses the memory.")]


def register(app: typer.Typer) -> None:
    """Add the commands to the program."""
    command(app)(mcp)
    keys = typer.Typer(no_args_is_help=True, rich_markup_mode=None)
    app.add_typer(keys, name="keys", help="Manage the keys of the MCP server.", short_help="Manage MCP keys.")
    command(keys)(add)
    command(keys, "list")(list_)
    command(keys)(revoke)


def mcp(
    session: Session,
    http: Annotated[
        str | None,
        typer.Option("--http", metavar="HOST:PORT", help="Serve streamable HTTP here. [default: stdio]"),
    ] = None,
    keys: Annotated[
        str | None, typer.Option("--keys", metavar="FILE", help="For --http: the keys that callers need.")
    ] = None,
    profile: Annotated[
        str, typer.Option("--profile", metavar="NAME", help="core: six tools; full: all, resources and prompts.")
    ] = "core",
    rights: RightsOption = "admin",
    user: UserOption = None,
    agent: AgentOption = None,
) -> None:
    """Serve the memory to agents over the Model Context Protocol, on standard input and output or HTTP.

    Without --keys, --rights, --user and --agent apply to every caller. HTTP needs --keys except on 127.0.0.1.
    """
    address = None if http is None else _address(http)
    if keys is not None and address is None:
        raise typer.BadParameter("--keys: standard input and output needs no keys; add --http HOST:PORT")
    _require_extra()
    from graphmem.adapters.mcp import Access, KeyFile, MemoryServer
    from graphmem.adapters.mcp.server import Profile
    from graphmem.memory import GraphMemory

    chosen: Profile = one_of("--profile", profile, get_args(Profile))
    file = None if keys is None else KeyFile(keys)
    access = Access(scopes=(session.scope,), rights=_rights(rights), user=user, agent=agent)
    session.note_new_store()
    with GraphMemory.open(session.settings.store, scope=session.scope, settings=session.settings) as memory:
        server = MemoryServer(memory, profile=chosen, access=access, keys=file)
        with loading(memory):
            if address is None:
                asyncio.run(server.run_stdio_async())
            else:
                _serve(server, *address)


@contextmanager
def loading(memory: GraphMemory) -> Generator[None]:
    """Load the models of a memory on a thread, shortly after the block begins.

    A failure is left to the call that needs the model.
    """
    from graphmem.background import BackgroundJob, wake_timer

    def load() -> None:
        try:
            memory.admin.load_models()
        except Exception as error:  # noqa: BLE001 - whatever a model raises must not end or disturb the server
            _log.info("a model can't be loaded: %s", error)

    job = BackgroundJob("graphmem-models", load)
    wake_timer().wake_after(_GREETING, job)
    try:
        yield
    finally:
        job.stop(timeout=_LOADING)


def _serve(server: MemoryServer, host: str, port: int) -> None:
    import uvicorn

    app = server.http_app(host)
    shown = f"[{host}]" if ":" in host else host
    typer.echo(f"graphmem: serving MCP at http://{shown}:{port}/mcp", err=True)
    uvicorn.run(app, host=host, port=port, log_level="warning", timeout_graceful_shutdown=10)


def _address(text: str) -> tuple[str, int]:
    host, colon, port = text.rpartition(":")
    if not colon or not host or not port.isdecimal() or int(port) > 65535:
        raise typer.BadParameter(f"--http: {text!r} is not HOST:PORT, such as 127.0.0.1:8765")
    return host.removeprefix("[").removesuffix("]"), int(port)


def _require_extra() -> None:
    from graphmem.errors import MissingExtra

    if find_spec("mcp") is None:
        raise MissingExtra("graphmem mcp", "mcp")


def _rights(name: str) -> Rights:
    from graphmem.adapters.mcp.keys import Rights

    return one_of("--rights", name, get_args(Rights))


def add(
    session: Session,
    name: Annotated[str, typer.Argument(help="A name to recognize the key by.")],
    also_read: Annotated[
        list[str] | None,
        typer.Option("--also-read", metavar="SCOPE", help="A further scope to read; may be given several times."),
    ] = None,
    rights: RightsOption = "write",
    user: UserOption = None,
    agent: AgentOption = None,
    expires: Annotated[str | None, typer.Option(metavar="DATE", help="When it expires. [default: never]")] = None,
    keys: KeysOption = _KEYS,
) -> None:
    """Add a key for --scope and print its token, which is stored nowhere else."""
    _require_extra()
    from graphmem.adapters.mcp import Access, KeyFile
    from graphmem.inputs import to_scopes

    scopes = (session.scope, *(to_scopes(also_read) if also_read else ()))
    access = Access(scopes=scopes, rights=_rights(rights), user=user, agent=agent)
    until = None if expires is None else moment("--expires", expires)
    if until is not None and until <= datetime.now(UTC):
        raise typer.BadParameter(f"--expires: {expires} is past; the key would be refused at once")
    key, token = KeyFile(keys).add(name, access, expires_at=until)
    if session.out.as_json:
        session.out.document({**_shown(key), "token": token})
        return
    session.out.note(f"key {key.name}: {rights} in {', '.join(map(str, scopes))}; its token:")
    session.out.line(token)


def list_(session: Session, keys: KeysOption = _KEYS) -> None:
    """List the keys with their scopes and rights."""
    from graphmem.adapters.cli.output import Column

    _require_extra()
    from graphmem.adapters.mcp import KeyFile

    found = KeyFile(keys).list()
    if session.out.as_json:
        session.out.document([_shown(key) for key in found])
        return
    columns = [Column("name"), Column("id"), Column("scopes", 1), Column("rights"), Column("user"), Column("state")]
    rows = [
        (key.name, key.id, ", ".join(map(str, key.access.scopes)), key.access.rights, key.access.user or "", key.state)
        for key in found
    ]
    session.out.table(columns, rows)


def revoke(
    session: Session,
    name: Annotated[str, typer.Argument(help="Name or id of the key.")],
    keys: KeysOption = _KEYS,
) -> None:
    """Revoke a key; running servers refuse it immediately."""
    _require_extra()
    from graphmem.adapters.mcp import KeyFile

    key = KeyFile(keys).revoke(name)
    if session.out.as_json:
        session.out.document(_shown(key))
        return
    session.out.line(f"key {key.name} ({key.id}) is revoked")


def _shown(key: Key) -> dict[str, object]:
    return {
        "id": key.id,
        "name": key.name,
        "scopes": [str(scope) for scope in key.access.scopes],
        "rights": key.access.rights,
        "user": key.access.user,
        "agent": key.access.agent,
        "created_at": key.created_at,
        "expires_at": key.expires_at,
        "state": key.state,
    }
