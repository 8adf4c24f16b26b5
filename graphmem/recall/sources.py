"""Sources of facts: the episodes that state them, and the premises of inferred ones; expiry and trust by them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from graphmem.models import (
    PREMISES,
    Edge,
    Episode,
    EpisodeQuery,
    Scope,
    is_expired,
)
from graphmem.protocols import GraphBackend, find_premises
from graphmem.results import Fact, Premise
from graphmem.trust import LEVELS, Trust, best_trust, is_trusted, lowest_trust, trust_of

_MOST_SOURCES = 20  # newest sources of a fact that are read


@dataclass(frozen=True, slots=True)
class Sources:
    """Sources of some facts: episodes that state them, and premises of inferred ones.

    Attributes
    ----------
    episodes
        The episodes that state the facts and the premises, by id; of each the newest 20, and the others if these aren't
        trusted.
    premises
        The premises of the inferred facts, and the premises of these, by id.
    """

    episodes: Mapping[str, Episode]
    premises: Mapping[str, Edge]

    def expired(self, now: datetime) -> set[str]:
        """Return the ids of the episodes that have expired."""
        return {i for i, episode in self.episodes.items() if is_expired(episode.expires_at, now)}

    def trust(self, fact: Fact) -> Trust:
        """Return the trust of the best source; of an inferred fact, the lowest of its stated premises.

        A stated fact without sources is trusted: the caller stated it.
        """
        return lowest_trust(
            best_trust([trust_of(self.episodes[i]) for i in each.episode_ids if i in self.episodes])
            for each in stated_basis(fact, self.premises)
        )

    def named_by(self, fact: Fact) -> tuple[Premise, ...]:
        """Return the premises that a fact names, for its result."""
        named = (self.premises[i] for i in _premise_ids(fact) if i in self.premises)
        return tuple(Premise(id=edge.id, fact=edge.fact) for edge in named)


def sources_of(backend: GraphBackend, scopes: Sequence[Scope], facts: Sequence[Fact]) -> Sources:
    """Return the sources of some facts; one round trip, one for each level of premises, and one for older sources."""
    inferred = (fact for fact in facts if fact.inferred_by is not None)
    premises = find_premises(backend, scopes, (i for fact in inferred for i in _premise_ids(fact)))
    stated = (*facts, *premises.values())
    ids = dict.fromkeys(i for fact in stated for i in fact.episode_ids[-_MOST_SOURCES:])
    episodes = backend.get_episodes(scopes, list(ids)) if ids else {}
    trusted = {i for i, episode in episodes.items() if trust_of(episode) == LEVELS[-1]}
    doubtful = (fact for fact in stated if trusted.isdisjoint(fact.episode_ids[-_MOST_SOURCES:]))
    if older := dict.fromkeys(i for fact in doubtful for i in fact.episode_ids[:-_MOST_SOURCES]):
        episodes = {**episodes, **backend.get_episodes(scopes, list(older))}
    return Sources(episodes, premises)


def unexpired(
    backend: GraphBackend, scopes: Sequence[Scope], facts: Sequence[Fact], sources: Sources, now: datetime
) -> list[Fact]:
    """Remove facts that only expired episodes state, and inferred facts with such a premise.

    If the newest sources of a fact have all expired, one round trip asks for its other ones.
    """
    expired = sources.expired(now)
    if not expired:
        return list(facts)
    rests_on = [stated_basis(fact, sources.premises) for fact in facts]
    doubtful = [each for basis in rests_on for each in basis if expired.issuperset(each.episode_ids[-_MOST_SOURCES:])]
    if older := tuple(dict.fromkeys(i for each in doubtful for i in each.episode_ids[:-_MOST_SOURCES])):
        expired.update(backend.find_episode_ids(scopes, EpisodeQuery(ids=older, expired_by=now)))
    return [
        fact
        for fact, basis in zip(facts, rests_on, strict=True)
        if not any(each.episode_ids and expired.issuperset(each.episode_ids) for each in basis)
    ]


def stated_basis(fact: Fact, premises: Mapping[str, Edge]) -> Sequence[Fact | Edge]:
    """Return the stated facts that a fact rests on: itself, or those that an inferred one follows from."""
    if fact.inferred_by is None:
        return [fact]
    found: dict[str, Edge] = {}
    missing = _premise_ids(fact)
    while missing:
        found.update((i, premises[i]) for i in missing if i in premises)
        missing = [i for edge in found.values() for i in edge.premises if i in premises and i not in found]
    return [edge for edge in found.values() if not edge.is_inferred]


def with_trust(facts: Sequence[Fact], sources: Sources, minimum: Trust = "untrusted") -> tuple[Fact, ...]:
    """Return the facts of at least some trust, each with its trust and, if it was inferred, its premises."""
    trusts: list[Trust] = [sources.trust(fact) for fact in facts]
    return tuple(
        fact
        if trust == fact.trust and fact.inferred_by is None
        else fact.changed(trust=trust, premises=sources.named_by(fact))
        for fact, trust in zip(facts, trusts, strict=True)
        if is_trusted(trust, minimum)
    )


def _premise_ids(fact: Fact) -> list[str]:
    return str(fact.properties.get(PREMISES, "")).split()
