"""Chat exports in JSON: conversations, coding agents, assistants and messengers, with samples of the real formats."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from graphmem import GraphMemory
from graphmem.errors import InvalidInput
from graphmem.ingest.readers import Refused, open_source, read_items
from graphmem.inputs import Document, Turn
from graphmem.messages import Attachment


def read(folder: Path, name: str, *lines: object, **options: Any) -> tuple[list[Turn], list[str], list[Refused]]:
    """Write values as lines of a file; return its turns, the notes of reading, and what was refused."""
    path = folder / name
    path.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    refused: list[Refused] = []
    with open_source(path, **options) as source:
        items = list(read_items(source, refused.append))
        assert [item for item in items if isinstance(item, Document)] == []
        return [item for item in items if isinstance(item, Turn)], source.notes, refused


def said(turns: list[Turn]) -> list[tuple[str | None, str | None, str]]:
    """Return role, speaker and text of each turn."""
    return [(turn.role, turn.speaker, turn.text) for turn in turns]


# Conversations


def test_equal_messages_of_a_conversation_are_stored_once_each(tmp_path: Path) -> None:
    def call(number: int) -> dict[str, Any]:
        function = {"name": "book", "arguments": json.dumps({"n": number})}
        return {"role": "assistant", "content": None, "tool_calls": [{"id": f"c{number}", "function": function}]}

    ok = {"role": "user", "content": "ok"}
    runs = [{"id": f"run_{n}", "messages": [call(1), ok, call(2), ok]} for n in (1, 2)]
    (tmp_path / "runs.json").write_text(json.dumps(runs))

    with GraphMemory.open("memory://", extractor="none", embeddings="none") as memory:
        first = memory.ingest(tmp_path / "runs.json")
        again = memory.ingest(tmp_path / "runs.json")
        texts = [turn.text for turn in memory.session("run_1")]

    assert (first.stored, first.known, again.stored, again.known) == (8, 0, 0, 8)
    assert texts == ['[calls book({"n": 1})]', "ok", '[calls book({"n": 2})]', "ok"]


def test_messages_of_a_conversation_keep_their_ids_while_it_grows(tmp_path: Path) -> None:
    messages = [{"role": "user", "content": text} for text in ("ok", "Hi", "ok")]
    before, _, _ = read(tmp_path, "c.json", {"id": 7, "messages": messages[:2]})
    after, _, _ = read(tmp_path, "c.json", {"id": 7, "messages": messages})
    assert [turn.external_id for turn in before] == [turn.external_id for turn in after][:2]
    assert len({turn.external_id for turn in after}) == 3


@pytest.mark.parametrize(
    ("about", "session", "metadata"),
    [
        ({"name": "Trip", "id": 7}, "7", {"conversation": "Trip"}),
        ({"title": "Trip"}, "Trip", {"conversation": "Trip"}),
        ({"title": "Trip", "uuid": "u1"}, "u1", {"conversation": "Trip"}),
        ({"session_id": "s", "id": "run", "model": "m"}, "s", {"conversation": "run", "model": "m"}),
        ({"metadata": {"a": 1}}, None, {"a": 1}),
    ],
)
def test_the_name_of_a_conversation_is_no_speaker_and_its_title_makes_no_documents(
    tmp_path: Path, about: dict[str, Any], session: str | None, metadata: dict[str, Any]
) -> None:
    messages = [{"role": "user", "content": "I live in Oslo."}, {"role": "assistant", "content": "Nice."}]
    turns, _, _ = read(tmp_path, "c.json", {**about, "messages": messages})
    assert said(turns) == [("user", None, "I live in Oslo."), ("assistant", None, "Nice.")]
    assert {turn.session_id for turn in turns} == {session}
    assert [turn.metadata for turn in turns] == [metadata] * 2
    assert len({turn.external_id for turn in turns}) == 2


def test_fields_of_a_message_come_before_those_of_its_conversation(tmp_path: Path) -> None:
    about = {"session_id": "s", "user": "Maya", "timestamp": "2026-01-01T09:00:00Z"}
    messages = [
        {"role": "user", "content": "Hi", "date": "2026-01-02", "thread_id": "t"},
        {"role": "user", "content": "Yo", "sender": "Tom"},
        {"role": "assistant", "content": "Hello"},
    ]
    turns, _, _ = read(tmp_path, "c.json", {**about, "messages": messages})
    assert [turn.speaker for turn in turns] == ["Maya", "Tom", None]
    assert [turn.session_id for turn in turns] == ["t", "s", "s"]
    assert [turn.occurred_at and turn.occurred_at.day for turn in turns] == [2, 1, 1]


# Coding agents


def claude_code(kind: str, content: object, number: int, **fields: object) -> dict[str, Any]:
    return {
        "parentUuid": f"u{number - 1}",
        "isSidechain": False,
        "userType": "external",
        "cwd": "/w",
        "sessionId": "s1",
        "version": "2.0",
        "type": kind,
        "message": {"role": kind, "content": content},
        "uuid": f"u{number}",
        "timestamp": f"2026-06-01T10:0{number}:00.000Z",
        **fields,
    }


def test_a_claude_code_transcript_is_read_with_its_tool_calls(tmp_path: Path) -> None:
    call = {"type": "tool_use", "id": "c1", "name": "Read", "input": {"path": "a.py"}}
    result = {"type": "tool_result", "tool_use_id": "c1", "content": [{"type": "text", "text": "x = 1"}]}
    turns, notes, refused = read(
        tmp_path,
        "s1.jsonl",
        {"type": "summary", "summary": "Fix the bug", "leafUuid": "x"},
        {"type": "file-history-snapshot", "messageId": "m", "snapshot": {}, "isSnapshotUpdate": False},
        claude_code("user", "Fix the bug, I'm Karin.", 1),
        claude_code("user", "Caveat: …", 2, isMeta=True),
        claude_code("user", "<command-name>/clear</command-name>", 3),
        claude_code("assistant", [{"type": "thinking", "thinking": "Hm", "signature": "s"}], 4),
        claude_code("assistant", [call], 5),
        claude_code("user", [result], 6, toolUseResult={"stdout": "x = 1"}),
        claude_code("assistant", [{"type": "text", "text": "Fixed."}], 7),
        {"type": "queue-operation", "operation": "enqueue", "content": "x", "sessionId": "s1"},
        {"type": "system", "subtype": "x", "content": "x", "parentUuid": "u7", "sessionId": "s1", "uuid": "u8"},
    )
    assert [(turn.role, turn.text) for turn in turns] == [
        ("user", "Fix the bug, I'm Karin."),
        ("assistant", '[calls Read({"path": "a.py"})]'),
        ("tool", "x = 1"),
        ("assistant", "Fixed."),
    ]
    assert (turns[2].tool_call_id, turns[2].session_id, turns[2].external_id) == ("c1", "s1", "u6")
    assert turns[3].occurred_at == datetime(2026, 6, 1, 10, 7, tzinfo=UTC)
    assert turns[0].metadata == {"cwd": "/w"}
    assert (refused, notes) == (
        [],
        [
            "left out: lines of the type summary (1), lines of the type file-history-snapshot (1), notes of the "
            "program (2), messages without content (1), lines of the type queue-operation (1), lines of the type "
            "system (1)"
        ],
    )


def test_records_of_other_programs_with_similar_fields_are_kept(tmp_path: Path) -> None:
    turns, notes, refused = read(
        tmp_path,
        "own.jsonl",
        {"type": "user", "sessionId": "s", "text": "Hi", "session": "s"},
        {"type": "user", "sessionId": "s", "message": "Yo"},
        {"type": "note", "payload": {"a": 1}, "timestamp": "2026-01-01", "text": "Ho"},
    )
    assert ([turn.text for turn in turns], notes, refused) == (["Hi", "Yo", "Ho"], [], [])


def test_a_codex_session_is_read_without_what_its_program_adds(tmp_path: Path) -> None:
    def line(kind: str, **payload: object) -> dict[str, Any]:
        return {"timestamp": "2026-06-01T10:00:00.000Z", "type": kind, "payload": payload}

    def message(role: str, text: str) -> dict[str, Any]:
        return line("response_item", type="message", role=role, content=[{"type": "input_text", "text": text}])

    turns, [note], refused = read(
        tmp_path,
        "rollout-1.jsonl",
        line("session_meta", id="x", cwd="/w"),
        message("user", "<environment_context>\n</environment_context>"),
        message("user", "I live in Oslo."),
        line("event_msg", type="user_message", message="I live in Oslo."),
        line("response_item", type="reasoning", summary=[]),
        line("response_item", type="function_call", name="shell", arguments="{}", call_id="c1"),
        line("response_item", type="function_call_output", call_id="c1", output="ok"),
        message("assistant", "Noted."),
    )
    assert [(turn.role, turn.text, turn.session_id) for turn in turns] == [
        ("user", "I live in Oslo.", "rollout-1"),
        ("assistant", "[calls shell({})]", "rollout-1"),
        ("tool", "ok", "rollout-1"),
        ("assistant", "Noted.", "rollout-1"),
    ]
    assert (refused, note) == (
        [],
        "left out: lines of the type session_meta (1), notes of the program (1), lines of the type event_msg (1), "
        "lines of the type response_item (1)",
    )


# Assistants


def test_a_claude_export_is_read_with_roles_and_files(tmp_path: Path) -> None:
    at = "2026-03-02T09:00:40.000000Z"
    block: dict[str, Any] = {"start_timestamp": at, "type": "text", "text": "I live in Oslo.", "citations": []}
    pasted = {"file_name": "lease.txt", "file_size": 9, "file_type": "text/plain", "extracted_content": "Clause 14"}
    talk: dict[str, Any] = {
        "uuid": "c1",
        "name": "Lease",
        "summary": "",
        "created_at": "2026-03-02T09:00:00Z",
        "account": {"uuid": "acc"},
        "chat_messages": [
            {
                "uuid": "m1",
                "text": "I live in Oslo.",
                "content": [{"type": "thinking", "thinking": "Hm"}, block, {"type": "token_budget"}],
                "sender": "human",
                "created_at": at,
                "attachments": [pasted],
                "files": [{"file_name": "plan.pdf"}],
            },
            {"uuid": "m2", "text": "Noted.", "content": [], "sender": "assistant", "created_at": at},
            {"uuid": "m3", "text": "", "content": [], "sender": "assistant", "created_at": at},
        ],
    }
    turns, notes, refused = read(tmp_path, "conversations.json", [talk])
    assert said(turns) == [("user", None, "I live in Oslo."), ("assistant", None, "Noted.")]
    assert (turns[0].session_id, turns[0].external_id, turns[0].metadata) == ("c1", "m1", {"conversation": "Lease"})
    assert turns[0].attachments == (
        Attachment(kind="file", name="lease.txt", media_type="text/plain", description="Clause 14"),
        Attachment(kind="file", name="plan.pdf"),
    )
    assert (notes, refused) == (["left out: messages without content (1)"], [])


GEMINI = [{"role": "user", "parts": [{"text": "Hi"}]}, {"role": "model", "parts": [{"text": "Hello"}]}]


@pytest.mark.parametrize(
    "record",
    [
        {"id": "a", "conversations": [{"from": "human", "value": "Hi"}, {"from": "gpt", "value": "Hello"}]},
        {"id": "a", "contents": GEMINI},
        {"id": "a", "messages": GEMINI},
    ],
    ids=["ShareGPT", "Gemini", "Gemini messages"],
)
def test_conversations_of_other_assistants_are_read(tmp_path: Path, record: dict[str, Any]) -> None:
    turns, _, refused = read(tmp_path, "c.json", [record])
    assert said(turns) == [("user", None, "Hi"), ("assistant", None, "Hello")]
    assert ({turn.session_id for turn in turns}, refused) == ({"a"}, [])


def test_messages_of_gemini_are_read_with_their_calls(tmp_path: Path) -> None:
    turns, _, _ = read(
        tmp_path,
        "c.json",
        [
            {"role": "user", "parts": [{"text": "Warm?"}, {"inlineData": {"mimeType": "image/png", "data": "AAAA"}}]},
            {"role": "model", "parts": [{"functionCall": {"name": "weather", "args": {"city": "Oslo"}}}]},
            {"role": "user", "parts": [{"functionResponse": {"name": "weather", "response": {"c": 20}}}]},
        ],
    )
    assert [(turn.role, turn.text) for turn in turns] == [
        ("user", "Warm?"),
        ("assistant", '[calls weather({"city": "Oslo"})]'),
        ("tool", "{'c': 20}"),
    ]
    assert turns[0].attachments == (Attachment(kind="image", media_type="image/png", size=3),)


def test_json_of_something_else_is_told_the_known_exports(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match=r"exports are read of Claude Code, Codex, .* Discord, ChatGPT and S"):
        read(tmp_path, "x.json", [{"owner": "Ann"}])


# Messengers


def telegram(number: int, speaker: str, text: object, **fields: object) -> dict[str, Any]:
    return {
        "id": number,
        "type": "message",
        "date": "2026-03-01T12:04:50",
        "date_unixtime": "1772359490",
        "from": speaker,
        "from_id": "user1",
        "text": text,
        "text_entities": [],
        **fields,
    }


@pytest.mark.parametrize("whole_account", [False, True])
def test_a_telegram_export_is_read_with_its_speakers(tmp_path: Path, whole_account: bool) -> None:
    poll = {"question": "Where?", "closed": False, "answers": [{"text": "Rome", "voters": 1}, {"text": "Oslo"}]}
    left = "(File not included. Change data exporting settings to download.)"
    joined = {"id": 0, "type": "service", "date": "2026-03-01T09:00:00", "actor": "Olena", "text": ""}
    joined |= {"action": "create_group", "title": "Climbing"}
    messages = [
        joined,
        telegram(1, "Olena", ["see ", {"type": "link", "text": "https://x.example"}, " now"]),
        telegram(2, "Marek", "", photo="photos/photo_1.jpg", width=8, reply_to_message_id=1),
        telegram(3, "Marek", "", file=left, media_type="voice_message", mime_type="audio/ogg"),
        telegram(4, "Olena", "", poll=poll),
        telegram(5, "Olena", "ok"),
        telegram(6, "Olena", "ok"),
        telegram(7, "Olena", ""),
    ]
    chat = {"name": "Climbing", "type": "private_supergroup", "id": 4011, "messages": messages}
    account: dict[str, Any] = {
        "about": "Here is your data.",
        "contacts": {"list": []},
        "chats": {"about": "x", "list": [chat]},
    }

    turns, notes, refused = read(tmp_path, "result.json", account if whole_account else chat)

    assert said(turns) == [
        (None, "Olena", "see https://x.example now"),
        (None, "Marek", "[image: photo_1.jpg]"),
        (None, "Marek", "[audio: audio/ogg]"),
        (None, "Olena", "Where?\n- Rome\n- Oslo"),
        (None, "Olena", "ok"),
        (None, "Olena", "ok"),
    ]
    assert turns[0].occurred_at == datetime(2026, 3, 1, 10, 4, 50, tzinfo=UTC)
    assert turns[0].metadata == {"conversation": "Climbing", "utc_offset": "+0200"}
    assert turns[1].metadata["reply_to"] == 1
    assert [turn.external_id for turn in turns] == [f"telegram:4011:{n}" for n in range(1, 7)]
    assert {turn.session_id for turn in turns} == {"4011"}
    assert (notes, refused) == (["left out: service messages (1), messages without content (1)"], [])


def test_an_old_telegram_export_has_local_times(tmp_path: Path) -> None:
    message = telegram(1, "Olena", "Hi")
    del message["date_unixtime"]
    chat = {"name": "Olena", "type": "personal_chat", "id": 1, "messages": [message]}
    [turn], _, _ = read(tmp_path, "result.json", chat, zone=UTC)
    assert turn.occurred_at == datetime(2026, 3, 1, 12, 4, 50, tzinfo=UTC)


def test_a_messenger_export_is_read_in_the_order_of_its_times_and_with_its_letters(tmp_path: Path) -> None:
    messages = [
        {"sender_name": "Ana", "timestamp_ms": 1772355720000, "content": "Call", "call_duration": 3},
        {"sender_name": "Ben", "timestamp_ms": 1772355660000, "photos": [{"uri": "inbox/p.jpg"}]},
        {"sender_name": "Jos\u00c3\u00a9", "timestamp_ms": 1772355600000, "content": "b"},
        {"sender_name": "Ana", "timestamp_ms": 1772355600000, "content": "caf\u00c3\u00a9 at noon?"},
        {"sender_name": "Ana", "timestamp_ms": 1772355500000, "share": {"link": "https://x.example"}},
    ]
    thread = {"participants": [{"name": "Ana"}], "title": "Ana", "thread_path": "inbox/ana", "messages": messages}
    turns, notes, refused = read(tmp_path, "message_1.json", thread)
    assert said(turns) == [
        (None, "Ana", "https://x.example"),
        (None, "Ana", "café at noon?"),
        (None, "José", "b"),
        (None, "Ben", "[image: p.jpg]"),
    ]
    assert turns[1].occurred_at == datetime.fromtimestamp(1772355600, UTC)
    assert ({turn.session_id for turn in turns}, refused) == ({"inbox/ana"}, [])
    assert notes == ["left out: calls and withdrawn messages (1)"]


def test_an_export_of_encrypted_messenger_chats_is_read_in_the_order_of_its_times(tmp_path: Path) -> None:
    def sent(at: int, text: str, *media: str, unsent: bool = False) -> dict[str, Any]:
        about = {"isUnsent": unsent, "media": [{"uri": uri} for uri in media], "reactions": []}
        return {**about, "senderName": "José", "text": text, "timestamp": 1772355600000 + at, "type": "text"}

    messages = [sent(60000, "", "./media/p.jpg"), sent(30000, "", unsent=True), sent(0, "café at noon?")]
    thread = {"participants": ["José", "Ben"], "threadName": "Ben_12", "messages": messages}
    turns, notes, refused = read(tmp_path, "Ben_12.json", thread)
    assert said(turns) == [(None, "José", "café at noon?"), (None, "José", "[image: p.jpg]")]
    assert turns[0].occurred_at == datetime(2026, 3, 1, 9, tzinfo=UTC)
    assert turns[1].attachments == (Attachment(kind="image", name="p.jpg", media_type="image/jpeg"),)
    assert {(turn.session_id, turn.metadata["conversation"]) for turn in turns} == {("Ben_12", "Ben")}
    assert (notes, refused) == (["left out: calls and withdrawn messages (1)"], [])


def test_a_chat_of_open_webui_is_read_as_displayed_last_without_reasoning(tmp_path: Path) -> None:
    def message(number: str, parent: str | None, role: str, content: str, **fields: object) -> dict[str, Any]:
        ids = {"id": number, "parentId": parent}
        return {**ids, "role": role, "content": content, "timestamp": 1772355600 + int(number), **fields}

    thought = '<details type="reasoning" done="true" duration="2">\n<summary>Thought</summary>\n> Hm\n</details>\n'
    image = {"type": "image", "url": "data:image/png;base64,AAAA"}
    messages = [
        message("1", None, "user", "I live in Oslo.", files=[{"type": "file", "name": "cv.pdf", "url": "f1"}, image]),
        message("2", "1", "assistant", "discarded"),
        message("3", "1", "assistant", f"{thought}Nice."),
    ]
    history = {"messages": {each["id"]: each for each in messages}, "currentId": "3"}
    chat = {"title": "Trip", "models": ["m"], "history": history, "messages": messages[:1], "timestamp": 1772355600000}
    export = [{"id": "c1", "user_id": "u", "title": "Trip", "chat": chat, "created_at": 1772355600}]
    (tmp_path / "chat-export.json").write_text(json.dumps(export))
    with open_source(tmp_path / "chat-export.json") as source:
        turns = [item for item in read_items(source, lambda _: None) if isinstance(item, Turn)]
    assert [(turn.role, turn.text, turn.external_id) for turn in turns] == [
        ("user", "I live in Oslo.", "1"),
        ("assistant", "Nice.", "3"),
    ]
    assert turns[0].attachments == (Attachment(kind="file", name="cv.pdf", url="f1"),)
    assert {(turn.session_id, turn.metadata["conversation"]) for turn in turns} == {("c1", "Trip")}
    assert turns[0].occurred_at == datetime(2026, 3, 1, 9, 0, 1, tzinfo=UTC)


def test_an_issue_of_github_is_said_by_its_author_and_its_comments_by_theirs(tmp_path: Path) -> None:
    def comment(login: str, body: str, at: str, **fields: object) -> dict[str, Any]:
        return {"id": f"IC_{body}", "author": {"login": login}, "body": body, "createdAt": at, **fields}

    issue = {
        "author": {"id": "U_1", "is_bot": False, "login": "ana", "name": "Ana Silva"},
        "body": "It fails on Windows.",
        "comments": [
            comment("bo", "Same here.", "2026-03-03T10:00:00Z", url="https://github.com/o/r/issues/7#issuecomment-1"),
            comment("spam", "Buy!", "2026-03-03T11:00:00Z", isMinimized=True),
        ],
        "reviews": [{"id": "R_1", "author": {"login": "cy"}, "body": "Fine.", "submittedAt": "2026-03-02T10:00:00Z"}],
        "createdAt": "2026-03-01T09:00:00Z",
        "labels": [{"id": "L", "name": "bug", "color": "f00"}, {"name": "os/windows"}],
        "assignees": [{"login": "bo"}],
        "number": 7,
        "state": "OPEN",
        "title": "Crash at start",
        "url": "https://github.com/o/r/issues/7",
    }
    turns, notes, refused = read(tmp_path, "issues.json", issue)
    assert [(turn.speaker, turn.text) for turn in turns] == [
        ("ana", "Crash at start\n\nIt fails on Windows."),
        ("cy", "Fine."),
        ("bo", "Same here."),
    ]
    assert [turn.occurred_at for turn in turns] == [
        datetime(2026, 3, day, at, tzinfo=UTC) for day, at in ((1, 9), (2, 10), (3, 10))
    ]
    assert {turn.session_id for turn in turns} == {"https://github.com/o/r/issues/7"}
    about = {"number": 7, "state": "OPEN", "labels": "bug, os/windows", "labels.bug": True, "labels.os/windows": True}
    assert turns[0].metadata == {**about, "conversation": "Crash at start", "assignees": "bo"}
    assert (notes, refused) == (["left out: hidden comments (1)"], [])


def test_an_issue_of_the_api_of_github_is_said_by_its_user(tmp_path: Path) -> None:
    issue = {"title": "Crash", "body": None, "user": {"login": "ana"}, "created_at": "2026-03-01T09:00:00Z"}
    about = {
        "number": 7,
        "comments": 2,
        "url": "https://api.github.com/x",
        "html_url": "https://github.com/o/r/issues/7",
    }
    [turn], _, refused = read(tmp_path, "issues.jsonl", {**issue, **about})
    assert (turn.speaker, turn.text, turn.session_id) == ("ana", "Crash", "https://github.com/o/r/issues/7")
    assert (turn.occurred_at, refused) == (datetime(2026, 3, 1, 9, tzinfo=UTC), [])


def test_google_chat_is_read_with_its_creators(tmp_path: Path) -> None:
    message = {
        "creator": {"name": "Ana Lopes", "email": "a@x.example", "user_type": "Human"},
        "created_date": "Monday, March 2, 2026 at 9:01:02\u202fPM UTC",
        "text": "I live in Oslo.",
        "topic_id": "t1",
        "message_id": "space/t1/m1",
    }
    deleted = {**message, "message_state": "DELETED", "message_id": "space/t1/m2"}
    [turn], notes, refused = read(tmp_path, "messages.json", {"messages": [message, deleted]})
    assert (turn.speaker, turn.text, turn.session_id) == ("Ana Lopes", "I live in Oslo.", "space")
    assert (turn.occurred_at, turn.external_id) == (datetime(2026, 3, 2, 21, 1, 2, tzinfo=UTC), "space/t1/m1")
    assert (notes, refused) == (["left out: deleted messages (1)"], [])


def test_a_discord_channel_is_read_with_its_nicknames(tmp_path: Path) -> None:
    def message(number: int, **fields: object) -> dict[str, Any]:
        author = {"id": "9", "name": "grendel", "nickname": "DM Grendel", "isBot": False}
        common = {"id": str(number), "type": "Default", "timestamp": "2026-02-01T18:00:50+00:00", "content": ""}
        return {**common, "author": author, "attachments": [], "embeds": [], "stickers": [], **fields}

    files = [{"id": "1", "url": "https://x.example/map.png", "fileName": "map.png", "fileSizeBytes": 1}]
    channel = {
        "guild": {"id": "1", "name": "Dungeon Nerds"},
        "channel": {"id": "2", "type": "GuildTextChat", "name": "general"},
        "messages": [
            message(1, type="GuildMemberJoin", content="Joined the server."),
            message(2, content="Session 14 is up"),
            message(3, type="Reply", content="ok", reference={"messageId": "2"}),
            message(4, attachments=files),
            message(5, embeds=[{"title": "Poll", "description": "Saturday?"}]),
        ],
    }
    turns, notes, refused = read(tmp_path, "general.json", channel)
    assert [turn.text for turn in turns] == ["Session 14 is up", "ok", "[file: map.png]", "Poll\nSaturday?"]
    assert {(turn.speaker, turn.session_id) for turn in turns} == {("DM Grendel", "Dungeon Nerds / general")}
    assert (turns[1].metadata, turns[1].external_id) == ({"reply_to": "2"}, "discord:Dungeon Nerds / general:3")
    assert (notes, refused) == (["left out: service messages (1)"], [])
