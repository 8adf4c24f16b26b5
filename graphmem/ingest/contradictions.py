"""Optional contradiction check of new facts with known ones."""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date

from graphmem.ingest.interpretation import ExtractedFact, InterpretedEpisode
from graphmem.ingest.judges import Ask
from graphmem.models import STATED_KINDS, Certainty, Edge, EdgeQuery, Episode, Scope
from graphmem.protocols import GraphBackend
from graphmem.text.normalize import plain_fact, relation_words
from graphmem.text.terms import stems

_log = logging.getLogger(__name__)

_NEAREST = 10  # known facts compared with each new one
_SAMPLE = 500  # newest active facts of the same entities and relations that the nearest are selected from
_SHARED = 2  # content words that make two facts comparable


@dataclass(frozen=True, slots=True)
class _Earlier:
    """A fact that a new one may contradict: a stored one, or one of an earlier episode of the same write."""

    id: str
    sources: Collection[str]
    targets: Collection[str]
    relation: str
    fact: str
    since: date
    certainty: Certainty

    @property
    def line(self) -> str:
        """The fact as the judge sees it."""
        certainty = "" if self.certainty == "stated" else f", {self.certainty}"
        return f"{self.fact} (since {self.since.isoformat()}{certainty})"


@dataclass(frozen=True, slots=True)
class _New:
    reading: int
    statement: int
    sentence: str
    known: tuple[_Earlier, ...]


class ContradictionCheck:
    """Contradiction check: a judge compares the new facts of a write with known and with earlier ones, in one call.

    Earlier ones are those of episodes of the same write that occurred before. A known or earlier fact of the same
    source or target is compared with a new one if they share the relation, the target or two content words. Facts that
    the extractor was shown are left out, since it has judged them; for an extractor that is shown nothing, all facts of
    the source are compared.

    Parameters
    ----------
    ask
        The judge. If it raises, no fact counts as contradicted and the error is logged.
    """

    def __init__(self, ask: Ask) -> None:
        self._ask = ask

    def check(
        self,
        backend: GraphBackend,
        scope: Scope,
        readings: Sequence[InterpretedEpisode],
        shown: Collection[str] | None = None,
    ) -> list[InterpretedEpisode]:
        """Return the interpreted episodes with the edges that their statements contradict.

        Runs before the write, so that no lock is held during the call of the judge. An edge that another writer
        ends in the meantime keeps that end.

        Parameters
        ----------
        backend, scope
            Store and scope of the known facts.
        readings
            The episodes of one write.
        shown
            Ids of facts that were in the prompt of the extractor; None if it is shown nothing.
        """
        new = _comparable(backend, scope, readings, None if shown is None else frozenset(shown))
        known = list({edge.id: edge for one in new for edge in one.known}.values())
        if not known:
            return list(readings)
        try:
            pairs = self._ask([one.sentence for one in new], [edge.line for edge in known])
        except Exception as error:  # noqa: BLE001 - the write continues whatever the judge's library raises
            _log.warning("contradiction check failed: %s", error)
            return list(readings)
        found: dict[int, dict[int, tuple[str, ...]]] = {}
        for position, other in dict.fromkeys(pairs):
            if 0 <= position < len(new) and 0 <= other < len(known) and known[other] in new[position].known:
                of_reading = found.setdefault(new[position].reading, {})
                statement = new[position].statement
                of_reading[statement] = (*of_reading.get(statement, ()), known[other].id)
        return [replace(r, contradicted=found.get(i, {})) for i, r in enumerate(readings)]


def _comparable(
    backend: GraphBackend, scope: Scope, readings: Sequence[InterpretedEpisode], shown: frozenset[str] | None
) -> list[_New]:
    """Return the new facts that have known or earlier ones to compare with."""
    stated = [
        (i, j, s) for i, reading in enumerate(readings) for j, s in enumerate(reading.statements) if not s.stated.ended
    ]
    names = list(dict.fromkeys(end.canonical for _, _, s in stated for end in (s.source, s.target)))
    ends: dict[str, set[str]] = {name: {name} for name in names}
    for name, entity in backend.resolve_names(scope, names) if names else ():
        ends[name].add(entity.id)
    ids = tuple({i for name, some in ends.items() for i in some - {name}})
    query = EdgeQuery(touching=ids, kinds=STATED_KINDS, versions="active")
    found = backend.find_edges([scope], query, limit=_SAMPLE, newest_first=True) if ids else []
    known = [_stored(edge) for edge in found if edge.id not in (shown or ())]
    new: list[_New] = []
    for i, j, statement in stated:
        if statement.stated.certainty != "stated":
            continue
        at = readings[i].episode.occurred_at
        earlier = [
            _told(s, readings[n].episode, ends)
            for n, _, s in stated
            if n != i and (readings[n].episode.occurred_at, n) < (at, i)
        ]
        near = _nearest(statement, [*reversed(earlier), *known], ends, any_of_source=shown is None)
        if near:
            new.append(_New(i, j, _sentence(statement), tuple(near)))
    return new


def _stored(edge: Edge) -> _Earlier:
    ends = (edge.source_id,), (edge.target_id,)
    return _Earlier(edge.id, *ends, edge.relation, edge.fact, edge.valid_from.date(), edge.certainty)


def _told(statement: ExtractedFact, episode: Episode, ends: Mapping[str, Collection[str]]) -> _Earlier:
    names = ends[statement.source.canonical], ends[statement.target.canonical]
    since = (statement.stated.valid_from or episode.occurred_at).date()
    return _Earlier(
        statement.edge_id, *names, statement.relation, _sentence(statement), since, statement.stated.certainty
    )


def _sentence(statement: ExtractedFact) -> str:
    return statement.fact or plain_fact(statement.source.display, statement.relation, statement.target.display)


def _nearest(
    statement: ExtractedFact,
    known: Sequence[_Earlier],
    ends: Mapping[str, Collection[str]],
    *,
    any_of_source: bool,
) -> list[_Earlier]:
    """Return the comparable facts that share most words with a new one; ties keep the order."""
    wanted = stems(_sentence(statement))
    sources, targets = set(ends[statement.source.canonical]), set(ends[statement.target.canonical])

    def shared(edge: _Earlier) -> int:
        return len(wanted & stems(f"{relation_words(edge.relation)} {edge.fact}"))

    def comparable(edge: _Earlier) -> bool:
        same = not sources.isdisjoint(edge.sources), not targets.isdisjoint(edge.targets)
        if all(same) and edge.relation == statement.relation:
            return False  # the same fact again
        if not any(same):
            return False
        return same[1] or any_of_source or edge.relation == statement.relation or shared(edge) >= _SHARED

    return sorted(filter(comparable, known), key=lambda edge: -shared(edge))[:_NEAREST]
