"""What recall keeps of a row, beside the row: vectors and names (spec: GraphRAGService)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from graphmem.models.rows import Scope

IndexKind = Literal["episode", "fact", "name", "entity"]


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexEntry:
    """What recall keeps of an episode, a fact, an entity, or a name; one for each (kind, key) of a scope.

    Attributes
    ----------
    kind
        Of what.
    key
        Id of the episode, edge or entity; a name itself, in the form that names are compared in.
    model
        The embedding model that the vectors are of; "" where there is none.
    vectors
        float16, little-endian, row by row: for an episode the whole, then its sentences; else one. Empty without
        a model.
    pieces
        int8, 128 a row: the pieces of an episode with content. Empty where the model gives none.
    detail
        JSON: of an episode its names and pieces, of a fact its sentence.
    complete
        False where the model failed: the row stays unindexed, so that it is tried again.
    position
        Set by the store: grows with every entry that is written in a scope.
    """

    kind: IndexKind
    key: str
    model: str = ""
    vectors: bytes = b""
    pieces: bytes = b""
    detail: str = ""
    complete: bool = True
    position: int = 0


@dataclass(frozen=True, slots=True)
class IndexState:
    """The index of a scope: the model that it was built with (None: nothing is indexed), and its generation.

    The generation changes whenever an entry was removed: whoever keeps a copy reads it anew.
    """

    model: str | None = None
    generation: int = 0


@dataclass(frozen=True, slots=True)
class IndexLook:
    """What is asked of a scope's index: whether something lies behind an episode id, a fact id and a position."""

    scope: Scope
    episode: str = ""
    fact: str = ""
    position: int = 0


@dataclass(frozen=True, slots=True)
class IndexNews:
    """How the index of a scope stands.

    Attributes
    ----------
    state
        Its model and its generation.
    waiting
        Whether episodes or active facts behind those asked about have no complete entry.
    entries
        Whether there are entries behind the position.
    """

    state: IndexState = IndexState()
    waiting: bool = False
    entries: bool = False
