"""Renders facts for a prompt within a token budget (spec: GraphRAGService, context). Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable

from graphmem.results import Fact

HEADER = "## Known facts"

_BREAKING = re.compile(r"[<>]|\s+")


def estimate_tokens(text: str) -> int:
    """Return about how many tokens a text has: a quarter of its UTF-8 bytes, and no fewer than its words."""
    return max(-(-len(text.encode()) // 4), len(text.split()))


def render_context(
    facts: Iterable[Fact], budget_tokens: int, count_tokens: Callable[[str], int] = estimate_tokens
) -> str:
    """Return a block of facts, one a line, as many as fit; empty where none does.

    Parameters
    ----------
    facts
        Best first.
    budget_tokens
        The block has at most so many tokens.
    count_tokens
        How the reader's model counts; the default estimates.
    """
    lines = [HEADER]
    used = count_tokens(HEADER)
    for line in dict.fromkeys(render_fact(fact) for fact in facts):  # one clause may state several facts
        cost = count_tokens("\n" + line)
        if used + cost > budget_tokens:
            break
        lines.append(line)
        used += cost
    return "\n".join(lines) if len(lines) > 1 else ""


def render_fact(fact: Fact) -> str:
    """Return a fact as one line: its sentence, when it held, how sure it is; text in it can't break out."""
    sentence = _BREAKING.sub(lambda m: "" if m[0] in "<>" else " ", fact.fact).strip().rstrip(".")
    when = f"since {fact.valid_from:%Y-%m}"
    if fact.valid_to is not None:
        when = f"{fact.valid_from:%Y-%m} to {fact.valid_to:%Y-%m}"
    return f"- {sentence} ({when}) [confidence: {fact.confidence:.2f}]"
