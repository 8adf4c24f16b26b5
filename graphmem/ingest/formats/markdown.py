"""Markdown notes, such as those of Obsidian: properties (front matter), wikilinks and tags."""

from __future__ import annotations

import mimetypes
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import chain, islice
from pathlib import PurePosixPath

from graphmem.models import Scalar
from graphmem.models.metadata import SOURCE_PATH, UNDATED

Lines = Iterator[tuple[int, str]]
Property = Scalar | tuple[str, ...]
"""A value of the front matter, or its list of texts."""

_FRONT_MATTER_LINES = 100
_PROPERTY = re.compile(r"([^\s:#'\"\[\]{},-][^:\n]{0,80}):(?:\s+(\S.*)|\s*)$")
_ITEM = re.compile(r"-\s+(\S.*)$")
_NUMBER = re.compile(r"[-+]?\d{1,15}(?:\.\d{1,15})?")
_DATE = re.compile(r"[\[\s]{0,4}(\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:\.\d{1,6})?)?(?:Z| ?[+-]\d\d:?\d\d)?)?)")
_DATES = ("date", "created", "created_at", "created at", "date created", "creation_date", "published")
"""Properties that date a note, the first of them that has a date."""
_OWN = frozenset({"file", "line", SOURCE_PATH, UNDATED})
_MAX_VALUES = 100  # of a list that are keys of their own
_MAX_LISTED = 1000  # tags or links in the metadata of a passage
_MARKUP = re.compile(
    r"```.*?(?:```|\Z)|~~~.*?(?:~~~|\Z)|`[^`\n]*`"
    r"|(?P<embed>!?)\[\[(?P<target>[^\s\[\]|#^][^\[\]|#^\n]{0,250}|(?=#))(?P<at>[#^][^\[\]|\n]{0,250})?"
    r"(?:\|(?P<shown>[^\[\]\n]{0,250}))?\]\](?!\()"
    r"|(?<!\S)#(?P<tag>[\w/-]{1,100})(?![\w/#-])",
    re.DOTALL,
)


@dataclass(slots=True)
class Note:
    """Title, date, properties and tags of a note.

    Attributes
    ----------
    title
        Its property `title`.
    dated
        The date, or the time in ISO 8601, of a property such as `date` or `created`.
    properties
        Its other properties.
    tags
        The tags of its properties and its text, in order, without their sign.
    """

    title: str | None = None
    dated: str | None = None
    properties: dict[str, Property] = field(default_factory=dict[str, Property])
    tags: dict[str, None] = field(default_factory=dict[str, None])

    @property
    def text(self) -> str:
        """Its properties as lines, for a note that has nothing else."""
        values = self.properties.items()
        return "\n".join(f"{name}: {', '.join(value) if isinstance(value, tuple) else value}" for name, value in values)

    def metadata(self, links: Iterable[str]) -> dict[str, Scalar]:
        """Return the properties, tags and links as metadata.

        A list is one text ("a, b"), and each of its values is a key that is true ("tags.a"), so that filters can ask
        for it: of the first 1,000 tags and links, and of the first 100 values. A tag "a/b" is also a tag "a".
        """
        found: dict[str, Scalar] = {}
        lists = {"tags": tuple(islice(self.tags, _MAX_LISTED)), "links": tuple(islice(links, _MAX_LISTED))}
        for name, value in {**self.properties, **lists}.items():
            if not isinstance(value, tuple):
                found[name] = value
            elif value:
                found[name] = ", ".join(value)
                for one in value[:_MAX_VALUES]:
                    parts = one.split("/") if name == "tags" else [one]
                    found |= {f"{name}.{'/'.join(parts[:end])}": True for end in range(1, len(parts) + 1)}
        return found


def read_front_matter(lines: Lines) -> tuple[Note, Lines]:
    """Read YAML front matter between ``---`` lines; return the note and the remaining lines.

    Read are properties with a single value or a list of these, as programs for notes write them; others are skipped.
    """
    head: list[tuple[int, str]] = []
    for number, line in lines:
        head.append((number, line))
        text = line.strip()
        if len(head) == 1 and text != "---":
            break
        if len(head) > 1 and text in ("---", "..."):
            return _note(_properties([line.rstrip() for _, line in head[1:-1]])), lines
        if len(head) == _FRONT_MATTER_LINES:
            break
    return Note(), chain(head, lines)


def _note(properties: dict[str, Property]) -> Note:
    note = Note()
    names = {name.lower(): name for name in properties}
    for name in filter(names.__contains__, _DATES):
        value = properties[names[name]]
        found = _DATE.match(str(value[0] if isinstance(value, tuple) else value))
        note.dated = note.dated or (found and found[1])
    for name, value in properties.items():
        kind = name.lower()
        if kind == "title" and not isinstance(value, tuple):
            note.title = str(value) or None
        elif kind in ("tags", "tag"):
            words = value if isinstance(value, tuple) else re.split(r"[,\s]+", str(value))
            note.tags |= {word.lstrip("#"): None for word in words if word.strip("#")}
        elif kind not in _OWN:
            note.properties["aliases" if kind == "alias" else name] = value
    return note


def _properties(lines: list[str]) -> dict[str, Property]:
    """Return the properties of the lines of front matter by their names."""
    found: dict[str, Property] = {}
    name, items = "", list[str]()
    for line in (*lines, "end:"):
        if name and (item := _ITEM.match(line.lstrip())):
            items.append(_text(item[1]))
            continue
        if items:
            found[name] = tuple(items)
        name, items = "", []
        if begin := _PROPERTY.match(line):
            name, value = begin[1].strip(), begin[2] or ""
            if value.startswith("[") and not value.startswith("[["):
                items = [_text(each) for each in re.findall(r"\"[^\"]*\"|'[^']*'|[^,\s\[\]][^,\[\]]*", value)]
            elif value and value[0] not in "{|>&*!":
                found[name] = _scalar(value)
    return found


def _text(value: str) -> str:
    """Return a value without quotes, or without the comment behind it."""
    value = value.strip()
    if len(value) > 1 and value[0] in "\"'" and value.endswith(value[0]):
        return value[1:-1].strip()
    return value.partition(" #")[0].strip()


def _scalar(value: str) -> Scalar:
    text = _text(value)
    if value[0] not in "\"'":
        if text.lower() in ("true", "false"):
            return text.lower() == "true"
        if _NUMBER.fullmatch(text):
            return float(text) if "." in text else int(text)
    return text


def without_markup(text: str, tags: dict[str, None], links: dict[str, None]) -> str:
    """Return a text with its wikilinks as they are shown; add its tags and the names of linked notes.

    Code is left as it is.

    Parameters
    ----------
    text
        A passage of a note, a heading, or a property.
    tags, links
        Get what is found, in order.
    """

    def shown(match: re.Match[str]) -> str:
        if (tag := match["tag"]) is not None:
            if any(char.isalpha() for char in tag):
                tags[tag.strip("/")] = None
        elif (target := match["target"]) is not None:
            name = PurePosixPath(target.rstrip("\\").strip()).name.removesuffix(".md")
            at = (match["at"] or "").lstrip("#")
            if name and not (match["embed"] and mimetypes.guess_type(name)[0]):
                links[name] = None
            place = "" if at.startswith("^") else at.replace("#", " > ").rstrip("\\")
            return (match["shown"] or " > ".join(filter(None, (name, place)))).strip() or match[0]
        return match[0]

    return _MARKUP.sub(shown, text)


def plain_properties(properties: Mapping[str, Property], links: dict[str, None]) -> dict[str, Property]:
    """Return properties with their wikilinks as they are shown, and add the names of linked notes."""
    plain: dict[str, Property] = {}
    for name, value in properties.items():
        if isinstance(value, tuple):
            plain[name] = tuple(without_markup(one, {}, links) for one in value)
        else:
            plain[name] = without_markup(value, {}, links) if isinstance(value, str) else value
    return plain
