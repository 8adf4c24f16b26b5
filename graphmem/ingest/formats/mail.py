"""Mails and mailboxes, by Python's `email`, without quotes and signatures."""

from __future__ import annotations

import email
import re
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from email.header import decode_header, make_header
from email.message import Message
from email.policy import Compat32
from email.utils import getaddresses, parsedate_to_datetime
from typing import cast

from graphmem.errors import InvalidInput
from graphmem.ingest.formats.pages import INTRODUCES, to_lines
from graphmem.ingest.formats.source import MAX_RECORD_BYTES, Refused, Report, Source, decoded
from graphmem.ingest.records import (
    reason_of,
)
from graphmem.inputs import Turn
from graphmem.models import Attachment

_REPLY = re.compile(r"\s{0,4}(?:re|aw|sv|antw|fwd?|wg)(?:\[\d{1,3}\])?:", re.IGNORECASE)
_BEGINS_INTRODUCTION = re.compile(r"(?:On|Am|Le|El|Il) .{0,200}[^\s.!?:]\s{0,4}\Z")
_ENDS_INTRODUCTION = re.compile(
    r"(?!(?:On|Am|Le|El|Il) )\s{0,4}(?:wrote|schrieb|writes|[^@\n]{0,100}@[^@\n]{1,150}) ?:\s{0,4}\Z"
)
"""The two lines of "On Mon, 3 Nov 2025 at 10:00, Ana Silva" and "<ana@example.org> wrote:"."""
_ORIGINAL = re.compile(r"\s{0,4}-{2,10} ?(?:Original Message|Urspr.{1,2}ngliche Nachricht) ?-{2,10}\s{0,4}\Z")
_HEADS = (("From: ", "Sent: ", "Date: ", "Subject: "), ("Von: ", "Gesendet: ", "Datum: ", "Betreff: "))
_FORWARD = re.compile(r"\s{0,4}(?:fwd?|wg)(?:\[\d{1,3}\])?:", re.IGNORECASE)
_SURNAME_FIRST = re.compile(r"([^\W\d_][\w'’-]{1,40}(?: [\w'’-]{1,40})?), ([^\W\d_][\w'’-]{1,40})(?: \w\.?)?")
_NO_GIVEN_NAMES = frozenset("inc ltd llc llp plc gmbh ag kg bv nv sa se corp co phd md jr sr esq".split())
_MAX_HEADER = 2000
_RAW = "raw-unicode-escape"
_DATA = frozenset({"calendar", "directory", "vcard", "x-vcard"})
"""Kinds of text that are data, and attachments also without a name."""
_ID = re.compile(r"<[^<>\s]{1,900}>")


class _ShortHeaders(Compat32):
    """Policy that truncates headers, as `email` is slow on long ones, and reads those that aren't ASCII."""

    def header_source_parse(self, sourcelines: list[str]) -> tuple[str, str]:
        """Return name and value of a header."""
        name, value = super().header_source_parse(sourcelines)
        return name, decoded(value[:_MAX_HEADER].encode("ascii", "surrogateescape"), None, None)


def mails(source: Source, refused: Report) -> Iterator[Turn]:
    """Yield the mails of a file, each as a turn of its sender in the session of its thread."""
    for line, data in _messages(source, refused):
        try:
            yield _turn(email.message_from_bytes(data, policy=_ShortHeaders()), source, line)
        except InvalidInput as error:
            refused(Refused(source.name, line, reason_of(error)))
        except (
            ValueError,
            LookupError,
            TypeError,
            AttributeError,
            RecursionError,
        ) as error:  # raised for malformed headers
            refused(Refused(source.name, line, f"unreadable mail: {error}"))


def _messages(source: Source, refused: Report) -> Iterator[tuple[int, bytes]]:
    """Yield (first line number, bytes) of each message; in an mbox "From " after a blank line begins a message."""
    held: list[bytes] = []
    begin, size, after_blank = 1, 0, True
    for number, line in enumerate(source.stream, 1):
        if source.format == "mbox" and after_blank and line.startswith(b"From "):
            yield from _whole(source, refused, begin, held, size)
            held, begin, size = [], number + 1, 0
        else:
            size += len(line)
            if size <= MAX_RECORD_BYTES:
                held.append(line[1:] if source.format == "mbox" and line.startswith(b">From ") else line)
        after_blank = not line.strip()
    yield from _whole(source, refused, begin, held, size)


def _whole(source: Source, refused: Report, line: int, held: list[bytes], size: int) -> Iterator[tuple[int, bytes]]:
    if size > MAX_RECORD_BYTES:
        refused(Refused(source.name, line, f"a mail longer than {MAX_RECORD_BYTES >> 20} MiB"))
    elif any(part.strip() for part in held):
        yield line, b"".join(held)


def _turn(message: Message, source: Source, line: int) -> Turn:
    stated = {name: _header(message, name) for name in ("From", "To", "Date", "Subject", "Message-ID")}
    if not any(stated.values()):
        raise InvalidInput("not a mail: From, To, Date, Subject and Message-ID are missing")
    subject = " ".join(stated["Subject"].split())
    body, attachments = _body(message, source.encoding, forwards=_FORWARD.match(subject) is not None)
    text = body if not subject or _REPLY.match(subject) else f"{subject}\n\n{body}"
    senders, receivers = _names(message, "From"), _names(message, "To")
    number = _ID.search(stated["Message-ID"])
    thread = _ID.search(_header(message, "References")) or _ID.search(_header(message, "In-Reply-To")) or number
    return Turn(
        text=text.strip() or (subject if not attachments else ""),
        speaker=senders[0] if senders else None,
        session_id=thread[0].strip("<>") if thread else None,
        occurred_at=_date(stated["Date"]) or source.dated(),
        external_id=number[0].strip("<>") if number else source.id_from(stated["Date"], subject, body),
        attachments=tuple(attachments),
        metadata={"subject": subject, "to": ", ".join(receivers)[:500], "file": source.name, "line": line},
    )


def _header(message: Message, name: str) -> str:
    """Return a decoded header, or the raw one if it can't be decoded."""
    return _plain(str(message.get(name) or ""))


def _plain(raw: str) -> str:
    try:
        parts = decode_header(raw)  # those beside encoded words are bytes without an encoding
        return str(make_header([(part, word or (_RAW if isinstance(part, bytes) else None)) for part, word in parts]))
    except (ValueError, LookupError):
        return raw


def _names(message: Message, header: str) -> list[str]:
    """Return the name of each address in a header, or the address if it has none."""
    found = getaddresses([str(message.get(header) or "")])  # before decoding, as names may contain commas
    return [_in_order(_plain(name).strip()) or address for name, address in found if name or address]


def _in_order(name: str) -> str:
    """Return "Tom Becker" for "Becker, Tom", as directories of firms write it."""
    found = _SURNAME_FIRST.fullmatch(name)
    return f"{found[2]} {found[1]}" if found and found[2].lower() not in _NO_GIVEN_NAMES else name


def _date(header: str) -> datetime | None:
    try:
        at = parsedate_to_datetime(header)
        at = at if at.tzinfo is not None else at.replace(tzinfo=UTC)
        at.astimezone(UTC)  # raises if the result is before the year 1
        return at
    except (ValueError, TypeError, IndexError, OverflowError):
        return None


def _body(message: Message, encoding: str | None, *, forwards: bool) -> tuple[str, list[Attachment]]:
    """Return the body of a mail without quotes and signature, but with what it forwards, and its attachments."""
    texts: list[str] = []
    attached: list[str] = []
    attachments: list[Attachment] = []
    for part, content in _parts(message):
        kind = part.get_content_maintype()
        if part.is_multipart():
            text, files = _attached_mail(part, encoding)
            attached.append(text)
            attachments += files
        elif _is_text(part):
            text = decoded(content, part.get_content_charset(), encoding)
            is_page = part.get_content_subtype() == "html"
            texts += to_lines(text, mail=not forwards)[1] if is_page else [text]
        else:
            attachments.append(
                Attachment(
                    kind=kind if kind in ("image", "audio", "video") else "file",
                    name=part.get_filename(),
                    media_type=part.get_content_type(),
                    description=_header(part, "Content-Description") or None,
                    size=len(_content(part)),
                )
            )
    return "\n\n".join(filter(None, (_unquoted("\n".join(texts), forwards=forwards), *attached))), attachments


def _parts(message: Message) -> list[tuple[Message, bytes]]:
    """Return the parts of a mail with the contents of texts, without those that hold parts only.

    Of the forms of one text it is the plainest.
    """
    if not message.is_multipart() or message.get_content_type() == "message/rfc822":
        return [(message, _content(message) if _is_text(message) else b"")]
    parts = [inner for part in cast("list[Message]", message.get_payload()) for inner in _parts(part)]
    if message.get_content_subtype() != "alternative":
        return parts
    forms = {part.get_content_subtype() for part, content in parts if content.strip()}
    form = next((each for each in ("plain", "html") if each in forms), None)
    return [each for each in parts if each[0].get_content_subtype() == form or not _is_inline(each[0])]


def _is_inline(part: Message) -> bool:
    is_attached = part.get_filename() or part.get_content_disposition() == "attachment"
    return part.get_content_maintype() == "text" and not is_attached


def _is_text(part: Message) -> bool:
    """Return whether a part is a text of the mail, and not an attachment."""
    return _is_inline(part) and part.get_content_subtype() not in _DATA


def _content(part: Message) -> bytes:
    data = part.get_payload(decode=True)
    return data if isinstance(data, bytes) else b""


def _attached_mail(part: Message, encoding: str | None) -> tuple[str, list[Attachment]]:
    """Return the text of a mail that is attached to another one, under its head, and its attachments."""
    mail = cast("list[Message]", part.get_payload())[0]
    text, attachments = _body(mail, encoding, forwards=True)
    head = [f"{name}: {value}" for name in ("From", "Date", "Subject") if (value := _header(mail, name))]
    return "\n".join((*head, "", text)).strip(), attachments


def _is_head(lines: Sequence[str]) -> bool:
    """Return whether lines begin with the head that some programs put over a quoted mail: "From: …", "Sent: …"."""
    words = next((words for words in _HEADS if lines[0].startswith(words[0])), None)
    if words is None:
        return False
    _, sent, date, subject = (f"\n{word}" for word in words)
    head = "\n".join(("", *lines[1:]))
    return sent in head or (date in head and subject in head)


def _unquoted(text: str, *, forwards: bool) -> str:
    kept: list[str] = []
    lines = text.splitlines()
    for number, line in enumerate(lines):
        if line.rstrip("\r\n") in ("-- ", "--"):
            break
        if not forwards and (_ORIGINAL.match(line) or _is_head(lines[number : number + 4])) and any(kept):
            break
        if line.startswith(">"):
            while kept and not kept[-1].strip():
                kept.pop()
            if len(kept) > 1 and _ENDS_INTRODUCTION.match(kept[-1]) and _BEGINS_INTRODUCTION.match(kept[-2]):
                del kept[-2:]
            elif kept and INTRODUCES.match(kept[-1]):
                kept.pop()
            continue
        kept.append(line.rstrip())
    return "\n".join(kept).strip()
