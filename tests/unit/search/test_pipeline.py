"""The parts of a score, each on a few turns made for it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import pytest

from graphmem.embed.interface import TokenVectors
from graphmem.models import Episode, Scope
from graphmem.recall.options import SpreadingOptions
from graphmem.search.corpus import Corpus, Unit
from graphmem.search.lexical import LENT, Lexicon, Sessions
from graphmem.search.pipeline import LONG_TURN, Ranking, rank
from graphmem.search.question import parse_question
from graphmem.search.results import ExpansionConfig, SearchOptions
from graphmem.search.selection import spread
from graphmem.settings import Settings

LIMITS = SpreadingOptions.of(Settings())
NO_PIECES = np.empty((0, 128), np.int8)
QUESTION = np.array([1, 0], np.float32)


def corpus(
    *turns: tuple[dict[str, Any], float], names: Sequence[Sequence[str]] = (), dates: Sequence[str] = ()
) -> Corpus:
    """Return a corpus of turns, each given by its fields and the cosine of its sentence with `QUESTION`."""
    made = Corpus(2)
    units = [
        Unit(
            episode=Episode(id=f"{i:04d}", scope=Scope("x"), **fields),
            session=fields.get("session_id"),
            date=dates[i] if dates else "",
            names=tuple(names[i]) if names else (),
            pieces=frozenset(),
        )
        for i, (fields, _) in enumerate(turns)
    ]
    vectors = [np.array([[c, (1 - c * c) ** 0.5]] * 2, np.float32) for _, c in turns]
    made.extend(units, [(vector, NO_PIECES) for vector in vectors])
    made.add_names()
    return made


def ranked(made: Corpus, question: str, now: datetime | None = None) -> Ranking:
    tokens = TokenVectors((), np.empty((0, 2), np.float32), np.empty((0, 2), np.int64), QUESTION)
    asked = parse_question(question, made.speakers, made.names, now=now)
    return rank(made, asked, tokens, SearchOptions(expansion=ExpansionConfig()), LIMITS)


def chat(*texts: str) -> Corpus:
    """Return a chat of a user and an assistant, who take turns."""
    roles = ("user", "assistant")
    return corpus(*(({"text": t, "role": roles[i % 2], "session_id": "s"}, 0.5) for i, t in enumerate(texts)))


def test_words_take_over_from_vectors_that_don_t_know_the_question() -> None:
    made = corpus(({"text": "Кошка спит."}, 0.1), ({"text": "Собака лает."}, 0.9))
    asked = parse_question("Где кошка?", made.speakers, made.names)
    tokens = TokenVectors((), np.empty((0, 2), np.float32), np.empty((0, 2), np.int64), QUESTION)
    covered = {share: replace(tokens, vocabulary_coverage=share) for share in (1.0, 0.5, 0.0)}
    best = {share: rank(made, asked, read, SearchOptions(), LIMITS) for share, read in covered.items()}
    assert [float(one.channels["sentence"].max()) for one in best.values()] == pytest.approx([0.4, 0.2, 0])
    assert [float(one.channels["lexical"].max()) for one in best.values()] == pytest.approx([0.6, 0.8, 1])
    assert best[0.0].total.argmax() == 0


def test_a_question_in_the_first_person_prefers_what_the_user_said() -> None:
    made = chat("The sprint ends on Friday.", "The sprint ends on Friday.")
    assert ranked(made, "When does my sprint end?").channels["side"].tolist() == [0.25, 0]
    assert ranked(made, "When did the assistant say the sprint ends?").channels["side"].tolist() == [0, 0.25]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Always give dates in full when I ask about deadlines.", True),
        ("Please never use tables.", True),
        ("From now on, answer in French.", True),
        ("Whenever I mention Ghent, add the weather.", True),
        ("When I ask for recipes, leave out nuts.", True),
        ("Never mind.", False),
        ("Always a pleasure!", False),
        ("I always walk to work.", False),
        ("Always " + "explain " * 60, False),
    ],
)
def test_standing_instructions_of_a_user_gain(text: str, expected: bool) -> None:
    made = chat(text, "Sure.")
    gained = ranked(made, "When is the deadline?").channels["instruction"]
    assert gained.tolist() == ([0.125, 0] if expected else [0, 0])
    assert "instruction" not in ranked(made, "Summarize the project.").channels


def test_between_people_there_are_no_instructions() -> None:
    made = corpus(
        ({"text": "Always lock the door.", "speaker": "Ines"}, 0.5), ({"text": "Sure.", "speaker": "Ole"}, 0.5)
    )
    assert "instruction" not in ranked(made, "Who has the key?").channels


def test_an_order_of_events_prefers_the_turns_that_open_a_session() -> None:
    at = datetime(2026, 1, 1, tzinfo=UTC)
    turns = [
        ("late", "user", 3, "b"),
        ("first", "user", 0, "a"),
        ("reply", "assistant", 1, "a"),
        ("next", "user", 2, "a"),
    ]
    made = corpus(
        *(
            ({"text": text, "role": role, "session_id": session, "occurred_at": at + timedelta(hours=hour)}, 0.5)
            for text, role, hour, session in turns
        ),
        ({"text": "a document", "occurred_at": at}, 0.5),
    )
    gained = ranked(made, "In what order did I bring up my plans?").channels["opening"]
    assert gained.tolist() == pytest.approx([0.4, 0.4, 0.2, 0, 0.1])
    assert "opening" not in ranked(made, "When did I bring up my plans?").channels
    people = corpus(*(({"text": "Hi.", "speaker": name, "session_id": "s"}, 0.5) for name in ("Ann", "Bo")))
    assert "opening" not in ranked(people, "Summarize the talk.").channels


def test_in_a_summary_a_request_and_its_reply_count_the_same() -> None:
    made = chat("I want to plan my garden.", "Roses need sun.", "And the shed?", "Paint it.")
    asked = ranked(made, "Can you summarize my garden plan?")
    assert np.allclose(asked.total[[0, 2]], asked.total[[1, 3]])
    assert asked.total[0] > asked.total[2]
    assert np.allclose(np.sum(list(asked.channels.values()), axis=0), asked.total)
    assert len(set(ranked(made, "What about my garden plan?").total.round(6))) > 2


def test_a_reply_that_is_not_ranked_takes_nothing_from_its_request() -> None:
    made = chat("I want to plan my garden.", "Roses need sun.", "And the shed?", "Paint it.")
    tokens = TokenVectors((), np.empty((0, 2), np.float32), np.empty((0, 2), np.int64), QUESTION)
    asked = parse_question("Can you summarize my garden plan?", made.speakers, made.names)
    options, users = SearchOptions(expansion=ExpansionConfig()), np.array([0, 2])
    total = rank(made, asked, tokens, options, LIMITS, among=users).total
    assert total[0] > total[2]
    assert total[0] == rank(made, replace(asked, form="order"), tokens, options, LIMITS, among=users).total[0]


def test_turns_are_spread_over_sessions_by_what_they_score() -> None:
    scores = np.array([1.0, 0.99, 0.98, 0.97, 0.5, 0.96])
    sessions = np.array([0, 0, 0, 1, 1, -1])
    assert spread([0, 1, 2, 3, 5, 4], scores, sessions, 1.0) == [0, 3, 5, 1, 2, 4]
    assert spread([5, 4], scores, np.full(6, -1), 1.0) == [5, 4]


def test_without_an_assistant_there_are_no_sides() -> None:
    made = corpus(({"text": "The sprint ends.", "role": "user"}, 0.5), ({"text": "It does.", "speaker": "Ole"}, 0.5))
    assert "side" not in ranked(made, "When does my sprint end?").channels


def test_a_request_to_an_assistant_counts_as_a_statement() -> None:
    made = chat("My budget is 300, can you plan the trip?", "Yes, here is a plan.")
    assert not ranked(made, "What is my budget?").channels["statement"].any()
    asking = chat("My budget is 300, can you plan the trip?", "How long is it?")
    assert ranked(asking, "What is my budget?").channels["statement"].tolist() == [0.125, 0]


def test_between_people_a_question_is_no_statement() -> None:
    made = corpus(
        ({"text": "Is the budget 300?", "speaker": "Ines"}, 0.5), ({"text": "Yes, it is.", "speaker": "Ole"}, 0.5)
    )
    assert ranked(made, "What is the budget?").channels["statement"].tolist() == [0, 0.125]


def test_turns_in_the_first_person_gain_where_the_question_names_a_speaker() -> None:
    turns = [
        ("You should ski.", "Ole"),
        ("Skiing is great.", "Ines"),
        ("I ski a lot.", "Ines"),
        ("I'd book it.", "Bot"),
    ]
    made = corpus(*(({"text": t, "speaker": s, "role": "assistant" if s == "Bot" else None}, 0.5) for t, s in turns))
    assert ranked(made, "What does Ines like?").channels["self"].tolist() == [0, 0.0625, 0.125, 0.0625]
    assert "self" not in ranked(made, "Who likes skiing?").channels


def test_of_two_speakers_the_one_who_acts_gains() -> None:
    made = corpus(({"text": "Try this book.", "speaker": "Ines"}, 0.5), ({"text": "Thanks.", "speaker": "Ole"}, 0.5))
    assert ranked(made, "What did Ines recommend to Ole?").channels["speaker"].tolist() == [0.125, 0]
    assert "speaker" not in ranked(made, "What do Ines and Ole like?").channels


def test_turns_of_the_month_gain_where_the_question_names_one() -> None:
    made = corpus(({"text": "We sailed."}, 0.5), ({"text": "We sailed."}, 0.5), dates=["5 March 2026", "5 April 2026"])
    assert ranked(made, "Who sailed in April?").channels["month"].tolist() == [0, 0.25]
    assert "month" not in ranked(made, "Who sailed?").channels
    assert not ranked(made, "Who sailed in June?").channels["month"].any()
    for month in ("mid April", "mid-April"):  # of any year
        assert "date" not in ranked(made, f"Who sailed in {month}?", datetime(2026, 6, 12, tzinfo=UTC)).channels


@pytest.mark.parametrize(
    ("question", "days_ago"),
    [
        ("What did we discuss yesterday?", {1: 1, 0: 0.5}),
        ("What did we discuss today?", {0: 1}),
        ("What did I cook last week?", {0: 0.5, 1: 0.5, 3: 0.5, 6: 1, 8: 1}),
        ("What did I cook in the past two weeks?", {0: 1, 1: 1, 3: 1, 6: 1, 8: 1}),
        ("What did I cook on 28 April 2026?", {45: 1, 44: 0.5}),
        ("What have I cooked since May?", {0: 1, 1: 1, 3: 1, 6: 1, 8: 1}),
        ("What did I cook before May 2026?", {45: 1, 44: 1}),
    ],
)
def test_turns_of_the_time_that_a_question_names_gain(question: str, days_ago: dict[int, float]) -> None:
    now = datetime(2026, 6, 12, 18, tzinfo=UTC)  # a Friday
    days = (45, 44, 8, 6, 3, 1, 0)
    made = corpus(*(({"text": "I made soup.", "occurred_at": now - timedelta(days=day, hours=2)}, 0.5) for day in days))
    gained = ranked(made, question, now).channels["date"]
    assert {day: score for day, score in zip(days, (gained / 0.25).tolist(), strict=True) if score} == days_ago


@pytest.mark.parametrize("question", ["What did I cook?", "What did I cook in June?", "What do I cook tomorrow?"])
def test_no_turn_gains_from_a_question_without_a_time_of_the_memory(question: str) -> None:
    now = datetime(2026, 6, 12, 18, tzinfo=UTC)
    made = corpus(*(({"text": "I made soup.", "occurred_at": now - timedelta(days=day)}, 0.5) for day in (2, 1)))
    assert not ranked(made, question, now).channels.get("date", np.zeros(1)).any()


def test_the_score_of_long_turns_loses_what_length_explains() -> None:
    lengths, cosines = (10, 10, 2 * LONG_TURN, 4 * LONG_TURN, 8 * LONG_TURN), (0.3, 0.5, 0.45, 0.55, 0.65)
    fields = [{"text": "word " * n, "role": "assistant", "session_id": "s"} for n in lengths]
    assert ranked(corpus(*zip(fields, cosines, strict=True)), "Why?").channels["sentence"].argmax() == 1
    alone = [{**each, "session_id": None} for each in fields]  # a document is as long as it is
    assert ranked(corpus(*zip(alone, cosines, strict=True)), "Why?").channels["sentence"].argmax() == 4


def test_neighbors_of_a_session_share_their_words() -> None:
    lexicon = Lexicon(sessions := Sessions())
    sessions.extend([("1", "s"), ("2", "s"), ("3", "s"), ("4", "s"), ("5", "other"), ("6", None)])
    lexicon.extend([([word], [], False) for word in ("bowl", "chess", "cup", "cup", "cup", "cup")])
    own, before, after, second, *others = lexicon.scores(["chess"])[[1, 2, 0, 3, 4, 5]].tolist()
    assert own > before > after > second > 0
    assert others == [0, 0]


def test_a_long_neighbor_lends_no_more_words_than_a_short_one() -> None:
    def score(length: int) -> float:
        lexicon = Lexicon(sessions := Sessions())
        sessions.extend([("1", "s"), ("2", "s"), ("3", None)])
        lexicon.extend([(["chess"] * length, [], False), (["bowl"] * LENT, [], False), (["cup"] * length, [], False)])
        counts = lexicon._windowed("chess", 3)  # pyright: ignore[reportPrivateUsage]
        assert counts is not None
        return float(counts[1])

    assert score(LENT) == score(10 * LENT) > 0
    assert score(LENT // 2) == score(LENT) / 2


def test_a_name_of_one_session_opens_the_graph_less_than_one_across_documents() -> None:
    def graph(session: str | None) -> float:
        fields = [{"text": f"We like Porto {i}.", "session_id": session} for i in range(3)]
        made = corpus(*((f, 0.1 * i) for i, f in enumerate(fields)), names=[["porto"]] * 3)
        channels = ranked(made, "Who went to Porto?").channels
        return float(channels["graph"].max()) if "graph" in channels else 0.0

    assert graph(None) > 0
    assert graph("s") == 0


@pytest.mark.parametrize("named", [False, True])
def test_each_of_few_texts_that_share_words_with_a_question_matches(named: bool) -> None:
    """The one that matches least isn't scored like one that shares no word."""
    told = ["The harbour crane of Ghent is red.", "A long list of ships, cranes, quays and the harbour of Ghent."]
    names = [("Ghent",), ("Ghent",)] if named else ()
    made = corpus(*(({"text": text, "session_id": f"s{i}"}, 0.5) for i, text in enumerate(told)), names=names)
    found = ranked(made, "Which colour has the crane in the harbour of Ghent?")
    best, other = found.channels["lexical"].tolist()
    assert best > other > 0
    assert found.total[0] > found.total[1] > 0
