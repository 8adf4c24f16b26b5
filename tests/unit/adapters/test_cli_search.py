"""The commands search, eval and reindex in this process."""

from __future__ import annotations

import pytest

from tests.unit.adapters.in_process import Shell

TURNS = [
    {"external_id": "t1", "speaker": "Maya", "text": "I moved to Lisbon.", "occurred_at": "2026-01-05T10:00:00Z"},
    {"external_id": "t2", "speaker": "Nate", "text": "I play chess in Porto.", "occurred_at": "2026-02-01T09:00:00Z"},
    {"external_id": "t3", "speaker": "Maya", "text": "Rex ate my homework.", "occurred_at": "2026-02-01T09:01:00Z"},
]
ASKED = [
    {"question": "Where does Nate play chess?", "external_ids": ["t2"], "category": "place"},
    {"question": "Who ate the homework?", "external_ids": "t3", "category": "dog"},
]


@pytest.fixture
def talk(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> Shell:
    """A folder with a store of three turns, without an embedding model."""
    monkeypatch.setenv("GRAPHMEM_EMBEDDINGS", "none")
    shell.write_lines("turns.jsonl", *TURNS)
    assert shell.run("ingest", "turns.jsonl", "--extractor", "none").code == 0
    return shell


def test_search_prints_who_said_what_when_best_first(talk: Shell) -> None:
    ran = talk.run("search", "Where does Nate play chess?", "--k", "1")
    assert ran.code == 0
    [header, line] = ran.out.splitlines()
    assert header.split() == ["#", "episode", "from", "date", "score"]
    assert all(part in line for part in ("1", "I play chess in Porto.", "Nate", "2026-02-01"))


def test_search_tells_why_when_asked(talk: Shell) -> None:
    assert "lexical (words)" in " ".join(talk.run("search", "chess", "--why").out.split())
    assert "lexical" not in talk.run("search", "chess").out


def test_search_as_of_leaves_out_what_came_later(talk: Shell) -> None:
    found = talk.run("search", "chess", "--as-of", "2026-01-20", "--json").document["found"]
    assert [one["episode"]["external_id"] for one in found] == ["t1"]


def test_search_of_an_empty_scope_finds_nothing_and_says_why(talk: Shell) -> None:
    ran = talk.run("search", "chess", "--scope", "other")
    assert (ran.code, ran.out) == (4, "")
    assert "'other' has none" in ran.err


def test_eval_prints_search_beside_the_plain_rankings(talk: Shell) -> None:
    talk.write_lines("questions.jsonl", *ASKED)
    ran = talk.run("eval", "questions.jsonl", "-k", "1", "-k", "3")
    lines = {" ".join(line.split()) for line in ran.out.splitlines()}
    assert ran.code == 0
    assert {"method recall@1 recall@3 MRR", "search 1.000 1.000 1.000", "BM25 1.000 1.000 1.000"} <= lines
    assert "place 1 1.000 1.000 1.000" in lines


def test_eval_as_json_is_one_document(talk: Shell) -> None:
    talk.write_lines("questions.jsonl", *ASKED)
    document = talk.run("eval", "questions.jsonl", "--json").document
    assert document["methods"]["full"]["recall"]["1"]["mean"] == 1.0
    assert set(document["query_ms"]) == {"p50", "p95"}


def test_eval_reads_standard_input_and_passes_over_empty_lines(talk: Shell) -> None:
    line = '{"question": "Who ate the homework?", "external_ids": ["t3"]}'
    assert talk.run("eval", "-", "--json", stdin=f"\n{line}\n\n").document["methods"]["full"]["questions"] == 1


def test_eval_tells_ids_that_no_episode_has(talk: Shell) -> None:
    talk.write_lines("questions.jsonl", *ASKED, {"question": "Who?", "external_ids": ["t77"]})
    ran = talk.run("eval", "questions.jsonl")
    assert ran.code == 0
    assert "t77" in ran.err
    assert "skipped 1 question without an answer in the memory" in ran.err


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("{", "line 2"),
        ("[1]", "line 2"),
        ('{"question": "Who?"}', "external_ids"),
        ('{"external_ids": "t1"}', "question"),
    ],
)
def test_eval_names_the_line_that_it_cannot_read(talk: Shell, line: str, reason: str) -> None:
    talk.write_lines("questions.jsonl", ASKED[0], line)
    ran = talk.run("eval", "questions.jsonl")
    assert (ran.code, ran.out) == (2, "")
    assert "questions.jsonl, line 2" in ran.err
    assert reason in ran.err


def test_eval_of_a_file_that_is_not_there_names_it(talk: Shell) -> None:
    ran = talk.run("eval", "nothing.jsonl")
    assert ran.code == 2
    assert "nothing.jsonl" in ran.err


def test_what_waits_because_of_a_setting_is_extracted_by_the_command_that_is_printed(
    shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GRAPHMEM_EXTRACTOR", "none")
    said = shell.run("remember", "I work at Initech.", "--speaker", "Maya")
    command = said.err.splitlines()[-1].split()
    assert command == ["graphmem", "backfill", "--extractor", "spacy"]
    assert shell.run("backfill").err.endswith("the setting extractor is none; --extractor spacy names another\n")
    assert "extracted     1" in shell.run(*command[1:]).out


@pytest.mark.parametrize("option", ["--k", "-k", "--limit", "-n"])
def test_the_number_of_episodes_has_the_name_of_other_limits_too(talk: Shell, option: str) -> None:
    assert len(talk.run("search", "chess", option, "1", "--json").document["found"]) == 1


@pytest.mark.parametrize("command", ["search", "recall", "context"])
def test_a_filter_that_no_episode_matches_is_the_reason_that_nothing_is_found(talk: Shell, command: str) -> None:
    told = ": no episode matches the filters, which compare names and ids as they are stored\n"
    assert talk.run(command, "Who plays chess?", "--speaker", "nate").err.endswith(told)
    assert "filters" not in talk.run("recall", "Who plays chess?", "--speaker", "Nate").err


def test_reindex_tells_how_much_it_read(talk: Shell) -> None:
    assert talk.run("reindex", "--yes", "--json").document == {"scope": "default", "indexed": 3}
    assert talk.run("search", "chess", "--k", "1", "--json").document["found"][0]["episode"]["external_id"] == "t2"


def test_reindex_asks_before_it_begins(talk: Shell) -> None:
    assert talk.run("reindex", stdin="n\n").code == 1
    ran = talk.run("reindex", stdin="y\n")
    assert ran.code == 0
    assert "indexed 3 episodes and facts" in ran.out


def test_one_is_counted_in_the_singular(shell: Shell) -> None:
    said = shell.run("remember", "I work at Initech.", "--extractor", "none")
    assert "1 episode waits for extraction" in said.err
    assert "1 episode waits for extraction" in shell.run("facts", "Maya").err
    assert shell.run("reindex", "--yes").out == "indexed 1 episode or fact\n"


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (["--speaker", "Nate"], ["t2"]),
        (["--since", "2026-02-01", "--speaker", "Maya"], ["t3"]),
        (["--until", "2026-02"], ["t1"]),
        (["--session", "a", "--session", "b"], []),
        (["--source", "message"], ["t2", "t1", "t3"]),
        (["--where", "page=2"], ["m1"]),
        (["--where", '{"page": {"$gt": 2}, "topic": "tax"}'], ["m2"]),
        (["--where", "topic=tax", "--where", 'page={"$lt": 3}'], ["m1"]),
    ],
)
def test_search_keeps_to_the_episodes_of_a_filter(talk: Shell, options: list[str], expected: list[str]) -> None:
    if expected[:1] in (["m1"], ["m2"]):
        pages = [
            {"external_id": f"m{n}", "text": f"Page {n}", "metadata": {"page": n + 1, "topic": "tax"}} for n in (1, 2)
        ]
        talk.write_lines("pages.jsonl", *pages)
        assert talk.run("ingest", "pages.jsonl", "--extractor", "none").code == 0
    found = talk.run("search", "Where does Nate play chess?", *options, "--json").document["found"]
    assert sorted(one["episode"]["external_id"] for one in found) == sorted(expected)


@pytest.mark.parametrize("command", ["search", "recall", "context"])
def test_a_filter_that_cannot_be_read_is_a_usage_error(talk: Shell, command: str) -> None:
    assert talk.run(command, "chess", "--where", "topic").code == 2
    assert talk.run(command, "chess", "--where", '{"topic": {"$like": "x"}}').code == 2
    assert talk.run(command, "chess", "--since", "soon").code == 2


@pytest.mark.parametrize("command", ["search", "context"])
def test_a_least_trust_and_a_least_confidence_leave_results_out(talk: Shell, command: str) -> None:
    page = {"external_id": "d1", "text": "Nate plays chess in the attic.", "trust": "external"}
    talk.write_lines("page.jsonl", page)
    assert talk.run("ingest", "page.jsonl", "--extractor", "none").code == 0
    question = (command, "Where does Nate play chess?")
    assert "attic" in talk.run(*question).out
    trusted = talk.run(*question, "--min-trust", "trusted")
    assert "attic" not in trusted.out
    assert "chess" in trusted.out
    assert talk.run(*question, "--min-confidence", "1").out == ""
    assert talk.run(*question, "--min-trust", "much").code == 2
