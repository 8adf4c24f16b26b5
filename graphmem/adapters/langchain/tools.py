"""LangChain tools by which an agent manages and searches a memory."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from langchain_core.tools import BaseTool, StructuredTool
from pydantic import BaseModel, Field

from graphmem.adapters.agents import ACTIONS, MANAGE, SEARCH, Action, Notes
from graphmem.memory import GraphMemory


class _Manage(BaseModel):
    content: Annotated[str | None, Field(description="text of the note, to create or update")] = None
    action: Action = "create"
    id: Annotated[str | None, Field(description="id of the note, to update or delete")] = None


class _Search(BaseModel):
    query: Annotated[str, Field(description="a question in plain words")]


def memory_tools(
    memory: GraphMemory, *, user: str | None = None, limit: int = 10, actions: Sequence[Action] = ACTIONS
) -> list[BaseTool]:
    """Return the tools `manage_memory` and `search_memory`, named as in LangMem.

    What the model reads has dates and speakers. The scope is that of the memory: no argument of a call selects another.

    Parameters
    ----------
    user
        Name of the user, to whom "I" refers in questions.
    limit
        Maximum numbers of facts and of quotes that a search returns.
    actions
        What `manage_memory` may do, of "create", "update" and "delete". It changes only notes that it created itself.
    """
    notes = Notes(memory, user, limit, actions)
    manage = StructuredTool.from_function(
        notes.manage_memory, name="manage_memory", description=MANAGE, args_schema=_Manage
    )
    search = StructuredTool.from_function(
        notes.search_memory, name="search_memory", description=SEARCH, args_schema=_Search
    )
    return [manage, search]
