"""Command `eval-facts`: which facts of a conversation are stored right, against a key."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from graphmem.adapters.cli.ingest import ExtractorOption
from graphmem.adapters.cli.session import Session, command
from graphmem.text import counted

if TYPE_CHECKING:
    from graphmem.search.fact_evaluation import FactEvaluation


def register(app: typer.Typer) -> None:
    """Add the command to the program."""
    command(app, name="eval-facts")(evaluate_facts)


def evaluate_facts(
    session: Session,
    conversation: Annotated[
        Path, typer.Argument(metavar="CONVERSATION", help="File with the turns, in any format of graphmem ingest.")
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
    from graphmem.errors import InvalidInput
    from graphmem.memory import GraphMemory
    from graphmem.search.fact_evaluation import read_key

    lines = read_key(key)
    if not conversation.is_file():
        raise InvalidInput(f"{conversation}: no such file")
    with GraphMemory.open(
        "memory://eval-facts", settings=session.settings, extractor=extractor, background=False
    ) as memory:
        memory.ingest(conversation)
        stats = memory.stats()
        found = memory.admin.evaluate_facts(lines)
    if unread := stats.pending_episodes + stats.failed_episodes:
        session.out.note(f"not extracted: {unread:,} of {counted(stats.episodes, 'turn')}; {stats.errors[0].error}")
    if session.out.as_json:
        session.out.document(found)
        return
    _print(session, found, wrong)


def _print(session: Session, found: FactEvaluation, wrong: bool) -> None:
    from graphmem.adapters.cli.output import Column

    of = sum(found.verdicts.values())
    rows = [[verdict.replace("_", " "), str(n), str(of)] for verdict, n in found.verdicts.items() if of]
    if found.never:
        rows.append(["claims stated as current", str(len(found.never_current)), str(found.never)])
    if found.questions:
        rows.append(["questions answered by facts", str(found.answered), str(found.questions)])
        rows.append(["without a stale fact beside", str(found.answered_clean), str(found.questions)])
    session.out.table([Column("figure"), Column("number", align="right"), Column("of", align="right")], rows)
    if not wrong:
        return
    for verdict, fact, nearest in found.facts:
        session.out.line(f"{verdict.replace('_', ' ')}: {fact}" + (f"; stored: {nearest}" if nearest else ""))
    for claim, fact in found.never_current:
        session.out.line(f"stated as current: {claim}; stored: {fact}")
    for question in found.unanswered:
        session.out.line(f"not answered: {question}")
