"""A new name is taken for a known entity where both mean the same, and for nothing else."""

from __future__ import annotations

import math
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from graphmem.embed import Embedder
from graphmem.errors import EmbeddingFailed
from graphmem.ingest import entity_matching
from graphmem.ingest.entity_matching import Prepared, SimilarEntities
from graphmem.ingest.interpretation import EntityMention, ExtractedFact, InterpretedEpisode
from graphmem.ingest.judges import Ask
from graphmem.ingest.note_links import NoteLinks
from graphmem.ingest.write import Writer
from graphmem.models import Changes, EdgeQuery, EdgeType, EntityQuery, IndexEntry, Merge, MergeQuery, Removal, Scope
from graphmem.ontology import DEFAULT_ONTOLOGY
from graphmem.protocols import ExtractedEdge, GraphBackend
from graphmem.recall.entity_embeddings import StoredEntityEmbeddings
from graphmem.registry import open_backend
from graphmem.testing.base import in_threads
from graphmem.testing.rows import episode, home, project
from graphmem.text.names import may_be_same, obstacle, spellings
from graphmem.upkeep.unmerge import unmerge


class Angles:
    """An embedding model of two dimensions: each text is a direction, in degrees; what it doesn't know is far off."""

    model_name = "angles"
    dimension = 2

    def __init__(self, **degrees: float) -> None:
        self.degrees = {name.replace("_", " "): value for name, value in degrees.items()}
        self.asked: list[str] = []
        self.broken = False

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        if self.broken:
            raise OSError("the model is away")
        self.asked += texts
        return [self._vector(text) for text in texts]

    def embed_query(self, text: str) -> list[float]:
        return self._vector(text)

    def _vector(self, text: str) -> list[float]:
        angle = math.radians(self.degrees.get(text.lower(), 170))
        return [math.cos(angle), math.sin(angle)]


WORDS = (
    "the of Inc Mr Dr city cities movie movies box boxes class classes essay essays Oslo University univ organise "
    "organizes colour color A.B.C. abc ABC a b c U.S. us IBM ibm international business machines St 1 2 ii"
).split()
PHRASES = st.lists(st.sampled_from(WORDS), min_size=1, max_size=4)
COS_90, COS_80 = 25.0, 36.0  # degrees of which the cosine is .91 and .81


@pytest.fixture(params=["memory", "sqlite"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[GraphBackend]:
    store = open_backend("memory://" if request.param == "memory" else f"sqlite:///{tmp_path}/memory.db")
    yield store
    store.close()


def similar(
    store: GraphBackend, model: Angles, ask: Ask | None = None, *, most_questions: int = 20, resolves: bool = True
) -> SimilarEntities:
    embedder = Embedder(model, cache_bytes=0)
    return SimilarEntities(store, embedder, ask, most_questions=most_questions, resolves=resolves)


def put(
    store: GraphBackend,
    n: int,
    *names: str,
    by: SimilarEntities | None,
    kind: str = "tool",
    links: NoteLinks | None = None,
    bulk: bool = False,
    short: str = "",
) -> None:
    """Write an episode that names something, and says of each that it uses "target"."""
    mentions = tuple(EntityMention.of(name, kind, DEFAULT_ONTOLOGY, allowed=frozenset({short})) for name in names)
    target = EntityMention.of("target", "concept", DEFAULT_ONTOLOGY)
    statements = tuple(
        ExtractedFact(mention, target, "uses", EdgeType.SEMANTIC, "", ExtractedEdge(mention.display, "uses", "target"))
        for mention in mentions
    )
    writer = Writer(store, DEFAULT_ONTOLOGY, similar=by, links=links, bulk=bulk)
    said = episode(n)
    writer.write(home(), [InterpretedEpisode(said, mentions, statements, settles=False)], new_episodes=[said])


def names(store: GraphBackend) -> list[str]:
    found = store.find_entities([home()], EntityQuery(), limit=1000)
    return sorted(entity.name for entity in found if entity.name != "target")


def merges(store: GraphBackend) -> list[Merge]:
    return store.find_merges([home()], MergeQuery())


def test_a_name_that_means_a_known_entity_becomes_its_alias_and_the_ledger_says_why(store: GraphBackend) -> None:
    by = similar(store, Angles(widget=0, widgets=COS_90))
    put(store, 1, "widget", by=by)
    put(store, 2, "widgets", by=by)
    assert names(store) == ["widget"]
    [(_, entity)] = store.resolve_names(home(), ["widgets"])
    [merge] = merges(store)
    assert (merge.kept_id, merge.merged.name, merge.method) == (entity.id, "widgets", "vectors")
    assert merge.score == pytest.approx(math.cos(math.radians(COS_90)), abs=1e-3)


def test_two_new_names_of_one_batch_that_mean_the_same_are_one(store: GraphBackend) -> None:
    put(store, 1, "widget", "widgets", by=similar(store, Angles(widget=0, widgets=COS_90)))
    assert names(store) == ["widget"]


@pytest.mark.parametrize(
    ("cosine", "joined", "asked"), [(0.86, True, 0), (0.84, False, 1), (0.71, False, 1), (0.69, False, 0)]
)
def test_names_are_joined_from_a_cosine_of_0_85_and_asked_about_from_0_7(
    store: GraphBackend, cosine: float, joined: bool, asked: int
) -> None:
    questions: list[Sequence[str]] = []
    degrees = math.degrees(math.acos(cosine))
    by = similar(store, Angles(widget=0, widgets=degrees), lambda new, known: questions.append(new) or [])
    put(store, 1, "widget", by=by)
    put(store, 2, "widgets", by=by)
    assert (names(store) == ["widget"], len(questions)) == (joined, asked)


@pytest.mark.parametrize("degrees", [40.0, 60.0, 170.0])
def test_a_name_that_means_something_else_is_a_new_entity(store: GraphBackend, degrees: float) -> None:
    by = similar(store, Angles(widget=0, widgets=degrees))
    put(store, 1, "widget", by=by)
    put(store, 2, "widgets", by=by)
    assert names(store) == ["widget", "widgets"]
    assert merges(store) == []


def test_entities_of_another_type_or_scope_are_not_meant(store: GraphBackend) -> None:
    by = similar(store, Angles(widget=0, widgets=0))
    put(store, 1, "widget", by=by)
    put(store, 2, "widgets", by=by, kind="concept")
    assert names(store) == ["widget", "widgets"]
    said = episode(3, project())
    mention = EntityMention.of("widgets", "tool", DEFAULT_ONTOLOGY)
    Writer(store, DEFAULT_ONTOLOGY, similar=by).write(
        project(), [InterpretedEpisode(said, (mention,), (), settles=False)], new_episodes=[said]
    )
    assert [e.name for e in store.find_entities([project()], EntityQuery())] == ["widgets"]


def test_in_doubt_the_judge_is_asked_once_and_followed(store: GraphBackend) -> None:
    asked: list[tuple[list[str], list[str]]] = []

    def ask(new: Sequence[str], known: Sequence[str]) -> Sequence[tuple[int, int]]:
        asked.append(([name.partition(" — ")[0] for name in new], list(known)))
        return [(0, 0)]

    by = similar(store, Angles(widget=0, gadget=COS_80, doohickey=-COS_80), ask)
    put(store, 1, "widget", by=by)
    put(store, 2, "gadget", "doohickey", by=by)
    assert asked == [(["gadget", "doohickey"], ["widget"])]
    assert names(store) == ["doohickey", "widget"]
    assert [merge.method for merge in merges(store)] == ["llm"]


@pytest.mark.parametrize(
    ("known", "new"),
    [("Sam Okafor", "Sam"), ("Alex Chen", "AC"), ("Elizabeth Hart", "Liz"), ("Sam", "Sam Okafor"), ("AC", "Alex Chen")],
)
def test_short_and_full_forms_of_a_name_are_asked_about_whatever_their_vectors(
    store: GraphBackend, known: str, new: str
) -> None:
    asked: list[str] = []

    def ask(names: Sequence[str], _: Sequence[str]) -> Sequence[tuple[int, int]]:
        asked.extend(names)
        return [(0, 0)]

    by = similar(store, Angles(**{known.lower(): 0, new.lower(): 120}), ask)
    put(store, 1, known, by=by, kind="person", short="ac")
    put(store, 2, new, by=by, kind="person", short="ac")
    assert names(store) == [known]
    assert asked == [new]


def test_names_that_the_vectors_would_join_but_whose_words_differ_are_left_to_the_judge(store: GraphBackend) -> None:
    by = similar(store, Angles(widget=0, gadget=5), lambda new, known: [(0, 0)])
    put(store, 1, "widget", by=by)
    put(store, 2, "gadget", by=by)
    assert [merge.method for merge in merges(store)] == ["llm"]


def test_the_judge_is_not_asked_about_names_that_differ_in_a_number(store: GraphBackend) -> None:
    def ask(new: Sequence[str], known: Sequence[str]) -> Sequence[tuple[int, int]]:
        raise AssertionError(new)

    by = similar(store, Angles(**{"alpha 1": 0, "alpha 2": 1}), ask)
    put(store, 1, "Alpha 1", by=by)
    put(store, 2, "Alpha 2", by=by)
    assert names(store) == ["Alpha 1", "Alpha 2"]


def test_the_judge_is_asked_so_often_and_no_more(store: GraphBackend) -> None:
    asked: list[str] = []

    def ask(new: Sequence[str], known: Sequence[str]) -> Sequence[tuple[int, int]]:
        asked.extend(new)
        return []

    by = similar(store, Angles(widget=0, gadget=COS_80, doohickey=-COS_80, gizmo=COS_80 + 1), ask, most_questions=2)
    put(store, 1, "widget", by=by)
    put(store, 2, "gadget", "doohickey", "gizmo", by=by)
    assert len(asked) == 2


@pytest.mark.parametrize("failure", ["model", "judge"])
def test_a_failure_makes_a_new_entity_and_is_logged(
    store: GraphBackend, failure: str, caplog: pytest.LogCaptureFixture
) -> None:
    def ask(new: Sequence[str], known: Sequence[str]) -> Sequence[tuple[int, int]]:
        raise EmbeddingFailed("no answer")

    model = Angles(widget=0, gadget=COS_80)
    by = similar(store, model, ask)
    put(store, 1, "widget", by=by)
    model.broken = failure == "model"
    put(store, 2, "gadget", by=by)
    assert names(store) == ["gadget", "widget"]
    assert [record.levelname for record in caplog.records] == ["WARNING"]


def test_vectors_of_another_model_are_not_compared(store: GraphBackend) -> None:
    store.write(home(), Changes(index=(IndexEntry(kind="name", key="a", model="other"),)))
    by = similar(store, Angles(widget=0, widgets=0))
    put(store, 1, "widget", "widgets", by=by)
    assert names(store) == ["widget", "widgets"]
    assert store.read_index(home(), kind="entity") == []


def test_entities_that_were_written_without_a_model_are_compared_later(store: GraphBackend) -> None:
    put(store, 1, "widget", by=None)
    put(store, 2, "widgets", by=similar(store, Angles(widget=0, widgets=0)))
    assert names(store) == ["widget"]


def test_an_entity_that_is_gone_is_not_meant(store: GraphBackend) -> None:
    by = similar(store, Angles(widget=0, widgets=0, widgetses=0))
    put(store, 1, "widget", by=by)
    put(store, 2, "widgets", by=by)
    [entity] = [e for e in store.find_entities([home()], EntityQuery()) if e.name == "widget"]
    store.write(home(), Changes(removals=(Removal("entity", entity.id),)))
    put(store, 3, "widgets", by=by)
    assert names(store) == ["widgets"]


def test_known_names_are_not_embedded_again(store: GraphBackend) -> None:
    model = Angles(widget=0)
    by = similar(store, model)
    put(store, 1, "widget", by=by)
    put(store, 2, "widget", by=by)
    assert model.asked == ["widget", "target"]


def test_eight_writers_of_names_that_mean_the_same_make_one_entity(store: GraphBackend) -> None:
    spellings = [
        "data base",
        "Data-Base",
        "data-base",
        "database",
        "Data Base",
        "the database",
        "Data  base",
        "a data base",
    ]
    model = Angles(**{name.lower().replace("  ", " "): 0 for name in spellings})
    by = similar(store, model)
    in_threads([lambda n=n, name=name: put(store, n, name, by=by) for n, name in enumerate(spellings, 1)])
    assert len(names(store)) == 1
    assert {e.relation for e in store.all_edges([home()], _all())} == {"uses"}
    assert len(list(store.all_edges([home()], _all()))) == 1


def test_no_lock_is_held_while_the_judge_thinks(store: GraphBackend) -> None:
    thinking, written = threading.Event(), threading.Event()

    def ask(new: Sequence[str], known: Sequence[str]) -> Sequence[tuple[int, int]]:
        thinking.set()
        assert written.wait(30)
        return []

    by = similar(store, Angles(widget=0, gadget=COS_80), ask)
    put(store, 1, "widget", by=by)

    def other() -> None:
        assert thinking.wait(30)
        put(store, 3, "other", by=None)
        written.set()

    in_threads([lambda: put(store, 2, "gadget", by=by), other])
    assert names(store) == ["gadget", "other", "widget"]


def test_a_bulk_load_embeds_only_names_that_the_vectors_may_join(store: GraphBackend) -> None:
    model = Angles(widget=0, widgets=COS_90, gadget=0, gadgets=COS_90)
    by = similar(store, model)
    put(store, 1, "widget", "hammer", "saw", by=by, bulk=True)
    assert model.asked == []
    put(store, 2, "widgets", "gadget", "gadgets", "drill", by=by, bulk=True)
    assert names(store) == ["drill", "gadget", "hammer", "saw", "widget"]
    assert sorted(model.asked) == ["gadget", "gadgets", "widget", "widgets"]


def test_vectors_that_a_bulk_load_left_are_made_afterwards_and_compared_with(store: GraphBackend) -> None:
    model = Angles(widget=0, widgets=COS_90, hammer=90)
    by = similar(store, model)
    put(store, 1, "widget", "hammer", by=by, bulk=True)
    assert len(store.find_unindexed(home(), "entity")) == 3
    while not by.index_some(home(), 2):
        pass
    assert store.find_unindexed(home(), "entity") == []
    put(store, 2, "widgets", by=by)
    assert names(store) == ["hammer", "widget"]


def test_a_question_that_needs_vectors_has_those_made_that_are_missing(store: GraphBackend) -> None:
    by = similar(store, Angles(widget=0))
    put(store, 1, "widget", by=by, bulk=True)
    embedder, matcher = Embedder(Angles(widget=0, gear=10), cache_bytes=0), similar(store, Angles(widget=0))
    embeddings = StoredEntityEmbeddings(store, embedder, matcher.vectors, matcher.index_waiting, 5.0)
    [(_, widget)] = store.resolve_names(home(), ["widget"])
    assert embeddings.nearest([home()], embeddings.of_query("gear"), 1)[0][0] == widget.id


def test_what_a_process_without_a_model_stores_is_found_by_its_meaning_soon(
    store: GraphBackend, monkeypatch: pytest.MonkeyPatch
) -> None:
    now, scans = [0.0], list[str]()
    monkeypatch.setattr(entity_matching, "time", SimpleNamespace(monotonic=lambda: now[0]))
    embedder = Embedder(Angles(widget=0, gear=10, hammer=90, wheel=12), cache_bytes=0)
    by, find = SimilarEntities(store, embedder), store.find_unindexed

    def counted(*given: Any, **named: Any) -> list[str]:
        scans.append("scan")
        return find(*given, **named)

    monkeypatch.setattr(store, "find_unindexed", counted)
    embeddings = StoredEntityEmbeddings(store, embedder, by.vectors, by.index_waiting, 5.0)

    def nearest() -> list[str]:
        found = [entity_id for entity_id, _ in embeddings.nearest([home()], embeddings.of_query("gear"), 5)]
        return sorted(entity.name for entity in store.get_entities([home()], found).values())

    put(store, 1, "hammer", by=None)
    assert nearest() == []
    scans.clear()
    put(store, 2, "widget", by=None)
    assert (nearest(), by.index_some(home(), 10), scans) == ([], True, [])
    now[0] = 30.0
    assert (nearest(), scans) == (["widget"], ["scan", "scan"])
    put(store, 3, "wheel", by=None)
    now[0] = 60.0
    assert (by.index_some(home(), 10), by.index_some(home(), 10)) == (False, True)
    assert nearest() == ["wheel", "widget"]


def test_a_bulk_load_sees_what_another_one_brings_before_it_writes(store: GraphBackend) -> None:
    by, other = (similar(store, Angles(widget=0, widgets=COS_90)) for _ in range(2))
    prepare, came = by.prepare, list[None]()

    def late(scope: Scope, mentions: Sequence[EntityMention], *, bulk: bool = False) -> Prepared | None:
        prepared = prepare(scope, mentions, bulk=bulk)
        if not came:
            came.append(put(store, 1, "widget", by=other, bulk=True))
        return prepared

    by.prepare = late
    put(store, 2, "widgets", by=by, bulk=True)
    assert names(store) == ["widget"]
    assert [merge.merged.name for merge in merges(store)] == ["widgets"]


@settings(max_examples=300)
@given(one=PHRASES, other=PHRASES)
@example(one=["ibm"], other=["international", "business", "machines"])
@example(one=["ABC"], other=["a", "b", "c"])
@example(one=["movie"], other=["movies"])
@example(one=["city"], other=["cities"])
@example(one=["University", "of", "Oslo"], other=["Oslo", "University"])
@pytest.mark.parametrize("kind", ["tool", "person", "organization"])
def test_names_with_nothing_against_them_share_a_spelling(one: list[str], other: list[str], kind: str) -> None:
    first, second = " ".join(one), " ".join(other)
    if obstacle(first, second, kind) is None:
        assert spellings(first, kind) & spellings(second, kind)


def test_undoing_it_gives_the_name_its_own_mentions_and_facts(store: GraphBackend) -> None:
    by = similar(store, Angles(widget=0, widgets=COS_90))
    put(store, 1, "widget", by=by)
    put(store, 2, "widgets", by=by)
    put(store, 3, "widgets", by=by)
    [merge] = merges(store)
    done = unmerge(store, home(), merge.id)
    assert names(store) == ["widget", "widgets"]
    [(_, entity)] = store.resolve_names(home(), ["widgets"])
    assert entity.id == done.entity.id
    mentioned = store.find_mentions([home()], entity_ids=[entity.id])
    assert [m.episode_id for m in mentioned] == [episode(2).id, episode(3).id]
    by_source = {e.source_id: e.episode_ids for e in store.all_edges([home()], _all())}
    assert by_source == {
        merge.kept_id: (episode(1).id,),
        entity.id: (episode(2).id, episode(3).id),
    }


def test_new_entities_are_linked_to_what_is_much_like_them(store: GraphBackend) -> None:
    by = similar(store, Angles(widget=0, gadget=20, other=90), resolves=False)
    links = NoteLinks(store, by.vectors)
    put(store, 1, "widget", "other", by=by, links=links)
    put(store, 2, "gadget", by=by, links=links)
    put(store, 3, "gadget", by=by, links=links)
    [link] = [e for e in store.all_edges([home()], _all()) if e.relation == "similar_to"]
    assert link.edge_type == EdgeType.SEMANTIC
    assert link.confidence == pytest.approx(math.cos(math.radians(20)), abs=1e-3)
    assert link.fact == "gadget similar to widget"


def test_a_new_entity_is_linked_to_the_ten_nearest_from_a_cosine_of_0_85(store: GraphBackend) -> None:
    angles = {f"gadget_{letter}": float(n) for n, letter in enumerate("abcdefghijkl", 1)}
    by = similar(store, Angles(widget=0, far=math.degrees(math.acos(0.84)), **angles), resolves=False)
    links = NoteLinks(store, by.vectors)
    put(store, 1, "far", *(name.replace("_", " ") for name in angles), by=by)
    put(store, 2, "widget", by=by, links=links)
    ends = {e.id: e.name for e in store.find_entities([home()], EntityQuery())}
    found = [e for e in store.all_edges([home()], _all()) if e.relation == "similar_to"]
    assert {ends[e.source_id] for e in found} == {"widget"}
    assert {ends[e.target_id] for e in found} == {f"gadget {letter}" for letter in "abcdefghij"}
    put(store, 3, "near", by=by, links=links)
    assert len([e for e in store.all_edges([home()], _all()) if e.relation == "similar_to"]) == 10


def test_links_that_take_too_long_are_left_out(store: GraphBackend, caplog: pytest.LogCaptureFixture) -> None:
    by = similar(store, Angles(widget=0, gadget=20), resolves=False)
    put(store, 1, "widget", "gadget", by=by, links=NoteLinks(store, by.vectors, seconds=0))
    assert [e.relation for e in store.all_edges([home()], _all())] == ["uses", "uses"]
    assert "time limit reached, 3 new entities are not linked" in caplog.text


@pytest.mark.parametrize(
    ("first", "second", "kind"),
    [
        ("stuffed animal", "stuffed animals", "concept"),
        ("Kim Il-sung", "Kim Il Sung", "person"),
        ("Dr. Alice Smith", "Alice Smith", "person"),
        ("Zoë Müller", "Zoe Muller", "person"),
        ("iHeartMedia, Inc.", "iHeartMedia", "organization"),
        ("Separation of church and state", "church-state separation", "concept"),
        ("University of Oxford", "Oxford University", "organization"),
        ("the United States", "United States", "location"),
        ("colour theory", "color theory", "concept"),
        ("NASA", "National Aeronautics and Space Administration", "organization"),
        ("e-mail", "email", "technology"),
        ("Alpha 2", "alpha-2", "project"),
    ],
)
def test_names_of_the_same_words_have_nothing_against_them(first: str, second: str, kind: str) -> None:
    assert obstacle(first, second, kind) is None
    assert obstacle(second, first, kind) is None


@pytest.mark.parametrize(
    ("first", "second", "same"),
    [
        ("May Parker", "Parker", True),
        ("June Osborne", "Osborne", True),
        ("Li Wei", "Wei", True),
        ("Louis XIV", "Louis XV", False),
        ("Pius XI", "Pius XII", False),
        ("Klaus-Peter Ohlsen", "KP", True),
        ("Klaus-Peter Ohlsen", "PO", False),
    ],
)
def test_names_of_people_that_are_months_or_roman_numerals_are_words(first: str, second: str, same: bool) -> None:
    assert may_be_same(first, second, "person") is same
    assert may_be_same(second, first, "person") is same


@pytest.mark.parametrize(
    ("first", "second", "kind"),
    [
        ("Alpha 1", "Alpha 2", "project"),
        ("2023 report", "2024 report", "concept"),
        ("17 August 2023", "13 September 2023", "event"),
        ("Elizabeth", "Elizabeth I", "concept"),
        ("first draft", "second draft", "concept"),
        ("Anna Smith", "Anne Smith", "person"),
        ("John Smith", "John Smythe", "person"),
        ("John", "John Smith", "person"),
        ("Mr Smith", "Mrs Smith", "person"),
        ("Dr Smith", "Smith", "person"),
        ("North Korea", "South Korea", "location"),
        ("Columbia", "Colombia", "location"),
        ("Milan", "Milan, Italy", "location"),
        ("Mississippi River", "Mississippi Rivers", "location"),
        ("Rockingham County", "Rockingham Counties", "concept"),
        ("National League", "National League A", "organization"),
        ("painting", "Caroline's painting", "concept"),
        ("Abraham Van Buren", "Martin Van Buren", "person"),
        ("B.S. degrees", "B.A. degrees", "concept"),
        ("good time", "great time", "concept"),
        ("Inc", "Ltd", "organization"),
        ("🦊", "🐻", "person"),
        ("🦊🦊🦊", "🐻🐻🐻", "concept"),
    ],
)
def test_names_of_different_things_have_something_against_them(first: str, second: str, kind: str) -> None:
    assert obstacle(first, second, kind) is not None
    assert obstacle(second, first, kind) is not None


def _all() -> EdgeQuery:
    return EdgeQuery()
