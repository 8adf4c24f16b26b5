"""Compaction of LangChain messages: a digest of what the memory has on the question, in place of old messages."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage, ToolMessage

from graphmem.adapters.conversation import Conversation, as_data
from graphmem.adapters.langchain.chat_history import in_valid_order
from graphmem.communities.results import FoundCommunity
from graphmem.errors import InvalidInput
from graphmem.memory import GraphMemory
from graphmem.models import Model
from graphmem.results import Fact
from graphmem.search.context import (
    CountTokens,
    estimate_tokens,
    order_facts,
    quotable_episodes,
    render_community,
    render_episode,
    render_fact,
)
from graphmem.search.passages import term_weights
from graphmem.search.results import Found
from graphmem.settings import Settings, Share
from graphmem.text.normalize import split_words

_SUMMARIES = 3  # communities about the question
_TOKENS_PER_RESULT = 12  # of the budget, for each fact and quote that is read
_MOST_READ = 200
_QUOTE = 400  # maximum characters of a quote


class BudgetShares(Model):
    """Shares of the budget of a compacted conversation.

    What a part doesn't use passes on: to quotes, then facts, other sessions, summaries, and older messages.

    Attributes
    ----------
    recent
        The last messages before the current turn, unchanged.
    facts
        Facts about the question.
    quotes
        At least this much for quotes of earlier messages of the conversation.
    cross_session
        Quotes of other conversations.
    summaries
        Summaries of communities about the question.
    """

    recent: Share
    facts: Share
    quotes: Share
    cross_session: Share
    summaries: Share

    @classmethod
    def of(cls, settings: Settings) -> BudgetShares:
        """Return the shares of the settings."""
        return cls(
            recent=settings.compaction_recent,
            facts=settings.compaction_facts,
            quotes=settings.compaction_quotes,
            cross_session=settings.compaction_cross_session,
            summaries=settings.compaction_summaries,
        )


@dataclass(frozen=True)
class Material:
    """Facts, episodes and communities of a memory on a question, best first."""

    question: str
    facts: Sequence[Fact] = ()
    found: Sequence[Found] = ()
    communities: Sequence[FoundCommunity] = ()
    similarity: float = 0.0

    @classmethod
    def read(cls, conversation: Conversation, question: str, budget_tokens: int) -> Material:
        """Read it from the memory."""
        memory, limit = conversation.memory, _limit(conversation, budget_tokens)
        facts = memory.recall(question, asked_by=conversation.user, limit=limit, min_trust="external").facts
        found = memory.search(question, asked_by=conversation.user, k=limit)
        about = memory.communities(question, limit=_SUMMARIES)
        return cls(question, facts, found.found, about, found.similarity)

    def digest(
        self,
        budget_tokens: int,
        shares: BudgetShares,
        whole: int,
        count_tokens: CountTokens,
        *,
        session_id: str | None = None,
        kept: Set[str] = frozenset(),
    ) -> str:
        """Return blocks of summaries, facts and quotes, fenced as data; "" if there is nothing or nothing fits.

        Parameters
        ----------
        budget_tokens
            Maximum number of tokens.
        shares, whole
            Shares of the tokens `whole`, which the blocks get first.
        session_id
            Session of the conversation; quotes of others stand in a block of their own.
        kept
            Texts of messages that the prompt has anyway.
        """
        budget = budget_tokens - count_tokens(as_data("x"))
        near = quotable_episodes(self.found, similarity=self.similarity)
        asked = split_words(self.question)
        said = [e for e in near if e.text not in kept and split_words(e.text) != asked]
        weights = term_weights(self.question, [episode.searchable_text for episode in said])
        own = [e for e in said if session_id is None or e.session_id == session_id]
        others = [e for e in said if session_id is not None and e.session_id != session_id]
        stated = dict.fromkeys(map(render_fact, order_facts(self.facts, said, weights)))
        blocks = [
            _Block("## Summaries", [render_community(one) for one in self.communities if one.summary], count_tokens),
            _Block("## Facts", [*stated], count_tokens),
            _Block("## Other conversations", [render_episode(e, weights, _QUOTE) for e in others], count_tokens),
            _Block("## Earlier messages", [render_episode(e, weights, _QUOTE) for e in own], count_tokens),
        ]
        summaries, facts, cross_session, quotes = blocks
        for block, share in (
            (quotes, shares.quotes),
            (facts, shares.facts),
            (cross_session, shares.cross_session),
            (summaries, shares.summaries),
        ):
            budget -= block.fill(min(budget, int(share * whole)))
        for block in (quotes, facts, cross_session, summaries):
            budget -= block.fill(budget)
        return as_data("\n\n".join(block.text for block in blocks if block.text))


class _Block:
    """Lines under a header, as many as fit."""

    def __init__(self, header: str, lines: Sequence[str], count_tokens: CountTokens) -> None:
        self._count = count_tokens
        self._header = header
        self._lines = lines
        self._used = 0

    def fill(self, room: int) -> int:
        """Add the next lines while they fit into more tokens, and return the tokens that they use."""
        spent = 0
        for line in self._lines[self._used :]:
            cost = self._count("\n" + line) + (0 if self._used else self._count(f"\n\n{self._header}"))
            if spent + cost > room:
                break
            spent += cost
            self._used += 1
        return spent

    @property
    def text(self) -> str:
        return "\n".join([self._header, *self._lines[: self._used]]) if self._used else ""


def _limit(conversation: Conversation, budget_tokens: int) -> int:
    """Return how many facts and episodes to read for a budget."""
    return max(conversation.memory.settings.search_limit, min(_MOST_READ, budget_tokens // _TOKENS_PER_RESULT))


_OVERHEAD = 4  # tokens of a message in addition to its text
_SHORTEST = 200  # characters to which the result of a tool may be cut
_CUT = " … [cut]"
_MEDIA, _MEDIA_TYPES = 1_000, frozenset({"image", "audio", "video", "file"})


class GraphMemoryCompactor:
    """Compacts a conversation to a budget with the help of a memory that has its messages.

    The result is the system prompt with a digest of the memory, the last messages, and the current turn, which begins
    with the last message of the user. The digest has facts, quotes of earlier messages, and summaries about that
    message, fenced as data. The order is always one that chat models accept: a conversation begins with the user, and
    tool results follow their calls. What has to be left out to fit is, in this order: old messages, the digest, text of
    tool results of the current turn, and its oldest calls with their results; the system prompt, the last message of
    the user and the last call of tools are never left out.

    Parameters
    ----------
    memory
        Memory in the scope of the conversation.
    session_id
        Id of the conversation, by which quotes of other ones are told apart.
    user
        Name of the user, to whom "I" refers.
    shares
        Split of the budget; by default that of the settings.
    count_tokens
        Function that counts the tokens of a text as the model does; the default estimates them.
    one_turn
        Whether the compactor is for the model calls of one turn only: the memory is then read once for a question.
    """

    def __init__(
        self,
        memory: GraphMemory,
        session_id: str | None = None,
        *,
        user: str | None = None,
        shares: BudgetShares | None = None,
        count_tokens: CountTokens = estimate_tokens,
        one_turn: bool = False,
    ) -> None:
        self._conversation = Conversation(memory, session_id, user)
        self._shares = shares or BudgetShares.of(memory.settings)
        self._count = count_tokens
        self._one_turn = one_turn
        self._material: Material | None = None

    def compact(
        self, messages: Sequence[BaseMessage], budget_tokens: int, *, always: bool = False
    ) -> list[BaseMessage]:
        """Return messages in place of a conversation that have at most `budget_tokens` tokens.

        A conversation that fits is returned as it is, except for its order; with `always`, it gets a digest, too.
        """
        parts = self._parts(messages, budget_tokens)
        if not always and self.cost(parts.messages) <= budget_tokens:
            return parts.messages
        return self._compacted(parts, self._read(parts.question, budget_tokens), budget_tokens)

    async def acompact(
        self, messages: Sequence[BaseMessage], budget_tokens: int, *, always: bool = False
    ) -> list[BaseMessage]:
        """`compact` for async code, in a thread."""
        return await asyncio.to_thread(self.compact, messages, budget_tokens, always=always)

    def without_memory(self, messages: Sequence[BaseMessage], budget_tokens: int) -> list[BaseMessage]:
        """Return the last messages that fit, for a memory that is unavailable."""
        parts = self._parts(messages, budget_tokens)
        return self._compacted(parts, Material(parts.question), budget_tokens)

    def cost(self, messages: Sequence[BaseMessage]) -> int:
        """Return the number of tokens of messages; an image, a recording or a file counts as 1,000."""
        costs = (self._count(str(m.text)) + self._cost_of_calls(m) + self._cost_of_blocks(m) for m in messages)
        return sum(_OVERHEAD + cost for cost in costs)

    def _read(self, question: str, budget_tokens: int) -> Material:
        """Return what the memory has on a question; in one turn, it is read once for a question."""
        kept = self._material  # another thread may replace it
        if kept is not None and kept.question == question:
            return kept
        material = Material.read(self._conversation, question, budget_tokens)
        if self._one_turn:
            self._material = material
        return material

    def _parts(self, messages: Sequence[BaseMessage], budget_tokens: int) -> _Parts:
        if budget_tokens < 1:
            raise InvalidInput(f"budget_tokens: expected at least 1, got {budget_tokens}")
        return _Parts.of(messages)

    def _compacted(self, parts: _Parts, material: Material, whole: int) -> list[BaseMessage]:
        left = whole - self.cost(parts.system) - _OVERHEAD
        current = self._shortened(parts.current, left)
        left -= self.cost(current)
        groups = _groups(parts.earlier)
        recent = _from_user(self._last(groups, min(left, int(self._shares.recent * whole))))
        kept = {str(message.text) for group in (*recent, current) for message in group}
        room = left - self.cost(_joined(recent))
        digest = material.digest(
            room, self._shares, whole, self._count, session_id=self._conversation.session_id, kept=kept
        )
        if digest:
            room -= self._count(digest)
        older = groups[: len(groups) - len(recent)]
        recent = _from_user([*self._last(older, room), *recent])
        return [*_system(parts.system, digest), *_joined(recent), *current]

    def _last(self, groups: Sequence[list[BaseMessage]], room: int) -> list[list[BaseMessage]]:
        """Return the last groups that fit."""
        begin = len(groups)
        while begin > 0 and (cost := self.cost(groups[begin - 1])) <= room:
            room -= cost
            begin -= 1
        return list(groups[begin:])

    def _shortened(self, current: list[BaseMessage], room: int) -> list[BaseMessage]:
        """Return the current turn with the texts of its tool results cut, oldest first, as far as it must be.

        If that isn't enough, its oldest calls of tools go, with their results; the question and the last call stay.
        """
        shortened, excess = list(current), self.cost(current) - room
        for place, message in enumerate(current):
            if excess <= 0:
                break
            if isinstance(message, ToolMessage):
                text = str(message.text)
                characters = len(text) * excess // max(1, self._count(text)) + len(_CUT) + 1
                most = max(_SHORTEST, len(text) - characters)
                if most < len(text):
                    shortened[place] = message.model_copy(update={"content": text[:most] + _CUT})
                    excess -= self.cost([message]) - self.cost([shortened[place]])
        groups = _groups(shortened)
        if len(groups) < 3 or excess <= 0:
            return shortened
        question, *between, last = groups
        return [*question, *_joined(self._last(between, room - self.cost([*question, *last]))), *last]

    def _cost_of_calls(self, message: BaseMessage) -> int:
        calls = (*message.tool_calls, *message.invalid_tool_calls) if isinstance(message, AIMessage) else ()
        return sum(self._count(f"{call['name']} {json.dumps(call['args'], default=str)}") for call in calls)

    def _cost_of_blocks(self, message: BaseMessage) -> int:
        blocks: Sequence[Mapping[str, Any]] = () if isinstance(message.content, str) else message.content_blocks
        thoughts = (str(block.get("reasoning", "")) for block in blocks if block["type"] == "reasoning")
        return sum(map(self._count, thoughts)) + sum(_MEDIA for block in blocks if block["type"] in _MEDIA_TYPES)


@dataclass(frozen=True)
class _Parts:
    """A conversation in valid order: system prompt, earlier messages, and the current turn."""

    system: list[BaseMessage]
    earlier: list[BaseMessage]
    current: list[BaseMessage]

    @classmethod
    def of(cls, messages: Sequence[BaseMessage]) -> _Parts:
        system: list[BaseMessage] = [m for m in messages if isinstance(m, SystemMessage)]
        said = in_valid_order([m for m in messages if not isinstance(m, SystemMessage)])
        begin = max((place for place, message in enumerate(said) if isinstance(message, HumanMessage)), default=0)
        return cls(system, said[:begin], said[begin:])

    @property
    def messages(self) -> list[BaseMessage]:
        return [*self.system, *_joined(_from_user(_groups(self.earlier))), *self.current]

    @property
    def question(self) -> str:
        return str(self.current[0].text) if self.current else ""


def _groups(messages: Sequence[BaseMessage]) -> list[list[BaseMessage]]:
    """Return messages in groups that stay together: a call of tools and its results."""
    groups: list[list[BaseMessage]] = []
    for message in messages:
        if isinstance(message, ToolMessage) and groups:
            groups[-1].append(message)
        else:
            groups.append([message])
    return groups


def _joined(groups: Sequence[Sequence[BaseMessage]]) -> list[BaseMessage]:
    return [message for group in groups for message in group]


def _from_user(groups: Sequence[list[BaseMessage]]) -> list[list[BaseMessage]]:
    """Return groups from the first message of the user; none without one."""
    begin = next((place for place, group in enumerate(groups) if isinstance(group[0], HumanMessage)), len(groups))
    return list(groups[begin:])


def _system(messages: Sequence[BaseMessage], digest: str) -> list[BaseMessage]:
    """Return the system messages with a digest, in one message."""
    if not digest and len(messages) < 2:
        return list(messages)
    blocks: list[Any] = [*(block for message in messages for block in message.content_blocks)]
    return [SystemMessage([*blocks, *([{"type": "text", "text": digest}] if digest else [])])]
