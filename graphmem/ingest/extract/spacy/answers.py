"""Completion of short messages by the turns before them: answers to a question, and corrections of one's own words."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from graphmem.protocols import ExtractedEdge, ExtractedEnding, ExtractionRequest

_LONGEST = 12
_ASKED = 500
_LONGEST_CORRECTION = 200
_ENDS = re.compile(r"[.!?\n]")
_FIRST_SENTENCE = re.compile(r"[^.!?\n]+")
# an answer with a subject of its own is complete
_COMPLETE = re.compile(
    r"\b(?:i|i'm|i've|i'd|we|we're|you|he|she|it|it's|they|that|that's|this|there|my)\b", re.IGNORECASE
)
_AGREES = re.compile(r"(?:yes|yeah|yep|yup|sure|of course|indeed|i do|i am|still)\b[\s,.!]*", re.IGNORECASE)
_DENIES = re.compile(r"(?:no|nope|nah|not anymore|not any more)\b[\s,.!]*", re.IGNORECASE)
_PLACE = re.compile(r"(?:in|at|near|from|for|with) ", re.IGNORECASE)
_ADVERBS = r"(?:(?:currently|now|still|actually|also|usually|normally) )?"
_NAME = r"[A-Z][\w&'-]*(?: [A-Z][\w&'-]*){0,3}"
_LEAD = r"(?i:(?:oh\b[\s,.!-]*)?(?:(?:oops|wait|sorry|no|actually|my mistake|i mean)\b[\s,.:!-]*)+|\*(?=\S))"
_DENIAL = re.compile(_LEAD)
_CORRECTION = re.compile(
    rf"(?:^|[,;.!?]\s+)(?P<lead>{_LEAD})?(?P<meant>(?i:(?:oh,? )?i meant(?: to say)? ))?"
    rf"(?P<right>{_NAME})(?:,? not (?P<wrong>{_NAME}))?[.!*]*$"
)


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
        if (match := pattern.search(question)) is not None:
            sentences = complete(match, answer)
            return f"{sentences}{rest}" if sentences else text
    return text


@dataclass(frozen=True, slots=True)
class Correction:
    """Correction of a name.

    Attributes
    ----------
    right
        The right name.
    wrong
        The wrong name, if it is given.
    said
        The words before the correction in the same message, which it corrects; "" if an earlier message is.
    is_explicit
        Whether it is said to be one ("I meant Austin"), and not only by a word such as "sorry".
    """

    right: str
    wrong: str | None
    said: str
    is_explicit: bool


def correction_of(text: str) -> Correction | None:
    """Return the correction of a name with which a message ends: "Sorry, I meant Austin"."""
    text = text.strip()
    match = _CORRECTION.search(text) if len(text) < _LONGEST_CORRECTION else None
    if match is None or not (match["lead"] or match["meant"] or (match["wrong"] and not match.start())):
        return None
    explicit = match["meant"] is not None or match["wrong"] is not None
    return Correction(match["right"], match["wrong"], text[: match.start()], explicit)


def corrected(
    said: Sequence[ExtractedEdge], correction: Correction, fits: Callable[[ExtractedEdge], bool]
) -> tuple[list[ExtractedEdge], list[ExtractedEnding]]:
    """Return facts with a wrong name replaced by the right one, and the retractions of the wrong facts.

    Without a wrong name, the facts with the only target that fits are corrected.
    """
    wrong, right = correction.wrong, correction.right
    chosen = [e for e in said if not e.ended and wrong in (None, e.target) and e.target != right and fits(e)]
    if len({e.target for e in chosen}) > 1:
        return [], []
    facts = [replace(e, target=right, fact=e.fact.replace(e.target, right)) for e in chosen]
    return facts, [_retraction(e) for e in chosen]


def is_denial(text: str) -> bool:
    """Return whether a message begins by taking back what was said: "No, I live in Austin"."""
    return _DENIAL.match(text) is not None


def denied(said: Sequence[ExtractedEdge], facts: Sequence[ExtractedEdge]) -> list[ExtractedEnding]:
    """Return the retractions of facts that a denial says again with another target."""
    return [
        _retraction(wrong)
        for wrong in said
        for fact in facts
        if (wrong.source, wrong.relation, wrong.ended) == (fact.source, fact.relation, False)
        and wrong.target != fact.target
        and wrong.fact.replace(wrong.target, fact.target) == fact.fact
    ]


def _retraction(edge: ExtractedEdge) -> ExtractedEnding:
    return ExtractedEnding(edge.source, edge.relation, edge.target, why="corrected")


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


def _whether(asked: re.Match[str], answer: str) -> str:
    """Complete "yes", "no" and "no, at Globex" after "Do you still work at Initech?"."""
    auxiliary, rest = ("am ", asked["rest"]) if asked["aux"].lower() == "are" else ("", asked["rest"])
    if (agrees := _AGREES.match(answer)) is not None:
        return f"I {auxiliary}{rest}." if not answer[agrees.end() :] else ""
    if (denies := _DENIES.match(answer)) is None:
        return ""
    denied = f"I {'am no longer ' if auxiliary else 'no longer '}{rest}." if asked["still"] else ""
    other = answer[denies.end() :]
    place = _PLACE.match(other)
    if not other or place is None or not _fragment(other):
        return denied
    verb = rest.partition(f" {place[0].strip().lower()} ")[0]
    return f"{denied} I {auxiliary}{verb} {other}.".strip()


def _next_job(_: re.Match[str], answer: str) -> str:
    role, at, place = answer.partition(" at ")
    if not at or not place[:1].isupper() or not _fragment(answer):
        return ""
    return f"I will work at {place}. I will work as {role if role.isupper() else role.lower()}."


def _which(asked: re.Match[str], answer: str) -> str:
    return f"I {asked['verb']} {answer}." if _fragment(answer) else ""


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
    (
        _question(r"\bwhat do you do(?: for (?:a living|work))?$|\bwhat'?s? (?:is )?your (?:job|profession)$"),
        _occupation,
    ),
    (_question(r"\b(?:what|who|when|which)(?:'s| is) your (?P<noun>[a-z' -]{2,40})$"), _what_is),
    (
        _question(r"\b(?:what|which)(?: [a-z]+){1,2} do you (?P<verb>speak|play|drive|use|teach|study|prefer|like)$"),
        _which,
    ),
    (_question(r"(?:^|[,;] |\bso )(?P<aux>do|are) you (?P<still>still )?(?P<rest>[a-z][^,;]{2,80})$"), _whether),
]
