"""Commands that read: recall, context, sessions, episodes, entities, facts, history, diff, communities, visualize."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_args

import typer

from graphmem.adapters.cli.session import (
    AfterOption,
    AskedByOption,
    AsOfOption,
    EdgeTypeOption,
    Filters,
    ForceOption,
    KnownOption,
    LimitOption,
    MinConfidenceOption,
    MinTrustOption,
    Session,
    StrategyOption,
    command,
    edge_types,
    moment,
    one_of,
    point_in_time,
    strategy,
    unmatched,
    with_kept_trace,
)
from graphmem.text import counted

if TYPE_CHECKING:
    from graphmem.communities.results import FoundCommunity, Refreshed
    from graphmem.memory import GraphMemory
    from graphmem.models import CommunityAlgorithm, Episode
    from graphmem.results import Fact
    from graphmem.visualize import PictureFormat

_SCOPES_SHOWN = 10
_QUOTED = 300  # characters of an episode that are quoted
_AMPLE_TOKENS = 4000  # a budget into which something of every answer fits


def register(app: typer.Typer) -> None:
    """Add the commands to the program."""
    for function in (recall, context, sessions, episodes, entities, facts, history, diff, communities, visualize):
        command(app)(function)


def recall(
    session: Session,
    query: Annotated[str, typer.Argument(help="A question.", show_default=False)],
    limit: Annotated[
        int | None,
        typer.Option(
            "--limit", "-n", min=1, max=10_000, help="Maximum number of facts. [default: setting recall_limit]"
        ),
    ] = None,
    edge_type: EdgeTypeOption = None,
    hops: Annotated[
        int | None,
        typer.Option("--hops", min=1, max=6, help="Maximum distance from the seeds. [default: 2, or 3 for spreading]"),
    ] = None,
    how: StrategyOption = None,
    asked_by: AskedByOption = None,
    as_of: AsOfOption = None,
    known: KnownOption = None,
    inferred: Annotated[
        bool, typer.Option("--inferred/--no-inferred", help="Whether to include facts inferred from others.")
    ] = True,
    sources: Annotated[bool, typer.Option("--sources", help="Quote the source episodes of the facts.")] = False,
    trace: Annotated[bool, typer.Option("--trace", help="Store a trace, which graphmem why explains.")] = False,
    min_trust: MinTrustOption = "untrusted",
    filters: Filters = None,
) -> None:
    """Return facts that answer a question, best first."""
    kinds, at, chosen = edge_types(edge_type), point_in_time(as_of, known), strategy(how)
    with session.open() as memory:
        found = memory.recall(
            query,
            asked_by=asked_by,
            limit=limit,
            edge_types=kinds,
            max_hops=hops,
            strategy=chosen,
            as_of=at,
            filters=filters,
            min_trust=min_trust,
            include_inferred=inferred,
            trace=trace,
        )
        found = with_kept_trace(memory, found)
        quoted = _episodes(memory, found.facts) if sources else {}
        if session.out.as_json:
            extra = {"episodes": list(quoted.values())} if sources else {}
            session.out.document({**found.model_dump(mode="json"), **extra})
        elif found.facts:
            _print_recalled(session, found.facts)
            if sources:
                _print_sources(session, found.facts, quoted)
        if trace and not session.out.as_json:
            session.note_trace(found.trace_id)
        if not found.facts:
            session.nothing(_explain_empty(memory, f"no fact found for {query!r}", filters))


def context(
    session: Session,
    query: Annotated[str, typer.Argument(help="A question.", show_default=False)],
    budget: Annotated[
        int | None, typer.Option("--budget", min=1, metavar="TOKENS", help="Maximum number of tokens.")
    ] = None,
    asked_by: AskedByOption = None,
    as_of: AsOfOption = None,
    known: KnownOption = None,
    min_confidence: MinConfidenceOption = None,
    min_trust: MinTrustOption = "external",
    filters: Filters = None,
) -> None:
    """Print facts about a question as a context block for a prompt."""
    at = point_in_time(as_of, known)
    with session.open() as memory:
        ask = partial(
            memory.context,
            query,
            asked_by=asked_by,
            as_of=at,
            filters=filters,
            min_confidence=min_confidence,
            min_trust=min_trust,
        )
        block = ask(budget_tokens=budget)
        if session.out.as_json:
            session.out.document({"query": query, "context": block, "unknown_asker": block.unknown_asker})
        elif block:
            session.out.line(block)
            if block.unknown_asker:
                session.note_unknown_asker()
        if not block:
            if ask(budget_tokens=_AMPLE_TOKENS):
                session.nothing(f"nothing of what was found for {query!r} fits into the budget; raise --budget")
            session.nothing(_explain_empty(memory, f"nothing found that answers {query!r}", filters))


def sessions(
    session: Session,
    limit: LimitOption = 50,
    after: Annotated[
        str | None,
        typer.Option("--after", metavar="ID", help="Only sessions after this one, the last of a page."),
    ] = None,
    newest_first: Annotated[bool, typer.Option("--newest-first", help="The latest first, not by id.")] = False,
    filters: Filters = None,
) -> None:
    """List the sessions in the order of their ids, with their numbers of episodes, dates and speakers."""
    from graphmem.adapters.cli.output import Column, day

    with session.open() as memory:
        found = memory.sessions(filters=filters, after=after, newest_first=newest_first, limit=limit)
        if session.out.as_json:
            session.out.document({"sessions": [asdict(one) for one in found]})
        elif found:
            columns = [Column("session", 2), Column("episodes", align="right"), Column("first"), Column("last")]
            rows = [
                [one.id, f"{one.episodes:,}", day(one.first_at), day(one.last_at), ", ".join(one.speakers)]
                for one in found
            ]
            session.out.table([*columns, Column("speakers", 3)], rows)
        if not found:
            session.nothing(f"no {'more ' if after is not None else ''}sessions in scope {memory.scope}")
        if not newest_first:
            session.note_page(limit, [one.id for one in found])


def episodes(
    session: Session,
    limit: LimitOption = 50,
    after: AfterOption = "",
    filters: Filters = None,
) -> None:
    """List the episodes in the order in which they were stored."""
    from graphmem.adapters.cli.output import Column

    with session.open() as memory:
        found = memory.episodes(filters=filters, after=after, limit=limit)
        if session.out.as_json:
            session.out.document({"episodes": found})
        elif found:
            rows = [[quote(episode), episode.session_id or "", episode.id] for episode in found]
            session.out.table([Column("episode", 5), Column("session", 1), Column("id")], rows)
        if not found:
            session.nothing(f"no {'more ' if after else ''}episodes found in scope {memory.scope}")
        session.note_page(limit, [episode.id for episode in found])


def entities(
    session: Session,
    query: Annotated[str | None, typer.Argument(help="Names or words. [default: all entities]")] = None,
    limit: LimitOption = 50,
    type_: Annotated[
        str | None, typer.Option("--type", metavar="TYPE", help="Only this type, in any case: person, organization, …")
    ] = None,
    oldest_first: Annotated[
        bool, typer.Option("--oldest-first", help="In the order in which they were stored, as with --after.")
    ] = False,
    after: AfterOption = "",
    as_of: AsOfOption = None,
    known: KnownOption = None,
) -> None:
    """List entities, most mentioned first."""
    from graphmem.adapters.cli.output import Column, day

    in_order = oldest_first or bool(after)
    if in_order and query is not None:
        raise typer.BadParameter("--oldest-first and --after are for a list of all entities, without a query")
    at, page = point_in_time(as_of, known), after if in_order else None
    with session.open() as memory:
        found = memory.admin.entity_counts(query, entity_type=type_, limit=limit, as_of=at, after=page)
        if session.out.as_json:
            numbered = [{**c.entity.model_dump(mode="json"), "mentions": c.mentions, "facts": c.facts} for c in found]
            session.out.document({"query": query, "entities": numbered})
        elif found:
            columns = [Column("name", 3), Column("type"), Column("mentions", align="right")]
            columns += [Column("facts", align="right"), Column("first seen"), Column("last seen")]
            described = any(counted.entity.summary for counted in found)
            rows = [
                [e.name, e.entity_type, f"{c.mentions:,}", f"{c.facts:,}", day(e.first_seen_at), day(e.last_seen_at)]
                + ([e.summary] if described else [])
                for c, e in ((counted, counted.entity) for counted in found)
            ]
            session.out.table([*columns, *([Column("summary", 4)] if described else [])], rows)
            if in_order:
                session.note_page(limit, [c.entity.id for c in found])
            elif len(found) == limit:
                session.out.note(f"showing the first {limit}; --limit shows more")
        if not found:
            what = "no entity" + (f" of type {type_!r}" if type_ else "") + " found"
            what += "" if query is None else f" for {query!r}"
            session.nothing(_explain_empty(memory, what))


def facts(
    session: Session,
    name: Annotated[str | None, typer.Argument(help="A name of the entity. [default: all facts, oldest first]")] = None,
    limit: LimitOption = 50,
    after: AfterOption = "",
    as_of: AsOfOption = None,
    known: KnownOption = None,
) -> None:
    """List the valid facts of an entity, newest first, or all in the order in which they were recorded."""
    at = point_in_time(as_of, known)
    with session.open() as memory:
        found = memory.facts(name, limit=limit, as_of=at, after=after)
        _show_versions(session, memory, name, found)
        session.note_page(limit, [fact.id for fact in found])


def history(
    session: Session,
    name: Annotated[str, typer.Argument(help="A name of the entity.", show_default=False)],
    relation: Annotated[
        str | None, typer.Option("--relation", metavar="VERB", help="Only this relation, for example works_at.")
    ] = None,
    text: Annotated[str | None, typer.Option("--text", help="Only facts that contain this text.")] = None,
    limit: LimitOption = 50,
    as_of: AsOfOption = None,
    known: KnownOption = None,
) -> None:
    """List all versions of the facts whose subject is an entity."""
    at = point_in_time(as_of, known)
    with session.open() as memory:
        found = memory.history(name, relation, text, limit=limit, as_of=at)
        _show_versions(session, memory, name, found, learned=True)
        if len(found) == limit and not session.out.as_json:
            session.out.note(f"showing the first {limit}; --limit shows more")


def diff(
    session: Session,
    start: Annotated[str, typer.Argument(metavar="FROM", help="A date.", show_default=False)],
    end: Annotated[str, typer.Argument(metavar="TO", help="A later date.", show_default=False)],
    limit: LimitOption = 1000,
) -> None:
    """List the changes between two dates."""
    since, until = moment("FROM", start), moment("TO", end)
    if until < since:
        raise typer.BadParameter(f"TO: {end} is before {start}")
    with session.open() as memory:
        found = memory.diff(since, until, limit=limit)
        if session.out.as_json:
            session.out.document(found)
        for title, group in (("became true", found.began), ("ended", found.ended), ("learned", found.learned)):
            if group and not session.out.as_json:
                session.out.line(f"{title}: {counted(len(group), 'fact')}", "bold")
                _print_versions(session, group)
        if found.truncated:
            session.out.note(f"a list was truncated to {limit}; --limit shows more")
        if not (found.began or found.ended or found.learned):
            session.nothing(_explain_empty(memory, f"nothing changed between {start} and {end}"))


def _show_versions(
    session: Session, memory: GraphMemory, name: str | None, found: Sequence[Fact], *, learned: bool = False
) -> None:
    if session.out.as_json:
        session.out.document({"name": name, "facts": list(found)})
    elif found:
        _print_versions(session, found, learned=learned)
    if not found:
        session.nothing(_explain_empty(memory, "no facts found" if name is None else _nothing_about(memory, name)))


def _nothing_about(memory: GraphMemory, name: str) -> str:
    from graphmem.text.normalize import canonical

    similar = [entity.name for entity in memory.entities(name, limit=5)]
    known = any(canonical(entity) == canonical(name) for entity in similar)
    hint = f"; similar names: {', '.join(similar)}" if similar else ""
    if known:
        hint = " that matches; it has other facts" if memory.facts(name, limit=1) else ", which no fact is about"
    return f"nothing found about {name!r}{hint}"


def _print_recalled(session: Session, found: Sequence[Fact]) -> None:
    from graphmem.adapters.cli.output import Column

    columns = [
        Column("#", align="right"),
        Column("fact", 4),
        Column("from"),
        Column("until"),
        Column("score", align="right"),
        Column("via", 1),
    ]
    first: dict[str, str] = {}
    rows: list[list[str]] = []
    for i, f in enumerate(found, 1):
        # a sentence that states several facts is printed once
        shown = f if first.setdefault(f.fact, f.id) == f.id else f.changed(fact=_plain(f))
        rows.append([str(i), _sentence(shown), *f.dates(), f"{f.score or 0:.2f}", " > ".join(f.path)])
    session.out.table(columns, rows)


def _plain(fact: Fact) -> str:
    from graphmem.text.normalize import plain_fact

    return plain_fact(fact.source, fact.relation, fact.target)


def _sentence(fact: Fact) -> str:
    sure = "" if fact.certainty == "stated" else f" ({fact.certainty})"
    return f"{fact.fact}{sure}{fact.grounds}"


def _print_versions(session: Session, found: Sequence[Fact], *, learned: bool = False) -> None:
    from graphmem.adapters.cli.output import Column, day

    columns = [Column("fact", 5), Column("relation", 2), Column("from"), Column("until")]
    rows = [[_sentence(f), f.relation.replace("_", " "), *f.dates()] for f in found]
    if learned:
        columns.append(Column("learned"))
        rows = [[*row, day(f.recorded_at)] for row, f in zip(rows, found, strict=True)]
    if any(f.end_reason not in (None, "over", "replaced") for f in found):
        columns.append(Column("because", 1))
        rows = [[*row, f.end_reason or ""] for row, f in zip(rows, found, strict=True)]
    session.out.table(columns, rows)


def _episodes(memory: GraphMemory, found: Sequence[Fact]) -> dict[str, Episode]:
    wanted = list(dict.fromkeys(i for fact in found for i in fact.episode_ids))
    return {episode.id: episode for episode in memory.episodes(wanted)}


def _print_sources(session: Session, found: Sequence[Fact], quoted: dict[str, Episode]) -> None:
    numbers: dict[str, list[str]] = {}
    for number, fact in enumerate(found, 1):
        for episode_id in fact.episode_ids:
            numbers.setdefault(episode_id, []).append(str(number))
    known = ((", ".join(of), quoted[episode_id]) for episode_id, of in numbers.items() if episode_id in quoted)
    if not session.out.is_terminal:
        session.out.line()  # on a terminal, a table ends with an empty line
    session.out.pairs((of, quote(episode)) for of, episode in known)


def quote(episode: Episode) -> str:
    """Return speaker, date, text and attachments of an episode on one line; long text is truncated."""
    from graphmem.adapters.cli.output import cut, shown

    text = cut(episode.text, _QUOTED)
    attached = f" {shown(episode.attached)}" if episode.attached else ""
    return f"{shown(episode.author)}, {episode.occurred_at:%Y-%m-%d}: “{text}”{attached}"


def _explain_empty(memory: GraphMemory, message: str, filters: Filters = None) -> str:
    counts: Any = memory.stats()
    if counts.episodes and (reason := unmatched(memory, filters)):
        return f"{message}{reason}"
    if counts.edges or counts.entities:
        return message
    if counts.pending_episodes:
        waits = counted(counts.pending_episodes, "episode waits", "episodes wait")
        return f"{message}: {waits} for extraction; see graphmem doctor"
    if counts.episodes:
        return f"{message}: no facts were extracted from the {counted(counts.episodes, 'episode')} of the scope"
    others = [str(scope) for scope in memory.admin.scopes() if scope != memory.scope]
    more = f" and {len(others) - _SCOPES_SHOWN:,} more (graphmem scopes)" if len(others) > _SCOPES_SHOWN else ""
    hint = f"; scopes with data: {', '.join(others[:_SCOPES_SHOWN])}{more}" if others else ""
    return f"{message}: the scope {str(memory.scope)!r} is empty{hint}"


# Communities and pictures -------------------------------------------------------------------------


def communities(
    session: Session,
    query: Annotated[str | None, typer.Argument(help="A question. [default: list all communities]")] = None,
    refresh: Annotated[bool, typer.Option("--refresh", help="Detect the communities again first.")] = False,
    algorithm: Annotated[
        str | None,
        typer.Option("--algorithm", metavar="NAME", help="For --refresh: label_propagation or leiden."),
    ] = None,
    level: Annotated[int, typer.Option("--level", min=0, help="0, or a level of subcommunities from leiden.")] = 0,
    members: Annotated[
        str | None, typer.Option("--members", metavar="ID", help="List the members of one community, by its id.")
    ] = None,
    limit: LimitOption = 20,
    as_of: AsOfOption = None,
    known: KnownOption = None,
) -> None:
    """List communities of related entities, largest first, or those that match a question."""
    chosen, at = _algorithm(algorithm), point_in_time(as_of, known)
    with session.open() as memory:
        if refresh:
            _refresh(session, memory, chosen)
        if members is not None:
            # of any level, including ended ones
            found = memory.communities(query, level=None, as_of=at, ended=True, ids=[members])
            _print_members(session, next(iter(found), None), members)
            return
        found = memory.communities(query, level=level, as_of=at, limit=limit)
        if session.out.as_json:
            session.out.document([_shown(community) for community in found])
        elif found:
            _print(session, found)
        if not found:
            if query is not None:
                session.nothing(f"no community matches {query!r}")
            elif level:
                session.nothing(f"no communities on level {level}; leiden may find such: --refresh --algorithm leiden")
            session.nothing("no communities: run graphmem communities --refresh")


def _refresh(session: Session, memory: GraphMemory, algorithm: CommunityAlgorithm | None) -> None:
    done: Refreshed = memory.admin.refresh_communities(algorithm)
    members = counted(done.members, "entity", "entities")
    summary = f"{counted(done.communities, 'community', 'communities')} of {members}"
    changes = f"{done.created:,} new, {done.updated:,} changed, {done.ended:,} ended"
    session.out.note(f"{summary}: {changes} ({done.seconds:.1f} s)")
    if done.fallback:
        session.out.note(f"detected by {done.algorithm} as a fallback: {done.fallback}")
    if done.failed:
        failed = counted(done.failed, "summary", "summaries")
        session.out.note(f"{failed} by the model failed; the next refresh retries them")


def _print(session: Session, found: list[FoundCommunity]) -> None:
    from graphmem.adapters.cli.output import Column, cut

    columns = [Column("members", align="right"), Column("name", 2), Column("about", 5), Column("id")]
    scored = found[0].score is not None
    rows = [[*([f"{c.score:.2f}"] if scored else []), f"{len(c):,}", c.name, cut(c.summary, 240), c.id] for c in found]
    session.out.table([*([Column("score", align="right")] if scored else []), *columns], rows)


def _print_members(session: Session, community: FoundCommunity | None, wanted: str) -> None:
    from graphmem.adapters.cli.output import Column

    if session.out.as_json:
        session.out.document(None if community is None else _shown(community))
    if community is None:
        session.nothing(f"no community {wanted} in scope {session.scope}")
    elif not session.out.as_json:
        session.out.line(community.name, style="bold")
        session.out.line(community.summary)
        session.out.table([Column("name", 1), Column("type")], [[m.name, m.entity_type] for m in community.members])


def _shown(community: FoundCommunity) -> dict[str, object]:
    return {**community.model_dump(mode="json"), "size": len(community)}


def _algorithm(name: str | None) -> CommunityAlgorithm | None:
    from graphmem.models import CommunityAlgorithm

    return None if name is None else one_of("--algorithm", name, get_args(CommunityAlgorithm))


_SUFFIXES: dict[str, PictureFormat] = {
    ".html": "html",
    ".htm": "html",
    ".mmd": "mermaid",
    ".mermaid": "mermaid",
    ".dot": "dot",
    ".gv": "dot",
    ".txt": "ascii",
}


def visualize(
    session: Session,
    names: Annotated[
        list[str] | None,
        typer.Argument(metavar="[NAME]...", help="Entities to draw the graph around. [default: the whole scope]"),
    ] = None,
    hops: Annotated[int, typer.Option("--hops", min=0, max=6, help="Maximum distance from the names in hops.")] = 1,
    community: Annotated[
        str | None, typer.Option("--community", metavar="ID", help="Draw this community; its id or name.")
    ] = None,
    as_of: AsOfOption = None,
    known: KnownOption = None,
    limit: Annotated[int, typer.Option("--limit", "-n", min=1, max=100_000, help="Maximum number of entities.")] = 200,
    form: Annotated[
        str | None,
        typer.Option(
            "--format",
            metavar="FORMAT",
            help="html, mermaid, dot or ascii. [default: by the extension of --out, else ascii]",
        ),
    ] = None,
    out: Annotated[Path | None, typer.Option("--out", metavar="FILE", help="Output file.")] = None,
    force: ForceOption = False,
) -> None:
    """Draw the graph as an interactive HTML page, a Mermaid chart, a Graphviz digraph, or text."""
    from graphmem.output_files import output_file

    chosen, at = _format(form, out), point_in_time(as_of, known)
    if chosen == "html" and out is None and session.out.is_terminal:
        raise typer.BadParameter("--format html: can't be shown in a terminal; write it to a file with --out FILE")
    with session.open() as memory:
        text = memory.visualize(names, hops=hops, community=community, as_of=at, limit=limit, format=chosen)
    if out is not None:
        with output_file(out, force=force) as file:
            file.write(text.encode())
    if session.out.as_json:
        where = {"text": text} if out is None else {"file": str(out)}
        session.out.document({"format": chosen, **where})
    elif out is None:
        sys.stdout.write(text)
    else:
        session.out.note(f"{out}: {len(text.encode()):,} bytes of {chosen}")


def _format(word: str | None, out: Path | None) -> PictureFormat:
    from graphmem.visualize import FORMATS

    if word is None:
        suffix = out.suffix.lower() if out is not None else ""
        if suffix and suffix not in _SUFFIXES:
            raise typer.BadParameter(f"--out: {suffix} is none of {', '.join(_SUFFIXES)}; name one with --format")
        return _SUFFIXES.get(suffix, "ascii")
    return one_of("--format", word, FORMATS)
