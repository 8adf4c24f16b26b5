"""Interpretation of extractions: cleaned names, types, relations and times of what an episode states."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import get_args

from graphmem.errors import InvalidInput
from graphmem.models import STATED_KINDS, Certainty, EdgeType, Episode, Properties, new_id
from graphmem.models.base import is_placeholder
from graphmem.ontology import Ontology
from graphmem.protocols import ExtractedEdge, ExtractedEnding, ExtractedEntity, Extraction
from graphmem.text.normalize import canonical, fact_text, require_name

_CERTAINTIES = get_args(Certainty)
_EXCERPT = 300  # characters of a text that a judge of names sees


@dataclass(frozen=True, slots=True)
class EntityMention:
    """A cleaned name from an episode.

    `entity_type` None means unstated: the mention resolves to a known entity of that name, else to a new one of the
    `usual_type`, which comes from its relation.
    """

    display: str
    canonical: str
    entity_type: str | None
    usual_type: str | None = None
    declared_type: str | None = None
    summary: str = ""
    confidence: float = 1.0
    guessed: bool = False
    """Whether `usual_type` is an extractor's guess; `entity_type` is None then."""
    aliases: tuple[str, ...] = ()
    """Canonical forms of other names that the text tells."""
    text: str = ""
    """Beginning of the text that has the name, for a judge."""

    @classmethod
    def of(
        cls,
        name: str,
        entity_type: str | None,
        ontology: Ontology,
        *,
        usual_type: str | None = None,
        summary: str = "",
        confidence: float = 1.0,
        allowed: frozenset[str] = frozenset(),
        guessed: bool = False,
        aliases: Sequence[str] = (),
        text: str = "",
    ) -> EntityMention:
        """Return a mention with its name and type cleaned.

        Raises
        ------
        InvalidEntityName
            If the cleaned name is too short.
        """
        display, key = require_name(name, ontology.short_names | allowed if allowed else ontology.short_names)
        kind, declared = (None, None) if entity_type is None else ontology.entity_type(entity_type)
        if guessed:
            kind, usual_type = None, kind
        others = tuple(alias for alias in dict.fromkeys(map(canonical, aliases)) if alias and alias != key)
        return cls(display, key, kind, usual_type, declared, summary, confidence, guessed, others, text)


@dataclass(frozen=True, slots=True)
class ExtractedFact:
    """A cleaned fact of an episode, before its ends are resolved; `edge_id` is the id of the edge if it is new."""

    source: EntityMention
    target: EntityMention
    relation: str
    edge_type: EdgeType
    fact: str
    stated: ExtractedEdge
    properties: Properties = field(default_factory=dict[str, "str | int | float | bool | None"])
    edge_id: str = field(default_factory=new_id, compare=False)


@dataclass(frozen=True, slots=True)
class Ending:
    """End of a known fact, named by its id or by source, relation and target, before these are resolved.

    Without a target it is the current fact of a single-valued relation.
    """

    source: EntityMention | None
    relation: str
    stated: ExtractedEnding
    target: EntityMention | None = None


@dataclass(frozen=True, slots=True)
class InterpretedEpisode:
    """Cleaned extraction of an episode.

    Attributes
    ----------
    contradicted
        Position of a statement → ids of edges that it ends, known ones or of earlier episodes, from the contradiction
        check.
    settles
        Whether the write marks the episode as processed; False for ready-made triples, which are never queued.
    is_list
        Whether it is a list of triples without a source: its external id is made from them, so that a stored episode
        with this id has the same triples.
    """

    episode: Episode
    mentions: tuple[EntityMention, ...]
    statements: tuple[ExtractedFact, ...]
    contradicted: Mapping[int, tuple[str, ...]] = field(default_factory=dict[int, tuple[str, ...]])
    settles: bool = True
    is_list: bool = False
    endings: tuple[Ending, ...] = ()


def read_extraction(
    episode: Episode, extraction: Extraction, ontology: Ontology, dropped: Counter[str]
) -> InterpretedEpisode:
    """Return a cleaned extraction; invalid entries are dropped and counted in `dropped` instead of raising."""
    dropped.update(dict(extraction.dropped))
    speaker = frozenset({canonical(episode.speaker)} if episode.speaker else ()) | extraction.short_names
    text = (f"{episode.speaker}: " if episode.speaker else "") + episode.text[:_EXCERPT]
    mentions: dict[str, EntityMention] = {}
    for entity in extraction.entities:
        mention = _mention(entity, ontology, speaker, text, dropped)
        if mention is not None:
            mentions.setdefault(mention.canonical, mention)
    statements: list[ExtractedFact] = []
    for edge in extraction.edges:
        begin, until = _dated(edge.valid_from), _dated(edge.valid_to)
        if (begin, until) != (edge.valid_from, edge.valid_to):
            edge = replace(edge, valid_from=begin, valid_to=until)
        try:
            statements.append(statement_of(edge, mentions, ontology, allowed=speaker))
        except InvalidInput as error:
            dropped[_reason(error)] += 1
    endings: list[Ending] = []
    for ending in extraction.endings:
        if ending.valid_to != _dated(ending.valid_to):
            ending = replace(ending, valid_to=None)
        if ending.fact_id is not None:
            endings.append(Ending(None, "", ending))
            continue
        relation = ontology.relation(ending.relation)
        all_ended = ending.others == "targets" or ontology.is_single_valued(relation)
        if ending.target is None and not all_ended:
            dropped["ending of a relation with several values"] += 1
            continue
        try:
            source = EntityMention.of(ending.source, ending.source_type, ontology, allowed=speaker)
            target = None if ending.target is None else EntityMention.of(ending.target, None, ontology, allowed=speaker)
        except InvalidInput as error:
            dropped[_reason(error)] += 1
            continue
        target = target and mentions.get(target.canonical, target)
        endings.append(Ending(mentions.get(source.canonical, source), relation, ending, target))
    return InterpretedEpisode(episode, tuple(mentions.values()), tuple(statements), endings=tuple(endings))


def _mention(
    entity: ExtractedEntity, ontology: Ontology, speaker: frozenset[str], text: str, dropped: Counter[str]
) -> EntityMention | None:
    try:
        return EntityMention.of(
            entity.name,
            entity.entity_type,
            ontology,
            summary=fact_text(entity.summary),
            confidence=clamped(entity.confidence),
            allowed=speaker,
            guessed=entity.guessed,
            aliases=entity.aliases,
            text=text,
        )
    except InvalidInput as error:
        dropped[_reason(error)] += 1
        return None


def statement_of(
    edge: ExtractedEdge,
    mentions: Mapping[str, EntityMention],
    ontology: Ontology,
    *,
    allowed: frozenset[str] = frozenset(),
    properties: Properties | None = None,
) -> ExtractedFact:
    """Return a cleaned fact.

    Parameters
    ----------
    edge
        The extracted fact.
    mentions
        Entities of the same episode by canonical name; they supply types that the fact doesn't state.
    ontology
        Types and relations.
    allowed
        Canonical names that may be shorter than three characters.
    properties
        Properties of the edge.

    Raises
    ------
    InvalidInput
        If a name is too short or the relation is empty after cleaning, both ends are the same, a time is naive, or the
        certainty or the kind is none that the store knows.
    """
    if edge.certainty not in _CERTAINTIES or edge.kind not in STATED_KINDS:
        raise InvalidInput(f"unknown certainty or kind: {edge.certainty!r:.40}, {edge.kind!r:.40}")
    for field_name, moment in (("valid_from", edge.valid_from), ("valid_to", edge.valid_to)):
        if moment is not None and moment.utcoffset() is None:
            raise InvalidInput(f"naive {field_name}: {moment.isoformat()} has no time zone")
    relation = ontology.relation(edge.relation)
    source_type, target_type = ontology.signature(relation)
    confidence = clamped(edge.confidence)

    def end(name: str, stated: str | None, usual: str | None) -> EntityMention:
        mention = EntityMention.of(name, stated, ontology, usual_type=usual, confidence=confidence, allowed=allowed)
        listed = mentions.get(mention.canonical)
        return listed if listed is not None and (listed.guessed or not stated) else mention

    source = end(edge.source, edge.source_type, source_type)
    target = end(edge.target, edge.target_type, target_type)
    if (source.canonical, source.entity_type) == (target.canonical, target.entity_type):
        raise InvalidInput(f"self-loop: {edge.source!r} {relation} itself")
    kind, fact = ontology.edge_type(edge.edge_type, relation), fact_text(edge.fact)
    return ExtractedFact(source, target, relation, kind, fact, edge, properties or {})


def _dated(moment: datetime | None) -> datetime | None:
    """Return a time that is stated, or None for one that stands for no date."""
    return None if moment is None or is_placeholder(moment) else moment


def clamped(confidence: float) -> float:
    """Return a confidence within [0, 1], 0 for NaN."""
    return min(1.0, max(0.0, confidence)) if confidence == confidence else 0.0  # NaN differs from itself


def _reason(error: InvalidInput) -> str:
    return re.split("[:'\"]", str(error), maxsplit=1)[0].strip()  # without the name that it quotes
