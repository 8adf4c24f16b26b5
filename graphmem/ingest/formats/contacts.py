"""Contacts in vCard 2.1, 3.0 and 4.0, with their ready-made facts."""

from __future__ import annotations

import quopri
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, date, datetime
from typing import Any

from graphmem.errors import InvalidInput
from graphmem.ingest.formats.source import Refused, Report, Source, shown_day
from graphmem.ingest.records import reason_of, to_triple
from graphmem.inputs import Document
from graphmem.models import Scalar

_LINE = re.compile(
    r"(?:[\w-]{1,40}\.)?([A-Za-z][\w-]{0,60}+)((?:;(?:\"[^\"]*\"|[^\";:]){0,200}+){0,20}+):(.*)", re.DOTALL
)
_PARTS = re.compile(r"(?<!\\);")
_ESCAPED = re.compile(r"\\([\\,;:nN])")
_DAY = re.compile(r"(\d{4}|--)-?(\d\d)-?(\d\d)(?!\d)")
_NO_YEAR = "1604"  # of birthdays without a year by Apple


@dataclass(frozen=True, slots=True)
class _Field:
    parameters: str
    parts: tuple[str, ...]

    @property
    def text(self) -> str:
        """The parts that aren't empty."""
        return ", ".join(self.parts)


_Card = Mapping[str, Sequence[_Field]]


def contacts(source: Source, refused: Report) -> Iterator[Document]:
    """Yield the contacts of a file as documents, and add their facts to those of the source."""
    found = False
    for line, card in _cards(source.texts(refused)):
        found = True
        try:
            document = _document(card, source)
        except InvalidInput as error:
            refused(Refused(source.name, line, reason_of(error)))
            continue
        for fact in _facts(card, document):
            with suppress(InvalidInput):  # of a name that is too short, or of a company with its own name
                source.facts.append(to_triple(fact, UTC, source.short_names, set()))
        yield document
    if not found:
        refused(Refused(source.name, 1, "no contact found: expected a line BEGIN:VCARD"))


def _cards(lines: Iterator[tuple[int, str]]) -> Iterator[tuple[int, dict[str, list[_Field]]]]:
    """Yield the number of the first line and the fields of each contact, by their names in upper case."""
    begin, card = 0, dict[str, list[_Field]]()
    for number, line in _unfolded(lines):
        match = _LINE.match(line)
        if match is None:
            continue
        name, parameters, value = match[1].upper(), match[2], match[3].strip()
        if (name, value.upper()) == ("BEGIN", "VCARD"):
            begin, card = number, {}
        elif (name, value.upper()) == ("END", "VCARD"):
            if begin:
                yield begin, card
            begin = 0
        elif value and len(value) <= _MAX_VALUE:
            if "QUOTED-PRINTABLE" in parameters.upper():
                value = quopri.decodestring(value.encode()).decode("utf-8", "replace")
            parts = tuple(_ESCAPED.sub(_unescaped, part).strip() for part in _PARTS.split(value))
            card.setdefault(name, []).append(_Field(parameters.upper(), parts))


_MAX_VALUE = 10_000  # characters: longer are pictures and keys


def _unfolded(lines: Iterator[tuple[int, str]]) -> Iterator[tuple[int, str]]:
    """Yield lines with the lines that continue them: indented ones, in quoted-printable those after a "="."""
    held, begin = "", 0
    for number, raw in lines:
        line = raw.rstrip("\r\n")
        if held.endswith("=") and "QUOTED-PRINTABLE" in held[:200].upper():
            held = held[:-1] + line
        elif line[:1] in (" ", "\t") and held:
            held += line[1:]
        else:
            if held:
                yield begin, held
            held, begin = line, number
    if held:
        yield begin, held


def _unescaped(match: re.Match[str]) -> str:
    return "\n" if match[1] in "nN" else match[1]


def _values(card: _Card, name: str) -> list[str]:
    """Return the different values of a field, the preferred one first, without what a URI of it begins with."""
    fields = sorted(card.get(name, ()), key=lambda field: "PREF" not in field.parameters)
    values = (re.sub(r"^(?:tel|mailto):", "", each.parts[0]) for each in fields)
    return list(dict.fromkeys(value for value in values if value))


def _first(card: _Card, name: str) -> str:
    """Return the preferred value of a field, else its first one, or an empty text."""
    return next(iter(_values(card, name)), "")


def _name(card: _Card) -> str:
    """Return the name of a contact, or else its organization or first address."""
    if name := _first(card, "FN"):
        return name
    family, given, *_ = (*(card["N"][0].parts if "N" in card else ()), "", "")
    found = (f"{given} {family}".strip(), _first(card, "ORG"), _first(card, "NICKNAME"), _first(card, "EMAIL"))
    return next(filter(None, found), "")


def _day_of(text: str) -> str:
    """Return a birthday as it is said, such as 4 May 1988; the text itself if it is no date."""
    if not (match := _DAY.match(text)):
        return text
    has_year = match[1] not in ("--", _NO_YEAR)
    try:
        day = date(int(match[1]) if has_year else 2000, int(match[2]), int(match[3]))
    except ValueError:
        return text
    return shown_day(day) if has_year else shown_day(day).rpartition(" ")[0]


def _document(card: _Card, source: Source) -> Document:
    name, job, employer = _name(card), _first(card, "TITLE") or _first(card, "ROLE"), _first(card, "ORG")
    if not name:
        raise InvalidInput("a contact without a name")
    who = " at ".join(filter(None, (job, employer if employer != name else "")))
    birthday = _day_of(_first(card, "BDAY"))
    places = [", ".join(filter(None, each.parts)) for each in card.get("ADR", ())]
    told = {
        "email": _values(card, "EMAIL"),
        "phone": _values(card, "TEL"),
        "birthday": [birthday] if birthday else [],
        "address": [place.replace("\n", ", ") for place in places],
        "website": [field.parts[0] for field in card.get("URL", ())],
        "nickname": _values(card, "NICKNAME"),
    }
    lines = [f"{name}, {who}." if who else f"{name}."]
    if said := [f"{label} {' and '.join(values)}" for label, values in told.items() if values]:
        contact = ", ".join(said)
        lines.append(f"{contact[0].upper()}{contact[1:]}.")
    lines += [field.text for field in card.get("NOTE", ())]
    text, number = "\n".join(lines), _first(card, "UID")
    groups = [group for field in card.get("CATEGORIES", ()) for group in field.text.split(",")]
    metadata: dict[str, Scalar] = {
        "uid": number,
        "organization": employer,
        "categories": ", ".join(map(str.strip, groups)),
        "file": source.name,
    }
    return Document(
        text=text,
        title=name,
        occurred_at=_revised(_first(card, "REV")) or source.dated(),
        external_id=number or source.id_from(text),
        metadata={key: value for key, value in metadata.items() if value},
    )


def _revised(text: str) -> datetime | None:
    """Return the time of the last change of a contact."""
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        return None
    return at if at.tzinfo is not None else at.replace(tzinfo=UTC)


def _facts(card: _Card, document: Document) -> Iterator[dict[str, Any]]:
    """Yield the facts of a contact as the fields of triples, of several addresses or numbers the first one."""
    employer, name = _first(card, "ORG"), document.title
    is_company = employer == name
    home = next((each for each in card.get("ADR", ()) if "HOME" in each.parameters), None)
    city = home.parts[3] if home is not None and len(home.parts) > 3 else ""
    stated = (
        ("works at", "" if is_company else employer, "organization"),
        ("works as", _first(card, "TITLE"), "concept"),
        ("has email", _first(card, "EMAIL"), "concept"),
        ("has phone number", _first(card, "TEL"), "concept"),
        ("has birthday", _day_of(_first(card, "BDAY")), "concept"),
        ("lives in", city, "location"),
    )
    for relation, value, kind in stated:
        if value:
            yield {
                "subject": name,
                "subject_type": "organization" if is_company else "person",
                "relation": relation,
                "object": value,
                "object_type": kind,
                "source": document.external_id,
            }
