"""The in-memory corpus of the episodes of scopes: the arrays that questions are scored on."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from graphmem.models import Episode
from graphmem.models.arrays import Float32s, GrowingArray
from graphmem.search.episode_text import adds_words, is_instruction, spoken, tells
from graphmem.search.late_interaction import STATED_MATCH, TokenIndex
from graphmem.search.lexical import Lexicon, Sessions
from graphmem.search.names import Names, Titles
from graphmem.search.question import months
from graphmem.search.speakers import ASSISTANT, SpeakerNames, side_of
from graphmem.text.names import bare_title, plain
from graphmem.text.normalize import QUESTION_MARKS
from graphmem.text.terms import terms
from graphmem.trust import LEVELS, trust_of

_OBJECTS = 20_000  # bytes of the objects of an empty corpus, as measured


@dataclass(frozen=True, slots=True)
class Unit:
    """An episode with its index data.

    Attributes
    ----------
    episode
        The row.
    session
        Key of the session, unique across scopes; None without a session.
    date
        Day, month and year of the episode as words; "" without a session.
    names
        Names found in the text.
    pieces
        All pieces (tokens) of the text.
    """

    episode: Episode
    session: Hashable | None
    date: str
    names: tuple[str, ...]
    pieces: frozenset[str]


UnitVectors = tuple[Float32s, NDArray[np.int8]]
"""Unit vectors of the episode, then of its sentences, (1 + s, dimension), empty if the model failed; and the stored
vectors of the content pieces, (p, `piece_width`)."""


@dataclass(frozen=True, slots=True)
class FactUnit:
    """A fact with its index data; it extends the episodes that state it.

    Attributes
    ----------
    id, text, episode_ids
        As in `graphmem.index.encoder.StatedFact`.
    vectors
        Unit vector of the sentence, shape (1, dimension); empty without a model.
    compact
        Stored vectors of its content pieces, shape (p, `piece_width`).
    """

    id: str
    text: str
    episode_ids: tuple[str, ...]
    vectors: Float32s
    compact: NDArray[np.int8]


class Corpus:
    """Append-only collection of n episodes by position, in insertion order.

    Parameters
    ----------
    dimension
        Dimension of the vectors, 0 without a model.
    sentences
        Whether to keep the vectors of sentences; False if an external index has them.
    """

    def __init__(self, dimension: int, *, sentences: bool = True) -> None:
        self.dimension = dimension
        self._keeps_sentences = sentences
        self.ids: list[str] = []
        self.position: dict[str, int] = {}
        self.speakers: list[str] = []
        self.speaker_names = SpeakerNames()
        self.sessions = Sessions()
        self.lexicon = Lexicon(self.sessions)
        self.pieces = TokenIndex(self.sessions, dimension)
        self.names = Names()
        self.episode_vectors: GrowingArray[np.float32] = GrowingArray(np.float32, dimension)
        self.sentences: GrowingArray[np.float32] = GrowingArray(np.float32, dimension)
        self.speaker_of: GrowingArray[np.int64] = GrowingArray(np.int64)
        self.session_of: GrowingArray[np.int64] = GrowingArray(np.int64)
        self.side_of: GrowingArray[np.int64] = GrowingArray(np.int64)
        """Side of each episode in a chat with an assistant, as in `graphmem.search.speakers.side_of`."""
        self.has_assistant = False
        """Whether any turn is an assistant's."""
        self.trust_of: GrowingArray[np.int64] = GrowingArray(np.int64)
        """Trust of the source of each episode, as its position in `graphmem.trust.LEVELS`."""
        self.lists: set[str] = set()
        """Ids of the episodes that are lists of ready-made facts."""
        self.asks: GrowingArray[np.float32] = GrowingArray(np.float32)
        self.tells: GrowingArray[np.float32] = GrowingArray(np.float32)
        """How much each turn tells of its speaker, as by `tells`."""
        self.instructs: GrowingArray[np.float32] = GrowingArray(np.float32)
        """1 for each turn in which a user tells an assistant what to do from then on, as by `is_instruction`."""
        self.times: GrowingArray[np.float64] = GrowingArray(np.float64, 2)
        """Times of occurrence and recording of each episode, in seconds since 1970."""
        self.months: GrowingArray[np.int64] = GrowingArray(np.int64)
        """Months of each episode's date, as a bit mask of `graphmem.search.question.months`."""
        self.fact_ids: list[str] = []
        self._fact_vectors: GrowingArray[np.float32] = GrowingArray(np.float32, dimension)
        self._stated_by: GrowingArray[np.int64] = GrowingArray(np.int64)
        self._facts: set[str] = set()
        self._pending_facts: dict[str, list[FactUnit]] = {}
        self._texts: list[str] = []
        self._sentence_begin: GrowingArray[np.int64] = GrowingArray(np.int64)
        self._session_number: dict[Hashable, int] = {}
        self._talks: dict[int, set[int]] = {}
        self._titles = Titles()
        self._unnamed: list[tuple[tuple[str, ...], str, bool]] = []
        """Names, title, and whether there is a session, of the last episodes, for `add_names`."""
        self._name_vectors: dict[str, NDArray[np.float16]] = {}

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def nbytes(self) -> int:
        """Approximate size in memory in bytes."""
        vectors = (self.episode_vectors, self.sentences, self._fact_vectors)
        return _OBJECTS + sum(each.nbytes for each in (*vectors, self.pieces, self.names, self.lexicon))

    @property
    def has_vectors(self) -> bool:
        """Whether the corpus has vectors, that is, a model."""
        return self.dimension > 0

    def learn(self, name_vectors: Mapping[str, NDArray[np.float16]]) -> None:
        """Add the vectors of names; call before `add_names` for episodes that contain them."""
        self._name_vectors.update(name_vectors)

    def extend(self, units: Sequence[Unit], vectors: Iterable[UnitVectors]) -> None:
        """Add new episodes in ascending order of id, with their vectors; `vectors` is iterated once.

        Call `add_names` afterwards, once for several calls: a title is looked for in the texts of all episodes.
        """
        first = len(self)
        self.sessions.extend([(unit.episode.id, unit.session) for unit in units])
        self.position.update((unit.episode.id, position) for position, unit in enumerate(units, first))
        self._add_priors(units)
        self.ids += [unit.episode.id for unit in units]
        self._texts += [unit.episode.searchable_text for unit in units]
        asks = (self.asks.rows[first:] > 0).tolist()
        self.lexicon.extend(
            [(terms(spoken(unit.episode)), terms(unit.date), ask) for unit, ask in zip(units, asks, strict=True)]
        )
        if self.has_vectors:
            self._add_vectors(units, vectors)
        for unit in units:
            self._unnamed.append((unit.names, bare_title(unit.episode.title or ""), unit.session is not None))
            for fact in self._pending_facts.pop(unit.episode.id, ()):
                self._state(self.position[unit.episode.id], fact)

    def extend_facts(self, facts: Sequence[FactUnit]) -> None:
        """Add facts; known ones are unchanged. Facts of unknown episodes are applied when the episode is added."""
        for fact in facts:
            if fact.id in self._facts:
                continue
            self._facts.add(fact.id)
            for episode_id in fact.episode_ids:
                position = self.position.get(episode_id)
                if position is None:
                    self._pending_facts.setdefault(episode_id, []).append(fact)
                else:
                    self._state(position, fact)

    def _state(self, position: int, fact: FactUnit) -> None:
        """Add the terms and vectors of a fact to an episode, unless its text already has most of the terms."""
        stated = terms(fact.text)
        if not adds_words(stated, partial(self.lexicon.has, position)):  # indexes of earlier versions include all facts
            return
        self.lexicon.state(position, stated)
        if self.has_vectors and len(fact.vectors):
            self.fact_ids.append(fact.id)
            self._fact_vectors.extend(fact.vectors)
            self._stated_by.extend(np.array([position]))
            self.pieces.state(position, fact.compact)

    def _add_priors(self, units: Sequence[Unit]) -> None:
        numbers = {speaker: who for who, speaker in enumerate(self.speakers)}
        speakers: list[int] = []
        sessions: list[int] = []
        for unit in units:
            name, who, session = unit.episode.speaker, -1, -1
            if name:
                who = numbers.setdefault(name, len(numbers))
            if unit.session is not None:
                session = self._session_number.setdefault(unit.session, len(self._session_number))
                if who >= 0:
                    self._talks.setdefault(who, set()).add(session)
            speakers.append(who)
            sessions.append(session)
            self.speaker_names.add(unit.episode.text, who, session)
        self.speakers = list(numbers)
        episodes = [unit.episode for unit in units]
        self.speaker_of.extend(np.array(speakers))
        self.session_of.extend(np.array(sessions))
        self.side_of.extend(np.array([side_of(e.role, e.speaker) for e in episodes]))
        self.has_assistant = self.has_assistant or bool((self.side_of.rows == ASSISTANT).any())
        self.trust_of.extend(np.array([LEVELS.index(trust_of(e)) for e in episodes]))
        self.lists.update(e.id for e in episodes if e.source == "triple")
        self.asks.extend(np.array([e.text.rstrip().endswith(QUESTION_MARKS) for e in episodes], dtype=np.float32))
        self.tells.extend(np.array([tells(e) for e in episodes], dtype=np.float32))
        self.instructs.extend(np.array([is_instruction(e) for e in episodes], dtype=np.float32))
        self.times.extend(np.array([[e.occurred_at.timestamp(), e.recorded_at.timestamp()] for e in episodes]))
        self.months.extend(np.array([months(unit.date) for unit in units]))

    def _add_vectors(self, units: Sequence[Unit], vectors: Iterable[UnitVectors]) -> None:
        none = np.zeros((1, self.dimension), np.float32)
        stored, pieces = zip(*((found if len(found) else none, compact) for found, compact in vectors), strict=True)
        self.episode_vectors.extend(np.concatenate([found[:1] for found in stored]))
        if self._keeps_sentences:
            sentences = [found[1:] if len(found) > 1 else found for found in stored]
            lengths = np.array([len(found) for found in sentences])
            self._sentence_begin.extend(len(self.sentences) + np.cumsum(lengths) - lengths)
            self.sentences.extend(np.concatenate(sentences))
        self.pieces.extend((unit.pieces for unit in units), pieces)

    def add_names(self) -> None:
        """Add the names of the episodes that `extend` added since the last call.

        These are extracted names, titles, and titles of other episodes in the text; in sessions, speakers are excluded.
        """
        first = len(self) - len(self._unnamed)
        spoken = {plain(speaker) for speaker in self.speakers}
        titles = [title for _, title, _ in self._unnamed]
        fresh = self._titles.add(titles)
        of_each: list[list[str]] = []
        texts = self._texts[first:]
        for (names, title, in_session), text in zip(self._unnamed, texts, strict=True):
            others = self._titles.find(text)
            found = [*names, *([title] if title else []), *others]
            of_each.append([n for n in dict.fromkeys(found) if not in_session or n not in spoken])
        self._unnamed = []
        self._learn_names(self.names.missing(name for found in of_each for name in found))
        self.names.extend(list(zip(of_each, titles, texts, strict=True)))
        for title in fresh:
            self._find_title(title, first)

    def _learn_names(self, missing: Sequence[str]) -> None:
        none = np.zeros(self.dimension, np.float16)
        vectors = [self._name_vectors.pop(name, none) for name in missing]
        self.names.learn(missing, np.array(vectors) if self.has_vectors and missing else None)

    def _find_title(self, title: str, until: int) -> None:
        """Attach a new title to the earlier episodes that contain it in their text."""
        parts = set(terms(title))
        for position in self.lexicon.with_all(parts, until) if parts else []:
            if title in self._titles.find(self._texts[position]):
                self.names.attach(position, title)

    def best_sentence(self, question: Float32s) -> Float32s:
        """Return for each episode the cosine of its best sentence with a question, shape (n,).

        If sentences are not kept, return the cosine of the whole episode.
        """
        if not self._keeps_sentences:
            return self.episode_vectors.rows @ question
        return np.maximum.reduceat(self.sentences.rows @ question, self._sentence_begin.rows)

    def best_fact(self, question: Float32s) -> tuple[Float32s, dict[int, str]]:
        """Return the score of each episode's best fact for a question, shape (n,), -1 for none; and the fact ids."""
        scores = np.full(len(self), -1, np.float32)
        best: dict[int, str] = {}
        cosines = STATED_MATCH * (self._fact_vectors.rows @ question)
        by = self._stated_by.rows
        np.maximum.at(scores, by, cosines)
        for i in np.flatnonzero((cosines > 0) & (cosines == scores[by])).tolist():
            best.setdefault(int(by[i]), self.fact_ids[i])
        return scores, best

    def sessions_of(self, speakers: Sequence[int]) -> set[int]:
        """Return the sessions in which any of these speakers talks."""
        return set[int]().union(*(self._talks.get(who, set()) for who in speakers))
