"""The program `graphmem`: its commands, its global options, and the commands about the program itself."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Mapping
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from graphmem.adapters.cli import ingest, init, mcp, migrate, reading, search, upkeep, worker
from graphmem.adapters.cli.session import FAILED, USAGE, Session, Shared, command, shared_options
from graphmem.text import counted

if TYPE_CHECKING:
    from graphmem.results import Check


_EPILOG = (
    "The options above can also follow the command. "
    "Exit codes: 0 success · 1 failure · 2 invalid command line · 3 store unavailable or damaged · "
    "4 nothing found · 5 success except for refused lines · 130 interrupted"
)

app = typer.Typer(
    name="graphmem",
    help="A graph memory for AI agents: entities, dated facts, and the episodes they come from.",
    epilog=_EPILOG,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,  # rich adds 0.4 s to each --help and drops text in brackets
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _show_version(asked: bool) -> None:
    if asked:
        from importlib.metadata import version

        typer.echo(f"graphmem {version('graphmem')}")
        raise typer.Exit


def _program(
    context: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", "-V", help="Print the version.", callback=_show_version, is_eager=True)
    ] = False,
    **given: Any,
) -> None:
    del version
    context.obj = Shared(**given)


def _with_shared_options() -> None:
    own = list(inspect.signature(_program, eval_str=True).parameters.values())[:-1]
    shared = inspect.signature(shared_options, eval_str=True).parameters.values()
    parameters = [p.replace(kind=inspect.Parameter.KEYWORD_ONLY) for p in (*own, *shared)]
    _program.__signature__ = inspect.Signature(parameters)  # pyright: ignore[reportFunctionMemberAccess]
    _program.__annotations__ = {p.name: p.annotation for p in parameters}
    app.callback()(_program)


_with_shared_options()


@app.command("help", short_help="Print the help of the program or of a command.")
def _help(  # pyright: ignore[reportUnusedFunction]
    context: typer.Context,
    names: Annotated[
        list[str] | None, typer.Argument(metavar="COMMAND", help="The command, in one or two words.")
    ] = None,
) -> None:
    """Print the help of the program or of a command."""
    program: Any = context.find_root()
    for name in names or ():
        found = program.command.get_command(program, name) if hasattr(program.command, "get_command") else None
        if found is None:
            raise typer.BadParameter(f"there is no command {' '.join(names or ())!r}; graphmem help lists all commands")
        program = typer.Context(found, parent=program, info_name=name)
    typer.echo(program.get_help())


# Commands about the program itself ---------------------------------------------------------------


def stats(session: Session) -> None:
    """Print statistics of the scope."""
    with session.open() as memory:
        found = memory.stats()
        if session.out.as_json:
            session.out.document(found)
            return
        rows: list[tuple[str, object]] = [("scope", found.scope), ("entities", found.entities)]
        rows += [(f"  {kind}", number) for kind, number in sorted(found.entities_by_type.items(), key=_by_count)]
        rows += [("facts", found.edges), ("  active", found.active_edges)]
        rows += [("  deleted history", found.deleted_facts)] if found.deleted_facts else []
        rows += [(f"  {kind}", number) for kind, number in sorted(found.edges_by_type.items(), key=_by_count)]
        rows += [("episodes", found.episodes), ("  waiting", found.pending_episodes)]
        rows += [("  expired and erased", found.expired_episodes)] if found.expired_episodes else []
        rows += [("  failed", found.failed_episodes), ("extraction", found.queue), ("mentions", found.mentions)]
        rows += [
            ("communities", found.communities),
            ("  ended", found.ended_communities),
            ("  members", found.community_members),
            ("recalls", found.recalls),
        ]
        rows += [(f"error of {error.episode_id}", error.error) for error in found.errors]
        rows += [(f"{job.job}, last run", job.done_at or "interrupted") for job in found.upkeep]
        rows += [("error in the background", error) for error in found.background]
        session.out.pairs(rows)
        if found.failed_episodes:
            session.out.note("to list the failed episodes, and to retry them:")
            session.out.command(session.command_line("dead-letters"))
            session.out.command(session.command_line("backfill", "--failed"))


def _by_count(item: tuple[str, int]) -> tuple[int, str]:
    return -item[1], item[0]


def scopes(session: Session) -> None:
    """List the scopes of the store with their numbers of episodes, entities and facts."""
    from graphmem.adapters.cli.output import Column

    with session.open() as memory:
        counts = [memory.in_scope(scope).stats() for scope in memory.admin.scopes()]
        if session.out.as_json:
            found = [
                {"scope": c.scope, "episodes": c.episodes, "entities": c.entities, "facts": c.edges} for c in counts
            ]
            session.out.document({"scopes": found})
        elif counts:
            columns = [Column("scope", 3), *(Column(name, align="right") for name in ("episodes", "entities", "facts"))]
            rows = [(c.scope, f"{c.episodes:,}", f"{c.entities:,}", f"{c.edges:,}") for c in counts]
            session.out.table(columns, rows)
        if not counts:
            session.nothing("the store is empty")


_IMPORTANT = frozenset(
    "store scope extractor llm embeddings redact detect_injection expired_edge_retention_days".split()
)
"""Settings that `doctor` explains also if they are defaults."""


def doctor(
    session: Session,
    settings: Annotated[
        bool,
        typer.Option("--settings", help="Explain all settings, not only important ones and those that are set."),
    ] = False,
) -> None:
    """Check store, extractor and queue, say what to do about what is off, and explain the settings."""
    from graphmem.errors import BackendUnavailable, UnknownBackend
    from graphmem.results import Check

    unavailable = None
    try:
        checks = _checks(session)
    except (BackendUnavailable, UnknownBackend) as error:
        if not session.out.as_json:
            raise
        checks, unavailable = [Check(name="store", ok=False, detail=str(error))], error
    asked = [name for name, origin in session.origins.items() if settings or origin != "default" or name in _IMPORTANT]
    if session.out.as_json:
        document = {"ok": all(check.ok for check in checks), "checks": checks, "settings": _explained(session, asked)}
        session.out.document(document)
        if unavailable is not None:
            raise unavailable
    else:
        session.out.pairs((f"{'ok ' if check.ok else 'BAD'}  {check.name}", check.detail) for check in checks)
        session.out.line()
        _print_explained(session, asked)
        if len(asked) < len(session.origins):
            session.out.note(f"the other settings are defaults; to explain all {len(session.origins)}:")
            session.out.command(session.command_line("doctor", "--settings"))
    if not all(check.ok for check in checks):
        raise typer.Exit(FAILED)


def _checks(session: Session) -> list[Check]:
    """Return the checks of the memory; an extractor that can't be created is a failed check."""
    from graphmem.errors import InvalidInput, MissingExtra
    from graphmem.results import Check

    before = _checks_before_upgrade(session)
    # opening the store would upgrade it: what doesn't depend on the store is checked on another one
    where: dict[str, Any] = {"store": "memory://", "vector_index": "store"} if before else {}
    try:
        with session.open(extractor=None, **where) as memory:
            checks = memory.admin.doctor()
    except (InvalidInput, MissingExtra) as error:
        with session.open(**where) as memory:
            broken = Check(name="extractor", ok=False, detail=str(error))
            checks = [broken if check.name == "extractor" else check for check in memory.admin.doctor()]
    return [*before, *(check for check in checks if not before or check.name not in ("place", "durable", "queue"))]


def _checks_before_upgrade(session: Session) -> list[Check]:
    """Return the checks of a store that any other command would create or upgrade; none if it is as it should be."""
    from graphmem.factory import store_options
    from graphmem.registry import open_backend
    from graphmem.results import Check

    session.require_store()
    options = {**store_options(session.settings), "upgrade": False}
    with closing(open_backend(session.settings.store, offered=options)) as store:
        found = store.diagnose() if store.needs_upgrade else []
    return [Check(name=name, ok=ok, detail=detail) for name, ok, detail in found]


def _explained(session: Session, names: Iterable[str]) -> list[dict[str, object]]:
    """Return settings with their values, where these come from, and what they do."""
    from graphmem.settings import Settings

    fields, values, origins = Settings.model_fields, session.settings.shown(), session.origins
    return [
        {"name": name, "value": values[name], "from": origins[name], "description": fields[name].description or ""}
        for name in names
    ]


def _print_explained(session: Session, names: Iterable[str]) -> None:
    from graphmem.adapters.cli.output import Column

    columns = [Column("setting"), Column("value"), Column("from"), Column("what it does", 1)]
    session.out.table(columns, [[str(value) for value in row.values()] for row in _explained(session, names)])


def config(
    session: Session,
    explain: Annotated[
        bool, typer.Option("--explain", help="Also print where each value comes from, and what it does.")
    ] = False,
) -> None:
    """Print the effective settings with passwords masked."""
    values = session.settings.shown()
    if not explain:
        session.out.document(values) if session.out.as_json else session.out.pairs(values.items())
        return
    if session.out.as_json:
        session.out.document({"settings": _explained(session, session.origins)})
    else:
        _print_explained(session, session.origins)


def browser(
    session: Session,
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR", help="Write saved queries for the scope, a style, and the schema for language models."
        ),
    ] = None,
) -> None:
    """Print the address of a web interface that shows the graph of the store."""
    with session.open() as memory:
        explorer = memory.admin.explorer
        if explorer is None:
            if session.out.as_json:
                session.out.document(None)
            session.nothing("this store has no web interface that shows its graph; Neo4j has one (--store neo4j://…)")
            return
        files: list[str] = [] if out is None else _written(out, explorer.files(memory.scope))
        hints = [*explorer.hints, *(explorer.import_hints if files else ())]
        if session.out.as_json:
            session.out.document({"name": explorer.name, "url": explorer.url, "files": files, "hints": hints})
            return
        session.out.line(explorer.url)
        if files:
            session.out.note(f"wrote {counted(len(files), 'file')} to {out}")
        for hint in hints:
            session.out.note(hint)


def _written(folder: Path, files: Mapping[str, bytes]) -> list[str]:
    """Write files, replacing existing ones, and return their paths."""
    from graphmem.errors import InvalidInput
    from graphmem.output_files import output_file

    written: list[str] = []
    for name, content in files.items():
        path = folder / name
        try:
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as error:
            raise InvalidInput(f"--out {folder}: {error.strerror or error}") from error
        with output_file(path, force=True) as file:  # file names that graphmem defines
            file.write(content)
        written.append(str(path))
    return written


def demo(
    session: Session,
    keep: Annotated[
        bool, typer.Option("--keep", help="Keep the store, graphmem-demo.db. One of --store is kept anyway.")
    ] = False,
) -> None:
    """Run a tour of graphmem with a sample conversation.

    It is stored in the scope demo, or that of --scope.
    """
    from graphmem.adapters.demo import SCOPE, run_demo

    if session.shared.json:
        typer.echo("graphmem: demo doesn't support --json", err=True)
        raise typer.Exit(USAGE)
    given = session.shared
    run_demo(session.out, store=given.store, scope=given.scope or SCOPE, keep=keep, settings=session.settings)


for part in (init, ingest, reading, search, upkeep, migrate, mcp, worker):
    part.register(app)
for own_command in (stats, scopes, doctor, config, browser, demo):
    command(app)(own_command)
