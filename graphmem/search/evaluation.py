"""Evaluation of a memory on questions with known answers, compared with baseline rankings of the same episodes."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal, TypeVar

import numpy as np
from pydantic import Field

from graphmem.errors import InvalidInput
from graphmem.inputs import to_limit
from graphmem.models import EpisodeQuery, Model, Scope, Text
from graphmem.models.arrays import Float64s
from graphmem.protocols import GraphBackend
from graphmem.search.baselines import BASELINES, Baseline
from graphmem.search.results import ExpansionConfig, SearchOptions
from graphmem.search.service import SearchService

T = TypeVar("T")

_ROUNDS = 2000
_BLOCK = 1_000_000  # values per block of resamples
_SEED = 0
_SHARE = 0.95


def recall_at(ranking: Sequence[str], answers: Collection[str], k: int) -> float:
    """Return the share of the answers that are among the first k of a ranking; `answers` must not be empty."""
    return len(set(answers).intersection(ranking[:k])) / len(set(answers))


def reciprocal_rank(ranking: Sequence[str], answers: Collection[str]) -> float:
    """Return 1 / the rank of the first answer, or 0 if there is none; the mean over questions is the MRR."""
    ranks = (rank for rank, found in enumerate(ranking, 1) if found in answers)
    return 1 / next(ranks, float("inf"))


def interval(values: Float64s, rounds: int = _ROUNDS) -> tuple[Float64s, Float64s]:
    """Return the 95 % confidence interval of column means, by the percentile bootstrap over rows (Efron 1979).

    The resamples depend only on the number of rows, so the result is reproducible.

    Parameters
    ----------
    values
        One row per question, shape (n, m), n at least 1. For a paired comparison of two methods: the differences per
        question.
    rounds
        Number of resamples.

    Returns
    -------
    low, high
        Shape (m,) each.
    """
    n = len(values)
    random = np.random.default_rng(_SEED)
    block = max(1, _BLOCK // n)
    means: list[Float64s] = []
    for start in range(0, rounds, block):
        size = min(block, rounds - start)
        means.append(random.multinomial(n, np.full(n, 1 / n), size) @ values / n)
    tail = (1 - _SHARE) / 2
    low, high = np.quantile(np.concatenate(means), [tail, 1 - tail], axis=0)
    return low, high


Method = Literal["full", "no_graph", Baseline]
"""full: what `search` returns. no_graph: the same with ``expansion`` off. bm25, dense, rrf: see `Baseline`."""

KS = (1, 5, 10, 20)
_PAGE = 1000
_MAX_UNKNOWN = 100
_WARM_UP = "Who was there, and when?"


class Question(Model):
    """A question with its known answers.

    Parameters
    ----------
    question
        Text of the question.
    external_ids
        The `external_id` of each episode that answers it.
    category
        Optional category; scores are also reported per category.
    scope
        Scope to search, ``domain`` or ``domain/project``; defaults to the scope of the memory.
    """

    question: Text = Field(min_length=1)
    external_ids: tuple[Text, ...] = Field(min_length=1)
    category: Text | None = None
    scope: Text | None = None

    @classmethod
    def of(cls, value: QuestionLike) -> Question:
        """Return a question from a `Question` or a mapping of its fields; accepts a single id and an int category.

        Raises
        ------
        InvalidInput
            If a field is missing, invalid or unknown.
        """
        if isinstance(value, Question):
            return value
        if not isinstance(value, Mapping):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise InvalidInput(f"question {value!r:.120}: expected an object with question and external_ids")
        fields = {str(name): field for name, field in value.items()}
        if isinstance(one := fields.get("external_ids"), str):
            fields["external_ids"] = (one,)
        if isinstance(category := fields.get("category"), int):
            fields["category"] = str(category)
        return cls(**fields)


QuestionLike = Question | Mapping[str, Any]


def read_lines(name: object, text: str, read: Callable[[Any], T]) -> Iterator[T]:
    """Yield what `read` returns for each line of JSON in the text of a file; blank lines are skipped.

    Raises
    ------
    InvalidInput
        If a line is invalid; the message has the name of the file and the number of the line.
    """
    for number, line in enumerate(text.split("\n"), 1):
        if line.strip():
            try:
                yield read(json.loads(line))
            except (InvalidInput, ValueError, RecursionError) as error:
                raise InvalidInput(f"{name}, line {number}: {error}") from error


class Estimate(Model):
    """A mean over questions with its 95 % confidence interval (bootstrap over questions)."""

    mean: float
    low: float
    high: float


class Scores(Model):
    """Scores of a method on a set of questions, or the gain of one method over another.

    Attributes
    ----------
    questions
        Number of questions.
    recall
        k → recall@k: the share of a question's answers that are among the first k.
    mrr
        Mean of 1 / the rank of the first answer, 0 if it isn't within the largest k of `recall`.
    """

    questions: int
    recall: dict[int, Estimate]
    mrr: Estimate


class Scored(Scores):
    """Scores overall and by category."""

    by_category: dict[str, Scores]


class Evaluation(Model):
    """Evaluation of a memory on a set of questions.

    Attributes
    ----------
    methods
        Method → its scores; ``dense`` and ``rrf`` are omitted without an embedding model.
    gains
        Method → gain of ``full`` over it, paired by question; an interval above 0 is significant.
    query_ms
        Milliseconds per search, including the embedding of the question: ``p50`` and ``p95``.
    unknown
        External ids without an episode, at most the first 100; they are ignored.
    left_out
        Number of questions without an answer in the memory.
    degraded
        Messages about unavailable components during the evaluation.
    """

    methods: dict[Method, Scored]
    gains: dict[Method, Scored]
    query_ms: dict[str, float]
    unknown: tuple[str, ...] = ()
    left_out: int = 0
    degraded: tuple[str, ...] = ()


def evaluate(
    backend: GraphBackend,
    service: SearchService,
    scope: Scope,
    questions: Iterable[QuestionLike],
    ks: Sequence[int] = KS,
    on_progress: Callable[[int, int], None] | None = None,
) -> Evaluation:
    """Run each method on all questions and score the rankings against the known answers.

    Unindexed rows are indexed first.

    Parameters
    ----------
    backend, service
        The store, and the search service over it.
    scope
        Default scope of questions without one.
    questions
        One or more questions.
    ks
        The k of recall@k, ascending.
    on_progress
        Called with the number of questions done and the total.

    Raises
    ------
    InvalidInput
        If a question is invalid, no question has an answer in the memory, or `ks` isn't ascending.
    EmbeddingFailed
        If the model fails, since the methods could not be compared.
    """
    if not isinstance(ks, Sequence):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise InvalidInput(f"ks: expected numbers, got {ks!r:.120}")
    ks = tuple(to_limit(k, "ks") for k in ks)
    if not ks or ks[0] < 1 or list(ks) != sorted(set(ks)):
        raise InvalidInput(f"ks {ks}: expected numbers above 0 in ascending order")
    asked = [Question.of(question) for question in questions]
    answers, unknown = _answers(backend, scope, asked)
    run = _Run(service, ks)
    for number, (question, ids) in enumerate(zip(asked, answers, strict=True), 1):
        if ids:
            run.ask(_scope_of(question, scope), question, ids)
        if on_progress is not None:
            on_progress(number, len(asked))
    if not run.milliseconds:
        named = f", for example {unknown[0]!r}" if unknown else ""
        raise InvalidInput(f"questions: none of {len(asked)} has an answer in the memory{named}")
    return run.evaluation(unknown, len(asked))


def _scope_of(question: Question, default: Scope) -> Scope:
    return default if question.scope is None else Scope.from_text(question.scope)


def _answers(
    backend: GraphBackend, default: Scope, questions: Sequence[Question]
) -> tuple[list[frozenset[str]], list[str]]:
    """Return the ids of the episodes that answer each question, and the external ids without an episode."""
    wanted: dict[Scope, dict[str, None]] = {}
    for question in questions:
        wanted.setdefault(_scope_of(question, default), {}).update(dict.fromkeys(question.external_ids))
    known: dict[Scope, dict[str, str]] = {}
    for scope, names in wanted.items():
        found = known.setdefault(scope, {})
        every = list(names)
        for start in range(0, len(every), _PAGE):
            page = tuple(every[start : start + _PAGE])
            rows = backend.find_episodes([scope], EpisodeQuery(external_ids=page), limit=len(page))
            found.update((row.external_id, row.id) for row in rows if row.external_id is not None)
    ids = [
        frozenset(here[name] for name in question.external_ids if name in here)
        for question in questions
        for here in [known[_scope_of(question, default)]]
    ]
    return ids, [name for scope, names in wanted.items() for name in names if name not in known[scope]]


class _Run:
    """Runner of the questions that collects one row of scores per method and question: recall@k, reciprocal rank."""

    def __init__(self, service: SearchService, ks: Sequence[int]) -> None:
        self._service = service
        self._ks = tuple(ks)
        self._rows: dict[Method, list[list[float]]] = {}
        self._categories: list[str | None] = []
        self._degraded: dict[str, None] = {}
        self._ready: set[Scope] = set()
        self.milliseconds: list[float] = []

    def ask(self, scope: Scope, question: Question, answers: frozenset[str]) -> None:
        if scope not in self._ready:
            self._make_ready(scope)
        begun = time.perf_counter()
        ranking = self._search(scope, question.question, graph=True)
        self.milliseconds.append((time.perf_counter() - begun) * 1000)
        self._keep("full", ranking, answers)
        self._keep("no_graph", self._search(scope, question.question, graph=False), answers)
        for by in BASELINES:
            if by == "bm25" or self._service.has_model:
                self._keep(by, self._service.baseline([scope], question.question, by, self._ks[-1]), answers)
        self._categories.append(question.category)

    def _make_ready(self, scope: Scope) -> None:
        """Index unindexed rows and warm up the caches and the model, to exclude this from the query times."""
        while not self._service.index.index_waiting(scope):
            pass
        self._service.search([scope], _WARM_UP, SearchOptions(k=1))
        self._ready.add(scope)

    def _search(self, scope: Scope, question: str, *, graph: bool) -> list[str]:
        options = SearchOptions(k=self._ks[-1], expansion=ExpansionConfig(enabled=graph))
        results = self._service.search([scope], question, options)
        self._degraded.update(dict.fromkeys(results.degraded))
        return [found.episode.id for found in results]

    def _keep(self, method: Method, ranking: Sequence[str], answers: frozenset[str]) -> None:
        row = [*(recall_at(ranking, answers, k) for k in self._ks), reciprocal_rank(ranking, answers)]
        self._rows.setdefault(method, []).append(row)

    def evaluation(self, unknown: Sequence[str], asked: int) -> Evaluation:
        figures: dict[Method, Float64s] = {method: np.array(rows) for method, rows in self._rows.items()}
        methods: dict[Method, Scored] = {}
        gains: dict[Method, Scored] = {}
        for method, values in figures.items():
            methods[method] = self._scored(values)
            if method != "full":
                gains[method] = self._scored(figures["full"] - values)
        p50, p95 = np.percentile(self.milliseconds, [50, 95])
        return Evaluation(
            methods=methods,
            gains=gains,
            query_ms={"p50": round(float(p50), 2), "p95": round(float(p95), 2)},
            unknown=tuple(unknown[:_MAX_UNKNOWN]),
            left_out=asked - len(self.milliseconds),
            degraded=tuple(self._degraded),
        )

    def _scored(self, values: Float64s) -> Scored:
        named = sorted({category for category in self._categories if category is not None})
        of = np.array(self._categories, dtype=object)
        by_category = {category: Scores(**self._scores(values[of == category])) for category in named}
        return Scored(**self._scores(values), by_category=by_category)

    def _scores(self, values: Float64s) -> dict[str, Any]:
        low, high = interval(values)
        *recall, mrr = (
            Estimate(mean=mean, low=below, high=above)
            for mean, below, above in zip(values.mean(0).tolist(), low.tolist(), high.tolist(), strict=True)
        )
        return {"questions": len(values), "recall": dict(zip(self._ks, recall, strict=True)), "mrr": mrr}
