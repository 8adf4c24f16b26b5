"""Requests for an erasure: episodes, a person or thing with the episodes that name it, and facts and entities."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field

from graphmem.ingest.fact_ledger import episode_sources
from graphmem.ingest.supersession.rules import FactSource, without_telling
from graphmem.ingest.triple_episodes import text_of_facts
from graphmem.models import Edge, Entity, EntityQuery, Episode, EpisodeQuery, Mention, Scope
from graphmem.ontology import Ontology
from graphmem.protocols import GraphBackend
from graphmem.text.names import NameFinder, parts_of_name, spellings
from graphmem.text.normalize import STOP_WORDS, canonical


@dataclass(frozen=True, slots=True)
class Subject:
    """Person or thing to erase even if other episodes mention it.

    Attributes
    ----------
    names
        Names that no other entity has.
    entity
        Its entity; None if it has none, or none any more.
    redacted
        New texts, by id, of triple episodes that lose the lines about the subject.
    staying
        Other episodes, by id, that mention it or contain one of its names and are kept.
    longer
        Names of others that contain one of its names; what is part of them isn't its name.
    """

    names: frozenset[str]
    entity: Entity | None = None
    redacted: Mapping[str, str] = field(default_factory=dict[str, str])
    staying: Mapping[str, Episode] = field(default_factory=dict[str, Episode])
    longer: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class ErasureRequest:
    """Episodes, and perhaps a person or thing, to erase.

    Attributes
    ----------
    backend, scope
        Store and scope to erase from.
    ontology
        Defines which relations are single-valued.
    episodes
        Episodes to remove, by id.
    subject
        Person or thing to remove even if other episodes mention it; None to remove episodes only.
    """

    backend: GraphBackend
    scope: Scope
    ontology: Ontology
    episodes: Mapping[str, Episode]
    subject: Subject | None = None

    @property
    def entity(self) -> Entity | None:
        """The entity of the subject, if it has one."""
        return None if self.subject is None else self.subject.entity

    def sources(self, edges: Sequence[Edge]) -> dict[str, list[FactSource]]:
        """Return the episodes that still state facts, by fact, and who tells it in each."""
        left = [e.changed(episode_ids=tuple(i for i in e.episode_ids if i not in self.episodes)) for e in edges]
        return episode_sources(self.backend, self.scope, left)

    def without_tellings(self, edges: Collection[Edge]) -> dict[str, Edge]:
        """Return facts, by id, as first told by the episodes that still state them."""
        removed = {e.id: {i: self.episodes[i].occurred_at for i in e.episode_ids if i in self.episodes} for e in edges}
        told = [e for e in edges if e.beginnings or e.told_at in removed[e.id].values()]
        sources = self.sources(told)
        return {edge.id: without_telling(edge, removed[edge.id], sources.get(edge.id, ())) for edge in edges}

    def texts(self, episode_ids: Collection[str]) -> Iterator[str]:
        """Yield the texts, titles and speakers of the episodes with these ids."""
        found = self.backend.get_episodes([self.scope], list(episode_ids)).values()
        return (text for episode in found for text in texts_of(episode))


@dataclass(frozen=True, slots=True)
class AffectedFacts:
    """Facts that an erasure affects, by id.

    Attributes
    ----------
    gone
        Facts to remove.
    kept
        Facts of the forgotten episodes that other episodes state as well.
    reopened
        Facts that ended only because of a forgotten statement, or counted as told by it first, with their validity
        without it; or whose end other episodes state from now on.
    enders
        Ids of the episodes and facts that end nothing any more.
    """

    gone: Mapping[str, Edge]
    kept: Mapping[str, Edge]
    reopened: Mapping[str, Edge]
    enders: Set[str]


@dataclass(frozen=True, slots=True)
class AffectedEntities:
    """Entities that an erasure affects.

    Attributes
    ----------
    gone, left
        Entities to remove, and remaining ones that a forgotten episode mentions or a removed fact is about; by id.
    mentions, mentions_of_gone
        Mentions in the forgotten episodes, and of the removed entities.
    other_mentions
        Mentions of these entities in other episodes, by entity.
    redacted_mentions
        Mentions in lines that triple episodes lose.
    names
        Names that go.
    """

    gone: Mapping[str, Entity]
    left: Mapping[str, Entity]
    mentions: Sequence[Mention]
    mentions_of_gone: Sequence[Mention]
    other_mentions: Mapping[str, Sequence[Mention]]
    redacted_mentions: Sequence[Mention]
    names: frozenset[str]

    @property
    def mentioned(self) -> set[str]:
        """Ids of the entities that the forgotten episodes mention."""
        return {mention.entity_id for mention in self.mentions}


def fact_goes(request: ErasureRequest, facts: AffectedFacts, entities: AffectedEntities, edge: Edge) -> bool:
    """Return whether a fact in the merge ledger is to be removed."""
    ends, said = {edge.source_id, edge.target_id}, set(edge.episode_ids)
    return (
        not facts.gone.keys().isdisjoint((edge.id, *edge.premises))
        or bool(ends & entities.gone.keys())
        or bool(said and not said - request.episodes.keys())
    )


def texts_of(episode: Episode) -> tuple[str, ...]:
    """Return the text, title and speaker of an episode."""
    return (episode.text, episode.title or "", episode.speaker or "")


def named_in(names: Iterable[str], texts: Iterable[str]) -> bool:
    """Return whether any of the names occurs in any of the texts."""
    return any(map(NameFinder(names).found_in, texts))


# Episodes that name a person or thing -------------------------------------------------------------


_PAGE = 500
_POSSESSIVE = re.compile(r"['’]s\b")


@dataclass(frozen=True, slots=True)
class NamedTexts:
    """Episodes that name a person or thing.

    Attributes
    ----------
    about
        Those that it said, that mention it, or that contain one of its names.
    in_ids
        Those with a name in the id of the session or the external id.
    in_longer
        Others in which a name is only part of a longer name of somebody else.
    finder
        Finds the names, except as a part of a longer one.
    longer
        These longer names, in canonical form, with the entity that has each; None for a name that only speakers have.
    by_part
        Others that contain only a part of a person's name, or mention a person who is called so, by that part.
    """

    about: list[Episode]
    in_ids: list[Episode]
    in_longer: list[Episode]
    finder: NameFinder
    longer: Mapping[str, Entity | None]
    by_part: Mapping[str, Sequence[Episode]]


@dataclass(frozen=True, slots=True)
class Names:
    """Names of a person or thing.

    Attributes
    ----------
    keys
        Names as `canonical` gives them.
    forms
        The same as they are written in texts.
    entity
        The entity that has them, if there is one.
    mentioned_in
        Ids of the episodes that mention it.
    """

    keys: frozenset[str]
    forms: frozenset[str]
    entity: Entity | None = None
    mentioned_in: Collection[str] = field(default_factory=frozenset[str])


def find_named_texts(backend: GraphBackend, scope: Scope, names: Names) -> NamedTexts:
    """Return the episodes that name a person or thing."""
    anywhere = NameFinder([*names.keys, *names.forms])
    speakers: dict[str, bool] = {}
    found: list[Episode] = []
    in_ids: list[Episode] = []
    parts = _parts(backend, scope, names)
    with_part: list[Episode] = []
    for episode in backend.all_episodes([scope], EpisodeQuery()):
        speaker = episode.speaker or ""
        if speaker not in speakers:
            speakers[speaker] = anywhere.found_in(speaker)
        if episode.id in names.mentioned_in or _is_about(episode, names, anywhere):
            found.append(episode)
        if _ids_name(episode, anywhere):
            in_ids.append(episode)
        if parts.may_be_in(episode):
            with_part.append(episode)
    longer = _longer_names(backend, scope, names, anywhere, [name for name, has in speakers.items() if has])
    finder = NameFinder([*names.keys, *names.forms], longer)
    about: list[Episode] = []
    in_longer: list[Episode] = []
    for episode in found:
        is_about = episode.id in names.mentioned_in or _is_about(episode, names, finder)
        (about if is_about else in_longer).append(episode)
    ids = {episode.id for episode in about}
    others = [episode for episode in with_part if episode.id not in ids]
    by_part = _named_by_part(backend, scope, names, list(speakers), parts, others)
    return NamedTexts(about, in_ids, in_longer, finder, longer, by_part)


@dataclass(frozen=True, slots=True)
class _Parts:
    """Parts of a person's name that may stand for it.

    Attributes
    ----------
    written
        Parts as they are written, by their canonical form.
    capitalized
        Patterns of those that count in texts, by canonical form.
    mentioned_in
        Ids of the episodes that mention a person who is called so, by canonical form.
    """

    written: Mapping[str, str]
    capitalized: Mapping[str, re.Pattern[str]]
    mentioned_in: Mapping[str, Set[str]]

    def may_be_in(self, episode: Episode) -> bool:
        """Return whether an episode has a part, perhaps within a longer name."""
        if any(episode.id in ids for ids in self.mentioned_in.values()):
            return True
        return any(pattern.search(text) for pattern in self.capitalized.values() for text in texts_of(episode))


def _parts(backend: GraphBackend, scope: Scope, names: Names) -> _Parts:
    """Return the parts of a person's name; none of a thing's. In texts, common words don't count."""
    if names.entity is not None and names.entity.entity_type != "person":
        return _Parts({}, {}, {})
    parts = {canonical(part): part for form in sorted(names.forms) for part in parts_of_name(form)}
    parts = {key: part for key, part in parts.items() if key not in names.keys}
    called: defaultdict[str, list[str]] = defaultdict(list)
    for entity, name in _entity_names(backend, scope) if parts else ():
        if name in parts and entity.entity_type == "person":
            called[name].append(entity.id)
    mentions = {key: backend.all_mentions([scope], entity_ids=ids) for key, ids in called.items()}
    mentioned_in = {key: {mention.episode_id for mention in found} for key, found in mentions.items()}
    in_texts = {} if names.entity is None else {key: part for key, part in parts.items() if key not in STOP_WORDS}
    return _Parts(parts, {key: _capitalized(part) for key, part in in_texts.items()}, mentioned_in)


def _named_by_part(
    backend: GraphBackend,
    scope: Scope,
    names: Names,
    speakers: Iterable[str],
    parts: _Parts,
    candidates: Iterable[Episode],
) -> dict[str, list[Episode]]:
    """Return the episodes that may be about a person because a part of the name is in them, or a person called so.

    A part of the name of another person doesn't count, nor in texts a word that isn't capitalized or is a common one.
    """
    if not parts.written:
        return {}
    own = Names(frozenset(parts.written), frozenset(parts.written.values()), names.entity)
    longer = [*_longer_names(backend, scope, own, NameFinder(parts.written), speakers), *names.keys]
    finders = {key: NameFinder([parts.written[key]], longer) for key in parts.capitalized}
    by_part: defaultdict[str, list[Episode]] = defaultdict(list)
    for episode in candidates:
        texts = [text for text in texts_of(episode) if text]
        for key, part in parts.written.items():
            capitalized = parts.capitalized.get(key)
            in_text = capitalized and any(capitalized.search(t) and finders[key].found_in(t) for t in texts)
            if in_text or episode.id in parts.mentioned_in.get(key, ()):
                by_part[part].append(episode)
    return by_part


def _capitalized(part: str) -> re.Pattern[str]:
    forms = "|".join(re.escape(form) for form in {part, part.capitalize(), part.upper()} if not form.islower())
    return re.compile(rf"(?<![^\W_])(?:{forms or re.escape(part)})(?:['’]?s)?(?![^\W_])")


def _is_about(episode: Episode, names: Names, finder: NameFinder) -> bool:
    if episode.speaker and canonical(episode.speaker) in names.keys:
        return True
    attached = (text for each in episode.attachments for text in (each.name, each.description, each.url))
    metadata = (str(text) for pair in episode.metadata.items() for text in pair)
    return any(map(finder.found_in, (episode.text, episode.title, episode.speaker, *metadata, *attached)))


def _ids_name(episode: Episode, finder: NameFinder) -> bool:
    return finder.found_in(episode.session_id) or finder.found_in(episode.external_id)


def _longer_names(
    backend: GraphBackend, scope: Scope, names: Names, finder: NameFinder, speakers: Iterable[str]
) -> dict[str, Entity | None]:
    """Return the names of other speakers and entities that contain one of the names.

    Of entities, only persons and those of the same type count, or with a type that is unknown and a name in capitals:
    "Ada Chen" is somebody else than Ada, the diary of Ada isn't.
    """
    own = {key for name in names.keys for key in spellings(name, "person")}

    def is_longer(name: str) -> bool:
        return finder.found_in(name) and not _POSSESSIVE.search(name) and own.isdisjoint(spellings(name, "person"))

    longer: dict[str, Entity | None] = {canonical(name): None for name in speakers if is_longer(name)}
    for entity, name in _entity_names(backend, scope):
        if (names.entity is None or entity.id != names.entity.id) and _is_alike(entity, names.entity):
            longer.update({name: entity} if is_longer(name) else {})
    return longer


def _is_alike(entity: Entity, other: Entity | None) -> bool:
    if entity.entity_type == "concept":
        return all(word[:1].isupper() for word in entity.name.split())
    return entity.entity_type == "person" or (other is not None and entity.entity_type == other.entity_type)


def _entity_names(backend: GraphBackend, scope: Scope) -> Iterator[tuple[Entity, str]]:
    page: dict[str, Entity] = {}

    def aliases() -> Iterator[tuple[Entity, str]]:
        yield from ((entity, entity.canonical_name) for entity in page.values())
        for alias in backend.find_aliases([scope], list(page)):
            yield page[alias.entity_id], alias.alias

    for entity in backend.all_entities([scope], EntityQuery(archived=True), chunk=_PAGE):
        page[entity.id] = entity
        if len(page) == _PAGE:
            yield from aliases()
            page = {}
    if page:
        yield from aliases()


def text_without(backend: GraphBackend, scope: Scope, episode: Episode, names: Names, finder: NameFinder) -> str:
    """Return the text of a triple episode without the lines about a person or thing; "" if nothing else is left.

    A fact has the sentence of its first episode. If one about the entity has another sentence here, which doesn't name
    it, only the lines stay that are sentences of other facts.
    """
    entity_id = None if names.entity is None else names.entity.id
    facts = backend.get_edges([scope], backend.find_edges_of_episodes(scope, [episode.id])).values()
    said = {edge.fact for edge in facts if entity_id in (edge.source_id, edge.target_id)}
    others = [edge.fact for edge in facts if edge.fact not in said]
    every = episode.text.split("\n")
    lines = [line for line in every if line not in said and not finder.found_in(line)]
    reworded = said.difference(every)
    if len(reworded) > sum(line not in said and finder.found_in(line) for line in every):
        lines = [line for line in lines if line in others]
    if lines and lines[-1] not in others and any(fact.startswith(lines[-1]) for fact in said):
        lines.pop()  # a text of an earlier version can end within a name
    return "\n".join(lines) or text_of_facts(fact for fact in others if not finder.found_in(fact))
