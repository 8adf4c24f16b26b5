"""Shared parts of all commands: options, the session that opens the memory, and error handling."""

from __future__ import annotations

import inspect
import json
import logging
import os
import re
import shlex
import sys
import traceback
import warnings
from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields
from datetime import datetime
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeVar, get_args

import typer

if TYPE_CHECKING:
    from graphmem.adapters.cli.output import Output
    from graphmem.memory import GraphMemory
    from graphmem.models import AsOf, EdgeType, Scope
    from graphmem.results import RecallResult, StrategyChoice
    from graphmem.search.results import SearchResults
    from graphmem.settings import Settings

S = TypeVar("S", bound=str)
Traced = TypeVar("Traced", bound="RecallResult | SearchResults")

AskedByOption = Annotated[
    str | None, typer.Option("--asked-by", metavar="NAME", help="Who asks: what I and my are in the question.")
]
AsOfOption = Annotated[
    str | None,
    typer.Option(
        "--as-of",
        metavar="DATE",
        help="Time of validity: 2026, 2026-01, 2026-01-31 (its start, UTC) or ISO 8601.",
    ),
]
KnownOption = Annotated[str | None, typer.Option("--known", metavar="DATE", help="Only data recorded by this time.")]
LimitOption = Annotated[int, typer.Option("--limit", "-n", min=1, max=100_000, help="Maximum number of results.")]
AfterOption = Annotated[
    str, typer.Option("--after", metavar="ID", help="Only what follows the one with this id, the last of a page.")
]
EdgeTypeOption = Annotated[
    list[str] | None,
    typer.Option("--edge-type", metavar="TYPE", help="Only facts of this type; may be given several times."),
]

DryRunOption = Annotated[bool, typer.Option("--dry-run", help="Only show what would be done.")]
ForceOption = Annotated[bool, typer.Option("--force", help="Replace a file that graphmem did not write.")]
YesOption = Annotated[bool, typer.Option("--yes", "-y", help="Don't ask for confirmation.")]

MinConfidenceOption = Annotated[
    float | None, typer.Option("--min-confidence", min=0.0, max=1.0, help="Print nothing below. [default: setting]")
]
MinTrustOption = Annotated[
    Literal["untrusted", "external", "trusted"],
    typer.Option("--min-trust", metavar="TRUST", help="Least trust of a source: untrusted, external or trusted."),
]
StrategyOption = Annotated[
    str | None,
    typer.Option("--strategy", metavar="NAME", help="Graph traversal: bfs, spreading, ppr, astar or auto."),
]


def with_kept_trace(memory: GraphMemory, found: Traced) -> Traced:
    """Return a result, without the id of its trace if the store can't keep that."""
    from graphmem.errors import NotFound

    if found.trace_id is not None:
        try:
            memory.why(found.trace_id)
        except NotFound:
            return found.changed(trace_id=None)
    return found


def unmatched(memory: GraphMemory, filters: Filters) -> str:
    """Return the end of a message that nothing was found, if that is because no episode matches the filters."""
    if filters is None or memory.episodes(filters=filters, limit=1):
        return ""
    return ": no episode matches the filters, which compare names and ids as they are stored"


def ask(question: str, *, yes: bool) -> None:
    """Ask for confirmation before a change of many rows; without a terminal or input, --yes is required."""
    if yes:
        return
    if sys.stdin.isatty():
        typer.confirm(question, abort=True, err=True)
    elif not (answer := sys.stdin.readline()):
        typer.echo(f"graphmem: {question} No terminal to confirm this: pass --yes", err=True)
        raise typer.Exit(1)
    elif answer.strip().lower() not in ("y", "yes"):
        raise typer.Abort


def moment(option: str, text: str) -> datetime:
    """Parse a DATE: a year, month or day (its start, UTC), or a time with an offset."""
    from graphmem.errors import InvalidInput
    from graphmem.ingest.records import read_time
    from graphmem.models.base import first_day

    whole = first_day(text)
    try:
        return read_time(option, whole, None)
    except InvalidInput as error:
        reason = str(error).replace(repr(whole), repr(text)).replace(", or pass --timezone Europe/Berlin", "")
        raise typer.BadParameter(reason) from None


def point_in_time(as_of: str | None, known: str | None) -> AsOf | None:
    """Return the point in time of --as-of and --known, or None if neither was given."""
    from graphmem.models import AsOf

    if as_of is None and known is None:
        return None
    return AsOf(valid=as_of and moment("--as-of", as_of), known=known and moment("--known", known))


def one_of(option: str, name: str, choices: Iterable[S]) -> S:
    """Return the choice of this name; raise BadParameter for an unknown one."""
    known = {str(choice): choice for choice in choices}
    if name not in known:
        raise typer.BadParameter(f"{option}: {name!r} is none of {', '.join(known)}")
    return known[name]


def edge_types(names: list[str] | None) -> tuple[EdgeType, ...]:
    """Return the edge types of these names; raise BadParameter for an unknown one."""
    from graphmem.models import EdgeType

    return tuple(one_of("--edge-type", name, EdgeType) for name in names or ())


def strategy(name: str | None) -> StrategyChoice | None:
    """Return the strategy of this name; raise BadParameter for an unknown one."""
    from graphmem.results import StrategyChoice

    return None if name is None else one_of("--strategy", name, get_args(StrategyChoice))


FAILED, USAGE, UNAVAILABLE, NOTHING_FOUND, SOME_REFUSED, INTERRUPTED = 1, 2, 3, 4, 5, 130


@dataclass(frozen=True, slots=True)
class Shared:
    """Options accepted before or after the command; None for an option that was not given."""

    store: str | None = None
    scope: str | None = None
    config: str | None = None
    json: bool = False
    debug: bool = False

    def over(self, outer: Shared) -> Shared:
        """Return these options, with missing ones taken from `outer`."""
        pairs = ((f.name, getattr(self, f.name), getattr(outer, f.name)) for f in fields(Shared))
        return Shared(**{name: outside if mine in (None, False) else mine for name, mine, outside in pairs})


def shared_options(
    store: Annotated[
        str | None,
        typer.Option(
            metavar="URL",
            help="The store. [default: GRAPHMEM_STORE, or sqlite:///graphmem.db]",
        ),
    ] = None,
    scope: Annotated[
        str | None,
        typer.Option(metavar="DOMAIN[/PROJECT]", help="The scope. [default: default]"),
    ] = None,
    config: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="Settings file. [default: graphmem.toml if it exists]"),
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
    debug: Annotated[bool, typer.Option("--debug", help="Show tracebacks.")] = False,
) -> Shared:
    """Return the shared options. Every command has the parameters of this function."""
    return Shared(store, scope, config, json, debug)


Filters = dict[str, Any] | None
"""Type of the parameter ``filters`` of a command, which `command` replaces by the options of `filter_options`."""


def filter_options(
    in_session: Annotated[
        list[str] | None,
        typer.Option("--session", metavar="ID", help="Only episodes of this session; may be given several times."),
    ] = None,
    speaker: Annotated[
        list[str] | None,
        typer.Option("--speaker", metavar="NAME", help="Only episodes of this speaker; may be given several times."),
    ] = None,
    role: Annotated[
        list[str] | None,
        typer.Option("--role", metavar="ROLE", help="Only episodes of this role; may be given several times."),
    ] = None,
    source: Annotated[
        list[str] | None,
        typer.Option("--source", metavar="KIND", help="Only episodes of this kind: message, document or triple."),
    ] = None,
    since: Annotated[
        str | None, typer.Option("--since", metavar="DATE", help="Only episodes of this time or later.")
    ] = None,
    until: Annotated[
        str | None, typer.Option("--until", metavar="DATE", help="Only episodes before this time.")
    ] = None,
    where: Annotated[
        list[str] | None,
        typer.Option(
            "--where",
            metavar="KEY=VALUE",
            help='Only episodes with this metadata, or JSON: {"page": {"$gte": 2}}; may be given several times.',
        ),
    ] = None,
) -> Filters:
    """Return the fields of an `EpisodeFilter`; None without one."""
    lists = {"session_ids": in_session, "speakers": speaker, "roles": role, "sources": source}
    times = {name: text and moment(f"--{name}", text) for name, text in (("since", since), ("until", until))}
    metadata: dict[str, Any] = {}
    for text in where or ():
        metadata.update(_condition(text))
    return {name: value for name, value in {**lists, **times, "metadata": metadata}.items() if value} or None


def _condition(text: str) -> dict[str, Any]:
    """Return the condition of --where; a value that isn't JSON is a text."""
    key, equals, value = text.partition("=")
    try:
        if text.lstrip().startswith("{"):
            return dict(json.loads(text))
        if equals and key:
            return {key: json.loads(value)}
    except (ValueError, RecursionError):
        if not text.lstrip().startswith("{"):
            return {key: value}
    raise typer.BadParameter(f"--where: {text!r:.80} is neither KEY=VALUE nor a JSON object")


class Session:
    """One run of a command: its settings, memory and output."""

    def __init__(self, shared: Shared) -> None:
        self.shared = shared

    @cached_property
    def settings(self) -> Settings:
        """The settings, overridden by the command line options."""
        from graphmem.settings import Settings

        return Settings.load(self.shared.config, **self._given)

    @cached_property
    def origins(self) -> dict[str, str]:
        """Where each setting comes from, as in `Settings.origins`."""
        from graphmem.settings import Settings

        return Settings.origins(self.shared.config, self._given)

    @property
    def _given(self) -> dict[str, str]:
        given = {"store": self.shared.store, "scope": self.shared.scope}
        return {name: value for name, value in given.items() if value is not None}

    @cached_property
    def scope(self) -> Scope:
        """The scope of the command."""
        from graphmem.models import Scope

        return Scope.from_text(self.settings.scope)

    @cached_property
    def out(self) -> Output:
        """The output of the command."""
        from graphmem.adapters.cli.output import Output

        return Output(as_json=self.shared.json)

    def open(
        self, *, extractor: str | None = "none", make: bool = False, background: bool = False, **overrides: Any
    ) -> GraphMemory:
        """Open the memory.

        Parameters
        ----------
        extractor
            Specification of an extractor; None means that of the settings. The default "none" loads fast and is enough
            for reading.
        make
            Whether to create a store that doesn't exist.
        background
            Whether to extract, index and maintain in the background.
        **overrides
            Settings to use instead of those of the session.

        Raises
        ------
        BackendUnavailable
            If it doesn't exist or can't be opened.
        """
        from graphmem.memory import GraphMemory

        if not make:
            self.require_store()
        settings = self.settings.model_copy(update=overrides)
        return GraphMemory.open(
            settings.store, scope=self.scope, settings=settings, extractor=extractor, background=background
        )

    @property
    def missing_file(self) -> str | None:
        """The file of the store if it doesn't exist, so that opening the store would create it."""
        match = re.fullmatch(r"sqlite:///([^?]+).*", self.settings.store)
        return match[1] if match and match[1] != ":memory:" and not Path(match[1]).exists() else None

    def require_store(self) -> None:
        """Raise `BackendUnavailable` if the store is a file that doesn't exist."""
        from graphmem.errors import BackendUnavailable

        if (path := self.missing_file) is not None:
            hint = "create one with graphmem ingest or remember, try graphmem demo, or name another with --store URL"
            raise BackendUnavailable(f"there is no store at {path}: {hint}")

    def command_line(self, *arguments: str) -> str:
        """Return a command with the store, scope and settings options of this one; passwords are masked."""
        from graphmem.registry import masked

        store = self.shared.store and masked(self.shared.store)
        given = (("--store", store), ("--scope", self.shared.scope), ("--config", self.shared.config))
        options = [word for name, value in given if value is not None for word in (name, value)]
        return shlex.join(["graphmem", *arguments, *options])

    def note_new_store(self) -> None:
        """Print that a server creates its store, which a typing error in its configuration may be the reason for."""
        if (path := self.missing_file) is not None:
            self.out.note(f"there is no store at {path} yet; it is created")

    def note_unknown_asker(self) -> None:
        """Print that a question in the first person has no known asker."""
        self.out.note("it isn't known who asks, so others' words don't answer this; name a speaker with --asked-by")

    def note_trace(self, trace_id: str | None) -> None:
        """Print how to explain a traced result, or that the trace wasn't kept."""
        if trace_id is None:
            self.out.note("the trace wasn't kept, as the store can't be written")
        else:
            self.out.note(f"to explain the result: graphmem why {trace_id}")

    def note_page(self, limit: int, ids: Sequence[str]) -> None:
        """Print how to go on after a page, by the ids of what it lists, if it is full."""
        if len(ids) == limit and not self.out.as_json:
            self.out.note(f"showing {limit}; the same command with --after={shlex.quote(ids[-1])} shows what follows")

    def nothing(self, message: str) -> None:
        """Print a message and exit with the code for nothing found."""
        self.out.note(message)
        raise typer.Exit(NOTHING_FOUND)


def command(
    app: typer.Typer, name: str | None = None, **settings: Any
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Register a function as a command that also takes the shared options.

    Parameters
    ----------
    app
        Program to register it in.
    name
        Name of the command; None uses that of the function.
    **settings
        Passed to ``app.command``.

    Returns
    -------
    Callable
        A decorator for functions whose first parameter is a `Session`. The parameter ``filters`` gets the value of
        `filter_options`.
    """

    def register(function: Callable[..., None]) -> Callable[..., None]:
        _, *own = inspect.signature(function, eval_str=True).parameters.values()
        shared = inspect.signature(shared_options, eval_str=True).parameters.values()
        filters = inspect.signature(filter_options, eval_str=True).parameters.values()
        if filters_episodes := any(parameter.name == "filters" for parameter in own):
            own = [parameter for parameter in own if parameter.name != "filters"] + [*filters]
        context = inspect.Parameter("context", inspect.Parameter.KEYWORD_ONLY, annotation=typer.Context)

        def run(*, context: typer.Context, **values: Any) -> None:
            given = Shared(**{parameter.name: values.pop(parameter.name) for parameter in shared})
            outer: Shared = context.obj or Shared()
            session = Session(given.over(outer))
            with errors_reported(debug=session.shared.debug):
                if filters_episodes:
                    values["filters"] = filter_options(**{p.name: values.pop(p.name) for p in filters})
                function(session, **values)

        parameters = [p.replace(kind=inspect.Parameter.KEYWORD_ONLY) for p in (context, *own, *shared)]
        run.__name__, run.__doc__ = function.__name__, function.__doc__
        # typer reads the parameters from these two attributes
        run.__signature__ = inspect.Signature(parameters)  # pyright: ignore[reportFunctionMemberAccess]
        run.__annotations__ = {p.name: p.annotation for p in parameters}
        first = (function.__doc__ or "").partition("\n\n")[0]
        app.command(name, short_help=" ".join(first.split()), **settings)(run)  # click would truncate the docstring
        return function

    return register


@contextmanager
def errors_reported(*, debug: bool) -> Generator[None]:
    """Print warnings and expected errors as one line each on standard error, and exit with the code of the error."""
    from graphmem.errors import GraphMemError

    try:
        with warnings.catch_warnings(), _quiet_driver(debug=debug):
            warnings.showwarning = _show_warning
            yield
        sys.stdout.flush()
    except BrokenPipeError:  # the reader closed the pipe
        _discard_output()
        raise typer.Exit(0) from None
    except KeyboardInterrupt:
        typer.echo("interrupted", err=True)
        raise typer.Exit(INTERRUPTED) from None
    except GraphMemError as error:
        if debug:
            traceback.print_exc()
        typer.echo(f"graphmem: {' '.join(str(error).split())}", err=True)
        raise typer.Exit(_code_of(error)) from None
    except OSError as error:  # such as a full disk
        if debug:
            traceback.print_exc()
        name = f"{error.filename}: " if error.filename else ""
        typer.echo(f"graphmem: {name}{reason_of(error)}", err=True)
        try:
            sys.stdout.flush()
        except OSError:
            _discard_output()
        raise typer.Exit(FAILED) from None


@contextmanager
def _quiet_driver(*, debug: bool) -> Generator[None]:
    """Keep Python from printing the log of Neo4j's driver, such as each retry; `debug` prints it."""
    log, handler = logging.getLogger("neo4j"), logging.NullHandler()
    if not debug:
        log.addHandler(handler)
    try:
        yield
    finally:
        log.removeHandler(handler)


def reason_of(error: Exception) -> str:
    """Return the reason of an error, without number and file name if it is one of the system."""
    return error.strerror if isinstance(error, OSError) and error.strerror else str(error)


def _discard_output() -> None:
    """Redirect standard output to nowhere; otherwise, Python would try it again at exit and report an error."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _show_warning(message: Warning | str, *_: object) -> None:
    typer.echo(f"graphmem: {' '.join(str(message).split())}", err=True)


def _code_of(error: Exception) -> int:
    from graphmem import errors

    if isinstance(error, (errors.BackendUnavailable, errors.UnknownBackend)):
        return UNAVAILABLE
    if isinstance(error, errors.NotFound):
        return NOTHING_FOUND
    return USAGE if isinstance(error, errors.InvalidInput) else FAILED
