"""Demo: a sample conversation, and the tour of `graphmem demo`."""

from __future__ import annotations

import shlex
import tempfile
import textwrap
import time
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.resources import as_file, files
from pathlib import Path

from rich.text import Text

from graphmem.adapters.cli.output import Output, day, shown
from graphmem.ingest.bulk import Progress
from graphmem.ingest.readers import open_source, read_items
from graphmem.inputs import Turn
from graphmem.memory import GraphMemory
from graphmem.models import Episode
from graphmem.registry import masked
from graphmem.settings import Settings
from graphmem.text import counted

SCOPE = "demo"
KEPT_FILE = "graphmem-demo.db"

_WIDTH = 80
_FACTS_ASKED = 3
_FACTS_SHOWN = 2  # also the third, if it is the first that answers
_QUOTED = 140


@dataclass(frozen=True, slots=True)
class Question:
    """A question, the expected answer of a reader of the conversation, and a word of that answer."""

    text: str
    answer: str
    word: str
    as_of: str | None = None


QUESTIONS = (
    Question("Where does Mara work?", "Orchard Energy, since February 2026", "orchard"),
    Question("Where does Tom live?", "Lisbon, since October 2025", "lisbon"),
    Question("Which database does Waymark use?", "Postgres, since May 2025", "postgres"),
    Question("Who is Ines married to?", "Daniel, since May 2026", "daniel"),
    Question("What does Tom draw with?", "Inkfold, until December 2025 Pixelmill", "inkfold"),
    Question("What happened to the Waymark Android app?", "it is shut down, September 2026", "shutting down"),
)
EARLIER = Question("Where does Mara work?", "Brightwater Labs (until January 2026)", "brightwater", "2025-12-01")
HISTORY_OF, HISTORY_RELATION = "Mara", "works_at"


def run_demo(out: Output, *, store: str | None, scope: str, keep: bool, settings: Settings) -> None:
    """Ingest the sample conversation and print the results.

    Parameters
    ----------
    out
        Output to print to.
    store
        URL of the store to use; None creates one that is removed at the end.
    scope
        Scope of the conversation.
    keep
        Create the store in the working directory and keep it, if none is given.
    settings
        The settings; the extractor is always spaCy, and no LLM is called.

    Raises
    ------
    MissingExtra
        If spaCy isn't installed.
    """
    with _store_url(store, keep=keep) as url:
        local = settings.model_copy(update={"extractor": "spacy", "llm": None, "contradiction_check": False})
        memory = GraphMemory.open(url, scope=scope, settings=local, background=False)
        with memory:
            tour = _Tour(out, memory, location=_location(url))
            tour.ingest()
            tour.ask(QUESTIONS)
            tour.show_history()
            tour.ask_earlier(EARLIER)
            tour.show_context()
            explorer = memory.admin.explorer
        is_kept = (keep or store is not None) and not url.startswith("memory:")
        options = shlex.join(["--store", masked(url), "--scope", scope]) if is_kept else None
        tour.show_next_steps(options, explorer.name if explorer is not None else None)


def _location(url: str) -> str:
    return "one SQLite file" if url.startswith("sqlite:") else masked(url)


@contextmanager
def _store_url(store: str | None, *, keep: bool) -> Generator[str]:
    if store is not None:
        yield store
    elif keep:
        yield f"sqlite:///{KEPT_FILE}"
    else:
        with tempfile.TemporaryDirectory(prefix="graphmem-demo-", ignore_cleanup_errors=True) as folder:
            yield f"sqlite:///{Path(folder) / 'demo.db'}"


@contextmanager
def conversation() -> Generator[Iterator[Turn]]:
    """Yield the turns of the sample conversation."""

    def broken(problem: object) -> None:
        raise AssertionError(f"sample conversation: {problem}")

    with as_file(files("graphmem.adapters.demo").joinpath("conversation.jsonl")) as path, open_source(path) as source:
        yield (item for item in read_items(source, broken) if isinstance(item, Turn))


class _Tour:
    """Steps of the demo, each with its output."""

    def __init__(self, out: Output, memory: GraphMemory, *, location: str) -> None:
        self._location = location
        self._out = out
        self._memory = memory
        self._width = min(_WIDTH, out.console.width)

    def ingest(self) -> None:
        with conversation() as turns:
            said = list(turns)
        days = [turn.occurred_at for turn in said if turn.occurred_at is not None]
        sessions = counted(len({turn.session_id for turn in said}), "session")
        people = sorted({turn.speaker for turn in said if turn.speaker})
        self._say(
            f"{', '.join(people[:-1])} and {people[-1]} chat: {counted(len(said), 'message')} in {sessions}, from "
            f"{min(days):%B %Y} to {max(days):%B %Y}. Jobs, homes, tools and plans change. No language model, "
            f"no API key: a local parser extracts the facts, {self._location} stores them."
        )
        self._title("1  Ingesting the conversation")
        begun = time.perf_counter()
        with self._out.errors.status("loading the parser") as status:

            def on_progress(progress: Progress) -> None:
                rate = progress.extracted / max(time.perf_counter() - begun, 1e-9)
                words = f"{progress.extracted} of {counted(len(said), 'message')} read, {rate:.0f} a second"
                status.update(f"indexing messages and facts: {progress.to_index:,}" if progress.indexed else words)

            report = self._memory.ingest(said, on_progress=on_progress)
        found = self._memory.stats()
        if report.stored:
            rate = report.extracted / report.seconds if report.seconds else 0.0
            self._say(f"{counted(report.extracted, 'message')} in {report.seconds:.1f} s ({rate:.0f} a second)")
        else:
            self._say("This store already has the conversation; nothing was stored twice.")
        kinds = sorted(found.entities_by_type.items(), key=lambda item: -item[1])[:4]
        facts = counted(found.edges, "fact")
        self._say(
            f"{counted(found.entities, 'entity', 'entities')} ({', '.join(f'{n} {kind}' for kind, n in kinds)}, …), "
            f"{facts} with dates, {found.edges - found.active_edges} of them ended by a later one"
        )

    def ask(self, questions: Sequence[Question]) -> None:
        self._title("2  Questions, the facts found, and their sources")
        right = 0
        for question in questions:
            right += self._ask(question)
            self._out.line()
        self._say(
            f"{right} of {len(questions)} found. The local parser doesn't understand the sentences with the missing "
            "answers. To extract with an LLM instead: graphmem ingest --extractor llm:PROVIDER:MODEL."
            if right < len(questions)
            else f"All {right} found."
        )

    def show_history(self) -> None:
        self._title(f"3  How one fact changed: where {HISTORY_OF} works")
        versions = self._memory.history(HISTORY_OF, HISTORY_RELATION)
        if not versions:
            self._say(f"No facts were extracted about where {HISTORY_OF} works.")
            return
        for fact in reversed(versions):
            first, last = fact.dates()
            until = f"until {last or 'now'}"
            self._say(f"{first:<10}  {until:<16}  {fact.target}", style="bold")
            for episode in self._memory.episodes(fact.episode_ids[:1]):
                self._quote(episode, "    ")
        self._out.line()
        self._say("Nothing is overwritten: an ended version keeps its dates and its source.")

    def ask_earlier(self, question: Question) -> None:
        self._title(f"4  The same question, as of {question.as_of}")
        self._ask(question)

    def show_context(self) -> None:
        query = "What should I know before I write to Tom?"
        self._title("5  A context block for the next prompt")
        self._say(f"context({query!r}, budget_tokens=150)", style="dim")
        block = self._memory.context(query, budget_tokens=150)
        for line in block.splitlines() or ["(empty)"]:
            self._say(line, hanging="  ")

    def show_next_steps(self, kept: str | None, explorer: str | None) -> None:
        self._title("Your own data")
        self._code(
            "graphmem ingest chat.jsonl notes/    # turns, triples, text, Markdown",
            'graphmem recall "Where does Maya work?" --sources',
            "graphmem history Maya",
        )
        self._out.line()
        self._say("The same in Python:")
        self._code(
            "from graphmem import GraphMemory",
            'with GraphMemory.open("sqlite:///graphmem.db") as memory:',
            '    memory.remember("I work at Initech.", speaker="Maya").wait()',
            '    print(memory.recall("Where does Maya work?").facts)',
            '    print(memory.history("Maya"))',
        )
        if kept is not None:
            self._out.line()
            self._say("This store is kept. To explore it, for example:")
            self._code(f"graphmem facts Mara {kept}")
            if explorer is not None:
                self._say(f"To view the graph in {explorer}, with saved queries and colors to import:")
                self._code(f"graphmem browser --out browser {kept}")

    def _ask(self, question: Question) -> bool:
        found = self._memory.recall(question.text, limit=_FACTS_ASKED, as_of=question.as_of).facts
        fits = [question.word in f"{fact.fact} {fact.source} {fact.target}".lower() for fact in found]
        self._say(question.text, style="bold")
        mark = ("   found    ", "green") if any(fits) else ("   missing  ", "red")
        self._out.line(Text.assemble(mark, (f"expected: {question.answer}", "dim")))
        enough = _FACTS_ASKED if any(fits) and not any(fits[:_FACTS_SHOWN]) else _FACTS_SHOWN
        quoted: set[str] = set()
        for number, fact in enumerate(found[:enough], 1):
            self._say(f"{number}. {fact.fact} ({fact.when})", indent="   ", hanging="      ")
            for episode in self._memory.episodes(fact.episode_ids[:1]):
                if episode.id not in quoted:
                    self._quote(episode, "      ")
                quoted.add(episode.id)
        if not found:
            self._say("   nothing")
        return any(fits)

    def _quote(self, episode: Episode, indent: str) -> None:
        text = textwrap.shorten(shown(episode.text), _QUOTED, placeholder=" …")
        line = f"{episode.speaker}, {day(episode.occurred_at)}: “{text}”"
        self._say(line, indent=indent, hanging=" " * len(indent), style="dim")

    def _title(self, text: str) -> None:
        self._out.line()
        self._out.line(text, "bold cyan")
        self._out.line()

    def _say(self, text: str, *, indent: str = "", hanging: str = "", style: str = "") -> None:
        lines = textwrap.wrap(
            shown(text, breaks=True),
            self._width,
            initial_indent=indent,
            subsequent_indent=hanging,
            break_on_hyphens=False,
        )
        for line in lines:
            self._out.line(line, style)

    def _code(self, *lines: str) -> None:
        for line in lines:
            self._out.line(f"    {line}", "cyan")
