"""A clock for memories in tests."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime


@dataclass
class HandSetClock:
    """A clock that is set by hand."""

    now: datetime

    def __call__(self) -> datetime:
        return self.now
