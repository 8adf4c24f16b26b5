"""Streaming splitter of text and Markdown into passages that fit an extractor. Pure functions."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain

_LIMIT = 2000  # characters of a passage

_HEADING = re.compile(r" {0,3}(#{1,6})[ \t]+(?=[^ \t])")
_UNDERLINE = re.compile(r" {0,3}(?:(=+)|(-{2,}))[ \t]*$")
_RULE = re.compile(r" {0,3}([-*_])(?:[ \t]*\1){2,}[ \t]*$")
_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")
_SENTENCE_END = re.compile(r"[.!?…。！？][\"'”’)\]]*\s")
_FRONT_MATTER_LINES = 100


@dataclass(frozen=True, slots=True)
class Passage:
    """A section of a text: its headings (outermost first), its words, and the number of its first line."""

    path: tuple[str, ...]
    text: str
    line: int


def passages(lines: Iterator[tuple[int, str]], *, markdown: bool = False) -> Iterator[Passage]:
    """Split lines into passages of at most 2,000 characters, at paragraphs where possible.

    A longer paragraph is split at the end of a sentence, else at a space.

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
            holder.path = tuple(name for _, name in headings)
            continue
        if markdown:
            fence = _fence_after(text, fence)
        if (not text and not fence) or (markdown and not fence and _RULE.match(text)):
            yield from holder.end_paragraph()
        else:
            yield from holder.add_line(number, text)
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
        self._done: list[str] = []
        self._done_size = 0
        self._done_line = 0
        self._lines: list[str] = []
        self._size = 0
        self._line = 0

    def take_only_line(self) -> str:
        """Remove and return the current paragraph if it has exactly one line, else return an empty string."""
        if len(self._lines) != 1:
            return ""
        (text,) = self._lines
        self._lines, self._size = [], 0
        return text.strip()

    def add_line(self, number: int, text: str) -> Iterator[Passage]:
        if not self._lines:
            self._line = number
        self._lines.append(text)
        self._size += len(text) + 1
        if self._size <= _LIMIT:
            return
        yield from self._emit()
        rest = "\n".join(self._lines)
        while len(rest) > _LIMIT:
            cut = _cut(rest)
            yield Passage(self.path, rest[:cut].strip(), self._line)
            rest, self._line = rest[cut:].lstrip(), number
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
        self._lines, self._size = [], 0

    def drain(self) -> Iterator[Passage]:
        yield from self.end_paragraph()
        yield from self._emit()

    def _emit(self) -> Iterator[Passage]:
        text = "\n\n".join(self._done).strip()
        self._done, self._done_size = [], 0
        if text:
            yield Passage(self.path, text, self._done_line)


def _cut(text: str) -> int:
    """Return the split position of a long text: after a sentence in the second half of it, else at a space."""
    ends = [match.end() for match in _SENTENCE_END.finditer(text, _LIMIT // 2, _LIMIT)]
    if ends:
        return ends[-1]
    space = max(text.rfind(" ", _LIMIT // 2, _LIMIT), text.rfind("\n", _LIMIT // 2, _LIMIT))
    return space + 1 if space > 0 else _LIMIT


def front_matter_title(lines: Iterator[tuple[int, str]]) -> tuple[str | None, Iterator[tuple[int, str]]]:
    """Skip YAML front matter between ``---`` lines; return its title, or None, and the remaining lines."""
    head: list[tuple[int, str]] = []
    title = None
    for number, line in lines:
        head.append((number, line))
        text = line.strip()
        if len(head) == 1 and text != "---":
            break
        if len(head) > 1 and text in ("---", "..."):
            return title, lines
        if match := re.match(r"title:\s*(.+)", text):
            title = match[1].strip("\"' ") or None
        if len(head) == _FRONT_MATTER_LINES:
            break
    return None, chain(head, lines)
