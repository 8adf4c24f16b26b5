"""What is drawn, whatever the format: entities, facts, communities and the episodes that facts come from."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from graphmem.models import AsOf, EdgeType


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
