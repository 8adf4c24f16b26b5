"""GraphMemoryRetriever as LangChain's users call it, and LangChain's own test kit."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import RunnableLambda
from langchain_tests.integration_tests import RetrieversIntegrationTests
from pydantic import ValidationError

from graphmem import EpisodeFilter, GraphMemory
from graphmem.adapters.langchain import GraphMemoryRetriever

TURNS = [
    ("t1", "Maya", "I moved to Lisbon last week.", "2026-01-05T10:00:00Z"),
    ("t2", "Nate", "Do you like the pottery class there?", "2026-01-05T10:01:00Z"),
    ("t3", "Maya", "Yes, I made a bowl on Sunday.", "2026-01-05T10:02:00Z"),
    ("t4", "Nate", "I play chess at the club in Porto.", "2026-02-01T09:00:00Z"),
    ("t5", "Maya", "My dog Rex ate my homework.", "2026-02-01T09:01:00Z"),
]
QUESTION = "What did Maya make in the pottery class?"


@pytest.fixture(scope="module")
def memory(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GraphMemory]:
    """Return a memory of five turns, with the real model, and another scope beside it."""
    url = f"sqlite:///{tmp_path_factory.mktemp('langchain')}/memory.db"
    with GraphMemory.open(url, scope="maya", extractor="none", background=False) as opened:
        turns = [
            {"external_id": i, "speaker": who, "text": text, "session_id": at[:10], "occurred_at": at}
            for i, who, text, at in TURNS
        ]
        opened.ingest(turns)
        opened.in_scope("other").ingest([{"text": "In the pottery class Maya made a secret.", "external_id": "s1"}])
        yield opened


@pytest.mark.filterwarnings("ignore:.*is marked with '@pytest.mark.asyncio'")
@pytest.mark.asyncio  # the kit's own tests lack the mark that this plugin asks for
class TestLangChainsKit(RetrieversIntegrationTests):
    """Everything that LangChain asks of a retriever."""

    @pytest.fixture(autouse=True)
    def _given_memory(self, memory: GraphMemory) -> None:
        self._memory = memory

    @property
    def retriever_constructor(self) -> type[BaseRetriever]:
        return GraphMemoryRetriever

    @property
    def retriever_constructor_params(self) -> dict[str, Any]:
        return {"memory": self._memory}

    @property
    def retriever_query_example(self) -> str:
        return QUESTION


def ids(documents: list[Document]) -> list[str]:
    return [document.metadata["external_id"] for document in documents]


def test_a_document_is_an_episode_with_its_provenance(memory: GraphMemory) -> None:
    document = GraphMemoryRetriever(memory=memory, k=1).invoke(QUESTION)[0]
    known = document.metadata
    assert document.page_content == "Yes, I made a bowl on Sunday."
    assert (known["speaker"], known["session_id"], known["external_id"]) == ("Maya", "2026-01-05", "t3")
    assert (known["occurred_at"], known["scope"]) == ("2026-01-05T10:02:00+00:00", "maya")
    assert document.id == known["episode_id"] == memory.search(QUESTION, k=1).found[0].episode.id
    assert sum(reason["score"] for reason in known["reasons"]) == pytest.approx(known["score"])


def test_metadata_can_be_written_as_json(memory: GraphMemory) -> None:
    document = GraphMemoryRetriever(memory=memory, k=1).invoke(QUESTION)[0]
    assert json.loads(json.dumps(document.metadata)) == document.metadata


def test_it_finds_what_a_search_finds(memory: GraphMemory) -> None:
    found = [one.episode.external_id for one in memory.search(QUESTION, k=5)]
    assert ids(GraphMemoryRetriever(memory=memory, k=5).invoke(QUESTION)) == found


def test_it_finds_only_what_the_filter_matches(memory: GraphMemory) -> None:
    found = GraphMemoryRetriever(memory=memory, k=5, filters=EpisodeFilter(speakers=("Nate",))).invoke(QUESTION)
    assert {document.metadata["speaker"] for document in found} == {"Nate"}


@pytest.mark.parametrize(("asked_by", "first"), [("Maya", "t5"), ("Nate", "t4")])
def test_a_question_in_the_first_person_is_about_who_asks(memory: GraphMemory, asked_by: str, first: str) -> None:
    retriever = GraphMemoryRetriever(memory=memory, k=1, asked_by=asked_by)
    assert ids(retriever.invoke("What did I say in February?")) == [first]


def test_ainvoke_and_batch_find_the_same(memory: GraphMemory) -> None:
    retriever = GraphMemoryRetriever(memory=memory, k=2)
    one = retriever.invoke(QUESTION)
    assert asyncio.run(retriever.ainvoke(QUESTION)) == one
    assert retriever.batch([QUESTION, QUESTION, QUESTION]) == [one, one, one]


def test_it_is_a_part_of_a_chain(memory: GraphMemory) -> None:
    chain = GraphMemoryRetriever(memory=memory, k=1) | RunnableLambda(ids)
    assert chain.invoke(QUESTION) == ["t3"]


@pytest.mark.parametrize("fixed", [True, False], ids=["when made", "when called"])
def test_as_of_leaves_out_what_came_later(memory: GraphMemory, fixed: bool) -> None:
    moment, question = "2026-01-20", "Where does Nate play chess?"
    if fixed:
        found = GraphMemoryRetriever(memory=memory, k=10, as_of=moment).invoke(question)
    else:
        found = GraphMemoryRetriever(memory=memory, k=10).invoke(question, None, as_of=moment)
    assert sorted(ids(found)) == ["t1", "t2", "t3"]


def test_no_other_scope_is_read(memory: GraphMemory) -> None:
    assert "s1" not in ids(GraphMemoryRetriever(memory=memory, k=100).invoke("a secret of the scope other"))


@pytest.mark.parametrize("name", ["scope", "scopes", "memory"])
def test_a_call_cannot_name_another_scope(memory: GraphMemory, name: str) -> None:
    with pytest.raises(TypeError, match=name):
        GraphMemoryRetriever(memory=memory).invoke(QUESTION, None, **{name: "other"})


def test_the_caller_may_choose_scopes(memory: GraphMemory) -> None:
    both = (memory.scope, memory.in_scope("other").scope)
    assert {"s1", "t3"} <= set(ids(GraphMemoryRetriever(memory=memory, k=10, scopes=both).invoke(QUESTION)))


@pytest.mark.parametrize("wrong", [{"k": -1}, {"as_of": "yesterday"}, {"scope": "other"}])
def test_a_wrong_argument_is_refused_when_it_is_made(memory: GraphMemory, wrong: dict[str, Any]) -> None:
    with pytest.raises(ValidationError, match=next(iter(wrong))):
        GraphMemoryRetriever(memory=memory, **wrong)


def test_a_question_of_nothing_finds_nothing(memory: GraphMemory) -> None:
    assert GraphMemoryRetriever(memory=memory).invoke("   ") == []


def test_without_langchain_the_error_names_the_extra(tmp_path: Path) -> None:
    import subprocess
    import sys

    blocked = "import sys; sys.modules['langchain_core'] = None; import graphmem.adapters.langchain"
    done = subprocess.run([sys.executable, "-c", blocked], capture_output=True, text=True, cwd=tmp_path, check=False)
    assert "pip install 'graphmem[langchain]'" in done.stderr
