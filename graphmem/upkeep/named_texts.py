"""Search for the episodes that name a person or thing, and for other names that contain one of its names."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from graphmem.ingest.bulk import text_of_facts
from graphmem.models import Entity, EntityQuery, Episode, EpisodeQuery, Scope
from graphmem.protocols import GraphBackend
from graphmem.text.name_rules import spellings
from graphmem.text.names import NameFinder
from graphmem.text.normalize import canonical

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
        Others with a name in the id of the session or the external id.
    in_longer
        Others in which a name is only part of a longer name of somebody else.
    finder
        Finds the names, except as a part of a longer one.
    longer
        These longer names, in canonical form, with the entity that has each; None for a name that only speakers have.
    """

    about: list[Episode]
    in_ids: list[Episode]
    in_longer: list[Episode]
    finder: NameFinder
    longer: Mapping[str, Entity | None]


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
    for episode in backend.all_episodes([scope], EpisodeQuery()):
        speaker = episode.speaker or ""
        if speaker not in speakers:
            speakers[speaker] = anywhere.found_in(speaker)
        if episode.id in names.mentioned_in or _is_about(episode, names, anywhere):
            found.append(episode)
        elif _ids_name(episode, anywhere):
            in_ids.append(episode)
    longer = _longer_names(backend, scope, names, anywhere, [name for name, has in speakers.items() if has])
    finder = NameFinder([*names.keys, *names.forms], longer)
    about: list[Episode] = []
    in_longer: list[Episode] = []
    for episode in found:
        is_about = episode.id in names.mentioned_in or _is_about(episode, names, finder)
        (about if is_about else in_longer).append(episode)
    return NamedTexts(about, in_ids, in_longer, finder, longer)


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
    """Return the text of a triple episode without the lines about a person or thing; "" if nothing else is left."""
    entity_id = None if names.entity is None else names.entity.id
    facts = backend.get_edges([scope], backend.find_edges_of_episodes(scope, [episode.id])).values()
    said = {edge.fact for edge in facts if entity_id in (edge.source_id, edge.target_id)}
    others = [edge.fact for edge in facts if edge.fact not in said]
    lines = [line for line in episode.text.split("\n") if line not in said and not finder.found_in(line)]
    if lines and lines[-1] not in others and any(fact.startswith(lines[-1]) for fact in said):
        lines.pop()  # a text of an earlier version can end within a name
    return "\n".join(lines) or text_of_facts(fact for fact in others if not finder.found_in(fact))
