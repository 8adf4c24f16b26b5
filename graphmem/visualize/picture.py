"""What is drawn, whatever the format: entities, facts, communities, episodes, colors and words."""

from __future__ import annotations

import unicodedata
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from graphmem.models import AsOf, EdgeType

# Tol's "bright" and "muted" schemes (https://sronpersonalpages.nl/~pault/), ordered so that neighbors differ most and
# readable with dark text; for people who see colors differently, too.
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
    """A group of nodes of one color.

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
    """Return the nodes of a picture by community, the largest first, at the end those in none.

    Where no node is in a community, they stand by entity type.
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


def colors(picture: Picture) -> Sequence[str]:
    """Return the color of each node."""
    found = [NO_COLOR] * len(picture.nodes)
    for kind in kinds(picture):
        for i in kind.nodes:
            found[i] = kind.color
    return found


def line(text: str) -> str:
    """Return a text on one line, without control, bidirectional and other invisible characters."""
    kept = (" " if c.isspace() else c for c in text if c.isspace() or unicodedata.category(c) not in _INVISIBLE)
    return " ".join("".join(kept).split())


def words(relation: str) -> str:
    """Return a relation as people read it."""
    return line(relation.replace("_", " "))


def caption(picture: Picture) -> str:
    """Return what a picture is of, and what isn't in it, on one line."""
    parts = [line(picture.title)]
    if picture.as_of is not None:
        parts.append(f"as of {picture.as_of.valid:%Y-%m-%d}, known by {picture.as_of.known:%Y-%m-%d}")
    if picture.left_out:
        parts.append(f"{picture.left_out:,} more {'entity' if picture.left_out == 1 else 'entities'} beyond the limit")
    return "; ".join(parts)


@dataclass(frozen=True, slots=True)
class Node:
    """An entity.

    Attributes
    ----------
    group
        Position of its community in `Picture.groups`, None where it is in none.
    is_seed
        Whether the picture was asked for by its name.
    """

    id: str
    name: str
    entity_type: str
    summary: str = ""
    group: int | None = None
    is_seed: bool = False


@dataclass(frozen=True, slots=True)
class Link:
    """A version of a fact; `source` and `target` are positions in `Picture.nodes`, `sources` in `Picture.sources`."""

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


@dataclass(frozen=True, slots=True)
class Group:
    """A community that a node of the picture is in."""

    id: str
    name: str
    summary: str = ""


@dataclass(frozen=True, slots=True)
class Source:
    """An episode that a fact comes from; without a text it brought ready-made facts."""

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
        What it is of.
    drawn_at
        When it was read.
    as_of
        The moment that is seen; None where that is the present.
    nodes
        Ordered by id, which is the order in which they were made.
    links
        Ordered by `valid_from`, then id.
    groups
        Those with the most nodes first.
    left_out
        Entities that belong to it but are beyond the limit.
    """

    title: str
    drawn_at: datetime
    as_of: AsOf | None = None
    nodes: tuple[Node, ...] = ()
    links: tuple[Link, ...] = ()
    groups: tuple[Group, ...] = ()
    sources: tuple[Source, ...] = ()
    left_out: int = 0
