"""The score of a fact (spec: scoring a fact). Pure functions over arrays; m is the number of facts."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

import numpy as np

from graphmem.models import EdgeType
from graphmem.ontology import FLOW_WEIGHT
from graphmem.recall.walk import Floats, Positions
from graphmem.text.words import stem

SECONDS_A_DAY = 86_400.0


def effective_confidence(confidence: Floats, retrieval_count: Floats) -> Floats:
    """Return ``min(1, confidence × (1 + 0.2 × ln(1 + retrieval_count)))``, shape (m,) (A-MEM, arXiv 2502.12110)."""
    return np.minimum(1.0, confidence * (1.0 + 0.2 * np.log1p(retrieval_count)))


def proximity(hop: Positions) -> Floats:
    """Return ``1 / (1 + hop)``, shape (m,)."""
    return np.reciprocal(1.0 + hop.astype(np.float64))


def flow_weight(edge_types: Sequence[EdgeType]) -> Floats:
    """Return the weight of each edge type, shape (m,) (MAGMA, arXiv 2601.03236)."""
    return np.array([FLOW_WEIGHT[kind] for kind in edge_types], dtype=np.float64)


def recency(valid_from: Floats, now: float, rate: float) -> Floats:
    """Return ``min(1 + 1 / (1 + age_days × rate), 2)``, or 1 where the rate is 0.

    Parameters
    ----------
    valid_from, now
        Seconds since 1970; a fact of the future has age 0.
    rate
        Per day, in [0, 10].
    """
    if rate == 0.0:
        return np.ones_like(valid_from)
    age = np.maximum(0.0, now - valid_from) / SECONDS_A_DAY
    return np.minimum(1.0 + 1.0 / (1.0 + age * rate), 2.0)


def shared_words(words: Sequence[str], texts: Sequence[str]) -> Floats:
    """Return the weighted share of a question's words that each text has, shape (m,), in [0, 1].

    A word counts ``ln(1 + m / df)`` of the texts it is in; one that is in none counts nothing. Words are
    compared by their stems, as beginnings of words.
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
    """Return what the forms of a word begin with: "lives", "living" and "live" share "liv"."""
    root = stem(word)
    return root[:-1] if len(root) > 3 and root[-1] in "eiy" else root


def _finder(beginnings: Sequence[str]) -> Callable[[str], list[int]]:
    position = {text: i for i, text in enumerate(beginnings)}
    longest_first = sorted(beginnings, key=len, reverse=True)
    pattern = re.compile(r"(?<![^\W_])(?:" + "|".join(map(re.escape, longest_first)) + ")")
    return lambda text: [position[found] for found in pattern.findall(text)]
