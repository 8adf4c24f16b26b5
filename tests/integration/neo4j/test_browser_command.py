"""`graphmem browser` on a store in Neo4j, and on one that has no such program."""

from __future__ import annotations

import io
import json
import zipfile
from pathlib import Path

import pytest

from graphmem import GraphMemory
from graphmem.adapters.cli import main
from graphmem_cypher import saved


def run(*arguments: str) -> int:
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    return int(ended.value.code or 0)


def test_the_address_is_printed_without_the_password(neo4j_url: str, capsys: pytest.CaptureFixture[str]) -> None:
    code = run("browser", "--store", neo4j_url, "--json")

    told = json.loads(capsys.readouterr().out)
    assert code == 0
    assert (told["name"], told["files"]) == ("Neo4j Browser", [])
    assert "/browser/?connectURL=bolt://neo4j@" in told["url"]
    assert neo4j_url.split("@")[0].split(":")[2] not in json.dumps(told)


def test_the_files_carry_the_scope(neo4j_url: str, tmp_path: Path) -> None:
    code = run("browser", "--store", neo4j_url, "--scope", "acme/road map's", "--out", str(tmp_path / "new"))

    assert code == 0
    queries = {path.stem: path.read_text("utf-8") for path in (tmp_path / "new" / "queries").iterdir()}
    assert queries.keys() == saved().keys()
    assert "  scope: 'acme/road%20map%27s',\n" in queries["00_parameters"]
    assert not [name for name, text in queries.items() if "'default'" in text]


def test_the_archive_is_one_folder_of_the_same_queries(neo4j_url: str, tmp_path: Path) -> None:
    run("browser", "--store", neo4j_url, "--out", str(tmp_path))

    with zipfile.ZipFile(io.BytesIO((tmp_path / "graphmem.zip").read_bytes())) as archive:
        packed = {name: archive.read(name) for name in archive.namelist()}
    assert packed == {f"graphmem/{path.name}": path.read_bytes() for path in (tmp_path / "queries").iterdir()}


def test_files_of_an_earlier_time_are_replaced(neo4j_url: str, tmp_path: Path) -> None:
    (tmp_path / "style.grass").write_text("node {}", "utf-8")

    run("browser", "--store", neo4j_url, "--out", str(tmp_path))

    assert "node.Person" in (tmp_path / "style.grass").read_text("utf-8")


def test_a_folder_that_can_t_be_written_is_told(
    neo4j_url: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").write_text("", "utf-8")

    code = run("browser", "--store", neo4j_url, "--out", str(tmp_path / "file"))

    assert code == 2
    assert "--out" in capsys.readouterr().err


def test_a_store_without_such_a_program_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    url = f"sqlite:///{tmp_path}/memory.db"
    GraphMemory.open(url, extractor="none").close()

    code = run("browser", "--store", url)

    assert code == 4
    assert "no web interface that shows its graph" in capsys.readouterr().err
