"""Write of extracted entities, aliases, mentions and facts in one transaction."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import partial
from typing import Literal

from graphmem.inference.premises import write_facts
from graphmem.ingest.corrections import EarlierExtraction
from graphmem.ingest.entity_matching import Outdated, Prepared, SimilarEntities
from graphmem.ingest.fact_ledger import End, FactLedger, TellerAbout, entity_names, open_ledger, teller_of
from graphmem.ingest.interpretation import Ending, EntityMention, ExtractedFact, InterpretedEpisode, clamped
from graphmem.ingest.note_links import NoteLinks
from graphmem.ingest.resolution import Resolver
from graphmem.ingest.supersession.rules import DEPENDENT_RELATIONS, Teller, day_after, day_before
from graphmem.models import (
    Changes,
    Edge,
    EdgeBeginning,
    EdgeEnd,
    EdgeKey,
    EdgeQuery,
    EdgeType,
    Entity,
    Episode,
    Mention,
    ProcessingResult,
    Scope,
    utc_now,
)
from graphmem.ontology import CONTACT_RELATIONS, Ontology
from graphmem.protocols import ExtractedEdge, GraphBackend, Redactor
from graphmem.telemetry import count, span
from graphmem.text.normalize import canonical, fact_text, plain_fact
from graphmem.trust import is_assistant, speaker_of


@dataclass(slots=True)
class Written:
    """Counts of a write; `dropped` counts by reason, `unknown_types` mentions by their type outside the ontology.

    `known` counts the facts of lists of triples that were stored before.

    `new_entities` (ids), `entity_types` and `edge_types` (of new rows), and `is_outdated`, whether an erasure kept the
    queued episodes from being written, are those of one write and are not summed.
    """

    episodes: int = 0
    known: int = 0
    entities: int = 0
    edges: int = 0
    supported: int = 0
    ended: int = 0
    merged: int = 0
    new_entities: Sequence[str] = ()
    entity_types: Mapping[str, int] = field(default_factory=dict[str, int])
    edge_types: Mapping[str, int] = field(default_factory=dict[str, int])
    dropped: Counter[str] = field(default_factory=Counter[str])
    unknown_types: Counter[str] = field(default_factory=Counter[str])
    is_outdated: bool = False

    def add(self, other: Written) -> None:
        """Add the counts of another write."""
        self.episodes += other.episodes
        self.known += other.known
        self.entities += other.entities
        self.edges += other.edges
        self.supported += other.supported
        self.ended += other.ended
        self.merged += other.merged
        self.dropped.update(other.dropped)
        self.unknown_types.update(other.unknown_types)


MergeEntities = Callable[[Scope, str, str], object]


class Writer:
    """Writer of interpreted episodes: resolves their entities and stores their facts.

    Parameters
    ----------
    backend
        The store.
    ontology
        Cardinality of relations.
    redactor
        Redacts facts and summaries before they are stored; None stores them unchanged.
    similar
        Matches new names with known entities; None makes every new name a new entity.
    links
        Links new entities to similar ones; None creates no links.
    merge
        Merges an entity of a scope into another one, given their ids, within the transaction of a write; None merges
        none.
    bulk
        Whether vectors may be deferred: see `SimilarEntities.prepare`.
    """

    def __init__(
        self,
        backend: GraphBackend,
        ontology: Ontology,
        redactor: Redactor | None = None,
        similar: SimilarEntities | None = None,
        links: NoteLinks | None = None,
        *,
        merge: MergeEntities | None = None,
        bulk: bool = False,
    ) -> None:
        self._backend = backend
        self._ontology = ontology
        self._redactor = redactor
        self._similar = similar
        self._bulk = bulk and links is None
        self._links = links
        self._merge = merge

    def write(
        self,
        scope: Scope,
        readings: Sequence[InterpretedEpisode],
        *,
        new_episodes: Sequence[Episode] = (),
        since: str | None = None,
    ) -> Written:
        """Store interpreted episodes and mark the queued ones as processed, in one transaction.

        Parameters
        ----------
        scope
            Scope of all of them.
        readings
            The interpreted episodes. Those that another process has processed in the meantime are skipped.
        new_episodes
            Episodes stored in the same transaction (ready-made triples aren't queued). An existing episode with the
            same external id in the scope is used instead.
        since
            `GraphBackend.erasure_token` from before the queued episodes and their context were read. After a later
            erasure none of the queued episodes is written, and they stay in the queue.

        Returns
        -------
        Written
            Counts.
        """
        written = None
        with span("graphmem.write") as one:
            while written is None:
                prepared = None
                if self._similar is not None:
                    mentions = [self._as_stored(mention) for mention in _all_mentions(readings, presumed=False)]
                    with span("graphmem.resolve.vectors"):
                        prepared = self._similar.prepare(scope, mentions, bulk=self._bulk)
                with suppress(Outdated):
                    written = self._backend.atomic(partial(self._write, scope, readings, new_episodes, prepared, since))
            one.set({"graphmem.entities": written.entities, "graphmem.facts": written.edges})
        _count(written)
        if self._links is not None:
            self._links.link(scope, written.new_entities)
        return written

    def _write(
        self,
        scope: Scope,
        readings: Sequence[InterpretedEpisode],
        new_episodes: Sequence[Episode],
        prepared: Prepared | None,
        since: str | None,
    ) -> Written:
        now = utc_now()
        written = Written()
        if new_episodes:
            readings = self._store_episodes(scope, new_episodes, readings, written)
        written.is_outdated = since is not None and self._backend.erasure_token(scope) != since
        readings = self._still_open(scope, readings, is_outdated=written.is_outdated)
        make_matcher = None
        if self._similar is not None and prepared is not None:
            make_matcher = partial(self._similar.matcher, prepared)
        types_vary = any(reading.settles for reading in readings)
        speakers = {canonical(name) for r in readings if (name := speaker_of(r.episode)) is not None}
        resolver = Resolver(
            self._backend, scope, _all_mentions(readings), now, make_matcher, types_vary=types_vary, names=speakers
        )
        mentions: dict[tuple[str, str], Mention] = {}
        statements: list[_End | _Fact] = []
        with span("graphmem.resolve"):
            for reading in readings:
                statements += self._resolved(reading, resolver, mentions, written, now)
        again = [r.episode.id for r in readings if r.settles and r.episode.attempts]
        earlier = EarlierExtraction(self._backend, scope, self._ontology, again)
        statements = [s for s in statements if isinstance(s, _End) or not earlier.is_withdrawn(s.edge)]
        facts = [fact for fact in statements if isinstance(fact, _Fact)]
        stated = {(fact.edge.key, fact.edge.valid_from) for fact in facts}
        known = {edge.id: edge for edge in (*self._known(scope, statements, resolver), *earlier.known)}
        ledger = open_ledger(self._backend, scope, self._ontology, known, now)
        earlier.retract(ledger, stated)
        ledger.prepare(fact.edge for fact in facts)
        entered: dict[str, str] = {}
        for fact in statements:
            if isinstance(fact, _Fact):
                self._enter(ledger, fact, entered)
            elif not fact.applied(ledger) and not fact.presumed:
                written.dropped["ending of an unknown fact"] += 1
        earlier.amend(ledger, stated)
        reworded = ledger.restate(partial(entity_names, self._backend, scope))
        write_facts(
            self._backend,
            scope,
            Changes(
                entities=(*resolver.entities, *earlier.orphans(ledger, {entity for entity, _ in mentions}, now)),
                aliases=resolver.aliases,
                expiries=ledger.expiries,
                edges=ledger.edges,
                corroborations=ledger.corroborations,
                mentions=tuple(mentions.values()),
                index=resolver.index,
                merges=resolver.merges,
                removals=(*resolver.removals, *earlier.removals(mentions), *reworded),
                results=tuple(
                    ProcessingResult(r.episode.id, processed_at=now, attempts=r.episode.attempts + 1)
                    for r in readings
                    if r.settles
                ),
            ),
            known,
        )
        _count_rows(written, resolver, ledger)
        if self._merge is not None:
            for gone, kept in resolver.same().items():
                self._merge(scope, gone, kept)
                written.merged += 1
        return written

    def _store_episodes(
        self,
        scope: Scope,
        new_episodes: Sequence[Episode],
        readings: Sequence[InterpretedEpisode],
        written: Written,
    ) -> Sequence[InterpretedEpisode]:
        """Store episodes and count them; return the readings to write, with the stored episodes in place of known ones.

        Lists of triples that were all stored before aren't written again.
        """
        stored = self._backend.add_episodes(scope, new_episodes)
        written.episodes = sum(new for _, new in stored)
        held = {e.id: known for e, (known, new) in zip(new_episodes, stored, strict=True) if not new}
        if not held:
            return readings
        episodes = self._backend.get_episodes([scope], list(held.values()))
        known = {id_: episodes[stored_id] for id_, stored_id in held.items()}
        lists = [r for r in readings if r.is_list]
        if lists and self._are_whole(scope, lists, known):
            written.known = sum(len(r.statements) for r in lists)
            readings = [r for r in readings if not r.is_list]
        return [replace(r, episode=known[r.episode.id]) if r.episode.id in known else r for r in readings]

    def _are_whole(self, scope: Scope, lists: Sequence[InterpretedEpisode], known: Mapping[str, Episode]) -> bool:
        """Return whether all lists of triples are stored, and nothing of their texts and facts was erased.

        `known` has the stored episodes of those that were, by the ids of the given ones.
        """
        stored = [known.get(reading.episode.id) for reading in lists]
        if any(e is None or e.text != r.episode.text for e, r in zip(stored, lists, strict=True)):
            return False
        keys = {(s.source.canonical, s.relation, s.target.canonical) for r in lists for s in r.statements}
        ids = list({e.id: None for e in stored if e is not None})
        return len(self._backend.find_edges_of_episodes(scope, ids)) >= len(keys)

    def _still_open(
        self, scope: Scope, readings: Sequence[InterpretedEpisode], *, is_outdated: bool
    ) -> Sequence[InterpretedEpisode]:
        """Return the readings without those of queued episodes that are outdated, erased or processed already."""
        queued = tuple(r.episode.id for r in readings if r.settles)
        if not queued:
            return readings
        if is_outdated:
            return [r for r in readings if not r.settles]
        stored = self._backend.get_episodes([scope], queued)
        pending = {i for i, episode in stored.items() if episode.processed_at is None}
        return [r for r in readings if not r.settles or r.episode.id in pending]

    def _resolved(
        self,
        reading: InterpretedEpisode,
        resolver: Resolver,
        mentions: dict[tuple[str, str], Mention],
        written: Written,
        now: datetime,
    ) -> list[_End | _Fact]:
        episode = reading.episode
        seen_at = episode.occurred_at

        def mentioned(mention: EntityMention) -> Entity:
            mention = self._as_stored(mention)
            entity = resolver.resolve(mention, seen_at)
            if (pair := (entity.id, episode.id)) not in mentions:
                if mention.declared_type:
                    written.unknown_types[mention.declared_type] += 1
                mentions[pair] = Mention.trusted(
                    entity_id=entity.id,
                    episode_id=episode.id,
                    surface=mention.display,
                    confidence=mention.confidence,
                    seen_at=seen_at,
                )
            return entity

        if self._redactor is not None:
            reading = _without_contacts(reading, written.dropped)
        for mention in reading.mentions:
            mentioned(mention)
        speaker = canonical(speaker_of(episode) or "")

        def teller_about(entity_id: str, *, overrules: bool = False) -> Teller | None:
            return teller_of(episode, own=overrules or entity_id in resolver.ids_of(speaker))

        found = (_ending_of(ending, episode, resolver, mentioned, teller_about) for ending in reading.endings)
        facts: list[_End | _Fact] = [ending for ending in found if ending is not None]
        for position, statement in enumerate(reading.statements):
            source, target = mentioned(statement.source), mentioned(statement.target)
            if source.id == target.id:
                written.dropped["self-loop"] += 1
                continue
            stated = statement.stated
            held = _validity(stated, seen_at)
            if held is None:
                written.dropped["valid_to before valid_from"] += 1
                continue
            if held[0] < seen_at:
                resolver.known_since(source, held[0])
                resolver.known_since(target, held[0])
            edge = self._edge_of(statement, source, target, held, episode, now)
            contradicted = reading.contradicted.get(position, ())
            facts.append(_Fact(edge, stated, teller_about(source.id), contradicted))
        return facts

    def _edge_of(
        self,
        statement: ExtractedFact,
        source: Entity,
        target: Entity,
        held: tuple[datetime, datetime | None],
        episode: Episode,
        now: datetime,
    ) -> Edge:
        """Return the row of a fact that an episode states, and that holds in an interval."""
        (begin, ends), stated, seen_at = held, statement.stated, episode.occurred_at
        sentence = statement.fact or plain_fact(source.name, statement.relation, target.name)
        begun = () if stated.valid_from is None else (EdgeBeginning(by=episode.id, at=begin, told_at=seen_at),)
        return Edge.trusted(  # cleaned by `statement_of`
            id=statement.edge_id,
            scope=episode.scope,
            source_id=source.id,
            target_id=target.id,
            relation=statement.relation,
            edge_type=statement.edge_type,
            fact=self._redacted(sentence, statement.source, statement.target),
            confidence=clamped(stated.confidence),
            valid_from=begin,
            valid_to=ends,
            recorded_at=now,
            episode_ids=(episode.id,),
            properties=statement.properties,
            certainty=stated.certainty,
            kind=stated.kind,
            valid_from_assumed=stated.valid_from is None,
            told_at=seen_at,
            ends=() if ends is None or stated.kind == "event" else (EdgeEnd(by=episode.id, at=ends, told_at=seen_at),),
            beginnings=() if stated.kind == "event" else begun,
        )

    def _as_stored(self, mention: EntityMention) -> EntityMention:
        """Return a mention with its summary and its text redacted."""
        if self._redactor is None or not (mention.summary or mention.text):
            return mention
        summary, text = (self._redacted(words, mention) for words in (mention.summary, mention.text))
        return replace(mention, summary=summary, text=text)

    def _redacted(self, text: str, *about: EntityMention) -> str:
        if self._redactor is None:
            return text
        return fact_text(self._redactor.redact(text, {mention.canonical for mention in about}))

    def _known(self, scope: Scope, statements: Sequence[_End | _Fact], resolver: Resolver) -> Iterable[Edge]:
        """Return the stored versions that the facts may affect."""
        keys, slots, ids = self._wanted(statements, resolver)
        held = [(o.slot[1], o.target_id) for o in statements if isinstance(o, _End) and o.others == "sources"]
        offices = tuple(dict.fromkeys(held))
        queries = (
            *(EdgeQuery(target_ids=(target,), relations=(name,), versions="all") for name, target in offices if target),
            EdgeQuery(keys=keys, versions="all"),
            EdgeQuery(slots=slots, versions="all"),
            EdgeQuery(ids=ids, versions="all"),
        )
        known = self._read(scope, queries)
        named = {(e.source_id, e.relation): None for i in ids if (e := known.get(i)) is not None}
        single = {slot: None for slot in named if self._ontology.is_single_valued(slot[1])} | _dependent(named)
        around = tuple(slot for slot in single if slot not in slots)
        return (known | self._read(scope, (EdgeQuery(slots=around, versions="all"),))).values()

    def _read(self, scope: Scope, queries: Iterable[EdgeQuery]) -> dict[str, Edge]:
        """Return the facts that match one of the queries, by id; a query that names nothing matches none."""
        wanted = (query for query in queries if query.keys or query.slots or query.ids or query.target_ids)
        return {e.id: e for query in wanted for e in self._backend.all_edges([scope], query, chunk=5000)}

    def _wanted(
        self, statements: Sequence[_End | _Fact], resolver: Resolver
    ) -> tuple[tuple[EdgeKey, ...], tuple[tuple[str, str], ...], tuple[str, ...]]:
        """Return the keys, the slots and the ids of facts that may be affected; new entities can't have any."""
        keys: dict[EdgeKey, None] = {}
        slots: dict[tuple[str, str], None] = {}
        ids: dict[str, None] = {}
        for ending in (o for o in statements if isinstance(o, _End)):
            if ending.fact_id is not None:
                ids[ending.fact_id] = None
            elif not resolver.is_new(ending.slot[0]):
                if ending.others == "targets" or self._ontology.is_single_valued(ending.slot[1]):
                    slots[ending.slot] = None
                slots.update(_dependent([ending.slot]))
                keys.update(dict.fromkeys(ending.keys))
        for fact in (f for f in statements if isinstance(f, _Fact)):
            edge = fact.edge
            ids.update(dict.fromkeys(fact.contradicted))
            if resolver.is_new(edge.source_id):
                continue
            if fact.stated.ended:
                slots.update(_dependent([(edge.source_id, edge.relation)]))
            if self._ontology.is_single_valued(edge.relation):
                slots[edge.source_id, edge.relation] = None
            elif not resolver.is_new(edge.target_id):
                ended = fact.stated.ended
                same = _keys(edge.source_id, edge.relation, edge.target_id) if ended else [edge.key]
                keys.update(dict.fromkeys(same))
        return tuple(keys), tuple(slots), tuple(ids)

    def _enter(self, ledger: FactLedger, fact: _Fact, entered: dict[str, str]) -> None:
        """Apply a fact; `entered` holds the rows of the earlier facts of the write by their edge ids."""
        edge = fact.edge
        if fact.stated.ended and edge.certainty == "stated":
            told_at = edge.told_at or edge.recorded_at
            end = End(edge.valid_to or edge.valid_from, told_at, edge.episode_ids[0], teller=fact.teller)
            if ledger.end(_keys(edge.source_id, edge.relation, edge.target_id), end):
                return
        # what is over and wasn't known is kept as past
        holder = entered[edge.id] = ledger.add(edge, teller=fact.teller)
        for edge_id in fact.contradicted:
            ledger.end_edge(entered.get(edge_id, edge_id), edge, holder, teller=fact.teller)


def _count_rows(written: Written, resolver: Resolver, ledger: FactLedger) -> None:
    """Count what a write stored of entities and facts."""
    written.entities = resolver.created
    written.merged = len(resolver.merges)
    written.new_entities = resolver.new_ids
    written.entity_types = Counter(each.entity_type for each in resolver.entities if resolver.is_new(each.id))
    created = ledger.created
    written.edges, written.edge_types = len(created), Counter(edge.edge_type.value for edge in created)
    written.supported = ledger.supported
    written.ended = ledger.ended


def _count(written: Written) -> None:
    """Add the new rows of a write to the metrics."""
    for name, number in written.entity_types.items():
        count("graph_entities_stored_total", number, entity_type=name)
    for name, number in written.edge_types.items():
        count("graph_relationships_stored_total", number, relationship_type=name)
    if written.merged:
        count("graph_merges_total", written.merged)


def _without_contacts(reading: InterpretedEpisode, dropped: Counter[str]) -> InterpretedEpisode:
    """Return an episode without the targets of contact relations, which redaction would leave as names."""
    stated = (*reading.statements, *reading.endings)
    contacts = {s.target.canonical for s in stated if s.target is not None and s.relation in CONTACT_RELATIONS}
    if not contacts:
        return reading
    kept = [n for n, s in enumerate(reading.statements) if s.target.canonical not in contacts]
    dropped["personal data"] += len(reading.statements) - len(kept)
    return replace(
        reading,
        mentions=tuple(t for t in reading.mentions if t.canonical not in contacts),
        statements=tuple(reading.statements[n] for n in kept),
        endings=tuple(e for e in reading.endings if e.target is None or e.target.canonical not in contacts),
        contradicted={new: reading.contradicted[n] for new, n in enumerate(kept) if n in reading.contradicted},
    )


def _all_mentions(readings: Sequence[InterpretedEpisode], *, presumed: bool = True) -> list[EntityMention]:
    """Return the mentions of the episodes, on request without those that only presumed endings name.

    Those that only endings and facts name come last.
    """
    mentions = [mention for reading in readings for mention in reading.mentions]
    endings = [e for reading in readings for e in reading.endings if presumed or not e.stated.presumed]
    mentions += [mention for ending in endings for mention in (ending.source, ending.target) if mention is not None]
    return mentions + [mention for r in readings for s in r.statements for mention in (s.source, s.target)]


@dataclass(frozen=True, slots=True)
class _Fact:
    edge: Edge
    stated: ExtractedEdge
    teller: Teller | None
    contradicted: tuple[str, ...]


def _validity(stated: ExtractedEdge, seen_at: datetime) -> tuple[datetime, datetime | None] | None:
    """Return from when until when a fact holds that was told at a time; None if a state ends before it begins."""
    ends = stated.valid_to or (seen_at if stated.ended else None)
    if ends is not None and stated.ended and seen_at < ends <= day_after(seen_at):
        ends = seen_at  # "today" lasts until midnight, but what is over is over when that is said
    begin = stated.valid_from or _beginning(seen_at, ends)
    if ends == begin == stated.valid_to:
        return begin, None if stated.kind == "event" else day_after(begin)  # an end is exclusive: it holds on that day
    if ends is None or ends >= begin:
        return begin, ends
    if stated.kind == "event":
        return begin, None
    return (_beginning(seen_at, ends), ends) if stated.ended else None


def _beginning(seen_at: datetime, end: datetime | None) -> datetime:
    """Return the beginning of a fact that states none: when it was stated, or its last day if it had ended by then."""
    if end is None or end > seen_at:
        return seen_at
    return day_before(end)


@dataclass(frozen=True, slots=True)
class _End:
    end: End
    slot: tuple[str, str] = ("", "")
    target_id: str | None = None
    fact_id: str | None = None
    teller_about: TellerAbout = lambda _: None
    others: Literal["", "targets", "sources"] = ""
    presumed: bool = False

    @property
    def keys(self) -> list[EdgeKey]:
        """The keys of the fact under every edge type, if its target is named."""
        if self.target_id is None or self.others:
            return []
        return _keys(*self.slot, self.target_id)

    def applied(self, ledger: FactLedger) -> bool:
        """End the fact; return whether it was known."""
        if self.fact_id is not None:
            return ledger.end_fact(self.fact_id, self.end, self.teller_about)
        if self.others == "targets":
            ledger.end_slot(self.slot, self.end, kept=self.target_id)
            return True
        if self.others:
            ledger.end_others(self.slot, self.target_id, self.end, self.teller_about)
            return True
        if self.target_id is None:
            return ledger.end_slot(self.slot, self.end)
        return ledger.end(self.keys, self.end)


def _ending_of(
    ending: Ending,
    episode: Episode,
    resolver: Resolver,
    mentioned: Callable[[EntityMention], Entity],
    teller_about: Callable[..., Teller | None],
) -> _End | None:
    """Return an ending with its entities resolved; None if nothing is known of what it presumes."""
    stated = ending.stated
    at = episode.occurred_at
    end = End(stated.valid_to or at, at, episode.id, why=stated.why)
    if ending.source is None:
        about = partial(teller_about, overrules=stated.why != "corrected" and not is_assistant(episode))
        return _End(end, fact_id=stated.fact_id, teller_about=about)
    if stated.presumed and ending.target is not None and not resolver.ids_of(ending.target.canonical):
        return None
    source = mentioned(ending.source)
    target = None if ending.target is None else mentioned(ending.target)
    return _End(
        replace(end, teller=teller_about(source.id)),
        (source.id, ending.relation),
        target.id if target else None,
        teller_about=teller_about,
        others=stated.others,
        presumed=stated.presumed,
    )


def _dependent(slots: Iterable[tuple[str, str]]) -> dict[tuple[str, str], None]:
    """Return the sources and relations of the facts that end with those of others."""
    return {
        (source_id, DEPENDENT_RELATIONS[relation]): None
        for source_id, relation in slots
        if relation in DEPENDENT_RELATIONS
    }


def _keys(source_id: str, relation: str, target_id: str) -> list[EdgeKey]:
    """Return the keys of a fact under every edge type."""
    return [(source_id, target_id, relation, kind) for kind in EdgeType]
