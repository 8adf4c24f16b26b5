"""What an erasure is to remove: episodes, and a person or thing; and the facts and entities that it affects."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field

from graphmem.ingest.fact_ledger import episode_sources
from graphmem.ingest.supersession import Source
from graphmem.models import Edge, Entity, Episode, Mention, Scope
from graphmem.ontology import Ontology
from graphmem.protocols import GraphBackend
from graphmem.text.names import NameFinder


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
    """What to erase.

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

    def sources(self, edges: Sequence[Edge]) -> dict[str, list[Source]]:
        """Return the episodes that still state facts, by fact, and who tells it in each."""
        left = [e.changed(episode_ids=tuple(i for i in e.episode_ids if i not in self.episodes)) for e in edges]
        return episode_sources(self.backend, self.scope, left)

    def texts(self, episode_ids: Collection[str]) -> Iterator[str]:
        """Yield the texts of the episodes with these ids."""
        return (e.text for e in self.backend.get_episodes([self.scope], list(episode_ids)).values())


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
        Facts that ended only because of a forgotten statement, with their validity without it; or whose end other
        episodes state from now on.
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


def named_in(names: Iterable[str], texts: Iterable[str]) -> bool:
    """Return whether any of the names occurs in any of the texts."""
    return any(map(NameFinder(names).found_in, texts))
