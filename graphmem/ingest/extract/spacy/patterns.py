"""Statement patterns: verbs with objects and prepositions, copulas."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from graphmem.ingest.extract.spacy import words
from graphmem.ingest.extract.spacy.clauses import Clause, dislikes, is_bare, objects_of, participles, prepositions
from graphmem.ingest.extract.spacy.endings import cancellation, changed_tastes, fulfilled, given_up
from graphmem.ingest.extract.spacy.homes_and_jobs import canceled_moves, is_occupation, places
from graphmem.ingest.extract.spacy.kin import introduced, is_counted, is_named, role_of
from graphmem.ingest.extract.spacy.known import well_known
from graphmem.ingest.extract.spacy.lives import lived
from graphmem.ingest.extract.spacy.names import End, Names, as_relative
from graphmem.ingest.extract.spacy.statements import (
    LATELY,
    Period,
    Statement,
    is_state,
    presumed_end,
    verb_form,
)

if TYPE_CHECKING:
    from spacy.tokens import Token


def statements(clause: Clause, subject: End, names: Names, period: Period) -> Iterator[Statement]:
    """Yield the statements of a clause about one of its subjects."""
    lemma = clause.verb.lemma_.lower()
    if lemma in words.NEVER_VERBS and not clause.passive:
        if lemma == "call" and not (clause.negated or clause.stance):
            yield from cancellation(clause, names)  # "we called off the trip"
        return
    yield from changed_tastes(clause, names)
    living = list(lived(clause, subject, names, period))
    yield from living
    if clause.stance in ("can", "has_to"):
        return
    if dislikes(clause.verb):
        liked = (e for t in objects_of(clause.verb, "dobj") for e in names.ends(t))
        yield from (Statement("does_not_like", e, explicit=True) for e in liked if not e.role)
        return
    if clause.negated:
        yield from canceled_moves(clause, names)
        yield from _denied_traits(clause, names)
        if lemma in words.NEGATABLE and not clause.past and not clause.stance:
            yield from _objects(clause, names)
        return
    if clause.ended and clause.verb.tag_ == "VBG" and (canceled := list(canceled_moves(clause, names))):
        yield from canceled
        return
    known = list(well_known(clause, subject, names, period))
    yield from known
    if (lemma == "be" and not clause.passive) or _remains(clause):
        yield from _copula(clause, subject, names)
        return
    if lemma in ("go", "become", "turn") and subject.kind == "person" and clause.past and not clause.stance:
        traits = [t for t in objects_of(clause.verb, "dobj", "acomp", "attr", "oprd") if _trait(t) is not None]
        yield from (said for token in traits for said in _is_so(subject, token, names))
        if traits:
            return
    traits = [t for t in (clause.verb, *objects_of(clause.verb, "oprd")) if clause.passive and not clause.past]
    if traits := [t for t in traits if _trait(t) is not None]:
        yield from (said for token in traits for said in _is_so(subject, token, names))  # "I'm adopted"
        return
    head = clause.subjects[0] if clause.subjects else None
    called = objects_of(clause.verb, "oprd") if head is not None and clause.passive else []
    if head is not None and called and (is_named(head) or _is_titled(clause, head)):
        yield from (said for token in called for said in _is_named(head, token, names))
        return
    yield from given_up(clause, names)
    # an ending also yields its event: the job may only be known from "lost_job_at"
    successor = any(not s.ended for s in known)
    done = {s.target.name for s in known if successor or s.relation == verb_form(clause)}
    done |= {s.target.name for s in living}
    to = [s for s in _prepositions(clause, names) if s.target.name not in done]
    covered = any(s.relation.count("_") > verb_form(clause).count("_") + 1 for s in to)  # as in "took_trip_to"
    to += [s for s in _objects(clause, names) if s.target.name not in done and (s.target.named or not covered)]
    yield from to
    if (period.days_so_far or 0) < LATELY:
        yield from fulfilled(clause, to)


def _is_titled(clause: Clause, head: Token) -> bool:
    """Return whether a thing is called by a name: "our company is called Nimbus"."""
    return clause.verb.lemma_ == "call" and head.pos_ == "NOUN" and head.lower_ not in words.RELATIONAL


def _denied_traits(clause: Clause, names: Names) -> Iterator[Statement]:
    """Yield the end of "is allergic to nuts" for "I'm not allergic to nuts"."""
    if clause.verb.lemma_ != "be" or clause.past or clause.stance:
        return
    for token in objects_of(clause.verb, "acomp"):
        for word, noun in prepositions(token):
            relation = f"{token.lower_}_{word}"
            if relation in words.ADJECTIVE_RELATIONS:
                for end in names.ends(noun):
                    yield presumed_end(f"is_{relation}", end)


def _remains(clause: Clause) -> bool:
    """Return whether somebody is still a relative or the like: "Ida stays my manager"."""
    nouns = objects_of(clause.verb, "attr", "dobj") if clause.verb.lemma_ in words.REMAINING else []
    return any(noun.lower_ in words.RELATIONAL for noun in nouns)


def _objects(clause: Clause, names: Names) -> Iterator[Statement]:
    verb, lemma = clause.verb, clause.verb.lemma_.lower()
    relation = verb_form(clause)
    if lemma in ("have", "get") and objects_of(verb, "prt"):
        return  # "I've got your account up"
    if lemma in words.WITHOUT_OBJECT:
        return  # "I work from Rome, same time zone"
    for token in objects_of(verb, "dobj", "oprd"):
        if relation == "has" and (introduced(token) or _names_pet(token)):
            continue  # "two cats, Tom and Kit", "a cat called Kit": covered by has_cat
        if lemma == "leave" and token.lower_ == "us":
            continue  # the team
        if lemma == "drive" and token.pos_ == "PRON":
            continue  # "drives me crazy"
        gerund = token.pos_ == "VERB" and token.tag_ == "VBG"
        for target in _activity(token, names) if gerund else names.ends(token):
            if target.named or _telling(clause, token):
                yield Statement(f"was_{relation}" if clause.passive else relation, target)
    acts = lemma in ("go", "try", "practice", "practise", "start", "stop", "quit") and not objects_of(verb, "dobj")
    if lemma in words.LIKING or acts:  # not "quit my job, freelancing now"
        for token in objects_of(verb, "xcomp", "advcl"):
            if lemma == "start" and token.left_edge.i > 0 and token.left_edge.nbor(-1).text == ",":
                continue  # "I start on Monday, leaving Acme"
            if (token.tag_ == "VBG" or token.text.endswith("ing")) and (lemma != "go" or token.i == verb.i + 1):
                yield from (Statement(relation, target) for target in _activity(token, names))


def _names_pet(noun: Token) -> bool:
    """Return whether a relative or pet is given a name: "a cat called Kit"."""
    return noun.lemma_.lower() in words.RELATIONAL and bool(participles(noun, "called", "named"))


def _telling(clause: Clause, token: Token) -> bool:
    """Return whether a common noun as the object of this verb yields a fact."""
    lemma = clause.verb.lemma_.lower()
    if lemma in words.EMPTY_VERBS:
        return False
    if token.lemma_.lower() in words.SEVERAL | words.UNTELLING_KIN and not is_counted(token):
        return False
    if clause.past and not clause.stance and not is_state(clause) and token.lemma_.lower() in words.GENERIC:
        return any(c.dep_ in ("compound", "nmod") for c in token.children)
    if lemma == "make" and clause.verb.tag_ in ("VBP", "VBZ"):
        return False  # "we make a great team"
    shown = {c.lower_ for c in token.children if c.dep_ == "det"}
    if (shown & {"this", "that", "these", "those"} and not clause.past) or (lemma in words.LIKING and "the" in shown):
        return False  # refers to something just shown or mentioned
    return not (lemma == "have" and clause.past and token.lower_ not in words.OCCASIONS | words.TOLD["have"])


def _activity(token: Token, names: Names) -> Iterator[End]:
    """Yield the activity named by "hiking", "reading books", "listening to music" or "working out"."""
    if (title := names.proper(token)) is not None:
        yield title
        return
    objects = [e for t in objects_of(token, "dobj") for e in names.end(t)]
    if objects_of(token, "ccomp", "xcomp") or (objects_of(token, "dobj") and not objects):
        return  # also "watching the Tigers play"
    particle = "".join(f" {c.lower_}" for c in objects_of(token, "prt"))
    name = f"{token.lower_}{particle}"
    if objects:
        name += f" {objects[0].name}"
    elif to := next((e for word, noun in prepositions(token) if word == "to" for e in names.end(noun)), None):
        name += f" to {to.name}"
    if (
        len(name.split()) <= 5
        and token.lemma_ not in words.EMPTY_VERBS
        and token.lemma_ not in ("be", "do", "have", "get", "go", "see", "make", "take")
    ):
        yield End(name, "concept", named=False)


def _prepositions(clause: Clause, names: Names) -> Iterator[Statement]:
    """Yield statements such as "went_to", "plays_tennis_with", "lost_job_at", and for passives "founded_by".

    The name of an object is no part of the relation: it is the target of a fact of its own.
    """
    verb, lemma = clause.verb, clause.verb.lemma_.lower()
    relation = verb_form(clause)
    objects = [t for t in objects_of(verb, "dobj") if t.lower_ not in ("everything", "everyone")]
    middle = ""
    if objects:
        simple = [t for t in objects if t.pos_ in ("NOUN", "PROPN") and not t.ent_type_ and t.text.isalpha()]
        if len(objects) != 1 or (not simple and objects[0].pos_ != "PROPN" and not objects[0].ent_type_):
            return
        if simple and objects[0].pos_ == "NOUN" and lemma not in words.WITHOUT_OBJECT:
            middle = f"_{objects[0].lower_}"
        has = (lemma == "have" and is_state(clause)) or (lemma == "see" and clause.past)
        if simple and (has or lemma in words.LIKING or simple[0].lower_ in words.MEASURES):
            return
    if not middle and lemma in words.TRANSITIVE:
        return  # "in America, we love soccer"
    sources = [(verb, "")] + ([(objects[0], middle)] if middle else [])
    for head, _ in sources:
        for word, noun in prepositions(head):
            if word not in words.PREPOSITIONS or noun.lower_ in words.NO_PLACE or (head is not verb and word == "of"):
                continue
            for target in names.ends(noun):
                if lemma == "belong" and target.kind == "person":
                    continue  # what a person owns is no part of the person
                common = lemma in words.CONCEPT_AFTER.get(word, ()) and not middle
                common = common or (bool(middle) and word == "to" and lemma in ("take", "bring") and head is verb)
                if (target.named and not (target.role and lemma in words.EMPTY_VERBS)) or common:
                    yield Statement(f"{relation}{middle}_{word}", target)
    for token in objects_of(verb, "dative"):
        if token.pos_ not in ("ADP", "PART") and middle:
            yield from (Statement(f"{relation}{middle}_to", t) for t in names.ends(token) if t.named)


# Copulas ------------------------------------------------------------------------------------------


def _copula(clause: Clause, subject: End, names: Names) -> Iterator[Statement]:
    if clause.stance or (clause.past and not clause.ongoing and not clause.ended and subject.role):
        return
    for token in objects_of(clause.verb, "attr", *(["dobj"] if clause.verb.lemma_ != "be" else [])):
        yield from _mutual(clause, subject, token, names)
        yield from _is_a(clause, subject, token, names)
    for token in objects_of(clause.verb, "acomp", "oprd"):
        yield from _is_so(subject, token, names)
    for word, noun in prepositions(clause.verb):
        if word == "from" and subject.kind == "person":
            yield from (Statement("is_from", t, explicit=True, timeless=True) for t in places(noun, names))
        if word == "into" and subject.kind == "person":
            yield from (Statement("is_into", t) for t in names.ends(noun) if not t.role)


def _mutual(clause: Clause, subject: End, token: Token, names: Names) -> Iterator[Statement]:
    """Yield has_friend for "Ida and I are friends" and "I'm friends with Ida"."""
    noun = token.lemma_.lower()
    if token.tag_ != "NNS" or noun not in words.MUTUAL or subject.kind != "person" or names.owner(token) is not None:
        return
    others = [e for t in clause.subjects for e in names.end(t) if e.name != subject.name]
    withs = [e for head in (token, clause.verb) for w, n in prepositions(head) if w == "with" for e in names.ends(n)]
    over = clause.past and not clause.ongoing
    for end in (e for e in withs or others if e.kind == "person"):
        fact = f"{subject.name} and {end.name} {'were' if over or clause.ended else 'are'} {token.lower_}."
        yield Statement(words.has(noun), end, ended=over, explicit=True, fact=fact)


def _is_a(clause: Clause, subject: End, token: Token, names: Names) -> Iterator[Statement]:
    """Yield is_a, kinship ("Ida is my sister"), an office ("the CEO of Acme"), a favorite, a budget."""
    head = clause.subjects[0] if clause.subjects else None
    favorite = head is not None and any(c.lower_ in ("favorite", "favourite", "preferred") for c in head.children)
    if head is not None and (favorite or head.lower_ in ("name", "budget")):
        yield from _owner_property(head, token, names, favorite=favorite)
        return
    if head is not None and (is_named(head) or _is_property(head, token)):
        yield from _is_named(head, token, names)
        return
    if head is not None and (office := _held_office(head, token, names)) is not None:
        yield office
        return
    owner = names.owner(token)
    if owner is None and subject.kind == "person" and _trait(token) is not None:
        yield from _is_so(subject, token, names)
        return
    favorites = ("favorite", "favourite")
    if owner is not None and (token.lower_ in favorites or any(c.lower_ in favorites for c in token.children)):
        yield _favorite(None if token.lower_ in favorites else token, subject, owner, names)
        return
    if owner is not None and token.lower_ in words.RELATIONAL:
        if subject.named and subject.label == "PERSON":
            relation = words.relation_to(role_of(token))
            over = clause.past and not clause.ongoing and bool(owner.role)  # stories use the past tense
            yield Statement(relation, subject, ended=over, explicit=True, source=owner)
        return
    if owner is not None and owner.role == "speaker" and subject.named and not subject.role and _names_a_part(token):
        relation = words.has(names.phrase(token))
        yield Statement(
            relation, subject, source=owner, fact=f"{owner.name}'s {names.phrase(token)} is {subject.name}."
        )
        return
    articles = {c.lower_ for c in token.children if c.dep_ == "det"}
    if owner is None and not clause.past and _is_in_office(subject, token, articles, names):
        yield Statement("is_a", End(token.text if token.is_upper else token.lower_, "concept", named=False))
        return
    if (
        not subject.named
        or owner is not None
        or (articles & {"the", "this", "that", "no", "all", "some"} and not _office(token))
    ):
        return
    if articles & {"the"} and token.lower_ != "name":
        for word, noun in prepositions(token):
            if word in ("of", "at", "for"):
                named = [c for c in noun.children if c.dep_ == "appos"] if noun.lower_ in words.GROUPS else []
                ends = (t for n in named or [noun] for t in names.end(n) if t.named)
                fits = (replace(t, kind="organization") if named else t for t in ends)
                yield from (Statement(f"is_{token.lower_}_{word}", t) for t in fits)
        return
    if token.lower_ in words.ROLES_OF:
        for word, noun in prepositions(token):
            if word == "of":
                yield from (Statement(f"is_{token.lower_}_of", t) for t in names.ends(noun))
                return
    if token.pos_ == "PROPN" and not articles and token.ent_type_ not in ("NORP", "LANGUAGE"):
        return  # "I'm Kirsty"
    limited = any(c.dep_ in ("amod", "compound") for c in token.children) and token.lower_ in words.OCCUPATIONS
    if (token.tag_ == "NN" and not articles and not limited) or (
        token.tag_ == "NNS" and len(clause.subjects) == 1 and subject.kind == "person"
    ):
        return  # "I'm game for it", "I'm friends with Ida"
    for target in names.ends(token):
        if (
            not target.role
            and " of " not in target.name
            and (not target.named or target.label in ("NORP", ""))
            and token.lower_ not in words.VAGUE - words.OCCUPATIONS
        ):
            # people tell stories of things in the past tense, too
            over = clause.past and not clause.ongoing and subject.kind == "person" and names.speaker is not None
            yield Statement("is_a", target, ended=over)


def _is_in_office(subject: End, token: Token, articles: set[str], names: Names) -> bool:
    """Return whether a person holds an office of a body that isn't named: "Raj is the new treasurer"."""
    named = (end for word, noun in prepositions(token) if word in ("of", "at") for end in names.end(noun) if end.named)
    office = token.lower_ in words.OFFICES and subject.kind == "person" and subject.named
    return office and not articles - {"the"} and next(named, None) is None


def _is_named(head: Token, token: Token, names: Names) -> Iterator[Statement]:
    """Yield has_boss for "my boss is Anna Holm", has_database for "Waymark's database is Postgres"."""
    the_pet = head.lemma_.lower() in words.PETS and any(c.lower_ == "the" for c in head.children)
    owner = names.owner(head) or (names.speaker if the_pet else None)
    if owner is None:
        return
    relative = is_named(head)
    if not relative and not owner.role and owner.kind != "person" and _is_office(head):
        yield from (_holds(end, head, owner) for end in names.end(token) if end.named and not end.role)
        return
    noun = role_of(head) if relative else names.phrase(head)
    for end in names.ends(token) if head.tag_ == "NNS" else names.end(token):
        if end.named and not end.role and not (end.label == "NORP" and head.lower_ in words.KIN):
            fact = f"{owner.name}'s {head.text if head.is_upper else noun} is {end.name}."
            whom = as_relative(head, end) if relative else end
            yield Statement(words.relation_to(noun), whom, explicit=relative, source=owner, fact=fact)


def _held_office(head: Token, token: Token, names: Names) -> Statement | None:
    """Return "Dana is_ceo_of Initech" for "the CEO of Initech is Dana"."""
    of = next((n for word, n in prepositions(head) if word == "of"), None)
    if of is None or not _is_office(head) or token.pos_ != "PROPN" or token.ent_type_ not in ("PERSON", ""):
        return None
    whole, holder = next(names.end(of), None), next(names.end(token), None)
    if whole is None or holder is None or whole.role or not (whole.named and holder.named):
        return None
    return _holds(as_relative(head, holder), head, whole)


def _holds(holder: End, office: Token, whole: End) -> Statement:
    title = office.text if office.is_upper else office.lower_
    fact = f"{holder.name} is {title} of {whole.name}."
    return Statement(f"is_{office.lower_}_of", whole, source=holder, fact=fact)


def _is_office(noun: Token) -> bool:
    return is_occupation(noun) or noun.lower_ in words.OCCUPATIONS | words.ROLES_OF


def _is_property(head: Token, token: Token) -> bool:
    """Return whether a clause names what somebody or something has.

    "Waymark's database is Postgres", "our designer is Tom", "my car is a Volvo".
    """
    if any(c.dep_ == "poss" and c.lower_ in ("my", "our") for c in head.children) and _is_proper(token):
        articles = {c.lower_ for c in token.children if c.dep_ in ("det", "poss")}
        if head.lower_ in words.BELONGINGS:  # not "is a ThinkPad running Linux", read as one name
            return articles <= {"a", "an"} and not any(t.tag_ == "VBG" for t in token.subtree if t.i < token.i)
        return not articles and _is_office(head) and token.ent_type_ in ("PERSON", "ORG", "")
    of_name = any(c.dep_ == "poss" and c.pos_ == "PROPN" for c in head.children)
    telling = not any(head.lower_ in some for some in (words.VAGUE, words.EVALUATIVE, words.RELATIONAL))
    plain = head.tag_ == "NN" and telling
    return of_name and plain and _is_proper(token) and not any(c.dep_ in ("det", "poss") for c in token.children)


def _is_proper(token: Token) -> bool:
    return token.pos_ == "PROPN" or token.ent_type_ in words.ENTITY_TYPES


def _owner_property(head: Token, token: Token, names: Names, *, favorite: bool) -> Iterator[Statement]:
    """Yield statements about the owner: "my favorite food is …", "my sister's name is …"."""
    owner = names.owner(head)
    if favorite and owner is not None:
        yield from (_favorite(head, target, owner, names) for target in names.ends(token))
    elif head.lower_ == "name":
        relative = next((c for c in head.children if c.dep_ == "poss" and c.lemma_.lower() in words.RELATIONAL), None)
        possessor = names.owner(relative) if relative is not None else None
        if relative is not None and possessor is not None:
            for target in names.end(token):
                noun = role_of(relative)
                fact = f"{possessor.name}'s {noun} is called {target.name}."
                relation = words.relation_to(noun)
                yield Statement(relation, target, explicit=True, source=possessor, fact=fact)


def _names_a_part(noun: Token) -> bool:
    """Return whether a noun says what something is to its owner: "our event bus", "my hometown"; not "my thing"."""
    word = noun.lower_
    vague = word in words.VAGUE or word in words.EVALUATIVE or word in words.NEVER_HEADS
    return noun.tag_ == "NN" and not vague and not any(c.dep_ in ("relcl", "acl") for c in noun.children)


def _favorite(noun: Token | None, target: End, owner: End, names: Names) -> Statement:
    """Return favorite_food for "my favorite food is pizza", prefers for several or without a noun."""
    if noun is None or noun.tag_ != "NN":
        several = re.sub(r"^(?:favou?rite|preferred) ", "", names.phrase(noun)) if noun is not None else ""
        fact = f"{owner.name}'s favorite {several} include {target.name}." if several else ""
        fact = fact or f"{owner.name} prefers {target.name}."
        return Statement("prefers", target, explicit=True, source=owner, fact=fact)
    kind = re.sub(r"^(?:favou?rite|preferred) ", "", names.phrase(noun))
    fact = f"{owner.name}'s favorite {kind} is {target.name}."
    return Statement(words.favorite(kind), target, explicit=True, source=owner, fact=fact)


def _trait(token: Token) -> str | None:
    """Return a lasting trait of a person, with the words joined to it: "vegan", "lactose-intolerant"."""
    if not token.is_lower:
        return None
    said = (token.doc[max(token.sent.start, token.i - n) : token.i + 1].text.lower() for n in (2, 1, 0))
    return next((trait for text in said if (trait := text.replace(" ", "-")) in words.PLAIN_ADJECTIVES), None)


def _office(token: Token) -> bool:
    return any(w in ("of", "at", "for") for w, _ in prepositions(token))


def _is_so(subject: End, token: Token, names: Names) -> Iterator[Statement]:
    word = token.lower_
    kind = "concept"
    if subject.kind == "person" and subject.named:
        if word in words.STATUSES and not any(c.dep_ == "prep" for c in token.children):
            yield Statement("has_status", End(word, kind, named=False), explicit=True)
        if (trait := _trait(token)) is not None:
            yield Statement("is", End(trait, kind, named=False))
        if token.ent_type_ in ("NORP", "LANGUAGE") and not any(token.children):
            yield Statement("is", End(token.text, kind, named=True))
    elif word in words.PROJECT_STATUSES and subject.named:
        yield Statement("has_status", End(word, kind, named=False), explicit=True)
    for child in token.children:
        if child.dep_ == "prep" and f"{word}_{child.lower_}" in words.ADJECTIVE_RELATIONS:
            for verb in child.children:
                if verb.dep_ == "pcomp":
                    yield from (Statement(f"is_{word}_{child.lower_}", t) for t in _activity(verb, names))
    for verb in objects_of(token, "xcomp"):  # "allergic to shellfish", which the parser takes for a verb
        if is_bare(verb) and f"{word}_to" in words.ADJECTIVE_RELATIONS:
            yield Statement(f"is_{word}_to", End(verb.lower_, "concept", named=False))
    for preposition, noun in prepositions(token):
        if f"{word}_{preposition}" in words.ADJECTIVE_RELATIONS:
            yield from (Statement(f"is_{word}_{preposition}", t) for t in names.ends(noun) if not t.role)
