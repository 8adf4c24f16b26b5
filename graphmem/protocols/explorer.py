"""Looking at a store's graph in a program that comes with the database."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from typing import Protocol

from graphmem.models import Scope


class Explorer(Protocol):
    """A program, not part of graphmem, in which people look at the graph of a store."""

    @property
    @abstractmethod
    def name(self) -> str:
        """What people call it."""
        ...

    @property
    @abstractmethod
    def url(self) -> str:
        """Where it is opened on this store, without a password."""
        ...

    @property
    @abstractmethod
    def hints(self) -> tuple[str, ...]:
        """What to know for opening it, a sentence each."""
        ...

    @property
    @abstractmethod
    def import_hints(self) -> tuple[str, ...]:
        """How it imports the files, a sentence each."""
        ...

    @abstractmethod
    def files(self, scope: Scope) -> Mapping[str, bytes]:
        """Return relative path → content of what it can import: queries about a scope, colours and captions."""
        ...
