"""The program `graphmem`: registration of its commands and global options."""

from __future__ import annotations

import inspect
from typing import Annotated, Any

import typer

from graphmem.adapters.cli import about, ingest, init, migrate, reading, search, serve, upkeep
from graphmem.adapters.cli.session import Shared, shared_options

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
    name: Annotated[str | None, typer.Argument(metavar="COMMAND", help="The command.")] = None,
) -> None:
    """Print the help of the program or of a command."""
    program: Any = context.find_root()
    if name is None:
        typer.echo(program.get_help())
        return
    found = program.command.get_command(program, name)
    if found is None:
        raise typer.BadParameter(f"there is no command {name!r}; graphmem help lists all commands")
    typer.echo(found.get_help(typer.Context(found, parent=program, info_name=name)))


for part in (init, ingest, reading, search, upkeep, migrate, serve, about):
    part.register(app)
