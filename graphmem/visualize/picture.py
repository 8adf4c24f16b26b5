"""The format-independent picture: entities, facts, communities, episodes, colors and captions."""

from __future__ import annotations

import unicodedata
from collections import Counter
from dataclasses import dataclass
from datetime import datetime

from graphmem.models import AsOf, EdgeType
from graphmem.text import counted

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
    return line(relation.replace("_", " "))


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

    @property
    def label(self) -> str:
        """The relation in readable form, with the qualifier."""
        return words(self.relation) + (f" ({self.qualifier})" if self.qualifier else "")


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
