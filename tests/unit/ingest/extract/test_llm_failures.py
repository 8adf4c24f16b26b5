"""Single failures of a server, thoughts in replies, and what the limits of a reply drop first."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import pytest

from graphmem.errors import ExtractionFailed, ExtractorMisconfigured
from graphmem.ingest.interpretation import read_extraction
from graphmem.ingest.requests import build_requests
from graphmem.models import Episode, Scope, utc_now
from graphmem.ontology import DEFAULT_ONTOLOGY
from graphmem.protocols import Extraction, ExtractionRequest, Known, KnownName
from graphmem.registry import open_backend

pytest.importorskip("json_repair", reason="json-repair isn't installed (graphmem[langchain])")
pytest.importorskip("langchain_core", reason="LangChain isn't installed (graphmem[langchain])")

from collections import Counter

from langchain_core.language_models import BaseChatModel, FakeListChatModel
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.runnables import Runnable, RunnableLambda

from graphmem.ingest.extract.llm import LLMExtractor
from graphmem.ingest.extract.llm_prompt import is_cut, shown_texts
from graphmem.llm.providers import (
    SLOW_SECONDS,
    model_options,
    open_model,
    schema_options,
    seconds_for,
    without_secrets,
)

AT = datetime(2025, 1, 13, 9, 30, tzinfo=UTC)
SCOPE = Scope("tests")
WORKS = {"source": "Ann Lee", "relation": "works_at", "target": "Acme"}


class Answered(Exception):
    """The error of a client library for a status."""

    def __init__(self, status: int, text: str = "") -> None:
        super().__init__(text)
        self.status_code = status


class Server(BaseChatModel):
    """Chat model with structured output; each call takes the next of its outcomes, errors or replies."""

    outcomes: Any
    asked: Any
    options: Any = None

    @property
    def _llm_type(self) -> str:
        return "server"

    def _generate(self, messages: list[BaseMessage], *_: Any, **__: Any) -> ChatResult:
        reply = self._next("plain")
        return ChatResult(generations=[ChatGeneration(message=AIMessage(reply))])

    def with_structured_output(self, schema: Any, **options: Any) -> Runnable[Any, Any]:  # type: ignore[override]
        method = options.get("method", "schema")
        return RunnableLambda(lambda _: AIMessage(self._next(method)))

    def _next(self, method: str) -> str:
        self.asked.append(method)
        outcome = self.outcomes.pop(0) if len(self.outcomes) > 1 else self.outcomes[0]
        if isinstance(outcome, Exception):
            raise outcome
        return outcome


def answer(*edges: dict[str, Any], entities: list[Any] | None = None) -> str:
    return json.dumps({"entities": entities or [], "edges": list(edges)})


def episode(text: str = "Ann Lee works at Acme.", speaker: str | None = "Bob", **fields: Any) -> Episode:
    return Episode(scope=SCOPE, text=text, speaker=speaker, occurred_at=AT, **fields)


def extract(model: BaseChatModel, *texts: str, **options: Any) -> list[Extraction | Exception]:
    extractor = LLMExtractor(model, **options)
    return [extractor.extract([ExtractionRequest(episode(text))])[0] for text in texts]


def extraction(reply: str, text: str = "Ann Lee works at Acme.", **options: Any) -> Extraction:
    [outcome] = extract(FakeListChatModel(responses=[reply]), text, **options)
    assert isinstance(outcome, Extraction), outcome
    return outcome


@pytest.mark.parametrize("error", [Answered(500, "internal error"), Answered(400, "bad request")], ids=["500", "400"])
def test_one_error_of_a_server_leaves_structured_output_in_use(error: Exception) -> None:
    model = Server(outcomes=[error, answer(WORKS)], asked=[])
    extract(model, *["Ann Lee works at Acme."] * 3)
    assert model.asked[-2:] == ["schema", "schema"]


def test_failing_server_is_not_asked_again_in_another_way() -> None:
    model = Server(outcomes=[Answered(500, "internal error")], asked=[])
    extract(model, "Ann Lee works at Acme.")
    assert model.asked == ["schema"]


def test_text_that_is_too_long_costs_one_call() -> None:
    model = Server(outcomes=[Answered(400, "This model's maximum context length is 8192 tokens")], asked=[])
    [outcome] = extract(model, "Ann Lee works at Acme.")
    assert isinstance(outcome, ExtractionFailed)
    assert model.asked == ["schema"]


def test_method_that_two_calls_in_a_row_reject_is_left() -> None:
    rejected = Answered(400, "response_format json_schema is not supported")
    model = Server(outcomes=[rejected, answer(WORKS), rejected, answer(WORKS)], asked=[])
    extract(model, *["Ann Lee works at Acme."] * 3)
    assert model.asked == ["schema", "json_mode", "schema", "json_mode", "json_mode"]


def test_the_last_answer_of_a_model_that_drafts_counts() -> None:
    draft = answer({**WORKS, "target": "Globex"})
    reply = f"<think>{answer()}</think> First I thought {draft}, but it is {answer(WORKS)}."
    assert [edge.target for edge in extraction(reply, "Ann Lee left Globex and works at Acme.").edges] == ["Acme"]


@pytest.mark.parametrize("name", ["AC", "S3", "Jo"])
def test_short_name_that_the_text_writes_like_a_name_is_kept_with_its_facts(name: str) -> None:
    text = f"Ann Lee knows {name} well."
    found = extraction(answer({"source": "Ann Lee", "relation": "knows", "target": name}), text)
    reading = read_extraction(episode(text), found, DEFAULT_ONTOLOGY, Counter())
    assert [statement.target.display for statement in reading.statements] == [name]


@pytest.mark.parametrize("name", ["It", "Hi", "ok", "AM", "XY"])
def test_short_word_that_is_no_name_of_the_text_is_dropped(name: str) -> None:
    found = extraction(
        answer({"source": "Ann Lee", "relation": "knows", "target": name}), f"It is Ann Lee. Hi, {name.lower()}"
    )
    assert (found.edges, dict(found.dropped)) == ((), {"short name": 1})


def test_the_speaker_needs_no_place_among_ten_entities() -> None:
    names = [f"Name{n}" for n in range(10)]
    reply = answer({"source": "I", "relation": "knows", "target": "Name9"}, entities=names)
    found = extraction(reply, " ".join(names))
    assert [(edge.source, edge.target) for edge in found.edges] == [("Bob", "Name9")]
    assert dict(found.dropped) == {}


def test_targets_that_are_no_entities_need_no_place_among_ten_entities() -> None:
    facts = [{"source": "Acme", "relation": f"paid_{n}", "target": f"{n}00 EUR"} for n in range(1, 13)]
    text = "Acme " + " ".join(fact["target"] for fact in facts)
    found = extraction(answer(*facts, entities=["Acme"]), text)
    assert (len(found.edges), [entity.name for entity in found.entities]) == (12, ["Acme"])


def test_known_names_need_no_place_among_ten_entities() -> None:
    names = [f"Name{n}" for n in range(13)]
    known = Known(tuple(KnownName(name, "person") for name in names))
    reply = answer(*({"source": "Name0", "relation": "knows", "target": name} for name in names[1:]))
    extractor = LLMExtractor(FakeListChatModel(responses=[reply]))
    [found] = extractor.extract([ExtractionRequest(episode(" ".join(names)), known=known)])
    assert isinstance(found, Extraction)
    assert len(found.edges) == 12


def test_entities_that_no_fact_needs_go_first() -> None:
    names = [f"Name{n}" for n in range(12)]
    found = extraction(
        answer({"source": "Name10", "relation": "knows", "target": "Name11"}, entities=names), " ".join(names)
    )
    assert len(found.edges) == 1
    assert {"Name10", "Name11"} <= {entity.name for entity in found.entities}
    assert dict(found.dropped) == {"limit": 2}


def test_the_least_certain_facts_go_first() -> None:
    edges = [{**WORKS, "relation": f"likes_{n}", "confidence": 0.5 if n == 0 else 0.9} for n in range(3)]
    found = extraction(answer(*edges), max_edges=2)
    assert [edge.relation for edge in found.edges] == ["likes_1", "likes_2"]


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("I'm exhausted.", "exhaustion"),
        ("I freelance now.", "freelancer"),
        ("It costs €40k.", "40,000 EUR per month"),
        ("It costs 40k dollars.", "40,000 USD"),
        ("The export was late last night.", "late export of 12 January 2025"),
        ("The plans are due on 20 March.", "2025-03-20"),
        ("The plans were due on 20 November.", "20 November 2024"),
        ("The plans are due in April.", "April 2025"),
        ("The plans are due on 20 March.", "2025-03"),
        ("They operate three weeks from today.", "3 February 2025"),
        ("The party is at three, no, at two.", "3 August 2025 at two o'clock"),
        ("He owes me forty quid.", "40 GBP"),
        ("There were thirty-one of us.", "31 people"),
        ("It cost two hundred and ten thousand pounds.", "£210,000"),
        ("The mill is shut from 22 Dec to 4 Jan.", "closed over Christmas"),
        ("My brother is 23.", "23"),
        ("The dog is nine.", "9"),
        ("There's 6.2k in the account.", "£6,200"),
        ("It was 9,500, I think.", "€9.5k"),
        ("There is one for 8.8 in Henley.", "£8,800"),
        ("We swap on Mondays at 10.", "Mondays at 10:00"),
        ("i do mon to thurs, 4 days", "Monday to Thursday"),
        ("open from sept till xmas", "September"),
        ("The offer was 412.", "412,000 GBP"),
        ("I'm at st jamess on mondays.", "St James's"),
        ("They kill our own k8s.", "Kubernetes"),
        ("It's still on the old rabbit box.", "RabbitMQ"),
        ("I'm engaged to Tom, not the one whom Zoe Berg knows.", "Tom (Ann Lee's fiancé)"),
    ],
)
def test_another_form_of_a_noun_amount_or_date_is_grounded(text: str, name: str) -> None:
    text = f"Ann Lee: {text}"
    assert extraction(answer({"source": "Ann Lee", "relation": "has", "target": name}), text).edges


@pytest.mark.parametrize(
    "name",
    [
        "40,000 EUR",
        "50,000 USD",
        "export of 14 September 2025 to Paris",
        "7",
        "31 people",
        "6,200",
        "Kubelets",
        "Tom (Ann Lee's brother)",
        "Ann Lee (Rob's sister)",
    ],
)
def test_an_amount_or_name_that_nobody_said_is_not_grounded(name: str) -> None:
    text = "Ann Lee: It costs $40k, the export was late last night. The next is due in March, or on 3 June."
    assert not extraction(answer({"source": "Ann Lee", "relation": "has", "target": name}), text).edges


@pytest.mark.parametrize("name", ["2025-03-20", "4 March 2025", "2025-05", "dinner of 4 March 2025"])
def test_a_date_that_nobody_said_is_no_name_of_a_thing(name: str) -> None:
    text = "Ann Lee: It costs $40k, dinner was late last night. The next is due in March, or on 3 June."
    assert not extraction(answer({"source": name, "relation": "has", "target": "Ann Lee"}), text).edges


def test_long_episode_is_cut_in_the_prompt() -> None:
    seen: list[int] = []

    class Long(FakeListChatModel):
        def _call(self, messages: list[BaseMessage], *_: Any, **__: Any) -> str:
            seen.append(len(str(messages[-1].content).encode()))
            return answer()

    extract(Long(responses=[]), "ü" * 150_000)
    assert seen[0] < 17_000


def test_of_several_turns_only_the_end_of_the_longest_is_left_out_and_counted() -> None:
    def cut(*sizes: int) -> list[int]:
        requests = [ExtractionRequest(episode("x" * size, session_id="s")) for size in sizes]
        shown = shown_texts(requests)
        found = LLMExtractor(FakeListChatModel(responses=[answer()]), turns_per_call=4).extract(requests)
        assert [bool(e.dropped) for e in found if isinstance(e, Extraction)] == list(map(is_cut, requests, shown))
        return [size - len(text) for size, text in zip(sizes, shown, strict=True)]

    assert cut(5_000, 1_000, 900, 900) == [0, 0, 0, 0]
    assert cut(20_000, 1_000, 900) == [5_900, 0, 0]
    assert cut(9_000, 100, 9_000) == [1_050, 0, 1_050]


@pytest.mark.parametrize(
    ("role", "speaker"),
    [
        ("assistant", "Assistant"),
        ("Model", "Assistant"),
        ("User", "User"),
        ("agent", "Assistant"),
        ("Tool", None),
        ("system", None),
    ],
)
def test_turns_are_context_unless_a_tool_or_a_system_wrote_them(role: str, speaker: str | None) -> None:
    backend = open_backend("memory://")
    asked = episode("Where do you live?", role=role, speaker=None, session_id="s")
    said = episode("Ghent.", session_id="s")
    backend.add_episodes(SCOPE, [asked, said])
    [request] = build_requests(backend, SCOPE, [said], 4, now=utc_now())
    assert [turn.speaker for turn in request.context] == ([] if speaker is None else [speaker])


@pytest.mark.parametrize(
    ("model", "options"),
    [
        ("openai:gpt-4o-mini", {"temperature": 0.0, "max_retries": 0}),
        ("openai:o3-mini", {"max_retries": 0}),
        ("gpt-5-mini", {"max_retries": 0}),
        ("ollama:qwen3:8b", {"temperature": 0.0}),
        ("claude-haiku-4-5", {"temperature": 0.0, "max_retries": 0}),
        ("nobody:nothing", {}),
    ],
)
def test_options_of_a_model_follow_its_provider(model: str, options: dict[str, Any]) -> None:
    assert model_options(model) == options


class Thermal(FakeListChatModel):
    """Chat model that rejects a temperature, if it has one; `asked` has the temperature of each call."""

    temperature: float | None = 0.0
    asked: Any = None

    def _call(self, *args: Any, **kwargs: Any) -> str:
        self.asked.append(self.temperature)
        if self.temperature is not None:
            raise Answered(400, "Unsupported value: 'temperature' does not support 0.0 with this model.")
        return super()._call(*args, **kwargs)


def test_model_opened_by_name_that_takes_no_temperature_is_called_without_one(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[float | None] = []
    made: list[dict[str, Any]] = []

    def init(name: str, **options: Any) -> Thermal:
        made.append({"name": name, **options})
        return Thermal(responses=[answer(WORKS)], asked=asked)

    monkeypatch.setattr("langchain.chat_models.init_chat_model", init)
    extractor = LLMExtractor("anthropic:claude-next", timeout=2.5)
    for _ in range(2):
        [outcome] = extractor.extract([ExtractionRequest(episode())])
        assert isinstance(outcome, Extraction), outcome
    assert asked == [0.0, None, None]
    assert made == [{"name": "anthropic:claude-next", "temperature": 0.0, "max_retries": 0, "timeout": 3}]


def test_temperature_of_a_model_object_is_left_as_it_is() -> None:
    model = Thermal(responses=[answer(WORKS)], asked=[])
    [outcome] = extract(model, "Ann Lee works at Acme.")
    assert isinstance(outcome, ExtractorMisconfigured)
    assert model.temperature == 0.0


def test_time_limit_reaches_the_client_of_each_provider(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[dict[str, Any]] = []

    def init(_: str, **options: Any) -> Thermal:
        made.append(options)
        return Thermal(responses=[""])

    monkeypatch.setattr("langchain.chat_models.init_chat_model", init)
    for model in ("ollama:qwen3", "cohere:command-r", "mistralai:mistral-small"):
        open_model(model, 7.5)
    zero = {"temperature": 0.0}
    assert made == [{"client_kwargs": {"timeout": 8}, **zero}, {"timeout_seconds": 8, **zero}, {"timeout": 8, **zero}]


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("Skipping maximum token limit: 4096", "Skipping maximum token limit: 4096"),
        ("at http://user:p@ss@host/x", "at http://***host/x"),
        ("hf_abcdefghij and sk-abcdefgh", "*** and ***"),
        ("your token: abc", "your ***"),
    ],
)
def test_only_what_is_secret_is_masked(text: str, shown: str) -> None:
    assert without_secrets(text) == shown


def test_model_that_thinks_has_more_time() -> None:
    assert seconds_for("openai:o3-mini") == SLOW_SECONDS > seconds_for("openai:gpt-4o-mini")
    assert LLMExtractor(FakeListChatModel(responses=[""])).timeout == seconds_for("")


def test_schema_is_strict_for_models_of_openai_only() -> None:
    openai = pytest.importorskip("langchain_openai", reason="langchain-openai isn't installed")
    assert schema_options(openai.ChatOpenAI(model="gpt-4o-mini", api_key="none")) == {"strict": True}
    assert schema_options(FakeListChatModel(responses=[""])) == {}
