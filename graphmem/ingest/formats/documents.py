"""Texts, Markdown and HTML pages, read as documents of one passage each."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import chain, islice
from pathlib import PurePosixPath

from graphmem.errors import InvalidInput
from graphmem.ingest.formats.datelines import HEAD_LINES
from graphmem.ingest.formats.markdown import Note, plain_properties, read_front_matter, without_markup
from graphmem.ingest.formats.pages import to_lines
from graphmem.ingest.formats.passages import Passage, passages
from graphmem.ingest.formats.source import MAX_RECORD_BYTES, Refused, Report, Source, decoded
from graphmem.inputs import Document
from graphmem.models import Scalar
from graphmem.models.metadata import UNDATED

_TAGGED = 1000  # passages of a note whose tags are those of all of them
_CHARSET = re.compile(rb"<meta[^<>]{0,200}?charset\s{0,4}=\s{0,4}[\"']?([\w.:-]{1,40})", re.IGNORECASE)


def documents(source: Source, refused: Report) -> Iterator[Document]:
    """Yield the passages of a text, of Markdown or of a page as documents."""
    note = Note()
    if source.format == "html":
        try:
            note.title, lines = html_lines(source)
        except InvalidInput as error:
            refused(Refused(source.name, 1, str(error)))
            return
    else:
        lines = source.texts(refused)
        if source.format == "markdown":
            note, lines = read_front_matter(lines)
    head = list(islice(lines, HEAD_LINES))
    lines, at = chain(head, lines), source.dated(note.dated, [line for _, line in head])
    root = note.title or (source.stem and PurePosixPath(source.stem).name)
    of_file: dict[str, Scalar] = {"file": source.name}
    if source.dated_by == "modification time":
        of_file[UNDATED] = True
    found = passages(lines, markdown=source.format != "text")
    for raw, shown, metadata in _shown(note, found) if source.format == "markdown" else ((p, p, {}) for p in found):
        yield Document(
            text=shown.text,
            title=_title(root, shown),
            occurred_at=at,
            external_id=source.id_from(" > ".join(raw.path) or root, raw.text),
            metadata={**metadata, **of_file, "line": shown.line},
        )


def _title(name: str | None, passage: Passage) -> str | None:
    """Return the path of the headings of a passage, below the name of its document if no heading is its title."""
    is_below = passage.level > 1 and name not in (None, *passage.path[:1])
    return " > ".join(((name,) if is_below and name else ()) + passage.path) or name


def _shown(note: Note, found: Iterator[Passage]) -> Iterator[tuple[Passage, Passage, dict[str, Scalar]]]:
    """Yield the passages of a note, as they are written and as they are shown, with their metadata.

    Links are those of the passage and of the properties, tags those of the whole note: of its properties and of its
    first 1,000 passages. A note without a text has its properties as the text.
    """
    of_note: dict[str, None] = {}
    note.properties = plain_properties(note.properties, of_note)

    def shown(raw: Passage, tags: dict[str, None]) -> tuple[Passage, Passage, dict[str, None]]:
        links = dict(of_note)
        path, text = (tuple(without_markup(each, tags, links) for each in part) for part in (raw.path, [raw.text]))
        return raw, Passage(path, text[0], raw.line, raw.level), links

    head = [shown(raw, note.tags) for raw in islice(found, _TAGGED)]
    if not head and (text := note.text):
        head = [shown(Passage((), text, 1), note.tags)]
    for raw, plain, links in chain(head, (shown(raw, {}) for raw in found)):
        yield raw, plain, note.metadata(links)


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
    title, lines = to_lines(decoded(data, stated and stated[1].decode(), source.encoding))
    return title, iter(enumerate(lines, 1))
