"""Calendars: a document for each event, dated by its start."""

from __future__ import annotations

import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from graphmem import GraphMemory
from graphmem.ingest.readers import Refused, guess_format, open_source, read_items
from graphmem.inputs import Document

REVIEW = """DTSTART;TZID=W. Europe Standard Time:20261203T140000
DTEND;TZID=W. Europe Standard Time:20261203T150000
UID:1@x.example
SUMMARY:Sprint review\\, Q4
LOCATION:Room 4
DESCRIPTION:Bring the
  numbers.
ORGANIZER;CN=Ana Silva:mailto:ana@x.example
ATTENDEE;CN=Bo Becker;PARTSTAT=ACCEPTED:mailto:bo@x.example
ATTENDEE;PARTSTAT=DECLINED:mailto:cy@x.example
CATEGORIES:WORK,TEAM
STATUS:CONFIRMED"""


def calendar(*events: str, about: str = "", kind: str = "VEVENT") -> str:
    parts = (f"BEGIN:{kind}\n{event}\nEND:{kind}\n" for event in events)
    return f"BEGIN:VCALENDAR\nVERSION:2.0\n{about}{''.join(parts)}END:VCALENDAR\n"


def read(folder: Path, text: str, **options: Any) -> tuple[list[Document], list[str]]:
    path = folder / "cal.ics"
    path.write_text(text)
    refused: list[Refused] = []
    with open_source(path, **options) as source:
        found = [item for item in read_items(source, refused.append) if isinstance(item, Document)]
    return found, [str(each) for each in refused]


def test_an_event_is_a_document_of_its_start(tmp_path: Path) -> None:
    [event], refused = read(tmp_path, calendar(REVIEW))
    assert event.text == (
        "Sprint review, Q4, 3 December 2026 14:00–15:00, Room 4, with Ana Silva and Bo Becker. "
        "Declined by cy@x.example.\n\nBring the numbers."
    )
    assert (event.title, event.external_id, refused) == ("Sprint review, Q4", "1@x.example", [])
    assert event.occurred_at == datetime(2026, 12, 3, 13, tzinfo=UTC)
    assert event.metadata == {
        "utc_offset": "+0100",
        "uid": "1@x.example",
        "location": "Room 4",
        "organizer": "Ana Silva",
        "attendees": "Bo Becker, cy@x.example",
        "status": "confirmed",
        "categories": "WORK, TEAM",
        "file": "cal.ics",
    }


@pytest.mark.parametrize(
    ("event", "text"),
    [
        ("DTSTART;VALUE=DATE:20261224\nSUMMARY:Eve\nSTATUS:CANCELLED", "Eve, 24 December 2026. This is cancelled."),
        (
            "DTSTART;VALUE=DATE:20261224\nDTEND;VALUE=DATE:20261227\nSUMMARY:Trip",
            "Trip, 24 December 2026 to 26 December 2026.",
        ),
        (
            "DTSTART:20261203T220000Z\nDURATION:PT4H\nSUMMARY:Party",
            "Party, 3 December 2026 22:00 to 4 December 2026 02:00 UTC.",
        ),
        ("DTSTART:20261203T080000Z\nDTEND:20261203T080000Z", "Event, 3 December 2026 08:00 UTC."),
    ],
)
def test_the_days_and_times_of_an_event_are_in_words(tmp_path: Path, event: str, text: str) -> None:
    [found], refused = read(tmp_path, calendar(event))
    assert (found.text, refused) == (text, [])


@pytest.mark.parametrize(
    ("rule", "words"),
    [
        ("FREQ=DAILY", "every day"),
        (
            "FREQ=WEEKLY;INTERVAL=2;BYDAY=MO,TH;UNTIL=20261231T000000Z",
            "every 2 weeks on Monday and Thursday until 31 December 2026",
        ),
        ("FREQ=MONTHLY;BYDAY=-1FR;COUNT=5", "every month on the last Friday 5 times"),
        ("FREQ=MONTHLY;BYMONTHDAY=15", "every month on day 15"),
        ("FREQ=YEARLY", "every year"),
    ],
)
def test_a_recurring_event_is_stored_once_with_its_rule(tmp_path: Path, rule: str, words: str) -> None:
    [found], _ = read(tmp_path, calendar(f"DTSTART:20261203T080000Z\nSUMMARY:Run\nRRULE:{rule}"))
    assert found.text == f"Run, 3 December 2026 08:00 UTC. Repeats {words}."
    assert found.metadata["recurrence"]


def test_a_changed_instance_of_a_recurring_event_is_another_document(tmp_path: Path) -> None:
    moved = "UID:1\nRECURRENCE-ID:20261210T080000Z\nDTSTART:20261210T090000Z\nSUMMARY:Run"
    found, _ = read(tmp_path, calendar("UID:1\nDTSTART:20261203T080000Z\nSUMMARY:Run\nRRULE:FREQ=WEEKLY", moved))
    assert [event.external_id for event in found] == ["1", "1:2026-12-10T08:00:00+00:00"]


def test_times_without_a_zone_are_of_the_option_or_the_calendar(tmp_path: Path) -> None:
    event = "DTSTART:20261203T080000\nSUMMARY:Run"
    _, refused = read(tmp_path, calendar(event))
    assert refused == [
        "cal.ics, line 1: Run: DTSTART: 2026-12-03T08:00:00 has no time zone; pass --timezone Europe/Berlin"
    ]
    [by_calendar], _ = read(tmp_path, calendar(event, about="X-WR-TIMEZONE:Asia/Tokyo\n"))
    [by_option], _ = read(tmp_path, calendar(event, about="X-WR-TIMEZONE:Asia/Tokyo\n"), zone=ZoneInfo("Europe/Berlin"))
    [in_utc], _ = read(tmp_path, calendar("DTSTART:20261203T080000Z", about="X-WR-TIMEZONE:Asia/Tokyo\n"))
    assert (by_calendar.occurred_at, by_option.occurred_at) == (
        datetime(2026, 12, 2, 23, tzinfo=UTC),
        datetime(2026, 12, 3, 7, tzinfo=UTC),
    )
    assert in_utc.text == "Event, 3 December 2026 17:00."


def test_a_to_do_is_of_its_due_time(tmp_path: Path) -> None:
    [todo], _ = read(tmp_path, calendar("SUMMARY:Buy milk\nDUE:20261203T080000Z\nSTATUS:COMPLETED", kind="VTODO"))
    assert todo.text == "To do: Buy milk, due 3 December 2026 08:00 UTC. This is done."
    assert todo.occurred_at == datetime(2026, 12, 3, 8, tzinfo=UTC)


def test_a_damaged_event_costs_only_itself(tmp_path: Path) -> None:
    found, refused = read(tmp_path, calendar("DTSTART:20261301T1\nSUMMARY:Bad", REVIEW))
    assert ([event.title for event in found], len(refused)) == (["Sprint review, Q4"], 1)
    assert "Bad: DTSTART: 20261301T1 is no date or time" in refused[0]


@pytest.mark.parametrize(
    ("text", "reason"), [("BEGIN:VCALENDAR\nfoo\n", "not a calendar"), (calendar(), "a calendar without events")]
)
def test_a_file_without_events_is_refused(tmp_path: Path, text: str, reason: str) -> None:
    found, [refused] = read(tmp_path, text)
    assert found == []
    assert reason in refused


def test_a_calendar_is_told_by_its_beginning() -> None:
    assert guess_format("-", calendar(REVIEW)) == "ics"


def test_without_the_extra_a_calendar_is_refused_and_the_other_files_are_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "icalendar", None)
    (tmp_path / "cal.ics").write_text(calendar(REVIEW))
    (tmp_path / "a.md").write_text("Hi there.\n")
    with GraphMemory.open("memory://", extractor="none", embeddings="none") as memory:
        report = memory.ingest(tmp_path, skip_invalid=True)
    assert (report.stored, report.rejected_count) == (1, 1)
    assert "pip install 'graphmem[calendar]'" in report.rejected[0].reason
