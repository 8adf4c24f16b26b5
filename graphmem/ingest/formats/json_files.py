"""JSON of any kind: lines, arrays and pretty-printed objects, one value at a time."""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import Iterator
from typing import IO, cast

from graphmem.errors import InvalidInput
from graphmem.ingest.formats.archives import CHUNK_BYTES
from graphmem.ingest.formats.source import MAX_RECORD_BYTES, Refused, Report, Source

_BETWEEN = re.compile(r"[\s,]*")
_DECODER = json.JSONDecoder(parse_constant=lambda _: None)
_CUT_OFF = 12  # characters at the end of the buffer that may be an incomplete token: \\u12, fals, -


def json_values(stream: IO[bytes]) -> Iterator[tuple[int, object]]:
    """Yield the numbered values of a JSON text: the elements of an array, or concatenated values.

    One value at a time is held in memory. An incomplete value is parsed again once the buffer has doubled, so that
    reading takes linear time.

    Raises
    ------
    InvalidInput
        If the text is not JSON or a value is longer than 64 MiB; earlier values have been yielded.
    """
    decode = codecs.getincrementaldecoder("utf-8-sig")().decode
    text, at, number, inside, ended = "", 0, 0, False, False

    def more() -> None:
        nonlocal text, at, ended
        if len(text) - at > MAX_RECORD_BYTES:
            raise InvalidInput(f"record {number + 1} is longer than {MAX_RECORD_BYTES >> 20} MiB")
        data = stream.read(max(CHUNK_BYTES, len(text) - at))
        ended = not data
        try:
            text, at = text[at:] + decode(data, ended), 0
        except UnicodeDecodeError as error:
            raise InvalidInput(f"not UTF-8 after record {number} (byte 0x{error.object[error.start]:02x})") from None

    while True:
        at = cast("re.Match[str]", _BETWEEN.match(text, at)).end()
        if at == len(text):
            if ended:
                break
            more()
        elif text[at] == "]" and inside:
            at, inside = at + 1, False
        elif text[at] == "[" and not inside:
            at, inside = at + 1, True
        else:
            try:
                value, end = _DECODER.raw_decode(text, at)
            except json.JSONDecodeError as error:
                if ended or not (error.msg.startswith("Unterminated") or error.pos >= len(text) - _CUT_OFF):
                    raise InvalidInput(f"not JSON in record {number + 1}: {error.msg}") from None
                more()
                continue
            except RecursionError:
                raise InvalidInput(f"unreadable JSON: record {number + 1} is nested too deeply") from None
            except ValueError:
                raise InvalidInput(f"unreadable JSON: a number in record {number + 1} has too many digits") from None
            if end == len(text) and not ended and not isinstance(value, (dict, list, str)):
                more()  # a number may continue
                continue
            at, number = end, number + 1
            yield number, value
    if inside:
        raise InvalidInput(f"the file is cut off: its array doesn't end after record {number}")


def json_records(source: Source, refused: Report) -> Iterator[tuple[int, object]]:
    """Yield the values of a file; report the first invalid one to `refused`."""
    last = 0
    try:
        for number, value in json_values(source.stream):
            last = number
            yield number, value
    except InvalidInput as error:
        refused(Refused(source.name, last + 1, str(error)))


def json_lines(source: Source, refused: Report) -> Iterator[tuple[int, object]]:
    """Yield the values of the numbered lines of a file; report lines that aren't JSON to `refused`."""
    for number, line in source.texts(refused):
        if not line.strip():
            continue
        try:
            yield number, json.loads(line, parse_constant=_no_constant)
        except json.JSONDecodeError as error:
            refused(Refused(source.name, number, f"not JSON: {error.msg} at column {error.colno}"))
        except (ValueError, RecursionError) as error:
            refused(Refused(source.name, number, f"not JSON: {error}"))


def _no_constant(word: str) -> float:
    raise ValueError(f"{word} is not a JSON number")
