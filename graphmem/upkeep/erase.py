"""Erasure of episodes or of an entity: finds all affected rows of a store and writes one change.

`graphmem.upkeep.affected` finds the rows that are removed. What remains must not quote a forgotten text:

- Facts lose the forgotten episodes. If the first episode of a fact is among them, its sentence came from there: the
  plain triple replaces it, and its properties go. If they counted as told by a forgotten one first, they are told by
  the first of the others.
- Entities lose summaries that may quote a forgotten text, aliases that only such a text used, and its time as the
  first or last at which they were named.
- Episodes that wait for extraction or failed lose the message of an error that may quote a forgotten text.
- Communities lose their names and summaries, the merge ledger loses its copies (`graphmem.upkeep.erase_merges`), and
  recall traces and index entries are removed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from graphmem.index.stored_vectors import detail_of
from graphmem.inference.premises import expiries_before_replacement, replace_times, times_of, write_facts
from graphmem.ingest.fact_ledger import entity_names
from graphmem.ingest.failures import without_reason
from graphmem.models import (
    FORGETTING,
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
    Merge,
    ProcessingResult,
    RecallQuery,
    Removal,
    RemovalKind,
    new_id,
    utc_now,
)
from graphmem.text.names import NameFinder
from graphmem.upkeep.affected import Affected, find_affected
from graphmem.upkeep.erase_merges import scrub_merges, without_times
from graphmem.upkeep.erasure import ErasureRequest
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
    plan.edges += [found.restated(request, reopened.pop(i, edge), lambda end: names[end]) for i, edge in stay.items()]
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
    return (edge for edge in edges if edge.id not in found.facts.gone and found.quotes_erased(edge))


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
        i: without_times(left[i], {left[i].first_seen_at} - begins[i] | {left[i].last_seen_at} - seen, seen, begins[i])
        for i, seen in named.items()
    }


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
    removed, plan.merges = scrub_merges(request, found, unused)
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
    times = {at for edge in before for at in times_of(edge)} | found.forgotten_times(request)
    replace_times(request.backend, request.scope, before, times - after)
    for removal in plan.removals:
        plan.done.removed.setdefault(removal.kind, []).append(removal.id)
