"""Rules for well-known relations except jobs and homes: people, budgets, deployments, choices."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from graphmem.ingest.extract.spacy import words
from graphmem.ingest.extract.spacy.clauses import Clause, helpers, is_bare, not_but, objects_of, prepositions
from graphmem.ingest.extract.spacy.endings import endings
from graphmem.ingest.extract.spacy.homes_and_jobs import hirings, homes, jobless, jobs, place_names, places
from graphmem.ingest.extract.spacy.kin import is_business_partner, is_parting, role_of
from graphmem.ingest.extract.spacy.names import GUESSED_PERSON, End, Names, as_relative
from graphmem.ingest.extract.spacy.statements import LATELY, Period, Statement, is_state, presumed_end
from graphmem.text.dates import written

if TYPE_CHECKING:
    from spacy.tokens import Token

_NEAR = 15  # words within which "it's Dr. Park now" follows
_GUESSED_OWNER = 0.4
_GUESSED_TOOL = 0.6
_SAME = frozenset("new current final".split())  # not "the first deadline"
_TAKING_UP = words.GETTING | words.HIRING | {"join"}
_DUE = {"deadline": "deadline", "launch": "launch date"}


def well_known(clause: Clause, subject: End, names: Names, period: Period) -> Iterator[Statement]:
    """Yield the facts of a clause in relations of the ontology; plans only with a date."""
    if clause.stance and not _settled(clause, period):
        return
    whom = None if subject.kind == "person" else replace(subject, kind="person", named=True)
    acts = whom is None or _acts_as_person(clause, subject)
    if acts:
        for said in (*jobs(clause, subject, names, period), *homes(clause, names, period)):
            yield replace(said, source=whom)
            if said.relation == "works_at" and clause.verb.lemma_ in _TAKING_UP and not (said.ended or clause.ended):
                unemployed = End("unemployed", "concept", named=False)
                yield presumed_end("is", unemployed, whom)
        yield from _partner(clause, subject, names, period)
    yield from _due_dates(clause, subject, names, period)
    yield from _being_on(clause, names, period)
    if clause.stance:
        return
    if subject.kind == "person":
        if _is_retired(clause) and not clause.past:
            yield Statement("is", End("retired", "concept", named=False), explicit=True)
        yield from _birth(clause, names, period)
    else:
        yield from hirings(clause, subject, names)
    if not subject.role:
        thing = replace(subject, kind="concept") if subject.kind == "person" else subject
        yield from (replace(said, source=thing) for said in _deployment(clause, names))
    yield from _handover(clause, subject, names)
    if acts:
        yield from (replace(said, source=whom) for said in _promotion(clause, names, period))
        yield from (replace(said, source=whom) for said in _management(clause, names))
        yield from (replace(said, source=whom) for said in _superior(clause, subject, names))
    yield from endings(clause, subject, names, period)
    yield from _successor(clause, subject, names)
    yield from _moved_in(clause, names)
    yield from _moved_team(clause, names)
    yield from _choice(clause, subject, names)
    yield from _taken_up(clause, names)
    yield from _medicines(clause, names)
    yield from _budget(clause, subject, names)
    if clause.verb.lemma_ in words.CREATING and clause.past and not clause.passive:
        for token in objects_of(clause.verb, "dobj"):
            if token.lower_ in words.CREATED or token.ent_type_ in ("WORK_OF_ART", "PRODUCT"):
                yield from (Statement("created", t, explicit=t.named) for t in names.ends(token))


def over(clause: Clause, subject: End, period: Period) -> Iterator[str]:
    """Yield the relations that ended without naming the target: works_at for "I was laid off"."""
    if clause.negated or (clause.stance and not _settled(clause, period)):
        return
    if subject.kind != "person" and not _acts_as_person(clause, subject):
        return
    if jobless(clause, period):
        yield "works_at"
    said = objects_of(clause.verb, "acomp", "oprd", "xcomp") if clause.verb.lemma_ in ("be", "get") else []
    idle = clause.verb.lemma_ == "be" and any(t.lower_ in ("unemployed", "jobless", "retired") for t in said)
    if not clause.past and (idle or _is_retired(clause)):
        yield "works_at"
    if _divorces(clause) and all(_is_own_partner(t) for t in objects_of(clause.verb, "dobj")):
        yield "married_to"
    happens = clause.past if clause.verb.lemma_ != "be" else not clause.past
    if (happens and any(t.lower_ == "divorced" for t in said)) or (clause.passive and clause.verb.lower_ == "divorced"):
        yield "married_to"
    halves = [*clause.subjects, *_joined_before(clause)]
    halves += (n for w, n in prepositions(clause.verb) if w in ("with", "from"))
    if _parted(clause) and not any(is_business_partner(t) for t in halves):
        yield "has_status"
        if subject.role == "speaker":
            roles = {role_of(t) for t in halves if any(c.lower_ in ("my", "our") for c in t.children)}
            yield from (words.PARTNER_OF[role] for role in sorted(roles & words.PARTNER_OF.keys()))  # "my wife and I"
            if any(t.lower_ == "we" for t in clause.subjects) and _is_bare(clause):
                yield from ("has_partner", "is_engaged_to", "married_to")
    yield from _changed_person(clause)


def _changed_person(clause: Clause) -> Sequence[str]:
    """Return the relations to one person or thing at a time that end with "I changed dentists"."""
    verb = clause.verb
    if verb.lemma_ not in words.SWITCHING | {"change"} or not clause.past or clause.passive:
        return ()
    nouns = {words.has(t.lemma_.lower()) for t in objects_of(verb, "dobj") if not _owns(t)}
    return next((group for group in words.ONE_AT_A_TIME if nouns & set(group)), ())


def _owns(noun: Token) -> bool:
    return any(c.dep_ == "poss" and c.lower_ not in ("my", "our") for c in noun.children)


def _successor(clause: Clause, subject: End, names: Names) -> Iterator[Statement]:
    """Yield who or what comes after "I changed dentists": "it's Dr. Park now"."""
    if not (group := _changed_person(clause)):
        return
    noun = next(t for t in objects_of(clause.verb, "dobj") if words.has(t.lemma_.lower()) in group)
    for token in clause.verb.doc[clause.verb.i + 1 : clause.verb.i + _NEAR]:
        named = [t for t in objects_of(token, "attr") if t.pos_ == "PROPN"] if token.lemma_ == "be" else []
        if any(t.lower_ == "it" for t in objects_of(token, "nsubj")):
            ends = (as_relative(noun, e) if noun.lemma_ in words.KIN else e for t in named for e in names.end(t))
            role = noun.lemma_.lower()
            for end in (e for e in ends if e.named):
                fact = f"{subject.name}'s {role} is {end.name}."
                yield Statement(words.has(role), end, explicit=True, fact=fact)


def _is_retired(clause: Clause) -> bool:
    return clause.passive and clause.verb.lower_ == "retired"


def _acts_as_person(clause: Clause, subject: End) -> bool:
    """Return whether the clause implies that an unrecognized name is a person: "Anna quit her job"."""
    head = clause.subjects[0] if clause.subjects else None
    if head is None or head.pos_ != "PROPN" or subject.label or any(head.children):
        return False
    own = any(c.lower_ in words.THIRD_PERSON for t in objects_of(clause.verb, "dobj") for c in t.children)
    return own or clause.verb.lemma_.lower() in words.PERSONAL or _leads_people(clause)


def _leads_people(clause: Clause) -> bool:
    led = objects_of(clause.verb, "dobj") if clause.verb.lemma_ in ("manage", "lead", "head") else []
    return any(t.lower_ in words.LED or any(c.text == "Project" for c in t.children) for t in led)


def _settled(clause: Clause, period: Period) -> bool:
    """Return whether a plan is definite: "I'm moving", "I'll move", with a date; not "I plan to move"."""
    return clause.stance == "plans_to" and period.ahead and not any(t.lemma_ in words.INTENTIONS for t in clause.chain)


def _partner(clause: Clause, subject: End, names: Names, period: Period) -> Iterator[Statement]:
    """Yield married_to, is_engaged_to, has_partner and their endings, and has_status if no partner is named."""
    verb, lemma = clause.verb, clause.verb.lemma_.lower()
    happens = clause.past or period.ahead
    people = [e for t in objects_of(verb, "dobj") for e in _people(t, names)]
    if lemma == "marry" and happens and not clause.passive:
        yield from (said for e in people for said in _wedding(e))
        if people:
            yield Statement("has_status", End("married", "concept", named=False), explicit=True)
    yield from _status(clause, subject, names, happens=happens)
    if _divorces(clause):
        yield from (Statement("married_to", e, ended=True, explicit=True) for e in people)
    if _parted(clause):
        for end in _whom(verb, names) or _other_half(clause, subject, names):
            yield Statement("broke_up_with", end)
            yield Statement("has_partner", end, ended=True, explicit=True)
            yield presumed_end("is_engaged_to", end)
            yield presumed_end("married_to", end)
    if lemma == "date" and not clause.passive and is_state(clause) and not clause.stance:
        yield from (Statement("has_partner", e, explicit=True) for e in people or _other_half(clause, subject, names))


def _moved_in(clause: Clause, names: Names) -> Iterator[Statement]:
    """Yield lives_with for "moved in with Sam"."""
    verb = clause.verb
    joined = verb.lemma_ == "move" and any(c.lower_ == "in" and not any(c.children) for c in verb.children)
    if joined and (clause.past or verb.tag_ == "VBG") and not clause.stance:
        for word, noun in prepositions(verb):
            yield from (Statement("lives_with", e, explicit=True) for e in names.ends(noun) if word == "with")


def _moved_team(clause: Clause, names: Names) -> Iterator[Statement]:
    """Yield joined for "moved to the platform team"."""
    verb = clause.verb
    if verb.lemma_ in words.MOVING | words.SWITCHING | {"transfer"} and clause.past and not objects_of(verb, "dobj"):
        ends = (end for word, noun in prepositions(verb) if word == "to" for end in names.end(noun))
        yield from (Statement("joined", end, explicit=True) for end in ends if _is_team(end))


def _is_team(end: End) -> bool:
    return end.name.rpartition(" ")[2].lower() in words.LED


def _being_on(clause: Clause, names: Names, period: Period) -> Iterator[Statement]:
    """Yield is_on for "I'm on the Pro plan", and for "I'm on vacation until Friday" with its days."""
    if clause.verb.lemma_ != "be" or (clause.past and not clause.ongoing):
        return
    for noun in (noun for word, noun in prepositions(clause.verb) if word == "on"):
        if noun.lower_ in ("plan", "tier") and (limits := [c for c in noun.lefts if c.dep_ in ("amod", "compound")]):
            if any(c.lower_ in words.EVALUATIVE for c in limits):
                continue  # "the same plan"
            kind = noun.doc[limits[0].i : noun.i + 1].text
            yield Statement("is_on", End(kind, "concept", named=False), explicit=True)
        elif noun.lower_ in words.LEAVES and (period.begin or period.until):
            yield Statement("is_on", End(names.phrase(noun), "concept", named=False), explicit=True)


def _is_bare(clause: Clause) -> bool:
    """Return whether a clause says no more than when: "we broke up in May", not "we split up into groups"."""
    where = (noun for _, noun in prepositions(clause.verb) if noun.ent_type_ not in words.QUANTITIES)
    return not any(where) and not any(c.dep_ in ("advcl", "xcomp") for c in clause.verb.children)


def _divorces(clause: Clause) -> bool:
    return clause.verb.lemma_ == "divorce" and clause.past and not clause.passive


def _parted(clause: Clause) -> bool:
    """Return whether a clause states "broke up", "split up" or "separated"."""
    parts = clause.verb.lemma_.lower() in ("break", "split", "separate") and is_parting(clause.verb)
    return parts and clause.past and not clause.passive


def _is_own_partner(noun: Token) -> bool:
    """Return whether a noun is "my wife" without her name."""
    mine = any(c.lower_ in ("my", "our") for c in noun.children)
    return mine and role_of(noun) in words.PARTNER_OF and not any(c.pos_ == "PROPN" for c in noun.children)


def _wedding(end: End) -> Iterator[Statement]:
    yield Statement("married_to", end, explicit=True)
    yield presumed_end("is_engaged_to", end)


def _whom(token: Token, names: Names) -> list[End]:
    return [e for w, n in prepositions(token) if w in ("to", "with") for e in _people(n, names)]


def _people(token: Token, names: Names) -> Iterator[End]:
    """Yield the persons in a noun phrase whose position requires a person; unknown names count as persons."""
    for end in names.end(token):
        if end.kind == "person":
            yield end
        elif token.pos_ == "PROPN" and end.named and not end.role and not any(c.dep_ == "det" for c in token.children):
            yield End(end.name, "person", named=True, certainty=min(end.certainty, GUESSED_PERSON), label="PERSON")


def _other_half(clause: Clause, subject: End, names: Names) -> list[End]:
    """Return the other partner in "Anna and I broke up"."""
    both = {e.name: e for t in (*clause.subjects, *_joined_before(clause)) for e in _people(t, names)}
    return [e for e in both.values() if e.name != subject.name] if len(both) == 2 and subject.name in both else []


def _joined_before(clause: Clause) -> Iterator[Token]:
    """Yield the subject before "and" that the parser misses: Anna in "Anna and I broke up"."""
    return (t.nbor(-2) for t in clause.subjects if t.i > 1 and t.nbor(-1).lower_ == "and")


def _status(clause: Clause, subject: End, names: Names, *, happens: bool) -> Iterator[Statement]:
    """Yield facts of "got married", "is engaged to Daniel", "have been married since 2019"."""
    verb, lemma = clause.verb, clause.verb.lemma_.lower()
    getting = (lemma == "get" and happens) or any(h.lower_ in words.GETS for h in helpers(verb))
    if not (happens if getting else (not clause.past or clause.ongoing)):
        return  # "was married" has ended, "is getting married" may be years away
    said = [t for t in objects_of(verb, "acomp", "oprd", "xcomp") if lemma in ("be", "get")]
    for word in [*said, *([verb] if clause.passive else [])]:
        status = word.lower_
        if status not in words.STATUSES:
            continue
        whom = [*_whom(word, names), *(_whom(verb, names) if word is not verb else [])]
        half = _other_half(clause, subject, names)
        if status == "married":
            yield from (said for e in whom or half for said in _wedding(e))
        elif status == "divorced":
            yield from (Statement("married_to", e, ended=True, explicit=True) for e in whom or half)
            if whom or half:
                yield Statement("has_status", End(status, "concept", named=False), explicit=True)
        elif status == "engaged":
            yield from (Statement("is_engaged_to", e, explicit=True) for e in whom or half)
        free = all(n.ent_type_ in words.QUANTITIES for _, n in prepositions(word))
        if ((whom or half) and status == "engaged") or (not whom and free and (getting or word is verb)):
            yield Statement("has_status", End(status, "concept", named=False), explicit=True)


def _birth(clause: Clause, names: Names, period: Period) -> Iterator[Statement]:
    if clause.verb.lower_ == "born":
        if period.begin is not None and period.close is not None and period.close - period.begin <= timedelta(days=1):
            day = End(written(period.begin, "day").removeprefix("on "), "concept", named=False)
            yield Statement("born_on", day, explicit=True, timeless=True)
        raised = [v for v in clause.verb.conjuncts if v.lower_ in ("raised", "educated")]  # "born and raised in"
        for word, noun in [*prepositions(clause.verb)] or [pair for verb in raised for pair in prepositions(verb)]:
            if word in ("in", "at", "near"):
                found = place_names(noun, names, sure=True) if noun.pos_ == "PROPN" else places(noun, names)
                yield from (Statement("born_in", t, explicit=True, timeless=True) for t in found)


def _management(clause: Clause, names: Names) -> Iterator[Statement]:
    lemma = clause.verb.lemma_
    if lemma in ("manage", "lead", "head") and (not clause.past or clause.ended) and not clause.passive:
        for token in objects_of(clause.verb, "dobj"):
            for end in names.end(token):
                project = end.name.startswith("Project ")
                thing = (
                    token.pos_ == "PROPN"
                    and end.named
                    and not end.role
                    and end.label in ("", "THING", "ORG", "PRODUCT")
                )
                if (lemma == "manage" and (thing or project)) or token.lower_ in words.MANAGEABLE:
                    yield Statement("manages", replace(end, kind="project") if project else end, explicit=True)


def _promotion(clause: Clause, names: Names, period: Period) -> Iterator[Statement]:
    """Yield works_as for "I got promoted to team lead", unless that was long ago."""
    if clause.verb.lemma_ != "promote" or not (clause.passive and clause.past) or (period.days_so_far or 0) > LATELY:
        return
    for noun in (noun for word, noun in prepositions(clause.verb) if word == "to"):
        vague = noun.lower_ in words.VAGUE - words.OCCUPATIONS | words.JOBS | words.GROUPS | words.LED
        if not vague and not any(c.dep_ == "det" and c.lower_ not in ("a", "an") for c in noun.children):
            yield from (Statement("works_as", e, explicit=True) for e in names.end(noun) if not e.label)


def _superior(clause: Clause, subject: End, names: Names) -> Iterator[Statement]:
    """Yield has_manager for "I report to Erik"."""
    if clause.verb.lemma_ == "report" and is_state(clause) and not objects_of(clause.verb, "dobj"):
        for end in (e for word, noun in prepositions(clause.verb) if word == "to" for e in _people(noun, names)):
            yield Statement("has_manager", end, explicit=True, fact=f"{subject.name} reports to {end.name}.")


def _deployment(clause: Clause, names: Names) -> Iterator[Statement]:
    lemma = clause.verb.lemma_.lower()
    if (clause.passive and lemma in ("deploy", "host")) or (lemma == "run" and is_state(clause)):
        for word, noun in prepositions(clause.verb):
            if word in ("on", "to", "in"):
                yield from (Statement("deployed_on", e, explicit=True) for e in names.end(noun) if e.named)


def _handover(clause: Clause, subject: End, names: Names) -> Iterator[Statement]:
    """Yield owns and its end for "Anna takes Apollo over from Peter"."""
    verb = clause.verb
    over = verb.lemma_ == "take" and any(c.lower_ == "over" and c.dep_ == "prt" for c in verb.children)
    if not over or clause.passive or subject.kind != "person":
        return
    for noun in (n for word, n in prepositions(verb) if word == "as" and not clause.stance):
        of = [e for word, whole in prepositions(noun) if word == "of" for e in names.end(whole) if e.named]
        yield from (Statement(f"is_{noun.lower_}_of", e, explicit=True) for e in of)
        yield from (Statement("is_a", e, explicit=True) for e in names.end(noun) if not (of or e.named))
    former = [e for w, n in prepositions(verb) if w == "from" for e in _people(n, names)]
    for thing in (e for t in objects_of(verb, "dobj") for e in names.ends(t) if e.named and not e.role):
        yield Statement("owns", thing, explicit=True, fact=f"{subject.name} owns {thing.name}.")
        yield from (presumed_end("owns", thing, e) for e in former)


def _tools(ends: list[End]) -> list[End]:
    return [e for e in ends if e.named and e.kind not in ("person", "location") and not e.role]


def _choice(clause: Clause, subject: End, names: Names) -> Iterator[Statement]:
    """Yield uses and preferences: "switched from vim to neovim", "dropped A for B", "prefers A to B"."""
    verb, lemma = clause.verb, clause.verb.lemma_.lower()
    objects = [e for t in objects_of(verb, "dobj") for e in names.ends(t)]
    after = [(w, e) for head in (verb, *objects_of(verb, "dobj")) for w, n in prepositions(head) for e in names.end(n)]
    medicine = any(_is_medicine(noun) for _, noun in prepositions(verb))
    if lemma in words.SWITCHING and clause.past and not (clause.passive or medicine):
        after += [("to", end) for t in objects_of(verb, "xcomp") if is_bare(t) for end in names.word(t)]
        tools = lemma == "switch" or subject.kind != "person"  # not "my parents migrated from Italy"
        tools = tools or any(w == "to" and e.kind not in ("person", "location") for w, e in after)
        for word, end in after:
            if word in ("from", "to") and end.label in ("PERSON", "GPE") and tools:
                tool = End(end.name, "technology", named=True, certainty=min(end.certainty, _GUESSED_TOOL))
                yield Statement(
                    "uses", tool, ended=word == "from", explicit=True
                )  # an unknown name, as a person can't be switched to
            elif word in ("from", "to") and end.kind not in ("person", "location") and not _is_team(end):
                yield Statement("uses", end, ended=word == "from", explicit=True)
    if lemma == "replace" and clause.past and not clause.passive and any(w in ("with", "by") for w, _ in after):
        yield from (Statement("uses", e, ended=True, explicit=True) for e in objects)
        yield from (Statement("uses", e, explicit=True) for e in _tools([e for w, e in after if w in ("with", "by")]))
    if lemma == "use" and not clause.past:
        yield from (Statement("uses", e, ended=True, explicit=True) for t in not_but(verb) for e in names.ends(t))
    if lemma == "go" and verb.tag_ == "VBG" and not objects:
        yield from (Statement("uses", e, explicit=True) for e in _tools([e for w, e in after if w == "with"]))
    if lemma == "rid" and clause.past:  # "we got rid of Kafka"
        yield from (Statement("uses", e, ended=True, explicit=True) for e in _tools([e for w, e in after if w == "of"]))
    yield from _dropped(clause, _tools(objects), after)
    yield from _moved(clause, names, after)
    if lemma == "prefer" and not clause.past:
        yield from (Statement("prefers", e, explicit=True) for e in objects)
    if lemma == "decide" and clause.past:
        yield from (Statement("decided", e, explicit=e.named) for w, e in after if w == "on")


def _dropped(clause: Clause, objects: list[End], after: list[tuple[str, End]]) -> Iterator[Statement]:
    """Yield facts of "dropped A for B", "gave up on A"."""
    lemma = clause.verb.lemma_.lower()
    if not clause.past or clause.passive:
        return
    if lemma in words.DROPPING:
        yield from (Statement("uses", e, ended=True, explicit=True) for e in objects)
        yield from (Statement("uses", e, explicit=True) for e in _tools([e for w, e in after if w == "for"]) if objects)
    if lemma == "give" and any(c.lower_ == "up" for c in clause.verb.children):
        yield from (Statement("uses", e, ended=True, explicit=True) for e in _tools([e for w, e in after if w == "on"]))


def _medicines(clause: Clause, names: Names) -> Iterator[Statement]:
    """Yield takes for "I'm on ramipril"."""
    verb, lemma = clause.verb, clause.verb.lemma_
    on = (lemma == "be" and not clause.past) or (lemma in ("start", "go") and clause.past)
    if on and not clause.passive and not any(_patients(clause, names)):
        yield from (
            Statement("takes", e, explicit=True) for w, n in prepositions(verb) if w == "on" for e in _medicine(n)
        )


def prescribed(clause: Clause, names: Names) -> Iterator[Statement]:
    """Yield takes and its end for "she put me on ramipril", "stopped my aspirin", "switched me to aspirin"."""
    verb, lemma = clause.verb, clause.verb.lemma_
    if not clause.past or clause.passive:
        return
    whom = list(_patients(clause, names)) or [e for e in [names.speaker] if lemma in ("stop", *words.SWITCHING) and e]
    if lemma == "stop":
        ended = [e for t in objects_of(verb, "dobj") for e in _medicine(t)]
        yield from (presumed_end("takes", e, whom[0]) for e in ended if whom)
    ways = list(prepositions(verb)) if lemma in ("put", "start", *words.SWITCHING) else []
    begun = "on" if lemma in ("put", "start") else "to"
    ways += [("to", t) for t in verb.children if t.dep_ in ("xcomp", "advcl") and is_bare(t)]
    switched = any(word == "from" and _is_medicine(noun) for word, noun in ways)  # also to one with an unknown name
    for person in whom:
        for word, noun in ways:
            if word == begun:
                found = names.word(noun) if switched else _medicine(noun)
                yield from (Statement("takes", e, explicit=True, source=person) for e in found)
            elif word == "from":
                yield from (presumed_end("takes", e, person) for e in _medicine(noun))


def _patients(clause: Clause, names: Names) -> Iterator[End]:
    yield from (e for t in objects_of(clause.verb, "dobj") for e in names.end(t) if e.kind == "person")


def _medicine(noun: Token) -> Iterator[End]:
    if _is_medicine(noun):
        yield End(noun.lower_, "concept", named=False)


def _is_medicine(noun: Token) -> bool:
    return noun.lower_ in words.MEDICINES or (len(noun) > 6 and noun.lower_.endswith(words.MEDICINE_ENDINGS))


def _taken_up(clause: Clause, names: Names) -> Iterator[Statement]:
    """Yield "does pottery" for "took up pottery"."""
    up = any(c.lower_ == "up" and c.dep_ == "prt" for c in clause.verb.children)
    if clause.verb.lemma_ == "take" and up and clause.past and not clause.passive:
        for noun in objects_of(clause.verb, "dobj"):
            if not any(c.dep_ in ("det", "poss") for c in noun.children) and noun.lower_ not in words.VAGUE:
                yield from (Statement("does", e, explicit=True) for e in names.ends(noun) if not e.role)


def _moved(clause: Clause, names: Names, after: list[tuple[str, End]]) -> Iterator[Statement]:
    """Yield facts about the object or its owner: "moved Apollo from MySQL to Postgres", "deployed Apollo on AWS"."""
    lemma = clause.verb.lemma_.lower()
    things = objects_of(clause.verb, "dobj")
    if not things or clause.passive:
        return
    owner = next((e for t in things for e in names.end(t) if e.named and not e.role), None)
    old, new = (_tools([e for w, e in after if w == word]) for word in ("from", "to"))
    if lemma in ("move", "port") and clause.past and old and new:
        yield from (Statement("uses", e, ended=True, explicit=True, source=owner) for e in old)
        yield from (Statement("uses", e, explicit=True, source=owner) for e in new)
    if lemma in ("deploy", "host") and owner is not None and owner.kind != "person":
        for word, end in after:
            if word in ("on", "to") and end.named and end.kind != "person":
                yield Statement("deployed_on", end, explicit=True, source=owner)


def _budget(clause: Clause, subject: End, names: Names) -> Iterator[Statement]:
    """Yield facts of "Apollo's budget is $5,000", "Apollo has a budget of …", "we raised the budget to …"."""
    verb, lemma = clause.verb, clause.verb.lemma_.lower()
    if clause.passive or (lemma == "be" and clause.past):
        return
    if lemma == "be":
        nouns, amounts = list(clause.subjects), objects_of(verb, "attr")
    else:
        nouns = objects_of(verb, "dobj")
        linked = {"have": "of"}.get(lemma, "to" if clause.past and lemma in words.CHANGING else "")
        amounts = [n for head in (verb, *nouns) for w, n in prepositions(head) if w == linked]
    for noun in (t for t in nouns if t.lower_ == "budget"):
        owner = subject if lemma == "have" else _budget_owner(noun, names)
        for token in (t for t in amounts if t.ent_type_ == "MONEY" or t.lower_ in words.CURRENCIES):
            amount = token.doc[token.left_edge.i : token.i + 1].text
            if owner is not None and owner.named and any(c.isdigit() for c in amount):
                target = End(amount, "concept", named=True, certainty=owner.certainty)
                fact = f"{owner.name}'s budget is {amount}." if lemma == "be" else ""
                yield Statement("has_budget", target, explicit=True, source=owner, fact=fact)


def _budget_owner(noun: Token, names: Names) -> End | None:
    """Return the owner of a budget; for a bare "the budget" it is guessed: the one thing that was named before."""
    if (owner := names.owner(noun)) is not None:
        return owner
    if any(w in ("of", "for") and n.ent_type_ not in words.QUANTITIES for w, n in prepositions(noun)) or any(
        c.dep_ == "compound" for c in noun.children
    ):
        return _owner_inside(noun, names)
    start = noun.sent.start
    if names.speaker is None or not start or any(c.dep_ in ("poss", "amod") for c in noun.children):
        return None
    said = names.named(noun.doc[start - 1].sent)
    projects = {e.name: e for e in said if e.name.startswith("Project ")}
    projects = projects or {e.name: e for e in said if not e.role and e.kind not in ("person", "location")}
    return replace(next(iter(projects.values())), certainty=_GUESSED_OWNER) if len(projects) == 1 else None


def _due_dates(clause: Clause, subject: End, names: Names, period: Period) -> Iterator[Statement]:
    """Yield has_deadline for "Apollo's deadline is 30 April", has_launch_date for "Apollo launches on 30 April"."""
    begin, close, lemma = period.begin, period.close, clause.verb.lemma_
    if begin is None or close is None or close - begin > timedelta(days=1):
        return
    if not (period.ahead or period.days_so_far == 0):
        return
    live = lemma == "go" and any(c.lower_ == "live" for c in clause.verb.children)
    objects = objects_of(clause.verb, "dobj")
    if (live or lemma in ("launch", "ship")) and not clause.past and not objects and subject.named and not subject.role:
        yield _due(subject, "launch date", begin)
    shifts = lemma in words.SHIFTING and not clause.stance
    if not (shifts or (lemma == "be" and not clause.past)):
        return
    several = any(t.conjuncts for t in objects_of(clause.verb, "attr"))
    subjects = objects if shifts and objects else clause.subjects
    for noun in (t for t in subjects if t.lower_ in _DUE and len(subjects) == 1 and not several):
        limits = (c for c in noun.children if c.dep_ == "amod" or (c.dep_ == "compound" and c.pos_ != "PROPN"))
        owner = names.owner(noun) or _owner_inside(noun, names)
        if owner is not None and owner.named and not owner.role and all(c.lower_ in _SAME for c in limits):
            yield _due(owner, _DUE[noun.lower_], begin)


def _due(owner: End, noun: str, begin: datetime) -> Statement:
    """Return a date that holds from when it is told to the end of that day."""
    day = written(begin, "day").removeprefix("on ")
    return Statement(
        words.has(noun),
        End(day, "concept", named=False),
        explicit=True,
        source=replace(owner, kind="concept") if owner.kind == "person" else owner,
        fact=f"{owner.name}'s {noun} is {day}.",
        timeless=True,
        until=begin.replace(hour=0, minute=0, second=0, microsecond=0) + timedelta(days=1),
    )


def _owner_inside(noun: Token, names: Names) -> End | None:
    """Return the named owner in "the budget of Apollo", "the Apollo budget"."""
    inside = [n for w, n in prepositions(noun) if w in ("of", "for") and n.ent_type_ not in words.QUANTITIES]
    inside += [c for c in noun.children if c.dep_ == "compound"]
    return next((e for t in inside for e in names.end(t) if e.named), None)
