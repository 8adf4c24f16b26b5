"""Every pattern and function over users' text takes a time that grows with its length, whatever the text is."""

from __future__ import annotations

import importlib
import os
import pkgutil
import re
import threading
import time
import uuid
from collections.abc import Callable, Collection, Generator, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import cast

import pytest

import graphmem
from graphmem import GraphMemory
from graphmem.ingest import content_filter
from graphmem.ingest.extract.llm_grounds import words as grounded
from graphmem.ingest.extract.spacy.pasted import without_pasted
from graphmem.ingest.extract.spacy.prepare import prose
from graphmem.ingest.formats.markdown import without_markup
from graphmem.ingest.formats.passages import passages
from graphmem.llm.chat import as_data
from graphmem.models import Episode, Scope
from graphmem.protocols import index_words
from graphmem.recall.periods import asks_end
from graphmem.recall.routing import HeuristicRouter
from graphmem.search import context, names, question
from graphmem.text import dates, injection, normalize, redact
from graphmem.text.first_person import first_person
from graphmem.text.names import PlainPhrases, bare_title
from graphmem.text.terms import terms

NOW = datetime(2026, 1, 1, tzinfo=UTC)
SHORT, ALLOWED = 4_000, 0.04
"""Characters, and seconds of CPU time for them: what is linear takes a few milliseconds, what is quadratic more."""
LONG, MOMENT = 100_000, 2.0 if "COVERAGE_RUN" in os.environ else 1.0
"""The same for long texts: four times what a quiet machine takes; some take twice as long without other load."""
PAUSE = 0.2
"""The longest CPU time, in seconds, for which another thread may wait for the interpreter."""
HARD = ("'?!\\n'", "'.\\n'", "'Aa. '", "'api-token\\n'", "'Aaa Bbb '", "'a : ' '. ' 'x'")
"""Names of the texts that take longest."""

_REPEATED = r"""
a|a |1|.|-|_|A|A.|Aa|Aaa Bbb |Aa. |O'|a's |a-|a@|a.a@|AB12 |AB12ABCD|+1 (|1 () ./-|4111 1111 |1.1.1.|QUJD|deadbeef
[|[]|(|{|{[|"|"\"\"x|'''x|/*|/* x|```|~~~|```~~~|<|</|<a |<a b="|<a b="c" |<\||[a](|![|[a][|- |*|>|> |#|#a|
# a|:)|^_|<3|[a:|a :|: |
<http|http://a |www.|a://|a+|a.|x.|a(|a()|def |export |export a|@a(|@a()|if |if (|if ({:;)|return;()[]|
raise a|SELECT |
diff --git |+|2024-01-01 10:00|10:00:00 .|1,2,3|1.2e3,|1,|;|{"a":|[1,|"a":|at a.b|  File "|AError.|goroutine |
x = y|x :=|$ a|a:[]=\|., |
ignore |ignore previous |you are now |reveal system |new instructions |god mode |the |in |in the early |
the user |the assistant must |send notes |when asked, |decode it, |remember the user |call x_y |<!--|-->|i g n |1a |
a couple of |a few |1 january |jan |
2020 |2020-|2020-01-|this past |the day before |last |since |what does |what do think |Mr. |… |?!|....|& | & |
 - | ... |yes |hey |thanks |
for |over christmas |of the |api-|api-token|sk-a|bearer |and |Who |I |may |in May |张|İ|é|ﬁ|👩|한
"""
_SPACES = " \n\t\u00a0\u3000\u2028"
_RUNS = [piece.replace("\0", "|") for piece in re.split(r"[|\n]", _REPEATED.replace("\\|", "\0")) if piece]
PIECES = list(dict.fromkeys(_RUNS))
LINES = [f"{piece}\n" for piece in PIECES]


def texts(size: int) -> Iterator[tuple[str, str]]:
    """Yield names and texts of that many characters; many lines of each piece only where the texts are long."""
    odd = ("\0", "\ud800", "\u202e", "_\u0301", "e\u0316\u0301", "\r\n", " \n", "\n>")
    for piece in (*PIECES, *(LINES if size > SHORT else ()), *_SPACES, *odd):
        yield repr(piece), (piece * (size // len(piece) + 1))[:size]
    for opening, middle, end in (
        ("a", "\u0301", ""),
        ("a", "\u0301\u0316", ""),
        ("", "\u0301", "\u0316" * (size // 2)),
        ("# a", " ", "x"),
        ("# a", " #", "x"),
        ("# ", "#", "x"),
        ("-", " ", "x"),
        ("a :", " ", "x"),
        ("a : b", " ", "x"),
        ("a : ", ". ", "x"),
        ("a", " ", "x"),
        ("the", " ", "x"),
        ("in", " ", "x"),
        ("last", " ", "x"),
        ("a few", " ", "x"),
        ("what does", " ", "x"),
        ("what does x", " ", "x"),
        ("<", " ", "x"),
        ("/*", " ", "x"),
        ("[", " ", "x"),
        ("(", "a", ""),
        ("a(b)", " ", "x"),
        (" ", "A", " "),
        ("x ", "A", "Error"),
        ("http://", "a", ""),
        ("", "a", "@a"),
        ("a@", "b.", ""),
        ("1", "(", "a"),
        ("", "1", "x"),
        ("raise ", "a", ""),
        ("from ", "a.", ""),
        ("import ", "a", "!"),
        ("<a ", "b=c ", ""),
        ("", "\n", "x"),
        ("x", "\n", "x"),
        ("x", " \n", "x"),
        ("title:", " ", ""),
        ("---\n", "title: a\n", ""),
    ):
        yield f"{opening!r} {middle!r} {end!r}", opening + (middle * size)[: size - len(opening) - len(end)] + end


def patterns() -> Iterator[tuple[str, re.Pattern[str]]]:
    """Yield the compiled patterns of all modules of the package with their names, those in containers too."""
    for module in pkgutil.walk_packages(graphmem.__path__, "graphmem."):
        if module.name.startswith("graphmem.testing") or module.name.endswith("__main__"):
            continue
        for name, value in vars(importlib.import_module(module.name)).items():
            for n, pattern in enumerate(in_value(value)):
                yield f"{module.name}.{name}" + (f"[{n}]" if n else ""), pattern


def in_value(value: object) -> Iterator[re.Pattern[str]]:
    if isinstance(value, re.Pattern):
        pattern = cast("re.Pattern[str] | re.Pattern[bytes]", value)
        if isinstance(pattern.pattern, str):  # one of bytes reads the first 4,096 of a file alone
            yield cast("re.Pattern[str]", value)
    elif isinstance(value, dict):
        yield from in_value(tuple(cast("dict[object, object]", value).values()))
    elif isinstance(value, (tuple, list)):
        for part in cast("Sequence[object]", value):
            yield from in_value(part)


PATTERNS = {pattern: name for name, pattern in reversed(list(patterns()))}
MATCHED = {
    *(f"graphmem.ingest.content_filter.{name}" for name in ("_LOG", "_NUMBER", "_STATEMENT", "_TRACE")),
    "graphmem.ingest.failures._STORED",
    "graphmem.ingest.formats.whatsapp._FILE",
}
"""Patterns that are applied to the beginning of a text alone."""
READER = HeuristicRouter()
FUNCTIONS: dict[str, Callable[[str], object]] = {
    "clean": lambda s: normalize.clean(s, len(s)),
    "canonical": normalize.canonical,
    "fact_text": normalize.fact_text,
    "split_words": normalize.split_words,
    "query_words": normalize.query_words,
    "query_phrases": normalize.query_phrases,
    "terms": terms,
    "full_text": index_words,
    "find_dates": lambda s: dates.find_dates(s, NOW),
    "dates_and_periods": lambda s: dates.dates_and_periods(s, NOW),
    "redact": lambda s: redact.PatternRedactor().redact(s, ()),
    "injection": injection.looks_like_injection,
    "is_code": content_filter.is_code,
    "plain text": lambda s: list(passages(enumerate(s.split("\n")))),
    "markdown": lambda s: list(passages(enumerate(s.split("\n")), markdown=True)),
    "wikilinks": lambda s: without_markup(s, {}, {}),
    "asks_end": asks_end,
    "route": lambda s: READER.route(s, ["Maya Chen"], now=NOW),
    "phrases": lambda s: PlainPhrases().find([s]),
    "bare_title": bare_title,
    "names_in": lambda s: names.names_in(s, {"maya chen"}),
    "months": question.months,
    "first_person": lambda s: first_person(s, ["Maya Chen"]),
    "render_episode": lambda s: context.render_episode(Episode(scope=Scope("a"), text=s)),
    "pasted": without_pasted,
    "prose": lambda s: prose(s, ["Maya Chen"]),
    "document": lambda s: prose(s, message=False),
    "mail": lambda s: prose(s, mail=True),
    "grounded": grounded,
    "as_data": as_data,
}


def seconds(work: Callable[[str], object], text: str) -> float:
    """Return the CPU time of a call, which doesn't grow with the load of the machine."""
    begun = time.thread_time()
    work(text)
    return time.thread_time() - begun


def slow(
    work: Callable[[str], object], size: int, allowed: float, chosen: Collection[str] | None = None
) -> dict[str, float]:
    """Return the texts that take too long, with their times; at the second and third try, too."""
    return {
        name: round(again, 2)
        for name, text in texts(size)
        if (chosen is None or name in chosen)
        and seconds(work, text) > allowed
        and (again := min(seconds(work, text), seconds(work, text))) > allowed
    }


def searched(pattern: re.Pattern[str]) -> Callable[[str], object]:
    if PATTERNS[pattern] in MATCHED:
        return pattern.match
    return lambda text: [None for _ in pattern.finditer(text)]


@pytest.mark.parametrize("pattern", PATTERNS, ids=PATTERNS.values())
def test_a_pattern_is_linear(pattern: re.Pattern[str]) -> None:
    assert slow(searched(pattern), SHORT, ALLOWED) == {}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_function_over_text_is_linear(name: str) -> None:
    assert slow(FUNCTIONS[name], SHORT, 3 * ALLOWED) == {}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_function_reads_a_hard_long_text_in_a_moment(name: str) -> None:
    assert set(HARD) <= {name for name, _ in texts(LONG)}
    assert slow(FUNCTIONS[name], LONG, MOMENT, HARD) == {}


@pytest.mark.full
@pytest.mark.slow
@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_function_reads_a_long_text_in_a_moment(name: str) -> None:
    assert slow(FUNCTIONS[name], LONG, MOMENT) == {}


@contextmanager
def heartbeat() -> Generator[list[float]]:
    """Yield the CPU seconds of this process between two beats of a thread that asks for the interpreter every 5 ms."""
    beats, ended = list[float](), threading.Event()

    def beat() -> None:
        last = time.process_time()
        while not ended.wait(0.005):
            now = time.process_time()
            beats.append(now - last)
            last = now

    thread = threading.Thread(target=beat)
    thread.start()
    yield beats
    ended.set()
    thread.join()


@pytest.mark.full
@pytest.mark.slow
@pytest.mark.parametrize("extractor", ["none", "spacy"])
def test_a_long_text_holds_no_other_thread(extractor: str) -> None:
    with (
        GraphMemory.open("memory://", extractor=extractor, embeddings="none", background=False) as memory,
        heartbeat() as beats,
    ):

        def longest_pause(text: str) -> float:
            scope = memory.in_scope(uuid.uuid4().hex)
            del beats[:]
            scope.remember(text, speaker="Maya")
            scope.flush(300)
            scope.search(text)
            return max(beats, default=0.0)

        longest_pause("Hello, I am Maya")  # imports and loads what it needs
        held = {
            name: round(again, 3)
            for name, text in texts(LONG)
            if name in HARD
            and longest_pause(text) > PAUSE
            and (again := min(longest_pause(text), longest_pause(text))) > PAUSE
        }
    assert held == {}


def test_text_of_users_in_a_pattern_is_found() -> None:
    assert {"graphmem.text.names._CAPITALS", "graphmem.text.redact._PHONE"} <= set(PATTERNS.values())


def test_a_slow_pattern_is_found() -> None:
    assert slow(re.compile(r"\s+x").findall, 3 * SHORT, ALLOWED / 3).keys() >= {repr(" "), repr("\t")}
