"""Speakers: the sides of a chat with an assistant, and the names that speakers are called by."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence

from graphmem.text.normalize import canonical
from graphmem.trust import role_kind

USER, ASSISTANT = 1, 2
"""Sides of a chat with an assistant; 0 for turns of neither."""

SIDES = {"user": USER, "human": USER, "assistant": ASSISTANT, "ai": ASSISTANT, "bot": ASSISTANT, "chatbot": ASSISTANT}
"""Words for a side in questions, and names of speakers; unlike roles without "model", which is an ordinary word."""

_BY_ROLE = {"user": USER, "assistant": ASSISTANT}


def named_speaker(name: str, speakers: Sequence[str]) -> str | None:
    """Return the speaker of a name in any case, or the only one with this first name; None if there is none."""
    wanted, firsts = canonical(name), {first.lower(): speaker for first, speaker in first_names(speakers).items()}
    return next((speaker for speaker in speakers if canonical(speaker) == wanted), None) or firsts.get(wanted)


def first_names(speakers: Sequence[str]) -> dict[str, str]:
    """Return the speakers by the first names that only one of them has: "Grace" for "Grace Mbeki"."""
    firsts = Counter(speaker.partition(" ")[0] for speaker in speakers)
    named = (speaker for speaker in speakers if " " in speaker and not side_of(None, speaker))
    found = ((speaker.partition(" ")[0], speaker) for speaker in named)
    return {first: speaker for first, speaker in found if firsts[first] == 1 and first.istitle() and len(first) > 2}


def side_of(role: str | None, speaker: str | None) -> int:
    """Return the side of a turn in a chat with an assistant, by its role or a speaker named like one; 0 for neither."""
    return _BY_ROLE.get(role_kind(role) or "", 0) if role else SIDES.get((speaker or "").lower(), 0)


_MINIMUM = 3  # times that a name is used
_SHARE = 0.9  # of its uses that must mean one speaker
_ENDS = 200  # characters at the beginning and at the end of a turn, where people are addressed
_ADDRESS = re.compile(
    r"(?:^|[.!?]\s+)(?i:hello|hi|hey|hiya|dear|good (?:morning|afternoon|evening|night)|(?:good)?bye|thanks|thank you"
    r"|welcome|congratulations|congrats|wow|oh|haha|lol|yes|yeah|ok|okay|sure)(?i: again| so much)?,?"
    r"\s+([A-Z][a-z]{2,})(?=\s*(?:[,.!?…]|$))"
)
_NOBODY = frozenset(
    {"All", "Everybody", "Everyone", "Folks", "God", "Goodness", "Guys", "Lord", "Man", "Team", "There"}
)


class SpeakerNames:
    """Counts of the names in greetings and thanks, by session and speaker; n turns in order of insertion.

    In a session of two people, a greeting names the other one: if the speaker stored as "kt_88" is greeted as "Kate", a
    question about Kate means that speaker.
    """

    def __init__(self) -> None:
        self._speakers: defaultdict[int, set[int]] = defaultdict(set)
        self._used: defaultdict[str, Counter[tuple[int, int]]] = defaultdict(Counter)
        self._meant: dict[str, int] | None = {}

    def add(self, text: str, speaker: int, session: int) -> None:
        """Add a turn of a session; negative numbers mean that it has no speaker or no session."""
        if speaker < 0 or session < 0:
            return
        self._speakers[session].add(speaker)
        ends = text if len(text) <= 2 * _ENDS else f"{text[:_ENDS]}\n{text[-_ENDS:]}"
        for name in _ADDRESS.findall(ends):
            if name not in _NOBODY:
                self._used[name][speaker, session] += 1
        self._meant = None

    def meant(self, names: Sequence[str]) -> Mapping[str, str]:
        """Return, for each name of address that isn't a speaker's own, the name of the speaker who is meant.

        Parameters
        ----------
        names
            Names of the speakers by number.
        """
        if self._meant is None:
            self._meant = dict(self._resolved(names))
        return {name: names[who] for name, who in self._meant.items()}

    def _resolved(self, names: Sequence[str]) -> dict[str, int]:
        known = {word.lower() for name in names for word in re.findall(r"\w+", name)}
        found: dict[str, int] = {}
        for name, uses in self._used.items():
            if name.lower() in known:
                continue
            meant: Counter[int] = Counter()
            for (speaker, session), times in uses.items():
                others = self._speakers[session] - {speaker}
                if len(others) == 1:
                    meant[min(others)] += times
            if meant:
                who, times = meant.most_common(1)[0]
                if times >= _MINIMUM and times >= _SHARE * uses.total():
                    found[name] = who
        return found
