"""Index entries of rows: encoding of episodes and facts with what they refer to, and writing."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

from graphmem.errors import EmbeddingFailed, InvalidInput
from graphmem.index.encoder import EpisodeEncoder, StatedFact
from graphmem.models import Changes, Episode, EpisodeQuery, IndexEntry, IndexKind, Scope
from graphmem.protocols import GraphBackend
from graphmem.search.episode_text import adds_words, spoken, talk_of
from graphmem.text.first_person import first_person
from graphmem.text.terms import terms

KINDS: tuple[IndexKind, ...] = ("episode", "fact")
"""Kinds of rows that a search reads, in the order in which they are indexed."""


class EntryWriter:
    """Writer of the index entries of episodes and facts.

    Parameters
    ----------
    backend
        The store, which contains the index.
    encoder
        Encoder of the entries.
    """

    def __init__(self, backend: GraphBackend, encoder: EpisodeEncoder) -> None:
        self._backend = backend
        self._encoder = encoder

    def index(self, scope: Scope, kind: IndexKind, ids: Sequence[str]) -> bool:
        """Index rows and return True; return False if an erasure intervened and nothing was written.

        Raises
        ------
        EmbeddingFailed
            If the model fails, or the index has vectors and there is no model; episodes are then indexed by their
            words only.
        """
        since = self._backend.erasure_token(scope)
        if kind == "fact":
            self._require_model(scope)
            return self._write(scope, kind, self._encoder.facts(self._stated(scope, ids)), since)
        episodes = self._with_earlier(scope, ids)
        try:
            self._require_model(scope)
            entries = self._encoder.episodes(episodes, self._listed(scope, episodes))
            names = self._encoder.names_of(entries)
            known = {entry.key for entry in self._backend.find_index(scope, "name", names)} if names else set[str]()
            entries += self._encoder.names([name for name in names if name not in known])
        except EmbeddingFailed:
            self._write_words_only(scope, episodes, since)
            raise
        return self._write(scope, kind, entries, since)

    def _require_model(self, scope: Scope) -> None:
        """Raise `EmbeddingFailed` if the index has vectors and there is no model."""
        if not self._encoder.model and (built := self._backend.index_state(scope).model):
            raise EmbeddingFailed(f"scope {scope}: its index has vectors of {built!r}, but no model is configured")

    def _write(self, scope: Scope, kind: IndexKind, entries: Sequence[IndexEntry], since: str) -> bool:
        """Write entries and return True; return False if an erasure intervened, so that the rows stay unindexed.

        Complete entries of the kind are kept: another process may have indexed the same rows meanwhile, and rewriting
        an entry makes every process that has read it rebuild its copy.
        """
        keys = [entry.key for entry in entries if entry.kind == kind]

        def work() -> bool:
            there = {entry.key for entry in self._backend.find_index(scope, kind, keys) if entry.complete}
            fresh = tuple(entry for entry in entries if entry.kind != kind or entry.key not in there)
            return self._backend.write_unless_erased(scope, Changes(index=fresh), since=since)

        try:
            return self._backend.atomic(work)
        except InvalidInput:
            if self._all_there(scope, entries):
                raise
            return False

    def _all_there(self, scope: Scope, entries: Sequence[IndexEntry]) -> bool:
        episodes, facts = ([entry.key for entry in entries if entry.kind == kind] for kind in KINDS)
        there = {**self._backend.get_episodes([scope], episodes), **self._backend.get_edges([scope], facts)}
        return len(there) == len(episodes) + len(facts)

    def _stated(self, scope: Scope, ids: Sequence[str]) -> list[StatedFact]:
        """Return facts in the first person of their speaker, with the episodes that they add terms to."""
        edges = self._backend.get_edges([scope], ids)
        named = dict.fromkeys(i for edge in edges.values() for i in edge.episode_ids)
        episodes = self._backend.get_episodes([scope], list(named))
        own = {i: frozenset(terms(spoken(episode))) for i, episode in episodes.items()}
        facts: list[StatedFact] = []
        for edge in edges.values():
            sources = [i for i in edge.episode_ids if i in episodes]
            text = first_person(edge.fact, [who for i in sources[:1] if (who := episodes[i].speaker)])
            stated = terms(text)
            extended = tuple(i for i in sources if adds_words(stated, own[i].__contains__))
            facts.append(StatedFact(edge.id, text, extended))
        return facts

    def _write_words_only(self, scope: Scope, episodes: Sequence[tuple[Episode, Episode | None]], since: str) -> None:
        known = {entry.key for entry in self._backend.find_index(scope, "episode", [e.id for e, _ in episodes])}
        new = [pair for pair in episodes if pair[0].id not in known]
        entries = self._encoder.words_only(new, self._listed(scope, new))
        self._write(scope, "episode", [replace(entry, complete=False) for entry in entries], since)

    def _listed(self, scope: Scope, episodes: Sequence[tuple[Episode, Episode | None]]) -> dict[str, list[str]]:
        """Return the names of subjects and objects in each episode of triples."""
        listed: dict[str, list[str]] = {}
        if ids := [episode.id for episode, _ in episodes if episode.source == "triple"]:
            for mention in self._backend.all_mentions([scope], episode_ids=ids):
                listed.setdefault(mention.episode_id, []).append(mention.surface)
        return listed

    def _with_earlier(self, scope: Scope, ids: Sequence[str]) -> list[tuple[Episode, Episode | None]]:
        """Return episodes, each message with the episode before it in its session, if that is a message."""
        found = self._backend.get_episodes([scope], ids)
        episodes = [found[i] for i in sorted(found)]
        sessions: defaultdict[str, list[Episode]] = defaultdict(list)
        for episode in episodes:
            if (session := talk_of(episode)) is not None:
                sessions[session].append(episode)
        earlier: dict[str, Episode | None] = {}
        for group in sessions.values():
            # contains all of the group, unless others lie between
            run = [group[-1], *self._before(scope, group[-1], len(group))]
            before = {later.id: one for later, one in pairwise(run)}
            begins_with = run[-1].id if len(run) <= len(group) else None
            for episode in group:
                one = before.get(episode.id)
                if one is None and episode.id != begins_with:
                    one = next(iter(self._before(scope, episode, 1)), None)
                earlier[episode.id] = one if one is not None and talk_of(one) is not None else None
        return [(episode, earlier.get(episode.id)) for episode in episodes]

    def _before(self, scope: Scope, episode: Episode, limit: int) -> Sequence[Episode]:
        """Return the last episodes of its session before an episode, newest first."""
        query = EpisodeQuery(session_id=episode.session_id, before=episode.id)
        return self._backend.find_episodes([scope], query, limit=limit, newest_first=True)
