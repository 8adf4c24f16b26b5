"""Export of a memory as JSON lines: a header, the rows, and a last line with their counts and digest."""

from __future__ import annotations

import hashlib
import json
import os
from collections import Counter
from collections.abc import Callable, Collection, Generator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, cast

import pydantic_core

from graphmem.errors import BackendUnavailable, Conflict, InvalidInput
from graphmem.models import Model, Scope, utc_now
from graphmem.outputs import belongs_to_database, output_file
from graphmem.protocols import GraphBackend
from graphmem.text import counted
from graphmem.upkeep.scope_rows import Checksum, RowKind, all_rows, is_row_kind, to_json

Source = str | os.PathLike[str] | IO[str] | IO[bytes]


@dataclass(frozen=True, slots=True)
class Header:
    """The first line of a file."""

    scope: Scope
    version: int


def read_header(source: Source) -> Header:
    """Return the header of a file. An open file has to be seekable; its position is kept.

    Raises
    ------
    InvalidInput
        If the file doesn't exist, isn't an exported memory, or has another version.
    """
    with opened(source) as file, errors_named(source):
        begin = file.tell()
        line = data_of(file.readline())
        file.seek(begin)
        return header_of(line)


def opened(source: Source) -> AbstractContextManager[IO[str] | IO[bytes]]:
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
def errors_named(source: Source) -> Generator[None]:
    """Prefix errors with the name of the file."""
    name = f" of {os.fspath(source)}" if isinstance(source, (str, os.PathLike)) else ""
    try:
        yield
    except (Conflict, InvalidInput) as error:
        raise type(error)(f"import{name}, {error}") from error.__cause__


def data_of(line: bytes | str) -> bytes:
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


def header_of(line: bytes) -> Header:
    """Return the header in a first line; raise InvalidInput if it isn't one, or has another version."""
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
    return Header(Scope.from_key(scope), VERSION)


def require_scope(header: Header, scope: Scope, *, rename: bool) -> None:
    """Raise InvalidInput if the file is of another scope and isn't to be renamed."""
    if header.scope != scope and not rename:
        raise InvalidInput(
            f"line 1: the file is of scope {header.scope}, not of {scope}; import it there, or ask for the "
            "scope to be renamed (rename=True; on the command line --scope)"
        )


@dataclass(slots=True)
class Seen:
    """Digest and counts of the lines read so far, compared with the last line."""

    digest: Any = field(default_factory=lambda: hashlib.blake2b(digest_size=16))
    counts: Counter[str] = field(default_factory=Counter[str])

    def require(self, number: int, line: bytes) -> None:
        """Raise InvalidInput if the last line isn't valid, or doesn't match the rows that were read."""
        counts, digest = _end(number, line)
        wrong = next((k for k in sorted({*counts, *self.counts}) if counts.get(k, 0) != self.counts[k]), None)
        if wrong is not None:
            raise InvalidInput(
                f"line {number}: the file had {counted(counts.get(wrong, 0), 'row')} of kind {wrong}, but "
                f"{self.counts[wrong]} were read: lines are missing or duplicated"
            )
        if digest != self.digest.hexdigest():
            raise InvalidInput(f"line {number}: a line before it was changed after the file was written")


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


def check(
    file: IO[str] | IO[bytes],
    scope: Scope,
    kinds: Collection[str],
    on_row: Callable[[int, RowKind, Mapping[str, Any]], None],
    *,
    rename: bool,
    cut_off: bool,
) -> None:
    """Validate a whole file before any of it is stored; call `on_row` with each row of some kinds."""
    seen = Seen()
    prefix = b""
    number = 0
    ended = False
    header: Header | None = None
    for number, raw in enumerate(file, 1):
        line = data_of(raw)
        if header is None:
            header = header_of(line)
            require_scope(header, scope, rename=rename)
            in_scope = json.dumps(header.scope.key, ensure_ascii=False)
            prefix = f',"scope":{in_scope},"row":'.encode()
        elif ended:
            raise InvalidInput(extra_line_error(number))
        elif line.startswith(b'{"end":'):
            if not cut_off:
                seen.require(number, line)
            ended = True
        elif not line.endswith(b"\n") and cut_off:
            break  # an incomplete line
        else:
            head, _, kind = line[: line.find(b",")].partition(b'{"kind":')
            if head or not line[9 + len(kind) - 1 :].startswith(prefix):
                kind = json.dumps(envelope(number, line, header)[0]).encode()  # not written by `export`
            seen.counts[kind.decode().strip('"')] += 1
            if kind.decode().strip('"') in kinds:
                on_row(number, *envelope(number, line, header))
        seen.digest.update(line)
    if header is None:
        raise InvalidInput("the file is empty")
    if not ended and not cut_off:
        raise InvalidInput(missing_end_error(number))


def extra_line_error(number: int) -> str:
    """Return the error message for a line after the last one."""
    return f"line {number}: follows the last line of an exported memory"


def missing_end_error(number: int) -> str:
    """Return the error message for a missing last line."""
    return (
        f"line {number}: the file is cut off after it: its last line is missing; fetch the whole file, or import "
        "the existing lines (cut_off=True; on the command line --cut-off)"
    )


def envelope(number: int, line: bytes, header: Header) -> tuple[RowKind, dict[str, Any]]:
    """Return the kind and the fields of a row."""
    value = _object(number, line)
    kind, row = value.get("kind"), value.get("row")
    if not is_row_kind(kind):
        raise InvalidInput(f"line {number}: kind {kind!r} is unknown")
    if value.get("scope") != header.scope.key:
        raise InvalidInput(
            f"line {number}: the row is of scope {value.get('scope')!r}, the file of {header.scope.key!r}"
        )
    if not isinstance(row, dict):
        raise InvalidInput(f"line {number}: the row is not an object")
    return kind, cast("dict[str, Any]", row)


FORMAT = "graphmem-export"
VERSION = 1

Target = str | os.PathLike[str] | IO[str] | IO[bytes]
OnRows = Callable[[int], None]

_REPORT_INTERVAL = 1000


class Exported(Model):
    """Result of an export.

    Attributes
    ----------
    scope
        The scope, in the format of `in_scope` and `--scope`.
    rows
        Number of rows written.
    counts
        Number of rows written by kind.
    checksum
        `GraphMemory.admin.checksum` of the rows.
    """

    scope: str
    rows: int
    counts: dict[str, int]
    checksum: str


def export(
    backend: GraphBackend,
    scope: Scope,
    target: Target,
    *,
    vectors: bool = True,
    force: bool = False,
    on_rows: OnRows | None = None,
) -> Exported:
    """Write all rows of a scope from one snapshot (`GraphBackend.snapshot`), in constant memory.

    The file is written under a temporary name and renamed when it is complete (`graphmem.outputs`), so that an earlier
    file stays until then.

    Parameters
    ----------
    backend, scope
        Store and scope to export.
    target
        A path, or an open text or binary file.
    vectors
        Whether to write the index as well; without it, the importing memory builds its own.
    force
        Whether a file that graphmem did not write may be replaced.
    on_rows
        Called at intervals with the number of rows written so far.

    Raises
    ------
    InvalidInput
        If the file can't be written or may not be replaced (`graphmem.outputs.output_file`).
    BackendUnavailable
        If the server restarted the snapshot when rows were already written to an open file. For a path, the file is
        written again from the start.
    """
    if not isinstance(target, (str, os.PathLike)):
        return _to_stream(backend, scope, target, vectors=vectors, on_rows=on_rows)
    with output_file(target, force=force) as file:

        def work(snapshot: GraphBackend) -> Exported:
            file.seek(0)
            file.truncate()
            return _write(snapshot, scope, file, vectors=vectors, on_rows=on_rows)

        return backend.snapshot(work)


def _to_stream(
    backend: GraphBackend, scope: Scope, file: IO[str] | IO[bytes], *, vectors: bool, on_rows: OnRows | None
) -> Exported:
    runs: list[int] = []

    def work(snapshot: GraphBackend) -> Exported:
        if runs:
            raise BackendUnavailable(
                "export: the store restarted the snapshot after rows were written to the open file; try again"
            )
        runs.append(1)
        return _write(snapshot, scope, file, vectors=vectors, on_rows=on_rows)

    return backend.snapshot(work)


def _write(
    backend: GraphBackend, scope: Scope, file: IO[str] | IO[bytes], *, vectors: bool, on_rows: OnRows | None
) -> Exported:
    lines = _Lines(file)
    lines.write(_json({"format": FORMAT, "version": VERSION, "scope": scope.key, "exported_at": utc_now().isoformat()}))
    counts: Counter[RowKind] = Counter()
    total = Checksum()
    in_scope = _json(scope.key)
    done = 0
    for kind, row in all_rows(backend, scope, extras=True):
        if kind == "index" and not vectors:
            continue
        body = to_json(kind, row)
        total.add(kind, body)
        lines.write(f'{{"kind":"{kind}","scope":{in_scope},"row":{body}}}')
        counts[kind] += 1
        done += 1
        if on_rows is not None and done % _REPORT_INTERVAL == 0:
            on_rows(done)
    if on_rows is not None:
        on_rows(done)
    end = {"counts": dict(counts), "checksum": total.text(), "digest": lines.digest()}
    lines.write(_json({"end": end}))
    return Exported(scope=str(scope), rows=done, counts={str(k): n for k, n in counts.items()}, checksum=total.text())


class _Lines:
    """Writer of lines to a text or binary file that keeps the digest of their bytes."""

    def __init__(self, file: IO[str] | IO[bytes]) -> None:
        self._file = file
        self._digest = hashlib.blake2b(digest_size=16)
        self._takes_text = False
        try:
            cast("IO[bytes]", file).write(b"")
        except TypeError:
            self._takes_text = True

    def write(self, line: str) -> None:
        data = f"{line}\n".encode()
        self._digest.update(data)
        if self._takes_text:
            cast("IO[str]", self._file).write(f"{line}\n")
        else:
            cast("IO[bytes]", self._file).write(data)

    def digest(self) -> str:
        return self._digest.hexdigest()


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
