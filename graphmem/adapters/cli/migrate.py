"""Commands of a live migration to another store."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import ExitStack, closing, contextmanager
from typing import TYPE_CHECKING, Annotated, Any

import typer

from graphmem.adapters.cli.session import FAILED, Session, YesOption, ask, command
from graphmem.errors import Conflict, GraphMemError
from graphmem.text import counted

if TYPE_CHECKING:
    from graphmem.migrate.service import Migration
    from graphmem.migrate.states import Command
    from graphmem.migrate.verify import Answers
    from graphmem.protocols import GraphBackend

_GROUP = typer.Typer(name="migrate", help="Move a memory to another store while it is used.", no_args_is_help=True)


def register(app: typer.Typer) -> None:
    """Add the commands to the program."""
    for function in (copy, verify, cutover, rollback, cleanup, cancel, status):
        command(_GROUP)(function)
    app.add_typer(_GROUP)


def copy(
    session: Session,
    target: Annotated[
        str | None, typer.Argument(metavar="URL", help="The new store; it may be left out when the copy goes on.")
    ] = None,
    rate: Annotated[float | None, typer.Option(min=1, metavar="ROWS", help="Maximum rows copied per second.")] = None,
) -> None:
    """Begin a migration, or continue it: write to both stores from now on, and copy the rows that exist."""
    from graphmem.migrate.service import DUAL

    with _migration(session, target) as migration, session.out.progress(0) as update:
        if migration.phase not in DUAL:
            migration.advance("copy")
        done = _Count(update)
        scopes = migration.copy(rate, done.add)
        session.out.note(f"compared {counted(done.rows, 'row')}; copied or repaired {counted(scopes, 'scope')}")
        _print_status(session, migration)


def verify(
    session: Session,
    questions: Annotated[
        int, typer.Option("--questions", "-n", min=0, help="Number of recalls and searches that are compared.")
    ] = 200,
) -> None:
    """Compare both stores: counts, a checksum of each scope, and the results of recalls and searches."""
    from graphmem.migrate.verify import verify as compare

    with _migration(session) as migration, ExitStack() as opened, session.out.progress(0) as update:
        primary, secondary = migration.ends()
        answers = _answers(session, opened) if questions else None
        found = compare(primary, secondary, migration.scopes(), answers, questions, on_progress=_Count(update).add)
    if session.out.as_json:
        session.out.document(found)
    else:
        for line in (
            *found.differences,
            *(f"{scope}: the secondary was behind all the time" for scope in found.skipped),
        ):
            session.out.line(line)
        asked = found.questions
        session.out.line(
            f"{counted(found.scopes, 'scope')}, {counted(sum(found.rows.values()), 'row')}; equal results of "
            f"{found.recalls} of {asked} recalls and {found.searches} of {asked} searches: "
            f"{'equal' if found.is_equal else 'DIFFERENT'}"
        )
    if not found.is_equal:
        raise typer.Exit(FAILED)


def cutover(session: Session, yes: YesOption = False) -> None:
    """Make the new store the one that all processes read and write; the old one gets the same changes."""
    _advance(session, "cutover", "Let all processes change over to {target}?", yes=yes)


def rollback(session: Session, yes: YesOption = False) -> None:
    """Make the old store the one that all processes read and write again."""
    _advance(session, "rollback", "Let all processes change back to {source}?", yes=yes)


def cleanup(
    session: Session,
    yes: YesOption = False,
    erase: Annotated[bool, typer.Option("--erase", help="Erase all rows of the old store; its mark stays.")] = False,
) -> None:
    """End a migration after the cutover; the old store is refused from then on."""
    give_up = "erase all rows of" if erase else "give up"
    with _migration(session) as migration:
        ask(f"End the migration and {give_up} {migration.source_url}? It can't be undone.", yes=yes)
        migration.advance("cleanup")
        if erase and not migration.erase_source():
            raise Conflict(
                f"{migration.source_url}: erased, but other processes read its files; close them, and repeat"
            )
        _print_status(session, migration)


def cancel(
    session: Session,
    yes: YesOption = False,
    force: Annotated[
        bool, typer.Option("--force", help="End it in this store alone, in any phase: the other one is gone for good.")
    ] = False,
) -> None:
    """End a migration before the cutover; the new store is refused from then on."""
    if force:
        _leave(session, yes=yes)
        return
    _advance(session, "cancel", "Give up the copy {target}?", yes=yes)


def status(session: Session) -> None:
    """Show the phase of a migration, and where the secondary is behind."""
    with _migration(session) as migration:
        _print_status(session, migration)


def _advance(session: Session, name: Command, question: str, *, yes: bool) -> None:
    from graphmem.migrate.service import CHANGING_OVER

    with _migration(session) as migration:
        ask(question.format(source=migration.source_url, target=migration.target_url), yes=yes)
        if (name, migration.phase) in CHANGING_OVER:
            _warm_up(session, migration)
        migration.advance(name)
        _print_status(session, migration)


def _warm_up(session: Session, migration: Migration) -> None:
    from graphmem.migrate.verify import warm_up

    try:
        with ExitStack() as opened:
            asked = warm_up(migration.ends()[1], migration.scopes(), _answers(session, opened))
    except GraphMemError as error:  # such as a model that isn't installed here
        session.out.note(f"the new primary couldn't be asked anything before: {error}")
    else:
        session.out.note(f"the new primary has answered {counted(asked, 'question')}")


def _leave(session: Session, *, yes: bool) -> None:
    from graphmem.factory import store_options
    from graphmem.migrate.service import leave
    from graphmem.migrate.states import plain_url
    from graphmem.registry import open_backend

    session.require_store()
    url = plain_url(session.settings.store)
    ask(f"Use {url} as it is? What only the other store has is lost, and it must not be used any more.", yes=yes)
    with closing(open_backend(session.settings.store, offered=store_options(session.settings))) as store:
        move = leave(store)
    session.out.note(f"{url} was {move.state} in the migration of {move.source} to {move.target}; it is used as it is")


def _print_status(session: Session, migration: Migration) -> None:
    found = migration.status()
    if session.out.as_json:
        session.out.document(found)
        return
    rows: list[tuple[str, Any]] = [
        ("phase", found.phase),
        ("source", found.source),
        ("target", found.target),
        ("primary", found.primary),
        ("scopes", found.scopes),
        ("behind", ", ".join(found.behind) or "none"),
    ]
    session.out.pairs([*rows, *((f"differences of {name}", count) for name, count in found.differences.items())])


class _Count:
    def __init__(self, update: Any) -> None:
        self.rows = 0
        self._update = update

    def add(self, rows: int) -> None:
        self.rows += rows
        self._update(self.rows)


@contextmanager
def _migration(session: Session, target: str | None = None) -> Generator[Migration]:
    from graphmem.factory import store_options
    from graphmem.migrate.service import Migration
    from graphmem.registry import open_backend

    session.require_store()
    options = store_options(session.settings)
    migration = Migration.open(session.settings.store, target, lambda url: open_backend(url, offered=options))
    try:
        yield migration
    finally:
        migration.close()


def _answers(session: Session, opened: ExitStack) -> Answers:
    """Return what asks a store; a memory is opened for each, without indexing and counting of retrievals."""
    from graphmem.engine import Engine
    from graphmem.memory import GraphMemory
    from graphmem.migrate.verify import read_only
    from graphmem.models import Scope

    settings = session.settings.model_copy(update={"index_wait": 0.0, "vector_index": "store"})
    memories: dict[int, GraphMemory] = {}

    def memory_of(store: GraphBackend) -> GraphMemory:
        if id(store) not in memories:
            engine = Engine.open(
                settings.store,
                settings,
                background=False,
                extractor="none",
                store=read_only(store),
            )
            memories[id(store)] = opened.enter_context(GraphMemory(engine, session.scope))
        return memories[id(store)]

    def answer(store: GraphBackend, scope: Scope, question: str) -> tuple[list[str], list[str]]:
        memory = memory_of(store).in_scope(scope)
        facts, episodes = memory.recall(question).facts, memory.search(question).found
        return [fact.id for fact in facts], [found.episode.id for found in episodes]

    return answer
