"""Rows that transactions of the primary changed, and their transfer to the secondary.

What is transferred is the present state of the rows, not the calls that changed them. So the changes of several
processes may reach the secondary in any order: whoever comes last transfers the newest state.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar, cast, get_args

from graphmem.errors import Conflict
from graphmem.migrate.copy import is_patchable, patches
from graphmem.migrate.tokens import note_erasure, state_of
from graphmem.models import (
    FORGETTING,
    Changes,
    Community,
    CommunityQuery,
    Edge,
    EdgeQuery,
    Episode,
    EpisodeQuery,
    IndexEntry,
    IndexKind,
    Membership,
    MembershipQuery,
    Mention,
    MergeQuery,
    RecallQuery,
    Removal,
    RemovalKind,
    Scope,
)
from graphmem.protocols import GraphBackend, pages
from graphmem.upkeep.scope_rows import PAGE

T = TypeVar("T")

RowKey = tuple[str, ...]
"""Kind of a row and its key, in the order of `Removal`; a job state is ("job", its name).

("decayed", after, last) are the facts with these ids, without the first one, that were ever retrieved.
"""


@dataclass(frozen=True, slots=True)
class ChangedRows:
    """Rows that were changed.

    Attributes
    ----------
    keys
        Rows that were written or removed.
    removed
        Those that were removed, perhaps to be stored again later.
    all_rows
        Whether any row of the scope may have changed.
    """

    keys: frozenset[RowKey] = frozenset()
    removed: frozenset[RowKey] = frozenset()
    all_rows: bool = False

    @classmethod
    def union(cls, parts: Iterable[ChangedRows]) -> ChangedRows:
        """Return all rows of some changes."""
        each = list(parts)
        none = frozenset[RowKey]()
        return cls(
            none.union(*(part.keys for part in each)),
            none.union(*(part.removed for part in each)),
            any(part.all_rows for part in each),
        )


def rows_of(changes: Changes) -> ChangedRows:
    """Return the rows that a write changes, without those that a removal takes along."""
    keys: set[RowKey] = set()
    for part, kind in _ROWS_WITH_ID.items():
        keys.update((kind, row.id) for row in getattr(changes, part))
    for part in ("results", "redactions", "episode_ends", "episode_expiries"):
        keys.update(("episode", row.episode_id) for row in getattr(changes, part))
    keys.update(("alias", a.alias, a.entity_type) for a in changes.aliases)
    keys.update(("edge", row.edge_id) for row in (*changes.expiries, *changes.corroborations))
    keys.update(("mention", m.entity_id, m.episode_id) for m in changes.mentions)
    keys.update(("index", redaction.episode_id, "episode") for redaction in changes.redactions)
    keys.update(("membership", m.community_id, m.entity_id, m.since.isoformat()) for m in changes.memberships)
    keys.update(("index", entry.key, entry.kind) for entry in changes.index)
    keys.update(("job", state.job) for state in changes.job_states)
    removed = frozenset(_key_of(removal) for removal in changes.removals)
    return ChangedRows(frozenset(keys | removed), removed)


_ROWS_WITH_ID = {
    "entities": "entity",
    "edges": "edge",
    "communities": "community",
    "recalls": "recall",
    "merges": "merge",
}


def _key_of(removal: Removal) -> RowKey:
    return (removal.kind, removal.id, removal.qualifier) if removal.qualifier else (removal.kind, removal.id)


def transfer(primary: GraphBackend, secondary: GraphBackend, scope: Scope, changed: ChangedRows, token: str) -> bool:
    """Give rows of the secondary the state that they have in the primary; called in a transaction of the secondary.

    The token of the scope is stored with them: each write takes several round trips to a server.

    Returns
    -------
    bool
        False if the scope has to be repaired instead: a row was removed and stored again, so that rows which depended
        on it are gone too.

    Raises
    ------
    Conflict, InvalidInput
        If it can't be done before the changes of another process, or because the primary has changed meanwhile. The
        transaction has to be rolled back.
    """
    rows = _read(primary, secondary, scope, changed.keys)
    if any(key[0] in _DEPENDED_ON and key in rows.found for key in changed.removed):
        return False
    gone = [key for key in changed.keys if key[0] in _REMOVED and key not in rows.found]
    gone += [key for key in changed.removed if key[0] == "mention" and key in rows.found]  # or the former one stays
    if gone:
        secondary.write(scope, Changes(removals=tuple(Removal(cast("RemovalKind", kind), *key) for kind, *key in gone)))
    held = secondary.get_episodes([scope], [episode.id for episode in rows.episodes])
    _add(secondary, scope, [episode for episode in rows.episodes if episode.id not in held])
    differing = [(e, held[e.id]) for e in rows.episodes if e.id in held and held[e.id] != e]
    if fixed := [ours.id for ours, theirs in differing if not is_patchable(ours, theirs)]:
        raise Conflict(f"episode {fixed[0]} differs in a value that never changes")
    states = rows.changes.job_states
    if any(state.job == FORGETTING and state.cursor != secondary.erasure_token(scope) for state in states):
        note_erasure(secondary)
    secondary.write(scope, replace(rows.changes, **patches(differing), job_states=(*states, state_of(token))))
    return True


_REMOVED = get_args(RemovalKind)
_DEPENDED_ON = ("entity", "edge", "episode", "community")


def _add(secondary: GraphBackend, scope: Scope, episodes: Sequence[Episode]) -> None:
    for episode, (held_id, created) in zip(episodes, secondary.add_episodes(scope, episodes), strict=True):
        if not created:
            raise Conflict(f"the external id of episode {episode.id} is that of {held_id}")


@dataclass(frozen=True, slots=True)
class _Rows:
    """Rows of the primary: episodes, all others, and the keys of all that were asked for and exist."""

    episodes: Sequence[Episode]
    changes: Changes
    found: frozenset[RowKey]


def _read(primary: GraphBackend, secondary: GraphBackend, scope: Scope, keys: Iterable[RowKey]) -> _Rows:
    """Read rows of the primary, and the rows that they reference, without facts and entities that are equal already."""
    asked: dict[str, list[RowKey]] = {}
    for kind, *key in keys:
        asked.setdefault(kind, []).append(tuple(key))
    ids = {kind: tuple(key[0] for key in found) for kind, found in asked.items()}
    memberships = _memberships(primary, scope, asked.get("membership", ()))
    recalls = list(primary.all_recalls([scope], RecallQuery(ids=ids["recall"]))) if "recall" in ids else []
    entries = _entries(primary, scope, asked.get("index", ()))
    indexed = {kind: [e.key for e in entries if e.kind == kind] for kind in ("episode", "fact", "entity")}
    mentions = _mentions(primary, scope, asked.get("mention", ()))
    traced = [fact for trace in recalls for fact in trace.facts]

    edges = _decayed(primary, scope, asked.get("decayed", ()))
    edges.update(_by_id(primary.get_edges, scope, [*ids.get("edge", ()), *indexed["fact"]]))
    held_edges = _by_id(secondary.get_edges, scope, [*edges, *(fact.edge_id for fact in traced)])
    edges.update(_by_id(primary.get_edges, scope, {fact.edge_id for fact in traced} - held_edges.keys()))
    found: set[RowKey] = {("edge", edge_id) for edge_id in edges}
    changed_edges = _different(edges, held_edges)
    changed_edges.sort(key=lambda edge: edge.is_active)  # one that ended may hold the key of another

    renamed = [e.id for _, e in primary.resolve_names(scope, ids["alias"])] if "alias" in ids else []
    named = [*(m.entity_id for m in memberships), *(f.entity_id for f in traced)]
    named += [seed.entity_id for trace in recalls for seed in trace.seeds]
    entities = _by_id(
        primary.get_entities,
        scope,
        [
            *renamed,
            *named,
            *ids.get("entity", ()),
            *indexed["entity"],
            # the ends of a fact change with its retrievals
            *(end for edge in edges.values() for end in (edge.source_id, edge.target_id)),
            *(mention.entity_id for mention in mentions),
        ],
    )
    found.update(("entity", entity_id) for entity_id in entities)
    changed_entities = _different(entities, _by_id(secondary.get_entities, scope, entities))
    aliased = dict.fromkeys([*renamed, *(entity.id for entity in changed_entities)])

    episode_ids = dict.fromkeys(ids.get("episode", ()))
    known = {i for edge in held_edges.values() for i in edge.episode_ids}
    referenced = [
        *indexed["episode"],
        *(mention.episode_id for mention in mentions),
        *(episode_id for edge in changed_edges for episode_id in edge.episode_ids),
        *(reached.episode_id for trace in recalls for reached in trace.episodes),
    ]
    if needed := tuple(set(referenced) - known - episode_ids.keys()):
        held = secondary.find_episode_ids([scope], EpisodeQuery(ids=needed))
        episode_ids.update(dict.fromkeys(sorted({*needed} - {*held})))
    episodes = _by_id(primary.get_episodes, scope, episode_ids)
    if gone := episode_ids.keys() - episodes.keys():  # facts may name episodes that were deleted past graphmem
        changed_edges = [e.stated_by([i for i in e.episode_ids if i not in gone]) for e in changed_edges]
    jobs = ids.get("job", ())
    changes = Changes(
        entities=tuple(changed_entities),
        aliases=tuple(primary.find_aliases([scope], list(aliased)) if aliased else ()),
        edges=tuple(changed_edges),
        mentions=tuple(mentions),
        communities=tuple(_communities(primary, scope, ids.get("community", ()))),
        memberships=tuple(memberships),
        recalls=tuple(recalls),
        index=tuple(entries),
        merges=tuple(primary.all_merges([scope], MergeQuery(ids=ids["merge"], undone=True))) if "merge" in ids else (),
        job_states=tuple(state for state in primary.find_job_states(scope) if state.job in jobs) if jobs else (),
    )
    found |= rows_of(changes).keys | {("episode", episode_id) for episode_id in episodes}
    return _Rows(list(episodes.values()), changes, frozenset(found))


def _by_id(
    find: Callable[[Sequence[Scope], Sequence[str]], dict[str, T]], scope: Scope, ids: Iterable[str]
) -> dict[str, T]:
    distinct = list(dict.fromkeys(ids))
    return find([scope], distinct) if distinct else {}


def _different(rows: Mapping[str, T], held: Mapping[str, T]) -> list[T]:
    return [row for row_id, row in rows.items() if held.get(row_id) != row]


def _communities(primary: GraphBackend, scope: Scope, ids: tuple[str, ...]) -> Iterator[Community]:
    return primary.all_communities([scope], CommunityQuery(ids=ids, ended=True)) if ids else iter(())


def _memberships(primary: GraphBackend, scope: Scope, keys: Sequence[RowKey]) -> list[Membership]:
    if not keys:
        return []
    sides = (tuple(dict.fromkeys(key[at] for key in keys)) for at in (0, 1))
    query = MembershipQuery(community_ids=next(sides), entity_ids=next(sides), ended=True)
    wanted = set(keys)
    found = primary.all_memberships([scope], query)
    return [m for m in found if (m.community_id, m.entity_id, m.since.isoformat()) in wanted]


def _entries(primary: GraphBackend, scope: Scope, keys: Sequence[RowKey]) -> list[IndexEntry]:
    of_kind: dict[str, list[str]] = {}
    for key, kind in keys:
        of_kind.setdefault(kind, []).append(key)
    found = (primary.find_index(scope, cast("IndexKind", kind), named) for kind, named in of_kind.items())
    return [entry for page in found for entry in page]


def _decayed(primary: GraphBackend, scope: Scope, ranges: Sequence[RowKey]) -> dict[str, Edge]:
    found: dict[str, Edge] = {}
    for begin, last in ranges:
        for page in pages(lambda after, begin=begin: _edge_page(primary, scope, after or begin)):
            found.update(
                (e.id, e) for e in page if (e.last_retrieved_at or e.retrieval_count) and not (last and e.id > last)
            )
            if last and page[-1].id >= last:
                break
    return found


def _edge_page(primary: GraphBackend, scope: Scope, after: str) -> list[Edge]:
    return primary.find_edges([scope], EdgeQuery(versions="all"), after=after, limit=PAGE)


def _mentions(primary: GraphBackend, scope: Scope, keys: Sequence[RowKey]) -> list[Mention]:
    if not keys:
        return []
    found = primary.all_mentions([scope], episode_ids=list(dict.fromkeys(episode_id for _, episode_id in keys)))
    wanted = set(keys)
    return [mention for mention in found if (mention.entity_id, mention.episode_id) in wanted]
