"""A memory is kept in order on every store: forgetting is complete, old things fade and hide, killed work goes on."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from conftest import OpenMemory
from crashed import wait_until
from toy import ToyExtractor, lines_of

from graphmem import Embeddings, GraphMemory, InvalidInput, NotFound
from graphmem.models import AsOf, Changes, EdgeQuery, EntityQuery, EpisodeExpiry, EpisodeQuery, Removal, Scope, utc_now
from graphmem.protocols import ExtractedEdge, ExtractedEntity, Extraction, ExtractionRequest, GraphBackend
from graphmem.registry import open_backend
from graphmem.settings import Settings
from graphmem.testing.rows import (
    day,
    edge,
    edge_id,
    entity,
    entity_id,
    episode,
    episode_id,
    home,
    numbers_of,
    put_entities,
    put_graph,
    scope_of,
)
from graphmem.upkeep.eviction import EvictionRule, decay, decay_rule, evict, eviction_rule, upkeep_jobs
from tests.e2e.word_vectors import WordVectors

SECRET = ("Zörblaxian", "Quimbledon")
"""Words that only what is forgotten has; their tails survive any escaping of the umlaut."""
TAILS = ("rblaxian", "uimbledon")


def toy_memory(open_memory: OpenMemory, url: str, **options: Any) -> GraphMemory:
    embeddings: Embeddings = WordVectors()
    return open_memory(url, embeddings=embeddings, **options)


def fill(memory: GraphMemory) -> None:
    """Tell of people, two of whom only one session and the bulk of facts know."""
    turns = [{"text": f"Person {i} | knows | Person {i + 1}", "session_id": "open"} for i in range(6)]
    first, second = SECRET
    turns += [
        {
            "text": f"{first} | visited | {second} # {first} was seen with Person 1",
            "session_id": "secret",
            "external_id": "told",
            "metadata": {"from": f"{second} gazette"},
            "attachments": [{"kind": "image", "description": f"{first} before {second}"}],
        },
        {"text": f"Person 1 | married_to | {first} # Person 1 is the one whom {first} trusts", "session_id": "secret"},
        {"text": f"{second} | is_near | Person 2", "session_id": "secret"},
        {"text": "Person 3 | likes | Person 5", "session_id": "secret"},
    ]
    memory.ingest(turns)
    memory.search("who visited whom?")
    memory.admin.refresh_communities()
    memory.recall(f"what of {first}?", trace=True)
    memory.recall(f"{second}?", trace=True)
    memory.admin.traces()


def bytes_of(path: Path) -> bytes:
    """Return all that lies on disk of a store."""
    return b"".join(file.read_bytes() for file in sorted(path.parent.glob(f"{path.name}*")))


def left_of(path: Path, *words: str) -> list[str]:
    """Return those of the words that the files of a store still have, in any letter case."""
    held = bytes_of(path).lower()
    return [word for word in words if word.lower().encode() in held]


def vectors_of(memory: GraphMemory, path: Path, words: tuple[str, ...]) -> list[bytes]:
    """Return the beginnings of the vectors of what has these words."""
    store = open_backend(f"sqlite:///{path}")
    try:
        rows: dict[str, str] = {}
        rows.update((e.id, e.text) for e in store.find_episodes([memory.scope], EpisodeQuery()))
        rows.update((e.id, e.fact) for e in store.find_edges([memory.scope], EdgeQuery(versions="all")))
        rows.update((e.id, e.name) for e in store.find_entities([memory.scope], EntityQuery()))
        entries = store.read_index(memory.scope, limit=10_000)
        return [
            entry.vectors[:128]
            for entry in entries
            if entry.vectors and any(word in rows.get(entry.key, entry.key) for word in words)
        ]
    finally:
        store.close()


# Forgetting ---------------------------------------------------------------------------------------


def forget_session(memory: GraphMemory) -> None:
    memory.forget(session="secret")


def forget_entities(memory: GraphMemory) -> None:
    for name in SECRET:
        memory.forget(name, with_episodes=True)


def forget_all(memory: GraphMemory) -> None:
    memory.admin.clear()


def expire_session(memory: GraphMemory) -> None:
    store = memory._engine.backend  # pyright: ignore[reportPrivateUsage]
    said = store.find_episode_ids([memory.scope], EpisodeQuery(session_id="secret"))
    store.write(memory.scope, Changes(episode_expiries=tuple(EpisodeExpiry(i, utc_now()) for i in said)))
    assert memory.admin.expire().episodes == len(said) > 0


@pytest.mark.parametrize("act", [forget_session, forget_entities, forget_all, expire_session])
def test_what_is_forgotten_leaves_no_byte_in_the_files(
    sqlite_file: Path, open_memory: OpenMemory, act: Callable[[GraphMemory], None]
) -> None:
    memory = toy_memory(open_memory, f"sqlite:///{sqlite_file}")
    fill(memory)
    vectors = vectors_of(memory, sqlite_file, SECRET)
    assert left_of(sqlite_file, *TAILS) == list(TAILS)
    assert vectors
    assert all(vector in bytes_of(sqlite_file) for vector in vectors)
    act(memory)
    assert left_of(sqlite_file, *TAILS) == []
    assert not [vector for vector in vectors if vector in bytes_of(sqlite_file)]
    memory.close()
    assert left_of(sqlite_file, *TAILS) == []


@pytest.mark.slow
@pytest.mark.full
@pytest.mark.parametrize("flushed", [7, 50])  # rows that move from page to page leave copies behind
def test_much_that_was_written_again_and_again_leaves_no_byte_either(
    sqlite_file: Path, open_memory: OpenMemory, flushed: int
) -> None:
    memory = toy_memory(open_memory, f"sqlite:///{sqlite_file}")
    for i in range(300):
        memory.remember(f"Hidden{i % 40}word{i} | met | Person {i % 9} # remark{i}secretly", session_id=f"s{i % 2}")
        if i % flushed == flushed - 1:
            memory.flush()
            memory.search("who?")
    memory.flush()
    memory.search("who?")
    memory.forget(session="s0")
    hidden = [f"hidden{i % 40}word{i}" for i in range(0, 300, 2)] + [f"remark{i}secretly" for i in range(0, 300, 2)]
    assert left_of(sqlite_file, *hidden) == []
    assert len(left_of(sqlite_file, *[f"remark{i}secretly" for i in range(1, 300, 2)])) == 150


@pytest.fixture
def filled(store_url: str, open_memory: OpenMemory) -> GraphMemory:
    memory = toy_memory(open_memory, store_url)
    fill(memory)
    return memory


def exported(memory: GraphMemory, tmp_path: Path) -> str:
    """Return everything that a memory holds as text."""
    memory.admin.export(tmp_path / "all.jsonl")
    return (tmp_path / "all.jsonl").read_text("utf-8")


@pytest.mark.server
@pytest.mark.parametrize("act", [forget_session, forget_entities, forget_all])
def test_what_is_forgotten_is_in_no_row(
    filled: GraphMemory, tmp_path: Path, act: Callable[[GraphMemory], None]
) -> None:
    def named() -> list[set[str]]:
        """Return which of the words are in all rows, in episodes that a search finds, in facts that come to mind."""
        found = [f.episode.text for word in SECRET for f in filled.search(f"{word} and Person 1?").found]
        facts = [f.fact for f in filled.recall("Person 1").facts]
        texts = (exported(filled, tmp_path), "\n".join(found), "\n".join(facts))
        return [{word for word in SECRET if word in text} for text in texts]

    assert named() == [set(SECRET)] * 3
    act(filled)
    assert named() == [set()] * 3


def test_forgetting_a_session_keeps_what_others_say(filled: GraphMemory) -> None:
    def said() -> dict[str, str]:
        return {fact.id: fact.fact for i in range(7) for fact in filled.facts(f"Person {i}")}

    kept = {i: fact for i, fact in said().items() if " knows " in fact}
    assert sorted(kept.values()) == [f"Person {i} knows Person {i + 1}" for i in range(6)]
    assert len(said()) == len(kept) + 3
    done = filled.forget(session="secret")
    assert (done.episodes, done.entities, done.facts, done.recalls, done.left) == (4, 2, 4, 2, ())
    assert said() == kept
    assert filled.session("secret") == []
    assert [e.text for e in filled.session("open")] == [f"Person {i} | knows | Person {i + 1}" for i in range(6)]


def test_a_fact_of_several_episodes_stays_without_the_forgotten_one(memory: GraphMemory) -> None:
    memory.ingest(
        [
            {"text": "Ada | knows | Bob # as Carol whispered", "external_id": "first"},
            {"text": "Ada | knows | Bob # as all know", "external_id": "second"},
        ]
    )
    [fact] = memory.facts("Ada")
    assert fact.fact == "Ada knows Bob as Carol whispered"
    done = memory.forget(episode="first")
    [left] = memory.facts("Ada")
    assert (left.id, left.fact, len(left.episode_ids)) == (fact.id, "Ada knows Bob", 1)
    assert (done.facts, done.rewritten_facts, done.episodes) == (0, 1, 1)
    memory.forget(episode="second")
    assert memory.facts("Ada") == ()
    assert memory.stats().entities == 0


def test_what_a_forgotten_statement_had_ended_goes_on(memory: GraphMemory) -> None:
    for year, employer in ((2021, "Initech"), (2023, "Globex"), (2025, "Hooli")):
        moment = f"{year}-01-01T00:00:00Z"
        memory.ingest([{"text": f"Maya | works_at | {employer}", "session_id": employer, "occurred_at": moment}])

    def jobs() -> list[tuple[str, int, int | None]]:
        return [(f.target, f.valid_from.year, f.valid_to and f.valid_to.year) for f in memory.history("Maya")]

    memory.forget(session="Globex")
    assert jobs() == [("Hooli", 2025, None), ("Initech", 2021, 2025)]
    memory.forget(session="Hooli")
    assert jobs() == [("Initech", 2021, None)]
    assert [fact.target for fact in memory.recall("Where does Maya work?")] == ["Initech"]


def test_an_entity_is_forgotten_and_its_episodes_are_counted(memory: GraphMemory) -> None:
    memory.ingest([{"text": "Ada | knows | Bob"}, {"text": "Bob | knows | Carol"}])
    memory.add_facts([("Ada", "likes", "tea"), ("Bob", "likes", "coffee")])
    done = memory.forget("ada")
    assert (done.entities, done.facts, len(done.still_mentioned_in), done.redacted_episodes) == (2, 2, 1, 1)  # and tea
    assert {fact.fact for fact in memory.facts("Bob")} == {"Bob knows Carol", "Bob likes coffee"}
    done = memory.forget("Bob", with_episodes=True)
    assert (done.entities, done.episodes, done.still_mentioned_in) == (3, 3, ())
    assert memory.stats().entities == 0


@pytest.mark.parametrize("with_episodes", [False, True])
def test_facts_that_were_added_with_those_of_an_entity_stay(
    memory: GraphMemory, tmp_path: Path, with_episodes: bool
) -> None:
    memory.add_facts(
        [
            *((f"Person {i}", "knows", f"Friend {i}") for i in range(40)),
            {"subject": SECRET[0], "relation": "knows", "object": "Person 1"},
            {"subject": SECRET[0], "relation": "likes", "object": "tea", "fact": "That one likes tea"},
        ]
    )
    memory.ingest([{"text": f"{SECRET[0]} | visited | Rome"}])
    done = memory.forget(SECRET[0], with_episodes=with_episodes)
    assert (done.facts, done.redacted_episodes, done.episodes) == (3, 1, int(with_episodes))
    assert memory.stats().edges == 40
    assert memory.facts("Person 1")[0].target == "Friend 1"
    assert "That one likes tea" not in exported(memory, tmp_path)
    assert (SECRET[0] in exported(memory, tmp_path)) is not with_episodes


def test_a_scope_is_cleared_and_its_neighbour_stays(store_url: str, open_memory: OpenMemory) -> None:
    memory = toy_memory(open_memory, store_url)
    other = memory.in_scope(scope_of("other"))
    for one in (memory, other):
        fill(one)
    kept = other.admin.checksum()
    assert memory.admin.clear().episodes == 10
    assert [scope for scope in memory.admin.scopes() if scope in (memory.scope, other.scope)] == [other.scope]
    assert other.admin.checksum() == kept
    assert memory.admin.clear().episodes == 0
    fill(memory)
    assert memory.search(SECRET[0]).found


def test_forgetting_names_exactly_one_thing_that_is_there(memory: GraphMemory) -> None:
    memory.add_facts([("Ada", "likes", "tea")])
    with pytest.raises(InvalidInput, match="exactly one of"):
        memory.forget()
    with pytest.raises(InvalidInput, match="exactly one of"):
        memory.forget("Ada", episode="x")
    with pytest.raises(NotFound):
        memory.forget("Nobody")
    with pytest.raises(NotFound):
        memory.forget(episode="none")
    with pytest.raises(NotFound):
        memory.forget(session="none")
    other = memory.in_scope(scope_of("other"))
    with pytest.raises(NotFound):
        other.forget("Ada")
    assert memory.stats().entities == 2


# Forgetting what was merged -----------------------------------------------------------------------


def merged_memory(open_memory: OpenMemory, url: str) -> GraphMemory:
    """Tell of somebody whom one episode knows, and merge that one into another."""
    memory = toy_memory(open_memory, url)
    first, second = SECRET
    memory.ingest(
        [
            {"text": f"{first} | lives_in | {second} # {first} hides", "external_id": "told"},
            {"text": "Ada | knows | Bob"},
            {"text": "Ada L | likes | tea", "external_id": "tea"},
        ]
    )
    memory.search("who hides?")
    return memory


def merge_at_once(memory: GraphMemory) -> None:
    memory.admin.merge([SECRET[0], "Ada L"], into="Ada")


def merge_in_a_chain(memory: GraphMemory) -> None:
    memory.admin.merge(SECRET[0], into="Ada L")
    memory.admin.merge("Ada L", into="Ada")


def merge_undo_and_merge(memory: GraphMemory) -> None:
    [made] = memory.admin.merge(SECRET[0], into="Bob")
    memory.admin.unmerge(made.id)
    merge_at_once(memory)


MERGES = [merge_at_once, merge_in_a_chain, merge_undo_and_merge]


@pytest.mark.parametrize("act", MERGES)
def test_a_merged_name_goes_with_the_only_episode_that_knew_it(
    store_url: str, open_memory: OpenMemory, tmp_path: Path, act: Callable[[GraphMemory], None]
) -> None:
    memory = merged_memory(open_memory, store_url)
    act(memory)
    memory.forget(episode="told")
    text = exported(memory, tmp_path)
    assert [tail for tail in TAILS if tail in text] == []
    assert [entity.name for entity in memory.entities()] == ["Ada", "Bob", "tea"]
    assert memory.admin.merges()[0].merged.name == "Ada L"
    memory.admin.unmerge(memory.admin.merges()[0].id)
    said = [memory.facts(name)[0].fact for name in ("Ada", "Ada L")]
    assert said == ["Ada knows Bob", "Ada L likes tea"]
    memory.admin.merge("Ada L", into="Ada")
    memory.forget(episode="tea")
    assert memory.admin.merges() == []


@pytest.mark.parametrize("act", MERGES)
def test_a_forgotten_name_that_was_merged_leaves_no_byte(
    sqlite_file: Path, open_memory: OpenMemory, act: Callable[[GraphMemory], None]
) -> None:
    memory = merged_memory(open_memory, f"sqlite:///{sqlite_file}")
    act(memory)
    assert left_of(sqlite_file, *TAILS) == list(TAILS)
    memory.forget(episode="told")
    assert left_of(sqlite_file, *TAILS) == []


@pytest.mark.parametrize("more", [f"{SECRET[0]} | visited | Ada", f"Ada | said | that # {SECRET[0]} came along"])
def test_a_merged_name_that_others_use_stays(store_url: str, open_memory: OpenMemory, more: str) -> None:
    memory = merged_memory(open_memory, store_url)
    memory.ingest([{"text": more}])
    [made] = memory.admin.merge(SECRET[0], into="Ada")
    memory.forget(episode="told")
    assert [merge.id for merge in memory.admin.merges()] == [made.id]
    assert memory.admin.unmerge(made.id).entity.name == SECRET[0]


class Renaming(ToyExtractor):
    """Reads a line "Gerd Thomsen = Gerd" as another name of a person, and other lines as facts about people."""

    def _one(self, text: str) -> Extraction | Exception:
        named = [line.split(" = ") for line in text.splitlines() if " = " in line]
        facts = lines_of("\n".join(line for line in text.splitlines() if " = " not in line))
        return Extraction(
            tuple(ExtractedEntity(name, "person", aliases=(other,)) for name, other in named),
            edges=tuple(ExtractedEdge(s, r, o, source_type="person") for s, r, o, _ in facts),
        )


def told(open_memory: OpenMemory, url: str, *texts: str) -> GraphMemory:
    memory = open_memory(url, extractor=Renaming(), embeddings="none")
    for text in texts:
        memory.remember(text)
        memory.flush()
    return memory


@pytest.mark.parametrize("said", ["Gerd Thomsen = Gerd", "Gerd = Gerd Thomsen"])
def test_two_known_names_that_a_text_calls_one_are_merged(store_url: str, open_memory: OpenMemory, said: str) -> None:
    memory = told(open_memory, store_url, "Gerd Thomsen | leads | design", "Gerd | works | 60 %", said)
    assert {(fact.source, fact.target) for fact in memory.facts("Gerd")} == {
        ("Gerd Thomsen", "design"),
        ("Gerd Thomsen", "60 %"),
    }
    [made] = memory.admin.merges()
    assert (made.merged.name, made.method) == ("Gerd", "text")
    assert {e.name for e in memory.entities()} == {"Gerd Thomsen", "design", "60 %"}
    memory.admin.unmerge(made.id)
    assert {e.name for e in memory.entities()} == {"Gerd Thomsen", "Gerd", "design", "60 %"}


@pytest.mark.parametrize(
    ("third", "said"),
    [
        ("Gerd Maas | owns | a boat", "Gerd Thomsen = Gerd"),  # which of the two
        ("Tomke | owns | a boat", "Gerd Thomsen = Tomke"),  # no short form
        ("Liz | owns | a boat\nElizabeth Hart | has | a cat\nElizabeth Boone | has | a dog", "Elizabeth Boone = Liz"),
        ("Elizabeth | owns | a boat\nLiz Hart | has | a cat\nElizabeth Boone | has | a dog", "Liz Hart = Elizabeth"),
        ("KPO | owns | a boat\nKai Peter Ohm | has | a cat\nKim Paul Orr | has | a dog", "Kai Peter Ohm = KPO"),
        ("\n".join(f"Gerd{n} | owns | a boat" for n in range(120)), "Gerd Thomsen = Gerd"),
        ("Tomke | owns | a boat", "Gerd Thomsen = Gerd\nGerd Maas | has | a cat"),
    ],
)
def test_names_that_may_be_of_somebody_else_stay_two(
    store_url: str, open_memory: OpenMemory, third: str, said: str
) -> None:
    people = "Gerd Thomsen | leads | design", "Gerd | works | 60 %"
    assert told(open_memory, store_url, *people, third, said).admin.merges() == []


def test_each_of_two_names_that_are_both_given_as_the_other_is_merged_once(
    store_url: str, open_memory: OpenMemory
) -> None:
    said = "Gerd Thomsen = Gerd Thomson\nGerd Thomson = Gerd Thomsen"
    memory = told(open_memory, store_url, "Gerd Thomsen | leads | design", "Gerd Thomson | works | 60 %", said)
    assert [merge.kept.name for merge in memory.admin.merges()] == ["Gerd Thomsen"]
    assert memory.stats().pending_episodes == 0


def test_what_somebody_parted_is_not_merged_again(store_url: str, open_memory: OpenMemory) -> None:
    people = "Gerd Thomsen | leads | design", "Gerd | works | 60 %"
    memory = told(open_memory, store_url, *people, "Gerd Thomsen = Gerd")
    memory.admin.unmerge(memory.admin.merges()[0].id)
    memory.remember("Gerd Thomsen = Gerd\nGerd | owns | a boat")
    memory.flush()
    assert memory.admin.merges() == []
    assert {fact.target for fact in memory.facts("Gerd")} == {"60 %", "a boat"}


def test_all_that_was_merged_goes_with_an_entity(filled: GraphMemory, tmp_path: Path) -> None:
    filled.admin.merge(SECRET[0], into="Person 4")
    filled.admin.merge(["Person 4", SECRET[1]], into="Person 6")
    filled.forget("Person 6", with_episodes=True)
    text = exported(filled, tmp_path)
    assert [word for word in (*SECRET, "Person 4", "Person 6") if word in text] == []


# Names and links that only a forgotten text brought -------------------------------------------------


class Named:
    """Reads the name at the beginning of a text, up to "likes", and the further name in brackets."""

    name, batch_size = "named", 1

    def extract(self, requests: Sequence[ExtractionRequest]) -> list[Extraction | Exception]:
        return [self._read(request.episode.text) for request in requests]

    def _read(self, text: str) -> Extraction:
        who, _, what = text.partition(" likes ")
        name, _, also = who.partition(" (")
        aliases = (also.rstrip(")"),) if also else ()
        fact = ExtractedEdge(name, "likes", what, fact=f"{name} likes {what}")
        return Extraction((ExtractedEntity(name, "person", aliases=aliases), ExtractedEntity(what)), (fact,))


@pytest.mark.parametrize(
    ("forgotten", "other", "name"),
    [
        ("Bernadette Lopez (Zuzu) likes tea", "Bernadette Lopez likes jam", "Bernadette Lopez"),
        ("Bernadette Zuzu (Bernadette) likes jam", "Bernadette likes jam", "Bernadette"),
    ],
)
def test_a_further_name_goes_with_the_text_that_told_it(
    store_url: str, open_memory: OpenMemory, tmp_path: Path, forgotten: str, other: str, name: str
) -> None:
    memory = open_memory(store_url, extractor=Named(), embeddings="none")
    memory.ingest([{"text": other}, {"text": forgotten, "external_id": "gone"}])
    assert memory.facts("Zuzu") or memory.facts("Bernadette Zuzu")
    memory.forget(episode="gone")
    assert [entity.name for entity in memory.entities()] == [name, "jam"]
    assert [fact.fact for fact in memory.facts(name)] == [f"{name} likes jam"]
    assert "zuzu" not in exported(memory, tmp_path).lower()
    memory.ingest([{"text": "Zuzu likes salt"}])
    assert [fact.fact for fact in memory.facts("Zuzu")] == ["Zuzu likes salt"]


def test_a_further_name_under_which_somebody_still_speaks_stays(open_memory: OpenMemory) -> None:
    memory = open_memory("memory://", extractor=Named(), embeddings="none")
    memory.ingest([{"text": "Bernadette Lopez (Zuzu) likes tea", "external_id": "gone"}])
    memory.ingest([{"text": "Bernadette Lopez likes jam", "speaker": "Zuzu"}])
    memory.forget(episode="gone")
    assert [fact.fact for fact in memory.facts("Zuzu")] == ["Bernadette Lopez likes jam"]


def test_a_link_to_a_similar_entity_holds_no_forgotten_one(store_url: str, open_memory: OpenMemory) -> None:
    memory = open_memory(
        store_url, extractor=Named(), embeddings=WordVectors(), note_linking=True, resolve_similar=False
    )
    memory.ingest([{"text": "green apple cake likes jam"}])
    memory.ingest([{"text": "green apple cakes likes jam", "external_id": "gone"}])
    assert "similar_to" in [fact.relation for fact in memory.facts("green apple cakes")]
    memory.forget(episode="gone")
    assert [entity.name for entity in memory.entities()] == ["green apple cake", "jam"]
    assert [fact.relation for fact in memory.facts("green apple cake")] == ["likes"]


# Decay and eviction -------------------------------------------------------------------------------


def never() -> bool:
    return False


@pytest.fixture
def store(store_url: str) -> Iterator[GraphBackend]:
    store = open_backend(store_url)
    yield store
    store.close()


def test_counts_fade_once_for_the_days_that_passed_however_often_it_runs(store: GraphBackend) -> None:
    put_graph(store, *(edge(n, n, n + 1, retrieval_count=4.0, last_retrieved_at=day(0)) for n in range(1, 30)))
    rule = decay_rule(Settings())
    decay(store, home(), rule, never, now=day(10))
    decay(store, home(), rule, never, now=day(10))
    decay(store, home(), rule, never, now=day(30))
    counts = [e.retrieval_count for e in store.find_edges([home()], EdgeQuery())]
    assert counts == pytest.approx([4 * math.exp(-0.3)] * 29)


def test_the_longest_times_of_the_settings_are_dates(open_memory: OpenMemory) -> None:
    longest = {"expired_edge_retention_days": 5e5, "link_weight_decay_interval": 5e5, "claim_seconds": 1e9}
    memory = toy_memory(open_memory, "memory://", **longest)
    memory.remember("Maya | lives_in | Lisbon")
    assert memory.flush() == 0
    assert memory.recall("Where does Maya live?").facts
    assert memory.admin.evict().deleted_facts == 0
    assert memory.admin.decay() > 0


def test_a_scheduled_decay_runs_at_most_once_an_hour(monkeypatch: pytest.MonkeyPatch) -> None:
    store = open_backend("memory://")
    put_graph(store, edge(1, 1, 2, retrieval_count=4.0, last_retrieved_at=day(0)))
    [job] = [job for job in upkeep_jobs(store, Settings()) if job.name == "decay"]

    def count_at(hours: float) -> float:
        monkeypatch.setattr("graphmem.upkeep.eviction.utc_now", lambda: day(10) + timedelta(hours=hours))
        assert job.run(home(), never)
        [found] = store.find_edges([home()], EdgeQuery())
        return found.retrieval_count

    first = count_at(0)
    assert first < 4.0
    assert count_at(0.9) == first
    assert count_at(1.1) < first


def test_what_is_long_over_goes_and_what_is_long_unseen_hides(store: GraphBackend) -> None:
    put_graph(
        store,
        edge(1, 1, 2, valid_to=day(1), expired_at=day(1)),
        edge(2, 3, 4, valid_to=day(95), expired_at=day(95)),
        edge(3, 5, 6),
        edge(4, 6, 7, confidence=0.1),
    )
    rule = EvictionRule(retention=90.0)
    done = evict(store, home(), rule, never, now=day(100))
    assert (done.deleted_facts, done.ended_facts, done.archived_entities) == (1, 0, 2)
    assert numbers_of(store.find_edges([home()], EdgeQuery(versions="all"))) == [2, 3, 4]
    assert numbers_of(store.find_entities([home()], EntityQuery())) == [3, 4, 5, 6, 7]
    again = evict(store, home(), rule, never, now=day(100))
    assert (again.deleted_facts, again.archived_entities) == (0, 0)
    weak = evict(store, home(), EvictionRule(retention=90.0, min_weight=0.3), never, now=day(100))
    assert (weak.ended_facts, weak.archived_entities) == (1, 0)
    assert numbers_of(store.find_edges([home()], EdgeQuery())) == [3]
    later = evict(store, home(), rule, never, now=day(191))
    assert (later.deleted_facts, later.archived_entities) == (2, 3)


def test_a_walk_through_the_past_finds_what_was_superseded_within_the_retention(store: GraphBackend) -> None:
    put_graph(store, edge(1, 1, 2, valid_to=day(50), expired_at=day(95)), edge(2, 1, 3, valid_from=day(50)))
    then = AsOf(valid=day(20), known=day(190))
    for now, found in ((100, [1]), (184, [1]), (186, [])):
        evict(store, home(), EvictionRule(retention=90.0), never, now=day(now))
        graph = store.expand([home()], [entity_id(1)], hops=1, as_of=then)
        assert graph.edge_ids == [edge_id(n) for n in found]


def test_a_weak_fact_that_was_stated_again_lately_stays(store: GraphBackend) -> None:
    store.add_episodes(home(), [episode(n, recorded_at=day(when)) for n, when in ((1, 0), (2, 5), (3, 60))])
    told = {1: (1,), 2: (1, 3), 3: (3, 1), 4: (1, 2)}  # an import may put what it brings behind newer ones
    put_graph(
        store,
        *(
            edge(n, 2 * n, 2 * n + 1, confidence=0.1, episode_ids=tuple(map(episode_id, episodes)))
            for n, episodes in told.items()
        ),
    )
    rule = EvictionRule(retention=90.0, min_weight=0.3)
    assert evict(store, home(), rule, never, now=day(100)).ended_facts == 2
    assert numbers_of(store.find_edges([home()], EdgeQuery())) == [2, 3]
    assert evict(store, home(), rule, never, now=day(150)).ended_facts == 2


def test_a_weak_fact_has_its_time_from_when_it_begins(store: GraphBackend) -> None:
    put_graph(store, *(edge(n, 2 * n, 2 * n + 1, confidence=0.1, valid_from=day(n * 100)) for n in (0, 1, 2)))
    rule = EvictionRule(retention=90.0, min_weight=0.3)
    assert evict(store, home(), rule, never, now=day(150)).ended_facts == 1
    assert numbers_of(store.find_edges([home()], EdgeQuery())) == [1, 2]
    assert evict(store, home(), rule, never, now=day(191)).ended_facts == 1
    assert numbers_of(store.find_edges([home()], EdgeQuery())) == [2]


def test_what_ends_in_the_future_is_neither_deleted_nor_hidden(store: GraphBackend) -> None:
    put_graph(
        store,
        edge(1, 1, 2, valid_to=day(200)),
        edge(2, 3, 4, valid_to=day(200), expired_at=day(1), superseded_by=edge_id(3)),
        edge(3, 3, 5, valid_from=day(200)),
        edge(4, 6, 7, valid_from=day(200), valid_to=day(200)),
        edge(5, 8, 9, valid_to=day(1)),
    )
    rule = EvictionRule(retention=1.0)
    done = evict(store, home(), rule, never, now=day(100))
    assert (done.deleted_facts, done.archived_entities) == (0, 4)
    assert numbers_of(store.find_entities([home()], EntityQuery())) == [1, 2, 3, 4, 5]
    done = evict(store, home(), rule, never, now=day(201))
    assert (done.deleted_facts, done.archived_entities) == (1, 3)
    assert numbers_of(store.find_edges([home()], EdgeQuery(versions="all"))) == [1, 3, 4, 5]


def test_many_that_stay_do_not_keep_others_from_being_hidden(store: GraphBackend) -> None:
    put_graph(store, *(edge(n, 2 * n, 2 * n + 1, valid_to=day(200)) for n in range(600)))
    put_entities(store, *(entity(n) for n in range(5000, 5600)))
    done = evict(store, home(), EvictionRule(retention=1.0), never, now=day(100))
    assert (done.archived_entities, done.finished) == (600, True)
    assert len(list(store.all_entities([home()], EntityQuery()))) == 1200


def test_a_cap_hides_those_with_the_fewest_facts_first(store: GraphBackend) -> None:
    put_graph(store, *(edge(n, 1, n) for n in range(2, 6)))
    put_entities(store, entity(9, last_seen_at=day(50)))
    evict(store, home(), EvictionRule(retention=90.0, max_entities=3), never, now=day(60))
    assert numbers_of(store.find_entities([home()], EntityQuery())) == [1, 4, 5]


def test_a_cap_hides_no_more_than_needed_and_none_that_was_seen_meanwhile(
    store: GraphBackend, monkeypatch: pytest.MonkeyPatch
) -> None:
    put_graph(store, edge(1, 1, 2))
    put_entities(store, *(entity(n, last_seen_at=day(n - 1000)) for n in range(1000, 2200)))
    find, atomic = store.find_least_connected, store.atomic
    found: list[str] = []

    def find_once(scope: Scope, *, limit: int = 1000) -> list[str]:
        assert not found  # it looks at everybody
        found.extend(find(scope, limit=limit))
        return list(found)

    def interrupted(work: Callable[[], Any]) -> Any:
        if found and store.stats(home()).entities == 1202:  # another writer comes in between
            put_entities(store, entity(1000, last_seen_at=day(5000)))
            store.write(home(), Changes(removals=tuple(Removal("entity", entity_id(n)) for n in range(2190, 2200))))
        return atomic(work)

    monkeypatch.setattr(store, "find_least_connected", find_once)
    monkeypatch.setattr(store, "atomic", interrupted)
    done = evict(store, home(), EvictionRule(retention=9999.0, max_entities=100), never, now=day(60))
    left = numbers_of(list(store.all_entities([home()], EntityQuery())))
    assert (done.archived_entities, done.finished, len(left)) == (1092, True, 100)
    assert left == [1, 2, 1000, *range(2093, 2190)]


def test_a_hidden_entity_comes_back_when_it_is_mentioned(store_url: str, open_memory: OpenMemory) -> None:
    memory = open_memory(store_url, embeddings="none", expired_edge_retention_days=0)
    memory.add_facts([("Ada", "works_at", "Initech")], occurred_at="2020-01-01T00:00:00Z")
    memory.add_facts([("Ada", "works_at", "Globex")], occurred_at="2021-01-01T00:00:00Z")
    told = memory.admin.evict(dry_run=True)
    assert (told.deleted_facts, told.archived_entities, told.examples) == (1, 1, ("Ada works at Initech",))
    assert (memory.stats().archived_entities, len(memory.history("Ada"))) == (0, 2)
    done = memory.admin.evict()
    assert (done.deleted_facts, done.archived_entities) == (1, 1)
    assert (memory.stats().archived_entities, memory.stats().deleted_facts) == (1, 1)
    memory.ingest([{"text": "Bob | visited | Initech"}])
    assert memory.stats().archived_entities == 0
    assert [seed.name for seed in memory.recall("Initech").seeds] == ["Initech"]


def test_history_stays_unless_its_deletion_was_asked_for(store_url: str, open_memory: OpenMemory) -> None:
    memory = open_memory(store_url, embeddings="none")
    memory.add_facts([("Ada", "works_at", "Initech")], occurred_at="2020-01-01T00:00:00Z")
    memory.add_facts([("Ada", "works_at", "Globex")], occurred_at="2021-01-01T00:00:00Z")
    backend, scope = memory._engine.backend, memory.scope  # pyright: ignore[reportPrivateUsage]
    done = evict(backend, scope, eviction_rule(Settings()), never, now=utc_now() + timedelta(days=9999))
    assert (done.deleted_facts, done.archived_entities) == (0, 0)
    assert [fact.target for fact in memory.recall("Where does Ada work?", as_of="2020-06-01").facts] == ["Initech"]


@pytest.mark.server
def test_a_hidden_entity_is_found_by_its_name(store_url: str, open_memory: OpenMemory) -> None:
    memory = open_memory(store_url, embeddings="none", max_entities=1)
    memory.add_facts([("Ada", "knows", "Bob"), ("Ada", "likes", "Tea"), ("Zorbla", "likes", "Ada")])
    assert memory.admin.evict().archived_entities == 3
    assert [seed.name for seed in memory.recall("What does Zorbla like?").seeds] == ["Zorbla"]
    assert [fact.target for fact in memory.recall("What does Zorbla like?").facts] == ["Ada"]


@pytest.mark.whole_store
def test_upkeep_runs_in_the_background_and_again_after_an_interruption(
    durable_url: str, open_memory: OpenMemory
) -> None:
    options = {
        "embeddings": "none",
        "background": True,
        "community_refresh_interval": 5,
        "expired_edge_retention_days": 90,
    }
    memory = open_memory(durable_url, **options)
    memory.ingest([{"text": f"Person {i} | knows | Person {i + 1}"} for i in range(6)])
    store = open_backend(durable_url)
    try:
        wait_until(
            lambda: {mark.job for mark in store.find_job_states(memory.scope) if mark.episodes} >= {"decay", "eviction"}
        )
        memory.close()
        [before] = [mark for mark in store.find_job_states(memory.scope) if mark.job == "eviction"]
        with GraphMemory.open(durable_url, extractor=ToyExtractor(), background=False, embeddings="none") as other:
            other.ingest([{"text": f"Person {i} | likes | Person {i + 1}"} for i in range(6)])  # nobody looks after it
        open_memory(durable_url, **options)
        wait_until(lambda: 12 in {mark.episodes for mark in store.find_job_states(memory.scope)})
        assert before.episodes == 6
    finally:
        store.close()
