"""Output of results: tables on a terminal, aligned plain text in a pipe, or one JSON document."""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from io import StringIO, TextIOWrapper
from typing import Any, Literal

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

PIPE_WIDTH = 120
_LEAST_WIDTH = 60  # below, columns of a table are cut off

# controls and bidirectional overrides: stored text must not drive the terminal
_CONTROL = re.compile("[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u202a-\u202e\u2066-\u2069]")


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table; columns with a `ratio` share the remaining width and wrap."""

    title: str
    ratio: int | None = None
    align: Literal["left", "right"] = "left"
    style: str = ""


class _Console(Console):
    def __init__(self, **options: Any) -> None:
        environ = {name: value for name, value in os.environ.items() if name != "COLUMNS" or _width(value)}
        super().__init__(highlight=False, markup=False, emoji=False, _environ=environ, **options)

    def on_broken_pipe(self) -> None:
        """Raise the error that is being handled again, for the command; rich would exit with 1."""
        raise


def _width(columns: str) -> int | None:
    """Return the value of COLUMNS, or None for one that is no number or too small for a table."""
    return int(columns) if columns.isdecimal() and int(columns) >= _LEAST_WIDTH else None


class Output:
    """Printer of results to standard output and notes to standard error.

    Parameters
    ----------
    as_json
        Whether only `document` prints results.
    """

    def __init__(self, *, as_json: bool = False) -> None:
        self.as_json = as_json
        for stream in (sys.stdout, sys.stderr):
            if isinstance(stream, TextIOWrapper):
                stream.reconfigure(errors="backslashreplace")  # escape characters that the terminal can't encode
        self.console = _Console()
        self.errors = _Console(stderr=True)

    @property
    def is_terminal(self) -> bool:
        """Whether standard output is a terminal."""
        return self.console.is_terminal

    def document(self, value: Any) -> None:
        """Print a value as JSON; models are serialized by their fields."""
        sys.stdout.write(json.dumps(value, ensure_ascii=False, indent=2, default=_plain) + "\n")

    def note(self, message: str) -> None:
        """Print a note to standard error."""
        self.errors.print(Text(shown(message)), soft_wrap=not self.errors.is_terminal)

    def command(self, line: str) -> None:
        """Print a command to standard error for copying, on one line with its spaces unchanged."""
        self.errors.print(Text(f"  {shown(line, breaks=True)}"), soft_wrap=True)

    def line(self, text: str | Text = "", style: str = "") -> None:
        """Print a line; it wraps on a terminal."""
        words = text if isinstance(text, Text) else Text(shown(text, breaks=True), style)
        self.console.print(words, soft_wrap=not self.is_terminal)

    def table(self, columns: Sequence[Column], rows: Iterable[Sequence[str | Text]]) -> None:
        """Print rows under titles; wide text wraps, nothing is truncated."""
        wide = any(column.ratio for column in columns)
        table = Table(
            box=box.SIMPLE_HEAD if self.is_terminal else None,
            pad_edge=False,
            padding=(0, 1) if self.is_terminal else (0, 2, 0, 0),
            expand=wide and self.is_terminal,
            header_style="bold",
        )
        for column in columns:
            table.add_column(
                column.title,
                ratio=column.ratio if self.is_terminal else None,
                justify=column.align,
                style=column.style,
                overflow="fold",
                no_wrap=column.ratio is None,
            )
        for row in rows:
            table.add_row(*(cell if isinstance(cell, Text) else Text(shown(cell)) for cell in row))
        self._print(table)

    def pairs(self, rows: Iterable[tuple[str, Any]]) -> None:
        """Print aligned names and values."""
        table = Table(box=None, show_header=False, pad_edge=False, padding=(0, 2, 0, 0))
        table.add_column(style="bold" if self.is_terminal else "", no_wrap=True)
        table.add_column(overflow="fold")
        for name, value in rows:
            table.add_row(Text(name), Text(shown(_value(value))))
        self._print(table)

    @contextmanager
    def progress(self, total: int) -> Generator[Callable[[int], None]]:
        """Show a progress bar on a terminal; yield a callback for the completed part of the total."""
        if not self.errors.is_terminal:
            yield lambda _: None
            return
        from rich import progress as bars

        columns = (bars.BarColumn(24), bars.MofNCompleteColumn(), bars.TimeElapsedColumn())
        with bars.Progress(*columns, console=self.errors, transient=True) as bar:
            task = bar.add_task("", total=total)
            yield lambda done: bar.update(task, completed=done)

    def _print(self, table: Table) -> None:
        if self.is_terminal:
            self.console.print(table)
            return
        drawn = StringIO()
        _Console(file=drawn, width=_width(os.environ.get("COLUMNS", "")) or PIPE_WIDTH).print(table)
        sys.stdout.writelines(f"{line.rstrip()}\n" for line in drawn.getvalue().splitlines())


def _plain(value: Any) -> Any:
    if hasattr(value, "model_dump"):
        return value.model_dump(mode="json")
    if isinstance(value, datetime):
        return value.isoformat().replace("+00:00", "Z")
    return str(value)


def _value(value: Any) -> str:
    if isinstance(value, bool) or value is None:
        return {True: "yes", False: "no", None: "-"}[value]
    return f"{value:,}" if isinstance(value, int) else str(value)


def shown(text: str, *, breaks: bool = False) -> str:
    """Return text that is safe for a terminal: no control characters, and line breaks only with `breaks`."""
    text = _CONTROL.sub("", text)
    return text if breaks else " ".join(text.split())


def cut(text: str, limit: int) -> str:
    """Return text on one line, truncated to `limit` characters with an ellipsis."""
    text = shown(text)
    return text if len(text) <= limit else f"{text[: limit - 1].rstrip()}…"


def day(moment: datetime | None) -> str:
    """Return the date of a time (UTC), or an empty string for None."""
    return "" if moment is None else f"{moment:%Y-%m-%d}"
