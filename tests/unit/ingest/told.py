"""Tellings of facts in a short notation, and a store of facts that applies what a ledger writes."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from graphmem.ingest.fact_ledger import End, FactLedger
from graphmem.ingest.supersession.rules import DAY, FactSource, Teller
from graphmem.models import Edge, EdgeBeginning, EdgeEnd, EdgeType, Scope, new_id
from graphmem.ontology import DEFAULT_ONTOLOGY
from graphmem.protocols import EndingReason

_TELLING = re.compile(
    r"(?P<told>\S+) (?:(?P<verb>over|wrong|continues)(?: (?P<ended>(?!at\b|hearsay\b|by\b)\w+))?(?:, (?P<then>.+))?"
    r"|(?P<target>\w+))(?P<rest>(?: .+)?)"
)
WHY: dict[str, EndingReason] = {"wrong": "corrected", "continues": "continues"}
TELLERS: dict[str, Teller] = {"self": "subject", "other": "other", "document": "external"}
NOW = datetime(2026, 12, 1, tzinfo=UTC)


def moment(text: str, *, noon: bool = False) -> datetime:
    text = text if re.match(r"\d{4}-", text) else f"2026-{text}"
    found = datetime.fromisoformat(text).replace(tzinfo=UTC)
    return found + timedelta(hours=12) if noon and "T" not in text else found


@dataclass(frozen=True)
class Telling:
    told_at: datetime
    target: str = ""
    verb: str = ""
    relation: str = "lives_in"
    since: datetime | None = None
    until: datetime | None = None
    at: datetime | None = None
    certainty: Any = "stated"
    event: bool = False
    teller: Teller | None = None
    episode_id: str = field(default_factory=new_id)


def read(text: str) -> list[Telling]:
    """Return the tellings of a case."""
    relation, colon, rest = text.partition(": ")
    if not colon:
        relation, rest = "lives_in", text
    return [t for part in rest.split("; ") for t in _read(part, relation)]


def _read(text: str, relation: str) -> list[Telling]:
    match = _TELLING.fullmatch(text)
    assert match is not None, text
    rest, then = match["rest"] or "", match["then"]
    words = dict(re.findall(r"\b(since|until|at|by) (\S+)", f"{rest} {then or ''}"))
    said: dict[str, Any] = {
        "told_at": moment(match["told"], noon=True),
        "relation": relation,
        "teller": TELLERS.get(words.get("by", "")),
        "certainty": next((c for c in ("plan", "hearsay", "possible") if c in rest.split()), "stated"),
        "episode_id": new_id(),
    }
    dates = {name: moment(words[name]) for name in ("since", "until") if name in words}
    if match["verb"] is None:
        return [Telling(target=match["target"], **dates, event="event" in rest.split(), **said)]
    at = moment(words["at"]) if "at" in words else None
    found = [Telling(target=match["ended"] or "", verb=match["verb"], at=at, **said)]
    return [*found, Telling(target=then.split()[0], **dates, **said)] if then else found


class Facts:
    """Facts of one person, to which ledgers write as to a store."""

    def __init__(self) -> None:
        self.rows: dict[str, Edge] = {}
        self._sources: dict[str, FactSource] = {}

    def tell(self, tellings: Sequence[Telling]) -> None:
        """Apply tellings in one write."""
        ledger = FactLedger(self.rows.values(), DEFAULT_ONTOLOGY, NOW, self._load)
        for telling in tellings:
            self._sources[telling.episode_id] = FactSource(telling.episode_id, telling.told_at, telling.teller)
            self._apply(ledger, telling)
        for c in ledger.expiries:
            fields = {"valid_to": c.valid_to, "expired_at": c.expired_at, "superseded_by": c.superseded_by}
            self.rows[c.edge_id] = self.rows[c.edge_id].changed(**fields, end_reason=c.reason, ends=c.ends)
        for edge in ledger.edges:
            if edge.is_active:
                assert not [e for e in self.rows.values() if e.is_active and e.key == edge.key and e.id != edge.id]
            self.rows[edge.id] = edge
        for s in ledger.corroborations:
            edge = self.rows[s.edge_id]
            self.rows[s.edge_id] = edge.changed(episode_ids=edge.episode_ids + s.episode_ids)

    def _load(self, edges: Sequence[Edge]) -> dict[str, list[FactSource]]:
        return {edge.id: [self._sources[i] for i in edge.episode_ids] for edge in edges}

    def _apply(self, ledger: FactLedger, telling: Telling) -> None:
        keys = [("maya", telling.target, telling.relation, kind) for kind in EdgeType]
        at = telling.at or telling.told_at
        end = End(at, telling.told_at, telling.episode_id, why=WHY.get(telling.verb, "over"), teller=telling.teller)
        if telling.verb and not telling.target:
            ledger.end_slot(("maya", telling.relation), end)
            return
        if telling.verb and telling.certainty == "stated" and (ledger.end(keys, end) or telling.verb != "over"):
            return
        begin = telling.since or (at - DAY if telling.verb else telling.told_at)
        until = at if telling.verb else telling.until
        edge = Edge(
            scope=Scope(),
            source_id="maya",
            target_id=telling.target,
            relation=telling.relation,
            valid_from=begin,
            valid_to=until,
            recorded_at=NOW,
            episode_ids=(telling.episode_id,),
            certainty=telling.certainty,
            kind="event" if telling.event else "state",
            valid_from_assumed=telling.since is None,
            told_at=telling.told_at,
            ends=()
            if until is None or telling.event
            else (EdgeEnd(by=telling.episode_id, at=until, told_at=telling.told_at),),
            beginnings=()
            if telling.since is None or telling.event
            else (EdgeBeginning(by=telling.episode_id, at=begin, told_at=telling.told_at),),
        )
        ledger.add(edge, teller=telling.teller)

    def shown(self) -> list[str]:
        """Return the facts in the notation of the documentation, sorted."""
        rows = (e for e in self.rows.values() if e.valid_from != e.valid_to or e.end_reason != "replaced")
        return sorted(map(_shown, rows))


def _shown(edge: Edge) -> str:
    words = [edge.target_id, *(w for w in (edge.certainty, edge.kind) if w not in ("stated", "state"))]
    if edge.valid_from == edge.valid_to:
        return " ".join((*words, "never"))
    end = "" if edge.valid_to is None else date(edge.valid_to)
    words.append(f"{'?' if edge.valid_from_assumed else ''}{date(edge.valid_from)}..{end}")
    return " ".join((*words, *([edge.end_reason] if edge.end_reason else [])))


def date(when: datetime) -> str:
    text = f"{when:%Y-%m-%d}" if when.hour in (0, 12) and not when.minute else f"{when:%Y-%m-%dT%H:%M}"
    return text.removeprefix("2026-").removeprefix("2025-") if text.startswith(("2026-", "2025-12-31")) else text
