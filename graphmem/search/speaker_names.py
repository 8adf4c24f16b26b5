"""Names by which two speakers address each other, where these differ from the names that their turns have."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence

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

    In a session of two people, who is greeted is the other one: whoever is stored as "kt_88" and is greeted as "Kate"
    is meant by a question about Kate.
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
