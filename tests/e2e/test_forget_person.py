"""Forgetting a person: what they said, every text in which a name of theirs stands, and what hung on them alone."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from conftest import OpenMemory

from graphmem import GraphMemory, InvalidInput, NotFound
from graphmem.models import Changes, Episode, EpisodeQuery, EpisodeRedaction, Scope
from graphmem.protocols import ExtractedEdge, ExtractedEntity, Extraction, ExtractionRequest
from tests.e2e.word_vectors import WordVectors

TURNS = (
    {"text": "Zebulon Quimby | lives_in | Wolfsburg", "speaker": "Maya", "external_id": "named"},
    {"text": "weather | is | xylophonic", "speaker": "Zebulon Quimby", "external_id": "said"},
    {"text": "Maya | hates | Mondays # as ZEBULON\u00a0QUIMBY's neighbor", "external_id": "never seen by the parser"},
    {"text": "Maya | likes | Tea # zebby makes it", "external_id": "nickname"},
    {"text": "Zebby Q | owns | a pranceltoy", "external_id": "alias"},
    {"text": "weather | was | wuzzletonic", "speaker": "Zebby Q", "external_id": "said under an alias"},
    {
        "text": "Maya | saw | Ducks",
        "external_id": "attached",
        "attachments": [{"kind": "image", "description": 'the "Zebulon Quimby" pond, a quackofoto'}],
    },
    {"text": "Maya | knows | Bob", "speaker": "Maya", "external_id": "others"},
)
WORDS = ("zebulon", "quimby", "zebby", "wolfsburg", "xylophonic", "pranceltoy", "wuzzletonic", "quackofoto")


def told_of_zebulon(open_memory: OpenMemory, url: str) -> GraphMemory:
    memory = open_memory(url, embeddings=WordVectors())
    memory.ingest(TURNS)
    memory.add_facts([("Zebby", "knows", "Zebulon Quimby")])
    memory.admin.merge(["Zebby Q", "Zebby"], into="Zebulon Quimby")
    memory.search("what about Zebulon Quimby?", trace=True)
    memory.admin.traces()
    return memory


def external_ids(memory: GraphMemory) -> set[str | None]:
    episodes = memory._engine.backend.all_episodes([memory.scope], EpisodeQuery())  # pyright: ignore[reportPrivateUsage]
    return {episode.external_id for episode in episodes} - {None}


def test_nothing_of_a_person_is_left_in_the_files(sqlite_file: Path, open_memory: OpenMemory) -> None:
    memory = told_of_zebulon(open_memory, f"sqlite:///{sqlite_file}")
    done = memory.forget("Zebulon Quimby", with_episodes=True)
    assert (done.still_mentioned_in, done.remaining, done.left) == ((), (), ())
    files = b"".join(file.read_bytes() for file in sqlite_file.parent.glob(f"{sqlite_file.name}*")).lower()
    assert [word for word in WORDS if word.encode() in files] == []
    assert external_ids(memory) == {"others"}


@pytest.mark.server
def test_words_stay_without_with_episodes_and_a_second_call_by_name_takes_them(
    store_url: str, open_memory: OpenMemory
) -> None:
    memory = told_of_zebulon(open_memory, store_url)
    first = memory.forget("Zebulon Quimby")
    assert len(first.still_mentioned_in) == 7
    assert {"zebby", "zebby q", "zebulon quimby"} <= set(first.names)
    assert "7 episodes" in first.remaining[0]
    assert memory.forget("Zebulon Quimby", with_episodes=True).episodes == 4
    told = memory.forget("zebby", with_episodes=True)
    assert (told.episodes, told.remaining) == (
        1,
        (
            "1 longer name of others, such as 'zebby q' (a speaker), in 2 episodes; "
            "forget them as well if they are the same",
        ),
    )
    assert memory.forget("Zebby Q", with_episodes=True).episodes == 2
    assert external_ids(memory) == {"others"}
    with pytest.raises(NotFound, match="no text contains this name"):
        memory.forget("Zebulon Quimby", with_episodes=True)


def test_a_speaker_is_forgotten_and_who_else_names_them_is_told(store_url: str, open_memory: OpenMemory) -> None:
    memory = told_of_zebulon(open_memory, store_url)
    done = memory.forget(speaker="zebulon quimby")
    assert (done.episodes, len(done.still_mentioned_in)) == (1, 4)
    assert "said" not in external_ids(memory)
    with pytest.raises(NotFound, match="no episode has the speaker 'Nobody'"):
        memory.forget(speaker="Nobody")


def test_a_dry_run_tells_what_would_go_and_changes_nothing(store_url: str, open_memory: OpenMemory) -> None:
    memory = told_of_zebulon(open_memory, store_url)
    before = memory.admin.checksum()
    told = memory.forget("Zebulon Quimby", with_episodes=True, dry_run=True)
    assert (told.dry_run, memory.admin.checksum()) == (True, before)
    assert "Zebulon Quimby: weather | is | xylophonic" in told.examples["episodes"]
    done = memory.forget("Zebulon Quimby", with_episodes=True)
    assert told.changed(dry_run=False) == done


@pytest.mark.server
def test_of_two_of_one_name_it_asks_which(store_url: str, open_memory: OpenMemory) -> None:
    memory = open_memory(store_url, embeddings="none")
    memory.add_facts(
        [
            {"subject": "Alex Reed", "relation": "likes", "object": "Tea", "subject_type": "person"},
            {"subject": "Alex Reed", "relation": "sells", "object": "Shoes", "subject_type": "organization"},
        ]
    )
    memory.ingest([{"text": "Maya | knows | Bob # and Alex Reed"}])
    with pytest.raises(InvalidInput, match="2 entities have it"):
        memory.forget("Alex Reed", with_episodes=True)
    [person] = [entity for entity in memory.entities("Alex Reed") if entity.entity_type == "person"]
    done = memory.forget(person.id, with_episodes=True)
    assert (done.entities, done.episodes) == (2, 0)
    assert "organization" in done.remaining[0]
    assert {fact.target for fact in memory.facts("Alex Reed")} == {"Shoes"}


def test_values_that_hung_on_a_person_alone_go(store_url: str, open_memory: OpenMemory) -> None:
    memory = open_memory(store_url, embeddings="none")
    memory.add_facts([("Zebulon", "has_salary", "987654 EUR"), ("Zebulon", "likes", "Tea"), ("Maya", "likes", "Tea")])
    memory.ingest([{"text": "Zebulon | was_born_on | 1990-05-03"}])
    memory.forget("Zebulon")
    assert {entity.name for entity in memory.entities()} == {"Maya", "Tea"}


def test_a_name_in_the_id_of_a_session_is_told(store_url: str, open_memory: OpenMemory) -> None:
    memory = open_memory(store_url, embeddings="none")
    memory.ingest([{"text": "Zebulon | likes | Tea"}, {"text": "Maya | likes | Tea", "session_id": "zebulon-17"}])
    done = memory.forget("Zebulon", with_episodes=True)
    assert done.episodes == 1
    assert "zebulon-17" in done.remaining[0]


def test_ready_made_facts_leave_no_other_sentence_and_tell_the_name_in_their_source(open_memory: OpenMemory) -> None:
    memory = open_memory("memory://", embeddings="none")
    memory.add_facts([{"subject": "Zebulon", "relation": "takes", "object": "insulin", "source": "a"}])
    told = [("Zebulon", "takes", "insulin", "The patient needs insulin"), ("Maya", "likes", "tea", "Maya likes tea")]
    memory.add_facts(
        {"subject": who, "relation": what, "object": whom, "fact": sentence, "source": "zebulon-notes"}
        for who, what, whom, sentence in told
    )
    done = memory.forget("Zebulon")
    [episode] = memory._engine.backend.all_episodes([memory.scope], EpisodeQuery())  # pyright: ignore[reportPrivateUsage]
    assert (episode.text, done.redacted_episodes) == ("Maya likes tea", 1)
    assert "zebulon-notes" in done.remaining[0]


@pytest.mark.server
def test_another_person_of_a_longer_name_stays(store_url: str, open_memory: OpenMemory) -> None:
    memory = open_memory(store_url, embeddings="none")
    memory.ingest(
        [
            {"text": "Alex Reed | lives_in | Bruges", "speaker": "Maya", "external_id": "reed"},
            {"text": "Alex | likes | Tea", "speaker": "Maya", "external_id": "reed by his first name"},
            {"text": "Alex Stone | lives_in | Ghent", "speaker": "Maya", "external_id": "stone"},
            {"text": "weather | is | rainy", "speaker": "Alex Stone", "external_id": "stone said"},
            {"text": "Maya | asked | Bob # about Alex and Alex Stone", "external_id": "both"},
            {"text": "Maya | borrowed | a bike # Alex's", "external_id": "possessive"},
        ]
    )
    memory.admin.merge(["Alex"], into="Alex Reed")
    told = memory.forget("Alex Reed", with_episodes=True, dry_run=True)
    done = memory.forget("Alex Reed", with_episodes=True)
    assert told.changed(dry_run=False) == done
    assert external_ids(memory) == {"stone", "stone said"}
    assert "'alex stone'" in done.remaining[0]
    assert [fact.fact for fact in memory.facts("Alex Stone")] == ["Alex Stone lives_in Ghent"]


@pytest.mark.server
def test_a_first_name_of_several_persons_is_asked_about(store_url: str, open_memory: OpenMemory) -> None:
    memory = open_memory(store_url, embeddings="none")
    memory.ingest(
        [
            {"text": "weather | is | rainy", "speaker": "Alex Stone", "external_id": "stone"},
            {"text": "Bob | likes | Tea # said Alex", "external_id": "alex"},
        ]
    )
    memory.add_facts([{"subject": "Alex Reed", "relation": "likes", "object": "Tea", "subject_type": "person"}])
    for dry_run in (True, False):
        with pytest.raises(InvalidInput, match=r"several persons .* 'alex stone' \(a speaker\).*'alex reed' \(person"):
            memory.forget("Alex", with_episodes=True, dry_run=dry_run)
    memory.forget(speaker="Alex Stone")
    assert "'alex reed'" in memory.forget("Alex", with_episodes=True).remaining[0]
    assert external_ids(memory).isdisjoint({"stone", "alex"})
    assert [fact.target for fact in memory.facts("Alex Reed")] == ["Tea"]
    with pytest.raises(NotFound, match=r"1 longer name of others, such as 'alex reed'"):
        memory.forget("Alex", with_episodes=True)


@pytest.mark.parametrize(
    "name",
    [
        pytest.param("Zebulon Quimby" + "x" * length, marks=[pytest.mark.full] if length % 9 else [])
        for length in range(0, 40, 3)
    ],
)
def test_facts_of_others_stay_however_many_were_added_with_them(name: str, open_memory: OpenMemory) -> None:
    memory = open_memory("memory://", embeddings="none")
    theirs = [("Maya Chen", "likes", f"Dish number {i}") for i in range(3)]
    memory.add_facts([*((name, "knows", f"Friend number {i:03}") for i in range(221)), *theirs])
    done = memory.forget(name)
    assert (done.facts, done.redacted_episodes, memory.stats().edges) == (221, 1, 3)
    [episode] = memory._engine.backend.all_episodes([memory.scope], EpisodeQuery())  # pyright: ignore[reportPrivateUsage]
    assert episode.text.split("\n") == [" ".join(triple) for triple in theirs]


def test_a_text_of_an_earlier_version_that_ends_within_a_name_loses_it(open_memory: OpenMemory) -> None:
    memory = open_memory("memory://", embeddings="none")
    memory.add_facts([("Maya", "likes", "Tea"), ("Zebulon Quimby", "likes", "Tea"), ("Zebulon Quimby", "likes", "Rum")])
    backend = memory._engine.backend  # pyright: ignore[reportPrivateUsage]
    [episode] = backend.all_episodes([memory.scope], EpisodeQuery())
    cut = EpisodeRedaction(episode.id, "Maya likes Tea\nZebulon Quimby likes Tea\nZebulon Qu")
    backend.write(memory.scope, Changes(redactions=(cut,)))
    memory.forget("Zebulon Quimby")
    [episode] = backend.all_episodes([memory.scope], EpisodeQuery())
    assert episode.text == "Maya likes Tea"


def test_names_in_properties_and_metadata_go(sqlite_file: Path, open_memory: OpenMemory) -> None:
    memory = open_memory(f"sqlite:///{sqlite_file}", embeddings="none")
    told = {"subject": "Maya", "relation": "likes", "object": "Tea", "metadata": {"told_by": "Zebulon Quimby"}}
    memory.add_facts([told, ("Zebulon Quimby", "likes", "Rum")])
    memory.ingest([{"text": "Maya | likes | Cake", "metadata": {"Zebulon Quimby": True}, "external_id": "key"}])
    done = memory.forget("Zebulon Quimby", with_episodes=True)
    assert (done.rewritten_facts, done.episodes, done.remaining) == (1, 1, ())
    assert [fact.fact for fact in memory.facts("Maya")] == ["Maya likes Tea"]
    files = b"".join(file.read_bytes() for file in sqlite_file.parent.glob(f"{sqlite_file.name}*")).lower()
    assert b"zebulon" not in files


def test_forgetting_a_speaker_tells_of_the_name_in_sessions_and_of_longer_names(open_memory: OpenMemory) -> None:
    memory = open_memory("memory://", embeddings="none")
    memory.ingest(
        [
            {"text": "weather | is | rainy", "speaker": "Ada"},
            {"text": "weather | is | sunny", "speaker": "Bob", "session_id": "ada-17"},
            {"text": "weather | is | cold", "speaker": "Ada Chen"},
            {"text": "Ada | likes | Tea", "speaker": "Bob"},
        ]
    )
    done = memory.forget(speaker="Ada")
    assert (done.episodes, len(done.still_mentioned_in)) == (1, 1)
    assert "forget('Ada', with_episodes=True)" in done.remaining[0]
    assert "ada-17" in done.remaining[1]
    assert "'ada chen' (a speaker)" in done.remaining[2]


class Answers:
    """States what is asked in the turn before each "Yes", and names what is asked and said about."""

    name, batch_size = "answers", 8

    def extract(self, requests: Sequence[ExtractionRequest]) -> list[Extraction]:
        return [self._read(request) for request in requests]

    def _read(self, request: ExtractionRequest) -> Extraction:
        speaker, text = request.episode.speaker or "", request.episode.text
        if text == "Yes":
            asked = request.context[-1].text
            edge = ExtractedEdge(speaker, "works_with", asked.split()[-1].rstrip("?"), fact=f"{speaker} {asked}")
            return Extraction(edges=(edge,))
        return Extraction(entities=(ExtractedEntity(text.split()[-1].rstrip("?."), "person"),))


def asked_about(open_memory: OpenMemory, file: Path, *turns: tuple[str, str]) -> GraphMemory:
    memory = open_memory(f"sqlite:///{file}", extractor=Answers(), embeddings="none")
    memory.ingest([{"speaker": who, "text": text, "session_id": "talk", "external_id": text} for who, text in turns])
    return memory


@pytest.mark.parametrize(("speaker", "episode"), [("Tom", None), (None, "Do you work with Zebulon?")])
def test_what_an_answer_took_from_a_forgotten_question_goes(
    sqlite_file: Path, open_memory: OpenMemory, speaker: str | None, episode: str | None
) -> None:
    memory = asked_about(open_memory, sqlite_file, ("Tom", "Do you work with Zebulon?"), ("Maya", "Yes"))
    assert [fact.target for fact in memory.facts("Maya")] == ["Zebulon"]
    memory.forget(speaker=speaker, episode=episode)
    files = b"".join(file.read_bytes() for file in sqlite_file.parent.glob(f"{sqlite_file.name}*")).lower()
    assert b"zebulon" not in files
    assert memory.stats().episodes == 1


class Paraphrases:
    """States of each speaker of an "I" that they know Bob, and describes Bob, with the words of the turn before."""

    name, batch_size = "paraphrases", 8

    def extract(self, requests: Sequence[ExtractionRequest]) -> list[Extraction]:
        return [self._read(request) for request in requests]

    def _read(self, request: ExtractionRequest) -> Extraction:
        if "Bob" not in request.episode.text:
            return Extraction()
        who, words = request.episode.speaker or "", " ".join(turn.text for turn in request.context)
        edge = ExtractedEdge(who, "knows", "Bob", fact=f"{who} knows Bob: {words}")
        return Extraction((ExtractedEntity("Bob", "person", summary=words),), (edge,))


@pytest.mark.server
def test_sentences_and_summaries_lose_words_of_a_forgotten_turn_before(store_url: str, open_memory: OpenMemory) -> None:
    memory = open_memory(store_url, extractor=Paraphrases(), embeddings="none")
    memory.ingest([{"speaker": "Tom", "text": "a xylophonic surgery", "session_id": "1", "external_id": "gone"}])
    memory.ingest([{"speaker": "Maya", "text": "I know Bob", "session_id": "1"}])
    memory.ingest([{"speaker": "Ana", "text": "What a wet day", "session_id": "2", "external_id": "day"}])
    memory.ingest([{"speaker": "Ida", "text": "I know Bob on a wet day", "session_id": "2"}])
    assert "xylophonic" in str(memory.facts("Bob"))
    assert memory.forget(episode="gone").rewritten_facts == 1
    assert memory.forget(episode="day").rewritten_facts == 0
    facts = {fact.source: fact.fact for fact in memory.facts("Bob")}
    assert facts == {"Maya": "Maya knows Bob", "Ida": "Ida knows Bob: What a wet day"}
    assert "xylophonic" not in str(memory.entities())


def test_an_answer_keeps_what_another_turn_names_as_well(sqlite_file: Path, open_memory: OpenMemory) -> None:
    turns = ("Maya", "I know Zebulon"), ("Tom", "Do you work with Zebulon?"), ("Maya", "Yes")
    memory = asked_about(open_memory, sqlite_file, *turns)
    memory.forget(episode="Do you work with Zebulon?")
    assert [fact.target for fact in memory.facts("Maya")] == ["Zebulon"]


def test_a_name_that_only_facts_and_traces_quote_goes(store_url: str, open_memory: OpenMemory) -> None:
    memory = open_memory(store_url, embeddings="none")
    boss = {"subject": "Maya", "relation": "works_at", "object": "Globex", "metadata": {"boss": "Zebulon"}}
    memory.add_facts([boss, ("Maya", "likes", "Tea")])
    [tea] = [fact for fact in memory.facts("Maya") if fact.target == "Tea"]
    memory.retract(tea.id, reason="Quimby told me")
    memory.recall("Who is Wolfsburg?", trace=True)
    memory.admin.traces()
    assert memory.forget("Zebulon").rewritten_facts == 1
    assert memory.forget("Quimby").rewritten_facts == 1
    assert memory.forget("Wolfsburg").recalls == 1
    for name in ("Zebulon", "Quimby", "Wolfsburg"):
        with pytest.raises(NotFound, match="no text contains this name"):
            memory.forget(name, with_episodes=True)
    assert not any("boss" in fact.properties for fact in memory.facts("Maya"))


class Quoting:
    """Fails with all that it is shown."""

    name, batch_size = "quoting", 8

    def extract(self, requests: Sequence[ExtractionRequest]) -> list[Extraction | Exception]:
        return [ValueError("; ".join(turn.text for turn in (*r.context, r.episode))) for r in requests]


@pytest.mark.parametrize("entity", ["Zebulon", None])
def test_errors_of_other_episodes_quote_nothing_that_was_erased(
    store_url: str, open_memory: OpenMemory, entity: str | None
) -> None:
    memory = open_memory(store_url, extractor=Quoting(), embeddings="none", max_attempts=1)
    texts = ("Zebulon is xylophonic", "said"), ("Who is?", "next"), ("Tea", "other")
    for text, external_id in texts:
        session = "tea" if external_id == "other" else "talk"
        memory.remember(text, session_id=session, external_id=external_id)
    memory.flush()
    if entity is None:
        memory.forget(episode="said")
    else:
        memory.forget(entity, with_episodes=True)
    failed = memory.admin.dead_letters()
    assert sorted(each.error.partition(":")[0] for each in failed) == ["ValueError", "ValueError"]
    assert "xylophonic" not in str(failed)
    assert any(each.error == "ValueError: Tea" for each in failed)


def test_names_of_what_goes_with_a_person_are_not_told_as_theirs(store_url: str, open_memory: OpenMemory) -> None:
    memory = open_memory(store_url, embeddings="none")
    memory.ingest([{"text": "Zebulon | visited | Vegas"}, {"text": "Maya | likes | Vegas Pro"}])
    assert memory.forget("Zebulon", with_episodes=True).remaining == ()


def test_the_episodes_of_a_scope_are_read_once(open_memory: OpenMemory, monkeypatch: pytest.MonkeyPatch) -> None:
    memory, queries = open_memory("memory://"), list[EpisodeQuery]()
    memory.add_facts([("Jonas Weber", "lives_in", "Antwerp")])
    memory.remember("Jonas likes tea.")
    backend = memory._engine.backend  # pyright: ignore[reportPrivateUsage]
    read = backend.all_episodes

    def counted(scopes: Sequence[Scope], query: EpisodeQuery, *, chunk: int = 1000) -> Iterator[Episode]:
        queries.append(query)
        return read(scopes, query, chunk=chunk)

    monkeypatch.setattr(backend, "all_episodes", counted)
    done = memory.forget("Jonas Weber", dry_run=True)
    assert "with 'Jonas', a part of the name" in str(done.remaining)
    assert queries.count(EpisodeQuery()) == 1


def test_texts_with_a_part_of_a_persons_name_are_reported(store_url: str, open_memory: OpenMemory) -> None:
    memory = open_memory(store_url, extractor="none", embeddings="none")
    memory.ingest(
        [
            {"text": "Jonas Weber | works_at | Siemens", "speaker": "Ana"},
            {"text": "Jonas | lives_in | Antwerp", "speaker": "Ana"},
            {"text": "jonas | knows | Jonas Weber's wife", "speaker": "Ana"},
            {"text": "tea | is | hot", "speaker": "Mia Weber"},
        ]
    )
    memory.add_facts([{"subject": "Jonas Weber", "relation": "likes", "object": "tea", "subject_type": "person"}])
    done = memory.forget("Jonas Weber", with_episodes=True)
    assert done.remaining == (
        "1 episode with 'Jonas', a part of the name, such as 'Jonas | lives_in | Antwerp'; "
        "forget('Jonas', with_episodes=True) erases them if it is the same person",
    )


def test_a_common_word_or_a_thing_with_a_part_of_the_name_is_not_reported(
    store_url: str, open_memory: OpenMemory
) -> None:
    memory = open_memory(store_url, embeddings="none")
    memory.remember("Will you come to the smith?", speaker="Ana")
    memory.add_facts([{"subject": "Will Smith", "relation": "likes", "object": "tea", "subject_type": "person"}])
    memory.add_facts([{"subject": "York", "relation": "likes", "object": "tea", "subject_type": "location"}])
    memory.add_facts([{"subject": "New York", "relation": "part of", "object": "USA", "subject_type": "location"}])
    assert memory.forget("Will Smith").remaining == ()
    assert memory.forget("New York").remaining == ()


def test_an_emoji_as_a_name_is_found_in_texts(store_url: str, open_memory: OpenMemory) -> None:
    memory = open_memory(store_url, extractor="none", embeddings="none")
    memory.remember("🦊 | likes | tea", speaker="Ana", external_id="fox")
    memory.remember("🐻 | likes | tea", speaker="Ana", external_id="bear")
    assert memory.forget("🦊", with_episodes=True).episodes == 1
    assert external_ids(memory) == {"bear"}
