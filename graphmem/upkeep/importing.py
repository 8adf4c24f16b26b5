"""An exported memory is read back: checked as a whole where that is possible, then stored batch by batch."""

from __future__ import annotations

import hashlib
import json
import os
from collections import Counter
from collections.abc import Collection, Generator, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from pathlib import Path
from typing import IO, Any, cast

import pydantic_core

from graphmem.errors import Conflict, InvalidInput
from graphmem.models import Changes, Edge, EdgeQuery, Entity, Episode, EpisodeQuery, Model, Outcome, Scope
from graphmem.protocols import GraphBackend
from graphmem.upkeep.export import FORMAT, VERSION, OnRows
from graphmem.upkeep.joining import HeldBack, Joining, outcome_of
from graphmem.upkeep.rows import Row, RowKind, from_json, is_row_kind

Source = str | os.PathLike[str] | IO[str] | IO[bytes]

_PART: dict[RowKind, str] = {
    "entity": "entities",
    "alias": "aliases",
    "edge": "edges",
    "mention": "mentions",
    "community": "communities",
    "membership": "memberships",
    "recall": "recalls",
    "merge": "merges",
    "index": "index",
    "mark": "marks",
}
"""Kind → the field of `Changes` that brings it; episodes are stored by themselves."""


class Imported(Model):
    """What was imported.

    Attributes
    ----------
    scope
        Key of the scope that it went to.
    rows
        How many in all; `counts` tells how many of each kind.
    complete
        False if the file was cut off, or lines of it were missing, doubled or changed, and it was asked to take what
        is there.
    """

    scope: str
    rows: int
    counts: dict[str, int]
    complete: bool = True


@dataclass(frozen=True, slots=True)
class ImportOptions:
    """How a file is taken in.

    Attributes
    ----------
    rename
        Take in a file of another scope; its rows become rows of the scope that is imported to.
    vectors
        Whether the index in the file is taken in, too; else the memory makes its own.
    cut_off
        Take in what there is of a file that is cut off, or whose rows aren't those that its last line tells.
    batch_size
        Rows in one transaction.
    """

    rename: bool = False
    vectors: bool = True
    cut_off: bool = False
    batch_size: int = 2000


@dataclass(frozen=True, slots=True)
class Header:
    """The first line of a file."""

    scope: Scope
    version: int


def import_rows(
    backend: GraphBackend,
    scope: Scope,
    source: Source,
    options: ImportOptions | None = None,
    on_rows: OnRows | None = None,
) -> Imported:
    """Store the rows of an exported memory, batch by batch.

    A file that can be read twice (a path, or an open one that can be rewound) is checked whole before anything is
    stored: that it is all there and as it was written, and of one scope. Each batch is one transaction. Of rows that
    are there only what the store lacks is taken (`Joining`), so that it may be interrupted, given twice, and be older.
    Memory doesn't grow with the rows, but for some 300 bytes an episode that waits for extraction: these are kept from
    the queue until all rows are stored, after an interrupted import until it is run again, at most a day (`HeldBack`).

    Parameters
    ----------
    backend, scope
        Where they go.
    source
        A path, or an open file of text or bytes.
    options
        How the file is taken in.
    on_rows
        Called with the rows stored so far after each batch.

    Raises
    ------
    InvalidInput
        If the file is none of ours, of another version or scope, cut off, changed, or has a row that can't be taken;
        the message names the line.
    Conflict
        If the scope holds other rows under the same names, or the store the same ids in another scope; what was stored
        before that line stays.
    """
    options = options or ImportOptions()
    with _opened(source) as file, _telling(source):
        parted: set[str] = set()
        if checked := file.seekable():
            begin = file.tell()
            parted = _check(file, scope, options)
            file.seek(begin)
        return _Import(backend, scope, options, on_rows, parted).run(file, checked=checked)


def read_header(source: Source) -> Header:
    """Return what the first line of a file says; an open one, which has to be seekable, stays where it was.

    Raises
    ------
    InvalidInput
        If there is no such file, it is none of ours, or of another version.
    """
    with _opened(source) as file, _telling(source):
        begin = file.tell()
        line = _data(file.readline())
        file.seek(begin)
        return _header(line)


# Lines --------------------------------------------------------------------------------------------


def _opened(source: Source) -> AbstractContextManager[IO[str] | IO[bytes]]:
    """Open a path; what is open stays open."""
    if not isinstance(source, (str, os.PathLike)):
        return nullcontext(source)
    path = Path(source)
    if not path.is_file():
        raise InvalidInput(f"import: there is no file {path}")
    return path.open("rb")


@contextmanager
def _telling(source: Source) -> Generator[None]:
    """Put the name of the file in front of what is wrong with it."""
    name = f" of {os.fspath(source)}" if isinstance(source, (str, os.PathLike)) else ""
    try:
        yield
    except (Conflict, InvalidInput) as error:
        raise type(error)(f"import{name}, {error}") from error.__cause__


def _data(line: bytes | str) -> bytes:
    return line.encode("utf-8", "surrogatepass") if isinstance(line, str) else line


def _object(number: int, line: bytes) -> dict[str, Any]:
    try:
        try:
            value = pydantic_core.from_json(line, cache_strings="keys")
        except ValueError:
            value = json.loads(line)  # takes lone surrogates, which names from anywhere may hold
    except ValueError:
        cut = "" if line.endswith(b"\n") else "; the file ends in the middle of it"
        raise InvalidInput(f"line {number}: is no JSON{cut}") from None
    if not isinstance(value, dict):
        raise InvalidInput(f"line {number}: expected an object")
    return cast("dict[str, Any]", value)


def _header(line: bytes) -> Header:
    value = _object(1, line) if line.startswith(b"{") else {}
    if value.get("format") != FORMAT:
        raise InvalidInput(f"line 1: is not the first line of an exported memory ({FORMAT!r} is missing)")
    version, scope = value.get("version"), value.get("scope")
    if version != VERSION:
        raise InvalidInput(
            f"line 1: the file has version {version!r} of the format, this program reads version {VERSION}"
        )
    if not isinstance(scope, str) or not scope:
        raise InvalidInput(f"line 1: scope {scope!r} is none")
    return Header(Scope.from_key(scope), VERSION)


def _require_scope(header: Header, scope: Scope, options: ImportOptions) -> None:
    if header.scope != scope and not options.rename:
        raise InvalidInput(
            f"line 1: the file is of scope {header.scope}, not of {scope}; import it there, or ask for the "
            "scope to be renamed (rename=True; on the command line --scope)"
        )


@dataclass(slots=True)
class _Seen:
    """What was read so far, for the last line to be compared with."""

    digest: Any = field(default_factory=lambda: hashlib.blake2b(digest_size=16))
    counts: Counter[str] = field(default_factory=Counter[str])

    def require(self, number: int, line: bytes) -> None:
        """Raise InvalidInput if the last line isn't one, or tells of other rows than those that were read."""
        told, digest = _end(number, line)
        wrong = next((k for k in sorted({*told, *self.counts}) if told.get(k, 0) != self.counts[k]), None)
        if wrong is not None:
            raise InvalidInput(
                f"line {number}: the file had {told.get(wrong, 0)} rows of kind {wrong}, {self.counts[wrong]} "
                "are there: lines are missing or doubled"
            )
        if digest != self.digest.hexdigest():
            raise InvalidInput(f"line {number}: a line before was changed since the file was written")


def _end(number: int, line: bytes) -> tuple[dict[str, int], str]:
    """Return the counts of rows and the digest that a last line tells."""
    end = _object(number, line)["end"]
    told = cast("dict[str, object]", end) if isinstance(end, dict) else {}
    counts, digest = told.get("counts"), told.get("digest")
    if not isinstance(counts, dict) or not isinstance(digest, str):
        raise InvalidInput(
            f"line {number}: is the last line of no exported memory: its counts or its digest are missing"
        )
    of_kinds = cast("dict[str, object]", counts)
    for kind, count in of_kinds.items():
        if type(count) is not int:
            raise InvalidInput(f"line {number}: the count of kind {kind} is {count!r}, which is no number of rows")
    return cast("dict[str, int]", of_kinds), digest


def _check(file: IO[str] | IO[bytes], scope: Scope, options: ImportOptions) -> set[str]:
    """Read a file through before anything of it is stored; return the entities that were merged, and parted again."""
    seen = _Seen()
    merged: dict[str, bool] = {}
    prefix = b""
    number = 0
    ended = False
    header: Header | None = None
    for number, raw in enumerate(file, 1):
        line = _data(raw)
        if header is None:
            header = _header(line)
            _require_scope(header, scope, options)
            in_scope = json.dumps(header.scope.key, ensure_ascii=False)
            prefix = f',"scope":{in_scope},"row":'.encode()
        elif ended:
            raise InvalidInput(_behind(number))
        elif line.startswith(b'{"end":'):
            if not options.cut_off:
                seen.require(number, line)
            ended = True
        elif not line.endswith(b"\n") and options.cut_off:
            break  # a piece of a line
        else:
            head, _, kind = line[: line.find(b",")].partition(b'{"kind":')
            if head or not line[9 + len(kind) - 1 :].startswith(prefix):
                kind = json.dumps(_envelope(number, line, header)[0]).encode()  # written by another hand
            seen.counts[kind.decode().strip('"')] += 1
            if kind.strip(b'"') == b"merge":
                row = _envelope(number, line, header)[1]
                entity_id = _id_of_merged(row)
                merged[entity_id] = merged.get(entity_id, False) or row.get("undone_at") is None
        seen.digest.update(line)
    if header is None:
        raise InvalidInput("the file is empty")
    if not ended and not options.cut_off:
        raise InvalidInput(_cut_off(number))
    return {entity_id for entity_id, still in merged.items() if not still}


def _id_of_merged(row: Mapping[str, Any]) -> str:
    merged = row.get("merged")
    return str(cast("dict[str, Any]", merged).get("id")) if isinstance(merged, dict) else ""


def _behind(number: int) -> str:
    return f"line {number}: stands behind the last line of an exported memory"


def _cut_off(number: int) -> str:
    return (
        f"line {number}: the file is cut off behind it: its last line is missing; fetch the whole file, or ask "
        "for what is there (cut_off=True; on the command line --cut-off)"
    )


def _envelope(number: int, line: bytes, header: Header) -> tuple[RowKind, dict[str, Any]]:
    """Return the kind and the fields of a row."""
    value = _object(number, line)
    kind, row = value.get("kind"), value.get("row")
    if not is_row_kind(kind):
        raise InvalidInput(f"line {number}: kind {kind!r} is none that this program knows")
    if value.get("scope") != header.scope.key:
        raise InvalidInput(
            f"line {number}: the row is of scope {value.get('scope')!r}, the file of {header.scope.key!r}"
        )
    if not isinstance(row, dict):
        raise InvalidInput(f"line {number}: the row is no object")
    return kind, cast("dict[str, Any]", row)


# Storing ------------------------------------------------------------------------------------------

_Read = tuple[int, RowKind, Row]


class _Import:
    def __init__(
        self,
        backend: GraphBackend,
        scope: Scope,
        options: ImportOptions,
        on_rows: OnRows | None,
        parted: Collection[str],
    ) -> None:
        self._backend = backend
        there = backend.stats(scope)
        is_empty = not (there.episodes or there.entities or there.recalls)
        self._joining = None if is_empty else Joining(backend, scope, parted)
        self._held_back = HeldBack()
        self._scope = scope
        self._options = options
        self._on_rows = on_rows
        self._stored: Counter[str] = Counter()
        self._complete = False

    def run(self, file: IO[str] | IO[bytes], *, checked: bool) -> Imported:
        """Store what a file holds; one that wasn't checked before, or needn't be whole, is compared on the way."""
        rows = self._rows(file, None if checked and not self._options.cut_off else _Seen())
        while batch := list(islice(rows, self._options.batch_size)):
            self._store(batch)
            if self._on_rows is not None:
                self._on_rows(self._stored.total())
        self._release()
        return Imported(
            scope=self._scope.key, rows=self._stored.total(), counts=dict(self._stored), complete=self._complete
        )

    def _rows(self, file: IO[str] | IO[bytes], seen: _Seen | None) -> Iterator[_Read]:
        header: Header | None = None
        number = 0
        ended = False
        for number, raw in enumerate(file, 1):
            line = _data(raw)
            if header is None:
                header = _header(line)
                _require_scope(header, self._scope, self._options)
            elif ended:
                raise InvalidInput(_behind(number))
            elif line.startswith(b'{"end":'):
                ended = True
                self._complete = seen is None or self._is_all(seen, number, line)
            elif not line.endswith(b"\n") and self._options.cut_off:
                return  # a piece of a line
            else:
                kind, fields = _envelope(number, line, header)
                if seen is not None:
                    seen.counts[kind] += 1
                if kind != "index" or self._options.vectors:
                    yield number, kind, self._row(number, kind, fields)
            if seen is not None:
                seen.digest.update(line)
        if not ended and not self._options.cut_off:
            raise InvalidInput(_cut_off(number))

    def _is_all(self, seen: _Seen, number: int, line: bytes) -> bool:
        """Tell whether what was read is what the last line tells; raise where it has to be."""
        try:
            seen.require(number, line)
        except InvalidInput:
            if not self._options.cut_off:
                raise
            return False
        return True

    def _row(self, number: int, kind: RowKind, fields: Mapping[str, Any]) -> Row:
        try:
            return from_json(kind, fields, self._scope)
        except (KeyError, TypeError, ValueError) as error:
            what = f"the field {error} is missing" if isinstance(error, KeyError) else str(error)
            raise InvalidInput(f"line {number}: {what}") from error

    def _store(self, batch: Sequence[_Read]) -> None:
        try:
            self._backend.atomic(lambda: self._write(batch))
        except (Conflict, InvalidInput) as error:
            if len(batch) == 1:
                raise self._placed(batch[0], error) from error
            for one in batch:  # to name the line; those before it are stored, as they would be by smaller batches
                self._store([one])
            return
        self._stored.update(Counter(kind for _, kind, _ in batch))

    def _write(self, batch: Sequence[_Read]) -> None:
        episodes = [row for _, _, row in batch if isinstance(row, Episode)]
        if episodes:
            self._put_episodes(episodes)
        parts: dict[str, list[Row]] = {}
        for _, kind, row in batch:
            if kind != "episode":
                parts.setdefault(_PART[kind], []).append(row)
        if self._joining is None:
            changes: dict[str, Any] = {name: tuple(rows) for name, rows in parts.items()}
        else:
            changes = self._joining.changes(parts)
        if changes:
            self._backend.write(self._scope, Changes(**changes))

    def _put_episodes(self, episodes: Sequence[Episode]) -> None:
        """Store episodes; of those that are there already, only how far they were processed is taken over."""
        there = self._backend.get_episodes([self._scope], [episode.id for episode in episodes])
        held = self._held_back.take(episodes, there)
        new = [held.get(episode.id, episode) for episode in episodes if episode.id not in there]
        for episode, (stored, _) in zip(new, self._backend.add_episodes(self._scope, new), strict=True):
            if stored != episode.id:
                raise Conflict(
                    f"episode {episode.id}: scope {self._scope} has its external_id {episode.external_id!r} as "
                    f"episode {stored}"
                )
        outcomes = [outcome_of(episode) for episode in held.values() if episode.id in there]
        if self._joining is not None:
            outcomes += self._joining.outcomes([e for e in episodes if e.id not in held], there)
        self._settle(outcomes)

    def _release(self) -> None:
        """Give the episodes that were held back to the queue, as the file has them."""
        size = self._options.batch_size
        ids = self._held_back.ids()
        while batch := list(islice(ids, size)):
            self._backend.atomic(partial(self._let_go, batch))

    def _let_go(self, ids: Sequence[str]) -> None:
        self._settle(self._held_back.outcomes(self._backend.get_episodes([self._scope], ids)))

    def _settle(self, outcomes: Sequence[Outcome]) -> None:
        if outcomes:
            self._backend.write(self._scope, Changes(outcomes=tuple(outcomes)))

    def _placed(self, read: _Read, error: Conflict | InvalidInput) -> Conflict | InvalidInput:
        """Return an error with the line, and with what helps."""
        number, kind, row = read
        hint = ""
        if isinstance(error, Conflict) and self._is_named_here(row):
            hint = "; import into a scope of its own"
        elif isinstance(error, Conflict):
            hint = (
                "; this store has the rows of the file in another scope already, and ids are unique in a store: "
                "import into another store"
            )
        return type(error)(f"line {number}: {kind}: {error}{hint}")

    def _is_named_here(self, row: Row) -> bool:
        """Tell whether the scope has another row under the name of this one."""
        if isinstance(row, Episode):
            ids = () if row.external_id is None else (row.external_id,)
            return bool(ids and self._backend.find_episodes([self._scope], EpisodeQuery(external_ids=ids), limit=1))
        if isinstance(row, Entity):
            names = self._backend.resolve_names(self._scope, [row.canonical_name])
            return any((e.canonical_name, e.entity_type) == (row.canonical_name, row.entity_type) for _, e in names)
        if isinstance(row, Edge):
            query = EdgeQuery(keys=(row.key,), versions="active")
            return bool(self._backend.find_edges([self._scope], query, limit=1))
        return False
