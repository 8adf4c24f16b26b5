"""Which texts are parsed for names and sentences."""

from __future__ import annotations

from collections.abc import Sequence

from graphmem.index.codec import detail_of
from graphmem.index.encoder import EpisodeEncoder
from graphmem.index.phrases import Phrases
from graphmem.models import Episode, Scope

HOME = Scope("home")


class Parser:
    """A finder that keeps what it was given, and finds its first letter."""

    def __init__(self) -> None:
        self.given: list[str] = []

    def find(self, texts: Sequence[str]) -> list[Phrases]:
        """Return one name a text."""
        self.given += texts
        return [Phrases((text[0],), ((0, len(text)),)) for text in texts]


def test_what_somebody_says_is_not_parsed() -> None:
    parser = Parser()
    episodes = [
        Episode(id="1", scope=HOME, source="document", text="alpha is written"),
        Episode(id="2", scope=HOME, text="we met in Porto", speaker="Ines"),
        Episode(id="3", scope=HOME, text="beta is a note"),
        Episode(id="4", scope=HOME, text="and then we saw Braga", role="user"),
        Episode(id="5", scope=HOME, source="document", text="gamma", speaker="Ines"),
    ]
    entries = EpisodeEncoder(None, parser).episodes([(episode, None) for episode in episodes])
    assert parser.given == ["alpha is written", "beta is a note", "gamma"]
    assert [detail_of(entry)["names"] for entry in entries] == [["a"], ["porto"], ["b"], ["braga"], ["g"]]
