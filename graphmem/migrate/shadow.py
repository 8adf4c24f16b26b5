"""Shadow reads: reads of the primary that are repeated on the secondary and compared."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from graphmem.migrate.tokens import SHADOW, is_equal
from graphmem.models import Changes, JobState, Scope
from graphmem.protocols import GraphBackend


@dataclass(frozen=True, slots=True)
class Read:
    """A read of the primary.

    Attributes
    ----------
    name, args, kwargs
        The method and its arguments; the first one names the scopes.
    result
        What the primary returned.
    """

    name: str
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    result: Any

    def repeated(self, store: GraphBackend) -> Any:
        """Return the result of a store."""
        return getattr(store, self.name)(*self.args, **self.kwargs)

    @property
    def scopes(self) -> Sequence[Scope]:
        """The scopes that were read."""
        return [self.args[0]] if isinstance(self.args[0], Scope) else self.args[0]


def compare(primary: GraphBackend, secondary: GraphBackend, read: Read) -> None:
    """Count a read whose result differs although both stores are at the same write."""
    if read.repeated(secondary) == read.result:
        return
    if read.repeated(primary) != read.repeated(secondary) and all(is_equal(primary, secondary, s) for s in read.scopes):
        for scope in read.scopes:
            primary.atomic(lambda scope=scope: _count(primary, scope, read.name))


def _count(store: GraphBackend, scope: Scope, name: str) -> None:
    counts = Counter(differences_of(store.find_job_state(scope, SHADOW)))
    counts[name] += 1
    cursor = " ".join(f"{kind}:{count}" for kind, count in sorted(counts.items()))
    store.write(scope, Changes(job_states=(JobState(SHADOW, episodes=counts.total(), cursor=cursor),)))


def differences_of(state: JobState) -> dict[str, int]:
    """Return the number of differing shadow reads by method."""
    pairs = (part.partition(":") for part in state.cursor.split())
    return {name: int(count) for name, _, count in pairs}
