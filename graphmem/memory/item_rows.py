"""Items under keys as episodes: encoding of paths and values, and filters of values."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import lru_cache
from typing import Any, cast

from graphmem.errors import InvalidInput
from graphmem.models import Episode, Scalar
from graphmem.models.queries import ORDERS

Namespace = tuple[str, ...]

_PATH, _VALUE, _PLACE, _CREATED, _TTL, INDEXED = "item", "value", "place", "created_at", "ttl", "indexed"
_LONGEST_TEXT = 200  # characters of a text that filters find without decoding the value
_LARGEST_INTEGER = 2**53
_SESSIONS, OLD_SESSIONS = "graphmem-items:", "item:"
_LETTERS = str.maketrans("0123456789abcdef", "abcdefghijklmnop")  # so that no pattern of redaction matches a digest


@dataclass(frozen=True, slots=True)
class ItemPut:
    """A value to store under a key.

    Attributes
    ----------
    namespace, key
        The path of the item.
    value
        What to store; None deletes the item.
    text
        The text that searches find it by; None: it is only listed.
    ttl
        Time until it expires, counted again from each read that refreshes it.
    """

    namespace: Namespace
    key: str
    value: Mapping[str, Any] | None
    text: str | None = None
    ttl: timedelta | None = None


@dataclass(frozen=True, slots=True)
class ItemVersion:
    """A stored version of an item.

    Attributes
    ----------
    episode_id
        The episode that it is stored as.
    place
        Position in a listing: by the first item of the namespace, then by the first version of the item.
    created_at, updated_at, ended_at
        When the item was created, when it got this value, and when it lost it; None: it still has it.
    """

    episode_id: str
    namespace: Namespace
    key: str
    value: dict[str, Any]
    place: str
    created_at: datetime
    updated_at: datetime
    ended_at: datetime | None
    expires_at: datetime | None
    ttl: timedelta | None


def version_of(episode: Episode) -> ItemVersion:
    """Return the version that an episode stores."""
    stored = episode.metadata
    *namespace, key = json.loads(str(stored[_PATH]))
    ttl = stored.get(_TTL)
    return ItemVersion(
        episode_id=episode.id,
        namespace=tuple(namespace),
        key=key,
        value=json.loads(str(stored[_VALUE])),
        place=place_of(episode),
        created_at=datetime.fromisoformat(str(stored[_CREATED])),
        updated_at=episode.recorded_at,
        ended_at=episode.ended_at,
        expires_at=episode.expires_at,
        ttl=None if ttl is None else timedelta(minutes=float(ttl)),
    )


def place_of(episode: Episode) -> str:
    """Return the `place` of a version."""
    return str(episode.metadata[_PLACE])


def namespace_of(episode: Episode) -> Namespace:
    """Return the namespace of a version."""
    return tuple(json.loads(str(episode.metadata[_PATH]))[:-1])


def session_of(namespace: Namespace, key: str) -> str:
    """Return the session that the versions of an item form."""
    return session_prefix(namespace) + _digest((*namespace, key))


def old_session_of(namespace: Namespace, key: str) -> str:
    """Return the session of the versions of an item that was created before sessions had a `session_prefix`."""
    return f"{OLD_SESSIONS}{_digest((*namespace, key))}"


def session_prefix(prefix: Namespace) -> str:
    """Return what the sessions of the items under a prefix begin with: a digest, of one length, for each level.

    So a prefix is found whatever the characters in it, and only as whole labels.
    """
    return _SESSIONS + "".join(f"{_digest(prefix[: depth + 1])}:" for depth in range(len(prefix)))


def marker_of(namespace: Namespace) -> str:
    """Return the external id of the first version in a namespace."""
    return f"namespace:{_digest(namespace)}"


def under(prefix: Namespace) -> dict[str, Scalar]:
    """Return the metadata that the items under a prefix have in common, also those with an `old_session_of`."""
    return {f"under.{len(prefix)}": _digest(prefix)}


def metadata_of(put: ItemPut, place: str, created_at: datetime) -> dict[str, Scalar]:
    """Return the metadata of the episode that stores a value.

    Besides the value as JSON, it has a digest of each prefix of the namespace for `under`, and the scalars of the value
    for `stored_conditions`.
    """
    assert put.value is not None
    metadata: dict[str, Scalar] = {}
    for depth in range(len(put.namespace) + 1):
        metadata |= under(put.namespace[:depth])
    metadata |= {f"value.{name}": value for name, value in put.value.items() if _is_stored(name, value)}
    metadata |= {_PATH: to_json([*put.namespace, put.key]), _VALUE: to_json(dict(put.value)), _PLACE: place}
    metadata |= {_CREATED: created_at.isoformat(), INDEXED: put.text is not None}
    return metadata if put.ttl is None else {**metadata, _TTL: put.ttl / timedelta(minutes=1)}


def to_json(value: object) -> str:
    """Return a value as JSON.

    Raises
    ------
    InvalidInput
        If it can't be written as JSON.
    """
    try:
        text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidInput(f"value: it has to be of the types of JSON: {error}") from error
    return text if _is_encodable(text) else json.dumps(value, separators=(",", ":"))


def plain_text(value: object) -> str:
    """Return a value as lines of text: the names and values of its fields."""
    return "\n".join(_lines(value, ""))


def _lines(value: object, name: str) -> Iterator[str]:
    if isinstance(value, Mapping):
        for inner, part in cast("Mapping[object, object]", value).items():
            yield from _lines(part, str(inner))
    elif isinstance(value, (list, tuple)):
        for part in cast("Sequence[object]", value):
            yield from _lines(part, name)
    elif value is not None:
        yield f"{name}: {value}" if name else str(value)


@lru_cache(maxsize=4096)
def _digest(labels: tuple[str, ...]) -> str:
    return hashlib.blake2b(json.dumps(labels).encode(), digest_size=16).hexdigest().translate(_LETTERS)


def _is_encodable(text: str) -> bool:
    """Return whether a text has no lone surrogates, which stores drop."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _is_stored(name: object, value: object) -> bool:
    """Return whether a field of a value is stored in the metadata as well."""
    if not isinstance(name, str) or not _is_encodable(name):
        return False
    if isinstance(value, str):
        return len(value) <= _LONGEST_TEXT and _is_encodable(value)
    return isinstance(value, (bool, int, float)) and -_LARGEST_INTEGER <= value <= _LARGEST_INTEGER


# Filters ------------------------------------------------------------------------------------------


def check_filter(wanted: object) -> None:
    """Raise `InvalidInput` for a key that isn't a text, an unknown operator, or an order by what isn't a number."""
    if isinstance(wanted, Mapping):
        inner = cast("Mapping[object, object]", wanted)
        has_operators = any(str(name).startswith("$") for name in inner)
        for name, value in inner.items():
            if not isinstance(name, str):
                raise InvalidInput(f"filter: a key has to be a text, got {name!r:.40}")
            if not has_operators:
                check_filter(value)
            elif name in ORDERS:
                if _number(value) is None:
                    raise InvalidInput(f"filter: {name} takes a number, got {value!r:.80}")
            elif name not in ("$eq", "$ne"):
                known = ", ".join(("$eq", "$ne", *ORDERS))
                raise InvalidInput(f"filter: unsupported operator {name!r:.40}; known are {known}")
    elif isinstance(wanted, (list, tuple)):
        for value in cast("Sequence[object]", wanted):
            check_filter(value)


def matches(value: Mapping[str, Any], wanted: Mapping[str, Any]) -> bool:
    """Return whether the fields of a value agree with those of a filter."""
    return all(_agrees(value.get(name), one) for name, one in wanted.items())


def _agrees(value: object, wanted: object) -> bool:
    if isinstance(wanted, Mapping):
        inner = cast("Mapping[str, object]", wanted)
        if any(name.startswith("$") for name in inner):
            return all(_holds(value, name, operand) for name, operand in inner.items())
        return isinstance(value, Mapping) and matches(cast("Mapping[str, Any]", value), inner)
    if isinstance(wanted, (list, tuple)):
        parts = cast("Sequence[object]", wanted)
        if not isinstance(value, (list, tuple)) or len(cast("Sequence[object]", value)) != len(parts):
            return False
        return all(map(_agrees, cast("Sequence[object]", value), parts))
    return value == wanted


def _holds(value: object, name: str, operand: object) -> bool:
    if name in ("$eq", "$ne"):
        return (value == operand) is (name == "$eq")
    left, right = _number(value), _number(operand)
    return left is not None and right is not None and ORDERS[name](left, right)


def _number(value: Any) -> float | None:
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError):
        return None


def stored_conditions(wanted: Mapping[str, Any]) -> dict[str, Scalar]:
    """Return the metadata that every item has that a filter matches; the filter itself has to be checked, too.

    These are its equal texts and numbers. 0 and 1 are left out, which equal False and True in Python, but not in
    filters of episodes.
    """
    found: dict[str, Scalar] = {}
    for name, condition in wanted.items():
        value = cast("Mapping[str, Any]", condition).get("$eq") if isinstance(condition, Mapping) else condition
        is_number = isinstance(value, (int, float)) and math.isfinite(value) and value not in (0, 1)
        if (isinstance(value, str) or is_number) and _is_stored(name, value):
            found[f"value.{name}"] = cast("Scalar", value)
    return found
