"""What a question says about speakers, sides of a chat and names."""

from __future__ import annotations

import pytest

from graphmem.search.names import Names
from graphmem.search.question import asks_for_order, parse_question
from graphmem.search.speakers import ASSISTANT, USER, SpeakerNames, side_of
from graphmem.text.first_person import self_reference, with_asker

CHAT = ["User", "Assistant"]


def names(*known: str) -> Names:
    made = Names()
    made.learn(known, None)
    made.extend([(list(known), "", ". ".join(known))])
    return made


@pytest.mark.parametrize(
    ("question", "side"),
    [
        ("When does my first sprint end?", USER),
        ("What did I say about the API?", USER),
        ("What does the user like?", USER),
        ("What is the user's favorite color?", USER),
        ("What did the assistant recommend?", ASSISTANT),
        ("What did you recommend for my portfolio?", 0),
        ("Can you give me a summary of my project?", 0),
        ("Which libraries would you suggest I use?", USER),
        ("Where is the user login form?", 0),
        ("Who wrote the report?", 0),
    ],
)
def test_a_question_is_about_one_side_of_a_chat(question: str, side: int) -> None:
    assert parse_question(question, CHAT, names()).side == side


@pytest.mark.parametrize(
    ("question", "ordered"),
    [
        ("Can you list the order in which I brought up the features?", True),
        ("List my jobs in chronological order.", True),
        ("Which cities did we visit, in order?", True),
        ("How did my plan change over time?", True),
        ("Give me a timeline of the project.", True),
        ("What did I buy in order to repair the sink?", False),
        ("What did I order in the cafe?", False),
        ("Where is my order?", False),
    ],
)
def test_a_question_asks_for_an_order(question: str, ordered: bool) -> None:
    assert asks_for_order(question) == ordered


@pytest.mark.parametrize(
    ("question", "form", "left"),
    [
        ("Where do I work?", "answer", "Where do I work?"),
        ("List the order in which I brought up parts of my garden plan.", "order", "parts of my garden plan."),
        ("Give me a timeline of the move to Ghent. Mention only five items.", "order", "the move to Ghent. ."),
        ("Could you summarize how my plan changed across our conversations?", "summary", "how my plan changed ?"),
        ("Please give me a short overview of my job search.", "summary", "my job search."),
        ("What does the summary of the report say?", "answer", "What does the summary of the report say?"),
        ("I need a summary of everything so far", "summary", "I need everything"),
    ],
)
def test_a_question_for_an_order_or_a_summary_is_searched_by_its_subject(question: str, form: str, left: str) -> None:
    asked = parse_question(question, CHAT, names())
    assert (asked.form, asked.text) == (form, left)


def test_the_side_of_a_question_for_an_order_is_told_by_the_whole_of_it() -> None:
    assert parse_question("List the order in which I brought up garden tools.", CHAT, names()).side == USER


def test_a_role_is_not_the_name_of_a_speaker() -> None:
    asked = parse_question("How do I add user login?", CHAT, names("user"))
    assert asked.speakers == ()
    assert asked.names == ()
    assert asked.first_person == "How do I add user login?"


@pytest.mark.parametrize(
    ("question", "left"),
    [
        ("Where does Kate work?", "Where does I work?"),
        ("Where is Kate's desk?", "Where is my desk?"),
        ("where does kate work?", "where does I work?"),
        ("Who is Kate Bush?", "Who is Kate Bush?"),
        ("Where does Craig work?", "Where does I work?"),
    ],
)
def test_a_speaker_is_meant_by_the_name_that_others_use(question: str, left: str) -> None:
    called = {"Kate": "kt_88", "Craig": "User"}
    assert parse_question(question, ["kt_88", "User", "Assistant"], names(), called).first_person == left


def test_the_names_of_speakers_are_those_of_greetings_between_two() -> None:
    found = SpeakerNames()
    for text in (
        "Hello Kate!",
        "Thanks so much, Kate. I saw Ole.",
        "Wow Kate, really?",
        "Hi Everyone!",
        "Hi Everyone!",
    ):
        found.add(text, 0, 0)
    for text in ("Hey Emily!", "Hey Emily!", "Yes Ines.", "Yes Ines.", "Yes Ines.", "We moved to Austin, Texas."):
        found.add(text, 1, 0)
    assert found.meant(["Ines", "kt_88"]) == {"Kate": "kt_88"}  # Emily was used twice, Ines is a speaker's own name
    found.add("Hi Emily!", 1, 0)
    assert found.meant(["Ines", "kt_88"]) == {"Kate": "kt_88", "Emily": "Ines"}


def test_in_a_group_nobody_knows_who_is_greeted() -> None:
    found = SpeakerNames()
    for speaker in (0, 1, 2):
        found.add("Hello Kate!", speaker, 0)
    assert found.meant(["Ines", "kt_88", "Ole"]) == {}
    for speaker in (-1, 0, 0, 0):
        found.add("Hello Kate!", speaker, -1)
    assert found.meant(["Ines", "kt_88", "Ole"]) == {}


@pytest.mark.parametrize(
    ("question", "subject"),
    [
        ("Where does Ines work?", "Ines"),
        ("What did Ines recommend to Theodore?", "Ines"),
        ("What tip did Theodore give Ines?", "Theodore"),
        ("Which of Ines's books did Theodore read?", "Theodore"),
        ("According to Ines, what makes Theodore a good guide?", "Ines"),
        ("What is the nickname that Theo uses for Ines?", "Ines"),
        ("what do ines and theodore have in common?", None),
        ("Which towns have both, Ines, and Theodore, seen?", None),
        ("Who is it?", None),
        ("Theodore: When did I meet Ines?", "Theodore"),
        ("Theodore: Where did Ines meet me?", "Ines"),
    ],
)
def test_a_question_is_about_the_speaker_who_acts(question: str, subject: str | None) -> None:
    speakers = ["Ines", "Theodore"]
    found = parse_question(question, speakers, names()).subject
    assert (None if found is None else speakers[found]) == subject


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("I'm learning to ski.", 1),
        ("i love it, do you?", 1),
        ("Our trip was great.", 1),
        ("You must be proud!", 0),
        ("Is that your dog?", 0),
        ("Sounds fun!", 0.5),
        ("The US team won.", 0.5),
    ],
)
def test_a_turn_in_the_first_person_tells_of_its_speaker(text: str, expected: float) -> None:
    assert self_reference(text) == expected


def test_the_user_becomes_the_first_person() -> None:
    asked = parse_question("What does the user's mother think the user does?", CHAT, names())
    assert asked.first_person == "What does my mother think I does?"


def test_between_people_the_user_is_an_ordinary_word() -> None:
    question = "What does the user do?"
    assert parse_question(question, ["Ines", "Ole"], names()).first_person == question


def test_a_capitalized_stop_word_is_no_seed() -> None:
    asked = parse_question("Which HTML tags should I use? ONLY those.", [], names("should i", "html", "only"))
    assert asked.seeds == ("html",)


@pytest.mark.parametrize(
    ("role", "speaker", "side"),
    [
        ("user", "Ada", USER),
        ("assistant", "Ada", ASSISTANT),
        ("model", None, ASSISTANT),
        ("CHATBOT", None, ASSISTANT),
        (None, "User", USER),
        (None, "Model", 0),
        (None, "Ada", 0),
        ("tool", None, 0),
        (None, None, 0),
    ],
)
def test_the_side_of_a_turn_is_its_role_or_a_speaker_named_like_one(
    role: str | None, speaker: str | None, side: int
) -> None:
    assert side_of(role, speaker) == side


@pytest.mark.parametrize(
    "question",
    [
        *("Where do I work?", "MY HOME?", "Our home?", "We live where?", "Where did i, of all people, work?"),
        *("what's mine?", "Remind me where I live.", "Did Tom tell me?", "Who visited us?", "i'm where?"),
    ],
)
def test_a_question_about_who_asks(question: str) -> None:
    assert with_asker(question, "Maya") == f"Maya: {question}"


@pytest.mark.parametrize(
    "question",
    [
        *("Tell me about yourself.", "Please show us the house.", "Can you tell me where Tom lives?"),
        *("Who lives in the US?", "What is i.e. short for?", "Is the wi-fi on?"),
    ],
)
def test_a_question_about_others(question: str) -> None:
    assert with_asker(question, "Maya") == question


@pytest.mark.parametrize(
    ("speakers", "asked"),
    [
        (["Grace Mbeki", "Lena Kowalski"], (0,)),
        (["Grace Mbeki", "Grace Lund"], ()),
        (["Grace Mbeki", "Grace"], (1,)),
    ],
)
def test_a_first_name_that_one_speaker_has_means_that_speaker(speakers: list[str], asked: tuple[int, ...]) -> None:
    found = parse_question("Where is Grace going to work?", speakers, names())
    assert found.speakers == asked
    assert parse_question("Where does Grace Smith work?", speakers, names()).speakers == ()
