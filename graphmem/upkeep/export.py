"""A memory is written as lines of JSON: a header, its rows, and a last line that tells whether all is there."""

from __future__ import annotations

import hashlib
import json
import os
from collections import Counter
from collections.abc import Callable
from typing import IO, cast

from graphmem.errors import BackendUnavailable
from graphmem.models import Model, Scope, utc_now
from graphmem.outputs import output_file
from graphmem.protocols import GraphBackend
from graphmem.upkeep.rows import Checksum, RowKind, all_rows, to_json

FORMAT = "graphmem-export"
VERSION = 1

Target = str | os.PathLike[str] | IO[str] | IO[bytes]
OnRows = Callable[[int], None]

_TOLD_EVERY = 1000


class Exported(Model):
    """What was exported.

    Attributes
    ----------
    scope
        The scope, as `in_scope` and `--scope` read it.
    rows
        How many in all; `counts` tells how many of each kind.
    checksum
        `GraphMemory.checksum` of what was written.
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
    """Write everything that a scope holds at one moment (`GraphBackend.snapshot`); memory doesn't grow with it.

    A file is written under another name and renamed when it is complete (`graphmem.outputs`), so that what was there
    before stays until then.

    Parameters
    ----------
    backend, scope
        Whose memory.
    target
        A path, or an open file of text or bytes.
    vectors
        Whether the index is written, too; without it the memory that imports the rows makes its own.
    force
        Whether a file that graphmem did not write may be replaced.
    on_rows
        Called with the rows written so far, now and then.

    Raises
    ------
    InvalidInput
        If the file can't be written or may not be replaced (`graphmem.outputs.output_file`).
    BackendUnavailable
        If the server had the reading begun anew when an open file had something already; a path is written anew.
    """
    if not isinstance(target, (str, os.PathLike)):
        return _to_stream(backend, scope, target, vectors=vectors, on_rows=on_rows)
    with output_file(target, force=force) as file:

        def work(at_once: GraphBackend) -> Exported:
            file.seek(0)
            file.truncate()
            return _write(at_once, scope, file, vectors=vectors, on_rows=on_rows)

        return backend.snapshot(work)


def _to_stream(
    backend: GraphBackend, scope: Scope, file: IO[str] | IO[bytes], *, vectors: bool, on_rows: OnRows | None
) -> Exported:
    runs: list[int] = []

    def work(at_once: GraphBackend) -> Exported:
        if runs:
            raise BackendUnavailable("export: the store began anew, and what is written can't be taken back; try again")
        runs.append(1)
        return _write(at_once, scope, file, vectors=vectors, on_rows=on_rows)

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
        if on_rows is not None and done % _TOLD_EVERY == 0:
            on_rows(done)
    if on_rows is not None:
        on_rows(done)
    told = {"counts": dict(counts), "checksum": total.text(), "digest": lines.digest()}
    lines.write(_json({"end": told}))
    return Exported(scope=str(scope), rows=done, counts={str(k): n for k, n in counts.items()}, checksum=total.text())


class _Lines:
    """Writes lines to a file of text or bytes, and keeps the digest of their bytes."""

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
