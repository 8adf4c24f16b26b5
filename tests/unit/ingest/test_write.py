"""Episodes become entities, mentions and facts, in one transaction."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Literal

import pytest

from graphmem.ingest.interpretation import InterpretedEpisode, read_extraction
from graphmem.ingest.write import Writer
from graphmem.models import Changes, EdgeQuery, EdgeType, EntityQuery, Episode, Scope
from graphmem.ontology import DEFAULT_ONTOLOGY
from graphmem.protocols import ExtractedEdge, ExtractedEnding, ExtractedEntity, Extraction, GraphBackend
from graphmem.registry import open_backend
from graphmem.text.redact import PatternRedactor

SCOPE = Scope("tests")
SPRING, SUMMER = datetime(2026, 3, 1, tzinfo=UTC), datetime(2026, 7, 1, tzinfo=UTC)


@pytest.fixture
def backend() -> Iterator[GraphBackend]:
    store = open_backend("memory://")
    yield store
    store.close()


def say(
    backend: GraphBackend,
    extraction: Extraction,
    *,
    at: datetime = SPRING,
    speaker: str | None = None,
    role: str | None = None,
) -> Counter[str]:
    """Store an episode and what it says; return what was dropped."""
    episode = Episode(scope=SCOPE, text="…", occurred_at=at, speaker=speaker, role=role)
    backend.add_episodes(SCOPE, [episode])
    dropped: Counter[str] = Counter()
    reading = read_extraction(episode, extraction, DEFAULT_ONTOLOGY, dropped)
    written = Writer(backend, DEFAULT_ONTOLOGY).write(SCOPE, [reading])
    return dropped + written.dropped


def names(backend: GraphBackend) -> dict[str, str]:
    return {e.name: e.entity_type for e in backend.all_entities([SCOPE], EntityQuery())}


def edges(backend: GraphBackend, versions: str = "all") -> list[tuple[str, bool]]:
    found = backend.find_edges([SCOPE], EdgeQuery(versions=versions))  # type: ignore[arg-type]
    return [(e.fact, e.is_active) for e in found]


def test_the_same_name_in_another_casing_is_the_same_entity_with_the_latest_casing(backend: GraphBackend) -> None:
    say(backend, Extraction((ExtractedEntity("ACME corp", "organization"),)))
    say(backend, Extraction((ExtractedEntity("Acme Corp", "organization"),)), at=SUMMER)
    assert names(backend) == {"Acme Corp": "organization"}


@pytest.mark.parametrize("seen", [("Apple", "APPLE"), ("Apple", "apple"), ("APPLE", "apple", "Apple"), ("IBM", "ibm")])
def test_a_careless_casing_does_not_change_the_display_name(backend: GraphBackend, seen: tuple[str, ...]) -> None:
    for name in seen:
        say(backend, Extraction((ExtractedEntity(name, "organization"),)))
    assert set(names(backend)) == {seen[0] if len(seen) == 2 else "Apple"}


def test_an_older_mention_does_not_change_the_display_name(backend: GraphBackend) -> None:
    say(backend, Extraction((ExtractedEntity("Acme Corp", "organization"),)), at=SUMMER)
    say(backend, Extraction((ExtractedEntity("acme corp", "organization"),)), at=SPRING)
    [entity] = backend.find_entities([SCOPE], EntityQuery())
    assert (entity.name, entity.first_seen_at, entity.last_seen_at) == ("Acme Corp", SPRING, SUMMER)


def test_an_unknown_type_becomes_concept_and_keeps_the_word(backend: GraphBackend) -> None:
    say(backend, Extraction((ExtractedEntity("Rex the dog", "Animal"),)))
    [entity] = backend.find_entities([SCOPE], EntityQuery())
    assert (entity.entity_type, entity.properties) == ("concept", {"declared_type": "animal"})


def test_two_types_of_one_name_are_two_entities(backend: GraphBackend) -> None:
    say(backend, Extraction((ExtractedEntity("Python", "language"),)))
    say(backend, Extraction((ExtractedEntity("Python", "concept"),)))
    assert len(backend.find_entities([SCOPE], EntityQuery())) == 2


def test_a_guessed_type_gives_way_to_what_is_known_by_that_name(backend: GraphBackend) -> None:
    say(backend, Extraction((ExtractedEntity("Maya", "person"),)))
    say(backend, Extraction((ExtractedEntity("Maya", "location", guessed=True),)))
    assert names(backend) == {"Maya": "person"}


def test_a_stated_type_replaces_a_guessed_one(backend: GraphBackend) -> None:
    say(backend, Extraction((ExtractedEntity("Maya", "location", guessed=True),)))
    say(backend, Extraction((ExtractedEntity("Maya", "person"),)))
    assert names(backend) == {"Maya": "person"}
    say(backend, Extraction((ExtractedEntity("Maya", "location"),)))
    assert len(backend.find_entities([SCOPE], EntityQuery())) == 2  # stated twice: two that share a name


def test_a_better_guess_replaces_a_concept(backend: GraphBackend) -> None:
    say(backend, Extraction((ExtractedEntity("Priya", "concept", guessed=True),)))
    say(backend, Extraction((ExtractedEntity("Priya", "person", guessed=True),)))
    say(backend, Extraction((ExtractedEntity("Priya", "location", guessed=True),)))
    assert names(backend) == {"Priya": "person"}


def test_a_stated_type_that_the_ontology_lacks_leaves_a_guessed_one(backend: GraphBackend) -> None:
    say(backend, Extraction((ExtractedEntity("Maya", "person", guessed=True),)))
    say(backend, Extraction((ExtractedEntity("Maya", "astronaut"),)))
    (entity,) = backend.find_entities([SCOPE], EntityQuery())
    assert (entity.entity_type, entity.properties.get("declared_type")) == ("person", "astronaut")
    say(backend, Extraction((ExtractedEntity("Maya", "tool"),)))
    (entity,) = backend.find_entities([SCOPE], EntityQuery())
    assert entity.entity_type == "tool"


def test_a_guessed_name_in_lower_case_leaves_the_name_that_somebody_wrote(backend: GraphBackend) -> None:
    say(backend, Extraction((ExtractedEntity("Nate", "person"),)))
    say(backend, Extraction((ExtractedEntity("nate", "concept", guessed=True),)))
    assert names(backend) == {"Nate": "person"}


def test_an_end_without_a_stated_type_is_whatever_is_known_by_that_name(backend: GraphBackend) -> None:
    say(backend, Extraction((ExtractedEntity("Maya", "person"),)))
    say(backend, Extraction(edges=(ExtractedEdge("maya", "enjoys", "chess"),)))
    assert names(backend) == {"Maya": "person", "chess": "concept"}


def test_a_well_known_relation_tells_the_types_of_its_ends(backend: GraphBackend) -> None:
    say(
        backend,
        Extraction(edges=(ExtractedEdge("Maya", "enjoys", "chess"), ExtractedEdge("Maya", "employed by", "Globex"))),
    )
    assert names(backend) == {"Maya": "person", "chess": "concept", "Globex": "organization"}


def test_names_that_are_too_short_are_left_out_and_counted(backend: GraphBackend) -> None:
    dropped = say(backend, Extraction(edges=(ExtractedEdge("Maya", "likes", "x"),)))
    assert dropped == {"entity name": 1}
    assert names(backend) == {}


def test_a_short_name_of_the_speaker_is_allowed(backend: GraphBackend) -> None:
    say(backend, Extraction(edges=(ExtractedEdge("Bo", "enjoys", "chess"),)), speaker="Bo")
    assert set(names(backend)) == {"Bo", "chess"}


def test_self_loops_are_dropped_and_counted(backend: GraphBackend) -> None:
    dropped = say(backend, Extraction(edges=(ExtractedEdge("Maya", "likes", "MAYA"),)))
    assert dropped == {"self-loop": 1}


def test_a_missing_sentence_is_made_of_the_names(backend: GraphBackend) -> None:
    say(backend, Extraction(edges=(ExtractedEdge("Maya", "Works with", "Jonas"),)))
    assert edges(backend) == [("Maya works with Jonas", True)]


def test_a_new_job_ends_the_old_one_when_it_is_told(backend: GraphBackend) -> None:
    say(backend, Extraction(edges=(ExtractedEdge("Maya", "works_at", "Initech"),)), at=SPRING)
    say(backend, Extraction(edges=(ExtractedEdge("Maya", "works_at", "Globex"),)), at=SUMMER)
    assert edges(backend) == [("Maya works at Initech", False), ("Maya works at Globex", True)]


def test_news_of_an_earlier_job_leaves_the_present_one(backend: GraphBackend) -> None:
    say(backend, Extraction(edges=(ExtractedEdge("Maya", "works_at", "Globex"),)), at=SUMMER)
    say(backend, Extraction(edges=(ExtractedEdge("Maya", "works_at", "Initech"),)), at=SPRING)
    assert edges(backend, "active") == [("Maya works at Globex", True)]


def test_an_ended_fact_is_closed_whatever_its_edge_type(backend: GraphBackend) -> None:
    say(backend, Extraction(edges=(ExtractedEdge("Maya", "uses", "vim", edge_type="causal"),)), at=SPRING)
    say(backend, Extraction(edges=(ExtractedEdge("Maya", "uses", "vim", ended=True),)), at=SUMMER)
    assert edges(backend) == [("Maya uses vim", False)]


def test_an_ended_fact_that_was_never_known_is_stored_closed_if_its_beginning_is_stated(backend: GraphBackend) -> None:
    ended = ExtractedEdge("Maya", "uses", "vim", ended=True, valid_from=SPRING)
    say(backend, Extraction(edges=(ended,)), at=SUMMER)
    [edge] = backend.find_edges([SCOPE], EdgeQuery(versions="all"))
    assert (edge.valid_from, edge.valid_to) == (SPRING, SUMMER)


def test_an_extracted_edge_type_that_is_unknown_is_semantic(
    backend: GraphBackend, caplog: pytest.LogCaptureFixture
) -> None:
    say(backend, Extraction(edges=(ExtractedEdge("Maya", "met", "Jonas", edge_type="Social"),)))
    [edge] = backend.find_edges([SCOPE], EdgeQuery())
    assert edge.edge_type is EdgeType.SEMANTIC
    assert "Social" in caplog.text


def test_hierarchical_is_read_as_entity(backend: GraphBackend) -> None:
    say(backend, Extraction(edges=(ExtractedEdge("Rust", "grows in", "crates", edge_type="hierarchical"),)))
    assert backend.find_edges([SCOPE], EdgeQuery())[0].edge_type is EdgeType.ENTITY


def test_confidence_out_of_range_is_brought_into_it(backend: GraphBackend) -> None:
    stated = [
        ExtractedEdge("Maya", "met", n, confidence=c) for n, c in (("Ann", 7.0), ("Bob", -1.0), ("Cid", float("nan")))
    ]
    say(backend, Extraction(edges=tuple(stated)))
    assert [e.confidence for e in backend.find_edges([SCOPE], EdgeQuery())] == [1.0, 0.0, 0.0]


def test_an_episode_counts_once_however_often_it_names_an_entity(backend: GraphBackend) -> None:
    twice = Extraction((ExtractedEntity("Maya", "person"),), (ExtractedEdge("Maya", "met", "Jonas"),))
    say(backend, twice)
    [maya] = [e for e in backend.find_entities([SCOPE], EntityQuery()) if e.name == "Maya"]
    assert len(backend.find_mentions([SCOPE], entity_ids=[maya.id])) == 1


def test_an_episode_that_somebody_else_settled_is_not_written_again(backend: GraphBackend) -> None:
    episode = Episode(scope=SCOPE, text="…", occurred_at=SPRING)
    backend.add_episodes(SCOPE, [episode])
    extraction = Extraction(edges=(ExtractedEdge("Maya", "met", "Jonas"),))
    reading = read_extraction(episode, extraction, DEFAULT_ONTOLOGY, Counter())
    writer = Writer(backend, DEFAULT_ONTOLOGY)
    assert writer.write(SCOPE, [reading]).edges == 1
    again = writer.write(SCOPE, [reading])
    assert (again.edges, again.supported) == (0, 0)


def test_what_an_episode_states_and_the_facts_that_it_ends_are_one_write(
    backend: GraphBackend, monkeypatch: pytest.MonkeyPatch
) -> None:
    say(backend, Extraction(edges=(ExtractedEdge("Maya", "works_at", "Globex"),)))
    [before] = backend.find_edges([SCOPE], EdgeQuery())
    written: list[Changes] = []
    write = backend.write

    def watched(scope: Scope, changes: Changes) -> None:
        written.append(changes)
        write(scope, changes)

    monkeypatch.setattr(backend, "write", watched)
    say(backend, Extraction(edges=(ExtractedEdge("Maya", "works_at", "Initech"),)), at=SUMMER)
    [one] = written
    assert [(expiry.edge_id, expiry.superseded_by) for expiry in one.expiries] == [(before.id, one.edges[0].id)]
    assert [edge.fact for edge in one.edges] == ["Maya works at Initech"]
    assert {entity.name for entity in one.entities} == {"Maya", "Initech"}
    assert {mention.surface for mention in one.mentions} == {"Maya", "Initech"}
    assert len(one.aliases) == len(one.results) == 1


def test_nothing_is_stored_when_the_write_fails(backend: GraphBackend, monkeypatch: pytest.MonkeyPatch) -> None:
    episode = Episode(scope=SCOPE, source="triple", text="…", occurred_at=SPRING, processed_at=SPRING)
    reading = read_extraction(episode, Extraction((ExtractedEntity("Maya"),)), DEFAULT_ONTOLOGY, Counter())
    stale_scopes = InterpretedEpisode(reading.episode, reading.mentions, reading.statements, settles=False)

    def fail(*_: object) -> None:
        raise RuntimeError("power cut")

    monkeypatch.setattr(backend, "write", fail)
    with pytest.raises(RuntimeError, match="power cut"):
        Writer(backend, DEFAULT_ONTOLOGY).write(SCOPE, [stale_scopes], new_episodes=[episode])
    assert backend.get_episodes([SCOPE], [episode.id]) == {}


def test_personal_data_is_redacted_from_facts_but_not_from_names(backend: GraphBackend) -> None:
    episode = Episode(scope=SCOPE, text="…", occurred_at=SPRING)
    backend.add_episodes(SCOPE, [episode])
    stated = ExtractedEdge(
        "Maya", "reads", "team@globex.example", fact="Maya (maya@x.example) reads team@globex.example"
    )
    reading = read_extraction(episode, Extraction(edges=(stated,)), DEFAULT_ONTOLOGY, Counter())
    Writer(backend, DEFAULT_ONTOLOGY, PatternRedactor()).write(SCOPE, [reading])
    assert edges(backend) == [("Maya ([email]) reads team@globex.example", True)]


def test_contacts_are_not_stored_where_personal_data_is_redacted(backend: GraphBackend) -> None:
    episode = Episode(scope=SCOPE, text="…", occurred_at=SPRING)
    backend.add_episodes(SCOPE, [episode])
    facts = (
        ExtractedEdge("Maya", "has_email", "maya@x.example"),
        ExtractedEdge("Maya", "has_address", "27 Rue Cler, 75007 Paris"),
        ExtractedEdge("Maya", "has_age", "29 years"),
    )
    mail = ExtractedEntity("maya@x.example")
    old = ExtractedEnding("Maya", "has_email", "maya@old.example", why="corrected")
    reading = read_extraction(episode, Extraction((mail,), facts, endings=(old,)), DEFAULT_ONTOLOGY, Counter())
    written = Writer(backend, DEFAULT_ONTOLOGY, PatternRedactor()).write(SCOPE, [reading])
    assert edges(backend) == [("Maya has age 29 years", True)]
    assert written.dropped == {"personal data": 2}
    assert {e.name for e in backend.find_entities([SCOPE], EntityQuery(), limit=9)} == {"Maya", "29 years"}


def test_hearsay_against_a_surer_fact_ends_nothing_and_is_stored_beside_it(backend: GraphBackend) -> None:
    say(backend, Extraction(edges=(ExtractedEdge("Eva", "works_at", "Globex", confidence=0.5),)))
    claims = (
        ExtractedEdge("Eva", "works_at", "Initech", confidence=0.9, certainty="hearsay"),
        ExtractedEdge("Eva", "works_at", "Globex", confidence=0.9, ended=True, certainty="hearsay"),
    )
    say(backend, Extraction(edges=claims), at=SUMMER)
    found = backend.find_edges([SCOPE], EdgeQuery(versions="active"))
    assert [(e.fact, e.certainty) for e in found] == [
        ("Eva works at Globex", "stated"),
        ("Eva works at Initech", "hearsay"),
    ]


def test_a_fact_of_which_only_the_end_is_known_holds_on_its_last_day(backend: GraphBackend) -> None:
    ended = ExtractedEdge("Eva", "worked_at", "Globex", valid_to=datetime(2023, 1, 1, tzinfo=UTC))
    say(backend, Extraction(edges=(ended,)))
    [edge] = backend.find_edges([SCOPE], EdgeQuery(versions="all"))
    assert (edge.valid_from, edge.valid_to) == (datetime(2022, 12, 31, tzinfo=UTC), datetime(2023, 1, 1, tzinfo=UTC))


def test_an_ending_of_a_relation_with_several_values_is_dropped_and_counted(backend: GraphBackend) -> None:
    dropped = say(backend, Extraction(endings=(ExtractedEnding("Eva", "uses"),)))
    assert dropped == {"ending of a relation with several values": 1}


def test_the_facts_with_other_targets_end(backend: GraphBackend) -> None:
    dana, erik = (ExtractedEdge("Eva", "has_manager", name) for name in ("Dana", "Erik"))
    other = ExtractedEdge("Ida", "has_manager", "Dana")
    only = ExtractedEnding("Eva", "has_manager", "Erik", others="targets")
    say(backend, Extraction(edges=(dana, other)))
    assert say(backend, Extraction(edges=(erik,), endings=(only,)), at=SUMMER) == {}
    again = SUMMER + timedelta(days=1)
    assert say(backend, Extraction(edges=(erik,), endings=(only,)), at=again) == {}
    assert {fact: span[:2] for fact, span in spans(backend).items()} == {
        "Eva has manager Dana": (SPRING, SUMMER),
        "Eva has manager Erik": (SUMMER, None),
        "Ida has manager Dana": (SPRING, None),
    }


def test_the_facts_of_other_sources_end(backend: GraphBackend) -> None:
    dana, erik = (ExtractedEdge(name, "is_ceo_of", "Acme") for name in ("Dana", "Erik"))
    other = ExtractedEdge("Dana", "is_ceo_of", "Globex")
    only = ExtractedEnding("Erik", "is_ceo_of", "Acme", others="sources")
    say(backend, Extraction(edges=(dana, other)))
    assert say(backend, Extraction(edges=(erik,), endings=(only,)), at=SUMMER) == {}
    assert {fact: span[:2] for fact, span in spans(backend).items()} == {
        "Dana is ceo of Acme": (SPRING, SUMMER),
        "Erik is ceo of Acme": (SUMMER, None),
        "Dana is ceo of Globex": (SPRING, None),
    }


def test_an_ending_comes_before_the_facts_of_its_episode(backend: GraphBackend) -> None:
    say(backend, Extraction(edges=(ExtractedEdge("Eva", "works_at", "Globex"),)))
    new = ExtractedEdge("Eva", "works_at", "Initech")
    say(backend, Extraction(edges=(new,), endings=(ExtractedEnding("Eva", "works_at"),)), at=SUMMER)
    assert sorted(edges(backend)) == [("Eva works at Globex", False), ("Eva works at Initech", True)]


def spans(backend: GraphBackend) -> dict[str, tuple[datetime, datetime | None, str | None]]:
    found = backend.find_edges([SCOPE], EdgeQuery(versions="all"))
    return {e.fact: (e.valid_from, e.valid_to, e.end_reason) for e in found}


def test_a_change_of_the_same_day_ends_what_was_told_in_the_morning(backend: GraphBackend) -> None:
    morning, today = datetime(2026, 3, 5, 9, 38, tzinfo=UTC), datetime(2026, 3, 5, tzinfo=UTC)
    say(backend, Extraction(edges=(ExtractedEdge("Checkout", "runs_on", "Fargate"),)), at=morning)
    switched = ExtractedEdge("Checkout", "runs_on", "EKS", valid_from=today)
    say(backend, Extraction(edges=(switched,)), at=morning.replace(hour=18))
    assert edges(backend, "active") == [("Checkout deployed on EKS", True)]


def test_a_job_that_was_over_before_it_was_told_is_kept_as_past(backend: GraphBackend) -> None:
    say(backend, Extraction(edges=(ExtractedEdge("Maya", "works_at", "Globex"),)))
    used_to = ExtractedEdge("Maya", "works_at", "Booking", fact="Maya used to work at Booking", ended=True)
    dropped = say(backend, Extraction(edges=(used_to,)), at=SUMMER)
    assert not dropped
    assert spans(backend) == {
        "Maya works at Globex": (SPRING, None, None),
        "Maya used to work at Booking": (SUMMER - timedelta(days=1), SUMMER, None),
    }


def test_an_ending_of_a_fact_that_is_not_known_leaves_no_past_one(backend: GraphBackend) -> None:
    dropped = say(backend, Extraction(endings=(ExtractedEnding("Maya", "owns", "Tesla"),)))
    assert dropped == {"ending of an unknown fact": 1}
    assert edges(backend) == []


def test_a_presumed_ending_of_a_fact_that_is_not_known_leaves_no_trace(backend: GraphBackend) -> None:
    ending = ExtractedEnding("Maya", "owns", "Tesla", presumed=True)
    assert say(backend, Extraction(endings=(ending,))) == {}
    assert "Tesla" not in {e.name for e in backend.all_entities([SCOPE], EntityQuery())}
    say(backend, Extraction(edges=(ExtractedEdge("Maya", "owns", "Tesla"),)))
    assert say(backend, Extraction(endings=(ending,)), at=SUMMER) == {}
    assert spans(backend) == {"Maya owns Tesla": (SPRING, SUMMER, "over")}


def test_an_ending_may_name_the_fact_by_its_target_or_its_id(backend: GraphBackend) -> None:
    tools = [ExtractedEdge("Maya", "uses", tool) for tool in ("vim", "emacs", "nano")]
    say(backend, Extraction(edges=tuple(tools)))
    emacs = next(e for e in backend.find_edges([SCOPE], EdgeQuery()) if "emacs" in e.fact)
    endings = (
        ExtractedEnding("Maya", "uses", "vim"),
        ExtractedEnding(fact_id=emacs.id, why="corrected"),
        ExtractedEnding(fact_id="unknown"),
    )
    assert say(backend, Extraction(endings=endings), at=SUMMER) == {"ending of an unknown fact": 1}
    assert spans(backend) == {
        "Maya uses vim": (SPRING, SUMMER, "over"),
        "Maya uses emacs": (SPRING, SPRING, "corrected"),
        "Maya uses nano": (SPRING, None, None),
    }


def test_a_correction_takes_over_the_beginning(backend: GraphBackend) -> None:
    say(backend, Extraction(edges=(ExtractedEdge("Launch", "has_status", "March", valid_from=SPRING),)))
    [wrong] = backend.find_edges([SCOPE], EdgeQuery())
    meant = ExtractedEdge("Launch", "has_status", "April")
    corrected = ExtractedEnding(fact_id=wrong.id, why="corrected")
    say(backend, Extraction(edges=(meant,), endings=(corrected,)), at=SUMMER)
    assert spans(backend) == {
        "Launch has status March": (SPRING, SPRING, "corrected"),
        "Launch has status April": (SPRING, None, None),
    }


@pytest.mark.parametrize("begin", [SPRING, None])
def test_a_correction_that_was_over_before_has_a_beginning_of_its_own(
    backend: GraphBackend, begin: datetime | None
) -> None:
    say(backend, Extraction(edges=(ExtractedEdge("Acme", "pays", "92,000 EUR", valid_from=begin),)))
    [wrong] = backend.find_edges([SCOPE], EdgeQuery())
    last_year = ExtractedEdge("Acme", "pays", "92,000 EUR", valid_to=SPRING - timedelta(days=60))
    corrected = ExtractedEnding(fact_id=wrong.id, why="corrected")
    say(backend, Extraction(edges=(last_year,), endings=(corrected,)), at=SUMMER)
    versions = backend.find_edges([SCOPE], EdgeQuery(versions="all"))
    held = {(edge.valid_from, edge.valid_to) for edge in versions if edge.expired_at is None}
    assert held == {(SPRING - timedelta(days=61), SPRING - timedelta(days=60))}


def test_an_event_that_was_taken_back_does_not_go_on(backend: GraphBackend) -> None:
    """One that one reply corrects and calls off held without an end, and a state of the same words was a conflict."""
    fair = ExtractedEdge(
        "Maya", "attends", "Fair", valid_from=SUMMER, valid_to=SUMMER + timedelta(days=9), kind="event"
    )
    say(backend, Extraction(edges=(fair,)))
    [known] = backend.find_edges([SCOPE], EdgeQuery(versions="all"))
    endings = (ExtractedEnding(fact_id=known.id, why=why) for why in ("corrected", "continues"))
    say(backend, Extraction(endings=tuple(endings)))
    say(backend, Extraction(edges=(ExtractedEdge("Maya", "attends", "Fair", certainty="plan"),)))
    versions = backend.find_edges([SCOPE], EdgeQuery(versions="all"))
    assert {(edge.kind, edge.valid_to) for edge in versions} == {("event", SUMMER), ("state", None)}


def test_a_version_told_after_an_end_does_not_have_that_end(backend: GraphBackend) -> None:
    """The turn of July is stored first; those of April and May end the fact in June and in March."""
    april, may, june = (SPRING + timedelta(days=days) for days in (31, 61, 92))
    say(backend, Extraction(edges=(ExtractedEdge("Maya", "likes", "Oslo", valid_from=SPRING),)), at=SUMMER)
    say(backend, Extraction(edges=(ExtractedEdge("Maya", "likes", "Oslo", valid_to=june),)), at=april)
    [known] = backend.find_edges([SCOPE], EdgeQuery(versions="all"))
    earlier = SPRING + timedelta(days=9)
    say(backend, Extraction(endings=(ExtractedEnding(fact_id=known.id, valid_to=earlier),)), at=may)
    versions = backend.find_edges([SCOPE], EdgeQuery(versions="all"))
    assert {(edge.valid_from, edge.valid_to) for edge in versions} == {(SPRING, earlier), (SUMMER, None)}


def test_what_others_say_does_not_end_what_a_person_said_of_herself(backend: GraphBackend) -> None:
    say(backend, Extraction(edges=(ExtractedEdge("Maya", "lives_in", "Berlin"),)), speaker="Maya")
    say(backend, Extraction(edges=(ExtractedEdge("Maya", "lives_in", "Oslo"),)), at=SUMMER, speaker="Tom")
    assert edges(backend) == [("Maya lives in Berlin", True), ("Maya lives in Oslo", True)]
    say(backend, Extraction(edges=(ExtractedEdge("Maya", "lives_in", "Rome"),)), at=SUMMER, speaker="Maya")
    assert edges(backend, "active") == [("Maya lives in Rome", True)]


OWN = Extraction(edges=(ExtractedEdge("Maya", "works_at", "Initech"),))


@pytest.mark.parametrize(
    ("role", "ends"), [("user", True), ("Human", True), ("model", False), (" AI ", False), ("CHATBOT", False)]
)
def test_an_assistant_with_a_name_ends_nothing_by_number(backend: GraphBackend, role: str, ends: bool) -> None:
    say(backend, OWN, speaker="Maya")
    [fact] = backend.find_edges([SCOPE], EdgeQuery())
    over = Extraction(endings=(ExtractedEnding(fact_id=fact.id),))
    say(backend, over, at=SUMMER, speaker="Gemini", role=role)
    assert edges(backend) == [("Maya works at Initech", not ends)]


@pytest.mark.parametrize(
    ("why", "speaker", "ends"),
    [
        *(("over", speaker, speaker != "Assistant") for speaker in ("Maya", "Tom", "Assistant", None)),
        *(("corrected", speaker, speaker != "Tom") for speaker in ("Maya", "Tom", None)),
    ],
)
def test_a_person_ends_by_number_what_another_said_of_herself_and_corrects_nothing(
    backend: GraphBackend, speaker: str | None, ends: bool, why: Literal["over", "corrected"]
) -> None:
    say(backend, OWN, speaker="Maya")
    [fact] = backend.find_edges([SCOPE], EdgeQuery())
    say(backend, Extraction(endings=(ExtractedEnding(fact_id=fact.id, why=why),)), at=SUMMER, speaker=speaker)
    assert edges(backend) == [("Maya works at Initech", not ends)]


@pytest.mark.parametrize(("role", "ends"), [("user", True), ("assistant", False), ("tool", False)])
@pytest.mark.parametrize("by", ["number", "name", "fact"])
def test_in_a_chat_without_names_the_assistant_ends_nothing_that_the_user_said_of_himself(
    backend: GraphBackend, role: str, ends: bool, by: str
) -> None:
    say(backend, Extraction(edges=(ExtractedEdge("User", "works_at", "Initech"),)), role="user")
    [fact] = backend.find_edges([SCOPE], EdgeQuery())
    said = {
        "number": Extraction(endings=(ExtractedEnding(fact_id=fact.id),)),
        "name": Extraction(endings=(ExtractedEnding("User", "works_at", "Initech"),)),
        "fact": Extraction(edges=(ExtractedEdge("User", "works_at", "Globex"),)),
    }
    say(backend, said[by], at=SUMMER, role=role)
    assert ("User works at Initech", not ends) in edges(backend)


@pytest.mark.parametrize("in_one_turn", [True, False])
def test_a_person_who_speaks_under_an_alias_is_the_same_speaker(backend: GraphBackend, in_one_turn: bool) -> None:
    named = ExtractedEntity("Alex Chen", "person", aliases=("AC",))
    home = ExtractedEdge("Alex Chen", "lives_in", "Ghent")
    say(backend, Extraction(() if in_one_turn else (named,), (home,)), speaker="Alex Chen")
    moved = ExtractedEdge("Alex Chen", "lives_in", "Rome")
    say(backend, Extraction((named,) if in_one_turn else (), (moved,)), at=SUMMER, speaker="AC")
    assert edges(backend, "active") == [("Alex Chen lives in Rome", True)]
