"""Complete erasure from rows, index, traces, ledger, caches and files, by request and on expiry.

`graphmem.upkeep.forget_plan` finds what a request names, `graphmem.upkeep.erase` removes the rows, and
`graphmem.upkeep.scrub` cleans the files.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from functools import partial
from itertools import repeat, takewhile
from typing import Protocol

from graphmem.errors import IndexUnavailable, InvalidInput, NotFound
from graphmem.models import (
    FORGETTING,
    Changes,
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
from graphmem.upkeep.erase import EXAMPLES, SHOWN, Erased, erase
from graphmem.upkeep.erasure import ErasureRequest
from graphmem.upkeep.forget_plan import ForgetPlan, plan_forget
from graphmem.upkeep.schedule import Stopping
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
        plan = plan_forget(backend, scope, entity, episode, session, speaker, with_episodes=with_episodes)
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


def _describe_named(done: Erased) -> Iterator[str]:
    if done.named:
        yield (
            f"{counted(len(done.named), 'entity', 'entities')} whose own name contains the name, such as "
            f"{done.named[0]!r}; forget these entities to erase them"
        )


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
