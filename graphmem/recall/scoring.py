"""Factors of a fact's score. Pure functions over arrays."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

import numpy as np

from graphmem.models import EdgeType
from graphmem.models.arrays import Float64s
from graphmem.ontology import FLOW_WEIGHT, Ontology
from graphmem.text.terms import stem

RELATION_WEIGHT = 2.0
"""Weight of the words of a question that name the relation of a fact, as measured (docs/development/benchmarks.md)."""


SECONDS_A_DAY = 86_400.0


def effective_confidence(confidence: Float64s, retrieval_count: Float64s) -> Float64s:
    """Return ``min(1, confidence × (1 + 0.2 × ln(1 + retrieval_count)))``, shape (m,) (A-MEM, arXiv 2502.12110)."""
    return np.minimum(1.0, confidence * (1.0 + 0.2 * np.log1p(retrieval_count)))


def flow_weight(edge_types: Sequence[EdgeType]) -> Float64s:
    """Return the weight of each edge type, shape (m,) (MAGMA, arXiv 2601.03236)."""
    return np.array([FLOW_WEIGHT[kind] for kind in edge_types], dtype=np.float64)


def recency(valid_from: Float64s, now: float, rate: float) -> Float64s:
    """Return ``min(1 + 1 / (1 + age_days × rate), 2)``, or 1 if the rate is 0.

    Parameters
    ----------
    valid_from, now
        Seconds since 1970; a fact in the future has age 0.
    rate
        Per day, in [0, 10].
    """
    if rate == 0.0:
        return np.ones_like(valid_from)
    age = np.maximum(0.0, now - valid_from) / SECONDS_A_DAY
    return np.minimum(1.0 + 1.0 / (1.0 + age * rate), 2.0)


def fact_factors(
    confidence: Float64s,
    retrieval_count: Float64s,
    edge_types: Sequence[EdgeType],
    valid_from: Float64s,
    past: Float64s,
    shared: Float64s,
    *,
    now: float,
    decay_rate: float,
    text_weight: float,
) -> dict[str, Float64s]:
    """Return the factors of m facts' scores that no walk decides, by field of `ScoreParts`; float arrays (m,).

    Parameters
    ----------
    confidence, retrieval_count, edge_types, valid_from
        Columns of the facts; `valid_from` and `now` in seconds since 1970.
    past
        Factor of a fact that is over, 1 for one that holds.
    shared
        Share of the question's words that each fact has, by `shared_words`.
    decay_rate, text_weight
        The settings `temporal_decay_rate` and `fact_text_weight`.
    """
    return {
        "past": past,
        "confidence": effective_confidence(confidence, retrieval_count),
        "edge_type": flow_weight(edge_types),
        "recency": recency(valid_from, now, decay_rate),
        "relevance": 1.0 + text_weight * shared,
    }


def fact_text(relation: str, fact: str, ontology: Ontology) -> str:
    """Return the text of a fact that words of questions are looked for in: its relation in all words, its sentence."""
    return f"{relation} {ontology.words(relation)} {fact}"


def relation_factor(words: Sequence[str], relations: Sequence[str], ontology: Ontology) -> Float64s:
    """Return the factor of each fact whose relation the question names, shape (m,): ``1 + 2 × share``; 1 for others.

    "Where does she work?" names `works_at`. Only relations with synonyms or with a single value count, which ontologies
    define: the words of any other relation are as likely part of another question.
    """
    known = (r if ontology.words(r) or ontology.is_single_valued(r) else "" for r in relations)
    return 1.0 + RELATION_WEIGHT * shared_words(words, [fact_text(r, "", ontology) for r in known])


def shared_words(words: Sequence[str], texts: Sequence[str]) -> Float64s:
    """Return the weighted share of a question's words that each text contains, shape (m,), in [0, 1].

    The weight of a word is ``ln(1 + m / df)``, or 0 if no text contains it. Words are compared by their
    stems, as prefixes of words; numbers and words of fewer than 3 characters as whole ones.
    """
    beginnings = list(dict.fromkeys(_beginning(word) for word in words))
    if not beginnings or not texts:
        return np.zeros(len(texts))
    find = _finder(beginnings)
    has = np.zeros((len(texts), len(beginnings)))
    for row, text in zip(has, texts, strict=True):
        row[find(text.lower())] = 1.0
    df = has.sum(axis=0)
    weight = np.where(df > 0, np.log1p(len(texts) / np.maximum(df, 1)), 0.0)
    total = float(weight.sum())
    return has @ weight / total if total else np.zeros(len(texts))


def _beginning(word: str) -> str:
    """Return the common prefix of the forms of a word: "liv" for "lives", "living" and "live"."""
    root = stem(word)
    return root[:-1] if len(root) > 3 and root[-1] in "eiy" else root


def is_whole(word: str) -> bool:
    """Return whether a word of a question matches only itself, not longer words that begin with it."""
    return word.isdigit() or (len(word) < 3 and word.isascii())


def _finder(beginnings: Sequence[str]) -> Callable[[str], list[int]]:
    position = {text: i for i, text in enumerate(beginnings)}
    longest_first = sorted(beginnings, key=len, reverse=True)
    patterns = (re.escape(text) + (r"(?![^\W_])" if is_whole(text) else "") for text in longest_first)
    pattern = re.compile(rf"(?<![^\W_])(?:{'|'.join(patterns)})")
    return lambda text: [position[found] for found in pattern.findall(text)]
