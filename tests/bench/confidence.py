"""Calibration of a search's confidence: BEAM, REALTALK, LoCoMo and MuSiQue, and questions that nothing answers.

    python tests/bench/confidence.py [--fit]

Prints, with and without the embedding model, the expected calibration error (ten bins) of the confidence of an episode
and of a whole result, and the share of unanswerable questions whose result is empty at the threshold that loses 3 % of
the others. `--fit` fits the weights again, and for each set on the others alone. Unanswerable are LoCoMo's category 5
and BEAM's questions of that kind. Built memories are shared with tests/bench/recall.py.
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

sys.path.insert(0, str(Path(__file__).parent))

from kinds import KINDS, Asked, lines, load
from recall import Built

from graphmem import Scope
from graphmem.models.arrays import best_first
from graphmem.recall.options import SpreadingOptions
from graphmem.search.confidence import BEST, FEATURES, WITH_VECTORS, WORDS_ONLY, features, overall, sigmoid
from graphmem.search.pipeline import rank
from graphmem.search.question import parse_question
from graphmem.search.results import SearchOptions

Floats = NDArray[np.float64]
LOST = 0.03
WEAK = 1e-4  # L2 regularization of a fit


@dataclass(frozen=True)
class Row:
    """A question: its set, whether anything answers it, and the features and gold of its best episodes."""

    kind: str
    answerable: bool
    features: Floats
    gold: Floats


def asked_of(kind: str) -> list[Asked]:
    """Return the questions of a set, those without an answer with none."""
    asked = load(kind).asked
    if kind == "locomo":
        return [Asked(q.question, q.scopes, frozenset(), "5") if q.category == "5" else q for q in asked]
    if kind == "beam":
        rows = lines("beam100k_dev_unanswerable.jsonl")
        return [*asked, *(Asked(r["question"], (f"beam/{r['scope']}",), frozenset(), "none") for r in rows)]
    return asked


def read(built: Built, *, vectors: bool) -> list[Row]:
    """Rank all questions; return a row for each."""
    engine, rows = built.memory._engine, list[Row]()  # pyright: ignore[reportPrivateUsage]
    embedder = engine.search._encoder.embedder  # pyright: ignore[reportPrivateUsage]
    limits = SpreadingOptions.of(engine.settings)
    for kind in KINDS:
        for one in asked_of(kind):
            scopes = [Scope.from_text(scope) for scope in one.scopes]
            with engine.search.index.copy(scopes) as copy:
                asked = parse_question(one.question, copy.corpus.speakers, copy.corpus.names)
                read = embedder.token_vectors([asked.first_person]) if vectors and embedder else None
                ranking = rank(copy.corpus, asked, read[0] if read else None, SearchOptions(), limits)
                order = [int(i) for i in best_first(ranking.total, BEST)]
                found = features(ranking, copy.corpus, asked, order)
                ids = [copy.corpus.ids[i] for i in order]
            episodes = engine.backend.get_episodes(scopes, ids)
            gold = np.array([float(episodes[i].external_id in one.answers) for i in ids])
            rows.append(Row(kind, bool(one.answers), found, gold))
    return rows


def fit(x: Floats, y: Floats, weights: Floats) -> Floats:
    """Return the weights of a logistic regression, by Newton's method."""
    found = np.array([0.0] * int(x.shape[1]))
    for _ in range(30):
        p = sigmoid(np.asarray(x @ found, dtype=np.float64))
        gradient = np.asarray(x.T @ (weights * (p - y)) / weights.sum() + WEAK * found, dtype=np.float64)
        bent = np.asarray((x.T * (weights * p * (1 - p))) @ x / weights.sum(), dtype=np.float64)
        found = np.asarray(found - np.linalg.solve(bent + WEAK * np.eye(len(gradient)), gradient), dtype=np.float64)
    return found


def stacked(rows: list[Row]) -> tuple[Floats, Floats, Floats]:
    """Return features, gold and weights of the episodes of questions, so that each set weighs the same."""
    many = {kind: sum(row.kind == kind for row in rows) for kind in KINDS}
    each = np.concatenate([np.full(len(row.gold), 1 / many[row.kind]) for row in rows])
    return np.concatenate([row.features for row in rows]), np.concatenate([row.gold for row in rows]), each


def calibration_error(y: Floats, p: Floats) -> float:
    """Return the expected calibration error over ten bins of equal width."""
    bins = np.minimum((p * 10).astype(int), 9)
    return sum(abs(y[bins == b].mean() - p[bins == b].mean()) * (bins == b).mean() for b in set(bins.tolist()))


def show(title: str, rows: list[Row], weights: dict[str, Floats]) -> None:
    """Print the figures of each set, by the weights for it."""
    print(title)
    results: dict[str, Floats] = {}
    for kind in KINDS:
        of = [row for row in rows if row.kind == kind]
        p = [sigmoid(row.features @ weights[kind]) for row in of]
        results[kind] = np.array([overall(values) for values in p])
        gold, hits = np.concatenate([row.gold for row in of]), np.array([row.gold.max() for row in of])
        print(
            f"  {kind:10} {len(of):4} questions  episode: ECE {calibration_error(gold, np.concatenate(p)):.3f}"
            f"  result: ECE {calibration_error(hits, results[kind]):.3f}"
            f"  mean {results[kind].mean():.2f}, answered {hits.mean():.2f}"
        )
    answerable = {kind: np.array([row.answerable for row in rows if row.kind == kind]) for kind in KINDS}
    threshold = float(np.quantile(np.concatenate([results[k][answerable[k]] for k in KINDS]), LOST))
    print(f"  a threshold of {threshold:.2f} loses {LOST:.0%} of all answerable questions, and leaves empty")
    for kind in ("locomo", "beam"):
        p, there = results[kind], answerable[kind]
        own = float(np.quantile(p[there], LOST))
        print(
            f"    {kind}: {(p[~there] < threshold).mean():.0%} of {(~there).sum()} unanswerable questions"
            f" (its answerable ones: {(p[there] < threshold).mean():.0%}; by its own threshold of {own:.2f}:"
            f" {(p[~there] < own).mean():.0%})"
        )


def main() -> None:
    """Rank, measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--fit", action="store_true", help="fit the weights again")
    given, built = parser.parse_args(), Built("none")
    with built.memory:
        for kind in KINDS:
            built.build(load(kind).items)
        for name, vectors in (("words only", False), ("with vectors", True)):
            rows = read(built, vectors=vectors)
            own = WITH_VECTORS if vectors else WORDS_ONLY
            show(f"{name}, as it is", rows, dict.fromkeys(KINDS, own))
            if given.fit:
                each = fit(*stacked(rows))
                print(f"  {dict(zip(FEATURES, each.round(3).tolist(), strict=True))}")
                show(f"{name}, fitted on all", rows, dict.fromkeys(KINDS, each))
                others = {kind: fit(*stacked([row for row in rows if row.kind != kind])) for kind in KINDS}
                show(f"{name}, each by weights of the other sets", rows, others)


if __name__ == "__main__":
    main()
