"""Texts for the parser: in pieces, and without words that it can't read in time."""

from __future__ import annotations

import threading
from types import SimpleNamespace

import pytest

from graphmem.text import english
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


def test_spacy_is_not_imported_by_two_threads_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its modules import each other: the second thread would see half of one."""
    imported = threading.Event()

    def watched(_: str) -> SimpleNamespace:
        imported.set()
        return SimpleNamespace(STOP_WORDS=())

    monkeypatch.setattr(english, "importlib", SimpleNamespace(import_module=watched))
    reader = threading.Thread(target=english._languages_of.__wrapped__)  # pyright: ignore[reportPrivateUsage]
    with english.parsing:  # another thread loads the pipeline
        reader.start()
        assert not imported.wait(0.2)
    assert imported.wait(10)
    reader.join()
