"""Base class of the mixins of `GraphMemory`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime

from graphmem.engine import Engine
from graphmem.inputs import to_scopes
from graphmem.models import Scope
from graphmem.text.normalize import canonical

Time = datetime | str
Scopes = Scope | str | Iterable[Scope | str]


class Part:
    """Base class of the mixins of `GraphMemory`: the engine and the scope that their methods work on."""

    def __init__(self, engine: Engine, scope: Scope) -> None:
        if engine.redaction is not None:
            engine.redaction.require_scope(scope)
        self._engine = engine
        self.scope = scope

    def _scopes(self, scopes: Scopes | None) -> tuple[Scope, ...]:
        return (self.scope,) if scopes is None else to_scopes(scopes)

    def _ids(self, scopes: Sequence[Scope], name: str) -> tuple[str, ...]:
        name = self._engine.known_name(name)
        key = canonical(name)
        found = dict.fromkeys(e.id for s in scopes for _, e in self._engine.backend.resolve_names(s, [key]))
        return tuple(found or self._engine.backend.get_entities(scopes, [name]))
