"""WhatsApp exports of Android and iPhones, in several languages."""

from __future__ import annotations

import mimetypes
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from graphmem.errors import InvalidInput
from graphmem.ingest.formats.source import DateOrder, Refused, Report, Source
from graphmem.ingest.records import (
    hour_of,
    in_order,
    reason_of,
)
from graphmem.inputs import Turn
from graphmem.messages import digest
from graphmem.models import Attachment

_SPACE = "[ \u00a0\u202f]"
WHATSAPP_LINE = re.compile(
    rf"[\u200e\u200f\ufeff]{{0,3}}\[?(\d{{1,4}})([./-])(\d{{1,2}})\2(\d{{1,4}}),?(?:{_SPACE}à)?{_SPACE}"
    rf"(午前|午後|上午|下午)?{_SPACE}?(\d{{1,2}})[:.](\d{{2}})"
    rf"(?:[:.](\d{{2}}))?{_SPACE}?([AaPp]\.?{_SPACE}?[Mm]\.?)?(?:\]{_SPACE}?|{_SPACE}-{_SPACE})(.*)",
    re.DOTALL,
)
_FILE = re.compile(
    r"<(?:attached|Anhang|adjunto|pièce jointe|allegato): ([^<>]{1,255})>"
    r"|([^\n/\\<>]{1,255}\.\w{2,5}) \((?:file attached|Datei angehängt|archivo adjunto|fichier joint|file allegato)\)"
)
_OMITTED = re.compile(
    r"(?:([^•\n]{1,255}) • [^•\n]{1,40} )?(<?)([\w ]{2,20}?)"
    r"(?: (?:omitted|ausgeschlossen|weggelassen|omise?s?|absente?|omitid[ao]s?|omess[aeio]|ocult[ao]|ocultad[ao])"
    r"|は含まれていません)>?"
)
_EDITED = re.compile(r"<(?:This message was edited|Diese Nachricht wurde bearbeitet)\.?>\s{0,4}\Z")
_KINDS = {
    word: kind
    for kind, words in {
        "image": "image bild imagen imagem immagine photo foto 画像 写真 sticker スタンプ gif",
        "video": "video vidéo vídeo videonachricht ビデオ 動画",
        "audio": "audio áudio sprachnachricht 音声 オーディオ",
        "file": "document dokument documento ドキュメント kontaktkarte",
    }.items()
    for word in words.split()
}
_NOTICE = re.compile(
    r"null"
    r"|This message was deleted|You deleted this message|Missed (?:group )?(?:voice|video) call"
    r"|Diese Nachricht wurde gelöscht|Du hast diese Nachricht gelöscht"
    r"|Verpasster (?:Gruppen-?)?(?:[Ss]prach|[Vv]ideo)anruf"
    r"|Ce message a été supprimé|Vous avez supprimé ce message|Appel (?:vocal|vidéo) (?:de groupe )?manqué"
    r"|(?:Se eliminó|Eliminaste) este mensaje|(?:Videoll|Ll)amada (?:de voz )?perdida"
    r"|このメッセージは削除されました|このメッセージを削除しました|(?:音声|ビデオ)通話に応答がありません|不在着信"
)
"""Whole messages that WhatsApp writes under the name of a person, without the mark that iPhones add."""
_SHARED = re.compile(r"[^\s:]{1,30} ?:(?: ?https?://|\n)")  # marked by iPhones as well: places and polls
_MARK = "\u200e"
_MARKS = dict.fromkeys(map(ord, f"{_MARK}\u200f\u202a\u202c\u2066\u2067\u2068\u2069\ufeff"))
_MAX_SPEAKER = 100


@dataclass(slots=True)
class _ChatLine:
    line: int
    date: tuple[str, str, str, str]  # first number, sign, second, third
    clock: tuple[int, int, int]
    speaker: str
    is_marked: bool
    lines: list[str] = field(default_factory=list[str])


def whatsapp_turns(source: Source, refused: Report) -> Iterator[Turn]:
    """Yield the messages of a WhatsApp export without what the program itself says.

    The order of day and month is inferred from all dates, so the whole file is held in memory; WhatsApp exports at most
    40,000 messages.
    """
    messages = list(_whatsapp_lines(source.texts(refused)))
    if not messages:
        refused(Refused(source.name, 1, "no message of a WhatsApp export found"))
        return
    try:
        zone = source.require_zone("a WhatsApp export")
        order = source.date_order or date_order([each.date for each in messages])
    except InvalidInput as error:
        refused(Refused(source.name, messages[0].line, f"{error}; the file was not read"))
        return
    repeats: dict[str, int] = {}
    before: datetime | None = None
    for each in messages:
        try:
            at = datetime(*in_order(each.date, order), *each.clock, tzinfo=zone)
            if at != before:
                repeats, before = {}, at
            text, attachments = _words("\n".join(each.lines), is_marked=each.is_marked)
            by_program = each.is_marked and not attachments and not _SHARED.match(text)
            if by_program or _NOTICE.fullmatch(text.rstrip(".。")):
                continue
            key = digest(at.replace(tzinfo=None).isoformat(), each.speaker, text)
            repeats[key] = repeats.get(key, 0) + 1
            yield Turn(
                text=text,
                speaker=each.speaker,
                session_id=source.stem,
                occurred_at=at,
                external_id=f"{source.name}:{key}:{repeats[key]}",
                attachments=attachments,
            )
        except InvalidInput as error:
            refused(Refused(source.name, each.line, reason_of(error)))
        except (ValueError, OverflowError):
            shown = each.date[1].join((each.date[0], *each.date[2:]))
            refused(Refused(source.name, each.line, f"{shown} is not a date in the order {order} (--date-order)"))


def _whatsapp_lines(lines: Iterator[tuple[int, str]]) -> Iterator[_ChatLine]:
    """Yield messages with their continuation lines; system notes, which have no speaker, are skipped."""
    current: _ChatLine | None = None
    is_note = False
    for number, raw in lines:
        line = raw.rstrip("\r\n").translate(_MARKS)
        match = WHATSAPP_LINE.match(line)
        if match is None:
            if current is not None and not is_note:
                current.lines.append(line)
            continue
        if current is not None:
            yield current
        first, sign, second, third, before, hour, minute, seconds, after, rest = match.groups()
        speaker, colon, text = rest.partition(": ")
        if not colon and rest.endswith(":"):
            speaker, colon = rest[:-1], ":"
        is_note = not colon or len(speaker) > _MAX_SPEAKER or any(quote in speaker for quote in '"“”„«')
        if is_note:
            current = None
            continue
        is_marked = raw.partition(": ")[2].startswith(_MARK)
        clock = (hour_of(hour, before or after), int(minute), int(seconds or 0))
        current = _ChatLine(number, (first, sign, second, third), clock, speaker.strip("~ \u202f"), is_marked, [text])
    if current is not None:
        yield current


def date_order(dates: Sequence[tuple[str, str, str, str]]) -> DateOrder:
    """Return the order of day and month that fits all dates.

    Raises
    ------
    InvalidInput
        If no order or more than one fits.
    """
    if all(len(first) == 4 for first, *_ in dates):
        return "ymd"
    if all(sign == "." for _, sign, *_ in dates):
        return "dmy"
    day_first = next((date for date in dates if int(date[0]) > 12), None)
    month_first = next((date for date in dates if int(date[2]) > 12), None)
    if day_first is None and month_first is None:
        shown = dates[0][1].join((dates[0][0], *dates[0][2:]))
        raise InvalidInput(
            f"day or month first? {shown} and all {len(dates):,} dates can be read either way; pass --date-order dmy "
            "or mdy"
        )
    if day_first is not None and month_first is not None:
        one, other = (date[1].join((date[0], *date[2:])) for date in (day_first, month_first))
        raise InvalidInput(f"dates of several orders: {one} and {other}; pass --date-order dmy or mdy")
    return "dmy" if day_first is not None else "mdy"


def _words(text: str, *, is_marked: bool) -> tuple[str, tuple[Attachment, ...]]:
    """Return the text of a message without file markers, and its attachments.

    A file that the export lacks is told by a known word, in angle brackets, or with the mark of an iPhone.
    """
    attachments: list[Attachment] = []
    words: list[str] = []
    for line in _EDITED.sub("", text).split("\n"):
        omitted = _OMITTED.fullmatch(line.strip())
        if omitted and (omitted[2] or is_marked or omitted[3].lower() in _KINDS):
            attachments.append(Attachment(kind=_KINDS.get(omitted[3].lower(), "file"), name=omitted[1]))
        elif file := _FILE.fullmatch(line.strip()):
            attachments.append(_file(file[1] or file[2]))
        else:
            words.append(line)
    return "\n".join(words).strip(), tuple(attachments)


def _file(name: str) -> Attachment:
    media_type = mimetypes.guess_type(name)[0]
    kind = (media_type or "").partition("/")[0]
    return Attachment(kind=kind if kind in ("image", "audio", "video") else "file", name=name, media_type=media_type)
