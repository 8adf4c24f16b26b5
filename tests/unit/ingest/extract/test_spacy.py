"""Facts out of plain sentences, without a language model."""

from __future__ import annotations

import importlib.util
import threading
from datetime import UTC, datetime

import pytest

from graphmem.errors import InvalidInput, MissingExtra
from graphmem.ingest.extract.spacy import SpacyExtractor, spacy_available
from graphmem.ingest.extract.spacy.clauses import governor
from graphmem.models import Episode, EpisodeSource, Scalar, Scope
from graphmem.protocols import ExtractedEdge, Extraction, ExtractionRequest

pytestmark = pytest.mark.skipif(not spacy_available(), reason="spaCy and an English model are not installed")

MONDAY = datetime(2023, 5, 8, 13, 56, tzinfo=UTC)
Triple = tuple[str, str, str]


@pytest.fixture(scope="module")
def extractor() -> SpacyExtractor:
    return SpacyExtractor(document_facts=True)


@pytest.fixture
def say(extractor: SpacyExtractor) -> Say:
    return Say(extractor)


class Say:
    """What Nora says to Walter."""

    def __init__(self, extractor: SpacyExtractor) -> None:
        self._extractor = extractor

    def __call__(self, text: str) -> Extraction:
        episode = Episode(scope=Scope("t"), text=text, speaker="Nora", occurred_at=MONDAY)
        return good(self._extractor.extract([ExtractionRequest(episode, addressee="Walter")]))

    def facts(self, text: str) -> set[Triple]:
        return triples(self(text))

    def one(self, text: str, relation: str) -> ExtractedEdge:
        found = [e for e in self(text).edges if e.relation == relation]
        assert len(found) == 1, self(text).edges
        return found[0]


def good(results: list[Extraction | Exception]) -> Extraction:
    (result,) = results
    assert isinstance(result, Extraction), result
    return result


def triples(extraction: Extraction) -> set[Triple]:
    return {(e.source, e.relation, e.target) for e in extraction.edges if not e.ended}


def ended(extraction: Extraction) -> set[Triple]:
    over = {(e.source, e.relation, e.target) for e in extraction.edges if e.ended}
    return over | {(e.source, e.relation, e.target) for e in extraction.endings if e.target is not None}


def read(extractor: SpacyExtractor, title: str, text: str) -> Extraction:
    source: EpisodeSource = "document"
    episode = Episode(scope=Scope("t"), source=source, title=title, text=text, occurred_at=MONDAY)
    return good(extractor.extract([ExtractionRequest(episode)]))


# Who ----------------------------------------------------------------------------------------------


def test_i_is_the_speaker(say: Say) -> None:
    assert ("Nora", "works_at", "Siemens") in say.facts("I work at Siemens.")


def test_you_is_the_addressee(say: Say) -> None:
    assert ("Walter", "lives_in", "Chicago") in say.facts("You live in Chicago.")


def test_we_is_the_speaker(say: Say) -> None:
    assert ("Nora", "bought", "boat") in say.facts("We bought a boat.")


@pytest.mark.parametrize(
    ("text", "entities"),
    [
        ("The Redis box and the Postgres box are down.", {"Redis": "technology", "Postgres": "technology"}),
        ("I joined Quillon Software Ltd.", {"Quillon Software Ltd": "organization"}),
        ("Thanks for the SQL and the PDF, see you at 9 UTC!", {}),
    ],
)
def test_products_firms_and_acronyms_are_no_persons(say: Say, text: str, entities: dict[str, str]) -> None:
    assert {e.name: e.entity_type for e in say(text).entities if e.name not in ("Nora", "Walter")} == entities


def test_a_speaker_is_a_person(say: Say) -> None:
    entities = {e.name: e.entity_type for e in say("I visited Norway.").entities}
    assert entities == {"Nora": "person", "Norway": "location"}


def test_you_without_an_addressee_is_nobody(extractor: SpacyExtractor) -> None:
    episode = Episode(scope=Scope("t"), text="You live in Chicago.", speaker="Nora", occurred_at=MONDAY)
    assert good(extractor.extract([ExtractionRequest(episode)])).edges == ()


def test_he_is_the_only_man_named_before(say: Say) -> None:
    assert ("Peter", "works_at", "Google") in say.facts("My brother Peter is a teacher. He works at Google.")


def test_a_resolved_pronoun_is_not_trusted_much(say: Say) -> None:
    assert say.one("My brother Peter is a teacher. He works at Google.", "works_at").confidence == 0.4


def test_a_pronoun_that_may_mean_two_gives_no_fact(say: Say) -> None:
    facts = say.facts("Peter and Paul are teachers. He works at Google.")
    assert not any(relation == "works_at" for _, relation, _ in facts)


def test_a_pronoun_is_not_a_relative_of_the_other_gender(say: Say) -> None:
    assert not any(r == "works_at" for _, r, _ in say.facts("My sister is a teacher. He works at Google."))


def test_a_short_form_of_the_addressee_is_the_addressee(say: Say) -> None:
    assert not any(e.name == "Walt" for e in say("Thanks, Walt! I met Walt in Paris.").entities)


# Relations ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "fact"),
    [
        ("I moved to Berlin.", ("Nora", "lives_in", "Berlin")),
        ("I work at Siemens as a nurse.", ("Nora", "works_as", "nurse")),
        ("I started working at Siemens.", ("Nora", "works_at", "Siemens")),
        ("I was hired by Netflix.", ("Nora", "works_at", "Netflix")),
        ("I got a new job at Spotify!", ("Nora", "works_at", "Spotify")),
        ("I was born in Chicago.", ("Nora", "born_in", "Chicago")),
        ("I married Peter.", ("Nora", "married_to", "Peter")),
        ("I manage the design team.", ("Nora", "manages", "design team")),
        ("I'm single.", ("Nora", "has_status", "single")),
        ("I prefer tea to coffee.", ("Nora", "prefers", "tea")),
        ("My favorite food is pizza.", ("Nora", "favorite_food", "pizza")),
        ("Pizza is my favorite food.", ("Nora", "favorite_food", "pizza")),
        ("Our API runs on Kubernetes.", ("API", "deployed_on", "Kubernetes")),
        ("Apollo's budget is $5000.", ("Apollo", "has_budget", "$5000")),
        ("I use Python every day.", ("Nora", "uses", "Python")),
        ("I'm allergic to peanuts.", ("Nora", "is_allergic_to", "peanuts")),
        ("I love hiking.", ("Nora", "loves", "hiking")),
        ("I went camping.", ("Nora", "went", "camping")),
        ("I signed up for a pottery class.", ("Nora", "signed_up_for", "pottery class")),
        ("I've been learning German.", ("Nora", "learns", "German")),
        ("My brother Peter is a teacher.", ("Peter", "is_a", "teacher")),
        ("Jane Smith, the CEO of Siemens, visited Berlin.", ("Jane Smith", "is_ceo_of", "Siemens")),
        ("I took a trip to Rome.", ("Nora", "took_trip_to", "Rome")),
        ("Anna got engaged to Peter last Friday.", ("Anna", "is_engaged_to", "Peter")),
        ("I live in Lisbon and work at Siemens.", ("Nora", "works_at", "Siemens")),
        ("I'm Nora Berg, I live in Lisbon.", ("Nora", "lives_in", "Lisbon")),
        ("I'm Nora Berg, I live in Lisbon and work at Siemens.", ("Nora", "works_at", "Siemens")),
        ("My dog is called Rex.", ("Nora", "has_dog", "Rex")),
        ("My sister is named Anna.", ("Nora", "has_sister", "Anna")),
        ("I have two cats, Oscar and Bailey.", ("Nora", "has_cat", "Oscar")),
        ("I have two cats, Oscar and Bailey.", ("Nora", "has_cat", "Bailey")),
        ("My sons, Tom and Paul, live in Berlin.", ("Nora", "has_son", "Paul")),
        ("I've got a brother, Tom.", ("Nora", "has_brother", "Tom")),
        ("Peter is my husband.", ("Nora", "married_to", "Peter")),
        ("Hannah and I got married last week.", ("Nora", "married_to", "Hannah")),
        ("My sister Elena lives in Madrid.", ("Elena", "lives_in", "Madrid")),
        ("Maya moved to Lisbon last month.", ("Maya", "lives_in", "Lisbon")),
        ("Peter is my boyfriend.", ("Nora", "has_partner", "Peter")),
        ("Peter and I are dating.", ("Nora", "has_partner", "Peter")),
        ("Peter and I got engaged.", ("Nora", "is_engaged_to", "Peter")),
        ("My doctor is Peter Chen.", ("Nora", "has_doctor", "Peter Chen")),
        ("I left Siemens to join Google.", ("Nora", "works_at", "Google")),
        ("I left Siemens and I'm now at Globex.", ("Nora", "works_at", "Globex")),
    ],
)
def test_a_statement_gives_its_relation(say: Say, text: str, fact: Triple) -> None:
    assert fact in {(s, r, t.replace("Pizza", "pizza")) for s, r, t in say.facts(text)}


@pytest.mark.parametrize(
    ("text", "fact"),
    [
        ("My sister Anna lives in Boston.", ("Nora", "has_sister", "Anna")),
        ("Anna is my sister.", ("Nora", "has_sister", "Anna")),
        ("My mom's name is Ruth.", ("Nora", "has_mom", "Ruth")),
        ("My husband Peter works for IBM.", ("Nora", "married_to", "Peter")),
        ("My kids love dinosaurs.", ("Nora's kids", "loves", "dinosaurs")),
        ("I adopted a dog named Max.", ("Nora", "has_dog", "Max")),
        ("I grew up in my home country, Sweden.", ("Nora", "has_home_country", "Sweden")),
    ],
)
def test_kinship_is_read_off_noun_phrases(say: Say, text: str, fact: Triple) -> None:
    assert fact in say.facts(text)


def test_a_job_at_night_is_no_workplace(say: Say) -> None:
    assert say.facts("I work at night.") == set()


def test_a_flat_is_not_where_one_lives_in_place_of_the_town(say: Say) -> None:
    assert say.facts("I live in a small apartment.") == set()


def test_joined_objects_give_a_fact_each(say: Say) -> None:
    assert {("Nora", "bought", "car"), ("Nora", "bought", "bike")} <= say.facts("I bought a car and a bike.")


def test_joined_subjects_give_a_fact_each(say: Say) -> None:
    assert {("Anna", "visited", "London"), ("Peter", "visited", "London")} <= say.facts(
        "Anna and Peter visited London."
    )


def test_joined_verbs_share_their_subject(say: Say) -> None:
    assert ("Nora", "bought", "car") in say.facts("I went to Berlin and bought a car.")


@pytest.mark.parametrize(
    ("text", "fact"),
    [
        ("Apollo's database is Postgres.", ("Apollo", "has_database", "Postgres")),
        ("Apollo's build tool is Gradle.", ("Apollo", "has_build_tool", "Gradle")),
    ],
)
def test_what_a_named_thing_has_is_told_by_name(say: Say, text: str, fact: Triple) -> None:
    assert say.facts(text) == {fact}


@pytest.mark.parametrize("text", ["Apollo's review is Friday.", "Tom's problem is Ravi.", "Tom's phone is an iPhone."])
def test_dates_judgements_and_kinds_are_nothing_that_it_has(say: Say, text: str) -> None:
    assert say.facts(text) == set()


def test_an_activity_that_two_people_share_is_told_with_whom(say: Say) -> None:
    assert ("Nora", "plays_tennis_with", "Anna") in say.facts("I play tennis with Anna every week.")


# Well-known relations -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "relation", "target", "begin"),
    [
        ("I'm joining Vellum Robotics as a designer.", "works_at", "Vellum Robotics", None),
        ("I joined Vellum Robotics last month.", "works_at", "Vellum Robotics", "2023-04-01"),
        ("I started at Hexagon Foods last month.", "works_at", "Hexagon Foods", "2023-04-01"),
        ("I start at Hexagon Foods on Friday.", "works_at", "Hexagon Foods", "2023-05-12"),
        ("I'm starting a new job at Quillpost next month.", "works_at", "Quillpost", "2023-06-01"),
        ("I'm joining Quillpost on the first of July.", "works_at", "Quillpost", "2023-07-01"),
        ("I've been working at Vellum Robotics for two years.", "works_at", "Vellum Robotics", "2021-05-08"),
        ("I've been at Quillpost since 2019.", "works_at", "Quillpost", "2019-01-01"),
        ("I landed a job with Quillpost.", "works_at", "Quillpost", None),
        ("I got an offer from Quillpost and accepted it.", "works_at", "Quillpost", None),
        ("My new job at Quillpost is great.", "works_at", "Quillpost", None),
        ("I'm excited about my new job at Siemens.", "works_at", "Siemens", None),
        ("I'm a nurse at Mercy Hospital.", "works_at", "Mercy Hospital", None),
        ("Vellum Robotics hired me last week.", "works_at", "Vellum Robotics", "2023-05-01"),
        ("We're moving to Porto next month.", "lives_in", "Porto", "2023-06-01"),
        ("I moved back to Porto.", "lives_in", "Porto", None),
        ("I'm based out of Porto.", "lives_in", "Porto", None),
        ("We settled in Denver.", "lives_in", "Denver", None),
        ("i live in porto", "lives_in", "Porto", None),
        ("i live in lisbon and i paint walls for money", "lives_in", "Lisbon", None),
        ("We live in a small house in Denver.", "lives_in", "Denver", None),
        ("I live with Anna in Denver.", "lives_in", "Denver", None),
        ("I've lived in Porto for two years now, can you believe it?", "lives_in", "Porto", "2021-05-08"),
        ("I was so bored that I joined Vellum Robotics.", "works_at", "Vellum Robotics", None),
        ("I switched to Brushly.", "uses", "Brushly", None),
        ("I'm from Porto.", "is_from", "Porto", None),
        ("I got married last year.", "has_status", "married", "2022-01-01"),
        ("I'm getting married in August.", "has_status", "married", "2023-08-01"),
        ("We've been married for five years.", "has_status", "married", "2018-05-08"),
        ("I got engaged to Daniel.", "is_engaged_to", "Daniel", None),
        ("I'm marrying Daniel in August.", "married_to", "Daniel", "2023-08-01"),
        ("I lead the data team.", "manages", "data team", None),
    ],
)
def test_a_known_relation_is_stated_with_its_beginning(
    say: Say, text: str, relation: str, target: str, begin: str | None
) -> None:
    edge = say.one(text, relation)
    when = edge.valid_from.date().isoformat() if edge.valid_from else None
    assert (edge.source, edge.target, edge.ended, when) == ("Nora", target, False, begin)


@pytest.mark.parametrize(
    ("text", "relation", "target", "end"),
    [
        ("I worked at Quillpost until 2022.", "works_at", "Quillpost", "2023-01-01"),
        ("I worked at Quillpost until the end of 2022.", "works_at", "Quillpost", "2023-01-01"),
        ("I was laid off from Quillpost.", "works_at", "Quillpost", None),
        ("I was let go from Vellum Robotics.", "works_at", "Vellum Robotics", None),
        ("Vellum Robotics laid me off in April.", "works_at", "Vellum Robotics", "2023-05-01"),
        ("I left Siemens in March.", "works_at", "Siemens", "2023-04-01"),
        ("I'm leaving Siemens at the end of June.", "works_at", "Siemens", "2023-07-01"),
        ("Yesterday was my last day at Quillpost.", "works_at", "Quillpost", "2023-05-08"),
        ("My last day at Siemens is Friday.", "works_at", "Siemens", "2023-05-13"),
        ("I miss my old job at Siemens.", "works_at", "Siemens", None),
        ("I lived in Porto until 2021.", "lives_in", "Porto", "2022-01-01"),
        ("I gave up on Notion.", "uses", "Notion", None),
    ],
)
def test_a_known_relation_ends_when_it_is_said_to(
    say: Say, text: str, relation: str, target: str, end: str | None
) -> None:
    (edge,) = [e for e in say(text).edges if e.ended]
    when = edge.valid_to.date().isoformat() if edge.valid_to else None
    assert (edge.source, edge.relation, edge.target, when) == ("Nora", relation, target, end)


def test_a_job_with_an_end_ahead_still_holds(say: Say) -> None:
    edge = say.one("I still work at Siemens until June.", "works_at")
    assert (edge.ended, edge.valid_to) == (False, datetime(2023, 7, 1, tzinfo=UTC))


def test_whoever_quits_a_job_is_a_person(say: Say) -> None:
    assert ("Anna", "works_at", "Quillpost") in ended(say("Anna quit her job at Quillpost."))


@pytest.mark.parametrize(
    "text",
    [
        "I might join Vellum Robotics.",
        "I hope to join Vellum Robotics.",
        "I applied to Vellum Robotics.",
        "I had an interview at Vellum Robotics.",
        "If I got the job at Vellum Robotics, I'd move to Rome.",
        "I didn't get the job at Vellum Robotics.",
        "I turned down an offer from Vellum Robotics.",
        "Did you join Vellum Robotics?",
        "I joined the Rotary Club.",
        "I joined Anna for lunch.",
        "I joined Stanford University in 2019.",
        "I'm a student at Stanford.",
        "I'm a volunteer at Mercy Hospital.",
        "I was a nurse at Mercy Hospital.",
        "I left Anna.",
        "We started at Paris and drove to Rome.",
        "I start at six.",
        "I met a nurse at Mercy Hospital.",
        "I work for Peter.",
        "I want to move to Porto.",
        "I'm planning to move to Porto next year.",
        "I'm going to move to Porto.",
        "We thought about moving to Porto.",
        "I moved the plants to Porto.",
        "I moved to Google.",
        "I'm staying in Denver for a week.",
        "i live in peace",
        "i live in poverty and i hate it",
        "i live in a flat",
        "I grew up in Porto.",
        "I'm from Porto.",
        "I'm getting married.",
        "I was married.",
        "I'm not engaged.",
        "The budget is tight.",
    ],
)
def test_what_only_resembles_a_known_relation_states_none(say: Say, text: str) -> None:
    known = {"works_at", "lives_in", "has_status", "married_to", "has_budget"}
    assert [e for e in say(text).edges if e.relation in known] == []


@pytest.mark.parametrize(
    ("text", "fact"),
    [
        ("The budget for Apollo is 12,000 euros.", ("Apollo", "has_budget", "12,000 euros")),
        ("The Apollo budget is 12,000 euros.", ("Apollo", "has_budget", "12,000 euros")),
        ("We increased the Apollo budget to $12,000.", ("Apollo", "has_budget", "$12,000")),
        ("Apollo has a budget of $5,000.", ("Apollo", "has_budget", "$5,000")),
        ("We deployed Apollo to Kubernetes.", ("Apollo", "deployed_on", "Kubernetes")),
        ("We host Apollo on AWS.", ("Apollo", "deployed_on", "AWS")),
        ("We moved it from SQLite to Postgres.", ("Nora", "uses", "Postgres")),
        ("I moved Apollo from SQLite to Postgres.", ("Apollo", "uses", "Postgres")),
        ("I dropped Notion for Obsidian.", ("Nora", "uses", "Obsidian")),
    ],
)
def test_projects_have_budgets_hosts_and_tools(say: Say, text: str, fact: Triple) -> None:
    assert fact in say.facts(text)


@pytest.mark.parametrize(
    ("text", "over"),
    [
        ("We moved it from SQLite to Postgres.", ("Nora", "uses", "SQLite")),
        ("I moved Apollo from SQLite to Postgres.", ("Apollo", "uses", "SQLite")),
        ("I dropped Notion for Obsidian.", ("Nora", "uses", "Notion")),
    ],
)
def test_what_was_used_before_ends(say: Say, text: str, over: Triple) -> None:
    assert over in ended(say(text))


def test_a_budget_without_an_owner_is_a_guess(say: Say) -> None:
    assert say.one("I lead Project Osprey. The budget is now 12,000 euros.", "has_budget").confidence == 0.4


@pytest.mark.parametrize("text", ["The budget is now 12,000 euros.", "I met Tom. The budget is 12,000 euros."])
def test_a_budget_of_nothing_named_before_is_no_fact(say: Say, text: str) -> None:
    assert not [e for e in say(text).edges if e.relation == "has_budget"]


# Objects ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "facts"),
    [
        ("We watch movies, hike, and play chess.", {("Nora", "watches", "movies")}),
        ("I'm planning a trip to Peru next month.", {("Nora", "plans_trip_to", "Peru")}),
        ("We explored the coast up in Maine.", {("Nora", "explored_coast_in", "Maine")}),
        ('I take regular "me-time" walks.', {("Nora", "takes", "regular me-time walks")}),
        ("I've been doing my fair share of cleaning.", {("Nora", "does", "cleaning")}),
        ("We've got each other's backs.", set[Triple]()),
        ("I've got the right attitude.", set[Triple]()),
        ("I ate yummy food.", set[Triple]()),
        ("I'm grateful to my friends.", set[Triple]()),
        ("I ate Thai food.", set[Triple]()),
    ],
)
def test_a_clause_gives_just_what_it_tells(say: Say, text: str, facts: set[Triple]) -> None:
    assert say.facts(text) == facts


def test_the_speaker_among_joined_subjects_is_no_object(say: Say) -> None:
    edge = say.one("Some friends from church and I went camping.", "went")
    assert edge.fact == "Nora went camping."


# What is not stated as true -----------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        "Did you move to Berlin?",
        "Are you working at Siemens",
        "If I lived in Berlin, I would work at Siemens.",
        "I might move to Madrid.",
        "I could buy a boat.",
        "I should learn German.",
        "I wish I lived in Rome.",
        "Maybe I'll move to Rome.",
        "Please send me the report.",
        "Let's visit Rome!",
        "I have never visited Rome.",
        "I haven't been to Rome.",
        "I don't think Anna works at Siemens.",
        "I'm not married.",
        "Nobody works at Siemens.",
        "I have no kids.",
        "We all have our own paths.",
        "Thanks so much, Walter!",
        "Hey Walter! Good to see you! How have you been?",
        "That sounds great, Walter.",
        "You're doing an awesome job!",
        "I had a great time.",
        "It means a lot to me.",
        "https://example.org/berlin and `I = work(at.Siemens)`",
        "[image: I work at Siemens]",
        "🎉🎉🎉",
    ],
)
def test_what_is_not_stated_gives_no_fact(say: Say, text: str) -> None:
    assert {t for t in say.facts(text) if t[1] != "co_occurs_with"} == set()


def test_a_dislike_is_never_a_liking(say: Say) -> None:
    assert say.facts("I don't like mushrooms.") == {("Nora", "does_not_like", "mushrooms")}


def test_a_wish_is_named_as_a_wish(say: Say) -> None:
    assert say.facts("I want to adopt a dog.") == {("Nora", "wants_to_adopt", "dog")}


def test_would_love_to_is_a_wish(say: Say) -> None:
    assert say.facts("I'd love to visit Japan.") == {("Nora", "wants_to_visit", "Japan")}


def test_a_plan_is_named_as_a_plan(say: Say) -> None:
    assert say.facts("I'm going to adopt a dog.") == {("Nora", "plans_to_adopt", "dog")}


def test_going_somewhere_in_the_future_is_a_plan(say: Say) -> None:
    assert say.facts("I'm going to Paris next month.") == {("Nora", "plans_to_go_to", "Paris")}


def test_what_a_relative_was_is_over(say: Say) -> None:
    said = say("Peter was my boss.")
    assert (triples(said), ended(said)) == (set(), {("Nora", "has_boss", "Peter")})


def test_whom_a_sister_was_made_is_not_her_name(say: Say) -> None:
    assert ("Nora", "has_sister", "Captain") not in say.facts("My sister, Anna, was named Captain.")


def test_a_list_of_relatives_of_whom_there_are_none_names_none(say: Say) -> None:
    assert not any(r == "has_son" for _, r, _ in say.facts("I don't have sons, Tom and Paul."))


def test_a_reported_fact_is_half_trusted(say: Say) -> None:
    assert say.one("I think Anna works at Siemens.", "works_at").confidence == 0.5


# What ended ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "over"),
    [
        ("I no longer work at Siemens.", ("Nora", "works_at", "Siemens")),
        ("I don't work at Siemens anymore.", ("Nora", "works_at", "Siemens")),
        ("I left my job at Intel.", ("Nora", "works_at", "Intel")),
        ("I was fired from Siemens.", ("Nora", "works_at", "Siemens")),
        ("I used to live in Paris.", ("Nora", "lives_in", "Paris")),
        ("I stopped using Docker.", ("Nora", "uses", "Docker")),
        ("We switched from vim to neovim.", ("Nora", "uses", "vim")),
        ("I switched from Trello to Linear in March.", ("Nora", "uses", "Trello")),
        ("I now use Obsidian instead of Notion.", ("Nora", "uses", "Notion")),
        ("I moved from Rome to Berlin.", ("Nora", "lives_in", "Rome")),
        ("I broke up with Daniel.", ("Nora", "has_partner", "Daniel")),
        ("I divorced Daniel.", ("Nora", "married_to", "Daniel")),
        ("I lost my job as a banker.", ("Nora", "works_as", "banker")),
        ("Peter was my boss.", ("Nora", "has_boss", "Peter")),
        ("I quit Acme Robotics two weeks ago.", ("Nora", "works_at", "Acme Robotics")),
        ("I married Daniel.", ("Nora", "is_engaged_to", "Daniel")),
        ("I broke up with Daniel.", ("Nora", "is_engaged_to", "Daniel")),
        ("Peter is no longer my boyfriend.", ("Nora", "has_partner", "Peter")),
        ("I left Siemens to join Google.", ("Nora", "works_at", "Siemens")),
    ],
)
def test_the_fact_that_ended_is_named(say: Say, text: str, over: Triple) -> None:
    assert over in ended(say(text))


@pytest.mark.parametrize(
    ("text", "new"),
    [
        ("We switched from vim to neovim.", ("Nora", "uses", "neovim")),
        ("I switched from Trello to Linear in March.", ("Nora", "uses", "Linear")),
        ("I now use Obsidian instead of Notion.", ("Nora", "uses", "Obsidian")),
        ("I moved from Rome to Berlin.", ("Nora", "lives_in", "Berlin")),
    ],
)
def test_its_successor_is_stated(say: Say, text: str, new: Triple) -> None:
    assert new in say.facts(text)


# When ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "relation", "begin"),
    [
        ("I visited Norway yesterday.", "visited", "2023-05-07"),
        ("I moved to Berlin last month.", "lives_in", "2023-04-01"),
        ("I've worked at Siemens since 2016.", "works_at", "2016-01-01"),
        ("I've lived in Oslo for three years.", "lives_in", "2020-05-08"),
        ("I will visit Rome on Friday.", "plans_to_visit", "2023-05-12"),
        ("I'm hosting a dance competition next month.", "plans_to_host", "2023-06-01"),
    ],
)
def test_a_date_says_from_when_a_fact_holds(say: Say, text: str, relation: str, begin: str) -> None:
    edge = say.one(text, relation)
    assert edge.valid_from is not None
    assert edge.valid_from.date().isoformat() == begin


def test_a_date_with_an_end_is_when_it_ended(say: Say) -> None:
    edge = say.one("I quit my job at Intel last week.", "works_at")
    assert (edge.ended, edge.valid_from, edge.valid_to) == (True, None, datetime(2023, 5, 8, tzinfo=UTC))


def test_a_period_gives_both_bounds(say: Say) -> None:
    edge = say.one("I worked at Siemens from 2010 to 2015.", "works_at")
    assert (edge.valid_from, edge.valid_to) == (datetime(2010, 1, 1, tzinfo=UTC), datetime(2016, 1, 1, tzinfo=UTC))


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("I worked at Siemens from March to June 2019.", "Nora worked at Siemens from March 2019 to June 2019."),
        (
            "I worked at Siemens between March and June 2019.",
            "Nora worked at Siemens between March 2019 and June 2019.",
        ),
    ],
)
def test_the_year_of_a_period_may_be_told_once(say: Say, text: str, sentence: str) -> None:
    edge = say.one(text, "works_at")
    assert (edge.valid_from, edge.valid_to) == (datetime(2019, 3, 1, tzinfo=UTC), datetime(2019, 7, 1, tzinfo=UTC))
    assert edge.fact == sentence


def test_a_date_belongs_to_its_own_verb(say: Say) -> None:
    edge = say.one("I visited Norway yesterday and I love Berlin.", "loves")
    assert edge.valid_from is None


# The sentence of a fact ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "relation", "sentence"),
    [
        ("I'm learning German.", "learns", "Nora is learning German."),
        ("I love Berlin.", "loves", "Nora loves Berlin."),
        ("Yesterday I visited Norway.", "visited", "Nora visited Norway on 7 May 2023."),
        ("I've worked at Siemens since last year.", "works_at", "Nora has worked at Siemens since 2022."),
        ("Well, I took my dog to Rome.", "took_dog_to", "Nora took their dog to Rome."),
        ("I don't like mushrooms.", "does_not_like", "Nora doesn't like mushrooms."),
        ("Lost my job at Intel yesterday.", "works_at", "Nora lost their job at Intel on 7 May 2023."),
        ("I work at Siemens as an engineer.", "works_as", "Nora works as an engineer."),
        ("I work at Siemens as an engineer.", "works_at", "Nora works at Siemens as an engineer."),
        ("I live in Oslo with my wife Anna.", "lives_with", "Nora lives with their wife Anna."),
        ("I work as an engineer at Siemens.", "works_as", "Nora works as an engineer."),
        ("I live with Anna in Oslo.", "lives_with", "Nora lives with Anna."),
        ("i live in lisbon and i draw books for papaya press", "lives_in", "Nora lives in Lisbon."),
        ("Waymark's been on Nordhost for months.", "been_on", "Waymark has been on Nordhost for months."),
        ("I moved to Oslo with Anna.", "moved_with", "Nora moved to Oslo with Anna."),
        ("I live in Bern, not Berlin.", "lives_in", "Nora lives in Bern."),
        ("I live in Austin, Texas.", "lives_in", "Nora lives in Austin, Texas."),
        ("I work at Acme Inc.", "works_at", "Nora works at Acme Inc."),
        ("We use scikit-learn at work.", "uses", "Nora uses scikit-learn at work."),
        ("We adopted pre-commit last week.", "adopted", "Nora adopted pre-commit in the week of 1 May 2023."),
        ("I love C#!", "loves", "Nora loves C#."),
        ("I work for Dwyer & Sons.", "works_at", "Nora works for Dwyer & Sons."),
        ("I have yoga every Tuesday at 6pm.", "has", "Nora has yoga every Tuesday at 6 pm."),
    ],
)
def test_a_fact_can_be_read_by_itself(say: Say, text: str, relation: str, sentence: str) -> None:
    assert say.one(text, relation).fact == sentence


# Confidence and limits ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "relation", "confidence"),
    [
        ("I work at Siemens.", "works_at", 0.9),
        ("I visited Norway.", "visited", 0.8),
        ("I bought a boat.", "bought", 0.6),
    ],
)
def test_confidence_follows_what_a_fact_rests_on(say: Say, text: str, relation: str, confidence: float) -> None:
    assert {e.confidence for e in say(text).edges if e.relation == relation} == {confidence}


def test_names_without_a_verb_between_them_co_occur_in_documents_only(extractor: SpacyExtractor, say: Say) -> None:
    edges = read(extractor, "Trips", "Tickets for Berlin and Hamburg.").edges
    assert [(e.source, e.target) for e in edges if e.edge_type == "co_occurrence"] == [("Berlin", "Hamburg")]
    assert say("Tickets for Berlin and Hamburg.").edges == ()


@pytest.mark.parametrize(
    "text",
    [
        "Ich arbeite bei Siemens und wohne in Köln.",
        "Trabajo en Telefónica y vivo en Madrid.",
        "Maya mudé a Sevilla.",
        "Я живу в Москве.",
        "我住在北京。",
    ],
)
def test_another_language_is_left_alone(say: Say, text: str) -> None:
    found = say(text)
    assert (found.entities, found.edges, found.endings) == ((), (), ())
    assert dict(found.dropped) == {"not English": 1}


@pytest.mark.parametrize(
    "text", ["I'm removing my coat.", "We also have muffins.", "I'm a duck!", "Peter needs more pie."]
)
def test_what_people_just_do_or_joke_is_no_fact(say: Say, text: str) -> None:
    assert say.facts(text) == set()


@pytest.mark.parametrize(
    ("text", "facts"),
    [
        ("I love museums. My favorite food is pizza.", set[Triple]()),
        ("It sounds like you had a great day with your sister Anna.", set[Triple]()),
        ("You could ask your boss or your colleagues.", set[Triple]()),
        ("I recommend Dune.", {("Assistant", "recommends", "Dune")}),
        ("I booked a table at Noma yesterday.", {("Assistant", "booked_table_at", "Noma")}),
    ],
)
def test_an_assistant_tells_what_it_did_but_not_what_it_likes_or_guesses(
    extractor: SpacyExtractor, text: str, facts: set[Triple]
) -> None:
    episode = Episode(scope=Scope("t"), text=text, speaker="Assistant", role="assistant", occurred_at=MONDAY)
    assert triples(good(extractor.extract([ExtractionRequest(episode, addressee="Nora")]))) == facts


def test_a_title_is_written_as_it_is(say: Say) -> None:
    assert say.one('I read a book called "Me Before You".', "read").fact == "Nora read a book called Me Before You."


def test_a_town_and_its_country_are_part_and_whole(say: Say) -> None:
    assert ("Lyon", "part_of", "France") in say.facts("I went to Lyon, France.")


CITIES = "Berlin, London, Paris, Madrid, Rome, Oslo, Vienna, Lisbon, Dublin, Prague, Athens, Warsaw and Moscow"


def test_a_message_gives_ten_entities_at_most(say: Say) -> None:
    assert len(say(f"I visited {CITIES}.").entities) == 10


def test_what_the_limits_cut_is_counted(say: Say) -> None:
    assert dict(say(f"I visited {CITIES}.").dropped).keys() == {"edge_limit", "entity_limit"}


def test_every_end_of_a_fact_is_among_the_entities(say: Say) -> None:
    result = say(f"I visited {CITIES}. My sister Anna works at Siemens. I love my dog and I use Python.")
    names = {e.name for e in result.entities}
    assert {name for e in result.edges for name in (e.source, e.target)} <= names


# Documents ----------------------------------------------------------------------------------------


def test_a_pronoun_in_a_document_is_the_person_it_is_about(extractor: SpacyExtractor) -> None:
    text = "Ada Lovelace was an English mathematician. She visited London in 1841."
    assert ("Ada Lovelace", "visited", "London") in triples(read(extractor, "Ada Lovelace", text))


def test_it_in_a_document_is_the_thing_it_is_about(extractor: SpacyExtractor) -> None:
    text = "Polar Notes is a quarterly journal. It is published by Oxford University Press."
    assert ("Polar Notes", "published_by", "Oxford University Press") in triples(read(extractor, "Polar Notes", text))


def test_the_noun_that_a_document_gives_its_subject_stands_for_it(extractor: SpacyExtractor) -> None:
    text = "Polar Notes is a quarterly journal. The journal covers Antarctica."
    assert ("Polar Notes", "covers", "Antarctica") in triples(read(extractor, "Polar Notes", text))


def test_a_document_gives_names_and_no_facts_unless_asked_for() -> None:
    text = "Ada Lovelace was an English mathematician. She visited London in 1841."
    found = read(SpacyExtractor(), "Ada Lovelace", text)
    assert (found.edges, found.endings) == ((), ())
    assert {"Ada Lovelace", "London"} <= {entity.name for entity in found.entities}


MAIL: dict[str, Scalar] = {"subject": "News", "to": "Walter", "file": "inbox.mbox", "line": 1}


def test_a_mail_gives_names_and_no_facts_unless_asked_for() -> None:
    text = "I moved to London. My brother Charles is a teacher."
    mail = Episode(scope=Scope("t"), text=text, speaker="Nora", occurred_at=MONDAY, metadata=MAIL)
    (names,), (facts,) = (
        one.extract([ExtractionRequest(mail)]) for one in (SpacyExtractor(), SpacyExtractor(document_facts=True))
    )
    assert isinstance(names, Extraction)
    assert isinstance(facts, Extraction)
    assert (names.edges, names.endings) == ((), ())
    assert {"London", "Charles"} <= {entity.name for entity in names.entities}
    assert {edge.relation for edge in facts.edges} >= {"lives_in", "has_brother"}


@pytest.mark.parametrize("metadata", [{"subject": "hr"}, {"subject": "hr", "file": "chat.csv", "line": 2}])
def test_a_message_about_a_subject_is_no_mail(metadata: dict[str, Scalar]) -> None:
    turn = Episode(scope=Scope("t"), text="I work at Initech.", speaker="Maya", occurred_at=MONDAY, metadata=metadata)
    assert triples(good(SpacyExtractor().extract([ExtractionRequest(turn)]))) == {("Maya", "works_at", "Initech")}


def test_names_of_a_long_document_are_read_from_all_its_parts() -> None:
    filler = "It was a long winter and nothing happened at all. " * 1_000
    found = read(SpacyExtractor(), "Journey", f"Ada Lovelace visited London. {filler} Charles Babbage lived in Exeter.")
    assert "Charles Babbage" in {entity.name for entity in found.entities}


def test_i_in_a_document_is_nobody(extractor: SpacyExtractor) -> None:
    assert read(extractor, "Diary", "I moved to Berlin.").edges == ()


def test_a_document_counts_only_with_dates_that_name_a_year(extractor: SpacyExtractor) -> None:
    edges = read(extractor, "Ada Lovelace", "Ada Lovelace visited London in March.").edges
    assert [e.valid_from for e in edges] == [None]


# The extractor ------------------------------------------------------------------------------------


def test_results_come_in_the_order_of_the_requests(extractor: SpacyExtractor) -> None:
    texts = ["I visited Norway.", "", "I work at Siemens.", "```I live in Rome.```"]
    requests = [ExtractionRequest(Episode(scope=Scope("t"), text=t, speaker="Nora", occurred_at=MONDAY)) for t in texts]
    results = extractor.extract(requests)
    assert [[e.relation for e in r.edges] for r in results if isinstance(r, Extraction)] == [
        ["visited"],
        [],
        ["works_at"],
        [],
    ]


@pytest.mark.parametrize(
    "text",
    [
        "!" * 50_000,
        "a" * 100_000,
        "and " * 1_000,
        "[" * 50_000,
        "[a:" * 20_000,
        "I said " * 500,
        "\u202e\x00\ud800 I go",
    ],
)
def test_odd_text_gives_an_extraction_in_bounded_time(say: Say, text: str) -> None:
    assert len(say(text).edges) <= 15


def test_threads_share_an_extractor(extractor: SpacyExtractor) -> None:
    request = ExtractionRequest(Episode(scope=Scope("t"), text="I visited Norway.", speaker="Nora", occurred_at=MONDAY))
    found: list[set[Triple]] = []

    def work() -> None:
        found.extend(triples(good(extractor.extract([request]))) for _ in range(5))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [{("Nora", "visited", "Norway")}] * 20


def test_a_model_that_is_absent_is_named() -> None:
    with pytest.raises(InvalidInput, match="no_such_model"):
        SpacyExtractor("no_such_model").extract([])


def test_absent_spacy_is_an_error_that_names_the_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda _name: None)  # pyright: ignore[reportUnknownLambdaType, reportUnknownArgumentType]
    with pytest.raises(MissingExtra, match=r"graphmem\[spacy\]"):
        SpacyExtractor().extract([])


def test_absent_spacy_is_not_available(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda _name: None)  # pyright: ignore[reportUnknownLambdaType, reportUnknownArgumentType]
    assert not spacy_available()


def test_a_space_that_heads_a_sentence_has_no_governor() -> None:
    from spacy.tokens import Doc
    from spacy.vocab import Vocab

    doc = Doc(
        Vocab(), words=[" ", "but"], spaces=[False, False], heads=[0, 0], deps=["dep", "cc"], pos=["SPACE", "CCONJ"]
    )
    assert governor(doc[1]) == doc[0]


ARTICLE = "The review by Lena Frost says that it pays for itself. " * 20


def test_a_mail_gives_facts_of_its_sender_and_of_whom_the_sender_knows(extractor: SpacyExtractor) -> None:
    text = "My sister Anna works at Siemens. Peter Holm, CEO of Initech, visited Rome. I use vim."
    mail = Episode(scope=Scope("t"), text=text, speaker="Nora", occurred_at=MONDAY, metadata=MAIL)
    found = good(extractor.extract([ExtractionRequest(mail, addressee="Walter")]))
    assert triples(found) == {("Nora", "has_sister", "Anna"), ("Anna", "works_at", "Siemens"), ("Nora", "uses", "vim")}
    assert {"Peter Holm", "Initech", "Rome"} <= {e.name for e in found.entities}


def test_you_and_we_of_a_long_text_are_anybody(say: Say) -> None:
    assert say.facts("You live in Chicago. We collect stamps.") == {
        ("Walter", "lives_in", "Chicago"),
        ("Nora", "collects", "stamps"),
    }
    assert say.facts(f"{ARTICLE} You live in Chicago. We collect stamps. Our database is Postgres. I play chess.") == {
        ("Nora", "plays", "chess")
    }


def test_we_among_several_is_the_speaker_only_of_families_names_and_what_happened(extractor: SpacyExtractor) -> None:
    before = [Episode(scope=Scope("t"), text="Hi.", speaker=name, occurred_at=MONDAY) for name in ("Ida", "Tom")]
    text = "We collect stamps. We use Postgres. We have two cats. I play chess."
    episode = Episode(scope=Scope("t"), text=text, speaker="Nora", occurred_at=MONDAY)
    found = good(extractor.extract([ExtractionRequest(episode, tuple(before), addressee="Ida")]))
    assert triples(found) == {("Nora", "uses", "Postgres"), ("Nora", "has", "cats"), ("Nora", "plays", "chess")}


@pytest.mark.parametrize(
    "text",
    [
        "Nah, not so much.",
        "There's the much-liked Blue Jays Vs Astros game at Rogers Centre on March 13th at 6:30 pm.",
        "I put it into /etc/X11/xorg.conf yesterday.",
        "A line by line comparision for 200k files would be total overkill.",
        'Tom said "Excuse me, hello Miss" there.',
        "My favorite teacher was Mrs…",
        "Seems that Ubuntu is a different animal than Gentoo or Debian kernel.",
    ],
)
def test_what_is_written_like_a_name_is_no_entity(say: Say, text: str) -> None:
    allowed = {"Tom", "Nora", "Walter", "Ubuntu", "Rogers Centre", "Blue Jays Vs Astros"}
    assert {e.name for e in say(text).entities} <= allowed


def test_a_project_is_no_person(say: Say) -> None:
    assert {e.name: e.entity_type for e in say("Project Heron is late.").entities} == {"Project Heron": "project"}


def test_a_key_in_music_is_no_software(say: Say) -> None:
    assert [e.name for e in say("We played the sonata in C# minor.").entities] == ["Nora", "sonata"]


TYPES = [
    ("Phoebe, you have to try this.", "Phoebe", "person"),
    ("I have to ask Claudia about the room.", "Claudia", "person"),
    ("We search around Anaheim.", "Anaheim", "location"),
    ("We stayed in Chefchaouen.", "Chefchaouen", "location"),
    ("We couldn't find Nvidia.", "Nvidia", "organization"),
    ("I jump on Instagram before I sleep.", "Instagram", "technology"),
    ("The printer has a new NIC and NTFS is slow.", "NTFS", "concept"),
    ("Aunt Monica called.", "Aunt Monica", "person"),
    ("I worked for NASA.", "NASA", "organization"),
    ("I use .NET at work.", ".NET", "technology"),
    ("I use C# at work.", "C#", "technology"),
]


@pytest.mark.parametrize(("text", "name", "kind"), TYPES)
def test_types_of_names_rest_on_lists_or_on_the_sentence(say: Say, text: str, name: str, kind: str) -> None:
    assert {e.name: e.entity_type for e in say(text).entities}.get(name) == kind


@pytest.mark.parametrize("text", ["Noooo way!", "Lemme see that.", "It was 80 Fahrenheit today."])
def test_exclamations_and_units_are_no_names(say: Say, text: str) -> None:
    assert not say(text).entities


def test_names_end_before_the_words_of_an_address(say: Say) -> None:
    names = {e.name for e in say("Yeah Chandler, that's fine. Look Ross, I tried.").entities}
    assert names <= {"Chandler", "Ross"}
    assert names


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("Let's throw out El Salvador's, as an example.", "El Salvador"),
        ("He told Tina Turner's, you know.", "Tina Turner"),
        ("Gee Robert, that's fine.", "Robert"),
        ("We heard of bin Salman.", "bin Salman"),
        ("I was just reading this Harvard Business Review article.", "Harvard Business Review"),
    ],
)
def test_names_are_without_the_words_around_them(say: Say, text: str, name: str) -> None:
    assert [e.name for e in say(text).entities] == [name]


@pytest.mark.parametrize("name", "Ravi Aisha Yusuf Hiro Sven Ines Kasia Kwame Layla Elif Jonas Chidi".split())
def test_given_names_of_many_languages_are_names_of_persons(say: Say, name: str) -> None:
    assert (name, "lives_in", "Antwerp") in say.facts(f"{name} lives in Antwerp.")
    assert (name, "works_at", "Siemens") in say.facts(f"{name} works at Siemens.")


PRODUCTS = [
    ("The guest compared it to WordPress.", "WordPress", "technology"),
    ("People come from Shopify.", "Shopify", "organization"),
    ("We moved away from SvelteKit.", "SvelteKit", "technology"),
    ("We looked at Coinbase and Airbnb last week.", "Airbnb", "organization"),
    ("I read about Grafana Labs today.", "Grafana Labs", "organization"),
    ("An update fixes the XSS bug.", "XSS", "concept"),
    ("Hello, I'm Ujjwal.", "Ujjwal", "person"),
    ("They asked the Security Council about it.", "Security Council", "organization"),
    ("I don't understand why Adrienne is attracted to Victor.", "Victor", "person"),
    ("I am scared of Ghost Time.", "Ghost Time", "concept"),
    ("We met the Kurdish Ubuntu Team.", "Kurdish Ubuntu Team", "organization"),
    ("We are skiing in Aspen this year.", "Aspen", "location"),
    ("Regarding Mike, I agree with him.", "Mike", "person"),
    ("He changed something in Sound Preferences.", "Sound Preferences", "technology"),
    ("They met in the Richard Stallman days.", "Richard Stallman", "person"),
    ("Do you think that Susan person is late?", "Susan", "person"),
    ("I saw Richard Stallman there.", "Richard Stallman", "person"),
    ("Her name is Shadow!", "Shadow", "concept"),
    ("We visited the Eiffel Tower.", "Eiffel Tower", "location"),
]


@pytest.mark.parametrize(("text", "name", "kind"), PRODUCTS)
def test_types_of_products_and_firms(say: Say, text: str, name: str, kind: str) -> None:
    assert {e.name: e.entity_type for e in say(text).entities}.get(name) == kind


@pytest.mark.parametrize(
    "text",
    [
        "You need to save it on a Customer as a Card.",
        "It uses isArray and Date.prototype.getDay here.",
        "What is the point of the K and S prefix?",
        "It shows en-GB here.",
        "How does one wrap it in a Rc<RefCell<Self>> here?",
        "Did you set the {CHECKOUT_SESSION_ID} there?",
        "It is in the Repository.",
        "Pre-Covid he was on the road.",
        "Whoah, hockey was a mistake!",
        "CANE YOU HELP ME INSTALL THIS",
    ],
)
def test_words_and_code_are_no_names(say: Say, text: str) -> None:
    assert not {e.name for e in say(text).entities} - {"Nora", "Walter"}


@pytest.mark.parametrize(
    "text",
    ["I enjoyed this blog post.", "I gave him some medicine.", "I gave you the exact lines.", "I used the humidifier."],
)
def test_what_is_at_hand_is_no_fact(say: Say, text: str) -> None:
    assert not say.facts(text)


def test_what_somebody_adopted_or_uses_is_a_fact(say: Say) -> None:
    assert say.facts("I adopted this cute puppy last week. I use the green lamp every day.") == {
        ("Nora", "adopted", "puppy"),
        ("Nora", "uses", "green lamp"),
    }
