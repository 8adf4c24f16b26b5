"""Files as programs export them: chats, mail, subtitles, pages; each told by its suffix or its beginning."""

from __future__ import annotations

import base64
import io
import json
import random
import time
from collections.abc import Mapping
from contextlib import suppress
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path
from typing import Any, cast
from zoneinfo import ZoneInfo

import pytest

from graphmem.errors import InvalidInput
from graphmem.ingest.files import find_files
from graphmem.ingest.formats.json_files import json_values
from graphmem.ingest.formats.pages import to_lines
from graphmem.ingest.readers import FORMATS, Format, Refused, guess_format, open_source, read_items, read_triples
from graphmem.inputs import Document, Turn
from graphmem.messages import Attachment

BERLIN = ZoneInfo("Europe/Berlin")


def turns_of(folder: Path, name: str, content: str | bytes, **options: Any) -> tuple[list[Turn], list[Refused]]:
    """Write a file and read its turns, or the rows of a table, which are documents unless they name a speaker."""
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    refused: list[Refused] = []
    with open_source(path, **options) as source:
        items = list(read_items(source, refused.append))
    found = [item for item in items if isinstance(item, Turn) or path.suffix == ".csv"]
    return cast("list[Turn]", found), refused


CHATGPT: Mapping[str, Any] = {
    "title": "Trip",
    "create_time": 1700000000.0,
    "conversation_id": "talk-1",
    "current_node": "d",
    "mapping": {
        "root": {"id": "root", "message": None, "parent": None, "children": ["a"]},
        "a": {
            "parent": "root",
            "message": {
                "id": "a",
                "author": {"role": "user"},
                "create_time": 1700000001.5,
                "content": {
                    "content_type": "multimodal_text",
                    "parts": [
                        "I move to Oslo.",
                        {"content_type": "image_asset_pointer", "asset_pointer": "file-service://x"},
                    ],
                },
            },
        },
        "b": {
            "parent": "a",
            "message": {
                "id": "b",
                "author": {"role": "assistant"},
                "content": {"content_type": "text", "parts": ["discarded"]},
            },
        },
        "c": {
            "parent": "a",
            "message": {
                "id": "c",
                "author": {"role": "assistant"},
                "content": {"content_type": "thoughts", "parts": ["hm"]},
            },
        },
        "d": {
            "parent": "c",
            "message": {
                "id": "d",
                "author": {"role": "assistant"},
                "content": {"content_type": "text", "parts": ["Nice!"]},
            },
        },
    },
}
MAIL = """From: Maya Chen <maya@example.org>
To: Tom <tom@example.org>
Subject: =?utf-8?q?Caf=C3=A9?=
Date: Mon, 5 Jan 2026 10:00:00 +0100
Message-ID: <1@example.org>
MIME-Version: 1.0
Content-Type: multipart/mixed; boundary="x"

--x
Content-Type: text/plain; charset=utf-8

I moved to Lisbon.
--
Maya
--x
Content-Type: image/png; name="rex.png"
Content-Disposition: attachment; filename="rex.png"
Content-Transfer-Encoding: base64

AAAA
--x--
"""
REPLY = """From: tom@example.org
Subject: Re: Lisbon
Date: Tue, 6 Jan 2026 10:00:00 -0000
Message-ID: <2@example.org>
In-Reply-To: <1@example.org>

I envy you.

On Monday Maya Chen wrote:
> I moved to Lisbon.
"""
VTT = """WEBVTT

NOTE made by hand

1
00:01:02.500 --> 00:01:04.000
<v Maya Chen>I moved to

00:01:04.000 --> 00:01:05.000
<v Maya Chen>Lisbon &amp; like it.

00:01:06.000 --> 00:01:07.000
Tom: Really?
"""
SRT = "1\n00:00:01,000 --> 00:00:02,000\n<i>I moved to</i>\nLisbon.\n\n2\n00:00:03,000 --> 00:00:04,000\nReally?\n"
PAGE = """<!DOCTYPE html><html><head><title>My  page</title><style>p {}</style></head><body>
<nav>Home</nav><h1>Guide</h1><p>Get it &amp; <b>run</b> it.</p><!-- hidden -->
<h2>Pictures</h2><ul><li>One</li><li>Two</li></ul><img src="x" alt="A dog">
<script>if (a < b) {}</script></body></html>"""
SAMPLES: list[tuple[Format, str]] = [
    ("json", '[{"text": "a"}]'),
    ("json", '[\n  {"content": "a", "role": "user"}\n]'),
    ("json", '{\n  "messages": [{"role": "user", "content": "a"}]\n}'),
    ("json", '[["Rome", "in", "Italy"]]'),
    ("chatgpt", json.dumps([CHATGPT])),
    ("chatgpt", json.dumps([CHATGPT], indent=1)),
    ("slack", '[{"type": "message", "user": "U1", "text": "a", "ts": "1700000000.000100"}]'),
    ("mbox", "From maya@example.org Mon Jan  5 10:00:00 2026\n" + MAIL),
    ("eml", MAIL),
    ("vtt", VTT),
    ("srt", SRT),
    ("html", PAGE),
    ("whatsapp", "31.12.25, 23:59 - Maya: a"),
    ("whatsapp", "[12/31/25, 11:59:01\u202fPM] Maya: a"),
    ("csv", "speaker,message,date\nMaya,Hi,2026-01-01"),
]


@pytest.mark.parametrize(("expected", "content"), SAMPLES, ids=lambda value: f"{value!r:.24}")
def test_a_format_is_told_by_the_beginning(expected: Format, content: str) -> None:
    assert guess_format("-", content) == expected


@pytest.mark.parametrize(
    ("name", "content", "reason"),
    [
        (
            "package.json",
            '{\n "name": "x",\n "version": "1"\n}',
            "objects have the fields name, version; a turn needs text",
        ),
        ("numbers.json", "[1, 2]", "JSON of int values"),
        ("page.pdf", "%PDF-1.7", "a PDF; save its text first"),
        ("export.zip", "PK\x03\x04", "a zip archive; give the archive itself as a path"),
        ("chat.jsonl.gz", b"\x1f\x8b\x08\x00", "compressed by gzip; unpack it, for example with zcat"),
        ("table", b"PAR1\x15\x04", "a table in Parquet; save it as CSV or JSON lines"),
    ],
)
def test_a_file_of_something_else_is_refused_with_what_it_is(
    tmp_path: Path, name: str, content: str | bytes, reason: str
) -> None:
    with pytest.raises(InvalidInput) as refused:
        turns_of(tmp_path, name, content)
    assert reason in str(refused.value)


def test_json_of_a_folder_that_holds_no_records_is_left_out(tmp_path: Path) -> None:
    for name, text in (("package.json", '{"name": "x"}'), ("chat.json", '[{"text": "a"}]'), ("a.html", "<p>a")):
        (tmp_path / name).write_text(text)
    assert [path.name for path in find_files([tmp_path])] == ["a.html", "chat.json"]


# JSON


@pytest.mark.parametrize(
    "content",
    [
        '[{"text": "a"}, {"text": "b"}]',
        '[\n  {\n    "text": "a"\n  },\n  {\n    "text": "b"\n  }\n]\n',
        '{\n "text": "a"\n}\n{\n "text": "b"\n}',
        '{\n "messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}]\n}',
    ],
    ids=["array", "pretty", "one after the other", "conversation"],
)
def test_json_over_several_lines_is_read(tmp_path: Path, content: str) -> None:
    turns, refused = turns_of(tmp_path, "chat.json", content)
    assert ([turn.text for turn in turns], refused) == (["a", "b"], [])


def test_an_array_of_triples_is_read(tmp_path: Path) -> None:
    (tmp_path / "facts.json").write_text(
        '[{"subject": "Ada", "relation": "knows", "object": "Bob"}, ["Rome", "in", "Italy"]]'
    )
    with open_source(tmp_path / "facts.json") as source:
        assert source.holds_triples
        assert [triple.subject for triple in read_triples(source, lambda _: None)] == ["Ada", "Rome"]


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ('[{"text": "a"}, {"text" "b"}]', "not JSON in record 2: Expecting ':' delimiter"),
        ('[{"text": "a"}, {"text": "b', "not JSON in record 2: Unterminated string"),
        ('[{"text": "a"}', "the file is cut off: its array doesn't end after record 1"),
        (b'[{"text": "\xc3\xa9"}, {"text": "\xe9"}]', "not UTF-8 after record 0 (byte 0xe9)"),
        ('[{"text": "a"}, ' + "[" * 100_000, "nested too deeply"),
    ],
    ids=["delimiter", "string", "array", "latin-1", "deep"],
)
def test_json_that_breaks_off_says_where(tmp_path: Path, content: str | bytes, reason: str) -> None:
    _, [refused] = turns_of(tmp_path, "chat.json", content)
    assert reason in refused.reason


class Pieces(io.RawIOBase):
    """A stream that is made as it is read, and counts how often."""

    def __init__(self, pieces: list[bytes]) -> None:
        self.pieces = pieces
        self.given = 0
        self.reads = 0

    def read(self, size: int = -1) -> bytes:
        self.reads += 1
        found = bytearray()
        while self.pieces and len(found) < size:
            found += self.pieces.pop(0)
        self.given += len(found)
        return bytes(found)


def test_records_are_read_one_at_a_time() -> None:
    record = b'{"text": "' + b"x" * 100_000 + b'"},'
    stream = Pieces([b"[", *[record] * 300, b'{"text": "end"}]'])
    values = json_values(stream)  # pyright: ignore[reportArgumentType]
    next(values)
    assert stream.given < 2_000_000
    assert sum(1 for _ in values) == 300


def test_a_long_record_is_not_tried_again_with_every_piece() -> None:
    stream = Pieces([b'[{"text": "', *[b"x" * 100_000] * 200, b'"}]'])
    begun = time.process_time()
    [(_, value)] = json_values(stream)  # pyright: ignore[reportArgumentType]
    assert len(str(value)) > 20_000_000
    assert stream.reads <= 8
    assert time.process_time() - begun < 2


# ChatGPT, Slack


def test_of_a_chatgpt_conversation_the_last_branch_is_read(tmp_path: Path) -> None:
    turns, refused = turns_of(tmp_path, "conversations.json", json.dumps([CHATGPT]))
    assert [(turn.role, turn.text, turn.session_id, turn.external_id) for turn in turns] == [
        ("user", "I move to Oslo.", "talk-1", "a"),
        ("assistant", "Nice!", "talk-1", "d"),
    ]
    assert turns[0].occurred_at == datetime.fromtimestamp(1700000001.5, UTC)
    assert turns[0].attachments == (Attachment(kind="image", url="file-service://x"),)
    assert (turns[0].metadata, refused) == ({"conversation": "Trip"}, [])


def test_parents_in_a_circle_end(tmp_path: Path) -> None:
    node = {"message": {"id": "a", "author": {"role": "user"}, "content": {"parts": ["Hi"]}}, "parent": "a"}
    turns, _ = turns_of(tmp_path, "c.json", json.dumps([{"title": "x", "mapping": {"a": node}, "current_node": "a"}]))
    assert [turn.text for turn in turns] == ["Hi"]


def test_a_slack_channel_has_names_threads_files_and_no_notes(tmp_path: Path) -> None:
    (tmp_path / "users.json").write_text('[{"id": "U1", "name": "maya", "profile": {"real_name": "Maya Chen"}}]')
    day = [
        {"type": "message", "subtype": "channel_join", "user": "U1", "text": "joined", "ts": "1700000000.000100"},
        {
            "type": "message",
            "user": "U1",
            "text": "Hi <@U1>, see <https://x.org|the page> in <#C1|general> &amp; smile",
            "ts": "1700000001.000200",
            "thread_ts": "1700000001.000200",
            "files": [{"name": "rex.png", "mimetype": "image/png", "permalink": "https://x.org/rex.png", "size": 7}],
        },
        {"type": "message", "user": "U9", "user_profile": {"real_name": "Tom"}, "text": "Yo", "ts": "1700000002.0"},
        {"type": "message", "user": "U1", "text": "?", "ts": "soon"},
    ]
    turns, refused = turns_of(tmp_path, "general/2023-11-14.json", json.dumps(day))
    assert [(turn.speaker, turn.text) for turn in turns] == [
        ("Maya Chen", "Hi @Maya Chen, see the page (https://x.org) in #general & smile"),
        ("Tom", "Yo"),
    ]
    assert (turns[0].session_id, turns[0].external_id) == ("general", "slack:general:1700000001.000200")
    picture = Attachment(kind="image", name="rex.png", media_type="image/png", url="https://x.org/rex.png", size=7)
    assert turns[0].attachments == (picture,)
    assert [r.reason for r in refused] == ["ts: 'soon' is not a timestamp of Slack"]
    assert [path.name for path in find_files([tmp_path])] == ["2023-11-14.json"]


def test_slack_messages_of_programs_are_read_from_their_attachments_and_blocks(tmp_path: Path) -> None:
    said = {
        "type": "rich_text_section",
        "elements": [{"type": "user", "user_id": "U1"}, {"type": "text", "text": " ok"}],
    }
    rich = {"type": "rich_text", "elements": [said, {"type": "rich_text_list", "elements": [said]}]}
    fields = [{"type": "mrkdwn", "text": "by Ana"}]
    section = {"type": "section", "text": {"type": "mrkdwn", "text": "Deploy of v2 done"}, "fields": fields}
    preview = {"from_url": "https://x.org", "text": "A page", "fallback": "A page"}
    alert = {"fallback": "f", "title": "Alarm", "text": "42 minutes", "fields": [{"title": "Host", "value": "a1"}]}
    contents: list[dict[str, Any]] = [
        {"text": "", "attachments": [{"fallback": "PR #12 merged by Ana", "text": "PR #12 merged"}]},
        {"text": "", "attachments": [{"fallback": "PR #13 merged"}]},
        {"text": "", "blocks": [section, {"type": "actions", "elements": [{"text": {"text": "Undo"}}]}]},
        {"text": "", "blocks": [rich]},
        {"text": "see https://x.org", "attachments": [preview]},
        {"text": "", "attachments": [preview]},
        {"text": "Alarm on a1", "attachments": [alert, {"fallback": "Alarm"}]},
        {"text": "", "attachments": [], "reactions": [{"name": "eyes"}]},
    ]
    day = [
        {"type": "message", "subtype": "bot_message", "username": "Bot", "ts": f"170000000{n}.000100", **content}
        for n, content in enumerate(contents)
    ]
    path = tmp_path / "bots" / "2023-11-14.json"
    path.parent.mkdir()
    path.write_text(json.dumps(day))
    refused: list[Refused] = []
    with open_source(path) as source:
        texts = [item.text for item in read_items(source, refused.append)]
    assert texts == [
        "PR #12 merged",
        "PR #13 merged",
        "Deploy of v2 done\nby Ana",
        "@U1 ok\n@U1 ok",
        "see https://x.org",
        "A page",
        "Alarm on a1\nAlarm\n42 minutes\nHost: a1",
    ]
    assert (refused, source.notes) == ([], ["left out: messages without content (1)"])


# WhatsApp


@pytest.mark.parametrize(
    ("lines", "moment"),
    [
        (["31.12.25, 23:59 - Maya: Hi", "01.01.26, 08:00 - Tom: Yo"], datetime(2025, 12, 31, 23, 59, tzinfo=BERLIN)),
        (["[31.12.25, 23:59:07] Maya: Hi"], datetime(2025, 12, 31, 23, 59, 7, tzinfo=BERLIN)),
        (["01.02.2026, 08:00 - Maya: Hi"], datetime(2026, 2, 1, 8, tzinfo=BERLIN)),
        (["1/2/26, 8:00 PM - Maya: Hi", "1/31/26, 8:00 AM - Tom: Yo"], datetime(2026, 1, 2, 20, tzinfo=BERLIN)),
        (
            ["[1/2/26, 12:05:00\u202fAM] Maya: Hi", "[1/31/26, 8:00:00\u202fAM] Tom: Yo"],
            datetime(2026, 1, 2, 0, 5, tzinfo=BERLIN),
        ),
        (["1/2/26, 20:00 - Maya: Hi", "31/1/26, 8:00 - Tom: Yo"], datetime(2026, 2, 1, 20, tzinfo=BERLIN)),
        (["2026-02-01, 20:00 - Maya: Hi"], datetime(2026, 2, 1, 20, tzinfo=BERLIN)),
        (["13/02/2026 à 19:05 - Maya: Hi"], datetime(2026, 2, 13, 19, 5, tzinfo=BERLIN)),
        (["13/2/26, 7:05\u202fp.\xa0m. - Maya: Hi"], datetime(2026, 2, 13, 19, 5, tzinfo=BERLIN)),
        (["2026/2/13 午後7:06 - Maya: Hi"], datetime(2026, 2, 13, 19, 6, tzinfo=BERLIN)),
        (["[2026/2/13 上午0:06:01] Maya: Hi"], datetime(2026, 2, 13, 0, 6, 1, tzinfo=BERLIN)),
    ],
    ids=[
        "german",
        "german iphone",
        "german long",
        "us",
        "us iphone",
        "british",
        "iso",
        "french",
        "spanish",
        "japanese",
        "chinese",
    ],
)
def test_the_dates_of_a_whatsapp_export_are_read_in_the_order_of_the_whole_file(
    tmp_path: Path, lines: list[str], moment: datetime
) -> None:
    turns, refused = turns_of(tmp_path, "WhatsApp Chat.txt", "\n".join(lines), zone=BERLIN)
    assert (turns[0].speaker, turns[0].text, turns[0].occurred_at) == ("Maya", "Hi", moment)
    assert (len(turns), refused) == (len(lines), [])


@pytest.mark.parametrize(
    ("lines", "options", "reason"),
    [
        (
            ["1/2/26, 8:00 - Maya: Hi", "3/4/26, 8:00 - Tom: Yo"],
            {"zone": BERLIN},
            "1/2/26 and all 2 dates can be read either way; pass --date-order",
        ),
        (
            ["31/1/26, 8:00 - Maya: Hi", "1/31/26, 8:00 - Tom: Yo"],
            {"zone": BERLIN},
            "dates of several orders: 31/1/26 and 1/31/26",
        ),
        (["31/1/26, 8:00 - Maya: Hi"], {}, "times of a WhatsApp export have no time zone; pass --timezone"),
    ],
    ids=["ambiguous", "both", "zone"],
)
def test_a_whatsapp_export_that_does_not_tell_its_times_says_which_option_does(
    tmp_path: Path, lines: list[str], options: dict[str, Any], reason: str
) -> None:
    turns, [refused] = turns_of(tmp_path, "_chat.txt", "\n".join(lines), **options)
    assert turns == []
    assert reason in refused.reason


def test_a_stated_date_order_counts_and_a_date_against_it_is_refused(tmp_path: Path) -> None:
    text = "1/2/26, 8:00 - Maya: Hi\n1/31/26, 8:00 - Tom: Yo"
    [turn], [refused] = turns_of(tmp_path, "_chat.txt", text, zone=BERLIN, date_order="dmy")
    assert turn.occurred_at == datetime(2026, 2, 1, 8, tzinfo=BERLIN)
    assert (refused.line, refused.reason) == (2, "1/31/26 is not a date in the order dmy (--date-order)")


def test_whatsapp_messages_keep_their_lines_and_files_and_notes_are_left_out(tmp_path: Path) -> None:
    text = """31.12.25, 23:58 - Nachrichten und Anrufe sind Ende-zu-Ende-verschlüsselt.
31.12.25, 23:59 - Maya Chen: Two
lines <Diese Nachricht wurde bearbeitet.>
31.12.25, 23:59 - Maya Chen: \u200eIMG-1.jpg (Datei angehängt)
Rex!
31.12.25, 23:59 - Tom: <Medien ausgeschlossen>
31.12.25, 23:59 - Tom: ok
31.12.25, 23:59 - Tom: ok
31.12.25, 23:59 - Maya Chen hat „Tom“ hinzugefügt: x
"""
    turns, refused = turns_of(tmp_path, "chat.txt", text, zone=BERLIN)
    assert [(turn.speaker, turn.text) for turn in turns] == [
        ("Maya Chen", "Two\nlines"),
        ("Maya Chen", "Rex!"),
        ("Tom", "[file]"),
        ("Tom", "ok"),
        ("Tom", "ok"),
    ]
    assert turns[1].attachments == (Attachment(kind="image", name="IMG-1.jpg", media_type="image/jpeg"),)
    assert len({turn.external_id for turn in turns}) == 5
    assert refused == []


# Mail


def test_a_mail_is_a_turn_of_its_sender_with_its_attachments(tmp_path: Path) -> None:
    [turn], refused = turns_of(tmp_path, "a.eml", MAIL)
    assert (turn.speaker, turn.text, turn.session_id) == ("Maya Chen", "Café\n\nI moved to Lisbon.", "1@example.org")
    assert turn.occurred_at == datetime(2026, 1, 5, 9, tzinfo=UTC)
    assert turn.attachments == (Attachment(kind="image", name="rex.png", media_type="image/png", size=3),)
    assert (turn.metadata["subject"], turn.metadata["to"], refused) == ("Café", "Tom", [])


HEAD = "From: Tom Becker <t@h.example>\nSubject: {subject}\nMessage-ID: <1@h>\nContent-Type: text/{kind}\n\n"


@pytest.mark.parametrize(
    ("kind", "body"),
    [
        (
            "html",
            "<p>Good.</p><p>On 2 March, Ann wrote:</p><blockquote type='cite'>I live.</blockquote>",
        ),
        (
            "html",
            "<p>Good.</p><p>On 2 March, Ann wrote:</p><blockquote class=gmail_quote>Hi</blockquote>",
        ),
        ("html", "<p>Good.</p><p><b>From:</b> Ann<br><b>Sent:</b> Monday<br><b>To:</b> Tom</p><p>I live.</p>"),
        ("plain", "Good.\n\n-----Original Message-----\nFrom: Ann\nSent: Monday\n\nI live.\n"),
        ("plain", "Good.\n\nFrom: Ann <a@h.example>\nSent: Monday\nTo: Tom\n\nI live.\n"),
        (
            "plain",
            "Good.\n\nVon: Ann <a@h.example>\nGesendet: Montag, 2. März 2026 10:00\nAn: Tom\nBetreff: x\n\nIch.\n",
        ),
        ("plain", "Good.\n\nVon: Ann\nBetreff: x\nDatum: 2. März 2026 um 10:00\nAn: Tom\n\nIch lebe.\n"),
        ("html", "<p>Good.</p><p><b>Von:</b> Ann<br><b>Gesendet:</b> Montag<br><b>An:</b> Tom</p><p>Ich lebe.</p>"),
        ("plain", "Good.\n\nOn Mon, 2 Mar 2026 at 10:00 Ann <a@h.example>\nwrote:\n\n> I live.\n"),
        ("plain", "Good.\n\nOn Mon, 3 Nov 2025 at 10:00, Ana Silva\n<ana@h.example> wrote:\n\n> I live.\n"),
        ("plain", "Good.\n\nOn Mon, Nov 3, 2025 at 10:00 AM Ana Silva <\nana@h.example> wrote:\n\n> I live.\n"),
        ("plain", "Good.\n\nLe lun. 3 nov. 2025 à 10:00, Ana Silva\n<ana@h.example> a écrit :\n\n> I live.\n"),
    ],
)
def test_a_reply_is_read_without_what_it_quotes(tmp_path: Path, kind: str, body: str) -> None:
    [turn], _ = turns_of(tmp_path, "a.eml", HEAD.format(subject="Re: x", kind=kind) + body)
    assert turn.text == "Good."


def test_a_sentence_above_the_line_that_introduces_a_quotation_is_kept(tmp_path: Path) -> None:
    body = "On Friday we go\nOn Mon, 3 Nov 2025 Ana <ana@h.example> wrote:\n> I live.\n"
    [turn], _ = turns_of(tmp_path, "a.eml", HEAD.format(subject="Re: x", kind="plain") + body)
    assert turn.text == "On Friday we go"


@pytest.mark.parametrize(
    ("sender", "speaker"),
    [
        ('"Becker, Tom" <t@h.example>', "Tom Becker"),
        ("=?utf-8?q?M=C3=BCller=2C_Tom?= <t@h.example>", "Tom Müller"),
        ('"Acme, Inc." <t@h.example>', "Acme, Inc."),
        ('"Sales, Press, Support" <t@h.example>', "Sales, Press, Support"),
    ],
)
def test_a_name_with_the_surname_first_is_read_in_its_usual_order(tmp_path: Path, sender: str, speaker: str) -> None:
    [turn], _ = turns_of(tmp_path, "a.eml", f"From: {sender}\nSubject: x\n\nHello\n")
    assert turn.speaker == speaker


@pytest.mark.parametrize(
    ("kind", "body"),
    [
        ("html", "<p>See below.</p><p>Begin forwarded message:</p><blockquote type='cite'>The plan.</blockquote>"),
        ("html", "<p>My rule:</p><blockquote class='pullquote'>The plan.</blockquote>"),
        ("plain", "My flight:\nFrom: Berlin\nTo: Rome\nDate: 3 May\n\nThe plan.\n"),
        ("plain", "Mein Flug:\nVon: Berlin\nNach: Rom\nDatum: 3. Mai\n\nThe plan.\n"),
        ("plain", "See below.\n\n-----Original Message-----\nFrom: Ann\nSent: Monday\n\nThe plan.\n"),
    ],
)
def test_what_a_mail_forwards_or_indents_is_kept(tmp_path: Path, kind: str, body: str) -> None:
    [turn], _ = turns_of(tmp_path, "a.eml", HEAD.format(subject="Fwd: x", kind=kind) + body)
    assert "The plan." in turn.text


def of_parts(kind: str, *parts: str) -> str:
    """Return a part of a mail that has parts, each a content type, an empty line, and its content."""
    cut = f"--{kind}"
    return "\n".join(
        [f"multipart/{kind}; boundary={kind}\n", *(f"{cut}\nContent-Type: {p}\n" for p in parts), f"{cut}--"]
    )


HTML_PART, PLAIN_PART, BLANK = "text/html\n\n<p>Come to Rome.</p>", "text/plain\n\nCome to Rome.", "text/plain\n\n \n"
INVITATION = "text/calendar; method=REQUEST\n\nBEGIN:VCALENDAR\nEND:VCALENDAR"
FOOTER = "text/plain\n\nList of Rome."
PICTURE = "image/png; name=rex.png\n\nx"
TABLE_PART = "text/csv; name=a.csv\n\na,b"
MAIL_OF_ANN = "message/rfc822\n\nFrom: Ann Lee <ann@h.example>\nSubject: My job\nContent-Type: " + of_parts(
    "attached", "text/plain\n\nI work at Acme.", PICTURE
)


@pytest.mark.parametrize(
    ("body", "text", "attached"),
    [
        (of_parts("alternative", PLAIN_PART, HTML_PART, INVITATION), "Come to Rome.", []),
        (of_parts("alternative", "text/x-amp-html\n\n<html amp4email></html>", HTML_PART), "Come to Rome.", []),
        (of_parts("alternative", BLANK, HTML_PART), "Come to Rome.", []),
        (of_parts("alternative", PLAIN_PART, of_parts("related", HTML_PART, PICTURE)), "Come to Rome.", ["rex.png"]),
        (of_parts("alternative", PLAIN_PART, of_parts("mixed", HTML_PART, TABLE_PART)), "Come to Rome.", ["a.csv"]),
        (of_parts("mixed", HTML_PART, FOOTER), "Come to Rome.\n\nList of Rome.", []),
        (
            of_parts("mixed", of_parts("alternative", PLAIN_PART, HTML_PART), FOOTER),
            "Come to Rome.\n\nList of Rome.",
            [],
        ),
        (of_parts("mixed", PLAIN_PART, INVITATION), "Come to Rome.", [None]),
        (of_parts("mixed", PLAIN_PART, "text/x-log\n\nIt rains."), "Come to Rome.\n\nIt rains.", []),
        (
            of_parts("mixed", PLAIN_PART, MAIL_OF_ANN),
            "Come to Rome.\n\nFrom: Ann Lee <ann@h.example>\nSubject: My job\n\nI work at Acme.",
            ["rex.png"],
        ),
    ],
)
def test_of_the_parts_of_a_mail_each_text_is_read_in_one_form(
    tmp_path: Path, body: str, text: str, attached: list[str | None]
) -> None:
    mail = f"From: Tom Becker <t@h.example>\nSubject: Re: x\nMessage-ID: <1@h>\nContent-Type: {body}\n"
    [turn], refused = turns_of(tmp_path, "a.eml", mail)
    assert (turn.text.replace("\n\n\n", "\n\n"), refused) == (text, [])
    assert [each.name for each in turn.attachments] == attached


def test_a_mailbox_is_cut_at_its_messages_and_replies_share_a_session(tmp_path: Path) -> None:
    begin = "From maya@example.org Mon Jan  5 10:00:00 2026\n"
    turns, refused = turns_of(tmp_path, "in.mbox", f"{begin}{MAIL}\n{begin}{REPLY}>From here on.\nFrom now on, too.\n")
    assert [turn.text for turn in turns] == [
        "Café\n\nI moved to Lisbon.",
        "I envy you.\n\nFrom here on.\nFrom now on, too.",
    ]
    assert {turn.session_id for turn in turns} == {"1@example.org"}
    assert [[attachment.name for attachment in turn.attachments] for turn in turns] == [["rex.png"], []]
    assert refused == []


def test_a_large_attachment_in_a_mailbox_is_read_in_moments_and_not_stored(tmp_path: Path) -> None:
    picture = random.Random(18).randbytes(5_000_000)
    mail = MAIL.replace("AAAA\n", base64.encodebytes(picture).decode())
    begin = "From maya@example.org Mon Jan  5 10:00:00 2026\n"
    begun = time.process_time()
    turns, refused = turns_of(tmp_path, "in.mbox", f"{begin}{mail}\n{begin}{REPLY}")
    assert time.process_time() - begun < 2
    assert [turn.text for turn in turns] == ["Café\n\nI moved to Lisbon.", "I envy you."]
    assert [[attachment.size for attachment in turn.attachments] for turn in turns] == [[5_000_000], []]
    assert len(turns[0].model_dump_json()) < 1000
    assert refused == []


def test_a_mail_of_html_alone_is_read_as_its_text(tmp_path: Path) -> None:
    mail = "From: a@b.org\nSubject: Re: x\nContent-Type: text/html; charset=nonsense\n\n<p>Hello&nbsp;you</p><p>Bye</p>"
    [turn], _ = turns_of(tmp_path, "a.eml", mail)
    assert turn.text == "Hello you\n\nBye"


def test_what_is_no_mail_is_refused_where_it_begins(tmp_path: Path) -> None:
    odd = "From x Mon Jan  5 10:00:00 2026\nDate: Mon, 99 Foo\nFrom: =?x?\n\nHi\n\n"
    turns, refused = turns_of(tmp_path, "in.mbox", odd + "From y Mon Jan  5 10:00:00 2026\nno header\n")
    assert ([turn.text for turn in turns], [r.line for r in refused]) == (["Hi"], [8])


@pytest.mark.parametrize("piece", ["(", ";", ";a=", "=?utf-8?q?", '"', ",", "<", "\\"])
def test_crafted_headers_take_no_longer_than_their_size_and_cost_their_mail_only(tmp_path: Path, piece: str) -> None:
    crafted = piece * (100_000 // len(piece))
    names = ("From", "Subject", "Date", "References", "Content-Type", "Content-Disposition")
    headers = "".join(f"{name}: {crafted}\n" for name in names)
    begin = "From x Mon Jan  5 10:00:00 2026\n"
    begun = time.process_time()
    turns, _ = turns_of(tmp_path, "in.mbox", f"{begin}{headers}\nHi\n\n{begin}{REPLY}")
    assert time.process_time() - begun < 0.5
    assert turns[-1].external_id == "2@example.org"


def test_what_whatsapp_itself_says_on_an_iphone_is_left_out(tmp_path: Path) -> None:
    mark = "\u200e"
    text = f"""{mark}[3/13/26, 6:02:13\u202fPM] Clan: {mark}Messages and calls are end-to-end encrypted.\r
{mark}[3/13/26, 6:02:14\u202fPM] Clan: {mark}Mum created this group\r
[3/13/26, 6:02:15\u202fPM] Dan: lunch: {mark}yes?\r
[3/13/26, 6:02:20\u202fPM] Dan: {mark}This message was deleted.\r
[3/13/26, 6:03:20\u202fPM] ~\u202f+44 7700 900123: {mark}image omitted\r
{mark}[3/13/26, 6:03:21\u202fPM] Dan: {mark}POLL:\r
Lunch?\r
{mark}OPTION: Pizza ({mark}2 votes)\r
[3/13/26, 6:03:22\u202fPM] Dan: {mark}Location: https://maps.google.com/?q=1,2\r
{mark}[3/13/26, 6:03:23\u202fPM] Dan: bill.pdf • {mark}2 pages {mark}document omitted\r
[3/13/26, 6:03:24\u202fPM] Dan: hi @\u2068Priya Shah\u2069\r
{mark}[3/14/26, 6:02:13\u202fPM] Clan: {mark}Mum added Priya\r
"""
    turns, refused = turns_of(tmp_path, "_chat.txt", text, zone=BERLIN)
    assert [(turn.speaker, turn.text) for turn in turns] == [
        ("Dan", "lunch: yes?"),
        ("+44 7700 900123", "[image]"),
        ("Dan", "POLL:\nLunch?\nOPTION: Pizza (2 votes)"),
        ("Dan", "Location: https://maps.google.com/?q=1,2"),
        ("Dan", "[file: bill.pdf]"),
        ("Dan", "hi @Priya Shah"),
    ]
    assert refused == []


@pytest.mark.parametrize(
    "notice",
    [
        "null",
        "This message was deleted",
        "You deleted this message",
        "Missed voice call",
        "Diese Nachricht wurde gelöscht.",
        "Du hast diese Nachricht gelöscht.",
        "Verpasster Sprachanruf",
        "Ce message a été supprimé",
        "Appel vocal manqué",
        "Se eliminó este mensaje.",
    ],
)
def test_what_whatsapp_says_in_place_of_a_message_is_left_out(tmp_path: Path, notice: str) -> None:
    text = f"13.03.26, 18:03 - Dan: {notice}\n13.03.26, 18:04 - Dan: {notice}, I saw\n"
    turns, _ = turns_of(tmp_path, "chat.txt", text, zone=BERLIN)
    assert [turn.text for turn in turns] == [f"{notice}, I saw"]


@pytest.mark.parametrize(
    ("line", "shown"),
    [
        ("<Médias omis>", "[file]"),
        ("<Multimedia omitido>", "[file]"),
        ("<メディアは含まれていません>", "[file]"),
        ("vidéo absente", "[video]"),
        ("Sprachnachricht weggelassen", "[audio]"),
        ("Marie absente", "Marie absente"),
    ],
)
def test_files_that_an_export_lacks_are_attachments_in_other_languages(tmp_path: Path, line: str, shown: str) -> None:
    [turn], _ = turns_of(tmp_path, "chat.txt", f"13.03.26, 18:03 - Dan: {line}\n", zone=BERLIN)
    assert turn.text == shown


# Transcripts


LINE = """[LINE] 仲間のトーク履歴
保存日時：2026/06/01 10:00

2026/01/10(土)
20:12\t佐藤 美咲\t明けましておめでとう！
20:13\t健太\t"おめでとう！
金沢にいたよ"
20:14\t\tYukiが参加しました。

2026/02/08(日)
午後0:32\t健太\t[写真]
12:35\t佐藤 美咲\tえっ、急だね。
"""
ZOOM = """00:00:05 Karen Whitfield: Welcome.
00:00:19 Mo Farouk: Hi: all.
00:00:25 Karen Whitfield: Vote
00:00:27 Mo Farouk: ok
"""
SINCE = "Since when?\nI don't."
OTTER = """Keynote prep call
Wed, Apr 15, 2026 2:00PM

Dana Reyes  00:02
Hi, thanks for making time.

Tomoko Ishida  00:11
Good.

Dana Reyes  00:20
Right.

Tomoko Ishida  01:00:26
Yes, but I need a table.
"""
PLAIN = "Maya: I live in Austin.\nNate: I play chess.\nMaya: Since when?\nI don't.\nNate: For two years now.\n" * 2


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (ZOOM, [("Karen Whitfield", "00:00:05", "Welcome."), ("Mo Farouk", "00:00:19", "Hi: all.")]),
        (OTTER, [("Dana Reyes", "00:02", "Hi, thanks for making time."), ("Tomoko Ishida", "00:11", "Good.")]),
        (PLAIN, [("Maya", None, "I live in Austin."), ("Nate", None, "I play chess."), ("Maya", None, SINCE)]),
    ],
    ids=["Zoom", "Otter", "plain"],
)
def test_a_transcript_in_plain_text_has_speakers(
    tmp_path: Path, content: str, said: list[tuple[str, str | None, str]]
) -> None:
    turns, refused = turns_of(tmp_path, "call.txt", content)
    assert [(turn.speaker, turn.metadata.get("start"), turn.text) for turn in turns][: len(said)] == said
    assert (len({turn.external_id for turn in turns}), refused) == (len(turns), [])
    assert {turn.session_id for turn in turns} == {"call"}


def test_a_line_export_has_dates_and_files(tmp_path: Path) -> None:
    turns, refused = turns_of(tmp_path, "line.txt", LINE, zone=BERLIN)
    assert [(turn.speaker, turn.text) for turn in turns] == [
        ("佐藤 美咲", "明けましておめでとう！"),
        ("健太", "おめでとう！\n金沢にいたよ"),
        ("健太", "[image]"),
        ("佐藤 美咲", "えっ、急だね。"),
    ]
    assert [turn.occurred_at for turn in turns[1:3]] == [
        datetime(2026, 1, 10, 20, 13, tzinfo=BERLIN),
        datetime(2026, 2, 8, 12, 32, tzinfo=BERLIN),
    ]
    assert refused == []
    assert "pass --timezone" in turns_of(tmp_path, "line.txt", LINE)[1][0].reason


@pytest.mark.parametrize(
    ("day", "clock", "hour"),
    [
        ("Fri, 01/02/2026", "8:45PM", 20),
        ("Fri, 2/1/2026", "8:45 pm", 20),
        ("2026/01/02(Fri)", "20:45", 20),
        ("2026.01.02 Friday", "12:45 AM", 0),
        ("2026/01/02（週五）", "下午08:45", 20),
        ("2026.01.02 星期五", "上午08:45", 8),
    ],
)
def test_a_line_export_may_have_the_dates_of_other_languages(tmp_path: Path, day: str, clock: str, hour: int) -> None:
    content = f"[LINE] Chat history with Ken\nSaved on: 1/3/2026, 10:00\n\n{day}\n{clock}\tKen\tI bought a boat\n"
    [turn], refused = turns_of(tmp_path, "line.txt", content, zone=BERLIN)
    assert (turn.speaker, turn.text, refused) == ("Ken", "I bought a boat", [])
    assert turn.occurred_at == datetime(2026, 1, 2, hour, 45, tzinfo=BERLIN)


@pytest.mark.parametrize(
    "content",
    [
        "Maya: I live in Austin.\nNate: I play chess.\n",
        "Name: Ana Lopes\nEmail: ana@x.example\nName: Ben\nEmail: ben@x.example\n",
        "INFO: the server has started\nWARN: the disk is full\n" * 3,
        "host: the name of the server\nport: the number it listens on\n" * 3,
        "Q: Where do you live now?\nA: I live in Austin now.\n" * 3,
        "He said: no.\n\nThe rest of the page is prose without any speakers.\n\nHe said: yes.\n" * 3,
    ],
    ids=["once", "contacts", "log", "settings", "questions", "prose"],
)
def test_a_text_that_may_be_no_transcript_is_a_document(tmp_path: Path, content: str) -> None:
    assert turns_of(tmp_path, "a.txt", content) == ([], [])


# Subtitles, pages, tables


def test_cues_have_speakers_and_sentences_are_joined(tmp_path: Path) -> None:
    turns, refused = turns_of(tmp_path, "call.vtt", VTT)
    assert [(turn.speaker, turn.text, turn.metadata["start"]) for turn in turns] == [
        ("Maya Chen", "I moved to Lisbon & like it.", "00:01:02.500"),
        ("Tom", "Really?", "00:01:06.000"),
    ]
    assert (turns[0].session_id, refused) == ("call", [])


@pytest.mark.parametrize(
    ("labels", "speakers"),
    [
        (("Karen Whitfield: ", "Mo Farouk: ", "raj patel: "), ["Karen Whitfield", "Mo Farouk", "raj patel"]),
        (("Karen Whitfield: ", "", "and remember: "), ["Karen Whitfield"]),
    ],
)
def test_a_name_in_lower_case_is_a_speaker_where_all_cues_have_one(
    tmp_path: Path, labels: tuple[str, ...], speakers: list[str]
) -> None:
    cues = (f"00:00:0{n}.000 --> 00:00:0{n + 1}.000\n{label}the lift is\n" for n, label in enumerate(labels))
    turns, _ = turns_of(tmp_path, "call.vtt", "\n".join(("WEBVTT\n", *cues)))
    assert [turn.speaker for turn in turns] == speakers
    assert all("patel" not in turn.text for turn in turns)


def test_subtitles_without_names_are_documents_as_nobody_says_them(tmp_path: Path) -> None:
    more = (f"{n}\n00:01:{n},000 --> 00:01:{n},900\nI live in {'Oslo ' * 60}.\n" for n in range(10, 15))
    (tmp_path / "film.srt").write_text("\n".join((SRT, *more)))
    with open_source(tmp_path / "film.srt") as source:
        items = list(read_items(source, lambda _: None))
    assert {type(item) for item in items} == {Document}
    assert items[0].text.startswith("I moved to Lisbon. Really? I live in")
    assert [(item.metadata["start"], len(item.text) < 1000) for item in items] == [
        ("00:00:01.000", True),
        ("00:01:13.000", True),
    ]
    assert {item.title for item in items if isinstance(item, Document)} == {"film"}


def test_a_page_is_cut_at_its_headings(tmp_path: Path) -> None:
    (tmp_path / "page.html").write_text(PAGE)
    with open_source(tmp_path / "page.html") as source:
        pages = [item for item in read_items(source, lambda _: None) if isinstance(item, Document)]
    assert [(page.title, page.text) for page in pages] == [
        ("Guide", "Get it & run it."),
        ("Guide > Pictures", "- One\n- Two\n\n[image: A dog]"),
    ]


@pytest.mark.parametrize(
    ("kind", "piece"), [("plain", "\n"), ("plain", "\nFrom: x"), ("plain", "\n>"), ("html", "<blockquote>a")]
)
def test_a_crafted_mail_takes_no_longer_than_its_size(tmp_path: Path, kind: str, piece: str) -> None:
    body = piece * (200_000 // len(piece))
    begun = time.process_time()
    turns_of(tmp_path, "a.eml", HEAD.format(subject="Re: x", kind=kind) + body)
    assert time.process_time() - begun < 2


@pytest.mark.parametrize("piece", ["<!--", "<a ", '<a b="', "<![x", "<", "</", "&#", "<p>", "<pre>", "<!x"])
def test_crafted_html_takes_no_longer_than_its_size(piece: str) -> None:
    begun = time.process_time()
    to_lines(piece * (100_000 // len(piece)))
    assert time.process_time() - begun < 1


def test_a_table_of_turns_is_read_by_its_header(tmp_path: Path) -> None:
    turns, refused = turns_of(tmp_path, "chat.csv", "speaker;message;date\nMaya;Hi;2026-01-05\nTom;;2026-01-05\n")
    assert [(turn.speaker, turn.text, turn.occurred_at) for turn in turns] == [
        ("Maya", "Hi", datetime(2026, 1, 5, tzinfo=UTC))
    ]
    assert [(r.line, r.reason) for r in refused] == [(3, "text: missing or empty")]


def test_columns_of_other_names_are_told(tmp_path: Path) -> None:
    table = "Sr No.,Utterance,Who\n1,Hi,Maya\n"
    [turn], _ = turns_of(tmp_path, "chat.csv", table, columns={"text": "Utterance", "speaker": "who"})
    assert (turn.text, turn.speaker, turn.metadata) == ("Hi", "Maya", {"sr no.": "1"})


def test_several_columns_are_joined_as_lines_of_the_text(tmp_path: Path) -> None:
    table = 'Customer,Note,"Size, m"\nTallgren,Cancels.,3\nOsprey,,4\n,,5\n'
    notes, [refused] = turns_of(tmp_path, "crm.csv", table, columns={"text": "Customer, Note"})
    sizes, _ = turns_of(tmp_path, "crm.csv", table, columns={"text": "Size, m", "speaker": "customer"})
    assert [note.text for note in notes] == ["customer: Tallgren\nnote: Cancels.", "customer: Osprey"]
    assert notes[0].metadata == {"customer": "Tallgren", "note": "Cancels.", "size, m": "3"}
    assert refused.line == 4
    assert [size.text for size in sizes] == ["3", "4", "5"]
    path = tmp_path / "notes.jsonl"
    path.write_text('{"Customer": "Osprey", "Size": 4, "text": "x"}\n')
    with open_source(path, columns={"text": "customer,size"}) as source:
        assert [item.text for item in read_items(source, lambda _: None)] == ["customer: Osprey\nsize: 4"]


TABLE = "Speaker;Text\nJörg;Das kostet 5 €.\nAna;Gut.\n"


def test_a_file_in_another_encoding_is_read_as_stated_and_never_in_part(tmp_path: Path) -> None:
    data = TABLE.encode("cp1252")
    for name in ("chat.csv", "chat.jsonl", "chat.json", "chat.txt", "chat.md"):
        with pytest.raises(InvalidInput, match="is not UTF-8; save it as UTF-8, or pass its encoding: --encoding"):
            turns_of(tmp_path, name, b"x" * 300_000 + data if name == "chat.md" else data)
    for encoding in ("cp1252", "utf-16-le"):
        turns, _ = turns_of(tmp_path, "chat.csv", TABLE.encode(encoding), encoding=encoding)
        assert [(turn.speaker, turn.text) for turn in turns] == [("Jörg", "Das kostet 5 €."), ("Ana", "Gut.")]
    with open_source("-", stdin=io.BytesIO(data), form="csv", encoding="cp1252") as source:
        assert [turn.text for turn in read_items(source, lambda _: None)] == ["Das kostet 5 €.", "Gut."]
    with pytest.raises(InvalidInput, match="is not text in the encoding ascii"):
        turns_of(tmp_path, "chat.csv", TABLE, encoding="ascii")


@pytest.mark.parametrize(
    ("stated", "written_in", "given", "text"),
    [
        ("", "cp1252", None, "Café – Zoë"),
        ("", "utf-8", None, "Café – Zoë"),
        ("", "cp1250", "cp1250", "Łódź – Zoë"),
        ("us-ascii", "cp1252", None, "Café – Zoë"),
        ("cp1250", "cp1250", "cp1252", "Łódź – Zoë"),
        ("nonsense", "cp1252", None, "Café – Zoë"),
        ("utf-8", "utf-8", "cp1252", "Café – Zoë"),
    ],
)
def test_pages_and_mail_have_their_stated_encoding_or_else_the_given_one(
    tmp_path: Path, stated: str, written_in: str, given: str | None, text: str
) -> None:
    page = f'<meta charset="{stated}"><p>{text}' if stated else f"<p>{text}"
    (tmp_path / "a.html").write_bytes(page.encode(written_in))
    with open_source(tmp_path / "a.html", encoding=given) as source:
        assert [item.text for item in read_items(source, lambda _: None)] == [text]
    kind = f"Content-Type: text/plain; charset={stated}\n" if stated else ""
    mail = f"From: Tom <t@h.example>\nSubject: Re: x\nMessage-ID: <1@h>\n{kind}\n{text}\n".encode(written_in)
    assert [turn.text for turn in turns_of(tmp_path, "a.eml", mail, encoding=given)[0]] == [text]


@pytest.mark.parametrize("written_in", ["utf-8", "cp1252"])
def test_names_and_subjects_of_mail_may_stand_as_they_are(tmp_path: Path, written_in: str) -> None:
    sender, subject = "=?utf-8?Q?Zo=C3=AB?= Müller", "=?utf-8?Q?Caf=C3=A9?= in Köln"
    mail = f"From: {sender} <z@h.example>\nTo: Jörg <j@h.example>\nSubject: {subject}\nMessage-ID: <1@h>\n\nHi\n"
    [turn], _ = turns_of(tmp_path, "a.eml", mail.encode(written_in))
    assert (turn.speaker, turn.metadata["to"], turn.text) == ("Zoë Müller", "Jörg", "Café in Köln\n\nHi")


def test_a_damaged_character_leaves_the_others_of_a_page(tmp_path: Path) -> None:
    (tmp_path / "a.html").write_bytes("<p>Café, Zoë".encode() + b"\xff")
    with open_source(tmp_path / "a.html") as source:
        assert [item.text for item in read_items(source, lambda _: None)] == ["Café, Zoë\ufffd"]


@pytest.mark.parametrize("table", ["sep=;\r\nspeaker;text\r\nA;Hi, you\r\n", "speaker;text\rA;Hi, you\r"])
def test_tables_as_excel_writes_them_are_read(tmp_path: Path, table: str) -> None:
    turns, refused = turns_of(tmp_path, "chat.csv", table)
    assert ([(turn.speaker, turn.text) for turn in turns], refused) == ([("A", "Hi, you")], [])


@pytest.mark.parametrize(
    ("name", "text", "reason"),
    [
        ("a.ttl", "# x\n@prefix a: <b> .\n", "a.ttl: is RDF; write its statements to CSV"),
    ],
)
def test_text_of_a_kind_that_is_not_read_is_refused(tmp_path: Path, name: str, text: str, reason: str) -> None:
    (tmp_path / name).write_text(text)
    with pytest.raises(InvalidInput, match=reason), open_source(tmp_path / name):
        pass
    with open_source(tmp_path / name, form="text") as source:
        assert [item.text for item in read_items(source, lambda _: None)] == [text.strip()]


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("1772355600", "2026-03-01T09:00:00+00:00"),
        ("1772355600500", "2026-03-01T09:00:00.500000+00:00"),
        ("Mon, 02 Feb 2026 09:14:00 +0100", "2026-02-02T09:14:00+01:00"),
        ("03/14/2026 5:30 PM", "2026-03-14T17:30:00+01:00"),
        ("14/03/2026 12:05 am", "2026-03-14T00:05:00+01:00"),
        ("05.01.2026 10:00", "2026-01-05T10:00:00+01:00"),
        ("2026/01/05, 10:00:07", "2026-01-05T10:00:07+01:00"),
        ("April 7, 2026", "2026-04-07T00:00:00+02:00"),
        ("7 Apr 2026 18:00", "2026-04-07T18:00:00+02:00"),
        ("20260102", "2026-01-02T00:00:00+01:00"),
    ],
)
def test_times_as_programs_write_them_are_read(tmp_path: Path, written: str, expected: str) -> None:
    [turn], _ = turns_of(tmp_path, "a.csv", f'text;date\nHi;"{written}"\n', zone=BERLIN)
    assert turn.occurred_at == datetime.fromisoformat(expected)
    number: object = int(written) if written.isdigit() else written
    [turn], _ = turns_of(tmp_path, "a.jsonl", json.dumps({"text": "Hi", "timestamp": number}), zone=BERLIN)
    assert turn.occurred_at == datetime.fromisoformat(expected)


@pytest.mark.parametrize("written", ["177235560", "1.5", "12", "31/02/2026 10:00", "May be 7, 2026", "13.13.2026"])
def test_what_is_no_time_is_refused(tmp_path: Path, written: str) -> None:
    turns, [refused] = turns_of(tmp_path, "a.csv", f'text;date\nHi;"{written}"\n', zone=BERLIN)
    assert not turns
    assert f"occurred_at: {written!r} is not a time; write ISO 8601" in refused.reason


@pytest.mark.parametrize(
    ("table", "days", "reason"),
    [
        ("text,date\na,03/04/2026\nb,13/04/2026\n", [3, 13], None),
        ("text,date\na,03/04/2026\nb,04/13/2026\n", [4, 13], None),
        ("text,date\na,03/04/2026\nb,05/04/2026\n", [], "day or month first? 03/04/2026 and all 2 dates"),
        ("text,date\na,03/04/2026\nb,13/04/2026\nc,04/13/2026\n", [], "dates of several orders: "),
    ],
)
def test_day_and_month_are_told_by_all_dates_of_a_file(
    tmp_path: Path, table: str, days: list[int], reason: str | None
) -> None:
    turns, refused = turns_of(tmp_path, "a.csv", table)
    assert [turn.occurred_at.day for turn in turns if turn.occurred_at] == days
    assert (reason is None and not refused) or (reason is not None and reason in refused[0].reason)
    assert not refused or "--date-order dmy or mdy" in refused[0].reason
    stated, _ = turns_of(tmp_path, "a.csv", table.partition("b,")[0], date_order="mdy")
    assert [turn.occurred_at for turn in stated] == [datetime(2026, 3, 4, tzinfo=UTC)]


def test_a_date_and_its_time_in_two_columns_are_one_time(tmp_path: Path) -> None:
    table = "Date,Time,Sender,Text\n2026-01-05,10:30,Maya,Hi\n05.01.2026,5:30 PM,Maya,Ho\n2026-01-05,noon,Maya,Hm\n"
    turns, _ = turns_of(tmp_path, "sms.csv", table, zone=UTC)
    assert [f"{turn.occurred_at:%d %H:%M}" for turn in turns] == ["05 10:30", "05 17:30", "05 00:00"]
    assert [turn.metadata for turn in turns] == [{}, {}, {"time": "noon"}]


def test_columns_with_the_same_name_are_all_kept(tmp_path: Path) -> None:
    table = "Issue,Summary,Comment,Comment,Comment\nWH-1,Freezes,Seen twice.,,Fixed.\n"
    [turn], _ = turns_of(tmp_path, "jira.csv", table, columns={"text": "Summary,Comment"})
    assert turn.text == "summary: Freezes\ncomment: Seen twice.\nFixed."
    assert turn.metadata["comment"] == "Seen twice.\nFixed."


@pytest.mark.parametrize(
    ("columns", "reason"),
    [
        ({}, "--column text=NAME names the column); the header has sr no., utterance, season and episode"),
        ({"text": "Line"}, "no column 'line' in the header, which has sr no., utterance, season"),
    ],
)
def test_a_table_of_something_else_says_what_its_header_has(
    tmp_path: Path, columns: dict[str, str], reason: str
) -> None:
    path = tmp_path / "chat.csv"
    path.write_text("Sr No.,Utterance,Season and episode of the whole series\n1,Hi,2\n")
    refused: list[Refused] = []
    with open_source(path, columns=columns) as source:
        assert list((read_triples if source.holds_triples else read_items)(source, refused.append)) == []
    assert reason in refused[0].reason


CRAFTED = (
    *(
        "1\n",
        "(\n",
        "a : . \n",
        "a: b\n",
        "# a\n",
        "> a\n",
        '"',
        "[",
        '{"a":',
        '["a"],',
        "a,",
        '<a b="',
        "&#",
        "=?utf-8?q?",
    ),
    *("From x\nA: b\n\n", "12/31/25, 10:00 - A: x\n", "1\n00:00:01,000 --> 00:00:02,000\na\n", "1"),
)


@pytest.mark.parametrize("form", FORMATS)
def test_crafted_files_of_every_format_hold_nobody_up(tmp_path: Path, form: Format) -> None:
    held: dict[str, float] = {}
    for piece in CRAFTED:
        path = tmp_path / "crafted"
        path.write_text(piece * (100_000 // len(piece)))
        # A quiet machine takes 50 ms at most, a busy one took more than twice that; what isn't linear takes seconds.
        if longest_hold(path, form) > 0.5 and (again := longest_hold(path, form)) > 0.5:
            held[piece] = round(again, 2)
    assert held == {}


def longest_hold(path: Path, form: Format) -> float:
    """Read a file; return the longest CPU time between two of its records or refused lines."""
    ticks = [time.thread_time()]

    def tick(_: object) -> None:
        ticks.append(time.thread_time())

    with suppress(InvalidInput), open_source(path, form=form) as source:
        for item in read_items(source, tick):
            tick(item)
    tick(None)
    return max(end - begin for begin, end in pairwise(ticks))


@pytest.mark.parametrize(
    ("date", "day"), [("2026-01-14", "2026-01-14"), ("'2026-01-14T09:00'", "2026-01-14"), ("x", None)]
)
def test_markdown_is_of_the_date_of_its_front_matter(tmp_path: Path, date: str, day: str | None) -> None:
    file = tmp_path / "a.md"
    file.write_text(f"---\ntitle: Standup\ndate: {date}\n---\nPaul joined.\n")
    with open_source(file) as source:
        [page] = [item for item in read_items(source, lambda _: None) if isinstance(item, Document)]
    modified = datetime.fromtimestamp(file.stat().st_mtime, UTC)
    assert page.occurred_at is not None
    assert (page.title, f"{page.occurred_at:%Y-%m-%d}") == ("Standup", day or f"{modified:%Y-%m-%d}")
