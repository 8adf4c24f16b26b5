"""What has to change for episodes or an entity to be gone: collected from a store, then written as one change.

A fact whose episodes are all forgotten goes. One that others state as well loses the forgotten ones; if the first of
its episodes is among them, the sentence came from there: the plain triple takes its place, and its properties go. An
entity that nothing else mentions and no fact is about goes, also one that was merged into another; of the others what
may quote a forgotten text goes: their summaries, and names that only such a text used. What ended only because of a
forgotten statement goes on.
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
    IndexKind,
    JobState,
    Membership,
    MembershipQuery,
    Mention,
    Merge,
    MergeQuery,
    RecallQuery,
    Redaction,
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
SHOWN = 80  # letters of a text that is an example


@dataclass(slots=True)
class Erased:
    """What an erasure removes and changes.

    Attributes
    ----------
    removed
        Ids (of index entries their keys) by kind.
    redacted_episodes, rewritten_facts, emptied_communities
        What stays without what it quoted.
    mentions
        Mentions that go with what they were of or in.
    unindexed
        (kind, key) of what the index held of all that.
    examples
        Some of the texts that go, by what they are of.
    named
        Names of entities that stay and that have the forgotten name in them.
    mark
        What was left for those who read any of it before, and for files that aren't clean yet (`FORGETTING`).
    """

    removed: dict[RemovalKind, list[str]] = field(default_factory=dict[RemovalKind, "list[str]"])
    redacted_episodes: int = 0
    rewritten_facts: int = 0
    emptied_communities: int = 0
    mentions: int = 0
    examples: dict[str, list[str]] = field(default_factory=dict[str, "list[str]"])
    named: list[str] = field(default_factory=list[str])
    unindexed: list[tuple[IndexKind, str]] = field(default_factory=list["tuple[IndexKind, str]"])
    mark: JobState = field(default_factory=lambda: JobState(FORGETTING, begun_at=utc_now(), cursor=new_id()))

    def count(self, kind: RemovalKind) -> int:
        """Return how many rows of a kind go."""
        return len(self.removed.get(kind, ()))


@dataclass(frozen=True, slots=True)
class Subject:
    """Somebody or something that goes whatever else mentions it.

    Attributes
    ----------
    names
        That only it goes by.
    entity
        Its entity; None where it has none (any more).
    redacted
        Texts of episodes of ready-made facts without the lines about it, by id.
    staying
        Other episodes that mention it, or have one of the names, and stay; by id.
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
        Whose rows.
    ontology
        Tells which relations are single-valued.
    episodes
        The episodes that go, by id.
    subject
        What goes whatever else mentions it; None for nothing.
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
        """Collect and write everything; return what that was."""
        self._facts()
        self._ends()
        self._people()
        self._merged()
        self._find_kin()
        self._quotes = NameFinder(self._names)
        self._rewrite_facts()
        self._rewrite_entities()
        self._redact_episodes()
        self._communities()
        self._traces()
        self._merges()
        self._index()
        self._remove("edge", self._gone_facts)
        self._remove("entity", self._gone_people)
        self._remove("episode", self._episodes)
        self._give_examples()
        self._write()
        return self._done

    def _write(self) -> None:
        changes: dict[str, Any] = {name: tuple(rows) for name, rows in self._changes.items()}
        rows = self._backend.get_edges([self._scope], [edge.id for edge in changes.get("edges", ())])
        changes["closings"] = closed_first({**self._gone_facts, **rows}.values(), utc_now())
        self._backend.write(self._scope, Changes(**changes, removals=tuple(self._removals), marks=(self._done.mark,)))
        for removal in self._removals:
            self._done.removed.setdefault(removal.kind, []).append(removal.id)

    def _put(self, part: str, row: Any) -> None:
        self._changes.setdefault(part, []).append(row)

    def _remove(self, kind: RemovalKind, ids: Iterable[str], of: str = "") -> None:
        self._removals.update((Removal(kind, row_id, of), None) for row_id in ids)

    def _unindex(self, kind: IndexKind, keys: Iterable[str]) -> None:
        keys = list(keys)
        self._remove("index", keys, kind)
        self._done.unindexed.extend((kind, key) for key in keys)

    # What goes --------------------------------------------------------------------------------------

    def _facts(self) -> None:
        """Tell the facts that go from those that others state as well."""
        told = self._backend.get_edges(
            [self._scope], self._backend.find_edges_of_episodes(self._scope, list(self._episodes))
        )
        gone = {i: edge for i, edge in told.items() if not set(edge.episode_ids) - self._episodes.keys()}
        if self._entity is not None:
            query = EdgeQuery(touching=(self._entity.id,), versions="all")
            gone.update((edge.id, edge) for edge in self._backend.all_edges([self._scope], query))
        self._gone_facts: dict[str, Edge] = gone
        self._kept_facts = {i: edge for i, edge in told.items() if i not in gone}

    def _ends(self) -> None:
        """Find the facts that ended only because of what a forgotten episode stated, as they are without that."""
        self._going_on: dict[str, Edge] = {}
        unsaid = {i: edge for i, edge in self._gone_facts.items() if set(edge.episode_ids) & self._episodes.keys()}
        slots = dict.fromkeys((edge.source_id, edge.relation) for edge in unsaid.values())
        if not slots:
            return
        query = EdgeQuery(slots=tuple(slots), versions="all")
        there = {e.id: e for e in self._backend.all_edges([self._scope], query) if e.id not in self._gone_facts}
        held = {edge.key for edge in there.values() if edge.is_active}
        for edge in there.values():
            if edge.superseded_by not in unsaid:
                continue
            after: str | None = edge.superseded_by
            while after in self._gone_facts:
                after = self._gone_facts[after].superseded_by
            if (later := there.get(after or "")) is not None:
                end = max(later.valid_from, edge.valid_from)
                self._going_on[edge.id] = edge.changed(valid_to=end, superseded_by=later.id)
            elif edge.key not in held:
                held.add(edge.key)
                self._going_on[edge.id] = edge.changed(valid_to=None, expired_at=None, superseded_by=None)
        now_there = {**there, **self._going_on}.values()
        self._going_on.update((e.id, e) for e in ended_by_later(now_there, self._ontology, utc_now()))

    def _people(self) -> None:
        """Find the entities that go, those that are left, and the names that mean the former."""
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
        values = {i for i in alone if i in self._other_mentions}  # their names stay in somebody's words
        self._gone_people = {i: touched[i] for i in sorted(alone)}
        if self._entity is not None:
            self._gone_people[self._entity.id] = self._entity
        self._left = {i: entity for i, entity in touched.items() if i not in self._gone_people}
        aliases = self._backend.find_aliases([self._scope], list(self._gone_people)) if self._gone_people else []
        self._names = {alias.alias for alias in aliases if alias.entity_id not in values}
        if self._subject is not None:
            if self._entity is not None:
                self._names -= {alias.alias for alias in aliases if alias.entity_id == self._entity.id}
            self._names |= self._subject.names
        of_gone = self._backend.find_mentions([self._scope], entity_ids=list(self._gone_people), limit=ALL)
        self._mentions_of_gone = of_gone
        self._done.mentions = len({(m.entity_id, m.episode_id) for m in (*self._mentions, *of_gone)})

    def _is_redacted(self, mention: Mention) -> bool:
        """Return whether a mention was in a line that goes, and have it go, too."""
        left = None if self._subject is None else self._subject.redacted.get(mention.episode_id)
        if left is None or NameFinder([mention.surface]).found_in(left):
            return False
        self._removals[Removal("mention", mention.entity_id, mention.episode_id)] = None
        return True

    def _merged(self) -> None:
        """Find the merged entities that go, and take their names from those that have them now."""
        self._ledger = list(self._backend.all_merges([self._scope], MergeQuery(undone=True)))
        here = {end for merge in self._ledger for end in (merge.kept_id, merge.merged.id)}
        aliases = self._backend.find_aliases([self._scope], list(self._left)) if here and self._left else []
        told = Forgetting(
            episodes=self._episodes,
            gone=self._gone_people,
            left=self._left,
            mentions=self._mentions,
            other_mentions=self._other_mentions,
            fact_goes=self._fact_goes,
            other_texts=self._texts,
            named_in=self._named_in,
        )
        found = merged_away(self._ledger, aliases, told)
        self._gone_merged, self._holders = found.ids, found.holders
        for alias in aliases:
            if alias.alias in found.names.get(alias.entity_id, ()):
                self._remove("alias", [alias.alias], alias.entity_type)
        self._names |= {name for names in found.names.values() for name in names}

    @staticmethod
    def _named_in(names: Iterable[str], texts: Iterable[str]) -> bool:
        return any(map(NameFinder(names).found_in, texts))

    def _find_kin(self) -> None:
        """Find all that was ever one with what a forgotten episode mentions, be it parted since.

        A summary or a community may quote an episode that mentions another of them: they had it in common.
        """
        linked: dict[str, set[str]] = {}
        for merge in self._ledger:
            pair = {merge.kept_id, merge.merged.id}
            for end in pair:
                linked.setdefault(end, set()).update(pair)
        self._kin: set[str] = set()
        found = self._mentioned | self._gone_people.keys() | self._gone_merged
        while found:
            self._kin |= found
            found = {other for end in found for other in linked.get(end, ())} - self._kin
        missing = sorted(self._kin - self._gone_people.keys() - self._left.keys())
        self._left_kin = self._backend.get_entities([self._scope], missing) if missing else {}

    def _texts(self, episode_ids: Collection[str]) -> Iterator[str]:
        return (e.text for e in self._backend.get_episodes([self._scope], list(episode_ids)).values())

    def _fact_goes(self, edge: Edge) -> bool:
        """Return whether a fact goes that the ledger keeps."""
        ends, said = {edge.source_id, edge.target_id}, set(edge.episode_ids)
        return (
            edge.id in self._gone_facts
            or bool(ends & self._gone_people.keys())
            or bool(said and not said - self._episodes.keys())
        )

    def _held(self, entity_ids: Sequence[str]) -> set[str]:
        """Return those of the entities that a fact which stays is about."""
        if not entity_ids:
            return set()
        query = EdgeQuery(touching=tuple(entity_ids), versions="all")
        edges = self._backend.all_edges([self._scope], query)
        return {end for edge in edges if edge.id not in self._gone_facts for end in (edge.source_id, edge.target_id)}

    # What stays, without what it quoted -------------------------------------------------------------

    def _rewrite_facts(self) -> None:
        """Take forgotten episodes, and sentences that quote what goes, out of the facts that stay."""
        stay = dict(self._kept_facts)
        if self._gone_people:
            beside = self._backend.find_edges_of_episodes(self._scope, [m.episode_id for m in self._mentions_of_gone])
            for edge in self._backend.get_edges([self._scope], beside).values():
                if edge.id not in self._gone_facts and self._quotes.found_in(edge.fact):
                    stay.setdefault(edge.id, edge)
        if self._subject is not None:
            for edge in self._backend.all_edges([self._scope], EdgeQuery(versions="all")):
                if edge.id not in self._gone_facts and self._quotes.found_in(edge.fact):
                    stay.setdefault(edge.id, edge)
        ends = {end for edge in stay.values() for end in (edge.source_id, edge.target_id)}
        names = {i: e.name for i, e in self._backend.get_entities([self._scope], sorted(ends)).items()}
        for edge in stay.values():
            self._put("edges", self._without(self._going_on.pop(edge.id, edge), lambda i: names[i]))
        for edge in self._going_on.values():
            self._put("edges", edge)
        self._unindex("fact", stay)
        self._done.rewritten_facts = len(stay)

    def _without(self, edge: Edge, name_of: Callable[[str], str]) -> Edge:
        """Return a fact that stays as the episodes that are left state it."""
        left = [i for i in edge.episode_ids if i not in self._episodes]
        return restated(edge, left, name_of, plain=self._quotes.found_in(edge.fact))

    def _rewrite_entities(self) -> None:
        """Empty summaries that may quote what goes, and drop names that only a forgotten text used."""
        used: dict[str, set[str]] = {}
        for mention in self._mentions:
            used.setdefault(mention.entity_id, set()).add(canonical(mention.surface))
        others = {**self._left, **self._left_kin}
        if self._subject is not None:
            others.update(self._named_entities())
        for entity in others.values():
            if entity.summary and (entity.id in self._kin or self._quotes.found_in(entity.summary)):
                self._put("entities", entity.changed(summary=""))
                self._unindex("entity", [entity.id])
        before = self._surfaces_before_merges()
        for alias in self._backend.find_aliases([self._scope], [i for i in self._left if i in used]):
            others = self._other_mentions.get(alias.entity_id, ())
            surfaces = {canonical(m.surface) for m in others} | before.get(alias.entity_id, set())
            own = self._left[alias.entity_id].canonical_name
            if alias.alias not in used[alias.entity_id] or alias.alias in surfaces or alias.alias == own:
                continue
            # an episode that mentions an entity by two names has one mention of it
            if not self._named_in({alias.alias}, self._texts([mention.episode_id for mention in others])):
                self._remove("alias", [alias.alias], alias.entity_type)

    def _named_entities(self) -> dict[str, Entity]:
        """Return the entities in which the name of the subject stands; tell those that are called by it."""
        found: dict[str, Entity] = {}
        query = EntityQuery(archived=True)
        for page in pages(lambda after: self._backend.find_entities([self._scope], query, after=after, limit=_PAGE)):
            for entity in page:
                called = self._quotes.found_in(entity.name)
                if entity.id not in self._gone_people and (called or self._quotes.found_in(entity.summary)):
                    found[entity.id] = entity
                    self._done.named += [entity.name] if called else []
        return found

    def _surfaces_before_merges(self) -> dict[str, set[str]]:
        """Return, by the entity that has them now, what merged entities are called in episodes that stay."""
        found: dict[str, set[str]] = {}
        for merge in self._ledger:
            holder = self._holders.get(merge.merged.id)
            if holder is None or merge.merged.id in self._gone_merged:
                continue
            surfaces = found.setdefault(holder, {merge.merged.canonical_name})
            surfaces.update(canonical(m.surface) for m in merge.mentions if m.episode_id not in self._episodes)
        return found

    def _redact_episodes(self) -> None:
        """Take the lines about the subject out of episodes that are nothing but triples."""
        if self._subject is None:
            return
        for episode_id, text in self._subject.redacted.items():
            self._put("redactions", Redaction(episode_id, text))
            self._done.unindexed.append(("episode", episode_id))
            self._done.redacted_episodes += 1

    def _give_examples(self) -> None:
        """Collect some of what goes, for people to look at."""
        said = (f"{e.speaker}: {e.text}" if e.speaker else e.text for e in self._episodes.values())
        texts: dict[str, Iterable[str]] = {
            "episodes": said,
            "entities": (entity.name for entity in self._gone_people.values()),
            "facts": (edge.fact for edge in self._gone_facts.values()),
            "rewritten_facts": (edge.fact for edge in self._kept_facts.values()),
        }
        for kind, found in texts.items():
            if shown := [text[:SHOWN] for text, _ in zip(found, range(EXAMPLES), strict=False)]:
                self._done.examples[kind] = shown

    def _communities(self) -> None:
        """Empty what was written of the communities that any of this was part of, for it to be made anew."""
        people = [*self._gone_people, *self._left, *self._left_kin]
        within = {m.community_id for m in self._memberships(entity_ids=people)} if people else set[str]()
        now = utc_now()
        for community in self._backend.all_communities([self._scope], CommunityQuery(ended=True)):
            text = f"{community.name}\n{community.summary}"
            if community.id not in within and not self._quotes.found_in(text):
                continue
            members = {m.entity_id for m in self._memberships(community_ids=[community.id])}
            if not members - self._gone_people.keys():
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

    # What was kept beside the rows ------------------------------------------------------------------

    def _traces(self) -> None:
        """Remove the traces that came upon what goes, or whose question names it."""
        ways = (
            RecallQuery(entity_ids=tuple(self._gone_people)),
            RecallQuery(edge_ids=tuple(self._gone_facts)),
            RecallQuery(episode_ids=tuple(self._episodes)),
        )
        for query in ways:
            self._remove("recall", [trace.id for trace in self._backend.all_recalls([self._scope], query)])
        if self._names:
            asked = self._backend.all_recalls([self._scope], RecallQuery())
            self._remove("recall", [trace.id for trace in asked if self._quotes.found_in(trace.query)])

    def _merges(self) -> None:
        """Take what goes out of the evidence of merges; one of an entity that goes goes as a whole."""
        gone = self._gone_people.keys() | self._gone_merged
        gone |= self._never_back(gone)
        known = {m.merged.id: m.merged.name for m in self._ledger if m.merged.id not in gone}
        unused = {(removal.id, removal.of) for removal in self._removals if removal.kind == "alias"}
        unheld = self._unheld_names()
        for merge in self._ledger:
            if {merge.kept_id, merge.merged.id} & gone:
                self._remove("merge", [merge.id])
            elif (scrubbed := self._scrubbed(merge, unused, unheld, known)) != merge:
                self._put("merges", scrubbed)

    def _unheld_names(self) -> set[str]:
        """Return the names that go and that no entity has; an undone merge may have given them to one that stays."""
        held = self._backend.resolve_names(self._scope, sorted(self._names)) if self._names else []
        return self._names - {name for name, entity in held if entity.id not in self._gone_people}

    def _never_back(self, gone: Collection[str]) -> set[str]:
        """Return the entities whose merges can't be undone any more: what they went into doesn't come back."""
        never: set[str] = set()
        for merge in reversed(self._ledger):  # ids are in the order of time
            if merge.undone_at is None and {merge.kept_id, merge.merged.id} & {*gone, *never}:
                never.add(merge.merged.id)
        return never

    def _scrubbed(
        self, merge: Merge, unused: Collection[tuple[str, str]], unheld: Collection[str], merged: Mapping[str, str]
    ) -> Merge:
        """Return a merge without what goes.

        Parameters
        ----------
        merge
            A row of the ledger.
        unused
            Names that go, with their types.
        unheld
            Names that go, whatever their types.
        merged
            Names of merged entities that stay, by id.
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
        told = (len(mentions), len(shared)) != (len(merge.mentions), len(merge.shared))
        silent = told or edges != merge.edges or folded != merge.folded
        return merge.changed(
            kept=self._silent(merge.kept, silent),
            merged=self._silent(merge.merged, silent),
            mentions=mentions,
            edges=edges,
            folded=folded,
            shared=shared,
            aliases=used(merge.aliases),
            added=used(merge.added),
        )

    def _silent(self, row: Entity, silent: bool) -> Entity:
        """Return a row of the ledger without a summary that may quote what goes."""
        if silent or row.id in self._kin or self._quotes.found_in(row.summary):
            return row.changed(summary="")
        return row

    def _index(self) -> None:
        """Take out what the index made of the episodes and nobody else uses: what followed them, and names."""
        self._done.unindexed.extend(("episode", i) for i in self._episodes)
        self._done.unindexed.extend(("entity", i) for i in self._gone_people)
        self._unindex("episode", self._followers())
        if self._episodes or self._changes.get("redactions"):
            self._unindex("name", self._unused_names())

    def _unused_names(self) -> list[str]:
        """Return the names in the index that no text has which stays as it is.

        Names of a text that isn't indexed at present are among them; they come back with it.
        """
        gone = {*self._episodes, *(row.episode_id for row in self._changes.get("redactions", ()))}
        names = {entry.key for entry in self._backend.all_entries(self._scope, kind="name", chunk=_PAGE)}
        if names:
            for entry in self._backend.all_entries(self._scope, kind="episode", chunk=_PAGE):
                if entry.key not in gone:
                    names.difference_update(detail_of(entry).get("names", ()))
        return sorted(names)

    def _followers(self) -> list[str]:
        """Return the episodes that were read together with one that goes: the next of its session."""
        found: set[str] = set()
        for episode in self._episodes.values():
            if episode.session_id is None:
                continue
            query = EpisodeQuery(session_id=episode.session_id)
            found |= {e.id for e in self._backend.find_episodes([self._scope], query, after=episode.id, limit=1)}
        return sorted(found - self._episodes.keys())


def _is_value(entity: Entity) -> bool:
    """Return whether an entity is a number, a date, an address: what isn't anything by itself."""
    return entity.entity_type == "concept" and any(c.isdigit() or c == "@" for c in entity.name)
