"""Texts, Markdown and HTML pages, read as documents of one passage each."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import chain
from pathlib import PurePosixPath

from graphmem.errors import InvalidInput
from graphmem.ingest.formats.pages import to_lines
from graphmem.ingest.formats.passages import passages
from graphmem.ingest.formats.source import MAX_RECORD_BYTES, Refused, Report, Source
from graphmem.inputs import Document
from graphmem.messages import digest

_Lines = Iterator[tuple[int, str]]
_FRONT_MATTER_LINES = 100
_DATE = re.compile(
    r"date:\s*[\"'\[]*(\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:\.\d{1,6})?)?(?:Z| ?[+-]\d\d:?\d\d)?)?)",
    re.IGNORECASE,
)
_CHARSET = re.compile(rb"<meta[^<>]{0,200}?charset\s{0,4}=\s{0,4}[\"']?([\w.:-]{1,40})", re.IGNORECASE)


def documents(source: Source, refused: Report) -> Iterator[Document]:
    """Yield the passages of a text, of Markdown or of a page as documents."""
    root, dated = source.stem and PurePosixPath(source.stem).name, None
    if source.format == "html":
        try:
            title, lines = html_lines(source)
        except InvalidInput as error:
            refused(Refused(source.name, 1, str(error)))
            return
    else:
        lines = source.texts(refused)
        if source.format == "markdown":
            title, dated, lines = front_matter(lines)
        else:
            title = None
    root, at = title or root, source.dated(dated)
    for passage in passages(lines, markdown=source.format != "text"):
        heading = " > ".join(passage.path) or root
        yield Document(
            text=passage.text,
            title=heading,
            occurred_at=at,
            external_id=f"{source.name}:{digest(heading, passage.text)}",
            metadata={"file": source.name, "line": passage.line},
        )


def front_matter(lines: _Lines) -> tuple[str | None, str | None, _Lines]:
    """Skip YAML front matter between ``---`` lines; return its title, its date or time, and the remaining lines."""
    head: list[tuple[int, str]] = []
    title = dated = None
    for number, line in lines:
        head.append((number, line))
        text = line.strip()
        if len(head) == 1 and text != "---":
            break
        if len(head) > 1 and text in ("---", "..."):
            return title, dated, lines
        if match := re.match(r"title:\s*(.+)", text):
            title = match[1].strip("\"' ") or None
        elif match := _DATE.match(text):
            dated = match[1]
        if len(head) == _FRONT_MATTER_LINES:
            break
    return None, None, chain(head, lines)


def html_lines(source: Source) -> tuple[str | None, Iterator[tuple[int, str]]]:
    """Return the title of a page and its text as numbered lines of Markdown.

    Raises
    ------
    InvalidInput
        If the page is longer than 64 MiB.
    """
    data = source.stream.read(MAX_RECORD_BYTES + 1)
    if len(data) > MAX_RECORD_BYTES:
        raise InvalidInput(f"an HTML page longer than {MAX_RECORD_BYTES >> 20} MiB")
    stated = _CHARSET.search(data[:4096])
    try:
        text = data.decode(stated[1].decode() if stated else "utf-8-sig", "replace")
    except LookupError:
        text = data.decode("utf-8-sig", "replace")
    title, lines = to_lines(text)
    return title, iter(enumerate(lines, 1))
