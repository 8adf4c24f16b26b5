"""The numbered migrations. Each statement does nothing where it was done, so that two programs may run them at once."""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager

from neo4j import ManagedTransaction, Query, Session, unit_of_work
from neo4j.exceptions import ClientError

from graphmem.errors import BackendUnavailable, SchemaTooNew
from graphmem_cypher import migrations, query
from graphmem_neo4j.driver_errors import PAST_CLIENT_LIMIT, PAST_SERVER_LIMIT

_DONE_BY_ANOTHER = (
    "Neo.ClientError.Schema.EquivalentSchemaRuleAlreadyExists",
    "Neo.ClientError.Schema.IndexAlreadyExists",
    "Neo.ClientError.Schema.ConstraintAlreadyExists",
)
_RECORDED_WITHIN = 5
_TRIES = 24
_POPULATED_WITHIN = 300
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
                _record(session, step, name)
        _await_indexes(session, place)


def _apply(session: Session, statement: Query | str) -> None:
    def work(transaction: ManagedTransaction) -> None:
        transaction.run(statement).consume()  # type: ignore[arg-type]

    with unless_done_by_another():
        if _IN_PARTS in str(statement):
            session.run(statement).consume()  # type: ignore[arg-type]
        else:
            session.execute_write(work)


@contextmanager
def unless_done_by_another() -> Generator[None]:
    """Pass over the refusal of an index or a constraint that somebody else has made at the same moment."""
    try:
        yield
    except ClientError as error:
        if error.code not in _DONE_BY_ANOTHER:
            raise


def _record(session: Session, number: int, name: str) -> None:
    """Note that a migration was done, with new tries after short time limits.

    A schema statement of another program and this statement can wait for each other's locks, which the server doesn't
    detect: whoever records gives way.
    """

    @unit_of_work(timeout=_RECORDED_WITHIN)
    def work(transaction: ManagedTransaction) -> None:
        transaction.run(query("record_migration"), q={"number": number, "name": name}).consume()

    for left in reversed(range(_TRIES)):
        try:
            session.execute_write(work)
        except ClientError as error:
            if error.code not in (PAST_CLIENT_LIMIT, PAST_SERVER_LIMIT) or not left:
                raise
        else:
            break


def _await_indexes(session: Session, place: str) -> None:
    for name, state in [record[0] for record in session.run(query("indexes"))]:
        if state == "POPULATING":
            session.run(query("await_index"), q={"name": name, "seconds": _POPULATED_WITHIN}).consume()
        elif state == "FAILED":
            raise BackendUnavailable(f"{place}: the index {name} could not be built; drop it and open the store again")
