"""Encoding of rows as index entries, which are stored with the rows (docs/concepts/search.md)."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from graphmem.embed import Embedder, TokenVectors
from graphmem.index.stored_vectors import compact, detail_of, is_content, packed, unit
from graphmem.models import Episode, IndexEntry, IndexKind
from graphmem.models.arrays import Float32s
from graphmem.text.names import PhraseFinder, Phrases, PlainPhrases, bare_title, phrases_of_list

Listed = Mapping[str, Sequence[str]]
"""Ids of episodes that are lists of facts, and the names of subjects and objects in each."""

_BEFORE_WORDS = 40  # last words of the previous turn, as context for pronouns
_PASS_WORDS = 150  # words that fit a model with a limit of 256 pieces
_MOST_PIECES = 1024
_SAID = PlainPhrases()
_NOT_LISTED: Listed = {}


@dataclass(frozen=True, slots=True)
class _Text:
    """The model input of an episode.

    `own` is the title and the searchable text, `before` the preceding context; `sentences` are ranges in `own`. The
    middle of a turn that is `said` isn't read if it is longer than two passes.
    """

    before: str
    own: str
    sentences: tuple[tuple[int, int], ...]
    said: bool = False

    def passes(self) -> list[tuple[int, int]]:
        """Return the ranges of `own` for the model, split at sentences so that each fits into one pass."""
        if len(self.own.split()) <= _PASS_WORDS:
            return [(0, len(self.own))]
        cuts, words = [0], 0
        for begin, end in self.sentences:
            count = len(self.own[begin:end].split())
            if words and words + count > _PASS_WORDS:
                cuts.append(begin)
                words = 0
            words += count
        every = list(zip(cuts, [*cuts[1:], len(self.own)], strict=True))
        return [every[0], (self._last_words(), len(self.own))] if self.said and len(every) > 2 else every

    def _last_words(self) -> int:
        """Return where the last sentences begin that fit into one pass."""
        words, begin = 0, len(self.own)
        for first, last in reversed(self.sentences):
            words += len(self.own[first:last].split())
            if words > _PASS_WORDS and begin < len(self.own):
                break
            begin = first
        return begin


@dataclass(frozen=True, slots=True)
class StatedFact:
    """A fact as input of the encoder.

    Attributes
    ----------
    id
        Id of the edge.
    text
        The sentence of the fact, with the speaker of the episode as "I".
    episode_ids
        Episodes that the fact adds terms to; excludes triples and episodes that contain most of the terms.
    """

    id: str
    text: str
    episode_ids: tuple[str, ...]


class EpisodeEncoder:
    """Encoder of episodes, facts and names as index entries.

    Parameters
    ----------
    embedder
        The embedding model; None indexes words only.
    phrases
        Finder of names and sentences in documents; conversation turns use `PlainPhrases`.
    """

    def __init__(self, embedder: Embedder | None, phrases: PhraseFinder) -> None:
        self.embedder = embedder
        self._phrases = phrases

    @property
    def model(self) -> str:
        """Name of the embedding model, "" for none."""
        return "" if self.embedder is None else self.embedder.model_name

    @property
    def dimension(self) -> int:
        """Dimension of the vectors, 0 without a model."""
        return 0 if self.embedder is None else self.embedder.dimension

    def forget(self) -> None:
        """Drop the cached vectors of recent texts."""
        if self.embedder is not None:
            self.embedder.forget()

    def episodes(
        self, episodes: Sequence[tuple[Episode, Episode | None]], listed: Listed = _NOT_LISTED
    ) -> list[IndexEntry]:
        """Return the entries of episodes, each given with the previous one of its session.

        Parameters
        ----------
        episodes
            The episodes.
        listed
            Ids of lists of facts among them, with the names of subjects and objects; names are found in the others.

        Raises
        ------
        EmbeddingFailed
            If the model fails.
        """
        found = self._found([episode for episode, _ in episodes], listed)
        texts = [_text(*both, phrases) for both, phrases in zip(episodes, found, strict=True)]
        tokens = self._tokens(texts)
        entries: list[IndexEntry] = []
        for i, ((episode, _), phrases) in enumerate(zip(episodes, found, strict=True)):
            title = [bare_title(episode.title)] if episode.title else []
            names = list(dict.fromkeys([*phrases.names, *filter(None, title)]))
            if tokens is not None:
                entries.append(_with_tokens(self.model, episode.id, names, texts[i], tokens[i]))
            else:
                vectors = self._sentence_vectors(texts[i]) if self.embedder is not None else None
                entries.append(_entry("episode", episode.id, self.model, vectors, detail={"names": names}))
        return entries

    def words_only(
        self, episodes: Sequence[tuple[Episode, Episode | None]], listed: Listed = _NOT_LISTED
    ) -> list[IndexEntry]:
        """Return the entries of episodes without vectors; parameters as in `episodes`."""
        return EpisodeEncoder(None, self._phrases).episodes(episodes, listed)

    def names_of(self, entries: Iterable[IndexEntry]) -> list[str]:
        """Return the names in the entries of episodes, each once."""
        return list(dict.fromkeys(name for entry in entries for name in detail_of(entry).get("names", ())))

    def names(self, names: Sequence[str]) -> list[IndexEntry]:
        """Return the entries of names; empty without a model."""
        if self.embedder is None or not names:
            return []
        vectors = self.embedder.vectors(names)
        return [_entry("name", name, self.model, vectors[i : i + 1]) for i, name in enumerate(names)]

    def facts(self, facts: Sequence[StatedFact]) -> list[IndexEntry]:
        """Return the entries of facts, encoded like a turn of their speaker.

        Raises
        ------
        EmbeddingFailed
            If the model fails.
        """
        stated = [fact for fact in facts if fact.episode_ids]
        texts = [fact.text for fact in stated]
        tokens = self.embedder.token_vectors(texts) if self.embedder is not None else None
        vectors = self.embedder.vectors(texts) if self.embedder is not None and stated else None
        entries = [_entry("fact", fact.id, self.model, None) for fact in facts if not fact.episode_ids]
        for i, fact in enumerate(stated):
            detail = {"text": [fact.text], "episodes": list(fact.episode_ids)}
            vector = None if vectors is None else vectors[i : i + 1]
            pieces = None if tokens is None else _content(tokens[i])
            entries.append(_entry("fact", fact.id, self.model, vector, pieces, detail))
        return entries

    def _found(self, episodes: Sequence[Episode], listed: Listed) -> list[Phrases]:
        """Return names and sentences; only texts that are neither turns nor lists of facts are parsed by spaCy.

        See docs/development/benchmarks.md.
        """
        written = [e for e in episodes if e.id not in listed and not _is_said(e)]
        found = dict(
            zip((e.id for e in written), self._phrases.find([e.searchable_text for e in written]), strict=True)
        )
        for episode in episodes:
            if episode.id in listed:
                found[episode.id] = phrases_of_list(episode.searchable_text, listed[episode.id])
            elif _is_said(episode):
                [found[episode.id]] = _SAID.find([episode.searchable_text])
        return [found[episode.id] for episode in episodes]

    def _tokens(self, texts: Sequence[_Text]) -> list[TokenVectors] | None:
        """Return the pieces of each text with offsets into `own`; None if the model returns no token vectors."""
        if self.embedder is None:
            return None
        passes = [text.passes() for text in texts]
        read = self.embedder.token_vectors(
            [text.before + text.own[a:b] for text, parts in zip(texts, passes, strict=True) for a, b in parts]
        )
        if read is None:
            return None
        rest = iter(read)
        return [
            _joined([_shifted(next(rest), begin, len(text.before)) for begin, _ in parts])
            for text, parts in zip(texts, passes, strict=True)
        ]

    def _sentence_vectors(self, text: _Text) -> Float32s:
        assert self.embedder is not None
        sentences = [text.own[a:b] for a, b in text.sentences] if len(text.sentences) > 1 else []
        return self.embedder.vectors([text.before + text.own, *sentences])


def _is_said(episode: Episode) -> bool:
    """Return whether an episode is a conversation turn: a message with a speaker or a role."""
    return episode.source == "message" and bool(episode.speaker or episode.role)


def _text(episode: Episode, earlier: Episode | None, phrases: Phrases) -> _Text:
    head = f"{episode.title}\n" if episode.title else ""
    before = f"{episode.speaker}: " if episode.speaker else ""
    if earlier is not None:
        said = " ".join(earlier.text.split()[-_BEFORE_WORDS:])
        before = f"{earlier.speaker}: {said}\n{before}" if earlier.speaker else f"{said}\n{before}"
    sentences = tuple((begin + len(head), end + len(head)) for begin, end in phrases.sentences)
    return _Text(before, head + episode.searchable_text, sentences, _is_said(episode))


def _shifted(tokens: TokenVectors, begin: int, before: int) -> TokenVectors:
    """Return the tokens of the own text of a pass, with offsets into the full text."""
    own = (tokens.offsets[:, 0] >= before) & (tokens.offsets[:, 1] > tokens.offsets[:, 0])
    kept = np.flatnonzero(own)
    pieces = tuple(tokens.pieces[i] for i in kept.tolist())
    return TokenVectors(pieces, tokens.vectors[kept], tokens.offsets[kept] - before + begin, tokens.pooled)


def _joined(parts: Sequence[TokenVectors]) -> TokenVectors:
    if len(parts) == 1:
        return parts[0]
    return TokenVectors(
        tuple(piece for part in parts for piece in part.pieces),
        np.concatenate([part.vectors for part in parts]),
        np.concatenate([part.offsets for part in parts]),
        parts[0].pooled,
    )


def _with_tokens(model: str, key: str, names: list[str], text: _Text, tokens: TokenVectors) -> IndexEntry:
    """Return the entry of an episode; its vector and those of its sentences are means of their piece vectors."""
    if not tokens.pieces:
        vectors = tokens.pooled[None]
        return _entry("episode", key, model, vectors, detail={"names": names})
    begins, ends = tokens.offsets[:, 0], tokens.offsets[:, 1]
    within = [np.flatnonzero((begins >= a) & (ends <= b)) for a, b in text.sentences]
    means = [tokens.vectors[rows].mean(0) for rows in within if len(rows)]
    whole = tokens.vectors.mean(0)
    vectors = unit(np.array([whole, *(means or [whole])], dtype=np.float32))
    detail = {"names": names, "pieces": sorted(set(tokens.pieces))}
    return _entry("episode", key, model, vectors, _content(tokens), detail)


def _content(tokens: TokenVectors) -> NDArray[np.int8]:
    """Return the stored vectors of the content pieces, or of the first piece if none is one."""
    rows = [i for i, piece in enumerate(tokens.pieces) if is_content(piece)][:_MOST_PIECES] or [0]
    return compact(tokens.vectors[rows[: len(tokens.pieces)]])


def _entry(
    kind: IndexKind,
    key: str,
    model: str,
    vectors: Float32s | None,
    pieces: NDArray[np.int8] | None = None,
    detail: dict[str, list[str]] | None = None,
) -> IndexEntry:
    return IndexEntry(
        kind=kind,
        key=key,
        model=model,
        vectors=b"" if vectors is None else packed(vectors),
        pieces=b"" if pieces is None else pieces.tobytes(),
        detail="" if detail is None else json.dumps(detail, ensure_ascii=False, separators=(",", ":")),
    )
