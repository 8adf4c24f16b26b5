"""Recorded extractions: replay from a file and recording into one, for tests, benchmarks and audits.

The file is JSON Lines in UTF-8, one episode per line::

    {"external_id": "chat-1", "entities": [{"name": "Alice", "entity_type": "person"}, "Acme"],
     "edges": [{"source": "Alice", "relation": "works_at", "target": "Acme", "confidence": 0.9,
                "valid_from": "2024-05-01T00:00:00Z"}]}

external_id, text_sha256, text
    Key of the line, at least one of them: the id of the episode, the SHA-256 of its text in UTF-8 (64 hexadecimal
    digits), or the text itself. An episode is looked up by its id, then by its text. If several lines have the same
    key, the last one is used.
entities
    Objects with ``name`` and, optionally, ``entity_type``, ``summary``, ``confidence``; or names.
edges
    Objects with ``source``, ``relation``, ``target`` and, optionally, the other fields of `ExtractedEdge`
    (times in ISO 8601; naive ones are UTC); or lists of source, relation and target.
triples
    Lists of source, relation and target in the format of OpenIE dumps. Lists of another length, which occur in dumps,
    are dropped and counted.
dropped
    Items dropped by the recorded extractor: reason → count.
short_names
    Canonical names of fewer than three characters that are names in this text.

Other fields are ignored. docs/how-to/recorded-extractions.md has examples.
"""

from __future__ import annotations

import hashlib
import json
import os
import threading
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, replace
from datetime import datetime
from pathlib import Path
from typing import IO, Any, cast, get_args

from graphmem.errors import ExtractionFailed, InvalidInput
from graphmem.ingest.extract.llm_parse import read_edge, read_entity
from graphmem.models import Episode, utc_now
from graphmem.output_files import require_appendable
from graphmem.protocols import (
    EndingReason,
    ExtractedEdge,
    ExtractedEnding,
    ExtractedEntity,
    Extraction,
    ExtractionRequest,
    Extractor,
    ExtractorWrapper,
)

_BATCH = 500
_KEY_BYTES = 16
_DEFAULTS = {"certainty": "stated", "kind": "state", "why": "over"}  # left out of the file


class RecordedExtractor:
    """Extractor that replays the extractions in a file; an episode without one gets `ExtractionFailed`.

    The whole file is read and validated on creation. Memory holds a key of 16 bytes and an offset per line; lines are
    read again on request.

    Parameters
    ----------
    path
        The file, in the format described in the docstring of this module.

    Raises
    ------
    InvalidInput
        If the file can't be read or a line is malformed; the message names the file, the line and the reason.
    """

    def __init__(self, path: str | Path) -> None:
        self._path = Path(path)
        self._offsets: dict[bytes, int] = {}
        number, offset = 0, 0
        try:
            with self._path.open("rb") as file:
                for line in file:
                    number += 1
                    if line.strip():
                        fields = _fields(line)
                        _extraction(fields)
                        self._offsets.update(dict.fromkeys(_keys_of(fields), offset))
                    offset += len(line)
        except OSError as error:
            raise InvalidInput(f"recorded extractions {path}: {error.strerror or error}") from error
        except ValueError as error:
            raise InvalidInput(f"recorded extractions {path}, line {number}: {error}") from error

    @property
    def name(self) -> str:
        """``recorded:`` and the name of the file."""
        return f"recorded:{self._path.name}"

    @property
    def batch_size(self) -> int:
        """Preferred number of episodes per call, large as look-ups are fast."""
        return _BATCH

    def __len__(self) -> int:
        return len(set(self._offsets.values()))

    def extract(self, requests: Sequence[ExtractionRequest]) -> list[Extraction | Exception]:
        """Return the recorded extraction of each episode, or an error in place of it."""
        try:
            with self._path.open("rb") as file:
                return [self._look_up(file, request.episode) for request in requests]
        except OSError as error:
            failure = ExtractionFailed(f"recorded extractions {self._path.name}: {error.strerror or error}")
            return [failure for _ in requests]

    def _look_up(self, file: IO[bytes], episode: Episode) -> Extraction | Exception:
        keys = [_id_key(episode.external_id)] if episode.external_id is not None else []
        keys.append(_digest_key(hashlib.sha256(episode.text.encode()).digest()))
        offset = next((self._offsets[key] for key in keys if key in self._offsets), None)
        if offset is None:
            key = f"external_id {episode.external_id!r}" if episode.external_id is not None else "this text"
            return ExtractionFailed(f"no recording for {key} in {self._path.name}")
        file.seek(offset)
        try:
            return _extraction(_fields(file.readline()))
        except ValueError as error:
            return ExtractionFailed(f"recorded extractions {self._path.name} changed since they were opened: {error}")


class ExtractionRecorder(ExtractorWrapper):
    """Extractor that calls another one and appends its extractions to a file for `RecordedExtractor`.

    Writes one line per extraction; failures aren't recorded. A batch is written when `extract` returns, and several
    processes may append to the same file. The file contains the SHA-256 of the texts, not the texts.

    Parameters
    ----------
    path
        The file, created if missing.
    extractor
        The extractor to record.

    Raises
    ------
    InvalidInput
        If the file can't be written, or is a database, FIFO or device.
    """

    def __init__(self, path: str | Path, extractor: Extractor) -> None:
        super().__init__(extractor)
        self._path = Path(path)
        self._lock = threading.Lock()
        try:
            require_appendable(self._path)
            self._append(b"")
        except OSError as error:
            raise InvalidInput(f"recording to {path}: {error.strerror or error}") from error

    def extract(self, requests: Sequence[ExtractionRequest]) -> list[Extraction | Exception]:
        """Extract, record and return the results; extractions that can't be recorded become failures."""
        outcomes = self._extractor.extract(requests)
        lines = b"".join(
            _line(request.episode, outcome, self.name)
            for request, outcome in zip(requests, outcomes, strict=True)
            if isinstance(outcome, Extraction)
        )
        try:
            self._append(lines)
        except OSError as error:
            # a retry is better than an audit log with unnoticed gaps
            failure = ExtractionFailed(f"recording to {self._path.name}: {error.strerror or error}")
            return [failure if isinstance(outcome, Extraction) else outcome for outcome in outcomes]
        return outcomes

    def _append(self, lines: bytes) -> None:
        # a single write in append mode keeps lines of several processes apart
        descriptor = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        with os.fdopen(descriptor, "ab", buffering=0) as file, self._lock:
            written = file.write(lines)
            if written != len(lines):
                os.truncate(file.fileno(), file.tell() - written)
                raise OSError("the disk is full")


# Lines --------------------------------------------------------------------------------------------


def _line(episode: Episode, extraction: Extraction, extractor: str) -> bytes:
    fields = {
        "external_id": episode.external_id,
        "text_sha256": hashlib.sha256(episode.text.encode()).hexdigest(),
        "extractor": extractor,
        "recorded_at": utc_now(),
        "entities": [asdict(entity) for entity in extraction.entities],
        "edges": [_stated(edge) for edge in extraction.edges],
        "endings": [_stated(ending) for ending in extraction.endings] or None,
        "dropped": dict(extraction.dropped) or None,
        "short_names": sorted(extraction.short_names) or None,
    }
    kept = {key: value for key, value in fields.items() if value is not None}
    return json.dumps(kept, ensure_ascii=False, default=_iso).encode("utf-8", "replace") + b"\n"


def _stated(edge: ExtractedEdge | ExtractedEnding) -> dict[str, Any]:
    return {
        key: value
        for key, value in asdict(edge).items()
        if value is not None and value != "" and value is not False and _DEFAULTS.get(key) != value
    }


def _iso(value: object) -> str:
    if isinstance(value, datetime):
        return value.isoformat()
    raise TypeError(type(value).__name__)


def _fields(line: bytes) -> dict[str, Any]:
    try:
        fields: object = json.loads(line)
    except RecursionError as error:
        raise ValueError("nested too deeply") from error
    if not isinstance(fields, dict):
        raise ValueError(f"expected a JSON object, got {type(fields).__name__}")
    return cast("dict[str, Any]", fields)


def _keys_of(fields: dict[str, Any]) -> list[bytes]:
    keys: list[bytes] = []
    for name in ("external_id", "text_sha256", "text"):
        value = fields.get(name)
        if value is None:
            continue
        if not isinstance(value, str):
            raise ValueError(f"{name} is {type(value).__name__}, expected text")
        if name == "external_id":
            keys.append(_id_key(value))
        elif name == "text":
            keys.append(_digest_key(hashlib.sha256(value.encode("utf-8", "replace")).digest()))
        else:
            keys.append(_digest_key(_sha256(value)))
    if not keys:
        raise ValueError("expected external_id, text_sha256 or text")
    return keys


def _sha256(text: str) -> bytes:
    try:
        digest = bytes.fromhex(text)
    except ValueError:
        digest = b""
    if len(digest) != 32:
        raise ValueError(f"text_sha256 {text[:80]!r}: expected 64 hexadecimal digits")
    return digest


def _id_key(external_id: str) -> bytes:
    return hashlib.blake2b(external_id.encode("utf-8", "replace"), digest_size=_KEY_BYTES).digest()


def _digest_key(sha256: bytes) -> bytes:
    return sha256[:_KEY_BYTES]


def _extraction(fields: dict[str, Any]) -> Extraction:
    dropped: Counter[str] = Counter()
    entities = tuple(_entity(item) for item in _listed(fields, "entities"))
    edges = [_edge(item) for item in _listed(fields, "edges")]
    for item in _listed(fields, "triples"):
        edge = read_edge(item, dropped)
        if edge is None:
            dropped["malformed triple"] += 1
        else:
            edges.append(edge)
    recorded: object = fields.get("dropped") or {}
    if not isinstance(recorded, dict):
        raise ValueError(f"dropped is {type(recorded).__name__}, expected an object of counts")
    for reason, count in cast("dict[str, object]", recorded).items():
        if not isinstance(count, int):
            raise ValueError(f"dropped.{reason}: expected a count, got {count!r:.80}")
        dropped[reason] += count
    endings = tuple(_ending(item) for item in _listed(fields, "endings"))
    short = _listed(fields, "short_names")
    if wrong := next((name for name in short if not isinstance(name, str)), None):
        raise ValueError(f"short_names: expected texts, got {wrong!r:.80}")
    names = frozenset(cast("list[str]", short))
    return Extraction(entities, tuple(edges), tuple(sorted(dropped.items())), endings, names)


def _listed(fields: dict[str, Any], name: str) -> list[object]:
    value: object = fields.get(name) or []
    if not isinstance(value, list):
        raise ValueError(f"{name} is {type(value).__name__}, expected a list")
    return cast("list[object]", value)


def _entity(item: object) -> ExtractedEntity:
    entity = read_entity(item)
    if entity is None:
        raise ValueError(f"entity {item!r:.80}: expected a name or an object with one")
    guessed = isinstance(item, dict) and cast("dict[str, object]", item).get("guessed") is True
    return replace(entity, guessed=True) if guessed else entity


def _ending(item: object) -> ExtractedEnding:
    if not isinstance(item, dict):
        raise ValueError(f"ending {item!r:.80}: expected an object")
    fields = cast("dict[str, object]", item)
    fact_id, target, others = fields.get("fact_id"), fields.get("target"), fields.get("others")
    named = dict.fromkeys(("source", "relation"), "-") if isinstance(fact_id, str) else {}
    edge = _edge({**named, **fields, "target": target or "-"})
    return ExtractedEnding(
        source=edge.source if "source" in fields else "",
        relation=edge.relation if "relation" in fields else "",
        target=edge.target if target else None,
        fact_id=fact_id if isinstance(fact_id, str) else None,
        valid_to=edge.valid_to,
        why=cast("EndingReason", why) if (why := fields.get("why")) in get_args(EndingReason) else "over",
        source_type=edge.source_type,
        others=others if others in ("targets", "sources") else "",
        presumed=fields.get("presumed") is True,
    )


def _edge(item: object) -> ExtractedEdge:
    unreadable: Counter[str] = Counter()
    edge = read_edge(item, unreadable)
    if edge is None:
        raise ValueError(f"edge {item!r:.80}: expected source, relation and target")
    if unreadable:
        raise ValueError(f"edge {item!r:.120}: contains a time that isn't ISO 8601")
    hearsay = isinstance(item, dict) and cast("dict[str, object]", item).get("hearsay") is True
    return replace(edge, certainty="hearsay") if hearsay else edge  # files of older versions
