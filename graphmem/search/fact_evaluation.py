"""Evaluation of the stored facts against a key: what a careful reader of the same conversation would have kept."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from itertools import product
from pathlib import Path
from typing import Any, Literal, cast, get_args

from pydantic import Field, field_validator

from graphmem.errors import InvalidInput
from graphmem.models import STATED_KINDS, Edge, EdgeQuery, EntityQuery, Model, Scope, Text, is_retracted, utc_now
from graphmem.models.base import TICK
from graphmem.ontology import DEFAULT_ONTOLOGY
from graphmem.protocols import GraphBackend
from graphmem.search.evaluation import read_lines
from graphmem.text.normalize import canonical, relation_words
from graphmem.text.terms import stems

Verdict = Literal["right", "wrong_interval", "wrong_entity", "lost"]
"""right: stored between the right entities, with the right times. wrong_interval: with other times. wrong_entity: the
words are stored, but not between these entities. lost: not stored."""

_ORDER: tuple[Verdict, ...] = get_args(Verdict)

Recall = Callable[[str, datetime | None], Sequence[str]]
"""(question, time or None) → ids of the facts that a recall returns, best first."""

_DATE = re.compile(r"(\d{4})(?:-(\d\d))?(?:-(\d\d))?\Z")
_TOLERANCE = timedelta(days=1, hours=14)  # a date is a day in some time zone, and an end may be its last day
_COVERED = 0.65  # share of the words of an object that a fact contains
_ROOT = 4  # letters that a word and one derived from it have in common at least
_DETAIL = re.compile(r"\([^()]*\)")
_ALIASES = frozenset("called alias aliased nickname nicknamed known named".split())
_CLAIMED = 0.8  # share of the words of a claim that a fact contains
_DENIALS = frozenset("not no never isn doesn don didn won wasn without denied wrong".split())


def _require_date(value: str | None) -> str | None:
    try:
        if value is not None:
            _range(value)
    except ValueError as error:
        raise ValueError(f"{value!r:.40} is not a date; write 2025-03-14, 2025-03 or 2025") from error
    return value


class KeyFact(Model):
    """A fact that has to be stored; `valid_from` None accepts any beginning, `valid_to` None means no end.

    ``" / "`` separates alternatives of the subject or the object; one of them has to be stored. A detail in parentheses
    needn't be: "Tom (the brewer)".
    """

    subject: Text = Field(min_length=1)
    relation: Text = Field(min_length=1)
    object: Text = Field(min_length=1)
    valid_from: str | None = None
    valid_to: str | None = None
    id: Text | None = None
    turns: tuple[Text, ...] = ()

    _dates = field_validator("valid_from", "valid_to")(_require_date)


class NeverClaim(Model):
    """A sentence that no fact may state as current: a joke, a rumor, a plan that came to nothing."""

    claim: Text = Field(min_length=1)
    id: Text | None = None


class KeyQuestion(Model):
    """A question with the words that its answer needs: of each group one alternative."""

    question: Text = Field(min_length=1)
    needles: tuple[tuple[Text, ...], ...] = Field(min_length=1)
    as_of: str | None = None
    category: Text | None = None
    id: Text | None = None
    external_ids: tuple[Text, ...] = ()

    _dates = field_validator("as_of")(_require_date)


KeyLine = KeyFact | NeverClaim | KeyQuestion


class FactEvaluation(Model):
    """Figures of the stored facts against a key.

    Attributes
    ----------
    verdicts
        Verdict → number of facts of the key.
    facts
        Facts of the key that aren't right: verdict, the fact, and the stored fact that comes nearest.
    never_current
        Claims that a current fact states, each with that fact.
    never
        Number of claims in the key.
    questions, answered, answered_clean
        Questions in the key, those answered by the facts of a recall alone, and those of them without a stale fact in
        the recall.
    unanswered
        The other questions.
    stored
        Number of stored versions of facts that were not retracted.
    """

    verdicts: dict[Verdict, int]
    facts: tuple[tuple[Verdict, str, str], ...] = ()
    never_current: tuple[tuple[str, str], ...] = ()
    never: int = 0
    questions: int = 0
    answered: int = 0
    answered_clean: int = 0
    unanswered: tuple[str, ...] = ()
    stored: int = 0


def read_key(paths: Iterable[str | Path]) -> list[KeyLine]:
    """Return the lines of key files: JSON Lines of facts, claims and questions, in any order.

    Raises
    ------
    InvalidInput
        If a file can't be read or a line is invalid; the message names the file, the line and the reason.
    """
    lines: list[KeyLine] = []
    for path in paths:
        try:
            text = Path(path).read_text("utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise InvalidInput(f"{path}: {getattr(error, 'strerror', None) or error}") from error
        lines += read_lines(path, text, key_line)
    return lines


def key_line(value: KeyLine | Mapping[str, Any]) -> KeyLine:
    """Return a line of a key from its fields: of a fact, a claim or a question.

    Raises
    ------
    InvalidInput
        If a field is missing, invalid or unknown.
    """
    if isinstance(value, Model):
        return value
    if not isinstance(value, Mapping):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise InvalidInput("expected an object with subject, relation and object, or with claim, or with question")
    fields = {str(name): field for name, field in value.items()}
    if "question" in fields:
        groups = fields.get("needles")
        if isinstance(groups, list):
            fields["needles"] = [[g] if isinstance(g, str) else g for g in cast("list[object]", groups)]
        return KeyQuestion(**fields)
    if "claim" in fields:
        return NeverClaim(**fields)
    if missing := [name for name in ("subject", "relation", "object") if name not in fields]:
        raise InvalidInput(f"{missing[0]}: missing; a line is a fact, or has a claim or a question")
    return KeyFact(**fields)


def compare_facts(
    backend: GraphBackend, scope: Scope, key: Iterable[KeyLine | Mapping[str, Any]], recall: Recall
) -> FactEvaluation:
    """Compare the stored facts of a scope with a key.

    Two names are the same if they are equal, one is an alias of the other's entity, or, where no entity has the name,
    all words of one are in the other. The object of a fact, and a subject without an entity, may also be told by the
    sentence, with most of their words. Times are compared as days, or as months or years where the key has those.

    Parameters
    ----------
    backend, scope
        Store and scope of the facts.
    key
        Facts, claims and questions, or mappings of their fields.
    recall
        Returns the facts for a question.

    Raises
    ------
    InvalidInput
        If a line is invalid, or there is none.
    """
    lines = [key_line(line) for line in key]
    if not lines:
        raise InvalidInput("key: empty; expected at least one fact, claim or question")
    stored = _Stored(backend, scope)
    verdicts: dict[Verdict, int] = dict.fromkeys(_ORDER, 0)
    wrong: list[tuple[Verdict, str, str]] = []
    facts = [line for line in lines if isinstance(line, KeyFact)]
    for fact in facts:
        verdict, nearest = min((stored.judge(one) for one in _alternatives(fact)), key=lambda one: _ORDER.index(one[0]))
        verdicts[verdict] += 1
        if verdict == "right" and nearest is not None:
            stored.right.add(nearest.id)
        if verdict != "right":
            wrong.append((verdict, _shown(fact), "" if nearest is None else stored.shown(nearest)))
    claims = [line for line in lines if isinstance(line, NeverClaim)]
    current = [(claim.claim, stored.shown(edge)) for claim in claims if (edge := stored.claimed(claim)) is not None]
    questions = [line for line in lines if isinstance(line, KeyQuestion)]
    answered = clean = 0
    unanswered: list[str] = []
    for question in questions:
        at = None if question.as_of is None else _range(question.as_of)[1] - timedelta(seconds=1)
        found = [stored.edges[i] for i in recall(question.question, at) if i in stored.edges]
        if not _answers(question, [stored.told(edge) for edge in found]):
            unanswered.append(question.question)
            continue
        answered += 1
        clean += not any(stored.is_stale(edge, facts, claims, at) for edge in found)
    return FactEvaluation(
        verdicts=verdicts,
        facts=tuple(wrong),
        never_current=tuple(current),
        never=len(claims),
        questions=len(questions),
        answered=answered,
        answered_clean=clean,
        unanswered=tuple(unanswered),
        stored=sum(not is_retracted(edge) for edge in stored.edges.values()),
    )


def _alternatives(fact: KeyFact) -> Iterator[KeyFact]:
    for subject, told in product(_phrasings(fact.subject), _phrasings(fact.object)):
        yield fact.model_copy(update={"subject": subject, "object": told})


def _phrasings(text: str) -> Iterator[str]:
    for part in text.split(" / "):
        yield part
        if (without := " ".join(_DETAIL.sub(" ", part).split())) not in ("", part):
            yield without


def _answers(question: KeyQuestion, texts: Sequence[str]) -> bool:
    told = "\n".join(texts).lower()
    return all(any(word.lower() in told for word in group) for group in question.needles)


class _Stored:
    """The facts of a scope with the names of their ends."""

    def __init__(self, backend: GraphBackend, scope: Scope) -> None:
        self.edges = {
            edge.id: edge for edge in backend.all_edges([scope], EdgeQuery(kinds=STATED_KINDS, versions="all"))
        }
        self._entities = {entity.id: entity for entity in backend.all_entities([scope], EntityQuery(archived=True))}
        self._names: dict[str, set[str]] = {i: {e.canonical_name} for i, e in self._entities.items()}
        for alias in backend.find_aliases([scope], list(self._entities)):
            self._names[alias.entity_id].add(alias.alias)
        self._words_of_names = {i: [*map(stems, names)] for i, names in self._names.items()}
        self._words = {i: set[str]().union(*names) for i, names in self._words_of_names.items()}
        self._now = utc_now()
        self.right: set[str] = set()
        """Ids of the facts that are right by the key; they state no claim, whatever words they share with one."""

    def shown(self, edge: Edge) -> str:
        """Return an edge as text, with its first and its last day."""
        source, target = self._entities[edge.source_id].name, self._entities[edge.target_id].name
        last = None if edge.valid_to is None else max(edge.valid_from, edge.valid_to - TICK)
        days = f"{edge.valid_from.date().isoformat()} to {last.date().isoformat() if last else 'open'}"
        return f"{source} {edge.relation} {target}: {edge.fact} ({days}, {edge.certainty})"

    def told(self, edge: Edge) -> str:
        """Return the words by which a fact answers: its sentence, its ends and its times."""
        return f"{self._entities[edge.source_id].name} {self._entities[edge.target_id].name} {self.shown(edge)}"

    def judge(self, fact: KeyFact) -> tuple[Verdict, Edge | None]:
        """Return the verdict on a fact of the key, and the stored fact that comes nearest."""
        subjects, objects = self._called(fact.subject), self._called(fact.object)
        about = [edge for edge in self.edges.values() if not is_retracted(edge) and self._is_sure(edge)]
        if subjects & objects and _ALIASES & set(relation_words(fact.relation.lower()).split()):
            return "right", None  # the object is another name of the subject
        has_entity = bool(self._named(fact.subject))
        matching = [
            edge
            for edge in about
            if self._tells(edge, fact, objects)
            and (
                {edge.source_id, edge.target_id} & subjects
                or (not has_entity and _covers(fact.subject, self._said(edge)))  # "the budget of Q4"
            )
        ]
        matching.sort(key=lambda edge: -len(stems(relation_words(fact.relation)) & _relation_words(edge)))
        for edge in matching:
            if _same_times(fact, edge) or _same_times(fact, self._with_adjoining(edge, about)):
                return "right", edge
        if matching:
            return "wrong_interval", matching[0]
        for edge in about:
            if stems(fact.subject) & self._said(edge) and _covers(fact.object, self._said(edge)):
                return "wrong_entity", edge
        return "lost", None

    def _with_adjoining(self, edge: Edge, edges: Iterable[Edge]) -> Edge:
        """Extend the interval of an edge by adjoining edges with the same key, such as a plan and its fulfillment."""
        same = [other for other in edges if other.key == edge.key]
        since, until = edge.valid_from, edge.valid_to
        for other in sorted(same, key=lambda one: one.valid_from, reverse=True):
            if other.valid_to is not None and other.valid_from < since <= other.valid_to + _TOLERANCE:
                since = other.valid_from
        for other in sorted(same, key=lambda one: one.valid_from):
            if until is not None and other.valid_from <= until + _TOLERANCE and not _ends_by(other, until):
                until = other.valid_to
        return edge.model_copy(update={"valid_from": since, "valid_to": until})

    def _tells(self, edge: Edge, fact: KeyFact, objects: set[str]) -> bool:
        """Return whether an end of an edge is the object of a fact, or its sentence tells object and relation."""
        if {edge.source_id, edge.target_id} & objects:
            return True
        relation = stems(relation_words(fact.relation))
        related = not relation or _is_related(relation, _relation_words(edge)) or _covers(fact.object, self._ends(edge))
        return related and _covers(fact.object, self._said(edge))

    def _ends(self, edge: Edge) -> set[str]:
        return self._words[edge.source_id] | self._words[edge.target_id]

    def _said(self, edge: Edge) -> set[str]:
        """Return the words of an edge: of its ends, its relation, its sentence and its times."""
        times = {
            part for moment in (edge.valid_from, edge.valid_to) if moment for part in str(moment.date()).split("-")
        }
        return self._ends(edge) | _relation_words(edge) | times

    def claimed(self, claim: NeverClaim) -> Edge | None:
        """Return a current fact that states a claim."""
        return next((e for e in self.edges.values() if self._is_current(e, self._now) and self._states(e, claim)), None)

    def is_stale(self, edge: Edge, facts: Iterable[KeyFact], claims: Iterable[NeverClaim], at: datetime | None) -> bool:
        """Return whether a fact looks current and isn't: it states a claim, or one of the key's facts that was over.

        A fact that the key has as it is, or another relation of the same two, isn't stale.
        """
        at = at or self._now
        if not self._is_current(edge, at) or edge.id in self.right:
            return False
        if any(self._states(edge, claim) for claim in claims):
            return True
        return any(
            fact.valid_to is not None and _range(fact.valid_to)[1] < at and not _same_times(fact, edge)
            for fact in facts
            if _is_same_relation(fact.relation, edge)
            and edge.source_id in self._called(fact.subject)
            and edge.target_id in self._called(fact.object)
        )

    def _named(self, name: str) -> set[str]:
        """Return the entities with exactly this name or alias."""
        key = canonical(name)
        return {i for i, names in self._names.items() if key in names}

    def _called(self, name: str) -> set[str]:
        """Return the entities of a name; without one, those whose names have all its words, or all but its words."""
        if same := self._named(name):
            return same
        words = stems(name)
        parts = self._words_of_names.items()
        contained = {i for i, names in parts if words and any(own and own <= words for own in names)}
        return contained | {i for i, own in self._words.items() if words and words <= own}

    def _is_sure(self, edge: Edge) -> bool:
        return edge.certainty in ("stated", "plan")

    def _is_current(self, edge: Edge, at: datetime) -> bool:
        return edge.certainty == "stated" and edge.kind == "state" and edge.valid_from <= at and not _ends_by(edge, at)

    def _states(self, edge: Edge, claim: NeverClaim) -> bool:
        if edge.id in self.right:
            return False
        wanted = stems(claim.claim)
        told = self._ends(edge) | _relation_words(edge)
        denies = bool(_DENIALS & set(edge.fact.lower().replace("'", " ").split()))
        if denies or not wanted or not all(_is_told(word, told) for word in wanted if word[0].isdigit()):
            return False  # "on 19 June" isn't "on 26 June"
        return len(wanted & told) / len(wanted) >= _CLAIMED


def _is_told(word: str, words: set[str]) -> bool:
    """Return whether a word is among others; a number also with another unit: 40k and 40,000."""
    digits = re.match(r"\d+", word)
    return word in words or (digits is not None and any(re.match(rf"{digits[0]}(?!\d)", other) for other in words))


def _covers(text: str, words: set[str]) -> bool:
    """Return whether most words of a text, and both of two, are among others."""
    wanted = stems(text)
    told = sum(_is_told(word, words) for word in wanted)
    return bool(wanted) and told >= max(_COVERED * len(wanted), min(2, len(wanted)))


def _relation_words(edge: Edge) -> set[str]:
    return stems(f"{relation_words(edge.relation)} {edge.fact}")


def _is_same_relation(relation: str, edge: Edge) -> bool:
    if not (wanted := stems(relation_words(relation))):
        return True
    return DEFAULT_ONTOLOGY.relation(relation) == edge.relation or _is_related(wanted, _relation_words(edge))


def _is_related(relation: set[str], words: set[str]) -> bool:
    """Return whether a word of a relation is among others, or one derived from it: "failure" and "failed"."""
    return any(
        word == other or (min(len(word), len(other)) >= _ROOT and (word.startswith(other) or other.startswith(word)))
        for word in relation
        for other in words
    )


def _ends_by(edge: Edge, moment: datetime) -> bool:
    return edge.valid_to is not None and edge.valid_to <= moment


def _same_times(fact: KeyFact, edge: Edge) -> bool:
    if fact.valid_from is not None and not _within(edge.valid_from, fact.valid_from):
        return False
    if fact.valid_to is None or edge.valid_to is None:
        return fact.valid_to is None and (edge.valid_to is None or edge.kind == "event")
    return _within(edge.valid_to, fact.valid_to)


def _within(moment: datetime, date: str) -> bool:
    begin, end = _range(date)
    return begin - _TOLERANCE <= moment <= end + _TOLERANCE


def _range(date: str) -> tuple[datetime, datetime]:
    """Return the first moments of a day, month or year and of the next one."""
    if (match := _DATE.match(date)) is None:
        raise ValueError(date)
    year, month, day = int(match[1]), int(match[2] or 1), int(match[3] or 1)
    begin = datetime(year, month, day, tzinfo=UTC)
    if match[3]:
        return begin, begin + timedelta(days=1)
    if match[2]:
        return begin, datetime(year + month // 12, month % 12 + 1, 1, tzinfo=UTC)
    return begin, datetime(year + 1, 1, 1, tzinfo=UTC)


def _shown(fact: KeyFact) -> str:
    named = f"{fact.id}: " if fact.id else ""
    since = f"{fact.valid_from or '?'} to {fact.valid_to or 'open'}"
    return f"{named}{fact.subject} {fact.relation} {fact.object} ({since})"
