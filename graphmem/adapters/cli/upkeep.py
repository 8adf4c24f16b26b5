"""Commands of upkeep: they correct, erase, merge, export and import."""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections.abc import Generator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import IO, TYPE_CHECKING, Annotated, cast

import typer

from graphmem.adapters.cli.session import (
    FAILED,
    AfterOption,
    DryRunOption,
    ForceOption,
    LimitOption,
    Session,
    YesOption,
    ask,
    command,
    moment,
)
from graphmem.text import counted

if TYPE_CHECKING:
    from graphmem.models import ForeignData, Merge
    from graphmem.results import Fact
    from graphmem.upkeep.forget import Forgotten


def register(app: typer.Typer) -> None:
    """Add the commands to the program."""
    for function in (forget, retract, end, infer, clear, expire, evict, decay, backfill):
        command(app)(function)
    command(app, "dead-letters")(dead_letters)
    for function in (merge, unmerge, merges):
        command(app)(function)
    command(app)(export)
    command(app, "import")(import_)


def forget(
    session: Session,
    name: Annotated[str | None, typer.Argument(help="An entity, by name or id.")] = None,
    episode: Annotated[str | None, typer.Option(metavar="ID", help="An episode, by id or external id.")] = None,
    conversation: Annotated[
        str | None, typer.Option("--session", metavar="ID", help="A session with all its episodes.")
    ] = None,
    speaker: Annotated[str | None, typer.Option(metavar="NAME", help="All turns of a speaker.")] = None,
    with_episodes: Annotated[
        bool,
        typer.Option("--with-episodes", help="For an entity: also the episodes that it said or that name it."),
    ] = False,
    dry_run: DryRunOption = False,
    yes: YesOption = False,
) -> None:
    """Erase an entity, an episode, a session or the turns of a speaker, with all data derived from it."""
    kinds = (("entity", name), ("episode", episode), ("session", conversation), ("speaker", speaker))
    named = [f"{kind} {what!r}" for kind, what in kinds if what is not None]
    if len(named) != 1:
        raise typer.BadParameter("name exactly one of: an entity, --episode ID, --session ID, --speaker NAME")
    if with_episodes and name is None:
        raise typer.BadParameter("--with-episodes is for an entity: the others are episodes themselves")
    with session.open() as memory:
        all_of = " and the episodes that it said or that name it" if with_episodes else ""
        if not dry_run:
            ask(f"Erase {named[0]}{all_of} in scope {memory.scope}? It can't be undone.", yes=yes)
        done = memory.forget(
            name, episode=episode, session=conversation, speaker=speaker, with_episodes=with_episodes, dry_run=dry_run
        )
        if done.still_mentioned_in and name is not None and not session.out.as_json:
            session.out.note("some episodes still mention it; to erase them as well:")
            session.out.command(session.command_line("forget", name, "--with-episodes"))
        _print_forgotten(session, done)


def retract(
    session: Session,
    fact_id: Annotated[str, typer.Argument(help="The id of a fact, as in the output of history --json.")],
    reason: Annotated[str, typer.Option(metavar="TEXT", help="Why it is wrong.")] = "",
) -> None:
    """Record that a fact was never true; it stays in the history."""
    with session.open() as memory:
        _print_amended(session, memory.retract(fact_id, reason=reason))


def end(
    session: Session,
    fact_id: Annotated[str, typer.Argument(help="The id of a fact, as in the output of history --json.")],
    at: Annotated[str | None, typer.Option(metavar="DATE", help="When it ended; by default now.")] = None,
    reason: Annotated[str, typer.Option(metavar="TEXT", help="Why it ended.")] = "",
) -> None:
    """Record when a fact stopped being true."""
    ended_at = None if at is None else moment("--at", at)
    with session.open() as memory:
        _print_amended(session, memory.end(fact_id, at=ended_at, reason=reason))


def _print_amended(session: Session, fact: Fact) -> None:
    if session.out.as_json:
        session.out.document(fact)
        return
    session.out.line(str(fact))


def infer(
    session: Session,
    about: Annotated[
        str | None, typer.Argument(help="An entity, by name or id, whose facts the language model looks at.")
    ] = None,
    limit: Annotated[int, typer.Option("--limit", "-n", min=1, help="Maximum number of inferred facts.")] = 10_000,
    dry_run: DryRunOption = False,
) -> None:
    """Infer facts from others by the rules of the ontology, or with the name of an entity by the language model."""
    with session.open() as memory:
        done = memory.admin.infer(about, limit=limit, dry_run=dry_run)
        if session.out.as_json:
            session.out.document(done)
            return
        would = "would be " if dry_run else ""
        pairs = [(f"facts {would}added", done.added), ("facts kept", done.kept), (f"facts {would}ended", done.removed)]
        session.out.pairs([*pairs, *((f"left out: {reason}", n) for reason, n in done.skipped.items())])
        for line in done.examples:
            session.out.line(f"  {line}")
    if done.truncated:
        session.out.note(f"the limit of {limit:,} was reached; more is implied")


def clear(session: Session, yes: YesOption = False) -> None:
    """Erase all data of the scope; other scopes of the store are kept."""
    with session.open() as memory:
        counts = memory.stats()
        held = (
            f"{counted(counts.episodes, 'episode')}, {counted(counts.entities, 'entity', 'entities')}, "
            f"{counted(counts.edges, 'fact')}"
        )
        ask(f"Erase all of scope {memory.scope}: {held}? It can't be undone.", yes=yes)
        _print_forgotten(session, memory.admin.clear())


def expire(session: Session, dry_run: DryRunOption = False) -> None:
    """Erase the episodes that have expired, with all data derived from them."""
    with session.open() as memory:
        _print_forgotten(session, memory.admin.expire(dry_run=dry_run))


def evict(session: Session, dry_run: DryRunOption = False, yes: YesOption = False) -> None:
    """Delete old superseded facts and archive idle entities as configured; by default, nothing is evicted."""
    days, cap = session.settings.expired_edge_retention_days, session.settings.max_entities
    with session.open() as memory:
        if days is None and not cap:
            session.out.note(
                "the settings evict nothing: set expired_edge_retention_days (for example 90) to delete superseded "
                "facts after that time, or max_entities to archive entities beyond that number"
            )
        elif not dry_run:
            facts = f"delete facts superseded more than {counted(days or 0, 'day')} ago, which can't be undone"
            entities = f"archive entities beyond {cap:,}, which come back when they are mentioned"
            what = " and ".join([facts] * (days is not None) + [entities] * (cap > 0))
            ask(f"In scope {memory.scope}: {what}?", yes=yes)
        done = memory.admin.evict(dry_run=dry_run)
        if session.out.as_json:
            session.out.document(done)
            return
        would = "would be " if dry_run else ""
        session.out.pairs(
            [
                (f"facts {would}deleted", done.deleted_facts),
                (f"facts {would}ended", done.ended_facts),
                (f"entities {would}archived", done.archived_entities),
            ]
        )
        for fact in done.examples if dry_run else ():
            session.out.line(f"  {fact}")


def decay(session: Session) -> None:
    """Apply the decay of retrieval counts up to now, as configured."""
    with session.open() as memory:
        processed = memory.admin.decay()
        if session.out.as_json:
            session.out.document({"scope": str(memory.scope), "facts": processed})
            return
        session.out.line(f"{counted(processed, 'fact')} with a retrieval count")


def backfill(
    session: Session,
    limit: Annotated[int | None, typer.Option("--limit", "-n", min=1, help="Maximum episodes. [default: all]")] = None,
    extractor: Annotated[
        str | None,
        typer.Option(
            metavar="NAME", help="spacy, recorded:FILE or llm:PROVIDER:MODEL. [default: that of the settings]"
        ),
    ] = None,
    failed: Annotated[bool, typer.Option("--failed", help="Also retry failed episodes.")] = False,
    again: Annotated[
        bool, typer.Option("--again", help="Extract all episodes again and replace their facts and mentions.")
    ] = False,
    yes: YesOption = False,
) -> None:
    """Extract the episodes that are waiting."""
    with session.open(extractor=extractor) as memory:
        counts = memory.stats()
        if again:
            what = counted(counts.episodes, "episode")
            ask(f"Extract all of scope {memory.scope} again, {what}, and replace the results?", yes=yes)
        waiting = counts.pending_episodes + counts.failed_episodes * failed if not again else counts.episodes
        with session.out.progress(min(waiting, limit or waiting)) as update:
            report = memory.admin.backfill(
                limit,
                failed=failed,
                again=again,
                on_progress=lambda progress: update(progress.extracted + progress.failed),
            )
        left = memory.stats()
        if session.out.as_json:
            session.out.document(
                {
                    **report.model_dump(mode="json"),
                    "waiting": left.pending_episodes,
                    "out_of_tries": left.failed_episodes,
                    "queue": left.queue,
                }
            )
        else:
            session.out.pairs(
                [
                    ("extracted", report.extracted),
                    ("failed", report.failed),
                    ("new entities", report.entities),
                    ("new facts", report.edges),
                    ("waiting", left.pending_episodes),
                ]
            )
    if left.queue.state != "running":
        session.out.note(f"extraction is {left.queue}")
    if waiting and not report.extracted:
        reason = "for the reason, see graphmem doctor and graphmem stats"
        if extractor is None and session.settings.extractor == "none":
            reason = "the setting extractor is none; --extractor spacy names another"
        session.out.note(f"nothing was extracted; {reason}")
        raise typer.Exit(FAILED)


def dead_letters(
    session: Session,
    limit: Annotated[int, typer.Option("--limit", "-n", min=1, help="Maximum number of episodes.")] = 50,
    after: AfterOption = "",
) -> None:
    """List the failed episodes, which have no retries left, with their errors."""
    from graphmem.adapters.cli.output import Column

    with session.open() as memory:
        found = memory.admin.dead_letters(limit=limit, after=after)
        if session.out.as_json:
            session.out.document(found)
        elif found:
            columns = [Column("episode"), Column("attempts"), Column("last"), Column("error", ratio=1)]
            rows = [
                (f.episode_id, str(f.attempts), f"{f.failed_at:%Y-%m-%d %H:%M}" if f.failed_at else "", f.error)
                for f in found
            ]
            session.out.table(columns, rows)
            session.note_page(limit, [f.episode_id for f in found])
            session.out.note("to retry them:")
            session.out.command(session.command_line("backfill", "--failed"))
        if not found:
            session.nothing(f"no failed episodes in scope {memory.scope}")


def _print_forgotten(session: Session, done: Forgotten) -> None:
    if session.out.as_json:
        session.out.document(done)
    else:
        session.out.pairs(list(done.counts.items()) or [("erased", 0)])
        for kind, texts in done.examples.items() if done.dry_run else ():
            session.out.line(f"{kind.replace('_', ' ')}, such as:")
            for text in texts:
                session.out.line(f"  {text}")
    for what in done.remaining:
        session.out.note(f"stays: {what}")
    for what in done.left:
        session.out.note(f"not erased yet: {what}")
    if done.left:
        raise typer.Exit(FAILED)


def merge(
    session: Session,
    names: Annotated[list[str], typer.Argument(help="The entities to merge, by name or id.")],
    into: Annotated[str, typer.Option("--into", metavar="NAME", help="The entity to keep, by name or id.")],
    yes: YesOption = False,
) -> None:
    """Merge entities into one, moving their facts, names and mentions."""
    with session.open() as memory:
        ask(f"Merge {', '.join(map(repr, names))} into {into!r} in scope {memory.scope}?", yes=yes)
        made = memory.admin.merge(names, into=into)
        if session.out.as_json:
            session.out.document([_shown(one) for one in made])
            return
        for one in made:
            session.out.line(f"{_summary(one)}; to undo it: graphmem unmerge {one.id}")


def unmerge(
    session: Session,
    merge: Annotated[str, typer.Argument(help="Id of the merge, listed by graphmem merges.")],
    yes: YesOption = False,
) -> None:
    """Undo a merge; later data stays with the entity that it was stated about."""
    with session.open() as memory:
        ask(f"Undo merge {merge} in scope {memory.scope}?", yes=yes)
        done = memory.admin.unmerge(merge)
        if session.out.as_json:
            counts = {"entity_id": done.entity.id, "facts": done.facts, "mentions": done.mentions}
            session.out.document({**_shown(done.merge), **counts})
            return
        session.out.line(
            f"{done.entity.name} is separate from {done.merge.kept.name} again: "
            f"{counted(done.facts, 'fact')}, {counted(done.mentions, 'mention')}"
        )


def merges(
    session: Session,
    name: Annotated[str | None, typer.Argument(help="Only merges into or of this entity.")] = None,
    undone: Annotated[bool, typer.Option("--undone", help="Include undone merges.")] = False,
    limit: LimitOption = 20,
) -> None:
    """List the merges of entities and names with their reasons, newest first."""
    from graphmem.adapters.cli.output import Column

    with session.open() as memory:
        found = memory.admin.merges(name, undone=undone, limit=limit)
        if session.out.as_json:
            session.out.document([_shown(one) for one in found])
        elif found:
            columns = [Column("id"), Column("at"), Column("merged", 1), Column("into", 1), Column("by")]
            rows = [
                [
                    one.id,
                    f"{one.at:%Y-%m-%d %H:%M}",
                    one.merged.name,
                    one.kept.name,
                    one.method,
                    "" if one.score is None else f"{one.score:.2f}",
                    "" if one.undone_at is None else f"{one.undone_at:%Y-%m-%d %H:%M}",
                ]
                for one in found
            ]
            session.out.table([*columns, Column("cosine", align="right"), Column("undone")], rows)
        if not found:
            session.nothing("nothing was merged in this scope")


def _summary(merge: Merge) -> str:
    facts, mentions = counted(len(merge.edges) + len(merge.folded), "fact"), counted(len(merge.mentions), "mention")
    foreign = "" if merge.foreign is None else f", and {_foreign(merge.foreign)}"
    return f"merged {merge.merged.name} into {merge.kept.name} with {facts} and {mentions}{foreign}"


def _foreign(moved: ForeignData) -> str:
    parts = [counted(moved.relationships, "relationship")] if moved.relationships else []
    for kind, names in (("label", moved.labels), ("property", moved.properties), ("unmoved property", moved.unmoved)):
        parts += [f"{kind} {name}" for name in names]
    return f"of others: {', '.join(parts) or 'nothing that it lacked'}"


def _shown(merge: Merge) -> dict[str, object]:
    return {
        "id": merge.id,
        "at": merge.at,
        "merged_id": merge.merged.id,
        "merged": merge.merged.name,
        "kept_id": merge.kept_id,
        "kept": merge.kept.name,
        "method": merge.method,
        "score": merge.score,
        "aliases": [alias.alias for alias in merge.aliases],
        "moved_facts": [edge.id for edge in merge.edges],
        "folded_facts": [folded.edge.id for folded in merge.folded],
        "mentions": len(merge.mentions),
        "foreign": merge.foreign,
        "undone_at": merge.undone_at,
    }


_STANDARD = "-"


def export(
    session: Session,
    file: Annotated[str, typer.Argument(help="Output file; - is standard output.")] = _STANDARD,
    vectors: Annotated[bool, typer.Option("--vectors/--no-vectors", help="Whether to export the index.")] = True,
    force: ForceOption = False,
) -> None:
    """Export the scope as JSON lines, for another store or as a backup."""
    to_standard = file == _STANDARD
    if to_standard and session.out.as_json:
        raise typer.BadParameter("--json: standard output is used for the exported rows; name a FILE")
    with session.open() as memory:
        counts = memory.stats()
        with session.out.progress(counts.entities + counts.aliases + counts.edges + counts.mentions) as update:
            target = cast("IO[bytes]", sys.stdout.buffer) if to_standard else file
            done = memory.admin.export(target, vectors=vectors, force=force, on_rows=update)
        if done.left_out:
            gone = counted(done.left_out, "reference")
            session.out.note(f"left out {gone} to rows that were deleted past graphmem; see graphmem doctor")
        if session.out.as_json:
            session.out.document(done)
            return
        session.out.note(f"exported {counted(done.rows, 'row')} of scope {done.scope}, checksum {done.checksum}")


def import_(
    session: Session,
    file: Annotated[str, typer.Argument(help="An exported memory; - is standard input.", show_default=False)],
    vectors: Annotated[
        bool, typer.Option("--vectors/--no-vectors", help="Whether to import the index in the file.")
    ] = True,
    cut_off: Annotated[
        bool, typer.Option("--cut-off", help="Import the existing lines of a file that is cut off or damaged.")
    ] = False,
) -> None:
    """Import an exported memory into its own scope, or into the one of --scope."""
    from graphmem.upkeep.export_file import read_scope

    with _source(file) as source:
        scope = read_scope(source)
        with session.open(make=True) as opened:
            renamed = session.shared.scope is not None
            memory = opened if renamed else opened.in_scope(scope)
            with session.out.progress(0) as update:
                done = memory.admin.import_(source, rename=renamed, vectors=vectors, cut_off=cut_off, on_rows=update)
            if done.repaired:
                session.out.note(f"repaired the times of {counted(done.repaired, 'fact')} that ended before they began")
            if session.out.as_json:
                session.out.document(done)
                return
            cut = "" if done.complete else "; the file was incomplete"
            session.out.line(f"imported {counted(done.rows, 'row')} into scope {done.scope}{cut}")


@contextmanager
def _source(file: str) -> Generator[str | IO[bytes]]:
    """Yield the file, or a temporary copy of standard input or a pipe, because the import reads it twice."""
    from graphmem.ingest.formats.archives import is_stream

    if not is_stream(Path(file)):
        yield file
        return
    with (
        nullcontext(sys.stdin.buffer) if file == _STANDARD else Path(file).open("rb") as source,
        tempfile.TemporaryFile() as kept,
    ):
        shutil.copyfileobj(source, kept)
        kept.seek(0)
        yield kept
