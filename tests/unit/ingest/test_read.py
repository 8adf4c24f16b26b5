from __future__ import annotations

import csv
import io
import json
import os
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from graphmem.errors import InvalidInput
from graphmem.ingest.files import find_files
from graphmem.ingest.readers import (
    MAX_LINE_BYTES,
    Format,
    Refused,
    guess_format,
    open_source,
    read_items,
    read_triples,
)
from graphmem.inputs import Document, Triple, Turn
from graphmem.models import Scope


def items_of(path: Path, **options: Any) -> tuple[list[Turn | Document], list[Refused]]:
    refused: list[Refused] = []
    with open_source(path, **options) as source:
        return list(read_items(source, refused.append)), refused


def triples_of(path: Path, **options: Any) -> tuple[list[Triple], list[Refused]]:
    refused: list[Refused] = []
    with open_source(path, **options) as source:
        assert source.holds_triples
        return list(read_triples(source, refused.append)), refused


def written(folder: Path, name: str, *lines: object) -> Path:
    path = folder / name
    texts = [line if isinstance(line, str) else json.dumps(line) for line in lines]
    path.write_text("".join(f"{text}\n" for text in texts), encoding="utf-8")
    return path


def test_a_turn_has_all_its_fields(tmp_path: Path) -> None:
    path = written(
        tmp_path,
        "chat.jsonl",
        {
            "text": "Hi",
            "speaker": "Mara",
            "role": "user",
            "session_id": "s1",
            "occurred_at": "2025-03-14T18:00:00+01:00",
            "external_id": "t1",
            "metadata": {"mood": "good"},
        },
    )

    [turn], refused = items_of(path)

    assert turn == Turn(
        text="Hi",
        speaker="Mara",
        role="user",
        session_id="s1",
        occurred_at=datetime(2025, 3, 14, 17, tzinfo=UTC),
        external_id="t1",
        metadata={"utc_offset": "+0100", "mood": "good"},
    )
    assert refused == []


@pytest.mark.parametrize(
    ("line", "text", "speaker", "role"),
    [
        ({"content": "Hi", "author": "Tom"}, "Hi", "Tom", None),
        ({"content": "Hi", "name": "Tom", "role": "user"}, "Hi", "Tom", "user"),
        ({"message": "Hi", "user": "Tom"}, "Hi", "Tom", None),
        ({"role": "assistant", "content": "Hi"}, "Hi", None, "assistant"),
        ({"role": "user", "content": [{"type": "text", "text": "Hi"}, {"type": "image_url"}]}, "Hi", None, "user"),
        ({"type": "human", "content": "Hi"}, "Hi", None, "user"),
        ({"type": "ai", "data": {"content": "Hi"}}, "Hi", None, "assistant"),
    ],
)
def test_other_names_of_fields_are_understood(
    tmp_path: Path, line: dict[str, Any], text: str, speaker: str | None, role: str | None
) -> None:
    [turn], _ = items_of(written(tmp_path, "chat.jsonl", line))

    assert isinstance(turn, Turn)
    assert (turn.text, turn.speaker, turn.role) == (text, speaker, role)


def test_a_type_that_is_no_text_is_a_nested_field(tmp_path: Path) -> None:
    [turn], refused = items_of(written(tmp_path, "chat.jsonl", {"text": "Hi", "type": {"a": 1}}))

    assert (turn.text, turn.metadata, refused) == ("Hi", {}, [])


def test_a_line_of_messages_is_a_session_of_turns(tmp_path: Path) -> None:
    line = {"session_id": "s", "messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}]}

    turns, refused = items_of(written(tmp_path, "chat.jsonl", line))

    assert [(t.text, t.session_id) for t in turns if isinstance(t, Turn)] == [("a", "s"), ("b", "s")]
    assert len({t.external_id for t in turns}) == 2
    assert refused == []


def test_comments_and_replies_are_turns_of_the_session_of_their_record(tmp_path: Path) -> None:
    replies = [{"user": {"login": "ann"}, "body": "Me too."}]
    comments = [{"author": "Tom", "body": "Reset.", "created_at": "2025-02-03", "replies": replies}, {"author": "Li"}]
    ticket = {"id": 7, "author": "Priya", "body": "Wrong VAT.", "comments": comments, "status": "open"}
    topics = [{"text": "Hi", "user": "Bo", "entities": [{"text": "Bo"}], "notes": [{"text": "Yo", "user": "Cy"}]}] * 2

    turns, [refused] = items_of(written(tmp_path, "tickets.jsonl", ticket))
    unnumbered, _ = items_of(written(tmp_path, "topics.jsonl", *topics))

    assert [(t.text, t.speaker, t.session_id) for t in turns if isinstance(t, Turn)] == [
        ("Wrong VAT.", "Priya", "7"),
        ("Reset.", "Tom", "7"),
        ("Me too.", "ann", "7"),
    ]
    assert turns[1].occurred_at == datetime(2025, 2, 3, tzinfo=UTC)
    assert turns[0].metadata == {"id": 7, "status": "open"}
    assert (refused.line, refused.reason) == (1, "text: missing or empty")
    assert [t.text for t in unnumbered] == ["Hi", "Yo"] * 2
    assert len({t.session_id for t in unnumbered if isinstance(t, Turn)} - {None}) == 1


@pytest.mark.parametrize("name", ["tickets.json", "tickets.jsonl"])
def test_fields_of_json_with_other_names_are_told_like_columns(tmp_path: Path, name: str) -> None:
    records = [{"Description": "The app crashes.", "owner": "Ann", "text": "x"}, {"owner": "Bob", "at": 1}]
    lines = [records] if name == "tickets.json" else records

    turns, [refused] = items_of(written(tmp_path, name, *lines), columns={"text": "description", "speaker": "owner"})

    assert [(t.text, t.speaker, t.metadata) for t in turns if isinstance(t, Turn)] == [("The app crashes.", "Ann", {})]
    assert (refused.line, refused.reason) == (
        2,
        "text: missing or empty; --column text=NAME names the field that holds it, such as at",
    )


def test_json_without_a_text_says_how_to_name_its_field(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match=r"fields owner, note; .* --column text=NAME names the field\)"):
        items_of(written(tmp_path, "notes.json", [{"owner": "Ann", "note": "Hi"}]))


def test_a_turn_with_a_title_is_a_document(tmp_path: Path) -> None:
    [item], _ = items_of(written(tmp_path, "pages.jsonl", {"title": "Rome", "text": "Rome is a city.", "speaker": "x"}))

    assert isinstance(item, Document)
    assert (item.title, item.metadata) == ("Rome", {"speaker": "x"})


def test_unknown_scalar_fields_are_kept_as_metadata_and_nested_ones_are_left_out(tmp_path: Path) -> None:
    [turn], _ = items_of(written(tmp_path, "chat.jsonl", {"text": "Hi", "channel": "ops", "reactions": [1]}))

    assert turn.metadata == {"channel": "ops"}


def test_turns_without_an_id_get_the_same_one_each_time_and_repeated_words_stay_apart(tmp_path: Path) -> None:
    path = written(tmp_path, "chat.jsonl", {"text": "ok"}, {"text": "ok"})

    first, _ = items_of(path)
    second, _ = items_of(path)

    assert [t.external_id for t in first] == [t.external_id for t in second]
    assert len({t.external_id for t in first}) == 2


def test_ids_don_t_hang_on_the_line_nor_on_comments_that_came_later(tmp_path: Path) -> None:
    rated = [{"text": "yes", "person": n} for n in (1, 2)]
    rows: list[dict[str, Any]] = [
        *rated,
        {"text": "ok"},
        {"text": "ok"},
        {"text": "a", "thread_id": "t"},
        {"text": "b", "id": 4},
    ]
    said = {"text": "Yo", "author": "Cy"}

    before, _ = items_of(written(tmp_path, "rows.jsonl", *rows))
    after, _ = items_of(written(tmp_path, "rows.jsonl", {"text": "yes", "person": 3}, *reversed(rows)))
    rows[-2]["replies"] = rows[-1]["replies"] = [said]
    told, _ = items_of(written(tmp_path, "rows.jsonl", *rows))

    ids = {item.external_id for item in before}
    assert len(ids) == 6
    assert {item.external_id for item in after[1:]} == ids
    assert after[0].external_id not in ids
    assert ids < {item.external_id for item in told}
    assert "thread_id" not in told[4].metadata
    assert [item.session_id for item in told if isinstance(item, Turn) and item.speaker][1] == "4"


def test_running_numbers_as_ids_don_t_collide_between_files(tmp_path: Path) -> None:
    [one], _ = items_of(written(tmp_path, "a.jsonl", {"id": 1, "text": "a"}))
    [other], _ = items_of(written(tmp_path, "b.jsonl", {"id": 1, "text": "b"}))

    assert one.external_id != other.external_id


def test_a_malformed_line_is_refused_with_its_number_and_the_others_are_kept(tmp_path: Path) -> None:
    lines: list[object] = [{"text": f"line {n}"} for n in range(1, 11)]
    lines[6] = '{"text": "line 7'

    turns, refused = items_of(written(tmp_path, "chat.jsonl", *lines))

    assert [t.text for t in turns] == [f"line {n}" for n in (1, 2, 3, 4, 5, 6, 8, 9, 10)]
    assert [(r.source, r.line) for r in refused] == [("chat.jsonl", 7)]
    assert refused[0].reason.startswith("not JSON: ")


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ('{"text": ""}', "text: missing or empty"),
        ('{"speaker": "Mara"}', "text: missing or empty"),
        ('{"role": "assistant", "content": null}', "text: missing or empty"),
        ("[1, 2]", "expected an object with text"),
        ('{"text": "a", "occurred_at": "2025-03-14T18:00:00"}', "occurred_at: '2025-03-14T18:00:00' has no time zone"),
        ('{"text": "a", "timestamp": "soon"}', "occurred_at: 'soon' is not a time"),
        ('{"text": "a", "timestamp": 17419}', "occurred_at: '17419' is not a time"),
        ('{"text": "a", "metadata": [1]}', "metadata: expected an object"),
        ('{"text": "a", "metadata": {"x": {"y": 1}}}', "metadata: 'x' is a dict"),
        ('{"text": "a", "speaker": 1.5}', "speaker"),
        ('{"role": "tool", "content": ' + "[" * 90 + '"a"' + "]" * 90 + "}", "content: lists are nested"),
        ('{"text": "a", "tool_calls": [{"id": {}}]}', "ToolCall.id"),
        ('{"text": "a", "score": NaN}', "not JSON: NaN"),
        ("[" * 100_000, "not JSON"),
    ],
)
def test_a_line_that_can_t_be_taken_says_why(tmp_path: Path, line: str, reason: str) -> None:
    turns, [refused] = items_of(written(tmp_path, "chat.jsonl", {"text": "good"}, line, {"text": "good"}))

    assert reason in refused.reason
    assert refused.line == 2
    assert len(turns) == 2


def test_a_line_that_is_not_utf_8_and_one_that_is_too_long_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "chat.jsonl"
    long = b'{"text": "' + b"a" * (MAX_LINE_BYTES + 10) + b'"}'
    path.write_bytes(b'{"text": "\xc3\xa4"}\n{"text": "caf\xe9"}\n' + long + b'\n{"text": "b"}')

    turns, refused = items_of(path)

    assert [t.text for t in turns] == ["ä", "b"]
    assert [(r.line, r.reason) for r in refused] == [(2, "not UTF-8 (byte 0xe9 at 14)"), (3, "longer than 4 MiB")]


def test_a_byte_order_mark_is_passed_over(tmp_path: Path) -> None:
    path = tmp_path / "chat.jsonl"
    path.write_bytes(b'\xef\xbb\xbf{"text": "a"}\r\n')

    assert [t.text for t in items_of(path)[0]] == ["a"]


def test_naive_times_take_the_zone_that_is_given(tmp_path: Path) -> None:
    path = written(
        tmp_path, "chat.jsonl", {"text": "a", "date": "2025-07-01T12:00:00"}, {"text": "b", "date": "2025-07-01"}
    )

    turns, refused = items_of(path, zone=ZoneInfo("Europe/Berlin"))

    assert [t.occurred_at for t in turns] == [
        datetime(2025, 7, 1, 10, tzinfo=UTC),
        datetime(2025, 6, 30, 22, tzinfo=UTC),
    ]
    assert refused == []


def test_a_day_of_a_fact_is_that_day_in_any_zone(tmp_path: Path) -> None:
    fact = {"subject": "Maya", "relation": "lives_in", "object": "Oslo"}
    path = written(tmp_path, "facts.jsonl", {**fact, "valid_from": "2025-07-01", "valid_to": "2025-07-02T00:00:00"})

    [triple], _ = triples_of(path, zone=ZoneInfo("Europe/Berlin"))

    assert triple.valid_from == datetime(2025, 7, 1, tzinfo=UTC)
    assert triple.valid_to == datetime(2025, 7, 1, 22, tzinfo=UTC)


def test_a_fact_that_begins_and_ends_on_a_date_holds_on_that_day(tmp_path: Path) -> None:
    day = {"valid_from": "2024-05-01", "valid_to": "2024-05-01"}
    fact = {"subject": "Maya", "relation": "visited", "object": "Paris", **day}

    [read], _ = triples_of(written(tmp_path, "facts.jsonl", fact), zone=ZoneInfo("Europe/Berlin"))

    assert read.valid_from == datetime(2024, 5, 1, tzinfo=UTC)
    assert read.valid_to == Triple.of(fact).valid_to == datetime(2024, 5, 2, tzinfo=UTC)


def test_the_clock_of_whoever_wrote_is_kept_and_ids_don_t_hang_on_it(tmp_path: Path) -> None:
    ids: set[str | None] = set()
    for written in ("2025-03-14T18:00:00+01:00", "2025-03-14T17:00:00Z"):
        path = tmp_path / "talk.jsonl"
        path.write_text(json.dumps({"text": "hello", "occurred_at": written}))
        [turn], _ = items_of(path)
        assert turn.to_episode(Scope("d")).local_time.isoformat() == written.replace("Z", "+00:00")
        ids.add(turn.external_id)
    assert len(ids) == 1


def test_triples_of_json_lines_are_objects_or_lists(tmp_path: Path) -> None:
    path = written(
        tmp_path,
        "facts.jsonl",
        ["Rome", "capital of", "Italy"],
        {"subject": "Ada", "predicate": "knows", "object": "Babbage", "confidence": 0.5, "note": "x"},
    )

    triples, refused = triples_of(path)

    assert triples == [
        Triple(subject="Rome", relation="capital of", object="Italy"),
        Triple(subject="Ada", relation="knows", object="Babbage", confidence=0.5, metadata={"note": "x"}),
    ]
    assert refused == []


@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
def test_triples_of_csv_have_the_fields_of_the_header(tmp_path: Path, delimiter: str) -> None:
    header = ["Subject", "Relation", "Object", "subject_type", "valid_from", "confidence", "source", "note"]
    row = ["Ada", "works_at", '"Engines' + delimiter + ' Ltd"', "person", "1842-01-01", "0.9", "e1", ""]
    path = written(tmp_path, "facts.csv", delimiter.join(header), delimiter.join(row))

    [triple], refused = triples_of(path)

    assert triple == Triple(
        subject="Ada",
        relation="works_at",
        object=f"Engines{delimiter} Ltd",
        subject_type="person",
        valid_from=datetime(1842, 1, 1, tzinfo=UTC),
        confidence=0.9,
        source="e1",
    )
    assert refused == []


def test_a_row_that_names_no_speaker_is_a_document(tmp_path: Path) -> None:
    notes = written(tmp_path, "crm.csv", "id,text,owner", '7,"Moved from Seattle to Oakland.",Felix')
    ((note,), _) = items_of(notes)
    assert isinstance(note, Document)
    assert (note.text, note.metadata["owner"]) == ("Moved from Seattle to Oakland.", "Felix")
    for column in ("speaker", "role", "session_id"):
        ((turn,), _) = items_of(written(tmp_path, "chat.csv", f"text,{column}", "I moved.,user"))
        assert isinstance(turn, Turn)


def test_an_open_quote_in_csv_costs_its_own_line_only(tmp_path: Path) -> None:
    path = written(
        tmp_path,
        "facts.csv",
        "subject,relation,object,fact",
        'Ada,knows,"Bob,x',
        "Cid,knows,Dora,",
        'Eve,knows,Fred,"two\nlines"',
        "Gus,knows,Hilda,",
    )

    triples, refused = triples_of(path)

    assert [t.subject for t in triples] == ["Cid", "Eve", "Gus"]
    assert triples[1].fact == "two\nlines"
    assert [r.line for r in refused] == [2]


@pytest.mark.parametrize(
    "line", ["Hi Tom, the pump is broken, again", 'He said ""no"", twice', '  ""key"": ""value"",', ""]
)
def test_a_cell_of_csv_may_have_many_lines(tmp_path: Path, line: str) -> None:
    cell = "\n".join(["Ticket:", *[line] * 3000, "Bye"])
    path = written(tmp_path, "tickets.csv", "id,text,speaker", f'1,"{cell}",Maya', '2,"Short",Tom')

    turns, refused = items_of(path)

    assert not refused
    assert [(turn.text, turn.metadata["id"]) for turn in turns] == [(cell.replace('""', '"'), "1"), ("Short", "2")]


@pytest.mark.parametrize("line", ["<p>Hi, Tom,</p>\n", "<p>Hi, Tom,</p>"])
def test_a_cell_of_csv_may_be_long(tmp_path: Path, line: str) -> None:
    limit, cell = csv.field_size_limit(), line * 20_000
    path = written(tmp_path, "mails.csv", "id,text,speaker", f'1,"{cell}",Maya', '2,"Short",Tom')

    turns, refused = items_of(path)

    assert not refused
    assert [turn.text for turn in turns] == [cell.strip(), "Short"]
    assert csv.field_size_limit() == limit


def test_an_open_quote_in_csv_before_many_lines_costs_its_own_line_only(tmp_path: Path) -> None:
    rows = [f"{number},Hello" for number in range(3000)]
    path = written(tmp_path, "chat.csv", "id,text", '1,"Open', *rows, '2,"Closed"', '3,"Open, too', *rows)

    turns, refused = items_of(path)

    assert len(turns) == 6001
    assert [r.line for r in refused] == [2, 3004]


def test_a_csv_row_with_another_number_of_fields_is_refused(tmp_path: Path) -> None:
    path = written(tmp_path, "facts.csv", "subject,relation,object", "Ada,knows,Bob,Cid", "Ada,knows,Bob")

    triples, [refused] = triples_of(path)

    assert len(triples) == 1
    assert str(refused) == "facts.csv, line 2: 4 fields, the header has 3"


def test_a_csv_file_without_a_header_is_refused_as_a_whole(tmp_path: Path) -> None:
    triples, [refused] = triples_of(written(tmp_path, "facts.csv", "Ada,knows,Bob", "Cid,knows,Dora"))

    assert triples == []
    assert "triples need the columns subject, relation and object, a chat needs text" in refused.reason


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"object": ""}, "object: missing or empty"),
        ({"edge_type": "Semantic"}, "edge_type: 'Semantic' is not one of"),
        ({"confidence": 1.5}, "confidence"),
        ({"confidence": "NaN"}, "confidence"),
        ({"valid_from": "2025-01-02", "valid_to": "2025-01-01"}, "valid_to"),
        ({"valid_from": "2025-01-02T09:00Z", "valid_to": "2025-01-02T09:00Z"}, "valid_to"),
        ({"object": "Ada"}, "object: 'Ada' is the same as the subject"),
        ({"object": "x"}, "entity name 'x'"),
        ({"relation": "…"}, "relation '…'"),
    ],
)
def test_a_triple_that_can_t_be_stored_is_refused_where_its_line_is_known(
    tmp_path: Path, fields: dict[str, Any], reason: str
) -> None:
    good = {"subject": "Ada", "relation": "knows", "object": "Bob"}

    triples, [refused] = triples_of(written(tmp_path, "facts.jsonl", good, {**good, **fields}))

    assert reason in refused.reason
    assert refused.line == 2
    assert len(triples) == 1


def test_short_names_that_are_allowed_are_kept(tmp_path: Path) -> None:
    [triple], _ = triples_of(written(tmp_path, "facts.jsonl", ["Ada", "uses", "Go"]))

    assert triple.object == "Go"


def test_markdown_is_cut_at_headings_with_their_path_as_title(tmp_path: Path) -> None:
    path = written(
        tmp_path,
        "guide.md",
        "Before.\n\n# Guide\n\n## Install ##\n\nGet it.\n\n```sh\n# not a heading\n```\n",
        "Usage\n-----\n\nRun it.\n\n---\n\nEnd.",
    )

    documents, refused = items_of(path)

    assert [(d.title, d.text) for d in documents if isinstance(d, Document)] == [
        ("guide", "Before."),
        ("Guide > Install", "Get it.\n\n```sh\n# not a heading\n```"),
        ("Guide > Usage", "Run it.\n\nEnd."),
    ]
    assert refused == []


def test_front_matter_is_no_text_and_its_title_is_used(tmp_path: Path) -> None:
    path = written(tmp_path, "note.md", '---\ntitle: "My note"\ntags: [a]\n---\nText.')

    [document], _ = items_of(path)

    assert isinstance(document, Document)
    assert (document.title, document.text) == ("My note", "Text.")


def test_a_rule_at_the_start_is_no_front_matter(tmp_path: Path) -> None:
    [document], _ = items_of(written(tmp_path, "note.md", "---\n\nText."))

    assert document.text == "Text."


def test_long_text_is_cut_at_paragraphs_and_nothing_is_lost(tmp_path: Path) -> None:
    paragraphs = [f"Paragraph {n}. " + "word " * 60 for n in range(30)]
    path = written(tmp_path, "long.txt", *(f"{p}\n" for p in paragraphs))

    documents, _ = items_of(path)

    assert all(len(d.text) <= 2000 for d in documents)
    assert " ".join(" ".join(d.text for d in documents).split()) == " ".join(" ".join(paragraphs).split())
    assert all(d.text.startswith("Paragraph") for d in documents)


def test_a_paragraph_that_is_too_long_is_cut_at_sentences(tmp_path: Path) -> None:
    text = " ".join(f"This is sentence number {n}." for n in range(400))

    documents, _ = items_of(written(tmp_path, "long.txt", text))

    assert all(len(d.text) <= 2000 and d.text.endswith(".") for d in documents)
    assert " ".join(d.text for d in documents) == text


def test_documents_keep_their_ids_until_their_text_changes(tmp_path: Path) -> None:
    path = written(tmp_path, "guide.md", "# One\n\nFirst.\n\n# Two\n\nSecond.")
    before = [d.external_id for d in items_of(path)[0]]

    written(tmp_path, "guide.md", "# One\n\nFirst.\n\n# Two\n\nChanged.")
    after = [d.external_id for d in items_of(path)[0]]

    assert before[0] == after[0]
    assert before[1] != after[1]


@pytest.mark.parametrize(
    ("name", "line", "expected"),
    [
        ("-", '{"text": "a"}', "turns"),
        ("-", '{"subject": "a", "predicate": "b", "object": "c"}', "triples"),
        ("-", '["a", "b", "c"]', "triples"),
        ("-", "subject,predicate,object", "csv"),
        ("-", "# Title", "markdown"),
        ("-", "Plain words, and more.", "text"),
        ("-", 'He said, "well" and left.', "text"),
        ("-", "{broken", None),
        ("-", "", None),
        ("x.jsonl", "broken", None),
        ("x.md", '{"text": "a"}', "markdown"),
        ("x.CSV", "", "csv"),
    ],
)
def test_the_format_is_told_by_suffix_and_line(name: str, line: str, expected: Format | None) -> None:
    assert guess_format(name, line) == expected


@pytest.mark.parametrize(
    ("name", "content", "expected"),
    [
        ("x.jsonl", "{broken\n\n" + '["a", "b", "c"]', "triples"),
        ("x.jsonl", "{broken\n", "turns"),
        ("x.jsonl", '{"session": 1}\n{"subject": "a", "relation": "b", "object": "c"}', "triples"),
        ("x.jsonl", '{"session": 1}\n{"version": 2}', "turns"),
        ("x.jsonl", "", "turns"),
        ("x.log", "", "text"),
    ],
)
def test_the_first_line_that_tells_the_format_counts(tmp_path: Path, name: str, content: str, expected: Format) -> None:
    (tmp_path / name).write_text(content)

    with open_source(tmp_path / name) as source:
        assert source.format == expected


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"\xff\xfea\x00", "UTF-16"),
        (b"\x7fELF\0\0", "not a text file"),
        (b"\x89PNG\r\n\x1a\n" + bytes(range(1, 256)) * 20, "not a text file"),
    ],
)
def test_files_that_are_no_text_are_an_error(tmp_path: Path, content: bytes, reason: str) -> None:
    path = tmp_path / "x.txt"
    path.write_bytes(content)

    with pytest.raises(InvalidInput, match=reason), open_source(path):
        pass


def test_a_text_in_another_encoding_is_no_binary_file(tmp_path: Path) -> None:
    path = tmp_path / "x.eml"
    path.write_bytes("Subject: Привет\n\nЯ живу в Осло.\n".encode("koi8-r"))

    with open_source(path) as source:
        assert source.format == "eml"


@pytest.mark.parametrize(("year", "by"), [(2025, "text"), (2999, None)])
def test_standard_input_is_not_dated_by_a_day_to_come(year: int, by: str | None) -> None:
    refused: list[Refused] = []
    with open_source("-", stdin=io.BytesIO(f"Updated 4 March {year}\n".encode()), form="text") as source:
        [item] = read_items(source, refused.append)
    assert (item.occurred_at is None, source.dated_by) == (by is None, by)


def test_standard_input_is_read_from_the_stream_that_is_given() -> None:
    refused: list[Refused] = []

    with open_source("-", stdin=io.BytesIO(b'["Rome", "in", "Italy"]\n')) as source:
        assert [t.subject for t in read_triples(source, refused.append)] == ["Rome"]


def test_standard_input_is_read_as_it_comes() -> None:
    reading, writing = os.pipe()
    with os.fdopen(reading, "rb") as stdin, os.fdopen(writing, "wb", buffering=0) as writer:
        writer.write(b'\n{"text": "a"}\n')
        with open_source("-", stdin=stdin) as source:
            turns = read_items(source, lambda _: None)
            assert next(turns).text == "a"
            writer.write(b'{"text": "b"}\n')
            assert next(turns).text == "b"


def test_folders_give_their_known_files_in_order_without_hidden_ones(tmp_path: Path) -> None:
    for name in ("b.md", "a.txt", "sub/c.jsonl", ".hidden.md", ".git/d.md", "e.png"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("x")

    assert find_files([tmp_path]) == [tmp_path / name for name in ("a.txt", "b.md", "sub/c.jsonl")]


def test_a_path_that_is_not_there_is_an_error_before_anything_is_read(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match=r"nope\.md: there is no such file or folder"):
        find_files([tmp_path / "nope.md"])


def test_lines_are_read_as_they_are_asked_for(tmp_path: Path) -> None:
    path = written(tmp_path, "chat.jsonl", *({"text": f"turn {n} " + "x" * 1000} for n in range(2000)))

    with open_source(path) as source:
        turns = read_items(source, lambda _: None)
        next(turns)
        read = source.position

    assert read < 300_000 < path.stat().st_size


def test_a_year_or_month_of_a_fact_is_its_first_day(tmp_path: Path) -> None:
    path = tmp_path / "facts.csv"
    path.write_text("subject,relation,object,valid_from\nMaya,works at,Globex,2020\nBen,works at,Globex,2020-05\n")

    with open_source(path) as source:
        begins = [triple.valid_from for triple in read_triples(source, lambda _: None)]
    assert begins == [datetime(2020, 1, 1, tzinfo=UTC), datetime(2020, 5, 1, tzinfo=UTC)]


def texts_of(path: Path) -> list[str]:
    items, _ = items_of(path)
    return [item.text for item in items]


@pytest.mark.parametrize(
    ("name", "lines"),
    [
        ("table.md", [f"| row {i} | value {i}. With some words, to be long |" for i in range(90)]),
        ("app.log.txt", [f"2026-01-05 10:00:{i % 60:02} INFO main: Started. Port {i} is bound." for i in range(90)]),
        ("code.md", ["```", *(f"do_something(with_{i}, 'A sentence. And more')" for i in range(90)), "```"]),
    ],
)
def test_tables_logs_and_code_are_split_between_lines(tmp_path: Path, name: str, lines: list[str]) -> None:
    texts = texts_of(written(tmp_path, name, *lines))
    assert len(texts) > 2
    assert all(len(text) <= 2000 for text in texts)
    assert [line for text in texts for line in text.split("\n")] == lines


def test_wrapped_prose_is_split_between_sentences(tmp_path: Path) -> None:
    line = "the river is wide. A stone of Norway\nlies in the garden and nobody has seen"
    texts = texts_of(written(tmp_path, "story.txt", *([line] * 60)))
    assert all(text.endswith("wide.") for text in texts[:-1])


def test_a_code_block_that_fits_stays_together(tmp_path: Path) -> None:
    code = ["```", *(f"call(number={i})" for i in range(60)), "```"]
    texts = texts_of(written(tmp_path, "guide.md", *(f"A line of the text {i}." for i in range(50)), *code))
    assert texts[1] == "\n".join(code)
