"""The format-independent picture of the part of a memory to draw: entities, facts, communities, episodes, colors."""

from __future__ import annotations

import unicodedata
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

from graphmem.errors import InvalidInput, NotFound
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
    MembershipQuery,
    Scope,
    is_expired,
    text_is_of,
    utc_now,
)
from graphmem.protocols import GraphBackend, expired_entities, has_expired, without_expired
from graphmem.text import counted
from graphmem.text.normalize import relation_words
from graphmem.text.periods import first_and_last, in_words, known_beginning

# Tol's "bright" and "muted" schemes (https://sronpersonalpages.nl/~pault/), safe for color blindness and readable with
# dark text, ordered so that consecutive colors differ most.
PALETTE = (
    "#66CCEE",
    "#EE8866",
    "#44BB99",
    "#EEDD88",
    "#AA99DD",
    "#FFAABB",
    "#77AADD",
    "#BBCC33",
    "#DDAA66",
    "#88CCAA",
    "#CC99BB",
    "#99DDFF",
)
NO_COLOR = "#D9D9D9"

_INVISIBLE = {"Cc", "Cf", "Cs"}  # control, format (bidirectional controls, zero-width), lone surrogates


@dataclass(frozen=True, slots=True)
class Kind:
    """A group of nodes with the same color.

    Attributes
    ----------
    nodes
        Positions in `Picture.nodes`.
    """

    name: str
    summary: str
    color: str
    nodes: tuple[int, ...]


def kinds(picture: Picture) -> list[Kind]:
    """Return the nodes of a picture grouped by community, largest first, then those without a community.

    If no node has a community, group by entity type.
    """
    if not picture.groups:
        sizes = Counter(node.entity_type for node in picture.nodes)
        types = sorted(sizes, key=lambda name: (-sizes[name], name))
        members = [tuple(i for i, node in enumerate(picture.nodes) if node.entity_type == name) for name in types]
        return [Kind(line(name), "", _color(n), members[n]) for n, name in enumerate(types)]
    found = [
        Kind(line(group.name), line(group.summary), _color(n), _in_group(picture, n))
        for n, group in enumerate(picture.groups)
    ]
    alone = _in_group(picture, None)
    return [*found, Kind("in no community", "", NO_COLOR, alone)] if alone else found


def _in_group(picture: Picture, group: int | None) -> tuple[int, ...]:
    return tuple(i for i, node in enumerate(picture.nodes) if node.group == group)


def _color(place: int) -> str:
    return PALETTE[place] if place < len(PALETTE) else NO_COLOR


def line(text: str) -> str:
    """Return a text as one line, without control, bidirectional and other invisible characters."""
    kept = (" " if c.isspace() else c for c in text if c.isspace() or unicodedata.category(c) not in _INVISIBLE)
    return " ".join("".join(kept).split())


def words(relation: str) -> str:
    """Return a relation in readable form."""
    return line(relation_words(relation))


def caption(picture: Picture) -> str:
    """Return a one-line caption: title, time, and number of omitted entities."""
    parts = [line(picture.title)]
    if picture.as_of is not None:
        parts.append(f"as of {picture.as_of.valid:%Y-%m-%d}, known by {picture.as_of.known:%Y-%m-%d}")
    if picture.left_out:
        parts.append(f"{counted(picture.left_out, 'more entity', 'more entities')} beyond the limit")
    return "; ".join(parts)


@dataclass(frozen=True, slots=True)
class Node:
    """An entity.

    Attributes
    ----------
    group
        Position of its community in `Picture.groups`, or None without one.
    is_seed
        Whether the entity is a seed of the picture.
    """

    id: str
    name: str
    entity_type: str
    summary: str = ""
    group: int | None = None
    is_seed: bool = False


@dataclass(frozen=True, slots=True)
class Link:
    """A version of a fact; `source` and `target` are positions in `Picture.nodes`, `sources` in `Picture.sources`.

    `qualifier` is "inferred", or the certainty of a fact that isn't stated as one: "plan", "hearsay", "possible".
    """

    id: str
    source: int
    target: int
    relation: str
    edge_type: EdgeType
    fact: str
    confidence: float
    valid_from: datetime
    valid_to: datetime | None = None
    sources: tuple[int, ...] = ()
    qualifier: str = ""
    is_begin_known: bool = True
    is_event: bool = False

    @property
    def label(self) -> str:
        """The relation in readable form, with the qualifier."""
        return words(self.relation) + (f" ({self.qualifier})" if self.qualifier else "")

    @property
    def when(self) -> str:
        """The time in which it held, in words."""
        begin = self.valid_from if self.is_begin_known else None
        return in_words(*first_and_last(begin, self.valid_to, is_event=self.is_event))


@dataclass(frozen=True, slots=True)
class Group:
    """A community of at least one node of the picture."""

    id: str
    name: str
    summary: str = ""


@dataclass(frozen=True, slots=True)
class Source:
    """A source episode of a fact; the text is "" for an episode of triples."""

    id: str
    text: str
    occurred_at: datetime
    speaker: str | None = None
    title: str | None = None


@dataclass(frozen=True, slots=True)
class Picture:
    """A part of a memory.

    Attributes
    ----------
    title
        Title of the picture.
    drawn_at
        Time at which it was read.
    as_of
        Time of the read; None means the present.
    nodes
        Ordered by id, the order of creation.
    links
        Ordered by `valid_from`, then id.
    groups
        Ordered by number of nodes, descending.
    left_out
        Number of matching entities beyond the limit.
    """

    title: str
    drawn_at: datetime
    as_of: AsOf | None = None
    nodes: tuple[Node, ...] = ()
    links: tuple[Link, ...] = ()
    groups: tuple[Group, ...] = ()
    sources: tuple[Source, ...] = ()
    left_out: int = 0


# Reading ------------------------------------------------------------------------------------------


_LINKS_PER_NODE = 10  # limit of links per node, for readability
_RANKED_FACTS = 20_000  # newest facts that rank the entities of a scope above the limit
_SOURCES_PER_LINK = 5
_MAX_HOPS = 6


def read_picture(
    backend: GraphBackend,
    scopes: Sequence[Scope],
    seeds: Collection[str] = (),
    *,
    hops: int = 1,
    community: str | None = None,
    as_of: AsOf | None = None,
    limit: int = 200,
    with_past: bool = False,
    now: datetime | None = None,
) -> Picture:
    """Read a part of a memory: the neighborhood of entities, a community, or by default whole scopes.

    Parameters
    ----------
    backend, scopes
        The store and the scopes.
    seeds
        Ids of the entities at the center.
    hops
        Maximum distance from the seeds.
    community
        Id or name of a community.
    as_of
        Time of the read.
    limit
        Maximum number of entities; nearer ones are preferred, then those with more facts.
    with_past
        Whether to read additional data for the interactive page: ended facts known at ``as_of.known``, the entities
        connected only by such facts, and the source episodes of facts.
    now
        Time by which episodes have expired; nothing of them is read, nor a text that may quote them. None: now.

    Raises
    ------
    NotFound
        If the community doesn't exist.
    InvalidInput
        If the name matches several communities, both seeds and a community are given, or hops is outside of [0, 6].
    """
    reader = _Reader(backend, scopes, as_of, limit, with_past=with_past, now=now or utc_now())
    if seeds and community is not None:
        raise InvalidInput("a picture is around names or of a community, not both")
    if community is not None:
        found = reader.community(community)
        name = found.name if reader.may_quote and text_is_of(found.updated_at, as_of) else ""
        return reader.picture(name or f"Community {found.id}", reader.members(found))
    if hops not in range(_MAX_HOPS + 1):
        raise InvalidInput(f"hops: expected a number in [0, {_MAX_HOPS}], got {hops!r:.120}")
    if seeds:
        ids = reader.around(seeds, hops)
        names = [e.name for e in backend.get_entities(scopes, list(seeds)).values()]
        title = f"{', '.join(dict.fromkeys(names))} and {counted(hops, 'hop')} around"
        return reader.picture(title, ids, seeds)
    return reader.picture(f"Scope {', '.join(map(str, scopes))}", reader.everything())


class _Reader:
    """Reader of one picture; lists of ids are ordered by priority."""

    def __init__(
        self,
        backend: GraphBackend,
        scopes: Sequence[Scope],
        as_of: AsOf | None,
        limit: int,
        *,
        with_past: bool,
        now: datetime,
    ) -> None:
        self._backend, self._scopes = backend, scopes
        self._as_of, self._limit, self._with_past, self._now = as_of, limit, with_past, now
        self.may_quote = not has_expired(backend, scopes, now)

    def around(self, seeds: Collection[str], hops: int) -> list[str]:
        found = self._backend.expand(self._scopes, list(seeds), hops=hops, as_of=self._as_of)
        facts = Counter(int(i) for ends in (found.source, found.target) for i in ends)
        order = sorted(range(len(found.node_ids)), key=lambda i: (int(found.depth[i]), -facts[i], found.node_ids[i]))
        ids = [found.node_ids[i] for i in order]
        if not self._with_past:
            return ids
        inner = [found.node_ids[i] for i in order if int(found.depth[i]) < hops]
        return list(dict.fromkeys([*ids, *self._once_around(inner)]))

    def _once_around(self, ids: Sequence[str]) -> list[str]:
        """Return the ends of current and past facts of these entities, newest first."""
        query = EdgeQuery(touching=tuple(ids), versions="all")
        edges = self._backend.find_edges(self._scopes, query, limit=self._most_links, newest_first=True)
        return [end for edge in self._known(edges) for end in (edge.source_id, edge.target_id)]

    def community(self, id_or_name: str) -> Community:
        everyone = self._backend.all_communities(self._scopes, CommunityQuery(as_of=self._as_of))
        wanted = id_or_name.casefold()
        found = [c for c in everyone if c.id == id_or_name or c.name.casefold() == wanted]
        if not found:
            raise NotFound(f"community {id_or_name!r}: no such id or name in scope {', '.join(map(str, self._scopes))}")
        if len(found) > 1:
            raise InvalidInput(
                f"community {id_or_name!r}: ambiguous name, use one of the ids {', '.join(c.id for c in found)}"
            )
        return found[0]

    def members(self, community: Community) -> list[str]:
        query = MembershipQuery(community_ids=(community.id,), as_of=self._as_of)
        ids = [m.entity_id for m in self._backend.all_memberships(self._scopes, query)]
        return ids if len(ids) <= self._limit else self._busiest(ids)

    def everything(self) -> list[str]:
        page = self._backend.find_entities(self._scopes, EntityQuery(as_of=self._as_of), limit=self._limit + 1)
        if len(page) <= self._limit:
            return [e.id for e in page]
        return self._busiest(e.id for e in self._backend.all_entities(self._scopes, EntityQuery(as_of=self._as_of)))

    def _busiest(self, ids: Iterable[str]) -> list[str]:
        """Order ids by their number of facts among the newest ones."""
        edges = self._backend.find_edges(
            self._scopes, EdgeQuery(as_of=self._as_of), limit=_RANKED_FACTS, newest_first=True
        )
        facts = Counter(end for edge in edges for end in (edge.source_id, edge.target_id))
        return sorted(ids, key=lambda i: (-facts[i], i))

    def picture(self, title: str, ids: Sequence[str], seeds: Collection[str] = ()) -> Picture:
        """Read the picture of these entities, up to the limit."""
        gone = expired_entities(self._backend, self._scopes, ids, self._now)
        ids = [i for i in ids if i not in gone]
        rows = self._backend.get_entities(self._scopes, ids[: self._limit])
        kept = sorted(e.id for e in rows.values() if e.archived_at is None)
        edges = self._edges(kept)
        groups, group_of = self._groups(kept)
        sources, links = self._links(edges, {i: place for place, i in enumerate(kept)})
        return Picture(
            title=title,
            drawn_at=utc_now(),
            as_of=self._as_of,
            nodes=tuple(self._node(rows[i], group_of.get(i), is_seed=i in seeds) for i in kept),
            links=links,
            groups=groups,
            sources=sources,
            left_out=max(0, len(ids) - self._limit),
        )

    def _node(self, entity: Entity, group: int | None, *, is_seed: bool) -> Node:
        summary = entity.summary if self.may_quote else ""
        return Node(entity.id, entity.name, entity.entity_type, summary, group, is_seed)

    @property
    def _most_links(self) -> int:
        return self._limit * _LINKS_PER_NODE

    def _edges(self, ids: Sequence[str]) -> list[Edge]:
        """Return the facts between these entities."""
        ends = tuple(ids)
        query = EdgeQuery(
            source_ids=ends, target_ids=ends, versions="all" if self._with_past else "visible", as_of=self._as_of
        )
        edges = self._backend.find_edges(self._scopes, query, limit=self._most_links, newest_first=True)
        edges = without_expired(self._backend, self._scopes, edges, self._now)
        return sorted(self._known(edges) if self._with_past else edges, key=lambda e: (e.valid_from, e.id))

    def _known(self, edges: Iterable[Edge]) -> list[Edge]:
        """Return the facts as known at `as_of`, without retracted ones."""
        if self._as_of is not None:
            known = self._as_of.known
            edges = [e.as_known(known) for e in edges if e.recorded_at <= known]
        return [e for e in edges if e.valid_to is None or e.valid_to > e.valid_from]

    def _groups(self, ids: Sequence[str]) -> tuple[tuple[Group, ...], dict[str, int]]:
        """Return the communities of these entities, largest first, and entity id → position of its community."""
        query = MembershipQuery(entity_ids=tuple(ids), level=0, as_of=self._as_of)
        community_of = {m.entity_id: m.community_id for m in self._backend.all_memberships(self._scopes, query)}
        sizes = Counter(community_of.values())
        order = sorted(sizes, key=lambda c: (-sizes[c], c))
        rows = {
            c.id: c
            for c in self._backend.all_communities(self._scopes, CommunityQuery(ids=tuple(order), as_of=self._as_of))
        }
        order = [c for c in order if c in rows]
        place = {c: i for i, c in enumerate(order)}
        quotable = (c for c in rows.values() if self.may_quote and text_is_of(c.updated_at, self._as_of))
        texts = {c.id: (c.name, c.summary) for c in quotable}
        named = ((c, *texts.get(c, ("", ""))) for c in order)
        groups = tuple(Group(c, name or f"Community {place[c] + 1}", summary) for c, name, summary in named)
        return groups, {i: place[c] for i, c in community_of.items() if c in place}

    def _links(self, edges: Sequence[Edge], place: dict[str, int]) -> tuple[tuple[Source, ...], tuple[Link, ...]]:
        ids = {e.id: e.episode_ids[:_SOURCES_PER_LINK] if self._with_past else () for e in edges}
        wanted = sorted({i for of_edge in ids.values() for i in of_edge})
        rows = self._backend.get_episodes(self._scopes, wanted) if wanted else {}
        found = [i for i in wanted if i in rows and not is_expired(rows[i].expires_at, self._now)]
        at = {i: n for n, i in enumerate(found)}
        sources = tuple(_source(rows[i]) for i in found)
        return sources, tuple(
            Link(
                id=e.id,
                source=place[e.source_id],
                target=place[e.target_id],
                relation=e.relation,
                edge_type=e.edge_type,
                fact=e.fact,
                confidence=e.confidence,
                valid_from=e.valid_from,
                valid_to=e.valid_to,
                sources=tuple(at[i] for i in ids[e.id] if i in at),
                qualifier="inferred" if e.is_inferred else "" if e.certainty == "stated" else e.certainty,
                is_begin_known=known_beginning(e.valid_from, e.valid_to, e.told_at, assumed=e.valid_from_assumed)
                is not None,
                is_event=e.kind == "event",
            )
            for e in edges
        )


def _source(episode: Episode) -> Source:
    text = "" if episode.source == "triple" else episode.text  # the text of triples only repeats the facts
    return Source(episode.id, text, episode.occurred_at, episode.speaker or episode.role, episode.title)
