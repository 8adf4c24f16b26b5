"""Commands of search: search, reindex, eval, eval-facts and why."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from graphmem.adapters.cli.ingest import ExtractorOption
from graphmem.adapters.cli.session import (
    AskedByOption,
    AsOfOption,
    Filters,
    KnownOption,
    MinConfidenceOption,
    MinTrustOption,
    Session,
    StrategyOption,
    YesOption,
    ask,
    command,
    point_in_time,
    reason_of,
    strategy,
    unmatched,
    with_kept_trace,
)
from graphmem.text import counted

if TYPE_CHECKING:
    from graphmem.results import Trace
    from graphmem.search.evaluation import Evaluation, Question, Scores
    from graphmem.search.fact_evaluation import FactEvaluation
    from graphmem.search.results import SearchResults

_SHOWN = 300  # characters of an episode that are shown


def register(app: typer.Typer) -> None:
    """Add the commands to the program."""
    command(app)(search)
    command(app)(reindex)
    command(app, name="eval")(evaluate)
    command(app)(why)
    command(app, name="eval-facts")(evaluate_facts)


def search(
    session: Session,
    query: Annotated[str, typer.Argument(help="A question.", show_default=False)],
    k: Annotated[
        int | None,
        typer.Option(
            "--k",
            "-k",
            "--limit",
            "-n",
            min=1,
            max=100_000,
            help="Maximum number of episodes. [default: setting search_limit]",
        ),
    ] = None,
    asked_by: AskedByOption = None,
    as_of: AsOfOption = None,
    known: KnownOption = None,
    why: Annotated[bool, typer.Option("--why", help="Show the reasons of each score.")] = False,
    graph: Annotated[bool, typer.Option("--graph/--no-graph", help="Whether to expand results in the graph.")] = True,
    how: StrategyOption = None,
    diversity: Annotated[
        float, typer.Option("--diversity", help="Weight of diversity in the ranking, from 0 to below 1.")
    ] = 0.0,
    min_confidence: MinConfidenceOption = None,
    min_trust: MinTrustOption = "untrusted",
    trace: Annotated[bool, typer.Option("--trace", help="Store a trace, which graphmem why explains.")] = False,
    filters: Filters = None,
) -> None:
    """Find the episodes that answer a question, best first."""
    from graphmem.search.results import ExpansionConfig

    at = point_in_time(as_of, known)
    chosen = strategy(how) or "ppr"
    if chosen == "auto":
        raise typer.BadParameter("--strategy: 'auto' is for recall; search accepts ppr, bfs, spreading or astar")
    expansion = ExpansionConfig(enabled=graph, strategy=chosen)
    with session.open() as memory:
        found = memory.search(
            query,
            asked_by=asked_by,
            k=k,
            as_of=at,
            expansion=expansion,
            diversity=diversity,
            filters=filters,
            min_confidence=min_confidence,
            min_trust=min_trust,
            trace=trace,
        )
        found = with_kept_trace(memory, found)
        if session.out.as_json:
            session.out.document(found)
        elif len(found):
            _print_found(session, found, why=why)
        if found.unknown_asker and not session.out.as_json:
            session.note_unknown_asker()
        for reason in found.degraded if not session.out.as_json else ():
            session.out.note(f"degraded search: {reason}")
        if trace and not session.out.as_json:
            session.note_trace(found.trace_id)
        if not len(found):
            is_empty = not memory.stats().episodes
            empty = f": the scope {str(memory.scope)!r} has none" if is_empty else unmatched(memory, filters)
            session.nothing(f"no episode found for {query!r}{empty}")


def reindex(
    session: Session,
    yes: YesOption = False,
) -> None:
    """Rebuild the search index, for example after a change of the embedding model."""
    with session.open() as memory:
        counts = memory.stats()
        rows = counts.episodes + counts.active_edges
        model = session.settings.embeddings
        scope = str(memory.scope)
        what = counted(rows, "episode or fact", "episodes and facts")
        ask(f"Index {what} of the scope {scope!r} again with embeddings {model!r}?", yes=yes)
        with session.out.progress(rows) as on_progress:
            done = memory.admin.reindex(on_progress=on_progress)
        if session.out.as_json:
            session.out.document({"scope": str(memory.scope), "indexed": done})
        else:
            session.out.line(f"indexed {counted(done, 'episode or fact', 'episodes and facts')}")


def _print_found(session: Session, found: SearchResults, *, why: bool) -> None:
    from graphmem.adapters.cli.output import Column, cut, day

    columns = [
        Column("#", align="right"),
        Column("episode", 4),
        Column("from", 1),
        Column("date"),
        Column("score", align="right"),
        *([Column("why", 3)] if why else []),
    ]
    rows = [
        [
            str(number),
            cut(f"{one.episode.text} {one.episode.attached}".rstrip(), _SHOWN),
            one.episode.author,
            day(one.episode.occurred_at),
            f"{one.score:.2f}",
            *([", ".join(str(reason) for reason in one.reasons)] if why else []),
        ]
        for number, one in enumerate(found, 1)
    ]
    session.out.table(columns, rows)


_PRINTED_IDS = 5  # unknown ids that are printed; --json has up to 100
_NAMES = {"full": "search", "no_graph": "without the graph", "rrf": "RRF of both", "dense": "vectors", "bm25": "BM25"}


def evaluate(
    session: Session,
    questions: Annotated[
        str, typer.Argument(metavar="QUESTIONS.jsonl", help="Questions with expected episodes; - is standard input.")
    ],
    k: Annotated[
        list[int] | None, typer.Option("--k", "-k", min=1, max=1000, help="Recall at k; may be given several times.")
    ] = None,
) -> None:
    """Evaluate search on questions with known answers.

    Each line is an object with question, external_ids (ids of the episodes that answer it) and optionally category and
    scope. The baselines are BM25, vectors, their fusion, and search without the graph.
    """
    from graphmem.search.evaluation import KS

    asked = _read(questions)
    with session.open() as memory, session.out.progress(len(asked)) as on_progress:
        found = memory.admin.evaluate(
            asked, ks=sorted(set(k)) if k else KS, on_progress=lambda done, _: on_progress(done)
        )
    if session.out.as_json:
        session.out.document(found)
        return
    _print_evaluation(session, found)


def _read(name: str) -> list[Question]:
    """Return the questions of a file; raise InvalidInput with the line number for an invalid line."""
    from graphmem.errors import InvalidInput
    from graphmem.search.evaluation import Question, read_lines

    try:
        text = sys.stdin.read() if name == "-" else Path(name).read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidInput(f"{name}: {reason_of(error)}") from error
    return list(read_lines(name, text, Question.of))


def _print_evaluation(session: Session, found: Evaluation) -> None:
    from graphmem.adapters.cli.output import Column

    full = found.methods["full"]
    figures = [*(Column(f"recall@{k}", align="right") for k in full.recall), Column("MRR", align="right")]
    session.out.table(
        [Column("method"), *figures],
        [[_NAMES[method], *(f"{x:.3f}" for x in _means(scores))] for method, scores in found.methods.items()],
    )
    session.out.line("gain of search over each method [95 % confidence interval]", "bold")
    session.out.table(
        [Column("method"), *figures],
        [[_NAMES[method], *_gains(scores)] for method, scores in found.gains.items()],
    )
    if full.by_category:
        session.out.line("search by category, and gain of the graph", "bold")
        graph = found.gains["no_graph"].by_category
        rows: list[list[str]] = []
        for category, scores in full.by_category.items():
            rows.append([category, str(scores.questions), *(f"{x:.3f}" for x in _means(scores))])
            rows.append(["", "", *_gains(graph[category])])
        session.out.table([Column("category"), Column("questions", align="right"), *figures], rows)
    times = found.query_ms
    session.out.line(f"{counted(full.questions, 'question')}; p50 {times['p50']:.1f} ms, p95 {times['p95']:.1f} ms")
    if found.unknown:
        ids = ", ".join(found.unknown[:_PRINTED_IDS]) + " …" * (len(found.unknown) > _PRINTED_IDS)
        session.out.note(f"no episode has these ids, which were ignored: {ids}")
    if found.left_out:
        session.out.note(f"skipped {counted(found.left_out, 'question')} without an answer in the memory")
    for reason in found.degraded:
        session.out.note(f"degraded search: {reason}")


def _means(scores: Scores) -> list[float]:
    return [*(at.mean for at in scores.recall.values()), scores.mrr.mean]


def _gains(scores: Scores) -> list[str]:
    return [f"{at.mean:+.3f} [{at.low:+.3f}, {at.high:+.3f}]" for at in (*scores.recall.values(), scores.mrr)]


def evaluate_facts(
    session: Session,
    conversation: Annotated[
        Path,
        typer.Argument(
            metavar="CONVERSATION", help="File with the turns, as for graphmem ingest; - for standard input."
        ),
    ],
    key: Annotated[
        list[Path], typer.Argument(metavar="KEY.jsonl…", help="Files with the expected facts, claims and questions.")
    ],
    extractor: ExtractorOption = None,
    wrong: Annotated[bool, typer.Option("--wrong", help="List what is wrong.")] = False,
) -> None:
    """Evaluate extracted facts against a key.

    The conversation is read into a memory of its own, which is discarded. Each line of a key is a fact that has to be
    stored (subject, relation, object, and optionally valid_from and valid_to), a claim that no fact may state as
    current, or a question with needles: the words that its answer needs.
    """
    from graphmem.factory import choose_ontology
    from graphmem.ingest.files import FileLoad, FileOptions, find_files
    from graphmem.memory import GraphMemory
    from graphmem.search.fact_evaluation import read_key

    lines = read_key(key)
    short_names = choose_ontology(session.settings).short_names
    load = FileLoad(find_files([conversation]), FileOptions(), short_names, stdin=sys.stdin.buffer)
    with GraphMemory.open("memory://", settings=session.settings, extractor=extractor, background=False) as memory:
        load.run(memory)
        stats = memory.stats()
        found = memory.admin.evaluate_facts(lines)
    if unread := stats.pending_episodes + stats.failed_episodes:
        reason = stats.errors[0].error if stats.errors else "there is no extractor"
        session.out.note(f"not extracted: {unread:,} of {counted(stats.episodes, 'turn')}; {reason}")
    if session.out.as_json:
        session.out.document(found)
        return
    _print_facts(session, found, wrong)


def _print_facts(session: Session, found: FactEvaluation, wrong: bool) -> None:
    from graphmem.adapters.cli.output import Column

    of = sum(found.verdicts.values())
    rows = [[verdict.replace("_", " "), str(n), str(of)] for verdict, n in found.verdicts.items() if of]
    if found.never:
        rows.append(["claims stated as current", str(len(found.never_current)), str(found.never)])
    if found.questions:
        rows.append(["questions answered by facts", str(found.answered), str(found.questions)])
        rows.append(["without a stale fact among the results", str(found.answered_clean), str(found.questions)])
    session.out.table([Column("figure"), Column("number", align="right"), Column("of", align="right")], rows)
    if not wrong:
        return
    for verdict, fact, nearest in found.facts:
        session.out.line(f"{verdict.replace('_', ' ')}: {fact}" + (f"; stored: {nearest}" if nearest else ""))
    for claim, fact in found.never_current:
        session.out.line(f"stated as current: {claim}; stored: {fact}")
    for question in found.unanswered:
        session.out.line(f"not answered: {question}")


def why(
    session: Session,
    trace: Annotated[str | None, typer.Argument(help="Id printed by recall --trace. [default: the newest]")] = None,
    limit: Annotated[int, typer.Option("--limit", "-n", min=1, help="Maximum number of facts.")] = 20,
) -> None:
    """Explain the result of a traced recall."""
    from graphmem.errors import NotFound

    with session.open() as memory:
        missing = "no recall was traced in this scope; graphmem recall QUESTION --trace stores a trace"
        try:
            found = next(iter(memory.admin.traces(limit=1)), None) if trace is None else memory.why(trace)
        except NotFound as error:
            found, missing = None, str(error)
        if session.out.as_json:
            session.out.document(found)
        elif found is not None:
            _print_trace(session, found, limit)
        if found is None:
            session.nothing(missing)


def _print_trace(session: Session, trace: Trace, limit: int) -> None:
    from graphmem.adapters.cli.output import Column

    seeds = ", ".join(f"{seed.name} ({seed.score:.2f})" for seed in trace.seeds)
    properties = [("question", trace.query), ("asked", f"{trace.asked_at:%Y-%m-%d %H:%M:%S} UTC")]
    if trace.as_of is not None:
        properties.append(("as of", f"{trace.as_of.valid:%Y-%m-%d}, known by {trace.as_of.known:%Y-%m-%d}"))
    session.out.pairs([*properties, ("strategy", trace.strategy), ("seeds", seeds or None)])
    columns = [
        Column("#", align="right"),
        Column("fact", 4),
        Column("found at", 1),
        Column("hop", align="right"),
        Column("score", align="right"),
    ]
    rows = [
        [
            "-" if f.rank is None else str(f.rank),
            f"{f.fact.fact}{f.fact.grounds}",
            f.found_at,
            str(f.hop),
            f"{f.score:.2f}",
        ]
        for f in trace.facts[:limit]
    ]
    if rows:
        session.out.line()
        session.out.table(columns, rows)
    if trace.episodes:
        session.out.line()
        session.out.table(
            [Column("#", align="right"), Column("episode", 4), Column("found by", 1), Column("score", align="right")],
            [
                ["-" if e.rank is None else str(e.rank), e.episode_id, e.channel, f"{e.score:.2f}"]
                for e in trace.episodes[:limit]
            ],
        )
    if len(trace.facts) > limit:
        session.out.note(f"{counted(len(trace.facts) - limit, 'fact')} more; --limit shows them")
