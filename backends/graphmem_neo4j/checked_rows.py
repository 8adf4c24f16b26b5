"""Rows of the graph as models: each value is checked, since people edit the graph by hand.

The types of a row's values are checked as one, by the combinations that were seen before.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, NoReturn, TypeVar

from graphmem.errors import GraphMemError
from graphmem.models import (
    ActiveFact,
    Community,
    Edge,
    EdgeType,
    Entity,
    Episode,
    Membership,
    Mention,
    RowReader,
    SubgraphEdge,
)
from graphmem_neo4j.rows import TYPES, Row, moment, moment_or_none, stated

T = TypeVar("T")

_COMBINATIONS = 1000  # of types that are remembered; a graph of graphmem has some dozens
_LONGEST_SHOWN = 40
_READER = RowReader(moment, TYPES, tuple, stated)


class CheckedRows(Generic[T]):
    """The rows of one kind: their columns, and what builds a model of one.

    Parameters
    ----------
    columns
        Names of the properties in the order of the row. A value is a text; with "#" after the name a number, with "*"
        anything; with "?" after these it may be missing.
    build
        Builds the model from a row that was checked.
    subject
        Names a row in errors: a template of its values.
    remedy
        What to do about a row that can't be read.
    """

    def __init__(self, columns: str, build: Callable[[Row], T], subject: str, remedy: str) -> None:
        self._columns = columns.split()
        self._build = build
        self._subject = subject
        self._remedy = remedy
        self._fitting: set[tuple[type, ...]] = set()

    def __call__(self, row: Row) -> T:
        """Return the model of a row; raise `GraphMemError` for one with a value that it can't have."""
        self.check(row)
        return self.build(row)

    def check(self, row: Row) -> None:
        """Raise `GraphMemError` if a value is missing or has another type."""
        if (types := (*map(type, row),)) in self._fitting:
            return
        for column, value in zip(self._columns, row, strict=True):
            name = column.rstrip("#*?")
            if value is None:
                if not column.endswith("?"):
                    self._refuse(row, f"lacks the property {name!r} that every one has")
            elif "*" not in column and type(value) not in ((int, float) if "#" in column else (str,)):
                shown = f"{value!r}"[:_LONGEST_SHOWN]
                self._refuse(row, f"has a value of another type in the property {name!r} ({shown})")
        if len(self._fitting) < _COMBINATIONS:
            self._fitting.add(types)

    def build(self, row: Row) -> T:
        """Return the model of a row that was checked."""
        try:
            return self._build(row)
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            self._refuse(row, f"has a property that can't be read ({str(error).partition(chr(10))[0]})", error)

    def _refuse(self, row: Row, problem: str, error: Exception | None = None) -> NoReturn:
        raise GraphMemError(
            f"{self._subject.format(*row)} {problem}; it was written or changed by hand: set it, or {self._remedy}"
        ) from error


def node_rows(label: str, columns: str, build: Callable[[Row], T]) -> CheckedRows[T]:
    """Return `CheckedRows` of nodes with a label, whose rows begin with the id."""
    remedy = (
        "delete the node with this id (MATCH (n:Graphmem {id: …}) DETACH DELETE n), and store what it says by graphmem"
    )
    return CheckedRows(columns, build, f"node (:{label} {{{{id: {{0!r}}}}}})", remedy)


def fact_rows(columns: str, build: Callable[[Row], T]) -> CheckedRows[T]:
    """Return `CheckedRows` of facts, whose rows begin with the id."""
    remedy = "delete the relationship with this graphmem_id, and add the fact by add_facts"
    return CheckedRows(columns, build, "fact {0!r}", remedy)


def _active_fact(row: Row) -> ActiveFact:
    fact_id, source, target, confidence, count, begin, kind = row
    return ActiveFact(fact_id, source, target, EdgeType[kind], confidence, count, begin / 1e6)


def _subgraph_edge(row: Row) -> SubgraphEdge[str]:
    source, target = (row[2], row[9]) if row[1] else (row[9], row[2])
    start = moment(row[8]).timestamp()
    return row[0], source, target, row[3], TYPES[row[4]], row[5], row[6], row[7], start, row[13]


def _mention(row: Row) -> Mention:
    return Mention.model_construct(
        None, entity_id=row[0], episode_id=row[1], surface=row[2], confidence=row[3], seen_at=moment(row[4])
    )


def _membership(row: Row) -> Membership:
    return Membership.trusted(community_id=row[0], entity_id=row[1], since=moment(row[2]), until=moment_or_none(row[3]))


entity_of: CheckedRows[Entity] = node_rows(
    "Entity",
    "id scope name canonical_name entity_type summary properties? confidence# first_seen_at last_seen_at recorded_at "
    "access_count# archived_at? valid_from? valid_to?",
    _READER.entity,
)
episode_of: CheckedRows[Episode] = node_rows(
    "Episode",
    "id scope source text session_id? role? speaker? title? occurred_at recorded_at metadata? external_id? "
    "processed_at? attempts# error? retry_at? ended_at? expires_at?",
    _READER.episode,
)
community_of: CheckedRows[Community] = node_rows(
    "Community",
    "id scope level# name summary fingerprint parent_id? created_at updated_at ended_at?",
    _READER.community,
)
seed_of: CheckedRows[tuple[str, str, str]] = node_rows(
    "Entity", "id name entity_type", lambda row: (row[0], row[1], row[2])
)
edge_of: CheckedRows[Edge] = fact_rows(
    "graphmem_id scope source target relation type fact confidence# valid_from valid_to? recorded_at expired_at? "
    "superseded_by? episode_ids* retrieval_count# last_retrieved_at? properties? certainty? kind? valid_from_assumed*? "
    "told_at? prior_valid_to? end_reason? ended_by*? begun_by*? type",
    _READER.edge,
)
subgraph_edge_of: CheckedRows[SubgraphEdge[str]] = fact_rows(
    "graphmem_id direction* source relation type fact confidence# retrieval_count# valid_from target name entity_type "
    "archived* inferred* type",
    _subgraph_edge,
)
active_fact_of: CheckedRows[ActiveFact] = fact_rows(
    "graphmem_id source target confidence# retrieval_count# valid_from# type", _active_fact
)
mention_of: CheckedRows[Mention] = CheckedRows(
    "entity_id episode_id surface confidence# seen_at",
    _mention,
    "relationship (:Episode {{id: {1!r}}})-[:MENTIONS]->(:Entity {{id: {0!r}}})",
    "delete the relationship",
)
membership_of: CheckedRows[Membership] = CheckedRows(
    "community_id entity_id since until?",
    _membership,
    "relationship (:Entity {{id: {1!r}}})-[:IN_COMMUNITY]->(:Community {{id: {0!r}}})",
    "delete the relationship",
)
