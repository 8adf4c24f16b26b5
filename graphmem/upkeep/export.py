"""Export of a memory as JSON lines: a header, the rows, and a last line with their counts and digest."""

from __future__ import annotations

import hashlib
import json
import os
from collections import Counter
from collections.abc import Callable
from typing import IO, cast

from graphmem.errors import BackendUnavailable
from graphmem.models import Model, Scope, utc_now
from graphmem.output_files import output_file
from graphmem.protocols import GraphBackend
from graphmem.upkeep.export_file import FORMAT, VERSION
from graphmem.upkeep.scope_rows import Checksum, References, RowKind, all_rows, to_json

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
    left_out
        Number of references that were left out because the row was deleted past graphmem, by SQL or by Cypher.
    """

    scope: str
    rows: int
    counts: dict[str, int]
    checksum: str
    left_out: int = 0


def export(
    backend: GraphBackend,
    scope: Scope,
    target: Target,
    *,
    vectors: bool = True,
    force: bool = False,
    on_rows: OnRows | None = None,
) -> Exported:
    """Write all rows of a scope from one snapshot (`GraphBackend.snapshot`), in constant memory but for 8 bytes a row.

    The file is written under a temporary name and renamed when it is complete (`graphmem.output_files`), so that an
    earlier file stays until then.

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
        If the file can't be written or may not be replaced (`graphmem.output_files.output_file`).
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
    references = References()
    for kind, row in all_rows(backend, scope, extras=True, references=references):
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
    return Exported(
        scope=str(scope),
        rows=done,
        counts={str(k): n for k, n in counts.items()},
        checksum=total.text(),
        left_out=references.left_out,
    )


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
