"""Planning of a refresh: the changes to write, given what continues the previous communities."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from graphmem.communities.graph import CommunityFacts
from graphmem.communities.matching import Before, Group, moves
from graphmem.communities.results import Present
from graphmem.communities.summaries import (
    CENTRAL,
    FEWEST_FACTS,
    TOP_FACTS,
    Description,
    Material,
    TopFact,
    name_of,
    summary_of,
)
from graphmem.models import Community, Edge, Membership, Partition, Scope, utc_now
from graphmem.models.arrays import Int64s
from graphmem.models.base import TICK
from graphmem.process import gc_paused
from graphmem.protocols import GraphBackend
from graphmem.text.normalize import relation_words

EXTRACTIVE = ":extractive"
"""Suffix of the fingerprint of a summary that was not written by a language model."""

REFUSED = ":refused"
"""Suffix of a fingerprint for which the reply of the language model was unusable: the text is an earlier one."""

_SAME = 0.8
"""Minimum Jaccard similarity of old and new members for a community to keep its name."""

_READ = 256  # communities per read of names and facts

Redact = Callable[[str, Sequence[str]], str]
"""(text, names that may stay) → the text without personal data."""


@dataclass(frozen=True, slots=True)
class Row:
    """A community of the plan.

    Attributes
    ----------
    community
        The new row.
    group
        The group that forms the community.
    digest
        Fingerprint of the group.
    renamed
        Whether too many members changed to keep a name by a language model.
    facts
        Number of facts in the group.
    """

    community: Community
    group: Group
    digest: str
    renamed: bool
    facts: int

    @property
    def level(self) -> int:
        """The level of the community."""
        return self.community.level

    @property
    def wants_summary(self) -> bool:
        """Whether to ask the language model: it hasn't answered for these facts yet, and they are enough."""
        refused = self.digest + REFUSED
        answered = self.community.fingerprint in (self.digest, refused, refused + EXTRACTIVE)
        return not answered and self.facts >= FEWEST_FACTS


@dataclass(slots=True)
class Plan:
    """The partition detected by a refresh that started at `begun`, and the changes to write with time `moment`."""

    partition: Partition
    grouped: list[CommunityFacts]
    begun: datetime
    moment: datetime
    rows: list[Row] = field(default_factory=list[Row])
    communities: list[Community] = field(default_factory=list[Community])
    memberships: list[Membership] = field(default_factory=list[Membership])
    created: int = 0
    ended: int = 0
    moved: int = 0

    def members(self, row: Row) -> Int64s:
        """Return the positions of a community's members among the nodes."""
        return self.grouped[row.level].members(row.group.number)

    @property
    def changes_nothing(self) -> bool:
        """Whether the plan has no changes to write."""
        return not (self.communities or self.memberships)


class Planner:
    """Planner of the changes of a refresh.

    Parameters
    ----------
    backend, scope
        The store and the scope.
    present
        The current communities.
    begun
        Time at which reading the graph began.
    models_write
        Whether a language model writes summaries; its earlier summaries are then kept until it replaces them.
    redact
        Removes personal data from summaries.
    """

    def __init__(
        self,
        backend: GraphBackend,
        scope: Scope,
        present: Present,
        begun: datetime,
        *,
        models_write: bool,
        redact: Redact,
    ) -> None:
        self._backend = backend
        self._scope = scope
        self._present = present
        self._models_write = models_write
        self._redact = redact
        self._begun = begun
        # a clock that went back must not end a membership before its start
        self.moment = max(utc_now(), present.latest + TICK)

    def plan(
        self,
        partition: Partition,
        levels: Sequence[Sequence[Group]],
        grouped: list[CommunityFacts],
        before: Mapping[int, Before],
    ) -> Plan:
        """Return the plan for the matched groups of each level, given the previous communities `before`."""
        plan = Plan(partition, grouped, self._begun, self.moment)
        shared, touched = self._members(plan, levels, before)
        wanted: list[tuple[Group, Community | None, str]] = []
        for level, groups in enumerate(levels):
            for group in groups:
                old = self._present.communities.get(group.id)
                digest = grouped[level].fingerprint(group.number, partition.node_ids)
                facts = grouped[level].count(group.number)
                if old is not None and not self._needs_row(old, group, digest, touched, facts):
                    plan.rows.append(Row(old, group, digest, renamed=False, facts=facts))
                else:
                    wanted.append((group, old, digest))
        self._describe(plan, wanted, {g.id: level for level, groups in enumerate(levels) for g in groups}, shared)
        self._end_others(plan)
        return plan

    def _needs_row(self, old: Community, group: Group, digest: str, touched: Mapping[str, int], facts: int) -> bool:
        stays = is_of(old, digest) or self._keeps_text(old, facts)
        return group.id in touched or old.parent_id != group.parent_id or not stays

    def _keeps_text(self, old: Community, facts: int) -> bool:
        """Return whether an earlier text by the model stays until it writes a new one."""
        return is_by_model(old) and self._models_write and facts >= FEWEST_FACTS

    def _members(
        self, plan: Plan, levels: Sequence[Sequence[Group]], before: Mapping[int, Before]
    ) -> tuple[Counter[str], Counter[str]]:
        """Plan the membership changes; return the numbers of members kept and changed by community."""
        shared, touched = Counter[str](), Counter[str]()
        for level, were in before.items():
            groups = levels[level] if level < len(levels) else ()
            left, came = moves(plan.partition, groups, level, were)
            for entity_id in sorted(left):
                membership = self._present.ended(level, entity_id, self.moment)
                plan.memberships.append(membership)
                touched[membership.community_id] += 1
            for entity_id, community_id in came:
                row = {"community_id": community_id, "entity_id": entity_id, "since": self.moment}
                plan.memberships.append(Membership.trusted(**row))
            new = Counter(community_id for _, community_id in came)
            touched.update(new)
            shared.update({g.id: len(plan.grouped[level].members(g.number)) - new[g.id] for g in groups})
        for membership in self._present.extra:
            plan.memberships.append(membership.changed(until=self.moment))
            touched[membership.community_id] += 1
        return shared, touched

    def _describe(
        self,
        plan: Plan,
        wanted: Sequence[tuple[Group, Community | None, str]],
        level_of: Mapping[str, int],
        shared: Mapping[str, int],
    ) -> None:
        """Plan the rows of new and changed communities."""
        sizes = Counter[str]()
        for of_level in self._present.keys.values():
            sizes.update(of_level.values())
        for start in range(0, len(wanted), _READ):
            some = wanted[start : start + _READ]
            groups = [(level_of[group.id], group.number) for group, _, _ in some]
            with gc_paused:
                texts = materials(self._backend, self._scope, plan.partition, plan.grouped, groups)
            for (group, old, digest), (level, number), material in zip(some, groups, texts, strict=True):
                now = len(plan.grouped[level].members(number))
                union = sizes[group.id] + now - shared[group.id]
                same = old is not None and shared[group.id] >= _SAME * union
                row = self._row(group, old, digest, material, level=level, same=same)
                plan.rows.append(Row(row, group, digest, renamed=not same, facts=material.facts))
                plan.communities.append(row)
                plan.created += old is None
        plan.moved = sum(
            1
            for m in plan.memberships
            if m.community_id in self._present.communities and (m.until is None or m.community_id in level_of)
        )

    def _row(
        self, group: Group, old: Community | None, digest: str, material: Material, *, level: int, same: bool
    ) -> Community:
        by_model = old is not None and is_by_model(old)
        if old is None:
            old = Community.trusted(
                id=group.id, scope=self._scope, level=level, created_at=self.moment, updated_at=self.moment
            )
        text: dict[str, str] = {}
        if not is_of(old, digest) and not self._keeps_text(old, material.facts):
            text["name"] = old.name if by_model and same else name_of(material, "" if by_model else old.name)
            text["summary"] = self._redact(summary_of(material), material.names)
            text["fingerprint"] = digest + EXTRACTIVE
        return old.changed(parent_id=group.parent_id, updated_at=self.moment, **text)

    def _end_others(self, plan: Plan) -> None:
        continued = {row.community.id for row in plan.rows}
        ended = [c for c in self._present.communities.values() if c.id not in continued]
        plan.ended = len(ended)
        plan.communities += [c.changed(ended_at=self.moment, updated_at=self.moment) for c in ended]


def is_of(community: Community, digest: str) -> bool:
    """Return whether the texts of a community were made from data with this fingerprint."""
    return community.fingerprint.removesuffix(EXTRACTIVE).removesuffix(REFUSED) == digest


def is_by_model(community: Community) -> bool:
    """Return whether a language model wrote the summary."""
    return bool(community.summary) and not community.fingerprint.endswith(EXTRACTIVE)


def described_by(row: Row, found: Description, material: Material, redact: Redact) -> Community:
    """Return a community with a model's description; an earlier name by the model is kept while most members stay."""
    community = row.community
    keeps_name = is_by_model(community) and community.name and not row.renamed
    name = community.name if keeps_name else redact(found.name, material.names) or name_of(material)
    return community.changed(name=name, summary=redact(found.summary, material.names), fingerprint=row.digest)


def refused(row: Row) -> Community:
    """Return a community with its text, marked so that the model is not asked again about these facts."""
    by_model = is_by_model(row.community)
    return row.community.changed(fingerprint=row.digest + REFUSED + ("" if by_model else EXTRACTIVE))


def materials(
    backend: GraphBackend,
    scope: Scope,
    partition: Partition,
    grouped: Sequence[CommunityFacts],
    groups: Sequence[tuple[int, int]],
) -> list[Material]:
    """Read the description data of groups, given as (level, number); two round trips."""
    ids = partition.node_ids
    central = [[ids[n] for n in grouped[level].central(number, CENTRAL)] for level, number in groups]
    best = [grouped[level].top(number, TOP_FACTS) for level, number in groups]
    edges = backend.get_edges([scope], list(dict.fromkeys(i for top in best for i, _ in top)))
    unnamed = [end for edge in edges.values() if not edge.fact for end in (edge.source_id, edge.target_id)]
    wanted = dict.fromkeys([*(i for some in central for i in some), *unnamed])
    names = {i: entity.name for i, entity in backend.get_entities([scope], list(wanted)).items()}

    def in_words(edge: Edge) -> str:
        words = (names.get(edge.source_id, ""), relation_words(edge.relation), names.get(edge.target_id, ""))
        return " ".join(words).strip()

    return [
        Material(
            names=tuple(names[i] for i in some if i in names),
            size=len(grouped[level].members(number)),
            facts=grouped[level].count(number),
            top=tuple(
                TopFact(ends, edge.fact or in_words(edge), _when(edge))
                for i, ends in top
                if (edge := edges.get(i)) is not None
            ),
            period=grouped[level].period(number),
        )
        for (level, number), some, top in zip(groups, central, best, strict=True)
    ]


def _when(edge: Edge) -> str:
    """Return when a fact began or happened, or when it was told if that isn't known, and its certainty."""
    word = "on" if edge.kind == "event" else "told" if edge.valid_from_assumed else "since"
    certainty = "" if edge.certainty == "stated" else f", {edge.certainty}"
    return f"{word} {edge.valid_from.date().isoformat()}{certainty}"
