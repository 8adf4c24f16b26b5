"""Personal data leaves facts; names and ordinary numbers stay."""

from __future__ import annotations

import pytest

from graphmem.text.redact import PatternRedactor


@pytest.mark.parametrize(
    ("text", "redacted"),
    [
        ("write to maya.f+x@mail.example.org soon", "write to [email] soon"),
        ("call +49 (30) 1234-5678 90", "call [phone]"),
        ("her card is 4111 1111 1111 1111", "her card is [card]"),
        ("pay to DE89 3704 0044 0532 0130 00", "pay to [iban]"),
        ("number 078-05-1120", "number [ssn]"),
        ("from 192.168.1.20", "from [ip]"),
    ],
)
def test_personal_data_is_replaced_by_its_kind(text: str, redacted: str) -> None:
    assert PatternRedactor().redact(text, ()) == redacted


@pytest.mark.parametrize(
    "text",
    [
        "Maya moved on 2026-01-05",
        "from 2019 to 2021, 12,000 euros",
        "version 3.11.7 of Python",
        "order 4111 1111 1111 1112 of 2026-01-05",
        "Maya paid 1,250.50 for 3 nights",
    ],
)
def test_ordinary_numbers_stay(text: str) -> None:
    assert PatternRedactor().redact(text, ()) == text


def test_a_name_is_exempt() -> None:
    text = "Maya reads team@globex.example"
    assert PatternRedactor().redact(text, {"team@globex.example"}) == text
