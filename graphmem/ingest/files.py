"""Loading of files, folders and zip archives into a memory."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, tzinfo
from itertools import groupby
from pathlib import Path
from typing import IO, Any, Protocol, TypeVar, cast
from zoneinfo import ZoneInfo

from graphmem.errors import InvalidInput
from graphmem.ingest.bulk import OnProgress, Progress
from graphmem.ingest.formats.archives import (
    SKIPPED_FOLDERS,
    File,
    Member,
    is_archive,
    is_stream,
    members,
    name_in,
    require_bearable,
    size_of,
)
from graphmem.ingest.formats.detection import SUFFIXES, first_json, guess_format, named
from graphmem.ingest.formats.opening import head_of, open_source
from graphmem.ingest.formats.source import DATE_ORDERS, FORMATS, DateOrder, Format, Refused, Report, Source
from graphmem.ingest.readers import read_items, read_triples
from graphmem.ingest.records import is_turn_header, renamed
from graphmem.inputs import Document, ItemLike, Triple, TripleLike, Turn
from graphmem.models.metadata import SOURCE_PATH, TRUST
from graphmem.ontology import SHORT_NAMES
from graphmem.output_files import belongs_to_database
from graphmem.results import MAX_REJECTED, LoadReport, Rejected
from graphmem.trust import LEVELS, Trust

R = TypeVar("R")

_OFFICE = frozenset({"[Content_Types].xml", "content.xml"})  # in files of Microsoft Office and of LibreOffice
_NO_TIME = datetime.max.replace(tzinfo=UTC)  # sorts after every time
_PLACEHOLDER = re.compile(r"\{\{\s{0,4}(?:title|date|time)\b|<%")


@dataclass(frozen=True, slots=True)
class FileOptions:
    """Options for reading files; None detects the value from the file.

    Parameters
    ----------
    format
        Format of the files.
    timezone
        Zone of times without one.
    date_order
        Order of day, month and year in dates such as 3/4/2026.
    columns
        Field of a turn → column of a CSV file, or field of a JSON record, that holds it. Several columns, with commas
        between them, become lines "column: value".
    encoding
        Encoding of the files, such as ``cp1252``; None is UTF-8. Mail and pages have the one that they state, if any.
    trust
        Trust of the items that state none (`graphmem.Turn`); None is that of their kind.

    Raises
    ------
    InvalidInput
        If a format, date order, time zone, encoding or trust is unknown.
    """

    format: Format | None = None
    timezone: tzinfo | str | None = None
    date_order: DateOrder | None = None
    columns: Mapping[str, str] = field(default_factory=dict[str, str])
    encoding: str | None = None
    trust: Trust | None = None

    def __post_init__(self) -> None:
        _require_known("format", self.format, FORMATS)
        _require_known("date_order", self.date_order, DATE_ORDERS)
        _require_known("trust", self.trust, LEVELS)
        _ = self.zone
        try:
            "".encode(self.encoding or "utf-8")  # refuses codecs of other things than text, such as hex
        except (LookupError, UnicodeError) as error:
            raise InvalidInput(f"encoding: {self.encoding!r} is not one that Python knows, such as cp1252") from error

    @property
    def zone(self) -> tzinfo | None:
        """The time zone."""
        if not isinstance(self.timezone, str):
            return self.timezone
        try:
            return ZoneInfo(self.timezone)
        except (KeyError, ValueError, OSError) as error:
            reason = f"timezone: {self.timezone!r} is not the name of a time zone such as Europe/Berlin"
            raise InvalidInput(reason) from error


def _require_known(name: str, word: str | None, known: tuple[str, ...]) -> None:
    if word is not None and word not in known:
        raise InvalidInput(f"{name}: {word!r} is not one of {', '.join(known)}")


def find_files(
    paths: Iterable[str | Path], unread: Counter[str] | None = None, columns: Mapping[str, str] | None = None
) -> list[File]:
    """Return the files that these paths name; for a folder or zip archive its files of known kinds, sorted by name.

    Hidden files and folders, ``node_modules``, templates for notes, and symbolic links to files that are found anyway
    are skipped, as are archives inside, unrelated JSON (settings, the lists of a Slack export) and the other files of a
    ChatGPT export. Symbolic links to folders are not followed; ``-`` is returned unchanged. A folder inside that can't
    be listed is returned as it is, so that reading it reports the reason.
    Files of unknown kinds are counted in `unread`, by their suffix in lower case. JSON whose records have one of the
    `columns` (`FileOptions`) is not unrelated.

    Raises
    ------
    InvalidInput
        If a path doesn't exist, a folder or archive contains no file of a known kind, or an archive is damaged or
        exceeds the limits on unpacked size.
    """
    found: list[File] = []
    unread = Counter() if unread is None else unread
    for path in map(Path, paths):
        if path.is_dir():
            closed: list[Path] = []
            contents = list(_walk(path, closed))
            if contents or not closed:
                found += _readable(path, contents, "folder", unread, columns or {})
            found += closed
        elif str(path) != "-" and not path.exists():
            raise InvalidInput(f"{path}: there is no such file or folder")
        elif path.is_file() and belongs_to_database(path):
            raise InvalidInput(f"{path}: is a database; export it with the program that wrote it, and load that file")
        elif is_archive(path):
            contents = members(path)
            require_bearable(path, [member for member in contents if _is_known(member)])
            found += _readable(path, contents, "zip archive", unread, columns or {})
        else:
            found.append(path)
    return found


def names_of(files: Sequence[File], folders: Iterable[Path]) -> list[str]:
    """Return the names under which files are stored: their paths in the folders or archives that were given.

    Where two have the same, such as files of the same name that are given one by one, these are their paths from the
    folder that they have in common.
    """
    known = frozenset(folders)
    names = [name_in(file, known) for file in files]
    places: dict[str, set[Path]] = {}
    for name, file in zip(names, files, strict=True):
        places.setdefault(name, set()).add(Path(str(file)).absolute())
    shared = {name: Path(os.path.commonpath(paths)) for name, paths in places.items() if len(paths) > 1}
    return [
        name_in(Path(str(file)).absolute(), [shared[name]]) if name in shared else name
        for name, file in zip(names, files, strict=True)
    ]


def _walk(folder: Path, closed: list[Path]) -> Iterator[Path]:
    """Yield the files in a folder; add folders that can't be listed to `closed`."""
    root = folder.resolve()
    for place, folders, files in os.walk(folder, onerror=lambda error: closed.append(Path(error.filename))):
        folders[:] = sorted(name for name in folders if not name.startswith(".") and name not in SKIPPED_FOLDERS)
        shown = (Path(place, name) for name in sorted(files) if not name.startswith("."))
        yield from (path for path in shown if not (path.is_symlink() and path.resolve().is_relative_to(root)))


def _is_known(file: File) -> bool:
    return file.suffix.lower() in SUFFIXES


def _is_template(file: File) -> bool:
    """Return whether a file is one that a program for notes makes new notes from."""
    if file.parent.name.lower() not in ("template", "templates"):
        return False
    try:
        return _PLACEHOLDER.search(head_of(file)) is not None
    except (InvalidInput, OSError):
        return False  # reading it reports the reason


def _readable(
    where: Path, files: Sequence[File], kind: str, unread: Counter[str], columns: Mapping[str, str]
) -> list[File]:
    """Return the files of a folder or archive to read, and count the others in `unread` by their kind.

    JSON of other kinds isn't counted in an export of ChatGPT or Slack, where it belongs to the messages.
    """
    forms: dict[File, Format] = {}
    others = 0
    for file in files:
        if not _is_known(file):
            unread[file.suffix.lower() or "no suffix"] += 1
        elif _is_template(file):
            unread["template"] += 1
        elif (form := _format_of(file, columns)) is None:
            others += 1
        else:
            forms[file] = form
    if others and {"chatgpt", "slack"}.isdisjoint(forms.values()):
        unread["other JSON"] += others
    chatgpt = {file.parent for file, form in forms.items() if form == "chatgpt"}
    found = [file for file, form in forms.items() if form not in ("json", "html") or file.parent not in chatgpt]
    if not found:
        seen = named([str(file) if isinstance(file, Path) else file.at for file in files])
        is_office = any(isinstance(file, Member) and file.at in _OFFICE for file in files)
        hint = ". Save a document of an office program as text, HTML or CSV" if is_office else ""
        raise InvalidInput(f"{where}: no {', '.join(SUFFIXES)} file to be read in this {kind}; it holds {seen}{hint}")
    return found


def _format_of(file: File, columns: Mapping[str, str]) -> Format | None:
    """Return the format of a file with a known suffix; None for JSON that can't be loaded."""
    suffix = file.suffix.lower()
    if suffix != ".json":
        return SUFFIXES[suffix][0]
    try:
        head = head_of(file)
    except (InvalidInput, OSError):
        return "turns"  # reading it reports the reason
    try:
        return guess_format(file.name, head) or "json"
    except InvalidInput:
        record = first_json(head)
        fields = renamed(cast("dict[str, Any]", record), columns) if isinstance(record, dict) else ()
        return "json" if is_turn_header([*fields]) else None


# Loading -------------------------------------------------------------------------------------------


class Erasure(Protocol):
    """Result of an erasure: a `Forgotten`."""

    @property
    def episodes(self) -> int:
        """Number of removed episodes."""
        ...


class Eraser(Protocol):
    """Part of a memory that erases: an `Administration`."""

    def forget_missing(
        self, sources: Mapping[str, Collection[str] | None], *, folders: Iterable[str], dry_run: bool
    ) -> Erasure:
        """Erase the episodes that their files no longer have."""
        ...


class Sink(Protocol):
    """Target of a load: a `GraphMemory`."""

    def ingest(
        self,
        items: Iterable[ItemLike],
        *,
        update: bool,
        skip_invalid: bool,
        dry_run: bool,
        on_progress: OnProgress | None,
    ) -> LoadReport:
        """Store turns and documents."""
        ...

    def add_facts(
        self, triples: Iterable[TripleLike], *, skip_invalid: bool, on_progress: OnProgress | None
    ) -> LoadReport:
        """Store triples."""
        ...


def find_folders(paths: Sequence[Path]) -> tuple[str, ...]:
    """Return the absolute paths of the folders and archives among some paths: only there can files be missing.

    Raises
    ------
    InvalidInput
        If there is none.
    """
    folders = [os.path.realpath(path) for path in paths if path.is_dir()]
    folders += [path_of(path) for path in paths if is_archive(path)]
    if not folders:
        raise InvalidInput("delete-missing: only a folder or an archive can miss files; give the one that had them")
    return tuple(folders)


def _refused(file: File, name: str, error: InvalidInput) -> Refused:
    """Return the refusal of a file that can't be read."""
    return Refused(name, 1, str(error).removeprefix(f"{name}: ").removeprefix(f"{file}: "))


def path_of(file: File) -> str:
    """Return the absolute path of a file, without symbolic links above it; of a member after that of its archive."""
    if isinstance(file, Member):
        return f"{path_of(Path(file.archive.filename or ''))}/{file.at}"
    return str(Path(os.path.realpath(file.parent), file.name))


@dataclass(slots=True)
class FileLoad:
    """Load of files into a memory.

    Parameters
    ----------
    files
        From `find_files`.
    options
        Options for reading them.
    short_names
        Canonical names of triples that may be shorter than three characters.
    skip_invalid
        Skip and report unreadable records instead of raising an error.
    stdin
        The stream read for ``-``.
    redact
        Removes personal data from what the report says about refused records.
    unread
        Numbers of files of unknown kinds beside these, by suffix.
    folders
        Those among which the files were found (`names_of`).
    update
        Whether to replace what is stored of these files.
    delete_missing
        Whether to update, and to erase what was read from files that are missing in the folders.
    dry_run
        Only count, and change nothing.
    """

    files: Sequence[File]
    options: FileOptions = field(default_factory=FileOptions)
    short_names: Collection[str] = SHORT_NAMES
    skip_invalid: bool = True
    stdin: IO[bytes] | None = None
    redact: Callable[[str], str] = str
    unread: Mapping[str, int] = field(default_factory=dict[str, int])
    folders: Sequence[Path] = ()
    update: bool = False
    delete_missing: bool = False
    dry_run: bool = False
    refused: list[Refused] = field(default_factory=list[Refused])
    refused_count: int = 0
    progress: Progress | None = None
    _left_out: Counter[str] = field(default_factory=Counter[str])
    _dated_by: Counter[str] = field(default_factory=Counter[str])
    _notes: list[str] = field(default_factory=list[str])
    _reports: list[LoadReport] = field(default_factory=list[LoadReport])
    _facts: list[Triple] = field(default_factory=list[Triple])
    _read_before: int = 0
    _current: Source | None = None
    _error: InvalidInput | None = None
    _complete: Sequence[str] = ()

    def __post_init__(self) -> None:
        if self.delete_missing:
            self.update, self._complete = True, find_folders(self.folders)

    def run(self, memory: Sink, on_progress: OnProgress | None = None, eraser: Eraser | None = None) -> LoadReport:
        """Load all files, those with the earliest times first; adjacent files of the same kind share batches.

        An update needs an eraser. It first reads all files once, and erases what they no longer have. Killed at any
        time, it is completed by another one.

        Raises
        ------
        InvalidInput
            If a record can't be read and `skip_invalid` is false; what precedes it has been stored.
        """

        def note(progress: Progress) -> None:
            self.progress = progress
            if on_progress is not None:
                on_progress(progress)

        if self.update and eraser is not None:
            gone = eraser.forget_missing(self._contents(), folders=self._complete, dry_run=self.dry_run)
            self._reports.append(LoadReport(removed=gone.episodes))
        for are_triples, group in groupby(self._sources(), lambda source: source.holds_triples):
            if are_triples:
                triples = (triple for source in group for triple in self._records(source, read_triples))
                if self.dry_run:
                    report = LoadReport(received=sum(1 for _ in triples))
                else:
                    report = memory.add_facts(
                        self._until_error(triples), skip_invalid=self.skip_invalid, on_progress=note
                    )
            else:
                items = (item for source in group for item in self._items(source))
                report = memory.ingest(
                    self._until_error(items),
                    update=self.update,
                    skip_invalid=self.skip_invalid,
                    dry_run=self.dry_run,
                    on_progress=note,
                )
            self._reports.append(report)
            if self._facts and not self.dry_run:
                facts = memory.add_facts(self._facts, skip_invalid=self.skip_invalid, on_progress=None)
                self._reports.append(facts.changed(received=0))
                self._facts = []
            if self._error is not None:
                raise self._error
        return self.report

    def _until_error(self, records: Iterator[R]) -> Iterator[R]:
        """Yield records up to the first error, which is kept until they are stored."""
        try:
            yield from records
        except InvalidInput as error:
            self._error = error

    def _contents(self) -> dict[str, set[str] | None]:
        """Return the external ids of the items of each file, by its path; None for one with refused lines.

        Raises
        ------
        InvalidInput
            If a line is refused, and none is to be skipped.
        """
        found: dict[str, set[str] | None] = {}
        for file, name in self._named():
            if is_stream(file):
                continue
            refused: list[Refused] = []
            ids: set[str] = set()
            try:
                with self._open(file, name) as source:
                    if not source.holds_triples:
                        ids.update(item.external_id or "" for item in read_items(source, refused.append))
            except InvalidInput as error:
                refused.append(_refused(file, name, error))
            if refused and not self.skip_invalid:
                raise InvalidInput(str(replace(refused[0], reason=self.redact(refused[0].reason))))
            found[path_of(file)] = None if refused else ids
        return found

    def _open(self, file: File, name: str) -> AbstractContextManager[Source]:
        options = self.options
        return open_source(
            file,
            name=name,
            form=options.format,
            zone=options.zone,
            short_names=self.short_names,
            date_order=options.date_order,
            columns=options.columns,
            encoding=options.encoding,
            stdin=self.stdin,
        )

    def _named(self) -> list[tuple[File, str]]:
        """Return the files with the names under which they are stored."""
        return list(zip(self.files, names_of(self.files, self.folders), strict=True))

    def _in_order(self) -> list[tuple[File, str]]:
        """Return the files in the order of the times of their first items, since later ones may end what others say.

        Ready-made facts, and files that have no times or can't be read, come last, in the given order.
        """
        named = self._named()
        return sorted(named, key=lambda each: self._first_time(*each)) if len(named) > 1 else named

    def _first_time(self, file: File, name: str) -> datetime:
        if is_stream(file):  # which can be read only once
            return _NO_TIME
        try:
            with self._open(file, name) as source:
                first = None if source.holds_triples else next(iter(read_items(source, lambda _: None)), None)
        except InvalidInput:
            first = None  # reading it reports the reason
        return (first and first.occurred_at) or _NO_TIME

    def _sources(self) -> Iterator[Source]:
        for file, name in self._in_order():
            try:
                with self._open(file, name) as source:
                    self._current = source
                    yield source
                    self._read_before += source.position
                    self._left_out.update(source.left_out)
                    self._facts += source.facts
                    self._dated_by.update([source.dated_by] if source.dated_by else ())
                    if self.update and source.holds_triples:
                        source.notes.append("ready-made facts are added, and none is removed: end or retract them")
                    self._notes += [self.redact(f"{source.name}: {note}") for note in source.notes]
            except InvalidInput as error:
                self._refuse(_refused(file, name, error))
            self._current = None

    def _items(self, source: Source) -> Iterator[Turn | Document]:
        """Yield the items of a file with its path in their metadata, and the trust, unless a record states its own."""
        path = None if source.path is None else path_of(source.path)
        for item in self._records(source, read_items):
            trust = self.options.trust if item.trust is None and TRUST not in item.metadata else item.trust
            if path is None or SOURCE_PATH in item.metadata:
                yield item.changed(trust=trust)
            else:
                yield item.changed(trust=trust, metadata={**item.metadata, SOURCE_PATH: path})

    def _records(self, source: Source, read: Callable[[Source, Report], Iterator[R]]) -> Iterator[R]:
        """Yield the records of a file up to the first error that ends reading."""
        try:
            yield from read(source, self._refuse)
        except InvalidInput as error:
            if not self.skip_invalid:
                raise
            self._refuse(Refused(source.name, 1, f"{error}: nothing after byte {source.position:,} was read"))

    def _refuse(self, refused: Refused) -> None:
        refused = replace(refused, source=self.redact(refused.source), reason=self.redact(refused.reason))
        if not self.skip_invalid:
            raise InvalidInput(f"{refused}; what precedes it is stored, and skip_invalid=True leaves it out")
        self.refused_count += 1
        if len(self.refused) < MAX_REJECTED:
            self.refused.append(refused)

    @property
    def report(self) -> LoadReport:
        """Report on the load so far, including refused lines as rejected items."""
        rejected = tuple(Rejected(item=f"{r.source}, line {r.line}", reason=r.reason) for r in self.refused)
        fields = {f"nested field {self.redact(name)!r:.60}": number for name, number in self._left_out.items()}
        notes = tuple(self._notes)
        lines = LoadReport(
            rejected=rejected,
            rejected_count=self.refused_count,
            dropped=fields,
            notes=notes,
            dated_by=dict(self._dated_by),
            unread_files={self.redact(suffix): number for suffix, number in self.unread.items()},
        )
        return LoadReport.combined((lines, *self._reports))

    @property
    def bytes_read(self) -> int:
        """Number of bytes read so far."""
        return self._read_before + (self._current.position if self._current is not None else 0)

    def bytes_in_all(self) -> int | None:
        """Return the total size of all files in bytes, or None if one of them is standard input."""
        return sum(map(size_of, self.files)) if all(file.is_file() for file in self.files) else None
