"""Preparation of messages for the parser, and completion of short ones by the turns before."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Literal

from graphmem.ingest.extract.spacy import words
from graphmem.ingest.extract.spacy.labels import PLACES, PLAIN_NAMES, SOFTWARE, is_word
from graphmem.ingest.extract.spacy.tokens import FIRM
from graphmem.ingest.extract.spacy.typed import omits_subject, unclipped, with_capitals, with_subject
from graphmem.protocols import ExtractedEdge, ExtractedEnding
from graphmem.text.date_patterns import MONTHS
from graphmem.text.dates import find_dates
from graphmem.text.normalize import STOP_WORDS, split_words

_NO_PROSE = re.compile(
    r"```.*?(?:```|\Z)|`[^`\n]*`|\[[^\[\]\n:]{0,99}:[^\[\]\n]{0,999}+\]|"
    r"!?\[[^\[\]\n]{0,999}+\]\([^()\n]{0,999}+\)|(?:https?://|www\.)\S+"
    r"|^[^\S\n]*(?:[A-Z][A-Za-z]{0,9}|-{1,3})?(?:>|(?<=-)\])[^\n]*$|(?<![\w.+-])[\w.+-]{1,64}@[\w-]+\.\w+|[#@]\w+"
    r"|(?<!\w)\w{1,40}<[\w<>:,& ]{0,80}>"
    r"|(?<!\w)(?:[a-z\d]{1,40}(?:_[a-z\d]{1,40}){1,9}|[A-Z\d]{1,40}(?:_[A-Z\d]{1,40}){1,9})(?!\w)",
    re.DOTALL | re.MULTILINE,
)
_SYMBOLS = re.compile("[\U0001f000-\U0001faff\u2600-\u27bf\ufe0f\u200d*_~|<>{}=\\\\]+|[:;]-?[)(DPp](?!\\w)|(?<!\\w)<3")
_MENTION = re.compile(r"(?<![\w.@])@(?=[A-Z])")  # "thanks @Maya Chen": the parser would find Chen alone
_DAYS = re.compile(  # "from 3 to 10 May"
    r"\b(?P<from>[Ff]rom|[Bb]etween) (?P<day>\d{1,2}(?:st|nd|rd|th)?) (?=(?:to|and|until|till) \d{1,2}(?:st|nd|rd|th)? "
    rf"(?P<month>{'|'.join(MONTHS)})\b)",
    re.IGNORECASE,
)
_COLUMN = re.compile(r"(?<=\S)(?:\t|[^\S\n]{3})")
"""Space before a column of a table or signature."""
_WRAPPED = re.compile(
    r"(?:(?<=\s)[a-z]\S{0,40}(?<=[^\n]{50}[^\s.!?:;])\n(?=\w)|(?<=[^\n]{50}[^\s.!?:;])\n(?=[a-z(]))"
    r"(?!wrote\b|\d{1,3}[.)]\s)"
)
"""End of a long line whose sentence continues in the next one; not between capitals, as of a signature, or items."""
_CODE_LINE = re.compile(
    r"^(?:[^\n]*[{}][^\S\n]*|(?=[^\n]*;[^\S\n]*$)[^\n]*?(?:=|\w\(|\w\w\.\w\w)[^\n]*|"
    r"[^\S\n]*(?:import \S{1,99}[^\S\n]*|(?:\[[A-Z]{3,8}\]|//|[$%#] )[^\n]*))$",
    re.MULTILINE,
)
_WORD = re.compile(r"(?<!\S)(?P<user>\S{1,64}) at [a-z\d.-]{1,64}\.[a-z]{2,6}\b\)?|\S+")
_IN_CODE = re.compile(
    r"[=\\@]|::|->|\(\)|\w_\w|\w\w\.\w{2,99}\.[A-Za-z]{2}|^[~.]{0,2}/\w|/[^/\d][^/]{0,98}/|\w{40}| at "
)
"""Signs of code, paths and addresses in a word."""
_AMPERSAND = re.compile(rf"(?P<firm>{FIRM.pattern})|(?<!\s)\s+&\s+")
_PLAIN = tuple(words.SPELLED.values())
_SLANG = re.compile(
    rf"(?=['a-z])(?<![\w'])(?:{'|'.join(f'({slang})' for slang in words.SPELLED)})(?![\w'])", re.IGNORECASE
)
_BEFORE_CLAUSE = (
    "and|but|so|because|cuz|cos|bc|since|that|if|when|while|think|know|idk|lol|haha|omg|yeah|yep|yes|no|nah|ok|hello|hey|"
    "hi|now|well"
)
_BARE = re.compile(  # without what is another word, as "ill" and "were"; German "im" is mostly inside a clause
    rf"(?P<before>^|[.,!?;:(] ?|(?<!\w)(?:{_BEFORE_CLAUSE}) )(?:im|Im)(?![\w'])|"
    r"(?<![\w'])(?:(?P<i>i)ve|(?P<they>(?:[Yy]ou|[Tt]hey)(?=re|ve)|[Ww]e(?=ve))(?P<are>re|ve)|(?P<she>[Hh]e|[Ss]he|[Tt]hat)s|"
    r"(?P<aux>(?i:do|does|did|is|are|was|were|have|has|had|ca|could|would|wo))(?:nt|NT))"
    r"(?![\w'])",
    re.MULTILINE,
)
_FILLER = re.compile(  # "I, um, work at Acme"
    r"(?P<before>,\s?)?(?<![\w'-])"
    r"(?:(?:[Uu]h{1,9}|[Uu]m{1,9}|[Ee]r{1,9}m?|[Ee]hm?|[Mm]h?m{1,9}(?:-h?m{1,9})?|[Yy]'know)(?![\w'-])(?P<after>,)?"
    r"|I mean,|(?<=, )you know,)"
)
_BEGINS = re.compile(r",?\s{0,2}(?:an?|the|my|our|and|but|so|because|i|we|you|he|she|it|they)\b", re.IGNORECASE)
_REPEATED = (
    "i|we|he|she|they|it|you|an?|the|my|our|his|their|this|to|of|for|from|with|and|but|or|if|in|on|at|"
    "is|are|was|were|have|has"
)
_STUTTER = re.compile(  # "I-I've", "the the parser", "I'm going, I'm going to Rome"
    rf"(?<![\w'-])(?P<once>(?:{_REPEATED})(?:'[a-z]+)?(?: [a-z']{{1,20}}){{0,3}}?)"
    r"(?:(?:\s?-\s?|,? )(?P=once)(?![\w-]))+",
    re.IGNORECASE,
)
_OFFICE = (
    r"(?:(?:Mr|Mister|Madam|Madame|Dear)\.? ?(?:Chair(?:man|woman|person)?|Speaker|President|Mayor|Minister)|"
    r"Chair(?:man)?|[Ss]ir|[Mm]a'am|[Mm]adam)"
)
_ADDRESS = re.compile(rf"(?:^|(?<=[.!?] )){_OFFICE}, |, {_OFFICE}(?=[.,!?]|$)", re.MULTILINE)
_ADDRESSEE = re.compile(  # "anna: i use vim"
    r"\A\s?@?(?!(?i:wrong|false|myth|untrue|scenario|case|b)\b)[^\s:,@()\[\]]{2,30}: (?=[a-z])"
)
_GREETING = "|".join(words.GREETINGS)
_ITEM = re.compile(r"(?:(?:[-*+–]|(?P<number>\d{1,3})[.)])\s+(?:\[[ xX]\]\s+)?|•\s*)(?=\S)")
_BULLET = re.compile("[•‣◦▪]")
_HEADING = re.compile(r"#{1,6}\s+(?=\S)")
_RULE = re.compile(r"[\s|:=*_+-]*")  # below a title, between paragraphs, or between the head of a table and its rows
_TAG = re.compile(  # rhetorical questions
    r",? (?:can|would) you believe (?:it|that|this)\s*\?|"
    r", (?:any (?:objections|thoughts|ideas|questions)|right|ok|okay|agreed|huh|you know|don't you think)\s*\?",
    re.IGNORECASE,
)
_LEAD_IN = re.compile(
    r"(?<![\w:])(?:[A-Za-z][\w'-]{0,20} ){0,6}[A-Za-z][\w'-]{0,20}: (?=[A-Z]|(?:I|we|it|my|our|the)\b)"
)
_DASH = re.compile(r"(?<!\s)[^\S\n]+[-–—]+\s+|—|(?:(?<!\s)\s+)?\.{3,}\s*|…")
_RELATIVE_IN_LOWER_CASE = re.compile(  # "my brother sandeep's here": the parser knows names by their capitals
    rf"\b((?:my|our) (?:[a-z]{{2,12}} )?(?:{'|'.join(sorted(words.PLAIN_KIN, key=len, reverse=True))}) )"
    rf"(?!(?:{'|'.join(sorted(words.NO_GIVEN_NAMES))})\b)([a-z]{{3,15}})(?<!ly)(?<!ing)"
    r"(?='s\b| (?:is|was|has|had|says|said|lives|lived|works|worked|thinks|reckons|wants|wanted|got|gets|went|goes|"
    r"will)\b)"
)
_NEWBORN = re.compile(  # the name isn't read as that of a relative
    r"\b(?P<who>(?:I|[Ww]e|[Tt]hey) )?(?:just )?(?:had|welcomed) (?:a|our) (?:\w+ )?baby (?P<child>girl|boy)"
    r"(?:,| called| named)? (?=[A-Z][a-z])"
)
_JOINED = re.compile(r" - (it|i|we|he|she|they|that|this|there|you|my|so)(?=[ '])", re.IGNORECASE)
_SO = re.compile(r", so (no|i|we|he|she|they|it|that's)\b", re.IGNORECASE)
_NAMED = re.compile(
    r"(?<=[^.!?] )(?!I\b)[A-Z]|"
    r"^(?!(?:[WDAHIC][a-z']*|Should|Get|Got|So|Any|Or|And|Sounds?|You|Right|Really|Must)\b)[A-Z][a-z]"
)
_ABBREVIATED = "".join(
    rf"(?<!\b{word}\.)" for word in ("Dr", "Mr", "Mrs", "Ms", "St", "Jr", "Prof", "vs", "e\\.g", "[A-Z]")
)
_BETWEEN = re.compile(rf"(?=[\s\"')\]])(?:(?:(?<=[!?])|(?<=\.){_ABBREVIATED})[\"')\]]*\s+|\n+)")
# what others wrote: from the head of a mail on, after "Tom wrote:", in quotation marks, the lines of a dialogue
_OTHERS = re.compile(
    r"^[^\S\n]*(?:From|Subject|Sent):.*\Z|"
    r"(?i:(?:^|(?<=[.!?] ))(?:(?:from|in|according to) )?(?:(?:the|this|an?|today's) )?(?:[a-z]{2,12} ){0,2}"
    r"(?:textbook|article|worksheet|homework|exercise|advert|lyrics|headline|quote|caption|tweet|dictionary|riddle)"
    r"\b[^.!?:\n]{0,40}:[^\n]*)|"
    r"(?:^|(?<=[.!?] ))[^.!?:\n]{0,80}"
    r"\b(?:wrote|writes|said|says|texted|told|replied|answered|posted|messaged|e-?mailed)\b[^.!?:\n]{0,40}:[^\n]*",
    re.MULTILINE | re.DOTALL,
)
_QUOTED = re.compile(r'"[^"\n]{0,1000}"')
_FIRST_PERSON = re.compile(r"\b(?:I|[Mm]y|[Ww]e|[Oo]ur)\b")
_STRAIGHT = str.maketrans("’‘“”", "''\"\"")
_LINE = re.compile(
    r"^[^\S\n]*(?:[\[(]?\d{1,2}[:.]\d\d[^\n\]):]{0,12}[\])]?[-–,\s]{0,3})?"
    r"(?P<name>[A-Z][\w'-]{0,30}(?: [A-Z][\w'-]{0,30})?):[^\S\n][^\n]*" + _FIRST_PERSON.pattern + r"[^\n]*$",
    re.MULTILINE,
)
_JOKE = re.compile(
    r"\b(?P<before>just kidding|only joking|jk|(?:that|it) was (?:all )?a (?:lie|joke))\b|"
    r"(?<!\S)/s(?!\S)|^yeah,? right[,.!]|^oh,? (?:yeah|yes|sure),? totally\b",
    re.IGNORECASE,
)
_LAUGHTER = frozenset("ah ha haha hahaha hehe lol lmao nah no oh".split())
_LONGEST_SENTENCE = 300
_SEVERAL_WORDS = re.compile(r"\w\s+\S*\w")


def with_apostrophes(text: str) -> str:
    """Return a text with the apostrophes that contractions lack: "I'm" for "im", "don't" for "dont"."""
    return _BARE.sub(_contraction, text)


def _contraction(match: re.Match[str]) -> str:
    if match["aux"]:
        return f"{match['aux'].lower() if match['aux'].isupper() else match['aux']}n't"
    if match["they"]:
        return f"{match['they']}'{match['are']}"
    return f"{match['she']}'s" if match["she"] else "I've" if match["i"] else f"{match['before']}I'm"


def _without_tag(match: re.Match[str]) -> str:
    """Return the end of a sentence without its rhetorical question; "you own the page, right?" stays a question."""
    before = match.string[max(0, match.start() - _LONGEST_SENTENCE) : match.start()]
    sentence = re.split(r"[.!?\n]", before)[-1]
    return "?" if re.search(r"\byou\b", sentence, re.IGNORECASE) else "."


def _fluent(text: str) -> str:
    """Return a text without fillers and repeated words of speech: "I live in Rome" for "I-I, um, live in in Rome"."""
    text = _FILLER.sub(_without_filler, text)
    for _ in range(2):  # "I'm-I'm going, I'm going"
        text = _STUTTER.sub(lambda match: match["once"], text)
    return text


def _without_filler(match: re.Match[str]) -> str:
    """Return what a filler leaves: a comma if a clause or an item may begin after it, none after "I" or "the"."""
    last = re.search(r"[\w'-]+$", match.string[max(0, match.start() - 30) : match.start()])
    paused = bool(match["before"] or match["after"]) and last is not None and last[0].lower() not in STOP_WORDS
    return ", " if paused and _BEGINS.match(match.string, match.end()) else " "


def _with_child(match: re.Match[str]) -> str:
    has = f"{match['who']}have" if match["who"] else "has"
    return f"{has} a {'daughter' if match['child'] == 'girl' else 'son'} called "


def is_joke(text: str) -> bool:
    """Return whether a message says that it isn't meant: "just kidding"."""
    return _JOKE.search(text) is not None


def is_joke_before(text: str) -> bool:
    """Return whether a message begins by saying that the one before wasn't meant: "Just kidding!"."""
    match = _JOKE.search(text)
    return match is not None and bool(match["before"]) and _LAUGHTER.issuperset(split_words(text[: match.start()]))


def own_words(text: str, participants: Iterable[str] = ()) -> str:
    """Return a message without what others say in it: pasted mails and dialogues, quotations in the first person."""
    text = text.translate(_STRAIGHT)
    own = {name.lower() for full in participants for name in (full, *full.split()[:1])} | words.ANNOUNCEMENTS
    text = _QUOTED.sub(lambda said: "" if _FIRST_PERSON.search(said[0]) else said[0], text)
    return _LINE.sub(lambda line: line[0] if line["name"].lower() in own else "", _OTHERS.sub("", text))


def vocatives(names: Iterable[str]) -> re.Pattern[str] | None:
    """Return a pattern of the names of the participants and their short forms of at least three letters."""
    forms: set[str] = set()
    for name in names:
        first = name.split()[0] if name.split() else ""
        forms.update(re.escape(form) for form in (name, *(first[:n] for n in range(3, len(first) + 1))) if form)
    if not forms:
        return None
    return re.compile("|".join(sorted(forms, key=len, reverse=True)))


def prose(
    text: str,
    participants: Iterable[str] = (),
    others: Iterable[str] = (),
    *,
    message: bool = True,
    elliptic: bool = True,
    mail: bool = False,
) -> str:
    """Return the sentences of a text that can state a fact.

    Parameters
    ----------
    text
        A message or a document.
    participants
        Names to remove where they are addressed ("Thanks, Anna!", "…, Anna."), as the parser tags them as objects.
    others
        Names of further speakers of the session, who may be addressed as well.
    message
        Whether the text is informal: slang, greetings and addressed names are removed.
    elliptic
        Whether its sentences may leave out "I"; those of assistants are rather titles: "Split Screen".
    mail
        Whether it is a mail: with wrapped lines, the columns of a signature, and code.
    """
    if mail:
        text = _WRAPPED.sub(lambda end: f"{end[0][:-1]} ", _COLUMN.sub("\n", _without_code(text)))
    text = own_words(_ADDRESSEE.sub("", _MENTION.sub("", text)), participants) if message else text
    text = _NO_PROSE.sub(" ", text).translate(_STRAIGHT)
    if not message:
        blocks = (" ".join(_SYMBOLS.sub(" ", block).split()) for block in _blocks(text))
        return " ".join(_ended(block) for block in blocks if block.strip(",;:"))
    text = _SYMBOLS.sub(" ", "\n".join(_lines(text)))
    text = _SLANG.sub(lambda match: _PLAIN[(match.lastindex or 1) - 1], with_apostrophes(text))
    text = _DAYS.sub(lambda match: f"{match['from']} {match['day']} {match['month']} ", text)
    text = _AMPERSAND.sub(lambda match: match["firm"] or " and ", text)
    text = _fluent(_ADDRESS.sub("", text))
    text = with_capitals(unclipped(text))
    text = _RELATIVE_IN_LOWER_CASE.sub(lambda match: f"{match[1]}{match[2].capitalize()}", text)
    text = _NEWBORN.sub(_with_child, text)
    names = vocatives([*participants, *others])
    called = f"(?:{names.pattern})" if names else "(?!)"
    opening = re.compile(rf"(?:(?:{_GREETING}|{called})(?!\w)[,!.;\s]*)+", re.IGNORECASE)
    closing = re.compile(rf",\s*(?i:{called})(?=\s*[.!?]*$)")
    kept: list[str] = []
    text = _LEAD_IN.sub(_without_lead_in, _TAG.sub(_without_tag, text))
    for part in _BETWEEN.split(_SO.sub(_begin, _JOINED.sub(_begin, _DASH.sub(" - ", text)))):
        if not _SEVERAL_WORDS.search(part):
            continue
        body = closing.sub("", _without_opening(opening, " ".join(part.split())))
        if body.endswith("?") and not _NAMED.search(body):
            continue  # a question without a name isn't parsed
        body = with_subject(body) if elliptic else body
        if _SEVERAL_WORDS.search(body):
            kept.append(body if body[-1] in ".!?" else f"{body}.")
    return " ".join(kept)


def _without_code(text: str) -> str:
    """Return a text without code, paths and addresses: "org.apache.maven", "/usr/bin", "anna at example.org"."""

    def prose_of(word: re.Match[str]) -> str:
        user = word["user"] or ""
        is_said = user in STOP_WORDS or is_word(user)  # "works at booking.com"
        return "" if _IN_CODE.search(word[0]) and not is_said else word[0]

    return _WORD.sub(prose_of, _CODE_LINE.sub("", text))


def _lines(text: str) -> Iterator[str]:
    """Yield the lines of a text: those of lists and titles without their marks, those of tables cell by cell.

    What is a block of its own has an empty line before it, and after it unless it may continue in the next line.
    """
    listed = True  # a number other than 1 continues a list, but doesn't begin one inside a paragraph
    for line in _BULLET.sub("\n•", text).split("\n"):
        bare = line.lstrip()
        item, heading = _ITEM.match(bare), _HEADING.match(bare)
        if item and (listed or item["number"] in (None, "1")):
            body = bare[item.end() :]
            yield from ("", line if omits_subject(body) else body)  # "- Moved to Rome" isn't said of the speaker
            listed = True
        elif heading or bare.startswith("|") or " | " in line or _RULE.fullmatch(line):
            cells = [bare[heading.end() :]] if heading else line.split("|")
            for cell in cells if not _RULE.fullmatch(line) else ():
                yield from ("", cell)
            yield ""
            listed = True
        else:
            yield line
            listed = listed and line[:1].isspace()


def _blocks(text: str) -> Iterator[str]:
    """Yield the paragraphs, items, cells and titles of a document; a sentence may continue after an empty line."""
    block: list[str] = []
    closed = False
    for line in _lines(text):
        if not line.strip():
            closed = True
            continue
        if closed and not line.lstrip()[0].islower():
            yield " ".join(block)
            block = []
        block.append(line)
        closed = False
    yield " ".join(block)


def _ended(block: str) -> str:
    """Return a block with a mark at its end, so that the parser doesn't join it with the next one."""
    block = block.rstrip(",;:")
    return block if block.rstrip("\"')]").endswith((".", "!", "?", "…")) else f"{block}."


def _without_lead_in(match: re.Match[str]) -> str:
    """Remove what only announces a sentence, without a name or a verb of its own: "Quick recap:", "One more thing:"."""
    said = match[0].lower().split()
    if said[-1] in ("wrong:", "false:", "myth:", "untrue:", "scenario:", "case:", "b:"):
        return "if "
    return match[0] if any(word in words.ANNOUNCING_VERBS for word in said) else ""


def _begin(match: re.Match[str]) -> str:
    return f". {match[1].capitalize()}"


def _without_opening(opening: re.Pattern[str], sentence: str) -> str:
    """Return a sentence without greetings, keeping words that belong to it ("Well done", "Anna and I went")."""
    match = opening.match(sentence)
    last = max((match[0].rfind(mark) for mark in ",!.;"), default=-1) if match else -1
    return sentence[last + 1 :].lstrip()


# Corrections --------------------------------------------------------------------------------------


_LONGEST_CORRECTION = 200
_NAME = r"[A-Z][\w&'-]*(?: [A-Z][\w&'-]*){0,3}"
_LEAD = (
    r"(?i:(?:oh\b[\s,.!-]*)?"
    r"(?:(?:oops|wait|sorry|no|actually|my mistake|scratch that|that['’]s (?:wrong|not right)|i mean)\b[\s,.:!-]*)+|"
    r"\*(?=\S))"
)
_DENIAL = re.compile(_LEAD)
_FIRST = re.compile(r"[^.!?]{1,120}[.!](?=\s)")
_NUMERAL = re.compile(r"(?<![\w.,])[$€£]?\d[\d.,]*\d?k?(?![\w%])")
_VALUE = re.compile(
    rf"(?:{_LEAD})(?i:(?:i (?:typed|wrote|said|gave (?:you )?|put) the wrong (?:date|day|number|one|time)|typo|"
    r"that(?:'s| has) changed|it(?:'s| has) changed|i got (?:it|that|the (?:date|day|number)) wrong)[,.:;]? )?"
    r"(?i:(?:it['’]?s|it is|it should be|should be|make that|that['’]s|i meant?|it was|now it['’]s|s?he['’]s|i['’]m) )?"
    r"(?P<value>[^.!?,;]{1,30}?|[$€£]?\d{1,3}(?:[.,]\d{3})*(?:[.,]\d\d?)?k?)"
    r"(?:(?P<now> now)| instead| actually| already)?[.!]*$"
)
_NOT = re.compile(
    rf"\A(?:{_LEAD})?(?i:(?:it['’]?s|that['’]s|i mean(?:t)?) )?"
    r"(?P<right>[a-z][\w-]*(?: [a-z][\w-]*)?),? not (?P<wrong>[a-z][\w-]*(?: [a-z][\w-]*)?)(?=[.!,;]|$)"
)
_OF_DATES = {*MONTHS, "in", "on", "since", "the", "week", "weekend", "of"}
_CORRECTION = re.compile(
    rf"(?:^|[,;.!?]\s+)(?P<lead>{_LEAD})?(?P<meant>(?i:(?:oh,? )?i meant(?: to say)? ))?"
    rf"(?P<right>{_NAME})(?:,? not (?P<wrong>{_NAME})|(?P<region>, {_NAME}))?[.!*]*$"
)


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
    """Return the correction of a name with which a message, or its first sentence, ends: "Sorry, I meant Austin"."""
    text = text.strip()
    if len(text) >= _LONGEST_CORRECTION:
        return None
    first = _FIRST.match(text)
    match = _CORRECTION.search(text) or (_CORRECTION.search(first[0]) if first else None)
    if match is None or not (match["lead"] or match["meant"] or (match["wrong"] and not match.start())):
        return None
    explicit = any(match[said] is not None for said in ("meant", "wrong", "region")) or _is_retyped(match)
    return Correction(match["right"], match["wrong"], text[: match.start()], explicit)


def _is_given_name(word: str) -> bool:
    plain = word.isalpha() and word.istitle() and not is_word(word)
    return plain and word not in PLACES and word.lower() not in SOFTWARE


def _is_retyped(match: re.Match[str]) -> bool:
    """Return whether a correction is a known name after an asterisk: "*Anna", not "*Note"."""
    return (match["lead"] or "").startswith("*") and match["right"] in PLAIN_NAMES | PLACES


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


def rewritten(text: str, earlier: str, reference: datetime) -> str | None:
    """Return an earlier message with the date, amount or noun that a later one corrects: "Sorry, the 15th"; else None.

    The earlier one must have exactly one date, one number, or the wrong noun of "it's hazelnuts, not walnuts" once.
    """
    text = text.strip() if len(text) < _LONGEST_CORRECTION else ""
    if (noun := _NOT.match(text)) is not None:
        told = [m.span() for m in re.finditer(rf"\b{re.escape(noun['wrong'])}\b", earlier)]
        return f"{earlier[: told[0][0]]}{noun['right']}{earlier[told[0][1] :]}" if len(told) == 1 else None
    match = _VALUE.match(text)
    if match is None:
        return None
    value = match["value"].strip(" .!")
    is_date = any(len(d.text) >= len(value) - len("on the ") for d in find_dates(f"on {value}", reference))
    if is_date:
        old = [(d.start, d.end) for d in find_dates(earlier, reference)]
        value = re.sub(r"^(?:on|the|in)\s+(?=the\b|[A-Z])", "", value)
    elif _NUMERAL.fullmatch(value):
        old = [m.span() for m in _NUMERAL.finditer(earlier)]
    elif match["now"] and _is_given_name(value):  # "it's Priyanka now"
        old = [m.span() for m in re.finditer(r"\b[A-Z][a-z]+\b", earlier) if m[0] in PLAIN_NAMES]
    else:
        return None
    if len(old) != 1:
        return None
    [(start, end)] = old
    if is_date and re.search(r"\bthe\s$", earlier[:start], re.IGNORECASE):
        value = value.removeprefix("the ")
    return f"{earlier[:start]}{value}{earlier[end:]}"


def replaced(
    said: Sequence[ExtractedEdge], facts: Sequence[ExtractedEdge], why: Literal["over", "corrected"]
) -> tuple[list[ExtractedEdge], list[ExtractedEnding]]:
    """Return the facts of a rewritten message that are new, and the endings of those that they replace."""

    def keys(edges: Sequence[ExtractedEdge]) -> set[tuple[object, ...]]:
        return {(e.source, e.relation, e.target, e.valid_from, e.valid_to, e.fact) for e in edges}

    before, after = keys(said), keys(facts)
    new = [e for e in facts if not keys([e]) & before]
    ends = {(e.relation, end) for e in new for end in (e.source, e.target)}
    wrong = [e for e in said if not keys([e]) & after and {(e.relation, e.source), (e.relation, e.target)} & ends]
    return (new, [replace(_retraction(e), why=why) for e in wrong if not e.ended]) if wrong else ([], [])


def is_denial(text: str) -> bool:
    """Return whether a message begins by taking back what was said: "No, I live in Austin"."""
    return _DENIAL.match(text) is not None


def taken_back(said: Sequence[ExtractedEdge]) -> list[ExtractedEnding]:
    """Return the retractions of the facts of a message."""
    return [_retraction(edge) for edge in said if not edge.ended]


def denied(
    said: Sequence[ExtractedEdge], facts: Sequence[ExtractedEdge], *, only_dates: bool = False
) -> list[ExtractedEnding]:
    """Return the retractions of facts that a denial says again with another target, or another stated beginning."""

    def is_wrong(edge: ExtractedEdge, by: ExtractedEdge) -> bool:
        if (edge.source, edge.relation, edge.ended, by.ended) != (by.source, by.relation, False, False):
            return False
        if edge.target == by.target:
            begins = {edge.valid_from, by.valid_from}
            dated = len(begins) == 2 and None not in begins and edge.kind == by.kind == "state"
            return dated and _undated(edge.fact) == _undated(by.fact)
        return not only_dates and edge.fact.replace(edge.target, by.target) == by.fact

    return [_retraction(edge) for edge in said if any(is_wrong(edge, fact) for fact in facts)]


def _undated(fact: str) -> list[str]:
    """Return the words of a sentence without those of dates, and prepositions of these."""
    return [
        word for word in fact.casefold().rstrip(".").split() if not (word in _OF_DATES or word.strip(",").isdigit())
    ]


def _retraction(edge: ExtractedEdge) -> ExtractedEnding:
    return ExtractedEnding(edge.source, edge.relation, edge.target, why="corrected")
