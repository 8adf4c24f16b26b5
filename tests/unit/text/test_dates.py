"""English dates, absolute and relative."""

from datetime import UTC, datetime, timedelta, timezone

import pytest

from graphmem.errors import InvalidInput
from graphmem.text.dates import DateSpan, dates_and_periods, day_ago, find_dates, holidays, periods_to, written

MONDAY = datetime(2023, 5, 8, 13, 56, tzinfo=UTC)


def only(text: str, reference: datetime = MONDAY, *, future: bool = False) -> DateSpan:
    found = find_dates(text, reference, future=future)
    assert len(found) == 1, found
    return found[0]


@pytest.mark.parametrize(
    ("text", "begin", "grain"),
    [
        ("I saw it today", "2023-05-08", "day"),
        ("I saw it yesterday", "2023-05-07", "day"),
        ("we leave tomorrow", "2023-05-09", "day"),
        ("on the first of May", "2023-05-01", "day"),
        ("the third of March 2021", "2021-03-03", "day"),
        ("the day before yesterday", "2023-05-06", "day"),
        ("last night was loud", "2023-05-07", "day"),
        ("this morning", "2023-05-08", "day"),
        ("last Friday", "2023-05-05", "day"),
        ("last Monday", "2023-05-01", "day"),
        ("next Monday", "2023-05-15", "day"),
        ("this past Tuesday", "2023-05-02", "day"),
        ("last week", "2023-05-01", "week"),
        ("on Wednesday last week", "2023-05-03", "day"),
        ("Sunday night of last week", "2023-05-07", "day"),
        ("Friday this week", "2023-05-12", "day"),
        ("Friday, next week", "2023-05-19", "day"),
        ("last week on Monday", "2023-05-01", "day"),
        ("next week Tuesday", "2023-05-16", "day"),
        ("on Monday two weeks ago", "2023-04-24", "week"),
        ("on a Monday in March 2021", "2021-03-01", "month"),
        ("one Monday last year", "2022-01-01", "year"),
        ("next week", "2023-05-15", "week"),
        ("last weekend", "2023-05-06", "weekend"),
        ("this weekend", "2023-05-13", "weekend"),
        ("last month", "2023-04-01", "month"),
        ("next month", "2023-06-01", "month"),
        ("last year", "2022-01-01", "year"),
        ("we met in Sept. 2020", "2020-09-01", "month"),
        ("last summer", "2022-06-01", "season"),
        ("this summer", "2023-06-01", "season"),
        ("3 days ago", "2023-05-05", "day"),
        ("two weeks ago", "2023-04-24", "week"),
        ("a couple of months ago", "2023-03-01", "month"),
        ("ten years ago", "2013-01-01", "year"),
        ("twenty years ago", "2003-01-01", "year"),
        ("fifteen days ago", "2023-04-23", "day"),
        ("twenty five years ago", "1998-01-01", "year"),
        ("about ninety-nine years ago", "1924-01-01", "year"),
        ("in block 7 two years ago", "2021-01-01", "year"),
        ("two weekends ago", "2023-04-29", "weekend"),
        ("in two weeks", "2023-05-22", "week"),
        ("five days from now", "2023-05-13", "day"),
        ("on 5 May 2023", "2023-05-05", "day"),
        ("on the 5th of May, 2021", "2021-05-05", "day"),
        ("May 5th, 2021", "2021-05-05", "day"),
        ("2023-05-05", "2023-05-05", "day"),
        ("back in June 2019", "2019-06-01", "month"),
        ("since 2016", "2016-01-01", "year"),
        ("in the 1990s", "1990-01-01", "decade"),
        ("in the '90s", "1990-01-01", "decade"),
        ("since the mid-’80s", "1980-01-01", "decade"),
        ("in mid-March", "2023-03-01", "month"),
        ("we met may 2", "2023-05-02", "day"),
        ("may 2nd people came", "2023-05-02", "day"),
        ("on may 2 people came", "2023-05-02", "day"),
        ("see you march 10 and don't be late", "2023-03-10", "day"),
        ("early-2020", "2020-01-01", "year"),
        ("mid-March 2021", "2021-03-01", "month"),
    ],
)
def test_a_date_is_read_against_the_reference(text: str, begin: str, grain: str) -> None:
    span = only(text)
    assert (span.begin.date().isoformat(), span.grain) == (begin, grain)


@pytest.mark.parametrize(
    "text",
    [
        "May I come in?",
        "I march in a band",
        "march 10 miles",
        "we march 10",
        "march 10 to 12 miles",
        "may 2 people join?",
        "you may 2",
        "may 2024 be good",
        "he is 10 years old",
        "we sat down",
        "for 3 years",
        "2.5 years ago",
        "2,5 years from now",
        "1,000 years ago",
        "1 000 years ago",
        "1 500 years ago",
        "a hundred and twenty years ago",
        "a hundred five years ago",
        "3/4/2023",
        "31 February",
    ],
)
def test_words_that_only_look_like_dates_give_none(text: str) -> None:
    assert find_dates(text, MONDAY) == []


def test_a_bare_month_is_the_latest_one_by_default() -> None:
    assert only("in July").begin.year == 2022


def test_a_bare_month_is_the_coming_one_when_the_future_is_meant() -> None:
    assert only("in July", future=True).begin.year == 2023


def test_a_bare_weekday_is_the_coming_one_when_the_future_is_meant() -> None:
    assert only("on Friday", future=True).begin.date().isoformat() == "2023-05-12"


def test_the_span_leaves_out_the_preposition() -> None:
    text = "I have worked there since 2016."
    span = only(text)
    assert text[span.start : span.end] == span.text == "2016"


def test_several_dates_come_in_the_order_of_the_text() -> None:
    assert [s.begin.year for s in find_dates("from 2010 to 2015", MONDAY)] == [2010, 2015]


def test_a_span_covers_its_whole_unit() -> None:
    span = only("last month")
    assert (span.begin.date().isoformat(), span.until.date().isoformat()) == ("2023-04-01", "2023-05-01")


def test_the_time_zone_is_that_of_the_reference() -> None:
    zone = timezone(timedelta(hours=-7))
    assert only("yesterday", datetime(2023, 5, 8, 23, 0, tzinfo=zone)).begin == datetime(2023, 5, 7, tzinfo=zone)


def test_the_end_of_a_long_month_counts_back_into_a_short_one() -> None:
    assert only("three months ago", datetime(2023, 5, 31, tzinfo=UTC)).begin.month == 2


@pytest.mark.parametrize(
    ("text", "days"),
    [
        ("from 3 March until the 9th", ["2023-03-03", "2023-03-09"]),
        ("until 28 March, then back by the 5th", ["2023-03-28", "2023-04-05"]),
        ("I came on 3 March. See you on the 9th", ["2023-03-03", "2023-04-09"]),
        ("born on 3 March 1980, back on the 5th", ["1980-03-03", "2023-05-05"]),
    ],
)
def test_the_day_of_a_month_follows_a_date_of_its_sentence(text: str, days: list[str]) -> None:
    assert [f"{span.begin:%Y-%m-%d}" for span in find_dates(text, MONDAY)] == days


@pytest.mark.parametrize("text", ["in ſeptember", "on Frıday", "last wee\u212a", "two monthſ ago", "İn ſummer of 2020"])
def test_letters_that_a_pattern_takes_for_ascii_are_read_as_such(text: str) -> None:
    plain = text.translate(str.maketrans("ſıİ\u212a", "siIK"))
    assert [(s.begin, s.grain) for s in find_dates(text, MONDAY)] == [
        (s.begin, s.grain) for s in find_dates(plain, MONDAY)
    ]
    assert all(span.text == text[span.start : span.end] for span in find_dates(text, MONDAY))


def test_a_date_out_of_the_calendar_is_left_out() -> None:
    assert find_dates("in 900 decades", MONDAY) == []


def test_a_naive_reference_is_an_error() -> None:
    with pytest.raises(InvalidInput, match="naive"):
        find_dates("yesterday", datetime(2023, 5, 8))  # noqa: DTZ001 - what is tested


def test_a_long_text_without_dates_is_read_in_linear_time() -> None:
    assert find_dates("in " * 20_000 + " " * 50_000 + "12 " * 20_000, MONDAY) == []


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("yesterday", "on 7 May 2023"),
        ("last week", "in the week of 1 May 2023"),
        ("last weekend", "on the weekend of 6 May 2023"),
        ("in March", "in March 2023"),
        ("last summer", "in summer 2022"),
        ("in 2019", "in 2019"),
        ("in the 1990s", "in the 1990s"),
    ],
)
def test_a_date_is_written_so_that_it_needs_no_context(text: str, words: str) -> None:
    span = only(text)
    assert written(span.begin, span.grain) == words


@pytest.mark.parametrize(
    ("count", "unit", "day"),
    [
        ("two", "year", "2021-05-08"),
        ("6", "month", "2022-11-08"),
        ("a", "decade", "2013-05-08"),
        ("three", "week", "2023-04-17"),
        ("ten", "day", "2023-04-28"),
    ],
)
def test_a_duration_is_counted_back_to_the_day(count: str, unit: str, day: str) -> None:
    begin = day_ago(count, unit, MONDAY)
    assert begin is not None
    assert begin.date().isoformat() == day


def test_a_day_that_its_month_lacks_is_the_last_of_the_month() -> None:
    begin = day_ago("one", "month", datetime(2023, 3, 31, tzinfo=UTC))
    assert begin == datetime(2023, 2, 28, tzinfo=UTC)


def test_before_the_year_one_there_is_no_day() -> None:
    assert day_ago("999", "decade", MONDAY) is None
    assert periods_to("the last 999 weeks", datetime(10, 1, 1, tzinfo=UTC)) == []


@pytest.mark.parametrize(
    ("text", "begin", "until", "grain"),
    [
        ("this winter", "2022-12-01", "2023-03-01", "season"),
        ("this spring", "2023-03-01", "2023-06-01", "season"),
        ("half a year ago", "2022-07-01", "2022-08-01", "month"),
        ("half a month ago", "2023-01-16", "2023-01-23", "week"),
        ("in the summer of 2019", "2019-06-01", "2019-09-01", "season"),
        ("in summer 2019", "2019-06-01", "2019-09-01", "season"),
        ("in Q2 2024", "2024-04-01", "2024-07-01", "quarter"),
        ("in the fourth quarter of 2021", "2021-10-01", "2022-01-01", "quarter"),
        ("in '98", "1998-01-01", "1999-01-01", "year"),
        ("since '19", "2019-01-01", "2020-01-01", "year"),
        ("25.12.2024", "2024-12-25", "2024-12-26", "day"),
        ("on 12/25/2024", "2024-12-25", "2024-12-26", "day"),
        ("on 5/5/2021", "2021-05-05", "2021-05-06", "day"),
        ("on 2021/05/15", "2021-05-15", "2021-05-16", "day"),
        ("2021-05-15T10:00Z", "2021-05-15", "2021-05-16", "day"),
        ("at 2021-05-15T10:00:00.123+02:00", "2021-05-15", "2021-05-16", "day"),
        ("on 12 May '19", "2019-05-12", "2019-05-13", "day"),
        ("on Jan 3, ’99", "1999-01-03", "1999-01-04", "day"),
        ("in May '19", "2019-05-01", "2019-06-01", "month"),
        ("in May '24", "2024-05-01", "2024-06-01", "month"),
        ("in January of 2018", "2018-01-01", "2018-02-01", "month"),
        ("on 5 January at 10", "2023-01-05", "2023-01-06", "day"),
        ("on 5 January 10:30", "2023-01-05", "2023-01-06", "day"),
        ("on January 5, 10 am", "2023-01-05", "2023-01-06", "day"),
        ("on January 5, 20 people came", "2023-01-05", "2023-01-06", "day"),
    ],
)
def test_seasons_quarters_halves_and_short_forms(text: str, begin: str, until: str, grain: str) -> None:
    span = only(text, datetime(2023, 1, 31, 12, tzinfo=UTC))
    assert (span.begin.date().isoformat(), span.until.date().isoformat(), span.grain) == (begin, until, grain)


@pytest.mark.parametrize(
    ("text", "latest", "following"),
    [
        ("on the 3rd", "2023-05-03", "2023-06-03"),
        ("until the 8th.", "2023-05-08", "2023-05-08"),
        ("on the 31st and later", "2023-03-31", "2023-05-31"),
        ("Friday the 5th", "2023-05-05", "2024-01-05"),
        ("on Sat 6th", "2023-05-06", "2024-01-06"),
        ("Friday the 13th", "2023-01-13", "2023-10-13"),
        ("Friday 5 May", "2023-05-05", "2024-05-05"),
        ("on Friday, May 5", "2023-05-05", "2024-05-05"),
    ],
)
def test_day_of_a_month_that_is_not_named(text: str, latest: str, following: str) -> None:
    assert only(text).begin.date().isoformat() == latest
    assert only(text, future=True).begin.date().isoformat() == following


def test_this_winter_is_the_coming_one_once_the_last_is_over() -> None:
    assert only("this winter").begin.date().isoformat() == "2023-12-01"


@pytest.mark.parametrize(
    "text",
    [
        "half a decade ago",
        "half a year from now",
        "the Friday before last",
        "the Monday after next",
        "the Monday of the following week",
        "on Friday week",
        "on a Monday",
        "on the 13th floor",
        "the 13th",
        "on Friday the 32nd",
        "a week from Monday",
        "two weeks from tomorrow",
        "three days after last Friday",
        "two years before 2020",
        "the year after 2020",
        "13.13.2024",
        "3.4.2023",
        "2019/10",
        "3 May 85",
        "On 3 Jan 24",
        "on May 3, 85",
        "5th May 2019-2021",
        "by March 2020/21",
        "on March 30/31 2021",
        "on 14 and 15 May 2021",
        "from the 3rd to the 5th of May 2021",
        "May 14 and 15, 2021",
        "May 13, 14 and 15, 2021",
        "May 5 to 7 2021",
        "May 5 – 7, 2021",
    ],
)
def test_a_part_of_a_date_is_no_date(text: str) -> None:
    assert find_dates(text, MONDAY) == []


@pytest.mark.parametrize(
    "text", ["for five years from 2010", "in the years before 2020", "a year ago", "on Friday at 5"]
)
def test_a_date_beside_a_number_is_one(text: str) -> None:
    only(text)


def test_a_quarter_is_written_with_its_year() -> None:
    assert written(datetime(2024, 4, 1, tzinfo=UTC), "quarter") == "in Q2 2024"


@pytest.mark.parametrize(
    ("text", "begin", "grain"),
    [
        ("in the last two weeks", "2023-04-24", "week"),
        ("over the past 3 months", "2023-02-08", "month"),
        ("the past few days", "2023-05-05", "day"),
        ("the previous ten years", "2013-05-08", "year"),
        ("the past twenty years", "2003-05-08", "year"),
    ],
)
def test_a_period_lasts_until_the_reference(text: str, begin: str, grain: str) -> None:
    [span] = periods_to(text, MONDAY)
    assert (span.begin.date().isoformat(), span.until, span.grain) == (begin, MONDAY, grain)
    assert text.endswith(span.text)
    assert find_dates(text, MONDAY) == []


@pytest.mark.parametrize("text", ["last week", "the last of two weeks", "for two weeks", "the past 999 decades"])
def test_what_is_no_period_up_to_now_gives_none(text: str) -> None:
    assert periods_to(text, MONDAY) == []


@pytest.mark.parametrize(
    "text",
    [
        "Zed moved to 1600 Pennsylvania Avenue",
        "they opened up to 1500 stores",
        "Nina uses Redis in 2000 services",
        "Nina runs it in 1024 containers",
        "the plan is limited to 2000",
        "the plan is limited to 2000 requests",
        "we moved from 1200 to 1500 servers",
        "we moved from 1900 to 2100 servers",
        "the load grew from 1900 to 2000",
        "a story of 2000 words",
        "a total of 2000",
        "it costs around 1500",
        "around 1900 employees",
        "to 2000.50",
        "to 2000,5",
        "to 2000%",
        "to 2000 000 people",
        "by 1500 EUR",
        "increased by 2000",
        "after 1500 days at Umbrella",
        "In 2048 bytes we store it",
        "in 1200 BC",
    ],
)
def test_a_number_of_things_is_no_year(text: str) -> None:
    assert find_dates(text, MONDAY) == []


@pytest.mark.parametrize(
    ("text", "years"),
    [
        ("in 2020 I moved", [2020]),
        ("In 2019 Maria joined Acme", [2019]),
        ("in 2019 maria joined acme", [2019]),
        ("After 2015 Maria left", [2015]),
        ("In 1492 Columbus sailed", [1492]),
        ("I know that since 2015 Anna works there", [2015]),
        ("since 2015 she works there", [2015]),
        ("I worked there from 2015 to 2019.", [2015, 2019]),
        ("From 2015 to 2019 Maria worked at Acme", [2015, 2019]),
        ("the war lasted from 1618 to 1648", [1618, 1648]),
        ("until 2021", [2021]),
        ("she was born in 2000.", [2000]),
        ("by 2000 he had moved", [2000]),
        ("in the season of 2019/20", [2019]),
        ("1789 to 1791", [1791]),
        ("it dates back to 1412", [1412]),
        ("the Act of 1791.", [1791]),
        ("we built it in 1835 using wood", [1835]),
        ("it rose by 30% from 1990 to 2020", [1990, 2020]),
        ("in 2015 $28,781", [2015]),
        ("we moved the wedding to 2025", [2025]),
        ("my trip in 2019 changed my life", [2019]),
        ("it was founded in 2003 by Bill", [2003]),
    ],
)
def test_a_year_is_told_from_a_number_by_the_words_around_it(text: str, years: list[int]) -> None:
    assert [span.begin.year for span in find_dates(text, MONDAY)] == years


@pytest.mark.parametrize(
    ("text", "begins"),
    [
        ("from March to June 2019", ["2019-03-01", "2019-06-01"]),
        ("from early March until late June of 2019", ["2019-03-01", "2019-06-01"]),
        ("from January 3 to March 10, 2021", ["2021-01-03", "2021-03-10"]),
        ("from May 1st to the 3rd of June '21", ["2021-05-01", "2021-06-03"]),
        ("from Monday, March 4 – Friday, June 7, 2019", ["2019-03-04", "2019-06-07"]),
        ("from November to February 2020", ["2019-11-01", "2020-02-01"]),
        ("between March and June 2019", ["2019-03-01", "2019-06-01"]),
        ("between November 3 and 5 March 2020", ["2019-11-03", "2020-03-05"]),
        ("in March, April and May 2019", ["2019-03-01", "2019-05-01"]),
        ("in May or June 2019", ["2019-05-01", "2019-06-01"]),
        ("from March to June and August 2019", ["2019-03-01", "2019-08-01"]),
        ("in December and January 2020", ["2020-01-01"]),
        ("We left in March. June 2019 was fine", ["2023-03-01", "2019-06-01"]),
        ("between March and June", []),
    ],
)
def test_a_year_told_once_counts_for_all_joined_dates(text: str, begins: list[str]) -> None:
    assert [span.begin.date().isoformat() for span in find_dates(text, MONDAY)] == begins


def test_a_day_that_the_shared_year_lacks_is_left_out() -> None:
    assert only("from 29 February to 3 March 2019", datetime(2024, 5, 1, tzinfo=UTC)).text == "3 March 2019"


@pytest.mark.parametrize(
    ("question", "words", "begin", "days"),
    [
        ("What did I do on Valentine's Day?", "Valentine's Day", (2026, 2, 14), 1),
        ("did I go out on valentines day", "valentines day", (2026, 2, 14), 1),
        ("Where was I on St. Patrick's Day?", "St. Patrick's Day", (2025, 3, 17), 1),
        ("What happened over Christmas?", "Christmas", (2025, 12, 24), 3),
        ("What did I get for Christmas?", "Christmas", (2025, 12, 24), 3),
        ("Where did we go over Christmas break?", "Christmas", (2025, 12, 24), 3),
        ("Who came on Christmas Eve 2023?", "Christmas Eve 2023", (2023, 12, 24), 1),
        ("Who came at Christmas last year?", "Christmas last year", (2025, 12, 24), 3),
        ("What did she wear last Halloween?", "last Halloween", (2025, 10, 31), 1),
        ("What did she do on New Year's Eve?", "New Year's Eve", (2025, 12, 31), 1),
        ("What did she do on New Year’s?", "New Year’s", (2025, 12, 31), 2),
        ("Where will she be at Christmas?", "Christmas", (2026, 12, 24), 3),
        ("What happens next Halloween?", "next Halloween", (2026, 10, 31), 1),
        ("Did it rain since Christmas?", "Christmas", (2025, 12, 24), 3),
        ("What were we going to do over Christmas?", "Christmas", (2025, 12, 24), 3),
        ("What had she planned for Halloween?", "Halloween", (2025, 10, 31), 1),
        ("What didn't Ida and Tom plan for Halloween?", "Halloween", (2025, 10, 31), 1),
        ("Did she say what she is going to do at Christmas?", "Christmas", (2026, 12, 24), 3),
        ("I was in Rome. What is Ida going to do at Christmas?", "Christmas", (2026, 12, 24), 3),
        ("Did you hear what she will wear on Halloween?", "Halloween", (2026, 10, 31), 1),
        ("What have we planned for Halloween?", "Halloween", (2026, 10, 31), 1),
        ("Can you tell me what we ate at Christmas?", "Christmas", (2025, 12, 24), 3),
        ("Will you please remind me who came at Christmas?", "Christmas", (2025, 12, 24), 3),
        ("Don't you remember who came at Christmas?", "Christmas", (2025, 12, 24), 3),
        ("Is it true that Ida came for Christmas?", "Christmas", (2025, 12, 24), 3),
        ("Can you tell me where we will be at Christmas?", "Christmas", (2026, 12, 24), 3),
        ("What did he do on April Fool's Day?", "April Fool's Day", (2025, 4, 1), 1),
        ("What did he do on April Fools’ Day?", "April Fools’ Day", (2025, 4, 1), 1),
    ],
)
def test_holidays_of_questions(question: str, words: str, begin: tuple[int, int, int], days: int) -> None:
    [span] = dates_and_periods(question, datetime(2026, 2, 20, 9, tzinfo=UTC))
    since = datetime(*begin, tzinfo=UTC)
    assert (span.text, span.begin, span.until) == (words, since, since + timedelta(days=days))
    assert question[span.start : span.end] == words


@pytest.mark.parametrize(
    "text",
    [
        "Who likes Christmas?",
        "What does she cook at Christmas?",
        "Can you tell me what she does at Christmas?",
        "Can you cook at Christmas?",
        "Who was at the Christmas market?",
        "What did I buy for the Halloween party?",
        "Where was I two days after Christmas?",
        "Merry Christmas! What did I buy?",
        "Did I see Nightmare before Christmasville?",
        "Who won on Boxing Days?",
    ],
)
def test_words_that_are_no_holiday_of_a_year(text: str) -> None:
    assert dates_and_periods(text, datetime(2026, 2, 20, tzinfo=UTC)) == []


def test_no_holiday_lies_outside_of_the_calendar() -> None:
    assert holidays("What did I do on Christmas Eve?", datetime(1, 1, 1, tzinfo=UTC)) == []
    assert holidays("Where will I be next New Year's Eve?", datetime(9999, 12, 31, tzinfo=UTC)) == []
