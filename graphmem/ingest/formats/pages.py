"""HTML as lines of Markdown."""

from __future__ import annotations

import re
from collections.abc import Mapping
from html.parser import HTMLParser

# constructs on which the Python parser is slow or fails: declarations, and "<" without ">"
_DECLARATION = re.compile(r"<[!?][^<>]*>?")
_STRAY = re.compile(r"<(?=[^<>]*(?:<|\Z))")
INTRODUCES = re.compile(r"(?:On |Am |Le |El |Il ).{0,200}:\s{0,4}\Z|.{0,200} (?:wrote|schrieb|writes):\s{0,4}\Z")
_HEADINGS = {f"h{level}": "#" * level for level in range(1, 7)}
_BLOCKS = {
    *_HEADINGS, "p", "div", "section", "article", "main", "header", "footer", "ul", "ol", "li", "table", "tr", "br",
    "blockquote", "pre", "hr", "dl", "dt", "dd", "figure", "figcaption", "form", "fieldset", "details", "summary",
    "address",
}  # fmt: skip
_LEFT_OUT = {"script", "style", "template", "noscript", "svg", "nav", "select", "button", "iframe", "object"}


def to_lines(text: str, *, mail: bool = False) -> tuple[str | None, list[str]]:
    """Return the title of an HTML text, or None, and its text as lines of Markdown; with ">" where a mail quotes."""
    page = _Page(mail=mail)
    page.feed(_STRAY.sub("&lt;", _DECLARATION.sub("", _without_comments(text))))
    page.close()
    page.end_line()
    return " ".join("".join(page.title).split()) or None, page.lines


def _without_comments(text: str) -> str:
    kept: list[str] = []
    at = 0
    while (begin := text.find("<!--", at)) >= 0:
        kept.append(text[at:begin])
        end = text.find("-->", begin + 4)
        if end < 0:
            return "".join(kept)
        at = end + 3
    return "".join((*kept, text[at:]))


class _Page(HTMLParser):
    """Parser that collects the title and the text of a page."""

    def __init__(self, *, mail: bool = False) -> None:
        super().__init__(convert_charrefs=True)
        self._mail = mail
        self._quotes: list[bool] = []  # of each open block quotation, whether it is part of another mail
        self.title: list[str] = []
        self.lines: list[str] = []
        self._line: list[str] = []
        self._begin = ""
        self._left_out = 0
        self._in_title = False
        self._in_pre = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Begin a block, or skip the content of an ignored element."""
        if tag in _LEFT_OUT:
            self._left_out += 1
        elif tag == "title":
            self._in_title = True
        elif tag == "img" and (alt := dict(attrs).get("alt")) and not self._left_out:
            self._line.append(f" [image: {' '.join(alt.split())}] ")
        elif tag in ("td", "th"):
            self._line.append(" ")
        if tag in _BLOCKS:
            self.end_line(blank=tag not in ("br", "li", "tr"))
            self._begin = _HEADINGS.get(tag, "-" if tag == "li" else "")
            self._in_pre += tag == "pre"
        if tag == "blockquote" and self._mail:
            self._quotes.append(self._in_quote or self._is_quote(dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        """End a block."""
        if tag in _LEFT_OUT:
            self._left_out = max(0, self._left_out - 1)
        elif tag in ("title", "head"):
            self._in_title = False
        if tag in _BLOCKS:
            self.end_line(blank=tag not in ("li", "tr"))
            self._in_pre = max(0, self._in_pre - (tag == "pre"))
        if tag == "blockquote" and self._quotes:
            self._quotes.pop()

    @property
    def _in_quote(self) -> bool:
        return bool(self._quotes) and self._quotes[-1]

    def _is_quote(self, attrs: Mapping[str, str | None]) -> bool:
        before = next((line for line in reversed(self.lines) if line), "")
        classes = (attrs.get("class") or "").split()
        marked = attrs.get("type") == "cite" or any(name.endswith(("_quote", "_quoted")) for name in classes)
        return marked or INTRODUCES.match(before) is not None

    def handle_data(self, data: str) -> None:
        """Add text to the title or the current line."""
        if self._in_title:
            self.title.append(data)
        elif not self._left_out and self._in_pre:
            first, *others = data.split("\n")
            self._line.append(first)
            for other in others:
                self.end_line()
                self._line.append(other)
        elif not self._left_out:
            self._line.append(data)

    def end_line(self, *, blank: bool = False) -> None:
        """Finish the line; with `blank`, add a blank line after it."""
        words = "".join(self._line)
        text = words.rstrip() if self._in_pre else " ".join(words.split())
        if text:
            text = f"{self._begin} {text}" if self._begin else text
            self.lines.append(f"> {text}" if self._in_quote else text)
            self._begin = ""
        if blank and self.lines and self.lines[-1]:
            self.lines.append("")
        self._line = []
