"""Patterns of English dates, and of the words beside a date that make it another one or none."""

from __future__ import annotations

import re

MONTHS = ("january february march april may june july august september october november december").split()
WEEKDAYS = "monday tuesday wednesday thursday friday saturday sunday".split()
SEASONS = {"spring": 3, "summer": 6, "autumn": 9, "fall": 9, "winter": 12}
TENS = "twenty thirty forty fifty sixty seventy eighty ninety".split()
NUMBERS = {
    word: number
    for number, words in enumerate(
        "a|an|one two|couple|couple_of three|few four five six seven eight nine ten eleven twelve thirteen fourteen "
        "fifteen sixteen seventeen eighteen nineteen".split(),
        1,
    )
    for word in words.split("|")
} | {word: 10 * number for number, word in enumerate(TENS, 2)}

# the look-aheads for first letters only speed up matching: non-dates fail at once
_MONTH = (
    r"(?=[adfjmnos][aceopu])(?:jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|"
    r"sept?(?:ember)?|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?)\.?"
)
WEEKDAY = (
    r"(?=[fmstw])(?:mon(?:day)?|tue(?:s(?:day)?)?|wed(?:nesday)?|thu(?:r(?:s(?:day)?)?)?|fri(?:day)?|sat(?:urday)?|"
    r"sun(?:day)?)"
)
_FULL_WEEKDAY = r"(?=[fmstw])(?:mon|tues|wednes|thurs|fri|satur|sun)day"
_COUNT = (
    r"(?=[aefnost\d])(?:[1-9]\d{0,2}|an?(?:\s+(?=[cf])(?:few|couple(?:\s+of|))|)|"
    r"(?=[efnost])(?:(?:twen|thir|for|fif|six|seven|eigh|nine)ty(?:[\s-](?:one|two|three|four|five|six|seven|eight|nine)"
    r"|)|(?:thir|four|fif|six|seven|eigh|nine)teen|one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|few))"
)
_UNIT = r"(?=[dhmwy])(?:minute|hour|day|week(?:end)?|month|year|decade)s?"
_YEAR = r"(?:1[0-9]|20)\d\d"
_ANY_YEAR = rf"(?:{_YEAR}(?!/\d)|['’]\d\d(?!\d))"
_DECADE = r"(?:1[0-9]|20)\d0"
_DAY = r"(?:0?[1-9]|[12]\d|3[01])"
ORDINALS: list[str] = list("first second third fourth fifth sixth seventh eighth ninth tenth".split())
_SEASON = r"(?:spring|summer|autumn|fall|winter)"
PART = r"(?:early|late|mid)"
"""Pattern of a word before a month, year or decade that means a part of it."""
_NTH = rf"(?:{_DAY}(?!\d)|(?=[efnst])(?:{'|'.join(ORDINALS)})(?=\s+of\b))"
# what may follow "on the 9th"; "on the 9th floor" isn't a day
_AFTER_DAY = (
    r"\s*(?:[.,;:!?)]|$)|\s+(?:and|or|but|so|at|in|to|for|with|from|until|because|if|when|i|we|he|she|it|they)\b"
)

PATTERN = re.compile(
    rf"""(?<![\w/-])(?<!\d[.,])(?=[a-z\d])(?:
    (?P<iso>(?P<iso_y>{_YEAR})(?P<iso_s>[/-])(?P<iso_m>0[1-9]|1[0-2])(?:(?P=iso_s)(?P<iso_d>0[1-9]|[12]\d|3[01])
      (?:T\d\d:?\d\d(?::?\d\d(?:\.\d{{1,9}}|)|)(?:Z|[+-]\d\d:?\d\d|)|)|)(?![\w-]))
  | (?=[efnst\d])(?P<dmy>(?:the\s+|)(?P<dmy_d>{_NTH})(?:(?=[nrst])(?:st|nd|rd|th)|)\s+(?:of\s+|)
      (?P<dmy_m>{_MONTH})(?:,?\s+(?P<dmy_y>{_ANY_YEAR}))?)
  | (?P<mdy>(?P<mdy_m>{_MONTH})\s+(?P<mdy_d>{_DAY})(?:st|nd|rd|th)?(?![\w:/])(?:,?\s+(?P<mdy_y>{_ANY_YEAR}))?)
  | (?P<my>(?:(?=[elm]){PART}-|)(?P<my_m>{_MONTH}),?\s+(?:of\s+|)(?P<my_y>{_ANY_YEAR}))
  | (?=\d)(?P<dots>(?P<dots_a>\d\d?)(?P<dots_s>[/.])(?P<dots_b>\d\d?)(?P=dots_s)(?P<dots_y>{_YEAR}))
  | (?=h)(?P<half>half\s+an?\s+(?P<half_u>{_UNIT})\s+(?:ago|back)\b)
  | (?P<ago>(?:(?=[ao][blrv])(?:about|around|almost|over)\s+|)(?P<ago_n>{_COUNT})\s+(?P<ago_u>{_UNIT})\s+
      (?:ago|back)\b)
  | (?P<ahead>in\s+(?P<ahead_n>{_COUNT})\s+(?P<ahead_u>{_UNIT})(?:'s?\s+time)?(?!\w))
  | (?P<hence>(?P<hence_n>{_COUNT})\s+(?P<hence_u>{_UNIT})\s+from\s+(?:now|today))
  | (?=[fmostw])(?P<dw>(?:on\s+|)(?P<dw_d>{_FULL_WEEKDAY})(?:\s+(?:morning|afternoon|evening|night)|),?\s+(?:of\s+|)
      (?P<dw_w>last|this|next)\s+week)
  | (?=[lnt])(?P<wd>(?P<wd_w>last|this|next)\s+week,?\s+(?:on\s+|)(?P<wd_d>{_FULL_WEEKDAY}))
  | (?=[clnpt])(?P<rel>(?P<rel_w>last|past|this\s+past|previous|this|current|next|coming|this\s+coming)\s+
      (?P<rel_u>week(?:end)?|month|year|decade|night|spring|summer|autumn|fall|winter|{WEEKDAY}|{_MONTH}))
  | (?=[afstw])(?P<of>(?:the\s+|)(?P<of_s>{_SEASON})(?:\s+of)?\s+(?P<of_y>{_YEAR}))
  | (?=[fqst])(?P<quarter>(?:q(?P<quarter_q>[1-4])|(?:the\s+)?(?P<quarter_n>first|second|third|fourth)\s+quarter)
      (?:\s+of)?\s+(?P<quarter_y>{_YEAR}))
  | (?P<part>this\s+(?:morning|afternoon|evening))
  | (?=[dt])(?P<two>(?:the\s+|)day\s+(?P<two_w>before\s+yesterday|after\s+tomorrow))
  | (?=[ty])(?P<word>today|tonight|yesterday|tomorrow)
  | (?=[bdfistu][inoruy])(?P<century>(?:in|since|until|till|during|from|by)\s+the\s+
      (?:{PART}[\s-]+)?(?:(?P<century_y>{_DECADE})['’]?s|['’](?P<century_s>\d0)['’]?s))
  | (?=[abcdefilmostu][aefinoruy])(?P<year>
      (?:(?:in|since|until|till|by|during|from|to|before|after|around|of|circa)\s+|{PART}[\s-]\s*)
      (?:(?P<year_y>{_YEAR})|['’](?P<year_s>\d\d)(?!\d)))
  | (?=[abdefilmostu][aefinoruy])(?P<month>
      (?:(?:in|since|until|till|by|during|from|before|after|of|between(?=\s+{_MONTH}\s+and\s+{_MONTH}
      (?:\s+{_DAY}(?:st|nd|rd|th|)|),?\s+(?:of\s+|){_ANY_YEAR}))\s+|{PART}[\s-]\s*)
      (?P<month_m>{_MONTH})(?!\.?,?\s+(?:of\s+|)['’]?\d))
  | (?=[fmostw])(?P<nth>(?:on\s+|)(?P<nth_w>{WEEKDAY}),?\s+(?:the\s+|)(?P<nth_d>{_DAY})(?:st|nd|rd|th)
      (?!\s+(?:of\b|{_MONTH})))
  | (?=[abfostu])(?P<only>(?:on|since|until|till|by|from|before|after)\s+the\s+(?P<only_d>{_DAY})(?:st|nd|rd|th)
      (?={_AFTER_DAY}))
  | (?=[fmostw])(?P<day>(?:on\s+|)(?P<day_w>{_FULL_WEEKDAY})|on\s+(?P<day_s>{WEEKDAY}))
  )(?!\w|'?s\b(?:\s+\d)|-\w)""",
    re.IGNORECASE | re.VERBOSE,
)
TO_NOW = re.compile(
    rf"(?<!\w)(?=[lp])(?:last|past|previous)\s+(?P<n>{_COUNT})\s+(?P<u>day|week|month|year|decade)s?(?!\w)",
    re.IGNORECASE,
)
HOLIDAYS = {  # month, first day, and number of days
    "new years day": (1, 1, 1),
    "valentines day": (2, 14, 1),
    "patricks day": (3, 17, 1),
    "april fools day": (4, 1, 1),
    "halloween": (10, 31, 1),
    "christmas eve": (12, 24, 1),
    "christmas": (12, 24, 3),
    "christmas day": (12, 25, 1),
    "boxing day": (12, 26, 1),
    "new years eve": (12, 31, 1),
    "new years": (12, 31, 2),
}
"""Holidays that have the same date every year."""
HOLIDAY = re.compile(
    rf"""(?<!\w)(?=[abcdflnopstu])
      (?:(?P<which>last|past|previous|this|next|coming)|at|after|around|before|by|during|for|from|on|over|since|till|until)
      \s{{1,4}}(?P<name>(?:(?:saint|st\.?)\s{{1,4}})?(?:valentine|patrick)['’]?s\s{{1,4}}day|april\s{{1,4}}fool['’]?s['’]?\s{{1,4}}day
        |new\s{{1,4}}year['’]?s(?:\s{{1,4}}(?:day|eve))?|halloween|(?:christmas|xmas)(?:\s{{1,4}}(?:day|eve))?|boxing\s{{1,4}}day)
      (?:,?\s{{1,4}}(?:(?:in|of)\s{{1,4}})?(?P<year>{_YEAR})(?!\d)|\s{{1,4}}(?P<of_year>last|this|next)\s{{1,4}}year)?(?!\w)
      (?={_AFTER_DAY}|\s+(?:break|did|holidays?|season|time|together|vacation|weekend|when|where|while|with)\b)""",
    re.IGNORECASE | re.VERBOSE,
)
HABIT = re.compile(
    r"\b(?:am|are|can|could|do|does|is|might|should|would)(?:n['’]?t)?\b|\b(?:how|it|that|there|what|when|where|who)['’]s\b",
    re.IGNORECASE,
)
PAST = re.compile(r"\b(?:did|had|has|have|was|were)(?:n['’]?t)?\b|['’]ve\b", re.IGNORECASE)
AHEAD = re.compile(r"\b(?:going to|plan(?:ned|ning|s)?|shall|will|wo(?=n['’]?t\b))\b|['’]ll\b", re.IGNORECASE)
PLANNED_THEN = re.compile(  # "were we going to", "had she planned"
    r"\b(?:did|had|was|were)(?:n['’]?t)?(?:\s{1,4}(?!am\b|are\b|is\b)\w{1,20}){0,4}\s{1,4}(?:going\s{1,4}to|plan(?:ned|ning|s)?)\b",
    re.IGNORECASE,
)
POLITE = re.compile(  # before what is asked for
    r"\b(?:(?:can|could|will|would)\s{1,4}you\s{1,4}(?:please\s{1,4})?(?:remind|say|tell)"
    r"|do(?:n['’]?t)?\s{1,4}you\s{1,4}(?:happen\s{1,4}to\s{1,4})?(?:know|recall|remember)"
    r"|(?:is|isn['’]?t)\s{1,4}it\s{1,4}(?:correct|right|true))\b",
    re.IGNORECASE,
)
A_MONTH = re.compile(_MONTH, re.IGNORECASE)
LEADING = re.compile(
    r"(?:in|on|since|until|till|by|during|from|to|before|after|around|of|circa|between)\s+", re.IGNORECASE
)
COUNTED_FROM = re.compile(
    rf"(?<!\w)(?:{_COUNT}\s+{_UNIT}|the\s+(?:day|week|month|year))\s+(?:before|after)\s+$"
    rf"|(?<!\w){_COUNT}\s+{_UNIT}\s+from\s+$",
    re.IGNORECASE,
)
PART_OF_COUNT = re.compile(  # "half a year ago", "a hundred and two years ago", "10 500 years ago"
    r"(?<!\w)(?:half(?:\s+of)?\s+\w|(?:hundred|thousand)(?:\s+and)?\s+\w|\d{1,3}\s+\d)$", re.IGNORECASE
)
IN_DATE = re.compile(  # before "march 10" and "may 2"
    r"(?<!\w)(?:in|of|on|since|until|till|by|from|before|after|between|through|around|the|day),?\s{1,4}$", re.IGNORECASE
)
ACTS = re.compile(r"(?<!\w)(?:i|we|you|he|she|it|they|who|that|to)\s{1,4}$", re.IGNORECASE)
ANY_DAY = re.compile(r"(?<!\w)(?:an?|one|some|another)\s{1,4}$", re.IGNORECASE)
ANOTHER_DAY = re.compile(  # "Friday the 9th of May", "Friday 9 May", "Friday, May 9", "Friday two weeks ago"
    r"(?:\s{1,4}(?:morning|afternoon|evening|night))?,?\s{1,4}(?:(?:of\s{1,4})?(?:(?:last|this|next|the\s{1,4}\w{4,9})"
    rf"\s{{1,4}}(?:week|month|year)\b|{_COUNT}\s{{1,4}}(?:week|month|year)s?\s{{1,4}}(?:ago|back|later|earlier)\b)|week\b)"
    rf"|,?\s{{1,4}}(?:in|of)\s{{1,4}}{_MONTH}(?!\w)"
    r"|,?\s{1,4}(?:(?:before\s{1,4}last|after\s{1,4}next)\b|(?:the\s{1,4})?\d\d?(?:(?:st|nd|rd|th)\b|\s{1,4}(?:of\s{1,4})?"
    rf"{_MONTH}(?!\w))|{_MONTH}\s{{1,4}}\d\d?(?!\d))",
    re.IGNORECASE,
)
OTHER_YEAR = re.compile(  # "3 May 85", "5 May 2019-2021", "May 14 and 15, 2023"; but not "on 3 May 10:30"
    rf"(?:\s{{1,4}}|,\s{{1,4}}(?!\d\d\s{{1,4}}(?!(?:in|at|on|and)\b)[a-z]))['’]?(?:\d\d|\d{{4}})(?![\w:]|[.,]\d|\s{{0,4}}(?:[ap]\.?m\b|o['’]clock\b|h\b))"
    rf"|(?:,\s{{0,4}}{_DAY}(?:st|nd|rd|th|)){{0,6}},?\s{{0,4}}(?:to|and|or|until|till|through|&|-|–|—)\s{{0,4}}"
    rf"(?:the\s{{1,4}})?{_DAY}(?:st|nd|rd|th)?(?:,\s{{0,4}}|\s{{1,4}}){_ANY_YEAR}(?!\d)",
    re.IGNORECASE,
)
WITH_MONTH = re.compile(  # after "from the 3rd": "to the 5th of May"
    rf"\s{{1,4}}(?:to|and|or|until|till|through)\s{{1,4}}(?:the\s{{1,4}})?{_DAY}(?:st|nd|rd|th)?\s{{1,4}}(?:of\s{{1,4}})?"
    rf"{_MONTH}(?!\w)",
    re.IGNORECASE,
)
OTHER_DAY = re.compile(  # before "5 May 2023": "3 to", "14th and"; but not "April 3 to"
    r"(?:(?<!\w)(\w{1,9})\.?\s{1,4}|(?<!\S))\d\d?(?:st|nd|rd|th)?\s{1,4}(?:to|and|or|until|till|through|&|-|–|—)\s{1,4}"
    r"(?:the\s{1,4})?$",
    re.IGNORECASE,
)
JOINED = re.compile(  # between "March 3" and "June 5, 2019"
    rf"(?:(?:,|\s{{1,4}}(?:to|and|or))\s{{1,4}}{_MONTH}){{0,11}},?\s{{0,4}}(?:(?P<range>(?:to|until|till|through|thru|-|–|—)\s{{0,4}}(?:on\s{{1,4}})?"
    rf"(?:{_FULL_WEEKDAY},?\s{{1,4}})?)|(?:and|or|&)\s{{1,4}})(?:the\s{{1,4}})?(?:{PART}\s{{1,4}})?",
    re.IGNORECASE,
)
YEARS = re.compile(  # "between 2019 and 2020", "during 2019-2020"
    r"\bbetween (?P<first>(?:19|20)\d\d) and (?P<last>(?:19|20)\d\d)\b"
    r"|\b(?:between|during|for|from|in|of|over|throughout)\s+(?P<begin>(?:19|20)\d\d)\s?[-–—/]\s?"
    r"(?P<end>(?:19|20)\d\d)(?![\w%/-]|[.,]\d)",
    re.IGNORECASE,
)
LOOKED_AT = 60  # characters before a date
