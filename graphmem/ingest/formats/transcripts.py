"""Readers of chats and calls in plain text: LINE exports, and texts whose lines or paragraphs name a speaker."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import date, datetime, tzinfo
from itertools import chain, islice

from graphmem.errors import InvalidInput
from graphmem.ingest.formats.source import Refused, Report, Source
from graphmem.ingest.records import hour_of, reason_of
from graphmem.inputs import Turn
from graphmem.messages import digest
from graphmem.models import Attachment

_NAME = r"(?P<name>[^\W\d_][^:\t\n]{0,39}?)"
_CLOCK = r"(?P<clock>\d{1,2}:\d\d(?::\d\d)?)"
_LINE = re.compile(
    rf"(?P<before>午前|午後|上午|下午)?{_CLOCK} ?(?P<after>[AaPp][Mm])?\t(?P<name>[^\t\n]*)\t(?P<text>.*)"
)
_WEEKDAYS = "Mon Tue Wed Thu Fri Sat Sun".split()
_DAY = re.compile(
    r"(\d{4})[/.](\d{1,2})[/.](\d{1,2})"
    r"(?: ?[(（][^()（）]{1,12}[)）]| ?.曜日| ?星期.| (?:Mon|Tues|Wednes|Thurs|Fri|Satur|Sun)day| ?)\s*$"
)
_ENGLISH_DAY = re.compile(rf"({'|'.join(_WEEKDAYS)}), (\d{{1,2}})/(\d{{1,2}})/(\d{{4}})\s*$")
_TIMED = re.compile(rf"\[?{_CLOCK}\]? {{1,4}}{_NAME}: (?P<text>.*)")
_HEADED = re.compile(rf"{_NAME} {{1,4}}\(?{_CLOCK}\)?(?P<text>)\s*$")
_PLAIN = re.compile(rf"{_NAME}: (?P<text>.+)")
_SHARES = ((_LINE, 0.3), (_TIMED, 0.6), (_HEADED, 0.3), (_PLAIN, 0.8))
"""Kinds of lines with a speaker, and the share of lines that are of this kind in a transcript."""
_LABELS = frozenset(
    "a action address answer author cc company critical date debug decision description email error example fatal "
    "from hint id info item key location name note owner phone priority q question result section source status step "
    "subject summary tip title to todo type url value version warn warning".split()
)
"""Words before a colon that aren't speakers."""
_MIN_WORDS = 3  # of half the texts of a chat without times
_EXAMINED = 400  # lines
_FILES = {
    f"[{word}]": kind
    for kind, words in {
        "image": "写真 スタンプ Photo Sticker",
        "video": "動画 Video",
        "audio": "ボイスメッセージ Audio",
        "file": "ファイル File",
    }.items()
    for word in words.split()
} | {"[Voice message]": "audio"}


@dataclass(slots=True)
class _Said:
    line: int
    speaker: str
    start: str
    at: datetime | None
    lines: list[str] = field(default_factory=list[str])


def kind_of(lines: Sequence[str]) -> re.Pattern[str] | None:
    """Return the kind of lines with a speaker if these are of a transcript: most are, and two speakers speak twice.

    A chat that says that it is of LINE may be shorter.
    """
    lines = [line for line in lines if line.strip()]
    for kind, share in _SHARES:
        found = [match for match in map(kind.match, lines) if match]
        names = Counter(match["name"] for match in found if match["name"])
        repeated = sum(count > 1 for count in names.values())
        if kind is _LINE and not (found and any(map(_day_of, lines))):
            continue
        is_named = kind is _LINE and lines[0].startswith("[LINE]")
        if not is_named and (len(found) < share * len(lines) or repeated < 2):
            continue
        if kind is _PLAIN and not _is_talk(names, [match["text"] for match in found]):
            continue
        return kind
    return None


def _is_talk(names: Counter[str], texts: Sequence[str]) -> bool:
    """Return whether labels and texts of lines are speakers and sentences."""
    are_names = all(not name[0].islower() and name.lower() not in _LABELS and len(name.split()) < 5 for name in names)
    long = sum(len(text.split()) >= _MIN_WORDS for text in texts)
    return are_names and 2 * len(names) <= len(texts) <= 2 * long


def transcript_turns(source: Source, refused: Report) -> Iterator[Turn]:
    """Yield the turns of a transcript: a line or paragraph that names a speaker, with the lines that follow it.

    Turns of LINE have its dates; others have the time of the file (`Source.dated`), and the time of the call as
    metadata `start`.
    """
    lines = source.texts(refused)
    head = list(islice(lines, _EXAMINED))
    kind = kind_of([text for _, text in head]) or _PLAIN
    try:
        zone = source.require_zone("a LINE export") if kind is _LINE else None
    except InvalidInput as error:
        refused(Refused(source.name, 1, f"{error}; the file was not read"))
        return
    dated = source.modified_at if kind is _LINE else source.dated()
    repeats, left_out = Counter[str](), Counter[str]()
    for said in _said(chain(head, lines), kind, zone, left_out):
        text = "\n".join(said.lines).strip()
        if "\n" in text and text.startswith('"') and kind is _LINE:
            text = text.strip('"')
        attached = _FILES.get(text)
        key = digest(said.at and said.at.replace(tzinfo=None).isoformat(), said.start, said.speaker, text)
        repeats[key] += 1
        try:
            yield Turn(
                text="" if attached else text,
                speaker=said.speaker,
                session_id=source.stem,
                occurred_at=said.at or dated,
                external_id=f"{source.name}:{key}" + (f":{repeats[key]}" if repeats[key] > 1 else ""),
                attachments=(Attachment(kind=attached),) if attached else (),
                metadata={"file": source.name, **({"start": said.start} if said.start and not said.at else {})},
            )
        except InvalidInput as error:
            refused(Refused(source.name, said.line, reason_of(error)))
    source.note_left_out(left_out)


def _said(
    lines: Iterator[tuple[int, str]], kind: re.Pattern[str], zone: tzinfo | None, left_out: Counter[str]
) -> Iterator[_Said]:
    said: _Said | None = None
    day: tuple[int, int, int] | None = None
    for number, raw in lines:
        line = raw.rstrip()
        match = kind.match(line)
        new_day = _day_of(line) if kind is _LINE else None
        if (match or new_day) and said is not None:
            yield said
            said = None
        if new_day:
            day = new_day
        elif match and match["name"].strip():
            at = _moment(day, match, zone) if day and zone else None
            said = _Said(
                number, match["name"].strip(), match["clock"] if kind is not _PLAIN else "", at, [match["text"]]
            )
        elif match:
            left_out["notes of the program"] += 1
        elif said is not None:
            said.lines.append(line)
        elif line:
            left_out["lines before the first speaker"] += 1
    if said is not None:
        yield said


def _day_of(line: str) -> tuple[int, int, int] | None:
    """Return year, month and day of a line of LINE that is a date; the weekday tells whether the month comes first."""
    if found := _DAY.match(line):
        return int(found[1]), int(found[2]), int(found[3])
    if (found := _ENGLISH_DAY.match(line)) is None:
        return None
    first, second, year = int(found[2]), int(found[3]), int(found[4])
    for month, day in ((first, second), (second, first)):
        with suppress(ValueError):
            if _WEEKDAYS[date(year, month, day).weekday()] == found[1]:
                return year, month, day
    return None


def _moment(day: tuple[int, int, int], match: re.Match[str], zone: tzinfo) -> datetime | None:
    hour, minute = match["clock"].split(":")[:2]
    try:
        return datetime(*day, hour_of(hour, match["before"] or match["after"]), int(minute), tzinfo=zone)
    except ValueError:
        return None
