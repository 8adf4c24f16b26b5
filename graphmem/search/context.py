"""Renders facts and episodes for a prompt within a token budget (spec: GraphRAGService, context). Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence

from graphmem.communities.results import FoundCommunity
from graphmem.ingest.content_filter import SKIPPED
from graphmem.models import Episode
from graphmem.results import Fact
from graphmem.search.results import Found

COMMUNITIES_HEADER = "## Communities"
HEADER = "## Known facts"
EPISODES_HEADER = "## Episodes"

_QUOTED = 1000  # characters of an episode
_GLIMPSE = 200  # characters of a summary where there are too many communities
_BREAKING = re.compile(r"[<>]|\s+")
_GROUNDS = frozenset({"lexical", "fact", "graph"})

CountTokens = Callable[[str], int]


def estimate_tokens(text: str) -> int:
    """Return about how many tokens a text has: a quarter of its UTF-8 bytes, and no fewer than its words."""
    return max(-(-len(text.encode()) // 4), len(text.split()))


def render_context(
    facts: Iterable[Fact],
    budget_tokens: int,
    count_tokens: CountTokens = estimate_tokens,
    *,
    episodes: Iterable[Episode] = (),
    communities: Iterable[FoundCommunity] = (),
) -> str:
    """Return blocks of communities, facts and episodes, one a line, as many as fit; empty where none does.

    Communities stand first and may fill half of the budget, or all of it where there is nothing else. Of what they
    leave facts may fill half; episodes have the rest, and what they leave is for facts again.

    Parameters
    ----------
    facts, episodes, communities
        Best first.
    budget_tokens
        All have at most so many tokens together.
    count_tokens
        How the reader's model counts; the default estimates.
    """
    stated = list(dict.fromkeys(render_fact(fact) for fact in facts))  # one clause may state several facts
    quotes = list(dict.fromkeys(render_episode(episode) for episode in episodes))
    overview = _overview(list(communities), _half(budget_tokens, stated or quotes), count_tokens)
    if overview:
        budget_tokens -= _cost(overview, count_tokens) + count_tokens("\n\n")
    share = _half(budget_tokens, quotes)
    some = _fit(HEADER, stated, share, count_tokens)
    between = count_tokens("\n\n") if quotes else 0
    quoted = _fit(EPISODES_HEADER, quotes, budget_tokens - between - _cost(some, count_tokens), count_tokens)
    left = budget_tokens - between - _cost(quoted, count_tokens)
    told = _fit(HEADER, stated, left if quoted else budget_tokens, count_tokens)
    return "\n\n".join("\n".join(block) for block in (overview, told, quoted) if block)


def _overview(communities: Sequence[FoundCommunity], budget: int, count_tokens: CountTokens) -> list[str]:
    """Return the block of communities, with the beginnings of their summaries where not all of them fit as they are."""
    whole = _fit(COMMUNITIES_HEADER, [render_community(c) for c in communities], budget, count_tokens)
    if len(whole) > len(communities):
        return whole
    return _fit(COMMUNITIES_HEADER, [render_community(c, _GLIMPSE) for c in communities], budget, count_tokens)


def _half(budget: int, others: Sequence[str]) -> int:
    return budget // 2 if others else budget


def _fit(header: str, lines: Sequence[str], budget: int, count_tokens: CountTokens) -> list[str]:
    """Return the header and the first lines that fit under it; nothing where none does."""
    block, used = [header], count_tokens(header)
    for line in lines:
        used += count_tokens("\n" + line)
        if used > budget:
            break
        block.append(line)
    return block if len(block) > 1 else []


def _cost(block: Sequence[str], count_tokens: CountTokens) -> int:
    return count_tokens(block[0]) + sum(count_tokens("\n" + line) for line in block[1:]) if block else 0


def render_community(community: FoundCommunity, most: int | None = None) -> str:
    """Return a community as one line: its name, how many are in it, and its summary, or so many characters of that."""
    summary = _tamed(community.summary)
    if most is not None and len(summary) > most:
        summary = f"{summary[: most - 1].rsplit(' ', 1)[0]}…"
    return f"- {_tamed(community.name)} ({len(community):,} members): {summary}"


def render_fact(fact: Fact) -> str:
    """Return a fact as one line: its sentence, when it held, how sure it is; text in it can't break out."""
    when = f"since {fact.valid_from:%Y-%m}"
    if fact.valid_to is not None:
        when = f"{fact.valid_from:%Y-%m} to {fact.valid_to:%Y-%m}"
    return f"- {_tamed(fact.fact).rstrip('.')} ({when}) [confidence: {fact.confidence:.2f}]"


def render_episode(episode: Episode) -> str:
    """Return an episode as one line: when, who, and what was said; a long text is cut and says so."""
    text = _tamed(episode.text)
    if len(text) > _QUOTED:
        text = f"{text[: _QUOTED - 1].rsplit(' ', 1)[0]}…"
    who = _tamed(episode.speaker or episode.title or episode.role or episode.source)
    return f'- {episode.occurred_at:%Y-%m-%d}, {who}: "{text}"'


def worth_quoting(found: Sequence[Found], *, flagged: bool = False) -> list[Episode]:
    """Return the episodes of a search that a prompt can use.

    None where not one of them shares a word, a fact or a name with the question: some vector is always the nearest.
    Ready-made triples are no quotes: their facts say the same. Nor is, unless `flagged`, what looks like a prompt
    injection.
    """
    grounded = any(reason.channel in _GROUNDS and reason.score > 0 for one in found for reason in one.reasons)
    episodes = [one.episode for one in found if one.episode.source != "triple"] if grounded else []
    return [e for e in episodes if flagged or e.metadata.get(SKIPPED) != "injection"]


def _tamed(text: str) -> str:
    return _BREAKING.sub(lambda m: "" if m[0] in "<>" else " ", text).strip()
