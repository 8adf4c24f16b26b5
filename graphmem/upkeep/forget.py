"""Forgetting that is complete: rows, index, traces, the ledger's evidence, caches and files (spec: upkeep, forget)."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from dataclasses import replace

from graphmem.errors import IndexUnavailable, InvalidInput, NotFound
from graphmem.models import FORGETTING, Changes, Entity, Episode, EpisodeQuery, Mark, MergeQuery, Model, Scope, utc_now
from graphmem.ontology import DEFAULT_ONTOLOGY, Ontology
from graphmem.protocols import GraphBackend
from graphmem.rag.index import RecallIndex
from graphmem.upkeep.erase import Erased, Erasure, Quotes
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
    still_mentioned_in
        Ids of episodes whose text goes on naming the entity: they are somebody's words. `with_episodes` takes them,
        too; later, when the entity is gone, `forget` takes each by its id.
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
    still_mentioned_in: tuple[str, ...] = ()
    left: tuple[str, ...] = ()


def forget(
    backend: GraphBackend,
    index: RecallIndex,
    scope: Scope,
    ontology: Ontology = DEFAULT_ONTOLOGY,
    *,
    entity: str | None = None,
    episode: str | None = None,
    session: str | None = None,
    with_episodes: bool = False,
) -> Forgotten:
    """Erase an entity, an episode or a session, in one transaction, and then what is left in caches and files.

    Parameters
    ----------
    backend, index, scope
        Where.
    ontology
        Tells which relations are single-valued.
    entity
        Name or id of an entity.
    episode
        Id or `external_id` of an episode.
    session
        Id of a session, whose episodes all go.
    with_episodes
        With an entity the episodes that mention it go, too; of ready-made facts only the lines that name it.

    Raises
    ------
    NotFound
        If there is no such thing in the scope. Where a run before left something in files, they are cleaned
        nevertheless, and the message tells whether that could be done.
    InvalidInput
        If not exactly one thing is named, or several entities go by the name.
    """
    if sum(what is not None for what in (entity, episode, session)) != 1:
        raise InvalidInput("forget: name one thing: an entity, an episode or a session")
    if with_episodes and entity is None:
        raise InvalidInput("forget: with_episodes goes with an entity")

    def work() -> Erased:
        if entity is not None:
            found = entity_called(backend, scope, entity)
            return _entity(backend, scope, ontology, found, with_episodes=with_episodes)
        if episode is not None:
            return Erasure(backend, scope, ontology, _episode(backend, scope, episode)).run()
        assert session is not None
        return Erasure(backend, scope, ontology, _session(backend, scope, session)).run()

    try:
        done = backend.atomic(work)
    except NotFound as error:
        mark = backend.find_mark(scope, FORGETTING)
        if mark.begun_at is None:
            raise
        left = "; ".join(_scrubbed(backend, scope, mark)) or "nothing"
        raise NotFound(f"{error}; left of what was forgotten before: {left}") from error
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
        still_mentioned_in=tuple(done.still_mentioned_in),
        left=(*_outside(index, scope, done), *_scrubbed(backend, scope, done.mark)),
    )


def clear(backend: GraphBackend, index: RecallIndex, scope: Scope) -> Forgotten:
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


def _entity(backend: GraphBackend, scope: Scope, ontology: Ontology, entity: Entity, *, with_episodes: bool) -> Erased:
    mentions = backend.find_mentions([scope], entity_ids=[entity.id], limit=ALL)
    told_in = backend.get_episodes([scope], [mention.episode_id for mention in mentions])
    quotes = Quotes(alias.alias for alias in backend.find_aliases([scope], [entity.id]))
    said = {edge.fact for edge in edges_of(backend, scope, entity.id)}

    def goes(episode: Episode) -> bool:
        """Tell whether nothing is left of an episode; of ready-made facts only the lines about the entity go."""
        if episode.source != "triple":
            return with_episodes
        return all(line in said or quotes.found_in(line) for line in episode.text.split("\n"))

    going = {i: episode for i, episode in told_in.items() if goes(episode)}
    return Erasure(backend, scope, ontology, going, entity).run()


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


def _outside(index: RecallIndex, scope: Scope, done: Erased | None) -> Iterable[str]:
    try:
        index.forget(scope, None if done is None else done.unindexed)
    except IndexUnavailable as error:
        _log.warning("forget: %s", error)
        yield f"vectors in an index outside of the store, until it is reached again: {error}"


def _scrubbed(backend: GraphBackend, scope: Scope, mark: Mark | None) -> Iterable[str]:
    """Clean the files and note in the erasure's mark that it is done; yield what is left."""
    if not backend.scrub():
        yield "the store's log, which others are reading: run it again, or close them"
    elif mark is not None:
        clean = replace(mark, begun_at=None, done_at=utc_now())
        backend.write_unless_erased(scope, Changes(marks=(clean,)), since=mark.cursor)
