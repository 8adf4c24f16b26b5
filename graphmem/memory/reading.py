"""Reading what is stored, as of any time."""

from __future__ import annotations

from collections.abc import Sequence

from graphmem.inputs import to_as_of, to_limit, to_time
from graphmem.memory.part import Part, Scopes, Time
from graphmem.models import AsOf, EdgeQuery, Entity, EntityQuery, Episode, EpisodeQuery
from graphmem.recall.history import count_entities, diff, history
from graphmem.recall.recall import to_facts
from graphmem.recall.seeds import find_seeds
from graphmem.results import Diff, EntityCounts, Fact

_FILTERED = 1000  # entities that a text names, of which some are left when type or time are asked for


class Reading(Part):
    """What shows entities, facts and episodes."""

    def entities(
        self,
        query: str | None = None,
        *,
        entity_type: str | None = None,
        as_of: AsOf | Time | None = None,
        limit: int = 100,
        scopes: Scopes | None = None,
    ) -> list[Entity]:
        """Return entities: those that a text names, best first; without one, all in the order of their making.

        Parameters
        ----------
        query
            Names or words.
        entity_type
            Only this type.
        as_of
            Only what was recorded by `known` and had been seen by `valid`.
        limit
            Entities at most.
        scopes
            As in `recall`.
        """
        where = self._scopes(scopes)
        types = None if entity_type is None else (entity_type,)
        moment, limit = to_as_of(as_of), to_limit(limit)
        if query is None:
            found = EntityQuery(entity_types=types, as_of=moment)
            return self._engine.backend.find_entities(where, found, limit=limit)
        most = limit if types is None and moment is None else max(limit, _FILTERED)
        seeds = find_seeds(
            self._engine.backend,
            where,
            query,
            structural_weight=self._engine.settings.seed_structural_weight,
            limit=most,
            candidates=most,
        )
        found = EntityQuery(ids=tuple(s.entity_id for s in seeds), entity_types=types, as_of=moment)
        by_id = {e.id: e for e in self._engine.backend.find_entities(where, found, limit=max(1, most))}
        return [by_id[s.entity_id] for s in seeds if s.entity_id in by_id][:limit]

    def entity_counts(
        self,
        query: str | None = None,
        *,
        entity_type: str | None = None,
        as_of: AsOf | Time | None = None,
        limit: int = 100,
        scopes: Scopes | None = None,
    ) -> list[EntityCounts]:
        """Return entities with the numbers of their mentions and facts; without a query those with the most first.

        Parameters
        ----------
        query, entity_type, as_of, scopes
            As in `entities`; with a query the order is that of `entities`, too.
        limit
            Entities at most. Without a query all of them are counted nevertheless.
        """
        where, moment = self._scopes(scopes), to_as_of(as_of)
        if query is not None:
            found = self.entities(query, entity_type=entity_type, as_of=moment, limit=limit, scopes=where)
            return count_entities(self._engine.backend, where, found, moment)
        types = None if entity_type is None else (entity_type,)
        everybody = self._engine.backend.all_entities(where, EntityQuery(entity_types=types, as_of=moment))
        counted = count_entities(self._engine.backend, where, list(everybody), moment)
        counted.sort(key=lambda one: (-one.mentions - one.facts, one.entity.name, one.entity.id))
        return counted[: to_limit(limit)]

    def facts(
        self,
        name: str,
        *,
        as_of: AsOf | Time | None = None,
        limit: int = 100,
        scopes: Scopes | None = None,
    ) -> tuple[Fact, ...]:
        """Return the facts that an entity takes part in, newest first; `name` is one of its names, or its id."""
        where = self._scopes(scopes)
        moment, limit = to_as_of(as_of), to_limit(limit)
        ids = self._ids(where, name)
        if not ids:
            return ()
        query = EdgeQuery(touching=ids, as_of=moment)
        edges = self._engine.backend.find_edges(where, query, limit=limit, newest_first=True)
        return to_facts(self._engine.backend, where, edges)

    def history(
        self,
        source: str,
        relation: str | None = None,
        text: str | None = None,
        *,
        as_of: AsOf | Time | None = None,
        limit: int = 100,
        scopes: Scopes | None = None,
    ) -> tuple[Fact, ...]:
        """Return all versions of what is said of an entity, newest first: past, present and retracted.

        Parameters
        ----------
        source
            One of the entity's names.
        relation
            Only this relation, in any wording that maps to it.
        text
            Only facts that contain this text.
        as_of
            What had begun by `valid`, as it was known at `known`.
        limit
            Versions at most.
        scopes
            As in `recall`.
        """
        where = self._scopes(scopes)
        moment, limit = to_as_of(as_of), to_limit(limit)
        ids = self._ids(where, source)
        if not ids:
            return ()
        return history(
            self._engine.backend,
            where,
            ids,
            relation=None if relation is None else self._engine.ontology.relation(relation),
            text=text,
            as_of=moment,
            limit=limit,
        )

    def diff(self, start: Time, end: Time, *, limit: int = 1000, scopes: Scopes | None = None) -> Diff:
        """Return what became true, what ended and what was learned after `start` and until `end`."""
        return diff(self._engine.backend, self._scopes(scopes), to_time(start), to_time(end), limit=to_limit(limit))

    def episodes(self, ids: Sequence[str], *, scopes: Scopes | None = None) -> list[Episode]:
        """Return the episodes with these ids, in this order: where facts come from."""
        found = self._engine.backend.get_episodes(self._scopes(scopes), list(dict.fromkeys(ids)))
        return [found[i] for i in ids if i in found]

    def session(self, session_id: str, *, limit: int = 100, scopes: Scopes | None = None) -> list[Episode]:
        """Return the last episodes of a session, in the order in which they were stored."""
        query = EpisodeQuery(session_id=self._engine.known_name(session_id))
        found = self._engine.backend.find_episodes(
            self._scopes(scopes), query, limit=to_limit(limit), newest_first=True
        )
        return found[::-1]
