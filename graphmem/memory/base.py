"""Base of the classes of a memory: its engine and scope, async forms, and the receipt of a stored turn."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Generator, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial, wraps
from typing import Any, Concatenate, ParamSpec, TypeVar

from graphmem.background import PoolName
from graphmem.engine import Engine
from graphmem.errors import InvalidInput
from graphmem.inputs import to_scopes, to_text
from graphmem.models import (
    AsOf,
    Edge,
    Entity,
    EntityQuery,
    Scope,
)
from graphmem.ontology import Ontology
from graphmem.protocols import GraphBackend
from graphmem.recall.facts import live_entities, to_facts
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
        name = self._engine.stored_name(to_text("name", name))
        key = canonical(name)
        found = dict.fromkeys(e.id for s in scopes for _, e in self._engine.backend.resolve_names(s, [key]))
        return tuple(found or self._engine.backend.get_entities(scopes, [name]))

    def _entities(
        self,
        scopes: Sequence[Scope],
        text: str | None,
        entity_type: str | None,
        as_of: AsOf | None,
        limit: int,
        after: str = "",
    ) -> list[Entity]:
        """Return the entities that a text names, best first; without one, all, oldest first; none that have expired."""
        if after and text is not None:
            raise InvalidInput("after: the entities that a query matches are one page; raise limit instead")
        backend, weight = self._engine.backend, self._engine.settings.seed_structural_weight
        kinds = None if entity_type is None else (self._entity_type(scopes, entity_type),)
        wanted = EntityQuery(entity_types=kinds, as_of=as_of)
        if text is None:
            read = partial(backend.find_entities, scopes, wanted, after=to_text("after", after))
        else:
            text = self._engine.redacted(self._engine.stored_name(to_text("query", text)))
            read = partial(find_named, backend, scopes, text, wanted, structural_weight=weight)
        if not self._engine.has_expired(scopes):
            return read(limit=limit)
        return live_entities(backend, scopes, lambda most: read(limit=most), limit, self._engine.clock())

    def _entity_type(self, scopes: Sequence[Scope], given: str) -> str:
        """Return an entity type in its stored form; raise `InvalidInput` if neither the ontology nor a scope has it."""
        kind, types = canonical(to_text("entity_type", given)), self._engine.ontology.entity_types
        query = EntityQuery(entity_types=(kind,), archived=True)
        if kind not in types and not self._engine.backend.find_entities(scopes, query, limit=1):
            raise InvalidInput(
                f"entity_type {given!r:.60}: there is none of this name; known are {', '.join(sorted(types))}"
            )
        return kind

    def _stored(self) -> tuple[GraphBackend, Scope, Ontology]:
        return self._engine.backend, self.scope, self._engine.ontology

    def _reason(self, text: str) -> str:
        redactor, text = self._engine.redactor, to_text("reason", text)
        return self._engine.redacted(text if redactor is None else redactor.redact(text, ()))

    def _fact(self, edge: Edge) -> Fact:
        return to_facts(self._engine.backend, [self.scope], [edge])[0]


M = TypeVar("M", bound=ScopedMemory)


def in_thread(
    method: Callable[Concatenate[M, P], R], pool: PoolName = "reads"
) -> Callable[Concatenate[M, P], Coroutine[Any, Any, R]]:
    """Return the async form of a method, which runs on a thread of the memory, in the pool of its kind.

    A task that is cancelled while it waits leaves at once; the call is completed on its thread.
    """
    name = method.__name__

    @wraps(method)
    async def run(self: M, *args: P.args, **kwargs: P.kwargs) -> R:
        call: Callable[[], R] = partial(getattr(self, name), *args, **kwargs)
        return await self._engine.pools.run(pool, call)  # pyright: ignore[reportPrivateUsage]

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
    _engine: Engine = field(repr=False)
    _scope: Scope = field(repr=False)

    def wait(self, timeout: float | None = None) -> bool:
        """Wait until the episode is extracted or out of tries, and return True.

        Return False after `timeout` seconds, and at once if nothing can be extracted, as without an extractor.
        """
        return self._engine.flush(self._scope, timeout, self.episode_id) == 0

    def __await__(self) -> Generator[Any, None, bool]:
        return self._settled().__await__()

    async def _settled(self) -> bool:
        return await self._engine.aflush(self._scope, None, self.episode_id) == 0
