"""Input that nobody should send, through the facade: stored cleanly, or refused by an error that names it."""

from __future__ import annotations

import math
from collections.abc import Callable
from datetime import datetime
from typing import Any

import pytest
from conftest import OpenMemory

from graphmem import GraphMemory, InvalidEntityName, InvalidInput, NotFound, Triple, Turn
from tests.integration.embed.support import CachedModel

NAIVE = datetime(2026, 1, 31)  # noqa: DTZ001 - what is to be refused
FACT = {"subject": "Alice Stone", "relation": "knows", "object": "Bob Miller"}

KEPT = {
    "one megabyte": "x" * 1_000_000,
    "bidirectional controls": "A\u202elice\u2066 Stone",
    "zero-width characters": "Ali\u200bce\ufeff Stone",
    "emoji of three parts": "👩\u200d👩\u200d👧",
    "emoji and letters": "Team 🦄",
    "quotes of SQL": '" OR 1=1 --',
    "a statement of SQL": "'; DROP TABLE entities; --",
    "NEAR of full text": "NEAR(",
    "a column of full text": "name_words:alice",
    "operators of full text": 'alice AND (bob OR "stone") NOT ^miller*',
    "wildcards of LIKE among letters": "100%_sure",
    "a statement of Cypher": "`}) DETACH DELETE n //",
    "a label and a parameter of Cypher": "Alice:Entity {id: $q} RETURN 1",
    "a lone surrogate": "Al\ud800ice",
    "NUL": "Ali\x00ce Stone",
    "line breaks": "Alice\r\n\tStone",
    "Chinese": "张伟明",
    "only combining marks on letters": "e\u0301\u0302\u0303e\u0301a\u0300",
}
REFUSED = {
    "nothing": "",
    "white space": " \t\n ",
    "zero-width only": "\u200b\u200b\u200b\u200b",
    "bidirectional controls only": "\u202a\u202b\u202c\u2066",
    "a single emoji": "🦄",
    "wildcards only": "%_\"'*()",
    "surrogates only": "\ud800\udc00\ud800",
    "NUL only": "\x00\x00\x00",
    "one letter": "x",
}
QUERIES = {
    **KEPT,
    **REFUSED,
    "punctuation only": "?!.,;:-()[]{}\"'`~@#$%^&*+=|\\/<>",
    "100 kB of one word": "alice " * 17_000,
    "100 kB of different words": " ".join(f"word{i}" for i in range(12_000)),
    "100 kB without a space": "a" * 100_000,
    "a question in Chinese": "张伟明住在哪里?",
    "stop words only": "what was it that you had",
    "unbalanced quotes": '"alice',
    "a regular expression": "(a+)+$ [alice",
    "a path": "../../etc/passwd",
}

Call = Callable[[GraphMemory, Any], object]
WITH_A_TIME: dict[str, Call] = {
    "remember": lambda m, t: m.remember("Hello there", occurred_at=t),
    "add_facts": lambda m, t: m.add_facts([FACT], occurred_at=t),
    "recall": lambda m, t: m.recall("Alice Stone", as_of=t),
    "facts": lambda m, t: m.facts("Alice Stone", as_of=t),
    "entities": lambda m, t: m.entities(as_of=t),
    "history": lambda m, t: m.history("Alice Stone", as_of=t),
    "context": lambda m, t: m.context("Alice Stone", as_of=t),
    "diff from": lambda m, t: m.diff(t, "2026-01-31"),
    "diff to": lambda m, t: m.diff("2026-01-31", t),
}
WITH_A_LIMIT: dict[str, Call] = {
    "recall": lambda m, n: m.recall("Alice Stone", limit=n),
    "facts": lambda m, n: m.facts("Alice Stone", limit=n),
    "entities": lambda m, n: m.entities(limit=n),
    "entities by name": lambda m, n: m.entities("Alice Stone", limit=n),
    "history": lambda m, n: m.history("Alice Stone", limit=n),
    "history as of": lambda m, n: m.history("Alice Stone", limit=n, as_of="2099-01-01"),
    "diff": lambda m, n: m.diff("2026-01-01", "2026-02-01", limit=n),
    "backfill": lambda m, n: m.admin.backfill(n),
}


@pytest.fixture
def memory(store_url: str, open_memory: OpenMemory, cached_model: CachedModel) -> GraphMemory:
    """Return a memory whose model reads the texts that all tests have in common once."""
    return open_memory(store_url, embeddings=cached_model)


@pytest.fixture
def acquainted(memory: GraphMemory) -> GraphMemory:
    """Return a memory with a fact."""
    memory.add_facts([FACT])
    return memory


def counts(memory: GraphMemory) -> tuple[int, int, int]:
    stats = memory.stats()
    return stats.entities, stats.edges, stats.episodes


# Names


@pytest.mark.parametrize("name", KEPT.values(), ids=KEPT)
def test_strange_name_is_found_again_by_itself(memory: GraphMemory, name: str) -> None:
    memory.add_facts([(name, "knows", "Carol Jones")])
    assert [fact.target for fact in memory.facts(name)] == ["Carol Jones"]


@pytest.mark.parametrize("name", KEPT.values(), ids=KEPT)
def test_strange_name_is_stored_once_however_often_it_comes(memory: GraphMemory, name: str) -> None:
    for friend in ("Carol Jones", "Dave Brown"):
        memory.add_facts([(name, "knows", friend)])
    assert memory.stats().entities == 3


@pytest.mark.parametrize("name", KEPT.values(), ids=KEPT)
def test_strange_name_is_stored_within_512_bytes_and_without_invisible_characters(
    memory: GraphMemory, name: str
) -> None:
    memory.add_facts([(name, "knows", "Carol Jones")])
    stored = memory.facts(name)[0].source
    assert len(stored.encode()) <= 512
    bare = stored.replace("\u200d\N{WOMAN}", "").replace("\u200d\N{GIRL}", "")  # joined to the emoji before
    assert not set(bare) & set("\x00\u200b\u200d\u202e\u2066\ufeff\ud800\r\n\t")


@pytest.mark.parametrize("name", REFUSED.values(), ids=REFUSED)
def test_name_with_too_little_left_is_refused(acquainted: GraphMemory, name: str) -> None:
    before = counts(acquainted)
    with pytest.raises(InvalidEntityName, match="entity name"):
        acquainted.add_facts([FACT, (name, "knows", "Carol Jones")])
    assert counts(acquainted) == before


@pytest.mark.parametrize("name", REFUSED.values(), ids=REFUSED)
def test_skip_invalid_leaves_out_that_name_and_keeps_the_others(memory: GraphMemory, name: str) -> None:
    report = memory.add_facts([("Carol Jones", "knows", name), FACT], skip_invalid=True)
    assert (report.rejected_count, report.edges) == (1, 1)


def test_refused_name_of_a_megabyte_is_not_repeated_in_the_error(memory: GraphMemory) -> None:
    with pytest.raises(InvalidEntityName) as error:
        memory.add_facts([("%" * 1_000_000, "knows", "Carol Jones")])
    assert len(str(error.value)) < 1000


@pytest.mark.parametrize("relation", ["", "  ", "%_*", "\u200b", "🦄"])
def test_relation_without_a_letter_is_refused(memory: GraphMemory, relation: str) -> None:
    with pytest.raises(InvalidInput, match="relation"):
        memory.add_facts([{**FACT, "relation": relation}])


@pytest.mark.parametrize(
    "relation",
    ["`}) DETACH DELETE n //", "knows`]->() DELETE r //", "'; DROP TABLE edges; --", "$q.scope", "a:B|C*1.."],
)
def test_relation_that_is_a_statement_is_a_word_like_any_other(acquainted: GraphMemory, relation: str) -> None:
    acquainted.add_facts([{**FACT, "object": "Carol Jones", "relation": relation}])
    [fact] = acquainted.history("Alice Stone", relation)
    assert fact.target == "Carol Jones"
    assert counts(acquainted) == (3, 2, 2)


def test_type_that_is_a_statement_is_kept_as_a_word(acquainted: GraphMemory) -> None:
    acquainted.add_facts([{**FACT, "subject": "Dave Brown", "subject_type": "`}) DETACH DELETE n //"}])
    [entity] = acquainted.entities("Dave Brown")
    assert (entity.entity_type, entity.properties["declared_type"]) == ("concept", "`}) detach delete n //")
    assert acquainted.stats().entities == 3


def test_relation_and_sentence_of_a_megabyte_are_cut(memory: GraphMemory) -> None:
    memory.add_facts([{**FACT, "relation": "knows " * 200_000, "fact": "word " * 200_000}])
    [fact] = memory.facts("Alice Stone")
    assert len(fact.relation.encode()) <= 256
    assert len(fact.fact.encode()) <= 2048


def test_wildcards_in_the_text_of_a_history_stand_for_themselves(acquainted: GraphMemory) -> None:
    acquainted.add_facts([{**FACT, "object": "Carol Jones", "fact": "Alice is 100% sure of Carol_Jones"}])
    found = [fact.target for text in ("100%", "l_J", "%", "_") for fact in acquainted.history("Alice Stone", text=text)]
    assert found == ["Carol Jones"] * 4


# Texts


@pytest.mark.parametrize("text", ["a\x00b", "a\ud800b", "\u202eabc\u200b", "x" * 1_000_000], ids=ascii)
def test_strange_text_is_stored_and_comes_back(memory: GraphMemory, text: str) -> None:
    receipt = memory.remember(text)
    [episode] = memory.episodes([receipt.episode_id])
    assert episode.text == text.replace("\ud800", "")


def test_empty_text_is_refused(memory: GraphMemory) -> None:
    with pytest.raises(InvalidInput, match=r"text.*''"):
        memory.remember("")


@pytest.mark.parametrize("field", ["speaker", "session_id", "external_id", "role"])
def test_lone_surrogate_in_a_field_of_a_turn_is_dropped(memory: GraphMemory, field: str) -> None:
    receipt = memory.remember({"text": "Hello there", field: "a\ud800b"})
    assert getattr(memory.episodes([receipt.episode_id])[0], field) == "ab"


@pytest.mark.parametrize("field", ["speaker", "session_id", "external_id", "role"])
def test_nul_in_a_field_by_which_turns_are_found_is_refused(memory: GraphMemory, field: str) -> None:
    memory.remember({"text": "Hello there", field: "a"})
    with pytest.raises(InvalidInput, match=f"{field}.*NUL"):
        memory.remember({"text": "Hello here", field: "a\0b"})
    with pytest.raises((InvalidInput, NotFound)):
        memory.forget(episode="a\0b")
    for named in ({"session_ids": ["a\0b"]}, {"speakers": ["a\0b"]}, {"roles": ["a\0b"]}):
        with pytest.raises(InvalidInput, match="NUL"):
            memory.search("Hello", filters=named)


@pytest.mark.parametrize("metadata", [{"k\ud800": "v\ud800"}, {"k\x00": "v\x00"}, {"": ""}], ids=ascii)
def test_strange_metadata_is_stored(memory: GraphMemory, metadata: dict[str, str]) -> None:
    memory.add_facts([{**FACT, "metadata": metadata}])
    receipt = memory.remember("Hello there", metadata=metadata)
    plain = {k.replace("\ud800", ""): v.replace("\ud800", "") for k, v in metadata.items()}
    assert memory.facts("Alice Stone")[0].properties == plain
    assert memory.episodes([receipt.episode_id])[0].metadata == plain


@pytest.mark.parametrize("value", [math.nan, math.inf, [1], {"a": 1}], ids=repr)
def test_metadata_that_is_no_finite_scalar_is_refused(memory: GraphMemory, value: Any) -> None:
    with pytest.raises(InvalidInput, match="metadata"):
        memory.remember("Hello there", metadata={"key": value})


def test_one_item_where_several_are_expected_is_refused(memory: GraphMemory) -> None:
    one: list[Any] = [
        "Ada knows Bob",
        b"Ada",
        {"text": "Ada"},
        Turn(text="Ada"),
        Triple(subject="a", relation="b", object="c"),
        None,
    ]
    for value in one:
        with pytest.raises(InvalidInput, match="wrap a single item in a list"):
            memory.ingest(value)
        with pytest.raises(InvalidInput, match="wrap a single item in a list"):
            memory.add_facts(value)
    assert memory.stats().episodes == 0


@pytest.mark.parametrize("item", [5, None, (1, 2, 3), {1: 2}, {"subject": "x"}, {"text": 5}, ["a", "b"]], ids=repr)
def test_item_that_is_none_is_refused(memory: GraphMemory, item: Any) -> None:
    with pytest.raises(InvalidInput):
        memory.remember(item)
    assert memory.ingest([item, "Hello there"], skip_invalid=True).rejected_count == 1
    assert memory.stats().episodes == 1


# Questions


@pytest.mark.parametrize("query", QUERIES.values(), ids=QUERIES)
def test_question_is_never_an_error(acquainted: GraphMemory, query: str) -> None:
    acquainted.recall(query)
    acquainted.entities(query)
    acquainted.facts(query)
    acquainted.history(query, text=query)
    acquainted.context(query)
    acquainted.episodes([query])


@pytest.mark.parametrize("query", REFUSED.values(), ids=REFUSED)
def test_question_without_a_word_finds_nothing(acquainted: GraphMemory, query: str) -> None:
    assert len(acquainted.recall(query)) == 0


@pytest.mark.server
@pytest.mark.parametrize("query", ['" OR 1=1 --', "*", "%", "_____", "name_words:*", "NOT zzz", "^"])
def test_syntax_of_a_query_language_selects_nothing(acquainted: GraphMemory, query: str) -> None:
    assert acquainted.entities(query) == []


@pytest.mark.parametrize(
    "query",
    ['"Alice" AND (', "NEAR(Alice", "alice*", "name_words: Alice", "A\u202elice\u2066", "Al\u200bice", "ALICE\x00"],
    ids=ascii,
)
def test_name_is_found_amid_syntax_and_invisible_characters(acquainted: GraphMemory, query: str) -> None:
    assert [fact.source for fact in acquainted.recall(query)] == ["Alice Stone"]


@pytest.mark.server
def test_name_in_a_question_of_100_kilobytes_is_found(acquainted: GraphMemory) -> None:
    assert len(acquainted.recall("Where is Alice Stone? " + "and more " * 11_000)) == 1


def test_name_in_a_question_in_chinese_is_found(memory: GraphMemory) -> None:
    memory.add_facts([("张伟明", "住在", "上海市")])
    assert [fact.target for fact in memory.recall("张伟明 住在哪里?")] == ["上海市"]


# Times, numbers, words that are one of a few


@pytest.mark.parametrize(
    ("fields", "named"),
    [
        ({"valid_from": NAIVE}, r"valid_from.*naive.*2026"),
        ({"valid_from": "2026-01-31T00:00:00"}, r"valid_from.*naive.*2026"),
        ({"valid_from": "soon"}, r"valid_from.*'soon'"),
        ({"valid_from": 5}, r"valid_from.*got 5"),
        ({"valid_from": "0001-01-01T00:00:00+14:00"}, r"valid_from.*0001"),
        ({"valid_from": "2026-02-01T00:00:00Z", "valid_to": "2026-01-01T00:00:00Z"}, r"valid_to.*2026-01-01.*before"),
        ({"confidence": math.nan}, r"confidence.*nan"),
        ({"confidence": math.inf}, r"confidence.*inf"),
        ({"confidence": -0.1}, r"confidence.*equal to 0.*-0\.1"),
        ({"confidence": 1.01}, r"confidence.*equal to 1.*1\.01"),
        ({"confidence": "high"}, r"confidence.*'high'"),
        ({"edge_type": "Semantic"}, r"edge type 'Semantic'.*semantic"),
        ({"edge_type": "hierarchical"}, r"edge type 'hierarchical'"),
        ({"metadata": {"a": math.nan}}, r"metadata.*nan"),
        ({"color": "red"}, r"color.*'red'"),
        ({"object": "ALICE  stone"}, r"self-loop.*Alice Stone"),
        ({"object": None}, r"object.*None"),
    ],
    ids=repr,
)
def test_fact_with_a_value_that_does_not_fit_is_refused_by_name_and_value(
    memory: GraphMemory, fields: dict[str, Any], named: str
) -> None:
    with pytest.raises(InvalidInput, match=named):
        memory.add_facts([{**FACT, **fields}])
    assert counts(memory) == (0, 0, 0)


@pytest.mark.parametrize("triple", [5, None, "abc", ("a", "b"), (1, 2, 3), {1: 2}, {"subject": "x"}, ()], ids=repr)
def test_triple_that_is_none_is_refused(memory: GraphMemory, triple: Any) -> None:
    with pytest.raises(InvalidInput):
        memory.add_facts([triple])


def test_skip_invalid_reports_each_bad_fact_with_its_reason_and_keeps_the_rest(memory: GraphMemory) -> None:
    bad: list[Any] = [5, {**FACT, "confidence": math.nan}, ("x", "knows", "Bob Miller"), {**FACT, "valid_from": NAIVE}]
    report = memory.add_facts([*bad, FACT], skip_invalid=True)
    assert (report.received, report.rejected_count, report.edges) == (5, 4, 1)
    for rejected, word in zip(report.rejected, ("triple", "confidence", "entity name", "naive"), strict=True):
        assert word in rejected.reason


@pytest.mark.parametrize("moment", [NAIVE, "2026-01-31T00:00:00", "yesterday", "0001-01-01T00:00:00+14:00"], ids=repr)
@pytest.mark.parametrize("call", WITH_A_TIME.values(), ids=WITH_A_TIME)
def test_naive_or_unreadable_time_is_refused(memory: GraphMemory, call: Call, moment: Any) -> None:
    with pytest.raises(InvalidInput, match=r"(?i)datetime|is not a time|before the year 1"):
        call(memory, moment)


def test_earliest_and_latest_times_are_kept(memory: GraphMemory) -> None:
    first, last = "0001-01-01T00:00:00Z", "9999-12-31T23:59:59.999999Z"
    memory.add_facts([{**FACT, "valid_from": first, "valid_to": last}])
    [fact] = memory.facts("Alice Stone")
    assert (fact.valid_from, fact.valid_to) == (datetime.fromisoformat(first), datetime.fromisoformat(last))


def test_a_fact_that_ended_at_the_earliest_time_is_past(memory: GraphMemory) -> None:
    memory.add_facts([{**FACT, "valid_to": "0001-01-01T00:00:00Z"}])
    assert not memory.facts("Alice Stone")


@pytest.mark.parametrize("year", ["0001", "9999"])
def test_a_turn_in_the_first_or_last_year_is_refused(memory: GraphMemory, year: str) -> None:
    with pytest.raises(InvalidInput, match="stands for no date"):
        memory.remember("Hello there", occurred_at=f"{year}-05-01")


@pytest.mark.parametrize(("limit", "allowed"), [(-1, r"[01]\b"), (-(2**70), r"[01]\b"), (2**70, "10000|2147483646")])
@pytest.mark.parametrize("call", WITH_A_LIMIT.values(), ids=WITH_A_LIMIT)
def test_limit_out_of_range_is_refused(acquainted: GraphMemory, call: Call, limit: int, allowed: str) -> None:
    with pytest.raises(InvalidInput, match=rf"limit.*({allowed}).* {limit}"):
        call(acquainted, limit)


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"max_hops": -1}, r"max_hops.*equal to 0.*-1"),
        ({"max_hops": 10**9}, r"max_hops.*equal to 6.*1000000000"),
        ({"temporal_decay_rate": math.nan}, r"temporal_decay_rate.*finite.*nan"),
        ({"temporal_decay_rate": -1.0}, r"temporal_decay_rate.*equal to 0.*-1"),
        ({"temporal_decay_rate": 10.5}, r"temporal_decay_rate.*equal to 10.*10\.5"),
        ({"edge_types": ["Semantic"]}, r"edge type 'Semantic'"),
        ({"scopes": []}, r"scope"),
    ],
    ids=repr,
)
def test_option_of_recall_out_of_range_is_refused(memory: GraphMemory, options: dict[str, Any], named: str) -> None:
    with pytest.raises(InvalidInput, match=named):
        memory.recall("Alice Stone", **options)


@pytest.mark.parametrize("scope", ["", "x" * 1_000_000, "a\ud800"], ids=["empty", "long", "surrogate"])
def test_scope_that_can_not_be_one_is_refused(memory: GraphMemory, scope: str) -> None:
    with pytest.raises(InvalidInput, match="domain"):
        memory.in_scope(scope)


@pytest.mark.server
def test_store_is_sound_after_all_of_it(memory: GraphMemory) -> None:
    facts = [(name, "knows", other) for name in (*KEPT.values(), *REFUSED.values()) for other in ("Bob Miller", name)]
    memory.add_facts(facts, skip_invalid=True)
    for query in QUERIES.values():
        memory.recall(query)
    assert [check for check in memory.admin.doctor() if not check.ok] == []
