"""The optional contradiction check: an LLM names the known facts that a new one contradicts (spec: supersession)."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import replace

from graphmem.ingest.write import Reading, Statement
from graphmem.models import Edge, EdgeQuery, Scope
from graphmem.protocols import GraphBackend
from graphmem.text.words import stems

_log = logging.getLogger(__name__)

_NEAREST = 10
_SAMPLE = 500  # active facts of the source among which the nearest are looked for

Ask = Callable[[str, Sequence[str]], Sequence[int]]
"""(new fact, known facts) → positions of the known facts that can't be true any more; may raise."""


class ContradictionCheck:
    """Shows a new fact and the nearest active facts of its source to a judge.

    Parameters
    ----------
    ask
        The judge; when it raises, nothing is contradicted and the error is logged.
    """

    def __init__(self, ask: Ask) -> None:
        self._ask = ask

    def check(self, backend: GraphBackend, scope: Scope, reading: Reading) -> Reading:
        """Return the reading with the known edges that its statements end.

        It runs before the write, so that no lock is held while the judge thinks; what was ended
        by somebody else meanwhile stays as it is.
        """
        names = list(dict.fromkeys(s.source.canonical for s in reading.statements))
        entities = backend.resolve_names(scope, names) if names else []
        contradicted: dict[int, tuple[str, ...]] = {}
        for position, statement in enumerate(reading.statements):
            source = statement.source
            ids = tuple(
                e.id for name, e in entities if name == source.canonical and source.entity_type in (None, e.entity_type)
            )
            if ids and not statement.stated.ended and (found := self._ended(backend, scope, statement, ids)):
                contradicted[position] = found
        return replace(reading, contradicted=contradicted)

    def _ended(
        self, backend: GraphBackend, scope: Scope, statement: Statement, source_ids: tuple[str, ...]
    ) -> tuple[str, ...]:
        query = EdgeQuery(source_ids=source_ids, versions="active")
        known = backend.find_edges([scope], query, limit=_SAMPLE, newest_first=True)
        nearest = _nearest(_sentence(statement), known)
        if not nearest:
            return ()
        try:
            positions = self._ask(_sentence(statement), [edge.fact for edge in nearest])
        except Exception as error:  # noqa: BLE001 - whatever the judge's library raises, the write goes on
            _log.warning("contradiction check failed: %s", error)
            return ()
        return tuple(nearest[i].id for i in dict.fromkeys(positions) if 0 <= i < len(nearest))


def _sentence(statement: Statement) -> str:
    words = (statement.source.display, statement.relation.replace("_", " "), statement.target.display)
    return statement.fact or " ".join(words)


def _nearest(fact: str, known: Sequence[Edge]) -> list[Edge]:
    """Return the facts that share most words with `fact`, newest first among equals."""
    wanted = stems(fact)
    return sorted(known, key=lambda edge: -len(wanted & stems(f"{edge.relation} {edge.fact}")))[:_NEAREST]
