"""The ranking pipeline of episode search: channels, priors, graph, fusion (docs/concepts/search.md)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from graphmem.embed import TokenVectors
from graphmem.models.arrays import Float32s, Float64s, Int64s, normalized
from graphmem.recall.options import SpreadingOptions
from graphmem.search.corpus import Corpus
from graphmem.search.graph_channel import Crossing, bridge, stepwise, walk
from graphmem.search.question import ParsedQuestion, TimeRange, months
from graphmem.search.results import SearchOptions
from graphmem.search.speakers import ASSISTANT, USER
from graphmem.telemetry import in_span
from graphmem.text.terms import terms

WEIGHTS = {
    "late": 0.4,
    "sentence": 0.4,
    "lexical": 0.2,
    "speaker": 0.125,
    "statement": 0.125,
    "self": 0.125,
    "instruction": 0.125,
    "opening": 0.4,
    "session": 0.25,
    "month": 0.25,
    "date": 0.25,
    "side": 0.25,
}
"""Weights of the channels of the text score, each normalized over all episodes."""

MIN_TEXT_SHARE = 0.1
"""Share of the text score that remains at the maximum graph weight, for a question with a rare name."""

LONG_TURN = 80
"""Number of terms above which the score of a turn is corrected for its length."""

TOLD_WITHIN = 7 * 86_400
"""Maximum number of seconds after the time that a question names in which what happened then is told."""

CANDIDATES = 1000
"""Number of episodes scored by the expensive steps."""

RRF_K = 60
"""Constant of reciprocal rank fusion (Cormack, Clarke and Büttcher 2009)."""


@dataclass(slots=True)
class Ranking:
    """Scores of n episodes, and their components.

    A search scores by text first; the graph, the fusion and a cross-encoder change the scores by the methods.

    Attributes
    ----------
    channels
        Channel → its part of `total`, shape (n,).
    total
        Sum of the channels, shape (n,).
    bridge_hops
        Episode → the bridge that reached it.
    seeds
        Names that the walk started from.
    facts
        Episode → its best fact for the question.
    late
        Late interaction, not normalized, shape (n,), 0 outside of the candidates; None without token vectors.
    similarity
        Cosine of the question and the sentence or fact nearest to it; 0 without vectors.
    """

    channels: dict[str, Float64s]
    total: Float64s = field(init=False)
    bridge_hops: dict[int, Crossing] = field(default_factory=dict[int, Crossing])
    seeds: tuple[int, ...] = ()
    facts: dict[int, str] = field(default_factory=dict[int, str])
    late: Float64s | None = None
    similarity: float = 0.0

    def __post_init__(self) -> None:
        self.set(self.channels)

    def add(self, channel: str, part: Float64s) -> None:
        """Add a channel to the scores."""
        self.channels[channel] = part
        self.total = self.total + part

    def rescale(self, total: Float64s) -> None:
        """Scale the channels of each episode so that they add up to another score."""
        share = np.divide(total, self.total, out=np.zeros(len(total)), where=np.abs(self.total) > 1e-12)
        self.channels = {channel: part * share for channel, part in self.channels.items()}
        self.total = total

    def set(self, channels: dict[str, Float64s]) -> None:
        """Replace all channels."""
        self.channels = channels
        self.total = np.sum(list(channels.values()), axis=0)


@in_span("graphmem.search.rank")
def rank(
    corpus: Corpus,
    asked: ParsedQuestion,
    tokens: TokenVectors | None,
    options: SearchOptions,
    limits: SpreadingOptions,
    *,
    sentence: Float32s | None = None,
    among: Int64s | None = None,
) -> Ranking:
    """Score all episodes of a corpus for a question.

    Parameters
    ----------
    corpus
        n episodes.
    asked
        The question, parsed with the corpus.
    tokens
        Token vectors of the question in the first person, without pieces if the model has no token vectors; None
        without a model.
    options
        Graph expansion and fusion.
    limits
        Limits of spreading activation, for that strategy.
    sentence
        Cosine of each episode's best sentence with the question, shape (n,), from an external index; None computes it.
    among
        Positions of the episodes to rank, ascending; None ranks all. The scores of others have no meaning.
    """
    among = np.arange(len(corpus)) if among is None else among
    ranking, candidates = _rank_by_text(corpus, asked, tokens, sentence, among)
    if options.expansion.enabled:
        _add_graph(ranking, corpus, asked, tokens, candidates, options, limits, among)
    if asked.form == "summary":
        _join_replies(ranking, corpus, among)
    if options.fusion == "rrf":
        inside = reciprocal_ranks({channel: values[among] for channel, values in ranking.channels.items()})
        ranking.set({channel: _placed(values, among, len(corpus)) for channel, values in inside.items()})
    return ranking


def _of_highest(values: NDArray[np.floating]) -> Float64s:
    """Return values of at least 0 as shares of the highest. Unlike in `normalized`, the lowest doesn't become 0."""
    values = np.asarray(values, dtype=np.float64)
    highest = values.max(initial=0.0)
    return values / highest if highest > 0 else np.zeros(len(values))


def _placed(values: NDArray[np.floating], among: Int64s, n: int) -> Float64s:
    """Return the values of some episodes as an array of all, 0 elsewhere."""
    if len(among) == n:
        return np.asarray(values, dtype=np.float64)
    found = np.zeros(n)
    found[among] = values
    return found


def _rank_by_text(
    corpus: Corpus, asked: ParsedQuestion, tokens: TokenVectors | None, sentence: Float32s | None, among: Int64s
) -> tuple[Ranking, Int64s]:
    """Return the ranking by words, vectors and priors, and the positions of its candidates, which have all channels."""
    n = len(corpus)
    facts: dict[int, str] = {}
    matched: Float64s | None = None
    own = best = np.empty(0, np.float32)
    raw: dict[str, NDArray[np.floating]] = {
        "lexical": corpus.lexicon.scores(terms(asked.text)),
        "statement": -_questions(corpus),
    }
    if tokens is not None:
        own = corpus.best_sentence(tokens.pooled) if sentence is None else sentence
        fact, facts = corpus.best_fact(tokens.pooled)
        best = np.maximum(own, fact)
        raw["sentence"] = best - _length_trend(own, corpus, np.arange(n))
    if asked.subject is not None:
        raw["speaker"] = (corpus.speaker_of.rows == asked.subject).astype(np.float32)
    if asked.speakers:
        raw["self"] = corpus.tells.rows
    if sessions := corpus.sessions_of(asked.speakers):
        raw["session"] = np.isin(corpus.session_of.rows, list(sessions)).astype(np.float32)
    if asked.asker is not None:
        raw["side"] = (corpus.speaker_of.rows == asked.asker).astype(np.float32)
    elif asked.side and corpus.has_assistant:
        raw["side"] = (corpus.side_of.rows == asked.side).astype(np.float32)
    if corpus.has_assistant:
        if asked.form == "answer":
            raw["instruction"] = corpus.instructs.rows
        else:
            raw["opening"] = _openings(corpus)
    if wanted := months(asked.text):
        raw["month"] = (corpus.months.rows & wanted > 0).astype(np.float32)
    if asked.period is not None:
        raw["date"] = _nearness(corpus.times.rows[:, 0], asked.period)
    weights = _weights(tokens)
    parts = {channel: weights[channel] * _placed(normalized(v[among]), among, n) for channel, v in raw.items()}
    parts["lexical"] = weights["lexical"] * _placed(_of_highest(raw["lexical"][among]), among, n)
    candidates = among[_best(np.sum(list(parts.values()), axis=0)[among], CANDIDATES)]
    if tokens is not None and len(tokens.pieces):
        late, matched = np.zeros(n), np.zeros(n)
        found = corpus.pieces.scores(tokens.pieces, tokens.vectors, candidates)
        late[candidates] = weights["late"] * normalized(found - _length_trend(found, corpus, candidates))
        matched[candidates] = found
        parts["late"] = late
    if tokens is not None and len(facts):
        parts["sentence"], parts["fact"] = _shared(parts["sentence"], raw["sentence"][among], best - own)
    similarity = float(best[among].max(initial=0.0)) if len(best) else 0.0
    return Ranking(parts, facts=facts, late=matched, similarity=similarity), candidates


def _join_replies(ranking: Ranking, corpus: Corpus, among: Int64s) -> None:
    """Give a request and the assistant's reply to it, if both are ranked, the mean of their scores.

    A summary needs both.
    """
    replies = among[corpus.side_of.rows[among] == ASSISTANT]
    requests = corpus.sessions.at(-1)[replies]
    answers = np.isin(requests, among) & (corpus.side_of.rows[requests] == USER)
    replies, requests = replies[answers], requests[answers]
    joined = {channel: part.copy() for channel, part in ranking.channels.items()}
    for part in joined.values():
        part[replies] = part[requests] = (part[replies] + part[requests]) / 2
    ranking.set(joined)


def _nearness(times: Float64s, period: TimeRange) -> Float32s:
    """Return 1 for the times in a period, and a half for those after it, as long again but at most `TOLD_WITHIN`."""
    begin = -np.inf if period.begin is None else period.begin.timestamp()
    until = np.inf if period.until is None else period.until.timestamp()
    told = until + min(until - begin, TOLD_WITHIN)
    inside, after = (times >= begin) & (times < until), (times >= until) & (times < told)
    return (inside + after / 2).astype(np.float32)


def _questions(corpus: Corpus) -> Float32s:
    """Return 1 for each turn that is a question, but not for requests to an assistant: users state facts in them."""
    asks = corpus.asks.rows
    return np.where(corpus.side_of.rows == USER, 0, asks).astype(np.float32) if corpus.has_assistant else asks


def _openings(corpus: Corpus) -> Float32s:
    """Return 1 for the first turn of each session, falling to 0 towards its end; 0.5 for episodes without a session.

    Users say at first what is new or what they want, and work out details afterwards.
    """
    sessions = corpus.session_of.rows
    order = np.lexsort((corpus.times.rows[:, 0], sessions))
    _, begin, length = np.unique(sessions[order], return_index=True, return_counts=True)
    found = np.empty(len(corpus), np.float32)
    found[order] = 1 - (np.arange(len(corpus)) - np.repeat(begin, length)) / np.repeat(length, length)
    found[sessions < 0] = 0.5
    return found


def _length_trend(scores: NDArray[np.floating], corpus: Corpus, positions: Int64s) -> Float64s:
    """Return the part of the scores that length explains: their linear trend over its logarithm, if it rises.

    It applies to turns of more than `LONG_TURN` terms, since some part of a long text is similar to any question.
    """
    lengths = np.where(corpus.session_of.rows[positions] >= 0, corpus.lexicon.lengths[positions], 0)
    excess = np.log(np.maximum(lengths, LONG_TURN) / LONG_TURN).astype(np.float64)
    spread = excess.var() if len(excess) else 0.0
    if spread < 1e-9:
        return np.zeros(len(excess))
    slope = float(((excess - excess.mean()) * scores).mean() / spread)
    return max(slope, 0.0) * excess


def _shared(part: Float64s, scores: NDArray[np.floating], gained: NDArray[np.floating]) -> tuple[Float64s, Float64s]:
    """Split a normalized channel into the parts of an episode's own sentences and of its facts.

    `scores` are those that the channel was normalized over.
    """
    span = float(scores.max() - scores.min())
    added = np.asarray(gained, dtype=np.float64) * (float(part.max()) / span if span > 0 else 0.0)
    return part - added, added


def _weights(tokens: TokenVectors | None) -> dict[str, float]:
    """Return the weights of the channels.

    The lexical channel takes over those of missing vectors, and the share of them that the vocabulary of the model
    doesn't cover.
    """
    covered = 0.0 if tokens is None else tokens.vocabulary_coverage
    late = covered * WEIGHTS["late"] if tokens is not None and len(tokens.pieces) else 0.0
    sentence = covered * WEIGHTS["sentence"]
    lexical = WEIGHTS["lexical"] + WEIGHTS["late"] - late + WEIGHTS["sentence"] - sentence
    return {**WEIGHTS, "late": late, "sentence": sentence, "lexical": lexical}


def _best(scores: Float64s, limit: int) -> Int64s:
    """Return the positions of the best scores, ascending."""
    if len(scores) <= limit:
        return np.arange(len(scores))
    return np.sort(np.argpartition(-scores, limit)[:limit])


def _graph_share(corpus: Corpus, asked: ParsedQuestion, seeds: Sequence[int]) -> float:
    """Return the graph weight γ in [0, 1]: the maximum over the seeds; 0 without, or if the question names a speaker.

    The weight of a seed is its rarity times the share of its episodes without a session: within a session, related
    turns are neighbors anyway.
    """
    if asked.speakers:
        return 0.0
    weights: list[float] = []
    for seed in seeds:
        reach = list(corpus.names.reach(seed))
        alone = float((corpus.session_of.rows[reach] < 0).mean()) if reach else 1.0
        weights.append(alone * corpus.names.rarity(len(reach)))
    return max(weights, default=0.0)


def _add_graph(
    ranking: Ranking,
    corpus: Corpus,
    asked: ParsedQuestion,
    tokens: TokenVectors | None,
    candidates: Int64s,
    options: SearchOptions,
    limits: SpreadingOptions,
    among: Int64s,
) -> None:
    """Blend the graph score into the ranking: ``(1 − .9 γ) × text + γ × weight × (walk + bridge)``."""
    text, names = ranking.total, corpus.names
    seeds = tuple(names.known[name] for name in asked.seeds)
    graph_share = _graph_share(corpus, asked, seeds)
    if graph_share <= 0:
        return
    walked = np.zeros(len(corpus))
    if options.expansion.strategy == "ppr":
        walked[candidates] = walk(text[candidates], seeds, names, candidates)
    else:
        question = None if tokens is None else tokens.pooled
        walked[candidates] = stepwise(options.expansion, seeds, names, candidates, question, limits)
    all_match = len(among) > 0 and ranking.channels["lexical"][among].min() > 0
    scaled = _of_highest(text[among]) if all_match else normalized(text[among])
    ranking.rescale(_placed(scaled, among, len(corpus)) * (1 - (1 - MIN_TEXT_SHARE) * graph_share))
    ranking.seeds = seeds
    weight = graph_share * options.graph_weight
    ranking.add("graph", weight * walked)
    if tokens is not None and len(tokens.pieces):
        vectors, asked_names = corpus.episode_vectors.rows, frozenset(asked.names)
        crossed, ranking.bridge_hops = bridge(
            asked.first_person, tokens, walked, asked_names, names, vectors, corpus.lexicon.has
        )
        ranking.add("bridge", weight * crossed)


def reciprocal_ranks(channels: dict[str, Float64s]) -> dict[str, Float64s]:
    """Return ``1 / (60 + rank)`` of each episode in each channel, shape (n,); 0 for episodes without evidence.

    Episodes with equal scores share their best rank; the lowest score of a channel counts as no evidence.
    """
    return {name: _reciprocal_rank(scores) for name, scores in channels.items()}


def _reciprocal_rank(scores: Float64s) -> Float64s:
    values, place = np.unique(-scores, return_inverse=True)
    before = np.concatenate(([0], np.cumsum(np.bincount(place, minlength=len(values)))))[:-1]
    ranked = 1.0 / (RRF_K + 1 + before[place])
    return np.where(scores > scores.min(initial=np.inf), ranked, 0.0)
