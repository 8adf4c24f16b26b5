"""Conformance kit for stores: subclass `GraphBackendTests` to test a backend.

    class TestMyStore(GraphBackendTests):
        def open_store(self, tmp_path):
            return open_backend(f"mystore:///{tmp_path}/store")

        def reopen(self, store):
            return open_backend(store.url)

Each test works in scopes and with row ids of its own (`graphmem.testing.rows`). With ``shares_store = True`` one store
serves all tests of the class, for servers; `StoreTests` has the other hooks.
"""

from __future__ import annotations

from pkgutil import iter_modules

from graphmem.errors import MissingExtra

try:
    import pytest
    from hypothesis import settings as _settings
except ImportError as error:
    raise MissingExtra("graphmem.testing", "testing") from error

del _settings  # imported first, to name the missing dependency before a module below fails to load

pytest.register_assert_rewrite(*(f"{__name__}.{module.name}" for module in iter_modules(__path__)))

from graphmem.testing.atomicity import AtomicityTests  # noqa: E402  the rewriting has to come first
from graphmem.testing.base import StoreTests  # noqa: E402
from graphmem.testing.communities import CommunityTests, MembershipTests  # noqa: E402
from graphmem.testing.concurrency import ConnectionTests, MoveTests, ThreadTests  # noqa: E402
from graphmem.testing.edges import (  # noqa: E402
    EdgeQueryTests,
    EdgeTests,
    ExpiryTests,
    RetrievalTests,
)
from graphmem.testing.entities import AliasTests, EntityTests, SearchTests  # noqa: E402
from graphmem.testing.episodes import EpisodeTests, LifetimeTests, MentionTests, QueueTests, SessionTests  # noqa: E402
from graphmem.testing.filters import FilterTests  # noqa: E402
from graphmem.testing.index import IndexNewsTests, IndexStateTests, IndexTests, UnindexedTests  # noqa: E402
from graphmem.testing.isolation import IsolationTests, OddInputTests  # noqa: E402
from graphmem.testing.merges import MergeLedgerTests, RemovalTests  # noqa: E402
from graphmem.testing.stateful import StatefulTests  # noqa: E402
from graphmem.testing.stateful_upkeep import StatefulGroupTests, StatefulUpkeepTests  # noqa: E402
from graphmem.testing.time import TimeTests  # noqa: E402
from graphmem.testing.traversal import TraversalLimitTests, TraversalTests  # noqa: E402
from graphmem.testing.upkeep import (  # noqa: E402
    DecayTests,
    ErasureTests,
    IdleTests,
    JobStateTests,
    RecallTests,
)

__all__ = [
    "AliasTests",
    "AtomicityTests",
    "CommunityTests",
    "ConnectionTests",
    "DecayTests",
    "EdgeQueryTests",
    "EdgeTests",
    "EntityTests",
    "EpisodeTests",
    "ErasureTests",
    "ExpiryTests",
    "FilterTests",
    "GraphBackendTests",
    "IdleTests",
    "IndexNewsTests",
    "IndexStateTests",
    "IndexTests",
    "IsolationTests",
    "JobStateTests",
    "LifetimeTests",
    "MembershipTests",
    "MentionTests",
    "MergeLedgerTests",
    "MoveTests",
    "OddInputTests",
    "QueueTests",
    "RecallTests",
    "RemovalTests",
    "RetrievalTests",
    "SearchTests",
    "SessionTests",
    "StatefulGroupTests",
    "StatefulTests",
    "StatefulUpkeepTests",
    "StoreTests",
    "ThreadTests",
    "TimeTests",
    "TraversalLimitTests",
    "TraversalTests",
    "UnindexedTests",
]


class GraphBackendTests(
    EntityTests,
    AliasTests,
    SearchTests,
    EdgeTests,
    ExpiryTests,
    RetrievalTests,
    EdgeQueryTests,
    TimeTests,
    EpisodeTests,
    SessionTests,
    QueueTests,
    FilterTests,
    LifetimeTests,
    MentionTests,
    CommunityTests,
    MembershipTests,
    RecallTests,
    IndexTests,
    UnindexedTests,
    IndexNewsTests,
    IndexStateTests,
    MergeLedgerTests,
    RemovalTests,
    JobStateTests,
    DecayTests,
    IdleTests,
    ErasureTests,
    MoveTests,
    TraversalTests,
    TraversalLimitTests,
    IsolationTests,
    AtomicityTests,
    ThreadTests,
    ConnectionTests,
    OddInputTests,
    StatefulTests,
    StatefulGroupTests,
    StatefulUpkeepTests,
):
    """All conformance tests of a store; see `StoreTests` for the hooks."""
