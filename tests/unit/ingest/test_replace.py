"""Episodes that are extracted again: the new extraction takes the place of the earlier one, which history keeps."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import UTC, datetime

import pytest

from graphmem.ingest.corrections import find_ended, retract_fact
from graphmem.ingest.fact_ledger import FactLedger
from graphmem.ingest.queue import ExtractionQueue
from graphmem.models import AsOf, EdgeQuery, EntityQuery, Episode, EpisodeQuery, Scope, utc_now
from graphmem.ontology import DEFAULT_ONTOLOGY
from graphmem.protocols import (
    ExtractedEdge,
    ExtractedEnding,
    ExtractedEntity,
    Extraction,
    ExtractionRequest,
    GraphBackend,
)
from graphmem.registry import open_backend
from graphmem.settings import Settings

SCOPE = Scope("again")
APRIL = datetime(2026, 4, 1, tzinfo=UTC)
FIRST, SECOND = datetime(2026, 3, 1, tzinfo=UTC), datetime(2026, 7, 1, tzinfo=UTC)


class Reads:
    """Says of each text what it is given for it."""

    name, batch_size = "reads", 1

    def __init__(self, extractions: Mapping[str, Extraction | Exception]) -> None:
        self.extractions = extractions

    def extract(self, requests: Sequence[ExtractionRequest]) -> list[Extraction | Exception]:
        return [self.extractions.get(request.episode.text, Extraction()) for request in requests]


@pytest.fixture(params=["memory://", "sqlite"])
def backend(request: pytest.FixtureRequest, tmp_path: object) -> Iterator[GraphBackend]:
    url = request.param if request.param != "sqlite" else f"sqlite:///{tmp_path}/memory.db"
    store = open_backend(url)
    yield store
    store.close()


def say(backend: GraphBackend, text: str, at: datetime, speaker: str | None = None) -> str:
    [(episode_id, _)] = backend.add_episodes(SCOPE, [Episode(scope=SCOPE, text=text, occurred_at=at, speaker=speaker)])
    return episode_id


def extract(backend: GraphBackend, extractions: Mapping[str, Extraction | Exception]) -> None:
    queue = ExtractionQueue(backend, Reads(extractions), DEFAULT_ONTOLOGY, Settings(max_attempts=2, retry_delay=1e-6))
    queue.requeue_extracted(SCOPE)
    while queue.process().claimed:
        pass


def stated(*facts: tuple[str, str, str], entities: Sequence[str] = ()) -> Extraction:
    return Extraction(tuple(map(ExtractedEntity, entities)), tuple(ExtractedEdge(*fact) for fact in facts))


def funded(sentence: str, until: datetime | None) -> Extraction:
    return Extraction(edges=(ExtractedEdge("Thesis", "funded_by", "NFR", fact=sentence, valid_to=until),))


def facts(backend: GraphBackend, as_of: AsOf | None = None) -> set[str]:
    return {edge.fact for edge in backend.find_edges([SCOPE], EdgeQuery(as_of=as_of))}


def entities(backend: GraphBackend, *, archived: bool = False) -> set[str]:
    return {e.name for e in backend.find_entities([SCOPE], EntityQuery(archived=archived))}


def test_facts_that_are_not_stated_any_more_are_retracted_and_stay_in_the_history(backend: GraphBackend) -> None:
    say(backend, "a", FIRST)
    extract(backend, {"a": stated(("Maya", "knows", "Jonas"), ("Maya", "knows", "Lemme"))})
    before = utc_now()
    extract(backend, {"a": stated(("Maya", "knows", "Jonas"), ("Maya", "knows", "Priya"))})
    assert facts(backend) == {"Maya knows Jonas", "Maya knows Priya"}
    assert facts(backend, AsOf(known=before)) == {"Maya knows Jonas", "Maya knows Lemme"}
    every = backend.find_edges([SCOPE], EdgeQuery(versions="all"))
    assert sorted(e.fact for e in every) == ["Maya knows Jonas", "Maya knows Lemme", "Maya knows Priya"]


def test_the_same_result_again_changes_nothing(backend: GraphBackend) -> None:
    past = Extraction(edges=(ExtractedEdge("Maya", "works_at", "Aalto", ended=True),))
    moved = Extraction(edges=(ExtractedEdge("Maya", "lives_in", "Bern", valid_from=datetime(2026, 2, 1, tzinfo=UTC)),))
    told = {"a": past, "b": past, "c": stated(("Maya", "lives_in", "Rome")), "d": moved}
    for number, (text, speaker) in enumerate(zip(told, ("Zed", "Maya", "Maya", "Maya"), strict=True)):
        say(backend, text, FIRST + number * (SECOND - FIRST), speaker)

    def rows() -> list[tuple[str, datetime, datetime | None, str | None]]:
        edges = backend.find_edges([SCOPE], EdgeQuery(versions="all"))
        return sorted((edge.fact, edge.valid_from, edge.valid_to, edge.end_reason) for edge in edges)

    extract(backend, told)
    first = rows()
    assert facts(backend) == {"Maya lives in Bern"}
    for _ in range(2):
        extract(backend, told)
        assert rows() == first


def test_ended_facts_are_reopened_in_the_order_in_which_they_are_read(
    backend: GraphBackend, monkeypatch: pytest.MonkeyPatch
) -> None:
    say(backend, "a", FIRST)
    ending = say(backend, "b", SECOND)
    friends = ("Jonas", "Lemme", "Priya", "Zed", "Ida", "Tom", "Hanna", "Omar")
    told = {"a": stated(*(("Maya", "knows", friend) for friend in friends))}
    extract(backend, told | {"b": Extraction(endings=tuple(ExtractedEnding("Maya", "knows", f) for f in friends))})
    ended, reopened = list(find_ended(backend, SCOPE, [ending])), list[str]()
    assert len(ended) == len(friends)

    def reopen(_: FactLedger, edge_id: str, by: Collection[str]) -> None:
        reopened.append(edge_id)

    monkeypatch.setattr(FactLedger, "reopen", reopen)
    extract(backend, told)
    assert list(dict.fromkeys(reopened)) == ended


def test_an_end_that_was_called_off_counts_once_nothing_calls_it_off_any_more(backend: GraphBackend) -> None:
    job = stated(("Maya", "works_at", "Aalto"), ("Maya", "works_as", "nurse"))
    leaves = Extraction(endings=(ExtractedEnding("Maya", "works_at", "Aalto", valid_to=SECOND),))
    stays = Extraction(endings=(ExtractedEnding("Maya", "works_at", "Aalto", why="continues"),))
    told = {"a": job, "b": leaves, "c": stays}
    for day, text in enumerate(told, 1):
        say(backend, text, FIRST.replace(day=day), "Maya")

    def ends() -> set[datetime | None]:
        return {edge.valid_to for edge in backend.find_edges([SCOPE], EdgeQuery(versions="all"))}

    for _ in range(2):
        extract(backend, told)
        assert ends() == {None}
    extract(backend, told | {"c": Extraction()})
    assert ends() == {SECOND}


@pytest.mark.parametrize(
    ("later", "sentence"),
    [
        (funded("NFR funds it until 1 July.", SECOND), "NFR funds it until 1 July."),
        (funded("NFR funds it.", None), "NFR funds it until May."),
        (funded("NFR funds it until April.", APRIL), "NFR funds it until April."),
        (Extraction(endings=(ExtractedEnding("Thesis", "funded_by", "NFR", valid_to=SECOND),)), "Thesis funded by NFR"),
        (Extraction(endings=(ExtractedEnding("Thesis", "funded_by", "NFR", why="continues"),)), "Thesis funded by NFR"),
        (Extraction(endings=(ExtractedEnding("Thesis", "funded_by", "NFR", valid_to=APRIL),)), "Thesis funded by NFR"),
        (Extraction(endings=(ExtractedEnding("Thesis", "funded_by", "NFR"),)), "NFR funds it until May."),
    ],
    ids=[
        "moved",
        "told again",
        "sooner",
        "moved without a sentence",
        "called off",
        "sooner without a sentence",
        "over",
    ],
)
def test_a_sentence_tells_the_end_that_counts(backend: GraphBackend, later: Extraction, sentence: str) -> None:
    told = {
        "a": funded("NFR funds it until May.", datetime(2026, 5, 31, tzinfo=UTC)),
        "b": later,
        "c": funded("", None),
    }
    for day, text in enumerate(told, 1):
        say(backend, text, FIRST.replace(day=day))
    for _ in range(2):
        extract(backend, told)
        first = min(backend.find_edges([SCOPE], EdgeQuery(versions="all")), key=lambda edge: edge.valid_from)
        assert first.fact == sentence


def test_a_fact_that_was_retracted_by_hand_stays_so(backend: GraphBackend) -> None:
    say(backend, "a", FIRST)
    told = {"a": stated(("Maya", "works_at", "Aalto"), ("Maya", "knows", "Jonas"))}
    extract(backend, told)
    [wrong] = [edge for edge in backend.find_edges([SCOPE], EdgeQuery()) if edge.relation == "works_at"]
    retract_fact(backend, SCOPE, DEFAULT_ONTOLOGY, wrong.id, "a joke")
    extract(backend, told)
    assert facts(backend) == {"Maya knows Jonas"}
    say(backend, "b", SECOND)
    extract(backend, told | {"b": stated(("Maya", "works_at", "Aalto"))})
    assert facts(backend) == {"Maya knows Jonas", "Maya works at Aalto"}


def test_what_a_wrong_fact_had_ended_goes_on(backend: GraphBackend) -> None:
    say(backend, "a", FIRST)
    say(backend, "b", SECOND)
    right = stated(("Maya", "lives_in", "Berlin"))
    extract(backend, {"a": right, "b": stated(("Maya", "lives_in", "Boston"))})
    assert facts(backend) == {"Maya lives in Boston"}
    extract(backend, {"a": right, "b": Extraction()})
    assert facts(backend) == {"Maya lives in Berlin"}
    [edge] = backend.find_edges([SCOPE], EdgeQuery())
    assert (edge.valid_from, edge.valid_to) == (FIRST, None)


def test_a_corrected_value_ends_the_earlier_one_from_its_beginning(backend: GraphBackend) -> None:
    say(backend, "a", FIRST)
    say(backend, "b", SECOND)
    right = stated(("Maya", "lives_in", "Berlin"))
    extract(backend, {"a": right, "b": stated(("Maya", "lives_in", "Boston"))})
    extract(backend, {"a": right, "b": stated(("Maya", "lives_in", "Bremen"))})
    assert facts(backend) == {"Maya lives in Bremen"}
    assert facts(backend, AsOf(valid=FIRST)) == {"Maya lives in Berlin"}


def test_a_fact_that_others_state_as_well_stays_without_the_episode(backend: GraphBackend) -> None:
    first, second = say(backend, "a", FIRST), say(backend, "b", SECOND)
    both = stated(("Maya", "knows", "Jonas"))
    extract(backend, {"a": both, "b": both})
    extract(backend, {"a": both, "b": Extraction()})
    [edge] = backend.find_edges([SCOPE], EdgeQuery())
    assert (edge.episode_ids, second in edge.episode_ids) == ((first,), False)


def test_entities_that_nothing_speaks_of_any_more_are_archived(backend: GraphBackend) -> None:
    say(backend, "a", FIRST)
    extract(backend, {"a": stated(("Maya", "knows", "Jonas"), entities=["Weeeell"])})
    extract(backend, {"a": stated(("Maya", "knows", "Jonas"))})
    assert (entities(backend), entities(backend, archived=True)) == ({"Maya", "Jonas"}, {"Maya", "Jonas", "Weeeell"})


def test_mentions_are_replaced(backend: GraphBackend) -> None:
    episode_id = say(backend, "a", FIRST)
    extract(backend, {"a": stated(entities=["Weeeell", "Maya"])})
    extract(backend, {"a": stated(entities=["Maya", "Jonas"])})
    mentions = backend.find_mentions([SCOPE], episode_ids=[episode_id])
    assert {mention.surface for mention in mentions} == {"Maya", "Jonas"}


def test_an_episode_that_cannot_be_extracted_again_keeps_its_facts(backend: GraphBackend) -> None:
    say(backend, "a", FIRST)
    extract(backend, {"a": stated(("Maya", "knows", "Jonas"))})
    extract(backend, {"a": ValueError("bad answer")})
    assert facts(backend) == {"Maya knows Jonas"}
    assert backend.stats(SCOPE).failed_episodes == 1


def test_the_same_extraction_again_changes_nothing(backend: GraphBackend) -> None:
    say(backend, "a", FIRST)
    say(backend, "b", SECOND)
    said = {"a": stated(("Maya", "lives_in", "Berlin")), "b": stated(("Maya", "lives_in", "Boston"))}
    extract(backend, said)
    before = backend.find_edges([SCOPE], EdgeQuery(versions="all"))
    extract(backend, said)
    extract(backend, said)
    assert backend.find_edges([SCOPE], EdgeQuery(versions="all")) == before


def test_ready_made_facts_are_not_read_again(backend: GraphBackend) -> None:
    triples = Episode(scope=SCOPE, source="triple", text="x", processed_at=FIRST)
    backend.add_episodes(SCOPE, [triples])
    extract(backend, {})
    assert backend.find_episodes([SCOPE], EpisodeQuery()) == [triples]
