"""Ontology: entity types, edge types and well-known relations, and files that extend the defaults."""

from __future__ import annotations

import logging
import tomllib
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, Literal, Self, cast

from pydantic import Field, model_validator

from graphmem.errors import InvalidInput
from graphmem.models import EdgeType, Model
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
    "works_at lives_in born_in manages married_to has_status has_budget has_deadline deployed_on has_birthday has_age "
    "has_salary has_rent has_weight has_height has_phone_number has_email".split()
)

SIMILAR_TO = "similar_to"
"""Relation of the edges written by note linking, which no episode states; their confidence is the cosine (A-MEM)."""

ANNIVERSARIES = frozenset("has_birthday born_on was_born_on has_anniversary has_wedding_anniversary".split())
"""Relations whose target is a date that is still true when it is past."""

CONTACT_RELATIONS = frozenset({"has_email", "has_phone_number", "has_address"})
"""Relations whose targets are personal data: such facts aren't stored where personal data is redacted."""

_SYNONYMS = {
    "works_at": "employed_by employed_at works_for work_at work_for is_employed_by has_job_at working_at working_for",
    "lives_in": "resides_in live_in living_in lives_at is_living_in residing_in based_in resides_at",
    "born_in": "was_born_in birthplace place_of_birth born_at",
    "manages": "is_manager_of managing",
    "married_to": "is_married_to spouse spouse_of wife_of husband_of is_spouse_of",
    "has_status": "status status_is",
    "has_budget": "budget budget_is",
    "has_birthday": "birthday birthday_is birthday_on has_birthday_on",
    "has_deadline": "deadline due_on is_due_on due_by is_due_by due has_due_date",
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


RuleKind = Literal["inverse", "symmetric", "transitive", "composition", "shared"]


class InferenceRule(Model):
    """A rule by which some facts imply others (docs/how-to/infer.md).

    Attributes
    ----------
    kind
        With relations R, S and implied T: ``inverse``: a R b implies b T a. ``symmetric``: a R b implies b R a.
        ``transitive``: a R b and b R c imply a R c. ``composition``: a R b and b S c imply a T c. ``shared``: a R c and
        b R c imply a T b, in one direction only.
    relations
        R; of a composition R and S.
    implies
        T; of a symmetric or transitive relation R itself.
    confidence
        Factor of the lower confidence of the premises.
    """

    kind: RuleKind
    relations: Annotated[tuple[str, ...], Field(min_length=1, max_length=2)]
    implies: str = ""
    confidence: Annotated[float, Field(gt=0.0, le=1.0, allow_inf_nan=False)] = 1.0

    @model_validator(mode="after")
    def _complete(self) -> Self:
        wanted = 2 if self.kind == "composition" else 1
        if len(self.relations) != wanted:
            raise ValueError(f"a rule of kind {self.kind} has {wanted} relation{'s' * (wanted - 1)}")
        if self.kind in ("symmetric", "transitive") and self.implies not in ("", self.relations[0]):
            raise ValueError(f"a {self.kind} relation implies itself; leave out implies = {self.implies!r}")
        if self.kind in ("inverse", "composition", "shared") and not self.implies:
            raise ValueError(f"a rule of kind {self.kind} needs the relation that it implies")
        return self

    @property
    def name(self) -> str:
        """Name of the rule: its kind and its relations."""
        return f"{self.kind} {' + '.join(self.relations)}"

    @property
    def conclusion(self) -> str:
        """The implied relation."""
        return self.implies or self.relations[0]


_CONTAINED, _CONNECTED = 0.9, 0.7

INFERENCE_RULES = (
    InferenceRule(kind="symmetric", relations=("married_to",)),
    InferenceRule(kind="symmetric", relations=("has_partner",)),
    InferenceRule(kind="inverse", relations=("contains",), implies="part_of"),
    InferenceRule(kind="transitive", relations=("part_of",), confidence=_CONTAINED),
    InferenceRule(kind="transitive", relations=("located_in",), confidence=_CONTAINED),
    InferenceRule(kind="composition", relations=("located_in", "part_of"), implies="located_in", confidence=_CONTAINED),
    InferenceRule(kind="composition", relations=("part_of", "located_in"), implies="located_in", confidence=_CONTAINED),
    InferenceRule(kind="composition", relations=("lives_in", "located_in"), implies="lives_in", confidence=_CONTAINED),
    InferenceRule(kind="composition", relations=("lives_in", "part_of"), implies="lives_in", confidence=_CONTAINED),
    InferenceRule(kind="composition", relations=("works_at", "part_of"), implies="works_at", confidence=_CONTAINED),
    InferenceRule(kind="shared", relations=("works_at",), implies="colleague_of", confidence=_CONNECTED),
    InferenceRule(kind="shared", relations=("works_on",), implies="colleague_of", confidence=_CONNECTED),
)
"""Default rules of `graphmem.memory.admin.Administration.infer`."""


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
    rules
        Rules of inference.
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
    rules: tuple[InferenceRule, ...] = INFERENCE_RULES

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
        rules: Sequence[Mapping[str, Any]] = (),
        without_rules: Iterable[str] = (),
    ) -> Ontology:
        """Return an ontology extended by these types, relations, names and rules, without the rules of some names.

        Raises
        ------
        InvalidInput
            If a rule is invalid, or no rule has the name of one to leave out.
        """
        words = {**self.synonyms, **{relation_name(a): relation_name(b) for a, b in (synonyms or {}).items()}}
        extended = Ontology(
            entity_types=self.entity_types | {canonical(t) for t in entity_types},
            single_valued=self.single_valued | {_last_of(relation_name(r), words) for r in single_valued},
            synonyms={word: _last_of(word, words) for word in words},
            edge_type_of=self.edge_type_of,
            short_names=self.short_names | {canonical(n) for n in short_names},
        )
        known = {rule.name: rule for rule in self.rules}
        if unknown := sorted(set(without_rules) - known.keys()):
            raise InvalidInput(f"without_rules: no rule is called {unknown[0]!r}; known are {', '.join(known)}")
        for name in without_rules:
            known.pop(name, None)
        added = (InferenceRule(**{**rule, **stored}) for rule in rules for stored in [_stored(rule, extended)])
        return replace(extended, rules=tuple({**known, **{rule.name: rule for rule in added}}.values()))

    @classmethod
    def load(cls, path: str | Path) -> Ontology:
        """Return the default ontology extended by a TOML file.

        Its keys: ``entity_types``, ``single_valued``, ``short_names``, ``without_rules`` (lists), ``[synonyms]`` (a
        table) and ``[[rules]]`` (tables with the fields of `InferenceRule`).

        Raises
        ------
        InvalidInput
            If the file can't be read, isn't TOML, has unknown keys or an invalid rule.
        """
        try:
            data = tomllib.loads(Path(path).read_text(encoding="utf-8"))
        except (OSError, tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
            raise InvalidInput(f"ontology file {path}: {error}") from error
        lists = ("entity_types", "single_valued", "short_names", "without_rules")
        known = {*lists, "synonyms", "rules"}
        if unknown := data.keys() - known:
            raise InvalidInput(f"ontology file {path}: unknown keys {sorted(unknown)}, known are {sorted(known)}")
        for name in lists:
            if not _are_strings(data.get(name, [])):
                raise InvalidInput(f"ontology file {path}: {name} must be a list of strings")
        synonyms = data.get("synonyms", {})
        if not isinstance(synonyms, dict) or not _are_strings([*cast("dict[str, object]", synonyms).values()]):
            raise InvalidInput(f'ontology file {path}: [synonyms] must be a table of lines such as leads = "manages"')
        if not isinstance(data.get("rules", []), list):
            raise InvalidInput(f"ontology file {path}: rules must be tables, each under [[rules]]")
        try:
            return cls().extended(**data)
        except InvalidInput as error:
            raise InvalidInput(f"ontology file {path}: {error}") from error


def _are_strings(values: object) -> bool:
    return isinstance(values, list) and all(isinstance(value, str) for value in cast("list[object]", values))


def _last_of(word: str, synonyms: Mapping[str, str]) -> str:
    """Return the relation that a word stands for, also by several steps; a cycle ends where it began."""
    seen: set[str] = set()
    while word not in seen and word in synonyms:
        seen.add(word)
        word = synonyms[word]
    return word


def _stored(rule: Mapping[str, Any], ontology: Ontology) -> dict[str, Any]:
    """Return the relations of a rule in their stored form."""
    if not isinstance(rule, Mapping):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise InvalidInput(f"rules: expected a table of kind, relations and implies, got {rule!r:.80}")
    relations, implies = rule.get("relations", ()), rule.get("implies", "")
    given = [relations] if isinstance(relations, str) else relations
    if not all(isinstance(name, str) for name in (*given, implies)):
        raise InvalidInput(f"rule {dict(rule)!r:.120}: relations and implies are texts")
    return {"relations": tuple(map(ontology.relation, given)), "implies": ontology.relation(implies) if implies else ""}


DEFAULT_ONTOLOGY = Ontology()
