"""Completion of answers by the question before them: "In Lisbon." after "Where do you live?"."""

from __future__ import annotations

import re
from collections.abc import Callable

from graphmem.ingest.extract.spacy import words
from graphmem.protocols import ExtractionRequest

_LONGEST = 12
_ASKED = 500
_ENDS = re.compile(r"[.!?\n]")
_FIRST_SENTENCE = re.compile(r"[^.!?\n]+")
# an answer with a subject of its own is complete
_COMPLETE = re.compile(
    r"\b(?:i|i'm|i've|i'd|we|we're|you|he|she|it|it's|they|that|that's|this|there|my)\b", re.IGNORECASE
)
_AGREES = re.compile(r"(?:yes|yeah|yep|yup|sure|of course|indeed|i do|i am|still)\b[\s,.!]*", re.IGNORECASE)
_DENIES = re.compile(r"(?:no|nope|nah|not anymore|not any more)\b[\s,.!]*", re.IGNORECASE)
_NOUN_PHRASE = re.compile(r"(?:an?|one|two|three|four|five|six|\d{1,2}|my) [a-z]", re.IGNORECASE)
_PLACE = re.compile(r"(?:in|at|near|from|for|with) ", re.IGNORECASE)
_PLACED = re.compile(r" (?:in|at|near|from|for|with) ", re.IGNORECASE)
_PERSON = re.compile(
    r"(?<![\w'-])(?:(?P<who>[Ii]|you)(?P<space> ?)(?P<be>'m|'re|(?<= )(?:am|are|was|were)\b)|"
    r"(?P<object>you(?= *(?:$|(?:in|at|on|to|for|with|from|about|and|or|as|by|of|now|today)\b)))|"
    r"(?:(?i:my|our|mine|ours|myself|ourselves|i|we|your|yours|you|yourself)|me|us)(?![\w-]))"
)
_YOU = re.compile(r"\byou(?:r|rs|rself)?\b", re.IGNORECASE)
_CAPITAL = re.compile(r"(?!(?:I|No|Yes|Not|But|And)\b)[A-Z][a-z]")
_LANGUAGE = re.compile(
    r"\b(?!(?:some|little|bit|and|also|only|just|fluent|basic|native|mostly|plus|with|but)\b)[a-z]{5,}\b"
)
_NUMBER = re.compile(
    r"(?P<number>\d{1,2}|an?|one|two|three|four|five|six|seven|eight|nine|ten|no|zero)\b(?: (?P<noun>[a-z]{3,12}))?"
    r"(?P<rest>(?:,|:| and | -).{0,80})?",
    re.IGNORECASE,
)
_LEADS = re.compile(
    r"(?:in|at|near|from|to|on|around|for|by|with|last|next|this|yesterday|today|tomorrow|when|since|until|before|after)\b|"
    r"(?<!\w)\w{1,12} (?:ago|morning|evening)\b",
    re.IGNORECASE,
)
_EVASIVE = re.compile(
    rf"(?:{'|'.join(words.GREETINGS)}|u+h+m*|u+m+|er+m*|lol|haha+|not|nothing|nowhere|just|some (?:stuff|things)|"
    r"why|what|who|where|when|how|good|great|depends|maybe|probably|never)\b",
    re.IGNORECASE,
)
_SINCE = re.compile(
    r"(?:since|last|on)\b|in (?:\d|[A-Z])|"
    r"for (?:\d|(?:an?|two|three|four|five|six|seven|eight|nine|ten|about|over|almost)\b)"
)
_LASTS = re.compile(r"(?:for|since|about|from|until)\b", re.IGNORECASE)
_ADVERBS = r"(?:(?:currently|now|still|actually|also|usually|normally) )?"


def completed(request: ExtractionRequest) -> str:
    """Return the text of a message; an answer without a subject as a sentence: "In Lisbon." as "I live in Lisbon."."""
    text = request.episode.text
    before = request.context[-1] if request.context else None
    if before is None or before.speaker == request.episode.speaker or len(text) > 500:
        return text
    asked, mark, _ = before.text[-_ASKED:].replace("’", "'").rpartition("?")
    first = _FIRST_SENTENCE.search(text.replace("’", "'"))
    if not mark or first is None:
        return text
    answer, question = first[0].strip(), _ENDS.split(asked)[-1].strip()
    rest = text[first.end() :].lstrip(".!")
    for pattern, complete in _COMPLETIONS:
        if (match := pattern.search(question)) is not None and (sentences := complete(match, answer)):
            if _YOU.search(sentences) and request.addressee != before.speaker:
                return text  # "you" is the one who asked, which no part of the request says
            return f"{sentences}{rest}"
    return text


def _tells(answer: str) -> bool:
    """Return whether a short answer is to the point: not "Thanks!", "Uhm, some stuff"."""
    return _fragment(answer) and not _EVASIVE.match(answer)


def _fragment(answer: str) -> bool:
    return bool(answer) and len(answer.split()) <= _LONGEST and not _COMPLETE.search(answer)


def _where(asked: re.Match[str], answer: str) -> str:
    answer = _AGREES.sub("", answer, count=1)
    if not _fragment(answer):
        return ""
    verb = asked["verb"].lower()
    usual = "at" if verb in ("work", "study") else "in"
    return f"I {verb} {answer if _PLACE.match(answer) else f'{usual} {answer}'}."


def _origin(_: re.Match[str], answer: str) -> str:
    return f"I am from {_PLACE.sub('', answer, count=1)}." if _fragment(answer) else ""


def _by_asked(question: str) -> str:
    """Return words of a question as the person who is asked says them: "know your sister" for "know my sister"."""
    return _PERSON.sub(_turned, question)


def _turned(match: re.Match[str]) -> str:
    if match["object"]:
        return "me"
    who, space, be = match["who"], match["space"], match["be"]
    return f"{words.ANSWERED[who.lower()]}{space}{words.ANSWERED[be]}" if who else words.ANSWERED[match[0].lower()]


def _whether(asked: re.Match[str], answer: str) -> str:
    """Complete "yes", "no" and "no, at Globex" after "Do you still work at Initech?"."""
    auxiliary, rest = "am " if asked["aux"].lower() == "are" else "", _by_asked(asked["rest"])
    owned = _AGREES.sub("", answer, count=1)
    if rest.startswith("have ") and _NOUN_PHRASE.match(owned) and _fragment(owned):
        return f"I have {owned[0].lower()}{owned[1:]}."  # "Do you have any pets?" "Yes, a cat."
    if (agrees := _AGREES.match(answer)) is not None:
        tail = answer[agrees.end() :]
        since = f" {tail}" if _SINCE.match(tail) and _fragment(tail) and " or " not in rest else ""
        return f"I {auxiliary}{rest}{since}." if since or not tail else ""
    if (denies := _DENIES.match(answer)) is None:
        return ""
    denied = f"I {'am no longer ' if auxiliary else 'no longer '}{rest}." if asked["still"] else ""
    other = answer[denies.end() :]
    placed = _PLACED.search(rest)
    if placed is not None and _CAPITAL.match(other):
        other = f"{placed[0].strip()} {other}"  # "Do you still live in Rome?" "No, Oslo since May"
    if not _PLACE.match(other) or not _fragment(other):
        return denied
    verb = _PLACED.split(rest, maxsplit=1)[0]
    return f"{denied} I {auxiliary}{verb} {other}.".strip()


def _next_job(_: re.Match[str], answer: str) -> str:
    role, at, place = answer.partition(" at ")
    if not at or not place[:1].isupper() or not _fragment(answer):
        return ""
    return f"I will work at {place}. I will work as {role if role.isupper() else role.lower()}."


def _which(asked: re.Match[str], answer: str) -> str:
    if asked["verb"].lower() == "speak":  # "polish and english, some russian"
        answer = _LANGUAGE.sub(lambda word: word[0].capitalize(), answer.replace(", ", " and "))
    return f"I {asked['verb']} {answer}." if _fragment(answer) else ""


def _how_many(asked: re.Match[str], answer: str) -> str:
    """Complete "2" and "two boys" after "How many kids do you have?"."""
    number = _NUMBER.fullmatch(answer)
    if number is None or number["number"].lower() in ("no", "zero", "0"):
        return ""
    noun = number["noun"] or asked["noun"]
    if asked["noun"].lower() in ("kids", "children"):
        noun = {"girl": "daughter", "girls": "daughters", "boy": "son", "boys": "sons"}.get(noun.lower(), noun)
    return f"I have {number['number'].lower()} {noun}{number['rest'] or ''}."


def _done(asked: re.Match[str], answer: str) -> str:
    """Complete "in Leeds" after "Where did you grow up?" and "in 2019" after "When did you start at Acme?"."""
    verb, rest = asked["verb"].lower(), _by_asked(asked["rest"] or "")
    if not _tells(answer) or verb in ("say", "mean", "get", "think"):
        return ""
    where = asked["asked"].lower() == "where"
    lead = (
        "" if _LEADS.match(answer) else ("to " if verb in ("go", "move", "travel", "fly") else "in ") if where else ""
    )
    return f"I {words.past(verb, '', '')}{rest} {lead}{answer}."


def _doing(asked: re.Match[str], answer: str) -> str:
    """Complete "on the 28th" after "When are you moving to Bristol?" and "Crete" after "Where are you going?"."""
    if not _tells(answer):
        return ""
    to = asked["asked"].lower() == "where" and not _LEADS.match(answer)
    return f"I am {asked['verb']}{'' if not to else f' to {answer}'}{_by_asked(asked['rest'] or '')}" + (
        "." if to else f" {answer}."
    )


def _did(asked: re.Match[str], answer: str) -> str:
    """Complete "yes, on Monday" after "Did you pass your exam?"."""
    agrees = _AGREES.match(answer)
    if agrees is None or not _fragment(f"x {answer[agrees.end() :]}"):
        return ""
    return (
        f"I {words.past(asked['verb'].lower(), '', '')} {_by_asked(asked['rest'])} {answer[agrees.end() :]}".strip()
        + "."
    )


def _how_long(asked: re.Match[str], answer: str) -> str:
    if not _tells(answer):
        return ""
    lead = "" if _LASTS.match(answer) else "for "
    return f"I have {_by_asked(asked['rest'])} {lead}{answer}."


def _allergies(_: re.Match[str], answer: str) -> str:
    answer = _AGREES.sub("", answer, count=1).removeprefix("to ")
    denied = _DENIES.match(answer) is not None or answer.lower() in ("none", "nothing", "")
    return f"I am allergic to {answer}." if _fragment(answer) and not denied else ""


def _whom(asked: re.Match[str], answer: str) -> str:
    return f"I {asked['verb']} {asked['word']} {answer}." if _tells(answer) else ""


def _amount_of(beginning: str) -> Callable[[re.Match[str], str], str]:
    """Return what completes an amount by the beginning of its sentence."""

    def complete(_: re.Match[str], answer: str) -> str:
        return f"{beginning} {answer}." if _fragment(answer) and any(c.isdigit() for c in answer) else ""

    return complete


def _what_is(asked: re.Match[str], answer: str) -> str:
    return f"My {asked['noun']} is {answer}." if _fragment(answer) else ""


def _occupation(_: re.Match[str], answer: str) -> str:
    return (
        f"I am {answer[0].lower()}{answer[1:]}."
        if re.match(r"(?:a|an|the) ", answer, re.I) and _fragment(answer)
        else ""
    )


def _age(_: re.Match[str], answer: str) -> str:
    years = re.match(r"(?:just turned )?(\d{1,3})\b", answer)
    return f"I am {years[1]} years old." if years else ""


def _age_of(asked: re.Match[str], answer: str) -> str:
    years = re.match(
        r"(?:(?:she|he)(?:'s| is)(?: now)? |just turned )?(\d{1,3})\b(?! (?:month|week|day))", answer, re.IGNORECASE
    )
    return f"My {asked['noun']} is {years[1]} years old." if years else ""


def _question(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.IGNORECASE)


_COMPLETIONS: list[tuple[re.Pattern[str], Callable[[re.Match[str], str], str]]] = [
    (_question(r"\bwhere (?:are|do) you (?:come )?from$"), _origin),
    (
        _question(rf"\bwhere (?:do|are) you {_ADVERBS}(?P<verb>live|work|study|stay)(?:ing)?(?: now| these days)?$"),
        _where,
    ),
    (
        _question(r"^where(?: to|(?: are you|'re you)? (?:going|moving|headed|off to|heading)(?: to| next)?)$"),
        _next_job,
    ),
    (_question(r"\bhow old are you(?: now)?$"), _age),
    (_question(r"\bhow old(?: is|'s) your (?P<noun>[a-z]+)(?: now)?$"), _age_of),
    (
        _question(r"\bwhat do you do(?: for (?:a living|work))?$|\bwhat'?s? (?:is )?your (?:job|profession)$"),
        _occupation,
    ),
    (_question(r"\b(?:what|who|when|which)(?:'s| is) your (?P<noun>[a-z' -]{2,40})$"), _what_is),
    (
        _question(
            r"\b(?:what|which)(?: [a-z]+){0,2} do you (?P<verb>speak|play|drive|use|teach|study|"
            r"prefer|like|take|collect|support|ride|keep|grow)$"
        ),
        _which,
    ),
    (_question(r"\bhow many (?P<noun>[a-z]+) (?:do|have) you (?:have|got)$"), _how_many),
    (
        _question(r"\b(?P<asked>where|when) did you (?P<verb>[a-z]+)(?P<rest>(?: [a-z']+){0,4})$"),
        _done,
    ),
    (
        _question(r"\b(?P<asked>where|when)(?: are|'re) you (?P<verb>[a-z]+ing)(?P<rest>(?: [a-z']+){0,4})$"),
        _doing,
    ),
    (
        _question(
            r"\b(?P<asked>what)(?: are|'re) you (?P<verb>studying|learning|reading|training for)(?P<rest>)(?: now)?$"
        ),
        _doing,
    ),
    (_question(r"(?:^|[,;] |\bso )did you (?P<verb>[a-z]+) (?P<rest>[a-z][^,;]{2,80})$"), _did),
    (_question(r"\bhow long have you (?P<rest>(?:been|lived|worked|had|known|played|studied)[^,;]{0,60})$"), _how_long),
    (
        _question(r"\bhow much (?:do you (?:earn|make|get paid)|are you paid)(?: a (?:year|month))?$"),
        _amount_of("I earn"),
    ),
    (_question(r"\bhow much (?:rent do you pay|is your rent|do you pay (?:in|for) rent)$"), _amount_of("My rent is")),
    (_question(r"\b(?:any|have) (?:food )?allergies$|\byou allergic to (?:anything|any[a-z ]{0,20})$"), _allergies),
    (
        _question(r"\bwho do you (?P<verb>work|live|report|bank|play|train|volunteer) (?P<word>for|with|to)$"),
        _whom,
    ),
    (_question(r"(?:^|[,;] |\bso )(?P<aux>do|are) you (?P<still>still )?(?P<rest>[a-z][^,;]{2,80})$"), _whether),
]
