"""What an erasure is to remove: episodes, and a person or thing."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from graphmem.ingest.fact_ledger import episode_sources
from graphmem.ingest.supersession import Source
from graphmem.models import Edge, Entity, Episode, Scope
from graphmem.ontology import Ontology
from graphmem.protocols import GraphBackend


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
