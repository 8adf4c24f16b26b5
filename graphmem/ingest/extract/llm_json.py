"""Finds the JSON of an extraction in what a model replied: fenced, wrapped in prose, cut off or broken. Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any, cast

from graphmem.errors import ExtractionFailed

ENTITY_KEYS = ("entities", "nodes", "named_entities")
EDGE_KEYS = ("edges", "relationships", "relations", "facts", "triples", "triplets")
_KEYS = frozenset(ENTITY_KEYS + EDGE_KEYS)

_THINKING = re.compile(r"<(think|thinking|reasoning)>.*?(?:</\1>|\Z)", re.DOTALL | re.IGNORECASE)
_THOUGHT_END = re.compile(r"\A.*</(?:think|thinking|reasoning)>", re.DOTALL | re.IGNORECASE)
_FENCE = re.compile(r"```[\w-]*\s*\n?(.*?)(?:```|\Z)", re.DOTALL)
_OPENING = re.compile(r'[{\[](?=\s*[\[{"\'}\]])')
_KEYED_OPENING = re.compile(rf"[{{\[][\s\"'{{\[]{{0,16}}(?:{'|'.join(ENTITY_KEYS + EDGE_KEYS)})\b", re.IGNORECASE)

# mending is slow, worse so for deep nesting; this much is more than the limits let through
_MAX_MENDED = 32_000
_MAX_NESTING = 16
_MAX_STARTS = 64
_MAX_DEPTH = 3


def find_json(text: str) -> dict[str, Any] | list[Any]:
    """Return the extraction in a reply: an object with entities or edges, or a list of items.

    Raises
    ------
    ExtractionFailed
        If the reply is empty or holds no such JSON.
    """
    text = _THOUGHT_END.sub("", _THINKING.sub("", text)).strip()
    if not text:
        raise ExtractionFailed("the model's reply is empty")
    items: list[Any] | None = None
    for value in _candidates(text):
        found = as_extraction(value)
        if isinstance(found, dict):
            return found
        items = items or found  # a list may be a part of a broken object, which is better whole
    if items is not None:
        return items
    raise ExtractionFailed(f"no JSON with entities or edges in the model's reply ({len(text)} characters)")


def as_extraction(value: object) -> dict[str, Any] | list[Any] | None:
    """Return the part of a JSON value that is an extraction, looking through wrappers; None if there is none."""
    for _ in range(_MAX_DEPTH):
        if isinstance(value, list):
            items = cast("list[Any]", value)
            if len(items) == 1 and isinstance(items[0], dict) and _KEYS & _fields(cast("Any", items[0])).keys():
                value = cast("object", items[0])
                continue
            return items if all(isinstance(i, dict | list) for i in items) else None
        if not isinstance(value, Mapping):
            return None
        fields = _fields(cast("Mapping[object, Any]", value))
        if not fields or _KEYS & fields.keys():
            return fields
        inner = [cast("object", v) for v in fields.values() if isinstance(v, dict)]
        if len(inner) != 1 or "properties" in fields:  # a JSON Schema that is given back isn't an answer
            return None
        value = inner[0]
    return None


def _fields(value: Mapping[object, Any]) -> dict[str, Any]:
    return {str(key).strip().lower(): item for key, item in value.items()}


def _candidates(text: str) -> Iterator[object]:
    if whole := list(_strict(text)):
        yield from whole
        return
    blocks = [block.strip() for block in _FENCE.findall(text)]
    for block in blocks:
        yield from _strict(block)
    decoder = json.JSONDecoder()
    at, tried = 0, 0
    while tried < _MAX_STARTS and (start := _OPENING.search(text, at)):
        tried += 1
        try:
            value, at = decoder.raw_decode(text, start.start())
        except (ValueError, RecursionError):
            at = start.end()
            continue
        if value:  # an empty object within prose says nothing
            yield value
    for block in (*blocks, text):
        if opening := _KEYED_OPENING.search(block) or _OPENING.search(block):
            yield _mended(block[opening.start() : opening.start() + _MAX_MENDED])


def _strict(text: str) -> Iterator[object]:
    try:
        yield json.loads(text)
    except (ValueError, RecursionError):
        return


def _mended(text: str) -> object:
    depth = 0
    for mark in re.findall(r"[{}\[\]]", text):
        depth += 1 if mark in "{[" else -1
        if depth > _MAX_NESTING:
            return None
    import json_repair

    try:
        return cast("object", json_repair.loads(text))
    except (ValueError, RecursionError, IndexError, KeyError, TypeError, AttributeError):
        return None  # broken beyond what it can mend
