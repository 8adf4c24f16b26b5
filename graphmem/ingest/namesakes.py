"""People with the same first name, told apart by whose relatives or acquaintances they are, and who a first name means.

For extractors that don't read what is known; a language model that does names such people itself.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from graphmem.models import EdgeQuery, Episode, EpisodeQuery, Scope, is_retracted
from graphmem.protocols import ExtractedEdge, Extraction, GraphBackend
from graphmem.text.kin import KIN, KIN_PREFIXES, PLAIN_KIN, has
from graphmem.text.normalize import canonical

_KINDS = {
    "sibling": "brother sister sibling twin",
    "parent": "dad daddy father stepfather mom mama mum mother stepmother parent",
    "child": "son daughter child kid baby stepson stepdaughter",
    "grandparent": "grandfather grandpa grandmother grandma grandparent",
    "grandchild": "grandchild grandson granddaughter",
    "relative": "uncle aunt nephew niece cousin",
    "partner": "partner boyfriend girlfriend husband wife spouse fiancé fiancée",
}
_KIND_OF = {
    **dict.fromkeys(KIN, "acquaintance"),
    **{noun: kind for kind, nouns in _KINDS.items() for noun in nouns.split()},
}
_RELATIONS = {
    **{has(noun): kind for noun, kind in _KIND_OF.items()},
    "married_to": "partner",
    "is_engaged_to": "partner",
}
"""Relation to a person → kind of the tie. One person has only one kind of tie to another one."""
_NOUNS = "|".join((*PLAIN_KIN, *(noun for noun in _KIND_OF if noun not in KIN)))
_INTRODUCED = re.compile(
    rf"\b((?:{'|'.join(KIN_PREFIXES[1:])})?(?:{_NOUNS})(?:-in-law| in law)?)"
    r"(?:,|\s+named|\s+called)?\s+([^\W\d_]+)",
    re.IGNORECASE,
)
_MOST = 10  # entities examined for each name
_TIES = 1000  # ties examined for all names
_TURNS = 50  # turns of a session examined for who was meant last

_Tie = tuple[str, str]  # canonical name of the other person, kind


def tell_apart(
    backend: GraphBackend, scope: Scope, episodes: Sequence[Episode], results: Sequence[Extraction | Exception]
) -> list[Extraction | Exception]:
    """Return extractions in which people with the same first name have different names.

    After "my brother Alex", the Alex of "my colleague Alex" is "Alex (Maya's colleague)". A first name alone then is
    who was named last in the session; if nobody was, what is said of it is dropped and counted as "ambiguous name".
    After "Dana Smith", Dana is her in the same session, unless it names another one or a Dana is known.

    Parameters
    ----------
    backend, scope
        Store and scope of the episodes.
    episodes
        The episodes, in the order in which they were told.
    results
        Their extractions, or errors, which are returned unchanged.
    """
    names = [_first_names(e, r) if isinstance(r, Extraction) else () for e, r in zip(episodes, results, strict=True)]
    if not any(names):
        return list(results)
    people = _People(backend, scope, {name for some in names for name in some})
    return [
        people.renamed(episode, result, some) if isinstance(result, Extraction) else result
        for episode, result, some in zip(episodes, results, names, strict=True)
    ]


def _first_names(episode: Episode, found: Extraction) -> tuple[str, ...]:
    """Return the names of persons of one word, except that of the speaker."""
    speaker = canonical(episode.speaker or "")
    return tuple(name for name in _persons(found) if name.isalpha() and canonical(name) != speaker)


def _persons(found: Extraction) -> tuple[str, ...]:
    """Return the names of persons."""
    try:
        persons = [entity.name for entity in found.entities if entity.entity_type == "person"]
        for edge in found.edges:
            persons += [edge.source] if edge.source_type == "person" else []
            persons += [edge.target] if edge.target_type == "person" else []
        return tuple(dict.fromkeys(str(name) for name in persons))
    except (AttributeError, TypeError):
        return ()  # an invalid result of a plugin, which is reported when it is interpreted


class _People:
    """The known people of some first names, and who was named last in each session."""

    def __init__(self, backend: GraphBackend, scope: Scope, names: Iterable[str]) -> None:
        self._backend, self._scope = backend, scope
        self._named: dict[tuple[str | None, str], str] = {}
        keys = sorted({canonical(name) for name in names})
        hits = backend.search_entities([scope], words=keys, phrases=keys, limit=_MOST * len(keys))
        self._ids: dict[str, str] = {}
        self._known: defaultdict[str, dict[str, set[_Tie]]] = defaultdict(dict)
        self._full: defaultdict[str, dict[str, str]] = defaultdict(dict)  # first name → id → full name
        self._told: defaultdict[tuple[str | None, str], set[str]] = defaultdict(set)
        self._read: set[tuple[str | None, str]] = set()
        for hit in hits:
            first = hit.alias or hit.entity.canonical_name.partition(" (")[0]
            if hit.entity.entity_type != "person":
                continue
            if first in keys:
                self._known[first][hit.entity.name] = set()
                self._ids[hit.entity.id] = hit.entity.name
            elif (first := _first_of(hit.entity.name)) in keys:
                self._full[first][hit.entity.id] = hit.entity.name
        self._add_ties()

    def _add_ties(self) -> None:
        query = EdgeQuery(target_ids=tuple(self._ids), relations=tuple(_RELATIONS), versions="all")
        edges = self._backend.find_edges([self._scope], query, limit=_TIES) if self._ids else []
        others = self._backend.get_entities([self._scope], list({edge.source_id for edge in edges}))
        for edge in edges:
            if edge.source_id not in others or is_retracted(edge):
                continue
            tie = (others[edge.source_id].canonical_name, _RELATIONS[edge.relation])
            for people in self._known.values():
                if (ties := people.get(self._ids[edge.target_id])) is not None:
                    ties.add(tie)

    def renamed(self, episode: Episode, found: Extraction, names: Iterable[str]) -> Extraction:
        """Return an extraction with the names of those who are meant, without what could be about several people."""
        for full in (*_persons(found), episode.speaker or ""):
            if first := _first_of(full):
                self._told[episode.session_id, first].add(full)
        if not names:
            return found
        introduced = {
            (canonical(name), _KIND_OF.get(noun.lower(), "acquaintance")): noun.lower()
            for noun, name in _INTRODUCED.findall(episode.text)
        }
        for name in names:
            key = canonical(name)
            if (full := self._full_name(episode, key)) is not None:
                found = _with_person(found, name, full)
                continue
            meant: dict[str, None] = {}
            edges: list[ExtractedEdge] = []
            for edge in found.edges:
                if _is_tie_to(name, edge):
                    kind = _RELATIONS[edge.relation]
                    person = self._person(name, edge.source, kind, introduced.get((key, kind)))
                    meant[person] = None
                    edge = _with_name(edge, name, person)
                edges.append(edge)
            found = replace(found, edges=tuple(edges))
            one = next(iter(meant)) if len(meant) == 1 else None if meant else self._meant(episode, key)
            if one is not None:
                found = _with_person(found, name, one)
                self._named[episode.session_id, key] = one
            elif len(self._known[key]) > 1:
                found = _without(found, name)
        return found

    def _person(self, name: str, owner: str, kind: str, noun: str | None) -> str:
        """Return the name of the person with a tie to an owner; a new one if `noun` introduces somebody else."""
        people, tie = self._known[canonical(name)], (canonical(owner), kind)
        same = [person for person, ties in people.items() if tie in ties]
        free = [person for person, ties in people.items() if not any(other == tie[0] for other, _ in ties)]
        person = next(iter(same or free or ([] if noun else list(people))), None)
        if person is None:
            person = f"{name} ({owner}'s {noun})" if people else name
        people.setdefault(person, set()).add(tie)
        return person

    def _meant(self, episode: Episode, key: str) -> str | None:
        """Return which of several people was named last in the session of an episode; None if nobody was."""
        people = self._known[key]
        if len(people) < 2 or episode.session_id is None:
            return None
        if (named := self._named.get((episode.session_id, key))) is not None:
            return named
        ids = [i for i, person in self._ids.items() if person in people]
        last = next((some for some in self._named_before(episode, ids) if some), set[str]())
        return self._ids[next(iter(last))] if len(last) == 1 else None

    def _named_before(self, episode: Episode, ids: Sequence[str]) -> Iterator[set[str]]:
        """Yield which of these entities each earlier turn of the session names, newest first."""
        query = EpisodeQuery(session_id=episode.session_id, before=episode.id)
        turns = self._backend.find_episodes([self._scope], query, limit=_TURNS, newest_first=True)
        mentions = self._backend.find_mentions([self._scope], entity_ids=ids, episode_ids=[turn.id for turn in turns])
        named_in: defaultdict[str, set[str]] = defaultdict(set)
        for mention in mentions:
            named_in[mention.episode_id].add(mention.entity_id)
        yield from (named_in[turn.id] for turn in turns)

    def _full_name(self, episode: Episode, key: str) -> str | None:
        """Return the full name of the only person with this first name in the session; None if there are several."""
        if self._known[key] or episode.session_id is None:
            return None
        told = self._told[episode.session_id, key]
        if (known := self._full[key]) and (episode.session_id, key) not in self._read:
            self._read.add((episode.session_id, key))  # the episodes of this call add to it themselves
            told |= {known[i] for some in self._named_before(episode, list(known)) for i in some}
        return next(iter(told)) if len(told) == 1 else None


def _first_of(full: str) -> str:
    """Return the first word of a name of several capitalized words in canonical form, "" of any other name."""
    words = full.split()
    return canonical(words[0]) if len(words) > 1 and all(word.istitle() for word in words) else ""


def _is_tie_to(name: str, edge: ExtractedEdge) -> bool:
    return edge.target == name and edge.relation in _RELATIONS and not edge.ended


def _is_of(text: str, name: str) -> bool:
    """Return whether a name is that of a person, or of something of theirs: "Alex's car"."""
    return text == name or text.startswith(f"{name}'s ")


def _with_name(edge: ExtractedEdge, name: str, person: str) -> ExtractedEdge:
    source, target = (
        person + end.removeprefix(name) if _is_of(end, name) else end for end in (edge.source, edge.target)
    )
    if (source, target) == (edge.source, edge.target):
        return edge
    fact = re.sub(rf"\b{name}\b", lambda _: person, edge.fact)
    return replace(edge, source=source, target=target, fact=fact)


def _with_person(found: Extraction, name: str, person: str) -> Extraction:
    if person == name:
        return found
    return replace(
        found,
        entities=tuple(
            replace(entity, name=person + entity.name.removeprefix(name)) if _is_of(entity.name, name) else entity
            for entity in found.entities
        ),
        edges=tuple(_with_name(edge, name, person) for edge in found.edges),
        endings=tuple(
            replace(
                ending,
                source=person if ending.source == name else ending.source,
                target=person if ending.target == name else ending.target,
            )
            for ending in found.endings
        ),
    )


def _without(found: Extraction, name: str) -> Extraction:
    """Return an extraction without what is about a name that could be several people."""

    def others(*names: str | None) -> bool:
        return not any(each is not None and _is_of(each, name) for each in names)

    ties = [edge for edge in found.edges if _is_tie_to(name, edge)]
    edges = tuple(edge for edge in found.edges if edge in ties or others(edge.source, edge.target))
    endings = tuple(ending for ending in found.endings if others(ending.source, ending.target))
    left_out = len(found.edges) + len(found.endings) - len(edges) - len(endings)
    return replace(
        found,
        entities=tuple(entity for entity in found.entities if ties or others(entity.name)),
        edges=edges,
        endings=endings,
        dropped=(*found.dropped, ("ambiguous name", left_out)) if left_out else found.dropped,
    )
