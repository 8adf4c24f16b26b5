"""Base of `GraphMemory` and `Administration`: engine and scope, async forms, and the receipt of a stored turn."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Generator, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial, wraps
from typing import Any, Concatenate, ParamSpec, TypeVar

from graphmem.background import Lane
from graphmem.engine import Engine
from graphmem.inputs import to_scopes
from graphmem.models import Edge, Entity, EntityQuery, Scope
from graphmem.ontology import Ontology
from graphmem.protocols import GraphBackend
from graphmem.recall.recall import to_facts
from graphmem.recall.seeds import find_named
from graphmem.results import Fact
from graphmem.settings import Settings
from graphmem.text.normalize import canonical

Time = datetime | str
Scopes = Scope | str | Iterable[Scope | str]

P = ParamSpec("P")
R = TypeVar("R")


class ScopedMemory:
    """An engine and the scope that the methods work on."""

    def __init__(self, engine: Engine, scope: Scope) -> None:
        if engine.redaction is not None:
            engine.redaction.require_scope(scope)
        self._engine = engine
        self.scope = scope

    @property
    def settings(self) -> Settings:
        """Settings that the memory was opened with."""
        return self._engine.settings

    def _scopes(self, scopes: Scopes | None) -> tuple[Scope, ...]:
        return (self.scope,) if scopes is None else to_scopes(scopes)

    def _ids(self, scopes: Sequence[Scope], name: str) -> tuple[str, ...]:
        """Return the ids of the entities with a name, or the given id itself if it is one."""
        name = self._engine.stored_name(name)
        key = canonical(name)
        found = dict.fromkeys(e.id for s in scopes for _, e in self._engine.backend.resolve_names(s, [key]))
        return tuple(found or self._engine.backend.get_entities(scopes, [name]))

    def _named(self, scopes: Sequence[Scope], text: str, wanted: EntityQuery, limit: int) -> list[Entity]:
        """Return the entities that a text names and a query selects, best first."""
        weight = self._engine.settings.seed_structural_weight
        return find_named(self._engine.backend, scopes, text, wanted, structural_weight=weight, limit=limit)

    def _stored(self) -> tuple[GraphBackend, Scope, Ontology]:
        return self._engine.backend, self.scope, self._engine.ontology

    def _reason(self, text: str) -> str:
        redactor = self._engine.redactor
        return self._engine.redacted(text if redactor is None else redactor.redact(text, ()))

    def _fact(self, edge: Edge) -> Fact:
        return to_facts(self._engine.backend, [self.scope], [edge])[0]


M = TypeVar("M", bound=ScopedMemory)


def in_thread(
    method: Callable[Concatenate[M, P], R], lane: Lane = "reads"
) -> Callable[Concatenate[M, P], Coroutine[Any, Any, R]]:
    """Return the async form of a method, which runs on a thread of the memory, in a lane of its kind.

    A task that is cancelled while it waits leaves at once; the call is completed on its thread.
    """
    name = method.__name__

    @wraps(method)
    async def run(self: M, *args: P.args, **kwargs: P.kwargs) -> R:
        call: Callable[[], R] = partial(getattr(self, name), *args, **kwargs)
        return await self._engine.workers.run(lane, call)  # pyright: ignore[reportPrivateUsage]

    run.__name__ = f"a{name}"
    run.__qualname__ = f"{method.__qualname__.rpartition('.')[0]}.a{name}"
    run.__doc__ = f"`{name}` for async code.\n\n        {method.__doc__}"
    return run


@dataclass(frozen=True, slots=True)
class Receipt:
    """Receipt of an episode that is on disk; call ``wait()``, or ``await`` it, to have it extracted as well.

    Attributes
    ----------
    episode_id
        Its id, or that of the episode with the same `external_id`.
    created
        False if the `external_id` was known and nothing was stored.
    """

    episode_id: str
    created: bool
    _engine: Engine
    _scope: Scope

    def wait(self, timeout: float | None = None) -> bool:
        """Wait until the episode is extracted or out of tries; return False after `timeout` seconds."""
        return self._engine.flush(self._scope, timeout, self.episode_id) == 0

    def __await__(self) -> Generator[Any, None, bool]:
        return self._settled().__await__()

    async def _settled(self) -> bool:
        return await self._engine.aflush(self._scope, None, self.episode_id) == 0
