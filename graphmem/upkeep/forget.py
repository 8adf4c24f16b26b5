"""Forgetting that is complete: rows, index, traces, the ledger's evidence, caches and files (spec: upkeep, forget)."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

from graphmem.errors import IndexUnavailable, InvalidInput, NotFound
from graphmem.models import (
    FORGETTING,
    Changes,
    Entity,
    Episode,
    EpisodeQuery,
    IndexKind,
    JobState,
    MergeQuery,
    Model,
    Scope,
    utc_now,
)
from graphmem.ontology import DEFAULT_ONTOLOGY, Ontology
from graphmem.protocols import GraphBackend
from graphmem.text.names import NameFinder
from graphmem.text.normalize import canonical
from graphmem.upkeep.erase import EXAMPLES, SHOWN, Erased, Erasure, Subject
from graphmem.upkeep.eviction import rehearsed
from graphmem.upkeep.merge import ALL, edges_of, entity_called

_log = logging.getLogger(__name__)


class Forgotten(Model):
    """What was forgotten, and what could not be erased yet.

    Attributes
    ----------
    episodes, entities, facts, mentions, communities, recalls, merges, index_entries
        Rows that are gone; `index_entries` counts what was taken out of the index beside its rows.
    rewritten_facts
        Facts that stay, without the forgotten episodes or a sentence that quoted something forgotten.
    redacted_episodes
        Episodes of ready-made facts that stay without the lines that named the entity.
    emptied_communities
        Communities whose names and summaries are made anew by the next refresh.
    names
        Under which it was looked for in texts.
    still_mentioned_in
        Ids of episodes that stay and that it said, that mention it, or in which one of its names stands: they are
        somebody's words. `with_episodes` takes them, too, also later, when the entity is gone.
    remaining
        What stays of it, and why, in words.
    examples
        Some of the texts that went, by what they were of, and of those that stay.
    dry_run
        Whether nothing was changed: it tells what an erasure would do.
    left
        What could not be erased now, and why; run it again to have it erased.
    """

    episodes: int = 0
    entities: int = 0
    facts: int = 0
    mentions: int = 0
    communities: int = 0
    recalls: int = 0
    merges: int = 0
    index_entries: int = 0
    rewritten_facts: int = 0
    redacted_episodes: int = 0
    emptied_communities: int = 0
    names: tuple[str, ...] = ()
    still_mentioned_in: tuple[str, ...] = ()
    remaining: tuple[str, ...] = ()
    examples: dict[str, tuple[str, ...]] = {}
    dry_run: bool = False
    left: tuple[str, ...] = ()


def forget(
    backend: GraphBackend,
    index: IndexCopies,
    scope: Scope,
    ontology: Ontology = DEFAULT_ONTOLOGY,
    *,
    entity: str | None = None,
    episode: str | None = None,
    session: str | None = None,
    speaker: str | None = None,
    with_episodes: bool = False,
    dry_run: bool = False,
) -> Forgotten:
    """Erase an entity, an episode, a session or what somebody said, and then what is left in caches and files.

    Parameters
    ----------
    backend, index, scope
        Where.
    ontology
        Tells which relations are single-valued.
    entity
        Name or id of an entity, or a name that stands in texts alone.
    episode
        Id or `external_id` of an episode.
    session
        Id of a session, whose episodes all go.
    speaker
        Name of a speaker, whose turns all go.
    with_episodes
        With an entity, the episodes that it said, that mention it or have one of its names go, too; of ready-made facts
        only the lines about it.
    dry_run
        Change nothing; tell what would go and what would stay.

    Raises
    ------
    NotFound
        If there is no such thing in the scope. Where a run before left something in files, they are cleaned
        nevertheless, and the message tells whether that could be done.
    InvalidInput
        If not exactly one thing is named, or several entities go by the name.
    """
    if sum(what is not None for what in (entity, episode, session, speaker)) != 1:
        raise InvalidInput("forget: name one thing: an entity, an episode, a session or a speaker")
    if with_episodes and entity is None:
        raise InvalidInput("forget: with_episodes goes with an entity")

    def work() -> tuple[Erased, ForgetPlan]:
        plan = _plan(backend, scope, entity, episode, session, speaker, with_episodes=with_episodes)
        return Erasure(backend, scope, ontology, plan.going, plan.subject).run(), plan

    try:
        done, plan = rehearsed(backend, work) if dry_run else backend.atomic(work)
    except NotFound as error:
        mark = backend.find_job_state(scope, FORGETTING)
        if mark.begun_at is None:
            raise
        left = "; ".join(_scrubbed(backend, scope, mark)) or "nothing"
        raise NotFound(f"{error}; left of what was forgotten before: {left}") from error
    examples = {kind: tuple(texts) for kind, texts in done.examples.items()}
    if plan.staying:
        examples["still_mentioned_in"] = tuple(e.text[:SHOWN] for e in list(plan.staying.values())[:EXAMPLES])
    return Forgotten(
        episodes=done.count("episode"),
        entities=done.count("entity"),
        facts=done.count("edge"),
        mentions=done.mentions,
        communities=done.count("community"),
        recalls=done.count("recall"),
        merges=done.count("merge"),
        index_entries=done.count("index"),
        rewritten_facts=done.rewritten_facts,
        redacted_episodes=done.redacted_episodes,
        emptied_communities=done.emptied_communities,
        names=tuple(sorted(plan.names)),
        still_mentioned_in=tuple(plan.staying),
        remaining=(*plan.remaining, *_named(done)),
        examples=examples,
        dry_run=dry_run,
        left=() if dry_run else (*_outside(index, scope, done), *_scrubbed(backend, scope, done.mark)),
    )


def clear(backend: GraphBackend, index: IndexCopies, scope: Scope) -> Forgotten:
    """Erase a whole scope, its name included, and then what is left in caches and files.

    A store that can't take it in one transaction takes several; interrupted, run it again.
    """
    counts = backend.stats(scope)
    merges = sum(1 for _ in backend.all_merges([scope], MergeQuery(undone=True)))
    left = list(_outside(index, scope, None))  # first: the store tells what is left to do until it is cleared itself
    backend.clear(scope)
    left += _scrubbed(backend, scope, None)
    return Forgotten(
        episodes=counts.episodes,
        entities=counts.entities,
        facts=counts.edges,
        mentions=counts.mentions,
        communities=counts.communities,
        recalls=counts.recalls,
        merges=merges,
        left=tuple(left),
    )


class IndexCopies(Protocol):
    """Copies of index entries outside of the store."""

    def forget(self, scope: Scope, keys: Sequence[tuple[IndexKind, str]] | None) -> None:
        """Drop the copies of entries, or of a whole scope; see `SearchIndex.forget`."""


@dataclass(frozen=True, slots=True)
class ForgetPlan:
    """What an erasure takes and what it leaves.

    Attributes
    ----------
    going
        Episodes that go, by id.
    subject
        What goes with its entity, facts and names; None for episodes alone.
    names
        That were looked for.
    staying
        Episodes that stay although they name it, by id.
    remaining
        What stays besides, and why.
    """

    going: dict[str, Episode]
    subject: Subject | None = None
    names: frozenset[str] = frozenset()
    staying: Mapping[str, Episode] = field(default_factory=dict[str, Episode])
    remaining: tuple[str, ...] = ()


def _plan(
    backend: GraphBackend,
    scope: Scope,
    entity: str | None,
    episode: str | None,
    session: str | None,
    speaker: str | None,
    *,
    with_episodes: bool,
) -> ForgetPlan:
    if entity is not None:
        return _plan_of_name(backend, scope, entity, with_episodes=with_episodes)
    if episode is not None:
        return ForgetPlan(_episode(backend, scope, episode))
    if session is not None:
        return ForgetPlan(_session(backend, scope, session))
    assert speaker is not None
    return _plan_of_speaker(backend, scope, speaker)


def _plan_of_name(backend: GraphBackend, scope: Scope, named: str, *, with_episodes: bool) -> ForgetPlan:
    """Find every episode that an entity said, that mentions it, or in which one of its names stands."""
    entity, missing = None, None
    try:
        entity = entity_called(backend, scope, named)
    except NotFound as error:
        missing = error
    names, others = _names_of(backend, scope, entity, named)
    mentions = [] if entity is None else backend.find_mentions([scope], entity_ids=[entity.id], limit=ALL)
    shown = [name for m in mentions if canonical(name := m.surface) in names]
    shown += [name for name in (named, entity.name if entity else "") if canonical(name) in names]
    finder = NameFinder([*names, *shown])
    mentioned = {mention.episode_id for mention in mentions}
    said = {edge.fact for edge in ([] if entity is None else edges_of(backend, scope, entity.id))}
    going: dict[str, Episode] = {}
    redacted: dict[str, str] = {}
    staying: dict[str, Episode] = {}
    in_ids: list[Episode] = []
    for episode in backend.all_episodes([scope], EpisodeQuery()):
        if episode.id not in mentioned and not _is_about(episode, names, finder):
            in_ids += [episode] if _ids_name(episode, finder) else []
        elif episode.source != "triple":
            (going if with_episodes else staying)[episode.id] = episode
        elif not (left := [x for x in episode.text.split("\n") if x not in said and not finder.found_in(x)]):
            going[episode.id] = episode
        else:
            redacted[episode.id] = "\n".join(left)
    if missing is not None and not (going or redacted or staying):
        raise NotFound(f"{missing}, and no text has this name") from missing
    remaining = list(_stays(named, staying, in_ids))
    remaining += [
        f"texts that have {name!r} and no mention of it: {other.entity_type} {other.id} goes by that name, too"
        for name, other in others
    ]
    subject = Subject(names, entity, redacted, staying)
    return ForgetPlan(going, subject, names, staying, tuple(remaining))


def _plan_of_speaker(backend: GraphBackend, scope: Scope, speaker: str) -> ForgetPlan:
    """Find the turns of a speaker, and those of others in which the name stands."""
    names, finder = frozenset({canonical(speaker)}), NameFinder([speaker])
    going: dict[str, Episode] = {}
    staying: dict[str, Episode] = {}
    for episode in backend.all_episodes([scope], EpisodeQuery()):
        if canonical(episode.speaker or "") in names:
            going[episode.id] = episode
        elif _is_about(episode, names, finder):
            staying[episode.id] = episode
    if not going:
        raise NotFound(f"no episode was said by {speaker!r} in scope {scope}")
    return ForgetPlan(going, None, names, staying, tuple(_stays(speaker, staying, [])))


def _names_of(
    backend: GraphBackend, scope: Scope, entity: Entity | None, named: str
) -> tuple[frozenset[str], list[tuple[str, Entity]]]:
    """Return the names of an entity that nobody else goes by, and those that others go by with these others."""
    if entity is None:
        return frozenset({canonical(named)}), []
    names = {alias.alias for alias in backend.find_aliases([scope], [entity.id])}
    others = [(name, e) for name, e in backend.resolve_names(scope, sorted(names)) if e.id != entity.id]
    return frozenset(names - {name for name, _ in others}), others


def _is_about(episode: Episode, names: frozenset[str], finder: NameFinder) -> bool:
    if episode.speaker and canonical(episode.speaker) in names:
        return True
    texts = (episode.text, episode.title, episode.speaker, *map(str, episode.metadata.values()))
    return any(map(finder.found_in, texts))


def _ids_name(episode: Episode, finder: NameFinder) -> bool:
    return finder.found_in(episode.session_id) or finder.found_in(episode.external_id)


def _stays(named: str, staying: Mapping[str, Episode], in_ids: Sequence[Episode]) -> Iterator[str]:
    if staying:
        yield (
            f"{len(staying)} episodes that {named!r} said, or that name it: they are somebody's words; "
            "forget it with_episodes to erase them"
        )
    if in_ids:
        ids = in_ids[0].session_id, in_ids[0].external_id
        yield f"{len(in_ids)} episodes with the name in their session or external id, such as {ids}: forget those"


def _named(done: Erased) -> Iterator[str]:
    if done.named:
        yield f"{len(done.named)} entities with the name in theirs, such as {done.named[0]!r}: forget those"


def _episode(backend: GraphBackend, scope: Scope, named: str) -> dict[str, Episode]:
    if found := backend.get_episodes([scope], [named]):
        return found
    by_name = backend.find_episodes([scope], EpisodeQuery(external_ids=(named,)), limit=1)
    if not by_name:
        raise NotFound(f"no episode has the id or external_id {named!r} in scope {scope}")
    return {episode.id: episode for episode in by_name}


def _session(backend: GraphBackend, scope: Scope, session: str) -> dict[str, Episode]:
    said = backend.all_episodes([scope], EpisodeQuery(session_id=session))
    found = {episode.id: episode for episode in said}
    if not found:
        raise NotFound(f"no episode belongs to session {session!r} in scope {scope}")
    return found


def _outside(index: IndexCopies, scope: Scope, done: Erased | None) -> Iterable[str]:
    try:
        index.forget(scope, None if done is None else done.unindexed)
    except IndexUnavailable as error:
        _log.warning("forget: %s", error)
        yield f"vectors in an index outside of the store, until it is reached again: {error}"


def _scrubbed(backend: GraphBackend, scope: Scope, mark: JobState | None) -> Iterable[str]:
    """Clean the files and note in the erasure's mark that it is done; yield what is left."""
    if not backend.scrub():
        yield "the store's log, which others are reading: run it again, or close them"
    elif mark is not None:
        clean = replace(mark, begun_at=None, done_at=utc_now())
        backend.write_unless_erased(scope, Changes(marks=(clean,)), since=mark.cursor)
