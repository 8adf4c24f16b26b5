"""Clauses of a dependency parse: subjects, verb, objects, prepositions, and factuality."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from graphmem.ingest.extract.spacy import words
from graphmem.ingest.extract.spacy.kin import listed

if TYPE_CHECKING:
    from spacy.tokens import Span, Token


def objects_of(verb: Token, *deps: str) -> list[Token]:
    """Return the children of a verb with these dependencies."""
    return [c for c in verb.children if c.dep_ in deps and not is_denied(c) and not _is_set_off(c)]


def _is_set_off(noun: Token) -> bool:
    """Return whether a name after a comma is that of who is addressed: "I'm sorry, Ida"."""
    start = noun.left_edge
    return noun.pos_ == "PROPN" and noun.head.i < start.i and start.nbor(-1).text == ","


def _is_addressed(noun: Token, verb: Token) -> bool:
    """Return whether a name before a verb is that of who is addressed: "Ida, use vim"."""
    if noun.pos_ != "PROPN" or noun.conjuncts or any(c.i > noun.i and c.dep_ != "punct" for c in noun.children):
        return False
    between = [t.text for t in noun.doc[noun.i + 1 : verb.i]]
    return between[:1] == [","] and between.count(",") == 1


def is_denied(noun: Token) -> bool:
    """Return whether a noun is put aside: Salma of "Bram owns billing, not Salma"."""
    start = noun.left_edge.i
    return start > noun.sent.start + 1 and [t.lower_ for t in noun.doc[start - 2 : start]] == [",", "not"]


def participles(noun: Token, *forms: str) -> list[Token]:
    """Return the participles of a noun with these forms: "called" in "a cat called Vespa"."""
    return [c for c in noun.children if c.dep_ == "acl" and c.lower_ in forms]


def prepositions(token: Token) -> Iterator[tuple[str, Token]]:
    """Yield (preposition, head of its noun phrase) of a verb or noun, including "out of", "over to"."""
    for child in token.children:
        if _is_instead(child) or any(c.dep_ == "neg" for c in child.children) or _introduces_examples(child):
            continue  # "in Bern, not in Berlin", "uses vim instead of nano"
        if child.dep_ in ("prep", "agent", "dative") and child.pos_ in ("ADP", "SCONJ", "PART"):
            for noun in child.children:
                if noun.dep_ == "pobj":
                    yield child.lower_, noun
            for inner in child.children:
                if inner.dep_ == "prep":
                    yield from ((inner.lower_, n) for n in inner.children if n.dep_ == "pobj")


def not_but(verb: Token) -> list[Token]:
    """Return the replaced objects of a verb: "nano" in "uses vim instead of nano"."""
    return [noun for c in verb.children if _is_instead(c) for noun in objects_of(c, "pobj")]


def denied_objects(verb: Token) -> Iterator[Token]:
    """Yield the names that a clause replaces by other ones: Rome of "lives in Bern, not (in) Rome"."""
    for token in verb.subtree:
        if token.lower_ != "not" or token.i < 2 or token.nbor(-1).text != "," or token.i + 1 >= len(token.doc):
            continue
        name = token.nbor()
        name = name.nbor() if name.pos_ == "ADP" and name.i + 1 < len(token.doc) else name
        if governor(token) == verb and name.pos_ == "PROPN":
            yield name


def _is_instead(token: Token) -> bool:
    """Return whether a word is the "of" in "instead of"."""
    return token.lower_ == "of" and any(c.lower_ == "instead" for c in token.children)


def examples(noun: Token) -> list[Token]:
    """Return the examples of a noun: chess, go and poker of "games such as chess, go and poker"."""
    firsts = [n for c in noun.children if _introduces_examples(c) for n in objects_of(c, "pobj")]
    return [n for first in firsts for n in (first, *first.conjuncts) if n.i >= first.i]


def given_names(noun: Token) -> list[Token]:
    """Return the names that a thing is given, none for a relative: Dune of "a book called Dune"."""
    return [] if noun.lemma_.lower() in words.RELATIONAL else names_given(noun)


def names_given(noun: Token) -> list[Token]:
    """Return the names after "called" and the like: Mila of "a daughter called Mila"."""
    return [t for verb in participles(noun, "called", "named", "titled") for t in objects_of(verb, "oprd")]


def _introduces_examples(token: Token) -> bool:
    """Return whether a preposition is "such as", "including", or the "like" of a noun."""
    if token.dep_ != "prep":
        return False
    such = token.lower_ == "as" and any(c.lower_ == "such" for c in token.children)
    return such or token.lower_ == "including" or (token.lower_ == "like" and token.head.pos_ == "NOUN")


def joins_verb(token: Token) -> bool:
    """Return whether a noun is coordinated with verbs: "watch movies, hike, and play chess" has one object."""
    return any(c.pos_ == "VERB" and c.i > token.i for c in token.conjuncts)


def dated(token: Token) -> Token:
    """Return the verb of a date: not "married" in "got married", nor "called" in "a cat called Vespa"."""
    verb = governor(token)
    while _is_part(verb):
        verb = governor(verb.head)
    return verb


def _is_part(verb: Token) -> bool:
    if verb.head == verb:
        return False
    naming = verb.dep_ == "acl" and verb.lemma_ in ("call", "name")
    letting = verb.dep_ in ("xcomp", "ccomp") and verb.lower_ == "go" and verb.head.lemma_ == "let"
    return naming or letting or verb.dep_ in ("acomp", "oprd")


def governor(token: Token) -> Token:
    """Return the verb that governs a word, or the head of its sentence, which isn't "ROOT" where it is a space."""
    while token.head != token and token.pos_ not in ("VERB", "AUX"):
        token = token.head
    return token


# Clauses ------------------------------------------------------------------------------------------


SUBJECTS = ("nsubj", "nsubjpass")
_CLAUSES = ("ROOT", "conj", "ccomp", "advcl", "parataxis", "relcl", "acl", "dep")


@dataclass(frozen=True, slots=True)
class Clause:
    """Verb with its subjects.

    Attributes
    ----------
    verb
        The main verb ("adopt" in "wants to adopt").
    chain
        The verbs from the finite one to `verb`.
    subjects
        Heads of the noun phrases of the subject; empty if "I" is omitted.
    stance
        "" for a factual clause, else the prefix of the relation ("wants_to", "plans_to").
    ended
        Whether it is stated to have ended ("no longer", "used to", "stopped …").
    negated
        Whether it is negated.
    past
        Whether it is in a past tense.
    ongoing
        Whether a past tense extends to the present ("have lived", "have been working").
    began
        Whether it states a beginning ("started working").
    certainty
        Upper limit of the confidence of its facts.
    offhand
        Whether it is a bare "I'll …", which is mostly courtesy.
    reports
        Governing verbs of saying and believing.
    """

    verb: Token
    chain: tuple[Token, ...]
    subjects: tuple[Token, ...]
    stance: str = ""
    ended: bool = False
    negated: bool = False
    past: bool = False
    ongoing: bool = False
    began: bool = False
    passive: bool = False
    certainty: float = 1.0
    offhand: bool = False
    reports: tuple[Token, ...] = ()


def clauses(sentence: Span) -> Iterator[Clause]:
    """Yield the clauses of a sentence that state or intend something; questions, commands and conditions have none."""
    if is_question(sentence) or is_make_believe(sentence):
        return
    for token in sentence:
        if token.pos_ not in ("VERB", "AUX") or token.dep_ not in _CLAUSES:
            continue
        clause = _finite(token)
        if clause is not None:
            yield from _descend(clause)


def is_question(sentence: Span) -> bool:
    """Return whether a sentence is a question."""
    if "?" in sentence.text:
        return True
    for token in sentence:
        if token.dep_ in ("intj", "cc", "punct") or token.pos_ in ("INTJ", "PUNCT", "CCONJ"):
            continue
        if token.lower_ == "since" or (token.tag_ in ("WRB", "WP") and token.nbor().dep_ == "aux"):
            continue  # "since when do I own it"
        root = sentence.root
        inverted = any(child.dep_ in SUBJECTS and child.i > token.i for child in root.children)
        return token.dep_ in ("aux", "auxpass") and token.head == root and inverted
    return False


def is_make_believe(sentence: Span) -> bool:
    """Return whether a sentence describes a dream, a story or a hypothesis: "say I lived in Rome"."""
    for token in sentence:
        if token.lower_ in words.FICTIONAL and token.head.lemma_ in words.RELATIONAL:
            return True  # "my imaginary girlfriend"
        if token.lower_ in words.CHARACTERS and token.dep_ in (*SUBJECTS, "attr", "poss"):
            return True  # "my character in the story is a doctor called Elena"
        if token.lower_ in words.IMAGINING and (token.i == sentence.start or token.nbor(-1).lower_ in ("'s", "us")):
            following = token.nbor().lower_ if token.i + 1 < sentence.end else ""
            if following in ("that", "if") or any(t.dep_ in SUBJECTS and t.i > token.i for t in sentence):
                return True
        if token.dep_ == "pobj" and token.lower_ in words.FICTIONS and token.head.lower_ == "in":
            place = token.head
            if place.i == sentence.start or place.head == sentence.root:
                return True
    return False


def subjects_of(verb: Token) -> list[Token]:
    """Return the heads of the verb's own subject, including conjuncts."""
    found: list[Token] = []
    passive = (h for h in helpers(verb) if h.dep_ == "auxpass")  # the subject of "Ida got engaged" may depend on it
    for child in (*verb.children, *(c for h in passive for c in h.children)):
        if child.dep_ in SUBJECTS and child.i < verb.i + 4:
            found += [child, *listed(child), *(c for c in child.conjuncts if c.i > child.i)]
    if not found and verb.lemma_ in ("divorce", "marry", "engage"):  # "Tom and I got divorced"
        named = (c for c in verb.children if c.dep_ == "npadvmod" and c.ent_type_ == "PERSON" and c.i < verb.i)
        found = [t for c in named for t in (c, *c.conjuncts)]
    return found


def helpers(verb: Token) -> list[Token]:
    """Return the auxiliaries of a verb."""
    return [child for child in verb.children if child.dep_ in ("aux", "auxpass")]


def is_death(verb: Token) -> bool:
    """Return whether a verb says that somebody died: "passed away", "had to be put down"."""
    words_after = {c.lower_ for c in verb.children}
    put = verb.lemma_ == "put" and verb.tag_ == "VBN" and any(h.dep_ == "auxpass" for h in helpers(verb))
    asleep = "down" in words_after or any(t.lower_ == "sleep" for t in verb.subtree)
    return verb.lemma_ == "die" or (verb.lemma_ == "pass" and "away" in words_after) or (put and asleep)


def shared_helpers(verb: Token) -> list[Token]:
    """Return the auxiliaries of a verb, own or shared: "I'm packing and leaving", "was built and sold"."""
    own = helpers(verb)
    if (
        own
        or verb.dep_ != "conj"
        or verb.head.tag_ != verb.tag_
        or verb.tag_ not in ("VBG", "VBN")
        or subjects_of(verb)
    ):
        return own
    return shared_helpers(verb.head)


def _is_passive(verb: Token) -> bool:
    aux = shared_helpers(verb)
    return any(a.dep_ == "auxpass" for a in aux) or (verb.tag_ == "VBN" and not aux and verb.dep_ in ("acl", "relcl"))


def negation(verb: Token) -> bool:
    """Return whether a verb is negated by "not", "never", "hardly" or "no" before its object."""
    for child in verb.children:
        if child.dep_ == "neg" and child.i > verb.i and child.nbor(-1).text == ",":
            continue  # "I prefer tea, not coffee"
        answer = child.lower_ == "no" or (child.lower_ == "not" and verb.doc[child.i + 1 : child.i + 2].text == ",")
        if child.lower_ == "without" or (answer and any(child.i < t.i for t in subjects_of(verb))):
            continue  # "without sugar I drink coffee", "no I love tea", "sadly not, I use vim"
        if child.dep_ == "neg" or (child.lower_ in words.NEGATORS and child.dep_ != "conj"):
            return True
        if child.dep_ in ("dobj", "attr", "nsubj", "nsubjpass") and any(
            c.lower_ in words.NEGATORS and c.dep_ in ("det", "neg", "preconj") and c.i < child.i for c in child.children
        ):
            return True
    return False


def dislikes(verb: Token) -> bool:
    """Return whether a verb is that of "can't stand": who says so dislikes its object."""
    return _cannot(verb) and verb.lemma_ in ("stand", "bear") and bool(objects_of(verb, "dobj"))


def _abstains(verb: Token) -> bool:
    """Return whether a verb is that of "can't eat nuts"."""
    objects = objects_of(verb, "dobj")
    has_food = verb.lemma_ == "have" and any(t.lower_ in words.FOODS for t in objects)
    return _cannot(verb) and (has_food or (verb.lemma_ in ("eat", "drink") and bool(objects)))


def is_skill(verb: Token) -> bool:
    """Return whether a verb is that of a skill: "I can't swim", "can play the piano"; not "can drive you there"."""
    if not any(c.lower_ in ("ca", "can") for c in helpers(verb)):
        return False
    limits = any(
        c.dep_ in ("prep", "npadvmod", "advcl", "ccomp", "xcomp", "prt", "mark", "dative") for c in verb.children
    )
    objects = objects_of(verb, "dobj")
    if limits or any(t.lower_ in words.SECOND_PERSON | {"it", "this", "that"} for t in verb.subtree):
        return False
    return verb.lemma_ in words.SKILLS if not objects else verb.lemma_ in ("play", "speak")


def _cannot(verb: Token) -> bool:
    return any(c.lower_ in ("ca", "can") for c in helpers(verb)) and negation(verb)


def _unreal(verb: Token) -> bool:
    """Return whether a verb is hypothetical, possible or conditional rather than factual."""
    if dislikes(verb) or _abstains(verb) or is_skill(verb):
        return False
    for child in verb.children:
        if child.dep_ in ("aux", "auxpass") and (
            child.lemma_.lower() in words.UNREAL_MODALS or (child.tag_ == "MD" and child.lower_ in ("'d", "d", "ca"))
        ):
            return True
        if child.dep_ == "mark" and (child.lower_ in words.UNREAL_MARKS or child.lower_ == "like"):
            return True  # also "I feel like I have a dog"
        is_mark = child.dep_ == "mark" or (child.dep_ == "advmod" and child.lower_ == "when")  # not "once a month"
        if is_mark and child.lower_ in words.FUTURE_MARKS and verb.tag_ in ("VBP", "VBZ"):
            return True  # "when I need it", "once I work there": an unspecified time
        if child.lower_ == "either":
            return True
        if child.lower_ == "in" and any(c.lower_ == "case" for c in child.children):
            return True
        if child.lower_ in ("had", "should") and verb.dep_ == "advcl" and any(c.i > child.i for c in subjects_of(verb)):
            return True  # "had I moved"
        if child.dep_ == "advmod" and (child.lower_ in words.UNSURE or child.lower_ in words.UNREAL_MARKS):
            return True
    return verb.head.lower_ == "soon" and verb.tag_ in ("VBP", "VBZ")  # "as soon as I work there"


def _inherited(verb: Token) -> tuple[list[Token], float] | None:
    """Return (subjects, certainty) inherited by a verb without a subject from its governor; None without one."""
    if verb.dep_ == "conj" and verb.head.pos_ in ("VERB", "AUX"):
        head = verb.head
        if head.dep_ in ("xcomp", "pcomp", "csubj") or negation(head) or _unreal(head) or verb.tag_ == "VB":
            return None  # a conjunct of a complement is handled with the complement
        own = subjects_of(head)
        if own:
            return own, 1.0
        return _inherited(head)
    if verb.dep_ in ("relcl", "acl") and verb.head.pos_ in ("PROPN", "NOUN"):
        head = verb.head
        if verb.dep_ == "relcl" and head.dep_ == "appos" and head.nbor(-1).lower_ == "not":
            head = head.head  # "it was Rita, not Paul, who"
        if verb.dep_ == "acl" and (verb.tag_ != "VBN" or verb.lemma_ in ("call", "name")):
            return None
        copula = head.head
        if verb.dep_ == "relcl" and verb.lemma_ == "be" and any(c.lower_ == "which" for c in verb.children):
            return None  # often refers to the whole sentence
        if head.dep_ == "attr" and copula.lemma_ == "be" and not _unreal(copula):
            if any(t.lower_ == "it" for t in subjects_of(copula)):
                return [head], 0.9  # "it's Rita who"
            if not negation(copula):
                return subjects_of(copula) or [head], 0.9  # "there are people who like it": not the speaker
        return [head], 0.9
    if (verb.dep_ == "ROOT" or (verb.dep_ in ("ccomp", "advcl") and verb.i < verb.head.i)) and _says_i(verb):
        return [], 0.4
    return None


def _says_i(verb: Token) -> bool:
    """Return whether a sentence without a subject is about the speaker: "Lost my job", "Just got a dog"."""
    before = [t for t in verb.sent if t.i < verb.i and t.pos_ not in ("INTJ", "PUNCT", "ADV", "CCONJ", "AUX")]
    if verb.tag_ == "VBG":
        return not before and verb.i + 1 < len(verb.doc) and not verb.nbor().is_punct and not helpers(verb)
    return not before and (verb.tag_ == "VBD" or (verb.tag_ == "VBN" and not any(verb.children)))


def _finite(verb: Token) -> Clause | None:
    """Return the clause of a finite verb, or None if it states nothing."""
    told = verb.tag_ == "VBG" and verb.dep_ == "ROOT" and _says_i(verb)  # "Flying to Rome on Friday"
    if (verb.tag_ in ("VB", "VBG") and not shared_helpers(verb) and not told) or any(
        a.lower_ == "to" for a in helpers(verb)
    ):
        return None
    found = subjects_of(verb)
    certainty = 1.0
    if verb.dep_ == "relcl" and any(t.tag_ in ("WP", "WDT") for t in found):
        found = []
    elif verb.dep_ == "relcl" and found and not _is_spliced(verb, found):
        return None  # "the book that Anna read": the antecedent is the object, often a filler
    if found and all(_is_addressed(t, verb) for t in found):
        return None
    found = [t for t in found if not _is_addressed(t, verb)]
    if not found:
        taken = _inherited(verb)
        if taken is None:
            return None
        found, certainty = taken
    if any(c.dep_ == "cc" and c.lower_ == "or" for t in found for c in t.children):
        return None  # "Tom or Lena lives there"
    if any(
        t.lower_ == "we" and any(c.lower_ == "all" and not any(c.children) for c in (*t.children, *verb.children))
        for t in found
    ):
        return None  # generic: "we all have our paths"
    if any(t.lower_ in ("there", "it", "this", "that", "what", "which", "who") and t.pos_ != "PROPN" for t in found):
        found = [t for t in found if t.lower_ == "it"]
        if not found:
            return None
    unreal = _unreal(verb) or _is_on_condition(verb)
    wishes = unreal and verb.lemma_ in ("like", "love") and any(c.dep_ == "xcomp" for c in verb.children)
    if (unreal and not (wishes and not _conditional(verb))) or (limit := _standing(verb)) is None:
        return None
    return _with_tense(
        Clause(
            verb,
            (verb,),
            tuple(found),
            stance="wants_to" if wishes else "can" if is_skill(verb) else "",
            certainty=min(certainty, limit),
            reports=tuple(reports(verb)),
        )
    )


def _is_spliced(verb: Token, found: list[Token]) -> bool:
    """Return whether a clause is joined only by a comma (a comma splice): "I'm Ida Berg, I live in Oslo"."""
    first = verb.left_edge
    return first in found and first.lower_ in ("i", "we") and first.nbor(-1).text == "," and verb.head.dep_ == "attr"


def _is_on_condition(verb: Token) -> bool:
    """Return whether a clause says what somebody does if or when something else happens; not a habit at a time."""
    if verb.tag_ == "VBD" or any(a.tag_ == "VBD" for a in helpers(verb)):
        return False
    if verb.dep_ == "conj" and verb.head.pos_ in ("VERB", "AUX") and not subjects_of(verb):
        return _is_on_condition(verb.head)  # "if I have to cry, I cut a hole and take a needle"
    heads = [verb, *(c for c in verb.children if c.lower_ == "soon")]
    beside = [c for head in heads for c in head.children if c.dep_ == "advcl"]
    once = verb.lemma_ not in words.HABITS | words.LIKING and any(_is_ahead_of(c) for c in beside)
    marks = (c.lower_ for verb in beside for c in verb.children if c.dep_ == "mark")
    return once or any(mark in ("if", "unless", "provided", "supposing") for mark in marks)


def _is_ahead_of(verb: Token) -> bool:
    """Return whether a clause beside another one is that of a time to come: "when I retire", "as soon as it ends"."""
    marked = any(c.dep_ in ("mark", "advmod") and c.lower_ in ("when", "once") for c in verb.children)
    of_it = any(t.lower_ == "it" for t in subjects_of(verb))  # "when it comes to games"
    return (marked or verb.head.lower_ == "soon") and verb.tag_ in ("VBP", "VBZ") and not of_it


def _conditional(verb: Token) -> bool:
    return any(c.dep_ == "mark" and c.lower_ in words.UNREAL_MARKS for c in verb.children)


def _standing(verb: Token) -> float | None:
    """Return the upper limit of certainty set by the governing clauses; None if they make the verb non-factual."""
    limit = 1.0
    token = verb
    while token.head != token:
        head = token.head
        if token.dep_ == "advcl" and any(
            c.dep_ in ("mark", "advmod") and c.lower_ in words.UNREAL_MARKS for c in token.children
        ):
            return None
        if token.dep_ == "ccomp" and token.i > head.i:
            if any(c.lower_ == "so" for c in head.children):
                token = head
                continue  # "so slow that we moved": a factual result
            if head.lemma_ == "mean" and head.tag_ == "VBD" and any(t.lower_ == "i" for t in subjects_of(head)):
                token = head
                continue  # "sorry, I meant I live in Bern"
            if head.lemma_ in ("leave", "quit") and _after_comma(token):
                token = head
                continue  # "I quit Initech, I'm at Globex now"
            if head.lemma_ not in words.REPORTING or negation(head) or _unreal(head) or _quotes_oneself(head):
                return None
            limit = min(limit, 0.5)
        if token.dep_ == "attr" and token is not verb and _is_on_condition(head):
            return None  # "if he asks, I'm a woman who is afraid of dogs"
        if token.dep_ == "ccomp" and _reports_another(token):
            token = head
            continue
        if token.dep_ == "ccomp" and token.i < head.i and head.lemma_ in words.HEARSAY:
            limit = min(limit, 0.5)  # "Ida lives in Rome, Tom says"
        if (
            token.dep_ in ("advcl", "relcl", "ccomp")
            and token.i > head.i
            and head.pos_ in ("VERB", "AUX")
            and _unreal(head)
        ):
            return None
        token = head
    return limit


def _reports_another(verb: Token) -> bool:
    """Return whether a verb of saying after a comma has a clause of its own: "I've quit, my doctor said it was ok"."""
    subject = next(iter(subjects_of(verb.head)), None)
    before = subject.left_edge.i - 1 if subject is not None else -1
    own = any(c.dep_ == "ccomp" and c.i > verb.head.i for c in verb.head.children)
    return own and verb.i < before and verb.doc[before].text == ","


def _after_comma(verb: Token) -> bool:
    """Return whether a comma stands before the "I" of a clause."""
    return any(t.lower_ == "i" and t.i > 0 and t.nbor(-1).text == "," for t in subjects_of(verb))


def _quotes_oneself(verb: Token) -> bool:
    """Return whether "I said", "I told you" or "I thought" governs a clause, often to correct what was said."""
    past = "VBD" in {verb.tag_, *(a.tag_ for a in helpers(verb))}
    spoken = verb.lemma_ in words.HEARSAY and verb.lemma_ != "hear"
    return past and spoken and any(t.lower_ in ("i", "we") for t in subjects_of(verb))


def reports(verb: Token) -> Iterator[Token]:
    """Yield the governing verbs of saying and believing: "thinks" in "Tom thinks that I live in Rome"."""
    token = verb
    while token.head != token:
        if token.dep_ == "ccomp" and token.head.lemma_ in words.REPORTING and not _reports_another(token):
            yield token.head
        token = token.head


def _with_tense(clause: Clause) -> Clause:
    """Return the clause with the features of the auxiliaries: tense, negation, passive, "no longer", "going to"."""
    verb = clause.verb
    aux = shared_helpers(verb)
    lemmas = {a.lemma_.lower() for a in aux}
    tags = {a.tag_ for a in aux} | {verb.tag_}
    perfect = "have" in lemmas and verb.tag_ in ("VBN", "VBD", "VBG")
    will = any(a.lower_ in ("will", "'ll", "wo") for a in aux)
    over = _over(verb) and not dislikes(verb)  # "I can't stand it anymore" is a dislike
    return replace(
        clause,
        past=clause.past or "VBD" in tags or perfect or (verb.tag_ == "VBN" and not aux),
        ongoing=clause.ongoing or (perfect and "had" not in {a.lower_ for a in aux} and not _is_experience(verb)),
        negated=clause.negated or (negation(verb) and not over),
        ended=clause.ended or over,
        passive=_is_passive(verb),
        stance=clause.stance or ("plans_to" if will else ""),
        offhand=will,
    )


def _is_experience(verb: Token) -> bool:
    """Return whether a state in the perfect is past: "I have lived in Rome", without "since", "for …" or "always"."""
    if verb.tag_ == "VBG" or verb.lemma_ not in words.STATES - words.STRONG_STATES - {"be", "have"}:
        return False
    if any(t.lower_ in ("since", "always") for t in verb.subtree):
        return False
    times = (c for c in verb.children if c.lower_ in words.LASTING or c.dep_ == "npadvmod")
    return not any(t.ent_type_ == "DATE" for c in times for t in c.subtree)


def _over(verb: Token) -> bool:
    """Return whether "no longer" or "not … anymore" modifies the verb."""
    adverbs = {c.lower_ for c in verb.children if c.dep_ in ("advmod", "neg", "npadvmod")}
    near = [*verb.children, *(g for c in verb.children if c.dep_ in ("acomp", "attr", "prep") for g in c.children)]
    if any(
        c.lower_ == "longer" and any(g.lower_ in ("no", "n't", "not") for g in (*c.children, *verb.children))
        for c in near
    ):
        return True
    text = verb.sent.text.lower()
    return negation(verb) and ("anymore" in adverbs or "any more" in text or "any longer" in text)


def _descend(clause: Clause) -> Iterator[Clause]:
    """Yield the clauses of the main verb: "working" of "started working", "adopt" of "wants to adopt"."""
    verb = clause.verb
    lemma = verb.lemma_.lower()
    going = lemma == "go" and verb.tag_ == "VBG" and bool(helpers(verb)) and not _camping(verb)
    complement = next(
        (c for c in verb.children if c.dep_ == "xcomp" and c.pos_ in ("VERB", "AUX") and c.i > verb.i), None
    )
    if complement is None and lemma in ("think", "dream", "consider"):
        complement = _considered(verb)
        if complement is not None and not clause.negated:
            yield from _conjuncts(clause, complement, stance=clause.stance or "considers")
        return
    if complement is None:
        yield clause
        return
    infinitive = any(c.lower_ in ("to", "na") and c.dep_ == "aux" for c in complement.children)
    if lemma == "get" and infinitive and verb.lower_ == "got" and clause.ongoing:
        return  # "I've got to get this order in"
    if going and infinitive:
        if clause.past:
            return  # "I was going to move": dropped since
        yield from _conjuncts(clause, complement, stance=clause.stance or "plans_to")
    elif lemma == "use" and infinitive and verb.tag_ in ("VBD", "VBN"):
        yield from _conjuncts(clause, complement, ended=True, past=False)
    elif lemma in words.STOPPING and not infinitive:
        yield from _conjuncts(clause, complement, ended=not clause.negated, past=False)
    elif lemma in words.TRANSPARENT or _was_necessary(clause, complement):
        yield from _conjuncts(clause, complement, began=lemma in ("start", "begin"))
    elif clause.stance == "wants_to" and lemma in ("like", "love"):
        yield from _conjuncts(clause, complement)
    elif lemma in words.INTENTIONS and infinitive:
        if clause.past and not clause.ongoing and lemma not in ("decide", "promise", "agree", "refuse"):
            return  # a past wish or attempt is neither current nor done
        stance = clause.stance if clause.stance not in ("", "plans_to") else words.INTENTIONS[lemma]
        yield from _conjuncts(clause, complement, stance=stance)
    elif lemma in ("have", "need") and infinitive and _is_duty(complement) and not clause.past:
        yield from _conjuncts(clause, complement, stance="has_to")
    elif lemma in ("leave", "quit") and complement.lemma_ == "join" and infinitive:
        yield clause
        yield from _conjuncts(clause, complement)
    elif lemma == "let" and clause.passive:
        yield clause  # "was let go from": the complement adds nothing
    elif lemma in words.LIKING or lemma in ("try", "practice", "practise") or _camping(verb) or is_bare(complement):
        yield clause
    elif lemma in words.TOLD and clause.past and complement.tag_ == "VBG":
        yield clause  # "I broke my arm playing football"


def _is_duty(verb: Token) -> bool:
    """Return whether a verb is that of a duty with a day: "hand in", "be out"."""
    leaves = verb.lemma_ in ("be", "move", "get") and any(c.lower_ == "out" for c in verb.children)
    return leaves or verb.lemma_ in words.DUTIES


def _was_necessary(clause: Clause, complement: Token) -> bool:
    """Return whether a clause says what somebody had to do, and so did: "we had to cancel our trip"."""
    had = clause.verb.lemma_ == "have" and clause.verb.tag_ == "VBD" and complement.tag_ in ("VB", "VBN")
    return had and not clause.negated and not complement.conjuncts


def _camping(verb: Token) -> bool:
    return verb.lemma_ == "go" and any(
        c.dep_ in ("xcomp", "advcl", "dobj") and c.text.endswith("ing") and c.i == verb.i + 1 for c in verb.children
    )


def is_bare(complement: Token) -> bool:
    """Return whether an infinitive has no dependents: in "switched to neovim" it is a name unknown to the tagger."""
    return complement.tag_ == "VB" and [c.lower_ for c in complement.children] == ["to"]


def _considered(verb: Token) -> Token | None:
    for child in verb.children:
        if child.dep_ == "xcomp" and child.tag_ == "VBG":
            return child
        if child.dep_ == "prep" and child.lower_ in ("of", "about"):
            return next((c for c in child.children if c.dep_ == "pcomp" and c.tag_ == "VBG"), None)
    return None


def _conjuncts(
    clause: Clause,
    complement: Token,
    *,
    stance: str | None = None,
    ended: bool | None = None,
    past: bool | None = None,
    began: bool | None = None,
) -> Iterator[Clause]:
    """Yield the clauses of a complement and of its conjuncts."""
    for verb in (complement, *(c for c in complement.conjuncts if c.i > complement.i and not subjects_of(c))):
        if verb.pos_ not in ("VERB", "AUX") or _unreal(verb):
            continue
        below = replace(
            clause,
            verb=verb,
            chain=(*clause.chain, verb),
            stance=clause.stance if stance is None else stance,
            ended=clause.ended if ended is None else ended,
            past=clause.past if past is None else past,
            began=clause.began if began is None else began,
            negated=clause.negated or negation(verb),
            passive=any(a.dep_ == "auxpass" for a in helpers(verb)),
        )
        yield from _descend(below) if not below.negated else iter((below,))
