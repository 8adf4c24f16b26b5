"""Entities and their aliases: reads, and the search for a question by alias and by full text.

Full text finds the rows; the score is computed here: Lucene's own would weigh words by their number of rows in *all*
scopes. For each word at most `_PER_WORD` rows are read, in the engine; the `_SCORED` best by the weights of the words
that found them are scored exactly: BM25 over name and summary with the name counted ten times (BM25F with one
saturation; Robertson and Zaragoza 2009, section 3.5). The number of rows in the formula is a constant and the average
length is that of the scored rows, so that nothing outside of the searched scopes has an influence.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from graphmem.models import Alias, EdgeType, Entity, EntityHit, EntityQuery, Scope, utc_now
from graphmem.protocols import COLLECTION_SIZE, EntityStore, question_words, word_scores
from graphmem_neo4j.connection import Neo4jRole
from graphmem_neo4j.edges import moment_values, type_names
from graphmem_neo4j.rows import Row, entity_of, ids_of, keys_of, scope_mark

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
            "archived": query.archived or query.ids is not None,
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
        return [EntityHit(entity_of(row[2]), aliases.get(row[2][0]), degree=row[0], edge_types=row[1]) for row in hits]

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
