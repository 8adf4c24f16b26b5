"""Subtitles in SRT and WebVTT."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import PurePosixPath
from typing import Any

from graphmem.errors import InvalidInput
from graphmem.ingest.formats.source import Refused, Report, Source
from graphmem.ingest.records import reason_of
from graphmem.inputs import Document, Turn

_CUE = re.compile(r"\s{0,8}(?:(\d{1,3}):)?(\d{1,2}):(\d\d)[.,](\d{1,3})\s{1,8}-->")
_VOICE = re.compile(r"<v(?:\.[^\s<>]{1,80})?\s([^<>]{1,200})>")
_TAG = re.compile(r"<[^<>]*>")
_LABEL = re.compile(r"[^\s:][^:\n]{0,59}: ")
_NO_NAME = re.compile(r"[^\w\s.,'’()-]")
_MOST = 0.8  # of the cues of a file that names all speakers
_MAX_JOINED = 1000


@dataclass(slots=True)
class _Cue:
    line: int
    start: str
    speaker: str | None
    text: str


def subtitle_turns(source: Source, refused: Report) -> Iterator[Turn | Document]:
    """Yield the turns of SRT or WebVTT subtitles; the cues of one sentence of one speaker form one turn.

    Cues without a speaker are documents of up to 1,000 characters, as nobody is known to say them.

    Items have the time of the file (`Source.dated`), as cue times are relative to an unknown start. The cue time is
    stored as metadata `start`.
    """
    found, at = False, source.dated()
    for cue in _joined(_cues(list(source.texts(refused)))):
        found = True
        of_item: dict[str, Any] = {
            "text": cue.text,
            "occurred_at": at,
            "external_id": source.id_from(cue.start, cue.speaker, cue.text),
            "metadata": {"file": source.name, "start": cue.start},
        }
        try:
            if cue.speaker is None:
                yield Document(title=source.stem and PurePosixPath(source.stem).name, **of_item)
            else:
                yield Turn(speaker=cue.speaker, session_id=source.stem, **of_item)
        except InvalidInput as error:
            refused(Refused(source.name, cue.line, reason_of(error)))
    if not found:
        refused(Refused(source.name, 1, "no cue found: expected a line such as 00:00:01,000 --> 00:00:04,000"))


def _cues(lines: Sequence[tuple[int, str]]) -> Iterator[_Cue]:
    firsts = [text for (_, line), (_, text) in pairwise(lines) if _CUE.match(line)]
    names_all = sum(_LABEL.match(text) is not None for text in firsts) >= _MOST * max(len(firsts), 3)
    cue: _Cue | None = None
    for number, raw in lines:
        line = raw.strip()
        if match := _CUE.match(raw):
            if cue is not None and cue.text:
                yield cue
            hours, minutes, seconds, rest = match.groups()
            start = f"{int(hours or 0):02}:{int(minutes):02}:{seconds}.{rest.ljust(3, '0')}"
            cue = _Cue(number, start, None, "")
        elif not line and cue is not None:
            if cue.text:
                yield cue
            cue = None
        elif cue is not None:
            speaker, text = _spoken(line, names_all=names_all and not cue.text)
            if speaker is not None and cue.text:
                yield cue
                cue = _Cue(number, cue.start, None, "")
            cue.speaker = speaker or cue.speaker
            cue.text = f"{cue.text} {text}".strip()
    if cue is not None and cue.text:
        yield cue


def _spoken(line: str, *, names_all: bool) -> tuple[str | None, str]:
    """Return the speaker from a voice tag or "Name: ", or None, and the text without tags.

    A name may be in lower case if the file names the speaker of all its cues.
    """
    voice = _VOICE.match(line)
    text = html.unescape(_TAG.sub("", line)).strip().removeprefix(">>").strip()
    if voice is not None:
        return html.unescape(voice[1]).strip(), text
    name, colon, rest = text.partition(": ")
    words = name.split()
    is_name = all(word[0].isupper() for word in words) or (names_all and not _NO_NAME.search(name))
    if colon and 1 <= len(words) <= 4 and len(name) <= 60 and is_name:
        return name, rest.strip()
    return None, text


def _joined(cues: Iterator[_Cue]) -> Iterator[_Cue]:
    """Yield cues merged with the following ones that continue their sentence, or that have no speaker either."""
    held: _Cue | None = None
    for cue in cues:
        if held is not None:
            continues = cue.speaker in (None, held.speaker) and len(held.text) + len(cue.text) < _MAX_JOINED
            if continues and (held.speaker is None or held.text[-1] not in ".!?…。！？"):
                held.text += f" {cue.text}"
                continue
            yield held
        held = cue
    if held is not None:
        yield held
