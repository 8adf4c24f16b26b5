"""Issues and pull requests in JSON, as records with the fields of a turn."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from graphmem.ingest.formats.values import Record, as_dict, dicts


def github(record: Record, left_out: Counter[str], _: str | None) -> Iterator[Record]:
    """Yield an issue or pull request of GitHub, as `gh` or its API writes it, and its comments and reviews.

    The speakers are the logins, the session is the address, or else the number.
    """
    address = record.get("url") if "author" in record else record.get("html_url")
    session, title = address or f"#{record.get('number')}", record.get("title")
    labels = [str(each["name"]) for each in dicts(record.get("labels")) if each.get("name")]
    assignees = [str(each["login"]) for each in dicts(record.get("assignees")) if each.get("login")]
    yield {
        **_said(record),
        "text": "\n\n".join(str(part) for part in (title, record.get("body")) if part),
        "session_id": session,
        "conversation": title,
        "external_id": address,
        "number": record.get("number"),
        "state": record.get("state"),
        "closed_at": record.get("closedAt") or record.get("closed_at"),
        "milestone": as_dict(record.get("milestone")).get("title"),
        "assignees": ", ".join(assignees),
        "labels": ", ".join(labels),
        **{f"labels.{label}": True for label in labels},
    }
    answers = [{**_said(each), **each} for name in ("comments", "reviews") for each in dicts(record.get(name))]
    for each in sorted(answers, key=lambda answer: str(answer["occurred_at"])):
        if each.get("isMinimized"):
            left_out["hidden comments"] += 1
            continue
        number = each.get("url") or each.get("id")
        about = {"session_id": session, "conversation": title, "external_id": number, "state": each.get("state")}
        yield {name: each[name] for name in ("text", "speaker", "occurred_at")} | about


def _said(record: Record) -> Record:
    """Return text, speaker and time of an issue, comment or review."""
    times = ("createdAt", "created_at", "submittedAt", "submitted_at")
    return {
        "text": record.get("body"),
        "speaker": as_dict(record.get("author") or record.get("user")).get("login"),
        "occurred_at": next((record[name] for name in times if record.get(name)), None),
    }
