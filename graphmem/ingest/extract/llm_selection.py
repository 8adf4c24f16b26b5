"""Selection of the grounded entities and edges of a model reply, within limits. Pure functions."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from itertools import islice
from typing import Any, TypeVar

from graphmem.errors import InvalidEntityName
from graphmem.ingest.extract.llm_grounds import FILLERS, Grounds, words
from graphmem.ingest.extract.llm_parse import EndedItem, by_episode, edges_in, ended_in, entities_in
from graphmem.ingest.extract.llm_prompt import speaker_name
from graphmem.ontology import ANNIVERSARIES, Ontology
from graphmem.protocols import (
    ExtractedEdge,
    ExtractedEnding,
    ExtractedEntity,
    Extraction,
    ExtractionRequest,
    Known,
    KnownFact,
)
from graphmem.text.date_patterns import A_MONTH, WEEKDAYS
from graphmem.text.dates import find_dates
from graphmem.text.names import is_description, may_be_same, numbers_differ
from graphmem.text.normalize import canonical, display_name, require_name
from graphmem.text.terms import stems
from graphmem.trust import role_kind

_BESIDE_DATES = frozenset(
    "monday tuesday wednesday thursday friday saturday sunday early mid late end around about before until "
    "morning noon afternoon evening am pm".split()
)

_ONCE = frozenset({"has_deadline", "scheduled_for"})
"""Relations to a single day, even if a reply states them without a plan."""


def _is_relative(alias: str, kind: str) -> bool:
    """Return whether an alias depends on who says it or when: "our house", and of a person also "the foreman".

    A thing may have a name such as "My Fitness Pal".
    """
    first, _, rest = alias.strip().partition(" ")
    if first.lower() in _POSSESSIVES:
        return kind == "person" or first.islower() or any(w.islower() and w not in FILLERS for w in rest.split())
    return kind == "person" and first.lower() in _ARTICLES and rest.islower()


def _is_short_form(short: Sequence[str], long: Sequence[str]) -> bool:
    """Return whether words are initials or beginnings of others: "VS" of "Visual Studio", "Uni" of "University"."""
    if len(short) == 1 < len(short[0]) and short[0] == "".join(word[0] for word in long):
        return True
    pairs = zip(short, long, strict=False)
    return len(short) == len(long) and all(len(one) > 2 and other.startswith(one) for one, other in pairs)


T = TypeVar("T")

_SPEAKER_WORDS = frozenset({"i", "me", "my", "myself", "mine", "speaker", "the speaker"})
_ADDRESSEE_WORDS = frozenset({"you", "your", "yourself", "addressee", "the addressee"})
_USER_WORDS = frozenset({"user", "the user"})
_I_AM_A_USER = re.compile(r"\bI(?:['’]?m| am| was) an? (?:[\w-]+ ){0,3}?user\b", re.IGNORECASE)
_PRONOUNS = frozenset(
    "he him his she her hers they them their theirs we our ours you your yours this that these those who someone "
    "somebody everyone everybody anyone anybody nobody himself herself themselves ourselves yourself".split()
)
_ALIAS_RELATIONS = frozenset(
    "alias_of same_as also_known_as known_as nickname_of has_nickname has_name goes_by called is_called "
    "is_named".split()
)
_POSSESSIVES = frozenset("her his its my our their your".split())
_ARTICLES = frozenset("a an that the this".split())
_PLACE_AND_PERSON = frozenset({"location", "person"})
_MOVES = ("mov", "relocat", "travel", "fly", "flew", "flies", "drove", "trip")
"""Beginnings of words of relations to a place: "moved_to", "plans_trip_to"."""
_YEARLY = frozenset("annual annually anniversary year yearly".split())
"""Words of relations to a date of each year, if it has none: "has_contract_year_start", "renews_yearly_on"."""
_YEAR = re.compile(r"(?<!\d)\d{4}(?!\d)")
_RECURRING = re.compile(
    r"\b(?:daily|weekly|monthly|(?:every|each)\s+(?:[\w-]+\s+)?(?:day|week|month|morning|afternoon|evening|night|"
    rf"{'|'.join(WEEKDAYS)}))",
    re.IGNORECASE,
)
_SINGLE = re.compile(rf"\b(?:next|this|coming|today|tonight|tomorrow|{A_MONTH.pattern}|\d{{4}})\b", re.IGNORECASE)
"""Words of a date that is a single day, also of what recurs: "the weekly sync is moved to 12 June"."""
_BOUNDS = ("_from", "_since", "_not_before")
"""Endings of relations to a date that isn't the day of anything: "in_force_from"; "due_before" is a deadline."""
_NO_PLACES = ("believ", "interest")
# limit on the examined items of a long reply; the rest is counted as over the limit
_EXAMINED_PER_PLACE = 50


@dataclass(frozen=True, slots=True)
class Limits:
    """Maximum number of entities and edges per episode."""

    entities: int
    edges: int


def select(
    answer: dict[str, Any] | list[Any], requests: Sequence[ExtractionRequest], ontology: Ontology, limits: Limits
) -> list[Extraction]:
    """Return for each request the entities, facts and ends of a reply that are grounded in them, within the limits.

    Reasons counted for dropped items: "ungrounded" (a name found neither in the episodes, their context nor what is
    known, and each fact with such an end), "limit", "short name", "malformed entity", "malformed edge", "malformed
    end", "unreadable date", "unknown number" (of a known fact).
    """
    speakers = {name for request in requests for name in _speakers(request)}
    grounds = Grounds.of(requests, speakers)
    known = {key: next(iter(kinds)) for key, kinds in _known_types(requests[0].known).items()}
    types: dict[str, str] = {}
    parts = by_episode(answer, [stems(f"{speaker_name(r.episode)} {r.episode.text}") for r in requests])
    places = {place for part in parts for place in _places(edges_in(part, Counter()), ontology)}
    aliases: dict[str, Sequence[str]] = {}  # of all episodes: an earlier one may use the name that a later one explains
    for part in parts:
        for entity in entities_in(part, Counter()):
            key = canonical(entity.name)
            if types.get(key, "concept") == "concept":
                types[key] = _type_of_former(entity, known, grounds) or entity.entity_type
            aliases.setdefault(canonical(entity.name), entity.aliases)
    return [
        _Selection(request, speakers, grounds, types | known, places, aliases, ontology, limits).run(part)
        for request, part in zip(requests, parts, strict=True)
    ]


def _known_types(known: Known) -> dict[str, dict[str, None]]:
    """Return the told types of the known things with a name; those of its bearers come before those of an alias."""
    types: defaultdict[str, dict[str, None]] = defaultdict(dict)
    typed = [name for name in known.names if name.type_stated]
    for names in ([(n, n.name) for n in typed], [(n, alias) for n in typed for alias in n.aliases]):
        for entity, name in names:
            types[canonical(name)][entity.entity_type] = None
    return dict(types)


def _type_of_former(entity: ExtractedEntity, known: Mapping[str, str], grounds: Grounds) -> str | None:
    """Return the known type of another name of an entity, unless one of both is a person and the other one a place.

    The other name is a form of this one, or a text tells of names: a firm isn't what somebody is who works there.
    """
    former = next(
        (
            kind
            for alias in entity.aliases
            if (kind := known.get(canonical(alias)))
            and (may_be_same(entity.name, alias, kind) or grounds.tells_of_names(entity.name, alias))
        ),
        None,
    )
    return None if {former, entity.entity_type} >= _PLACE_AND_PERSON else former


def _places(facts: Iterable[ExtractedEdge | KnownFact], ontology: Ontology) -> Iterator[str]:
    """Yield the canonical names that facts use as places."""
    for edge in facts:
        relation = ontology.relation(edge.relation)
        *others, last = relation.split("_")
        is_inside = last == "in" and not any(word.startswith(_NO_PLACES) for word in others)
        is_move = last in ("to", "from") and any(word.startswith(_MOVES) for word in others)
        if is_inside or is_move or ontology.signature(relation)[1] == "location":
            yield canonical(edge.target)


def _speakers(request: ExtractionRequest) -> Iterator[str]:
    yield from filter(None, (speaker_name(request.episode), *map(speaker_name, request.context)))
    if request.addressee:
        yield display_name(request.addressee)


_Key = tuple[str, str, str, bool]


class _Selection:
    def __init__(
        self,
        request: ExtractionRequest,
        speakers: Iterable[str],
        grounds: Grounds,
        types: Mapping[str, str],
        places: Collection[str],
        aliases: Mapping[str, Sequence[str]],
        ontology: Ontology,
        limits: Limits,
    ) -> None:
        episode = request.episode
        speaker = speaker_name(episode)
        addressee = display_name(request.addressee) if request.addressee else None
        is_user = role_kind(episode.role) in (None, "user")
        others = _I_AM_A_USER.sub("", episode.text)
        about_users = is_user and "user" in words(others)  # of what the speaker makes: "the user clicks twice"
        self._referents = {
            **dict.fromkeys(_SPEAKER_WORDS, speaker),
            **dict.fromkeys(_ADDRESSEE_WORDS, addressee),
            **dict.fromkeys(() if about_users else _USER_WORDS, speaker if is_user else addressee),
        }
        self._told_at = episode.occurred_at
        self._known = request.known
        self._people = {canonical(name) for name in speakers}
        self._grounds = grounds
        self._types = types
        self._places = places
        self._aliases = aliases
        self._known_types = _known_types(request.known)
        self._known_names = {canonical(name) for known in request.known.names for name in (known.name, *known.aliases)}
        self._known_places = set(_places(request.known.facts, ontology))
        known_short = {name for name in self._known_names if len(name) < 3}
        self._short_names = ontology.short_names | self._people | known_short
        self._ontology = ontology
        self._limits = limits
        self._dropped: Counter[str] = Counter()
        self._entities: dict[str, ExtractedEntity] = {}
        self._found_short: set[str] = set()
        self._needed: set[str] = set()
        self._edges = 0

    def run(self, answer: dict[str, Any]) -> Extraction:
        named: dict[str, ExtractedEntity] = {}
        for entity in self._head(entities_in(answer, self._dropped), self._limits.entities):
            self._add(entity, named)
        edges: dict[_Key, ExtractedEdge] = {}
        for edge in self._head(edges_in(answer, self._dropped, self._told_at), self._limits.edges):
            if (ends := self._ends(edge)) is not None:
                edge = self._until_its_day(replace(edge, source=ends[0], target=ends[1]))
                if edge.relation.lower() in _ALIAS_RELATIONS:
                    self._add_alias(edge, named)
                else:
                    edges.setdefault((canonical(ends[0]), edge.relation.lower(), canonical(ends[1]), edge.ended), edge)
        endings: list[ExtractedEnding] = []
        ended_items = ended_in(answer, self._dropped, told_at=self._told_at)
        for item in self._head(ended_items, self._limits.edges):
            ended = self._ended(item)
            if isinstance(ended, ExtractedEdge):
                edges.setdefault(
                    (canonical(ended.source), ended.relation.lower(), canonical(ended.target), True), ended
                )
            elif ended is not None and not self._comes_true(ended, edges.values()):
                endings.append(self._until_said_again(ended, edges.values()))
        kept = {key: edge for key, edge in sorted(edges.items(), key=self._rank) if self._has_room(edge, named)}
        self._dropped["limit"] += len(edges) - len(kept)
        for key, entity in named.items():
            if key in self._needed or self._reserve({key}):
                self._entities[key] = entity
            else:
                self._dropped["limit"] += 1
        return Extraction(
            tuple(self._entities.values()),
            tuple(edge for key, edge in edges.items() if key in kept),
            tuple(sorted((+self._dropped).items())),
            tuple(dict.fromkeys(endings)),
            short_names=frozenset(name for name in self._short_names | self._found_short if len(name) < 3),
        )

    def _told_with(self, ending: ExtractedEnding, edges: Iterable[ExtractedEdge]) -> Iterator[ExtractedEdge]:
        """Yield the facts of a reply that have the ends and the relation of what it ends, as over."""
        key = canonical(ending.source), ending.relation, canonical(ending.target or "")
        for edge in edges if ending.why == "over" else ():
            if (canonical(edge.source), self._ontology.relation(edge.relation), canonical(edge.target)) == key:
                yield edge

    def _comes_true(self, ending: ExtractedEnding, edges: Iterable[ExtractedEdge]) -> bool:
        """Return whether a reply ends a plan or rumor that it also states: the statement alone replaces it."""
        known = next((fact for fact in self._known.facts if fact.id == ending.fact_id), None)
        is_unsure = known is not None and known.certainty != "stated"
        return is_unsure and any(edge.certainty == "stated" for edge in self._told_with(ending, edges))

    def _until_said_again(self, ending: ExtractedEnding, edges: Iterable[ExtractedEdge]) -> ExtractedEnding:
        """Return an ending at the latest when the same fact begins with a new sentence, if both are of one day."""
        for edge in self._told_with(ending, edges):
            begin, end = edge.valid_from or self._told_at, ending.valid_to
            if end is not None and edge.valid_to is None and timedelta() < end - begin <= timedelta(days=1):
                return replace(ending, valid_to=begin)
        return ending

    def _ended(self, item: EndedItem) -> ExtractedEnding | ExtractedEdge | None:
        """Return the end of a known fact, or of one that is named by its source, relation and target."""
        if item.known is not None and (fact := self._fact(item.known, item)) is not None:
            return ExtractedEnding(fact.source, fact.relation, fact.target, fact.id, item.at, item.why)
        if item.known is not None and not (item.source and item.relation):
            self._dropped["unknown number"] += 1
            return None
        source, why = self._named(item.source)
        target, why_not = self._named(item.target, target=True) if item.target else (None, "")
        if source is None or (item.target and target is None):
            self._dropped[why or why_not] += 1
            return None
        if target is None or item.why != "over":
            return ExtractedEnding(source, item.relation, target, valid_to=item.at, why=item.why)
        return ExtractedEdge(source, item.relation, target, valid_to=item.at, ended=True)

    def _fact(self, number: int, item: EndedItem) -> KnownFact | None:
        """Return the known fact of a number; the only one with the named ends, if the one of the number has others."""
        facts = self._known.facts
        numbered = facts[number - 1] if 1 <= number <= len(facts) else None
        source, target = self._named(item.source)[0], self._named(item.target)[0]
        named = [fact for fact in facts if (fact.source, fact.target) == (source, target)]
        return named[0] if len(named) == 1 and numbered not in named else numbered

    def _until_its_day(self, edge: ExtractedEdge) -> ExtractedEdge:
        """Return an edge whose target is a date ahead as a state since it was told, until the end of that date.

        "The launch is scheduled for 2 June" is so from the day on which it is said, whatever the reply says. A birthday
        holds for good, and so do what recurs, what is in force from a day on, and a weekday, unless it is planned or a
        deadline.
        """
        relation = self._ontology.relation(edge.relation)
        if relation.endswith(_BOUNDS) or (_RECURRING.search(edge.fact) and not _SINGLE.search(edge.target)):
            return edge
        every_year = "every year" in edge.fact.lower() or not _YEARLY.isdisjoint(relation.split("_"))
        is_yearly = every_year and _YEAR.search(edge.target) is None
        is_anniversary = relation in ANNIVERSARIES or is_yearly
        day, *further = find_dates(edge.target, self._told_at, future=True) or (None,)
        if day is None:
            return edge
        is_habit = edge.certainty == "stated" and relation not in _ONCE
        if canonical(day.text) in WEEKDAYS and (further or is_habit):
            return edge  # every week: "Friday 12:00 to Monday 08:00", "closed on Sunday"; what is ahead is planned
        if day.begin <= self._told_at and not is_anniversary:
            return edge
        others = words(edge.target[: day.start] + edge.target[day.end :])
        if not all(word in FILLERS or word in _BESIDE_DATES or word.isdigit() for word in others):
            return edge
        begin = edge.valid_from
        if begin is not None and begin >= day.begin > self._told_at:
            begin = None
        if is_anniversary:
            return replace(edge, kind="state", valid_from=begin, valid_to=None)
        return replace(edge, kind="state", valid_from=begin, valid_to=edge.valid_to or day.until)

    def _add_alias(self, edge: ExtractedEdge, named: dict[str, ExtractedEntity]) -> None:
        """Make one end of "AC alias_of Alex Chen" another name of the other end: the known one, else the longer one."""
        one, other = edge.source, edge.target
        if (canonical(one) in self._types, len(one)) > (canonical(other) in self._types, len(other)):
            one, other = other, one
        key = canonical(other)
        kind = self._types.get(key) or self._types.get(canonical(one)) or edge.target_type or edge.source_type
        entity = named.get(key) or ExtractedEntity(other, self._type(key, kind or "concept"))
        named[key] = replace(entity, aliases=(*entity.aliases, one))
        named.pop(canonical(one), None)

    def _rank(self, item: tuple[_Key, ExtractedEdge]) -> tuple[float, bool]:
        """Return the sort key by which the facts that matter least are dropped first; ties keep the model's order."""
        edge = item[1]
        return -edge.confidence, not self._ontology.is_single_valued(self._ontology.relation(edge.relation))

    def _head(self, items: Iterable[T], places: int) -> Iterator[T]:
        items = iter(items)
        yield from islice(items, places * _EXAMINED_PER_PLACE)
        if rest := sum(1 for _ in items):
            self._dropped["limit"] += rest

    def _add(self, entity: ExtractedEntity, named: dict[str, ExtractedEntity]) -> None:
        name, reason = self._named(entity.name)
        if name is None:
            self._dropped[reason] += 1
        elif (key := canonical(name)) not in named:
            kind = self._type(key, entity.entity_type)
            named[key] = replace(entity, name=name, entity_type=kind, aliases=self._told(name, kind, entity.aliases))

    def _told(self, name: str, kind: str, aliases: Iterable[str]) -> tuple[str, ...]:
        """Return the aliases that are grounded names, without words such as "I" and "the user" for a speaker.

        An alias that looks like another thing needs a text that tells of names. "My wife" and "the foreman" are others
        for other speakers and at other times.
        """
        words_for_people = {*self._referents, *_USER_WORDS} - self._people
        names = (alias for alias in aliases if canonical(alias) not in words_for_people)
        names = (alias for alias in names if not _is_relative(alias, kind) or canonical(alias) in self._known_names)
        grounded = (alias for alias in names if self._named(alias)[0] is not None)
        return tuple(a for a in grounded if not self._is_other(name, kind, a) or self._grounds.tells_of_names(name, a))

    def _is_other(self, name: str, kind: str, alias: str) -> bool:
        """Return whether an alias looks like another thing: one that is known or listed, or that differs in a word.

        "Adobe Lightroom, also Adobe Photoshop"; "Ann Calloway, also Beth Calloway", but not "Beth Ortega", or a firm.
        """
        if may_be_same(name, alias, kind) or is_description(alias, kind):
            return False
        one, other = words(name), words(alias)
        if kind == "person":
            known = self._known_types.get(canonical(alias), {})
            is_thing = bool(known) and known.keys().isdisjoint(("person", "concept"))
            return is_thing or (len(one) > 1 < len(other) and one[-1] == other[-1])
        own, others = set(one) - FILLERS, set(other) - FILLERS
        if numbers_differ(name, alias, kind):
            return True
        if own & others and own - others and others - own:
            parts = [[word for word in said if word in own ^ others] for said in (one, other)]
            return not (_is_short_form(*parts) or _is_short_form(*reversed(parts)))
        keys = (canonical(name), canonical(alias))
        called = ({canonical(n) for n in (known.name, *known.aliases)} for known in self._known.names)
        return keys[1] in self._aliases or any(keys[1] in names and keys[0] not in names for names in called)

    def _named(self, raw: str, *, target: bool = False) -> tuple[str | None, str]:
        """Return the resolved name, or None and the reason to drop it.

        Common nouns needn't be in the text, except one, if there are no other words; for a target not even that.
        """
        word = canonical(raw)
        if (person := self._referents.get(word)) and word not in self._people:
            return person, ""
        if word in _PRONOUNS and word not in self._people and not raw.strip().isupper():
            return None, "ungrounded"
        try:
            shown, _ = require_name(raw, self._short_names)
        except InvalidEntityName:
            shown = display_name(raw)
            if not self._grounds.has_short(shown):
                return None, "short name"
            self._found_short.add(canonical(shown))
            return shown, ""
        is_thing = self._types.get(word, "person") != "person"  # models invent people, whose initials say little
        grounded = self._grounds.has_name(shown, initials=is_thing) or (target and self._grounds.has_proper(shown))
        return (shown, "") if grounded else (None, "ungrounded")

    def _type(self, key: str, stated: str) -> str:
        """Return the type that a name has in the memory, else the first one in the reply; "person" for a speaker.

        A person and a place of one name are two if facts use it as a place: Georgia, but not a person who was once
        called a place.
        """
        first = self._types.get(key, stated)
        if key in self._people and first in ("concept", "location"):
            first = "person"
        kinds = self._known_types.get(key, {first: None})
        used = key in self._places
        is_other = used if stated == "location" else key in self._known_places and not used
        is_other = is_other and _PLACE_AND_PERSON.issuperset((stated, *kinds))
        return stated if stated in kinds or is_other else next(iter(kinds))

    def _ends(self, edge: ExtractedEdge) -> tuple[str, str] | None:
        (source, why), (target, why_not) = self._named(edge.source), self._named(edge.target, target=True)
        if source is None or target is None:
            self._dropped[why or why_not] += 1
            return None
        return source, target

    def _has_room(self, edge: ExtractedEdge, named: Mapping[str, ExtractedEntity]) -> bool:
        """Reserve places for an edge and its ends; return whether the limits allow it.

        An end without a type isn't added as an entity and needs no place: an amount, a date, or a name that the writer
        resolves to a known entity, while an entity of type concept would be a different one.
        """
        ends = {canonical(edge.source): (edge.source, edge.source_type)}
        ends[canonical(edge.target)] = (edge.target, edge.target_type)
        kinds = {
            key: self._type(key, kind)
            for key, (_, stated) in ends.items()
            if (kind := stated or self._types.get(key) or ("person" if key in self._people else None))
        }
        if self._edges >= self._limits.edges or not self._reserve(kinds):
            return False
        self._edges += 1
        for key, kind in kinds.items():
            if key not in named and key not in self._entities:
                aliases = self._told(ends[key][0], kind, self._aliases.get(key, ()))
                self._entities[key] = ExtractedEntity(ends[key][0], kind, confidence=edge.confidence, aliases=aliases)
        return True

    def _reserve(self, keys: Iterable[str]) -> bool:
        """Reserve places for entities other than speakers and known ones; return whether there are enough."""
        needed = self._needed | set(keys) - self._people - self._known_names
        if len(needed) > self._limits.entities:
            return False
        self._needed = needed
        return True
