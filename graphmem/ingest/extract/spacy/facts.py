"""Conversion of clauses to facts.

Confidence by evidence (the lowest that applies):

=====  ==========================================================================
0.9    an explicit relation of the ontology or kinship, both ends named
0.8    subject, verb, object; both ends named
0.6    one end is a common noun
0.5    reported ("I think Ida works at Acme"), or about the addressee
0.4    a resolved pronoun, or an omitted subject
0.3    both named in one sentence, no verb between them
=====  ==========================================================================

Convention of relations: states in the present ("works_at", "likes"), events in the past ("went_to", "bought").
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING

from graphmem.ingest.extract.spacy import words
from graphmem.ingest.extract.spacy.clauses import (
    Clause,
    denied_objects,
    governor,
    helpers,
    names_given,
    objects_of,
    prepositions,
    subjects_of,
)
from graphmem.ingest.extract.spacy.endings import ended_roles
from graphmem.ingest.extract.spacy.events import owned
from graphmem.ingest.extract.spacy.homes_and_jobs import first_days, last_days, placed, unplaced_last_days
from graphmem.ingest.extract.spacy.kin import is_business_partner, is_counted, is_named
from graphmem.ingest.extract.spacy.known import over, prescribed
from graphmem.ingest.extract.spacy.lives import befallen
from graphmem.ingest.extract.spacy.names import End, Names
from graphmem.ingest.extract.spacy.patterns import statements
from graphmem.ingest.extract.spacy.render import Dates, sentence
from graphmem.ingest.extract.spacy.statements import LATELY, Period, Statement, duration_of, is_state, verb_form
from graphmem.ontology import Ontology
from graphmem.protocols import ExtractedEdge, ExtractedEnding

if TYPE_CHECKING:
    from spacy.tokens import Span, Token

_RUMOR = re.compile(
    r"\b(?:so I(?:'ve| have)? heard|so I(?:'m| am| was) told|apparently|allegedly|rumou?r has it)\b", re.IGNORECASE
)

_BESIDE = re.compile(  # what is added to a home or a job, and doesn't replace it
    r"\b(?:also|too(?= *[.,!]|$)|as well|part ?-? ?time|(?:a|my) second|sometimes|half (?:of )?the (?:week|year|time)|"
    r"(?:on|at|during) (?:the )?weekends|in (?:the )?(?:spring|summer|autumn|fall|winter)s?)\b",
    re.IGNORECASE,
)
_GOING = frozenset("go return turn come switch proceed".split())
_OF_NOW = words.MOMENTARY - words.LIFE_PLANS | {"introduce", "recommend"}
_PLANNED = frozenset({"plans_to_work_as", "plans_to_go"})  # as "going to go hunting"
_EARNEST = frozenset({"is_allergic_to", "is_fluent_in", "studies"})
_EXCLUSIVE = frozenset({"lives_in", "works_at", "works_as"})

EXPLICIT, PLAIN, COMMON, INDIRECT = 0.9, 0.8, 0.6, 0.5


def _courtesy(clause: Clause, source: End, target: End, period: Period, participants: Collection[str] = ()) -> bool:
    """Return whether a clause is a polite phrase without a useful fact."""
    if source.role and (target.role or (clause.verb.lemma_ == "know" and _is_among(target, participants))):
        return not (clause.past and clause.verb.lemma_ in ("meet", "visit", "marry", "hire", "teach", "join"))
    if clause.offhand and period.begin is None and not (target.named and not target.role):
        return True  # "I'll watch your video"
    return bool(target.role) and not source.named  # "music helps me"


def _is_among(end: End, participants: Collection[str]) -> bool:
    """Return whether a name is that of a speaker of the session, or a short form of it."""
    return len(end.name) > 2 and any(name.startswith(end.name) for name in participants)


def _is_plan(clause: Clause, period: Period) -> bool:
    """Return whether a present tense refers to the future: "I'm hosting a show next month"."""
    if period.ahead:
        return True
    return clause.verb.tag_ == "VBG" and (period.running or clause.verb.lemma_ == "go") and len(clause.chain) == 1


def _is_hearsay(clause: Clause, source: End, names: Names) -> bool:
    """Return whether someone other than the speaker or the subject of a clause says or believes it."""
    if _RUMOR.search(clause.verb.sent.text):
        return True
    if any(c.lower_ == "according" for c in clause.chain[0].children):
        return True
    for report in clause.reports:
        if report.lemma_ not in words.HEARSAY:
            continue
        reporters = [e for t in subjects_of(report) if t.dep_ == "nsubj" for e in names.ends(t)]
        own = any(e.name == source.name for e in reporters) and report.lemma_ != "hear"
        by_speaker = any(e.role == "speaker" for e in reporters) and report.lemma_ not in words.BELIEVING | {"hear"}
        if not (own or by_speaker):
            return True
    return False


def _is_misbelief(clause: Clause, source: End) -> bool:
    """Return whether others believe a clause about the speaker, or the addressee says it: "you said I live in Rome"."""
    said = {r.lemma_: {t.lower_ for t in subjects_of(r)} for r in clause.reports if source.role == "speaker"}
    return any(
        bool(who & words.SECOND_PERSON) or (lemma in words.BELIEVING and not who & words.FIRST_PERSON)
        for lemma, who in said.items()
        if lemma in words.HEARSAY
    )


def _is_telling(clause: Clause, said: Statement, period: Period) -> bool:
    """Return whether a fact about a common noun says something lasting of its subject: a habit, a skill, a possession.

    What people just do ("I'm removing my coat", "we have cereals") isn't a fact worth keeping.
    """
    lemma, noun = clause.verb.lemma_.lower(), said.target.name.split()[-1].lower()
    if said.relation == "is_a" and said.target.name in ("fan", "part", "supporter"):
        return False  # of what isn't said
    if said.relation == "is_a":
        return noun in words.OCCUPATIONS | words.ROLES_OF or (
            len(noun) > 5 and noun.endswith(words.OCCUPATION_ENDINGS) and noun not in words.NO_OCCUPATIONS
        )
    if said.ended or said.presumed or said.relation == "is" or _is_told(clause, said):
        return True
    if len(clause.chain) > 1 and clause.chain[0].lemma_ == "get" and not clause.past:
        return False  # "I get to see the cathedral": a chance
    if clause.stance == "wants_to" and (lemma in words.HABITS or noun in words.PASSING):
        return False  # "I'd like to watch a movie", "I want to buy tickets"
    if said.relation == f"wants_to_{lemma}" and lemma in words.LIFE_PLANS - {"have"}:
        return True
    if not clause.ended and _is_of_the_talk(clause, lemma):
        return False
    done = [t for t in objects_of(clause.verb, "dobj") if lemma == "do" and t.lower_ not in words.MEASURES]
    if any(c.dep_ in ("det", "poss") for t in done for c in t.children):
        return False  # "we do a round", not "I do yoga"
    if lemma == "do" and clause.past and not (clause.stance or clause.began or is_state(clause)):
        return False  # "I've done my ankle in"
    if lemma == "have" and any(is_counted(t) for t in objects_of(clause.verb, "dobj")):
        return True
    if lemma in ("have", "get"):
        if any(_is_definite(noun) for noun in objects_of(clause.verb, "dobj")):
            return False  # "I've got the letter"
        own = any(t.lower_ == "i" for t in clause.subjects)
        if own and clause.stance == "plans_to":
            return period.begin is not None
        several = noun.endswith("s") and noun not in words.ILLNESSES
        task = (not clause.past or clause.ongoing) and any(
            c.dep_ in ("relcl", "acl") and any(a.lower_ == "to" for a in helpers(c))
            for t in objects_of(clause.verb, "dobj")
            for c in t.children
        )
        if task or noun in words.PASSING:
            return False  # "I have other fish to fry", "I have a query"
        return (own or _has_lasting(clause)) and not clause.stance and not several
    if lemma in words.HABITS:
        habit = clause.verb.tag_ in ("VBP", "VBZ") or _is_abstinence(clause)
        return habit or clause.ongoing or bool(clause.stance) or clause.ended or clause.began
    return lemma in words.TELLING or (clause.stance == "plans_to" and period.begin is not None and lemma != "need")


def _in_jest(clause: Clause) -> bool:
    """Return whether somebody is said to be skilled in what isn't a skill: "I have a black belt in napping"."""
    if clause.verb.lemma_ not in ("have", "get", "be", "do", "study"):
        return False
    skilled = (
        noun for noun in objects_of(clause.verb, "dobj", "attr") if noun.lower_ in words.DEGREES | {"belt", "expert"}
    )
    heads = [clause.verb, *skilled]
    skills = (
        t
        for head in heads
        for c in head.children
        if c.dep_ == "prep" and c.lower_ in ("in", "at", "of")
        for t in c.children
    )
    return len(heads) > 1 and any(t.lower_ in words.JESTS for t in skills)


def _is_told(clause: Clause, said: Statement) -> bool:
    """Return whether a verb tells an event of a life with its object: "I broke my arm", "he passed the exam"."""
    if not clause.past or clause.passive or clause.stance or clause.negated or clause.ended:
        return False
    form = verb_form(clause)
    particle = form.removeprefix(words.past(clause.verb.lemma_.lower(), clause.verb.text, clause.verb.tag_))
    nouns = words.TOLD.get(f"{clause.verb.lemma_.lower()}{particle}", ())
    return said.relation == form and said.target.name.split()[-1].lower() in nouns


def _is_of_the_talk(clause: Clause, lemma: str) -> bool:
    """Return whether a clause is about something at hand: "I take the first ones", "I enjoyed this post"."""
    determiners = {c.lower_ for t in objects_of(clause.verb, "dobj") for c in t.children if c.dep_ in ("det", "poss")}
    if lemma in words.LIKING and determiners & {"this", "these", "those"}:
        return True
    if lemma in ("take", "give"):
        given = any(t.lower_ in ("him", "her", "them", "it") for t in objects_of(clause.verb, "dative"))
        return bool(determiners & words.DEFINITE) or given
    once = clause.past and not (clause.ongoing or clause.began or clause.stance)
    return lemma in ("use", "read", "watch") and once and "the" in determiners


def _is_passing(clause: Clause, said: Statement, period: Period) -> bool:
    """Return whether a clause is about the course of a talk or a moment: "we'll go to Ida", "I get an error"."""
    if said.relation.startswith("is_") or said.relation == "is":
        return False
    lemma, dated = clause.verb.lemma_.lower(), period.begin is not None
    person = said.target.label == "PERSON" and not said.target.role
    return (
        _is_instruction(clause, lemma)
        or (clause.stance == "wants_to" and lemma in _OF_NOW)  # "I'd like to introduce our next speaker"
        or (clause.offhand and not dated and lemma != "work")  # "I'll take the first one"
        or (person and not dated and _is_turn(clause, said, lemma))
        or (person and lemma == "do")
        or (bool(said.target.role) and said.relation.startswith("was_"))
        or _is_at_hand(clause, said.target, lemma)
        or _is_of_a_moment(clause, said, lemma, dated=dated)
    )


def _is_instruction(clause: Clause, lemma: str) -> bool:
    """Return whether a clause says what to do, "then you take her for a walk", or is a filler, "you know Ida"."""
    you = any(t.lower_ == "you" for t in clause.subjects) and clause.verb.tag_ == "VBP" and not clause.stance
    return you and (lemma == "know" or lemma not in words.STATES | words.LIKING | {"be"})


def _is_turn(clause: Clause, said: Statement, lemma: str) -> bool:
    """Return whether a talk turns to the person that a clause names: "we'll go to Ida"."""
    is_now = clause.stance in ("", "plans_to") and not clause.past
    return is_now and "_to" in said.relation and lemma in words.MOVING | _GOING


def _is_at_hand(clause: Clause, target: End, lemma: str) -> bool:
    """Return whether somebody has a person or a group at hand: "I have Ida first", "we've got the police"."""
    if not target.named or lemma not in ("have", "get") or (clause.past and not clause.ongoing):
        return False
    if any(names_given(t) for t in objects_of(clause.verb, "dobj")):
        return False
    ours = any(t.lower_ in ("we", "you") for t in clause.subjects)
    return target.label in ("PERSON", "NORP") or (ours and target.label in {"ORG", "THING", *words.PLACES})


def _is_of_a_moment(clause: Clause, said: Statement, lemma: str, *, dated: bool) -> bool:
    """Return whether a clause in the present is about a moment, and not a habit or a plan: "I get an error"."""
    verb, target = clause.verb, said.target
    if clause.past or clause.ended or clause.negated:
        return False
    if clause.stance == "plans_to":
        return not (dated or target.named or lemma in words.LIFE_PLANS or said.relation in _PLANNED)
    if clause.stance or clause.began or clause.ongoing or clause.passive or verb.tag_ not in ("VBP", "VBZ"):
        return False
    often = any(t.lower_ in words.HABITUAL for t in verb.subtree)
    remembered = lemma == "remember" and target.label == "PERSON" and not target.role
    return lemma in words.MOMENTARY and not (often or dated or remembered or (lemma == "get" and _is_illness(target)))


def _is_illness(end: End) -> bool:
    last = end.name.split()[-1].lower()
    return last in words.ILLNESSES or last.endswith(("ache", "aches", "migraines", "attacks", "itis"))


def _is_definite(noun: Token) -> bool:
    return any(child.lower_ == "the" for child in noun.children)


def _has_lasting(clause: Clause) -> bool:
    """Return whether somebody has what isn't counted, at no given time: "my son has asthma"."""
    nouns = objects_of(clause.verb, "dobj")
    bare = all(
        (t.tag_ == "NN" or t.lower_ in words.ILLNESSES) and not any(c.dep_ in ("det", "poss") for c in t.children)
        for t in nouns
    )
    bare = bare and not any(t.lower_ in words.GENERIC for t in nouns)
    limits = any(c.dep_ in ("prep", "advmod", "npadvmod") for c in clause.verb.children)
    return bare and clause.verb.tag_ == "VBZ" and not limits


def _is_abstinence(clause: Clause) -> bool:
    """Return whether a clause denies a habit altogether: "I don't eat meat", not "I don't drink coffee at night"."""
    verb = clause.verb
    limits = any(c.dep_ in ("prep", "advmod", "npadvmod", "advcl") for c in verb.children)
    limits = limits or any(c.lower_ in ("much", "many", "enough") for t in objects_of(verb, "dobj") for c in t.children)
    return clause.negated and not clause.past and verb.tag_ == "VB" and not limits


def _is_past_state(clause: Clause) -> bool:
    """Return whether the simple past of a clause describes a state: where somebody lived or worked, what they owned."""
    if not clause.past or clause.ongoing or clause.ended or clause.stance or clause.negated or clause.passive:
        return False
    lemma = clause.verb.lemma_.lower()
    works = lemma == "work" and any(word in ("at", "for", "as") for word, _ in prepositions(clause.verb))
    lasted = lemma in words.STATES and duration_of(clause) is not None  # "taught for 31 years"
    return len(clause.chain) == 1 and (works or lasted or lemma in ("live", "reside", "own"))


def _is_event(clause: Clause, said: Statement) -> bool:
    """Return whether a statement is what a verb in the past says happened: "visited", "took_trip_to"."""
    if said.explicit or said.ended or clause.ended or clause.stance or clause.began or clause.negated:
        return False
    return (
        clause.past
        and not clause.passive  # "was directed by": of no day
        and not is_state(clause)
        and clause.verb.lemma_ != "be"
        and said.relation.removeprefix("was_").startswith(verb_form(clause))
    )


def _is_beside(clause: Clause) -> bool:
    """Return whether a clause states a further home or job: "I also live in Rome", "in summer", "part-time"."""
    own = (t for t in clause.verb.sent if t == clause.chain[0] or governor(t) in clause.chain)
    return not clause.past and _BESIDE.search(" ".join(t.text for t in own)) is not None


def _ending_of(edge: ExtractedEdge) -> ExtractedEnding:
    return ExtractedEnding(
        edge.source,
        edge.relation,
        edge.target,
        valid_to=edge.valid_to,
        source_type=edge.source_type,
        presumed=True,
    )


def end_of_others(edge: ExtractedEdge, relation: str) -> ExtractedEnding:
    """Return the end of the facts of a relation that have another target than a new fact."""
    return ExtractedEnding(edge.source, relation, edge.target, source_type=edge.source_type, others="targets")


def _succeeded(clause: Clause, edge: ExtractedEdge, said: Sequence[Statement]) -> Iterator[ExtractedEnding]:
    """Yield the end of the earlier ones for "my manager is Ida now", "Ida is my new landlord".

    What somebody was before ends with "I work at Acme as a nurse" and "I got promoted to team lead".
    """
    with_job = sorted(s.relation for s in said if s.relation in _EXCLUSIVE) == ["works_as", "works_at"]
    group = next((group for group in words.ONE_AT_A_TIME if edge.relation in group), ())
    if edge.certainty != "stated" or edge.ended or edge.confidence <= INDIRECT:
        return
    nouns = (*clause.subjects, *objects_of(clause.verb, "attr"))
    new = any(c.lower_ == "new" for noun in nouns for c in noun.children)
    new = not clause.past and (new or any(c.lower_ == "now" for c in clause.verb.children))
    new = new and not any(is_business_partner(noun) for noun in nouns)
    if edge.relation == "works_as" and (clause.verb.lemma_ == "promote" or with_job):
        yield end_of_others(edge, "works_as")
    if new or edge.relation == "has_launch_date":
        yield from (end_of_others(edge, relation) for relation in group)
    holds = edge.relation.removeprefix("is_").removesuffix("_of") in words.UNIQUE_OFFICES
    if holds and (not clause.past or clause.verb.lemma_ == "take") and edge.relation.endswith("_of"):
        yield ExtractedEnding(edge.source, edge.relation, edge.target, source_type=edge.source_type, others="sources")


class Facts:
    """Extractor of the facts in the clauses of one episode.

    Parameters
    ----------
    names
        The names of the episode.
    dates
        Dates of the episode by token.
    ontology
        Known relations.
    reference
        Time of the episode.
    written
        Whether it is a mail or another long text, in which "we" is rather a firm or mankind than the speaker.
    """

    def __init__(
        self, names: Names, dates: Dates, ontology: Ontology, reference: datetime, *, written: bool = False
    ) -> None:
        self._names = names
        self._dates = dates
        self._ontology = ontology
        self._reference = reference
        self._written = written

    def of(self, clause: Clause) -> Iterator[ExtractedEdge | ExtractedEnding]:
        """Yield the facts of a clause, and the endings of facts that it presumes."""
        subjects = self._subjects(clause)
        period = Period.of(clause, self._dates, self._reference)
        if not clause.subjects and clause.chain[0].tag_ == "VBG" and not period.ahead:
            return  # only "Flying to Rome on Friday" is surely said of oneself
        if not clause.stance and not clause.past and _is_plan(clause, period):
            clause = replace(clause, stance="plans_to")
        if period.over and not clause.ended:
            clause = replace(clause, ended=True)
        if _is_past_state(clause):
            clause = replace(clause, ended=True)
            period = replace(period, until=period.until or period.close)
        others = (*placed(clause, self._names, period), *befallen(clause, self._names, period))
        for statement in () if clause.ended else others:
            edge = self._edge(clause, statement.source or statement.target, statement, period)
            if edge is not None:
                yield edge
            if edge is not None and edge.target in words.DISMISSED and edge.confidence > INDIRECT:
                yield ExtractedEnding(edge.source, "works_at", valid_to=period.close, source_type="person")
        for statement in prescribed(clause, self._names) if not (clause.stance or clause.negated) else ():
            edge = self._edge(clause, statement.source or statement.target, statement, period)
            if edge is not None:
                yield _ending_of(edge) if statement.presumed else edge
        for subject in {s.name: s for s in subjects}.values():
            said = list(statements(clause, subject, self._names, period))
            for statement in said:
                edge = self._edge(clause, subject, statement, period, self._apart(clause, statement, said))
                if edge is not None and not statement.presumed:
                    yield edge
                    yield from self._denied(clause, edge)
                    yield from _succeeded(clause, edge, said)
                elif edge is not None and edge.certainty == "stated":
                    yield _ending_of(edge)

    def _is_of_group(self, clause: Clause, target: End) -> bool:
        """Return whether "we" may not be the speaker: in a long text, or among several for what has no name."""
        last = target.name.split()[-1].lower()
        if {last, last.removesuffix("s")} & words.RELATIONAL:
            return False  # "we have two cats"
        return self._written or (bool(self._names.participants) and not clause.past and not target.named)

    def _denied(self, clause: Clause, edge: ExtractedEdge) -> Iterator[ExtractedEnding]:
        """Yield the retraction of what a clause denies beside a fact: "I live in Bern, not in Rome"."""
        why = "over" if any(t.lower_ == "now" for t in clause.verb.sent) else "corrected"
        for end in (e for token in denied_objects(clause.verb) for e in self._names.end(token)):
            if edge.certainty == "stated" and not edge.ended and edge.confidence > INDIRECT and end.name != edge.target:
                yield ExtractedEnding(edge.source, edge.relation, end.name, why=why, source_type=edge.source_type)

    def endings(self, clause: Clause) -> Iterator[ExtractedEnding]:
        """Yield the endings that don't name their target."""
        subjects = self._subjects(clause)
        period = Period.of(clause, self._dates, self._reference)
        for subject in {s.name: s for s in subjects}.values():
            if min(clause.certainty, subject.certainty) > INDIRECT and not _is_hearsay(clause, subject, self._names):
                for relation in over(clause, subject, period):
                    others = "" if self._ontology.is_single_valued(relation) else "targets"
                    end = period.close
                    yield ExtractedEnding(subject.name, relation, valid_to=end, source_type="person", others=others)
        for owner, relation in ended_roles(clause, self._names, period):
            if min(clause.certainty, owner.certainty) > INDIRECT:
                others = "" if self._ontology.is_single_valued(relation) else "targets"
                yield ExtractedEnding(owner.name, relation, valid_to=period.close, source_type="person", others=others)

    def ending_of_last_day(self, sentence: Span) -> Iterator[ExtractedEnding]:
        """Yield the ending of the job of whoever names a last day without a workplace: "My last day is Friday"."""
        for clause, owner in unplaced_last_days(sentence, self._names):
            period = Period.of(clause, self._dates, self._reference)
            if period.close is not None:
                yield ExtractedEnding(owner.name, "works_at", valid_to=period.close, source_type="person")

    def _subjects(self, clause: Clause) -> list[End]:
        """Return the subjects of a clause; for "my friend is Anna" the owner of the noun if the friend is unknown."""
        if not clause.subjects and self._names.speaker:
            return [self._names.speaker]
        subjects = [t for t in clause.subjects if t.i + 1 == len(t.doc) or t.nbor().text != ":"]  # "Tom: wrote to him"
        owners = (self._names.owner(t) for t in subjects if is_named(t))
        ends = (e for t in subjects for e in ([*owned(t, self._names)] or self._names.end(t)))
        return [*ends] or [e for e in owners if e is not None]

    def _apart(self, clause: Clause, statement: Statement, said: Collection[Statement]) -> frozenset[int]:
        """Return the prepositions of a clause that belong only to its other single-valued facts.

        Those facts end independently: the sentence of works_as in "Sam works at Acme as an engineer" omits Acme.
        """
        single = (s for s in said if self._ontology.is_single_valued(self._ontology.relation(s.relation)))
        others = {s.target.name.casefold() for s in single} - {statement.target.name.casefold()}
        if not others or not is_state(clause):
            return frozenset()
        heads = (t for t in clause.verb.subtree if t.dep_ == "prep")
        return frozenset(
            t.i for t in heads if any(e.name.casefold() in others for n in t.children for e in self._names.end(n))
        )

    def start_of(self, clause: Clause) -> dict[str, datetime]:
        """Return when somebody starts, for "I start on Monday", by name."""
        verb = clause.verb
        if verb.lemma_ not in ("start", "begin") or objects_of(verb, "dobj", "xcomp") or clause.negated:
            return {}
        begin = Period.of(clause, self._dates, self._reference).begin
        return {} if begin is None else {s.name: begin for s in self._subjects(clause) if s.kind == "person"}

    def of_first_and_last_days(self, sentence: Span) -> Iterator[ExtractedEdge]:
        """Yield the jobs whose "first day" is stated lately or ahead, and the endings of those with a "last day"."""
        for clause, said in last_days(sentence, self._names):
            period = Period.of(clause, self._dates, self._reference)
            edge = self._edge(clause, said.source or said.target, said, period)
            if edge is not None:
                yield edge
        for clause, said in first_days(sentence, self._names):
            period = Period.of(clause, self._dates, self._reference)
            new = period.days_so_far is None or period.days_so_far < LATELY
            edge = self._edge(clause, said.source or said.target, said, period) if new else None
            if edge is not None:
                yield edge

    def _edge(
        self, clause: Clause, subject: End, said: Statement, period: Period, apart: frozenset[int] = frozenset()
    ) -> ExtractedEdge | None:
        source, target = said.source or subject, said.target
        relation = self._ontology.relation(said.relation)
        if relation in _EXCLUSIVE and not (said.ended or clause.ended) and _is_beside(clause):
            relation = f"also_{relation}"
        if relation in _EARNEST and target.name.lower() in words.JESTS:
            return None  # "I'm allergic to Mondays"
        if _in_jest(clause):
            return None
        if source.name.lower() == target.name.lower() or not (source.named or target.named):
            return None
        if not source.named and (self._names.speaker is None or source.name.lower() in words.UNNAMED):
            return None  # "the single" of a document may be any single, "the landlady" any landlady
        if self._ontology.is_single_valued(relation) and not said.explicit:
            return None  # a wrong fact would end a correct one: left to the strict patterns
        if said.explicit is False and _courtesy(clause, source, target, period, self._names.participants):
            return None
        denied = clause.negated and not said.presumed and not relation.startswith(("does_not_", "cannot", "quit"))
        if denied or _is_misbelief(clause, source):
            return None
        plain = not (said.explicit or said.presumed)
        if plain and any(t.lower_ == "we" for t in clause.subjects) and self._is_of_group(clause, target):
            return None  # "we are building a sales force"
        talk = plain and self._names.speaker is not None
        if talk and not source.named and source.name.split()[-1].islower():
            return None  # "the data is published"
        if plain and _is_passing(clause, said, period):
            return None
        if plain and _is_event(clause, said) and any(t.lower_ in words.BARE_KIN for t in clause.subjects):
            return None  # "Mum sold the house": only what lasts is told of her
        if subject.role == "addressee" and not (said.explicit or (target.named and not target.role)):
            return None  # "you're doing great": mostly courtesy
        if talk and clause.verb.lemma_.lower() not in words.FACTUAL and not _is_told(clause, said):
            return None
        if not (said.explicit or target.named or target.role or _is_telling(clause, said, period)):
            return None
        ceiling = EXPLICIT if said.explicit else PLAIN
        if not (source.named and target.named) and not said.explicit:
            ceiling = COMMON
        hearsay = _is_hearsay(clause, source, self._names)
        if hearsay or "addressee" in (subject.role, target.role):
            ceiling = min(ceiling, INDIRECT)
        ended = said.ended or (clause.ended and not said.timeless)
        start, end = period.bounds(ended=ended)
        ended = ended and (said.ended or start is None or end is None)  # "lived there in 2020" ends nothing now
        moves_later = relation == "lives_in" and period.ahead and not said.ended and not clause.ended
        event = said.event or _is_event(clause, said)
        if event and start is not None:
            end = end or period.close
        return ExtractedEdge(
            source=source.name,
            relation=relation,
            target=target.name,
            fact=said.fact or sentence(clause, subject, self._names, self._dates, apart),
            confidence=min(ceiling, clause.certainty, source.certainty, target.certainty, said.certainty),
            valid_from=None if said.timeless else start,
            valid_to=said.until if said.timeless else end,
            ended=ended,
            source_type=source.kind,
            target_type=target.kind,
            certainty="hearsay" if hearsay else "plan" if moves_later or said.planned else "stated",
            kind="event" if event else "state",
        )
