"""A name and a summary for a community without a language model. Pure."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property

from graphmem.text.normalise import clean

NAMED = 3
"""Members that give a community its name."""

CENTRAL = 8
"""Members that a summary names, the most connected first; a name stays as long as those in it are among them."""

TOP_FACTS = 20
"""Facts that a summary may be made from."""

_TOLD = 5
_BETWEEN = " · "
_NAME_BYTES = 60


@dataclass(frozen=True)
class Material:
    """What a community is described by.

    Attributes
    ----------
    names
        Its central members, the most connected first.
    size, facts
        Members; facts among them.
    top
        The best facts as (what tells its two ends from those of others, sentence), best first.
    period
        From when to when facts began to hold, in seconds since 1970.
    """

    names: tuple[str, ...]
    size: int
    facts: int
    top: tuple[tuple[Hashable, str], ...]
    period: tuple[float, float] | None

    @cached_property
    def shown(self) -> tuple[str, ...]:
        """The names, cut where they are long."""
        return tuple(_short(name) for name in self.names)


def name_of(material: Material, before: str = "") -> str:
    """Return a name of central members; the one that it had `before`, if all in that are central still."""
    if before and set(before.split(_BETWEEN)) <= set(material.shown):
        return before
    return _BETWEEN.join(dict.fromkeys(material.shown[:NAMED]))


def summary_of(material: Material) -> str:
    """Return who and what it is about, when, and the best facts, one of each two entities as far as there are such."""
    more = material.size - len(material.shown)
    listed = ", ".join(material.shown) + (f" and {more:,} more" if more > 0 else "")
    facts = f"{material.facts:,} {'fact' if material.facts == 1 else 'facts'}"
    when = "" if material.period is None else f", {_span(*material.period)}"
    return " ".join([f"{listed}; {facts}{when}.", *(_sentence(text) for text in _various(material.top))])


def _various(top: Sequence[tuple[Hashable, str]]) -> list[str]:
    """Return the best facts: first one of each two entities and of each sentence quoted, then the others."""
    first: dict[Hashable, str] = {}
    others: list[str] = []
    quoted: set[str] = set()
    for ends, text in top:
        quote = text.partition("“")[2]
        if ends in first or quote in quoted:
            others.append(text)
        else:
            first[ends] = text
            quoted |= {quote} - {""}
    return list(dict.fromkeys([*first.values(), *others]))[:_TOLD]


def _span(begin: float, end: float) -> str:
    first, last = (f"{datetime.fromtimestamp(t, UTC):%Y-%m}" for t in (begin, end))
    return first if first == last else f"{first} to {last}"


def _sentence(text: str) -> str:
    text = text.strip()
    return text if text.endswith((".", "!", "?", "…")) else f"{text}."


def _short(name: str) -> str:
    cut = clean(name.replace(_BETWEEN, " "), _NAME_BYTES)
    return cut if cut == name else f"{cut}…" if len(cut) < len(name) else cut
