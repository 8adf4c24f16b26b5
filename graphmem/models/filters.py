"""Filters of episodes by their fields and metadata, and their meaning, which every store implements."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any, Literal, cast, get_args

from pydantic import BeforeValidator, Field

from graphmem.models.attachments import ATTACHMENTS
from graphmem.models.base import Model, Properties, Scalar, Text, UTCDateTime
from graphmem.models.rows import Episode, EpisodeSource

Operator = Literal["$eq", "$ne", "$gt", "$gte", "$lt", "$lte", "$in", "$nin", "$exists"]
_OPERATORS = frozenset(get_args(Operator))
ORDERS: Mapping[str, Callable[[Any, Any], bool]] = {
    "$gt": operator.gt,
    "$gte": operator.ge,
    "$lt": operator.lt,
    "$lte": operator.le,
}


class _Value(Model):
    """A value of a condition, checked like a metadata value."""

    metadata: Properties


def _scalar(key: str, name: str, value: object) -> Scalar:
    if value is not None and not isinstance(value, (str, int, float)):
        raise ValueError(f"{key}: {name} takes a text, a number, a boolean or null, got {value!r:.80}")
    return next(iter(_Value(metadata={key: value}).metadata.values()))


def _operand(key: str, name: object, value: object) -> Any:
    """Return the value of an operator in the form that stores compare; raise ValueError if it takes another type."""
    if name not in _OPERATORS:
        raise ValueError(f"{key}: unknown operator {name!r:.40}; known are {', '.join(get_args(Operator))}")
    if name == "$exists":
        if not isinstance(value, bool):
            raise ValueError(f"{key}: $exists takes true or false, got {value!r:.80}")
        return value
    if name in ("$in", "$nin"):
        if isinstance(value, str) or not isinstance(value, (Sequence, set, frozenset)):
            raise ValueError(f"{key}: {name} takes a list, got {value!r:.80}")
        return [_scalar(key, str(name), one) for one in cast("Sequence[object]", value)]
    checked = _scalar(key, str(name), value)
    if name in ORDERS and (checked is None or isinstance(checked, bool)):
        raise ValueError(f"{key}: {name} takes a text or a number, got {checked!r}")
    return checked


def _conditions(given: object) -> dict[str, dict[str, Any]]:
    """Return conditions in full form, `$eq` in place of a bare value."""
    if not isinstance(given, Mapping):
        raise ValueError("expected a mapping of metadata keys to values or operators")
    found: dict[str, dict[str, Any]] = {}
    for raw, wanted in cast("Mapping[object, object]", given).items():
        if not isinstance(raw, str):
            raise ValueError(f"{raw!r:.80}: a metadata key is a text")
        [key] = _Value(metadata={raw: None}).metadata
        if key == ATTACHMENTS:
            raise ValueError(f"{key}: attachments can't be filtered")
        operators = cast("Mapping[object, object]", wanted) if isinstance(wanted, Mapping) else {"$eq": wanted}
        if not operators:
            raise ValueError(f"{key}: no operator is given; known are {', '.join(get_args(Operator))}")
        found[key] = {str(name): _operand(key, name, value) for name, value in operators.items()}
    return found


def _one_or_many(value: object) -> object:
    return (value,) if isinstance(value, str) else value


_Texts = Annotated[tuple[Text, ...], BeforeValidator(_one_or_many)]
_Sources = Annotated[tuple[EpisodeSource, ...], BeforeValidator(_one_or_many)]
_Conditions = Annotated[dict[str, Any], BeforeValidator(_conditions)]


class EpisodeFilter(Model):
    """Filter for episodes; None doesn't restrict, conditions are ANDed.

    Parameters
    ----------
    session_ids, speakers, roles, sources
        Allowed values of that field; one text stands for a list of it. They are compared as stored, so that upper and
        lower case differ, also of speakers, other than for `asked_by`.
    session_prefix
        Episodes of sessions whose id begins with this text: no wildcards, and upper and lower case differ.
    since, until
        Episodes that occurred at `since` or later, and before `until`.
    metadata
        Key → value, or key → operators with their values: ``{"topic": "tax", "page": {"$gte": 2, "$lt": 9}}``.

        ``$eq``, ``$ne``, ``$in``, ``$nin`` compare by type and value: 1 equals 1.0, but neither True nor "1". A key
        that an episode doesn't have counts as null. ``$gt``, ``$gte``, ``$lt``, ``$lte`` compare numbers with numbers
        and texts with texts, by code points; other values never match. ``$exists`` is true for a stored null.
    """

    session_ids: _Texts | None = None
    session_prefix: Text | None = None
    speakers: _Texts | None = None
    roles: _Texts | None = None
    sources: _Sources | None = None
    since: UTCDateTime | None = None
    until: UTCDateTime | None = None
    metadata: _Conditions = Field(default_factory=dict[str, Any])

    @property
    def is_empty(self) -> bool:
        """Whether the filter matches all episodes."""
        return not self.metadata and all(
            getattr(self, name) is None for name in type(self).model_fields if name != "metadata"
        )


def filter_matches(episode: Episode, wanted: EpisodeFilter) -> bool:
    """Return whether a filter matches an episode; the single definition that every store implements."""
    return (
        (wanted.session_ids is None or episode.session_id in wanted.session_ids)
        and (
            wanted.session_prefix is None
            or (episode.session_id is not None and episode.session_id.startswith(wanted.session_prefix))
        )
        and (wanted.speakers is None or episode.speaker in wanted.speakers)
        and (wanted.roles is None or episode.role in wanted.roles)
        and (wanted.sources is None or episode.source in wanted.sources)
        and (wanted.since is None or episode.occurred_at >= wanted.since)
        and (wanted.until is None or episode.occurred_at < wanted.until)
        and metadata_matches(episode.metadata, wanted.metadata)
    )


def metadata_matches(metadata: Mapping[str, Scalar], conditions: Mapping[str, Mapping[str, Any]]) -> bool:
    """Return whether all conditions hold for the metadata of an episode."""
    return all(
        _holds(metadata, key, name, value) for key, operators in conditions.items() for name, value in operators.items()
    )


def _holds(metadata: Mapping[str, Scalar], key: str, name: str, wanted: Any) -> bool:
    value = metadata.get(key)
    match name:
        case "$exists":
            return (key in metadata) is wanted
        case "$eq":
            return _equal(value, wanted)
        case "$ne":
            return not _equal(value, wanted)
        case "$in":
            return any(_equal(value, one) for one in wanted)
        case "$nin":
            return not any(_equal(value, one) for one in wanted)
        case _:
            return _comparable(value, wanted) and ORDERS[name](value, wanted)


def _equal(value: Scalar, wanted: Scalar) -> bool:
    return isinstance(value, bool) == isinstance(wanted, bool) and value == wanted


def _comparable(value: Scalar, wanted: Scalar) -> bool:
    if isinstance(value, bool) or value is None:
        return False
    return isinstance(value, str) == isinstance(wanted, str)
