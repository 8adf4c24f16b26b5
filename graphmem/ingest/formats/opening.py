"""Opening of a file: stream, encoding, format, and whether it holds triples."""

from __future__ import annotations

import re
from collections.abc import Collection, Generator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, tzinfo
from functools import partial
from io import BufferedReader
from pathlib import Path
from typing import IO, cast

from graphmem.errors import InvalidInput
from graphmem.ingest.formats.archives import (
    File,
    is_other_encoding,
    is_stream,
    modified_at,
    name_in,
    open_binary,
    size_of,
)
from graphmem.ingest.formats.detection import (
    SUFFIXES,
    first_json,
    guess_format,
    header_of,
    is_separator_line,
    is_triple,
    require_text,
)
from graphmem.ingest.formats.source import FORMATS, CountedStream, DateOrder, Format, Recoded, Source, read_some
from graphmem.ingest.records import is_triple_header, is_turn_header, renamed
from graphmem.ontology import SHORT_NAMES

_HEAD_BYTES = 256 << 10  # available for guessing the format
_OWN_ENCODINGS: frozenset[Format] = frozenset({"mbox", "eml", "html"})
"""Formats whose parts state their encodings."""


@contextmanager
def open_source(
    path: str | File,
    *,
    name: str | None = None,
    form: Format | None = None,
    zone: tzinfo | None = None,
    short_names: Collection[str] = SHORT_NAMES,
    date_order: DateOrder | None = None,
    columns: Mapping[str, str] | None = None,
    encoding: str | None = None,
    stdin: IO[bytes] | None = None,
) -> Generator[Source]:
    """Open a file for reading its records.

    Parameters
    ----------
    path
        A file, on disk or in an archive, or ``-`` for `stdin`.
    name
        Name of the file for ids, sessions and messages; None takes that of `name_in`.
    form
        Format of the file; None guesses it from the suffix and the beginning.
    zone
        Time zone of times without one; if it is None, such lines are refused.
    short_names
        Canonical names of triples that may be shorter than three characters.
    date_order
        Order of day, month and year in a WhatsApp export with ambiguous dates.
    columns, encoding
        As in `FileOptions`.
    stdin
        The stream read for ``-``.

    Yields
    ------
    Source
        Valid inside the ``with`` block.

    Raises
    ------
    InvalidInput
        If the file can't be opened or has no readable format; the message describes the content found.
    """
    path = Path(path) if isinstance(path, str) else path
    make = partial(
        Source,
        format=form or "text",
        zone=zone,
        short_names=short_names,
        date_order=date_order,
        columns=columns or {},
        encoding=encoding,
    )
    if str(path) == "-":
        if stdin is None:
            raise InvalidInput("-: no standard input to read from")
        stream = cast("IO[bytes]", Recoded(stdin, encoding)) if encoding else stdin
        yield _opened(make(name="-", size=None, modified_at=None), stream, guess=form is None)
        return
    try:
        stream = open_binary(path)
    except OSError as error:
        raise InvalidInput(f"{path}: {error.strerror}") from error
    with stream:
        name = name or name_in(path)
        if is_stream(path):
            source = make(name=name, size=None, modified_at=None)
        else:
            source = make(name=name, size=size_of(path), modified_at=modified_at(path, zone or UTC), path=path)
        forms = {form} if form else {*SUFFIXES.get(path.suffix.lower(), FORMATS)}
        coded = BufferedReader(Recoded(stream, encoding)) if encoding and not forms <= _OWN_ENCODINGS else stream
        yield _opened(source, coded, guess=form is None)


def head_of(file: File) -> str:
    """Return the beginning of a file, from which its format is detected."""
    with open_binary(file) as stream:
        return _text_of(stream.read(_HEAD_BYTES))


def _opened(source: Source, stream: IO[bytes], *, guess: bool) -> Source:
    head = stream.read(_HEAD_BYTES) if source.size is not None else _first_of(stream)
    require_text(source.name, head)
    text = _text_of(head)
    if guess:
        fallback = SUFFIXES.get(Path(source.name).suffix.lower(), ("turns" if text.strip() else "text",))[0]
        try:
            source.format = guess_format(source.name, text) or fallback
        except InvalidInput:
            if not source.columns:
                raise
            source.format = fallback  # each record tells whether it has the columns
    is_checked = source.encoding is None and source.format not in _OWN_ENCODINGS
    if is_checked and source.path is not None and is_other_encoding(source.path):
        raise InvalidInput(f"{source.name}: is not UTF-8; save it as UTF-8, or pass its encoding: --encoding cp1252")
    lines = re.split(r"\r\n|\r|\n", text, maxsplit=2) if source.format == "csv" else []
    header = fields_of(source, header_of(next((line for line in lines if not is_separator_line(line)), "")))
    source.holds_triples = (
        source.format == "triples"
        or (source.format == "csv" and (is_triple_header(header) or not is_turn_header(header)))
        or (source.format == "json" and is_triple(first_json(text)))
    )
    source.stream = BufferedReader(CountedStream(head, stream, source))
    return source


def _first_of(stream: IO[bytes]) -> bytes:
    """Return the data received on standard input so far, at least one line; the writer may pause after it."""
    head = b""
    while len(head) < _HEAD_BYTES and b"\n" not in head.lstrip():
        if not (more := read_some(stream, _HEAD_BYTES - len(head))):
            break
        head += more
    return head


def _text_of(head: bytes) -> str:
    return head.removeprefix(b"\xef\xbb\xbf").decode("utf-8", "replace")


def fields_of(source: Source, names: Sequence[str]) -> list[str]:
    """Return the names of columns, renamed to the fields that they hold."""
    return list(renamed(dict(zip(names, names, strict=True)), source.columns))
