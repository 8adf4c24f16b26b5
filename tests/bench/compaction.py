"""Evidence that is left of a long conversation compacted to a budget: BEAM, REALTALK and LoCoMo.

    python tests/bench/compaction.py [--sets beam,realtalk,locomo] [--budget 4000] [--extractor none] [--splits]

A conversation and a question after it are compacted by `GraphMemoryCompactor`, by keeping the last messages, and by
LangChain's summarization, whose model is scripted: it returns the sentences with the most frequent words. Evidence is
inside if the sentence of a gold turn that shares most words with the question is in the messages, unchanged or quoted;
counted is its share, and the questions with any and with all of it. `--splits` compares splits of the budget. The
memories are those of tests/bench/recall.py. See docs/how-to/langchain.md.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parent))

from kinds import Asked, Items, load
from langchain.agents.middleware import SummarizationMiddleware
from langchain_core.callbacks import CallbackManagerForLLMRun
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from recall import SENTENCE, Built, Floats, _field, _plain, _text  # pyright: ignore[reportPrivateUsage]

from graphmem.adapters.conversation import Conversation
from graphmem.adapters.langchain.compaction import BudgetShares, GraphMemoryCompactor, Material, _Parts  # pyright: ignore[reportPrivateUsage]
from graphmem.search.context import estimate_tokens
from graphmem.search.evaluation import interval
from graphmem.text.terms import terms

OVERHEAD = 4
SUMMARY = 0.45  # share of the budget
MEASURES = ("share", "any", "all")
GIVEN = BudgetShares(recent=0.5, facts=0.04, quotes=0.08, cross_session=0.04, summaries=0.08)
RECENT = (0.5, 0.4, 0.3, 0.2, 0.1, 0.0)


class Extractive(BaseChatModel):
    """A model that summarizes by the sentences with the most frequent words."""

    tokens: int

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        sentences = list(dict.fromkeys(SENTENCE.findall(str(messages[-1].text))))
        words = [set(terms(sentence)) for sentence in sentences]
        frequent = Counter(word for found in words for word in found)
        values = [sum(frequent[word] for word in found) / (len(found) + 3) for found in words]
        left, kept = self.tokens, set[int]()
        for place in sorted(range(len(sentences)), key=lambda place: -values[place]):
            if (cost := estimate_tokens(sentences[place])) <= left:
                left -= cost
                kept.add(place)
        text = " ".join(sentences[place].strip() for place in sorted(kept))
        return ChatResult(generations=[ChatGeneration(message=AIMessage(text))])

    @property
    def _llm_type(self) -> str:
        return "extractive"


@dataclass(frozen=True)
class Talk:
    """A conversation as messages, and what the baselines keep of it."""

    messages: list[BaseMessage]
    last: list[BaseMessage]
    summarized: list[BaseMessage]

    @classmethod
    def of(cls, items: Sequence[Any], budget: int) -> Talk:
        first = _speaker(items[0])
        messages: list[BaseMessage] = [
            HumanMessage(_text(item)) if _speaker(item) == first else AIMessage(_text(item)) for item in items
        ]
        return cls(messages, last_turns(messages, budget), summarize(messages, budget))


def _speaker(item: Any) -> str:
    return _field(item, "speaker")


def last_turns(messages: Sequence[BaseMessage], budget: int) -> list[BaseMessage]:
    """Return the last messages that fit."""
    begin = len(messages)
    while begin > 0 and (cost := count([messages[begin - 1]])) <= budget:
        budget -= cost
        begin -= 1
    return list(messages[begin:])


def summarize(messages: Sequence[BaseMessage], budget: int) -> list[BaseMessage]:
    """Return what LangChain's summarization leaves: a summary and the last messages."""
    shorten = SummarizationMiddleware(
        Extractive(tokens=int(SUMMARY * budget)),
        trigger=("tokens", budget),
        keep=("tokens", int((1 - SUMMARY) * budget) - 100),
        token_counter=count,
        trim_tokens_to_summarize=None,
    )
    state: Any = {"messages": [m.model_copy() for m in messages]}
    update = shorten.before_model(state, None)  # pyright: ignore[reportArgumentType]
    return update["messages"][1:] if update else list(messages)


def count(messages: Any) -> int:
    """Return the tokens of messages, as the compactor counts them."""
    return sum(OVERHEAD + estimate_tokens(str(message.text)) for message in messages)


def gold_passages(one: Asked, texts: Mapping[str, str]) -> list[str]:
    """Return of each gold turn the sentence that shares most words with the question."""
    wanted = set(terms(one.question))
    found = (SENTENCE.findall(texts[answer]) for answer in sorted(one.answers))
    return [
        _plain(max(sentences, key=lambda text: len(wanted & set(terms(text)))))[:200]
        for sentences in found
        if sentences
    ]


def inside(passages: Sequence[str], messages: Sequence[BaseMessage]) -> list[float]:
    """Return the measures of what is left."""
    block = _plain("\n".join(str(message.text) for message in messages))
    found = [passage in block for passage in passages]
    return [sum(found) / len(found), float(any(found)), float(all(found))]


def measure(built: Built, items: Items, asked: Sequence[Asked], splits: Mapping[str, BudgetShares], budget: int) -> Any:
    """Return the measures of each method, a row for each question, and the largest number of tokens."""
    talks = {scope: Talk.of(said, budget - 50) for scope, said in items.items()}
    texts = {scope: {_field(i, "external_id"): _text(i) for i in said} for scope, said in items.items()}
    rows: dict[str, list[list[float]]] = {name: [] for name in ("last turns", "summarization", *splits)}
    most = 0
    for one in asked:
        [scope] = one.scopes
        passages, talk = gold_passages(one, texts[scope]), talks[scope]
        if not passages:
            continue
        memory = built.memory.in_scope(scope)
        parts = _Parts.of([*talk.messages, HumanMessage(one.question)])
        material = Material.read(Conversation(memory), one.question, budget)
        rows["last turns"].append(inside(passages, talk.last))
        rows["summarization"].append(inside(passages, talk.summarized))
        for name, shares in splits.items():
            compacted = GraphMemoryCompactor(memory, shares=shares)._compacted(parts, material, budget)  # pyright: ignore[reportPrivateUsage]
            most = max(most, count(compacted))
            rows[name].append(inside(passages, compacted[:-1]))
    return {name: np.array(values) for name, values in rows.items()}, most


def table(name: str, figures: Mapping[str, Floats], most: int) -> Iterator[str]:
    """Yield the lines of a set, with the difference to keeping the last turns."""
    last = figures["last turns"]
    yield f"{name}: {len(last)} questions, at most {most:,} tokens"
    yield f"  {'':24}" + "".join(f"{measure:>8}" for measure in MEASURES) + "   share − last turns [95 %]"
    for method, values in figures.items():
        low, high = interval(values - last)
        gain = f"   {(values - last).mean(0)[0]:+.3f} [{low[0]:+.3f}, {high[0]:+.3f}]"
        yield f"  {method:24}" + "".join(f"{value:8.3f}" for value in values.mean(0)) + gain


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sets", default="beam,realtalk,locomo", help="comma-separated")
    parser.add_argument("--budget", type=int, default=4000, help="tokens of the compacted conversation")
    parser.add_argument("--extractor", default="none", help="as the setting of that name")
    parser.add_argument("--splits", action="store_true", help="compare splits of the budget")
    given = parser.parse_args()
    built = Built(given.extractor)
    with built.memory:
        splits = {"graphmem": BudgetShares.of(built.memory.settings)}
        if given.splits:
            splits = {f"recent {share:.0%}": GIVEN.model_copy(update={"recent": share}) for share in RECENT}
        for name in given.sets.split(","):
            data = load(name)
            built.build(data.items)
            print("\n".join(table(name, *measure(built, data.items, data.asked, splits, given.budget))), flush=True)


if __name__ == "__main__":
    main()
