"""Lives of a memory as lists of steps, in which nothing may fail and nothing that was forgotten may be left.

A step is a text, so that a life that fails can be copied into a test::

    add 3 s1 05-07 by B: A likes C #; A lives_in D
    merge A B | unmerge 2 | forget episode 3 | forget session s1 | forget entity A | forget speaker B
    retract 3 | end 3 05-07 | infer | again
    flush | search A | communities | evict | reindex | reopen | export | import

Capital letters stand for names. What an ``add`` tells is stored as the episode of its number; ``#`` adds a remark that
only this episode has, as its external id and metadata do. ``over:likes`` in place of a relation ends the fact, and so
do the other words of `WHY`. ``retract 3`` and ``end 3`` are about the third fact, ``unmerge 2`` undoes the merge that
is second in the list of those that can be undone, and ``again`` extracts all episodes again. The first step may be
``with`` and the names of `OPTIONS` that the memory has.
"""

from __future__ import annotations

import io
import random
import re
from collections import defaultdict
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import pytest
from toy import ToyExtractor, lines_of, read

from graphmem import Conflict, GraphMemory, InvalidInput, NotFound
from graphmem.inference.premises import find_compatible
from graphmem.ingest.fact_ledger import episode_sources
from graphmem.models import Edge, EdgeQuery, new_id
from graphmem.ontology import DEFAULT_ONTOLOGY
from graphmem.protocols import EndingReason, ExtractedEnding, Extraction, GraphBackend
from graphmem.upkeep.succession import successor

ADD = re.compile(r"add (\d+) (\S+) (\d\d-\d\d)(?: by (\w))?: (.*)")
OPTIONS: dict[str, dict[str, object]] = {
    "eviction": {"expired_edge_retention_days": 0, "max_entities": 6},
    "leiden": {"community_algorithm": "leiden"},
}
RELATIONS = ("knows", "works_at", "likes", "lives_in", "part_of")
WHY: dict[str, EndingReason] = {"over": "over", "wrong": "corrected", "continues": "continues"}


class LifeExtractor(ToyExtractor):
    """Reads toy texts, and a relation with one of `WHY` before it as an end."""

    def _one(self, text: str) -> Extraction | Exception:
        endings: list[ExtractedEnding] = []
        for source, told, target, _ in lines_of(text):
            why, _, relation = told.rpartition(":")
            if why:
                endings.append(ExtractedEnding(source, relation, target, why=WHY[why]))
        facts = "\n".join(line for line in text.splitlines() if ":" not in line)
        return replace(read(facts), endings=tuple(endings))


@dataclass(frozen=True, slots=True)
class Told:
    """An episode of a life: its id, and the words that nobody may find once it is forgotten."""

    id: str
    session: str
    speaker: str
    text: str
    remark: str


def name(letter: str) -> str:
    return f"{letter}{letter.lower()}ni Zor{letter.lower() * 2}"


def random_life(seed: int) -> list[str]:
    """Return the steps of a life."""
    chance = random.Random(seed)
    letters = "ABCDEFGH"[: chance.choice([4, 6, 8])]
    steps = [" ".join(["with", *(option for option in OPTIONS if chance.random() < 0.5)])]
    added = 0

    def add() -> str:
        nonlocal added
        added += 1
        lines: list[str] = []
        for _ in range(chance.randint(1, 3)):
            source, target = chance.sample(letters, 2)
            remark = " #" if chance.random() < 0.5 else ""
            why = f"{chance.choice(list(WHY))}:" if chance.random() < 0.2 else ""
            lines.append(f"{source} {why}{chance.choice(RELATIONS)} {target}{'' if why else remark}")
        speaker = f" by {chance.choice(letters)}" if chance.random() < 0.2 else ""
        day = f"{chance.randint(1, 12):02}-{chance.randint(1, 28):02}"
        return f"add {added} {chance.choice(['-', 's1', 's2'])} {day}{speaker}: {'; '.join(lines)}"

    kinds: dict[str, tuple[float, Callable[[], str]]] = {
        "add": (11, add),
        "flush": (3, lambda: "flush"),
        "search": (1, lambda: f"search {chance.choice(letters)}"),
        "communities": (1, lambda: "communities"),
        "merge": (4, lambda: "merge {} {}".format(*chance.sample(letters, 2))),
        "unmerge": (2, lambda: f"unmerge {chance.randrange(4)}"),
        "retract": (0.5, lambda: f"retract {chance.randrange(20)}"),
        "end": (0.5, lambda: f"end {chance.randrange(20)} {chance.randint(1, 12):02}-{chance.randint(1, 28):02}"),
        "infer": (0.5, lambda: "infer"),
        "again": (0.4, lambda: "again"),
        "evict": (1, lambda: "evict"),
        "reindex": (0.3, lambda: "reindex"),
        "reopen": (0.2, lambda: "reopen"),
        "export": (0.4, lambda: "export"),
        "import": (0.3, lambda: "import"),
        "episode": (1, lambda: f"forget episode {chance.randint(1, max(1, added))}"),
        "session": (0.4, lambda: f"forget session {chance.choice(['s1', 's2'])}"),
        "entity": (0.4, lambda: f"forget entity {chance.choice(letters)}"),
        "speaker": (0.3, lambda: f"forget speaker {chance.choice(letters)}"),
    }
    weights = [weight for weight, _ in kinds.values()]
    for _ in range(chance.randint(8, 30)):
        _, step = kinds[chance.choices(list(kinds), weights)[0]]
        steps.append(step())
    return [*steps, f"forget episode {chance.randint(1, max(1, added))}", "forget session s1"]


class Life:
    """Lives the steps, and looks after each erasure at all that is stored.

    Parameters
    ----------
    open_memory
        Opens the store with settings; once more after a ``reopen``.
    folder
        Where the files of the store are; None where it has none.
    """

    def __init__(self, open_memory: Callable[..., GraphMemory], folder: Path | None) -> None:
        self._open = open_memory
        self._folder = folder
        self._memory = open_memory()
        self._told: dict[int, Told] = {}
        self._gone: dict[int, Told] = {}
        self._exported: tuple[str, dict[int, Told]] | None = None
        self._imported = False

    @property
    def _backend(self) -> GraphBackend:
        return self._memory._engine.backend  # pyright: ignore[reportPrivateUsage]

    def run(self, steps: list[str]) -> None:
        try:
            self._run(steps)
        finally:
            self._memory.close()

    def _run(self, steps: list[str]) -> None:
        for step in steps:
            what, _, rest = step.partition(" ")
            getattr(self, f"_{what}")(*([step] if what == "add" else rest.split()))
            self._require_one_current_fact()
            self._require_sound_facts()
        self._flush()
        self._communities()
        self._require_equal_copy()
        self._undo_all()
        self._require_sound_facts()
        self._require_forgotten()

    # Steps ------------------------------------------------------------------------------------------

    def _with(self, *options: str) -> None:
        self._memory.close()
        settings = {key: value for option in options for key, value in OPTIONS[option].items()}
        self._open = partial(self._open, **settings)
        self._memory = self._open()

    def _add(self, step: str) -> None:
        found = ADD.fullmatch(step)
        assert found, step
        number, session, day, speaker, lines = found.groups()
        remark = f"zq{number}secret"
        text = "\n".join(" | ".join(self._words(line, remark)) for line in lines.split("; "))
        said_by = name(speaker) if speaker else None
        receipt = self._memory.remember(
            text,
            session_id=None if session == "-" else session,
            speaker=said_by,
            external_id=f"{remark}-id",
            metadata={f"{remark}-key": remark},
            occurred_at=f"2026-{day}T00:00:00Z",
        )
        self._told[int(number)] = Told(receipt.episode_id, session, said_by or "", text, remark)

    @staticmethod
    def _words(line: str, remark: str) -> list[str]:
        source, relation, target, *more = line.split()
        return [name(source), relation, f"{name(target)} # {remark}" if more else name(target)]

    def _flush(self) -> None:
        assert self._memory.flush(5) == 0
        assert self._memory.stats().failed_episodes == 0

    def _again(self) -> None:
        self._memory.admin.backfill(again=True)
        self._flush()

    def _infer(self) -> None:
        self._memory.admin.infer()

    def _retract(self, number: str) -> None:
        if (fact_id := self._fact(number)) is not None:
            self._memory.retract(fact_id)

    def _end(self, number: str, day: str) -> None:
        if (fact_id := self._fact(number)) is not None:
            with suppress(InvalidInput):  # it hadn't begun, or had ended by then
                self._memory.end(fact_id, at=f"2026-{day}")

    def _fact(self, number: str) -> str | None:
        facts = self._memory.facts(limit=1000)
        return facts[int(number) % len(facts)].id if facts else None

    def _search(self, letter: str) -> None:
        self._memory.search(f"what of {name(letter)}?", trace=True)

    def _communities(self) -> None:
        self._memory.admin.refresh_communities()

    def _merge(self, gone: str, kept: str) -> None:
        found = [self._entities(name(letter)) for letter in (gone, kept)]
        if all(len(ids) == 1 for ids in found) and found[0] != found[1]:
            self._memory.admin.merge(found[0], into=next(iter(found[1])))

    def _entities(self, called: str) -> set[str]:
        return {entity.id for _, entity in self._backend.resolve_names(self._memory.scope, [called.lower()])}

    def _unmerge(self, number: str) -> None:
        merges = self._memory.admin.merges(limit=50)
        if not merges:
            return
        try:
            self._memory.admin.unmerge(merges[int(number) % len(merges)].id)
        except InvalidInput as error:
            if "undo that one first" not in str(error) and not (self._imported and "another entity" in str(error)):
                raise

    def _evict(self) -> None:
        self._memory.admin.evict()
        self._memory.admin.decay()

    def _reindex(self) -> None:
        self._memory.admin.reindex()

    def _reopen(self) -> None:
        if self._folder is not None:
            self._memory.close()
            self._memory = self._open()

    def _export(self) -> None:
        lines = io.StringIO()
        self._memory.admin.export(lines)
        self._exported = (lines.getvalue(), dict(self._told))

    def _import(self) -> None:
        if self._exported is None:
            return
        lines, told = self._exported
        with suppress(Conflict, InvalidInput):  # other rows are stored under its names; those before them stay
            self._memory.admin.import_(io.StringIO(lines))
        self._imported = True
        there = self._backend.get_episodes([self._memory.scope], [one.id for one in told.values()])
        self._told.update((number, one) for number, one in told.items() if one.id in there)
        for number in self._told:
            self._gone.pop(number, None)

    def _forget(self, kind: str, what: str) -> None:
        try:
            if kind == "episode":
                self._forget_ones(lambda n, _: n == int(what), episode=self._told[int(what)].id)
            elif kind == "session":
                self._forget_ones(lambda _, told: told.session == what, session=what)
            elif kind == "speaker":
                self._forget_ones(lambda _, told: told.speaker == name(what), speaker=name(what))
            else:
                self._forget_entity(name(what))
        except (NotFound, KeyError):
            pass
        self._require_forgotten()

    def _forget_entity(self, called: str) -> None:
        if len(self._entities(called)) > 1:
            with pytest.raises(InvalidInput, match="entities have it"):
                self._memory.forget(called, with_episodes=True)
            return
        names = self._memory.forget(called, with_episodes=True, dry_run=True).names

        def goes(_: int, told: Told) -> bool:
            return any(one in f"{told.text}\n{told.speaker}".lower() for one in names)

        self._forget_ones(goes, entity=called, with_episodes=True)
        held = self._all_that_is_stored()
        assert not [one for one in names if one in held]

    def _forget_ones(self, goes: Callable[[int, Told], bool], **which: object) -> None:
        done = self._memory.forget(**which)  # pyright: ignore[reportArgumentType]
        assert done.left == ()
        for number in [n for n, told in self._told.items() if goes(n, told)]:
            self._gone[number] = self._told.pop(number)

    # What holds -------------------------------------------------------------------------------------

    def _all_that_is_stored(self) -> str:
        lines = io.StringIO()
        self._memory.admin.export(lines)
        files = [] if self._folder is None else [p for p in self._folder.iterdir() if p.is_file()]
        return lines.getvalue().lower() + "".join(p.read_bytes().decode("latin-1").lower() for p in files)

    def _require_forgotten(self) -> None:
        held = self._all_that_is_stored() if self._gone else ""
        assert not [told.remark for told in self._gone.values() if told.remark in held]

    def _undo_all(self) -> None:
        """Undo the merges, newest first: that never fails, and each statement stays with somebody."""
        stated = self._stating()
        while merges := self._memory.admin.merges(limit=1):
            try:
                self._memory.admin.unmerge(merges[0].id)
            except InvalidInput:
                if self._imported:
                    break
                raise
            self._require_one_current_fact()
        assert stated <= self._stating()  # facts between two that were merged come back

    def _require_one_current_fact(self) -> None:
        """Require that no fact holds on that a later one ends; an import may bring one."""
        if self._imported:
            return
        slots: defaultdict[tuple[str, str], list[Edge]] = defaultdict(list)
        known = {e.id: e for e in self._backend.all_edges([self._memory.scope], EdgeQuery(versions="all"))}
        for edge in known.values():
            if edge.is_active and not edge.is_inferred and DEFAULT_ONTOLOGY.is_single_valued(edge.relation):
                slots[edge.source_id, edge.relation].append(edge)
        load = partial(episode_sources, self._backend, self._memory.scope)
        compatible = find_compatible(self._backend, self._memory.scope, known)
        found = (successor(edge, slot, load(slot), compatible) for slot in slots.values() for edge in slot)
        assert not any(found)

    def _require_sound_facts(self) -> None:
        """Require that no fact ends before it begins, and each is stated by episodes, or inferred."""
        edges = list(self._backend.all_edges([self._memory.scope], EdgeQuery(versions="all")))
        there = self._backend.get_episodes([self._memory.scope], sorted({i for e in edges for i in e.episode_ids}))
        for edge in edges:
            assert edge.valid_to is None or edge.valid_to >= edge.valid_from, edge
            assert edge.is_inferred or edge.episode_ids, edge
            assert there.keys() >= set(edge.episode_ids), edge

    def _require_equal_copy(self) -> None:
        """Require that an import of an export is the same memory, and importing it again changes nothing."""
        lines = io.StringIO()
        self._memory.admin.export(lines)
        with GraphMemory.open(f"memory://{new_id()}", extractor="none", embeddings="none", background=False) as copy:
            for _ in range(2):
                copy.admin.import_(io.StringIO(lines.getvalue()), vectors=False)
                assert copy.admin.checksum() == self._memory.admin.checksum()

    def _stating(self) -> set[str]:
        edges = self._backend.all_edges([self._memory.scope], EdgeQuery(versions="all"))
        return {i for edge in edges for i in edge.episode_ids}
