"""The file of an exported memory: its header, and its rows, validated while they are read."""

from __future__ import annotations

import hashlib
import json
import os
from collections import Counter
from collections.abc import Generator, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, cast

import pydantic_core

from graphmem.errors import Conflict, InvalidInput
from graphmem.models import Scope
from graphmem.output_files import belongs_to_database
from graphmem.text import counted
from graphmem.upkeep.scope_rows import TABLES, RowKind, is_row_kind

FORMAT = "graphmem-export"
VERSION = 1

ImportSource = str | os.PathLike[str] | IO[str] | IO[bytes]


def read_scope(source: ImportSource) -> Scope:
    """Return the scope in the first line of a file. An open file has to be seekable; its position is kept.

    Raises
    ------
    InvalidInput
        If the file doesn't exist, isn't an exported memory, or has another version.
    """
    with opened(source) as file, errors_named(source):
        begin = file.tell()
        line = _data_of(file.readline())
        file.seek(begin)
        return _scope_of(line)


def opened(source: ImportSource) -> AbstractContextManager[IO[str] | IO[bytes]]:
    """Open a path; an open file is returned as it is and isn't closed on exit."""
    if not isinstance(source, (str, os.PathLike)):
        return nullcontext(source)
    path = Path(source)
    if not path.is_file():
        raise InvalidInput(f"import: there is no file {path}")
    if belongs_to_database(path):
        raise InvalidInput(f"import: {path} is a database, not an exported memory; import a file that `export` wrote")
    return path.open("rb")


@contextmanager
def errors_named(source: ImportSource) -> Generator[None]:
    """Prefix errors with the name of the file."""
    name = f" of {os.fspath(source)}" if isinstance(source, (str, os.PathLike)) else ""
    try:
        yield
    except (Conflict, InvalidInput) as error:
        raise type(error)(f"import{name}, {error}") from error.__cause__


def _data_of(line: bytes | str) -> bytes:
    """Return a line as bytes."""
    return line.encode("utf-8", "surrogatepass") if isinstance(line, str) else line


def _object(number: int, line: bytes) -> dict[str, Any]:
    try:
        try:
            value = pydantic_core.from_json(line, cache_strings="keys")
        except ValueError:
            value = json.loads(line)  # accepts lone surrogates, which names may contain
    except ValueError:
        cut = "" if line.endswith(b"\n") else "; the file ends in the middle of it"
        raise InvalidInput(f"line {number}: is not JSON{cut}") from None
    if not isinstance(value, dict):
        raise InvalidInput(f"line {number}: expected an object")
    return cast("dict[str, Any]", value)


def _scope_of(line: bytes) -> Scope:
    """Return the scope in a first line; raise InvalidInput if it isn't one, or has another version."""
    value = _object(1, line) if line.startswith(b"{") else {}
    if value.get("format") != FORMAT:
        raise InvalidInput(f"line 1: is not the first line of an exported memory ({FORMAT!r} is missing)")
    version, scope = value.get("version"), value.get("scope")
    if version != VERSION:
        raise InvalidInput(
            f"line 1: the file has version {version!r} of the format, this program reads version {VERSION}"
        )
    if not isinstance(scope, str) or not scope:
        raise InvalidInput(f"line 1: scope {scope!r} is not valid")
    return Scope.from_key(scope)


def _end(number: int, line: bytes) -> tuple[dict[str, int], str]:
    """Return the row counts and the digest in a last line."""
    end = _object(number, line)["end"]
    fields = cast("dict[str, object]", end) if isinstance(end, dict) else {}
    counts, digest = fields.get("counts"), fields.get("digest")
    if not isinstance(counts, dict) or not isinstance(digest, str):
        raise InvalidInput(
            f"line {number}: is not the last line of an exported memory: its counts or its digest are missing"
        )
    of_kinds = cast("dict[str, object]", counts)
    for kind, count in of_kinds.items():
        if type(count) is not int:
            raise InvalidInput(f"line {number}: the count of kind {kind} is {count!r}, expected an integer")
    return cast("dict[str, int]", of_kinds), digest


@dataclass(frozen=True, slots=True)
class Line:
    """A row of a file, which `fields` decodes."""

    number: int
    kind: RowKind
    data: bytes
    scope: Scope

    def fields(self) -> dict[str, Any]:
        """Return the fields of the row."""
        return _envelope(self.number, self.data, self.scope)[1]


class ExportReader:
    """Iterable over the rows of a file that raises InvalidInput, with the line, if the file isn't valid.

    Parameters
    ----------
    file
        The open file.
    scope
        The scope that the file has to be of.
    rename
        Whether it may be of another scope.
    cut_off
        Whether its end may be missing, or not match its rows.
    checked
        Whether the file was read before, so that the last line isn't compared with the rows.

    Attributes
    ----------
    complete
        Whether the last line was there and matches the rows before it.
    """

    def __init__(
        self, file: IO[str] | IO[bytes], scope: Scope, *, rename: bool, cut_off: bool, checked: bool = False
    ) -> None:
        self.complete = False
        self._file = file
        self._scope = scope
        self._rename = rename
        self._cut_off = cut_off
        self._checked = checked
        self._digest = hashlib.blake2b(digest_size=16)
        self._counts: Counter[str] = Counter()

    def __iter__(self) -> Iterator[Line]:
        scope: Scope | None = None
        kinds: dict[bytes, RowKind] = {}
        number = 0
        ended = False
        for number, raw in enumerate(self._file, 1):
            line = _data_of(raw)
            if scope is None:
                scope = self._scope_in(line)
                in_scope = json.dumps(scope.key, ensure_ascii=False)
                kinds = {f'{{"kind":"{kind}","scope":{in_scope},"row":'.encode(): kind for kind in TABLES}
            elif ended:
                raise InvalidInput(f"line {number}: follows the last line of an exported memory")
            elif line.startswith(b'{"end":'):
                ended = True
                self.complete = self._checked or self._is_all(number, line)
            elif not line.endswith(b"\n") and self._cut_off:
                return  # an incomplete line
            else:
                kind = kinds.get(line[: line.find(b'"row":') + 6])  # None if not written by `export`
                row = Line(number, kind or _envelope(number, line, scope)[0], line, scope)
                self._counts[row.kind] += 1
                yield row
            if not self._checked:
                self._digest.update(line)
        if scope is None:
            raise InvalidInput("the file is empty")
        if not ended and not self._cut_off:
            raise InvalidInput(
                f"line {number}: the file is cut off after it: its last line is missing; fetch the whole file, or "
                "import the existing lines (cut_off=True; on the command line --cut-off)"
            )

    def _scope_in(self, line: bytes) -> Scope:
        scope = _scope_of(line)
        if scope != self._scope and not self._rename:
            raise InvalidInput(
                f"line 1: the file is of scope {scope}, not of {self._scope}; import it there, or ask for the "
                "scope to be renamed (rename=True; on the command line --scope)"
            )
        return scope

    def _is_all(self, number: int, line: bytes) -> bool:
        """Return whether the rows read match the last line; raise InvalidInput if not, unless `cut_off` is set."""
        try:
            self._require_all(number, line)
        except InvalidInput:
            if not self._cut_off:
                raise
            return False
        return True

    def _require_all(self, number: int, line: bytes) -> None:
        counts, digest = _end(number, line)
        wrong = next((k for k in sorted({*counts, *self._counts}) if counts.get(k, 0) != self._counts[k]), None)
        if wrong is not None:
            raise InvalidInput(
                f"line {number}: the file had {counted(counts.get(wrong, 0), 'row')} of kind {wrong}, but "
                f"{self._counts[wrong]} were read: lines are missing or duplicated"
            )
        if digest != self._digest.hexdigest():
            raise InvalidInput(f"line {number}: a line before it was changed after the file was written")


def _envelope(number: int, line: bytes, scope: Scope) -> tuple[RowKind, dict[str, Any]]:
    """Return the kind and the fields of a row."""
    value = _object(number, line)
    kind, row = value.get("kind"), value.get("row")
    if not is_row_kind(kind):
        raise InvalidInput(f"line {number}: kind {kind!r} is unknown")
    if value.get("scope") != scope.key:
        raise InvalidInput(f"line {number}: the row is of scope {value.get('scope')!r}, the file of {scope.key!r}")
    if not isinstance(row, dict):
        raise InvalidInput(f"line {number}: the row is not an object")
    return kind, cast("dict[str, Any]", row)
