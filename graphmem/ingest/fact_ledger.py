"""Ledger of a write: applies the tellings of episodes to known facts and collects the rows to write."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial

from graphmem.inference.premises import find_compatible
from graphmem.ingest.supersession.decisions import decide, settle
from graphmem.ingest.supersession.rules import (
    DAY,
    DEPENDENT_RELATIONS,
    Compatible,
    FactSource,
    Teller,
    end_apart_from,
    is_moved,
    is_over,
    may_overrule,
    reopened,
    superseded,
    tellers_of,
    told_at,
    with_begin_of,
    with_sources,
    without_telling,
)
from graphmem.models import (
    Corroboration,
    Edge,
    EdgeEnd,
    EdgeExpiry,
    EdgeKey,
    Episode,
    Removal,
    Scope,
    end_of,
    ended,
    is_retracted,
    may_end,
    retracted,
    with_end,
)
from graphmem.models.base import END_OF_TIME
from graphmem.ontology import Ontology
from graphmem.protocols import EndingReason, GraphBackend
from graphmem.text.normalize import canonical
from graphmem.trust import speaker_of, trust_of

Slot = tuple[str, str]
Load = Callable[[Sequence[Edge]], Mapping[str, Sequence[FactSource]]]
Names = Callable[[Collection[str]], Mapping[str, str]]
TellerAbout = Callable[[str], Teller | None]
_EXPIRY = {"valid_to", "expired_at", "superseded_by", "end_reason", "ends"}
_CORROBORATION = {"confidence", "episode_ids"}


@dataclass(frozen=True, slots=True)
class End:
    """A stated end.

    Attributes
    ----------
    at, told_at
        When the fact ended, and when that was said.
    episode_id
        The episode that said it; empty if somebody ended the fact by hand.
    why
        "corrected" if the fact never held, "continues" if the ends told before are called off.
    teller
        Who said it; None if the speaker isn't known.
    """

    at: datetime
    told_at: datetime
    episode_id: str = ""
    why: EndingReason = "over"
    teller: Teller | None = None


class FactLedger:
    """Ledger that applies new facts to known ones and collects the resulting changes.

    Parameters
    ----------
    known
        Versions that the new facts may affect: all with the same keys, and all with the same (source, relation) of
        single-valued relations. Inferred facts are ignored: they neither confirm nor contradict stated ones.
    ontology
        Defines the single-valued relations.
    now
        Transaction time of this write.
    load
        Returns the episodes that state facts; called only where the times of telling decide.
    compatible
        Facts of single-valued relations that don't end each other, because one implies the other
        (`graphmem.inference.premises.find_compatible`).
    """

    def __init__(
        self,
        known: Iterable[Edge],
        ontology: Ontology,
        now: datetime,
        load: Load | None = None,
        compatible: Compatible | None = None,
    ) -> None:
        self._load = load
        self._compatible = compatible or {}
        self._ontology = ontology
        self._now = now
        self._known: dict[str, Edge] = {}  # as they were given
        self._rows: dict[str, Edge] = {}  # as they are after the tellings so far
        self._by_key: defaultdict[EdgeKey, dict[str, None]] = defaultdict(dict)
        self._by_slot: defaultdict[Slot, dict[str, None]] = defaultdict(dict)
        self._sources: dict[str, tuple[FactSource, ...]] = {}
        self._loaded: set[str] = set()  # known rows whose stored sources were read
        self._corrected: dict[tuple[str, Slot], Edge] = {}  # what an episode told to be wrong
        self._confirmed: set[str] = set()  # known rows that were told again in this write
        self._stated: defaultdict[tuple[EdgeKey, str], list[Edge]] = defaultdict(list)  # with the words of an episode
        self._told_ends: set[tuple[str, EdgeEnd]] = set()  # ids of facts, and the ends that this write tells of them
        for edge in (edge for edge in known if not edge.is_inferred):
            self._known[edge.id] = edge
            self._keep(edge)
            self._note_sentence(edge)

    # What to write ----------------------------------------------------------------------------------

    @property
    def created(self) -> tuple[Edge, ...]:
        """New rows, in order of addition."""
        return tuple(edge for i, edge in self._rows.items() if i not in self._known)

    @property
    def replaced(self) -> tuple[Edge, ...]:
        """Known rows that change in more than an end or a corroboration; those that aren't active come first."""
        changed = (edge for i, edge in self._rows.items() if i in self._known and self._is_replaced(edge))
        return tuple(sorted(changed, key=lambda edge: edge.is_active))

    @property
    def edges(self) -> tuple[Edge, ...]:
        """Rows to insert or to replace."""
        return (*self.replaced, *self.created)

    @property
    def expiries(self) -> tuple[EdgeExpiry, ...]:
        """Expiries of known rows."""
        return tuple(
            EdgeExpiry(edge.id, edge.valid_to, edge.expired_at, edge.superseded_by, edge.end_reason, edge.ends)
            for edge in self._changed()
            if edge.valid_to is not None and edge.expired_at is not None and self._known[edge.id].is_active
        )

    @property
    def corroborations(self) -> tuple[Corroboration, ...]:
        """Corroborations of known rows."""
        found: list[Corroboration] = []
        for edge in self._changed():
            known = self._known[edge.id]
            if _differing(edge, known) & _CORROBORATION:
                before = set(known.episode_ids)
                added = tuple(i for i in edge.episode_ids if i not in before)
                found.append(Corroboration(edge.id, edge.confidence, added))
        return tuple(found)

    def _changed(self) -> list[Edge]:
        """Return the known rows that change only in an end or a corroboration."""
        changed = (edge for i, edge in self._rows.items() if i in self._known and edge is not self._known[i])
        return [edge for edge in changed if edge != self._known[edge.id] and not self._is_replaced(edge)]

    def _is_replaced(self, edge: Edge) -> bool:
        """Return whether a known row changes in more than an end that it gets and a corroboration."""
        known = self._known[edge.id]
        if edge is known or edge == known:
            return False
        if set(known.episode_ids) - set(edge.episode_ids):
            return True
        closes = known.is_active and edge.valid_to is not None and edge.expired_at is not None
        return bool(_differing(edge, known) - _CORROBORATION - (_EXPIRY if closes else set()))

    @property
    def supported(self) -> int:
        """Number of known rows that were told again."""
        return len(self._confirmed)

    @property
    def ended(self) -> int:
        """Number of known rows that got an end."""
        changed = ((edge, self._known[i]) for i, edge in self._rows.items() if i in self._known)
        return sum(edge.valid_to not in (None, known.valid_to) for edge, known in changed)

    def restate(self, names: Names) -> tuple[Removal, ...]:
        """Give each changed row a sentence that its first episode told, so that forgetting that one removes it.

        A version that is derived from tellings of another row had that row's sentence. One whose end has moved gets the
        sentence that tells the end that counts ("funded until September"). Call it after all tellings.

        Parameters
        ----------
        names
            Returns the names of entities by id; used for rows whose episodes have no known sentence.

        Returns
        -------
        tuple
            Removals of the index entries of known rows whose sentence changed, or that are retracted now.
        """
        over = {i for i, row in self._known.items() if is_retracted(self._rows[i]) and not is_retracted(row)}
        touched = (row for i, row in self._rows.items() if row is not self._known.get(i))
        changed = [row for row in touched if _tells_another_end(row) or not self._is_own(row)]
        entities = {entity for row in changed for entity in (row.source_id, row.target_id)}
        called = names(entities) if entities else dict[str, str]()
        for row in changed:
            told = self._sentence_of(row)
            if told is None:
                plain = with_sources(row, row.episode_ids, lambda i: called.get(i, ""), plain=True)
                self._rows[row.id] = plain if not self._is_own(row) else plain.changed(properties=row.properties)
            else:
                episodes = tuple(dict.fromkeys((told.episode_ids[0], *row.episode_ids)))
                self._rows[row.id] = row.changed(episode_ids=episodes, fact=told.fact, properties=told.properties)
        outdated = over | {row.id for row in changed if row.id in self._known}
        return tuple(Removal("index", i, "fact") for i in sorted(outdated))

    def _sentence_of(self, row: Edge) -> Edge | None:
        """Return the telling whose sentence a row gets; None if no known sentence fits."""
        told = [self._stated[row.key, i][0] for i in row.episode_ids if (row.key, i) in self._stated]
        if not _tells_another_end(row):
            return next(iter(told), None)
        fitting = [each for each in told if each.valid_to == row.valid_to]
        until = row.valid_to
        # what was over sooner when that was told keeps its sentence, which may say more: "40,000 this year"
        was_over = until is not None and all(until < end.at or until == end.at <= end.told_at for end in row.ends)
        return fitting[-1] if fitting else next(iter(told), None) if was_over else None

    def _note_sentence(self, edge: Edge) -> None:
        if edge.episode_ids:
            self._stated[edge.key, edge.episode_ids[0]].append(edge)

    def _is_own(self, edge: Edge) -> bool:
        """Return whether the first episode of a row told its sentence."""
        told = self._stated.get((edge.key, edge.episode_ids[0]), ()) if edge.episode_ids else (edge,)
        return any((row.fact, row.properties) == (edge.fact, edge.properties) for row in told)

    def prepare(self, edges: Iterable[Edge]) -> None:
        """Load in one read what `add` needs of known facts for these tellings."""
        met = ((edge, self._met_by(edge)) for edge in edges)
        self._load_sources([row for edge, known in met if _depends_on_sources(edge, known) for row in known])

    # Tellings ---------------------------------------------------------------------------------------

    def add(self, edge: Edge, *, teller: Teller | None = None) -> str:
        """Add a telling as a new fact; return the id of the row that represents it."""
        single = self._ontology.is_single_valued(edge.relation)
        edge = self._in_place_of_wrong(edge)
        known = self._met_by(edge)
        if _depends_on_sources(edge, known):
            self._load_sources(known)
        told = tuple(FactSource(i, told_at(edge), teller) for i in edge.episode_ids)
        sources = {e.id: self._sources.get(e.id, ()) for e in known} | {edge.id: told}
        self._note_sentence(edge)
        decision = decide(known, edge, sources, single_valued=single, now=self._now, compatible=self._compatible)
        self._record(decision.edges)
        self._told_ends.update((decision.holder, end) for end in edge.ends)
        self._confirmed.update({decision.holder} & self._known.keys())
        held = self._sources.get(decision.holder, ())
        self._sources[decision.holder] = (*held, *(source for source in told if source not in held))
        return decision.holder

    def end(self, keys: Iterable[EdgeKey], end: End) -> bool:
        """End the facts with these keys; return whether one was known by then, even if it was over already.

        If the end is not after the beginning of the fact, which is often only the time of its first telling, the fact
        ends when the end was told. A fact that begins after both times is a canceled plan and ends if it was told by
        then, else it is not affected.
        """
        known = [edge for key in keys for edge in self._rows_of(key) if _was_known(edge, end)]
        if end.why == "continues":
            known = sorted(known, key=lambda edge: edge.valid_from)[-1:]
        for edge in known:
            if is_retracted(edge) or not any(_was_over_before(edge, other, end) for other in known):
                self._end(edge, end)
        return bool(known)

    def end_slot(self, slot: Slot, end: End, *, kept: str | None = None) -> bool:
        """End the facts of a relation that held when the end was told, except those with the target `kept`.

        Returns whether there were any.
        """
        rows = [row for i in self._by_slot[slot] if (row := self._rows[i]).target_id != kept]
        held = [edge for edge in rows if _held_when_told(edge, end)]
        again = [edge for edge in rows if _is_ended_by(edge, end) and not _held_when_told(edge, end)]
        for edge in (*held, *again):
            self._end(edge, end)
        return bool(held or again)

    def end_others(self, slot: Slot, target_id: str | None, end: End, teller_about: TellerAbout) -> None:
        """End the facts of a relation with this target, except that of the source of the slot."""
        source_id, relation = slot
        same = [row for row in self._rows.values() if (row.relation, row.target_id) == (relation, target_id)]
        for edge in same:
            if edge.source_id != source_id and _was_known(edge, end):
                self._end(edge, replace(end, teller=teller_about(edge.source_id)))

    def end_fact(self, edge_id: str, end: End, teller_about: TellerAbout) -> bool:
        """End a known fact by its id; return whether it was known.

        `teller_about` returns who tells the end, given the id of the entity that the fact is about.
        """
        edge = self._rows.get(edge_id)
        if edge is None or not _was_known(edge, end):
            return False
        self._end(edge, replace(end, teller=teller_about(edge.source_id)))
        return True

    def end_edge(self, edge_id: str, by: Edge, successor: str, *, teller: Teller | None = None) -> None:
        """End a known fact that a new one contradicts, unless it is surer or was told later, or the teller may not."""
        edge = self._rows.get(edge_id)
        if edge is None or edge.id == successor or is_retracted(edge) or not may_end(by.certainty, edge.certainty):
            return
        if not self._may_overrule(teller, edge):
            return
        if (closed := superseded(edge, by, successor, self._now)) is not None:
            self._record([closed])

    def retract(self, edge_id: str, reason: str = "corrected") -> None:
        """Close a known fact at its beginning, so that it never held."""
        self._record([retracted(self._rows[edge_id], self._now, reason)])

    def change(self, edge: Edge) -> None:
        """Record a changed version of a known fact, and derive the others of its slot again."""
        self._record([edge])
        replaced = (row for row in self._rows_of(edge.key) if row.superseded_by == edge.id)
        if self._ontology.is_single_valued(edge.relation) or any(replaced):
            self._settle(edge)

    def reopen(self, edge_id: str, by: Collection[str]) -> None:
        """Take back the ends that these episodes and facts brought a known fact, except those told in this write."""
        edge = self._rows[edge_id]
        opened = edge.without_ends(by, [end for i, end in self._told_ends if i == edge_id])
        if opened != edge and not (is_retracted(edge) and edge.end_reason == "replaced"):  # part of another version
            self._record([opened])
            self._settle(opened)

    def narrow(self, edge_id: str, episode_ids: Collection[str]) -> None:
        """Take episodes from a known fact that they don't state any more, unless it was told again in this write."""
        if edge_id in self._confirmed:
            return
        edge = self._rows[edge_id]
        self._load_sources([edge])
        sources = self._sources.get(edge_id, ())
        removed = {source.episode_id: source.told_at for source in sources if source.episode_id in episode_ids}
        left = [source for source in sources if source.episode_id not in episode_ids]
        edge = edge.changed(episode_ids=tuple(i for i in edge.episode_ids if i not in episode_ids))
        self.change(without_telling(edge, removed, left))

    # Rows -------------------------------------------------------------------------------------------

    def _settle(self, edge: Edge) -> None:
        """Derive the versions of a fact, and of the others of its slot, from their tellings again."""
        known, single = self._met_by(edge), self._ontology.is_single_valued(edge.relation)
        self._load_sources(known)
        settled = settle(known, self._sources, single_valued=single, now=self._now, compatible=self._compatible)
        self._record(settled)

    def _end(self, edge: Edge, end: End) -> None:
        """Apply an end to a fact, unless its teller may not end it."""
        if _is_ended_by(edge, end):  # its episode is extracted again: all ends that it stated stay stated
            self._told_ends.update((edge.id, each) for each in edge.ends if each.by == end.episode_id)
        if not self._may_overrule(end.teller, edge):
            return
        if end.why == "continues":
            self._continue(edge, end)
            return
        stated = EdgeEnd(by=end.episode_id, at=_end_time(edge, end), told_at=end.told_at)
        self._told_ends.add((edge.id, stated))
        is_called_off = end.why == "over" and end_of((*edge.ends, stated)) is None
        if is_called_off:
            self._record([with_end(edge, stated)])
        elif end.why == "corrected":
            self._end_as_wrong(edge, stated)
        elif edge.valid_to is not None and edge.valid_to <= stated.at:
            self._end_again(edge, stated)
        else:
            self._end_running(edge, stated)
        still_held = not is_called_off and end.told_at < (edge.valid_to or end.told_at + DAY)
        if end.why == "over" and (still_held or _is_ended_by(edge, end)):
            self._end_dependent(edge, replace(end, at=stated.at))

    def _continue(self, edge: Edge, end: End) -> None:
        """Call off the ends of a state that were told by then, and those of what ended with it (rules 3 and 10)."""
        called_off = EdgeEnd(by=end.episode_id, at=END_OF_TIME, told_at=end.told_at)
        before = {each.by for each in edge.ends if each.told_at <= end.told_at}
        if edge.kind == "event" or edge.superseded_by is not None or is_over(edge) or not (before or edge.is_active):
            return
        self._told_ends.add((edge.id, called_off))
        if before:
            self.change(with_end(edge, called_off).without_end())
        else:  # an end that was told before may still arrive
            self._record([with_end(edge, called_off)])
        relation = DEPENDENT_RELATIONS.get(edge.relation, "")
        for row in [self._rows[i] for i in self._by_slot[edge.source_id, relation]]:
            if not before.isdisjoint(each.by for each in row.ends):
                self._continue(row, end)

    def _end_dependent(self, edge: Edge, end: End) -> None:
        """End what ends with a fact that held and was told with it: as what somebody worked, with the job (rule 10)."""
        if (relation := DEPENDENT_RELATIONS.get(edge.relation)) is None:
            return
        for row in [self._rows[i] for i in self._by_slot[edge.source_id, relation]]:
            told_together = not set(edge.episode_ids).isdisjoint(row.episode_ids)
            if told_together and row.valid_from < end.at and (_held_when_told(row, end) or _is_ended_by(row, end)):
                self._end(row, end)

    def _end_as_wrong(self, edge: Edge, stated: EdgeEnd) -> None:
        """Retract a fact that was told to be wrong; what its episode tells instead begins where it began (rule 8)."""
        self._corrected[stated.by, (edge.source_id, edge.relation)] = edge
        told = with_end(edge, stated)
        if is_retracted(edge):  # told to be wrong before: it stays so if only that is forgotten
            self._record([told])
        else:
            self.change(retracted(told, self._now, "corrected"))

    def _end_again(self, edge: Edge, stated: EdgeEnd) -> None:
        """Note an end of a fact that had ended by then, which moves the known one if that was planned (rule 3).

        A fact that was told as past is told again by such an end: "I used to work at Aalto", said twice.
        """
        episodes = (*edge.episode_ids, stated.by) if stated.by and is_over(edge) else edge.episode_ids
        told = with_end(edge.changed(episode_ids=tuple(dict.fromkeys(episodes))), stated)
        self._record([ended(told, stated.at, self._now, "over") if is_moved(edge, told.ends) else told])

    def _end_running(self, edge: Edge, stated: EdgeEnd) -> None:
        """End a fact that holds or ends later; its tellings from after the end was told become another version.

        "I left Aalto", told in May but read only now, ends the job; "I work at Aalto", told in June, is another one.
        """
        if len(edge.episode_ids) > 1:
            self._load_sources([edge])
        again = reopened(edge, stated.told_at, self._sources.get(edge.id, ()), self._now)
        later = set[str]() if again is None else set(again.episode_ids)
        edge = edge.stated_by([i for i in edge.episode_ids if i not in later])
        over = ended(with_end(edge, stated), stated.at, self._now, "over")
        self._record([over] if again is None else [over, again])
        if is_retracted(over):  # called off before it began: what it had ended goes on
            self.change(over)

    def _in_place_of_wrong(self, edge: Edge) -> Edge:
        """Give a correction the beginning of the fact that it corrects, if there is one (rule 8).

        "Not in March, in April" begins when March was told; "in April since the 5th" has a beginning of its own, and so
        has what was over before that: "no, that was last year".
        """
        for episode_id in edge.episode_ids:
            wrong = self._corrected.get((episode_id, (edge.source_id, edge.relation)))
            if wrong is not None and edge.valid_from_assumed:
                begun = with_begin_of(edge, wrong)
                edge = begun if wrong.valid_from_assumed else begun.changed(told_at=edge.told_at)
        return edge

    def _may_overrule(self, teller: Teller | None, edge: Edge) -> bool:
        """Return whether a teller may end a fact (rule 5); who told it is read only if that matters."""
        if teller in (None, "subject"):
            return True
        self._load_sources([edge])
        return may_overrule(teller, tellers_of(edge, self._sources))

    def _load_sources(self, edges: Sequence[Edge]) -> None:
        """Read the stored sources of the facts whose sources haven't been read yet."""
        missing = {e.id: e for e in edges if e.id in self._known and e.id not in self._loaded and e.episode_ids}
        if missing and self._load is not None:
            self._loaded.update(missing)
            for i, found in self._load(list(missing.values())).items():
                told = {source.episode_id: source for source in (*found, *self._sources.get(i, ()))}
                self._sources[i] = tuple(told.values())

    def _met_by(self, edge: Edge) -> list[Edge]:
        """Return the versions that a telling may affect."""
        if self._ontology.is_single_valued(edge.relation):
            return [self._rows[i] for i in self._by_slot[edge.source_id, edge.relation]]
        return self._rows_of(edge.key)

    def _rows_of(self, key: EdgeKey) -> list[Edge]:
        return [self._rows[i] for i in self._by_key[key]]

    def _record(self, edges: Sequence[Edge]) -> None:
        """Keep changed and new rows, each with the sources of its episodes among those of its key."""
        told = {s.episode_id: s for edge in edges for i in self._by_key[edge.key] for s in self._sources.get(i, ())}
        for edge in edges:
            self._keep(edge)
            if sources := tuple(told[i] for i in edge.episode_ids if i in told):
                self._sources[edge.id] = sources

    def _keep(self, edge: Edge) -> None:
        self._rows[edge.id] = edge
        self._by_key[edge.key][edge.id] = None
        self._by_slot[edge.source_id, edge.relation][edge.id] = None


# Cases --------------------------------------------------------------------------------------------


def _tells_another_end(row: Edge) -> bool:
    """Return whether the first episode of a fact, which told its sentence, stated another end than an episode later."""
    told = {end.at for end in row.ends if end.by in row.episode_ids[:1]}
    by_hand = {end.at for end in row.ends if not end.by}
    counts = row.superseded_by is None and not is_retracted(row)
    return counts and bool(told) and (row.valid_to or END_OF_TIME) not in told | by_hand


def _depends_on_sources(edge: Edge, known: Sequence[Edge]) -> bool:
    """Return whether all tellings matter: for a stated end, or among facts that differ, also in their certainty.

    A plain repetition doesn't need them.
    """
    if edge.valid_to is not None or any(end_apart_from(other, ()) is not None for other in known):
        return True
    return any((other.key, other.certainty) != (edge.key, edge.certainty) for other in known)


def _end_time(edge: Edge, end: End) -> datetime:
    """Return when an end ends a fact (rules 3 and 8).

    That is where the fact began if it is wrong, or a plan that was given up before its beginning. Another fact that
    began no earlier than its end, often only as that was when it was first told, ended when the end was told: "I left
    in January", told in March of a job that was first told in February, ends it in March.
    """
    if end.why == "corrected":
        return edge.valid_from
    if end.at > edge.valid_from:
        return end.at
    return edge.valid_from if edge.certainty == "plan" else max(end.told_at, edge.valid_from)


def _held_when_told(edge: Edge, end: End) -> bool:
    """Return whether a fact held when an end was told."""
    return edge.valid_from < end.told_at and (edge.valid_to is None or edge.valid_to > end.told_at)


def _was_known(edge: Edge, end: End) -> bool:
    """Return whether an end may be about a fact: it was known by then, and isn't retracted by anything else.

    "I left Aalto", told in March, isn't about a job there that began in June, unless that was announced before March.
    """
    begins = told_at(edge) if edge.valid_from_assumed and not is_over(edge) else edge.valid_from
    had_begun = begins <= max(end.at, end.told_at)
    was_told = told_at(edge) <= end.told_at
    is_wrong_again = end.why == "corrected" and edge.end_reason == "corrected"
    return (had_begun or was_told) and (not is_retracted(edge) or is_wrong_again or _is_ended_by(edge, end))


def _was_over_before(edge: Edge, other: Edge, end: End) -> bool:
    """Return whether a version was over before another one began, so that an end that is told of it then is no news."""
    return edge.valid_to is not None and edge.valid_to <= min(end.at, other.valid_from) and not is_retracted(other)


def _is_ended_by(edge: Edge, end: End) -> bool:
    """Return whether the episode of an end has ended a fact before: it is extracted again."""
    return bool(end.episode_id) and any(each.by == end.episode_id for each in edge.ends)


def _differing(edge: Edge, other: Edge) -> set[str]:
    """Return the names of the fields in which two rows differ."""
    return {name for name in Edge.model_fields if getattr(edge, name) != getattr(other, name)}


# Reading from a store -----------------------------------------------------------------------------


def teller_of(episode: Episode, *, own: bool) -> Teller | None:
    """Return who tells a fact in an episode; `own` says whether it is about the speaker."""
    if trust_of(episode) != "trusted":
        return "external"
    if speaker_of(episode) is None:
        return None
    return "subject" if own else "other"


def open_ledger(
    backend: GraphBackend, scope: Scope, ontology: Ontology, known: Mapping[str, Edge], now: datetime
) -> FactLedger:
    """Return a ledger of stored versions, given by id, that reads their episodes where these decide."""
    load = partial(episode_sources, backend, scope)
    return FactLedger(known.values(), ontology, now, load, find_compatible(backend, scope, known))


def entity_names(backend: GraphBackend, scope: Scope, entity_ids: Collection[str]) -> dict[str, str]:
    """Return the names of entities, by id."""
    return {i: entity.name for i, entity in backend.get_entities([scope], list(entity_ids)).items()}


def canonical_names(backend: GraphBackend, scope: Scope, entity_ids: Sequence[str]) -> set[tuple[str, str]]:
    """Return (entity id, name) for the names and aliases of some entities, in canonical form."""
    names = {(e.id, e.canonical_name) for e in backend.get_entities([scope], entity_ids).values()}
    return names | {(alias.entity_id, alias.alias) for alias in backend.find_aliases([scope], entity_ids)}


def episode_sources(
    backend: GraphBackend, scope: Scope, edges: Sequence[Edge], named: Mapping[str, Iterable[str]] | None = None
) -> dict[str, list[FactSource]]:
    """Return the episodes that state facts, by fact, and who tells it in each.

    `named` are the names of entities, by id, where they differ from those in the store.
    """
    ids = list(dict.fromkeys(i for edge in edges for i in edge.episode_ids))
    episodes = backend.get_episodes([scope], ids) if ids else {}
    names = {(i, name) for i, those in (named or {}).items() for name in those}
    if about := list({edge.source_id for edge in edges} - (named or {}).keys()):
        names |= canonical_names(backend, scope, about)

    def source(edge: Edge, episode: Episode) -> FactSource:
        speaker = speaker_of(episode)
        own = speaker is not None and (edge.source_id, canonical(speaker)) in names
        return FactSource(episode.id, episode.occurred_at, teller_of(episode, own=own))

    return {e.id: [source(e, episodes[i]) for i in e.episode_ids if i in episodes] for e in edges}
