"""``redact="all"``: what callers give, and what extractors return, is redacted before it is stored."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pytest

from graphmem import Document, InvalidInput, Triple, Turn
from graphmem.errors import ExtractionFailed
from graphmem.ingest.redaction import NO_NAMES, RedactingExtractor, Redaction
from graphmem.models import Episode, EpisodeFilter, Scope
from graphmem.protocols import (
    ExtractedEdge,
    ExtractedEnding,
    ExtractedEntity,
    Extraction,
    ExtractionRequest,
    Known,
    KnownFact,
)
from graphmem.text.redact import PatternRedactor

PLAIN = Redaction(PatternRedactor())
KEYED = Redaction(PatternRedactor(), "a key")
SCOPE = Scope("redaction")


def episode(text: str, by: Redaction | None = None, **fields: Any) -> Episode:
    return (by or PLAIN).episode(Turn(text=text, **fields).to_episode(SCOPE))


def test_text_and_metadata_of_a_turn_are_redacted() -> None:
    metadata = {"mail": "maya@example.com", "card": 4111111111111111, "size": 12, "call": "+1 415 555 2671", "ok": True}
    found = episode("My password is hunter2", metadata=metadata)
    assert found.text == "My password is [password]"
    assert found.metadata == {"mail": "[email]", "card": "[card]", "size": 12, "call": "[phone]", "ok": True}


def test_json_in_metadata_is_redacted_text_by_text_and_stays_json() -> None:
    item = {
        "role": "user",
        "content": 'Write to:\nmaya@example.com, the password is "swordfish"',
        "arguments": json.dumps({"password": "swordfish", "page": 3, "to": ["tom@example.com"]}),
    }
    redacted = episode("Hi", metadata={"item": json.dumps(item), "other": "{maya@example.com", "page": "[1, 2]"})
    found = json.loads(str(redacted.metadata["item"]))
    assert found["content"].startswith("Write to:\n[email], the password is")
    assert json.loads(found["arguments"]) == {"password": "[password]", "page": 3, "to": ["[email]"]}
    assert "swordfish" not in str(redacted.metadata)
    assert (redacted.metadata["other"], redacted.metadata["page"]) == ("{[email]", "[1, 2]")


@pytest.mark.parametrize(
    ("name", "value", "stored"),
    [
        ("password", "swordfish", "[password]"),
        ("wifi_password", "purple horse, battery", "[password]"),
        ("api_key", "a1b2c3d4e5f6", "[key]"),
        ("pin", 4821, "[password]"),
        ("phone", "4155552671 (evenings)", "[phone] (evenings)"),
        ("password", "expired", "expired"),
        ("note", "ask maya@example.com or tom, please", "ask [email] or tom, please"),
        ("tokens", 1234, 1234),
        ("is_password", True, True),
    ],
)
def test_a_field_is_redacted_by_what_its_name_says(name: str, value: str | int, stored: str | int) -> None:
    assert episode("Hi", metadata={name: value}).metadata == {name: stored}
    assert json.loads(str(episode("Hi", metadata={"x": json.dumps({name: [value]})}).metadata["x"])) == {name: [stored]}
    triple = Triple(subject="Maya", relation="works_at", object="Globex", metadata={name: value})
    assert PLAIN.triple(triple).metadata == {name: stored}
    assert PLAIN.data({"a": {name: value}}) == {"a": {name: stored}}


def test_a_row_is_refused_by_what_the_name_of_a_field_says() -> None:
    PLAIN.require_redacted(Turn(text="Hi", metadata={"password": "[password]"}).to_episode(SCOPE))
    with pytest.raises(InvalidInput, match=r"password: \[password\]"):
        PLAIN.require_redacted(Turn(text="Hi", metadata={"password": "swordfish"}).to_episode(SCOPE))


def test_what_stands_around_personal_data_in_the_object_of_a_fact_is_kept() -> None:
    triple = Triple(subject="Maya", relation="wrote", object="call +1 415 555 2671 or mail a@b.org, please")
    assert PLAIN.triple(triple).object == "call [phone] or mail [email], please"


def test_the_title_of_a_document_is_redacted() -> None:
    document = Document(text="text", title="Mail to maya@example.com")
    assert PLAIN.episode(document.to_episode(SCOPE)).title == "Mail to [email]"


def test_what_is_attached_is_redacted() -> None:
    pictures = (
        {"kind": "image", "description": 'A note: "my password is hunter2"', "url": "https://e.org/?u=a@b.org"},
    )
    [found] = episode("Look!", attachments=pictures).attachments
    assert (found.description, found.url) == ('A note: "my password is [password]"', "https://e.org/?[email]")


@pytest.mark.parametrize("field", ["speaker", "session_id", "external_id"])
def test_a_personal_id_is_refused_without_a_key_and_the_message_says_what_to_do(field: str) -> None:
    with pytest.raises(InvalidInput, match=rf"Turn\.{field}: '\[email\]' .* set redact_key") as error:
        episode("hello", None, **{field: "maya@example.com"})
    assert "maya" not in str(error.value)


def test_a_key_makes_equal_digests_of_equal_ids_and_others_of_others() -> None:
    ids = ["maya@example.com", "tom@example.com", "maya@example.com", "maya%40example.com:7"]
    first, second, again, encoded = (episode("hello", KEYED, external_id=one).external_id for one in ids)
    assert first == again == KEYED.stored_name("maya@example.com")
    assert len({first, second, encoded}) == 3
    assert all(one is not None and one.startswith("[email]") and "maya" not in one for one in (first, second, encoded))


def test_another_key_makes_another_digest() -> None:
    other = Redaction(PatternRedactor(), "another key")
    assert other.stored_name("maya@example.com") != KEYED.stored_name("maya@example.com")


def test_a_digest_is_not_redacted_again() -> None:
    names = [KEYED.stored_name(f"person{i}@example.com") for i in range(200)]
    assert [KEYED.stored_name(name) for name in names] == names


def test_a_scope_named_by_a_personal_id_is_refused() -> None:
    with pytest.raises(InvalidInput, match=r"scope: '\[email\]'"):
        PLAIN.require_scope(Scope("users", "maya@example.com"))
    PLAIN.require_scope(Scope("users", "4155552671"))


@pytest.mark.parametrize(
    ("relation", "target", "stored"),
    [
        ("has e-mail", "maya@example.com", "[email]"),
        ("has_password", "swordfish", "[password]"),
        ("phone number", "4155552671", "[phone]"),
        ("works_at", "Globex", "Globex"),
    ],
)
def test_the_object_of_a_ready_made_fact_is_redacted_by_what_the_relation_says(
    relation: str, target: str, stored: str
) -> None:
    assert PLAIN.triple(Triple(subject="Maya", relation=relation, object=target)).object == stored


def test_a_password_as_the_object_of_a_bare_verb_is_redacted() -> None:
    assert PLAIN.triple(Triple(subject="wifi password", relation="is", object="swordfish")).object == "[password]"


def test_a_person_named_by_an_address_needs_a_key() -> None:
    triple = Triple(subject="maya@example.com", relation="works_at", object="Globex")
    with pytest.raises(InvalidInput, match=r"Triple\.subject"):
        PLAIN.triple(triple)
    assert KEYED.triple(triple).subject == KEYED.stored_name("maya@example.com")


class Careless:
    """Returns what nobody told it, or fails with it."""

    name = "careless"
    batch_size = 4

    def __init__(self, result: Extraction | Exception | None) -> None:
        self.result = result
        self.seen: list[ExtractionRequest] = []

    def extract(self, requests: Sequence[ExtractionRequest]) -> list[Extraction | Exception]:
        self.seen += requests
        if self.result is None:
            raise RuntimeError("401: bad key sk-" + "abc123def456ghi789jkl")
        return [self.result for _ in requests]


def extracted(careless: Careless, text: str = "My mail is maya@example.com") -> Extraction | Exception:
    request = ExtractionRequest(Turn(text=text, speaker="tom@example.com").to_episode(SCOPE))
    [result] = RedactingExtractor(careless, PLAIN).extract([request])
    return result


def test_a_filter_is_compared_with_stored_names_in_each_field_that_has_some() -> None:
    mail = "maya@example.com"
    values: dict[str, Any] = {name: f"{mail} {name}" for name in sorted(EpisodeFilter.model_fields.keys() - NO_NAMES)}
    stored = KEYED.stored_filter(EpisodeFilter(**values, metadata={"by": mail}))
    assert values.keys() >= {"session_ids", "session_prefix", "speakers"}
    for name, value in values.items():
        assert KEYED.stored_name(value) in (found := getattr(stored, name)), name
        assert mail not in found
    assert stored.metadata == {"by": {"$eq": "[email]"}}


def test_an_extractor_gets_no_text_that_was_stored_without_redaction() -> None:
    careless = Careless(Extraction())
    extracted(careless)
    [request] = careless.seen
    assert (request.episode.text, request.episode.speaker) == ("My mail is [email]", "[email]")


def test_what_an_extractor_returns_is_redacted_and_placeholders_are_no_entities() -> None:
    edges = (
        ExtractedEdge("Maya", "has", "email", fact="Maya has maya@example.com"),
        ExtractedEdge("Maya", "uses", "the mail [ email", fact="a placeholder that was cut"),
        ExtractedEdge("Maya", "works_at", "Globex", fact="Maya (maya@example.com) works at Globex"),
    )
    entities = (ExtractedEntity("Maya", summary="pwd: hunter2"), ExtractedEntity("[email]"))
    found = extracted(Careless(Extraction(entities, edges)))
    assert isinstance(found, Extraction)
    assert found.entities == (ExtractedEntity("Maya", summary="pwd: [password]"),)
    assert [edge.fact for edge in found.edges] == ["Maya ([email]) works at Globex"]


def test_sources_of_facts_and_endings_are_redacted_in_both_directions() -> None:
    careless = Careless(
        Extraction(
            edges=(ExtractedEdge("maya@example.com", "works_at", "Globex"), ExtractedEdge("Maya", "likes", "tea")),
            endings=(
                ExtractedEnding("maya@example.com", "works_at", "Acme"),
                ExtractedEnding("Maya", "has_password", "swordfish"),
                ExtractedEnding(fact_id="7", source="maya@example.com"),
            ),
        )
    )
    known = Known(facts=(KnownFact("7", "maya@example.com", "works_at", "Acme"),))
    episode = Turn(text="My mail is maya@example.com", role="maya@example.com").to_episode(SCOPE)
    [found] = RedactingExtractor(careless, PLAIN).extract([ExtractionRequest(episode, known=known)])
    assert isinstance(found, Extraction)
    assert "maya@example.com" not in repr((found, careless.seen))
    assert "swordfish" not in repr(found)
    assert [edge.target for edge in found.edges] == ["tea"]
    assert [ending.fact_id for ending in found.endings] == ["7"]


def test_errors_of_an_extractor_are_redacted_and_keep_their_class() -> None:
    found = extracted(Careless(ValueError("no JSON: maya@example.com")))
    assert isinstance(found, ValueError)
    assert str(found) == "no JSON: [email]"
    with pytest.raises(RuntimeError, match=r"401: bad key \[key\]"):
        extracted(Careless(None))


def test_what_is_no_extraction_is_an_error_of_that_episode() -> None:
    assert isinstance(extracted(Careless("nonsense")), ExtractionFailed)  # type: ignore[arg-type]


def test_a_redacted_extractor_gets_the_calls_turns_and_known_facts_that_it_takes() -> None:
    class Parallel(Careless):
        concurrency, turns_per_call, reads_known = 16, 4, True

    redaction = Redaction(PatternRedactor())
    wrapped = [RedactingExtractor(extractor(None), redaction) for extractor in (Careless, Parallel)]
    assert [(w.concurrency, w.turns_per_call, w.reads_known) for w in wrapped] == [(1, 1, False), (16, 4, True)]
