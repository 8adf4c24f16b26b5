"""The numbered migrations. Each statement does nothing where it was done, so that two programs may run them at once."""

from __future__ import annotations

import json
from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import contextmanager
from itertools import count, repeat

from neo4j import ManagedTransaction, Query, Session, unit_of_work
from neo4j.exceptions import ClientError

from graphmem.errors import BackendUnavailable, SchemaTooNew
from graphmem.models import split_attachments
from graphmem_cypher import migrations, query
from graphmem_neo4j.rows import metadata_entries
from graphmem_neo4j.server import PAST_CLIENT_LIMIT, PAST_SERVER_LIMIT

_DONE_BY_ANOTHER = (
    "Neo.ClientError.Schema.EquivalentSchemaRuleAlreadyExists",
    "Neo.ClientError.Schema.IndexAlreadyExists",
    "Neo.ClientError.Schema.ConstraintAlreadyExists",
)
_RECORDED_WITHIN = 5
_TRIES = 24
_POPULATED_WITHIN = 300
_METADATA_ENTRIES = 16  # the last migration that changes their form
_EPISODES_AT_ONCE = 5000
_IN_PARTS = "IN TRANSACTIONS"
"""What a statement says that makes its own transactions."""


def schema_number(session: Session) -> int:
    """Return the number of the last migration that a database has; 0 is none."""
    return session.execute_read(_read_number)


def _read_number(transaction: ManagedTransaction) -> int:
    record = transaction.run(query("schema_number")).single(strict=True)
    return record[0] or 0


def migrate(open_session: Callable[[], Session], place: str) -> None:
    """Bring a database to the newest schema and wait until its indexes serve.

    Raises
    ------
    SchemaTooNew
        If a newer program wrote it; nothing is touched.
    BackendUnavailable
        If an index could not be built.
    """
    with open_session() as session:
        number, newest = schema_number(session), max(migrations())
        if number > newest:
            raise SchemaTooNew(
                f"{place}: has schema {number}, this graphmem knows up to {newest}; "
                "upgrade with pip install -U graphmem"
            )
        for step, (name, statements) in migrations().items():
            if step > number:
                for statement in statements:
                    _apply(session, statement)
                if step == _METADATA_ENTRIES:
                    _enter_metadata(session)
                _record(session, step, name)
        _await_indexes(session, place)


def _apply(session: Session, statement: Query | str) -> None:
    def work(transaction: ManagedTransaction) -> None:
        transaction.run(statement).consume()  # type: ignore[arg-type]

    with unless_done_by_another():
        if _IN_PARTS in str(statement):
            _apply_in_parts(session, str(statement))
        else:
            session.execute_write(work)


def _apply_in_parts(session: Session, statement: str) -> None:
    """Run a statement with new tries after time limits, each twice as long; what was done in parts stays.

    While it is planned, it and a schema statement of another program can wait for each other's locks, which the server
    doesn't detect.
    """
    limits = (_RECORDED_WITHIN * 2.0**n for n in count())
    _within(limits, lambda seconds: session.run(Query(statement, timeout=seconds)).consume())  # type: ignore[arg-type]


@contextmanager
def unless_done_by_another() -> Generator[None]:
    """Pass over the refusal of an index or a constraint that somebody else has made at the same moment."""
    try:
        yield
    except ClientError as error:
        if error.code not in _DONE_BY_ANOTHER:
            raise


def _enter_metadata(session: Session) -> None:
    """Set the `metadata_entries` that an earlier version stored otherwise or not, in transactions of some thousand."""
    after = ""
    while page := [record[0] for record in session.run(query("episodes_with_metadata"), q=_page_after(after))]:
        entries = [metadata_entries(split_attachments(json.loads(stored))[0]) for _, stored, _ in page]
        changed = [[row[0], new] for row, new in zip(page, entries, strict=True) if new != row[2]]
        session.execute_write(_set_entries, changed)
        after = page[-1][0]


def _page_after(after: str) -> dict[str, object]:
    return {"after": after, "limit": _EPISODES_AT_ONCE}


def _set_entries(transaction: ManagedTransaction, rows: Sequence[Sequence[object]]) -> None:
    transaction.run(query("set_metadata_entries"), q={"rows": rows}).consume()


def _record(session: Session, number: int, name: str) -> None:
    """Note that a migration was done, with new tries after short time limits.

    A schema statement of another program and this statement can wait for each other's locks, which the server doesn't
    detect: whoever records gives way.
    """

    @unit_of_work(timeout=_RECORDED_WITHIN)
    def work(transaction: ManagedTransaction) -> None:
        transaction.run(query("record_migration"), q={"number": number, "name": name}).consume()

    _within(repeat(_RECORDED_WITHIN, _TRIES), lambda _: session.execute_write(work))


def _within(limits: Iterable[float], attempt: Callable[[float], object]) -> None:
    """Call with one time limit, in seconds, after the other until it is kept; raise the error of the last one."""
    past: ClientError | None = None
    for seconds in limits:
        try:
            attempt(seconds)
        except ClientError as error:
            if error.code not in (PAST_CLIENT_LIMIT, PAST_SERVER_LIMIT):
                raise
            past = error
        else:
            return
    if past is not None:
        raise past


def _await_indexes(session: Session, place: str) -> None:
    for name, state in [record[0] for record in session.run(query("indexes"))]:
        if state == "POPULATING":
            session.run(query("await_index"), q={"name": name, "seconds": _POPULATED_WITHIN}).consume()
        elif state == "FAILED":
            raise BackendUnavailable(f"{place}: the index {name} could not be built; drop it and open the store again")
