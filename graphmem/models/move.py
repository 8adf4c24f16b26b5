"""The mark of a migration in a store."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Literal

MoveState = Literal["copying", "cutting", "cut", "moved", "receiving", "serving", "returning", "abandoned"]
"""State of a store in a migration: the first four are those of the source, the others those of the target."""


@dataclass(frozen=True, slots=True)
class Move:
    """Mark of the migration that a store takes part in; a store has at most one.

    Attributes
    ----------
    id
        Id of the migration, the same in both stores.
    state
        State of this store in it.
    source, target
        URLs of the two stores, without passwords.
    started_at
        When the migration was started.
    """

    id: str
    state: MoveState
    source: str
    target: str
    started_at: datetime

    @property
    def mark(self) -> str:
        """The text that stores compare at each write: id and state."""
        return f"{self.id} {self.state}"


def mark_of(move: Move | None) -> str:
    """Return the text of a mark; "" for none."""
    return "" if move is None else move.mark
