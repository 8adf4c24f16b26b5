"""Facts and entities: reads, retrieval counts, traversal, and the search for a question.

A query of facts picks one way in (ids, ends, …); the rest of it filters.

Full text finds the rows of entities; the score is computed here: Lucene's own would weigh words by their number of rows
in *all* scopes. For each word at most `_PER_WORD` rows are read, in the engine; the `_SCORED` best by the weights of
the words that found them are scored exactly: BM25 over name and summary with the name counted ten times (BM25F with one
saturation; Robertson and Zaragoza 2009, section 3.5). The number of rows in the formula is a constant and the average
length is that of the scored rows, so that nothing outside of the searched scopes has an influence.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from typing import Any

from graphmem.models import (
    ActiveFact,
    Alias,
    AsOf,
    Edge,
    EdgeQuery,
    EdgeType,
    Entity,
    EntityHit,
    EntityQuery,
    ExpandLimits,
    Scope,
    Subgraph,
    utc_now,
)
from graphmem.protocols import (
    COLLECTION_SIZE,
    EdgeStore,
    EntityStore,
    Traversal,
    question_words,
    require_no_cursor,
    word_scores,
)
from graphmem_neo4j.checked_rows import active_fact_of, edge_of, entity_of, seed_of, subgraph_edge_of
from graphmem_neo4j.connection import Neo4jRole, Transaction
from graphmem_neo4j.rows import (
    Row,
    ids_of,
    keys_of,
    scope_mark,
)

_MAX_READS = 3  # of a page whose rows other transactions delete meanwhile


class Neo4jEdges(Neo4jRole, EdgeStore):
    """Facts in all their versions."""

    def find_edges(
        self,
        scopes: Sequence[Scope],
        query: EdgeQuery,
        *,
        after: str = "",
        limit: int = 1000,
        newest_first: bool = False,
    ) -> list[Edge]:
        """Return a page of the edges that match; it is read again if another transaction changed it meanwhile."""
        require_no_cursor(after, newest_first=newest_first)
        name, anchors = _way_in(query, newest_first=newest_first)
        values: dict[str, Any] = {
            **anchors,
            **_filters(query, served=name),
            "scopes": keys_of(scopes),
            "after": after,
            "limit": limit,
            "newest": newest_first,
        }
        rows: list[Row] = []
        for _ in range(_MAX_READS):
            read = self._database.read_page(name, scopes, **values)
            rows = _complete_rows(read)
            if len(rows) == len(read):
                break
        return [edge_of(row) for row in rows]

    def find_active_facts(self, scope: Scope, *, after: str = "", limit: int = 1000) -> list[ActiveFact]:
        """Return a page of the active facts between entities that aren't archived, in ascending order of id."""
        rows = self._database.read("active_facts", [scope], scope=scope.key, after=after, limit=limit)
        return [active_fact_of(row) for row in _complete_rows(rows)]

    def record_retrievals(self, scopes: Sequence[Scope], edge_ids: Sequence[str], at: datetime) -> None:
        """Count one retrieval of each edge and one access of each of its ends, atomically."""
        values = {"ids": _distinct(edge_ids), "scopes": keys_of(scopes), "at": at}

        def work(transaction: Transaction) -> None:
            transaction.lock(scopes)
            transaction.run("record_retrievals", **values)

        self._database.write(work)


def _complete_rows(rows: Iterable[Row]) -> list[Row]:
    """Return the rows of facts that were not deleted, or replaced, by another transaction while they were read.

    A query of the server sees each commit that happens meanwhile. What it reads of a relationship that is gone is null,
    unless it has read that before; the last value of these rows, the type, is read last.
    """
    return [row for row in rows if row[-1] is not None]


def _way_in(query: EdgeQuery, *, newest_first: bool) -> tuple[str, dict[str, Any]]:
    """Return the name of the query that reads the fewest rows, with the anchors it starts at."""
    if query.ids is not None:
        return "edges_by_id", {"ids": ids_of(query.ids)}
    if query.keys is not None:
        return "edges_between", {"pairs": [list(pair) for pair in dict.fromkeys(key[:2] for key in query.keys)]}
    if query.slots is not None:
        return "edges_from", {"anchors": _distinct([slot[0] for slot in query.slots])}
    if query.source_ids is not None:
        return "edges_from", {"anchors": _distinct(query.source_ids)}
    if query.target_ids is not None:
        return "edges_to", {"anchors": _distinct(query.target_ids)}
    if query.touching is not None:
        return "edges_touching", {"anchors": _distinct(query.touching)}
    if newest_first or query.window is not None:
        return "newest_edges_of_scopes", {}
    return "edges_of_scopes", {}


def _filters(query: EdgeQuery, *, served: str) -> dict[str, Any]:
    axis, begin, end = query.window or (None, None, None)
    moments = moment_values(query.as_of, utc_now())
    if query.versions != "visible":
        moments |= {"current": False, "known": None}
    return {
        "sources": None if served == "edges_from" and query.slots is None else query.source_ids,
        "targets": None if served == "edges_to" else query.target_ids,
        "touching": None if served == "edges_touching" else query.touching,
        "relations": query.relations,
        "types": None if query.edge_types is None else type_names(query.edge_types),
        "keys": None if query.keys is None else [[*key[:3], EdgeType(key[3]).name] for key in query.keys],
        "slots": None if query.slots is None else [list(slot) for slot in query.slots],
        "kinds": query.kinds,
        "ended_by": None if query.ended_by is None else ids_of(query.ended_by),
        "text": None if query.text is None else _pattern(query.text),
        "axis": axis,
        "begin": begin,
        "end": end,
        "active": query.versions == "active",
        "past": query.versions == "past",
        **moments,
    }


def type_names(edge_types: Sequence[EdgeType]) -> list[str]:
    """Return the relationship types of edge types."""
    return [EdgeType(kind).name for kind in edge_types]


def moment_values(as_of: AsOf | None, now: datetime) -> dict[str, Any]:
    """Return the parameters of the fragment ``edge_is_visible``."""
    return {
        "now": now,
        "current": as_of is None,
        "valid": None if as_of is None else as_of.valid,
        "known": None if as_of is None else as_of.known,
    }


def _pattern(text: str) -> str:
    r"""Return a Java pattern for texts that contain this piece, ignoring the case of ASCII letters.

    Between ``\Q`` and ``\E`` every character is literal.
    """
    plain = text.encode("utf-8", "replace").decode().replace("\\E", "\\E\\\\E\\Q")
    return f"(?is).*\\Q{plain}\\E.*"


def _distinct(items: Sequence[Any]) -> list[Any]:
    return list(dict.fromkeys(items))


# Traversal --------------------------------------------------------------------------------------


class Neo4jTraversal(Neo4jRole, Traversal):
    """The walk through the graph, one query a hop."""

    def expand(
        self,
        scopes: Sequence[Scope],
        seed_ids: Sequence[str],
        *,
        hops: int,
        edge_types: Sequence[EdgeType] = (),
        as_of: AsOf | None = None,
        limits: ExpandLimits | None = None,
    ) -> Subgraph:
        """Collect the neighborhood of the seeds, following edges in both directions."""
        limits = limits or ExpandLimits()
        seeds = self._database.read("expand_seeds", scopes, ids=_distinct(seed_ids), scopes=keys_of(scopes))
        nodes = {row[0]: seed_of(row) for row in seeds}
        depth = dict.fromkeys(nodes, 0)
        edges: dict[str, Row] = {}
        frontier = list(nodes)
        values: dict[str, Any] = {"types": type_names(edge_types or list(EdgeType)), **moment_values(as_of, utc_now())}
        for hop in range(1, hops + 1):
            if not frontier:
                break
            reached: dict[str, float] = {}
            for row in self._hop(scopes, frontier, {**values, "per_node": limits.per_node(len(frontier))}):
                edges[row[0]] = row
                other, confidence = row[9], row[6]
                if other not in depth and row[12] and confidence > reached.get(other, -1.0):
                    reached[other] = confidence
                    nodes[other] = (other, row[10], row[11])
            frontier = sorted(reached, key=lambda node: (-reached[node], node))[: limits.max_frontier]
            depth.update(dict.fromkeys(frontier, hop))
        return Subgraph.of(nodes, depth, map(subgraph_edge_of.build, edges.values()))

    def _hop(self, scopes: Sequence[Scope], frontier: Sequence[str], values: dict[str, Any]) -> list[Row]:
        """Return the best facts of each node of a frontier; one more query if there are hubs."""
        rows = self._database.read("expand_hop", scopes, frontier=frontier, **values)
        if hubs := [row[0] for row in rows if len(row) == 1]:
            rows = [row for row in rows if len(row) > 1]
            rows += self._database.read("expand_hubs", scopes, frontier=hubs, **values)
        complete = _complete_rows(rows)
        for row in complete:
            subgraph_edge_of.check(row)
        return complete


# Entities -----------------------------------------------------------------------------------------


_PER_WORD = 1000
_SCORED = 200
_COUNTED = 1000
"""Limit of the degree of an entity."""
_CLAUSES = 200
"""Terms in one expression; Lucene accepts at most 1,024."""


class Neo4jEntities(Neo4jRole, EntityStore):
    """Entities and their aliases."""

    def resolve_names(self, scope: Scope, names: Sequence[str]) -> list[tuple[str, Entity]]:
        """Return (name, entity) for each entity that has a name as alias."""
        if not names:
            return []
        rows = self._database.read("resolve_names", [scope], scope=scope.key, names=list(dict.fromkeys(names)))
        return [(row[0], entity_of(row[1])) for row in rows]

    def find_entities(
        self, scopes: Sequence[Scope], query: EntityQuery, *, after: str = "", limit: int = 1000
    ) -> list[Entity]:
        """Return a page of the entities that match, in ascending order of id."""
        values: dict[str, Any] = {
            "scopes": keys_of(scopes),
            "after": after,
            "limit": limit,
            "types": query.entity_types,
            "unarchived": not query.archived and query.ids is None,
            "valid": None if query.as_of is None else query.as_of.valid,
            "known": None if query.as_of is None else query.as_of.known,
        }
        if query.ids is None:
            rows = self._database.read_page("entities_of_scopes", scopes, **values)
        else:
            rows = self._database.read_page("entities_by_id", scopes, ids=ids_of(query.ids), **values)
        return [entity_of(row) for row in rows]

    def find_aliases(self, scopes: Sequence[Scope], entity_ids: Sequence[str]) -> list[Alias]:
        """Return all aliases of the entities, ordered by entity id, then alias."""
        rows = self._database.read("aliases_of_entities", scopes, ids=ids_of(entity_ids), scopes=keys_of(scopes))
        found = [Alias.model_construct(None, alias=row[0], entity_type=row[1], entity_id=row[2]) for row in rows]
        return sorted(found, key=lambda a: (a.entity_id, a.alias, a.entity_type))

    def search_entities(
        self, scopes: Sequence[Scope], *, words: Sequence[str], phrases: Sequence[str], limit: int
    ) -> list[EntityHit]:
        """Find entities for a question: by alias and by full text."""
        asked = question_words(words) if limit > 0 else []
        rows = self._candidates(scopes, asked, list(dict.fromkeys(phrases)), limit)
        aliases = _longest_aliases(row for row in rows if len(row) == 2)
        found = dict.fromkeys(list(aliases)[:limit])
        found.update(dict.fromkeys(_ranked([row for row in rows if len(row) > 2])[:limit]))
        if not found:
            return []
        values = {"types": type_names(list(EdgeType)), "per_node": _COUNTED, **moment_values(None, utc_now())}
        hits = self._database.read("entity_hits", scopes, ids=list(found), scopes=keys_of(scopes), **values)
        degrees = {row[2][0]: (row[0], row[1]) for row in hits}
        if hubs := [entity_id for entity_id, (degree, _) in degrees.items() if degree is None]:
            counted = self._database.read("hub_degrees", scopes, ids=hubs, **values)
            degrees.update((entity_id, (degree, edge_types)) for entity_id, degree, edge_types in counted)
        return [EntityHit(entity_of(row[2]), aliases.get(row[2][0]), *degrees[row[2][0]]) for row in hits]

    def _candidates(
        self, scopes: Sequence[Scope], words: Sequence[str], phrases: Sequence[str], limit: int
    ) -> list[Row]:
        """Return [entity id, phrase] for each alias, and [entity id, words of the name, of the summary, weights]."""
        if not words and not phrases:
            return []
        keys = keys_of(scopes)
        return self._database.read(
            "entity_candidates",
            scopes,
            scopes=keys,
            phrases=phrases,
            words=list(_expressions(words, [scope_mark(key) for key in keys])),
            per_word=_PER_WORD,
            collection=COLLECTION_SIZE,
            limit=max(_SCORED, 2 * limit),
        )


def _longest_aliases(rows: Iterable[Row]) -> dict[str, str]:
    """Return entity id → its longest alias among the phrases; longest alias first, then by entity id."""
    aliases: dict[str, str] = {}
    for entity_id, phrase in sorted(rows, key=lambda row: (-len(row[1]), row[0], row[1])):
        aliases.setdefault(entity_id, phrase)
    return aliases


def _expressions(words: Sequence[str], marks: Sequence[str]) -> Iterator[dict[str, Any]]:
    """Yield the full-text expressions of each word; they contain only letters, digits and underscores."""
    for word in words:
        for start in range(0, len(marks), _CLAUSES):
            terms = [f"{mark}_{word}" for mark in marks[start : start + _CLAUSES]]
            names = " ".join(f"name_words:{term}*^2" for term in terms)
            summaries = " ".join(f"summary_words:{term}*" for term in terms)
            yield {"text": word, "expression": f"{names} {summaries}", "begins": [f" {term}" for term in terms]}


def _ranked(rows: Sequence[Row]) -> list[str]:
    """Return ids of entities by their exact score, best first, then by id."""
    weights: dict[str, float] = {word: weight for row in rows for word, weight in row[3]}
    scores = word_scores([(name, summary) for _, name, summary, _ in rows], weights)
    scored = [(-score, entity_id) for score, (entity_id, _, _, _) in zip(scores, rows, strict=True) if score > 0]
    return [entity_id for _, entity_id in sorted(scored)]
