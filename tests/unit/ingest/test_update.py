"""Updates of what was read from files and given as items: what changed takes the place of what is stored."""

from __future__ import annotations

import os
import re
import zipfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from graphmem import GraphMemory, InvalidInput
from graphmem.models import EpisodeQuery
from graphmem.protocols import ExtractedEdge, Extraction, ExtractionRequest

INTERRUPTION = "interrupted"


class Reads:
    """Reads "X lives in Y."."""

    name, batch_size = "reads", 1

    def extract(self, requests: Sequence[ExtractionRequest]) -> list[Extraction | Exception]:
        found = [re.findall(r"(\w+ \w+) (lives in) (\w+)", request.episode.text) for request in requests]
        return [Extraction(edges=tuple(ExtractedEdge(*fact) for fact in facts)) for facts in found]


@pytest.fixture(params=["memory://", "sqlite"])
def memory(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[GraphMemory]:
    url = request.param if request.param != "sqlite" else f"sqlite:///{tmp_path}/memory.db"
    with GraphMemory.open(url, extractor=Reads(), embeddings="none", background=False) as memory:
        yield memory


@pytest.fixture
def notes(tmp_path: Path) -> Path:
    """Return a folder of notes; two have the same name and share a passage."""
    folder = tmp_path / "notes"
    (folder / "b").mkdir(parents=True)
    (folder / "a.md").write_text("# Maya\n\nMaya Chen lives in Boston.\n\n# Rest\n\nUnchanged.\n")
    (folder / "b" / "a.md").write_text("# Tom\n\nTom Becker lives in Oslo.\n\n# Rest\n\nUnchanged.\n")
    (folder / "c.md").write_text("# Ida\n\nIda Berg lives in Rome.\n")
    return folder


def texts(memory: GraphMemory) -> set[str]:
    backend = memory._engine.backend  # pyright: ignore[reportPrivateUsage]
    return {episode.text for episode in backend.all_episodes([memory.scope], EpisodeQuery())}


def homes(memory: GraphMemory) -> set[str]:
    return {fact.fact for fact in memory.facts()}


@pytest.mark.parametrize("batch_size", [1, 2, 100])
@pytest.mark.parametrize("stored", [0, 1])
@pytest.mark.parametrize("update", [False, True])
def test_counts_of_repeated_ids_depend_on_no_batch_size(batch_size: int, stored: int, *, update: bool) -> None:
    items = [{"text": text, "external_id": "a"} for text in ("One fish.", "Two fish.", "Red fish.")]
    with GraphMemory.open(
        "memory://", extractor="none", embeddings="none", background=False, batch_size=batch_size
    ) as memory:
        memory.ingest([{"text": "Blue fish.", "external_id": "a"}] * stored)
        for dry_run in (True, False):
            report = memory.ingest(items, update=update, dry_run=dry_run)
            differing = 0 if update else 2 + stored
            replaced = stored if update else 0
            assert (report.differing, report.replaced, report.known) == (differing, replaced, 2 + stored - replaced)


def test_a_changed_file_replaces_its_earlier_text_and_facts(memory: GraphMemory, notes: Path) -> None:
    memory.ingest(notes)
    (notes / "a.md").write_text("# Maya\n\nMaya Chen lives in Porto.\n\n# Rest\n\nUnchanged.\n")
    report = memory.ingest(notes, update=True)
    assert (report.stored, report.removed, report.known, report.replaced) == (1, 1, 4, 0)
    assert texts(memory) == {
        "Maya Chen lives in Porto.",
        "Tom Becker lives in Oslo.",
        "Ida Berg lives in Rome.",
        "Unchanged.",
    }
    assert homes(memory) == {"Maya Chen lives in Porto", "Tom Becker lives in Oslo", "Ida Berg lives in Rome"}
    assert [fact.target for fact in memory.history("Maya Chen")] == ["Porto"]
    again = memory.ingest(notes, update=True)
    assert (again.stored, again.removed, again.replaced, again.extracted) == (0, 0, 0, 0)


def test_a_file_alone_leaves_what_others_of_its_name_say(memory: GraphMemory, notes: Path) -> None:
    memory.ingest(notes)
    (notes / "a.md").write_text("# Maya\n\nMaya Chen lives in Porto.\n")
    memory.ingest(notes / "a.md", update=True)
    assert {"Tom Becker lives in Oslo.", "Maya Chen lives in Porto."} < texts(memory)
    assert "Maya Chen lives in Boston." not in texts(memory)


def test_a_file_that_is_gone_stays_until_missing_ones_are_deleted(
    memory: GraphMemory, notes: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    memory.ingest(notes)
    memory.remember("Said, not read.", external_id="said")
    (notes / "c.md").unlink()
    assert memory.ingest(notes, update=True).removed == 0
    memory.ingest(notes / "b", delete_missing=True)
    assert "Ida Berg lives in Rome." in texts(memory)  # it wasn't in there
    monkeypatch.chdir(notes)
    memory.ingest(Path(), delete_missing=True)
    assert "Ida Berg lives in Rome." not in texts(memory)
    assert homes(memory) == {"Maya Chen lives in Boston", "Tom Becker lives in Oslo"}
    assert "Said, not read." in texts(memory)


def test_a_file_that_moved_keeps_its_text(memory: GraphMemory, notes: Path) -> None:
    memory.ingest(notes)
    (notes / "c.md").rename(notes / "b" / "c.md")
    memory.ingest(notes, delete_missing=True)
    assert "Ida Berg lives in Rome." in texts(memory)
    assert "Ida Berg lives in Rome" in homes(memory)


def test_files_of_an_archive_are_replaced_and_deleted(memory: GraphMemory, tmp_path: Path) -> None:
    def pack(**files: str) -> Path:
        with zipfile.ZipFile(tmp_path / "notes.zip", "w") as archive:
            for name, text in files.items():
                archive.writestr(f"{name}.md", text)
        return tmp_path / "notes.zip"

    memory.ingest(pack(a="# A\n\nMaya Chen lives in Boston.", b="# B\n\nIda Berg lives in Rome."))
    report = memory.ingest(pack(a="# A\n\nMaya Chen lives in Porto."), delete_missing=True)
    assert (report.stored, report.removed) == (1, 2)
    assert texts(memory) == {"Maya Chen lives in Porto."}


def test_archives_in_a_folder_that_still_exist_keep_their_texts(memory: GraphMemory, notes: Path) -> None:
    for name in ("kept", "gone"):
        with zipfile.ZipFile(notes / f"{name}.zip", "w") as archive:
            archive.writestr("z.md", f"# Z\n\nFrom what is {name}.")
        memory.ingest(notes / f"{name}.zip")
    (notes / "gone.zip").unlink()
    assert memory.ingest(notes, delete_missing=True).removed == 1
    assert "From what is kept." in texts(memory)
    assert "From what is gone." not in texts(memory)


def test_files_that_cannot_be_looked_at_are_not_gone(
    memory: GraphMemory, notes: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    memory.ingest(notes)
    stat = os.stat

    def refuse(path: Any, **options: Any) -> os.stat_result:
        if str(path).endswith("c.md"):
            raise PermissionError(13, "Permission denied", str(path))
        return stat(path, **options)

    def walk(*_: object) -> Iterator[Path]:
        return iter([notes / "a.md"])

    monkeypatch.setattr(os, "stat", refuse)
    monkeypatch.setattr("graphmem.ingest.files._walk", walk)
    memory.ingest(notes, delete_missing=True)
    assert "Ida Berg lives in Rome." in texts(memory)


def test_a_record_with_other_fields_replaces_the_stored_one(memory: GraphMemory, tmp_path: Path) -> None:
    table = "external_id,author,status,text\n1,Ann,open,Ann Lee lives in Rome.\n2,Bo,open,No sound.\n"
    path = tmp_path / "tickets.csv"
    path.write_text(table)
    memory.ingest(path)
    path.write_text(table.replace("Ann,open,Ann Lee lives in Rome.", "Ann,closed,Ann Lee lives in Bonn."))
    report = memory.ingest(path, update=True)
    assert (report.stored, report.replaced, report.known, report.removed) == (0, 1, 1, 0)
    found = {e.external_id: (e.text, e.metadata["status"]) for e in memory.episodes()}
    assert found == {"1": ("Ann Lee lives in Bonn.", "closed"), "2": ("No sound.", "open")}
    assert homes(memory) == {"Ann Lee lives in Bonn"}


def test_items_that_differ_replace_what_is_stored_under_their_id(memory: GraphMemory) -> None:
    memory.ingest([{"external_id": "m1", "text": "Ann Lee lives in Rome."}, {"text": "Hi.", "external_id": "m2"}])
    edited = {"external_id": "m1", "text": "Ann Lee lives in Bonn."}
    report = memory.ingest([edited, {**edited, "text": "The first of an id counts."}], update=True)
    assert (report.replaced, report.stored, report.known) == (1, 0, 1)
    assert texts(memory) == {"Ann Lee lives in Bonn.", "Hi."}
    assert homes(memory) == {"Ann Lee lives in Bonn"}


TURN: dict[str, Any] = {
    "external_id": "m1",
    "text": "The door code is 1234.",
    "occurred_at": "2026-01-01T00:00:00+01:00",
    "metadata": {"team": "x", "floor": 2},
    "attachments": [{"kind": "image", "description": "a door"}],
}
CALL = {**TURN, "text": "", "tool_calls": [{"name": "f", "arguments": "{}"}]}
WITHOUT_TIME = {key: value for key, value in TURN.items() if key != "occurred_at"}


@pytest.mark.parametrize(
    ("stored", "given", "differs"),
    [
        (TURN, TURN, 0),
        (TURN, {**TURN, "attachments": [{"kind": "image", "description": "a cat"}]}, 1),
        (TURN, {**TURN, "attachments": []}, 1),
        (TURN, {**TURN, "metadata": {"team": "x"}}, 1),
        (TURN, {**TURN, "metadata": {**TURN["metadata"], "line": 7}}, 0),
        (TURN, {**TURN, "has_injection_flags": True}, 1),
        ({**TURN, "trust": "untrusted"}, TURN, 1),
        (TURN, WITHOUT_TIME, 0),
        (WITHOUT_TIME, {**WITHOUT_TIME, "expires_at": "2099-01-01T00:00:00Z"}, 1),
        ({**TURN, "expires_at": "2099-01-01T00:00:00Z"}, {**TURN, "expires_at": "2098-01-01T00:00:00Z"}, 1),
        ({**TURN, "expires_at": "2099-01-01T00:00:00Z"}, {**TURN, "expires_at": "2099-01-01T01:00:00+01:00"}, 0),
        ({**TURN, "expires_at": "2099-01-01T00:00:00Z"}, TURN, 0),
        ({**TURN, "expires_in": 3600}, {**TURN, "expires_in": 3600}, 0),
        ({**TURN, "expires_in": 3600}, {**TURN, "expires_in": 7200}, 1),
        (CALL, CALL, 0),
    ],
)
@pytest.mark.parametrize("update", [False, True])
def test_any_change_of_what_is_given_counts(
    memory: GraphMemory, stored: dict[str, Any], given: dict[str, Any], differs: int, update: bool
) -> None:
    memory.ingest([stored])
    report = memory.ingest([given], update=update)
    assert (report.replaced if update else report.differing) == differs
    assert memory.ingest([given], update=update).replaced == 0


def test_a_dry_run_counts_the_same_and_changes_nothing(memory: GraphMemory, notes: Path) -> None:
    assert memory.ingest(notes, dry_run=True).stored == 5
    assert texts(memory) == set()
    memory.ingest(notes)
    (notes / "rows.csv").write_text("external_id,status,text\n1,open,Hi\n")
    memory.ingest(notes)
    before = memory.admin.checksum()
    (notes / "rows.csv").write_text("external_id,status,text\n1,closed,Hi\n")
    (notes / "a.md").write_text("# Maya\n\nMaya Chen lives in Porto.\n")
    (notes / "c.md").unlink()
    names = ("received", "stored", "replaced", "removed", "known", "differing")
    assert memory.ingest(notes, dry_run=True).differing == 1
    planned = memory.ingest(notes, delete_missing=True, dry_run=True)
    assert memory.admin.checksum() == before
    done = memory.ingest(notes, delete_missing=True)
    assert [getattr(planned, name) for name in names] == [getattr(done, name) for name in names] == [4, 1, 1, 3, 2, 0]


def test_an_update_that_was_killed_is_completed_by_the_next(memory: GraphMemory, notes: Path) -> None:
    memory.ingest(notes)
    for name, old, new in (("a.md", "Boston", "Porto"), ("b/a.md", "Oslo", "Bonn"), ("c.md", "Rome", "Lyon")):
        (notes / name).write_text((notes / name).read_text().replace(old, new))

    def interrupt(progress: object) -> None:
        raise RuntimeError(INTERRUPTION)

    with pytest.raises(RuntimeError, match=INTERRUPTION):
        memory.ingest(notes, update=True, on_progress=interrupt)
    memory.ingest(notes, update=True)
    assert homes(memory) == {"Maya Chen lives in Porto", "Tom Becker lives in Bonn", "Ida Berg lives in Lyon"}
    assert len(texts(memory)) == 4


def test_nothing_is_erased_of_a_file_with_a_line_that_cannot_be_read(memory: GraphMemory, notes: Path) -> None:
    memory.ingest(notes)
    before = texts(memory)
    (notes / "c.md").write_bytes(b"# Ida\n\nIda Berg lives in M\xfcnchen.\n\nMore.\n")
    with pytest.raises(InvalidInput, match=r"c\.md, line 1: is not UTF-8"):
        memory.ingest(notes, delete_missing=True)
    assert texts(memory) == before
    report = memory.ingest(notes, delete_missing=True, skip_invalid=True)
    assert (report.removed, report.rejected_count) == (0, 1)
    assert texts(memory) == before


def test_a_folder_without_readable_files_is_refused_and_erases_nothing(memory: GraphMemory, notes: Path) -> None:
    memory.ingest(notes)
    before = texts(memory)
    for path in notes.rglob("*.md"):
        path.unlink()
    with pytest.raises(InvalidInput, match="file to be read in this folder"):
        memory.ingest(notes, delete_missing=True)
    assert texts(memory) == before


def test_only_a_folder_or_archive_can_miss_files(memory: GraphMemory, notes: Path) -> None:
    with pytest.raises(InvalidInput, match="only a folder or an archive can miss files"):
        memory.ingest(notes / "a.md", delete_missing=True)
    with pytest.raises(InvalidInput, match="delete_missing are for files"):
        memory.ingest([], delete_missing=True)


def test_ready_made_facts_are_added_and_the_report_says_that_none_is_removed(
    memory: GraphMemory, tmp_path: Path
) -> None:
    path = tmp_path / "team.csv"
    path.write_text("subject,relation,object\nMaya Chen,knows,Tom Becker\n")
    memory.ingest(path, update=True)
    path.write_text("subject,relation,object\nMaya Chen,knows,Ida Berg\n")
    report = memory.ingest(path, update=True)
    assert len(memory.facts()) == 2
    assert report.notes == ("team.csv: ready-made facts are added, and none is removed: end or retract them",)


def test_a_path_is_that_of_the_file_behind_links_above_it(memory: GraphMemory, notes: Path, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(notes, target_is_directory=True)
    memory.ingest(tmp_path / "link")
    assert {e.metadata["source_path"] for e in memory.episodes()} == {
        os.path.realpath(notes / name) for name in ("a.md", "b/a.md", "c.md")
    }
    (notes / "c.md").unlink()
    assert memory.ingest(notes, delete_missing=True).removed == 1


def test_a_field_of_that_name_in_a_record_is_kept(memory: GraphMemory, tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    path.write_text("text,source_path\nHi,s3://bucket/a\n")
    memory.ingest(path)
    assert [e.metadata["source_path"] for e in memory.episodes()] == ["s3://bucket/a"]
    assert memory.ingest(path, update=True).removed == 0


def test_paths_and_ids_with_personal_data_are_updated_in_their_stored_form(tmp_path: Path) -> None:
    folder = tmp_path / "maya@example.org"
    folder.mkdir()
    (folder / "a.md").write_text("# A\n\nMaya Chen lives in Boston.")
    options = {"extractor": Reads(), "embeddings": "none", "background": False, "redact": "all", "redact_key": "k" * 40}
    with GraphMemory.open("memory://", **options) as memory:  # pyright: ignore[reportArgumentType]
        memory.ingest(folder)
        (folder / "a.md").write_text("# A\n\nMaya Chen lives in Porto.")
        report = memory.ingest(folder, update=True)
        assert (report.stored, report.removed) == (1, 1)
        assert texts(memory) == {"Maya Chen lives in Porto."}
        assert "maya@" not in str([e.metadata for e in memory.episodes()])
        (folder / "a.md").rename(folder / "b.md")
        assert memory.ingest(folder, delete_missing=True).removed == 1


def test_external_ids_given_by_hand_are_sources_of_their_own_loads(memory: GraphMemory) -> None:
    pages = [{"external_id": f"p{n}", "text": f"Page {n}.", "metadata": {"source_path": f"wiki/{n}"}} for n in range(3)]
    memory.ingest(pages)
    done = memory.admin.forget_missing({"wiki/0": ["p0"], "wiki/1": []}, dry_run=True)
    assert (done.episodes, done.dry_run, len(texts(memory))) == (1, True, 3)
    assert memory.admin.forget_missing({"wiki/0": ["p0"], "wiki/1": []}).episodes == 1
    assert texts(memory) == {"Page 0.", "Page 2."}
