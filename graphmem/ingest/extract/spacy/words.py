"""Word tables of the spaCy extractor, read from words.toml; the comments there say what each list is for."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from importlib.resources import files
from typing import Any

from graphmem.text.kin import KIN as KIN
from graphmem.text.kin import KIN_PREFIXES as KIN_PREFIXES
from graphmem.text.kin import PLAIN_KIN as PLAIN_KIN
from graphmem.text.kin import has as has

_FILE = files("graphmem.ingest.extract.spacy").joinpath("words.toml")
_TABLES: Mapping[str, Any] = tomllib.loads(_FILE.read_text(encoding="utf-8"))


def _words(name: str) -> frozenset[str]:
    return frozenset(_TABLES["words"][name].split())


def _lists(name: str) -> dict[str, tuple[str, ...]]:
    return {key: tuple(text.split()) for key, text in _TABLES[name].items()}


ENTITY_TYPES: Mapping[str, str] = {
    "PERSON": "person",
    "ORG": "organization",
    "GPE": "location",
    "LOC": "location",
    "FAC": "location",
    "EVENT": "event",
    "PRODUCT": "technology",
    "LANGUAGE": "language",
    "WORK_OF_ART": "concept",
    "LAW": "concept",
    "NORP": "concept",
    "THING": "concept",
}
"""spaCy label (OntoNotes 5, and THING of labels.py) → entity type. Dates, amounts and ordinals aren't entities."""

PLACES = frozenset({"GPE", "LOC", "FAC"})
AMOUNTS = frozenset({"MONEY", "QUANTITY", "PERCENT"})
QUANTITIES = AMOUNTS | {"DATE", "TIME", "CARDINAL", "ORDINAL"}

FIRST_PERSON = _words("first_person")
SECOND_PERSON = _words("second_person")
THIRD_PERSON: Mapping[str, str] = {word: gender for gender, words in _lists("third_person").items() for word in words}
POSSESSIVES = _words("possessives")
BEFORE_RELATIVES = _words("before_relatives")
CALENDAR = _words("calendar")
MONTHS = _words("months")
OWNED = _words("owned")
BORN = _words("born")
APPOINTMENTS = _words("appointments")
DUTIES = _words("duties")
DEGREES = _words("degrees")
SKILLS = _words("skills")
ACTIVITIES = _words("activities")
POSSESSIONS = _words("possessions")
EXPIRING = _words("expiring")
FOODS = _words("foods")
INSTITUTIONS = _words("institutions")
SOUGHT = _words("sought")
BEFALLEN = frozenset(_TABLES["befallen"]["participles"])
SHIFTS = _words("shifts")
BARE_KIN = _words("bare_kin")
DISMISSED = _words("dismissed") | {"laid off", "made redundant"}
_GROUPS = _lists("groups")
TOLD: Mapping[str, frozenset[str]] = {
    verb: frozenset(noun for group in groups for noun in _GROUPS[group]) for verb, groups in _lists("told").items()
}
VISITS = _words("visits")
STAYS = _words("stays")
SCHOOLS = _words("schools")
CARES = _words("cares")
PARTICIPLES: Mapping[str, str] = _TABLES["participles"]
VICES: Mapping[str, str] = _TABLES["vices"]
OWING: Mapping[str, str] = _TABLES["owing"]
EXERCISES: Mapping[str, str] = _TABLES["exercises"]
DONE = _words("done")
DID = _words("did")
HAS_DONE = _words("has_done")
IS_DOING = _words("is_doing")
SAID_OF_ONESELF: list[str] = _TABLES["omitted"]["said_of_oneself"]
DWELLINGS = _words("dwellings")
MEDICINE_ENDINGS = tuple(_words("medicine_endings"))
MEDICINES = _words("medicines")
MEATS = _words("meats")
DIETS = _words("diets")
FULFILLING = _words("fulfilling")
BELONGINGS = _words("belongings")
ILLNESSES = _words("illnesses")
PETS = _words("pets")
PET_RELATIONS: tuple[str, ...] = tuple(f"has_{pet}" for pet in sorted(PETS))
RELATIONAL = frozenset(KIN) | PETS
OWN_KIN = RELATIONAL - _words("at_work") - _words("temporary") - _words("several") | {"baby", "child", "friend", "kid"}
"""Relatives and pets that are rather of a person than of a firm."""
PARTNERS = _words("partners")
SPOUSES = _words("spouses")
IN_LIFE = _words("in_life")
PARTNER_OF: Mapping[str, str] = {
    **dict.fromkeys(SPOUSES, "married_to"),
    **dict.fromkeys(PARTNERS, "has_partner"),
}
TEMPORARY = _words("temporary")
MUTUAL = _words("mutual")
AT_WORK = _words("at_work")
LEAVABLE = _words("leavable")
SEVERAL = _words("several")
UNNAMED = _words("unnamed")
VAGUE = _words("vague")
NEVER_HEADS = _words("never_heads")
MEASURES = _words("measures")
EVALUATIVE = _words("evaluative")
UNTELLING_KIN = _words("untelling_kin")
GENERIC = _words("generic")
EMPTY_VERBS = _words("empty_verbs")
ANNOUNCEMENTS = _words("announcements")
ANNOUNCING_VERBS = _words("announcing_verbs")
TELLING = _words("telling")
HABITS = _words("habits")
DOING = _words("doing")
NEVER_VERBS = _words("never_verbs")
MOMENTARY = _words("momentary")
LIFE_PLANS = _words("life_plans")
TRANSITIVE = _words("transitive")
WITHOUT_OBJECT = frozenset({"work", "live"})
COUNTRIES = _words("countries")
PROVINCES = _words("provinces")
STATES = _words("states")
STRONG_STATES = _words("strong_states")
NEGATABLE = _words("negatable")
LIKING = _words("liking")
FACTUAL = TELLING | HABITS | DOING | STATES | LIKING | {"be"}
"""Verbs of facts about named ends."""
POSITIVE = _words("positive")
TRANSPARENT = _words("transparent")
STOPPING = _words("stopping")
INTENTIONS: Mapping[str, str] = _TABLES["intentions"]
REPORTING = _words("reporting")
HEARSAY = _words("hearsay")
BELIEVING = _words("believing")
SAME_PAST = _words("same_past")
HABITUAL = _words("habitual")
ENDS: Mapping[str, tuple[str, ...]] = _lists("ends")
ENDING_ANY = _words("ending_any")
DEFINITE = _words("definite")
IMAGINING = _words("imagining")
CHARACTERS = _words("characters")
FICTIONAL = _words("fictional")
JESTS = _words("jests")
FICTIONS = _words("fictions")
UNREAL_MODALS = _words("unreal_modals")
UNREAL_MARKS = _words("unreal_marks")
FUTURE_MARKS = _words("future_marks")
LASTING = _words("lasting")
UNSURE = _words("unsure")
NEGATORS = _words("negators")
CONCEPT_AFTER: Mapping[str, frozenset[str]] = {key: frozenset(verbs) for key, verbs in _lists("concept_after").items()}
PREPOSITIONS = frozenset(CONCEPT_AFTER) | _words("prepositions")
ADJECTIVE_RELATIONS = _words("adjective_relations")
PERSONAL = _words("personal")
TIMES_OF_DAY = _words("times_of_day")
JOBS = _words("jobs")
JOBLESS_VERBS = _words("jobless_verbs")
GETS = _words("gets")
GETTING = _words("getting")
HIRING = _words("hiring")
BOOKING = _words("booking")
ONE_AT_A_TIME: tuple[tuple[str, ...], ...] = tuple(
    tuple(f"has_{noun}" for noun in text.split()) for text in _TABLES["one_at_a_time"].values()
)
REMAINING = _words("remaining")
NO_GIVEN_NAMES = _words("no_given_names")
LIVED_IN = _words("lived_in")
ACRONYMS = _words("acronyms")
COMMON_NAMES = _words("common_names")
ORGANIZATIONS = _words("organizations")
LEAVES = _words("leaves")
PASSING = _words("passing")
LEGAL_FORMS = _words("legal_forms")
TECHNOLOGIES = _words("technologies")
NO_TOWNS = _words("no_towns") | TECHNOLOGIES
MOVING = _words("moving")
EMPLOYERS = _words("employers")
SWITCHING = _words("switching")
SHIFTING = _words("shifting")
DROPPING = _words("dropping")
PLANNED: tuple[str, ...] = tuple(_TABLES["words"]["planned"].split())
PLANNED_EVENTS: tuple[str, ...] = tuple(_TABLES["words"]["planned_events"].split())
CHANGING = _words("changing")
CURRENCIES = _words("currencies")
GROUPS = _words("groups")
UNIQUE_OFFICES = _words("unique_offices")
OCCUPATIONS = _words("occupations")
OCCUPATION_ENDINGS: tuple[str, ...] = tuple(_TABLES["words"]["occupation_endings"].split())
NO_OCCUPATIONS = _words("no_occupations")
STATUSES = _words("statuses")
PROJECT_STATUSES = _words("project_statuses")
PLAIN_ADJECTIVES = _words("plain_adjectives")
WORKPLACES = _words("workplaces")
STREETS = _words("streets")
ROLES_OF = _words("roles_of")
OFFICES = _words("offices")
MANAGEABLE = _words("manageable")
NO_PLACE = _words("no_place")
LED = _words("led")
CREATING = _words("creating")
CREATED = _words("created")
OCCASIONS = _words("occasions")
IRREGULAR_PAST: Mapping[str, str] = _TABLES["past"]
ANSWERED: Mapping[str, str] = _TABLES["answered"]
AMERICAN: Mapping[str, str] = _TABLES["american"]
SPELLED: Mapping[str, str] = _TABLES["spelled"]
GREETINGS: list[str] = _TABLES["openings"]["greetings"]


def relation_to(noun: str) -> str:
    """Return the relation for a relational noun: "married_to" for "husband", "has_boss" for "boss"."""
    return PARTNER_OF.get(noun, has(noun))


def favorite(noun: str) -> str:
    """Return the relation of a favorite, in one spelling: "favorite_color" for "colour"."""
    return "_".join(["favorite", *(AMERICAN.get(word, word) for word in noun.lower().split())])


def third_person(lemma: str) -> str:
    """Return the third person singular of a verb: "goes" for "go"."""
    if lemma in ("be", "have", "do", "go"):
        return {"be": "is", "have": "has", "do": "does", "go": "goes"}[lemma]
    if lemma.endswith(("s", "x", "z", "ch", "sh", "o")):
        return f"{lemma}es"
    if lemma.endswith("y") and lemma[-2:-1] not in "aeiou":
        return f"{lemma[:-1]}ies"
    return f"{lemma}s"


def past(lemma: str, text: str, tag: str) -> str:
    """Return the simple past of a verb, given a form of it and the tag of that form."""
    if lemma in IRREGULAR_PAST:
        return IRREGULAR_PAST[lemma]
    if tag in ("VBD", "VBN") and text.isalpha():
        return text.lower()
    if lemma.endswith("e"):
        return f"{lemma}d"
    return f"{lemma[:-1]}ied" if lemma.endswith("y") and lemma[-2:-1] not in "aeiou" else f"{lemma}ed"
