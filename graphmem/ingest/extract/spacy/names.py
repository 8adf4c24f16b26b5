"""Names of entities for the noun phrases of a parse."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING

from graphmem.errors import InvalidEntityName
from graphmem.ingest.extract.spacy import words
from graphmem.ingest.extract.spacy.clauses import examples, given_names, governor, joins_verb, names_given, subjects_of
from graphmem.ingest.extract.spacy.kin import introduced, is_named, listed, role_of
from graphmem.ingest.extract.spacy.labels import SOFTWARE, THING, is_legal_form, is_word
from graphmem.ontology import Ontology
from graphmem.text.names import PARTICLES
from graphmem.text.normalize import canonical, require_name

if TYPE_CHECKING:
    from spacy.tokens import Doc, Span, Token

_MAX_WORDS = 6
_MAX_TITLE = 300
_QUOTED = re.compile(r'"([A-Z][^"\n]{2,60}?)[,.!]?"')
_DATE = re.compile(
    rf"(?:\d{{1,4}}(?:st|nd|rd|th)? )?(?:{'|'.join(sorted(words.MONTHS))})(?: ?\d{{1,4}}(?:st|nd|rd|th)?)?"
)
_NO_PROSE = re.compile(r"[\[\]{}<>@=|\\*]|(?:^|\s)/|/[^/]*/|^\d+[a-z]{0,2}$|^[A-Z]+(?: [A-Z]+){3}")
"""A part of a path, of code or of a table, a number, or a cry."""
_CRY = re.compile(r"(?<!w)([a-z])\1\1")
"""A letter three times: "Noooo"."""
_SMALL = frozenset("a an and as at but by for from in is it nor of off on or the to up with 's".split())
"""Words that are in lower case in a title."""
_JOINTS = ("and", "&", "plus", "but")
_LETTERS = re.compile(r"[^\W\d_]")


# what the recognizer takes into a name that ends before it: "Tom last Saturday", "Berlin Yay"
_AFTER_NAME = re.compile(
    r"(?<!\s)\s+"
    r"(?:(?:last|next|this) \w+|and|[Dd]id|[Ll]et|[Pp]lease|[Tt]hanks|[Tt]hx|ok|[Oo]kay|"
    r"[Yy]esterday|[Tt]oday|[Tt]omorrow|[Tt]onight|[Yy]ay|[Ww]ow|[Ll]ol|[Oo]mg)$"
)
_NO_NOUNS = frozenset("RB VB VBG VBP UH IN WRB MD CC".split())
_OPENINGS = frozenset(
    "yeah yep yes no oh ok okay hey hi hello look wait well so please wow huh thanks bye dear gee ah ahh aw".split()
)
"""Words before a name in a sentence that only address somebody."""
_NO_NAMES = frozenset(
    "ill im ive id dont cant wont didnt doesnt isnt y'know y'all yall afaik imho iirc rofl lmao brb nah naw noo ooh "
    "whoah woah ohh ahh aww argh ugh uhh "
    "blah alrighty ya dude dang lemme gimme pfft uhhuh fahrenheit celsius ok okay hmm mr mrs ms miss dr".split()
)
"""Keys of what is written like a name, but is none: "Ill call you"."""

GUESSED_PERSON = 0.7
"""Certainty of a person distinguished from a place or a firm only by context."""


@dataclass(frozen=True, slots=True)
class End:
    """A possible end of a fact.

    Attributes
    ----------
    name, kind
        The entity's name and type.
    named
        Whether it is a proper name, a participant or a relative of one, rather than a common noun.
    certainty
        Upper limit of the confidence of its facts; resolved pronouns are guesses.
    label
        spaCy's label of the name, or "".
    role
        "speaker", "addressee" or "".
    """

    name: str
    kind: str
    named: bool
    certainty: float = 1.0
    label: str = ""
    role: str = ""


def as_relative(noun: Token, end: End) -> End:
    """Return an end retyped as a relative or pet, as in "my cat is called Austin", which is recognized as a place."""
    if end.label == "PERSON" or end.role:
        return end
    certainty = min(end.certainty, GUESSED_PERSON) if end.label else end.certainty
    return replace(end, kind=_kind_of_relative(noun), certainty=certainty)


def _kind_of_relative(noun: Token) -> str:
    """Return the entity type for a relational noun; pets aren't persons."""
    return "person" if noun.lemma_.lower() in words.KIN else "concept"


def _joined(tokens: list[Token]) -> str:
    """Return tokens as text, with "peer-reviewed" as one word."""
    pieces = [t.text + (" " if t.whitespace_ or after.i > t.i + 1 else "") for t, after in pairwise(tokens)]
    return "".join(pieces) + tokens[-1].text


def _names_in(span: Span) -> Iterator[Span]:
    """Yield the names in a span; two if the recognizer merged them: "from Trello to Linear", "in Rome with Ida".

    A preposition of the verb isn't part of a name: "we show Heron to Initech".
    """
    if (comma := next((t for t in span[1:-1] if t.text == ","), None)) is not None and not is_legal_form(comma.nbor()):
        for part in (span.doc[span.start : comma.i], span.doc[comma.i + 1 : span.end]):
            yield from _names_in(part.char_span(0, len(part.text), label=span.label_))
        return
    prepositions = [t for t in span[1:-1] if t.dep_ == "prep" and t.is_lower]
    cut = next((t for t in prepositions if t.head not in span and t.head.pos_ == "VERB"), None)
    if cut is None and span.label_ in ("GPE", "LOC", "FAC", "PERSON"):
        cut = next((t for t in prepositions if t.lower_ == "with"), None)
    if cut is None:
        yield span
        return
    for part in (span.doc[span.start : cut.i], span.doc[cut.i + 1 : span.end]):
        yield part.char_span(0, len(part.text), label=span.label)


def _is_before_name(word: Token) -> bool:
    """Return whether a word isn't part of the name that it precedes: "ok Debian", "this Harvard Business Review".

    "bin Salman" is a whole name.
    """
    return word.lower_ in _OPENINGS or (word.lower_ not in PARTICLES and is_word(word.text))


def _trimmed(name: Span) -> Span:
    """Return a name without the words around it: "Luckily Jana" at the beginning of a sentence, "that Susan person"."""
    doc, first = name.doc, name[0]
    opens = len(name) > 1 and first.is_sent_start and (first.tag_ in _NO_NOUNS or first.lower_ in _OPENINGS)
    start, end = name.start + bool(opens), name.end
    while end - start > 1 and doc[start].is_lower and name.label_ not in words.PLACES and _is_before_name(doc[start]):
        start += 1
    while end - start > 1 and name.label_ == "PERSON" and doc[end - 1].is_lower and is_word(doc[end - 1].text):
        end -= 1
    while end - start > 1 and doc[end - 1].is_lower and doc[end - 1].tag_ == "IN":
        end -= 1  # "Bristol on", before "the 28th"
    part = doc[start:end]
    return doc.char_span(part.start_char, part.end_char, label=name.label_) or name


class Names:
    """Names of one parsed episode.

    Parameters
    ----------
    doc
        The parse.
    ontology
        Defines the allowed short names.
    speaker, addressee
        Referents of "I" and "you"; None in a document.
    title
        Title of a document, its subject.
    others
        Further speakers of the session, whom their first names mean.
    written
        Whether it is a mail or another long text, in which "our" is rather of a firm or mankind than of the speaker.
    """

    def __init__(
        self,
        doc: Doc,
        ontology: Ontology,
        speaker: str | None,
        addressee: str | None,
        title: str | None,
        others: Iterable[str] = (),
        *,
        written: bool = False,
    ) -> None:
        self.doc = doc
        self.ontology = ontology
        self._written = written
        self.speaker = End(speaker, "person", named=True, role="speaker") if speaker else None
        self.addressee = End(addressee, "person", named=True, role="addressee") if addressee else None
        known = {canonical(name): End(name, "person", named=True, label="PERSON") for name in others}
        firsts = Counter(name.split()[0] for name in known)
        self._participants = {
            form: end for name, end in known.items() for form in (name, name.split()[0]) if firsts[name.split()[0]] == 1
        }
        self._entity_at: dict[int, Span] = {t.i: part for e in doc.ents for part in _names_in(e) for t in part}
        for quoted in _QUOTED.finditer(doc.text):
            span = doc.char_span(quoted.start(1), quoted.end(1), label="WORK_OF_ART", alignment_mode="contract")
            if span is not None and all(t.text[:1].isupper() or t.lower_ in _SMALL or t.is_punct for t in span):
                self._entity_at.update({t.i: span for t in span})
        self._learn_relatives()
        self._full: dict[str, End] = {}
        self._others: dict[str, set[str]] = {}
        self.title = self._title_end(title) if title else None
        self._title_at: set[int] = set()
        self._title_nouns: set[str] = set()
        if self.title and not speaker:
            self._find_title(self.title.name)
        self._learn_full_names()

    def _learn_relatives(self) -> None:
        """Record as persons the names after kinship words that the recognizer doesn't know: "my sister Ana Costa"."""
        firsts: dict[str, str] = {}
        for noun in self.doc:
            if noun.is_lower and noun.lemma_ in words.KIN and (name := self._beside(noun)) is not None:
                self._entity_at.update({t.i: name for t in name})
                firsts[name.text] = name[0].text
        for token in self.doc if firsts else ():
            if token.text in firsts and token.pos_ == "PROPN" and token.i not in self._entity_at:
                self._entity_at[token.i] = self._person(token.i, token.i + 1)

    def _beside(self, noun: Token) -> Span | None:
        """Return the name of a relative that isn't recognized as a name of a person, a place or a firm."""
        start = noun.i + 1
        start += start < len(self.doc) and self.doc[start].text == ","
        end = start
        while end < noun.sent.end and self.doc[end].pos_ == "PROPN" and self.doc[end].text.istitle():
            end += 1
        if start == end or any(t.ent_type_ in ("PERSON", "ORG", *words.PLACES) for t in self.doc[start:end]):
            return None
        head = self.doc[end - 1]
        apposed = head in introduced(noun)
        prefixed = noun.head == head and noun.dep_ in ("compound", "nmod") and start == noun.i + 1
        owned = any(c.dep_ == "poss" for c in (*noun.children, *(head.children if prefixed else ())))
        return self._person(start, end) if owned and (apposed or prefixed) else None

    def _person(self, start: int, end: int) -> Span:
        last = self.doc[end - 1]
        span = self.doc.char_span(self.doc[start].idx, last.idx + len(last), label="PERSON")
        assert span is not None
        return span

    @property
    def participants(self) -> set[str]:
        """Names of the further speakers of the session."""
        return {end.name for end in self._participants.values()}

    def is_person(self, token: Token) -> bool:
        """Return whether a word is in the name of a person."""
        span = self._entity_at.get(token.i)
        return span is not None and span.label_ == "PERSON"

    def _learn_full_names(self) -> None:
        """Map "Rogers" to "Carl Rogers" if only one person in the text has that name."""
        seen: dict[str, set[str]] = {}
        spans = dict.fromkeys(e for e in self._entity_at.values() if e.label_ == "PERSON")
        people = [self._of_entity(e) for e in spans]
        people += [self.title] if self.title and self.title.kind == "person" else []
        for end in people:
            if end is not None and " " in end.name:
                for part in (end.name.split()[0], end.name.split()[-1]):
                    seen.setdefault(part, set()).add(end.name)
        for part, full in seen.items():
            if len(full) == 1 and part not in words.KIN:
                self._full[part] = End(next(iter(full)), "person", named=True, label="PERSON")

    def _title_end(self, title: str) -> End | None:
        name = re.sub(r"(?<!\s)\s*\([^()]*\)$", "", title[:_MAX_TITLE]).strip()
        key = canonical(name)
        for entity in self.doc.ents:
            text = canonical(entity.text)
            if entity.label_ in words.ENTITY_TYPES and (key in text or set(text.split()) <= set(key.split())):
                return self._checked(name, words.ENTITY_TYPES[entity.label_], named=True, label=entity.label_)
        pronoun = self.doc[0].lower_ if len(self.doc) else ""
        return self._checked(name, "person" if pronoun in words.THIRD_PERSON else "concept", named=True)

    def _find_title(self, title: str) -> None:
        """Record the positions of the title in the text, and the nouns that can refer to it: "the journal"."""
        forms = [title, title.partition(",")[0]] if self.title and self.title.kind == "location" else [title]
        for match in re.finditer("|".join(map(re.escape, forms)), self.doc.text):
            span = self.doc.char_span(match.start(), match.end(), alignment_mode="expand")
            self._title_at.update(t.i for t in span or ())
        first = next(self.doc.sents, ())
        self._title_nouns = {t.lower_ for t in first if t.dep_ == "attr" and t.pos_ == "NOUN"}
        self._title_nouns.add(title.split()[-1].lower())

    def _checked(self, name: str, kind: str, *, named: bool, label: str = "") -> End | None:
        bare = name if name.casefold() in SOFTWARE else name.strip(" \"'.,;:!?()-–—")  # ".NET"
        name = re.sub(r"^(?:the|a|an)\s+(?=\S)", "", bare, flags=re.IGNORECASE)
        if "- " in name or name.count('"') == 1:
            return None  # the span doesn't align with tokens
        try:
            shown, key = require_name(name, self.ontology.short_names)
        except InvalidEntityName:
            return None
        if key in _NO_NAMES or _CRY.search(key) or _DATE.fullmatch(key) or _NO_PROSE.search(name):
            return None
        meaningful = any(w not in words.VAGUE and w not in words.EVALUATIVE for w in key.split())
        if not meaningful or not _LETTERS.search(shown) or len(shown.split()) > 10:
            return None
        return End(shown, kind, named=named, label=label)

    def _participant(self, text: str) -> End | None:
        """Return the speaker or addressee for a name or a short form of at least three letters."""
        key = canonical(text)
        for end in (self.speaker, self.addressee):
            if end is None:
                continue
            full = canonical(end.name)
            if key in (full, full.split()[0]):
                return end
            if len(key) >= 3 and " " not in key and full.startswith(key) and text[0].isupper():
                return replace(end, certainty=0.6)
        return self._participants.get(key) if text.istitle() else None

    def _of_entity(self, span: Span) -> End | None:
        """Return the end for a recognized name."""
        return self._of_trimmed(_trimmed(span))

    def _of_trimmed(self, span: Span) -> End | None:
        at = span.label_ != "PERSON" and span.root.dep_ == "pobj" and span.root.head.lower_ == "at"
        bare = span.label_ in words.PLACES if len(span) < 3 else span.label_ in ("PERSON", *words.PLACES)
        # "Luigi's" without an owned noun is a name, "El Salvador's" isn't
        owns = span[-1].tag_ == "POS" and (span[-1].head.dep_ == "poss" or (bare and not at))
        text = _AFTER_NAME.sub("", (span[:-1] if owns and len(span) > 1 else span).text.strip())
        maker = self.doc[span.start - 1] if span.start > 0 and span.label_ == "PRODUCT" else None
        if maker is not None and maker.dep_ == "compound" and maker.pos_ == "PROPN" and maker.head in span:
            text = f"{maker.text} {text}"  # "a Tesla Model 3"
        after = self.doc[span.end : span.end + 1]
        if at and after.text == "'s" and after[0].head == span.root:
            text += "'s"  # "a table at Luigi's"
        if (known := self._participant(text)) is not None:
            addressed = known.role == "addressee" and span.end == span.sent.end - (span.sent[-1].is_punct)
            # by name, somebody else is told of them
            return known if known.role != "addressee" or addressed else replace(known, role="", label="PERSON")
        if span.label_ not in words.ENTITY_TYPES or not re.search(r"[A-Z0-9]", text):
            return None
        if text.startswith("Project ") or self.doc[max(0, span.start - 1)].text == "Project":
            return self._checked(f"Project {text.removeprefix('Project ')}", "project", named=True, label="PRODUCT")
        if canonical(text) in words.TECHNOLOGIES:
            return self._checked(text, "technology", named=True, label="PRODUCT")
        last = self.doc[span.end - 1 : span.end + 1]
        if legal := [t for t in last if is_legal_form(t) and t.i > span.start]:
            return self._checked(self.doc[span.start : legal[-1].i + 1].text, "organization", named=True, label="ORG")
        if span.label_ == THING and len(span) == 1 and span[0].is_sent_start and span[0].dep_ not in ("nsubj", "ROOT"):
            return None  # the capital is of the sentence
        proper = [t for t in span if t.pos_ == "PROPN" or (t.pos_ in ("NOUN", "ADJ") and t.text[:1].isupper())]
        if not proper or (
            len(span) == 1
            and (span[0].pos_ in ("INTJ", "VERB", "ADV") or (span[0].is_sent_start and span[0].pos_ != "PROPN"))
        ):
            return None
        if any(t.lower_ == "or" for t in span):
            return None  # "Gentoo or Debian"
        if span.label_ == "PERSON" and (any(c.isdigit() for c in text) or canonical(text) in words.KIN):
            return None
        quoted = span.label_ in ("WORK_OF_ART", "EVENT", "LAW")
        if not quoted and any(t.is_lower and t.pos_ in ("VERB", "AUX") and t.tag_ not in ("VBN", "VBG") for t in span):
            return None  # "Peter remarried Sofia"
        if span.label_ == "PERSON" and text in self._full:
            return self._full[text]
        return self._checked(text, words.ENTITY_TYPES[span.label_], named=True, label=span.label_)

    def proper(self, token: Token) -> End | None:
        """Return the proper name that contains a token."""
        span = self._entity_at.get(token.i)
        return self._of_entity(span) if span is not None else None

    def title_of_work(self, token: Token) -> Span | None:
        """Return the title of a work, in quotes or recognized, that contains a token."""
        span = self._entity_at.get(token.i)
        return span if span is not None and span.label_ == "WORK_OF_ART" else None

    def word(self, token: Token) -> Iterator[End]:
        """Yield a word as the name of a thing, regardless of its tag."""
        if (end := self.proper(token) or self._checked(token.text, "concept", named=True)) is not None:
            yield end

    def named(self, sentence: Span) -> dict[End, Span]:
        """Return the proper names of a sentence, in order, with the words of each."""
        spans = {s.start: s for t in sentence if (s := self._entity_at.get(t.i))}
        found: dict[End, Span] = {}
        for span in map(_trimmed, spans.values()):
            if (end := self._of_trimmed(span)) is not None:
                found.setdefault(end, span)
        return found

    def ends(self, token: Token) -> Iterator[End]:
        """Yield the ends of a noun phrase and of its conjuncts joined by "and", or in place of a kind its examples."""
        if told := [end for example in examples(token) for end in self.end(example)]:
            yield from told
            return
        if called := [end for name in given_names(token) for end in self._given(name)]:
            yield from called
            return
        yield from self.end(token)
        yield from (e for first in listed(token) for e in self.end(first))
        if any(c.lower_ in ("or", "nor") and c.dep_ == "cc" for t in (token, *token.conjuncts) for c in t.children):
            return  # "or": ambiguous
        last = max((t.i for t in token.conjuncts), default=token.i)
        if joins_verb(token) or all(t.lower_ not in _JOINTS for t in self.doc[token.i : last]):
            return  # "model railways, N gauge": an apposition rather than a list
        for joined in token.conjuncts:
            denied = any(c.dep_ == "neg" for c in joined.children)  # "tea, not coffee"
            if joined.i > token.i and joined.pos_ in ("NOUN", "PROPN", "PRON") and not denied:
                yield from self.end(joined)

    def _given(self, token: Token) -> Iterator[End]:
        """Yield the proper name that a thing is given, or a title of any words: "To Live"."""
        if (title := self.title_of_work(token)) is not None:
            end = self._checked(title.text, words.ENTITY_TYPES[title.label_], named=True, label=title.label_)
        else:
            end = next(self.end(token), None)
        if end is not None and end.named:
            yield end

    def end(self, token: Token) -> Iterator[End]:
        """Yield the end of a noun phrase, if there is one."""
        found = self.pronoun(token) if token.pos_ == "PRON" or token.lower_ in words.FIRST_PERSON else self._noun(token)
        if found is not None:
            yield found

    def pronoun(self, token: Token) -> End | None:
        """Return the referent of a pronoun, if it is unambiguous."""
        word = token.lower_
        if word in words.FIRST_PERSON:
            return self.speaker
        if word in words.SECOND_PERSON:
            return self.addressee
        if word in words.THIRD_PERSON:
            subjects = [] if word not in words.POSSESSIVES else subjects_of(governor(token))
            if any(t.pos_ == "PROPN" and t.i < token.i and not self.is_person(t) for t in subjects):
                return None  # perhaps of a person that isn't recognized: "Nonna shares her ham with Tom"
            return self._antecedent(token, words.THIRD_PERSON[word])
        if word == "it" and self.title and self.title.kind != "person" and token.is_sent_start:
            return End(self.title.name, self.title.kind, named=True, certainty=0.6)
        return None

    def _antecedent(self, token: Token, gender: str) -> End | None:
        """Return the only possible referent of "he" or "she": named before it, in the same or the previous sentence."""
        start = token.sent.start
        if self.title and self.title.kind == "person" and self.speaker is None:
            others = {e.name for e in map(self._of_entity, self.doc[start : token.i].ents) if e and e.kind == "person"}
            if others <= {self.title.name}:
                return End(self.title.name, "person", named=True, certainty=0.7)
            return None
        if self.speaker is None:
            return None  # a document names too many persons to guess
        if start > 0:
            start = self.doc[start - 1].sent.start
        if gender not in self._others:
            self._others[gender] = self._of_other_gender(gender)
        others = self._others[gender]
        found: dict[str, End] = {}
        for other in self.doc[start : token.i]:
            if not found and other.lower_ in words.THIRD_PERSON and words.THIRD_PERSON[other.lower_] == gender:
                return None  # of somebody named earlier: "I haven't met her. Tom says she's late"
            if other.dep_ in ("poss", "compound") and other.ent_type_ != "PERSON":
                continue
            if other.dep_ == "compound" and other.head.tag_ in ("NN", "NNS") and other.head.ent_iob_ == "O":
                continue  # "the Swansea house"
            end = self._noun(other) if other.lower_ in words.KIN else None
            if end is not None and (words.KIN[other.lower_] not in ("", gender) or is_named(other)):
                continue
            if end is None and words.KIN.get(other.lower_) == gender and not introduced(other):
                return None  # "Mum sold the house"
            if end is None and (span := self._entity_at.get(other.i)) is not None and span.label_ == "PERSON":
                end = self._of_entity(span)
            if end is not None and end.kind == "person" and not end.role and end.name not in others:
                found[end.name] = End(end.name, "person", named=True, certainty=0.4)
        return next(iter(found.values())) if len(found) == 1 else None

    def _of_other_gender(self, gender: str) -> set[str]:
        """Return the names of relatives of the other gender: Mila of "his daughter Mila" for "he"."""
        nouns = (t for t in self.doc if words.KIN.get(t.lower_, "") not in ("", gender))
        named = (name for noun in nouns for name in (*introduced(noun), *listed(noun), *names_given(noun)))
        return {end.name for name in named if (end := self.proper(name)) is not None}

    def owner(self, token: Token) -> End | None:
        """Return the owner of a noun: "my", "Anna's"; the parser joins "my" of "my dog Rex" to the name."""
        prefixed = token.dep_ == "compound" and token.lemma_.lower() in words.PETS and token.head.pos_ == "PROPN"
        for child in (*token.children, *(token.head.children if prefixed else ())):
            if child.dep_ == "poss":
                if self._written and child.lower_ == "our" and token.lemma_.lower() not in words.OWN_KIN:
                    return None  # "our CFO" of a firm
                return self.pronoun(child) if child.lower_ in words.POSSESSIVES else next(self.end(child), None)
        if token.lower_ in words.BARE_KIN and not any(c.dep_ in ("det", "amod", "appos") for c in token.children):
            return self.speaker  # "Dad retired"
        joined = (
            token.dep_ == "conj"
            and token.i == token.head.i + 2
            and {token.lower_, token.head.lower_} <= words.KIN.keys()
        )
        return self.owner(token.head) if joined else None  # "my mom and dad"

    def _noun(self, token: Token) -> End | None:
        if token.i in self._title_at:
            return self.title
        if (
            self.title
            and token.lower_ in self._title_nouns
            and [c.lower_ for c in token.children if c.dep_ != "prep"] == ["the"]
        ):
            return replace(self.title, certainty=0.6)
        span = self._entity_at.get(token.i)
        if span is not None and span.label_ in words.QUANTITIES and span.root == token:
            return None
        if span is not None and (end := self._of_entity(span)) is not None:
            return end
        if (known := self._participant(token.text)) is not None:
            return known
        if token.pos_ not in ("NOUN", "PROPN"):
            return None
        if token.lemma_.lower() in words.RELATIONAL:
            return self._relative(token)
        return self._common(token)

    def _relative(self, token: Token) -> End | None:
        """Return "Anna's sister" for "my sister", and Ida for "my sister Ida"; None without an owner."""
        noun = token.lemma_.lower()
        for child in token.children:
            if child.dep_ in ("appos", "compound") and child.pos_ == "PROPN" and (span := self._entity_at.get(child.i)):
                known = self._of_entity(span)
                return as_relative(token, known) if known is not None else None
            if child in introduced(token) and noun in words.PETS and (pet := self._common(child)) is not None:
                return as_relative(token, pet)
        owner = self.owner(token)
        ours = any(c.lower_ == "our" for c in token.children)
        if owner is not None and not (noun in words.SEVERAL and (token.tag_ == "NN" or ours)):
            inside = role_of(token).removeprefix(token.lower_).partition(" in ")
            name, kind = f"{owner.name}'s {self.phrase(token)}{inside[1]}{inside[2]}", _kind_of_relative(token)
            return End(name, kind, named=True, certainty=min(owner.certainty, 0.9))
        if any(c.dep_ == "poss" for c in token.children):
            return None
        return self._common(token)

    def phrase(self, token: Token) -> str:
        """Return a noun with its modifiers in lower case: "home country"."""
        return _joined(self._modified(token)).lower()

    def _modified(self, token: Token) -> list[Token]:
        """Return a noun with the preceding words that specify it."""
        kept = [token]
        for child in token.lefts:
            if child.dep_ == "compound" or (child.dep_ == "nmod" and child.pos_ in ("NOUN", "PROPN")):
                inner = [
                    t
                    for t in child.subtree
                    if t.pos_ in ("NOUN", "PROPN", "ADJ", "VERB") or "-" in (t.text, self.doc[t.i + 1].text)
                ]
                joints = ("of", "the", "and", "for")  # as in "The Lord of the Rings trilogy"
                kept += inner + [t for t in child.subtree if t.lower_ in joints and t.i > child.i and inner[-1].i > t.i]
            elif child.dep_ == "amod" and child.lower_ not in words.EVALUATIVE and child.tag_ not in ("JJR", "JJS"):
                parts = list(child.subtree)  # "peer-reviewed" is three tokens
                kept += parts if len(parts) < 5 and all(t.text.isalpha() or t.text == "-" for t in parts) else [child]
            elif child.dep_ == "nummod" and child.text.isdigit() and self.doc[child.i - 1] in kept:
                kept.append(child)  # "type 2 diabetes"
        kept.sort(key=lambda t: t.i)
        while len(kept) > 1 and (kept[0].text == "-" or len(kept[0]) == 1):
            kept.pop(0)  # the K in "5K run"
        return kept

    def _of_title(self, token: Token) -> str:
        """Return the rest of a title after its first name: " of the Rings"."""
        after = list(self.doc[token.i + 1 : token.i + 5])
        words_ = [t.lower_ for t in after]
        rest = 2 if words_[:2] == ["of", "the"] else 1 if words_[:1] == ["of"] else 0
        named = rest and len(after) > rest and after[rest].pos_ == "PROPN" and after[rest].ent_type_ not in words.PLACES
        return f" {' '.join(t.text for t in after[: rest + 1])}" if named else ""

    def _common(self, token: Token) -> End | None:
        if not token.text[:1].isalpha() or token.ent_type_ in words.QUANTITIES:
            return None
        kept = self._modified(token)
        of = next((c for c in token.rights if c.dep_ == "prep" and c.lower_ == "of"), None)
        inside = next((c for c in of.children if c.dep_ == "pobj"), None) if of is not None else None
        if inside is not None and token.lower_ in words.MEASURES:
            return next(self.end(inside), None)
        before = {t.pos_ for t in kept[:-1] if t.lower_ not in words.VAGUE}
        vague = token.lower_ in words.VAGUE or token.lemma_.lower() in words.VAGUE
        if token.lower_ in words.NEVER_HEADS or (vague and not before & {"NOUN", "PROPN"}):
            return None
        if any(c.dep_ == "poss" and c.lower_ in ("other", "another") for c in token.children):
            return None  # "each other's backs"
        determiners = {c.lower_ for c in token.children if c.dep_ in ("det", "amod")}
        if determiners & {"such", "no", "any", "what", "which"}:
            return None
        proper = all(t.pos_ == "PROPN" for t in kept)
        text = _joined(kept)
        if proper and text[0].isupper():
            text = f"{text}{self._of_title(token)}"
            return self._checked(text, "concept", named=not kept[0].is_sent_start or len(kept) > 1)
        if inside is not None:
            if inside.pos_ == "PRON" or inside.lower_ in words.VAGUE:
                return None
            text = f"{text} of {_joined(self._modified(inside))}"
        if len(text.split()) > _MAX_WORDS:
            return None
        if kept[0].is_sent_start and kept[0].pos_ != "PROPN" and not kept[0].is_upper:
            text = text[0].lower() + text[1:]
        return self._checked(text, "concept", named=False)
