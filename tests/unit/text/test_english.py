"""Texts for the parser: in pieces, and without words that it can't read in time."""

from __future__ import annotations

import subprocess
import sys

import pytest

from graphmem.text.english import PIECE, batch_size, pieces


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
