"""Selection of the grounded entities and edges of a model reply, within limits. Pure functions."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import islice
from typing import Any, TypeVar

from graphmem.errors import InvalidEntityName
from graphmem.ingest.extract.llm_parse import edges_in, entities_in
from graphmem.ingest.extract.llm_prompt import speaker_name
from graphmem.ontology import Ontology
from graphmem.protocols import ExtractedEdge, ExtractedEntity, Extraction, ExtractionRequest
from graphmem.text.normalize import canonical, display_name, require_name
from graphmem.text.words import unaccented

_APOSTROPHE = re.compile("['’‘`´]")
_POSSESSIVE = re.compile("(?<=\\w)['’‘`´]s\\b")
_WORD = re.compile(r"[^\W_]+")
# scripts without spaces between words, or with joined particles
_JOINED = re.compile("[\u0e00-\u0eff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")
_FILLERS = frozenset(
    "a an and at by de del der des di du el for from his her in la las le les los my of on or our the their to und "
    "van von with your".split()
)


def words(text: str) -> list[str]:
    """Return the lower-case words of a text without diacritics, possessives and plural endings."""
    if not text.isascii():
        text = unicodedata.normalize("NFC", unaccented(text))
    text = _APOSTROPHE.sub("", _POSSESSIVE.sub("", text.lower()))
    return [_singular(word) for word in _WORD.findall(text)]


@lru_cache(maxsize=8192)
def _singular(word: str) -> str:
    if len(word) < 4 or not word.endswith("s") or word.endswith(("ss", "us", "is")):
        return word
    if word.endswith("ies") and len(word) > 4:
        return word[:-3] + "y"
    if word.endswith(("sses", "xes", "ches", "shes")):
        return word[:-2]
    return word[:-1]


class Grounds:
    """Words of the texts that a name must occur in.

    Parameters
    ----------
    texts
        The episode, its context, its title, and the names of the speakers.
    """

    def __init__(self, texts: Iterable[str]) -> None:
        texts = list(texts)
        sequences = [words(text) for text in texts]
        self._texts = texts
        self._words = frozenset(word for sequence in sequences for word in sequence)
        self._phrases = "\n".join(f" {' '.join(sequence)} " for sequence in sequences)
        self._joined = "\n".join("".join(sequence) for sequence in sequences)

    @classmethod
    def of(cls, request: ExtractionRequest, speakers: Iterable[str]) -> Grounds:
        """Return the grounds for a request and its speakers."""
        episode = request.episode
        return cls([episode.text, episode.title or "", *(turn.text for turn in request.context), *speakers])

    def has(self, name: str) -> bool:
        """Return whether the texts contain a name: all its words that aren't fillers, or the whole name if all are."""
        parts = words(name)
        if not parts:  # a symbol, such as an emoji
            return bool(name.strip()) and any(name.strip() in text for text in self._texts)
        if _JOINED.search(name) and "".join(parts) in self._joined:
            return True
        content = [part for part in parts if part not in _FILLERS]
        if content:
            return all(part in self._words for part in content)
        return f" {' '.join(parts)} " in self._phrases


T = TypeVar("T")

_SPEAKER_WORDS = frozenset({"i", "me", "my", "myself", "mine", "speaker", "the speaker"})
_ADDRESSEE_WORDS = frozenset({"you", "your", "yourself", "addressee", "the addressee"})
_USER_WORDS = frozenset({"user", "the user"})
_USER_ROLES = (None, "user", "human")
# limit on the examined items of a long reply; the rest is counted as over the limit
_EXAMINED_PER_PLACE = 50


@dataclass(frozen=True, slots=True)
class Limits:
    """Maximum number of entities and edges per episode."""

    entities: int
    edges: int


def select(
    answer: dict[str, Any] | list[Any], request: ExtractionRequest, ontology: Ontology, limits: Limits
) -> Extraction:
    """Return the entities and edges of a reply that are grounded in the request, within the limits.

    Reasons counted for dropped items: "ungrounded" (a name found neither in the episode nor in its context, and each
    edge with such an end), "limit", "short name", "malformed entity", "malformed edge", "unreadable date".
    """
    return _Selection(request, ontology, limits).run(answer)


class _Selection:
    def __init__(self, request: ExtractionRequest, ontology: Ontology, limits: Limits) -> None:
        episode = request.episode
        speaker = speaker_name(episode)
        addressee = display_name(request.addressee) if request.addressee else None
        others = (speaker_name(turn) for turn in request.context)
        speakers = [name for name in (speaker, addressee, *others) if name]
        self._referents = {
            **dict.fromkeys(_SPEAKER_WORDS, speaker),
            **dict.fromkeys(_ADDRESSEE_WORDS, addressee),
            **dict.fromkeys(_USER_WORDS, speaker if episode.role in _USER_ROLES else addressee),
        }
        self._people = {canonical(name) for name in speakers}
        self._grounds = Grounds.of(request, speakers)
        self._short_names = ontology.short_names | self._people
        self._limits = limits
        self._dropped: Counter[str] = Counter()
        self._entities: dict[str, ExtractedEntity] = {}
        self._untyped_ends: set[str] = set()

    def run(self, answer: dict[str, Any] | list[Any]) -> Extraction:
        for entity in self._head(entities_in(answer, self._dropped), self._limits.entities):
            self._add(entity)
        edges: dict[tuple[str, str, str, bool], ExtractedEdge] = {}
        for edge in self._head(edges_in(answer, self._dropped), self._limits.edges):
            ends = self._ends(edge)
            if ends is None:
                continue
            kept = replace(edge, source=ends[0], target=ends[1])
            key = (canonical(ends[0]), edge.relation.lower(), canonical(ends[1]), edge.ended)
            if key in edges:
                continue
            if len(edges) >= self._limits.edges or not self._room_for(kept):
                self._dropped["limit"] += 1
            else:
                edges[key] = kept
        return Extraction(tuple(self._entities.values()), tuple(edges.values()), tuple(sorted(self._dropped.items())))

    def _head(self, items: Iterable[T], places: int) -> Iterator[T]:
        items = iter(items)
        yield from islice(items, places * _EXAMINED_PER_PLACE)
        if rest := sum(1 for _ in items):
            self._dropped["limit"] += rest

    def _add(self, entity: ExtractedEntity) -> None:
        name, reason = self._named(entity.name)
        if name is None:
            self._dropped[reason] += 1
            return
        key = canonical(name)
        if key in self._entities:
            return
        if len(self._entities) >= self._limits.entities:
            self._dropped["limit"] += 1
            return
        self._entities[key] = replace(entity, name=name, entity_type=self._type(key, entity.entity_type))

    def _named(self, raw: str) -> tuple[str | None, str]:
        """Return the resolved name, or None and the reason to drop it."""
        word = canonical(raw)
        if (person := self._referents.get(word)) and word not in self._people:
            return person, ""
        try:
            shown, _ = require_name(raw, self._short_names)
        except InvalidEntityName:
            return None, "short name"
        return (shown, "") if self._grounds.has(shown) else (None, "ungrounded")

    def _type(self, key: str, stated: str) -> str:
        return "person" if key in self._people and stated == "concept" else stated

    def _ends(self, edge: ExtractedEdge) -> tuple[str, str] | None:
        (source, why), (target, why_not) = self._named(edge.source), self._named(edge.target)
        if source is None or target is None:
            self._dropped[why or why_not] += 1
            return None
        return source, target

    def _room_for(self, edge: ExtractedEdge) -> bool:
        """Add the ends of an edge that aren't entities yet; return whether the limit allows all of them.

        An end without a type isn't added as an entity: the writer resolves it to a known entity of that name, while an
        entity of type concept would be a different one.
        """
        new: dict[str, ExtractedEntity | None] = {}
        for name, stated in ((edge.source, edge.source_type), (edge.target, edge.target_type)):
            key = canonical(name)
            if key in self._entities or key in self._untyped_ends:
                continue
            kind = "person" if key in self._people else stated
            new[key] = ExtractedEntity(name, kind, confidence=edge.confidence) if kind else None
        if len(self._entities) + len(self._untyped_ends) + len(new) > self._limits.entities:
            return False
        for key, entity in new.items():
            if entity is None:
                self._untyped_ends.add(key)
            else:
                self._entities[key] = entity
        return True
