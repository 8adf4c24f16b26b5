"""Import of an exported memory: validated as a whole if the file is seekable, then stored batch by batch."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import Any, cast

from graphmem.errors import Conflict, InvalidInput
from graphmem.inference.premises import settle_all, write_facts
from graphmem.ingest.corrections import reopen_ended
from graphmem.models import (
    Changes,
    Edge,
    EdgeQuery,
    Entity,
    Episode,
    EpisodeQuery,
    MergeQuery,
    Model,
    ProcessingResult,
    Scope,
)
from graphmem.ontology import DEFAULT_ONTOLOGY, Ontology
from graphmem.protocols import GraphBackend
from graphmem.text import counted
from graphmem.upkeep.export import OnRows
from graphmem.upkeep.export_file import ExportReader, ImportSource, Line, errors_named, opened
from graphmem.upkeep.import_merge import DeferredEpisodes, ImportMerge, result_of
from graphmem.upkeep.merge import repeat_merge
from graphmem.upkeep.scope_rows import TABLES, Row, RowKind, from_json, repair_ends


class Imported(Model):
    """Result of an import.

    Attributes
    ----------
    scope
        The scope imported into, in the format of `in_scope` and `--scope`.
    rows
        Number of rows stored.
    counts
        Number of rows stored by kind.
    complete
        False if the file was cut off, or lines were missing, duplicated or changed, and `cut_off` allowed that.
    repaired
        Number of facts that ended before they began, as earlier versions stored some: one that ended when it was told
        begins on the day before, another one counts as never true.
    """

    scope: str
    rows: int
    counts: dict[str, int]
    complete: bool = True
    repaired: int = 0


@dataclass(frozen=True, slots=True)
class ImportOptions:
    """Options of an import.

    Attributes
    ----------
    rename
        Accept a file of another scope; its rows become rows of the scope imported into.
    vectors
        Whether to import the index in the file as well; without it, the memory builds its own.
    cut_off
        Import the existing lines of a file that is cut off, or whose rows don't match its last line.
    batch_size
        Number of rows in one transaction.
    require
        Called with each row before it is stored; raises InvalidInput if the row is rejected.
    ontology
        Defines which relations are single-valued.
    """

    rename: bool = False
    vectors: bool = True
    cut_off: bool = False
    batch_size: int = 2000
    require: Callable[[Row], None] | None = None
    ontology: Ontology = DEFAULT_ONTOLOGY


def import_rows(
    backend: GraphBackend,
    scope: Scope,
    source: ImportSource,
    options: ImportOptions | None = None,
    on_rows: OnRows | None = None,
) -> Imported:
    """Store the rows of an exported memory, batch by batch.

    A file that can be read twice (a path, or a seekable open file) is validated before anything is stored: it has to
    be complete, unchanged and of one scope. Each batch is one transaction. Of existing rows, only what the store lacks
    is taken (`ImportMerge`), so that an import can be interrupted, repeated, or given an older file.
    Memory use is constant, except for about 300 bytes per episode that waits for extraction. These episodes stay out
    of the queue until all rows are stored; after an interrupted import until it is repeated, at most a day
    (`DeferredEpisodes`).

    Parameters
    ----------
    backend, scope
        Store and scope to import into.
    source
        A path, or an open text or binary file.
    options
        Options of the import.
    on_rows
        Called with the number of rows stored so far after each batch.

    Raises
    ------
    InvalidInput
        If the file isn't an exported memory, is of another version or scope, cut off or changed, or contains an invalid
        row; the message names the line.
    Conflict
        If the scope holds other rows with the same names, or the store holds the same ids in another scope. Rows
        before that line stay stored if the file can be read only once, or if it is the ids.
    """
    options = options or ImportOptions()
    there = backend.stats(scope)
    is_empty = not (there.episodes or there.entities or there.recalls)
    with opened(source) as file, errors_named(source):
        preview = _Preview(backend, scope, is_empty=is_empty)
        if checked := file.seekable():
            begin = file.tell()
            for line in ExportReader(file, scope, rename=options.rename, cut_off=options.cut_off):
                if line.kind in preview.kinds:
                    preview.add(line.number, line.kind, line.fields())
            preview.require_free_names()
            file.seek(begin)
        merge = None if is_empty else ImportMerge(backend, scope, preview.separated)
        checked = checked and not options.cut_off
        reader = ExportReader(file, scope, rename=options.rename, cut_off=options.cut_off, checked=checked)
        return _Import(backend, scope, options, on_rows, merge).run(reader)


class _Preview:
    """Data of a whole file that its import needs before it stores any row.

    Parameters
    ----------
    backend, scope
        Store and scope to import into.
    is_empty
        Whether the scope is empty; then no name is taken.
    """

    def __init__(self, backend: GraphBackend, scope: Scope, *, is_empty: bool) -> None:
        self.kinds = ("merge",) if is_empty else ("merge", "entity", "episode")
        self._backend = backend
        self._scope = scope
        self._merged: dict[str, bool] = {}
        self._entities: list[tuple[int, str, str, str]] = []
        self._episodes: list[tuple[int, str, str]] = []

    @property
    def separated(self) -> set[str]:
        """Ids of the entities whose merges are all undone in the file."""
        return {entity_id for entity_id, still in self._merged.items() if not still}

    def add(self, number: int, kind: RowKind, fields: Mapping[str, Any]) -> None:
        """Read a row; a row that isn't valid is refused when it is stored."""
        if kind == "merge":
            merged = fields.get("merged")
            entity_id = str(cast("dict[str, Any]", merged).get("id")) if isinstance(merged, dict) else ""
            self._merged[entity_id] = self._merged.get(entity_id, False) or fields.get("undone_at") is None
        elif kind == "entity":
            name, entity_type = str(fields.get("canonical_name")), str(fields.get("entity_type"))
            self._entities.append((number, str(fields.get("id")), name, entity_type))
        elif fields.get("external_id") is not None:
            self._episodes.append((number, str(fields.get("id")), str(fields["external_id"])))
        if len(self._entities) + len(self._episodes) >= _PREVIEWED:
            self.require_free_names()

    def require_free_names(self) -> None:
        """Raise Conflict if the scope has another entity or episode with the name of one that was read since."""
        entities, episodes, self._entities, self._episodes = self._entities, self._episodes, [], []
        held = {
            (entity.canonical_name, entity.entity_type): entity.id
            for _, entity in self._backend.resolve_names(self._scope, [name for _, _, name, _ in entities])
        }
        for number, row_id, name, kind in entities:
            if held.get((name, kind), row_id) != row_id and not self._is_merged(row_id):
                raise Conflict(
                    f"line {number}: entity: the scope has another {kind} with the name {name!r}; {_OWN_SCOPE}"
                )
        wanted = tuple(external_id for _, _, external_id in episodes)
        rows = self._backend.all_episodes([self._scope], EpisodeQuery(external_ids=wanted)) if wanted else ()
        known = {episode.external_id: episode.id for episode in rows}
        for number, row_id, external_id in episodes:
            if known.get(external_id, row_id) != row_id:
                raise Conflict(
                    f"line {number}: episode: the scope has another one with the external id {external_id!r}; "
                    f"{_OWN_SCOPE}"
                )

    def _is_merged(self, entity_id: str) -> bool:
        merges = self._backend.all_merges([self._scope], MergeQuery(entity_ids=(entity_id,)))
        return any(merge.merged.id == entity_id for merge in merges)


_PREVIEWED = 1000
_OWN_SCOPE = "import into a scope of its own"


# Storing ------------------------------------------------------------------------------------------

_Read = tuple[int, RowKind, Row]


class _Import:
    def __init__(
        self,
        backend: GraphBackend,
        scope: Scope,
        options: ImportOptions,
        on_rows: OnRows | None,
        merge: ImportMerge | None,
    ) -> None:
        self._backend = backend
        self._merge = merge
        self._deferred = DeferredEpisodes()
        self._scope = scope
        self._options = options
        self._on_rows = on_rows
        self._stored: Counter[str] = Counter()
        self._repaired = 0

    def run(self, file: ExportReader) -> Imported:
        """Store the rows of a file."""
        rows = self._rows(file)
        while batch := list(islice(rows, self._options.batch_size)):
            self._store(batch)
            if self._on_rows is not None:
                self._on_rows(self._stored.total())
        if self._merge is not None:
            self._complete_merge(self._merge)
        self._release()
        settle_all(self._backend, self._scope)  # premises may have changed since the file was written
        return Imported(
            scope=str(self._scope),
            rows=self._stored.total(),
            counts=dict(self._stored),
            complete=file.complete,
            repaired=self._repaired,
        )

    def _rows(self, lines: Iterable[Line]) -> Iterator[_Read]:
        for line in lines:
            if line.kind != "index" or self._options.vectors:
                yield line.number, line.kind, self._row(line.number, line.kind, line.fields())

    def _row(self, number: int, kind: RowKind, fields: Mapping[str, Any]) -> Row:
        try:
            row = self._read(kind, fields)
            if self._options.require is not None:
                self._options.require(row)
            return row
        except (KeyError, TypeError, ValueError) as error:
            what = f"the field {error} is missing" if isinstance(error, KeyError) else str(error)
            raise InvalidInput(f"line {number}: {what}") from error

    def _read(self, kind: RowKind, fields: Mapping[str, Any]) -> Row:
        try:
            return from_json(kind, fields, self._scope)
        except ValueError:
            if not (repaired := repair_ends(kind, fields)):
                raise
            self._repaired += repaired
            return from_json(kind, fields, self._scope)

    def _store(self, batch: Sequence[_Read]) -> None:
        try:
            self._backend.atomic(lambda: self._write(batch))
        except (Conflict, InvalidInput) as error:
            if len(batch) == 1:
                raise self._located(batch[0], error) from error
            for one in batch:  # one by one, to name the line; those before it stay stored
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
                parts.setdefault(TABLES[kind].part, []).append(row)
        if self._merge is None:
            changes: dict[str, Any] = {name: tuple(rows) for name, rows in parts.items()}
        else:
            changes = self._merge.changes(parts)
        if changes:
            write_facts(self._backend, self._scope, Changes(**changes))

    def _put_episodes(self, episodes: Sequence[Episode]) -> None:
        """Store new episodes; of existing ones, only update the processing state, the end and the expiry."""
        there = self._backend.get_episodes([self._scope], [episode.id for episode in episodes])
        held = self._deferred.take(episodes, there)
        new = [held.get(episode.id, episode) for episode in episodes if episode.id not in there]
        for episode, (stored, _) in zip(new, self._backend.add_episodes(self._scope, new), strict=True):
            if stored != episode.id:
                raise Conflict(
                    f"episode {episode.id}: scope {self._scope} has its external_id {episode.external_id!r} as "
                    f"episode {stored}"
                )
        results = [result_of(episode) for episode in held.values() if episode.id in there]
        if self._merge is not None:
            results += self._merge.results([e for e in episodes if e.id not in held], there)
            self._backend.write(self._scope, self._merge.limits(episodes, there))
        self._settle(results)

    def _complete_merge(self, merge: ImportMerge) -> None:
        """Merge the entities that the file has as one, and let facts go on that a retracted fact had ended."""
        for row in sorted(merge.new_merges.values(), key=lambda row: row.at):
            repeat_merge(self._backend, self._scope, row, self._options.ontology)
        ids = sorted(merge.retracted)
        for start in range(0, len(ids), self._options.batch_size):
            chunk = ids[start : start + self._options.batch_size]
            reopen_ended(self._backend, self._scope, self._options.ontology, chunk)

    def _release(self) -> None:
        """Release the episodes that were held back to the queue, with the state that the file has."""
        size = self._options.batch_size
        ids = self._deferred.ids()
        while batch := list(islice(ids, size)):
            self._backend.atomic(partial(self._release_batch, batch))

    def _release_batch(self, ids: Sequence[str]) -> None:
        self._settle(self._deferred.results(self._backend.get_episodes([self._scope], ids)))

    def _settle(self, results: Sequence[ProcessingResult]) -> None:
        if results:
            self._backend.write(self._scope, Changes(results=tuple(results)))

    def _located(self, read: _Read, error: Conflict | InvalidInput) -> Conflict | InvalidInput:
        """Return an error with the line number and a remedy."""
        number, kind, row = read
        message, hint = str(error).replace("; nothing was written", ""), ""
        if isinstance(error, Conflict) and self._is_named_here(row):
            hint = f"; {_OWN_SCOPE}"
        elif isinstance(error, Conflict):
            hint = (
                "; this store already has the rows of the file in another scope, and ids are unique in a store: "
                "import into another store"
            )
        stored = f"; {counted(self._stored.total(), 'row')} before it stay stored" if self._stored else ""
        return type(error)(f"line {number}: {kind}: {message}{hint}{stored}")

    def _is_named_here(self, row: Row) -> bool:
        """Return whether the scope has another row with the name of this one."""
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
