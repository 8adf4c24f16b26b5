"""`graphmem` with what the conformance suite calls on its own example server beside ours, as a program.

The server, its tools' declaration, its HTTP app and the command line that starts it are the product's. Run as
`python suite_server.py mcp --profile full --http HOST:PORT`.
"""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import Callable
from typing import Annotated, Any

from mcp import MCPError
from mcp.server.mcpserver import Context, MCPServer
from mcp.server.mcpserver.prompts.base import Prompt, UserMessage
from mcp.server.mcpserver.resources import BinaryResource, TextResource
from mcp.server.mcpserver.tools import Tool
from mcp.types import (
    MISSING_REQUIRED_CLIENT_CAPABILITY,
    AudioContent,
    CallToolResult,
    ContentBlock,
    CreateMessageRequest,
    CreateMessageRequestParams,
    ElicitRequest,
    ElicitRequestFormParams,
    EmbeddedResource,
    ImageContent,
    InputRequest,
    InputRequiredResult,
    ListRootsRequest,
    SamplingMessage,
    TextContent,
    TextResourceContents,
)
from pydantic import Field

from graphmem.adapters.cli import main
from graphmem.adapters.mcp import full, server
from graphmem.adapters.mcp.resources import add_prompts as add_own_prompts
from graphmem.adapters.mcp.tools import ToolSet, ToolSpec

PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg=="
SILENCE = "UklGRiYAAABXQVZFZm10IBAAAAABAAEAQB8AAAB9AAACABAAZGF0YQIAAAA="
ADDRESS = {
    "$anchor": "addressDef",
    "type": "object",
    "properties": {"street": {"type": "string"}, "city": {"type": "string"}},
}
SCHEMA: dict[str, Any] = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "$defs": {"address": ADDRESS},
    "properties": {
        "name": {"type": "string"},
        "address": {"$ref": "#/$defs/address"},
        "contactMethod": {"type": "string", "enum": ["phone", "email"]},
        "phone": {"type": "string"},
        "email": {"type": "string"},
    },
    "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
    "if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
    "then": {"required": ["phone"]},
    "else": {"required": ["email"]},
    "additionalProperties": False,
}


def text(value: str) -> TextContent:
    return TextContent(type="text", text=value)


def image() -> ImageContent:
    return ImageContent(type="image", data=PIXEL, mime_type="image/png")


def embedded(uri: str, value: str, mime_type: str = "text/plain") -> EmbeddedResource:
    return EmbeddedResource(type="resource", resource=TextResourceContents(uri=uri, mime_type=mime_type, text=value))


def form(**fields: str) -> ElicitRequest:
    """Return a question to the user with fields of given types."""
    properties = {name: {"type": kind} for name, kind in fields.items()}
    schema = {"type": "object", "properties": properties, "required": [*fields]}
    return ElicitRequest(params=ElicitRequestFormParams(message="Please answer", requested_schema=schema))


def sample() -> CreateMessageRequest:
    message = SamplingMessage(role="user", content=text("What is the capital of France?"))
    return CreateMessageRequest(params=CreateMessageRequestParams(messages=[message], max_tokens=50))


def content(*blocks: ContentBlock) -> Callable[[], CallToolResult]:
    """Return a tool that answers with given content."""

    def answer() -> CallToolResult:
        return CallToolResult(content=[*blocks])

    return answer


def asking(*rounds: dict[str, InputRequest], state: bool = True) -> Callable[..., Any]:
    """Return a tool that asks in each round, and answers when all rounds are answered; its state is the round."""

    async def answer(ctx: Context[Any, Any]) -> str | InputRequiredResult:
        done = int(ctx.request_state or 0)
        if rounds[max(done - 1, 0)].keys() <= (ctx.input_responses or {}).keys():
            if done == len(rounds) or not state:
                return f"state-ok: {sorted(ctx.input_responses or ())}"
        else:
            done = 0
        return InputRequiredResult(input_requests=rounds[done], request_state=str(done + 1) if state else None)

    return answer


async def progress(ctx: Context[Any, Any]) -> str:
    for done in (0, 50, 100):
        await ctx.report_progress(done, 100, f"Completed step {done} of 100")
        await asyncio.sleep(0.05)
    return "done"


async def capability(ctx: Context[Any, Any]) -> str:
    if ctx.client_capabilities is None or ctx.client_capabilities.sampling is None:
        missing: dict[str, Any] = {"requiredCapabilities": {"sampling": {}}}
        raise MCPError(MISSING_REQUIRED_CLIENT_CAPABILITY, "needs the capability sampling", missing)
    return "sampled"


async def capabilities(ctx: Context[Any, Any]) -> InputRequiredResult:
    """Ask only what the client can answer."""
    has = ctx.client_capabilities
    asked: dict[str, InputRequest] = {}
    if has is None or has.sampling is not None:
        asked["sample"] = sample()
    if has is None or has.elicitation is not None:
        asked["ask"] = form(name="string")
    return InputRequiredResult(input_requests=asked, request_state="capabilities")


def failing() -> str:
    raise RuntimeError("This tool intentionally returns an error for testing")


def mirrored(region: Annotated[str, Field(json_schema_extra={"x-mcp-header": "Region"})] = "<none>") -> str:
    return region


async def tools_changed(ctx: Context[Any, Any]) -> str:
    await ctx.notify_tools_changed()
    return "changed"


async def prompts_changed(ctx: Context[Any, Any]) -> str:
    await ctx.notify_prompts_changed()
    return "changed"


ASKED = "test_input_required_result_"
TOOLS: dict[str, Callable[..., Any]] = {
    "test_simple_text": content(text("This is a simple text response for testing.")),
    "test_image_content": content(image()),
    "test_audio_content": content(AudioContent(type="audio", data=SILENCE, mime_type="audio/wav")),
    "test_embedded_resource": content(embedded("test://embedded-resource", "This is an embedded resource content.")),
    "test_multiple_content_types": content(
        text("Multiple content types test:"),
        image(),
        embedded("test://mixed-content-resource", '{"test":"data","value":123}', "application/json"),
    ),
    "test_tool_with_progress": progress,
    "test_error_handling": failing,
    "test_x_mcp_header": mirrored,
    "test_missing_capability": capability,
    "test_trigger_tool_change": tools_changed,
    "test_trigger_prompt_change": prompts_changed,
    "json_schema_2020_12_tool": content(text("json_schema_2020_12_tool")),
    f"{ASKED}elicitation": asking({"user_name": form(name="string")}, state=False),
    f"{ASKED}sampling": asking({"capital_question": sample()}, state=False),
    f"{ASKED}list_roots": asking({"client_roots": ListRootsRequest()}, state=False),
    f"{ASKED}request_state": asking({"confirm": form(ok="boolean")}),
    f"{ASKED}tampered_state": asking({"confirm": form(ok="boolean")}),
    f"{ASKED}multiple_inputs": asking(
        {"user_name": form(name="string"), "greeting": sample(), "client_roots": ListRootsRequest()}
    ),
    f"{ASKED}multi_round": asking({"step1": form(name="string")}, {"step2": form(color="string")}),
    f"{ASKED}capabilities": capabilities,
}


class SuiteTools(full.FullTools):
    """All tools, and those of the suite; they need the right to read."""

    def tools(self) -> list[tuple[Tool, ToolSpec]]:
        made = {name: Tool.from_function(run, name=name, description="Of the suite.") for name, run in TOOLS.items()}
        made["json_schema_2020_12_tool"].parameters = SCHEMA
        return [*super().tools(), *((each, ToolSpec(each.name, "read", False, False)) for each in made.values())]


async def asking_prompt(ctx: Context[Any, Any]) -> list[UserMessage] | InputRequiredResult:
    if "user_context" in (ctx.input_responses or {}):
        return [UserMessage("answered")]
    return InputRequiredResult(input_requests={"user_context": form(context="string")})


def prompt_with_arguments(arg1: str, arg2: str) -> str:
    return f"Prompt with arguments: arg1='{arg1}', arg2='{arg2}'"


def prompt_with_embedded_resource(resourceUri: str) -> list[UserMessage]:  # noqa: N803 - a name of the suite
    return [UserMessage(embedded(resourceUri, "Embedded resource content for testing.")), UserMessage("Read it.")]


PROMPTS: dict[str, Callable[..., Any]] = {
    "test_simple_prompt": lambda: "This is a simple prompt for testing.",
    "test_prompt_with_arguments": prompt_with_arguments,
    "test_prompt_with_embedded_resource": prompt_with_embedded_resource,
    "test_prompt_with_image": lambda: [UserMessage(image()), UserMessage("Describe it.")],
    f"{ASKED}prompt": asking_prompt,
}


RESOURCES = [
    TextResource(uri="test://static-text", name="text", text="This is the content of the static text resource."),
    BinaryResource(uri="test://static-binary", name="binary", mime_type="image/png", data=base64.b64decode(PIXEL)),
]


def add_prompts(to: MCPServer[Any], tools: ToolSet) -> None:
    """Add our prompts, and the prompts and resources of the suite."""
    add_own_prompts(to, tools)
    for name, run in PROMPTS.items():
        to.add_prompt(Prompt.from_function(run, name=name, description="Of the suite."))
    for resource in RESOURCES:
        to.add_resource(resource)

    @to.resource("test://template/{id}/data", mime_type="application/json")
    def template(id: str) -> str:  # noqa: A002 - a name of the suite
        return json.dumps({"id": id, "templateTest": True, "data": f"Data for ID: {id}"})


if __name__ == "__main__":
    server.FullTools = SuiteTools
    server.add_prompts = add_prompts
    main()
