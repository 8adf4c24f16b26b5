"""Complete erasure from rows, index, traces, ledger, caches and files, by request and on expiry.

`graphmem.upkeep.erase` removes the rows, and `graphmem.upkeep.scrub` cleans the files.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import partial
from itertools import repeat, takewhile
from typing import Protocol

from graphmem.errors import IndexUnavailable, InvalidInput, NotFound
from graphmem.models import (
    FORGETTING,
    Changes,
    Entity,
    Episode,
    EpisodeQuery,
    IndexKind,
    MergeQuery,
    Model,
    Scope,
)
from graphmem.ontology import DEFAULT_ONTOLOGY, Ontology
from graphmem.protocols import GraphBackend, run_and_roll_back
from graphmem.text import counted
from graphmem.text.normalize import canonical
from graphmem.upkeep.erase import EXAMPLES, SHOWN, Erased, erase
from graphmem.upkeep.erasure import ErasureRequest, NamedTexts, Names, Subject, find_named_texts, text_without
from graphmem.upkeep.schedule import Stopping
from graphmem.upkeep.scope_rows import entity_called
from graphmem.upkeep.scrub import Clean, scrub_files

_log = logging.getLogger(__name__)


class Forgotten(Model):
    """Result of an erasure, including what could not be erased yet.

    Attributes
    ----------
    episodes, entities, facts, mentions, communities, recalls, merges, index_entries
        Number of removed rows; `index_entries` counts index entries removed in addition to those of removed rows.
    foreign_relationships
        Number of relationships of others that the removed nodes of a Neo4j database had, and that went with them.
    rewritten_facts
        Number of facts that stay without the forgotten episodes, or without a sentence that quoted erased text.
    redacted_episodes
        Number of triple episodes that stay without the lines that named the entity.
    emptied_communities
        Number of communities whose name and summary were cleared; the next refresh writes them again.
    names
        Names that were searched for in texts.
    still_mentioned_in
        Ids of remaining episodes that the entity said, that mention it, or that contain one of its names. They are
        kept as statements of their speakers. `with_episodes` removes them as well, also after the entity is gone.
    remaining
        Descriptions of the data that stays, and why.
    examples
        Some of the removed texts, and of those that stay, by kind.
    dry_run
        Whether this is the result of a dry run that changed nothing.
    left
        Descriptions of what could not be erased now, and why; run the erasure again to remove it.
    """

    episodes: int = 0
    entities: int = 0
    facts: int = 0
    mentions: int = 0
    communities: int = 0
    recalls: int = 0
    merges: int = 0
    index_entries: int = 0
    foreign_relationships: int = 0
    rewritten_facts: int = 0
    redacted_episodes: int = 0
    emptied_communities: int = 0
    names: tuple[str, ...] = ()
    still_mentioned_in: tuple[str, ...] = ()
    remaining: tuple[str, ...] = ()
    examples: dict[str, tuple[str, ...]] = {}
    dry_run: bool = False
    left: tuple[str, ...] = ()

    @property
    def counts(self) -> Mapping[str, int]:
        """The counts that aren't 0, by what was counted, such as "rewritten facts"; index entries are left out."""
        named = type(self).model_fields.items()
        counted = [name for name, field in named if field.annotation is int and name != "index_entries"]
        return {name.replace("_", " "): number for name in counted if (number := getattr(self, name))}


def forget(
    backend: GraphBackend,
    index: IndexCache,
    scope: Scope,
    ontology: Ontology = DEFAULT_ONTOLOGY,
    *,
    entity: str | None = None,
    episode: str | None = None,
    session: str | None = None,
    speaker: str | None = None,
    with_episodes: bool = False,
    dry_run: bool = False,
    clean: Clean | None = None,
) -> Forgotten:
    """Erase an entity, an episode, a session or the turns of a speaker, then clean caches and files.

    Parameters
    ----------
    backend, index, scope
        Store, index and scope to erase from.
    ontology
        Defines which relations are single-valued.
    entity
        Name or id of an entity, or a name that occurs only in texts.
    episode
        Id or `external_id` of an episode.
    session
        Id of a session; all its episodes are removed.
    speaker
        Name of a speaker; all its turns are removed.
    with_episodes
        With `entity`, also remove the episodes that it said, that mention it or contain one of its names; triple
        episodes lose only the lines about it.
    dry_run
        Change nothing; return what would be removed and what would stay.
    clean
        Cleans the files, or defers it; by default `graphmem.upkeep.scrub.scrub_files`.

    Raises
    ------
    NotFound
        If the scope has no such item. If an earlier erasure left data in files, these are cleaned nevertheless, except
        in a dry run, and the message contains what is still left.
    InvalidInput
        If not exactly one item is named, or several entities have the name.
    """
    if sum(what is not None for what in (entity, episode, session, speaker)) != 1:
        raise InvalidInput("forget: name exactly one of: an entity, an episode, a session, a speaker")
    if with_episodes and entity is None:
        raise InvalidInput("forget: with_episodes requires an entity")
    clean = clean or partial(scrub_files, backend)

    def work() -> tuple[Erased, ForgetPlan]:
        plan = _plan(backend, scope, entity, episode, session, speaker, with_episodes=with_episodes)
        done = erase(ErasureRequest(backend, scope, ontology, plan.going, plan.subject))
        if plan.missing is not None and done.is_empty:
            raise plan.missing
        return done, plan

    try:
        done, plan = run_and_roll_back(backend, work) if dry_run else backend.atomic(work)
    except NotFound as error:
        state = backend.find_job_state(scope, FORGETTING)
        if dry_run or state.begun_at is None:
            raise
        left = "; ".join(clean([(scope, state)])) or "nothing"
        raise NotFound(f"{error}; left from earlier erasures: {left}") from error
    result = _result(done, dry_run=dry_run)
    examples = result.examples
    if plan.staying:
        examples = {
            **examples,
            "still_mentioned_in": tuple(e.text[:SHOWN] for e in [*plan.staying.values()][:EXAMPLES]),
        }
    return result.changed(
        names=tuple(sorted(plan.names)),
        still_mentioned_in=tuple(plan.staying),
        remaining=(*plan.remaining, *_describe_named(done)),
        examples=examples,
        left=() if dry_run else clean_up(index, scope, [done], clean),
    )


def summed(results: Sequence[Forgotten], *, dry_run: bool = False) -> Forgotten:
    """Return the counts of some erasures together, what stays and is left of each, and the examples of the first."""

    def texts(field: str) -> tuple[str, ...]:
        return tuple(dict.fromkeys(text for each in results for text in getattr(each, field)))

    counts = [name for name, field in Forgotten.model_fields.items() if field.annotation is int]
    return Forgotten(
        **{name: sum(getattr(each, name) for each in results) for name in counts},
        names=texts("names"),
        still_mentioned_in=texts("still_mentioned_in"),
        remaining=texts("remaining"),
        examples=results[0].examples if results else {},
        dry_run=dry_run,
        left=texts("left"),
    )


def _result(done: Erased, *, dry_run: bool = False) -> Forgotten:
    """Return the counts of an erasure, with its examples."""
    return Forgotten(
        episodes=done.count("episode"),
        entities=done.count("entity"),
        facts=done.count("edge"),
        mentions=done.mentions,
        communities=done.count("community"),
        recalls=done.count("recall"),
        merges=done.count("merge"),
        index_entries=done.count("index"),
        foreign_relationships=done.foreign,
        rewritten_facts=done.rewritten_facts,
        redacted_episodes=done.redacted_episodes,
        emptied_communities=done.emptied_communities,
        examples={kind: tuple(texts) for kind, texts in done.examples.items()},
        dry_run=dry_run,
    )


def clean_up(index: IndexCache, scope: Scope, done: Sequence[Erased], clean: Clean) -> tuple[str, ...]:
    """Clean caches, the external index and files after erasures of a scope; return what is left, and why."""
    left = [text for each in done for text in _drop_cached(index, scope, each)]
    return (*left, *(clean([(scope, done[-1].state)]) if done else ()))


def erase_episodes(backend: GraphBackend, scope: Scope, ontology: Ontology, going: Mapping[str, Episode]) -> Erased:
    """Erase episodes, by id, in a transaction of the caller; `clean_up` follows after it."""
    return erase(ErasureRequest(backend, scope, ontology, going, None))


def forget_missing(
    backend: GraphBackend,
    index: IndexCache,
    scope: Scope,
    ontology: Ontology,
    is_missing: Callable[[Episode], bool],
    query: EpisodeQuery,
    *,
    dry_run: bool = False,
    clean: Clean | None = None,
) -> Forgotten:
    """Erase the episodes of a query that a condition selects, each batch in a transaction, then clean caches and files.

    Parameters
    ----------
    backend, index, scope, ontology
        As for `forget`.
    is_missing, query
        The condition and the query. An episode that was erased meanwhile is left out.
    dry_run
        Change nothing: run everything in one transaction and roll it back.
    clean
        As for `forget`.
    """
    ids = [episode.id for episode in backend.all_episodes([scope], query) if is_missing(episode)]

    def erase_some(some: Sequence[str]) -> Erased:
        return erase_episodes(backend, scope, ontology, backend.get_episodes([scope], some))

    steps = [partial(erase_some, ids[at : at + _BATCH]) for at in range(0, len(ids), _BATCH)]
    return _in_batches(backend, index, scope, steps, dry_run=dry_run, clean=clean)


def _in_batches(
    backend: GraphBackend,
    index: IndexCache,
    scope: Scope,
    steps: Iterable[Callable[[], Erased | None]],
    stopping: Stopping = lambda: False,
    *,
    dry_run: bool,
    clean: Clean | None,
) -> Forgotten:
    """Run steps of an erasure, each in a transaction, up to one that returns None; then clean caches and files."""
    if dry_run:
        done = run_and_roll_back(backend, lambda: [*takewhile(lambda e: e is not None, (step() for step in steps))])
        return summed([_result(erased) for erased in done if erased is not None], dry_run=True)
    erasures: list[Erased] = []
    left: tuple[str, ...] = ()
    try:
        for step in steps:
            if (erased := backend.atomic(step)) is None:
                break
            erasures.append(erased)
            if stopping():
                break
    finally:  # also after the batches before a failure
        left = clean_up(index, scope, erasures, clean or partial(scrub_files, backend))
    return summed([*map(_result, erasures)]).changed(left=left)


def clear(backend: GraphBackend, index: IndexCache, scope: Scope) -> Forgotten:
    """Erase a whole scope including its name, then clean caches and files.

    A store that can't do it in one transaction uses several; if interrupted, run it again.
    """
    counts = backend.stats(scope)
    merges = sum(1 for _ in backend.all_merges([scope], MergeQuery(undone=True)))
    left = list(_drop_cached(index, scope, None))  # first: until it is cleared, the store records what is left to do
    backend.clear(scope)
    left += scrub_files(backend, ())
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


class IndexCache(Protocol):
    """Interface of copies of index entries outside of the store."""

    def forget(self, scope: Scope, keys: Sequence[tuple[IndexKind, str]] | None) -> None:
        """Drop the copies of entries, or of a whole scope if `keys` is None; see `SearchIndex.forget`."""


@dataclass(frozen=True, slots=True)
class ForgetPlan:
    """Plan of an erasure: what it removes and what it keeps.

    Attributes
    ----------
    going
        Episodes to remove, by id.
    subject
        Person or thing to remove with its entity, facts and names; None to remove episodes only.
    names
        Names searched for in texts.
    staying
        Episodes that are kept although they name it, by id.
    remaining
        Descriptions of what else stays, and why.
    missing
        The error if neither an entity nor a text has the name; facts, communities and traces may still quote it.
    """

    going: dict[str, Episode]
    subject: Subject | None = None
    names: frozenset[str] = frozenset()
    staying: Mapping[str, Episode] = field(default_factory=dict[str, Episode])
    remaining: tuple[str, ...] = ()
    missing: NotFound | None = None


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
        return _plan_for_name(backend, scope, entity, with_episodes=with_episodes)
    if episode is not None:
        return ForgetPlan(_episode(backend, scope, episode))
    if session is not None:
        return ForgetPlan(_session(backend, scope, session))
    assert speaker is not None
    return _plan_for_speaker(backend, scope, speaker)


def _plan_for_name(backend: GraphBackend, scope: Scope, named: str, *, with_episodes: bool) -> ForgetPlan:
    """Find every episode that an entity said, that mentions it, or that contains one of its names."""
    entity, unknown = None, ""
    try:
        entity = entity_called(backend, scope, named)
    except NotFound as error:
        unknown = str(error)
    keys, shared = _names_of(backend, scope, entity, named)
    mentions = [] if entity is None else backend.all_mentions([scope], entity_ids=[entity.id])
    shown = [named, *([] if entity is None else [entity.name]), *(mention.surface for mention in mentions)]
    forms = frozenset(name for name in shown if canonical(name) in keys)
    names = Names(keys, forms, entity, {mention.episode_id for mention in mentions})
    texts = find_named_texts(backend, scope, names)
    if entity is None:
        _require_one_meaning(named, texts)
    going: dict[str, Episode] = {}
    redacted: dict[str, str] = {}
    staying: dict[str, Episode] = {}
    for episode in texts.about:
        if episode.source != "triple":
            (going if with_episodes else staying)[episode.id] = episode
        elif left := text_without(backend, scope, episode, names, texts.finder):
            redacted[episode.id] = left
        else:
            going[episode.id] = episode
    remaining = (*_describe_remaining(named, going, staying, texts), *_describe_shared(shared))
    missing = None
    if unknown and not (going or redacted or staying):
        missing = NotFound("; ".join([f"{unknown}, and no text contains this name", *remaining]))
    subject = Subject(keys, entity, redacted, staying, frozenset(texts.longer))
    return ForgetPlan(going, subject, keys, staying, remaining, missing)


def _require_one_meaning(named: str, texts: NamedTexts) -> None:
    """Raise InvalidInput if a name that no entity has is part of the names of several persons."""
    persons = {
        name if entity is None else entity.id: _described(name, entity)
        for name, entity in texts.longer.items()
        if entity is None or entity.entity_type == "person"
    }
    if len(persons) > 1:
        which = ", ".join(persons.values())
        raise InvalidInput(f"name {named!r}: several persons have it as a part of their names; forget one: {which}")


def _plan_for_speaker(backend: GraphBackend, scope: Scope, speaker: str) -> ForgetPlan:
    """Find the turns of a speaker, and turns of others that contain the name."""
    names = Names(frozenset({canonical(speaker)}), frozenset({speaker}))
    texts = find_named_texts(backend, scope, names)
    going = {e.id: e for e in texts.about if canonical(e.speaker or "") in names.keys}
    if not going:
        raise NotFound(f"no episode has the speaker {speaker!r} in scope {scope}")
    staying = {e.id: e for e in texts.about if e.id not in going}
    remaining = _describe_remaining(speaker, going, staying, texts)
    return ForgetPlan(going, None, names.keys, staying, tuple(remaining))


def _names_of(
    backend: GraphBackend, scope: Scope, entity: Entity | None, named: str
) -> tuple[frozenset[str], list[tuple[str, Entity]]]:
    """Return the names that only this entity has, and (name, other entity) for names that it shares."""
    if entity is None:
        return frozenset({canonical(named)}), []
    names = {alias.alias for alias in backend.find_aliases([scope], [entity.id])}
    others = [(name, e) for name, e in backend.resolve_names(scope, sorted(names)) if e.id != entity.id]
    return frozenset(names - {name for name, _ in others}), others


def _describe_remaining(
    named: str, going: Mapping[str, Episode], staying: Mapping[str, Episode], texts: NamedTexts
) -> Iterator[str]:
    if staying:
        yield (
            f"{counted(len(staying), 'episode')} by {named!r}, or with the name in the text, kept as words of the "
            f"speakers; forget({named!r}, with_episodes=True) erases them"
        )
    if in_ids := [e for e in texts.in_ids if e.id not in going and e.id not in staying]:
        ids = in_ids[0].session_id, in_ids[0].external_id
        yield (
            f"{counted(len(in_ids), 'episode')} with the name in the session or external id, such as {ids}; "
            "forget these episodes or sessions to erase them"
        )
    if texts.longer:
        example = _described(*next(iter(texts.longer.items())))
        yield (
            f"{counted(len(texts.longer), 'longer name')} of others, such as {example}, "
            f"in {counted(len(texts.in_longer), 'episode')}; forget them as well if they are the same"
        )
    for part, episodes in texts.by_part.items():
        yield (
            f"{counted(len(episodes), 'episode')} with {part!r}, a part of the name, such as "
            f"{episodes[0].text[:SHOWN]!r}; forget({part!r}, with_episodes=True) erases them if it is the same person"
        )


def _described(name: str, entity: Entity | None) -> str:
    return f"{name!r} (a speaker)" if entity is None else f"{name!r} ({entity.entity_type} {entity.id})"


def _describe_shared(shared: Iterable[tuple[str, Entity]]) -> Iterator[str]:
    for name, other in shared:
        yield f"texts that contain this name without a mention of it, which {_described(name, other)} has as well"


def _describe_named(done: Erased) -> Iterator[str]:
    if done.named:
        yield (
            f"{counted(len(done.named), 'entity', 'entities')} whose own name contains the name, such as "
            f"{done.named[0]!r}; forget these entities to erase them"
        )


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


def _drop_cached(index: IndexCache, scope: Scope, done: Erased | None) -> Iterable[str]:
    try:
        index.forget(scope, None if done is None else done.unindexed)
    except IndexUnavailable as error:
        _log.warning("forget: %s", error)
        yield f"vectors in an index outside of the store, until it is available again: {error}"


# Erasure on expiry --------------------------------------------------------------------------------


EXPIRED = "expired episodes"
"""Name of the job state whose `episodes` field counts the expired episodes that were erased in a scope so far."""
_BATCH = 200  # episodes in one transaction


def expire(
    backend: GraphBackend,
    index: IndexCache,
    scope: Scope,
    ontology: Ontology,
    now: datetime,
    stopping: Stopping = lambda: False,
    *,
    dry_run: bool = False,
    clean: Clean | None = None,
) -> Forgotten:
    """Erase the episodes that have expired by a time, with all that `forget` erases of an episode.

    Each batch is one transaction, in which the expiry is read again: an episode whose lifetime was extended meanwhile
    stays. The bytes in files are cleaned once, at the end.

    Parameters
    ----------
    backend, index, scope, ontology
        As for `forget`.
    now
        The present.
    stopping
        Called after each batch; True leaves the rest to the next run.
    dry_run
        Change nothing: run everything in one transaction and roll it back.
    clean
        As for `forget`.
    """
    step = partial(_erase_batch, backend, scope, ontology, now)
    return _in_batches(backend, index, scope, repeat(step), stopping, dry_run=dry_run, clean=clean)


def _erase_batch(backend: GraphBackend, scope: Scope, ontology: Ontology, now: datetime) -> Erased | None:
    """Erase a batch of expired episodes, in a transaction; return None if there are none."""
    page = backend.find_episodes([scope], EpisodeQuery(expired_by=now), limit=_BATCH)
    if not page:
        return None
    going = {episode.id: episode for episode in page}
    erased = erase_episodes(backend, scope, ontology, going)
    state = backend.find_job_state(scope, EXPIRED)
    counted = replace(state, done_at=now, episodes=state.episodes + len(going))
    backend.write(scope, Changes(job_states=(counted,)))
    return erased


def scopes_with_expired(backend: GraphBackend, scopes: Sequence[Scope], now: datetime) -> list[Scope]:
    """Return scopes in which episodes have expired, perhaps not yet all of them; none if there are none."""
    found = backend.find_episodes(scopes, EpisodeQuery(expired_by=now), limit=_BATCH) if scopes else []
    return list(dict.fromkeys(episode.scope for episode in found))
