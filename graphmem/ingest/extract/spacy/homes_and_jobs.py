"""Rules for `lives_in`, `works_at` and `works_as`: current, former and future homes and jobs.

A wrong `works_at` ends a correct one, so the type of the target is checked. Accepted are recognized organizations,
recognized names after "at" (small models label firms as places and people), common workplaces ("a hospital"), and
nouns with an article ("at a garden centre", "for the harbour authority").
A bare "my company" isn't: it would end the named one.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Literal

from graphmem.ingest.extract.spacy import words
from graphmem.ingest.extract.spacy.clauses import (
    Clause,
    given_names,
    governor,
    helpers,
    negation,
    objects_of,
    prepositions,
)
from graphmem.ingest.extract.spacy.labels import PLACES as PLACE_NAMES
from graphmem.ingest.extract.spacy.names import End, Names
from graphmem.ingest.extract.spacy.statements import Period, Statement, is_state, presumed_end

if TYPE_CHECKING:
    from spacy.tokens import Span, Token

_PLACES = ("GPE", "LOC")


def places(noun: Token, names: Names) -> Iterator[End]:
    """Yield a noun phrase as a place, if the entity recognizer labels it as one."""
    yield from (e for e in names.end(noun) if e.label in _PLACES)


def homes(clause: Clause, names: Names, period: Period) -> Iterator[Statement]:
    """Yield facts of "lives in Berlin", "moved from Rome to Berlin" (ends Rome), "is moving to Berlin in May"."""
    verb, lemma = clause.verb, clause.verb.lemma_.lower()
    if lemma == "base" and clause.passive:
        lemma = "live"
    lives = lemma in ("live", "reside") and (is_state(clause) or clause.ended or clause.began) and not clause.stance
    moves = lemma in words.MOVING and (clause.past or period.ahead) and not objects_of(verb, "dobj")
    moves = moves or (lemma == "transfer" and clause.passive)
    settles = lemma == "settle" and clause.past
    ways = list(_ways(verb))
    if lemma == "share" and is_state(clause) and any(t.lower_ in words.DWELLINGS for t in objects_of(verb, "dobj")):
        lives = not clause.stance
        ways += [pair for noun in objects_of(verb, "dobj") for pair in prepositions(noun)]
        mates = (e for word, noun in ways if word == "with" for e in names.ends(noun) if e.named)
        yield from (Statement("lives_with", e, explicit=True) for e in mates if e.kind != "location")
    if moves and any(word in ("into", "to", "in") and noun.lower_ in words.DWELLINGS for word, noun in ways):
        inside = [*ways, *(pair for _, noun in ways for pair in prepositions(noun))]  # "into a flat in Bristol"
        towns = (e for word, noun in inside if word == "in" for e in place_names(noun, names, sure=True))
        yield from (Statement("lives_in", t, explicit=True) for t in towns)
    if lives:  # "in a small house in Denver", "with Ida in Denver"
        ways += [(w, inner) for _, noun in ways for w, inner in prepositions(noun) if w == "in"]
    for word, noun in ways:
        if (lives and word in ("in", "at", "of")) or (settles and word == "in"):
            yield from (Statement("lives_in", t, explicit=True) for t in place_names(noun, names, sure=not settles))
        elif moves and word == "to":
            towns = list(place_names(noun, names, sure=False)) or list(_unknown_town(clause, noun, names))
            after = (n for w, n in ways if w == "to" and n.i > noun.i)  # "to Oslo, then to Bergen"
            last = not any(n.pos_ == "PROPN" for n in after)
            yield from (Statement("lives_in", t, ended=not last, explicit=True) for t in towns)
        elif moves and word in ("from", "of"):
            known = list(places(noun, names))
            yield from (Statement("lives_in", t, ended=True, explicit=True) for t in known)
            unknown = () if known else _unknown_town(clause, noun, names)
            yield from (presumed_end("lives_in", t) for t in unknown)


def placed(clause: Clause, names: Names, period: Period) -> Iterator[Statement]:
    """Yield the homes and jobs of others than the subject of a clause: "the company relocated me to Munich"."""
    yield from _owned_jobs(clause, names, period)
    yield from _relocated(clause, names, period)
    yield from _home_towns(clause, names)


def _relocated(clause: Clause, names: Names, period: Period) -> Iterator[Statement]:
    """Yield the new home of somebody whom others move: "the company relocated me to Munich"."""
    verb = clause.verb
    by_firm = any(t.lower_ in words.EMPLOYERS or t.ent_type_ == "ORG" for t in clause.subjects)
    sent = verb.lemma_ == "relocate" or (verb.lemma_ == "transfer" and by_firm)
    if not sent or clause.passive or not (clause.past or period.ahead):
        return
    towns = [e for word, noun in prepositions(verb) if word == "to" for e in place_names(noun, names, sure=False)]
    for person in (e for t in objects_of(verb, "dobj") for e in names.ends(t) if e.kind == "person"):
        yield from (Statement("lives_in", t, explicit=True, source=person) for t in towns)


def _home_towns(clause: Clause, names: Names) -> Iterator[Statement]:
    """Yield the home in "Glasgow is home now", "our new home is Glasgow", and "we're in York now" after a move."""
    verb = clause.verb
    if verb.lemma_ != "be" or clause.past or clause.stance or clause.negated or names.speaker is None:
        return
    now = any(c.lower_ == "now" for c in verb.children)
    nouns = (*clause.subjects, *objects_of(verb, "attr"))
    homes = [t for t in nouns if t.lower_ == "home" and {c.dep_ for c in t.children} <= {"poss", "amod", "advmod"}]
    for home in homes:
        own = any(c.lower_ in ("my", "our") for c in home.children)
        if now if not own else now or any(c.lower_ == "new" for c in home.children):
            towns = (e for noun in nouns if noun != home and noun.text in PLACE_NAMES for e in names.end(noun))
            yield from (_town(e, names.speaker) for e in towns)
    ours = any(t.lower_ in ("i", "we") for t in clause.subjects)
    ways = list(_ways(verb))
    stays = any(_for_good(t) for t in (verb, *verb.children))  # "back in Rome for good"
    if ours and not homes and (stays or (now and _follows_move(verb))):
        towns = (e for word, noun in ways if word == "in" for e in place_names(noun, names, sure=False))
        yield from (_town(e, names.speaker) for e in towns)


def _town(end: End, whose: End) -> Statement:
    town = End(end.name, "location", named=True, certainty=end.certainty, label="GPE")
    return Statement("lives_in", town, explicit=True, source=whose, fact=f"{whose.name} lives in {end.name}.")


def _follows_move(verb: Token) -> bool:
    """Return whether the message tells of a move, without which "we're in Rome now" is rather of a trip."""
    for token in verb.doc:
        gone = token.lemma_ in words.MOVING and token.tag_ in ("VBD", "VBN") and not objects_of(token, "dobj")
        if gone or (token.lower_ in words.DWELLINGS and any(c.lower_ == "new" for c in token.children)):
            return True
        if _for_good(token):
            return True
    return False


def canceled_moves(clause: Clause, names: Names) -> Iterator[Statement]:
    """Yield the end of a planned home or trip: "we're not moving to Oslo after all", "I decided not to fly to Rome"."""
    lemma = clause.verb.lemma_.lower()
    no_longer = clause.ended and not clause.past and negation(clause.verb)  # "I'm not flying to Rome anymore"
    if not (clause.negated or no_longer) or (clause.past and clause.chain[0].lemma_ != "decide"):
        return
    nouns = [noun for word, noun in _ways(clause.verb) if word == "to"]
    if lemma in words.MOVING:
        planned: tuple[str, ...] = ("lives_in", "plans_to_move_to")
        ends = [t for n in nouns for t in (*place_names(n, names, sure=False), *_unknown_town(clause, n, names))]
    elif lemma in ("go", "fly", "travel"):
        planned, ends = words.PLANNED, [t for n in nouns for t in names.ends(n) if t.named and not t.role]
    elif lemma == "visit":
        visited = (t for noun in objects_of(clause.verb, "dobj") for t in names.ends(noun))
        planned, ends = words.PLANNED, [t for t in visited if t.named and not t.role]
    else:
        return
    for relation in planned:
        yield from (presumed_end(relation, t) for t in ends)


def _ways(verb: Token) -> Iterator[tuple[str, Token]]:
    """Yield the prepositions of a verb, including those of "back to", "over to", "away from"."""
    yield from prepositions(verb)
    for child in verb.children:
        for further in child.conjuncts if child.dep_ == "prep" else ():  # "to Oslo and finally to Bergen"
            yield from ((further.lower_, noun) for noun in further.children if noun.dep_ == "pobj")
        if child.dep_ in ("advmod", "prt") and child.lower_ in ("back", "over", "down", "up", "out", "away", "here"):
            yield from prepositions(child)


def place_names(noun: Token, names: Names, *, sure: bool) -> Iterator[End]:
    """Yield a place to live in; names of any kind if the verb implies a place."""
    for end in names.end(noun):
        if end.role:
            continue
        capital = noun.pos_ == "PROPN" and noun.text[:1].isupper() and end.named
        if end.label in _PLACES:
            yield end
        elif capital and noun.lower_ in words.STREETS:
            yield End(end.name, "location", named=True, certainty=end.certainty, label="GPE")
        elif capital and end.label == "PERSON" and not any(c.dep_ == "case" for c in noun.children):
            yield End(end.name, "location", named=True, certainty=min(end.certainty, 0.7), label="GPE")
        elif sure and capital and end.label in ("", "THING", "ORG", "FAC", "NORP"):
            yield End(end.name, "location", named=True, certainty=end.certainty, label="GPE")
        elif _is_small_name(noun, sure=sure):
            yield End(end.name.title(), "location", named=True, certainty=min(end.certainty, 0.6), label="GPE")


def _unknown_town(clause: Clause, noun: Token, names: Names) -> Iterator[End]:
    """Yield a name that the recognizer doesn't know as a place, where a person moved to it.

    "We moved to Postgres" and "I moved to Google" are excluded by their form or by a list.
    """
    person = any(t.lower_ == "i" or t.ent_type_ == "PERSON" or t.lemma_.lower() in words.KIN for t in clause.subjects)
    family = any(t.lower_ == "we" for t in clause.subjects) and (noun.ent_type_ == "GPE" or noun.text in PLACE_NAMES)
    plain = noun.text.istitle() and not any(c.dep_ in ("det", "poss", "compound", "case") for c in noun.children)
    no_town = noun.lower_ in words.NO_TOWNS or noun.ent_type_ in ("NORP", "LANGUAGE")  # "moved from French to Spanish"
    if (person or family) and noun.pos_ == "PROPN" and plain and not no_town:
        for end in names.end(noun):
            if end.named and not end.role:
                yield End(end.name, "location", named=True, certainty=min(end.certainty, 0.7), label="GPE")


def _is_small_name(noun: Token, *, sure: bool) -> bool:
    """Return whether a word of a message without capitals can be a town.

    A dwelling has an article ("in a flat"); states of mind don't and are excluded by a word list.
    """
    tagged = noun.tag_ == "NNP" or (sure and noun.tag_ == "NN" and noun.lower_ not in words.LIVED_IN)
    if not tagged or any(noun.children):
        return False
    return noun.doc.text.islower() or not any(t.text[:1].isupper() for t in noun.doc if t.text != "I")


# Jobs ---------------------------------------------------------------------------------------------


LIKELY = 0.7
_LONG = 31
_PAST_JOB = frozenset("old former previous last".split())


def jobs(clause: Clause, subject: End, names: Names, period: Period) -> Iterator[Statement]:
    """Yield the jobs of the subject of a clause and their endings."""
    yield from _working(clause, names)
    yield from _beginning(clause, subject, names, period)
    yield from _being(clause, names, period)
    yield from _ending(clause, names, period)


def hirings(clause: Clause, subject: End, names: Names) -> Iterator[Statement]:
    """Yield works_at for people that the subject hired or laid off: "Acme hired me"."""
    lemma = clause.verb.lemma_.lower()
    if subject.kind in ("person", "location") or not subject.named or not clause.past or clause.passive:
        return
    over = lemma in ("fire", "dismiss") or (lemma == "lay" and any(c.lower_ == "off" for c in clause.verb.children))
    if lemma in words.HIRING or over:
        employer = End(subject.name, "organization", named=True, certainty=subject.certainty)
        for person in (e for t in objects_of(clause.verb, "dobj") for e in names.ends(t) if e.kind == "person"):
            yield Statement("works_at", employer, ended=over, explicit=True, source=person)


def _workplaces(noun: Token, names: Names, after: Literal["at", "for", "join"]) -> Iterator[End]:
    """Yield a noun phrase as a workplace; nearly all names after "at" are one, few after "join"."""
    noun = next(iter(given_names(noun)), noun)  # "at a startup called Initech"
    if noun.lower_ in words.WORKPLACES and any(c.dep_ == "poss" and c.pos_ == "PROPN" for c in noun.children):
        name = noun.doc[noun.left_edge.i : noun.i + 1].text  # "at St Thomas' hospital"
        yield End(name, "organization", named=True, label="ORG")
        return
    capital = noun.pos_ == "PROPN" and noun.text[:1].isupper()
    group = noun.lower_ in words.GROUPS
    article = next((c.lower_ for c in noun.children if c.dep_ == "det"), "")
    compound = any(c.dep_ == "compound" for c in noun.children)
    plain = noun.tag_ == "NN" and noun.lower_ not in words.VAGUE | {"company", "living"} and not group
    plain = plain and ((after == "at" and article in ("a", "an")) or (compound and article in ("a", "an", "the")))
    for end in names.end(noun):
        if end.role:
            continue
        if end.label == "ORG":
            fits = after != "join" or not group
        elif after == "join":
            fits = capital and end.named and end.label in ("", "THING", "PRODUCT", "NORP", "WORK_OF_ART") and not group
            fits = fits and not any(c.lower_ == "the" for c in noun.children)
        else:
            fits = (capital and end.named and (after == "at" or end.label != "PERSON")) or (
                (plain or noun.lower_ in words.WORKPLACES) and end.name.lower() != "company"
            )
        if fits:
            yield End(end.name, "organization", end.named, end.certainty, end.label)


def _has_name(noun: Token) -> bool:
    """Return whether a common noun has a name before it: "Copper Lane brewery"."""
    return any(c.dep_ == "compound" and c.pos_ == "PROPN" for c in noun.children)


def _job_noun(verb: Token) -> Token | None:
    return next((t for t in objects_of(verb, "dobj") if t.lower_ in words.JOBS), None)


def _working(clause: Clause, names: Names) -> Iterator[Statement]:
    """Yield facts of "works at Acme", "used to work for Acme", "was hired by Acme", with the occupation."""
    verb, lemma = clause.verb, clause.verb.lemma_.lower()
    works = lemma == "work" and (is_state(clause) or clause.began or clause.ended)
    works = works and (not clause.stance or clause.began)
    hired = clause.passive and lemma in words.HIRING
    if not (works or hired):
        return
    for word, noun in prepositions(verb):
        if word in (("at", "for") if works else ("by", "at")):
            after = "at" if word == "at" else "for"
            yield from (Statement("works_at", t, explicit=True) for t in _workplaces(noun, names, after))
        elif word == "as" and not clause.stance:
            yield from (Statement("works_as", t) for t in names.end(noun))
            for inner, place in prepositions(noun) if works and not clause.ended else ():  # "as an engineer at Acme"
                if inner == "at":
                    yield from (Statement("works_at", t, explicit=True) for t in _workplaces(place, names, "at"))


def _beginning(clause: Clause, subject: End, names: Names, period: Period) -> Iterator[Statement]:
    """Yield facts of "got a job at", "accepted an offer from", "joined", "started at": past, current or dated."""
    verb, lemma = clause.verb, clause.verb.lemma_.lower()
    if clause.passive or clause.ended or not (clause.past or period.begin or _under_way(clause)):
        return
    job, offer = _job_noun(verb), _offer(verb)
    if any(_declines(other) for other in verb.conjuncts if other.i > verb.i):
        return
    found: list[tuple[str, Token]] = []
    if job is not None and (lemma in words.GETTING or (lemma == "have" and is_state(clause))):
        if lemma in ("get", "have") and not (clause.past or period.ahead):
            return
        found = [(w, n) for w, n in (*prepositions(verb), *prepositions(job)) if w in ("at", "with", "for")]
    elif offer is not None and lemma in ("accept", "take"):
        found = [(w, n) for w, n in prepositions(offer) if w in ("from", "at")]
    for word, noun in found:
        for end in _workplaces(noun, names, "at" if word == "at" else "for"):
            fact = "" if job is not None or offer in objects_of(verb, "dobj") else _accepted(subject, end)
            yield Statement("works_at", end, explicit=True, fact=fact)
    if found:
        return
    role = any(w == "as" for w, _ in prepositions(verb))
    dated = period.begin is not None and any(t.lower_ == "i" for t in clause.subjects)
    sure = 1.0 if role else LIKELY
    if lemma == "join" and not any(w in ("for", "on") and not n.ent_type_ for w, n in prepositions(verb)):
        for token in objects_of(verb, "dobj"):
            for end in _workplaces(token, names, "at" if role else "join"):
                yield Statement("works_at", end, explicit=True, certainty=sure)
        here = [c for c in verb.children if c.dep_ == "advmod"]
        for word, noun in (pair for head in (verb, *objects_of(verb, "dobj"), *here) for pair in prepositions(head)):
            if word == "at":  # "joined the design team at Acme"
                yield from (Statement("works_at", end, explicit=True) for end in _workplaces(noun, names, "at"))
    if lemma in ("start", "begin") and not objects_of(verb, "dobj", "xcomp"):
        for word, noun in prepositions(verb):
            if word in ("at", "with") and (noun.lower_ not in words.GROUPS | words.WORKPLACES or _has_name(noun)):
                for end in _workplaces(noun, names, "at" if word == "at" else "join"):
                    if not (role or dated) and end.label in ("GPE", "LOC", "FAC"):
                        continue  # "we started at Paris", not "I started at Globex on Monday"
                    yield Statement("works_at", end, explicit=True, certainty=sure)


def _accepted(subject: End, employer: End) -> str:
    return f"{subject.name} accepted an offer from {employer.name}."


def _declines(verb: Token) -> bool:
    turned = verb.lemma_ == "turn" and any(c.lower_ == "down" for c in verb.children)
    return turned or verb.lemma_ in ("decline", "reject", "refuse")


def _under_way(clause: Clause) -> bool:
    return clause.verb.tag_ == "VBG" and not clause.stance and bool(helpers(clause.verb))


def _offer(verb: Token) -> Token | None:
    """Return the accepted offer, including that of "got an offer from Acme and accepted it"."""
    objects = objects_of(verb, "dobj")
    if any(t.lower_ == "it" for t in objects) and verb.dep_ == "conj":
        objects = objects_of(verb.head, "dobj")
    return next((t for t in objects if t.lower_ == "offer"), None)


def _being(clause: Clause, names: Names, period: Period) -> Iterator[Statement]:
    """Yield works_at for "is a nurse at Acme", "has been at Acme since 2019", and its end for "my last day at Acme"."""
    verb = clause.verb
    if verb.lemma_ != "be" or clause.stance:
        return
    if clause.past and not clause.ongoing:
        return
    for token in objects_of(verb, "attr"):
        if is_occupation(token):
            for word, noun in (*prepositions(token), *prepositions(verb)):
                if word in ("at", "for"):
                    after = "at" if word == "at" else "for"
                    yield from (Statement("works_at", t, explicit=True) for t in _workplaces(noun, names, after))
    long = clause.ongoing and period.days_so_far is not None and period.days_so_far > _LONG
    before = [v for v in objects_of(verb, "ccomp") if _names_employer(v)] + ([verb.head] if verb.dep_ == "conj" else [])
    left = any(v.lemma_ in ("leave", "quit") for v in before)  # "I left Acme and I'm at Globex now"
    left = left or _follows_employer(verb)
    if long or left:
        for word, noun in prepositions(verb):
            if word in ("at", "with"):
                for end in _workplaces(noun, names, "join"):
                    yield Statement("works_at", end, explicit=True, certainty=LIKELY)


def _follows_employer(verb: Token) -> bool:
    """Return whether "I'm at Globex now" follows "I quit Initech," in one sentence; not "I left Rome,"."""
    first = verb.head
    if verb.dep_ not in ("ccomp", "parataxis") or first.i > verb.i or first.lemma_ not in ("leave", "quit"):
        return False
    own = all(t.lower_ == "i" for v in (first, verb) for t in objects_of(v, "nsubj"))
    return _names_employer(first) and own and not is_outing(first) and any(c.lower_ == "now" for c in verb.children)


def _names_employer(verb: Token) -> bool:
    """Return whether what somebody quit or left may be a firm: Initech, not Rome, Anna, work or smoking."""
    barred = _PLACES if verb.lemma_ == "quit" else (*_PLACES, "FAC", "PERSON")
    return any(t.pos_ == "PROPN" and t.ent_type_ not in barred for t in objects_of(verb, "dobj"))


def is_occupation(noun: Token) -> bool:
    """Return whether a noun is what somebody works as."""
    word = noun.lower_
    if noun.tag_ != "NN" or word in words.NO_OCCUPATIONS:
        return False
    return word in words.OCCUPATIONS or (len(word) > 5 and word.endswith(words.OCCUPATION_ENDINGS))


def _ending(clause: Clause, names: Names, period: Period) -> Iterator[Statement]:
    """Yield endings: "lost my job at", "was laid off from", "resigned from", "left Acme"."""
    verb, lemma = clause.verb, clause.verb.lemma_.lower()
    if not (clause.past or period.ahead):
        return
    job = _job_noun(verb)
    found = list(prepositions(verb))
    if job is not None:
        found += prepositions(job)
    ends = (job is not None and lemma in ("lose", "quit", "leave")) or lemma in ("resign", "retire")
    fired = clause.passive and lemma in ("fire", "lay", "dismiss", "let")
    if lemma == "let":
        found += [pair for c in verb.children if c.lower_ == "go" for pair in prepositions(c)]
    if ends or fired:
        for word, noun in found:
            if word in ("at", "from", "with", "by"):
                for end in _workplaces(noun, names, "at"):
                    yield Statement("works_at", end, ended=True, explicit=True)
            elif word == "as":
                yield from (Statement("works_as", t, ended=True) for t in names.end(noun))
    if lemma == "leave" and clause.past and _for_good(verb):
        yield from (presumed_end("lives_in", t) for noun in objects_of(verb, "dobj") for t in places(noun, names))
    if lemma == "quit" or (lemma == "leave" and not is_outing(verb)):
        for token in objects_of(verb, "dobj"):
            # the object of "quit" is never a person; what is presumed ends only what is known
            for end in _workplaces(token, names, "at" if lemma == "quit" or token.pos_ == "PROPN" else "join"):
                yield Statement("works_at", end, ended=True, explicit=True, presumed=end.label != "ORG")


def _for_good(verb: Token) -> bool:
    """Return whether "for good" belongs to a verb, or follows its object."""
    near = [*verb.children, *(c for t in objects_of(verb, "dobj") for c in t.children)]
    return any(c.lower_ == "for" and any(t.lower_ == "good" for t in c.children) for c in near)


def is_outing(verb: Token) -> bool:
    """Return whether "left" may mean for a while: "just left Siemens", "at noon", "for lunch", "this morning"."""
    if any(t.ent_type_ == "TIME" or t.lower_ in words.TIMES_OF_DAY for t in verb.subtree):
        return True
    for word, noun in prepositions(verb):
        if (word == "for" and not noun.ent_type_ and noun.lower_ != "good") or (
            word == "at" and noun.lower_ not in ("end", "beginning", "start")
        ):
            return True
    return any(c.lower_ == "just" for c in verb.children)


def jobless(clause: Clause, period: Period) -> bool:
    """Return whether a clause states the loss of a job without naming it: "was laid off", "quit my job"."""
    verb, lemma = clause.verb, clause.verb.lemma_.lower()
    if not (clause.past or period.ahead):
        return False
    job = _job_noun(verb)
    after = {c.lower_ for c in verb.children}
    fired = clause.passive and (
        (lemma in ("fire", "dismiss") and not any(c.dep_ == "prt" for c in verb.children))
        or (lemma == "lay" and "off" in after)
        or (lemma == "let" and "go" in after)
        or (lemma == "make" and "redundant" in after)
    )
    own = job is not None and {c.dep_ for c in job.children} & {"poss", "amod", "compound"} == {"poss"}
    gone = own and lemma in ("lose", "quit", "leave")
    heads = [verb, *([job] if job is not None else [])]
    named = any(w in ("at", "from", "with", "by", "as") for h in heads for w, n in prepositions(h) if not _is_date(n))
    to_bed = any(n.lower_ == "bed" for _, n in prepositions(verb))
    changed = lemma == "change" and any(t.lower_ in ("job", "jobs") for t in objects_of(verb, "dobj"))
    return (
        fired or gone or changed or (lemma in ("retire", "resign") and not (clause.passive or to_bed))
    ) and not named


def _is_date(noun: Token) -> bool:
    return noun.ent_type_ in words.QUANTITIES


def _owned_jobs(clause: Clause, names: Names, period: Period) -> Iterator[Statement]:
    """Yield works_at for "I love my new job at Acme", and its end for "my old job at Acme"."""
    if clause.negated:
        return
    if clause.stance or clause.ended or period.over or clause.verb.lemma_.lower() in words.JOBLESS_VERBS:
        return
    for noun in clause.verb.subtree:
        if noun.lower_ not in words.JOBS or governor(noun) != clause.verb or (owner := names.owner(noun)) is None:
            continue
        said = {c.lower_ for c in noun.children if c.dep_ in ("amod", "compound")}
        over = bool(said & _PAST_JOB)
        if said & {"dream", "next", "first"} or (clause.past and not over and not said & {"new", "current"}):
            continue
        is_at = noun.dep_ == "nsubj" and clause.verb.lemma_ == "be"  # "my new job is at Acme"
        for word, place in (*prepositions(noun), *(prepositions(clause.verb) if noun.dep_ == "dobj" or is_at else ())):
            if word == "at" or (word == "with" and not is_at):
                for end in _workplaces(place, names, "at"):
                    fact = f"{owner.name} {'had' if over else 'has'} a job at {end.name}."
                    yield Statement("works_at", end, over, explicit=True, source=owner, fact=fact, timeless=clause.past)


def last_days(sentence: Span, names: Names) -> Iterator[tuple[Clause, Statement]]:
    """Yield endings such as "Friday is my last day at Acme", with the clause that states the time."""
    for day, clause, owner in _owned_days(sentence, names, "last"):
        for word, noun in (*prepositions(day), *prepositions(clause.verb)):
            for end in _workplaces(noun, names, "at") if word in ("at", "with") else ():
                fact = f"{owner.name} {'stopped' if clause.past else 'stops'} working at {end.name}."
                yield clause, Statement("works_at", end, ended=True, explicit=True, source=owner, fact=fact)


def first_days(sentence: Span, names: Names) -> Iterator[tuple[Clause, Statement]]:
    """Yield the new job of "it's my first day at Acme", "first day at Acme today!", with its clause."""
    for day, clause, owner in _owned_days(sentence, names, "first"):
        for word, noun in (*prepositions(day), *prepositions(clause.verb)):
            for end in _workplaces(noun, names, "at") if word in ("at", "with") else ():
                if end.named and end.name not in PLACE_NAMES:
                    fact = f"{owner.name} started working at {end.name}."
                    yield clause, Statement("works_at", end, explicit=True, source=owner, fact=fact, certainty=LIKELY)


def unplaced_last_days(sentence: Span, names: Names) -> Iterator[tuple[Clause, End]]:
    """Yield clauses that say when somebody's last day is, without saying where, with that person."""
    for day, clause, owner in _owned_days(sentence, names, "last"):
        nouns = (*prepositions(day), *prepositions(clause.verb))
        if all(word in ("on", "until") and _is_date(noun) for word, noun in nouns):
            yield clause, owner


def _owned_days(sentence: Span, names: Names, ordinal: Literal["first", "last"]) -> Iterator[tuple[Token, Clause, End]]:
    """Yield the "day" of each "my last day is …", its clause, and the owner; of "First day at Acme!" the speaker."""
    for day in sentence:
        if day.lower_ != "day" or not any(c.lower_ == ordinal for c in day.children):
            continue
        verb, owner = governor(day), names.owner(day)
        bare = verb == day and ordinal == "first" and not any(c.dep_ in ("det", "poss") for c in day.children)
        if bare and owner is None:
            owner = names.speaker
        if owner is not None and (bare or verb.lemma_ == "be") and not negation(verb):
            yield day, Clause(verb, (verb,), (), past=verb.tag_ == "VBD"), owner
