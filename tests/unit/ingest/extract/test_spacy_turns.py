"""What the history of a fact is after several turns, read without a language model."""

from __future__ import annotations

from datetime import UTC, datetime
from uuid import uuid4

import pytest

from graphmem import GraphMemory, Turn
from graphmem.ingest.extract.spacy import spacy_available

pytestmark = pytest.mark.skipif(not spacy_available(), reason="spaCy and an English model are not installed")

Spans = dict[str, tuple[str, str | None]]


def told(*turns: tuple[str, str] | tuple[str, str, str], session: str | None = None) -> Spans:
    """Return "source relation target" → (begin, end) after turns of (day, text) by Sam or (day, text, speaker)."""
    memory = GraphMemory.open(f"memory://{uuid4()}", embeddings="none", background=False)
    with memory:
        items = [
            Turn(
                text=t[1],
                speaker=t[2] if len(t) == 3 else "Sam",
                occurred_at=datetime.fromisoformat(t[0] + "T12:00Z"),
                session_id=session,
            )
            for t in turns
        ]
        memory.ingest(items)
        found = [f for e in memory.entities(limit=100) for f in memory.history(e.name)]
    return {f"{f.source} {f.relation} {f.target}": (_day(f.valid_from), f.valid_to and _day(f.valid_to)) for f in found}


def _day(moment: datetime) -> str:
    return moment.astimezone(UTC).date().isoformat()


def test_a_company_without_a_name_ends_no_job() -> None:
    facts = told(("2026-03-01", "I work at Globex."), ("2026-03-20", "I've been working at my company for years."))
    assert facts == {"Sam works_at Globex": ("2026-03-01", None)}


# Hearsay ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "report",
    [
        "People think I live in Tokyo.",
        "My mum thinks I live in Tokyo. She is wrong.",
        "The letter says that I live in Tokyo, which is wrong.",
        "My neighbor Tom believes that I moved to Tokyo.",
        "I heard that I live in Tokyo.",
    ],
)
def test_what_others_say_of_the_speaker_ends_nothing_that_the_speaker_said(report: str) -> None:
    facts = told(("2026-03-01", "I live in Berlin."), ("2026-03-20", report))
    assert facts["Sam lives_in Berlin"] == ("2026-03-01", None)


@pytest.mark.parametrize(
    "report",
    [
        "Somebody told me that Peter lives in Tokyo.",
        "I think Peter lives in Tokyo.",
        "Tom says that Peter moved to Tokyo.",
        "I heard that Peter doesn't live in Berlin anymore.",
        "According to Tom, Peter lives in Tokyo.",
        "Peter lives in Tokyo.",
        "I know that Peter lives in Tokyo.",
    ],
)
def test_what_others_say_of_somebody_ends_nothing_that_he_said(report: str) -> None:
    facts = told(("2026-03-01", "I live in Berlin.", "Peter"), ("2026-03-20", report))
    assert facts["Peter lives_in Berlin"] == ("2026-03-01", None)


@pytest.mark.parametrize(
    ("report", "held"),
    [
        ("I think Peter lives in Tokyo.", True),
        ("According to Anna, Peter lives in Tokyo.", True),
        ("Peter lives in Tokyo.", False),
        ("I know that Peter lives in Tokyo.", False),
    ],
)
def test_hearsay_ends_nothing_that_another_said(report: str, held: bool) -> None:
    facts = told(("2026-03-01", "Peter lives in Berlin.", "Tom"), ("2026-03-20", report))
    assert facts["Peter lives_in Berlin"] == ("2026-03-01", None if held else "2026-03-20")


def test_hearsay_counts_where_nothing_is_known() -> None:
    facts = told(
        ("2026-03-01", "Somebody told me that Peter lives in Tokyo."), ("2026-03-20", "Peter lives in Berlin.")
    )
    assert facts == {
        "Peter lives_in Tokyo": ("2026-03-01", "2026-03-20"),
        "Peter lives_in Berlin": ("2026-03-20", None),
    }


# Tense --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("end", "when"),
    [
        ("I quit Siemens in August.", "2025-09-01"),
        ("I quit Siemens last month.", "2025-09-01"),
        ("I quit Siemens.", "2025-09-15"),
        ("I quit Siemens this month.", "2025-09-15"),
        ("I quit Siemens last Friday.", "2025-09-13"),
        ("My last day at Siemens is tomorrow.", "2025-09-17"),
        ("My last day is tomorrow.", "2025-09-17"),
        ("My last day at Siemens is on Friday.", "2025-09-20"),
        ("My last day at Siemens was in August.", "2025-09-01"),
        ("I'm quitting Siemens in December.", "2026-01-01"),
    ],
)
def test_an_end_includes_its_day_or_month_and_is_not_after_the_telling_of_a_past(end: str, when: str) -> None:
    facts = told(("2025-01-10", "I work at Siemens."), ("2025-09-15", end))
    assert facts["Sam works_at Siemens"] == ("2025-01-10", when)


@pytest.mark.parametrize(
    ("text", "fact"),
    [
        ("We put up a shed last week.", "Sam put_up shed"),
        ("I cut my hair yesterday.", "Sam cut hair"),
        ("I put money aside every month.", "Sam puts money"),
    ],
)
def test_what_was_done_is_no_habit(text: str, fact: str) -> None:
    facts = told(("2025-09-15", text))
    assert [f for f in facts if f.split()[1] == fact.split()[1]] == list(facts)


@pytest.mark.parametrize(
    "text", ["I play tennis with Maria every Sunday.", "I play tennis with Maria every other Friday in the park."]
)
def test_what_is_done_every_sunday_is_no_plan(text: str) -> None:
    facts = told(("2026-05-11", text))
    assert not [fact for fact in facts if "plans" in fact]
    assert {begin for begin, _ in facts.values()} == {"2026-05-11"}


@pytest.mark.parametrize(
    ("text", "fact", "begin"),
    [
        ("Peter said he is starting at Siemens in June.", "Peter works_at Siemens", "2025-06-01"),
        ("Mia told me she's moving to Paris in June.", "Mia lives_in Paris", "2025-06-01"),
        ("Peter said that he moved to Oslo in June.", "Peter lives_in Oslo", "2024-06-01"),
        ("Anna mentioned that she has worked at Siemens since May.", "Anna works_at Siemens", "2024-05-01"),
    ],
)
def test_when_it_was_said_is_not_when_it_happens(text: str, fact: str, begin: str) -> None:
    assert told(("2025-03-10", text))[fact] == (begin, None)


def test_what_ended_before_it_was_told_was_true_for_a_time() -> None:
    facts = told(("2026-05-11", "I work at Siemens."), ("2026-05-12", "I got fired from Siemens yesterday."))
    assert facts["Sam works_at Siemens"] == ("2026-05-11", "2026-05-12")


# Endings ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("begin", "end", "fact"),
    [
        ("I use Emacs.", "I no longer use Emacs.", "Sam uses Emacs"),
        ("I like jazz.", "I no longer like jazz.", "Sam likes jazz"),
        ("I'm vegetarian.", "I'm no longer vegetarian.", "Sam is vegetarian"),
        ("I'm a student.", "I'm not a student anymore.", "Sam is_a student"),
        ("I'm a teacher.", "I used to be a teacher.", "Sam is_a teacher"),
        ("Peter Falk is the CEO of Acme.", "Peter Falk is no longer the CEO of Acme.", "Peter Falk is_ceo_of Acme"),
        ("Anna is my boss.", "Anna is no longer my boss.", "Sam has_boss Anna"),
        ("I'm married to Anna.", "Anna and I got divorced.", "Sam married_to Anna"),
        ("I'm a member of the chess club.", "I left the chess club.", "Sam is_member_of chess club"),
        ("I play tennis.", "I gave up tennis.", "Sam plays tennis"),
        ("I own a Tesla.", "I sold the Tesla.", "Sam owns Tesla"),
        ("I drive a Tesla.", "I sold my Tesla.", "Sam drives Tesla"),
        ("I use Notion.", "I now use Obsidian instead of Notion.", "Sam uses Notion"),
        ("I'm dating Julia.", "I broke up with Julia.", "Sam has_partner Julia"),
        ("I'm married to Anna.", "We divorced.", "Sam married_to Anna"),
        ("I love coffee.", "I don't like coffee anymore.", "Sam loves coffee"),
        ("I live in Berlin.", "I moved out of Berlin.", "Sam lives_in Berlin"),
        ("I work at Siemens.", "I left Siemens.", "Sam works_at Siemens"),
        ("I work at Siemens.", "I left Siemens for Google.", "Sam works_at Siemens"),
        ("I work at Siemens.", "I left Siemens for good.", "Sam works_at Siemens"),
        ("I work at Acme.", "I left Acme.", "Sam works_at Acme"),
        ("I work at Siemens.", "I resigned.", "Sam works_at Siemens"),
        ("I work at Siemens.", "I'm unemployed now.", "Sam works_at Siemens"),
        ("I work at Siemens.", "I changed jobs.", "Sam works_at Siemens"),
        ("Anna and I are married.", "Anna and I got divorced.", "Anna married_to Sam"),
        ("My girlfriend is Anna.", "My girlfriend and I split up.", "Sam has_partner Anna"),
        ("My girlfriend is Anna.", "We broke up.", "Sam has_partner Anna"),
        ("My husband is Peter.", "My husband and I are divorced now.", "Sam married_to Peter"),
        ("My husband is Peter.", "I divorced my husband.", "Sam married_to Peter"),
        ("My manager is Sandra.", "My manager left the company.", "Sam has_manager Sandra"),
        ("My manager is Sandra.", "My manager Sandra left.", "Sam has_manager Sandra"),
        ("My manager is Sandra.", "My manager Sandra left and now I report to Peter.", "Sam has_manager Sandra"),
        ("My roommate is Peter.", "My roommate moved out.", "Sam has_roommate Peter"),
    ],
)
def test_a_fact_ends_by_what_people_say_of_its_end(begin: str, end: str, fact: str) -> None:
    assert told(("2026-03-01", begin), ("2026-03-20", end))[fact] == ("2026-03-01", "2026-03-20")


@pytest.mark.parametrize(
    ("begin", "end", "fact"),
    [
        ("I work at Acme.", "I was laid off last week.", "Sam works_at Acme"),
        ("I work at Acme.", "I was let go last week.", "Sam works_at Acme"),
        ("I work at Acme.", "I got fired last week.", "Sam works_at Acme"),
        ("I work at Acme.", "I lost my job last week.", "Sam works_at Acme"),
        ("I work at Acme.", "I quit my job last week and joined Vellum Robotics.", "Sam works_at Acme"),
        ("I work at Acme.", "I retired last week.", "Sam works_at Acme"),
        ("I'm married to Marco.", "Marco and I got divorced last week.", "Sam married_to Marco"),
        ("I'm married to Marco.", "We got divorced last week.", "Sam married_to Marco"),
    ],
)
def test_what_ends_need_not_be_named(begin: str, end: str, fact: str) -> None:
    facts = told(("2026-03-01", begin), ("2026-03-20", end))
    assert facts[fact] == ("2026-03-01", "2026-03-16")
    assert facts.get("Sam works_at Vellum Robotics", ("", None))[1] is None


@pytest.mark.parametrize(
    "other",
    [
        "I quit my second job.",
        "I quit my job as a tutor.",
        "I lost my old job in 2019.",
        "I was laid off from Siemens.",
        "I think I lost my job.",
        "If I lost my job, I would travel.",
        "I didn't lose my job.",
        "I might quit my job.",
        "Peter lost his job.",
        "I was fired up.",
    ],
)
def test_a_job_ends_only_when_it_is_meant(other: str) -> None:
    facts = told(("2026-03-01", "I work at Acme."), ("2026-03-20", other))
    assert facts["Sam works_at Acme"] == ("2026-03-01", None)


@pytest.mark.parametrize(
    ("begin", "other", "fact"),
    [
        ("I own a boat.", "I sold a boat to Peter.", "Sam owns boat"),
        ("I play tennis.", "I gave up on Monday.", "Sam plays tennis"),
        ("I'm a member of the chess club.", "I left the house.", "Sam is_member_of chess club"),
        ("I live in Berlin.", "I live in Berlin, not in Bern.", "Sam lives_in Berlin"),
        ("I work at Siemens.", "I left Siemens at noon for lunch.", "Sam works_at Siemens"),
        ("I work at Acme.", "I left Acme at noon.", "Sam works_at Acme"),
        ("I work at Siemens.", "I just left Siemens, on the bus now.", "Sam works_at Siemens"),
        ("I work at Siemens.", "I left Siemens at five today and went home.", "Sam works_at Siemens"),
        ("I work at Siemens.", "I left Siemens this morning.", "Sam works_at Siemens"),
        ("I prefer tea.", "I prefer tea, not coffee.", "Sam prefers tea"),
        ("I'm a student.", "I'm no longer than two metres.", "Sam is_a student"),
        ("My girlfriend is Anna.", "We split up into two teams.", "Sam has_partner Anna"),
        ("My wife is Anna.", "My wife and I split up the chores.", "Sam married_to Anna"),
        ("My wife is Anna.", "My parents are divorced.", "Sam married_to Anna"),
        ("My manager is Sandra.", "My manager left early today.", "Sam has_manager Sandra"),
        ("My manager is Sandra.", "My manager left and I locked up.", "Sam has_manager Sandra"),
        ("My roommate is Peter.", "My roommate hasn't moved out.", "Sam has_roommate Peter"),
    ],
)
def test_what_only_resembles_an_end_ends_nothing(begin: str, other: str, fact: str) -> None:
    assert told(("2026-03-01", begin), ("2026-03-20", other))[fact] == ("2026-03-01", None)


def test_leaving_a_place_gives_no_job() -> None:
    assert not [f for f in told(("2026-03-01", "I left Ghent this morning for a trip.")) if "works_at" in f]


# Make-believe -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        "Imagine I lived in Tokyo.",
        "Imagine I live in Tokyo and work at Sony.",
        "Say I worked at Sony.",
        "Let's say I live in Tokyo.",
        "Assume that Anna works at Sony.",
        "In my dream I lived in Tokyo and worked at Sony.",
        "Last night I dreamed that I lived in Tokyo.",
        "In my novel, Peter lives in Tokyo.",
        "In the novel that I'm writing, Anna lives in Rome.",
    ],
)
def test_make_believe_is_no_fact(text: str) -> None:
    assert [f for f in told(("2026-03-01", text)) if " co_occurs_with " not in f] == []


@pytest.mark.parametrize(
    "text",
    [
        "As soon as I work at Sony, I'll celebrate.",
        "Once I work at Sony, I'll be rich.",
        "Until I live in Tokyo, I'll rent.",
        "Had I moved to Tokyo, I'd be happy.",
        "Either I move to Tokyo or I stay.",
        "I don't have a dog.",
        "In case I move to Tokyo, call me.",
        "After I move to Tokyo, call me.",
        "I live in Tokyo (just kidding).",
        "I told Anna I live in Tokyo, but that was a lie.",
        "Yeah right, and I live in Buckingham Palace.",
    ],
)
def test_what_is_not_meant_or_may_come_later_is_no_fact(text: str) -> None:
    assert told(("2026-03-01", text)) == {}


def test_a_spoken_correction_leaves_what_is_right() -> None:
    correction = ("2026-03-20", "I said I live in Rome. I actually live in Milan.")
    assert told(correction) == {"Sam lives_in Milan": ("2026-03-20", None)}
    assert told(("2026-03-01", "I live in Rome."), correction) == {
        "Sam lives_in Rome": ("2026-03-01", "2026-03-20"),
        "Sam lives_in Milan": ("2026-03-20", None),
    }


@pytest.mark.parametrize("text", ["When I moved to Tokyo, I joined Sony.", "Since I live in Tokyo, I like it."])
def test_a_conjunction_of_what_happened_leaves_its_fact(text: str) -> None:
    assert "Sam lives_in Tokyo" in told(("2026-03-01", text))


@pytest.mark.parametrize(
    "text",
    [
        "I've lived in Rome.",
        "I have lived in Rome and Bern.",
        "I have worked at Google before.",
        "I have worked at Google and lived in Rome.",
    ],
)
def test_what_one_has_done_once_ends_nothing(text: str) -> None:
    facts = told(("2026-03-01", "I live in Ghent and work at Acme."), ("2026-03-20", text))
    current = {f for f, (_, end) in facts.items() if end is None and f.split()[1] in ("lives_in", "works_at")}
    assert current == {"Sam lives_in Ghent", "Sam works_at Acme"}


@pytest.mark.parametrize(
    "text",
    [
        "I've lived in Rome since 2019.",
        "I've always lived in Rome.",
        "I've lived in Rome for years.",
        "I've been living in Rome.",
        "I have moved to Rome.",
    ],
)
def test_what_has_lasted_until_now_holds(text: str) -> None:
    assert told(("2026-03-01", text))["Sam lives_in Rome"][1] is None


def test_what_stands_beside_make_believe_is_a_fact() -> None:
    assert "Sam lives_in Rome" in told(("2026-03-01", "In my novel, Peter lives in Tokyo. I live in Rome."))


@pytest.mark.parametrize(
    ("text", "fact"),
    [
        ("I also live in Rome.", "Sam also_lives_in Rome"),
        ("I live in Rome too.", "Sam also_lives_in Rome"),
        ("In summer I live in Rome.", "Sam also_lives_in Rome"),
        ("Half the week I live in Rome.", "Sam also_lives_in Rome"),
        ("I live in Rome on weekends.", "Sam also_lives_in Rome"),
        ("I also work at Google.", "Sam also_works_at Google"),
        ("I work at Google as well.", "Sam also_works_at Google"),
        ("I work part-time at Google.", "Sam also_works_at Google"),
        ("I love my second job at Google.", "Sam also_works_at Google"),
    ],
)
def test_what_is_beside_a_home_or_a_job_ends_neither(text: str, fact: str) -> None:
    facts = told(("2026-03-01", "I live in Berlin and work at Siemens."), ("2026-03-20", text))
    for current in ("Sam lives_in Berlin", "Sam works_at Siemens", fact):
        assert facts[current][1] is None
    assert not {"Sam lives_in Rome", "Sam works_at Google"} & facts.keys()


def test_a_future_move_ends_no_home_before_it_happened() -> None:
    plan = [("2026-03-01", "I live in Berlin."), ("2026-03-05", "I'm moving to Oslo next month.")]
    assert told(*plan) == {"Sam lives_in Berlin": ("2026-03-01", None), "Sam lives_in Oslo": ("2026-04-01", None)}
    moved = told(*plan, ("2026-04-10", "I moved to Oslo."))
    assert moved["Sam lives_in Berlin"] == ("2026-03-01", "2026-04-01")


@pytest.mark.parametrize("text", ["We're not moving to Oslo after all.", "The move to Oslo is off."])
def test_a_canceled_move_ends_its_plan_alone(text: str) -> None:
    plan = [("2026-03-01", "I live in Berlin."), ("2026-03-05", "I'm moving to Oslo next month.")]
    facts = told(*plan, ("2026-03-09", text))
    assert facts["Sam lives_in Oslo"][1] is not None
    assert facts["Sam lives_in Berlin"] == ("2026-03-01", None)


def test_one_of_two_is_neither_of_them() -> None:
    assert not [f for f in told(("2026-03-01", "Tom or Lena lives in Rome.")) if "lives_in" in f]


# What others say ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        "Tom wrote: I live in Tokyo now",
        "Lena texted me: I'm moving to Tokyo next month.",
        "Lena: I moved to Rome\nTom: I moved to Tokyo",
        "[10:02] Lena: I moved to Tokyo\n[10:03] Tom: I work at Google",
        "10:02 Lena: I moved to Tokyo",
        "Here's the email I got:\nFrom: Lena\nHi Sam, I live in Tokyo now and work at Google.\nBye, Lena",
        'My boss told me "I moved to Tokyo".',
        'He said, "I work at Google," and left.',
        "Subject: My news\nI live in Tokyo now. My phone number is 555-1234.",
    ],
)
def test_what_others_say_of_themselves_is_no_fact_about_who_pastes_it(text: str) -> None:
    facts = told(("2026-03-01", "I live in Berlin."), ("2026-03-20", text))
    about = {fact: span for fact, span in facts.items() if fact.startswith("Sam ")}
    assert about == {"Sam lives_in Berlin": ("2026-03-01", None)}


@pytest.mark.parametrize(
    "text",
    [
        "Update: I live in Rome.",
        "Quick recap: I live in Rome.",
        "Sam: I live in Rome.",
        "Note: I live in Rome.",
        'I read "The Hobbit" yesterday. I live in Rome.',
        "Tom said: hello!\nI live in Rome.",
        'I like "Dune". I live in Rome, and I also like "Sherlock".',
    ],
)
def test_one_s_own_words_beside_them_are_read(text: str) -> None:
    assert "Sam lives_in Rome" in told(("2026-03-01", text))


# Dates --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "fact", "span"),
    [
        ("I was working at Google until 2023.", "Sam works_at Google", ("2023-12-31", "2024-01-01")),
        ("I lived in Rome until 2020.", "Sam lives_in Rome", ("2020-12-31", "2021-01-01")),
        ("I used to live in Rome.", "Sam lives_in Rome", ("2025-03-09", "2025-03-10")),
        ("I adopted a cat called Vespa on 3 January.", "Sam adopted cat", ("2025-01-03", "2025-01-04")),
        ("I visited Paris yesterday.", "Sam visited Paris", ("2025-03-09", "2025-03-10")),
        ("I met Anna in 2020.", "Sam met Anna", ("2020-01-01", "2021-01-01")),
        ("I met Anna.", "Sam met Anna", ("2025-03-10", "2025-03-11")),
        ("I lived in Rome in 2020.", "Sam lives_in Rome", ("2020-01-01", "2021-01-01")),
        ("I lived in Rome from 2015 to 2018.", "Sam lives_in Rome", ("2015-01-01", "2019-01-01")),
        ("I worked at Siemens in 2019.", "Sam works_at Siemens", ("2019-01-01", "2020-01-01")),
        ("I once worked at Google.", "Sam works_at Google", ("2025-03-09", "2025-03-10")),
        ("As a student I lived in Rome.", "Sam lives_in Rome", ("2025-03-09", "2025-03-10")),
        ("I worked at Siemens for three years.", "Sam works_at Siemens", ("2025-03-09", "2025-03-10")),
        ("I owned a Tesla.", "Sam owns Tesla", ("2025-03-09", "2025-03-10")),
        ("I adopted a cat called Vespa on 3 January.", "Sam has_cat Vespa", ("2025-01-03", None)),
        ("I got married on 3 January.", "Sam has_status married", ("2025-01-03", None)),
        ("I have a cat called Vespa.", "Sam has_cat Vespa", ("2025-03-10", None)),
        ("My last day is 17 April, then I start at Initech on the 28th.", "Sam works_at Initech", ("2025-04-28", None)),
        (
            "Finn is going to Leeds for his studies in September, not to Bonn, he changed his mind on Friday.",
            "Finn plans_to_go_to Leeds",
            ("2025-09-01", None),
        ),
    ],
)
def test_a_fact_holds_when_its_sentence_says(text: str, fact: str, span: tuple[str, str | None]) -> None:
    assert told(("2025-03-10", text))[fact] == span


@pytest.mark.parametrize("past", ["I lived in Rome in 2020.", "I lived in Rome."])
def test_a_former_home_ends_no_other_one(past: str) -> None:
    facts = told(("2025-03-01", "I live in Bern."), ("2025-03-10", past))
    assert facts["Sam lives_in Bern"][1] is None


# Plain sentences ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "facts"),
    [
        ("I am married to Eva.", {"Sam married_to Eva"}),
        ("I got married to Tom last Saturday.", {"Sam married_to Tom"}),
        ("I moved to Berlin Yay!", {"Sam lives_in Berlin"}),
        ("My boss is Anna Holm.", {"Sam has_boss Anna Holm"}),
        ("My wife is Anna.", {"Sam married_to Anna"}),
        ("My sister is a nurse.", {"Sam has_sister Sam's sister", "Sam's sister is_a nurse"}),
        ("Maya manages Project Heron.", {"Maya manages Project Heron"}),
        ("Peter Falk manages Acme.", {"Peter Falk manages Acme"}),
        ("My boss is Anna's brother.", set[str]()),
        ("Anna manages Peter.", set[str]()),
        ("Sony manages Acme.", set[str]()),
        ("> I live in Rome.\n> Do you?\n\nI live in Odense.", {"Sam lives_in Odense"}),
        ("> I live in Rome.\nI live in Odense.", {"Sam lives_in Odense"}),
        ("I live in Odense.\n> I live in Rome.", {"Sam lives_in Odense"}),
        (
            "I am leading Project Osprey. The budget is 40,000 euros.",
            {"Sam leads Project Osprey", "Project Osprey has_budget 40,000 euros"},
        ),
        ("I work at Marks & Spencer.", {"Sam works_at Marks & Spencer"}),
        ("I work for Brown & Partners.", {"Sam works_at Brown & Partners"}),
        ("I met Ana & Tom.", {"Sam met Ana", "Sam met Tom"}),
        ("Mum sold the Swansea house and she moves in with us.", set[str]()),
        ("It was my grandmother's, a Blüthner.", set[str]()),
        ("I've got the letter here.", set[str]()),
        ("The landlady is called Dona Alva.", set[str]()),
        ("Tom reckons Cardiff in October instead.", set[str]()),
        ("I met Jane, an accountant.", {"Sam met Jane", "Jane is_a accountant"}),
    ],
)
def test_a_plain_sentence_gives_just_what_it_says(text: str, facts: set[str]) -> None:
    assert set(told(("2025-03-10", text))) == facts


@pytest.mark.parametrize("text", ["Call me AC.", "I'm Samuel but call me AC.", "My full name is Samuel Hart."])
def test_a_name_by_which_somebody_wants_to_be_called_is_theirs(text: str) -> None:
    with GraphMemory.open(f"memory://{uuid4()}", embeddings="none", background=False) as memory:
        memory.ingest([Turn(text=said, speaker="Sam") for said in (text, "I live in Rome.")])
        [fact] = memory.facts("Samuel Hart" if "Hart" in text else "AC")
        assert (fact.source, fact.target) == ("Sam", "Rome")


@pytest.mark.parametrize(
    "text", ["Hello! I am doing great, thanks for asking.", "The link between law and music fascinates me."]
)
def test_a_greeting_or_an_article_is_no_name(text: str) -> None:
    with GraphMemory.open(f"memory://{uuid4()}", embeddings="none", background=False) as memory:
        asked = Turn(text="I'm Kate. What's your name?", speaker="Zoe", session_id="s")
        told = [Turn(text=said, speaker="Sam", session_id="s") for said in (text, "I live in Rome.")]
        memory.ingest([asked, *told])
        assert not memory.facts(text.split()[0].strip("!"))
        assert memory.facts("Sam")


# People with the same first name ------------------------------------------------------------------

BROTHER = ("2026-03-01", "My brother Alex lives in Ghent.")
COLLEAGUE = ("2026-03-02", "My colleague Alex lives in Oslo.")


def test_two_people_with_the_same_first_name_stay_two() -> None:
    facts = told(BROTHER, COLLEAGUE)
    assert facts["Alex lives_in Ghent"] == ("2026-03-01", None)
    assert facts["Alex (Sam's colleague) lives_in Oslo"] == ("2026-03-02", None)
    assert "Alex lives_in Oslo" not in facts
    assert "Sam has_brother Alex" in facts
    assert "Sam has_colleague Alex (Sam's colleague)" in facts


@pytest.mark.parametrize(
    ("turn", "who"),
    [
        ("My brother Alex moved to Bruges.", "Alex"),
        ("My colleague Alex moved to Bruges.", "Alex (Sam's colleague)"),
    ],
)
def test_a_known_relation_tells_which_of_two_people_is_meant(turn: str, who: str) -> None:
    facts = told(BROTHER, COLLEAGUE, ("2026-03-20", turn))
    assert {name: span for name, span in facts.items() if "Bruges" in name} == {
        f"{who} lives_in Bruges": ("2026-03-20", None)
    }


def test_a_first_name_alone_is_nobody_if_two_people_have_it_and_the_session_names_neither() -> None:
    facts = told(BROTHER, COLLEAGUE, ("2026-03-20", "Alex moved to Bruges."))
    assert not [name for name in facts if "Bruges" in name]
    assert facts["Alex lives_in Ghent"] == ("2026-03-01", None)


def test_a_first_name_alone_is_who_was_named_last_in_the_session() -> None:
    facts = told(BROTHER, COLLEAGUE, ("2026-03-20", "Alex moved to Bruges."), session="s")
    assert facts["Alex (Sam's colleague) lives_in Bruges"] == ("2026-03-20", None)
    assert facts["Alex lives_in Ghent"] == ("2026-03-01", None)


@pytest.mark.parametrize(
    ("others", "who"), [(("Grace Mbeki",), "Grace Mbeki"), (("Grace Mbeki", "Grace Lund"), "Grace")]
)
def test_a_first_name_is_the_one_speaker_of_the_session_who_has_it(others: tuple[str, ...], who: str) -> None:
    hello = [("2026-03-02", "Good morning to all of you.", name) for name in (*others, "Dmitri Volkov")]
    said = ("2026-03-02", "Luckily Grace works at Siemens now.", "Lena Kowalski")
    assert f"{who} works_at Siemens" in told(*hello, said, session="s")


BOSS = ("2026-03-01", "My boss is Anna Holm.")
TO_OSLO = ("2026-03-09", "Anna moved to Oslo.")


@pytest.mark.parametrize(
    ("turns", "session", "who"),
    [
        ((BOSS, TO_OSLO), "s", "Anna Holm"),
        ((BOSS, TO_OSLO), None, "Anna"),
        ((BOSS, ("2026-03-02", "My landlady is Anna Lee."), TO_OSLO), "s", "Anna"),
        ((("2026-02-01", "My sister Anna lives in Rome."), BOSS, TO_OSLO), "s", "Anna"),
    ],
)
def test_a_first_name_is_the_only_person_whom_the_session_named_in_full(
    turns: tuple[tuple[str, str], ...], session: str | None, who: str
) -> None:
    facts = told(*turns, session=session)
    assert [name for name in facts if "Oslo" in name] == [f"{who} lives_in Oslo"]


@pytest.mark.parametrize(
    "turns",
    [
        (BROTHER, ("2026-03-20", "Alex is my colleague now, he works at Initech.")),
        (("2026-03-01", "My friend Alex lives in Ghent."), ("2026-03-20", "My colleague Alex moved to Oslo.")),
        (("2026-03-01", "My sibling Alex lives in Ghent."), ("2026-03-20", "My brother Alex moved to Oslo.")),
        (("2026-03-01", "Alex lives in Ghent."), ("2026-03-20", "My colleague Alex moved to Oslo.")),
    ],
)
def test_one_person_stays_one(turns: tuple[tuple[str, str], ...]) -> None:
    assert {name for name in told(*turns) if "(" in name} == set()


@pytest.mark.parametrize("relative", ["sister", "brother", "friend", "boss"])
@pytest.mark.parametrize(
    ("verb", "relation", "target"),
    [("lives in", "lives_in", "Rome"), ("moved to", "lives_in", "Rome"), ("works at", "works_at", "Globex")],
)
def test_a_name_after_a_kinship_word_is_that_of_the_relative(
    relative: str, verb: str, relation: str, target: str
) -> None:
    facts = told(("2026-03-01", f"My {relative} Ana {verb} {target}."))
    assert set(facts) == {f"Sam has_{relative} Ana", f"Ana {relation} {target}"}


def test_a_move_of_a_relative_ends_the_home_before() -> None:
    facts = told(("2026-03-01", "My sister Ana lives in Rome."), ("2026-03-20", "Ana moved to Oslo."))
    assert facts["Ana lives_in Rome"] == ("2026-03-01", "2026-03-20")
    assert facts["Ana lives_in Oslo"] == ("2026-03-20", None)


@pytest.mark.parametrize(
    ("text", "facts"),
    [
        ("My sister, Ana, lives in Rome.", {"Sam has_sister Ana", "Ana lives_in Rome"}),
        ("Tom's sister Ana lives in Rome.", {"Tom has_sister Ana", "Ana lives_in Rome"}),
        ("My boss Ana Costa lives in Rome.", {"Sam has_boss Ana Costa", "Ana Costa lives_in Rome"}),
        ("I live with my sister Ana.", {"Sam has_sister Ana", "Sam lives_with Ana"}),
        ("My sister Ana is a nurse. Ana lives in Rome.", {"Sam has_sister Ana", "Ana is_a nurse", "Ana lives_in Rome"}),
        ("My teacher Mrs. Smith lives in Rome.", {"Sam has_teacher Smith", "Smith lives_in Rome"}),
        ("I walk with my dog Milo.", {"Sam has_dog Milo", "Sam walks_with Milo"}),
    ],
)
def test_a_relative_with_a_name_is_one_entity(text: str, facts: set[str]) -> None:
    assert set(told(("2026-03-01", text))) == facts


@pytest.mark.parametrize("text", ["My family Christmas party was in Rome.", "My friend and Ana live in Rome."])
def test_a_capital_after_a_kinship_word_may_begin_something_else(text: str) -> None:
    assert not [fact for fact in told(("2026-03-01", text)) if "has_" in fact]


@pytest.mark.parametrize(
    "correction",
    [
        "Actually I work at Netflix, not Siemens.",
        "I work at Netflix, not at Siemens.",
        "Sorry, I meant I work at Netflix, not Siemens.",
        "sorry, I meant Netflix, not Siemens",
    ],
)
def test_a_name_that_is_denied_days_later_never_held(correction: str) -> None:
    facts = told(("2026-03-01", "I work at Siemens."), ("2026-03-09", correction), session="chat")
    assert facts["Sam works_at Siemens"] == ("2026-03-01", "2026-03-01")
    assert facts["Sam works_at Netflix"][1] is None


def test_what_is_denied_only_now_held_before() -> None:
    facts = told(("2026-03-01", "My brother lives in Rome."), ("2026-03-09", "My brother lives in Bern now, not Rome."))
    assert facts["Sam's brother lives_in Rome"] == ("2026-03-01", "2026-03-09")


@pytest.mark.parametrize("ending", ["Anna Holm left the company.", "Anna Holm was fired.", "Anna Holm retired."])
def test_who_leaves_the_company_is_no_longer_a_boss(ending: str) -> None:
    facts = told(("2026-03-01", "My boss is Anna Holm."), ("2026-03-09", ending))
    assert facts["Sam has_boss Anna Holm"] == ("2026-03-01", "2026-03-09")


@pytest.mark.parametrize("later", ["Anna Holm left the office at noon.", "Anna Holm quit smoking."])
def test_who_goes_home_is_still_a_boss(later: str) -> None:
    facts = told(("2026-03-01", "My boss is Anna Holm."), ("2026-03-09", later))
    assert facts["Sam has_boss Anna Holm"] == ("2026-03-01", None)


@pytest.mark.parametrize("text", ["I was going to move to Rome.", "If they hire me, I'll move to Rome."])
def test_a_plan_that_was_dropped_or_has_a_condition_is_none(text: str) -> None:
    assert told(("2026-03-01", text)) == {}


@pytest.mark.parametrize(
    ("text", "fact"),
    [
        ("I can't stand jazz.", "Sam does_not_like jazz"),
        ("I started eating fish again.", "Sam eats fish"),
        ("Flying to Rome next Friday.", "Sam plans_to_fly_to Rome"),
        ("We had to cancel our trip to Rome.", "Sam canceled_trip_to Rome"),
    ],
)
def test_what_somebody_says_of_himself(text: str, fact: str) -> None:
    assert fact in told(("2026-03-01", text))


@pytest.mark.parametrize("text", ["Visiting Rome must have been fun!", "Walking in Rome.", "I can't stand by."])
def test_what_has_no_subject_and_no_day_is_said_of_nobody(text: str) -> None:
    assert told(("2026-03-01", text)) == {}


# Projects -----------------------------------------------------------------------------------------


def test_a_budget_alone_isn_t_that_of_who_tells_it() -> None:
    facts = told(("2026-03-10", "I am leading Project Osprey."), ("2026-03-10", "The budget is 40,000 euros."))
    assert not [fact for fact in facts if "has_budget" in fact]


@pytest.mark.parametrize("text", ["Apollo's deadline is 30 April.", "The deadline of Apollo is 30 April."])
def test_a_deadline_holds_until_the_end_of_its_day(text: str) -> None:
    assert told(("2026-03-10", text)) == {"Apollo has_deadline 30 April 2026": ("2026-03-10", "2026-05-01")}


def test_a_new_deadline_replaces_the_old_one() -> None:
    facts = told(("2026-03-10", "Apollo's deadline is 30 April."), ("2026-03-20", "Apollo's deadline is now 15 May."))
    assert facts["Apollo has_deadline 30 April 2026"] == ("2026-03-10", "2026-03-20")
    assert facts["Apollo has_deadline 15 May 2026"] == ("2026-03-20", "2026-05-16")


@pytest.mark.parametrize(
    "text",
    [
        "Apollo's deadline was 3 May.",
        "Apollo's first deadline is 3 May.",
        "Apollo's deadline is probably 3 May.",
        "Apollo's deadline is not 3 May.",
        "Apollo's deadline is 3 May or 4 May.",
        "Is Apollo's deadline 3 May?",
        "The deadline is 3 May.",
    ],
)
def test_a_deadline_that_isn_t_sure_is_no_fact(text: str) -> None:
    assert not [fact for fact in told(("2026-03-10", text)) if "deadline" in fact]


# Quoted lines -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        "> I live in Bonn\n\nI live in Odense.",
        "I live in Odense.\n\n> I live in Bonn",
        "On Monday, Tom wrote:\n> I live in Bonn\n> and work at Acme\n\nI live in Odense.",
        "> Where do you live?\nI live in Odense.\n\n> Where do you work?\nThat's private.",
    ],
)
def test_the_words_beside_quoted_lines_are_one_s_own(text: str) -> None:
    assert told(("2026-03-10", text)) == {"Sam lives_in Odense": ("2026-03-10", None)}


# Jobs after a comma -------------------------------------------------------------------------------


@pytest.mark.parametrize("text", ["I quit Initech, I'm at Globex now.", "I left Initech, I'm at Globex now."])
def test_where_one_is_after_leaving_a_firm_is_the_new_job(text: str) -> None:
    facts = told(("2026-03-01", "I work at Initech."), ("2026-03-10", text))
    assert facts["Sam works_at Globex"][1] is None
    assert facts["Sam works_at Initech"][1] == "2026-03-10"


@pytest.mark.parametrize("text", ["I quit Initech, I'm at Gatwick.", "I quit smoking, I'm at Globex now."])
def test_where_one_is_otherwise_is_no_job(text: str) -> None:
    assert not [fact for fact in told(("2026-03-10", text)) if "works_at" in fact and "Initech" not in fact]


# Canceled plans -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        "I canceled my dentist appointment.",
        "The dentist appointment got cancelled.",
        "My dentist appointment is cancelled.",
    ],
)
def test_a_canceled_appointment_is_no_plan(text: str) -> None:
    facts = told(("2026-03-02", "I have a dentist appointment on Friday."), ("2026-03-03", text))
    assert facts["Sam plans_to_have dentist appointment"] == ("2026-03-06", "2026-03-06")


@pytest.mark.parametrize("text", ["We're not going to Rome after all.", "I won't fly to Rome."])
def test_a_trip_that_is_given_up_is_no_plan(text: str) -> None:
    facts = told(("2026-03-02", "I'm flying to Rome on 4 May."), ("2026-03-03", text))
    assert facts == {"Sam plans_to_fly_to Rome": ("2026-05-04", "2026-05-04")}


# Whose words --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        "I haven't met her. Henrik says she is allergic to nuts.",
        "And Henrik: wrote to him on LinkedIn.",
        "oh yeah totally i'm moving to Monaco next week",
        "Ruairi is leaving us next week.",
    ],
)
def test_what_is_meant_of_somebody_else_or_not_at_all_is_no_fact(text: str) -> None:
    assert told(("2026-03-02", text)) == {}


# Two verbs ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        "I live in Leeds and work at Initech.",
        "I'm Sam, I live in Leeds and work at Initech.",
        "My name is Sam and I live in Leeds and work at Initech.",
    ],
)
def test_a_second_verb_has_the_subject_of_the_first(text: str) -> None:
    assert told(("2026-03-02", text)).keys() == {"Sam lives_in Leeds", "Sam works_at Initech"}


def test_a_second_verb_shares_the_present_after_a_past() -> None:
    facts = told(("2026-03-02", "I moved to Leeds and work at Initech now."))
    assert facts["Sam works_at Initech"] == ("2026-03-02", None)


@pytest.mark.parametrize("start", ["I hope to live", "I'd love to live", "I don't live", "When I live"])
def test_a_second_verb_shares_that_the_first_states_nothing(start: str) -> None:
    assert "Sam works_at Initech" not in told(("2026-03-02", f"{start} in Leeds and work at Initech."))


@pytest.mark.parametrize(
    ("text", "facts"),
    [
        ("Tom lives in Leeds and Lena lives in York.", {"Tom lives_in Leeds", "Lena lives_in York"}),
        ("Tom works at Acme and Lena works at Globex.", {"Tom works_at Acme", "Lena works_at Globex"}),
        ("Tom uses Python and Ana uses Rust.", {"Tom uses Python", "Ana uses Rust"}),
        ("Tom is my manager and Lena is our designer.", {"Sam has_manager Tom", "Sam has_designer Lena"}),
        ("I visited Rome and loved Bergen.", {"Sam visited Rome", "Sam loves Bergen"}),
        ("I've been working at Acme and live in Leeds.", {"Sam works_at Acme", "Sam lives_in Leeds"}),
        ("I studied in Ghent and work for Philips now.", {"Sam studied_in Ghent", "Sam works_at Philips"}),
        (
            "I grew up in Oslo, studied in Ghent and now live in Leeds.",
            {"Sam grew_up_in Oslo", "Sam studied_in Ghent", "Sam lives_in Leeds"},
        ),
        ("I think Tom and Lena live in York.", {"Tom lives_in York", "Lena lives_in York"}),
    ],
)
def test_each_of_two_verbs_has_its_own_subject(text: str, facts: set[str]) -> None:
    assert told(("2026-03-02", text)).keys() == facts


# Homes and jobs -----------------------------------------------------------------------------------

HOME_OR_JOB = {"lives_in", "works_at", "works_as"}


@pytest.mark.parametrize(
    ("before", "now", "current"),
    [
        ("I live in Leeds.", "Moved into my new flat in Bristol!", {"lives_in Bristol"}),
        ("I live in Leeds.", "I was transferred to Zurich by my company.", {"lives_in Zurich"}),
        ("I live in Leeds.", "My new home is Bergen.", {"lives_in Bergen"}),
        ("I live in Leeds.", "Left Leeds for good.", set[str]()),
        ("I live in Leeds.", "We're back in Rome for good.", {"lives_in Rome"}),
        ("I live in Leeds.", "Moved to a new flat yesterday.", {"lives_in Leeds"}),
        ("I live in Leeds.", "My brother moved into my flat in Bristol.", {"lives_in Leeds"}),
        ("I live in Leeds.", "Left Leeds at noon.", {"lives_in Leeds"}),
        ("I live in Leeds.", "The operator transferred me to Delhi.", {"lives_in Leeds"}),
        ("I live in Leeds.", "We're in Rome now, the hotel is lovely.", {"lives_in Leeds"}),
        ("I live in Leeds.", "Anna is home now.", {"lives_in Leeds"}),
        ("I work at Acme.", "It's my first day at Brightside.", {"works_at Brightside"}),
        ("I work at Acme.", "I remember my first day at Globex.", {"works_at Acme"}),
        ("I work at Acme.", "First day at university today!", {"works_at Acme"}),
        ("I work at Acme as a developer.", "I got promoted to team lead.", {"works_at Acme", "works_as team lead"}),
        ("I work at Acme as a developer.", "I was laid off from Acme.", set[str]()),
        ("I work at Acme as a developer.", "I got laid off.", set[str]()),
        ("I work at Acme as a developer.", "I work at Globex as a tester.", {"works_at Globex", "works_as tester"}),
        ("I work as a developer.", "I was promoted to manager in 2015.", {"works_as developer"}),
        ("I work at Acme as a nurse.", "I used to work at Siemens.", {"works_at Acme", "works_as nurse"}),
    ],
)
def test_a_new_or_lost_home_or_job_ends_the_earlier_one(before: str, now: str, current: set[str]) -> None:
    facts = told(("2026-03-01", before), ("2026-03-20", now))
    held = {f.removeprefix("Sam ") for f, (_, end) in facts.items() if f.startswith("Sam ") and end is None}
    assert {f for f in held if f.split()[0] in HOME_OR_JOB} == current


# People -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("before", "now", "over"),
    [
        ("My wife is Ana.", "Ana and I split up.", "married_to Ana"),
        ("I'm married to Paula.", "Paula and I separated last month.", "married_to Paula"),
        ("My wife is Ana.", "My wife and I split up.", "married_to Ana"),
        ("My wife is Ana.", "My ex-wife Ana lives in Rome.", "married_to Ana"),
        ("My boyfriend is Tom.", "My new boyfriend is called Callum.", "has_partner Tom"),
        ("My girlfriend is Kim.", "I have a new girlfriend, Lena.", "has_partner Kim"),
        ("My dentist is Dr. Lee.", "I changed dentists, it's Dr. Park now.", "has_dentist Lee"),
        ("My dentist is Dr. Lee.", "I switched dentists.", "has_dentist Lee"),
        ("My best friend is Marta.", "Marta and I are no longer friends.", "has_friend Marta"),
    ],
)
def test_a_relationship_ends_with_its_successor_or_a_separation(before: str, now: str, over: str) -> None:
    assert told(("2026-03-01", before), ("2026-03-20", now))[f"Sam {over}"][1] is not None


@pytest.mark.parametrize(
    ("before", "now", "held"),
    [
        ("My wife is Ana.", "The team and I split up the tasks.", "married_to Ana"),
        ("My wife is Ana.", "My ex-wife Clara lives in Rome.", "married_to Ana"),
        ("My girlfriend is Ana.", "My friend has a new girlfriend, Lena.", "has_partner Ana"),
        ("My dentist is Dr. Lee.", "My sister changed dentists, it's Dr. Park now.", "has_dentist Lee"),
        ("I have a dog called Rex.", "I have a new dog called Max.", "has_dog Rex"),
    ],
)
def test_what_others_do_or_what_there_may_be_several_of_ends_no_relationship(before: str, now: str, held: str) -> None:
    assert told(("2026-03-01", before), ("2026-03-20", now))[f"Sam {held}"][1] is None


# Tastes, health, plans and corrections ------------------------------------------------------------


@pytest.mark.parametrize(
    ("before", "now", "over"),
    [
        ("I love sushi.", "I can't stand sushi anymore.", "loves sushi"),
        ("My favourite colour is blue.", "My favorite color is green.", "favorite_color blue"),
        ("I take metformin.", "My doctor stopped my metformin and put me on insulin.", "takes metformin"),
        ("I take sertraline.", "The doctor switched me from sertraline to fluoxetine.", "takes sertraline"),
        ("I'm learning Portuguese.", "I gave up on Portuguese and am learning Welsh.", "learns Portuguese"),
        ("I'm 34.", "I'm 35 now.", "has_age 34 years"),
        ("I'm flying to Rome in June.", "I'm not flying to Rome anymore.", "plans_to_fly_to Rome"),
        ("I'm visiting Rome in June.", "We're not visiting Rome after all.", "plans_to_visit Rome"),
        ("We're going to Peru in August.", "We called off the trip to Peru.", "plans_to_go_to Peru"),
        ("I'm moving to Ghent in June.", "The move to Ghent fell through.", "lives_in Ghent"),
        ("I live in Bath.", "I misspoke, I live in Bristol, not Bath.", "lives_in Bath"),
    ],
)
def test_a_changed_taste_therapy_or_plan_ends_the_earlier_one(before: str, now: str, over: str) -> None:
    assert told(("2026-03-01", before), ("2026-03-20", now))[f"Sam {over}"][1] is not None


@pytest.mark.parametrize(
    ("text", "fact"),
    [
        ("I can't stand sushi anymore.", "Sam does_not_like sushi"),
        ("My doctor put me on insulin.", "Sam takes insulin"),
        ("My favourite coffee is the flat white from Laynes.", "Sam favorite_coffee flat white from Laynes"),
        ("I misspoke, my sister lives in Bristol, not Bath.", "Sam's sister lives_in Bristol"),
    ],
)
def test_one_telling_leaves_one_current_fact(text: str, fact: str) -> None:
    source, relation = fact.split(" ")[:-1][-2:] if "sister" in fact else fact.split(" ")[:2]
    same = {name: end for name, (_, end) in told(("2026-03-20", text)).items() if f"{source} {relation}" in name}
    assert same == {fact: None}
