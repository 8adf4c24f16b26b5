"""Files, folders and zip archives, as the API and the command line take them in."""

from __future__ import annotations

import json
import os
import zipfile
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, Any

import pytest

from graphmem import GraphMemory, InvalidInput
from graphmem.ingest.files import FileLoad, FileOptions, find_files, names_of
from graphmem.ingest.formats.archives import Member
from graphmem.ingest.readers import open_source, read_items
from graphmem.models import Episode, EpisodeQuery
from graphmem.search.context import render_episode
from graphmem.trust import Trust, trust_of
from tests.unit.ingest.test_formats import CHATGPT, PAGE

Packed = Callable[[str, Mapping[str, Any]], Path]

CHATGPT_EXPORT: Mapping[str, Any] = {
    "conversations.json": [CHATGPT],
    "chat.html": PAGE,
    "message_feedback.json": [{"id": "f", "rating": "thumbs_down", "content": '{"tags": []}'}],
    "user.json": {"id": "user-1", "email": "maya@example.org"},
    "file-x.png": b"\x89PNG",
}
SLACK_EXPORT: Mapping[str, Any] = {
    "users.json": [{"id": "U1", "profile": {"real_name": "Maya Chen"}}],
    "channels.json": [{"id": "C1", "name": "general", "topic": {"value": ""}}],
    "general/2023-11-14.json": [{"type": "message", "user": "U1", "text": "Hi", "ts": "1700000001.000200"}],
    "general/2023-11-15.json": [{"type": "message", "user": "U1", "text": "Yo", "ts": "1700090001.000200"}],
}


@pytest.fixture
def memory() -> Iterator[GraphMemory]:
    with GraphMemory.open("memory://", extractor="none", embeddings="none", background=False) as memory:
        yield memory


@pytest.fixture
def packed(tmp_path: Path) -> Packed:
    """Return what packs files into an archive; what is no text or bytes is written as JSON."""

    def pack(name: str, files: Mapping[str, Any]) -> Path:
        with zipfile.ZipFile(tmp_path / name, "w", zipfile.ZIP_DEFLATED) as archive:
            for at, content in files.items():
                archive.writestr(at, content if isinstance(content, (str, bytes)) else json.dumps(content))
        return tmp_path / name

    return pack


def stored_in(memory: GraphMemory) -> list[Episode]:
    backend = memory._engine.backend  # pyright: ignore[reportPrivateUsage]
    return list(backend.all_episodes([memory.scope], EpisodeQuery()))


def test_a_zipped_chatgpt_export_is_its_conversations_and_unpacked_the_same(
    memory: GraphMemory, packed: Packed, tmp_path: Path
) -> None:
    path = packed("export.zip", CHATGPT_EXPORT)
    with zipfile.ZipFile(path) as archive:
        archive.extractall(tmp_path / "unpacked")
    assert memory.ingest(path).stored == 2
    assert [e.text for e in stored_in(memory)] == ["I move to Oslo.", "Nice!"]
    again = memory.ingest(tmp_path / "unpacked")
    assert (again.received, again.known, again.stored) == (2, 2, 0)


def test_a_zipped_slack_export_has_its_channels_and_the_names_of_people(memory: GraphMemory, packed: Packed) -> None:
    assert memory.ingest(packed("slack.zip", SLACK_EXPORT)).stored == 2
    assert [(e.speaker, e.session_id, e.text) for e in stored_in(memory)] == [
        ("Maya Chen", "general", "Hi"),
        ("Maya Chen", "general", "Yo"),
    ]


def test_the_names_of_people_are_read_once_for_all_days(packed: Packed, monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[str] = []
    whole = Member.open

    def noted(member: Member) -> IO[bytes]:
        opened.append(member.at)
        return whole(member)

    monkeypatch.setattr(Member, "open", noted)
    days = {f"general/2023-11-{day:02}.json": SLACK_EXPORT["general/2023-11-14.json"] for day in range(1, 30)}
    for file in find_files([packed("slack.zip", {**SLACK_EXPORT, **days})]):
        with open_source(file) as source:
            assert [*read_items(source, print)]
    assert opened.count("users.json") == 2  # to see what it is, and to read it


def test_a_zipped_whatsapp_chat_is_called_as_its_archive(memory: GraphMemory, packed: Packed) -> None:
    chat = "[31.12.25, 23:59:07] Maya: Hi\n[31.12.25, 23:59:09] Maya: \u200e<attached: 1-PHOTO.jpg>\n"
    path = packed("WhatsApp Chat - Maya.zip", {"_chat.txt": chat, "1-PHOTO.jpg": b"\xff\xd8"})
    memory.ingest(path, timezone="Europe/Berlin")
    first, second = stored_in(memory)
    assert (first.session_id, first.occurred_at) == (
        "WhatsApp Chat - Maya",
        datetime(2025, 12, 31, 22, 59, 7, tzinfo=UTC),
    )
    assert second.text == "[image: 1-PHOTO.jpg]"


def test_hidden_files_and_archives_in_archives_are_left_out(packed: Packed) -> None:
    names = ("b.md", "a/c.md", ".git/d.md", "__MACOSX/._b.md", "inner.zip", "e.png")
    found = find_files([packed("notes.zip", dict.fromkeys(names, "x"))])
    assert [file.at for file in found if isinstance(file, Member)] == ["a/c.md", "b.md"]


def test_a_member_is_read_as_it_is_asked_for(packed: Packed) -> None:
    line = json.dumps({"text": "x" * 1000}) + "\n"
    [file] = find_files([packed("chat.zip", {"chat.jsonl": line * 3000})])
    with open_source(file) as source:
        next(read_items(source, print))
        assert source.size is not None
        assert source.position < 300_000 < source.size


def cut_off(data: bytes) -> bytes:
    return data[:-30]


def encrypted(data: bytes) -> bytes:
    """Set the flag of encryption in the headers of the only member."""
    local, central = data.index(b"PK\x03\x04") + 6, data.index(b"PK\x01\x02") + 8
    return bytes(byte | (i in (local, central)) for i, byte in enumerate(data))


@pytest.mark.parametrize(
    ("files", "spoil", "reason"),
    [
        ({"a.md": "x"}, cut_off, r"x\.zip: can't open the zip archive: File is not a zip file"),
        (
            {"[Content_Types].xml": "<x/>", "word/document.xml": "<x/>"},
            bytes,
            r"to be read in this zip archive; it holds \[Content_Types\]\.xml, word/document\.xml\. Save a .* as text",
        ),
        ({}, bytes, "it holds none"),
        ({"a.json": "[{}]"}, encrypted, "a.json, line 1: .* is encrypted.*; unpack the archive"),
        ({"a.jsonl": b"\n" * (65 << 20)}, bytes, "unpacks to 65 MiB, the limit is 64 MiB"),
    ],
    ids=["cut off", "docx", "empty", "encrypted", "bomb"],
)
def test_an_archive_that_can_t_be_read_says_why(
    memory: GraphMemory, packed: Packed, files: Mapping[str, Any], spoil: Callable[[bytes], bytes], reason: str
) -> None:
    path = packed("x.zip", files)
    path.write_bytes(spoil(path.read_bytes()))
    with pytest.raises(InvalidInput, match=reason):
        memory.ingest(path)


def test_a_damaged_member_is_refused_and_the_others_are_kept(memory: GraphMemory, tmp_path: Path) -> None:
    path = tmp_path / "x.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("a.jsonl", '{"text": "damaged"}\n')
        archive.writestr("b.jsonl", '{"text": "sound"}\n')
    path.write_bytes(path.read_bytes().replace(b"damaged", b"dAmaged"))
    report = memory.ingest(path, skip_invalid=True)
    assert [e.text for e in stored_in(memory)] == ["sound"]
    [rejected] = report.rejected
    assert rejected.item == "a.jsonl, line 1"
    assert "is damaged: Bad CRC-32" in rejected.reason


def test_turns_and_triples_of_a_folder_are_one_report(memory: GraphMemory, tmp_path: Path) -> None:
    (tmp_path / "chat.jsonl").write_text('{"text": "Hi"}\n{"text": ""}\n')
    (tmp_path / "facts.csv").write_text("subject,relation,object\nMaya,knows,Tom\n")
    report = memory.ingest(tmp_path, skip_invalid=True)
    assert (report.received, report.stored, report.edges, report.rejected_count) == (2, 2, 1, 1)
    assert [(r.item, r.reason) for r in report.rejected] == [("chat.jsonl, line 2", "text: missing or empty")]
    with pytest.raises(InvalidInput, match=r"chat\.jsonl, line 2: text: missing or empty"):
        memory.ingest(tmp_path)


def written(folder: Path, files: Mapping[str, str]) -> Path:
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return folder


def test_files_of_the_same_name_in_several_folders_are_told_apart(memory: GraphMemory, tmp_path: Path) -> None:
    cue = "WEBVTT\n\n00:00:01.000 --> 00:00:03.000\nAna: Hello everyone.\n"
    chat = "[13/03/26, 18:02:14] Mum: ok\n"
    files = {"may/talk.vtt": cue, "june/talk.vtt": cue, "Chat - Mum/_chat.txt": chat, "a/x.md": "# T\nHi\n"}
    folder = written(tmp_path / "in", {**files, "b/x.md": "# T\nHi\n", "c.md": "# T\nHi\n"})
    first, again = (memory.ingest(folder, timezone="UTC") for _ in range(2))
    assert (first.stored, again.stored, again.known) == (6, 0, 6)
    stored = stored_in(memory)
    assert sorted(one.session_id for one in stored if one.session_id) == ["Chat - Mum", "june/talk", "may/talk"]
    notes = sorted((one for one in stored if one.source == "document"), key=lambda one: str(one.metadata["file"]))
    assert [(one.title, one.metadata["file"]) for one in notes] == [("T", "a/x.md"), ("T", "b/x.md"), ("T", "c.md")]
    shown = [render_episode(one).split(", ", 1)[1].split(" (")[0] for one in notes]
    assert shown == ["T in a/x.md", "T in b/x.md", "T"]


def test_names_are_paths_in_the_given_folder_or_from_the_common_one(tmp_path: Path, packed: Packed) -> None:
    written(tmp_path, {"a/docs/x.md": "1", "b/docs/x.md": "2", "b/y.md": "3", "chat/_chat.txt": "4"})
    a, b = tmp_path / "a", tmp_path / "b"
    assert names_of(find_files([a]), [a]) == ["docs/x.md"]
    assert sorted(names_of(find_files([a, b]), [a, b])) == ["a/docs/x.md", "b/docs/x.md", "y.md"]
    assert names_of([a / "docs/x.md", b / "docs/x.md", b / "y.md"], []) == ["a/docs/x.md", "b/docs/x.md", "y.md"]
    assert names_of([b / "y.md", b / "y.md"], [b / "y.md"]) == ["y.md", "y.md"]
    assert names_of([tmp_path / "chat" / "_chat.txt"], []) == ["chat.txt"]
    archive = packed("z.zip", {"p/x.md": "1", "q/x.md": "2"})
    assert names_of(find_files([archive]), [archive]) == ["p/x.md", "q/x.md"]


def test_packages_templates_and_links_to_found_files_are_left_out(tmp_path: Path) -> None:
    notes = {"Templates/day.md": "# {{title}}\n", "Templates/howto.md": "Use them."}
    folder = written(tmp_path / "in", {"a.md": "Hi", "node_modules/x/b.md": "x", **notes})
    (tmp_path / "out.md").write_text("Outside")
    (folder / "link.md").symlink_to(folder / "a.md")
    (folder / "out.md").symlink_to(tmp_path / "out.md")
    unread = Counter[str]()
    found = find_files([folder], unread)
    assert names_of(found, [folder]) == ["a.md", "out.md", "Templates/howto.md"]
    assert unread == {"template": 1}


def test_json_of_a_folder_with_the_named_columns_is_read_and_other_json_counted(
    memory: GraphMemory, tmp_path: Path, packed: Packed
) -> None:
    files = {
        "crm.json": [{"Note": "Maya Chen called.", "id": 1}],
        "package.json": {"version": 1},
        "a.md": "Hi",
        "x.bin": "",
    }
    folder = written(tmp_path / "in", {name: json.dumps(each) for name, each in files.items()})
    for place in (folder, packed("in.zip", files)):
        memory.admin.clear()
        report = memory.ingest(place)
        assert (report.stored, report.unread_files) == (1, {"other JSON": 2, ".bin": 1})
        report = memory.ingest(place, columns={"text": "note"})
        assert (report.stored, report.unread_files) == (1, {"other JSON": 1, ".bin": 1})
    for export in (SLACK_EXPORT, CHATGPT_EXPORT):
        assert "other JSON" not in memory.ingest(packed("export.zip", export)).unread_files


def test_a_folder_that_cannot_be_listed_is_reported(
    memory: GraphMemory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, scandir = written(tmp_path / "in", {"a.md": "Hi", "b/c.md": "Secret", "d.md": "Bye"}), os.scandir

    def refuse(path: Any) -> Any:
        if Path(path).name in closed:
            raise PermissionError(13, "Permission denied", str(path))
        return scandir(path)

    monkeypatch.setattr(os, "scandir", refuse)
    for closed, stored in (("b",), 2), (("in",), 0):
        memory.admin.clear()
        report = memory.ingest(folder, skip_invalid=True)
        assert (report.stored, [one.item for one in report.rejected]) == (stored, [f"{closed[0]}, line 1"])


@pytest.mark.parametrize("update", [False, True])
@pytest.mark.parametrize(
    ("text", "options"),
    [
        ('{"text": "Maya Chen lives in Rome."}\n{"text": "Bye."}\n', {}),
        ('{"text": "Maya Chen lives in Rome."}\n{"text": "Bye."}\n', {"file_format": "turns"}),
        ("text,speaker,seen_at\nMaya Chen lives in Rome.,Tom,2025-01-01\nBye.,Tom,2025-01-01\n", {}),
    ],
)
def test_a_pipe_is_read_whole_and_once(memory: GraphMemory, text: str, options: Any, *, update: bool) -> None:
    end, begin = os.pipe()
    os.write(begin, text.encode())
    os.close(begin)
    report = memory.ingest(Path(f"/dev/fd/{end}"), update=update, **options)
    os.close(end)
    assert (report.stored, report.rejected_count, report.dated_by) == (2, 0, {})
    assert all("source_path" not in each.metadata for each in stored_in(memory))  # no path that could be read again


@pytest.mark.parametrize("name", ["latin-99", "hex", "rot13", "undefined"])
def test_what_is_no_encoding_of_texts_is_refused(name: str) -> None:
    with pytest.raises(InvalidInput, match=f"encoding: '{name}' is not one that Python knows, such as cp1252"):
        FileOptions(encoding=name)


def test_nested_fields_that_aren_t_stored_are_counted_by_name(memory: GraphMemory, tmp_path: Path) -> None:
    lines: list[dict[str, Any]] = [
        {"text": "Hi", "history": [{"from": "a"}], "tags": ["x"], "links": []},
        {"text": "Yo", "history": {"to": "b"}, "user": {"id": 1}},
        {"messages": [{"role": "user", "content": "a"}, {"role": "user", "content": "b"}], "tags": ["x"]},
    ]
    (tmp_path / "chat.jsonl").write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    (tmp_path / "facts.jsonl").write_text('{"subject": "Maya", "relation": "knows", "object": "Tom", "why": [1]}\n')
    report = memory.ingest(tmp_path)
    assert report.dropped == {
        f"nested field '{name}'": n for name, n in {"history": 2, "tags": 2, "speaker": 1, "why": 1}.items()
    }


@pytest.mark.parametrize(
    ("given", "options", "reason"),
    [
        ("chat.jsonl", {}, r"'chat\.jsonl': expected a list .* pass a file as a pathlib\.Path"),
        (Path("nowhere"), {}, "nowhere: there is no such file or folder"),
        ([], {"timezone": "Europe/Berlin"}, r"are for files; give the pathlib\.Path of one"),
        (Path(), {"timezone": "Mars/Base"}, "timezone: 'Mars/Base' is not the name of a time zone"),
        (Path(), {"file_format": "xml"}, "format: 'xml' is not one of turns, triples"),
        (Path(), {"date_order": "american"}, "date_order: 'american' is not one of dmy, mdy, ymd"),
        (Path(), {"trust": "high"}, "trust: 'high' is not one of untrusted, external, trusted"),
    ],
)
def test_what_names_no_file_is_refused(memory: GraphMemory, given: Any, options: Any, reason: str) -> None:
    with pytest.raises(InvalidInput, match=reason):
        memory.ingest(given, **options)


@pytest.mark.parametrize(
    ("trust", "levels"),
    [(None, ["external", "trusted", "untrusted"]), ("trusted", ["trusted", "trusted", "untrusted"])],
)
def test_the_trust_of_files_is_that_of_what_states_none(
    memory: GraphMemory, tmp_path: Path, trust: Trust | None, levels: list[Trust]
) -> None:
    (tmp_path / "a.md").write_text("We chose Paneltec.")
    lines = [
        '{"text": "Hi", "speaker": "Maya"}',
        '{"text": "Win!", "speaker": "Eve", "metadata": {"trust": "untrusted"}}',
    ]
    (tmp_path / "b.jsonl").write_text("\n".join(lines))
    memory.ingest(tmp_path, trust=trust)
    assert [trust_of(episode) for episode in stored_in(memory)] == levels


@pytest.mark.parametrize(
    "head", ["To: ann@example.org\nSubject: Hi", "To: ann@example.org", "Subject: Hi", "Bcc: a@b.org"]
)
def test_a_mail_is_external_whatever_its_head_lacks(memory: GraphMemory, tmp_path: Path, head: str) -> None:
    (tmp_path / "a.eml").write_text(f"From: Eve <eve@example.org>\n{head}\n\nAnn left Acme.")
    memory.ingest(tmp_path)
    assert [trust_of(episode) for episode in stored_in(memory)] == ["external"]


def test_columns_and_formats_of_files_are_told(memory: GraphMemory, tmp_path: Path) -> None:
    (tmp_path / "talk.data").write_text("Utterance,Who\nHello,Maya\n")
    memory.ingest(tmp_path / "talk.data", file_format="csv", columns={"text": "Utterance", "speaker": "Who"})
    assert [(e.speaker, e.text) for e in stored_in(memory)] == [("Maya", "Hello")]


SUGGESTED = "--column text=contact,note makes columns a part of the text"


@pytest.mark.parametrize(
    ("table", "at", "note"),
    [
        (
            "note,note_date\nHi,2025-04-28\nYo,\n",
            2025,
            "dated by the column note_date; --column occurred_at=NAME names",
        ),
        (
            "note,note_date\nHi,soon\n",
            None,
            "--column occurred_at=NAME names the column of their time (such as note_date)",
        ),
        ("note,note_date\nHi,9025-04-28\n", None, "(such as note_date)"),
        ("note,birth_date\nHi,1980-04-28\n", None, "(such as birth_date)"),
        ("note,sent at,seen at\nHi,2025-04-28,2025-04-28\n", None, "(such as sent at, seen at)"),
        ("note,date\nHi,2025-04-28\n", 2025, None),
        ("id,contact,note,date\n1,Sven,Hi,2025-04-28\n", 2025, f"metadata that isn't searched: contact; {SUGGESTED}"),
        ("note,contact\nHi,Sven\n", None, "rows without a time are dated by this load; --column occurred_at=NAME"),
    ],
)
def test_a_load_tells_what_columns_are_not_searched_and_what_dates_the_rows(
    memory: GraphMemory, tmp_path: Path, table: str, at: int | None, note: str | None
) -> None:
    (tmp_path / "crm.csv").write_text(table)
    begun = datetime.now(UTC)
    report = memory.ingest(tmp_path, columns={"text": "note"})
    dated = next(episode.occurred_at for episode in stored_in(memory))
    assert dated.year == at if at else dated >= begun
    assert (note or "") in " | ".join(report.notes)
    assert bool(note) == bool(report.notes)
    assert all(each.startswith("crm.csv: ") for each in report.notes)


def test_known_records_whose_fields_differ_are_counted_and_stay(memory: GraphMemory, tmp_path: Path) -> None:
    header = "external_id,author,status,created_at,text\n"
    rows = ["B-1,Olu,Open,2025-01-06,Camera crashes.", "B-2,Ann,Open,2025-01-07,No sound.", "B-3,Li,Open,,Slow."]
    path = tmp_path / "bugs.csv"
    path.write_text(header + "\n".join(rows))
    assert memory.ingest(path).differing == 0
    for old, new, differing in (("", "", 0), ("Open", "Fixed", 3), ("01-06", "01-08", 1), ("Slow", "Very slow", 1)):
        path.write_text(header + "\n".join(rows).replace(old, new) if old else path.read_text())
        report = memory.ingest(path)
        assert (report.stored, report.known, report.differing) == (0, 3, differing)
    assert {episode.metadata["status"] for episode in stored_in(memory)} == {"Open"}
    page = tmp_path / "page.md"
    for text in ("# A\n\nHi", "\n\n# A\n\nHi"):
        page.write_text(text)
        os.utime(page, (len(text), len(text)))
        report = memory.ingest(page)
    assert (report.known, report.differing) == (1, 0)


def test_a_load_counts_the_bytes_of_members_as_they_are_unpacked(memory: GraphMemory, packed: Packed) -> None:
    load = FileLoad(find_files([packed("slack.zip", SLACK_EXPORT)]))
    load.run(memory)
    assert (
        load.bytes_read
        == load.bytes_in_all()
        == sum(len(json.dumps(SLACK_EXPORT[at])) for at in SLACK_EXPORT if "/" in at)
    )


MODIFIED = datetime(2026, 5, 1, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("name", "text", "zone", "at", "by"),
    [
        ("2025-03-14.md", "Hi", None, "2025-03-14T00:00Z", "name"),
        ("2025-03-14 Standup.txt", "Hi", None, "2025-03-14T00:00Z", "name"),
        ("2025-03-14.md", "Hi", "Europe/Berlin", "2025-03-13T23:00Z", "name"),
        ("Standup_2025_03_14_b.html", "<p>Hi</p>", None, "2025-03-14T00:00Z", "name"),
        (
            "GMT20250314-090000_Recording.vtt",
            "WEBVTT\n\n00:01.000 --> 00:02.000\nHi",
            None,
            "2025-03-14T00:00Z",
            "name",
        ),
        ("2025-03-14.eml", "Subject: Hi\n\nHi", None, "2025-03-14T00:00Z", "name"),
        ("2025-03-14.md", "---\ndate: 2025-04-01\n---\nHi", None, "2025-04-01T00:00Z", "front matter"),
        ("a.md", "---\ndate: '[[2025-04-01]]'\n---\nHi", None, "2025-04-01T00:00Z", "front matter"),
        ("a.md", "---\nDate: 2025-04-01 09:30:00 +0200\n---\nHi", None, "2025-04-01T07:30Z", "front matter"),
        ("a.md", "---\ndate: 2025-04-01T09:30\n---\nHi", "Europe/Berlin", "2025-04-01T07:30Z", "front matter"),
        ("a.md", "---\ndate: 2025-04-01T09:30\n---\nHi", None, "2025-04-01T00:00Z", "front matter"),
        ("2025-03-14.md", "---\ndate: 2025-13-01\n---\nHi", None, "2025-03-14T00:00Z", "name"),
        ("2031-01-01 Plan.md", "Hi", None, None, "modification time"),
        ("2025-03-01 to 2025-03-07.md", "Hi", None, None, "modification time"),
        ("2025-02-30.md", "Hi", None, None, "modification time"),
        ("Minutes 14 March 2025.md", "Hi", None, "2025-03-14T00:00Z", "name"),
        ("notes_Aug_2024.txt", "Hi", None, "2024-08-31T00:00Z", "name"),
        ("Half-year report 2025.md", "Hi", None, None, "modification time"),
        ("May 2025 to June 2025.md", "Hi", None, None, "modification time"),
        ("March and April 2025.md", "Hi", None, None, "modification time"),
        ("Room May 1234.md", "Hi", None, None, "modification time"),
        ("March 2025/Minutes April 2025.md", "Hi", None, "2025-04-30T00:00Z", "name"),
        ("order 120250314.md", "Hi", None, None, "modification time"),
        ("Phone list 2025-10.txt", "Hi", None, "2025-10-31T00:00Z", "name"),
        ("v2025.10.3.md", "Hi", None, None, "modification time"),
        ("a.md", "# Wiki\n\n*Basics > Who. Last edited 4 March 2025 by Sam W. Hi.*", None, "2025-03-04T00:00Z", "text"),
        ("a.txt", "Ann Lee, accounts, 21 July 2025. For the board.", None, "2025-07-21T00:00Z", "text"),
        (
            "a.txt",
            "For the folder, LJ, 28 March 2025. The contract was signed on 27 March.",
            None,
            "2025-03-28T00:00Z",
            "text",
        ),
        ("a.txt", "Version 7, Monday 3 March 2025", None, "2025-03-03T00:00Z", "text"),
        ("a.html", "<p>Status of this page: 3 March 2025</p><p>Hi</p>", None, "2025-03-03T00:00Z", "text"),
        ("a.txt", "Facts as of 3 March 2025 follow.", None, "2025-03-03T00:00Z", "text"),
        ("2025-03-14.md", "Updated 4 March 2025", None, "2025-03-14T00:00Z", "name"),
        ("a.txt", "Updated 4 March 2031", None, None, "modification time"),
        ("a.txt", "The show opens Friday, 28 March 2025.", None, None, "modification time"),
        ("a.txt", "New opening date: Friday 28 March 2025.", None, None, "modification time"),
        ("a.txt", "When: 28 March 2025", None, None, "modification time"),
        ("a.txt", "Open from 1 to 28 March 2025", None, None, "modification time"),
        ("a.md", "# Concert, 28 March 2025\n\nHi", None, None, "modification time"),
        ("a.txt", "Hi\n" * 12 + "Oslo, 28 March 2025", None, None, "modification time"),
        ("a.txt", "Date: Mon, 3 March 2025 10:00", None, "2025-03-03T00:00Z", "text"),
        ("a.txt", "This page was last revised on 3 March 2025, at 10:00", None, "2025-03-03T00:00Z", "text"),
        ("a.txt", "Draft of 3 March 2025", None, "2025-03-03T00:00Z", "text"),
        ("a.txt", "Ann Lee, born 3 May 1962.", None, None, "modification time"),
        ("a.txt", "Born 3 May 1982", None, None, "modification time"),
        ("a.txt", "On 3 March 2025", None, None, "modification time"),
        ("a.txt", "Date of birth: 3 May 1982", None, None, "modification time"),
        ("a.txt", "Status: retired since 3 May 2019", None, None, "modification time"),
        ("a.txt", "Contract with Acme, signed 3 May 2019.", None, None, "modification time"),
        ("a.txt", "Expires 31 December 2025", None, None, "modification time"),
        ("a.txt", "Created by the Act of 3 May 2010.", None, None, "modification time"),
        ("a.txt", "Her first novel was published on 3 May 1990.", None, None, "modification time"),
        ("a.txt", "This page will be updated on 3 April 2026", None, None, "modification time"),
        ("a.txt", "She left the company as of 3 March 2025.", None, None, "modification time"),
        ("a.txt", "Ann Lee (3 May 1982)", None, None, "modification time"),
        ("a.md", "| Ann | since |\n|---|---|\n| Lee | 3 May 2019 |", None, None, "modification time"),
        ("a.md", "- Ann Lee, 3 March 2019\n- Last edited: 3 March 2025", None, "2025-03-03T00:00Z", "text"),
        ("a.md", "> Oslo, 3 March 2025\n\nHi", None, None, "modification time"),
    ],
)
def test_a_text_has_the_date_in_its_front_matter_or_name_or_text_or_else_that_of_its_file(
    memory: GraphMemory, tmp_path: Path, name: str, text: str, zone: str | None, at: str | None, by: str
) -> None:
    path = tmp_path / name
    path.parent.mkdir(exist_ok=True)
    path.write_text(text)
    os.utime(path, (MODIFIED.timestamp(), MODIFIED.timestamp()))
    report = memory.ingest(tmp_path, timezone=zone)
    [episode] = stored_in(memory)
    assert episode.occurred_at == (MODIFIED if at is None else datetime.fromisoformat(at))
    assert report.dated_by == {by: 1}
    assert ("undated" in episode.metadata) == (by == "modification time" and not name.endswith(".eml"))


@pytest.mark.parametrize("names", [("a.md", "b.md", "c.jsonl"), ("c.md", "b.md", "a.jsonl")])
def test_files_are_read_in_the_order_of_their_times(
    memory: GraphMemory, tmp_path: Path, names: tuple[str, str, str]
) -> None:
    second, first, last = names
    (tmp_path / second).write_text("Updated 4 March 2025\n\nsecond")
    (tmp_path / first).write_text("---\ndate: 2025-03-03\n---\nfirst")
    (tmp_path / last).write_text('{"text": "last"}\n')
    (tmp_path / "0.jsonl").write_text('{"subject": "Ana", "relation": "knows", "object": "Bob"}\n')
    memory.ingest(tmp_path)
    said = [episode.text.split()[-1] for episode in stored_in(memory) if episode.source != "triple"]
    assert said == ["first", "second", "last"]


def test_a_dry_run_tells_what_dates_files_and_mail_with_a_date_is_dated_by_itself(
    memory: GraphMemory, tmp_path: Path
) -> None:
    for name, text in (
        ("2025-03-14.md", "Hi"),
        ("2025-03-15.md", "Ho"),
        ("a.txt", "Hm"),
        ("2025-03-16.eml", "Subject: Hi\nDate: Fri, 14 Mar 2025 09:00:00 +0000\n\nHi"),
    ):
        (tmp_path / name).write_text(text)
    assert memory.ingest(tmp_path, dry_run=True).dated_by == {"name": 2, "modification time": 1}


def test_what_precedes_an_unreadable_record_of_a_folder_is_stored(tmp_path: Path, memory: GraphMemory) -> None:
    for name, line in (("a.jsonl", '{"text": "one"}'), ("b.jsonl", "{"), ("c.jsonl", '{"text": "three"}')):
        (tmp_path / name).write_text(f"{line}\n")

    with pytest.raises(InvalidInput, match=r"b.jsonl, line 1: .*; what precedes it is stored, and skip_invalid=True"):
        memory.ingest(tmp_path)
    stored = [episode.text for episode in stored_in(memory)]
    report = memory.ingest(tmp_path, skip_invalid=True)

    assert stored == ["one"]
    assert (report.stored, report.known, report.rejected_count) == (1, 1, 1)
