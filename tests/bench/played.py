"""A chat model that replays answers: what a capable reader wrote to each prompt, kept in a file by the prompt's hash.

The file is JSON Lines: ``{"prompt": HASH, "answer": TEXT}``. A prompt without an answer is written to a folder as
``HASH.txt``, and the call fails, so that nothing is stored on a guess. Whoever answers sees these files and nothing
else: not the key, not the code.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.runnables import Runnable, RunnableLambda

from graphmem.errors import ExtractorMisconfigured

CHARACTERS_PER_TOKEN = 4  # of English text and JSON, for an estimate that needs no tokenizer


class Played(BaseChatModel):
    """Chat model that replays the answers in a file and counts calls and tokens.

    Parameters
    ----------
    answers
        Hash of a prompt → its answer.
    missing
        Folder for the first prompt without an answer. After it every call fails, so that no prompt depends on a run
        that went on without that answer.
    """

    answers: dict[str, str]
    missing: Path
    stopped: bool = False
    calls: int = 0
    prefix_tokens: int = 0
    data_tokens: int = 0
    reply_tokens: int = 0

    @property
    def _llm_type(self) -> str:
        return "played"

    def _generate(self, messages: list[BaseMessage], *_: Any, **__: Any) -> ChatResult:
        text = self._answer(messages, "")
        return ChatResult(generations=[ChatGeneration(message=AIMessage(text))])

    def with_structured_output(self, schema: Any, **_: Any) -> Runnable[Any, Any]:  # type: ignore[override]
        """Return a model for structured output; the schema counts as a part of the prompt."""
        shown = json.dumps(schema, separators=(",", ":"))

        def reply(messages: Any) -> AIMessage:
            return AIMessage(self._answer(self._convert_input(messages).to_messages(), shown))

        return RunnableLambda(reply)

    def _answer(self, messages: list[BaseMessage], schema: str) -> str:
        system = "\n".join(str(m.content) for m in messages[:-1])
        data = str(messages[-1].content)
        key = hashlib.sha256(f"{system}\0{data}".encode()).hexdigest()[:16]
        if self.stopped:
            raise ExtractorMisconfigured("an earlier prompt has no answer")
        if (answer := self.answers.get(key)) is None:
            self.stopped = True
            self.missing.mkdir(parents=True, exist_ok=True)
            (self.missing / f"{key}.txt").write_text(f"{system}\n\n=== MESSAGE ===\n\n{data}\n", "utf-8")
            raise ExtractorMisconfigured(f"prompt {key} has no answer; it is in {self.missing}")
        self.calls += 1
        self.prefix_tokens += (len(system) + len(schema)) // CHARACTERS_PER_TOKEN
        self.data_tokens += len(data) // CHARACTERS_PER_TOKEN
        self.reply_tokens += len(answer) // CHARACTERS_PER_TOKEN
        return answer


def read_answers(path: Path) -> dict[str, str]:
    """Return the answers of a file; none if it doesn't exist."""
    if not path.exists():
        return {}
    lines = [json.loads(line) for line in path.read_text("utf-8").splitlines() if line.strip()]
    return {line["prompt"]: line["answer"] for line in lines}
