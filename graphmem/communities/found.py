"""What callers get of communities."""

from __future__ import annotations

from graphmem.models import CommunityAlgorithm, Model, UTCDateTime


class Member(Model):
    """An entity in a community."""

    id: str
    name: str
    entity_type: str


class FoundCommunity(Model):
    """A community with its members, as it is or was at the moment that was asked for.

    Attributes
    ----------
    id
        Stays the same from one refresh to the next, as long as the community goes on.
    level
        0 is the partition of the scope; the communities of a further level are parts of those of the one before.
    name, summary, fingerprint
        As they were made last; the summary of a community that has ended is its last one.
    members
        In the order of their ids.
    score
        How well it fits the question, in [0, 1]; None without one.
    """

    id: str
    level: int
    name: str
    summary: str
    fingerprint: str
    parent_id: str | None
    members: tuple[Member, ...]
    created_at: UTCDateTime
    updated_at: UTCDateTime
    ended_at: UTCDateTime | None = None
    score: float | None = None

    @property
    def entity_ids(self) -> tuple[str, ...]:
        """Ids of the members."""
        return tuple(member.id for member in self.members)

    def __len__(self) -> int:
        return len(self.members)


class Refreshed(Model):
    """What a refresh of communities did.

    Attributes
    ----------
    algorithm
        How they were found.
    communities, levels
        How many there are, on all levels; how many levels.
    members
        Entities that are in one.
    created, updated, ended
        Communities that are new, that changed in members, facts or text, and that are no more.
    moved
        Members that left a community which goes on, or came into one that was there before.
    summarised, failed
        Summaries that the language model wrote; that it could not write: they are tried again by the next refresh.
    modularity
        Of the first level, in [-0.5, 1].
    seconds
        Wall time.
    """

    algorithm: CommunityAlgorithm
    communities: int = 0
    levels: int = 0
    members: int = 0
    created: int = 0
    updated: int = 0
    ended: int = 0
    moved: int = 0
    summarised: int = 0
    failed: int = 0
    modularity: float = 0.0
    seconds: float = 0.0
