"""The LLM extractor through a real client against an OpenAI-compatible server that behaves and misbehaves."""

from __future__ import annotations

import json
import logging
import threading
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from graphmem import GraphMemory
from graphmem.errors import ExtractionFailed, ExtractorMisconfigured, ExtractorUnavailable
from graphmem.ingest.extract.llm import LLMExtractor
from graphmem.models import Episode, Scope
from graphmem.protocols import Extraction, ExtractionRequest

pytest.importorskip("json_repair", reason="json-repair isn't installed (graphmem[langchain])")
pytest.importorskip("langchain_openai", reason="langchain-openai isn't installed (development group)")

from langchain_openai import ChatOpenAI
from pydantic import SecretStr

KEY = "sk-test-Zq81kPw02LmXv93"
TEXT = "I started at Acme Corp in May, with Melanie."
GOOD = json.dumps(
    {
        "entities": [
            {"name": "Acme Corp", "entity_type": "organization", "summary": "an employer"},
            {"name": "Melanie", "entity_type": "person", "summary": ""},
        ],
        "edges": [
            {
                "source": "Caroline",
                "relation": "works_at",
                "target": "Acme Corp",
                "edge_type": "semantic",
                "fact": "Caroline works at Acme Corp.",
                "confidence": 0.9,
                "valid_from": "2023-05-01",
                "valid_to": None,
                "ended": False,
            }
        ],
    }
)

Reply = tuple[int, dict[str, Any]]


class Server:
    """Answers chat completions by a function of the request, and keeps the requests."""

    def __init__(self) -> None:
        self.asked: list[dict[str, Any]] = []
        self.answer: Callable[[dict[str, Any]], Reply] = lambda _: says(GOOD)
        self.release = threading.Event()
        server = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                server.asked.append(body)
                status, reply = server.answer(body)
                payload = json.dumps(reply).encode()
                try:
                    self.send_response(status)
                    self.send_header("Content-Type", "application/json")
                    self.send_header("Content-Length", str(len(payload)))
                    self.end_headers()
                    self.wfile.write(payload)
                except ConnectionError:
                    pass  # the client gave up

            def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
                pass

        self._http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._http.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._http.server_address[1]}/v1"
        threading.Thread(target=self._http.serve_forever, args=(0.01,), daemon=True).start()

    def close(self) -> None:
        self.release.set()
        self._http.shutdown()
        self._http.server_close()

    @property
    def formats(self) -> list[str | None]:
        return [body.get("response_format", {}).get("type") for body in self.asked]


@pytest.fixture
def server() -> Iterator[Server]:
    made = Server()
    yield made
    made.close()


def says(content: str | None, *, finish: str = "stop", refusal: str | None = None) -> Reply:
    message = {"role": "assistant", "content": content, "refusal": refusal}
    return 200, {
        "id": "1",
        "object": "chat.completion",
        "created": 1,
        "model": "small",
        "choices": [{"index": 0, "message": message, "finish_reason": finish}],
        "usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2},
    }


def error(status: int, message: str) -> Reply:
    return status, {"error": {"message": message, "type": "error", "code": None, "param": None}}


def chat_model(server: Server) -> ChatOpenAI:
    return ChatOpenAI(model="small", base_url=server.url, api_key=SecretStr(KEY), max_retries=0)


def extractor(server: Server, **options: Any) -> LLMExtractor:
    return LLMExtractor(chat_model(server), **options)


def request(text: str = TEXT, session: str | None = None) -> ExtractionRequest:
    occurred = datetime(2023, 6, 9, tzinfo=UTC)
    said = Episode(scope=Scope(), text=text, speaker="Caroline", occurred_at=occurred, session_id=session)
    return ExtractionRequest(said)


def outcome(server: Server, **options: Any) -> Extraction | Exception:
    return extractor(server, **options).extract([request()])[0]


def targets(result: Extraction | Exception) -> list[str]:
    assert isinstance(result, Extraction), result
    return [edge.target for edge in result.edges]


def test_a_json_schema_is_sent_and_its_answer_read(server: Server) -> None:
    result = outcome(server)
    assert targets(result) == ["Acme Corp"]
    assert server.formats == ["json_schema"]
    assert isinstance(result, Extraction)
    assert result.edges[0].valid_from == datetime(2023, 5, 1, tzinfo=UTC)
    assert {e.name: e.entity_type for e in result.entities} == {
        "Acme Corp": "organization",
        "Melanie": "person",
        "Caroline": "person",
    }


@pytest.mark.parametrize(("status", "why"), [(400, "oops"), (500, "failed to compile the grammar")])
def test_a_server_that_fails_on_json_schema_is_asked_for_a_json_object(server: Server, status: int, why: str) -> None:
    def answer(body: dict[str, Any]) -> Reply:
        return error(status, why) if body["response_format"]["type"] == "json_schema" else says(GOOD)

    server.answer = answer
    assert targets(outcome(server)) == ["Acme Corp"]
    assert server.formats == ["json_schema", "json_object"]
    assert "additionalProperties" in server.asked[1]["messages"][0]["content"]


def test_a_server_that_knows_no_response_format_is_asked_in_plain_text(server: Server) -> None:
    def answer(body: dict[str, Any]) -> Reply:
        return error(400, "unknown field") if "response_format" in body else says(f"Here you go:\n```json\n{GOOD}\n```")

    server.answer = answer
    ask = extractor(server)
    results = [ask.extract([request()])[0] for _ in range(4)]
    assert [targets(r) for r in results] == [["Acme Corp"]] * 4
    every = ["json_schema", "json_object", None]  # two rejections in a row are needed to skip a method
    assert server.formats == [*every, *every, "json_object", None, None]


KINDS = [
    *[(status, "no", ExtractorMisconfigured) for status in (401, 402, 403, 404)],
    *[(status, "no", ExtractorUnavailable) for status in (408, 409, 429, 500, 502, 503, 504, 529)],
    (400, "The model `small` does not exist", ExtractorMisconfigured),
    (429, "You exceeded your current quota", ExtractorMisconfigured),
    (400, "maximum context length is 10 tokens", ExtractionFailed),
    (413, "the text is too long", ExtractionFailed),
]


@pytest.mark.parametrize(("status", "why", "kind"), KINDS, ids=[f"{status}: {why}" for status, why, _ in KINDS])
def test_the_status_of_a_server_tells_what_has_failed_in_one_call(
    server: Server, status: int, why: str, kind: type[ExtractionFailed]
) -> None:
    server.answer = lambda _: error(status, why)
    result = outcome(server)
    assert type(result) is kind
    assert str(status) in str(result)
    assert len(server.asked) == 1


def test_a_refused_key_pauses_the_queue_and_costs_no_try_and_its_repair_extracts_everything(
    server: Server, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    server.answer = lambda _: error(401, f"Incorrect API key provided: {KEY}")
    url = f"sqlite:///{tmp_path}/memory.db"
    with GraphMemory.open(url, llm=chat_model(server), embeddings="none", background=False) as memory:
        for number in range(12):
            memory.remember(TEXT, speaker="Caroline", session_id=f"session {number}", occurred_at="2023-06-09")
        assert memory.flush() == 1
        assert (asked := len(server.asked)) <= 4  # calls may be under way when the first is refused
        assert (memory.flush(), len(server.asked)) == (1, asked)
        stats = memory.stats()
        assert (stats.queue.state, stats.pending_episodes, stats.failed_episodes) == ("paused", 12, 0)
        assert "refused the credentials (HTTP 401)" in stats.queue.reason
        assert {(each.attempts, each.retry_at is None) for each in stats.errors} == {(0, False)}
        [told] = [check.detail for check in memory.admin.doctor() if not check.ok]
        assert "refused the credentials (HTTP 401)" in told

        server.answer = lambda _: says(GOOD)
        assert memory.admin.backfill().extracted == 12
        stats = memory.stats()
        assert (stats.queue.state, stats.pending_episodes, stats.failed_episodes) == ("running", 0, 0)
        [fact] = memory.facts("Caroline")
        assert (fact.target, len(fact.episode_ids)) == ("Acme Corp", 12)
    paused, resumed = [r.getMessage() for r in caplog.records if r.name.startswith("graphmem")]
    assert "refused the credentials (HTTP 401)" in paused
    assert resumed.startswith("extraction resumed")


def test_prose_is_a_failure(server: Server) -> None:
    server.answer = lambda _: says("Caroline works at Acme Corp.")
    assert "no JSON" in str(outcome(server))


def test_broken_json_is_mended(server: Server) -> None:
    server.answer = lambda _: says("```json\n" + GOOD.replace('"ended": false', '"ended": false,')[:-1])
    assert targets(outcome(server)) == ["Acme Corp"]


def test_an_answer_cut_off_at_the_limit_of_tokens_gives_what_it_has(server: Server) -> None:
    server.answer = lambda _: says(GOOD[: GOOD.index('"edges"')], finish="length")
    result = outcome(server)
    assert isinstance(result, Extraction), result
    assert [e.name for e in result.entities] == ["Acme Corp", "Melanie"]
    assert dict(result.dropped)["end of a reply at the token limit"] == 1


def test_turns_whose_common_answer_is_cut_off_are_read_one_by_one(server: Server) -> None:
    def answer(body: dict[str, Any]) -> Reply:
        shared = 'number="2"' in body["messages"][-1]["content"]
        return says(GOOD[: GOOD.index('"edges"')], finish="length") if shared else says(GOOD)

    server.answer = answer
    results = extractor(server).extract([request(session="s"), request(session="s")])
    assert [targets(result) for result in results] == [["Acme Corp"]] * 2


def test_a_refusal_is_a_failure(server: Server) -> None:
    server.answer = lambda _: says(None, refusal="I can't help with that.")
    assert "refused" in str(outcome(server))


def test_a_server_that_hangs_is_given_up_at_the_limit(server: Server) -> None:
    def answer(_: dict[str, Any]) -> Reply:
        server.release.wait(30)
        return says(GOOD)

    server.answer = answer
    ask = extractor(server, timeout=0.5)
    begun = time.perf_counter()
    results = ask.extract([request()] * 4)
    took = time.perf_counter() - begun
    assert all("no reply within 0.5 s" in str(r) for r in results)
    assert took < 5


def test_a_server_that_is_away_is_a_failure(server: Server) -> None:
    server.close()
    assert isinstance(outcome(server), ExtractionFailed)


def test_ten_thousand_entities_are_cut_to_the_limit(server: Server) -> None:
    many = [{"name": "Acme Corp" if n == 9 else f"Melanie {n}", "entity_type": "person"} for n in range(10_000)]
    server.answer = lambda _: says(json.dumps({"entities": many, "edges": []}))
    begun = time.perf_counter()
    result = outcome(server)
    assert time.perf_counter() - begun < 10
    assert isinstance(result, Extraction)
    assert [e.name for e in result.entities] == ["Acme Corp"]
    assert sum(dict(result.dropped).values()) == 9_999


def test_invented_people_are_dropped_with_what_is_said_of_them(server: Server) -> None:
    invented = json.loads(GOOD)
    invented["entities"].append({"name": "John Smith", "entity_type": "person", "summary": "a colleague"})
    invented["edges"].append({**invented["edges"][0], "source": "John Smith"})
    server.answer = lambda _: says(json.dumps(invented))
    result = outcome(server)
    assert isinstance(result, Extraction)
    assert [e.source for e in result.edges] == ["Caroline"]
    assert dict(result.dropped) == {"ungrounded": 2}


@pytest.mark.parametrize("status", [400, 401, 404, 500])
def test_the_key_is_in_no_error_and_no_log(server: Server, caplog: pytest.LogCaptureFixture, status: int) -> None:
    server.answer = lambda _: error(status, f"Incorrect API key provided: {KEY}. Header was Bearer {KEY}")
    with caplog.at_level(logging.DEBUG, logger="graphmem"):
        result = outcome(server)
    assert isinstance(result, ExtractionFailed)
    assert KEY not in f"{result!r} {result.__cause__!r} {result.__context__!r} {caplog.text}"


@pytest.fixture
def exporter(monkeypatch: pytest.MonkeyPatch) -> InMemorySpanExporter:
    """Return what gets the spans of the test."""
    made, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(made))
    monkeypatch.setattr(trace, "_TRACER_PROVIDER", provider)
    return made


def test_the_tokens_that_the_provider_counts_are_kept(server: Server, exporter: InMemorySpanExporter) -> None:
    def answer(_: dict[str, Any]) -> Reply:
        status, reply = says(GOOD)
        usage = {"prompt_tokens": 700, "completion_tokens": 30, "total_tokens": 730}
        return status, {**reply, "model": "small-2026", "usage": usage}

    server.answer = answer
    assert isinstance(outcome(server), Extraction)
    [span] = exporter.get_finished_spans()
    assert span.name == "chat small"
    assert dict(span.attributes or {}) == {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "openai",
        "gen_ai.request.model": "small",
        "gen_ai.response.model": "small-2026",
        "gen_ai.usage.input_tokens": 700,
        "gen_ai.usage.output_tokens": 30,
    }


def test_a_call_that_fails_is_a_span_without_the_message(server: Server, exporter: InMemorySpanExporter) -> None:
    server.answer = lambda _: error(401, f"wrong key, and {TEXT}")
    assert isinstance(outcome(server), Exception)
    [span] = exporter.get_finished_spans()
    assert span.status.status_code is trace.StatusCode.ERROR
    assert (span.attributes or {})["error.type"] == "OpenAIAuthenticationError"
    assert TEXT not in span.to_json()
