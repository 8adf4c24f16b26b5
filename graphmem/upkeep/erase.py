"""Erasure of episodes or of an entity: collects all affected rows of a store and writes one change.

- Facts: a fact is removed if all its episodes are forgotten. Otherwise it loses the forgotten episodes. If the first
  of its episodes is among them, its sentence came from there: the plain triple replaces it, and its properties go.
- Entities: an entity is removed if no other episode mentions it and no remaining fact is about it. The same applies to
  entities that were merged into another one. The remaining entities lose what may quote a forgotten text: their
  summaries, and aliases that only such a text used.
- Validity: a fact that ended only because of a forgotten statement becomes valid again.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from graphmem.index.codec import detail_of
from graphmem.models import (
    FORGETTING,
    Alias,
    Changes,
    CommunityQuery,
    Edge,
    EdgeQuery,
    Entity,
    EntityQuery,
    Episode,
    EpisodeQuery,
    EpisodeRedaction,
    IndexKind,
    JobState,
    Membership,
    MembershipQuery,
    Mention,
    Merge,
    MergeQuery,
    RecallQuery,
    Removal,
    RemovalKind,
    Scope,
    new_id,
    utc_now,
)
from graphmem.ontology import Ontology
from graphmem.protocols import GraphBackend, pages
from graphmem.text.names import NameFinder
from graphmem.text.normalize import canonical
from graphmem.upkeep.forgotten_aliases import Forgetting, merged_away
from graphmem.upkeep.merge import ALL, closed_first, ended_by_later, restated

_PAGE = 500
EXAMPLES = 5
SHOWN = 80  # characters of each example text


@dataclass(slots=True)
class Erased:
    """Result of an erasure: the rows that it removed and changed.

    Attributes
    ----------
    removed
        Ids of the removed rows by kind; keys for index entries.
    redacted_episodes, rewritten_facts, emptied_communities
        Number of rows that stay without the text that they quoted.
    mentions
        Number of mentions removed together with their entity or episode.
    unindexed
        (kind, key) of the index entries of all removed and changed rows.
    examples
        Some of the removed texts by kind of row.
    named
        Names of remaining entities that contain the forgotten name.
    state
        Job state (`FORGETTING`) that invalidates data read earlier, and records that the files are to be scrubbed.
    """

    removed: dict[RemovalKind, list[str]] = field(default_factory=dict[RemovalKind, "list[str]"])
    redacted_episodes: int = 0
    rewritten_facts: int = 0
    emptied_communities: int = 0
    mentions: int = 0
    examples: dict[str, list[str]] = field(default_factory=dict[str, "list[str]"])
    named: list[str] = field(default_factory=list[str])
    unindexed: list[tuple[IndexKind, str]] = field(default_factory=list["tuple[IndexKind, str]"])
    state: JobState = field(default_factory=lambda: JobState(FORGETTING, begun_at=utc_now(), cursor=new_id()))

    def count(self, kind: RemovalKind) -> int:
        """Return the number of removed rows of a kind."""
        return len(self.removed.get(kind, ()))


@dataclass(frozen=True, slots=True)
class Subject:
    """Person or thing to erase even if other episodes mention it.

    Attributes
    ----------
    names
        Names that no other entity has.
    entity
        Its entity; None if it has none, or none any more.
    redacted
        New texts, by id, of triple episodes that lose the lines about the subject.
    staying
        Other episodes, by id, that mention it or contain one of its names and are kept.
    """

    names: frozenset[str]
    entity: Entity | None = None
    redacted: Mapping[str, str] = field(default_factory=dict[str, str])
    staying: Mapping[str, Episode] = field(default_factory=dict[str, Episode])


class Erasure:
    """One erasure, to be run in a transaction of the store.

    Parameters
    ----------
    backend, scope
        Store and scope to erase from.
    ontology
        Defines which relations are single-valued.
    episodes
        Episodes to remove, by id.
    subject
        Person or thing to remove even if other episodes mention it; None to remove episodes only.
    """

    def __init__(
        self,
        backend: GraphBackend,
        scope: Scope,
        ontology: Ontology,
        episodes: dict[str, Episode],
        subject: Subject | None = None,
    ) -> None:
        self._backend = backend
        self._scope = scope
        self._ontology = ontology
        self._episodes = episodes
        self._subject = subject
        self._entity = None if subject is None else subject.entity
        self._changes: dict[str, list[Any]] = {}
        self._removals: dict[Removal, None] = {}
        self._done = Erased()

    def run(self) -> Erased:
        """Collect all changes, write them and return the result."""
        self._find_facts()
        self._find_reopened()
        self._find_entities()
        self._find_merged()
        self._find_merge_relatives()
        self._quotes = NameFinder(self._names)
        self._rewrite_facts()
        self._rewrite_entities()
        self._redact_episodes()
        self._communities()
        self._recall_traces()
        self._merges()
        self._index()
        self._remove("edge", self._gone_facts)
        self._remove("entity", self._gone_entities)
        self._remove("episode", self._episodes)
        self._collect_examples()
        self._write()
        return self._done

    def _write(self) -> None:
        changes: dict[str, Any] = {name: tuple(rows) for name, rows in self._changes.items()}
        rows = self._backend.get_edges([self._scope], [edge.id for edge in changes.get("edges", ())])
        changes["expiries"] = closed_first({**self._gone_facts, **rows}.values(), utc_now())
        self._backend.write(
            self._scope, Changes(**changes, removals=tuple(self._removals), job_states=(self._done.state,))
        )
        for removal in self._removals:
            self._done.removed.setdefault(removal.kind, []).append(removal.id)

    def _put(self, part: str, row: Any) -> None:
        self._changes.setdefault(part, []).append(row)

    def _remove(self, kind: RemovalKind, ids: Iterable[str], qualifier: str = "") -> None:
        self._removals.update((Removal(kind, row_id, qualifier), None) for row_id in ids)

    def _unindex(self, kind: IndexKind, keys: Iterable[str]) -> None:
        keys = list(keys)
        self._remove("index", keys, kind)
        self._done.unindexed.extend((kind, key) for key in keys)

    # Removed rows -----------------------------------------------------------------------------------

    def _find_facts(self) -> None:
        """Divide the facts of the episodes into those to remove and those that other episodes state as well."""
        stated = self._backend.get_edges(
            [self._scope], self._backend.find_edges_of_episodes(self._scope, list(self._episodes))
        )
        gone = {i: edge for i, edge in stated.items() if not set(edge.episode_ids) - self._episodes.keys()}
        if self._entity is not None:
            query = EdgeQuery(touching=(self._entity.id,), versions="all")
            gone.update((edge.id, edge) for edge in self._backend.all_edges([self._scope], query))
        self._gone_facts: dict[str, Edge] = gone
        self._kept_facts = {i: edge for i, edge in stated.items() if i not in gone}

    def _find_reopened(self) -> None:
        """Find the facts that ended only because of a forgotten statement, and compute their validity without it."""
        self._reopened: dict[str, Edge] = {}
        unstated = {i: edge for i, edge in self._gone_facts.items() if set(edge.episode_ids) & self._episodes.keys()}
        slots = dict.fromkeys((edge.source_id, edge.relation) for edge in unstated.values())
        if not slots:
            return
        query = EdgeQuery(slots=tuple(slots), versions="all")
        there = {e.id: e for e in self._backend.all_edges([self._scope], query) if e.id not in self._gone_facts}
        held = {edge.key for edge in there.values() if edge.is_active}
        for edge in there.values():
            if edge.superseded_by not in unstated:
                continue
            after: str | None = edge.superseded_by
            while after in self._gone_facts:
                after = self._gone_facts[after].superseded_by
            if (later := there.get(after or "")) is not None:
                end = max(later.valid_from, edge.valid_from)
                self._reopened[edge.id] = edge.changed(valid_to=end, superseded_by=later.id)
            elif edge.key not in held:
                held.add(edge.key)
                self._reopened[edge.id] = edge.changed(valid_to=None, expired_at=None, superseded_by=None)
        now_there = {**there, **self._reopened}.values()
        self._reopened.update((e.id, e) for e in ended_by_later(now_there, self._ontology, utc_now()))

    def _find_entities(self) -> None:
        """Find the entities to remove, the remaining touched entities, and the names of the removed ones."""
        self._mentions: list[Mention] = []
        if self._episodes:
            ids = list(self._episodes)
            self._mentions = self._backend.find_mentions([self._scope], episode_ids=ids, limit=ALL)
        ends = {end for edge in self._gone_facts.values() for end in (edge.source_id, edge.target_id)}
        touched = self._backend.get_entities([self._scope], sorted({m.entity_id for m in self._mentions} | ends))
        self._other_mentions: dict[str, list[Mention]] = {}
        if touched:
            for mention in self._backend.find_mentions([self._scope], entity_ids=list(touched), limit=ALL):
                if mention.episode_id not in self._episodes and not self._is_redacted(mention):
                    self._other_mentions.setdefault(mention.entity_id, []).append(mention)
        staying: set[str] = set() if self._subject is None else set(self._subject.staying)
        unknown = [
            i
            for i, entity in touched.items()
            if not (others := self._other_mentions.get(i, ()))
            or (_is_value(entity) and all(mention.episode_id in staying for mention in others))
        ]
        held = self._held(unknown)
        self._mentioned = {mention.entity_id for mention in self._mentions}
        known_by = self._mentioned if self._subject is None else self._mentioned | ends
        alone = {i for i in unknown if i in known_by and i not in held}
        values = {i for i in alone if i in self._other_mentions}  # their names stay in episodes that are kept
        self._gone_entities = {i: touched[i] for i in sorted(alone)}
        if self._entity is not None:
            self._gone_entities[self._entity.id] = self._entity
        self._left = {i: entity for i, entity in touched.items() if i not in self._gone_entities}
        aliases = self._backend.find_aliases([self._scope], list(self._gone_entities)) if self._gone_entities else []
        self._names = {alias.alias for alias in aliases if alias.entity_id not in values}
        if self._subject is not None:
            if self._entity is not None:
                self._names -= {alias.alias for alias in aliases if alias.entity_id == self._entity.id}
            self._names |= self._subject.names
        of_gone = self._backend.find_mentions([self._scope], entity_ids=list(self._gone_entities), limit=ALL)
        self._mentions_of_gone = of_gone
        self._done.mentions = len({(m.entity_id, m.episode_id) for m in (*self._mentions, *of_gone)})

    def _is_redacted(self, mention: Mention) -> bool:
        """Return whether a mention is in a redacted line; if so, remove it."""
        left = None if self._subject is None else self._subject.redacted.get(mention.episode_id)
        if left is None or NameFinder([mention.surface]).found_in(left):
            return False
        self._removals[Removal("mention", mention.entity_id, mention.episode_id)] = None
        return True

    def _find_merged(self) -> None:
        """Find the merged entities to remove, and remove their names from the entities that hold them now."""
        self._ledger = list(self._backend.all_merges([self._scope], MergeQuery(undone=True)))
        here = {end for merge in self._ledger for end in (merge.kept_id, merge.merged.id)}
        aliases = self._backend.find_aliases([self._scope], list(self._left)) if here and self._left else []
        forgetting = Forgetting(
            episodes=self._episodes,
            gone=self._gone_entities,
            left=self._left,
            mentions=self._mentions,
            other_mentions=self._other_mentions,
            fact_goes=self._fact_goes,
            other_texts=self._texts,
            named_in=self._named_in,
        )
        found = merged_away(self._ledger, aliases, forgetting)
        self._gone_merged, self._holders = found.ids, found.holders
        for alias in aliases:
            if alias.alias in found.names.get(alias.entity_id, ()):
                self._remove("alias", [alias.alias], alias.entity_type)
        self._names |= {name for names in found.names.values() for name in names}

    @staticmethod
    def _named_in(names: Iterable[str], texts: Iterable[str]) -> bool:
        return any(map(NameFinder(names).found_in, texts))

    def _find_merge_relatives(self) -> None:
        """Find all entities that were ever merged with one that a forgotten episode mentions, also if unmerged since.

        Merged entities shared summaries and communities, so each of these may quote an episode that mentions another.
        """
        linked: dict[str, set[str]] = {}
        for merge in self._ledger:
            pair = {merge.kept_id, merge.merged.id}
            for end in pair:
                linked.setdefault(end, set()).update(pair)
        self._relatives: set[str] = set()
        found = self._mentioned | self._gone_entities.keys() | self._gone_merged
        while found:
            self._relatives |= found
            found = {other for end in found for other in linked.get(end, ())} - self._relatives
        missing = sorted(self._relatives - self._gone_entities.keys() - self._left.keys())
        self._left_relatives = self._backend.get_entities([self._scope], missing) if missing else {}

    def _texts(self, episode_ids: Collection[str]) -> Iterator[str]:
        return (e.text for e in self._backend.get_episodes([self._scope], list(episode_ids)).values())

    def _fact_goes(self, edge: Edge) -> bool:
        """Return whether a fact in the merge ledger is to be removed."""
        ends, said = {edge.source_id, edge.target_id}, set(edge.episode_ids)
        return (
            edge.id in self._gone_facts
            or bool(ends & self._gone_entities.keys())
            or bool(said and not said - self._episodes.keys())
        )

    def _held(self, entity_ids: Sequence[str]) -> set[str]:
        """Return the entities that are part of a remaining fact."""
        if not entity_ids:
            return set()
        query = EdgeQuery(touching=tuple(entity_ids), versions="all")
        edges = self._backend.all_edges([self._scope], query)
        return {end for edge in edges if edge.id not in self._gone_facts for end in (edge.source_id, edge.target_id)}

    # Remaining rows, without quotes of erased text ----------------------------------------------------

    def _rewrite_facts(self) -> None:
        """Remove forgotten episodes, and sentences that quote erased text, from the remaining facts."""
        stay = dict(self._kept_facts)
        if self._gone_entities:
            episode_ids = [m.episode_id for m in self._mentions_of_gone]
            edge_ids = self._backend.find_edges_of_episodes(self._scope, episode_ids)
            for edge in self._backend.get_edges([self._scope], edge_ids).values():
                if edge.id not in self._gone_facts and self._quotes.found_in(edge.fact):
                    stay.setdefault(edge.id, edge)
        if self._subject is not None:
            for edge in self._backend.all_edges([self._scope], EdgeQuery(versions="all")):
                if edge.id not in self._gone_facts and self._quotes.found_in(edge.fact):
                    stay.setdefault(edge.id, edge)
        ends = {end for edge in stay.values() for end in (edge.source_id, edge.target_id)}
        names = {i: e.name for i, e in self._backend.get_entities([self._scope], sorted(ends)).items()}
        for edge in stay.values():
            self._put("edges", self._without(self._reopened.pop(edge.id, edge), lambda i: names[i]))
        for edge in self._reopened.values():
            self._put("edges", edge)
        self._unindex("fact", stay)
        self._done.rewritten_facts = len(stay)

    def _without(self, edge: Edge, name_of: Callable[[str], str]) -> Edge:
        """Return a fact as the remaining episodes state it."""
        left = [i for i in edge.episode_ids if i not in self._episodes]
        return restated(edge, left, name_of, plain=self._quotes.found_in(edge.fact))

    def _rewrite_entities(self) -> None:
        """Clear summaries that may quote erased text, and remove aliases that only a forgotten text used."""
        used: dict[str, set[str]] = {}
        for mention in self._mentions:
            used.setdefault(mention.entity_id, set()).add(canonical(mention.surface))
        others = {**self._left, **self._left_relatives}
        if self._subject is not None:
            others.update(self._named_entities())
        for entity in others.values():
            if entity.summary and (entity.id in self._relatives or self._quotes.found_in(entity.summary)):
                self._put("entities", entity.changed(summary=""))
                self._unindex("entity", [entity.id])
        before = self._surfaces_before_merges()
        for alias in self._backend.find_aliases([self._scope], [i for i in self._left if i in used]):
            others = self._other_mentions.get(alias.entity_id, ())
            surfaces = {canonical(m.surface) for m in others} | before.get(alias.entity_id, set())
            own = self._left[alias.entity_id].canonical_name
            if alias.alias not in used[alias.entity_id] or alias.alias in surfaces or alias.alias == own:
                continue
            # an episode has one mention of an entity, also if it uses two of its names
            if not self._named_in({alias.alias}, self._texts([mention.episode_id for mention in others])):
                self._remove("alias", [alias.alias], alias.entity_type)

    def _named_entities(self) -> dict[str, Entity]:
        """Return the remaining entities whose name or summary contains a name of the subject.

        Names that contain it are added to `Erased.named`.
        """
        found: dict[str, Entity] = {}
        query = EntityQuery(archived=True)
        for page in pages(lambda after: self._backend.find_entities([self._scope], query, after=after, limit=_PAGE)):
            for entity in page:
                called = self._quotes.found_in(entity.name)
                if entity.id not in self._gone_entities and (called or self._quotes.found_in(entity.summary)):
                    found[entity.id] = entity
                    self._done.named += [entity.name] if called else []
        return found

    def _surfaces_before_merges(self) -> dict[str, set[str]]:
        """Return the names of merged entities in the remaining episodes, by the entity that holds them now."""
        found: dict[str, set[str]] = {}
        for merge in self._ledger:
            holder = self._holders.get(merge.merged.id)
            if holder is None or merge.merged.id in self._gone_merged:
                continue
            surfaces = found.setdefault(holder, set())
            surfaces.add(merge.merged.canonical_name)
            surfaces.update(canonical(m.surface) for m in merge.mentions if m.episode_id not in self._episodes)
        return found

    def _redact_episodes(self) -> None:
        """Remove the lines about the subject from triple episodes."""
        if self._subject is None:
            return
        for episode_id, text in self._subject.redacted.items():
            self._put("redactions", EpisodeRedaction(episode_id, text))
            self._done.unindexed.append(("episode", episode_id))
            self._done.redacted_episodes += 1

    def _collect_examples(self) -> None:
        """Collect examples of the removed texts for display."""
        said = (f"{e.speaker}: {e.text}" if e.speaker else e.text for e in self._episodes.values())
        texts: dict[str, Iterable[str]] = {
            "episodes": said,
            "entities": (entity.name for entity in self._gone_entities.values()),
            "facts": (edge.fact for edge in self._gone_facts.values()),
            "rewritten_facts": (edge.fact for edge in self._kept_facts.values()),
        }
        for kind, found in texts.items():
            if shown := [text[:SHOWN] for text, _ in zip(found, range(EXAMPLES), strict=False)]:
                self._done.examples[kind] = shown

    def _communities(self) -> None:
        """Clear name, summary and fingerprint of the affected communities; the next refresh writes them again.

        Communities without remaining members are removed.
        """
        entity_ids = [*self._gone_entities, *self._left, *self._left_relatives]
        within = {m.community_id for m in self._memberships(entity_ids=entity_ids)} if entity_ids else set[str]()
        now = utc_now()
        for community in self._backend.all_communities([self._scope], CommunityQuery(ended=True)):
            text = f"{community.name}\n{community.summary}"
            if community.id not in within and not self._quotes.found_in(text):
                continue
            members = {m.entity_id for m in self._memberships(community_ids=[community.id])}
            if not members - self._gone_entities.keys():
                self._remove("community", [community.id])
            elif community.name or community.summary or community.fingerprint:
                updated = max(now, community.updated_at) if community.ended_at is None else community.updated_at
                emptied = community.changed(name="", summary="", fingerprint="", updated_at=updated)
                self._put("communities", emptied)
                self._done.emptied_communities += 1

    def _memberships(
        self, *, entity_ids: Sequence[str] | None = None, community_ids: Sequence[str] | None = None
    ) -> Iterator[Membership]:
        query = MembershipQuery(
            entity_ids=None if entity_ids is None else tuple(entity_ids),
            community_ids=None if community_ids is None else tuple(community_ids),
            ended=True,
        )
        return self._backend.all_memberships([self._scope], query)

    # Traces, merge ledger and index -----------------------------------------------------------------

    def _recall_traces(self) -> None:
        """Remove the recall traces that contain a removed row or whose query contains a removed name."""
        queries = (
            RecallQuery(entity_ids=tuple(self._gone_entities)),
            RecallQuery(edge_ids=tuple(self._gone_facts)),
            RecallQuery(episode_ids=tuple(self._episodes)),
        )
        for query in queries:
            self._remove("recall", [trace.id for trace in self._backend.all_recalls([self._scope], query)])
        if self._names:
            asked = self._backend.all_recalls([self._scope], RecallQuery())
            self._remove("recall", [trace.id for trace in asked if self._quotes.found_in(trace.query)])

    def _merges(self) -> None:
        """Remove erased data from the merge ledger; merges of removed entities are removed as a whole."""
        gone = self._gone_entities.keys() | self._gone_merged
        gone |= self._permanently_merged(gone)
        known = {m.merged.id: m.merged.name for m in self._ledger if m.merged.id not in gone}
        unused = {(removal.id, removal.qualifier) for removal in self._removals if removal.kind == "alias"}
        unheld = self._unheld_names()
        for merge in self._ledger:
            if {merge.kept_id, merge.merged.id} & gone:
                self._remove("merge", [merge.id])
            elif (scrubbed := self._scrubbed(merge, unused, unheld, known)) != merge:
                self._put("merges", scrubbed)

    def _unheld_names(self) -> set[str]:
        """Return the removed names that no remaining entity holds; an undone merge may have assigned them to one."""
        held = self._backend.resolve_names(self._scope, sorted(self._names)) if self._names else []
        return self._names - {name for name, entity in held if entity.id not in self._gone_entities}

    def _permanently_merged(self, gone: Collection[str]) -> set[str]:
        """Return the merged entities that can't be unmerged any more, because their merge involves a removed entity."""
        permanent: set[str] = set()
        for merge in reversed(self._ledger):  # ids are in the order of time
            if merge.undone_at is None and {merge.kept_id, merge.merged.id} & {*gone, *permanent}:
                permanent.add(merge.merged.id)
        return permanent

    def _scrubbed(
        self, merge: Merge, unused: Collection[tuple[str, str]], unheld: Collection[str], merged: Mapping[str, str]
    ) -> Merge:
        """Return a merge without erased data.

        Parameters
        ----------
        merge
            A row of the ledger.
        unused
            Removed aliases as (name, entity type).
        unheld
            Removed names of any type.
        merged
            Names of the remaining merged entities, by id.
        """
        names = {**merged, merge.kept_id: merge.kept.name, merge.merged.id: merge.merged.name}
        goes = self._fact_goes

        def used(aliases: tuple[Alias, ...]) -> tuple[Alias, ...]:
            return tuple(a for a in aliases if a.alias not in unheld and (a.alias, a.entity_type) not in unused)

        def kept(edge: Edge) -> Edge:
            if not set(edge.episode_ids) & self._episodes.keys() and not self._quotes.found_in(edge.fact):
                return edge
            ends = self._backend.get_entities([self._scope], [edge.source_id, edge.target_id])
            known = {**{i: e.name for i, e in ends.items()}, **names}
            return self._without(edge, lambda i: known.get(i, ""))

        mentions = tuple(m for m in merge.mentions if m.episode_id not in self._episodes)
        alone = [f.edge.changed(id=f.into.id) for f in merge.folded if f.into is not None and goes(f.into)]
        edges = tuple(kept(edge) for edge in (*merge.edges, *alone) if not goes(edge))
        folded = tuple(
            pair.changed(edge=kept(pair.edge), into=None if pair.into is None else kept(pair.into))
            for pair in merge.folded
            if not goes(pair.edge) and (pair.into is None or not goes(pair.into))
        )
        shared = tuple(i for i in merge.shared if i not in self._episodes)
        unmentioned = (len(mentions), len(shared)) != (len(merge.mentions), len(merge.shared))
        clear = unmentioned or edges != merge.edges or folded != merge.folded
        return merge.changed(
            kept=self._without_summary(merge.kept, clear),
            merged=self._without_summary(merge.merged, clear),
            mentions=mentions,
            edges=edges,
            folded=folded,
            shared=shared,
            aliases=used(merge.aliases),
            added=used(merge.added),
        )

    def _without_summary(self, row: Entity, clear: bool) -> Entity:
        """Return an entity of the ledger, without its summary if that may quote erased text."""
        if clear or row.id in self._relatives or self._quotes.found_in(row.summary):
            return row.changed(summary="")
        return row

    def _index(self) -> None:
        """Remove the index entries that depend on the episodes: those of following episodes, and unused names."""
        self._done.unindexed.extend(("episode", i) for i in self._episodes)
        self._done.unindexed.extend(("entity", i) for i in self._gone_entities)
        self._unindex("episode", self._following_episodes())
        if self._episodes or self._changes.get("redactions"):
            self._unindex("name", self._unused_names())

    def _unused_names(self) -> list[str]:
        """Return the names in the index that no unchanged indexed text contains.

        They include names of texts that aren't indexed at present; indexing these texts adds the names again.
        """
        gone = {*self._episodes, *(row.episode_id for row in self._changes.get("redactions", ()))}
        names = {entry.key for entry in self._backend.all_entries(self._scope, kind="name", chunk=_PAGE)}
        if names:
            for entry in self._backend.all_entries(self._scope, kind="episode", chunk=_PAGE):
                if entry.key not in gone:
                    names.difference_update(detail_of(entry).get("names", ()))
        return sorted(names)

    def _following_episodes(self) -> list[str]:
        """Return the episodes that were indexed together with a removed one: the next of its session."""
        found: set[str] = set()
        for episode in self._episodes.values():
            if episode.session_id is None:
                continue
            query = EpisodeQuery(session_id=episode.session_id)
            found |= {e.id for e in self._backend.find_episodes([self._scope], query, after=episode.id, limit=1)}
        return sorted(found - self._episodes.keys())


def _is_value(entity: Entity) -> bool:
    """Return whether an entity is a plain value such as a number, a date or an address."""
    return entity.entity_type == "concept" and any(c.isdigit() or c == "@" for c in entity.name)
