"""Classification of questions by their words.

This module defines all markers. They are matched as whole words, case-insensitively.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from graphmem.models import EdgeType, utc_now
from graphmem.results import Strategy
from graphmem.text.dates import dates_and_periods, with_ranges
from graphmem.text.normalize import MAX_QUERY, STOP_WORDS, split_words

Kind = Literal["episodic", "global", "graph", "keyword", "semantic", "hybrid"]

SUBGRAPH_MARKERS: dict[EdgeType, tuple[str, ...]] = {
    EdgeType.CAUSAL: (
        *("why", "because", "cause", "caused", "reason", "result"),
        *("led to", "consequence", "trigger", "effect"),
    ),
    EdgeType.TEMPORAL: (
        *("before", "after", "first", "then", "when", "timeline", "sequence"),
        *("preceded", "followed", "started", "ended", "during"),
    ),
    EdgeType.ENTITY: (
        *("is a", "type of", "kind of", "part of"),
        *("instance", "same as", "alias", "belongs to"),
    ),
}
"""Markers of the typed subgraph that a question is about (MAGMA, arXiv 2601.03236)."""

PAST_MARKERS = (
    *("when did", "when was", "when were", "when has", "when had", "how long ago", "how long has"),
    *("how long have", "how long did", "what time did", "what day did", "last time", "the other day"),
    *("recently", "lately", "earlier today", "this time last"),
)
FUTURE_MARKERS = ("when will", "how long until", "next time")
GRAPH_MARKERS = (
    *("related to", "relation to", "relationship", "relationships", "relation between", "connected to"),
    *("connection between", "history of", "linked to", "in common"),
)
GLOBAL_MARKERS = (
    *(
        f"{which} {what}"
        for which in ("main", "key", "major", "central", "common", "biggest", "most important", "what", "which")
        for what in ("topic", "topics", "theme", "themes", "subjects", "communities", "threads")
    ),
    *("this memory about", "the memory about", "all this about", "it all about", "everything about"),
    *(
        "everything you know",
        "what do you know",
        "what is known",
        "what have we talked about",
        "what did we talk about",
    ),
    *("an overview", "overview of", "the big picture", "as a whole"),
    *(f"summari{letter}e everything" for letter in "sz"),
)
"""Markers of a question about the whole memory, which communities answer rather than entities."""

QUESTION_WORDS = (
    *("what", "who", "whom", "whose", "which", "where", "when", "why", "how"),
    *("is", "are", "was", "were", "do", "does", "did", "has", "have", "had"),
    *("can", "could", "will", "would", "should"),
)
MANY_WORDS, FEW_WORDS = 6, 3

_ABOUT_ITSELF = frozenset(
    "conversation conversations memory graph data chat chats discussion discussions talk talks give tell show list "
    "please know known topic topics theme themes".split()
)

_OPINION = re.compile(
    r"(?<!\w)what\s++(?:does|do|did)\s++.{1,80}?\s++(?:think|feel|say|believe)\s+(?:about|of)(?!\w)", re.I | re.S
)
_PATH = re.compile(
    r"(?:^|\s)(?:(?:~|\.{1,2})?/[\w.-]+"  # absolute or relative path
    r"|(?!\d)[\w.-]+/(?:[\w.-]+/|[\w-]+\.\w)[\w./-]*"  # but not "and/or"
    r"|[A-Za-z]:\\\S+"
    r"|[\w-]+\.(?:py|md|toml|json|ya?ml|rs|go|ts|js|txt|csv|sql)\b)"
)
_SNAKE = re.compile(r"(?<!\w)[^\W_]\w*_\w+(?!\w)")


@dataclass(frozen=True, slots=True)
class Route:
    """Classification of a question.

    Attributes
    ----------
    kind
        episodic (about a time), global (about the whole memory, answered by communities), graph (about relationships),
        keyword (a name or code), semantic (a question in natural language), hybrid (unclear).
    confidence
        Confidence of the classification, in [0, 1].
    reasons
        The markers found.
    """

    kind: Kind
    confidence: float
    reasons: tuple[str, ...]


def classify_subgraph(query: str) -> frozenset[EdgeType]:
    """Return the edge types that a question is about, including `semantic`; empty (all types) without a marker."""
    read = query[:MAX_QUERY]
    found = {kind for kind, pattern in _SUBGRAPH.items() if pattern.search(read)}
    return frozenset(found | {EdgeType.SEMANTIC}) if found else frozenset()


PLANS: dict[Kind, Strategy] = {
    "episodic": "ppr",
    "global": "ppr",
    "graph": "ppr",
    "keyword": "bfs",
    "semantic": "ppr",
    "hybrid": "ppr",
}
"""The strategy for each kind of question.

Keyword questions need the nearest facts, so they use breadth-first search. The others need the connections between
their names: ppr, which walks over facts and episodes, found more of the evidence on conversations and on multi-hop
questions (docs/concepts/recall.md).
"""


def plan(query: str, route: Route) -> tuple[Strategy, tuple[EdgeType, ...]]:
    """Return the strategy and the edge types (empty: all) for a question."""
    return PLANS[route.kind], tuple(sorted(classify_subgraph(query)))


@dataclass(frozen=True, slots=True)
class HeuristicRouter:
    """Classifier of questions by their words.

    Attributes
    ----------
    graph
        Whether a graph is available; without one, graph and global questions are classified as hybrid.
    """

    graph: bool = True

    def route(self, query: str, known_entities: Iterable[str] = (), *, now: datetime) -> Route:
        """Return the first matching kind of a question: episodic, global, graph, keyword, semantic, hybrid.

        Parameters
        ----------
        query
            The question; only the first 512 characters are used.
        known_entities
            Names of known entities.
        now
            Reference time of relative dates such as "yesterday"; timezone-aware.
        """
        read = query[:MAX_QUERY].strip()
        words = read.split()
        if (route := _episodic(read, now)) is not None:
            return route
        if reasons := tuple(found[0].lower() for found in _GLOBAL.finditer(read)):
            return Route("global" if self.graph else "hybrid", 0.9, reasons)
        if reasons := _relations(read):
            return Route("graph" if self.graph else "hybrid", 0.9, reasons)
        if named := _named(read, known_entities):
            return Route("graph" if self.graph else "hybrid", 0.7, tuple(f"names {name}" for name in named))
        if reasons := _code(read):
            return Route("keyword", 0.9, reasons)
        if 0 < len(words) <= FEW_WORDS:
            return Route("keyword", 0.6, (f"at most {FEW_WORDS} words",))
        if question := _QUESTION.match(read):
            return Route("semantic", 0.7, (f"begins with {question[0].lower()}",))
        if len(words) >= MANY_WORDS:
            return Route("semantic", 0.6, (f"at least {MANY_WORDS} words",))
        return Route("hybrid", 0.5, ())


def is_global(question: str) -> bool:
    """Return whether a question is about the whole memory: "What are the main topics?"."""
    return HeuristicRouter().route(question, now=utc_now()).kind == "global"


def narrowed(query: str) -> str | None:
    """Return the specific subject of a global question ("main topics of cooking"), or None if it has none."""
    rest = _GLOBAL.sub(" ", query[:MAX_QUERY])
    words = [word for word in split_words(rest) if word not in STOP_WORDS and word not in _ABOUT_ITSELF]
    return " ".join(words) or None


def _episodic(query: str, now: datetime) -> Route | None:
    dates = dates_and_periods(with_ranges(query), now)
    markers = (_PAST.search(query), _FUTURE.search(query))
    reasons = tuple(date.text for date in dates) + tuple(m[0].lower() for m in markers if m)
    return Route("episodic", 0.9 if dates else 0.8, reasons) if reasons else None


def _relations(query: str) -> tuple[str, ...]:
    return tuple(found[0].lower() for pattern in (_GRAPH, _OPINION) if (found := pattern.search(query)))


def _named(query: str, names: Iterable[str]) -> tuple[str, ...]:
    lower = query.lower()
    return tuple(name for name in names if name and name.lower() in lower and _whole([name]).search(query))


def _code(query: str) -> tuple[str, ...]:
    checks = (("a path", _PATH.search(query)), ("::", "::" in query), ("snake_case", _SNAKE.search(query)))
    return tuple(name for name, found in checks if found)


def _whole(markers: Iterable[str]) -> re.Pattern[str]:
    """Return a pattern that matches any of the markers as whole words."""
    phrases = (r"\s+".join(map(re.escape, marker.split())) for marker in markers)
    return re.compile(rf"(?<!\w)(?:{'|'.join(phrases)})(?!\w)", re.IGNORECASE)


_SUBGRAPH = {kind: _whole(markers) for kind, markers in SUBGRAPH_MARKERS.items()}
_PAST, _FUTURE, _GRAPH, _QUESTION, _GLOBAL = map(
    _whole, (PAST_MARKERS, FUTURE_MARKERS, GRAPH_MARKERS, QUESTION_WORDS, GLOBAL_MARKERS)
)
