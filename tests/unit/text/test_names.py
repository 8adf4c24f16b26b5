"""Names are found in the forms in which people write them, and in no other word."""

from __future__ import annotations

import time

import pytest

from graphmem.text import names as module
from graphmem.text.names import NameFinder, SpacyPhrases


def test_without_a_text_no_parser_is_loaded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(module, "english_pipeline")
    assert SpacyPhrases().find([]) == []


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("Zebulon", "zebulon rocks"),
        ("zebulon", "ZEBULON!"),
        ("Zebulon", "Zebulon's bike"),
        ("Zebulon", "Zebulon\u2019s bike"),
        ("Zebulon", "Zebulons Rad"),
        ("Zebulon Quim", "mail zebulon.quim@example.org"),
        ("Zebulon Quim", "@zebulon_quim"),
        ("Zebulon Quim", "Zebulon\u00a0 Quim"),
        ("Jos\u00e9 N\u00fa\u00f1ez", "jose nunez"),
        ("jose nunez", "JOSE\u0301 NU\u0301N\u0303EZ"),
        ("Stra\u00dfer", "STRASSER"),
        ("\u5f20\u4f1f", "\u6211\u8ba4\u8bc6\u5f20\u4f1f\u5417"),
        ("\uc9c0\uc6b0", "\uc9c0\uc6b0\ub294"),
        ("Bo", "with Bo."),
        ("IT", "the IT department"),
        ("Bob \ud800é", "with bob \ud800e"),
    ],
)
def test_a_name_is_found(name: str, text: str) -> None:
    assert NameFinder([name]).found_in(text)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("Ann", "annual plans"),
        ("Ann", "anns"),
        ("Maya", "Amaya"),
        ("Zebulon Quim", "Zebulon and Quim"),
        ("IT", "it rains"),
        ("Bo", "bo"),
        ("\u5f20", "\u5f20\u4f1f"),
        ("R", "R is a language"),
        (" ", "a b"),
    ],
)
def test_another_word_is_not_taken_for_it(name: str, text: str) -> None:
    assert not NameFinder([name]).found_in(text)


@pytest.mark.parametrize("piece", ["a. ", "(", "zebulon", "zebulon_", "\u0301"])
def test_a_long_text_takes_little_time(piece: str) -> None:
    finder = NameFinder(["zebulon quim", "a. a. b", "((("])
    began = time.thread_time()
    finder.found_in(piece * (100_000 // len(piece)))
    assert time.thread_time() - began < 1.0
