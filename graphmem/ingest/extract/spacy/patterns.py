"""What each kind of clause states: verbs with objects, copulas, jobs and homes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from graphmem.ingest.extract.spacy import words
from graphmem.ingest.extract.spacy.clauses import Clause, is_bare
from graphmem.ingest.extract.spacy.names import End, Names
from graphmem.ingest.extract.spacy.relations import Statement, is_state, verb_form

if TYPE_CHECKING:
    from spacy.tokens import Token


def statements(clause: Clause, subject: End, names: Names) -> Iterator[Statement]:
    """Yield what a clause states of one of its subjects."""
    lemma = clause.verb.lemma_.lower()
    if lemma in words.NEVER_VERBS and not clause.passive:
        return
    if clause.negated:
        if lemma in words.NEGATABLE and not clause.past and not clause.stance:
            yield from _objects(clause, names)
        return
    known = list(_well_known(clause, subject, names))
    yield from known
    if lemma == "be" and not clause.passive:
        yield from _copula(clause, subject, names)
        return
    done = {s.target.name for s in known}
    for statement in (*_objects(clause, names), *_prepositions(clause, names)):
        if statement.target.name not in done:
            yield statement


def objects_of(verb: Token, *deps: str) -> list[Token]:
    """Return the children of a verb with these dependencies."""
    return [c for c in verb.children if c.dep_ in deps]


def prepositions(token: Token) -> Iterator[tuple[str, Token]]:
    """Yield (preposition, head of its noun phrase) of a verb or noun, also of "out of", "over to"."""
    for child in token.children:
        if child.dep_ in ("prep", "agent", "dative") and child.pos_ in ("ADP", "SCONJ", "PART"):
            for noun in child.children:
                if noun.dep_ == "pobj":
                    yield child.lower_, noun
            for inner in child.children:
                if inner.dep_ == "prep":
                    yield from ((inner.lower_, n) for n in inner.children if n.dep_ == "pobj")


def _objects(clause: Clause, names: Names) -> Iterator[Statement]:
    verb, lemma = clause.verb, clause.verb.lemma_.lower()
    relation = verb_form(clause)
    for token in objects_of(verb, "dobj", "oprd"):
        gerund = token.pos_ == "VERB" and token.tag_ == "VBG"
        for target in _activity(token, names) if gerund else names.ends(token):
            if target.named or _telling(clause, token):
                yield Statement(
                    "has" if _has_got(clause) else f"was_{relation}" if clause.passive else relation, target
                )
    if lemma in words.LIKING or lemma in ("go", "try", "practice", "practise", "start", "stop", "quit"):
        for token in objects_of(verb, "xcomp", "advcl"):
            if (token.tag_ == "VBG" or token.text.endswith("ing")) and (lemma != "go" or token.i == verb.i + 1):
                yield from (Statement(relation, target) for target in _activity(token, names))


def _telling(clause: Clause, token: Token) -> bool:
    """Tell whether a common noun as the object of this verb is worth a fact."""
    lemma = clause.verb.lemma_.lower()
    if lemma in words.EMPTY_VERBS or token.lemma_.lower() in words.SEVERAL:
        return False
    if lemma == "make" and clause.verb.tag_ in ("VBP", "VBZ"):
        return False  # "we make a great team"
    shown = {c.lower_ for c in token.children if c.dep_ == "det"}
    if (shown & {"this", "that", "these", "those"} and not clause.past) or (lemma in words.LIKING and "the" in shown):
        return False  # of what was just shown or told
    return not (lemma == "have" and clause.past and token.lower_ not in words.OCCASIONS)


def _has_got(clause: Clause) -> bool:
    return clause.verb.lemma_ == "get" and clause.ongoing and not clause.stance


def _activity(token: Token, names: Names) -> Iterator[End]:
    """Yield what "hiking", "reading books" name."""
    if (title := names.proper(token)) is not None:
        yield title
        return
    objects = [e for t in objects_of(token, "dobj") for e in names.end(t)]
    if any(True for _ in objects_of(token, "dobj")) and not objects:
        return
    name = f"{token.lower_} {objects[0].name}" if objects else token.lower_
    if (
        len(name.split()) <= 5
        and token.lemma_ not in words.EMPTY_VERBS
        and token.lemma_ not in ("be", "do", "have", "get", "go", "see", "make", "take")
    ):
        yield End(name, "concept", named=False)


def _prepositions(clause: Clause, names: Names) -> Iterator[Statement]:
    """Yield "went_to", "plays_tennis_with", "lost_job_at", and of passives "founded_by"."""
    verb, lemma = clause.verb, clause.verb.lemma_.lower()
    relation = verb_form(clause)
    objects = objects_of(verb, "dobj")
    middle = ""
    if objects:
        simple = [t for t in objects if t.pos_ in ("NOUN", "PROPN") and not t.ent_type_ and t.text.isalpha()]
        if len(objects) != 1 or (not simple and objects[0].pos_ != "PROPN" and not objects[0].ent_type_):
            return
        middle = f"_{objects[0].lower_}" if simple else ""
        if simple and (
            lemma in words.LIKING or simple[0].lower_ in words.MEASURES or (lemma == "have" and is_state(clause))
        ):
            return
    sources = [(verb, "")] + ([(objects[0], middle)] if middle else [])
    for head, _ in sources:
        for word, noun in prepositions(head):
            if word not in words.PREPOSITIONS or noun.lower_ in words.NO_PLACE or (head is not verb and word == "of"):
                continue
            for target in names.ends(noun):
                common = lemma in words.CONCEPT_AFTER.get(word, ()) and not middle
                common = common or (bool(middle) and word == "to" and lemma in ("take", "bring") and head is verb)
                if (target.named and not (target.role and lemma in words.EMPTY_VERBS)) or common:
                    yield Statement(f"{relation}{middle}_{word}", target)
    for token in objects_of(verb, "dative"):
        if token.pos_ not in ("ADP", "PART") and middle:
            yield from (Statement(f"{relation}{middle}_to", t) for t in names.ends(token) if t.named)


# Well-known relations -----------------------------------------------------------------------------


def _well_known(clause: Clause, subject: End, names: Names) -> Iterator[Statement]:
    if clause.stance:
        return
    if subject.kind == "person":
        yield from _job(clause, names)
        yield from _home(clause, names)
        yield from _partner(clause, names)
        yield from _birth(clause, names)
        yield from _management(clause, names)
    else:
        yield from _deployment(clause, names)
    yield from _choice(clause, names)
    if clause.verb.lemma_ in words.CREATING and clause.past and not clause.passive:
        for token in objects_of(clause.verb, "dobj"):
            if token.lower_ in words.CREATED or token.ent_type_ in ("WORK_OF_ART", "PRODUCT"):
                yield from (Statement("created", t, explicit=t.named) for t in names.ends(token))


def _workplace(noun: Token, names: Names) -> Iterator[End]:
    for end in names.end(noun):
        unknown = end.named and end.label != "PERSON" and noun.pos_ == "PROPN"  # small models take firms for places
        if end.label == "ORG" or (not end.role and (unknown or noun.lower_ in words.WORKPLACES)):
            yield End(end.name, "organization", end.named, end.certainty, end.label)


def _job(clause: Clause, names: Names) -> Iterator[Statement]:
    """Yield works_at: "works at Acme", "started a job at", "was hired by", and its end: "quit", "was fired from"."""
    verb, lemma = clause.verb, clause.verb.lemma_.lower()
    found = list(prepositions(verb))
    job = next((t for t in objects_of(verb, "dobj") if t.lower_ in ("job", "position", "role", "internship")), None)
    if job is not None:
        found += prepositions(job)
    begins = (lemma == "work" and (is_state(clause) or clause.began or clause.ended)) or (
        job is not None
        and (lemma in ("get", "land", "start", "take", "accept", "have") and (clause.past or is_state(clause)))
    )
    hired = clause.passive and lemma in ("hire", "employ", "recruit")
    ends = (job is not None and lemma in ("lose", "quit", "leave")) or (lemma in ("resign", "retire") and clause.past)
    fired = (clause.passive or clause.past) and lemma in ("fire", "lay", "dismiss")
    over = ends or fired
    for word, noun in found:
        if (
            (begins and word in ("at", "for"))
            or (hired and word in ("by", "at"))
            or (over and word in ("at", "from", "with"))
        ):
            yield from (Statement("works_at", t, ended=over, explicit=True) for t in _workplace(noun, names))
        elif (begins or hired or over) and word == "as":
            yield from (Statement("works_as", t, ended=over) for t in names.end(noun))
    if lemma in ("quit", "leave") and clause.past:
        for token in objects_of(verb, "dobj"):
            for end in names.end(token):
                if end.label == "ORG" and not end.role:
                    yield Statement("works_at", end, ended=True, explicit=True)


def _place(noun: Token, names: Names) -> Iterator[End]:
    yield from (e for e in names.end(noun) if e.label in ("GPE", "LOC"))


def _home(clause: Clause, names: Names) -> Iterator[Statement]:
    """Yield lives_in: "lives in Berlin", "moved from Rome to Berlin" (which ends Rome)."""
    lemma = clause.verb.lemma_.lower()
    if clause.verb.lemma_ == "base" and clause.passive:
        lemma = "live"
    lives = lemma in ("live", "reside") and (is_state(clause) or clause.ended or clause.began)
    moved = lemma in ("move", "relocate", "emigrate", "immigrate") and clause.past
    if not (lives or moved):
        return
    for word, noun in prepositions(clause.verb):
        if (lives and word in ("in", "at")) or (moved and word == "to"):
            yield from (Statement("lives_in", t, explicit=True) for t in _place(noun, names))
        elif moved and word == "from":
            yield from (Statement("lives_in", t, ended=True, explicit=True) for t in _place(noun, names))


def _partner(clause: Clause, names: Names) -> Iterator[Statement]:
    """Yield married_to, engaged_to, has_partner and their ends."""
    verb, lemma = clause.verb, clause.verb.lemma_.lower()
    people = [e for t in objects_of(verb, "dobj") for e in names.end(t) if e.kind == "person"]
    to = [e for w, n in prepositions(verb) if w in ("to", "with") for e in names.end(n) if e.kind == "person"]
    participles = {t.lower_ for t in (verb, *objects_of(verb, "acomp", "oprd", "xcomp"))}
    if lemma == "marry" and clause.past and not clause.passive:
        yield from (Statement("married_to", e, explicit=True) for e in people)
    if "married" in participles and (lemma in ("be", "get", "marry")) and (clause.passive or lemma != "marry"):
        nested = [e for t in objects_of(verb, "acomp") for w, n in prepositions(t) if w == "to" for e in names.end(n)]
        yield from (Statement("married_to", e, explicit=True) for e in (*to, *nested) if e.kind == "person")
    if lemma == "divorce" and clause.past:
        yield from (Statement("married_to", e, ended=True, explicit=True) for e in people)
    if lemma in ("break", "split") and clause.past and any(c.lower_ == "up" for c in verb.children):
        for end in to:
            yield Statement("broke_up_with", end, timeless=False)
            yield Statement("has_partner", end, ended=True, explicit=True)
    if lemma == "date" and not clause.passive and is_state(clause):
        yield from (Statement("has_partner", e, explicit=True) for e in people)


def _birth(clause: Clause, names: Names) -> Iterator[Statement]:
    if clause.verb.lower_ == "born":
        raised = [v for v in clause.verb.conjuncts if v.lower_ in ("raised", "educated")]  # "born and raised in"
        for word, noun in (pair for v in (clause.verb, *raised) for pair in prepositions(v)):
            if word in ("in", "at", "near"):
                yield from (Statement("born_in", t, explicit=True, timeless=True) for t in _place(noun, names))


def _management(clause: Clause, names: Names) -> Iterator[Statement]:
    if clause.verb.lemma_ == "manage" and not clause.past and not clause.passive:
        for token in objects_of(clause.verb, "dobj"):
            for end in names.end(token):
                if end.label in ("ORG", "PRODUCT") or token.lower_ in words.MANAGEABLE:
                    yield Statement("manages", end, explicit=True)


def _deployment(clause: Clause, names: Names) -> Iterator[Statement]:
    lemma = clause.verb.lemma_.lower()
    if (clause.passive and lemma in ("deploy", "host")) or (lemma == "run" and is_state(clause)):
        for word, noun in prepositions(clause.verb):
            if word in ("on", "to", "in"):
                yield from (Statement("deployed_on", e, explicit=True) for e in names.end(noun) if e.named)


def _choice(clause: Clause, names: Names) -> Iterator[Statement]:
    """Yield what is used or preferred: "switched from vim to neovim", "replaced A with B", "prefers A to B"."""
    verb, lemma = clause.verb, clause.verb.lemma_.lower()
    objects = [e for t in objects_of(verb, "dobj") for e in names.ends(t)]
    after = [(w, e) for head in (verb, *objects_of(verb, "dobj")) for w, n in prepositions(head) for e in names.end(n)]
    if lemma in ("switch", "migrate", "convert") and clause.past:
        after += [("to", end) for t in objects_of(verb, "xcomp") if is_bare(t) for end in names.word(t)]
        for word, end in after:
            if word in ("from", "to") and end.kind not in ("person", "location"):
                yield Statement("uses", end, ended=word == "from", explicit=True)
    if lemma == "replace" and clause.past and not clause.passive and any(w in ("with", "by") for w, _ in after):
        yield from (Statement("uses", e, ended=True, explicit=True) for e in objects)
        yield from (Statement("uses", e, explicit=True) for w, e in after if w == "with")
    if lemma == "prefer" and not clause.past:
        yield from (Statement("prefers", e, explicit=True) for e in objects)
    if lemma == "decide" and clause.past:
        yield from (Statement("decided", e, explicit=e.named) for w, e in after if w == "on")


# Copulas ------------------------------------------------------------------------------------------


def _copula(clause: Clause, subject: End, names: Names) -> Iterator[Statement]:
    if clause.stance or clause.ended or (clause.past and not clause.ongoing and not clause.ended and subject.role):
        return
    for token in objects_of(clause.verb, "attr"):
        yield from _is_a(clause, subject, token, names)
    for token in objects_of(clause.verb, "acomp", "oprd"):
        yield from _is_so(subject, token, names)
    for word, noun in prepositions(clause.verb):
        if word == "into" and subject.kind == "person":
            yield from (Statement("is_into", t) for t in names.ends(noun) if not t.role)


def _is_a(clause: Clause, subject: End, token: Token, names: Names) -> Iterator[Statement]:
    """Yield is_a, kinship ("Ida is my sister"), an office ("the CEO of Acme"), a favourite, a budget."""
    head = clause.subjects[0] if clause.subjects else None
    favourite = head is not None and any(c.lower_ in ("favorite", "favourite", "preferred") for c in head.children)
    if head is not None and (favourite or head.lower_ in ("name", "budget")):
        yield from _of_whose(head, token, names, favourite=favourite)
        return
    owner = names.owner(token)
    favourites = ("favorite", "favourite")
    if owner is not None and (token.lower_ in favourites or any(c.lower_ in favourites for c in token.children)):
        noun = "" if token.lower_ in favourites else f" {names.phrase(token)}"
        fact = f"{owner.name}'s favourite{noun} is {subject.name}."
        yield Statement("prefers", subject, explicit=True, source=owner, fact=fact)
        return
    if owner is not None and token.lower_ in words.RELATIONAL:
        if subject.named and subject.label == "PERSON":
            yield Statement(f"has_{token.lower_}", subject, explicit=True, source=owner)
        return
    articles = {c.lower_ for c in token.children if c.dep_ == "det"}
    if (
        not subject.named
        or owner is not None
        or (articles & {"the", "this", "that", "no", "all", "some"} and not _office(token))
    ):
        return
    if articles & {"the"}:
        for word, noun in prepositions(token):
            if word in ("of", "at"):
                yield from (Statement(f"is_{token.lower_}_{word}", t) for t in names.end(noun) if t.named)
        return
    if token.lower_ in words.ROLES_OF:
        for word, noun in prepositions(token):
            if word == "of":
                yield from (Statement(f"is_{token.lower_}_of", t) for t in names.ends(noun))
                return
    if (token.tag_ == "NN" and not articles) or (
        token.tag_ == "NNS" and len(clause.subjects) == 1 and subject.kind == "person"
    ):
        return  # "I'm game for it", "I'm friends with Ida"
    for target in names.ends(token):
        if (
            not target.role
            and " of " not in target.name
            and (not target.named or target.label in ("NORP", ""))
            and token.lower_ not in words.VAGUE
        ):
            yield Statement("is_a", target)


def _of_whose(head: Token, token: Token, names: Names, *, favourite: bool) -> Iterator[Statement]:
    """Yield what "my favourite food is …", "my sister's name is …", "Apollo's budget is …" say of the owner."""
    owner = names.owner(head)
    if favourite and owner is not None:
        for target in names.ends(token):
            fact = f"{owner.name}'s favourite {names.phrase(head)} is {target.name}."
            yield Statement("prefers", target, explicit=True, source=owner, fact=fact)
    elif head.lower_ == "name":
        relative = next((c for c in head.children if c.dep_ == "poss" and c.lemma_.lower() in words.RELATIONAL), None)
        whose = names.owner(relative) if relative is not None else None
        if relative is not None and whose is not None:
            for target in names.end(token):
                noun = relative.lemma_.lower()
                fact = f"{whose.name}'s {noun} is called {target.name}."
                yield Statement(f"has_{noun}", target, explicit=True, source=whose, fact=fact)
    elif owner is not None and owner.named and token.ent_type_ in words.AMOUNTS:
        amount = token.doc[token.left_edge.i : token.i + 1].text
        yield Statement(
            "has_budget",
            End(amount, "concept", named=True),
            explicit=True,
            source=owner,
            fact=f"{owner.name}'s budget is {amount}.",
        )


def _office(token: Token) -> bool:
    return any(w in ("of", "at") for w, _ in prepositions(token))


def _is_so(subject: End, token: Token, names: Names) -> Iterator[Statement]:
    word = token.lower_
    kind = "concept"
    if subject.kind == "person" and subject.named:
        if word in words.STATUSES and not any(c.dep_ == "prep" for c in token.children):
            yield Statement("has_status", End(word, kind, named=False), explicit=True)
        if word in words.PLAIN_ADJECTIVES:
            yield Statement("is", End(word, kind, named=False))
    elif word in words.PROJECT_STATUSES and subject.named:
        yield Statement("has_status", End(word, kind, named=False), explicit=True)
    for child in token.children:
        if child.dep_ == "prep" and f"{word}_{child.lower_}" in words.ADJECTIVE_RELATIONS:
            for verb in child.children:
                if verb.dep_ == "pcomp":
                    yield from (Statement(f"is_{word}_{child.lower_}", t) for t in _activity(verb, names))
    for preposition, noun in prepositions(token):
        if f"{word}_{preposition}" in words.ADJECTIVE_RELATIONS:
            yield from (Statement(f"is_{word}_{preposition}", t) for t in names.ends(noun) if not t.role)
