"""The merge ledger: which entities were taken for one, why, and what moved, so that it can be undone."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Literal

from pydantic import Field

from graphmem.models.base import Model, UTCDateTime, new_id, utc_now
from graphmem.models.rows import Alias, Edge, Entity, Mention, Scope

MergeMethod = Literal["vectors", "llm", "manual"]
Cosine = Annotated[float, Field(ge=-1.0, le=1.0, allow_inf_nan=False)]


class FoldedEdge(Model):
    """A fact of the merged entity that the kept one had already.

    Attributes
    ----------
    edge
        As it was; its row is gone.
    into
        As the kept entity's was before it took in confidence and episodes; None where the fact was between the two
        entities and was dropped.
    """

    edge: Edge
    into: Edge | None = None


class Merge(Model):
    """Two entities, or an entity and a new name, were taken for one.

    Attributes
    ----------
    kept_id, kept
        The entity that stayed, and its row before.
    merged
        The row that went; where a name became an alias while it was read, the row that it would have got.
    method, score
        What decided: the vectors, the LLM that was asked, or a person; the cosine of the two where one was computed.
    at
        When.
    aliases
        What the merged entity was called, as it was.
    added
        Names under which the kept entity is known since then besides those, because its type is another.
    edges
        Its facts that moved, as they were.
    folded
        Its facts that did not.
    mentions
        Its mentions, as they were.
    shared
        Episodes of these mentions that mentioned the kept entity too.
    undone_at
        When it was undone.
    """

    id: str = Field(default_factory=new_id)
    scope: Scope
    kept_id: str
    kept: Entity
    merged: Entity
    method: MergeMethod
    score: Cosine | None = None
    at: UTCDateTime = Field(default_factory=utc_now)
    aliases: tuple[Alias, ...] = ()
    added: tuple[Alias, ...] = ()
    edges: tuple[Edge, ...] = ()
    folded: tuple[FoldedEdge, ...] = ()
    mentions: tuple[Mention, ...] = ()
    shared: tuple[str, ...] = ()
    undone_at: UTCDateTime | None = None

    def __repr_args__(self) -> Iterator[tuple[str | None, object]]:
        """Yield what `repr` shows: names and counts, where all of its rows are pages."""
        yield from (("id", self.id), ("merged", self.merged.name), ("kept", self.kept.name), ("method", self.method))
        yield from (("facts", len(self.edges) + len(self.folded)), ("mentions", len(self.mentions)))
        yield from (("at", f"{self.at:%Y-%m-%dT%H:%M:%SZ}"), ("undone", self.undone_at is not None))
