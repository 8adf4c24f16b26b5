"""Keys of the messages of a conversation, by which a message that is passed on again isn't stored again.

A key consists of a digest of the content and of what tells equal messages apart: an id, or a number. Which function
makes the keys depends on what a framework says about its messages:

`lasting_key`: they have ids that last (LangChain with a checkpointer).
`turn_keys`: it is known where the last turn begins (LangChain without a checkpointer, Pydantic AI).
`new_keys`: they are known to be new.
`batch_keys`: nothing is known (LlamaIndex).
"""

from __future__ import annotations

import re
from collections import defaultdict, deque
from collections.abc import Iterable, Mapping, Sequence
from itertools import count, pairwise, takewhile
from typing import Any

from graphmem.errors import InvalidInput
from graphmem.messages import digest, message_fields
from graphmem.models.metadata import ATTACHMENTS, TOOL_CALL_ID, TOOL_CALLS

_ID = ":id="
_LASTING = re.compile(rf"[0-9a-f]{{16}}{_ID}(.+)", re.DOTALL)  # a digest, and the id of a message


def fields_of(message: object) -> Mapping[str, Any]:
    """Return the fields of a message; none if it can't be read."""
    try:
        return message_fields(message, {})
    except InvalidInput:
        return {}


def digest_of(fields: Mapping[str, Any]) -> str:
    """Return a digest of the content of a message by its fields; "" without fields."""
    names = ("role", "speaker", "text", TOOL_CALLS, TOOL_CALL_ID)
    return digest(*(fields.get(name) for name in names), *(fields.get(ATTACHMENTS) or ())) if fields else ""


def digest_in(key: str) -> str:
    """Return the digest in a key of this module."""
    return key.partition(":")[0]


def lasting_key(message: object, number: str) -> str:
    """Return the key of a message that has a lasting id and may be edited: its content and the id."""
    return f"{digest_of(fields_of(message))}{_ID}{number}"


def id_of(key: str) -> str:
    """Return the id of a message in its `lasting_key`; another key is the id."""
    found = _LASTING.fullmatch(key)
    return key if found is None else found[1]


def turn_keys(history: Sequence[object], turn: Sequence[object], stored: Sequence[str]) -> list[str]:
    """Return the keys of the messages of a history and of the turn that follows it, reusing those of stored messages.

    Use it if messages have no lasting ids and the history is whole, a part, or empty. Messages of the history are
    stored if as many equal ones are. The turn is new, also if it says what was said before, except for its beginning
    if that follows the history in the store: a run that stores several times, or is repeated, stores it once. So does a
    run that fails again before anything was answered.

    Parameters
    ----------
    history
        Messages before the turn.
    turn
        Messages of the turn, beginning with what the user said.
    stored
        Keys of the stored messages of the conversation, in order.
    """
    before, now, known = _digests(history), _digests(turn), [digest_in(key) for key in stored]
    is_question = all(fields_of(message).get("role") == "user" for message in turn)

    def fit(place: int) -> tuple[int, int, int]:
        """Return how well the turn begins at a place: like the history before it, and, if unfinished, like it after."""
        there = known[place:]
        begun = len(there) < len(now) + is_question and there == now[: len(there)]
        return _same(reversed(before), reversed(known[:place])), len(there) if begun else -1, place

    begin = max(range(len(known) + 1), key=fit)
    is_repeated = bool(now) and known.count(now[0]) > before.count(now[0])  # else it is of the history
    end = begin + (_same(known[begin:], now) if is_repeated else 0)
    found = list(stored[begin:end])
    keys = _numbered(before, [*stored[:begin], *stored[end:]], taken=stored)
    return [*keys, *found, *_numbered(now[len(found) :], (), taken=[*stored, *keys])]


def new_keys(messages: Iterable[object], stored: Iterable[str]) -> list[str]:
    """Return the keys of messages that aren't stored, also if they say what was said before.

    Parameters
    ----------
    messages
        The messages.
    stored
        Keys of the stored messages of the conversation.
    """
    return _numbered(_digests(messages), (), taken=stored)


def batch_keys(
    messages: Iterable[object], stored: Sequence[str], place: int | None = 0
) -> tuple[list[str], int | None]:
    """Return the keys of the new messages of a part of a conversation, which are those at its end.

    Use it if messages have no lasting ids, only parts of the conversation are passed on, and none of them is known to
    be new. A conversation may be passed on again, from its beginning; so may the messages with which it ends. Keys
    number the messages of a conversation: where numbers are missing, messages were forgotten, and any message that is
    passed on again in their place is one of them.

    Parameters
    ----------
    messages
        The part.
    stored
        Keys of the stored messages of the conversation, in order.
    place
        Number of messages that the previous parts repeated; None if one of these parts was new.

    Returns
    -------
    list of str, int or None
        The keys, and the `place` of the next part.
    """
    given, known = _digests(messages), _by_number(stored)
    again = [] if place is None or (place == 0 and len(given) == 1) else [place]  # one message may well be said again
    ends = range(max(0, len(known) - len(given)), len(known))
    repeated = [at for at in again if _is_repeated(given, known, at)]
    repeated += [at for at in ends if known[at:] == given[: len(known) - at]]
    begin = next(iter(repeated), len(known))
    new = given[len(known) - begin :]
    first = max([len(known), *(number + 1 for key in stored if (number := _number_of(key)) is not None)])
    keys = [f"{content}:{number}" for number, content in enumerate(new, first)]
    return keys, begin + len(given) if begin == place and not new else None


def _by_number(keys: Sequence[str]) -> list[str | None]:
    """Return the digests in keys of `batch_keys` at the numbers of their messages, and None for missing numbers.

    Keys whose numbers don't increase are of an earlier version, and number nothing.
    """
    numbers = [_number_of(key) for key in keys]
    if any(one is None or other is None or one >= other for one, other in pairwise((-1, *numbers))):
        return [digest_in(key) for key in keys]
    found = {number: digest_in(key) for number, key in zip(numbers, keys, strict=True)}
    return [found.get(number) for number in range((numbers[-1] or 0) + 1)] if keys else []


def _number_of(key: str) -> int | None:
    number = key.partition(":")[2]
    return int(number) if number.isdecimal() and number.isascii() else None


def _digests(messages: Iterable[object]) -> list[str]:
    return [digest_of(fields_of(message)) for message in messages]


def _numbered(contents: Iterable[str], reused: Iterable[str], taken: Iterable[str]) -> list[str]:
    """Return a key for each digest: the first one of the same content in `reused`, or else one that isn't taken."""
    used, old = set(taken), defaultdict[str, deque[str]](deque)
    for key in reused:
        old[digest_in(key)].append(key)
    keys: list[str] = []
    for same in contents:
        if old[same]:
            keys.append(old[same].popleft())
        else:
            keys.append(next(key for n in count() if (key := f"{same}:{n}") not in used))
        used.add(keys[-1])
    return keys


def _same(one: Iterable[str], other: Iterable[str]) -> int:
    """Return how many equal values both begin with."""
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False)))


def _is_repeated(given: Sequence[str], known: Sequence[str | None], place: int) -> bool:
    """Return whether the messages, or their beginning, are those from a place on; None stands for a forgotten one."""
    there = known[place : place + len(given)]
    same = [one == other for one, other in zip(there, given, strict=False) if one is not None]
    return all(same) and (bool(same) or (place > 0 and bool(there)))
