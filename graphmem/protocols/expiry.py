"""Queries for what only expired episodes state or mention, and for the premises of inferred facts."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from datetime import datetime

from graphmem.models import Edge, EpisodeQuery, Mention, Scope
from graphmem.protocols.backend import GraphBackend

_MOST_IDS = 1000  # of a query


def has_expired(backend: GraphBackend, scopes: Sequence[Scope], now: datetime) -> bool:
    """Return whether episodes have expired in some scopes that aren't erased yet."""
    return bool(backend.find_episodes(scopes, EpisodeQuery(expired_by=now), limit=1))


def without_expired(backend: GraphBackend, scopes: Sequence[Scope], edges: Sequence[Edge], now: datetime) -> list[Edge]:
    """Return facts without those that only expired episodes state, and without what was inferred from such facts.

    Two round trips, and one for each level of premises.
    """
    premises = find_premises(backend, scopes, (premise for edge in edges for premise in edge.premises))
    stated = {edge.id: edge for edge in (*premises.values(), *edges)}
    ids = {episode_id for edge in stated.values() for episode_id in edge.episode_ids}
    if not ids:
        return list(edges)
    expired = _expired_among(backend, scopes, ids, now)
    found = {i for i, edge in stated.items() if edge.episode_ids and expired.issuperset(edge.episode_ids)}
    gone = set[str]()
    while found:
        gone |= found
        found = {i for i, edge in stated.items() if i not in gone and not found.isdisjoint(edge.premises)}
    return [edge for edge in edges if edge.id not in gone]


def expired_entities(
    backend: GraphBackend,
    scopes: Sequence[Scope],
    ids: Collection[str],
    now: datetime,
    further: Iterable[Mention] = (),
) -> set[str]:
    """Return those of some entities that only expired episodes mention; three round trips, one if none has expired.

    `further` are mentions that count beside the stored ones.
    """
    if not ids or not has_expired(backend, scopes, now):
        return set()
    episodes_of: dict[str, set[str]] = {}
    for mention in (*backend.all_mentions(scopes, entity_ids=list(ids)), *further):
        episodes_of.setdefault(mention.entity_id, set()).add(mention.episode_id)
    expired = _expired_among(backend, scopes, set[str]().union(*episodes_of.values()), now)
    return {entity_id for entity_id, episode_ids in episodes_of.items() if expired.issuperset(episode_ids)}


def _expired_among(backend: GraphBackend, scopes: Sequence[Scope], ids: Collection[str], now: datetime) -> set[str]:
    """Return the ids of the episodes that have expired: among these, or all of the scopes if these are many."""
    among = tuple(ids) if len(ids) <= _MOST_IDS else None
    return set(backend.find_episode_ids(scopes, EpisodeQuery(ids=among, expired_by=now)))


def find_premises(backend: GraphBackend, scopes: Sequence[Scope], ids: Iterable[str]) -> dict[str, Edge]:
    """Return the facts with these ids, and the premises of the inferred ones among them, by id."""
    found: dict[str, Edge] = {}
    missing = set(ids)
    while missing:
        read = backend.get_edges(scopes, sorted(missing))
        found.update(read)
        missing = {premise for edge in read.values() for premise in edge.premises} - found.keys()
    return found
