"""Content filter: detection of episodes that are stored but not extracted. Pure functions."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable

from graphmem.models import Episode
from graphmem.models.metadata import INJECTION_FLAG, NO_TEXT
from graphmem.text.normalize import WORD
from graphmem.trust import role_kind, trust_of


def skip_reason(episode: Episode, *, detector: Callable[[Episode], bool] | None = None) -> str | None:
    """Return the reason to exclude an episode from extraction; None if there is none.

    Parameters
    ----------
    episode
        The episode to check.
    detector
        Returns whether an episode looks like a prompt injection, such as `graphmem.trust.is_suspicious`; with None only
        the caller's own flag and trust count.

    Returns
    -------
    str or None
        "injection", "untrusted", "tool_output", "system_prompt", "no_text" or "code".
    """
    trust = trust_of(episode)
    if episode.metadata.get(INJECTION_FLAG) or (detector is not None and detector(episode)):
        return "injection"
    if trust == "untrusted":
        return "untrusted"
    kind = role_kind(episode.role)
    if kind == "tool":
        return "tool_output"
    if kind == "system":
        return "system_prompt"
    if episode.metadata.get(NO_TEXT):
        return "no_text"
    return "code" if is_code(episode.text) else None


# Small talk ---------------------------------------------------------------------------------------

_GREETINGS = frozenset(
    """
    hi hello hey heya hiya morning afternoon evening night good day welcome all everyone everybody folks team guys bye
    goodbye cheers later see ya you thanks thank thx ty so much very many a lot no problem worries anytime np pleasure
    my congrats congratulations happy birthday glad nice great awesome cool perfect wonderful lovely amazing fantastic
    excellent brilliant wow oh ah aha haha hahaha lol lmao rofl hehe ha ok okay k kk yes yep yeah yup no nope sure
    right agreed exactly absolutely definitely indeed same here too please sorry hm hmm mm mhm uh um well and to meet
    the have weekend ping done noted got it sounds will do on just back in min sec brb afk
    """.split()
)
_ANSWERS = frozenset(
    """
    yes yep yeah yup no nope sure right agreed exactly absolutely definitely indeed done ok okay same all everyone
    everybody folks team guys morning afternoon evening night weekend birthday later
    """.split()
)
"""Words that tell something after a question: "When do you run?" "Morning."."""
_PHRASES = re.compile(
    r"\b(?:(?:good|great|happy|lovely|nice) (?:morning|afternoon|evening|night|weekend|birthday)|see (?:you|ya) later|"
    r"hi|hello|hey|thanks|thank you|bye|goodbye|welcome)(?: (?:all|everyone|everybody|folks|team|guys))?\b"
)
"""Phrases in which these words tell nothing."""
_SMALL_TALK_WORDS = 8


def is_small_talk(text: str, *, after_question: bool = False) -> bool:
    """Return whether a turn is only a greeting, thanks, laughter, assent or symbols, from which nothing can be learned.

    A short list of English words: anything else counts as content. After a question, assent, symbols and words for
    people and times are content, but "Good morning!" isn't.
    """
    if len(text) > 80:
        return False
    said = WORD.findall(text.lower().replace("'", "").replace("’", ""))
    if not said:
        return not after_question and bool(text.strip())
    if len(said) > _SMALL_TALK_WORDS or not _GREETINGS.issuperset(said):
        return False
    return not (after_question and _ANSWERS.intersection(_PHRASES.sub(" ", " ".join(said)).split()))


# Code and raw data --------------------------------------------------------------------------------

# limits on the examined part of a text and of a line, so that the patterns stay fast on any input
_SAMPLE = 20_000
_LINES = 500
_LINE = 1_000
_MOSTLY = 0.6
_MANY = 0.3
_FENCED = re.compile(r"^[ \t]*(```|~~~)[^\n]*\n(.*?)(?:^[ \t]*\1[ \t]*$|\Z)", re.DOTALL | re.MULTILINE)
_URL = re.compile(r"\b[a-z][a-z0-9+.-]{0,30}://\S+|\bwww\.\S+", re.IGNORECASE)
_INLINE = re.compile(r"`[^`\n]*`")
_LOG = re.compile(
    r"\s*[\[(]?(?:\d{4}-\d\d-\d\d[T ]\d\d:\d\d|\d\d:\d\d:\d\d|\w{3} [ \d]\d \d\d:\d\d:\d\d)\S*[\])]?\s.{0,60}?"
    r"(?:\b(?:DEBUG|INFO|NOTICE|WARN(?:ING)?|ERROR|FATAL|CRITICAL|TRACE)\b|\w+\[\d+\]:)"
    r"|\s*\[?(?:DEBUG|INFO|WARN(?:ING)?|ERROR|FATAL|CRITICAL|TRACE)\b[\]:]"
    r'|\S+ \S+ \S+ \[[^\]]+\] "[A-Z]+ '
)
_TRACE = re.compile(
    r'\s*File "[^"]+", line \d+|\s+at [\w$.<>/]+ ?\(|Traceback \(most recent call last\)|\s*Caused by: [\w.]+|'
    r"(?:[\w.]+\.)?[A-Z]\w*(?:Error|Exception)(?::|$)|goroutine \d+ \["
)
_DIFF_HEAD = re.compile(r"^(?:diff --git |@@ -\d+(?:,\d+)? \+\d+|--- \S+.*\n\+\+\+ \S)", re.MULTILINE)
_DIFF = re.compile(r"[+-](?!\s*$)|diff --git |index [0-9a-f]{6,}|@@ ")
_STATEMENT = re.compile(
    r"\s*+(?:"
    r"(?:async )?def \w+\s*\(|class \w+\s*[(:{<]|@\w[\w.]*(?:\(.*\))?\s*$|"
    r"from [\w.]+ import |import [\w.{*\"']+(?:;| as |$| from)|package [\w.]+;?$|"
    r"(?:export |default |public |private |protected |static |final |async |pub |extern |typedef )++\w++.*[({;=]|"
    r"(?:const|let|var|auto|val) \w+\s*(?::[^=]+)?=|function\b.*\(|fn \w+|func \w*\s*\(|"
    r"#\s*(?:define|include|if|ifdef|ifndef|endif|else|undef|pragma)\b|"
    r"(?:if|elif|for|while|switch|catch|foreach|else if)\s*\(.*[{:;)]\s*$|"
    r"(?:if|elif|for|while|with|try|except|else|finally)\b[^.?!]*:\s*$|"
    r"return\b.*[;()\[\]=.]\w*$|return \w+$|(?:raise|throw|yield|await) \w++.*\(|(?:pass|break|continue)$|"
    r"(?:SELECT|INSERT INTO|UPDATE|DELETE FROM|CREATE TABLE|ALTER TABLE|DROP TABLE)\b.*|"
    r"[\w.\[\]\"'*&>-]++(?:\s*+:\s*+[\w\[\], .|]++)?\s*+(?:[-+*/|&:]?=|:=|<-)\s*\S.*|"
    r"[\w$.>-]++\(.*\)\s*+[;{,:]?\s*+$|[\w$.>-]++\($|"
    r"</?[\w:-]+(?:\s+[\w:-]+=(?:\"[^\"]*\"|'[^']*'))*\s*/?>.*|"
    r"[\"'][\w $.-]+[\"']\s*:\s*.+|"
    r"\$ \w+.*|sudo \w+.*|"
    r"[\])}]++[;,)]*+\s*+(?:else\s*\{|catch.*\{)?\s*+$|[\[({]++\s*$|.*[;{]\s*$"
    r")"
)
_MARKDOWN = re.compile(
    r"!?\[[^\]\n]{0,200}\](?:\([^)\n]{0,500}\)|\[[^\]\n]{0,200}\])|^[^\S\n]*(?:[-*+=~^_|:#>]\s*)+(?=\s|\Z)|\*\*|``|<https?[^<>\n]*>",
    re.MULTILINE,
)
_SMILEY = re.compile(r"[:;]['-]?[()\[\]|\\/](?=\s|\Z)|<3+|\(?\^[_.-]*\^\)?")
_PUNCTUATION = re.compile(r"[{}\[\]();=<>|\\&^]")
_MIN_KINDS, _MIN_SHARE, _MIN_SIZE = 3, 0.12, 40
_BLOB_LENGTH = 80
_BLOB = re.compile(rf"[\w+/=-]{{{_BLOB_LENGTH},}}", re.ASCII)
# comments and docstrings count neither as code nor as prose
_COMMENT = re.compile(
    r'"""(?:.*?)"""|\'\'\'(?:.*?)\'\'\'|'
    r"^[ \t]*(?:#(?!\s*(?:define|include|if|endif|else|undef|pragma))|//|--[ ])[^\n]*$",
    re.DOTALL | re.MULTILINE,
)
_NUMBER = re.compile(r"[-+]?(?>[\d.,:/eExa-fA-F-]*[,:/])?+[.eExa-fA-F-]*+\d[\d.eExa-fA-F-]*\Z")
_SEPARATORS = (",", "\t", ";")
_MAX_CELL = 40


def is_code(text: str) -> bool:
    """Return whether most of a text is code, a log, a diff, a stack trace or raw data.

    Prose that contains a snippet, lists, links, tables or Markdown is not code. JSON is parsed as a whole; for
    everything else the first 20,000 characters decide.
    """
    text = text.strip()
    if _is_json(text):
        return True
    text = "\n".join(line[:_LINE] for line in text[:_SAMPLE].splitlines()[:_LINES])
    outside = _FENCED.sub("\n", text)
    fenced = sum(_weight(match[2]) for match in _FENCED.finditer(text))
    whole = _weight(text)
    if not whole:
        return False
    if _DIFF_HEAD.search(outside) and _share(outside, _DIFF) >= 0.2:
        return True
    rest = [line for line in _COMMENT.sub("", _without_block_comments(outside)).splitlines() if line.strip()]
    coded = _coded(rest) if len(rest) >= 3 or _is_dense(outside) else 0  # one or two lines may be a chat message
    counted = fenced + sum(_weight(line) for line in rest)
    if counted and fenced + coded >= _MOSTLY * counted:
        return True
    return _is_table(rest) or _is_dense(text) or _blobs(text) >= _MOSTLY * whole


def _blobs(text: str) -> int:
    """Return the number of characters in long runs without spaces that are no addresses."""
    if max(map(len, text.split()), default=0) < _BLOB_LENGTH:
        return 0
    return sum(map(len, _BLOB.findall(_URL.sub("", text))))


def _without_block_comments(text: str) -> str:
    *commented, rest = text.split("*/")
    return "".join([*(part.partition("/*")[0] for part in commented), rest])


def _weight(text: str) -> int:
    return sum(map(len, text.split()))


def _share(text: str, pattern: re.Pattern[str]) -> float:
    lines = [line for line in text.splitlines() if line.strip()]
    return sum(1 for line in lines if pattern.match(line)) / max(1, len(lines))


def _coded(lines: list[str]) -> int:
    """Return the number of characters in lines of code; where those are frequent, indented lines count as well."""
    code = [_is_code_line(line) for line in lines]
    among_code = sum(code) >= _MANY * len(lines)
    return sum(
        _weight(line) for line, is_one in zip(lines, code, strict=True) if is_one or (among_code and line[0] in " \t")
    )


def _is_code_line(line: str) -> bool:
    return any(pattern.match(line) for pattern in (_STATEMENT, _LOG, _TRACE))


def _is_json(text: str) -> bool:
    if not (text.startswith(("{", "[")) and text.endswith(("}", "]"))):
        return False
    try:
        value = json.loads(text)
    except RecursionError:
        return True
    except ValueError:
        lines = text.splitlines()
        return len(lines) > 1 and all(line.strip()[:1] in "{[" and _is_json(line.strip()) for line in lines[:5])
    return isinstance(value, dict) or bool(value)


def _is_table(rows: list[str]) -> bool:
    """Return whether the lines are rows with the same number of cells, as in CSV and TSV but not in prose lists."""
    if len(rows) < 3:
        return False
    for separator in _SEPARATORS:
        width, count = Counter(row.count(separator) for row in rows).most_common(1)[0]
        if width < 2 or count < 0.9 * len(rows):
            continue
        cells = [cell for row in rows for cell in row.split(separator)]
        if sum(map(len, cells)) > _MAX_CELL * len(cells):
            continue
        spaced = sum(1 for cell in cells if cell.startswith(" "))
        numbers = sum(1 for cell in cells if _NUMBER.match(cell.strip()))
        if spaced <= 0.1 * len(cells) or numbers >= 0.5 * len(cells):
            return True
    return False


def _is_dense(text: str) -> bool:
    """Return whether the frequency and variety of code punctuation exceed those of prose."""
    found = _PUNCTUATION.findall(text)
    if len(found) < _MIN_SHARE * _MIN_SIZE or len(set(found)) < _MIN_KINDS:
        return False  # there is no more in what is left without links, smileys and code in the line
    bare = _INLINE.sub("", _SMILEY.sub("", _URL.sub("", _MARKDOWN.sub("", text))))
    size, marks = _weight(bare), _PUNCTUATION.findall(bare)
    return size >= _MIN_SIZE and len(marks) >= _MIN_SHARE * size and len(set(marks)) >= _MIN_KINDS
