"""Passages of a text or of Markdown: split at headings, paragraphs and sentences."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

_LIMIT = 2000  # characters of a passage
_HEADING = re.compile(r" {0,3}(#{1,6})[ \t]+(?=[^ \t])")
_UNDERLINE = re.compile(r" {0,3}(?:(=+)|(-{2,}))[ \t]*$")
_RULE = re.compile(r" {0,3}([-*_])(?:[ \t]*\1){2,}[ \t]*$")
_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")
_SENTENCE_END = re.compile(r"[.!?…][\"'”’)\]]*\s|[。！？][\"'”’)\]」』]*")
_FEW_LINES = 3


@dataclass(frozen=True, slots=True)
class Passage:
    """A section of a text: its headings (outermost first), its words, and the number of its first line.

    `level` is that of the outermost heading, from 1 to 6; 0 without one.
    """

    path: tuple[str, ...]
    text: str
    line: int
    level: int = 0


def passages(lines: Iterator[tuple[int, str]], *, markdown: bool = False) -> Iterator[Passage]:
    """Split lines into passages of at most 2,000 characters, at paragraphs where possible.

    A longer paragraph is split at the end of a sentence, else at a space; code, tables and logs at the end of a line. A
    code block that fits into a passage stays together.

    Parameters
    ----------
    lines
        (line number, text) in order.
    markdown
        Whether headings (``#`` and underlined) end a passage and become the path of the next ones.

    Yields
    ------
    Passage
        In the order of the text, stripped of surrounding white space; empty passages are omitted.
    """
    holder = _Holder()
    headings: list[tuple[int, str]] = []
    fence = ""
    for number, line in lines:
        text = line.rstrip()
        if markdown and not fence and (found := _heading(text, holder)):
            yield from holder.drain()
            headings = [known for known in headings if known[0] < found[0]] + [found]
            holder.path, holder.level = tuple(name for _, name in headings), headings[0][0]
            continue
        before = fence
        if markdown:
            fence = _fence_after(text, fence)
            if fence and not before:
                holder.begin_block()
        if (not text and not fence) or (markdown and not fence and _RULE.match(text)):
            yield from holder.end_paragraph()
        else:
            yield from holder.add_line(number, text, in_code=bool(fence or before))
    yield from holder.drain()


def _heading(text: str, holder: _Holder) -> tuple[int, str] | None:
    if match := _HEADING.match(text):
        title = text[match.end() :].rstrip(" \t")
        before = title.rstrip("#")  # "# Title ##"
        return len(match[1]), before.rstrip(" \t") if before.endswith((" ", "\t")) else title
    if (match := _UNDERLINE.match(text)) and (name := holder.take_only_line()):
        return (1 if match[1] else 2), name
    return None


def _fence_after(text: str, fence: str) -> str:
    """Return the fence of the code block that is open after this line, or an empty string."""
    match = _FENCE.match(text)
    if match is None:
        return fence
    if not fence:
        return match[1]
    closes = match[1].startswith(fence) and not text.strip().strip(fence[0])
    return "" if closes else fence


class _Holder:
    """Buffer of the paragraphs of the current passage and of the current paragraph."""

    def __init__(self) -> None:
        self.path: tuple[str, ...] = ()
        self.level = 0
        self._done: list[str] = []
        self._done_size = 0
        self._done_line = 0
        self._lines: list[str] = []
        self._size = 0
        self._line = 0
        self._block = 0  # where a code block begins in the current paragraph

    def take_only_line(self) -> str:
        """Remove and return the current paragraph if it has exactly one line, else return an empty string."""
        if len(self._lines) != 1:
            return ""
        (text,) = self._lines
        self._lines, self._size = [], 0
        return text.strip()

    def begin_block(self) -> None:
        """Note that the next line begins a code block."""
        self._block = self._size

    def add_line(self, number: int, text: str, *, in_code: bool = False) -> Iterator[Passage]:
        if not self._lines:
            self._line = number
        self._lines.append(text)
        self._size += len(text) + 1
        if self._size <= _LIMIT:
            return
        yield from self._emit()
        rest = "\n".join(self._lines)
        while len(rest) > _LIMIT:
            cut = self._block or _cut(rest, by_line=in_code or _is_by_line(rest[:_LIMIT]))
            yield Passage(self.path, rest[:cut].strip(), self._line, self.level)
            self._line += rest.count("\n", 0, cut)
            rest, self._block = rest[cut:].lstrip(), 0
        self._lines, self._size = ([rest], len(rest) + 1) if rest else ([], 0)

    def end_paragraph(self) -> Iterator[Passage]:
        if not self._lines:
            return
        if self._done and self._done_size + self._size > _LIMIT:
            yield from self._emit()
        if not self._done:
            self._done_line = self._line
        self._done.append("\n".join(self._lines))
        self._done_size += self._size + 1
        self._lines, self._size, self._block = [], 0, 0

    def drain(self) -> Iterator[Passage]:
        yield from self.end_paragraph()
        yield from self._emit()

    def _emit(self) -> Iterator[Passage]:
        text = "\n\n".join(self._done).strip()
        self._done, self._done_size = [], 0
        if text:
            yield Passage(self.path, text, self._done_line, self.level)


def _is_by_line(text: str) -> bool:
    """Return whether the lines of a text are rows of a table or a log: few begin with a small letter, as prose does."""
    lines = text.split("\n")
    wrapped = sum(line[:1].isalpha() and not line[:1].isupper() for line in lines)
    return len(lines) > _FEW_LINES and wrapped * 4 < len(lines)


def _cut(text: str, *, by_line: bool) -> int:
    """Return the split position of a long text: after a line or sentence in the second half of it, else at a space."""
    if by_line and (end := text.rfind("\n", _LIMIT // 2, _LIMIT)) > 0:
        return end + 1
    ends = [match.end() for match in _SENTENCE_END.finditer(text, _LIMIT // 2, _LIMIT)]
    if ends:
        return ends[-1]
    space = max(text.rfind(" ", _LIMIT // 2, _LIMIT), text.rfind("\n", _LIMIT // 2, _LIMIT))
    return space + 1 if space > 0 else _LIMIT
