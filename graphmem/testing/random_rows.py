"""Base of the state machines with random operations: two stores whose results have to agree, and random rows."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import ExitStack, closing
from dataclasses import fields
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, run_state_machine_as_test

from graphmem.errors import Conflict, InvalidInput
from graphmem.models import (
    AsOf,
    Certainty,
    Edge,
    EdgeBeginning,
    EdgeEnd,
    EdgeType,
    EpisodeFilter,
    ExpandLimits,
    FactKind,
    Scope,
    Versions,
)
from graphmem.protocols import GraphBackend
from graphmem.registry import open_backend
from graphmem.testing.base import Contents, StoreTests, everything, own_scopes
from graphmem.testing.rows import (
    all_scopes,
    community_id,
    day,
    edge,
    edge_id,
    entity,
    entity_id,
    episode_id,
    new_world,
    put_entities,
    recall_id,
    world,
)

# Small domains, so that random rows collide. The names have different lengths, because the order of aliases of
# equal length in a hit is unspecified.
NAMES = ("Anna", "Berta", "Zürich", "Acme Labs")
PHRASES = ("anna", "berta", "zürich", "bertram", "the firm", "acme labs")
WORDS = ("an", "berta", "zür", "labs", "violin", "x")
SUMMARIES = ("", "plays the violin", "Anna's firm in Zürich")
FACTS = ("", "100% sure", "Anna likes a_b")
RELATIONS = ("knows", "works_at")
PER_SCOPE = 6
EVER = 100_000  # days: far in the future


class EdgeSpec(NamedTuple):
    """Specification of a fact: entities and edges by number, times in days."""

    n: int
    source: int
    target: int
    relation: str
    kind: EdgeType
    fact: str
    confidence: float
    begins: int
    lasts: int | None
    recorded: int
    expired: int | None
    certainty: Certainty
    nature: FactKind
    told: int | None


class EntitySpec(NamedTuple):
    """Specification of an entity; its name and type follow from its number."""

    n: int
    upper: bool
    summary: str
    confidence: float
    seen: int
    recorded: int
    archived: bool
    begins: int | None
    ends: int | None


class EdgeRead(NamedTuple):
    """A query for edges and how it is paged."""

    scopes: list[Scope]
    fields: dict[str, Any]
    versions: Versions
    as_of: tuple[int, int] | None
    chunk: int
    newest_first: bool


class Walk(NamedTuple):
    """Arguments of `expand`."""

    scopes: list[Scope]
    seeds: list[int]
    hops: int
    kinds: list[EdgeType]
    as_of: tuple[int, int] | None
    limits: ExpandLimits | None


SCOPES = 3  # number of scopes; the scopes exist only in a test
A_SCOPE = st.integers(0, SCOPES - 1).map(lambda n: all_scopes()[n])
SOME_SCOPES = st.lists(st.integers(0, SCOPES - 1), min_size=1, max_size=SCOPES, unique=True).map(
    lambda numbers: [all_scopes()[n] for n in numbers]
)
NUMBER = st.integers(0, PER_SCOPE - 1)
ANYBODY = st.integers(0, PER_SCOPE * SCOPES - 1)  # of any scope, including ids of other scopes
OWN_OR_STRANGE = st.integers(0, PER_SCOPE + 1)  # see `reach`
EPISODE = st.integers(1, 2 * SCOPES)
NUMBERS = st.lists(ANYBODY, min_size=1, max_size=4)
TIME = st.integers(0, 8)
BEGIN = TIME | st.just(EVER)
CONFIDENCE = st.sampled_from((0.25, 0.5, 0.75, 1.0))
PIECE = st.sampled_from(("%", "_", "ANNA", "works", ""))  # substrings of the text of a fact
KIND = st.sampled_from((EdgeType.SEMANTIC, EdgeType.CAUSAL))
KINDS = st.lists(KIND, max_size=2, unique=True)
LIMIT = st.sampled_from((1, 2, 3, 7, 100))
AS_OF = st.none() | st.tuples(TIME, TIME)
ENTITY_SPEC = st.builds(
    EntitySpec,
    NUMBER,
    st.booleans(),
    st.sampled_from(SUMMARIES),
    CONFIDENCE,
    TIME,
    TIME,
    st.sampled_from((False, False, True)),
    st.none() | TIME,
    st.none() | TIME,
)


@st.composite
def _edge_specs(draw: st.DrawFn) -> EdgeSpec:
    source = draw(NUMBER)
    lasts = draw(st.none() | st.sampled_from((0, 1, 3, EVER)))
    return EdgeSpec(
        n=draw(NUMBER),
        source=source,
        target=(source + draw(st.integers(1, PER_SCOPE - 1))) % PER_SCOPE,
        relation=draw(st.sampled_from(RELATIONS)),
        kind=draw(KIND),
        fact=draw(st.sampled_from(FACTS)),
        confidence=draw(CONFIDENCE),
        begins=draw(BEGIN),
        lasts=lasts,
        recorded=draw(TIME),
        expired=None if lasts is None else draw(st.none() | TIME),
        certainty=draw(st.sampled_from(("stated", "stated", "plan", "hearsay"))),
        nature=draw(st.sampled_from(("state", "event", "inferred"))),
        told=draw(st.none() | TIME),
    )


EDGE_SPEC = _edge_specs()
EDGE_LIST = st.lists(EDGE_SPEC, min_size=1, max_size=4, unique_by=lambda spec: spec.n)


def _some_of(values: dict[str, st.SearchStrategy[Any]]) -> st.SearchStrategy[dict[str, Any]]:
    """Draw at most two fields of a query, because more would match almost nothing."""
    pairs = st.one_of([st.tuples(st.just(name), strategy) for name, strategy in values.items()])
    return st.lists(pairs, max_size=2, unique_by=lambda pair: pair[0]).map(dict)


_ids = NUMBERS.map(lambda numbers: tuple(entity_id(n) for n in numbers))
_id = ANYBODY.map(entity_id)
EDGE_FIELDS = _some_of(
    {
        "ids": NUMBERS.map(lambda numbers: tuple(edge_id(n) for n in numbers)),
        "source_ids": _ids,
        "target_ids": _ids,
        "touching": _ids,
        "relations": st.lists(st.sampled_from(RELATIONS), min_size=1, max_size=2).map(tuple),
        "edge_types": st.lists(KIND, min_size=1, max_size=2).map(tuple),
        "keys": st.lists(st.tuples(_id, _id, st.sampled_from(RELATIONS), KIND), min_size=1, max_size=3).map(tuple),
        "ended_by": NUMBERS.map(lambda numbers: tuple(edge_id(n) for n in numbers)),
        "kinds": st.lists(st.sampled_from(("state", "event", "inferred")), min_size=1, max_size=2).map(tuple),
        "slots": st.lists(st.tuples(_id, st.sampled_from(RELATIONS)), min_size=1, max_size=3).map(tuple),
        "text": PIECE,
        "window": st.tuples(
            st.sampled_from(("valid_from", "valid_to", "recorded_at", "expired_at")),
            TIME.map(day),
            st.sampled_from((8, EVER)).map(day),
        ),
    }
)
EDGE_READ = st.builds(
    EdgeRead,
    SOME_SCOPES,
    EDGE_FIELDS,
    st.sampled_from(("visible", "visible", "active", "past", "all")),
    AS_OF,
    LIMIT,
    st.booleans(),
)
WALK = st.builds(
    Walk,
    SOME_SCOPES,
    st.lists(ANYBODY, min_size=1, max_size=3),
    st.integers(0, 3),
    KINDS,
    AS_OF,
    st.none()
    | st.builds(
        ExpandLimits,
        max_frontier=st.integers(1, 4),
        max_degree=st.integers(1, 8),
        max_edges=st.integers(1, 12),
    ),
)
EPISODE_FIELDS = _some_of(
    {
        "ids": st.lists(EPISODE.map(episode_id), min_size=1, max_size=3).map(tuple),
        "external_ids": st.lists(st.sampled_from(("x", "y")), min_size=1, max_size=2).map(tuple),
        "session_id": st.sampled_from(("s", "t")),
        "filters": st.sampled_from(("", "s", "t", "_")).map(lambda prefix: EpisodeFilter(session_prefix=prefix)),
        "before": EPISODE.map(episode_id),
        "state": st.sampled_from(("processed", "pending", "failed")),
        "live_at": TIME.map(day),
        "hidden_at": TIME.map(day),
        "expired_by": TIME.map(day),
    }
)

MOSTLY_OWN = st.sampled_from(
    (*range(PER_SCOPE - 1), *range(PER_SCOPE - 1), *range(PER_SCOPE - 1), PER_SCOPE)
)  # see `reach`
MEMBER = st.tuples(MOSTLY_OWN, st.sampled_from((0, 0, 1, 1, 2)), st.integers(0, 4), st.none() | st.integers(4, 8))
"""An entity, a community, and the first and last day of the membership."""
COMMUNITY_FIELDS = _some_of(
    {
        "ids": NUMBERS.map(lambda numbers: tuple(community_id(n) for n in numbers)),
        "level": st.integers(0, 2),
        "entity_ids": _ids,
    }
)
MEMBERSHIP_FIELDS = _some_of(
    {
        "community_ids": NUMBERS.map(lambda numbers: tuple(community_id(n) for n in numbers)),
        "level": st.integers(0, 2),
        "entity_ids": _ids,
    }
)
RECALL_FIELDS = _some_of(
    {
        "ids": st.lists(NUMBER.map(recall_id), min_size=1, max_size=3).map(tuple),
        "entity_ids": _ids,
        "edge_ids": NUMBERS.map(lambda numbers: tuple(edge_id(n) for n in numbers)),
        "episode_ids": st.lists(EPISODE.map(episode_id), min_size=1, max_size=3).map(tuple),
    }
)

CHAIN = (0, 1, 2, 3, 5)  # entities with five different names
PLAIN = EntitySpec(0, False, "", 1.0, 0, 0, False, None, None)


def reach(scope: Scope, n: int) -> int:
    """Return the number of a scope's n-th row, or of a row of another scope if n exceeds its rows."""
    return local(scope, n) if n < PER_SCOPE else (local(scope, n) + 1) % (PER_SCOPE * SCOPES)


def local(scope: Scope, n: int) -> int:
    """Return the number of a scope's n-th row; scopes have different ids."""
    return PER_SCOPE * all_scopes().index(scope) + n


def put_entity_specs(store: GraphBackend, scope: Scope, specs: Iterable[EntitySpec]) -> None:
    """Write entities of a scope."""
    rows = [
        entity(
            local(scope, spec.n),
            scope,
            name=name.upper() if spec.upper else name,
            canonical_name=name.lower(),
            entity_type="tool" if spec.n == 5 else "person",
            summary=spec.summary,
            confidence=spec.confidence,
            first_seen_at=day(spec.seen),
            last_seen_at=day(spec.seen + 1),
            recorded_at=day(spec.recorded),
            archived_at=day(8) if spec.archived else None,
            valid_from=None if spec.begins is None else day(spec.begins),
            valid_to=None if spec.ends is None else day(spec.ends),
        )
        for spec in specs
        for name in [NAMES[spec.n % len(NAMES)]]
    ]
    put_entities(store, *rows)


def edge_of(scope: Scope, spec: EdgeSpec) -> Edge:
    """Return an edge of a scope."""
    return edge(
        local(scope, spec.n),
        local(scope, spec.source),
        local(scope, spec.target),
        scope,
        relation=spec.relation,
        edge_type=spec.kind,
        fact=spec.fact,
        confidence=spec.confidence,
        valid_from=day(spec.begins),
        valid_to=None if spec.lasts is None else day(spec.begins + spec.lasts),
        recorded_at=day(spec.recorded),
        expired_at=None if spec.expired is None else day(spec.expired),
        certainty=spec.certainty,
        kind=spec.nature,
        valid_from_assumed=spec.told is not None,
        told_at=None if spec.told is None else day(spec.told),
        prior_valid_to=None
        if spec.expired is None or spec.nature == "event"
        else day(spec.begins + (spec.lasts or 0) + 2),
        end_reason=None if spec.expired is None else spec.fact,
        ends=()
        if spec.lasts is None or spec.told is None
        else tuple(
            EdgeEnd(by=edge_id(n), at=day(spec.told), told_at=day(spec.told)) for n in (spec.source, spec.target)
        ),
        beginnings=()
        if spec.told is None
        else (EdgeBeginning(by=episode_id(spec.source), at=day(spec.begins), told_at=day(spec.told)),),
    )


class PairOfStores(RuleBasedStateMachine):
    """State machine that applies the same operations to the store under test and a memory store, and compares results.

    Parameters
    ----------
    store
        The store under test; the scopes of the running test are empty.
    is_shared
        Whether others use the store; then there are no operations on the whole store.
    """

    def __init__(self, store: GraphBackend, *, is_shared: bool) -> None:
        super().__init__()
        self._store = store
        self._is_shared = is_shared
        self._oracle = open_backend("memory://")

    def teardown(self) -> None:
        """Close the store in memory."""
        self._oracle.close()

    def read(self, act: Callable[[GraphBackend], object]) -> None:
        """Read from both stores and compare the results."""
        expected, found = (outcome(partial(act, store)) for store in (self._oracle, self._store))
        assert found == expected

    def write(self, act: Callable[[GraphBackend], object], *, same_error: bool = True) -> None:
        """Write to both stores and compare the results or errors, and then all rows.

        With `same_error` False, all errors are equal: a write that is invalid in two ways may report either.
        """
        expected, found = (outcome(partial(act, store)) for store in (self._oracle, self._store))
        if same_error or "raised" not in (expected[0], found[0]):
            assert found == expected
        else:
            assert found[0] == expected[0], f"expected {expected}, found {found}"
        self.compare()

    def compare(self) -> None:
        """Compare all rows of the stores."""
        ours, theirs = everything(self._store), everything(self._oracle)
        for scope, expected in theirs.items():
            for part in (field.name for field in fields(Contents)):
                assert getattr(ours[scope], part) == getattr(expected, part), f"{part} of scope {scope}"
        assert own_scopes(self._store) == self._oracle.scopes()
        assert _own_claims(self._store) == sorted(self._oracle.claim_owners(day(0)))


def run_machine(machine: type[PairOfStores], tests: StoreTests, store: GraphBackend, tmp_path: Path) -> None:
    """Run a machine, each scenario on a new store, or in new scopes of `store` if the tests share it."""
    numbers = count()

    class Machine(machine):
        def __init__(self) -> None:
            self._scenario = ExitStack()
            world = self._scenario.enter_context(new_world())
            if tests.shares_store:
                self._scenario.callback(lambda: tests.discard(store, world.scopes))
                super().__init__(store, is_shared=True)
            else:
                directory = tmp_path / f"run{next(numbers)}"
                directory.mkdir()
                own = self._scenario.enter_context(closing(tests.open_store(directory)))
                super().__init__(own, is_shared=False)

        def teardown(self) -> None:
            super().teardown()
            self._scenario.close()

    run_state_machine_as_test(Machine, settings=tests.stateful_settings)


def _own_claims(store: GraphBackend) -> list[str]:
    """Return the owners of the running test that have claimed episodes."""
    return sorted(name for name in store.claim_owners(day(0)) if name.endswith(world().tag))


def outcome(work: Callable[[], object]) -> tuple[str, object]:
    """Return the result of a function, or the error that it raised."""
    try:
        return ("returned", work())
    except (Conflict, InvalidInput) as error:
        return ("raised", type(error).__name__)


def moment(days: tuple[int, int] | None) -> AsOf | None:
    """Return the point in time at two days of the tests' calendar."""
    return None if days is None else AsOf(day(days[0]), day(days[1]))
