"""Episodes of ready-made triples, whose text is a list of the facts."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime

from graphmem.ingest.interpretation import ExtractedFact
from graphmem.inputs import Triple
from graphmem.models import MAX_FACT_BYTES, Episode, Scope, utc_now
from graphmem.text.normalize import clean, plain_fact

StatedTriple = tuple[Triple, ExtractedFact]
"""A triple, and the fact that it states."""

_LIST_FACTS = 50
"""Maximum facts of an episode of triples without a source: a recall reads all facts of the best episodes."""

_LIST_LENGTH = 4 * MAX_FACT_BYTES
"""Maximum characters of the text of an episode of triples."""


def of_episodes(groups: Mapping[str | None, list[StatedTriple]]) -> Iterator[tuple[str | None, list[StatedTriple]]]:
    """Return the triples of each episode and their source; those without one in lists whose texts aren't cut."""
    for source, group in groups.items():
        if source is not None:
            yield source, group
            continue
        begin, size = 0, 0
        for i, (triple, _) in enumerate(group):
            line = len(_line(_sentence(triple))) + 1
            if i - begin == _LIST_FACTS or (i > begin and size + line > _LIST_LENGTH):
                yield None, group[begin:i]
                begin, size = i, 0
            size += line
        yield None, group[begin:]


def triple_episode(
    scope: Scope, source: str | None, group: Sequence[StatedTriple], occurred_at: datetime | None
) -> Episode:
    """Return the episode of a group of triples, whose external id is their source or made from their content."""
    if source is None:
        # the id depends on the triples and their time, so that repeating a load adds nothing
        content = "\n".join(t.model_dump_json(exclude_defaults=True) for t, _ in group)
        if occurred_at is not None:
            content += f"\n{occurred_at.isoformat()}"
        source = f"triples:{hashlib.blake2b(content.encode(), digest_size=16).hexdigest()}"
    return Episode(
        scope=scope,
        source="triple",
        text=text_of_facts(_sentence(triple) for triple, _ in group),
        occurred_at=occurred_at or utc_now(),
        processed_at=utc_now(),
        external_id=source,
    )


def _sentence(triple: Triple) -> str:
    return triple.fact or plain_fact(triple.subject, triple.relation, triple.object)


def _line(sentence: str) -> str:
    return clean(sentence, MAX_FACT_BYTES)


def text_of_facts(sentences: Iterable[str]) -> str:
    """Return the text of a triple episode: a line for each fact, as many as fit into it."""
    lines: list[str] = []
    left = _LIST_LENGTH
    for sentence in sentences:
        line = _line(sentence)
        left -= len(line) + 1
        if left < 0:
            break
        lines.append(line)
    return "\n".join(lines)
