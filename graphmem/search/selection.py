"""Selection: the best episodes of a ranking, in order, each with its score, the reasons for it, and its confidence."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from graphmem.models.arrays import Float32s, Float64s, Int64s, best_first, normalized
from graphmem.search.confidence import confidences, overall
from graphmem.search.corpus import Corpus
from graphmem.search.pipeline import Ranking
from graphmem.search.question import ParsedQuestion
from graphmem.search.results import Channel, Reason, SearchOptions
from graphmem.trust import LEVELS

_CHANNELS: dict[str, tuple[Channel, str]] = {
    "lexical": ("lexical", "words"),
    "sentence": ("semantic", "best sentence"),
    "late": ("semantic", "late interaction"),
    "fact": ("fact", "best fact"),
    "graph": ("graph", "walk"),
    "bridge": ("graph", "bridge"),
    "speaker": ("prior", "speaker"),
    "statement": ("prior", "statement"),
    "self": ("prior", "first person"),
    "instruction": ("prior", "instruction"),
    "opening": ("prior", "opening"),
    "session": ("prior", "session"),
    "month": ("prior", "month"),
    "date": ("prior", "date"),
    "side": ("prior", "side"),
    "rerank": ("rerank", "cross-encoder"),
}
SESSION_PENALTY = 0.05
"""Reduction of a turn's score for each turn of its session before it, in a list that is spread over sessions."""

_SPREAD = 100  # number of episodes that are spread over sessions
_POOL_FACTOR = 5  # size of the diversification pool as a multiple of k
_NEGLIGIBLE = 1e-9
_MIN_ORDERED = 250  # minimum number of ranked positions


class RankedEpisode(NamedTuple):
    """One of the best episodes, with what a search says about it."""

    episode_id: str
    score: float
    reasons: tuple[Reason, ...]
    confidence: float
    is_list: bool


def in_order(total: Float64s, corpus: Corpus, options: SearchOptions, among: Int64s | None) -> list[int]:
    """Return the positions of the episodes that are ranked, visible at `as_of` and of enough trust, best first."""
    if among is not None:
        inside = np.zeros(len(total), dtype=bool)
        inside[among] = True
        total = np.where(inside, total, -np.inf)
    if options.as_of is not None:
        moment = np.array([options.as_of.valid.timestamp(), options.as_of.known.timestamp()])
        total = np.where((corpus.times.rows <= moment).all(axis=1), total, -np.inf)
    if options.min_trust != LEVELS[0]:
        total = np.where(corpus.trust_of.rows >= LEVELS.index(options.min_trust), total, -np.inf)
    order = best_first(total, max(_MIN_ORDERED, 5 * options.k))
    return order[np.isfinite(total[order])].tolist()


def ranked_episodes(
    corpus: Corpus, asked: ParsedQuestion, ranking: Ranking, order: list[int], options: SearchOptions
) -> tuple[list[RankedEpisode], tuple[str, ...], float]:
    """Return the best episodes of an order, the seeds, and the confidence."""
    if asked.form != "answer":  # half of a pair of request and reply, which a summary needs together
        sessions, weight = corpus.session_of.rows, 0.5 if asked.form == "summary" else 1.0
        order = spread(order, ranking.total, sessions, weight)
    top = varied(order, ranking.total, corpus.episode_vectors.rows, options.diversity, options.k)
    top = list(dict.fromkeys([*top, *order]))[: max(len(top), options.considered)]
    each = confidences(ranking, corpus, asked, order)
    whole, sure = overall(each), dict(zip(order, each.tolist(), strict=True))
    if whole < options.min_confidence:
        top = []
    seeds = tuple(corpus.names.texts[seed] for seed in ranking.seeds)
    ids, total = corpus.ids, ranking.total
    rows = [
        RankedEpisode(ids[i], float(total[i]), _reasons(i, ranking, corpus), sure[i], ids[i] in corpus.lists)
        for i in top
    ]
    return rows, seeds, whole


def varied(order: Sequence[int], scores: Float64s, vectors: Float32s, diversity: float, k: int) -> list[int]:
    """Return the best k by maximal marginal relevance (Carbonell and Goldstein 1998).

    Parameters
    ----------
    order
        Positions, best first.
    scores
        Shape (n,).
    vectors
        Unit vectors, shape (n, d); with d = 0 the order is unchanged.
    diversity
        ``1 - λ`` in ``λ × score - (1 - λ) × highest cosine with a selected episode``.
    k
        Number of episodes to return.
    """
    pool = list(order[: _POOL_FACTOR * k])
    if not diversity or not vectors.shape[1] or len(pool) < 2:
        return list(order[:k])
    relevance = normalized(scores[pool])
    cosines = vectors[pool] @ vectors[pool].T
    nearest = np.full(len(pool), -1.0)
    left = np.ones(len(pool), dtype=bool)
    chosen: list[int] = []
    while len(chosen) < min(k, len(pool)):
        gain = (1 - diversity) * relevance - diversity * (nearest if chosen else 0.0)
        best = int(np.argmax(np.where(left, gain, -np.inf)))
        chosen.append(pool[best])
        left[best] = False
        nearest = np.maximum(nearest, cosines[best])
    return chosen


def spread(order: Sequence[int], scores: Float64s, sessions: Int64s, weight: float) -> list[int]:
    """Return the order with the best episodes spread over their sessions; documents keep their places.

    Parameters
    ----------
    order
        Positions, best first.
    scores, sessions
        Score and session of each episode, -1 for none; shape (n,).
    weight
        What one turn counts in its session.
    """
    pool, rest = list(order[:_SPREAD]), order[_SPREAD:]
    taken: defaultdict[int, float] = defaultdict(float)
    chosen: list[int] = []
    while pool:
        best = max(pool, key=lambda i: scores[i] - SESSION_PENALTY * taken[int(sessions[i])])
        pool.remove(best)
        chosen.append(best)
        if sessions[best] >= 0:
            taken[int(sessions[best])] += weight
    return [*chosen, *rest]


def _reasons(i: int, ranking: Ranking, corpus: Corpus) -> tuple[Reason, ...]:
    parts = {channel: float(values[i]) for channel, values in ranking.channels.items()}
    reasons: list[Reason] = []
    for name, score in sorted(parts.items(), key=lambda part: (-abs(part[1]), part[0])):
        if abs(score) < _NEGLIGIBLE:
            continue
        channel, detail = _CHANNELS[name]
        reason = Reason(channel=channel, score=score, detail=detail)
        if name == "fact":
            reason = reason.changed(fact_id=ranking.facts.get(i))
        elif name == "graph":
            reason = reason.changed(**_walked(i, ranking, corpus))
        elif name == "bridge" and (crossing := ranking.bridge_hops.get(i)) is not None:
            names = corpus.names
            there = names.texts[crossing.name]
            begin = _walked(crossing.origin, ranking, corpus)["path"]
            reason = reason.changed(entity=there, path=(*begin, there), hops=1)
        reasons.append(reason)
    return tuple(reasons)


def _walked(i: int, ranking: Ranking, corpus: Corpus) -> dict[str, Any]:
    """Return the entity, path and hops from a name of the question, or a synonym of one, to an episode."""
    names = corpus.names
    of_episode = names.of_episode(i)
    for seed in ranking.seeds:
        if seed in of_episode:
            return {"entity": names.texts[seed], "path": (names.texts[seed],), "hops": 0}
    for seed in ranking.seeds:
        for other in names.synonyms.of(seed):
            if other in of_episode:
                return {"entity": names.texts[other], "path": (names.texts[seed], names.texts[other]), "hops": 0}
    return {"entity": None, "path": tuple(names.texts[seed] for seed in ranking.seeds[:1]), "hops": 1}
