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
    r"(?P<number>\d{1,2}|an?|one|two|three|four|five|six|seven|eight|nine|ten)\b(?: (?P<noun>[a-z]{3,12}))?"
    r"(?P<rest>(?:,|:| and | -).{0,80})?",
    re.IGNORECASE,
)
_YEARS = re.compile(
    r"(?:(?:he|she)(?:'s| is)(?: now)? |just turned )?(?P<years>\d{1,3})\b(?! (?:month|week|day))", re.IGNORECASE
)
_LEADS = re.compile(
    r"(?:in|at|near|from|to|on|around|for|by|with|last|next|this|yesterday|today|tomorrow|when|since|until|before|after|"
    r"about)\b|(?<!\w)\w{1,12} (?:ago|morning|evening)\b",
    re.IGNORECASE,
)
_EVASIVE = re.compile(
    rf"(?:{'|'.join(words.GREETINGS)}|u+h+m*|u+m+|er+m*|lol|haha+|not|none|nothing|nowhere|just|some (?:stuff|things)|"
    r"sounds|why|what|who|where|when|how|good|great|depends|maybe|probably|never)\b",
    re.IGNORECASE,
)
_SINCE = re.compile(
    r"(?:since|last|on)\b|in (?:\d|[A-Z])|"
    r"for (?:\d|(?:an?|two|three|four|five|six|seven|eight|nine|ten|about|over|almost)\b)"
)
_DID_YOU_SAY = re.compile(r"\bdid you say (?:that )?you (?=[a-z])", re.IGNORECASE)
_WHERE_TO = re.compile(r"^where to(?: next)?$", re.IGNORECASE)
_DIGIT = re.compile(r"\d")
_TOWARDS = frozenset("go going move moving travel traveling travelling fly flying heading".split())
_NOT_TOLD = frozenset("get need do find put doing getting trying saying thinking".split())
_SON_OR_DAUGHTER = {"girl": "daughter", "girls": "daughters", "boy": "son", "boys": "sons"}


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
    question = _WHERE_TO.sub("where are you going", _DID_YOU_SAY.sub("do you ", question))
    for pattern, complete in _COMPLETIONS:
        if (match := pattern.search(question)) is not None and (sentences := complete(match, answer)):
            if _YOU.search(sentences) and request.addressee != before.speaker:
                return text  # "you" is the one who asked, which no part of the request says
            return f"{sentences}{text[first.end() :].lstrip('.!')}"
    return text


def _fragment(answer: str) -> bool:
    return bool(answer) and len(answer.split()) <= _LONGEST and not _COMPLETE.search(answer)


def _by_asked(question: str) -> str:
    """Return words of a question as the person who is asked says them: "know your sister" for "know my sister"."""
    return _PERSON.sub(_turned, question)


def _turned(match: re.Match[str]) -> str:
    if match["object"]:
        return "me"
    who, space, be = match["who"], match["space"], match["be"]
    return f"{words.ANSWERED[who.lower()]}{space}{words.ANSWERED[be]}" if who else words.ANSWERED[match[0].lower()]


def _stated(asked: re.Match[str]) -> tuple[str, str, str]:
    """Return the subject, the verb and the rest of what a question asks: "I", "grew", " up" of "did you grow up"."""
    verb, space, rest = asked["rest"].partition(" ")
    aux, who = asked["aux"].lower(), asked["who"].lower()
    subject = "I" if who == "you" else f"My {who.removeprefix('your ')}"
    if aux == "did":
        verb = words.past(verb.lower(), "", "")
    elif aux == "does":
        verb = words.third_person(verb.lower())
    elif aux in ("are", "'re", "is", "'s", "have", "has"):
        verb = f"{'has' if aux == 'has' else 'have' if aux == 'have' else 'am' if subject == 'I' else 'is'} {verb}"
    return subject, verb, _by_asked(f"{space}{rest}")


def _told(asked: re.Match[str], answer: str) -> str:
    """Complete the answer to a question for a place, a time, a person or a thing: "Leeds", "in May", "chess"."""
    wh, verb = asked["wh"].lower(), asked["rest"].split()[0].lower()
    subject, said, rest = _stated(asked)
    answer = _AGREES.sub("", answer, count=1)
    if not _fragment(answer) or _EVASIVE.match(answer) or verb in words.NEVER_VERBS | _NOT_TOLD:
        return ""
    if wh == "where" and asked["rest"].endswith("from"):
        return f"{subject} {'am' if subject == 'I' else 'is'} from {_PLACE.sub('', answer, count=1)}."
    towards = not _TOWARDS.isdisjoint(asked["rest"].split())
    role, _, firm = answer.partition(" at ")
    if towards and firm[:1].isupper():
        return f"{subject} will work at {firm}. {subject} will work as {role}."
    if wh == "where":
        lead = "to" if towards else "at" if verb in ("work", "study") else "in"
    else:
        lead = "for" if wh == "how long" else ""
    if lead or wh == "when" or rest.endswith((" for", " with", " to")):
        return f"{subject} {said}{rest} {'' if _LEADS.match(answer) or not lead else f'{lead} '}{answer}."
    if rest or not (verb.endswith("ing") or verb in words.FACTUAL) or (wh == "how much" and not _DIGIT.search(answer)):
        return ""
    if verb == "speak":  # "polish and english, some russian"
        answer = _LANGUAGE.sub(lambda word: word[0].capitalize(), answer.replace(", ", " and "))
    return f"My rent is {answer}." if "rent" in wh else f"{subject} {said} {answer}."


def _whether(asked: re.Match[str], answer: str) -> str:
    """Complete "yes", "no" and "no, at Globex" after "Do you still work at Initech?"."""
    subject, verb, after = _stated(asked)
    rest, is_now = f"{verb}{after}", asked["aux"].lower() in ("do", "are")
    owned = _AGREES.sub("", answer, count=1)
    if rest.startswith("have ") and _NOUN_PHRASE.match(owned) and _fragment(owned):
        return f"I have {owned[0].lower()}{owned[1:]}."  # "Do you have any pets?" "Yes, a cat."
    if (agrees := _AGREES.match(answer)) is not None:
        tail = answer[agrees.end() :]
        dated = _SINCE.match(tail) if is_now else not tail or _LEADS.match(tail)
        since = f" {tail}" if dated and _fragment(tail) and " or " not in rest else ""
        return f"{subject} {rest}{since}." if since or not tail else ""
    if (denies := _DENIES.match(answer)) is None or not is_now:
        return ""
    verb, _, said = rest.partition(" ") if rest.startswith("am ") else ("", "", rest)
    verb = f"{verb} " if verb else ""
    denied = f"{subject} {verb}no longer {said}." if asked["still"] else ""
    other = answer[denies.end() :]
    placed = _PLACED.search(said)
    if placed is not None and _CAPITAL.match(other):
        other = f"{placed[0].strip()} {other}"  # "Do you still live in Rome?" "No, Oslo since May"
    if not _PLACE.match(other) or not _fragment(other):
        return denied
    return f"{denied} {subject} {verb}{_PLACED.split(said, maxsplit=1)[0]} {other}.".strip()


def _how_many(asked: re.Match[str], answer: str) -> str:
    """Complete "2" and "two boys" after "How many kids do you have?"."""
    number = _NUMBER.fullmatch(answer)
    if number is None:
        return ""
    noun = number["noun"] or asked["noun"]
    if asked["noun"].lower() in ("kids", "children"):
        noun = _SON_OR_DAUGHTER.get(noun.lower(), noun)
    return f"I have {number['number'].lower()} {noun}{number['rest'] or ''}."


def _any(asked: re.Match[str], answer: str) -> str:
    """Complete "peanuts" after "Any allergies?" and "asthma" after "Do you have any conditions?"."""
    answer = _AGREES.sub("", answer, count=1).removeprefix("to ")
    if not _fragment(answer) or _DENIES.match(answer) or _EVASIVE.match(answer):
        return ""
    return f"I {'am allergic to' if 'llerg' in asked[0] else 'have'} {answer[0].lower()}{answer[1:]}."


def _is(asked: re.Match[str], answer: str) -> str:
    return f"My {asked['noun']} is {answer}." if _fragment(answer) else ""


def _occupation(_: re.Match[str], answer: str) -> str:
    is_noun = re.match(r"(?:a|an|the) ", answer, re.IGNORECASE)
    return f"I am {answer[0].lower()}{answer[1:]}." if is_noun and _fragment(answer) else ""


def _age(asked: re.Match[str], answer: str) -> str:
    years = _YEARS.match(answer)
    whose = f"My {asked['noun']} is" if asked["noun"] else "I am"
    return f"{whose} {years['years']} years old." if years else ""


_RELATIVE = rf"your (?:[a-z-]{{2,15}} )?(?:{'|'.join(sorted(words.RELATIONAL, key=len, reverse=True))})"
_ADVERBS = r"(?:(?:currently|now|actually|also|usually|normally) )?"
_OF_YOU = (
    rf"(?P<who>you|{_RELATIVE}) {_ADVERBS}(?P<still>still )?{_ADVERBS}(?P<rest>[a-z][^,;]{{0,80}}?)"
    r"(?:,? (?:now|these days|at the moment|right now|currently|next))?$"
)
_COMPLETIONS: list[tuple[re.Pattern[str], Callable[[re.Match[str], str], str]]] = [
    (re.compile(pattern, re.IGNORECASE), complete)
    for pattern, complete in (
        (r"\bhow old (?:are you|is your (?P<noun>[a-z]+))(?: now)?$", _age),
        (r"\bwhat do you do(?: for (?:a living|work))?$|\bwhat'?s? (?:is )?your (?:job|profession)$", _occupation),
        (r"\b(?:what|who|when|which|how much)(?:'s| is) your (?P<noun>[a-z' -]{2,40})$", _is),
        (r"\bhow many (?P<noun>[a-z]+) (?:do|have) you (?:have|got)$", _how_many),
        (r"\bany (?:[a-z]+ )?(?:allergies|intolerances|conditions)\b[^,;]{0,40}$|\ballergic to any[a-z ]{0,20}$", _any),
        (
            r"\b(?P<wh>where|when|who|how (?:long|much)(?: rent)?|(?:what|which)(?: [a-z]+){0,2}?) ?"
            rf"(?P<aux>do|does|did|are|'re|is|'s|have|has) {_OF_YOU}",
            _told,
        ),
        (rf"(?:^|[,;] |\bso )(?P<aux>do|does|did|are|is) {_OF_YOU}", _whether),
    )
]
