"""Predicates that decide whether a row matches a query, one per kind of row."""

from __future__ import annotations

import string
from collections.abc import Sequence
from datetime import datetime

from graphmem.models import (
    AsOf,
    Community,
    CommunityQuery,
    Edge,
    EdgeQuery,
    EdgeType,
    Entity,
    EntityQuery,
    Episode,
    EpisodeQuery,
    Membership,
    MembershipQuery,
    existed,
    filter_matches,
    is_expired,
    is_live,
    is_past,
    is_visible,
)
from graphmem.protocols import NAME_WEIGHT, split_words

_ASCII_LOWER = str.maketrans(string.ascii_uppercase, string.ascii_lowercase)


def entity_matches(entity: Entity, query: EntityQuery) -> bool:
    """Return whether a query matches this entity."""
    named = query.ids is not None and entity.id in query.ids
    if query.ids is not None and not named:
        return False
    if query.entity_types is not None and entity.entity_type not in query.entity_types:
        return False
    if entity.archived_at is not None and not (query.archived or named):
        return False
    return query.as_of is None or _entity_existed(entity, query.as_of)


def _entity_existed(entity: Entity, as_of: AsOf) -> bool:
    return (
        entity.recorded_at <= as_of.known
        and entity.first_seen_at <= as_of.valid
        and (entity.valid_from is None or entity.valid_from <= as_of.valid)
        and (entity.valid_to is None or as_of.valid < entity.valid_to)
    )


def edge_matches(edge: Edge, query: EdgeQuery, now: datetime) -> bool:
    """Return whether a query matches this version of a fact."""
    if query.versions == "active" and not edge.is_active:
        return False
    if query.versions == "visible" and not edge_is_visible(edge, query.as_of, now):
        return False
    if query.versions == "past" and not is_past(edge.valid_from, edge.valid_to, edge.superseded_by, now):
        return False
    return (
        (query.ids is None or edge.id in query.ids)
        and (query.source_ids is None or edge.source_id in query.source_ids)
        and (query.target_ids is None or edge.target_id in query.target_ids)
        and (query.touching is None or edge.source_id in query.touching or edge.target_id in query.touching)
        and (query.relations is None or edge.relation in query.relations)
        and (query.edge_types is None or edge.edge_type in query.edge_types)
        and (query.keys is None or edge.key in query.keys)
        and (query.slots is None or (edge.source_id, edge.relation) in query.slots)
        and (query.kinds is None or edge.kind in query.kinds)
        and (query.ended_by is None or not edge.ended_by.isdisjoint(query.ended_by))
        and (query.text is None or _contains(edge, query.text))
        and (query.window is None or _in_window(edge, *query.window))
    )


def edge_is_visible(edge: Edge, as_of: AsOf | None, now: datetime) -> bool:
    """Return whether a read sees this version of a fact (`graphmem.models.is_visible`)."""
    return is_visible(
        edge.valid_from, edge.valid_to, edge.recorded_at, edge.expired_at, edge.prior_valid_to, as_of, now
    )


def _contains(edge: Edge, text: str) -> bool:
    piece = text.translate(_ASCII_LOWER)
    return piece in edge.fact.translate(_ASCII_LOWER) or piece in edge.relation.translate(_ASCII_LOWER)


def _in_window(edge: Edge, axis: str, after: datetime, until: datetime) -> bool:
    moment: datetime | None = getattr(edge, axis)
    return moment is not None and after < moment <= until


def episode_matches(episode: Episode, query: EpisodeQuery) -> bool:
    """Return whether a query matches this episode; the caller checks `before`, which depends on another episode."""
    return (
        (query.ids is None or episode.id in query.ids)
        and (query.external_ids is None or episode.external_id in query.external_ids)
        and (query.session_id is None or episode.session_id == query.session_id)
        and (query.state is None or episode_state(episode) == query.state)
        and (
            query.as_of is None
            or (episode.recorded_at <= query.as_of.known and episode.occurred_at <= query.as_of.valid)
        )
        and (query.filters is None or filter_matches(episode, query.filters))
        and (query.live_at is None or _is_live(episode, query, query.live_at))
        and (query.hidden_at is None or not _is_live(episode, query, query.hidden_at))
        and (query.expired_by is None or is_expired(episode.expires_at, query.expired_by))
    )


def _is_live(episode: Episode, query: EpisodeQuery, now: datetime) -> bool:
    return is_live(episode.ended_at, episode.expires_at, query.as_of, now)


def episode_state(episode: Episode) -> str:
    """Return the state of an episode: processed, pending, or failed (tried, without a next try)."""
    if episode.processed_at is not None:
        return "processed"
    return "failed" if episode.error is not None and episode.retry_at is None else "pending"


def community_matches(community: Community, query: CommunityQuery) -> bool:
    """Return whether a query matches this community; the caller checks `entity_ids`, which depends on the members."""
    return (
        (query.ids is None or community.id in query.ids)
        and (query.level is None or community.level == query.level)
        and existed(community.created_at, community.ended_at, query.as_of, ended=query.ended)
    )


def membership_matches(membership: Membership, query: MembershipQuery) -> bool:
    """Return whether a query matches this membership; the caller checks `level`, which depends on the community."""
    return (
        (query.community_ids is None or membership.community_id in query.community_ids)
        and (query.entity_ids is None or membership.entity_id in query.entity_ids)
        and existed(membership.since, membership.until, query.as_of, ended=query.ended)
    )


def best_first(edge: Edge) -> tuple[float, str]:
    """Return the sort key of an edge: confidence descending, then id."""
    return (-edge.confidence, edge.id)


def follows(edge: Edge, edge_types: Sequence[EdgeType], as_of: AsOf | None, now: datetime) -> bool:
    """Return whether a traversal follows this edge; no types means all."""
    return (not edge_types or edge.edge_type in edge_types) and edge_is_visible(edge, as_of, now)


def text_score(entity: Entity, prefixes: Sequence[str]) -> float:
    """Count the words of an entity that begin with one of the prefixes; words of the name count ten times."""

    def hits(text: str) -> int:
        return sum(token.startswith(prefix) for token in split_words(text) for prefix in prefixes)

    return NAME_WEIGHT * hits(entity.name) + hits(entity.summary)
