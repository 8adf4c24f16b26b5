"""Writing communities, memberships and recall traces: judged before anything is written, like the rest of a write."""

from __future__ import annotations

from dataclasses import dataclass, field

from graphmem.errors import Conflict, InvalidInput
from graphmem.models import Changes, Community, RecallTrace, Scope
from graphmem_neo4j.communities import community_row, membership_row
from graphmem_neo4j.connection import Transaction
from graphmem_neo4j.recalls import recall_row


@dataclass(slots=True)
class _Named:
    """The rows that communities and traces name, in the store or in the same write."""

    scope: Scope
    kinds: dict[str, tuple[str, str]] = field(default_factory=dict[str, "tuple[str, str]"])
    """Id of a node → its kind and the key of its scope."""
    facts: dict[str, str] = field(default_factory=dict[str, str])
    """Id of an edge of the scope → its sentence."""

    def require(self, kind: str, row_id: str) -> None:
        if self.kinds.get(row_id) != (kind, self.scope.key):
            raise InvalidInput(f"{kind} {row_id} is not in scope {self.scope}")

    def require_edge(self, edge_id: str) -> None:
        if edge_id not in self.facts:
            raise InvalidInput(f"edge {edge_id} is not in scope {self.scope}")

    def require_free(self, kind: str, row: Community | RecallTrace) -> None:
        if row.scope != self.scope:
            raise InvalidInput(f"{kind} {row.id}: its scope is {row.scope}, the write's is {self.scope}")
        if self.kinds.get(row.id, (kind, self.scope.key)) != (kind, self.scope.key):
            raise Conflict(f"{kind} id {row.id} is taken")  # says nothing about the other scope


class GroupPlan:
    """The communities, memberships and traces of a write."""

    def __init__(self, changes: Changes) -> None:
        self._communities = {c.id: c for c in changes.communities}
        self._memberships = {m.key: m for m in changes.memberships}
        self._recalls: dict[str, RecallTrace] = {}
        for trace in changes.recalls:
            self._recalls.setdefault(trace.id, trace)
        self._facts: dict[str, str] = {}

    def judge(self, transaction: Transaction, scope: Scope, changes: Changes) -> None:
        """Look up what is named, if anything; what isn't right raises."""
        if not (changes.communities or changes.memberships or changes.recalls):
            return
        named = _read(transaction, scope, changes)
        for community in changes.communities:
            named.require_free("community", community)
        named.kinds.update(dict.fromkeys(self._communities, ("community", scope.key)))
        for community in changes.communities:
            if community.parent_id is not None:
                named.require("community", community.parent_id)
        for membership in changes.memberships:
            named.require("community", membership.community_id)
            named.require("entity", membership.entity_id)
        for trace in changes.recalls:
            named.require_free("recall", trace)
            for entity_id in (*(s.entity_id for s in trace.seeds), *(f.entity_id for f in trace.facts)):
                named.require("entity", entity_id)
            for fact in trace.facts:
                named.require_edge(fact.edge_id)
            for found in trace.episodes:
                named.require("episode", found.episode_id)
        for known in set(self._recalls) & set(named.kinds):
            del self._recalls[known]  # the first of an id stays
        self._facts = named.facts

    def run(self, transaction: Transaction) -> None:
        """Write."""
        if self._communities:
            transaction.run("put_communities", rows=[community_row(c) for c in self._communities.values()])
        if self._memberships:
            transaction.run("put_memberships", rows=[membership_row(m) for m in self._memberships.values()])
        if self._recalls:
            transaction.run("add_recalls", rows=[recall_row(t, self._facts) for t in self._recalls.values()])


def _read(transaction: Transaction, scope: Scope, changes: Changes) -> _Named:
    nodes = {c.id: None for c in changes.communities}
    nodes.update({c.parent_id: None for c in changes.communities if c.parent_id is not None})
    for membership in changes.memberships:
        nodes.update({membership.community_id: None, membership.entity_id: None})
    edges: dict[str, None] = {}
    for trace in changes.recalls:
        nodes[trace.id] = None
        nodes.update(dict.fromkeys(seed.entity_id for seed in trace.seeds))
        nodes.update(dict.fromkeys(fact.entity_id for fact in trace.facts))
        nodes.update(dict.fromkeys(found.episode_id for found in trace.episodes))
        edges.update(dict.fromkeys(fact.edge_id for fact in trace.facts))
    named = _Named(scope)
    for kind, row_id, held_by, fact in transaction.run("named_rows", nodes=list(nodes), edges=list(edges)):
        if kind != "edge":
            named.kinds[row_id] = (kind, held_by)
        elif held_by == scope.key:
            named.facts[row_id] = fact
    named.kinds.update({entity.id: ("entity", scope.key) for entity in changes.entities})
    named.facts.update({edge.id: edge.fact for edge in changes.edges})
    return named
