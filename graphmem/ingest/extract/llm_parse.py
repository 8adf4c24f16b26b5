"""Lenient parser of the JSON in model replies: fenced, truncated, or with other field names. Pure functions.

An invalid item is dropped and counted by reason; the other items are kept.
"""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Literal, cast

from graphmem.errors import ExtractionFailed
from graphmem.llm.structured import without_thoughts
from graphmem.models import Certainty
from graphmem.protocols import EndingReason, ExtractedEdge, ExtractedEntity
from graphmem.text.date_patterns import MONTHS
from graphmem.text.dates import DateSpan, find_dates
from graphmem.text.terms import stems

ENTITY_KEYS = ("entities", "nodes", "named_entities")
EDGE_KEYS = ("facts", "edges", "relationships", "relations", "triples", "triplets")
ENDING_KEYS = ("ended", "endings", "ends")
_KEYS = frozenset(ENTITY_KEYS + EDGE_KEYS)
_LISTS = {"entities": ENTITY_KEYS, "facts": EDGE_KEYS, "ended": ENDING_KEYS}
_OF_AN_ITEM = frozenset({"name", "source", "subject"})

_FENCE = re.compile(r"```[\w-]*\s*\n?(.*?)(?:```|\Z)", re.DOTALL)
_OPENING = re.compile(r'[{\[](?=\s*[\[{"\'}\]])')
_KEYED_OPENING = re.compile(rf"[{{\[][\s\"'{{\[]{{0,16}}(?:{'|'.join(ENTITY_KEYS + EDGE_KEYS)})\b", re.IGNORECASE)

# limits for the slow repair of JSON; larger than any reply within the limits on items
_MAX_REPAIRED = 32_000
_MAX_NESTING = 16
_MAX_STARTS = 64
_MAX_DEPTH = 3


def find_json(text: str) -> dict[str, Any] | list[Any]:
    """Return the extraction in a reply: an object with entities or edges, or a list of items.

    Thoughts are removed, and of several objects the last one is taken: a model that drafts concludes with its answer.

    Raises
    ------
    ExtractionFailed
        If the reply is empty or contains no such JSON.
    """
    text = without_thoughts(text)
    if not text:
        raise ExtractionFailed("the model's reply is empty")
    for values in _candidates(text):
        found = [extraction for value in values if (extraction := as_extraction(value)) is not None]
        # prefer a whole object: a list may be a part of a broken one
        objects = [extraction for extraction in found if isinstance(extraction, dict)]
        if found:
            return objects[-1] if objects else found[0]
    raise ExtractionFailed(f"no JSON with entities or edges in the model's reply ({len(text)} characters)")


def as_extraction(value: object) -> dict[str, Any] | list[Any] | None:
    """Return the extraction in a JSON value, unwrapping single-element wrappers; None if there is none."""
    for _ in range(_MAX_DEPTH):
        if isinstance(value, list):
            items = cast("list[Any]", value)
            if len(items) == 1 and isinstance(items[0], dict) and _KEYS & _fields(cast("Any", items[0])).keys():
                value = cast("object", items[0])
                continue
            if (joined := _joined(cast("object", items))) is not None:
                return joined
            return items if all(isinstance(i, dict | list) for i in items) else None
        if not isinstance(value, Mapping):
            return None
        fields = _fields(cast("Mapping[object, Any]", value))
        if not fields or _KEYS & fields.keys() or isinstance(fields.get("ended"), list):
            return fields
        inner = [cast("object", v) for v in fields.values() if isinstance(v, dict) or _joined(v) is not None]
        if len(inner) != 1 or "properties" in fields:  # an echoed JSON Schema isn't a reply
            return None
        value = inner[0]
    return None


def _joined(value: object) -> dict[str, Any] | None:
    """Return a list of extractions, such as one for each episode, as one; None for any other value."""
    items = cast("list[object]", value) if isinstance(value, list) else []
    each = [_lowered(cast("Mapping[object, Any]", item)) if isinstance(item, Mapping) else {} for item in items]
    told = [fields for fields in each if not fields or fields.keys() - _EPISODE]  # of others the number is all there is
    if not told or not all(map(_is_extraction, told)):
        return None
    joined: dict[str, list[object]] = {name: [] for name in _LISTS}
    for fields in each:
        number = {key: fields[key] for key in _EPISODE if key in fields}
        for name, keys in _LISTS.items():
            for item in _items(fields, keys):
                joined[name].append({**number, **cast("Item", item)} if isinstance(item, Mapping) else item)
    return joined


def _is_extraction(fields: Mapping[str, Any]) -> bool:
    """Return whether an object in a list has lists of an extraction, and isn't an item with its own relations."""
    has_lists = bool(_KEYS & fields.keys()) or isinstance(fields.get("ended"), list)
    return has_lists and not (_OF_AN_ITEM | {"entity"}) & fields.keys()


def _fields(value: Mapping[object, Any]) -> dict[str, Any]:
    return {str(key).strip().lower(): item for key, item in value.items()}


def _candidates(text: str) -> Iterator[list[object]]:
    """Yield the JSON values of a reply by each way of finding them, the strictest first."""
    if whole := list(_strict(text)):
        yield whole
        return
    blocks = [block.strip() for block in _FENCE.findall(text)]
    yield [value for block in blocks for value in _strict(block)]
    decoder = json.JSONDecoder()
    at, tried, found = 0, 0, list[object]()
    while tried < _MAX_STARTS and (start := _OPENING.search(text, at)):
        tried += 1
        try:
            value, at = decoder.raw_decode(text, start.start())
        except (ValueError, RecursionError):
            at = start.end()
            continue
        if value:  # ignores empty objects in prose
            found.append(value)
    # a list after a broken beginning may be a part of the answer
    yield [value for value in found if isinstance(value, dict)]
    yield [
        _repaired(block[opening.start() : opening.start() + _MAX_REPAIRED])
        for block in (*blocks, text)
        if (opening := _KEYED_OPENING.search(block) or _OPENING.search(block))
    ]
    yield found


def _strict(text: str) -> Iterator[object]:
    try:
        yield json.loads(text)
    except (ValueError, RecursionError):
        return


def _repaired(text: str) -> object:
    depth = 0
    for mark in re.findall(r"[{}\[\]]", text):
        depth += 1 if mark in "{[" else -1
        if depth > _MAX_NESTING:
            return None
    import json_repair

    try:
        return cast("object", json_repair.loads(text))
    except (ValueError, RecursionError, IndexError, KeyError, TypeError, AttributeError):
        return None  # not repairable


_NAME = ("name", "entity", "entity_name", "text", "label", "title", "id")
_TYPE = ("entity_type", "type", "category", "kind", "label")
_SUMMARY = ("summary", "description")
_SOURCE = ("source", "subject", "from", "head", "source_entity", "source_name", "start", "s")
_RELATION = ("relation", "predicate", "relationship", "relation_type", "verb", "label", "type", "p", "r")
_TARGET = ("target", "object", "to", "tail", "target_entity", "target_name", "end", "o")
_FACT = ("fact", "sentence", "description", "evidence")
_EPISODE = ("episode", "turn", "episode_number", "number")
_CONFIDENCE = ("confidence", "score", "certainty")

_LEVELS = {"certain": 1.0, "very high": 0.95, "high": 0.9, "medium": 0.6, "moderate": 0.6, "low": 0.3, "very low": 0.1}
_CERTAINTIES: tuple[tuple[re.Pattern[str], Certainty], ...] = (
    (re.compile("plan|inten[dt]|schedul"), "plan"),
    (re.compile("hear|report|rumou?r|said to|quot"), "hearsay"),
    (re.compile(r"^(?:$|[\d.]+\s*%?$|(?:stated|certain|sure|fact|true|known|high|very high)\b)"), "stated"),
)
"""Words of replies that don't follow the schema; any other word is a guess, which ends no stated fact."""
_CONFIDENCE_OF: Mapping[Certainty, float] = {"stated": 1.0, "plan": 0.9, "hearsay": 0.5, "possible": 0.4}
_NOTHING = frozenset({"", "null", "none", "nil", "n/a", "na", "unknown", "unspecified", "present", "now", "ongoing"})
_TRUE = frozenset({"true", "yes", "y", "1"})
_YEAR_OR_MONTH = re.compile(r"(\d{4})(?:[-/](\d{1,2}))?\Z")
_QUARTER = re.compile(r"(\d{4})[-/ ]?Q([1-4])\Z|Q([1-4])[-/ ]?(\d{4})\Z", re.IGNORECASE)
_DAY = re.compile(r"\d{4}(?:[-/]\d{1,2}[-/]\d{1,2}|\d{4})\Z")
_MIDNIGHT = re.compile(r"[T ]00:00(?::00)?(?:Z|[+-]00:00)?\Z")
"""Time that models add to a day for which they are asked."""
_OVER = ("no_longer_", "used_to_")
"""Beginnings of relations that say that a fact is over."""
_PURPOSE = re.compile(r"(?:\b(?:am|are|be|been|being|is|was|were)|['’](?:m|re|s)) (?:\w+ )?used to\b", re.IGNORECASE)
"""Words of a sentence that tell what something serves for: "Ninja is used to build it"."""
_NUMBERED = re.compile(r"[#\[(]{0,2}(\d{1,5})[.\])]{0,2}\Z")

Item = Mapping[str, Any]
_PREPOSITIONS = frozenset("by during from in on since the until".split())
_LONGEST_DATE = 60
_YEAR = timedelta(days=365)
_LATEST = datetime(9998, 1, 1, tzinfo=UTC)


def entities_in(value: dict[str, Any] | list[Any], dropped: Counter[str]) -> Iterator[ExtractedEntity]:
    """Yield the entities of an extraction in order, counting invalid ones in `dropped`."""
    for item in _items(value, ENTITY_KEYS):
        if _is_edge(item, triples=isinstance(value, list)):
            continue
        entity = read_entity(item)
        if entity is None:
            dropped["malformed entity"] += 1
        else:
            yield entity


def edges_in(
    value: dict[str, Any] | list[Any], dropped: Counter[str], told_at: datetime | None = None
) -> Iterator[ExtractedEdge]:
    """Yield the edges of an extraction in order, counting invalid ones in `dropped`; `told_at` as for `read_time`."""
    for item in _items(value, EDGE_KEYS):
        if isinstance(value, list) and not _is_edge(item, triples=True):
            continue
        edge = read_edge(item, dropped, told_at)
        if edge is None or not any(map(str.isalnum, edge.relation)):
            dropped["malformed edge"] += 1
        else:
            yield edge


def read_entity(item: object) -> ExtractedEntity | None:
    """Parse an entity from its name, a list of name, type and summary, or an object; None without a name."""
    if isinstance(item, str):
        return ExtractedEntity(item) if item.strip() else None
    if isinstance(item, Sequence):
        parts = [_text(part) for part in cast("Sequence[object]", item)]
        if not 1 <= len(parts) <= 3 or not parts[0]:
            return None
        name, kind, summary = (*parts, "", "")[:3]
        return ExtractedEntity(name, kind or "concept", summary)
    if not isinstance(item, Mapping):
        return None
    fields = _lowered(cast("Mapping[object, Any]", item))
    named_by, name = _first(fields, _NAME)
    if not name:
        return None
    _, kind = _first({k: v for k, v in fields.items() if k != named_by}, _TYPE)
    aliases = cast("object", fields.get("aliases"))
    named = [_text(alias) for alias in cast("list[object]", aliases)] if isinstance(aliases, list) else [_text(aliases)]
    return ExtractedEntity(
        name,
        kind or "concept",
        _first(fields, _SUMMARY)[1],
        read_confidence(_any(fields)),
        aliases=tuple(alias for alias in named if alias),
    )


def read_edge(item: object, dropped: Counter[str], told_at: datetime | None = None) -> ExtractedEdge | None:
    """Parse an edge from a list of source, relation and target, or an object; None if one of them is missing."""
    if isinstance(item, Sequence) and not isinstance(item, str):
        parts = [_text(part) for part in cast("Sequence[object]", item)]
        if len(parts) != 3 or not all(parts):
            return None
        source, relation, target = parts
        return ExtractedEdge(source, relation, target)
    if not isinstance(item, Mapping):
        return None
    fields = _lowered(cast("Mapping[object, Any]", item))
    _, source = _first(fields, _SOURCE)
    related_by, relation = _first(fields, _RELATION)
    _, target = _first(fields, _TARGET)
    if not (source and relation and target):
        return None
    certainty = read_certainty(fields.get("certainty"))
    rated = certainty == "stated" or "confidence" in fields
    confidence = read_confidence(_any(fields)) if rated else _CONFIDENCE_OF[certainty]
    happened: Literal["state", "event"] = "event" if _text(fields.get("kind")).lower() == "event" else "state"
    begin = read_time(fields.get("valid_from"), dropped, told_at)
    end = read_end(fields.get("valid_to"), dropped, told_at)
    phrase = "_".join(relation.lower().replace("_", " ").split())
    over = next((beginning for beginning in _OVER if told_at and phrase.startswith(beginning)), "")
    if over == "used_to_" and _PURPOSE.search(_first(fields, _FACT)[1]):
        over = ""
    if over == "no_longer_" and end is None:
        begin, end = None, begin
    if happened == "event" and begin is not None and end is None:
        until = read_end(fields.get("valid_from"), Counter(), told_at)
        end = until if until is not None and until - begin > timedelta(days=1) else None  # some day of a month or year
    kind = _text(fields.get("edge_type")) or ("" if related_by == "type" else _text(fields.get("type")))
    return ExtractedEdge(
        source,
        phrase.removeprefix(over) if over else relation,
        target,
        edge_type=kind.lower() or None,
        fact=_first(fields, _FACT)[1],
        confidence=confidence,
        valid_from=begin,
        valid_to=end,
        ended=bool(over) or _text(fields.get("ended")).lower() in _TRUE,
        source_type=_text(fields.get("source_type")) or None,
        target_type=_text(fields.get("target_type")) or None,
        certainty=certainty,
        kind=happened,
    )


def read_confidence(value: object) -> float:
    """Parse a confidence from 0.9, "0.9", "90%", 90 or "high"; 1.0 for missing or invalid values."""
    if isinstance(value, str):
        word = value.strip().lower()
        if word in _LEVELS:
            return _LEVELS[word]
        percent = word.endswith("%")
        try:
            value = float(word.rstrip("% ")) / (100 if percent else 1)
        except ValueError:
            return 1.0
    if isinstance(value, bool) or not isinstance(value, int | float) or not _finite(value):
        return 1.0
    return max(0.0, value / 100 if 1 < value <= 100 else min(float(value), 1.0))


def read_certainty(value: object) -> Certainty:
    """Parse a certainty by the words it contains; stated for none or a number, possible for other words."""
    text = _text(value).lower() if isinstance(value, str) else ""
    for words, certainty in _CERTAINTIES:
        if words.search(text):
            return certainty
    return "possible"


def read_time(value: object, dropped: Counter[str], told_at: datetime | None = None) -> datetime | None:
    """Parse an ISO 8601 time, date, month, quarter or year (naive: UTC), or a date in words ("May 2024").

    Returns None for invalid values, which are counted in `dropped`, and for words without the time of telling.
    """
    text = _text(value)
    if text.lower() in _NOTHING:
        return None
    try:
        if match := _QUARTER.match(text):
            year, quarter = (match[1], match[2]) if match[1] else (match[4], match[3])
            return datetime(int(year), 3 * int(quarter) - 2, 1, tzinfo=UTC)
        if match := _YEAR_OR_MONTH.match(text):
            return datetime(int(match[1]), int(match[2] or 1), 1, tzinfo=UTC)
        time = datetime.fromisoformat(text)
        return (time if time.tzinfo else time.replace(tzinfo=UTC)).astimezone(UTC)
    except (ValueError, OverflowError):
        if (span := _in_words(text, told_at)) is not None:
            return span.begin
        dropped["unreadable date"] += 1
        return None


def _in_words(text: str, told_at: datetime | None, *, is_end: bool = False) -> DateSpan | None:
    """Return the date that is all that a text says; None if it may be one in the past and one ahead, as "Monday".

    Of a day or a month without a year it is the nearer one, if the other one is more than twice as far away. Only an
    end may be ahead then: "since May" is past.
    """
    if told_at is None or len(text) > _LONGEST_DATE or ":" in text:
        return None
    text = f"in {text}" if text.lower() in MONTHS else text
    found, ahead = find_dates(text, told_at), find_dates(text, told_at, future=True)
    if len(found) != 1 or len(ahead) != 1:
        return None
    if found != ahead:
        before, after = told_at - found[0].begin, ahead[0].begin - told_at
        is_past, is_ahead = before * 2 < after, is_end and after * 2 < before
        if before + after < _YEAR or not (is_past or is_ahead):
            return None
        found = found if is_past else ahead
    others = f"{text[: found[0].start]} {text[found[0].end :]}".lower().split()
    return found[0] if _PREPOSITIONS.issuperset(others) else None


def read_end(value: object, dropped: Counter[str], told_at: datetime | None = None) -> datetime | None:
    """Parse the last day, month, quarter or year of a fact; return the moment after it. A time is returned as it is.

    With a time of telling, which replies have, the first moment of a day stands for the day. The other parameters are
    those of `read_time`.
    """
    text, unreadable = _text(value), Counter[str]()
    if told_at is not None:
        text = _MIDNIGHT.sub("", text)
    begin = read_time(value, unreadable, told_at)
    if begin is None and not unreadable:
        return None
    if match := _YEAR_OR_MONTH.match(text):
        months = 1 if match[2] else 12
    elif _QUARTER.match(text):
        months = 3
    elif begin is not None and _DAY.match(text):
        return begin + timedelta(days=1) if begin < _LATEST else begin
    elif (span := _in_words(text, told_at, is_end=True)) is not None:
        return span.until
    else:
        months = 0
    dropped.update(unreadable)
    if begin is None or not months:
        return begin
    if begin >= _LATEST:
        return begin
    year, month = divmod(begin.year * 12 + begin.month - 1 + months, 12)
    return begin.replace(year=year, month=month + 1)


@dataclass(frozen=True, slots=True)
class EndedItem:
    """The end of a fact as a model wrote it, or that it is called off: the number of a known fact, or what was so."""

    known: int | None
    source: str
    relation: str
    target: str
    at: datetime | None
    why: EndingReason


def ended_in(
    value: dict[str, Any] | list[Any], dropped: Counter[str], told_at: datetime | None = None
) -> Iterator[EndedItem]:
    """Yield the ends of facts in an extraction, counting invalid ones in `dropped`.

    An end given only as the year in which it was told is at the latest the time of telling (`told_at`).
    """
    for item in _items(value, ENDING_KEYS) if isinstance(value, dict) else ():
        fields = _lowered(cast("Mapping[object, Any]", item)) if isinstance(item, Mapping) else {"known": item}
        number = read_number(fields.get("known"))
        stated = _first(fields, ("at", "valid_to", "until"))[1]
        at = read_end(stated, dropped, told_at)
        begin = read_time(stated, Counter(), told_at)
        if told_at and at and begin and begin <= told_at < at and at - begin >= _YEAR:
            at = told_at
        ended = EndedItem(
            known=number,
            source=_first(fields, _SOURCE)[1],
            relation=_first(fields, _RELATION)[1],
            target=_first(fields, _TARGET)[1],
            at=at,
            why=_reason(_text(fields.get("why")).lower()),
        )
        if number is None and not (ended.source and ended.relation):
            dropped["malformed end"] += 1
        else:
            yield ended


def _reason(why: str) -> EndingReason:
    return "corrected" if why.startswith("correct") else "continues" if why.startswith("continu") else "over"


def by_episode(value: dict[str, Any] | list[Any], texts: Sequence[Collection[str]]) -> list[dict[str, Any]]:
    """Return the extraction of each episode, given the words of each.

    An item without the number of an episode belongs to the one that shares most words with it, the last of several.
    """
    if isinstance(value, list):
        entities = [item for item in value if not _is_edge(item, triples=True)]
        value = {"entities": entities, "facts": [item for item in value if _is_edge(item, triples=True)]}
    count = len(texts)
    parts: list[dict[str, list[object]]] = [{name: [] for name in _LISTS} for _ in texts]
    for name, keys in _LISTS.items():
        for item in _items(value, keys):
            fields = _lowered(cast("Mapping[object, Any]", item)) if isinstance(item, Mapping) else {}
            number = read_number(next((fields[key] for key in _EPISODE if key in fields), None))
            if number is None or not 1 <= number <= count:
                said = stems(str(cast("object", item)))
                number = max(range(1, count + 1), key=lambda n: (len(said.intersection(texts[n - 1])), n))
            parts[number - 1][name].append(cast("object", item))
    return cast("list[dict[str, Any]]", parts)


def read_number(value: object) -> int | None:
    """Parse a whole number of at most five digits, which may be a text such as "3" or "[3]"; None for anything else."""
    match = _NUMBERED.match(_text(value))
    return int(match[1]) if match else None


def _items(value: dict[str, Any] | list[Any], keys: Sequence[str]) -> Iterator[object]:
    if isinstance(value, list):
        yield from value
        return
    for key in keys:
        held = value.get(key)
        if isinstance(held, str) and held.lstrip().startswith(("[", "{")):  # some models quote the lists of a tool call
            held = _repaired(held[:_MAX_REPAIRED])
        if isinstance(held, Mapping):
            yield from _keyed(cast("Mapping[str, Any]", held))
        elif isinstance(held, list):
            yield from cast("list[object]", held)
        elif held:
            yield held
        if held:
            return


def _keyed(held: Mapping[str, Any]) -> Iterator[object]:
    """Yield the items of an object used instead of a list: a single item, or items keyed by name or type."""
    if _OF_AN_ITEM & held.keys():
        yield held
        return
    for key, item in held.items():
        if isinstance(item, Mapping):
            yield {"name": key, **cast("Item", item)}
        elif isinstance(item, list):
            yield from ({"name": name, "type": key} for name in cast("list[object]", item))
        else:
            yield {"name": key, "type": item}


def _is_edge(item: object, *, triples: bool) -> bool:
    """Return whether an item of a mixed list is an edge."""
    if isinstance(item, Mapping):
        fields = _lowered(cast("Mapping[object, Any]", item))
        return any(key in fields for key in _SOURCE[:4]) and any(key in fields for key in _TARGET[:4])
    return triples and isinstance(item, list) and len(cast("list[object]", item)) == 3


def _lowered(item: Mapping[object, Any]) -> dict[str, Any]:
    return {str(key).strip().lower().replace(" ", "_").replace("-", "_"): value for key, value in item.items()}


def _first(fields: Item, keys: Sequence[str]) -> tuple[str, str]:
    for key in keys:
        if text := _text(fields.get(key)):
            return key, text
    return "", ""


def _any(fields: Item) -> object:
    return next((fields[key] for key in _CONFIDENCE if fields.get(key) is not None), None)


def _text(value: object) -> str:
    """Return a scalar as text, an object as its name, and other values as an empty string."""
    if isinstance(value, str):
        return value.strip()
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int | float):
        return str(value) if _finite(value) else ""
    if isinstance(value, Mapping):
        return _first(_lowered(cast("Mapping[object, Any]", value)), ("name", "entity", "text"))[1]
    return ""


def _finite(value: float) -> bool:
    try:
        return math.isfinite(value)
    except OverflowError:  # integer too large for a float
        return False
