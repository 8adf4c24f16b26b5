"""Digest of a conversation for a prompt: what a memory has on a question, in place of messages that are left out.

The adapters of agent frameworks share this module; it imports none of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence, Set
from dataclasses import dataclass

from graphmem.adapters.agents import Conversation, as_data
from graphmem.communities.results import FoundCommunity
from graphmem.models import Episode, Model
from graphmem.results import Fact
from graphmem.search.context import (
    CountTokens,
    order_facts,
    quotable_episodes,
    render_community,
    render_episode,
    render_fact,
)
from graphmem.search.passages import term_weights
from graphmem.search.results import Found
from graphmem.settings import Settings, Share
from graphmem.text.words import split_words

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
    """What a memory has on a question, best first."""

    question: str
    facts: Sequence[Fact] = ()
    found: Sequence[Found] = ()
    communities: Sequence[FoundCommunity] = ()

    @classmethod
    def read(cls, conversation: Conversation, question: str, budget_tokens: int) -> Material:
        """Read it from the memory."""
        memory, limit = conversation.memory, _limit(conversation, budget_tokens)
        facts = memory.recall(question, asked_by=conversation.user, limit=limit).facts
        found = memory.search(question, asked_by=conversation.user, k=limit).found
        return cls(question, facts, found, memory.communities(question, limit=_SUMMARIES))

    @classmethod
    async def aread(cls, conversation: Conversation, question: str, budget_tokens: int) -> Material:
        """`read` for async code."""
        memory, limit = conversation.memory, _limit(conversation, budget_tokens)
        facts = (await memory.arecall(question, asked_by=conversation.user, limit=limit)).facts
        found = (await memory.asearch(question, asked_by=conversation.user, k=limit)).found
        return cls(question, facts, found, await memory.acommunities(question, limit=_SUMMARIES))

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
        said = [e for e in quotable_episodes(self.found) if e.text not in kept and not _only_asks(e, self.question)]
        weights = term_weights(self.question, [episode.searchable_text for episode in said])
        own = [e for e in said if session_id is None or e.session_id == session_id]
        others = [e for e in said if session_id is not None and e.session_id != session_id]
        blocks = [
            _Block("## Summaries", [render_community(one) for one in self.communities], count_tokens),
            _Block("## Facts", _unique(map(render_fact, order_facts(self.facts, said, weights))), count_tokens),
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


def _only_asks(episode: Episode, question: str) -> bool:
    return split_words(episode.text) == split_words(question)


def _unique(lines: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(lines))
