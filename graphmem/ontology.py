"""Ontology: entity types, edge types and well-known relations, and files that extend the defaults."""

from __future__ import annotations

import logging
import tomllib
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from graphmem.errors import InvalidInput
from graphmem.models import EdgeType
from graphmem.text.normalize import canonical, relation_name

_log = logging.getLogger(__name__)

ENTITY_TYPES = (
    "person",
    "organization",
    "location",
    "event",
    "project",
    "decision",
    "tool",
    "technology",
    "language",
    "concept",
    "file",
    "config",
)

FLOW_WEIGHT: Mapping[EdgeType, float] = {
    EdgeType.SEMANTIC: 1.0,
    EdgeType.TEMPORAL: 0.9,
    EdgeType.CAUSAL: 1.2,
    EdgeType.ENTITY: 0.8,
    EdgeType.CO_OCCURRENCE: 0.5,
}
"""Weight of each edge type in the relevance propagation of recall (MAGMA, arXiv 2601.03236)."""

SINGLE_VALUED = frozenset(
    "works_at lives_in born_in manages married_to has_status has_budget deployed_on has_birthday has_age has_salary "
    "has_rent has_phone_number has_email".split()
)

MULTI_VALUED = frozenset(
    {
        "created",
        "uses",
        "implements",
        "part_of",
        "relates_to",
        "mentioned_in",
        "supersedes",
        "conflicts_with",
        "prefers",
        "decided",
        "similar_to",
    }
)

CONTACT_RELATIONS = frozenset({"has_email", "has_phone_number"})
"""Relations whose targets are personal data: such facts aren't stored where personal data is redacted."""

_SYNONYMS = {
    "works_at": "employed_by employed_at works_for work_at work_for is_employed_by has_job_at working_at working_for",
    "lives_in": "resides_in live_in living_in lives_at is_living_in residing_in based_in resides_at",
    "born_in": "was_born_in birthplace place_of_birth born_at",
    "manages": "is_manager_of managing",
    "married_to": "is_married_to spouse spouse_of wife_of husband_of is_spouse_of",
    "has_status": "status status_is",
    "has_budget": "budget budget_is",
    "deployed_on": "is_deployed_on deployed_to runs_on hosted_on",
    "created": "creates",
    "uses": "use using utilizes",
    "implements": "implement implementing",
    "part_of": "is_part_of belongs_to",
    "relates_to": "related_to is_related_to",
    "prefers": "prefer",
    "decided": "decides decided_on",
    "mentioned_in": "is_mentioned_in",
    "similar_to": "is_similar_to",
    "is_a": "is_an is_kind_of is_type_of",
}

_SIGNATURES = {
    "works_at": ("person", "organization"),
    "lives_in": ("person", "location"),
    "born_in": ("person", "location"),
    "married_to": ("person", "person"),
}

_TYPED = {
    EdgeType.ENTITY: "is_a part_of instance_of alias_of same_as member_of contains",
    EdgeType.TEMPORAL: "preceded_by followed_by happened_during",
    EdgeType.CAUSAL: "caused triggered resulted_in led_to caused_by",
    EdgeType.CO_OCCURRENCE: "co_occurs_with",
}

SHORT_NAMES = frozenset(
    "c r d c# f# go js ts vi ai ml ui ux os qa hr us uk eu un la ny sf dc nz 3m hp lg gm bp".split()
)
"""Valid names of one or two characters."""


@dataclass(frozen=True)
class Ontology:
    """Types of entities and edges, and properties of relations.

    Parameters
    ----------
    entity_types
        Allowed entity types; any other word becomes ``concept``.
    single_valued
        Relations with one target per source at a time: a new fact ends the old one.
    synonyms
        Relation → the relation that it is stored as.
    edge_type_of
        Relation → its default edge type.
    short_names
        Canonical names that may be shorter than three characters.
    """

    entity_types: frozenset[str] = frozenset(ENTITY_TYPES)
    single_valued: frozenset[str] = SINGLE_VALUED
    synonyms: Mapping[str, str] = field(
        default_factory=lambda: {word: name for name, words in _SYNONYMS.items() for word in words.split()}
    )
    edge_type_of: Mapping[str, EdgeType] = field(
        default_factory=lambda: {word: kind for kind, words in _TYPED.items() for word in words.split()}
    )
    short_names: frozenset[str] = SHORT_NAMES

    def entity_type(self, declared: str | None) -> tuple[str, str | None]:
        """Return (type, declared word); the word is None if it is a known type."""
        word = canonical(declared or "concept")
        return (word, None) if word in self.entity_types else ("concept", word[:64] or None)

    def relation(self, stated: str) -> str:
        """Return the stored form of a relation."""
        name = relation_name(stated)
        return self.synonyms.get(name, name)

    def is_single_valued(self, relation: str) -> bool:
        """Return whether a source has at most one target of this relation at a time."""
        return relation in self.single_valued or relation.startswith("favorite_")

    def words(self, relation: str) -> str:
        """Return the words of the synonyms of a relation, which queries use for it."""
        return self._words.get(relation, "")

    @cached_property
    def _words(self) -> Mapping[str, str]:
        found: defaultdict[str, list[str]] = defaultdict(list)
        for synonym, relation in self.synonyms.items():
            found[relation].extend(synonym.split("_"))
        return {relation: " ".join(dict.fromkeys(words)) for relation, words in found.items()}

    def signature(self, relation: str) -> tuple[str | None, str | None]:
        """Return the default entity types of source and target of a relation; None for any type."""
        return _SIGNATURES.get(relation, (None, None))

    def require_edge_type(self, stated: str) -> EdgeType:
        """Return the edge type named by a caller.

        Raises
        ------
        InvalidInput
            If it isn't exactly one of the five types.
        """
        try:
            return EdgeType(stated)
        except ValueError:
            raise InvalidInput(
                f"edge type {stated[:40]!r}: expected one of {', '.join(EdgeType)}, in lower case"
            ) from None

    def edge_type(self, stated: str | None, relation: str) -> EdgeType:
        """Return the edge type of an extracted fact: the stated one, the default of the relation, or semantic."""
        if not stated:
            return self.edge_type_of.get(relation, EdgeType.SEMANTIC)
        if stated == "hierarchical":
            return EdgeType.ENTITY
        try:
            return EdgeType(stated)
        except ValueError:
            _log.warning("unknown edge type %r of relation %r: using semantic", stated[:40], relation)
            return EdgeType.SEMANTIC

    def extended(
        self,
        *,
        entity_types: Iterable[str] = (),
        single_valued: Iterable[str] = (),
        synonyms: Mapping[str, str] | None = None,
        short_names: Iterable[str] = (),
    ) -> Ontology:
        """Return an ontology extended by these types, relations and names."""
        return Ontology(
            entity_types=self.entity_types | {canonical(t) for t in entity_types},
            single_valued=self.single_valued | {relation_name(r) for r in single_valued},
            synonyms={
                **self.synonyms,
                **{relation_name(a): relation_name(b) for a, b in (synonyms or {}).items()},
            },
            edge_type_of=self.edge_type_of,
            short_names=self.short_names | {canonical(n) for n in short_names},
        )

    @classmethod
    def load(cls, path: str | Path) -> Ontology:
        """Return the default ontology extended by a TOML file.

        Its keys: ``entity_types``, ``single_valued``, ``short_names`` (lists) and ``[synonyms]`` (a table).

        Raises
        ------
        InvalidInput
            If the file can't be read, isn't TOML or has unknown keys.
        """
        try:
            data = tomllib.loads(Path(path).read_text(encoding="utf-8"))
        except (OSError, tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
            raise InvalidInput(f"ontology file {path}: {error}") from error
        known = {"entity_types", "single_valued", "synonyms", "short_names"}
        if unknown := data.keys() - known:
            raise InvalidInput(f"ontology file {path}: unknown keys {sorted(unknown)}, known are {sorted(known)}")
        return cls().extended(**data)


DEFAULT_ONTOLOGY = Ontology()
