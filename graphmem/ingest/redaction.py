"""Redaction of all stored data (``redact="all"``), applied to inputs before a store or a model receives them."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass, replace
from typing import Any, TypeVar, cast
from urllib.parse import unquote

from graphmem.errors import ExtractionFailed, InvalidInput
from graphmem.inputs import Triple
from graphmem.models import PREMISES, Episode, EpisodeFilter, Model, Scope
from graphmem.protocols import (
    ExtractedEdge,
    ExtractedEnding,
    Extraction,
    ExtractionRequest,
    Extractor,
    ExtractorWrapper,
    Redactor,
)
from graphmem.text import counted
from graphmem.text.normalize import relation_words
from graphmem.text.redact import is_placeholder

T = TypeVar("T")

_KEPT = frozenset("id fact_id scope edge_type entity_type source_type target_type".split())
NO_NAMES = frozenset({"roles", "sources", "since", "until", "metadata"})
"""Fields of an `EpisodeFilter` that aren't names given by a caller."""

_DIGEST_BYTES = 8
_IDS = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}(?: [0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})*")
_LONG_NUMBER = 10**8  # no pattern matches a number with fewer digits


class Redaction:
    """Redaction of inputs, queries, results of extractors, and ids from callers.

    Parameters
    ----------
    redactor
        Finds personal data and secrets.
    key
        Key of the digest that replaces a personal id or speaker. Without a key these raise `InvalidInput`, since a
        placeholder would be the same for all of them, and an unkeyed digest can be guessed.
    """

    def __init__(self, redactor: Redactor, key: str | None = None) -> None:
        self._redactor = redactor
        self._key = hashlib.sha256(key.encode()).digest() if key else None

    def text(self, text: str) -> str:
        """Return a text with personal data replaced."""
        return self._redactor.redact(text, ())

    def name(self, field: str, text: str) -> str:
        """Return an identifier with a digest in place of personal data; equal names give equal results.

        Parameters
        ----------
        field
            Name of the field, for the error message.
        text
            An id or a name; percent-encoding is decoded for the check.

        Raises
        ------
        InvalidInput
            If the text is personal and there is no key.
        """
        plain = unquote(text)
        redacted = self.text(plain)
        if redacted == plain:
            return text
        if self._key is None:
            raise InvalidInput(
                f"{field}: {redacted!r:.80} contains personal data, which redact='all' doesn't store: use "
                f"another {field.rpartition('.')[2]}, or set redact_key to store a keyed digest instead"
            )
        digest = hashlib.blake2b(plain.encode(), key=self._key, digest_size=_DIGEST_BYTES).hexdigest()
        return f"{redacted}-{digest.translate(_LETTERS)}"

    def stored_name(self, text: str) -> str:
        """Return the stored form of a name or id for look-ups; unchanged without a key, since none is stored then."""
        return text if self._key is None else self.name("name", text)

    def require_scope(self, scope: Scope) -> None:
        """Raise if the name of a scope contains personal data; scope names are stored.

        Raises
        ------
        InvalidInput
            If the domain or the project id contains personal data.
        """
        for name in (scope.domain, scope.project_id or ""):
            if (redacted := self.text(name)) != name:
                raise InvalidInput(
                    f"scope: {redacted!r:.80} contains personal data, which redact='all' doesn't store: "
                    "name the scope by an id without personal data"
                )

    def episode(self, episode: Episode) -> Episode:
        """Return the redacted episode: text, title, metadata, and all other fields from a caller."""
        names = {
            name: self.name(f"Turn.{name}", value)
            for name in ("speaker", "session_id", "external_id")
            if (value := getattr(episode, name)) is not None
        }
        metadata = {
            self.text(name): self._json(value, name) if isinstance(value, str) else self._redacted(value, name)
            for name, value in episode.metadata.items()
        }
        return self._model(episode.changed(metadata={}), names).changed(metadata=metadata)

    def stored_filter(self, wanted: EpisodeFilter) -> EpisodeFilter:
        """Return a filter of stored episodes: with the stored forms of its sessions, speakers and metadata."""

        def stored(value: str | Sequence[str]) -> str | tuple[str, ...]:
            return self.stored_name(value) if isinstance(value, str) else tuple(map(self.stored_name, value))

        given = {name: getattr(wanted, name) for name in EpisodeFilter.model_fields if name not in NO_NAMES}
        names = {name: stored(value) for name, value in given.items() if value is not None}
        return wanted.changed(**names, metadata=self._any(wanted.metadata))

    def data(self, value: T) -> T:
        """Return a value of mappings, lists and scalars with every text in it redacted."""
        return self._any(value)

    def triple(self, triple: Triple) -> Triple:
        """Return the redacted triple."""
        names = {"subject": self.name("Triple.subject", triple.subject)}
        names["object"] = self._value(triple.subject, triple.relation, triple.object)
        if triple.source is not None:
            names["source"] = self.name("Triple.source", triple.source)
        return self._model(triple, names)

    def request(self, request: ExtractionRequest) -> ExtractionRequest:
        """Return the redacted extraction request; only texts stored before redaction was enabled change."""
        return self._any(request)

    def extraction(self, extraction: Extraction, text: str) -> Extraction:
        """Return the redacted extraction of a text, without entities and edges whose name is only a placeholder."""

        def edge(stated: ExtractedEdge) -> ExtractedEdge:
            target = self._value(stated.source, stated.relation, stated.target)
            return replace(self._any(stated), target=target)

        def ending(stated: ExtractedEnding) -> ExtractedEnding:
            target = stated.target and self._value(stated.source, stated.relation, stated.target)
            return replace(self._any(stated), target=target)

        edges = [edge(stated) for stated in extraction.edges]
        endings = [ending(stated) for stated in extraction.endings]
        return replace(
            extraction,
            entities=tuple(e for e in self._any(extraction.entities) if not is_placeholder(e.name, text)),
            edges=tuple(e for e in edges if not any(is_placeholder(name, text) for name in (e.source, e.target))),
            endings=tuple(
                e for e in endings if e.fact_id or not any(is_placeholder(n, text) for n in (e.source, e.target or ""))
            ),
        )

    def error(self, error: Exception) -> Exception:
        """Return the redacted error; replies of a model server may quote a key or a text."""
        message = str(error)
        if (redacted := self.text(message)) == message and self.text(repr(error)) == repr(error):
            return error
        error.args = (redacted,)
        return error if str(error) == redacted else ExtractionFailed(f"{type(error).__name__}: {redacted}")

    def require_redacted(self, row: object) -> None:
        """Raise if a row of an exported memory contains personal data.

        Raises
        ------
        InvalidInput
            If it does; the message shows the redacted text.
        """
        for text in _texts(row):
            if (redacted := self.text(plain := unquote(text))) != plain:
                raise InvalidInput(
                    f"{redacted!r:.80} contains personal data, which redact='all' doesn't store: import with "
                    "redact='off', or store the texts in a new memory with redact='all'"
                )

    def _value(self, source: str, relation: str, target: str) -> str:
        """Return the redacted object of a fact; the relation may mark it as personal: "has_password", "swordfish"."""
        words, own = relation_words(relation), self.text(target)
        for begin in (f"{source} {words} ", f"{words}: "):
            redacted = self.text(begin + target)
            if not redacted.endswith((target, own)):
                begun = self.text(begin)
                found = redacted[len(begun) if redacted.startswith(begun) else redacted.rfind("[") :]
                secret = _SECRET.match(found)
                return secret[0] if secret else found
        return own

    def _model(self, model: _M, names: Mapping[str, str]) -> _M:
        updates = {
            name: names[name] if name in names else self._any(value)
            for name in type(model).model_fields
            if not _is_kept(model, name) or name in names
            if (value := getattr(model, name)) is not None
        }
        return model.changed(**updates)

    def _any(self, value: T) -> T:
        """Return a value with every text in it redacted."""
        return cast(T, self._redacted(value))

    def _json(self, text: str, name: str) -> str:
        """Return the redacted text of a field; of JSON, such as the calls of tools, with its texts redacted."""
        if text[:1] in ("{", "["):
            try:
                value = json.loads(text)
            except (ValueError, RecursionError):
                return self._value("", name, text)
            redacted = self._decoded(value, name)
            return text if redacted == value else json.dumps(redacted, ensure_ascii=False)
        return self._value("", name, text)

    def _decoded(self, value: Any, name: str) -> Any:
        """Return decoded JSON with its texts redacted."""
        if isinstance(value, dict):
            return {self.text(key): self._decoded(item, key) for key, item in cast("dict[str, Any]", value).items()}
        if isinstance(value, list):
            return [self._decoded(item, name) for item in cast("list[Any]", value)]
        return self._json(value, name) if isinstance(value, str) else self._redacted(value, name)

    def _redacted(self, value: Any, name: str = "") -> Any:
        """Return a redacted value; its name may mark it as personal, as in `_value`."""
        if isinstance(value, str):
            return self._value("", name, value) if name else self.text(value)
        if isinstance(value, int) and not isinstance(value, bool):  # a card number or a PIN given as a number
            if value < _LONG_NUMBER and not name:
                return value
            redacted = self._redacted(digits := str(value), name)
            return value if redacted == digits else redacted
        if isinstance(value, Mapping):
            items = cast("Mapping[Any, Any]", value).items()
            return {self._redacted(key): self._redacted(item, str(key)) for key, item in items}
        if isinstance(value, (list, tuple)):
            return tuple(self._redacted(item, name) for item in cast("Sequence[Any]", value))
        if isinstance(value, Model):
            return self._model(value, {})
        if is_dataclass(value) and not isinstance(value, type):
            kept = {f.name: self._redacted(getattr(value, f.name)) for f in fields(value) if f.name not in _KEPT}
            return replace(value, **kept)
        return value


_M = TypeVar("_M", bound=Model)
_SECRET = re.compile(r"\[(?:password|key)\]")
_LETTERS = str.maketrans(
    "0123456789abcdef", "abcdefghijklmnop"
)  # letters only, so that no pattern matches the digest as a number


def _is_kept(row: Model, field: str) -> bool:
    """Return whether a field of a row is an id, a type or the kind of an episode, and no text of a user."""
    return field in _KEPT or (field == "source" and isinstance(row, Episode))


def _texts(value: Any, name: str = "") -> list[str]:
    """Return the texts in a row, without ids generated by a store."""
    if name.endswith(("_id", "_ids")) and name not in ("session_id", "external_id"):
        return []
    if isinstance(value, Model):
        parts = [(field, getattr(value, field)) for field in type(value).model_fields if not _is_kept(value, field)]
    elif isinstance(value, Mapping):
        items = cast("Mapping[Any, Any]", value).items()
        parts = [("", part) for item in items if not _are_premises(*item) for part in (*item, _named(*item))]
    elif isinstance(value, (list, tuple)):
        parts = [("", part) for part in cast("Sequence[Any]", value)]
    else:
        return [value] if isinstance(value, str) else []
    return [text for field, part in parts for text in _texts(part, field)]


def _named(name: object, value: object) -> str:
    """Return a property as a text: its name may mark it as personal."""
    return f"{name}: {value}" if isinstance(value, str | int) else ""


def _are_premises(name: object, value: object) -> bool:
    """Return whether a property is the list of ids that an inferred fact has."""
    return name == PREMISES and isinstance(value, str) and _IDS.fullmatch(value) is not None


class RedactingExtractor(ExtractorWrapper):
    """Extractor that redacts the requests and results of another extractor.

    Parameters
    ----------
    extractor
        The extractor.
    redaction
        The redaction; episodes stored before it was enabled are redacted here.
    """

    def __init__(self, extractor: Extractor, redaction: Redaction) -> None:
        super().__init__(extractor)
        self._redaction = redaction

    def extract(self, requests: Sequence[ExtractionRequest]) -> list[Extraction | Exception]:
        """Extract from redacted requests and return redacted results; errors are redacted as well."""
        redacted_requests = [self._redaction.request(request) for request in requests]
        try:
            results = self._extractor.extract(redacted_requests)
        except Exception as error:
            redacted = self._redaction.error(error)
            if redacted is error:
                raise
            raise redacted from None
        if (count := len(redacted_requests)) != len(results):
            told = f"{counted(len(results), 'result')} for {counted(count, 'episode')}"
            return [ExtractionFailed(told)] * count
        return [self._result(r, one.episode.text) for r, one in zip(results, redacted_requests, strict=True)]

    def _result(self, result: Extraction | Exception, text: str) -> Extraction | Exception:
        if isinstance(result, Exception):
            return self._redaction.error(result)
        try:
            return self._redaction.extraction(result, text)
        except Exception as error:  # noqa: BLE001 - extractors are plugins, and what they return isn't validated
            return ExtractionFailed(f"{self.name} returned an unreadable result: {self._redaction.error(error)}")
