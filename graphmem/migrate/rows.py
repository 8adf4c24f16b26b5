"""How rows of each kind are read in order, stored and removed by a copy."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from graphmem.models import (
    Alias,
    Changes,
    Community,
    CommunityQuery,
    EdgeQuery,
    Entity,
    EntityQuery,
    Episode,
    EpisodeEnd,
    EpisodeExpiry,
    EpisodeQuery,
    EpisodeRedaction,
    Membership,
    MembershipQuery,
    Mention,
    MergeQuery,
    RecallQuery,
    Removal,
    Scope,
)
from graphmem.protocols import GraphBackend, pages
from graphmem.upkeep.import_merge import result_of
from graphmem.upkeep.scope_rows import RowKind, to_json

PAGE = 1000

Key = tuple[Any, ...]
Read = Callable[[GraphBackend, Scope], Iterator[tuple[Key, Any]]]


@dataclass(frozen=True, slots=True)
class Group:
    """A community with its memberships, which can't be removed one by one."""

    community: Community
    memberships: tuple[Membership, ...]


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of row.

    Attributes
    ----------
    name
        Name of the kind.
    read
        Yields (key, row) of a scope in ascending order of key.
    remove
        Returns the removal of a row.
    goes_first
        Whether a row that differs (ours, theirs) is removed before any row of the kind is stored.
    changes
        Returns what stores rows.
    """

    name: RowKind
    read: Read
    remove: Callable[[Any], Removal]
    goes_first: Callable[[Any, Any], bool]
    changes: Callable[[Sequence[Any]], Changes]

    def text(self, row: Any) -> str:
        """Return a row as text; equal rows have equal texts."""
        return _group_text(row) if isinstance(row, Group) else to_json(self.name, row)


def _entities(store: GraphBackend, scope: Scope) -> Iterator[tuple[Key, Entity]]:
    return (((e.id,), e) for e in store.all_entities([scope], EntityQuery(archived=True), chunk=PAGE))


def _aliases(store: GraphBackend, scope: Scope) -> Iterator[tuple[Key, Alias]]:
    query = EntityQuery(archived=True)
    for page in pages(lambda after: store.find_entities([scope], query, after=after, limit=PAGE)):
        rows = store.find_aliases([scope], [entity.id for entity in page])
        yield from sorted(((a.entity_id, a.alias, a.entity_type), a) for a in rows)


def _episodes(store: GraphBackend, scope: Scope) -> Iterator[tuple[Key, Episode]]:
    return (((e.id,), e) for e in store.all_episodes([scope], EpisodeQuery(), chunk=PAGE))


def _mentions(store: GraphBackend, scope: Scope) -> Iterator[tuple[Key, Mention]]:
    for page in pages(lambda after: store.find_episodes([scope], EpisodeQuery(), after=after, limit=PAGE)):
        rows = store.all_mentions([scope], episode_ids=[episode.id for episode in page])
        yield from sorted(((m.episode_id, m.entity_id), m) for m in rows)


def _groups(store: GraphBackend, scope: Scope) -> Iterator[tuple[Key, Group]]:
    for level in sorted({c.level for c in store.all_communities([scope], CommunityQuery(ended=True))}):
        query = CommunityQuery(level=level, ended=True)
        for page in pages(lambda after, q=query: store.find_communities([scope], q, after=after, limit=PAGE)):
            members: dict[str, list[Membership]] = {community.id: [] for community in page}
            for row in store.all_memberships([scope], MembershipQuery(community_ids=tuple(members), ended=True)):
                members[row.community_id].append(row)
            yield from (((level, c.id), Group(c, tuple(sorted(members[c.id], key=lambda m: m.key)))) for c in page)


def _group_text(group: Group) -> str:
    return "\n".join((to_json("community", group.community), *(to_json("membership", m) for m in group.memberships)))


def patched(ours: Episode, theirs: Episode) -> Changes | None:
    """Return what makes an episode of the secondary equal to that of the primary; None if that takes a removal."""
    fields = ("text", "processed_at", "error", "attempts", "retry_at", "ended_at", "expires_at")
    if theirs.changed(**{name: getattr(ours, name) for name in fields}) != ours:
        return None
    return Changes(
        results=(result_of(ours),),
        redactions=(EpisodeRedaction(ours.id, ours.text),) if ours.text != theirs.text else (),
        episode_ends=(EpisodeEnd(ours.id, ours.ended_at),),
        episode_expiries=(EpisodeExpiry(ours.id, ours.expires_at),),
    )


def _always(_ours: Any, _theirs: Any) -> bool:
    return True


def _never(_ours: Any, _theirs: Any) -> bool:
    return False


EPISODES = Kind(
    "episode",
    _episodes,
    lambda row: Removal("episode", row.id),
    lambda ours, theirs: patched(ours, theirs) is None,
    lambda _: Changes(),  # stored by `add_episodes`
)
KINDS = (
    EPISODES,
    Kind(
        "entity",
        _entities,
        lambda row: Removal("entity", row.id),
        # a name that moves from one entity to another would be held twice
        lambda ours, theirs: (ours.canonical_name, ours.entity_type) != (theirs.canonical_name, theirs.entity_type),
        lambda rows: Changes(entities=tuple(rows)),
    ),
    Kind(
        "alias",
        _aliases,
        lambda row: Removal("alias", row.alias, row.entity_type),
        _never,
        lambda rows: Changes(aliases=tuple(rows)),
    ),
    Kind(
        "edge",
        lambda store, scope: (((e.id,), e) for e in store.all_edges([scope], EdgeQuery(versions="all"), chunk=PAGE)),
        lambda row: Removal("edge", row.id),
        _always,  # one that has ended may still hold the key of another
        lambda rows: Changes(edges=tuple(rows)),
    ),
    Kind(
        "mention",
        _mentions,
        lambda row: Removal("mention", row.entity_id, row.episode_id),
        _always,
        lambda rows: Changes(mentions=tuple(rows)),
    ),
    Kind(
        "community",
        _groups,
        lambda row: Removal("community", row.community.id),
        _always,
        lambda rows: Changes(
            communities=tuple(row.community for row in rows),
            memberships=tuple(member for row in rows for member in row.memberships),
        ),
    ),
    Kind(
        "recall",
        lambda store, scope: (((r.id,), r) for r in store.all_recalls([scope], RecallQuery(), chunk=PAGE)),
        lambda row: Removal("recall", row.id),
        _always,
        lambda rows: Changes(recalls=tuple(rows)),
    ),
    Kind(
        "merge",
        lambda store, scope: (((m.id,), m) for m in store.all_merges([scope], MergeQuery(undone=True), chunk=PAGE)),
        lambda row: Removal("merge", row.id),
        _never,
        lambda rows: Changes(merges=tuple(rows)),
    ),
)
"""In the order in which they are copied: a row references only rows before it."""
