"""A question to the user that one replica asks and another one receives the answer of."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from mcp import MCPError
from mcp.types import ElicitResult, InputRequiredResult

from graphmem import GraphMemory
from graphmem.adapters.mcp import Access, KeyFile
from graphmem.models import Scope
from tests.integration.mcp.clients import data_of, served

pytestmark = pytest.mark.slow
YES = ElicitResult(action="accept", content={"erase": True})


async def _unused(*_: Any) -> ElicitResult:
    return YES


def test_the_answer_to_a_question_may_reach_another_replica_but_no_other_caller(tmp_path: Path) -> None:
    scope = Scope("default")
    keys = KeyFile(tmp_path / "keys.json")
    _, mine = keys.add("mine", Access(scopes=(scope,), rights="admin", user="Maya"))
    _, other = keys.add("other", Access(scopes=(scope,), rights="admin", user="Ravi"))
    with GraphMemory.open(f"sqlite:///{tmp_path}/memory.db", extractor="none", background=False) as memory:
        memory.add_facts([("Ines Costa", "knows", "Ravi Menon")])
    given = {"entity": "Ines Costa"}

    async def work(urls: list[Any]) -> None:
        async with urls[0].client("auto", mine, elicitation_callback=_unused) as client:
            asked = await client.session.call_tool("memory_forget", given, allow_input_required=True)
        assert isinstance(asked, InputRequiredResult)
        answers = dict.fromkeys(asked.input_requests or {}, YES)
        async with urls[1].client("auto", other, elicitation_callback=_unused) as client:
            with pytest.raises(MCPError):
                await client.session.call_tool(
                    "memory_forget", given, input_responses=answers, request_state=asked.request_state
                )
        async with urls[1].client("auto", mine, elicitation_callback=_unused) as client:
            done = await client.session.call_tool(
                "memory_forget", given, input_responses=answers, request_state=asked.request_state
            )
        assert data_of(done)["erased"]

    options = ("--keys", "keys.json", "--profile", "full")
    with served(tmp_path, *options) as one, served(tmp_path, *options) as two:
        asyncio.run(work([one, two]))
