"""Detection of the format of a file, by its suffix and its beginning."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any, cast

from graphmem.errors import InvalidInput
from graphmem.ingest.formats.exports import EXPORT_NAMES, export_of
from graphmem.ingest.formats.source import FORMATS, Format
from graphmem.ingest.formats.transcripts import kind_of
from graphmem.ingest.formats.whatsapp import WHATSAPP_LINE
from graphmem.ingest.records import is_three_texts, is_triple_header, is_turn_header

SUFFIXES: Mapping[str, tuple[Format, ...]] = {
    ".jsonl": ("turns", "triples", "json", "chatgpt", "slack"),
    ".ndjson": ("turns", "triples", "json", "chatgpt", "slack"),
    ".json": ("json", "turns", "triples", "chatgpt", "slack"),
    ".csv": ("csv",),
    ".tsv": ("csv",),
    ".md": ("markdown",),
    ".markdown": ("markdown",),
    ".txt": ("text", "whatsapp", "transcript"),
    ".text": ("text", "whatsapp", "transcript"),
    ".html": ("html",),
    ".htm": ("html",),
    ".mbox": ("mbox",),
    ".eml": ("eml",),
    ".ics": ("ics",),
    ".vcf": ("vcf",),
    ".srt": ("srt",),
    ".vtt": ("vtt",),
}
_LONGEST_BEGINNING = 20
_EXAMINED = 20  # lines examined for a guess
_LINES = 400  # of a text that may be a transcript
_MAX_NAMED = 8
_BINARY = {
    b"%PDF": "a PDF; save its text first, for example with pdftotext",
    b"PK\x03\x04": "a zip archive; give the archive itself as a path, or unpack it",
    b"\x1f\x8b": "compressed by gzip; unpack it, for example with zcat",
    b"BZh": "compressed by bzip2; unpack it, for example with bzcat",
    b"PAR1": "a table in Parquet; save it as CSV or JSON lines",
    b"\xd0\xcf\x11\xe0": "a file of Office or a mail of Outlook; save it as text or CSV",
    b"\xff\xfe": "UTF-16; save it as UTF-8",
    b"\xfe\xff": "UTF-16; save it as UTF-8",
}
_UNREAD = {
    **dict.fromkeys(
        (".nt", ".nq", ".ttl", ".n3", ".rdf", ".owl", "@prefix"),
        "RDF; write its statements to CSV, with columns subject, relation and object",
    ),
}
"""Suffix or beginning of a file that isn't read, though it is text → what it is."""
_CONTROLS = bytes({*range(32), 0x7F} - set(b"\t\n\v\f\r\x1b"))
_MAX_CONTROLS = 0.03  # share of bytes; compressed data has 0.1, text in any encoding of bytes nearly none
_ICS = re.compile(r"BEGIN:VCALENDAR\b", re.IGNORECASE)
_VCF = re.compile(r"BEGIN:VCARD\b", re.IGNORECASE)
_SRT = re.compile(r"\d{1,6}\s{0,8}\n\d{1,3}:\d\d:\d\d,\d{1,3} -->")
_HTML = re.compile(r"<(?:!doctype html|html|head|body)\b", re.IGNORECASE)
_MBOX = re.compile(r"From \S{1,300} .{0,40}\d{4}")
_MAIL = re.compile(
    r"(?:Return-Path|Received|From|To|Date|Subject|Message-ID|MIME-Version|Delivered-To|X-[\w-]{1,60}):", re.IGNORECASE
)


def require_text(name: str, head: bytes) -> None:
    """Raise if a file is not text.

    Raises
    ------
    InvalidInput
        If the first bytes are those of a binary file, or many are control characters; the message names its kind, if
        known.
    """
    for begin, what in _BINARY.items():
        if head.startswith(begin):
            raise InvalidInput(f"{name}: is {what}")
    controls = len(head) - len(head.translate(None, _CONTROLS))
    if b"\0" in head.partition(b"\n")[0] or controls > _MAX_CONTROLS * len(head):
        raise InvalidInput(f"{name}: is not a text file")


def guess_format(name: str, head: str) -> Format | None:
    """Return the format of a file by its suffix and, if that is ambiguous, by its beginning.

    Returns None if the beginning is inconclusive.

    Raises
    ------
    InvalidInput
        If it is unrelated JSON, or text of another kind such as a calendar; the message describes the content found.
    """
    suffix = Path(name).suffix.lower()
    known = SUFFIXES.get(suffix, FORMATS)
    begin = head.lstrip()[:_LONGEST_BEGINNING].lower()
    if known is FORMATS and (seen := next((each for each in _UNREAD if suffix == each or begin.startswith(each)), "")):
        raise InvalidInput(f"{name}: is {_UNREAD[seen]}")
    if len(known) == 1:
        return known[0]
    lines = [line for line in head.split("\n", _EXAMINED)[:_EXAMINED] if line.strip()]
    if not lines:
        return None
    if "whatsapp" in known and any(WHATSAPP_LINE.match(line) for line in lines):
        return "whatsapp"
    if known[0] == "text" and kind_of(head.split("\n", _LINES)[:_LINES]) is not None:
        return "transcript"
    if "json" in known and lines[0].lstrip()[0] in "{[":
        return _guess_json(name, head, lines)
    return _guess_text(head.lstrip(), lines[0]) if known is FORMATS else ("text" if known[0] == "text" else None)


def first_json(head: str) -> object:
    """Return the first record of a JSON text, or the first element of an array; None if the head truncates it."""
    start = re.match(r"\s*\[?\s*", head)
    try:
        return json.JSONDecoder().raw_decode(head, start.end() if start else 0)[0]
    except (ValueError, RecursionError):
        return None


def is_triple(value: object) -> bool:
    """Return whether a JSON value is a triple."""
    return is_three_texts(value) or (isinstance(value, dict) and is_triple_header(_keys(cast("object", value))))


def _guess_json(name: str, head: str, lines: Sequence[str]) -> Format | None:
    for number, line in enumerate(each.strip() for each in lines):
        if line[0] not in "{[":
            continue
        try:
            value = json.loads(line)
        except (ValueError, RecursionError):
            if number == 0 and (line in ("{", "[") or re.match(r"\[\s*[{\[]", line)):
                return _classify(name, first_json(head), head)
            continue
        if isinstance(value, list) and not is_three_texts(cast("object", value)):
            return _classify(name, first_json(head), head) if value else "json"
        try:
            found = _classify(name, cast("object", value), head)
        except InvalidInput:
            if len(lines) == 1:
                raise
            continue  # the reader reports this line
        return ("triples" if is_triple(cast("object", value)) else "turns") if found == "json" else found
    return None


def _classify(name: str, value: object, head: str) -> Format:
    """Return the format of a file with this first record; None stands for a record truncated by the head."""
    if value is None:
        return "chatgpt" if '"mapping"' in head else "json"
    if is_triple(value):
        return "json"
    if isinstance(value, dict):
        record = cast("dict[str, Any]", value)
        if isinstance(record.get("mapping"), dict):
            return "chatgpt"
        is_message = any(key in record for key in ("user", "bot_id", "subtype", "username"))
        if re.fullmatch(r"\d{9,11}\.\d{1,6}", str(record.get("ts"))) and is_message:
            return "slack"
        if export_of(record) is not None or is_turn_header(_keys(record)):
            return "json"
        raise InvalidInput(
            f"{name}: is JSON whose objects have the fields {named(_keys(record))}; a turn needs text (or content, "
            "message, body, messages; --column text=NAME names the field), a triple subject, relation and object; "
            f"exports are read of {', '.join(EXPORT_NAMES)}, ChatGPT and Slack"
        )
    raise InvalidInput(f"{name}: is JSON of {type(value).__name__} values; turns are objects with a text")


def _keys(value: object) -> list[str]:
    return [str(key).lower() for key in cast("dict[object, object]", value)]


def named(columns: Collection[str]) -> str:
    """Return column names for a message: the first eight, and the number of further ones."""
    shown = [column if len(column) <= 40 else f"{column[:39]}…" for column in columns][:_MAX_NAMED]
    more = f" and {len(columns) - _MAX_NAMED} more" if len(columns) > _MAX_NAMED else ""
    return (", ".join(shown) + more) or "none"


def delimiter_of(header: str) -> str:
    """Return the delimiter of the columns in a header."""
    return max(",;\t", key=header.count)


def is_separator_line(line: str) -> bool:
    """Return whether the first line of a CSV file is the note of Excel on its delimiter, such as "sep=;"."""
    return re.fullmatch(r"\"?sep=.\"?\s*", line, re.IGNORECASE) is not None


def header_of(line: str) -> list[str]:
    """Return the names of columns in lower case; none if the line isn't CSV."""
    try:
        row = next(csv.reader([line.strip()], delimiter=delimiter_of(line)), list[str]())
    except csv.Error:
        return []
    return [name.strip().lower() for name in row]


def _guess_text(text: str, line: str) -> Format:
    if text.startswith("WEBVTT"):
        return "vtt"
    for pattern, found in (
        (_ICS, "ics"),
        (_VCF, "vcf"),
        (_SRT, "srt"),
        (_HTML, "html"),
        (_MBOX, "mbox"),
        (_MAIL, "eml"),
    ):
        if pattern.match(text):
            return cast("Format", found)
    header = header_of(line)
    if is_triple_header(header) or (len(header) > 1 and all(map(str.isidentifier, header)) and is_turn_header(header)):
        return "csv"
    return "markdown" if re.match(r"#{1,6} \S", line) else "text"
