"""Extraction by a language model: any LangChain chat model."""

from __future__ import annotations

import logging
import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from importlib.util import find_spec
from typing import TYPE_CHECKING

from graphmem.errors import (
    ExtractionFailed,
    ExtractorMisconfigured,
    ExtractorUnavailable,
    InvalidInput,
    MissingExtra,
)
from graphmem.ingest.content_filter import is_small_talk, skip_reason
from graphmem.ingest.extract.llm_parse import as_extraction, find_json
from graphmem.ingest.extract.llm_prompt import answer_schema, data_blocks, is_cut, rules, shown_texts
from graphmem.ingest.extract.llm_selection import Limits, select
from graphmem.ingest.requests import may_be_read_together
from graphmem.llm.providers import FailureKind, kind_of, reason_for, seconds_for, secrets_of
from graphmem.llm.structured import ReplyCutOff, StructuredModel, name_of
from graphmem.models import Episode
from graphmem.models.metadata import SKIPPED
from graphmem.ontology import DEFAULT_ONTOLOGY, Ontology
from graphmem.protocols import Extraction, ExtractionRequest
from graphmem.timed_calls import TimedCalls

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel

_log = logging.getLogger(__name__)

_FAILURES: dict[FailureKind, type[ExtractionFailed]] = {
    "episode": ExtractionFailed,
    "unavailable": ExtractorUnavailable,
    "misconfigured": ExtractorMisconfigured,
}


class LLMExtractor:
    """Extractor that prompts a chat model.

    The model is asked for structured output, with fallbacks (`StructuredModel`); the JSON in a plain reply is located
    and repaired.

    Parameters
    ----------
    model
        A LangChain chat model, or its name for ``init_chat_model`` ("openai:gpt-4o-mini"); a model given by name
        is created on first use.
    timeout
        Seconds per call, all attempts included; None takes the default for the model (`seconds_for`).
    concurrency
        Maximum number of parallel calls.
    max_entities, max_edges
        Maximum number of entities and edges kept of one reply.
    turns_per_call
        Maximum number of successive turns of a session in one call.
    context_bytes
        Maximum UTF-8 bytes of each earlier turn in the prompt.
    ontology
        Entity types for the prompt, and allowed short names.
    instructions
        What the model is told in addition, after the built-in instructions.

    Raises
    ------
    MissingExtra
        If LangChain or json-repair isn't installed.
    InvalidInput
        If a number is out of range.
    """

    def __init__(
        self,
        model: BaseChatModel | str,
        *,
        timeout: float | None = None,
        concurrency: int = 4,
        max_entities: int = 10,
        max_edges: int = 15,
        turns_per_call: int = 4,
        context_bytes: int = 2048,
        ontology: Ontology = DEFAULT_ONTOLOGY,
        instructions: str = "",
    ) -> None:
        needed = ("json_repair", "langchain_core", *(("langchain",) if isinstance(model, str) else ()))
        if any(find_spec(package) is None for package in needed):
            raise MissingExtra("extraction by a language model", "langchain")
        if timeout is None:
            timeout = seconds_for(model if isinstance(model, str) else name_of(model))
        if not (math.isfinite(timeout) and timeout > 0):
            raise InvalidInput(f"timeout {timeout}: expected a number of seconds above 0")
        for field, value in (
            ("concurrency", concurrency),
            ("max_entities", max_entities),
            ("max_edges", max_edges),
            ("turns_per_call", turns_per_call),
            ("context_bytes", context_bytes),
        ):
            if value < 1:
                raise InvalidInput(f"{field} {value}: expected at least 1")
        self._model = StructuredModel(model, answer_schema(ontology), timeout)
        self._name = f"llm:{self._model.name}"
        self._timeout = timeout
        self._concurrency = concurrency
        self._turns_per_call = turns_per_call
        self._limits = Limits(max_entities, max_edges)
        self._context_bytes = context_bytes
        self._ontology = ontology
        self._rules = rules(ontology, max_entities, max_edges, instructions)
        self._calls: TimedCalls[list[Extraction]] = TimedCalls("graphmem-llm", concurrency, timeout)

    @property
    def name(self) -> str:
        """``llm:`` and the name of the model."""
        return self._name

    @property
    def timeout(self) -> float:
        """Seconds per call."""
        return self._timeout

    @property
    def batch_size(self) -> int:
        """Twice the concurrency, so that one slow call doesn't leave the other slots idle."""
        return 2 * self._concurrency

    @property
    def concurrency(self) -> int:
        """Number of parallel calls of `extract` by the queue, each with one episode or several."""
        return self._concurrency

    @property
    def turns_per_call(self) -> int:
        """Maximum number of successive turns of a session, or passages of a document, in one call."""
        return self._turns_per_call

    @property
    def reads_known(self) -> bool:
        """True: the prompt shows what is known."""
        return True

    def find_problem(self) -> str | None:
        """Return why the model can't be created, or None; it isn't called."""
        try:
            self._model.model()
        except Exception as error:  # noqa: BLE001  (constructors of providers raise any exception)
            return f"model {self._name[4:]!r} can't be created: {reason_for(error)}"
        return None

    def extract(self, requests: Sequence[ExtractionRequest]) -> list[Extraction | Exception]:
        """Return the extraction of each episode, or its error in place of it."""
        if not requests:
            return []
        if (problem := self.find_problem()) is not None:
            return [ExtractorMisconfigured(problem) for _ in requests]
        model = self._model.model()
        spoken = [_says_something(request) for request in requests]
        groups = [group for group in _groups(requests, self._turns_per_call) if any(spoken[i] for i in group)]
        found = self._outcomes(requests, groups)
        # one of the turns of a failed call may be the cause
        failed = [group for group in groups if len(group) > 1 and _is_worth_splitting(found[group[0]])]
        found |= self._outcomes(requests, [[i] for group in failed for i in group if spoken[i]])
        results = [found[i] if spoken[i] else Extraction() for i in range(len(requests))]
        return [o if isinstance(o, Extraction) else self._failed(model, o) for o in results]

    def _outcomes(
        self, requests: Sequence[ExtractionRequest], groups: Sequence[Sequence[int]]
    ) -> dict[int, Extraction | Exception]:
        """Return the extractions of groups of requests, or the error of the group, by the position of the request."""
        outcomes = self._calls.run([partial(self._read, [requests[i] for i in group]) for group in groups])
        return {
            position: outcome if isinstance(outcome, Exception) else outcome[place]
            for group, outcome in zip(groups, outcomes, strict=True)
            for place, position in enumerate(group)
        }

    def _failed(self, model: BaseChatModel, error: Exception) -> ExtractionFailed:
        # a new, unchained error: errors of providers may contain request headers
        failure = _FAILURES[kind_of(error)](reason_for(error, secrets_of(model)))
        _log.debug("extraction by %s failed: %s", self._name, failure)
        return failure

    def _read(self, requests: Sequence[ExtractionRequest]) -> list[Extraction]:
        # turns excluded from extraction are excluded from the context as well
        requests = [replace(r, context=tuple(filter(_may_be_read, r.context))) for r in requests]
        dropped: Counter[str] = Counter()
        try:
            reply = self._model.ask(self._rules, data_blocks(requests, self._context_bytes))
        except ReplyCutOff as cut_off:
            if len(requests) > 1:
                raise  # each turn is read alone
            reply = cut_off.reply
            dropped["end of a reply at the token limit"] += 1
        answer = find_json(reply) if isinstance(reply, str) else as_extraction(reply)
        if answer is None:
            raise ExtractionFailed("the reply of the model contains neither entities nor edges")
        found = select(answer, requests, self._ontology, self._limits)
        shown = zip(requests, shown_texts(requests), strict=True)
        cut = [is_cut(request, text) for request, text in shown]
        found = [_with_cut(e) if is_shorter else e for e, is_shorter in zip(found, cut, strict=True)]
        return [replace(e, dropped=(*e.dropped, *dropped.items())) for e in found]


def _with_cut(extraction: Extraction) -> Extraction:
    """Return an extraction that says that the end of the text wasn't read."""
    return replace(extraction, dropped=(*extraction.dropped, ("end of a text beyond 16,000 bytes", 1)))


def _may_be_read(turn: Episode) -> bool:
    # check the stored mark as well: the content filter may have used a detector
    return SKIPPED not in turn.metadata and skip_reason(turn) is None


def _says_something(request: ExtractionRequest) -> bool:
    """Return whether an episode is worth a call; "yes" is, after a question."""
    episode = request.episode
    after_question = bool(request.context) and "?" in request.context[-1].text
    return episode.source != "message" or not is_small_talk(episode.searchable_text, after_question=after_question)


def _groups(requests: Sequence[ExtractionRequest], most: int) -> list[list[int]]:
    """Return the positions of successive requests in groups of at most `most` that may be read together."""
    groups: list[list[int]] = []
    for position, request in enumerate(requests):
        last = requests[position - 1].episode if groups and len(groups[-1]) < most else None
        if last is not None and may_be_read_together(last, request.episode):
            groups[-1].append(position)
        else:
            groups.append([position])
    return groups


def _is_worth_splitting(outcome: Extraction | Exception) -> bool:
    """Return whether the turns of a failed call may succeed alone: the failure isn't that of the server."""
    return isinstance(outcome, Exception) and (kind_of(outcome) == "episode" or type(outcome) is TimeoutError)
