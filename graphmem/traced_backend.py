"""A store whose calls are spans."""

from __future__ import annotations

import re
from collections.abc import Callable, Sized
from functools import wraps
from types import MethodType
from typing import Any, cast

from graphmem.protocols import GraphBackend
from graphmem.telemetry import Attributes, is_within_span, span

_METHODS = frozenset(
    name for name in dir(GraphBackend) if not name.startswith("_") and callable(getattr(GraphBackend, name))
)
_PAGED = frozenset(name for name in _METHODS if name.startswith("all_") or name == "entry_pages") - {"all_mentions"}
"""Methods that read page by page while their result is iterated: the read of each page is a call of its own."""


_SYSTEMS = {"bolt": "neo4j"}  # scheme → system; others are the same


def traced_backend(backend: GraphBackend, url: str) -> GraphBackend:
    """Return a store that records a span for each call within another span, such as that of a recall.

    Parameters
    ----------
    backend
        The store.
    url
        Its URL, whose scheme tells the kind of store.
    """
    scheme = re.split(r"[+:]", url, maxsplit=1)[0]
    return cast("GraphBackend", _TracedBackend(backend, _SYSTEMS.get(scheme, scheme)))


def _rows(result: object) -> Attributes:
    return {"db.response.returned_rows": len(cast("Sized", result))} if isinstance(result, (list, dict)) else {}


class _TracedBackend:
    def __init__(self, backend: GraphBackend, system: str) -> None:
        self._backend = backend
        self._system = system

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._backend, name)
        if name not in _METHODS:
            return found  # properties may change
        if name in _PAGED:
            made: Callable[..., Any] = MethodType(getattr(GraphBackend, name), self)
        else:
            made = self._traced(name, found)
        self.__dict__[name] = made
        return made

    def _traced(self, name: str, method: Callable[..., Any]) -> Callable[..., Any]:
        title, attributes = f"graphmem.store.{name}", {"db.system.name": self._system, "db.operation.name": name}

        @wraps(method)
        def call(*args: Any, **kwargs: Any) -> Any:
            if not is_within_span():
                return method(*args, **kwargs)
            with span(title, attributes, kind="client") as one:
                result = method(*args, **kwargs)
                one.set(_rows(result))
                return result

        return call

    def snapshot(self, work: Callable[[GraphBackend], Any]) -> Any:
        """Run `work` with a snapshot whose calls are spans, too."""
        return self._backend.snapshot(lambda store: work(cast("GraphBackend", _TracedBackend(store, self._system))))
