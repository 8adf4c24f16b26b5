"""Redaction of everything that is stored (``redact="all"``): at the entrance, before a store or a model sees it."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass, replace
from typing import Any, TypeVar, cast
from urllib.parse import unquote

from graphmem.errors import ExtractionFailed, InvalidInput
from graphmem.inputs import Triple
from graphmem.models import Episode, Model, Scope
from graphmem.protocols import ExtractedEdge, Extraction, ExtractionRequest, Extractor, Redactor, concurrency_of
from graphmem.text.redact import is_placeholder

T = TypeVar("T")

_KEPT = frozenset(("id", "scope", "source", "role", "edge_type", "entity_type", "source_type", "target_type"))
_DIGEST_BYTES = 8
_LONG_NUMBER = 10**8  # a number with fewer digits is nothing that a pattern knows


class Redaction:
    """Redacts inputs, questions, what extractors return, and the ids that callers give.

    Parameters
    ----------
    redactor
        Finds what is personal or secret.
    key
        Key of the digest that stands for an id or a speaker that is personal. Without one these are refused: their
        placeholder would be the same for everybody, and a digest without a key can be guessed.
    """

    def __init__(self, redactor: Redactor, key: str | None = None) -> None:
        self._redactor = redactor
        self._key = hashlib.sha256(key.encode()).digest() if key else None

    def text(self, text: str) -> str:
        """Return a text without what is personal."""
        return self._redactor.redact(text, ())

    def name(self, field: str, text: str) -> str:
        """Return what identifies something, with a digest in place of what is personal: equal for equal names.

        Parameters
        ----------
        field
            What it is, for the message.
        text
            An id or a name; percent-encoded ones are looked at decoded.

        Raises
        ------
        InvalidInput
            If it is personal and there is no key.
        """
        plain = unquote(text)
        redacted = self.text(plain)
        if redacted == plain:
            return text
        if self._key is None:
            raise InvalidInput(
                f"{field}: {redacted!r:.80} stands for something personal, and redact='all' stores none of it: give "
                f"another {field.rpartition('.')[2]}, or set redact_key to have a keyed digest stored in its place"
            )
        digest = hashlib.blake2b(plain.encode(), key=self._key, digest_size=_DIGEST_BYTES).hexdigest()
        return f"{redacted}-{digest.translate(_LETTERS)}"

    def known_name(self, text: str) -> str:
        """Return under what a name or id is stored, for look-ups; without a key it is stored nowhere."""
        return text if self._key is None else self.name("name", text)

    def require_scope(self, scope: Scope) -> None:
        """Refuse a scope with a personal name: names of scopes are stored.

        Raises
        ------
        InvalidInput
            If it is.
        """
        for name in (scope.domain, scope.project_id or ""):
            if (redacted := self.text(name)) != name:
                raise InvalidInput(
                    f"scope: {redacted!r:.80} stands for something personal, and redact='all' stores none of it: "
                    "name the scope by an id that says nothing about the person"
                )

    def episode(self, episode: Episode) -> Episode:
        """Return an episode redacted: text, title, metadata, and all else that somebody wrote."""
        names = {
            name: self.name(f"Turn.{name}", value)
            for name in ("speaker", "session_id", "external_id")
            if (value := getattr(episode, name)) is not None
        }
        return self._model(episode, names)

    def triple(self, triple: Triple) -> Triple:
        """Return a ready-made fact redacted."""
        names = {"subject": self.name("Triple.subject", triple.subject)}
        names["object"] = self._value(triple.subject, triple.relation, triple.object)
        if triple.source is not None:
            names["source"] = self.name("Triple.source", triple.source)
        return self._model(triple, names)

    def request(self, request: ExtractionRequest) -> ExtractionRequest:
        """Return what an extractor gets; only texts that were stored without redaction change."""
        return self._any(request)

    def extraction(self, extraction: Extraction, text: str) -> Extraction:
        """Return what an extractor said of a text, redacted; a name that is nothing but a placeholder is left out."""

        def edge(stated: ExtractedEdge) -> ExtractedEdge:
            target = self._value(stated.source, stated.relation, stated.target)
            return replace(self._any(stated), target=target)

        edges = [edge(stated) for stated in extraction.edges]
        return replace(
            extraction,
            entities=tuple(e for e in self._any(extraction.entities) if not is_placeholder(e.name, text)),
            edges=tuple(e for e in edges if not any(is_placeholder(name, text) for name in (e.source, e.target))),
            endings=self._any(extraction.endings),
        )

    def error(self, error: Exception) -> Exception:
        """Return an error redacted: what a model's server answers may quote a key or a text."""
        told = str(error)
        if (redacted := self.text(told)) == told and self.text(repr(error)) == repr(error):
            return error
        error.args = (redacted,)
        return error if str(error) == redacted else ExtractionFailed(f"{type(error).__name__}: {redacted}")

    def require_redacted(self, row: object) -> None:
        """Refuse a row of an exported memory that holds something personal.

        Raises
        ------
        InvalidInput
            If it does; the message shows the text without it.
        """
        for text in _texts(row):
            if (redacted := self.text(plain := unquote(text))) != plain:
                raise InvalidInput(
                    f"{redacted!r:.80} stands for something personal, and redact='all' stores none of it: import with "
                    "redact='off', or store the texts in a new memory with redact='all'"
                )

    def _value(self, source: str, relation: str, target: str) -> str:
        """Return the object of a fact; what makes it personal may be the relation: "has_password", "swordfish"."""
        words = relation.replace("_", " ")
        for begin in (f"{source} {words} ", f"{words}: ", ""):
            redacted = self.text(begin + target)
            if not redacted.endswith(target):
                return redacted[redacted.rindex("[") :] if begin and "[" in redacted else redacted
        return target

    def _model(self, model: _M, names: Mapping[str, str]) -> _M:
        updates = {
            name: names[name] if name in names else self._any(value)
            for name in type(model).model_fields
            if name not in _KEPT or name in names
            if (value := getattr(model, name)) is not None
        }
        return model.changed(**updates)

    def _any(self, value: T) -> T:
        """Return a value with each text in it redacted."""
        return cast(T, self._redacted(value))

    def _redacted(self, value: Any) -> Any:
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, int):  # a card number given as a number
            return value if value < _LONG_NUMBER or self.text(str(value)) == str(value) else self.text(str(value))
        if isinstance(value, Mapping):
            items = cast("Mapping[Any, Any]", value).items()
            return {self._redacted(name): self._redacted(item) for name, item in items}
        if isinstance(value, (list, tuple)):
            return tuple(map(self._redacted, cast("Sequence[Any]", value)))
        if isinstance(value, Model):
            return self._model(value, {})
        if is_dataclass(value) and not isinstance(value, type):
            kept = {f.name: self._redacted(getattr(value, f.name)) for f in fields(value) if f.name not in _KEPT}
            return replace(value, **kept)
        return value


_M = TypeVar("_M", bound=Model)
_LETTERS = str.maketrans("0123456789abcdef", "abcdefghijklmnop")  # a digest that no pattern takes for a number


def _texts(value: Any, name: str = "") -> list[str]:
    """Return the texts in a row, without ids that a store made."""
    if name.endswith(("_id", "_ids")) and name not in ("session_id", "external_id"):
        return []
    if isinstance(value, Model):
        parts = [(field, getattr(value, field)) for field in type(value).model_fields if field not in _KEPT]
    elif isinstance(value, Mapping):
        items = cast("Mapping[Any, Any]", value).items()
        parts = [("", part) for item in items for part in item]
    elif isinstance(value, (list, tuple)):
        parts = [("", part) for part in cast("Sequence[Any]", value)]
    else:
        return [value] if isinstance(value, str) else []
    return [text for field, part in parts for text in _texts(part, field)]


class RedactingExtractor(Extractor):
    """Gives an extractor redacted texts, and passes on what it returns redacted.

    Parameters
    ----------
    extractor
        The extractor.
    redaction
        How texts are redacted; those that were stored before redaction was turned on are not.
    """

    def __init__(self, extractor: Extractor, redaction: Redaction) -> None:
        self._extractor = extractor
        self._redaction = redaction

    @property
    def name(self) -> str:
        """The extractor's name."""
        return self._extractor.name

    @property
    def batch_size(self) -> int:
        """As many episodes as the extractor likes."""
        return self._extractor.batch_size

    @property
    def concurrency(self) -> int:
        """As many calls at once as the extractor takes."""
        return concurrency_of(self._extractor)

    def extract(self, requests: Sequence[ExtractionRequest]) -> list[Extraction | Exception]:
        """Read episodes; errors are redacted, too."""
        shown = [self._redaction.request(request) for request in requests]
        try:
            results = self._extractor.extract(shown)
        except Exception as error:
            redacted = self._redaction.error(error)
            if redacted is error:
                raise
            raise redacted from None
        if len(results) != len(shown):
            return [ExtractionFailed(f"{len(results)} results for {len(shown)} episodes")] * len(shown)
        return [self._result(result, one.episode.text) for result, one in zip(results, shown, strict=True)]

    def _result(self, result: Extraction | Exception, text: str) -> Extraction | Exception:
        if isinstance(result, Exception):
            return self._redaction.error(result)
        try:
            return self._redaction.extraction(result, text)
        except Exception as error:  # noqa: BLE001 - extractors are plugins, and what they return isn't validated
            return ExtractionFailed(f"{self.name} returned what can't be read: {self._redaction.error(error)}")
