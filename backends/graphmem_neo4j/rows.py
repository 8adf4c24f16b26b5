"""Stored values: conversion between rows and models, and the rows that writing queries take.

Times are native in the database and ISO 8601 text on the wire: the text is exact to the microsecond and parsed ten
times as fast as the driver's own time objects. Writing queries take lists, not maps.

Each word of the full-text index has a short hash of its scope in front ("9f2c41d07b_alice"). A prefix query for
"9f2c41d07b_ali" then reads the words of that scope only.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from decimal import Decimal
from functools import lru_cache
from hashlib import blake2b
from typing import Any, TypeVar

from graphmem.errors import InvalidInput
from graphmem.models import (
    Edge,
    EdgeBeginning,
    EdgeEnd,
    EdgeKey,
    EdgeType,
    Entity,
    Episode,
    EpisodeFilter,
    Properties,
    Scalar,
    Scope,
    with_attachments,
)
from graphmem.protocols import index_words

T = TypeVar("T")
Row = Sequence[Any]

TYPES = {kind.name: kind for kind in EdgeType}
TYPE_NAMES = {kind: name for name, kind in TYPES.items()}
OUR_LABELS = frozenset(
    "Graphmem Entity Episode Alias Scope Migration Community Recall Merge IndexEntry GraphmemVector".split()
)
ENTITY_PROPERTIES = frozenset(
    "id scope domain project name canonical_name entity_type summary properties confidence access_count name_words "
    "summary_words first_seen_at last_seen_at recorded_at archived_at valid_from valid_to entity_id".split()
)
"""Properties of the node of an entity, as in `fragments/entity_values.cypher`; all others are not graphmem's."""
FACT_PROPERTIES = frozenset(
    "graphmem_id graphmem_active scope relation fact confidence superseded_by episode_ids retrieval_count properties "
    "valid_from valid_to recorded_at expired_at last_retrieved_at certainty kind valid_from_assumed told_at "
    "prior_valid_to end_reason ended_by end_times ends_told_at begun_by begin_times begins_told_at graphmem_source "
    "graphmem_target graphmem_rank".split()
)
"""Properties of the relationship of a fact, as the query ``write`` sets them; all others are not graphmem's."""
_LONGEST_LABEL = 64
_encode = json.JSONEncoder(ensure_ascii=False).encode  # `dumps` would create an encoder at each call
_LONGEST_KEY = 1024
_TERMS = 500  # in a full-text expression; Lucene accepts at most 1,024
_KEPT = 64  # characters of a longer text that its key begins with


@lru_cache(maxsize=8192)
def moment(text: str) -> datetime:
    """Return a time of the database; a DATE or a LOCAL DATETIME, which only others write, is taken as one of UTC."""
    read = datetime.fromisoformat(text.partition("[")[0])  # the name of a time zone follows its offset
    return read.replace(tzinfo=UTC) if read.tzinfo is None else read.astimezone(UTC)


def stated(stored: Sequence[Sequence[str]]) -> Iterable[tuple[str, str, str]]:
    """Read the ids and the times of the beginnings or ends of a fact, and when these were told."""
    ids, times, told = stored
    return zip(ids, times, told, strict=True)


def moment_or_none(text: str | None) -> datetime | None:
    """Return a time of the database, None as None."""
    return None if text is None else moment(text)


def properties_json(properties: Properties) -> str | None:
    """Return properties as they are stored."""
    return _encode(properties) if properties else None


def ids_of(ids: Iterable[str]) -> list[str]:
    """Return ids once each, without ids that no row can have: the server can't store half of a surrogate pair."""
    return [i for i in dict.fromkeys(ids) if i.isascii() or i.encode("utf-8", "ignore").decode() == i]


def expressions_of(ids: Sequence[str]) -> list[str]:
    """Return full-text expressions that find any of these ids, each as a whole."""
    terms = ['"{}"'.format(i.replace("\\", "\\\\").replace('"', '\\"')) for i in ids]
    return [" ".join(terms[start : start + _TERMS]) for start in range(0, len(terms), _TERMS)]


def index_key(text: str | None) -> str | None:
    """Return a text of any length as a key short enough for an index."""
    if text is None or len(text) <= _LONGEST_KEY:
        return text
    return f"{text[:_KEPT]}#{blake2b(text.encode(), digest_size=32).hexdigest()}"


def prefix_keys(prefix: str) -> list[str]:
    """Return what the keys of the texts that begin with a prefix begin with (`index_key`)."""
    return [prefix] if len(prefix) <= _KEPT else [prefix, f"{prefix[:_KEPT]}#"]


@lru_cache(maxsize=1024)
def type_labels(entity_type: str) -> tuple[str, ...]:
    """Return the second label of an entity ("tool" → Tool, "part_of" → PartOf); none if no letter or digit is left."""
    words = re.findall(r"[^\W_]+", entity_type)
    label = "".join(word[0].upper() + word[1:] for word in words)[:_LONGEST_LABEL]
    return (f"{label}Entity" if label in OUR_LABELS else label,) if label else ()


def active_key(key: EdgeKey) -> str:
    """Return the key that is unique among the active facts of a relationship type; its entity ids imply the scope."""
    return f"{key[0]} {key[1]} {key[2]}"


def keys_of(scopes: Sequence[Scope]) -> list[str]:
    """Return the keys of scopes, each once."""
    return list(dict.fromkeys(scope.key for scope in scopes))


@lru_cache(maxsize=4096)
def scope_mark(scope_key: str) -> str:
    """Return the prefix of the words of a scope."""
    return blake2b(scope_key.encode(), digest_size=8).hexdigest()


def scoped_words(scope: Scope, text: str) -> str:
    """Return the words of a text as they are indexed for a scope."""
    mark = scope_mark(scope.key)
    return " ".join([f"{mark}_{word}" for word in index_words(text)])


# Metadata as it is filtered ---------------------------------------------------------------------

_FIRST, _LAST = "", "~"  # bounds below and above every entry, which begins with a digit
_BEYOND = re.compile("[\uffff-\U0010ffff]")
_DIGIT = 2**11  # values of a digit of `_ordered`, all below the surrogates
_EXPONENT = 10**6  # added to exponents, so that they have the same number of digits


def metadata_entries(metadata: Mapping[str, Scalar]) -> list[str] | None:
    """Return metadata as the texts that filters compare, one for each key; None if there is none.

    Equal values have equal texts, and texts of numbers, or of texts, under a key are in the order of their values. The
    length of the key is in front, so that no key is the beginning of another.
    """
    return [f"{_key_entry(key)}{_value_entry(value)}" for key, value in metadata.items()] or None


def _key_entry(key: str) -> str:
    return f"{len(key)}:{key}:"


def _value_entry(value: Scalar) -> str:
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "b1" if value else "b0"
    return f"t{_BEYOND.sub(_ordered, value)}" if isinstance(value, str) else f"n{_number_entry(value)}"


def _ordered(beyond: re.Match[str]) -> str:
    """Return U+FFFF or a later character as U+FFFF and its place after it: the server compares texts in UTF-16."""
    high, low = divmod(ord(beyond[0]) - 0xFFFF, _DIGIT)
    return f"\uffff{chr(_DIGIT + high)}{chr(_DIGIT + low)}"


def _number_entry(value: float) -> str:
    """Return a number as a text with the same order: sign, exponent and digits, in complement below zero."""
    number = Decimal(int(value) if value == int(value) else repr(value))
    if not number:
        return "1"
    digits = "".join(map(str, number.as_tuple().digits)).rstrip("0")
    if number > 0:
        return f"2{_EXPONENT + number.adjusted():07}{digits}"
    return f"0{_EXPONENT - number.adjusted():07}{digits.translate(_COMPLEMENT)}~"


_COMPLEMENT = str.maketrans("0123456789", "9876543210")
_ORDERS = {"$gt": "above", "$gte": "least", "$lt": "below", "$lte": "most"}


def filter_values(wanted: EpisodeFilter | None) -> dict[str, Any] | None:
    """Return a filter as the parameter of the fragment ``episode_is_wanted``; None for no filter."""
    if wanted is None:
        return None
    lists = {name: getattr(wanted, name) for name in ("session_ids", "speakers", "roles", "sources")}
    return {
        **{name: None if given is None else list(given) for name, given in lists.items()},
        "session_prefix": wanted.session_prefix,
        "since": wanted.since,
        "until": wanted.until,
        "metadata": [
            _condition(_key_entry(key), name, value)
            for key, operators in wanted.metadata.items()
            for name, value in operators.items()
        ],
    }


def _condition(key: str, name: str, value: Any) -> dict[str, Any]:
    """Return a condition: whether an entry that is in `entries`, or begins with `begin` within the bounds, is there."""
    bounds = {"above": _FIRST, "least": _FIRST, "below": _LAST, "most": _LAST}
    condition: dict[str, Any] = {"key": key, "entries": [], "begin": _LAST, "absent": False, "negated": False, **bounds}
    if name == "$exists":
        return {**condition, "begin": key, "negated": not value}
    if name in _ORDERS:
        entry = f"{key}{_value_entry(value)}"
        return {**condition, "begin": entry[: len(key) + 1], _ORDERS[name]: entry}
    values = value if name in ("$in", "$nin") else [value]
    entries = [f"{key}{_value_entry(one)}" for one in values]
    return {**condition, "entries": entries, "absent": None in values, "negated": name in ("$ne", "$nin")}


# Rows of writing queries ------------------------------------------------------------------------

StoredRow = list[Any]

ENTITY_STANDS_FOR = 16
"""Position in the row of an entity of the id that its name stands for, if that is another entity."""


class Times(dict[datetime | None, int | None]):
    """Time → its position in the list of the times of a query, in order of first look-up; None → None.

    Rows written together share most of their times, and parsing times is the most expensive part of a write for the
    server: a query gets the texts of all distinct times, and rows refer to them by position. Looking up a time
    without a time zone raises `InvalidInput`.
    """

    def __missing__(self, moment: datetime | None) -> int | None:
        """Assign a position to a time."""
        if moment is not None and moment.tzinfo is None:
            raise InvalidInput(f"naive datetime {moment.isoformat()}: give it a time zone")
        self[moment] = position = None if moment is None else len(self) - (None in self)
        return position

    @property
    def texts(self) -> list[str]:
        """The texts that the query parses."""
        return [moment.astimezone(UTC).isoformat() for moment in self if moment is not None]


def entity_row(entity: Entity, times: Times) -> StoredRow:
    """Return the values of the fragment ``entity_values``, then the labels of the type.

    The value at `ENTITY_STANDS_FOR` is None: the name of the entity stands for the entity itself.
    """
    hidden = entity.archived_at is not None
    return [
        entity.id,
        entity.name,
        entity.canonical_name,
        entity.entity_type,
        entity.summary,
        properties_json(entity.properties),
        entity.confidence,
        entity.access_count,
        # archived entities are not in the full-text index
        None if hidden else scoped_words(entity.scope, entity.name),
        None if hidden else scoped_words(entity.scope, entity.summary),
        times[entity.first_seen_at],
        times[entity.last_seen_at],
        times[entity.recorded_at],
        times[entity.archived_at],
        times[entity.valid_from],
        times[entity.valid_to],
        None,
        list(type_labels(entity.entity_type)),
    ]


def edge_row(edge: Edge, times: Times) -> StoredRow:
    """Return an edge as a row of the query ``write``."""
    return [
        edge.source_id,
        edge.target_id,
        TYPE_NAMES[edge.edge_type],
        edge.id,
        active_key(edge.key) if edge.is_active else None,
        edge.relation,
        edge.fact,
        edge.confidence,
        edge.superseded_by,
        list(dict.fromkeys(edge.episode_ids)),
        float(edge.retrieval_count),
        properties_json(edge.properties),
        times[edge.valid_from],
        times[edge.valid_to],
        times[edge.recorded_at],
        times[edge.expired_at],
        times[edge.last_retrieved_at],
        None if edge.certainty == "stated" else edge.certainty,
        None if edge.kind == "state" else edge.kind,
        edge.valid_from_assumed or None,
        times[edge.told_at],
        times[edge.prior_valid_to],
        edge.end_reason,
        *stated_row(edge.ends, times),
        *stated_row(edge.beginnings, times),
    ]


def stated_row(stated: Sequence[EdgeBeginning | EdgeEnd], times: Times) -> StoredRow:
    """Return the stated beginnings or ends of a fact as three values of ``write`` and ``expire_edges``."""
    if not stated:
        return [None, None, None]
    return [[e.by for e in stated], [times[e.at] for e in stated], [times[e.told_at] for e in stated]]


def episode_row(episode: Episode, times: Times) -> StoredRow:
    """Return an episode as a row of the query ``add_episodes``."""
    return [
        episode.id,
        index_key(episode.external_id),
        episode.external_id,
        episode.source,
        episode.text,
        episode.session_id,
        index_key(episode.session_id),
        episode.role,
        episode.speaker,
        episode.title,
        properties_json(with_attachments(episode.metadata, episode.attachments)),
        episode.attempts,
        episode.error,
        episode.scope.key if episode.processed_at is None else None,
        times[episode.occurred_at],
        times[episode.recorded_at],
        times[episode.processed_at],
        times[episode.retry_at],
        metadata_entries(episode.metadata),
        times[episode.ended_at],
        times[episode.expires_at],
    ]
