"""The commands about the memory itself: stats, doctor, config."""

from __future__ import annotations

import typer

from graphmem.adapters.cli.session import FAILED, Session, command


def register(app: typer.Typer) -> None:
    """Add the commands to the program."""
    command(app)(stats)
    command(app)(doctor)
    command(app)(config)


def stats(session: Session) -> None:
    """Count what the scope holds."""
    with session.open() as memory:
        found = memory.stats()
        if session.out.as_json:
            session.out.document(found)
            return
        rows: list[tuple[str, object]] = [("scope", found.scope), ("entities", found.entities)]
        rows += [(f"  {kind}", number) for kind, number in sorted(found.entities_by_type.items(), key=_most_first)]
        rows += [("facts", found.edges), ("  active", found.active_edges)]
        rows += [("  deleted history", found.deleted_facts)] if found.deleted_facts else []
        rows += [(f"  {kind}", number) for kind, number in sorted(found.edges_by_type.items(), key=_most_first)]
        rows += [("episodes", found.episodes), ("  waiting", found.pending_episodes)]
        rows += [("  out of tries", found.failed_episodes), ("mentions", found.mentions)]
        rows += [
            ("communities", found.communities),
            ("  ended", found.ended_communities),
            ("  members", found.community_members),
            ("recalls", found.recalls),
        ]
        rows += [(f"error of {error.episode_id}", error.error) for error in found.errors]
        rows += [(f"{job.job}, last run", job.done_at or "interrupted") for job in found.upkeep]
        rows += [("error in the background", error) for error in found.background]
        session.out.pairs(rows)


def _most_first(item: tuple[str, int]) -> tuple[int, str]:
    return -item[1], item[0]


def doctor(session: Session) -> None:
    """Examine store, extractor and queue."""
    with session.open(extractor=None) as memory:
        checks = memory.doctor()
    if session.out.as_json:
        session.out.document({"ok": all(check.ok for check in checks), "checks": checks})
    else:
        session.out.pairs((f"{'ok ' if check.ok else 'BAD'}  {check.name}", check.detail) for check in checks)
    if not all(check.ok for check in checks):
        raise typer.Exit(FAILED)


def config(session: Session) -> None:
    """Print the settings in force, passwords masked."""
    values = session.settings.shown()
    if session.out.as_json:
        session.out.document(values)
    else:
        session.out.pairs(values.items())
