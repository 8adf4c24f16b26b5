"""The command `eval`: how well search answers questions whose answers are known, on users' own data."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from graphmem.adapters.cli.session import Session, command

if TYPE_CHECKING:
    from graphmem.rag.evaluate import Evaluation, Question, Scores

_TOLD = 5  # unknown ids that are printed; --json has up to 100
_NAMES = {"full": "search", "no_graph": "without the graph", "rrf": "RRF of both", "dense": "vectors", "bm25": "BM25"}


def register(app: typer.Typer) -> None:
    """Add the command to the program."""
    command(app, name="eval")(evaluate)


def evaluate(
    session: Session,
    questions: Annotated[
        str, typer.Argument(metavar="QUESTIONS.jsonl", help="Questions with their answers; - is standard input.")
    ],
    k: Annotated[
        list[int] | None, typer.Option("--k", "-k", min=1, max=1000, help="Recall at k; may be given several times.")
    ] = None,
) -> None:
    """Tell how well search answers questions whose answers are known.

    A line is an object with question, external_ids (the ids of the episodes that answer it) and perhaps category and
    scope. Beside search stand plain BM25, vectors, their fusion, and search without the graph.
    """
    from graphmem.rag.evaluate import KS

    asked = list(_read(questions))
    with session.open() as memory, session.out.progress(len(asked)) as tell:
        found = memory.evaluate(asked, ks=sorted(set(k)) if k else KS, on_progress=lambda done, _: tell(done))
    if session.out.as_json:
        session.out.document(found)
        return
    _print(session, found)


def _read(name: str) -> Iterator[Question]:
    """Yield the questions of a file; a line that can't be read is an error that tells its number."""
    from graphmem.errors import InvalidInput
    from graphmem.rag.evaluate import Question

    try:
        text = sys.stdin.read() if name == "-" else Path(name).read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidInput(f"{name}: {error}") from error
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        try:
            yield Question.of(json.loads(line))
        except (InvalidInput, ValueError, RecursionError) as error:
            raise InvalidInput(f"{name}, line {number}: {error}") from error


def _print(session: Session, found: Evaluation) -> None:
    from graphmem.adapters.cli.show import Column, count

    full = found.methods["full"]
    figures = [*(Column(f"recall@{k}", align="right") for k in full.recall), Column("MRR", align="right")]
    session.out.table(
        [Column("method"), *figures],
        [[_NAMES[method], *(f"{x:.3f}" for x in _means(scores))] for method, scores in found.methods.items()],
    )
    session.out.line("what search gains over it [95 % confidence interval]", "bold")
    session.out.table(
        [Column("method"), *figures],
        [[_NAMES[method], *_gained(scores)] for method, scores in found.gains.items()],
    )
    if full.by_category:
        session.out.line("search by category, and what the graph gains", "bold")
        graph = found.gains["no_graph"].by_category
        rows: list[list[str]] = []
        for category, scores in full.by_category.items():
            rows.append([category, str(scores.questions), *(f"{x:.3f}" for x in _means(scores))])
            rows.append(["", "", *_gained(graph[category])])
        session.out.table([Column("category"), Column("questions", align="right"), *figures], rows)
    times = found.query_ms
    session.out.line(f"{count(full.questions, 'question')}; p50 {times['p50']:.1f} ms, p95 {times['p95']:.1f} ms")
    if found.unknown:
        named = ", ".join(found.unknown[:_TOLD])
        session.out.note(
            f"no episode has these ids, and they don't count: {named}{' …' * (len(found.unknown) > _TOLD)}"
        )
    if found.left_out:
        session.out.note(f"{count(found.left_out, 'question')} without an answer in the memory left out")
    for reason in found.degraded:
        session.out.note(f"not all of it was used: {reason}")


def _means(scores: Scores) -> list[float]:
    return [*(at.mean for at in scores.recall.values()), scores.mrr.mean]


def _gained(scores: Scores) -> list[str]:
    return [f"{at.mean:+.3f} [{at.low:+.3f}, {at.high:+.3f}]" for at in (*scores.recall.values(), scores.mrr)]
