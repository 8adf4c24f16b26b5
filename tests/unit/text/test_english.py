"""Texts for the parser: in pieces, and without words that it can't read in time."""

from __future__ import annotations

import subprocess
import sys

import pytest

from graphmem.text.english import PIECE, batch_size, pieces, seems_english


@pytest.mark.parametrize("text", ["", "Short.", "One sentence. " * 3000, "word " * 9000, "No end", "Line\n" * 9000])
def test_pieces_are_short_and_together_the_text(text: str) -> None:
    found = list(pieces(text))
    assert "".join(found) == text
    assert max(map(len, found)) <= PIECE


def test_pieces_end_with_sentences() -> None:
    assert {piece.rstrip()[-1] for piece in pieces("She likes tea. He does not! Why? " * 1000)} <= set(".!?")


def test_long_words_are_cut_and_what_follows_stays_in_its_place() -> None:
    text = "(" * 30_000 + " Ada"
    found = "".join(pieces(text))
    assert found.split() == ["(" * 100, "Ada"]
    assert found.index("Ada") == text.index("Ada")


def test_fewer_long_pieces_are_parsed_at_once() -> None:
    assert batch_size(["x" * PIECE, "x"]) == 2
    assert batch_size(["x" * 10]) > 1000
    assert batch_size([]) >= 1


def test_a_language_is_recognized_without_importing_spacy() -> None:
    """Importing its languages takes two seconds."""
    asked = "seems_english('Je ne sais pas ce que tu veux'), 'spacy' in sys.modules"
    program = f"import sys; from graphmem.text.english import seems_english; print({asked})"
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert ran.stdout == "False False\n"


TEAM = "- {} manages Globex\n- Tom Reed lives in Oslo\n- Zoe Miller leads Apollo"


@pytest.mark.parametrize(
    "name", ["李雷", "Li Lei", "Zoë Hall", "Łukasz Żak", "Αλέξης", "Олег Ким", "이순신", "Tom Reed"]
)
@pytest.mark.parametrize(
    "text", [TEAM, "{} lives in Oslo and works at Globex", "Tom lives in Oslo with {}, I live in Rome"]
)
def test_a_foreign_name_makes_no_other_language(name: str, text: str) -> None:
    assert seems_english(text.format(name))


def test_several_names_with_accents_make_no_other_language() -> None:
    assert seems_english("- José manages Globex\n- Zoë lives in Oslo\n- Łukasz leads Apollo")


@pytest.mark.parametrize(
    "text",
    [
        "Ich wohne in Berlin.",
        "Grüße aus Köln",
        "Der Hund heißt Rex",
        "Übermorgen fährt Jörg",
        "Wohne jetzt in Köln",
        "Ik was in Amsterdam",
        "Hola José, ¿cómo estás?",
        "Mon frère Paul habite à Lyon",
        "Li lavora a Roma",
        "Locuiesc în București",
        "İstanbul'da yaşıyorum",
        "我在北京工作，在 Google 上班",
        "Мой брат живёт в Москве",
        "李雷和韩梅梅住在上海",
    ],
)
def test_other_languages_are_told_from_english(text: str) -> None:
    assert not seems_english(text)
