"""Correction of the recognizer's labels of names, by lists of given names and places, and by grammar.

The small models label a name of one word that they don't know by chance: "Phoebe" is a place, "Nvidia" too, "Lasix" a
person. Such a label is kept only where the sentence supports it; otherwise the name is that of a thing.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from importlib.resources import files
from typing import TYPE_CHECKING

from graphmem.ingest.extract.spacy import words

if TYPE_CHECKING:
    from spacy.tokens import Doc, Span, Token

THING = "THING"
"""Label of a name that is known not to be one of a person, a place or a firm."""

KNOWN_NAME = "peter"
"""A name that the models always read as that of a person."""


def _lines(name: str) -> frozenset[str]:
    text = files("graphmem.ingest.extract.spacy").joinpath(name).read_text(encoding="utf-8")
    return frozenset(line for line in text.splitlines() if not line.startswith("#"))


PLACES = _lines("places.txt")
_GIVEN_NAMES = _lines("given_names.txt")
PLAIN_NAMES = _GIVEN_NAMES - PLACES
"""Given names that are neither English words nor those of places."""
_SOFTWARE_NAMES = _lines("software.txt")
SOFTWARE = frozenset(name.casefold() for name in _SOFTWARE_NAMES)
SOFTWARE_WITH_SIGNS = frozenset(n for n in _SOFTWARE_NAMES if re.fullmatch(r"[\w.+#/-]*[.+#/-][\w.+#/-]*", n))
"""Names of software of one word with a character that isn't a letter or digit: "C#", "Node.js"."""
_PRODUCTS = SOFTWARE | {name.casefold() for name in _lines("brands.txt")}
_COMMON_WORDS = _lines("common_words.txt")
SMALL_PLACES = frozenset(p.lower() for p in PLACES if re.fullmatch(r"[A-Za-z ]{4,}", p)) - _COMMON_WORDS
"""Names of places in lower case that are no words."""
_NAMES = _GIVEN_NAMES | {name.title() for name in words.COMMON_NAMES}
_IN = frozenset("in to from near around through across outside into toward towards".split())
_AT = _IN | {"at", "of", "for"}
_CONJUNCTIONS = frozenset("and & for with to vs versus".split())
_VISITING = frozenset("visit leave reach tour explore".split())
_JOINING = frozenset("join leave quit contact sue found start".split())
_ADDRESSING = frozenset(
    "ask call tell meet marry love miss see visit thank know date email text phone invite hire hug kiss help".split()
)
_USING = frozenset("use install run download upgrade configure update compile reinstall uninstall launch".split())
_TAKING = frozenset("take prescribe inject swallow".split())
_TITLES = frozenset("mr mrs ms miss misses mister dr prof sir aunt auntie uncle".split())
_OFFICES = frozenset("doctor professor president captain".split())
_ACRONYM = re.compile(r"[A-Z][A-Za-z]{0,4}[A-Z]")
_BUILDINGS = frozenset("airport amphitheater amphitheatre arena bridge boulevard stadium station terminal".split())
_HOUSES = frozenset("apartments bank bar cafe café church club hostel hotel inn pub restaurant school theatre".split())
_PRODUCT_NOUNS = frozenset(
    "preferences settings system cable card component components behavior driver drivers manager editor browser "
    "server desktop api sdk app plugin extension framework protocol toolkit engine package kernel terminal console "
    "client tool tools version release edition proposal syntax script phone laptop printer drive player machine".split()
)
"""Last words of names of products: "Sound Preferences"."""
_PEOPLES = frozenset({"NORP", "LANGUAGE", "LAW"})
_ORGANIZATION_NOUNS = frozenset(
    "academy agency army association authority bank board center centre church clinic club college commission "
    "committee company council court department division faculty foundation government group hospital inc institute "
    "labs laboratory league ministry market museum nations navy office party police school society stores studios "
    "team union university ventures".split()
)
_PLACE_NOUNS = frozenset(
    "bay beach building canyon city coast county district falls forest garden harbor harbour hill hotel island islands "
    "lake mount mountain mountains ocean palace park peninsula river sea springs theater theatre tower town valley "
    "village north south east west central northern southern eastern western great africa america asia europe".split()
) | (words.STREETS | _BUILDINGS)
_KINDS_OF_THINGS = _ORGANIZATION_NOUNS | _PLACE_NOUNS | _PRODUCT_NOUNS
_REGIONS = frozenset(place.replace("_", " ") for place in words.COUNTRIES | words.PROVINCES if len(place) > 3)
_EVENT_NOUNS = frozenset(
    "bowl championship conference cup day days exhibition expo fair festival game games holiday holidays marathon "
    "night olympics parade prize race season show summit tour tournament vs war week year".split()
)
_REGION = re.compile(r"(?:[A-Z]\.)+[A-Z]?|(?:North|South|Mid)?-?(?:[Ee]ast|[Ww]est)|North|South")
"""An abbreviation with dots, or a quarter of the compass."""
_STATES = frozenset(
    "AL AK AZ AR CA CO CT DC DE EU FL GA HI IA ID IL IN KS KY LA MA MD ME MI MN MO MS MT NC ND NE NH NJ NM NV NY NYC "
    "NZ OH OK OR PA RI SC SD SF TN TX UAE UK US USA USSR UT VA VT WA WI WV WY".split()
)
_VERSION = re.compile(r"(?<!\s)\s{1,9}v?\d[\d.]{0,8}$")
_TICKET = re.compile(r"[A-Z]{2,10}-\d{2,9}")
_CAMEL_CASE = re.compile(r"(?!Mac[A-Z]|Fitz[A-Z])[A-Za-z]{0,20}[a-z]{3}[A-Z]")
_HUMP = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")
_DOUBLE_NAME = re.compile(r"([A-Z][a-z]{1,20})([A-Z][a-z]{1,20})")
_CODE = re.compile(
    r"[(){}]|::|^[a-z]{2}-[A-Z]{2}$|^(?:Pre|Post|Non)-|"
    r"^[a-z]{2,20}[A-Z]|^[a-z]{1,20}\d|\w\.[A-Z]|\.[a-z]{1,20}[A-Z]|[a-z]\.[a-z]{2,20}\.[a-z]"
)
"""Punctuation or capitals of an identifier in code or of a locale, or a prefix."""


def correct_labels(doc: Doc) -> Doc:
    """Replace wrong labels of names in a parse, add given names and software that aren't recognized, and return it."""
    from spacy.util import filter_spans

    for token in doc:
        if token.norm_ == KNOWN_NAME and token.pos_ in ("NOUN", "ADJ", "VERB"):
            token.pos_, token.tag_ = "PROPN", "NNP"
    labels = {part: _label(part) for ent in doc.ents for part in _parts(_with_family_name(ent))}
    missed = (t for t in doc if t.norm_ == KNOWN_NAME and not t.ent_type_ and t.pos_ == "PROPN")
    labels |= {_with_family_name(name): "PERSON" for name in (doc[t.i : t.i + 1] for t in missed)}
    labels |= {doc[t.i : t.i + 1]: "PRODUCT" for t in doc if not t.ent_type_ and t.text in SOFTWARE_WITH_SIGNS}
    if tuple(labels.items()) != tuple((ent, ent.label_) for ent in doc.ents):
        spans = (doc.char_span(ent.start_char, ent.end_char, label) for ent, label in labels.items())
        doc.ents = filter_spans(span for span in spans if span is not None)  # "Anna Peter" overlaps "Peter"
    return doc


def _with_family_name(name: Span) -> Span:
    """Return a given name with the family name after it, if that isn't recognized."""
    after = name.doc[name.end : name.end + 1]
    if (
        name.label_ not in ("PERSON", "")
        or len(name) > 1
        or name.text not in _NAMES
        or not after
        or after[0].is_sent_start
    ):
        return name
    last = after[0]
    if last.ent_type_ or last.tag_ != "NNP" or not last.text.istitle() or last.lower_ in _COMMON_WORDS | words.CALENDAR:
        return name
    return name.doc.char_span(name.start_char, last.idx + len(last), label="PERSON") or name


def _parts(name: Span) -> Iterator[Span]:
    """Yield the names in what is recognized as one: "Coinbase and Airbnb", if they are known."""
    joint = next((t for t in name[1:-1] if t.lower_ in _CONJUNCTIONS), None)
    if joint is None or name.label_ not in words.ENTITY_TYPES or name.text.casefold() in _PRODUCTS:
        yield name
        return
    parts = name.doc[name.start : joint.i], name.doc[joint.i + 1 : name.end]
    known = [part.text.casefold() in _PRODUCTS or part.text in PLACES for part in parts]
    if all(known) or (any(known) and joint.lower_ in ("and", "&") and all(part.text[0].isupper() for part in parts)):
        spans = (name.doc.char_span(part.start_char, part.end_char, label=name.label_) for part in parts)
        yield from (span for span in spans if span is not None)
    else:
        yield name


def is_word(name: str) -> bool:
    """Return whether a name is only an English word with a capital: "Customer"."""
    word = name.lower()
    if word in _PRODUCTS or word in words.TECHNOLOGIES or name in _NAMES:
        return False
    return not _COMMON_WORDS.isdisjoint(_uninflected(word))


def _uninflected(word: str) -> Iterator[str]:
    """Yield a word and what it may be an inflected form of: "ordered" and "order", "closing" and "close"."""
    yield word
    for ending in ("s", "es", "ed", "ing", "ly"):
        stem = word.removesuffix(ending)
        if len(stem) > 2 and stem != word:
            yield from (stem, f"{stem}e") if ending in ("ed", "ing") else (stem,)


def is_code(name: str) -> bool:
    """Return whether a name is an identifier in code, or consists of single letters: "isArray", "K and S"."""
    letters = all(len(part) == 1 for part in name.split(" and "))
    return letters or (name.lower() not in _PRODUCTS and _CODE.search(name) is not None)


def is_identifier(word: str) -> bool:
    """Return whether a word is joined from English words, and no known product: "FileInfo", not "PowerPoint"."""
    parts = _HUMP.findall(word)
    said = [part for part in parts if not part.isupper()]
    known = {word.lower(), " ".join(parts).lower()} & _PRODUCTS
    return len(said) > 1 and not known and all(map(is_word, said))


def _label(name: Span) -> str:
    label, root = name.label_, name.root
    head, in_list = _head(root), name.text in PLACES
    if label not in words.ENTITY_TYPES:
        return label
    if in_list and name.text not in _NAMES:
        return "GPE" if label not in (*words.PLACES, *_PEOPLES) and head in _IN else label
    if product := _label_of_product(name, head):
        return product
    if label in _PEOPLES:
        return label
    if len(name) > 1:
        return _label_of_several(name, head)
    if root.lower_ in words.KIN or (not root.is_alpha and label not in ("PERSON", "ORG", *words.PLACES)):
        return label
    is_given = root.text in _NAMES or root.norm_ == KNOWN_NAME or _is_double_name(root.text)
    if label != "PERSON" and is_given and not in_list:
        other = head in _AT or _specifies(root) or _is_definite(name) or _is_within(name)
        return label if other and label != "PRODUCT" else "PERSON"
    if label in ("PERSON", "ORG", *words.PLACES) and not is_given and not in_list:
        if head in _USING:
            return "PRODUCT"
        if head in _TAKING and not any(c.dep_ == "prep" and c.i > root.i for c in root.head.children):
            return THING
    if label in ("PERSON", "ORG") and _is_introduced(root):
        return "PERSON"
    if label in words.PLACES:
        return label if in_list or _is_place(name, head) else THING
    if label == "ORG":
        return label if _is_organization(name, head) else THING
    if label == "PERSON" and root.dep_ != "appos":
        return label if is_given or _acts(root) or head in _ADDRESSING | {"with"} else THING
    return label


def is_supported(name: Span, label: str) -> bool:
    """Return whether a list, its words or the sentence support the label of a name that is only mentioned."""
    if name[-1].tag_ == "POS":
        name = name[:-1]
    key, head, words_ = name.text.casefold().removeprefix("the "), _head(name.root), [t.lower_ for t in name]
    if label == "PERSON":
        return _is_of_person(name, head)
    if label == "ORG":
        return (
            key in _PRODUCTS
            or words_[0] in _PRODUCTS
            or head in _JOINING | {"at"}
            or is_legal_form(name[-1])
            or not words.ORGANIZATIONS.isdisjoint(words_)
            or not _ORGANIZATION_NOUNS.isdisjoint(words_)
        )
    if label in words.PLACES:
        listed = name.text in PLACES | _STATES or not _REGIONS.isdisjoint((key, words_[-1]))
        placed = head in _IN and _is_proper(name) and not all(is_plain(t) for t in name)
        return listed or placed or head in _VISITING or _is_within(name) or not _PLACE_NOUNS.isdisjoint(words_)
    if label == "PRODUCT":
        known = key.endswith(".js") or {key, _VERSION.sub("", key), words_[0]} & (SOFTWARE | words.TECHNOLOGIES)
        camel = _is_camel_case(name[0], label)
        return bool(known) or camel or words_[-1] in _PRODUCT_NOUNS or head in _USING
    return label != "EVENT" or len(name) == 1 or not _EVENT_NOUNS.isdisjoint(words_)


def is_full_name(name: Span) -> bool:
    """Return whether a name is a given name and a family name that isn't a word: "Suzy Davies", not "Cole Harbour"."""
    last = name[-1]
    family = last.text.istitle() and not is_plain(last) and last.lower_ not in _KINDS_OF_THINGS
    return len(name) == 2 and name[0].text in PLAIN_NAMES and family


def is_legal_form(token: Token) -> bool:
    """Return whether a word is the legal form of a firm: "Ltd.", not "as"."""
    return token.lower_.strip(".") in words.LEGAL_FORMS and not token.is_lower


def _is_of_person(name: Span, head: str) -> bool:
    """Return whether a list, its words or the sentence support that a name is one of a person."""
    first, last = name[0], name[-1]
    before = name.doc[name.start - 1].lower_ if name.start else ""
    if {before.strip("."), first.lower_.strip(".")} & (_TITLES | _OFFICES):
        return True
    if len(name) > 1:
        plain = is_plain(first) or is_plain(last) or not _PRODUCTS.isdisjoint((first.lower_, last.lower_))
        plain = plain or (first.is_upper and len(first) > 2)  # "ETH Zurich"
        return (first.text in _NAMES or not plain) and _is_proper(name) and last.lower_ not in _KINDS_OF_THINGS
    speaks = first.dep_ == "nsubj" and first.head.lemma_ in words.REPORTING | words.LIKING
    given = name.text in _NAMES or first.norm_ == KNOWN_NAME or _is_double_name(name.text)
    return given or speaks or _is_introduced(first) or head in _ADDRESSING


def _is_proper(name: Span) -> bool:
    """Return whether the words of a name, but for "of" and the like, are written as those of persons and places."""
    return all(t.text.istitle() or t.is_punct or (t.is_alpha and len(t) < 4) for t in name)


def _label_of_product(name: Span, head: str) -> str:
    """Return the label of a known product or firm, or of what is written like a product; "" of another name."""
    key = name.text.casefold().removeprefix("the ").removesuffix(".com")
    if name.label_ == "LANGUAGE":
        return ""
    if key in SOFTWARE or key.endswith(".js") or _VERSION.sub("", key) in SOFTWARE:
        return "PRODUCT"
    if key in _PRODUCTS:
        return name.label_ if name.label_ in ("ORG", "PRODUCT") else "ORG"
    is_firm = name.label_ == "ORG" and (head in _JOINING | {"at", "by"} or name.root.dep_ == "appos")
    if len(name) > 1 or is_firm or name.label_ not in ("PERSON", "ORG", *words.PLACES):
        return ""
    if name[0].is_sent_start and name.doc[name.end : name.end + 1].text in (",", ":"):
        return ""  # a nick that is addressed
    if _TICKET.fullmatch(name.text):
        return THING
    mixed = any(c.isdigit() for c in name.text) and any(c.isalpha() for c in name.text)
    return "PRODUCT" if mixed or _is_camel_case(name[0], name.label_) or _CODE.search(name.text) else ""


def _is_camel_case(word: Token, label: str) -> bool:
    """Return whether a word has a capital inside as products do: "TypeScript", not "MaryAnn"."""
    double = _DOUBLE_NAME.fullmatch(word.text)
    if _is_double_name(word.text) or (label == "PERSON" and double is not None and double[1] in _NAMES):
        return False
    return _CAMEL_CASE.match(word.text) is not None


def _is_double_name(word: str) -> bool:
    """Return whether a word consists of two given names: "JeanPaul"."""
    double = _DOUBLE_NAME.fullmatch(word)
    return double is not None and _NAMES.issuperset(double.groups())


def _is_place(name: Span, head: str) -> bool:
    """Return whether a sentence or its form supports that a name is one of a place."""
    root = name.root
    if name.text.isupper() and len(name.text) < 5:
        return name.text in _STATES
    if head in _AT | _VISITING or root.dep_ == "appos" or _specifies(root) or _is_definite(name) or _is_within(name):
        return True
    alone = len([t for t in root.sent if not t.is_punct]) == 1
    return alone or _REGION.fullmatch(name.text) is not None


def _is_organization(name: Span, head: str) -> bool:
    """Return whether a name is one of an organization; doubtful are abbreviations and the first word of a sentence."""
    root = name.root
    if root.lower_ in words.ORGANIZATIONS or head in _JOINING | {"at", "by", "with"}:
        return True
    if _ACRONYM.fullmatch(name.text):
        return False
    return root.dep_ == "appos" or _acts(root) or _is_definite(name) or _specifies(root)


def _label_of_several(name: Span, head: str) -> str:
    """Return the label of a name of several words."""
    first, last = name[0].text, name[-1].lower_
    if any(t.lower_ in ("vs", "vs.") for t in name):
        return "EVENT"
    if name.label_ not in ("PERSON", "ORG", "PRODUCT", "EVENT", *words.PLACES):
        return name.label_
    if last in _ORGANIZATION_NOUNS and name.label_ not in words.PLACES:
        return "ORG"
    if any(t.lower_ in words.TECHNOLOGIES or _is_camel_case(t, name.label_) for t in name) or _is_software(name):
        return "PRODUCT"
    if last[0].isdigit() and name.label_ in ("PERSON", "ORG", *words.PLACES):
        return "PRODUCT"
    if last in words.STREETS | _BUILDINGS:
        return "FAC"
    is_person = name.label_ == "PERSON" and first in _NAMES and head not in _USING  # "Mark Driver"
    if last in _PRODUCT_NOUNS and name.label_ != "PRODUCT" and not is_person and head not in _JOINING | {"at", "by"}:
        return "PRODUCT"
    supported = head in _JOINING | {"at", "by", "with", "from"} or name.root.dep_ == "appos" or _acts(name.root)
    if is_full_name(name) and (name.label_ in words.PLACES or (name.label_ == "ORG" and not supported)):
        return "PERSON"
    if name.label_ == "ORG" and not (supported or _is_definite(name)) and all(is_plain(t) for t in name):
        return THING
    if last in _HOUSES and name.label_ == "PERSON":
        return "ORG"
    is_titled = first.istitle() and first.lower().strip(".") in _TITLES and name[-1].tag_ != "NN"
    if name.label_ == "PERSON" and not is_titled and first not in _NAMES and is_plain(name[-1]):
        return THING
    return "PERSON" if is_titled else name.label_


def _is_software(name: Span) -> bool:
    """Return whether a name begins with that of a product and continues with words: "Stripe Connect"."""
    known = _PRODUCTS if all(is_plain(t) for t in name[1:]) else SOFTWARE
    return name.label_ not in ("ORG", *words.PLACES) and name[0].lower_ in known


def is_plain(token: Token) -> bool:
    """Return whether a token is an English word and no given name."""
    return token.text not in _NAMES and not _COMMON_WORDS.isdisjoint({token.lower_, token.lower_.removesuffix("s")})


def _head(token: Token) -> str:
    """Return the preposition, or the lemma of the verb, that has a noun or what it is joined to as object; else ""."""
    while token.dep_ == "conj" and token.head != token:
        token = token.head
    if token.dep_ == "pobj":
        return token.head.lower_
    return token.head.lemma_.lower() if token.dep_ == "dobj" else ""


def _specifies(token: Token) -> bool:
    """Return whether a name only specifies the noun after it: "Stanford students"."""
    return token.dep_ in ("compound", "nmod", "amod") and token.head.i > token.i


def _is_within(name: Span) -> bool:
    """Return whether a place follows in which a named one lies: "Laurel, Maryland"."""
    after = name.doc[name.end : name.end + 2]
    return len(after) == 2 and after[0].text == "," and after[1].ent_type_ in words.PLACES


def _is_definite(name: Span) -> bool:
    return name[0].lower_ == "the" or (name.start > 0 and name.doc[name.start - 1].lower_ == "the")


def _is_introduced(token: Token) -> bool:
    """Return whether somebody is said to be called by a word: "I'm Ujjwal", not "I'm a Tory"."""
    subjects = (c for c in token.head.children if c.dep_ == "nsubj")
    return token.dep_ == "attr" and not token.n_lefts and any(t.lower_ in ("i", "he", "she") for t in subjects)


def _acts(token: Token) -> bool:
    """Return whether a name is used as that of a person: as an agent, an owner or an addressee, or after a title."""
    doc = token.doc
    if token.i > 0 and doc[token.i - 1].lower_.strip(".") in _TITLES | _OFFICES:
        return True
    if token.i + 1 < len(doc) and doc[token.i + 1].tag_ == "POS":
        return True
    if token.dep_ in ("attr", "acomp"):  # "our designer is Marieke"
        subjects = (c for c in token.head.children if c.dep_ == "nsubj")
        return any(c.dep_ == "poss" for subject in subjects for c in subject.children)
    acts = token.dep_ in ("nsubj", "nsubjpass") and token.head.pos_ == "VERB"
    return acts or token.dep_ in ("npadvmod", "intj", "vocative")
