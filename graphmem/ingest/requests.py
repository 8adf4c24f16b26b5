"""Extraction requests: an episode with the turns before it and what the memory holds about its names and words."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Collection, Sequence
from dataclasses import replace
from datetime import date, datetime, timedelta
from itertools import accumulate, islice
from math import log1p

from graphmem.ingest.resolution import TYPE_STATED
from graphmem.models import STATED_KINDS, Edge, EdgeQuery, Entity, EntityHit, Episode, EpisodeQuery, Scalar, Scope
from graphmem.models.metadata import SOURCE_PATH
from graphmem.ontology import Ontology
from graphmem.protocols import ExtractionRequest, GraphBackend, Known, KnownFact, KnownName, without_expired
from graphmem.text.date_patterns import MONTHS, WEEKDAYS
from graphmem.text.normalize import canonical, query_phrases, query_words, relation_words, split_words
from graphmem.text.terms import stems
from graphmem.trust import USER, role_kind, speaker_of

_SESSION_SAMPLE = 50  # turns of a session examined for its speakers

MOST_NAMES, MOST_FACTS = 25, 40
_HITS = 100  # entities examined for the names
_OF_DATES = frozenset((*MONTHS, *WEEKDAYS, *"at early end late mid of the to until".split()))
_DAY_OR_YEAR = re.compile(r"\d+(?:st|nd|rd|th)?")
_PIECE, _PIECES = 500, 16  # characters searched for known names at once, and how often
_PHRASE = 5  # words of the longest name that is looked up
_WORDS = 48  # words that names are looked up by, those with a capital first
_WORD = re.compile(r"\w+")
_EVENT_AGE = timedelta(days=30)  # longest time for which a past event is shown
_PLANNED_END_AGE = timedelta(days=30)  # the same for a state that ended on a planned day, which often moves
_EVENT_AGE_SHARED = timedelta(days=365)  # the same for an event that shares a rare word with the texts
_RARE_SHARE = 0.25  # a word is rare if at most this share of the facts contain it
_CANDIDATES = 300  # facts of each query that the most relevant are selected from, the newest


def may_be_read_together(first: Episode, other: Episode) -> bool:
    """Return whether a model may read two episodes in one call: turns of a session, or passages of a document."""
    if (first.scope, first.source) != (other.scope, other.source):
        return False
    if first.source == "message":
        return first.session_id is not None and first.session_id == other.session_id
    return first.source == "document" and first.title is not None and _document_of(first) == _document_of(other)


def _document_of(episode: Episode) -> tuple[Scalar, date, str]:
    """Return the file and the day of a passage, and the first heading of its title."""
    return episode.metadata.get(SOURCE_PATH), episode.occurred_at.date(), (episode.title or "").split(" > ")[0]


def build_requests(
    backend: GraphBackend,
    scope: Scope,
    episodes: Sequence[Episode],
    turns: int,
    ontology: Ontology | None = None,
    *,
    now: datetime,
) -> list[ExtractionRequest]:
    """Return the extraction requests for episodes of a scope.

    Parameters
    ----------
    backend, scope
        Store and scope of the episodes.
    episodes
        The episodes; those of one session are successive turns.
    turns
        Maximum number of preceding turns of each request.
    ontology
        With an ontology, the requests contain what is known about all of the episodes together.
    now
        The present; turns, speakers and facts that have expired by then aren't part of a request.
    """
    sessions: defaultdict[str, list[Episode]] = defaultdict(list)
    for episode in episodes:
        if episode.session_id is not None:
            sessions[episode.session_id].append(episode)
    speakers = {session: _speakers(backend, scope, session, now) for session in sessions}
    contexts: dict[str, tuple[Episode, ...]] = {}
    for group in sessions.values() if turns else ():
        contexts |= _contexts(backend, scope, group, turns, now)
    requests: list[ExtractionRequest] = []
    for episode in episodes:
        named = _with_speaker(episode)
        others = speakers.get(episode.session_id or "", set()) - {named.speaker}
        addressee = next(iter(others)) if len(others) == 1 else None
        requests.append(ExtractionRequest(named, contexts.get(episode.id, ()), addressee))
    if ontology is None or not requests:
        return requests
    said_by = {request.episode.speaker for request in requests}.union(*speakers.values())
    taking_part = sorted(name for name in said_by if name is not None)
    known = find_known(backend, scope, requests, taking_part, ontology, now)
    return [replace(request, known=known) for request in requests]


def _speakers(backend: GraphBackend, scope: Scope, session: str, now: datetime) -> set[str | None]:
    query = EpisodeQuery(session_id=session, live_at=now)
    return {_with_speaker(e).speaker for e in backend.find_episodes([scope], query, limit=_SESSION_SAMPLE)}


def _contexts(
    backend: GraphBackend, scope: Scope, episodes: Sequence[Episode], turns: int, now: datetime
) -> dict[str, tuple[Episode, ...]]:
    """Return the turns that precede episodes of one session, oldest first, by episode id; without tools and systems."""
    found: dict[str, tuple[Episode, ...]] = {}
    wanted = turns * 3
    earlier: Sequence[Episode] = ()  # newest first
    has_all = False
    group = sorted(episodes, key=lambda episode: episode.id)
    for position, episode in reversed(list(enumerate(group))):
        earlier = [e for e in earlier if e.id < episode.id]
        if len(earlier) < wanted and not has_all:
            query = EpisodeQuery(session_id=episode.session_id, before=episode.id, live_at=now)
            limit = wanted + position  # enough for the episodes before this one too, if no other ones lie between
            earlier = backend.find_episodes([scope], query, limit=limit, newest_first=True)
            has_all = 0 < len(earlier) < limit  # nothing is found before an episode that was erased meanwhile
        said = [_with_speaker(e) for e in earlier[:wanted] if role_kind(e.role) not in ("tool", "system")]
        found[episode.id] = tuple(reversed(said[:turns]))
    return found


def _with_speaker(episode: Episode) -> Episode:
    """Return a message with a speaker, named after its role if it has none."""
    if episode.speaker is not None or episode.source != "message":
        return episode
    return episode.changed(speaker=speaker_of(episode) or USER)


def find_known(
    backend: GraphBackend,
    scope: Scope,
    requests: Sequence[ExtractionRequest],
    speakers: Sequence[str],
    ontology: Ontology,
    now: datetime,
) -> Known:
    """Return what a scope holds about the speakers, the names and the words of some episodes.

    Names: those in the texts and of the speakers, then entities that share words with the texts, except dates, then
    those of the facts that have other names, at most `MOST_NAMES`; not what is only the target of facts and has no told
    type.
    Facts: those of these names and dates, and for passages of a document the newest of the scope, that hold when the
    first of the episodes occurred and were told until then; states that ended in the month before, as planned; events
    to come, of the last month, or of the last year if they share a rare word with the texts. Those that share rare
    words come first, then the newest plans, up to half of the places, which are often carried out, moved or canceled,
    and single-valued relations; at most `MOST_FACTS`, with up to a quarter for single-valued relations of the speakers.
    None that only expired episodes state.
    """
    told = [request.episode.searchable_text for request in requests]
    context = [turn.text for turn in requests[0].context]
    texts = [*told, *context]
    said_by = {canonical(name) for name in speakers}
    phrases = dict.fromkeys((*said_by, *(p for piece in _pieces(texts) for p in query_phrases(piece, _PHRASE))))
    # "Jonas" may have been stored before Jonas Weber spoke
    words = dict.fromkeys(word for piece in (*speakers, *_pieces(told)) for word in query_words(piece))
    names = (word for text in (*speakers, *told) for word in _WORD.findall(text) if word != word.lower())
    capitalized = set(split_words(" ".join(names)))
    names_first = sorted(words, key=lambda word: word not in capitalized)
    hits = backend.search_entities([scope], words=names_first[:_WORDS], phrases=list(phrases), limit=_HITS)
    in_texts = {word for text in (*texts, *speakers) for word in split_words(text)}
    ranked = sorted(hits, key=lambda hit: _name_rank(hit, said_by, in_texts))
    dates = [hit for hit in ranked if hit.alias is None and _is_date(hit.entity.name)]
    best = [hit for hit in ranked if hit not in dates][:MOST_NAMES]
    if not best:
        return Known()
    taking_part = {hit.entity.id for hit in best if {hit.entity.canonical_name, hit.alias} & said_by}
    facts = _known_facts(backend, scope, requests, best + dates[:MOST_NAMES], taking_part, ontology)
    facts = without_expired(backend, [scope], facts, now)
    sources = {edge.source_id for edge in facts}
    named = [hit.entity for hit in best if hit.entity.id in sources or _has_stated_type(hit.entity)]
    others = _missing_ends(backend, scope, facts, {entity.id for entity in named})
    entities = {entity.id: entity for entity in (*named, *others)}
    aliases: dict[str, list[str]] = {}
    for alias in backend.find_aliases([scope], list(entities)):
        if alias.alias != canonical(entities[alias.entity_id].name):
            aliases.setdefault(alias.entity_id, []).append(alias.alias)
    also_called = (e for e in others if e.id in aliases and _has_stated_type(e))
    named += islice(also_called, max(0, MOST_NAMES - len(named)))
    return Known(
        tuple(
            KnownName(
                entity.name,
                entity.entity_type,
                tuple(dict.fromkeys(aliases.get(entity.id, ()))),
                _has_stated_type(entity),
            )
            for entity in named
        ),
        tuple(
            KnownFact(
                id=edge.id,
                source=entities[edge.source_id].name,
                relation=edge.relation,
                target=entities[edge.target_id].name,
                fact=edge.fact,
                since=None if edge.valid_from_assumed else edge.valid_from,
                told=edge.told_at,
                until=edge.valid_to,
                certainty=edge.certainty,
                kind="event" if edge.kind == "event" else "state",
            )
            for edge in facts
            if edge.source_id in entities and edge.target_id in entities
        ),
    )


def _pieces(texts: Sequence[str]) -> list[str]:
    """Return texts in pieces of at most `_PIECE` characters, which overlap by a name."""
    step = _PIECE - 50
    return [text[at : at + _PIECE] for text in texts for at in range(0, max(1, len(text) - 50), step)][:_PIECES]


def _is_date(name: str) -> bool:
    """Return whether a name is only a date: "31 July 2026" shares a word with any text that tells of July."""
    words = split_words(name)
    dated = (word in _OF_DATES or _DAY_OR_YEAR.fullmatch(word) for word in words)
    return not _OF_DATES.isdisjoint(words) and all(dated)


def _name_rank(hit: EntityHit, speakers: set[str], words: set[str]) -> tuple[object, ...]:
    entity = hit.entity
    own = set(split_words(entity.name))
    shared = len(own & words) / max(1, len(own))
    return (
        entity.canonical_name not in speakers and hit.alias is None,
        -shared,
        -hit.degree,
        -entity.last_seen_at.timestamp(),
        entity.canonical_name,
        entity.entity_type,
    )


def _known_facts(
    backend: GraphBackend,
    scope: Scope,
    requests: Sequence[ExtractionRequest],
    names: Sequence[EntityHit],
    speakers: Collection[str],
    ontology: Ontology,
) -> list[Edge]:
    at = requests[0].episode.occurred_at
    found = _candidates(backend, scope, names, ontology, of_scope=requests[0].episode.source == "document")
    # if they are extracted again, what they told first isn't known, and what they ended holds
    read = {request.episode.id for request in requests}
    told_before = (edge for edge in found if read.isdisjoint(edge.episode_ids[:1]))
    held = [edge for e in told_before if _holds(edge := e.without_ends(read), at, _EVENT_AGE_SHARED)]
    wanted = {word for request in requests for word in stems(request.episode.searchable_text)}
    shared = {edge.id: wanted & stems(f"{relation_words(edge.relation)} {edge.fact}") for edge in held}
    occurrences = Counter(word for some in shared.values() for word in some)
    rarity = {word: log1p(len(held) / n) / log1p(len(held)) for word, n in occurrences.items()}
    position = {hit.entity.id: place for place, hit in enumerate(names)}
    plans = sorted((edge for edge in held if edge.certainty == "plan"), key=_told_at, reverse=True)
    first_plans = {edge.id for edge in plans[: MOST_FACTS // 2]}  # many old ones would displace what holds

    def rank(edge: Edge) -> tuple[float | str, ...]:
        named = (edge.source_id in position) + (edge.target_id in position)
        single, plan = ontology.is_single_valued(edge.relation), edge.id in first_plans
        relevance = sum(rarity[word] for word in sorted(shared[edge.id]))
        return (
            -(relevance + 0.25 * single + 0.5 * plan + 0.125 * named - 0.5 * (edge.kind == "event")),
            position.get(edge.source_id, MOST_NAMES),
            -_told_at(edge),
            edge.fact,
        )

    rare = {word for word, n in occurrences.items() if n <= max(1, len(held) * _RARE_SHARE)}
    shown = (edge for edge in held if shared[edge.id] & rare or _holds(edge, at, _EVENT_AGE))
    ranked = sorted(shown, key=rank)
    # "we moved" doesn't say from where
    own = [e for e in ranked if e.source_id in speakers and ontology.is_single_valued(e.relation)][: MOST_FACTS // 4]
    others = (edge for edge in ranked if edge not in own)
    return sorted((*own, *islice(others, MOST_FACTS - len(own))), key=rank)


def _told_at(edge: Edge) -> float:
    return (edge.told_at or edge.valid_from).timestamp()


def _candidates(
    backend: GraphBackend, scope: Scope, names: Sequence[EntityHit], ontology: Ontology, *, of_scope: bool
) -> Collection[Edge]:
    """Return the newest facts of some names; where these have more, also those that newer facts of a hub displace.

    These are the facts of the names with the fewest, and those of single-valued relations. With `of_scope`, the newest
    facts of the scope are added: documents say "the house" or "we" of what all of them are about.
    """
    ids = tuple(hit.entity.id for hit in names)
    newest = _newest(backend, scope, EdgeQuery(touching=ids, kinds=STATED_KINDS, versions="all"))
    added = _newest(backend, scope, EdgeQuery(kinds=STATED_KINDS, versions="all")) if of_scope else ()
    if len(newest) < _CANDIDATES:
        return {edge.id: edge for edge in (*newest, *added)}.values()
    by_degree = sorted(names, key=lambda hit: hit.degree)
    so_far = accumulate(hit.degree for hit in by_degree)
    few = tuple(hit.entity.id for hit, facts in zip(by_degree, so_far, strict=True) if facts < _CANDIDATES)
    slots = tuple((i, relation) for i in ids for relation in sorted(ontology.single_valued))
    queries = (
        EdgeQuery(slots=slots, kinds=STATED_KINDS, versions="all"),
        EdgeQuery(touching=few, kinds=STATED_KINDS, versions="all"),
    )
    asked = (query for query in queries if query.slots or query.touching)
    further = (edge for query in asked for edge in _newest(backend, scope, query))
    return {edge.id: edge for edge in (*newest, *further, *added)}.values()


def _newest(backend: GraphBackend, scope: Scope, query: EdgeQuery) -> Sequence[Edge]:
    return backend.find_edges([scope], query, limit=_CANDIDATES, newest_first=True)


def _holds(edge: Edge, at: datetime, event_age: timedelta) -> bool:
    """Return whether a fact told until a time isn't over then, or ended or happened not long ago.

    A state that ended on a planned day counts, and an event, unless they were a plan that is settled.
    """
    told = edge.told_at or edge.valid_from
    if told > at or edge.valid_to == edge.valid_from:
        return False
    is_settled = edge.certainty == "plan" and any(end.by not in edge.episode_ids for end in edge.ends)
    if edge.kind == "event":
        return at - max(told, edge.valid_to or told) <= event_age and not is_settled
    if edge.valid_to is None or edge.valid_to > at:
        return True
    was_planned = any(end.at == edge.valid_to and end.told_at < end.at for end in edge.ends) and not is_settled
    return was_planned and edge.superseded_by is None and at - edge.valid_to <= _PLANNED_END_AGE


def _missing_ends(backend: GraphBackend, scope: Scope, facts: Sequence[Edge], found: set[str]) -> Sequence[Entity]:
    """Return the entities of facts that aren't found so far, in the order of the facts."""
    ends = dict.fromkeys(end for edge in facts for end in (edge.source_id, edge.target_id))
    missing = [end for end in ends if end not in found]
    entities = backend.get_entities([scope], missing) if missing else {}
    return [entities[end] for end in missing if end in entities]


def _has_stated_type(entity: Entity) -> bool:
    return entity.properties.get(TYPE_STATED) is not False
