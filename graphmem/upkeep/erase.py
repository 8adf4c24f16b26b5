"""Erasure of episodes or of an entity: finds all affected rows of a store and writes one change.

`graphmem.upkeep.affected` finds the rows that are removed. What remains must not quote a forgotten text:

- Facts lose the forgotten episodes. If the first episode of a fact is among them, its sentence came from there: the
  plain triple replaces it, and its properties go. If they counted as told by a forgotten one first, they are told by
  the first of the others.
- Entities lose summaries that may quote a forgotten text, aliases that only such a text used, and its time as the
  first or last at which they were named.
- Episodes that wait for extraction or failed lose the message of an error that may quote a forgotten text.
- Communities lose their names and summaries, the merge ledger loses its copies (`scrub`), and recall traces and index
  entries are removed.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from datetime import datetime

from graphmem.index.stored_vectors import detail_of
from graphmem.inference.premises import expiries_before_replacement, replace_times, times_of, write_facts
from graphmem.ingest.fact_ledger import entity_names
from graphmem.ingest.failures import without_reason
from graphmem.ingest.supersession.rules import with_sources
from graphmem.models import (
    FORGETTING,
    Alias,
    Changes,
    Community,
    CommunityQuery,
    Edge,
    EdgeQuery,
    Entity,
    EntityQuery,
    EpisodeFilter,
    EpisodeQuery,
    EpisodeRedaction,
    EpisodeState,
    IndexKind,
    JobState,
    Membership,
    MembershipQuery,
    Mention,
    Merge,
    ProcessingResult,
    RecallQuery,
    Removal,
    RemovalKind,
    new_id,
    utc_now,
)
from graphmem.text.names import NameFinder
from graphmem.text.normalize import canonical
from graphmem.upkeep.affected import Affected, find_affected
from graphmem.upkeep.erasure import ErasureRequest, fact_goes
from graphmem.upkeep.scope_rows import edges_of

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
    foreign
        Number of relationships of others removed together with their entity or episode.
    unindexed
        (kind, key) of the index entries of all removed and changed rows.
    examples
        Some of the removed texts by kind of row.
    is_empty
        Whether nothing had to be removed or changed.
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
    foreign: int = 0
    is_empty: bool = False
    examples: dict[str, list[str]] = field(default_factory=dict[str, "list[str]"])
    named: list[str] = field(default_factory=list[str])
    unindexed: list[tuple[IndexKind, str]] = field(default_factory=list["tuple[IndexKind, str]"])
    state: JobState = field(default_factory=lambda: JobState(FORGETTING, begun_at=utc_now(), cursor=new_id()))

    def count(self, kind: RemovalKind) -> int:
        """Return the number of removed rows of a kind."""
        return len(self.removed.get(kind, ()))


@dataclass(slots=True)
class _Plan:
    """The changes of an erasure, which the passes below collect, and its result."""

    done: Erased = field(default_factory=Erased)
    entities: list[Entity] = field(default_factory=list[Entity])
    edges: list[Edge] = field(default_factory=list[Edge])
    redactions: list[EpisodeRedaction] = field(default_factory=list[EpisodeRedaction])
    results: list[ProcessingResult] = field(default_factory=list[ProcessingResult])
    communities: list[Community] = field(default_factory=list[Community])
    merges: list[Merge] = field(default_factory=list[Merge])
    removals: dict[Removal, None] = field(default_factory=dict[Removal, None])

    def remove(self, kind: RemovalKind, ids: Iterable[str], qualifier: str = "") -> None:
        """Remove rows of a kind."""
        self.removals.update((Removal(kind, row_id, qualifier), None) for row_id in ids)

    def unindex(self, kind: IndexKind, keys: Iterable[str]) -> None:
        """Remove the index entries of rows that stay, or of names."""
        keys = list(keys)
        self.remove("index", keys, kind)
        self.done.unindexed.extend((kind, key) for key in keys)


def erase(request: ErasureRequest) -> Erased:
    """Collect all changes, write them and return the result; to be run in a transaction of the store."""
    found, plan = find_affected(request), _Plan()
    _remove_rows(request, found, plan)
    _rewrite_facts(request, found, plan)
    _rewrite_entities(request, found, plan)
    _redact_episodes(request, plan)
    _redact_errors(request, found, plan)
    _empty_communities(request, found, plan)
    _remove_traces(request, found, plan)
    _scrub_ledger(request, found, plan)
    _unindex(request, found, plan)
    plan.done.examples = dict(_examples(request, found))
    _write(request, found, plan)
    return plan.done


def _remove_rows(request: ErasureRequest, found: Affected, plan: _Plan) -> None:
    plan.remove("edge", found.facts.gone)
    plan.remove("entity", found.entities.gone)
    plan.remove("episode", request.episodes)
    for mention in found.entities.redacted_mentions:
        plan.remove("mention", [mention.entity_id], mention.episode_id)
    for alias in (*found.merges.aliases, *found.aliases):
        plan.remove("alias", [alias.alias], alias.entity_type)
    mentions = (*found.entities.mentions, *found.entities.mentions_of_gone)
    plan.done.foreign = request.backend.count_foreign(request.scope, [*found.entities.gone, *request.episodes])
    plan.done.mentions = len({(mention.entity_id, mention.episode_id) for mention in mentions})


# Remaining rows, without quotes of erased text ----------------------------------------------------


def _rewrite_facts(request: ErasureRequest, found: Affected, plan: _Plan) -> None:
    """Remove forgotten episodes, and sentences that quote erased text, from the remaining facts."""
    stay = {**{edge.id: edge for edge in _quoting(request, found)}, **found.facts.kept}
    ends = {end for edge in stay.values() for end in (edge.source_id, edge.target_id)}
    names = {**entity_names(request.backend, request.scope, ends), **found.renamed}
    reopened = dict(found.facts.reopened)
    plan.edges += [without(request, found, reopened.pop(i, edge), lambda end: names[end]) for i, edge in stay.items()]
    plan.edges += reopened.values()
    plan.unindex("fact", stay)
    plan.done.rewritten_facts = len(stay)


def _quoting(request: ErasureRequest, found: Affected) -> Iterator[Edge]:
    """Yield the remaining facts whose sentence, or reason of the end, contains a name that goes."""
    edges = [*request.backend.get_edges([request.scope], sorted(found.taken)).values()]
    if found.entities.gone:
        episode_ids = [mention.episode_id for mention in found.entities.mentions_of_gone]
        edge_ids = request.backend.find_edges_of_episodes(request.scope, episode_ids)
        edges += request.backend.get_edges([request.scope], edge_ids).values()
    if renamed := {alias.entity_id for alias in found.aliases}:
        edges += edges_of(request.backend, request.scope, *renamed)
    if request.subject is not None:
        edges += request.backend.all_edges([request.scope], EdgeQuery(versions="all"))
    return (edge for edge in edges if edge.id not in found.facts.gone and quotes_erased(found, edge))


def _rewrite_entities(request: ErasureRequest, found: Affected, plan: _Plan) -> None:
    """Clear the summaries of remaining entities that may quote erased text, and forgotten names and times."""
    taken = request.backend.get_entities([request.scope], sorted(found.taken)) if found.taken else {}
    others = {**taken, **found.entities.left, **found.merges.left_relatives}
    if request.subject is not None:
        named = {entity.id: entity for entity in _named_entities(request, found)}
        own = NameFinder(request.subject.names, request.subject.longer)  # not of what went with it
        plan.done.named += [entity.name for entity in named.values() if own.found_in(entity.name)]
        others.update(named)
    seen = _with_remaining_times(request, found)
    for entity in others.values():
        left = found.without_name(seen.get(entity.id, entity))
        if left.name != entity.name:
            plan.unindex("entity", [entity.id])
        if entity.summary and (
            entity.id in found.merges.relatives or entity.id in found.taken or found.quotes.found_in(entity.summary)
        ):
            left = left.changed(summary="")
            plan.unindex("entity", [entity.id])
        if left != entity:
            plan.entities.append(left)


def _with_remaining_times(request: ErasureRequest, found: Affected) -> dict[str, Entity]:
    """Return the entities whose first or last time comes from no remaining mention or fact, with other times, by id."""
    facts, left = found.facts, found.entities.left
    named = {i: {m.seen_at for m in mentions} for i, mentions in found.entities.other_mentions.items() if i in left}
    named = {i: seen for i, seen in named.items() if not {left[i].first_seen_at, left[i].last_seen_at} <= seen}
    begins: dict[str, set[datetime]] = {i: set() for i in named}
    dated = {i for i, seen in named.items() if left[i].first_seen_at not in seen}  # by a fact
    for edge in edges_of(request.backend, request.scope, *dated):
        if edge.id not in facts.gone and not edge.is_inferred:
            for end in {edge.source_id, edge.target_id} & dated:
                begins[end].add(facts.reopened.get(edge.id, edge).valid_from)
    return {
        i: _without_times(left[i], {left[i].first_seen_at} - begins[i] | {left[i].last_seen_at} - seen, seen, begins[i])
        for i, seen in named.items()
    }


def _forgotten_times(request: ErasureRequest, found: Affected) -> set[datetime]:
    """Return when forgotten episodes occurred, and when the facts began that they stated."""
    facts = (*found.facts.gone.values(), *found.facts.kept.values())
    stated = {each.at for edge in facts for each in edge.beginnings if each.by in request.episodes}
    return stated | {e.occurred_at for e in request.episodes.values()} | {edge.valid_from for edge in facts}


def _without_times(
    entity: Entity, gone: Set[datetime], seen: Collection[datetime], begins: Collection[datetime] = ()
) -> Entity:
    """Return an entity as it was seen at other times than forgotten ones, or began to be part of a fact."""
    if not seen:
        return entity
    first = min((*seen, *begins)) if entity.first_seen_at in gone else entity.first_seen_at
    last = max(seen) if entity.last_seen_at in gone else entity.last_seen_at
    return entity.changed(first_seen_at=first, last_seen_at=max(first, last))


def _named_entities(request: ErasureRequest, found: Affected) -> Iterator[Entity]:
    """Yield the remaining entities whose name or summary contains a name that goes."""
    quotes = found.quotes
    for entity in request.backend.all_entities([request.scope], EntityQuery(archived=True), chunk=_PAGE):
        quoted = quotes.found_in(entity.name) or quotes.found_in(entity.summary)
        if quoted and entity.id not in found.entities.gone:
            yield entity


def _redact_episodes(request: ErasureRequest, plan: _Plan) -> None:
    """Remove the lines about the subject from triple episodes."""
    if request.subject is not None:
        plan.redactions += [EpisodeRedaction(i, text) for i, text in request.subject.redacted.items()]
        plan.done.unindexed.extend(("episode", i) for i in request.subject.redacted)
        plan.done.redacted_episodes = len(plan.redactions)


_UNEXTRACTED: tuple[EpisodeState, ...] = ("pending", "failed")


def _redact_errors(request: ErasureRequest, found: Affected, plan: _Plan) -> None:
    """Remove the messages of errors that may quote erased text: in the sessions of the episodes, and with a name."""
    sessions = {e.session_id for e in request.episodes.values() if e.session_id is not None}
    if request.subject is None and not sessions:
        return
    filters = EpisodeFilter(session_ids=tuple(sorted(sessions))) if request.subject is None else None
    for state in _UNEXTRACTED:
        for episode in request.backend.all_episodes([request.scope], EpisodeQuery(state=state, filters=filters)):
            quotes = episode.session_id in sessions or found.quotes.found_in(episode.error)
            if quotes and episode.id not in request.episodes and (result := without_reason(episode)) is not None:
                plan.results.append(result)


def _empty_communities(request: ErasureRequest, found: Affected, plan: _Plan) -> None:
    """Clear name, summary and fingerprint of the affected communities; the next refresh writes them again.

    Communities without remaining members are removed.
    """
    gone = found.entities.gone
    quoted = {end for edge in plan.edges for end in (edge.source_id, edge.target_id)}
    entity_ids = (*{*gone, *found.entities.left, *found.merges.left_relatives, *found.taken, *quoted},)
    query = MembershipQuery(entity_ids=entity_ids, ended=True)
    within = {m.community_id for m in _memberships(request, query)} if entity_ids else set[str]()
    now = utc_now()
    for community in request.backend.all_communities([request.scope], CommunityQuery(ended=True)):
        if community.id not in within and not found.quotes.found_in(f"{community.name}\n{community.summary}"):
            continue
        members = _memberships(request, MembershipQuery(community_ids=(community.id,), ended=True))
        if not {membership.entity_id for membership in members} - gone.keys():
            plan.remove("community", [community.id])
        elif community.name or community.summary or community.fingerprint:
            updated = max(now, community.updated_at) if community.ended_at is None else community.updated_at
            plan.communities.append(community.changed(name="", summary="", fingerprint="", updated_at=updated))
    plan.done.emptied_communities = len(plan.communities)


def _memberships(request: ErasureRequest, query: MembershipQuery) -> Iterator[Membership]:
    return request.backend.all_memberships([request.scope], query)


# Traces, merge ledger and index -------------------------------------------------------------------


def _remove_traces(request: ErasureRequest, found: Affected, plan: _Plan) -> None:
    """Remove the recall traces that contain a removed row or whose query contains a removed name."""
    queries = (
        RecallQuery(entity_ids=tuple(found.entities.gone)),
        RecallQuery(edge_ids=tuple(found.facts.gone)),
        RecallQuery(episode_ids=tuple(request.episodes)),
    )
    for query in queries:
        plan.remove("recall", [trace.id for trace in request.backend.all_recalls([request.scope], query)])
    if found.names:
        asked = request.backend.all_recalls([request.scope], RecallQuery())
        plan.remove("recall", [trace.id for trace in asked if found.quotes.found_in(trace.query)])


def _scrub_ledger(request: ErasureRequest, found: Affected, plan: _Plan) -> None:
    """Remove erased data from the merge ledger; merges of removed entities are removed as a whole."""
    unused = {(removal.id, removal.qualifier) for removal in plan.removals if removal.kind == "alias"}
    removed, plan.merges = scrub(request, found, unused)
    plan.remove("merge", removed)


def _unindex(request: ErasureRequest, found: Affected, plan: _Plan) -> None:
    """Remove the index entries that depend on the episodes: those of following episodes, and unused names."""
    plan.done.unindexed.extend(("episode", i) for i in request.episodes)
    plan.done.unindexed.extend(("entity", i) for i in found.entities.gone)
    plan.unindex("episode", _following_episodes(request))
    if changed := {*request.episodes, *(row.episode_id for row in plan.redactions)}:
        plan.unindex("name", _unused_names(request, changed))


def _unused_names(request: ErasureRequest, changed: set[str]) -> Sequence[str]:
    """Return the names in the index that no unchanged indexed text contains.

    They include names of texts that aren't indexed at present; indexing these texts adds the names again.
    """
    backend, scope = request.backend, request.scope
    names = {entry.key for entry in backend.all_entries(scope, kind="name", chunk=_PAGE)}
    if names:
        for entry in backend.all_entries(scope, kind="episode", chunk=_PAGE):
            if entry.key not in changed:
                names.difference_update(detail_of(entry).get("names", ()))
    return sorted(names)


def _following_episodes(request: ErasureRequest) -> Sequence[str]:
    """Return the episodes that were indexed together with a removed one: the next of its session."""
    found: set[str] = set()
    for episode in request.episodes.values():
        if episode.session_id is None:
            continue
        query = EpisodeQuery(session_id=episode.session_id)
        found |= {e.id for e in request.backend.find_episodes([request.scope], query, after=episode.id, limit=1)}
    return sorted(found - request.episodes.keys())


# Result -------------------------------------------------------------------------------------------


def _examples(request: ErasureRequest, found: Affected) -> Iterator[tuple[str, list[str]]]:
    """Yield examples of the removed texts for display, by kind of row."""
    texts: dict[str, Iterable[str]] = {
        "episodes": (f"{e.speaker}: {e.text}" if e.speaker else e.text for e in request.episodes.values()),
        "entities": (entity.name for entity in found.entities.gone.values()),
        "facts": (edge.fact for edge in found.facts.gone.values()),
        "rewritten_facts": (edge.fact for edge in found.facts.kept.values()),
    }
    for kind, every in texts.items():
        if shown := [text[:SHOWN] for text, _ in zip(every, range(EXAMPLES), strict=False)]:
            yield kind, shown


def _write(request: ErasureRequest, found: Affected, plan: _Plan) -> None:
    stored = request.backend.get_edges([request.scope], [edge.id for edge in plan.edges])
    changes = Changes(
        expiries=expiries_before_replacement({**found.facts.gone, **stored}.values(), utc_now()),
        entities=tuple(plan.entities),
        edges=tuple(plan.edges),
        redactions=tuple(plan.redactions),
        results=tuple(plan.results),
        communities=tuple(plan.communities),
        merges=tuple(plan.merges),
        job_states=(plan.done.state,),
        removals=tuple(plan.removals),
    )
    plan.done.is_empty = changes == Changes(job_states=changes.job_states)
    write_facts(request.backend, request.scope, changes)
    before, after = {**found.facts.gone, **stored}.values(), {at for edge in plan.edges for at in times_of(edge)}
    times = {at for edge in before for at in times_of(edge)} | _forgotten_times(request, found)
    replace_times(request.backend, request.scope, before, times - after)
    for removal in plan.removals:
        plan.done.removed.setdefault(removal.kind, []).append(removal.id)


# Merge ledger -------------------------------------------------------------------------------------


def scrub(
    request: ErasureRequest, found: Affected, unused: Collection[tuple[str, str]]
) -> tuple[list[str], list[Merge]]:
    """Return the ids of the merges that involve a removed entity, and the other changed merges, without erased data.

    Parameters
    ----------
    request, found
        The erasure and the rows that it affects.
    unused
        Removed aliases as (name, entity type).
    """
    gone = _gone(found)
    known = {merge.merged.id: merge.merged.name for merge in found.merges.ledger if merge.merged.id not in gone}
    ledger = _Ledger(request, found, unused, _unheld_names(request, found), known, _forgotten_times(request, found))
    removed: list[str] = []
    changed: list[Merge] = []
    for merge in found.merges.ledger:
        if {merge.kept_id, merge.merged.id} & gone:
            removed.append(merge.id)
        elif (scrubbed := ledger.scrubbed(merge)) != merge:
            changed.append(scrubbed)
    return removed, changed


def without(request: ErasureRequest, found: Affected, edge: Edge, name_of: Callable[[str], str]) -> Edge:
    """Return a fact as the remaining episodes state it."""
    left = [i for i in edge.episode_ids if i not in request.episodes]
    if found.quotes.found_in(edge.end_reason or ""):
        edge = edge.changed(end_reason="over")
    if _properties_quote(found, edge):
        edge = edge.changed(properties={})
    return with_sources(edge, left, name_of, plain=edge.id in found.taken or found.quotes.found_in(edge.fact))


def quotes_erased(found: Affected, edge: Edge) -> bool:
    """Return whether the sentence of a fact, the reason of its end or its properties contain a name that goes."""
    texts = (edge.fact, edge.end_reason or "")
    return edge.id in found.taken or any(map(found.quotes.found_in, texts)) or _properties_quote(found, edge)


def _properties_quote(found: Affected, edge: Edge) -> bool:
    return bool(edge.properties) and not edge.is_inferred and found.quotes.found_in(str(edge.properties))


def _gone(found: Affected) -> set[str]:
    """Return the removed entities, and the merged ones that can't be unmerged without one of them."""
    gone = found.entities.gone.keys() | found.merges.gone
    permanent: set[str] = set()
    for merge in reversed(found.merges.ledger):  # ids are in the order of time
        if merge.undone_at is None and {merge.kept_id, merge.merged.id} & (gone | permanent):
            permanent.add(merge.merged.id)
    return gone | permanent


def _unheld_names(request: ErasureRequest, found: Affected) -> frozenset[str]:
    """Return the removed names that no remaining entity holds; an undone merge may have assigned them to one."""
    held = request.backend.resolve_names(request.scope, sorted(found.names)) if found.names else []
    return found.names - {name for name, entity in held if entity.id not in found.entities.gone}


@dataclass(frozen=True, slots=True)
class _Ledger:
    """Parts to erase from each merge.

    Attributes
    ----------
    unused, unheld
        Removed aliases as (name, entity type), and removed names of any type.
    merged
        Names of the remaining merged entities, by id.
    times
        Times of what is forgotten.
    mentions
        Mentions in remaining episodes that were read, by entity.
    """

    request: ErasureRequest
    found: Affected
    unused: Collection[tuple[str, str]]
    unheld: Collection[str]
    merged: Mapping[str, str]
    times: Set[datetime]
    mentions: dict[str, list[Mention]] = field(default_factory=dict[str, list[Mention]])

    def scrubbed(self, merge: Merge) -> Merge:
        """Return a merge without erased data."""
        episodes = self.request.episodes
        rows = map(self.found.without_name, (merge.kept, merge.merged))
        names = {**self.merged, **{row.id: row.name for row in rows}}
        mentions = tuple(mention for mention in merge.mentions if mention.episode_id not in episodes)
        shared = tuple(i for i in merge.shared if i not in episodes)
        alone = [f.edge.changed(id=f.into.id) for f in merge.folded if f.into is not None and self._goes(f.into)]
        gone = {e.id for e in (*merge.edges, *(f.edge for f in merge.folded)) if self._goes(e)}
        left = [e for e in (*merge.edges, *alone) if not self._goes(e) and gone.isdisjoint(e.premises)]
        moved = self._moved((*left, *(f.edge for f in merge.folded)))
        edges = tuple(self._rewritten(edge, names, gone, moved) for edge in left)
        folded = tuple(
            pair.changed(
                edge=self._rewritten(pair.edge, names, gone, moved),
                into=None if pair.into is None else self._rewritten(pair.into, names, gone, moved),
            )
            for pair in merge.folded
            if not self._goes(pair.edge)
            and gone.isdisjoint(pair.edge.premises)
            and (pair.into is None or not self._goes(pair.into))
        )
        unmentioned = (len(mentions), len(shared)) != (len(merge.mentions), len(merge.shared))
        clear = unmentioned or edges != merge.edges or folded != merge.folded
        kept, own, merged = merge.kept, list[Mention](), list(mentions)
        if not self.times.isdisjoint((kept.first_seen_at, kept.last_seen_at)):
            brought = {mention.episode_id for mention in merge.mentions}.difference(merge.shared)
            known = self._mentions_left(merge.kept_id)
            own = [m for m in known if m.episode_id not in brought and m.seen_at <= kept.last_seen_at] or known
        if not merged and not self.times.isdisjoint((merge.merged.first_seen_at, merge.merged.last_seen_at)):
            known = self._mentions_left(merge.merged.id)
            merged = [m for m in known if canonical(m.surface) == merge.merged.canonical_name] or known
        return merge.changed(
            kept=self._scrubbed_row(kept, own, clear=clear),
            merged=self._scrubbed_row(merge.merged, merged, clear=clear),
            mentions=mentions,
            edges=edges,
            folded=folded,
            shared=shared,
            aliases=self._used(merge.aliases),
            added=self._used(merge.added),
        )

    def _mentions_left(self, entity_id: str) -> list[Mention]:
        """Return the mentions in remaining episodes of an entity, or of the one that holds its data now."""
        holder, request = self.found.merges.holders.get(entity_id, entity_id), self.request
        if holder not in self.mentions:
            found = request.backend.all_mentions([request.scope], entity_ids=[holder])
            self.mentions[holder] = [mention for mention in found if mention.episode_id not in request.episodes]
        return self.mentions[holder]

    def _goes(self, edge: Edge) -> bool:
        return fact_goes(self.request, self.found.facts, self.found.entities, edge)

    def _used(self, aliases: tuple[Alias, ...]) -> tuple[Alias, ...]:
        unused = self.unused
        return tuple(a for a in aliases if a.alias not in self.unheld and (a.alias, a.entity_type) not in unused)

    def _moved(self, edges: Iterable[Edge]) -> dict[str, datetime]:
        """Return when facts begin without the forgotten episodes, by id; those of a merge as they were before it."""
        facts = self.found.facts
        moved = {i: facts.reopened[i].valid_from for i in facts.kept.keys() & facts.reopened.keys()}
        stated = [edge for edge in edges if not self.request.episodes.keys().isdisjoint(edge.episode_ids)]
        return moved | {i: edge.valid_from for i, edge in self.request.without_tellings(stated).items()}

    def _rewritten(self, edge: Edge, names: Mapping[str, str], gone: Set[str], moved: Mapping[str, datetime]) -> Edge:
        """Return a fact without forgotten episodes and ends, and without a sentence that quotes erased text.

        `gone` are the facts of the merge that go, and `moved` the new beginnings of facts.
        """
        request = self.request
        edge = edge.without_ends(self.found.facts.enders | gone)
        begin = moved.get(edge.superseded_by or "")
        if begin is not None and edge.valid_to in self.times:  # it ends when that one begins
            edge = edge.changed(valid_to=max(edge.valid_from, begin))
        if not set(edge.episode_ids) & request.episodes.keys() and not quotes_erased(self.found, edge):
            return edge
        edge = request.without_tellings([edge])[edge.id]
        known = {**entity_names(request.backend, request.scope, (edge.source_id, edge.target_id)), **names}
        return without(request, self.found, edge, lambda i: known.get(i, ""))

    def _scrubbed_row(self, row: Entity, mentions: Sequence[Mention], *, clear: bool) -> Entity:
        """Return an entity of the ledger, with times of these mentions and no summary that may quote erased text."""
        row = self.found.without_name(_without_times(row, self.times, [mention.seen_at for mention in mentions]))
        if clear or row.id in self.found.merges.relatives or self.found.quotes.found_in(row.summary):
            return row.changed(summary="")
        return row
