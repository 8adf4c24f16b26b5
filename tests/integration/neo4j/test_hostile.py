"""Text that looks like Cypher or Lucene, in every field that takes text: it is data, and comes back as it went in."""

from __future__ import annotations

from typing import Any

import pytest

from graphmem import GraphMemory
from graphmem.errors import InvalidInput
from graphmem.models import EntityQuery, Scope
from graphmem_neo4j import open_backend
from tests.integration.neo4j.support import SCOPE, ask, entity, of

HOSTILE = [
    "`}) DETACH DELETE n //",
    "Anna`]->() MATCH (m) DETACH DELETE m //",
    "x' OR 1=1 //",
    '"}) RETURN $q.scopes /*',
    "name_words:* OR *:*",
    "graphmem_words AND NOT (a~0.5 && b^2 || [a TO b])",
    "$(row.type) /* include types */",
    "\\u0060 \\` ${jndi:ldap://x}",
]
OTHER = Scope("bystander")
TYPES = {"SEMANTIC", "TEMPORAL", "CAUSAL", "ENTITY", "CO_OCCURRENCE", "MENTIONS"}


@pytest.fixture
def url(empty_neo4j_url: str) -> str:
    return empty_neo4j_url


def of_type(memory: GraphMemory, word: str) -> list[str] | str:
    """Return the names of the entities of a type, or the error if there is no such type."""
    try:
        return [entity.name for entity in memory.entities(entity_type=word)]
    except InvalidInput as error:
        return str(error)


def told(url: str, word: str) -> dict[str, Any]:
    """Put a word into every field that takes text, and return what each read makes of it."""
    moment = "2026-01-05T10:00:00Z"
    with GraphMemory.open(url, scope=Scope(word, word), extractor="none") as memory:
        triple = {
            "subject": f"Anna {word}",
            "relation": f"told {word}",
            "object": f"Berta {word}",
            "subject_type": word,
            "fact": f"Anna said {word}",
            "metadata": {word: word},
            "source": word,
            "valid_from": moment,
        }
        turn = {"text": word, "speaker": word, "session_id": word, "external_id": word, "occurred_at": moment}
        memory.ingest([{**turn, "metadata": {word: word}}])
        memory.add_facts([triple])
        stats = memory.stats()
        return {
            "recall": [(f.source, f.relation, f.target, f.fact) for f in memory.recall(f"What did Anna tell {word}?")],
            "word": [f.fact for f in memory.recall(word)],
            "facts": [(f.fact, f.properties) for f in memory.facts(f"Anna {word}")],
            "history": [f.fact for f in memory.history(f"Anna {word}", f"told {word}", word)],
            "entities": [(e.name, e.entity_type, e.properties) for e in memory.entities(word)],
            "of type": of_type(memory, word),
            "counts": (stats.scope, stats.entities, stats.edges, stats.episodes, stats.failed_episodes),
            "scopes": [scope for scope in memory.admin.scopes() if scope != OTHER],
            "diff": [f.fact for f in memory.diff("2026-01-01", "2026-02-01").began],
        }


@pytest.mark.slow
@pytest.mark.parametrize("word", [*HOSTILE[:2], *(pytest.param(word, marks=pytest.mark.full) for word in HOSTILE[2:])])
def test_hostile_text_is_data_in_every_field(url: str, word: str) -> None:
    with GraphMemory.open(url, scope=OTHER, extractor="none") as memory:
        memory.add_facts([("Clara", "knows", "Dora")])

    found = told(url, word)

    assert found == told("memory://", word)
    assert found["recall"]
    store = open_backend(url)
    assert store.stats(OTHER).edges == 1
    assert set(ask(store, "MATCH ()-[r]->() RETURN DISTINCT type(r)")) <= TYPES
    labels = ask(store, "MATCH (n:Graphmem) UNWIND labels(n) AS label RETURN DISTINCT label")
    assert [label for label in labels if not label.isalnum()] == []
    store.close()


@pytest.mark.parametrize("word", ["Entity", "episode", "graphmem", "`}) DETACH DELETE n //", " ", "北京"])
def test_a_type_of_any_text_is_data_and_never_a_label_of_ours(url: str, word: str) -> None:
    row = entity("Anna", entity_type=word)
    store = open_backend(url)
    store.write(SCOPE, of(row))
    labels = ask(store, "MATCH (n:Graphmem {id: $id}) RETURN labels(n)", id=row.id)[0]
    assert {"Graphmem", "Entity"} <= set(labels)
    assert "Episode" not in labels
    assert store.find_entities([SCOPE], EntityQuery(entity_types=(word,))) == [row]
    store.close()
