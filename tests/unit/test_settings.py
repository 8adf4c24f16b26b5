"""Where settings come from, and what they refuse."""

from __future__ import annotations

import warnings
from pathlib import Path

import pytest

from graphmem.errors import InvalidInput
from graphmem.settings import Settings


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_keyword_beats_variable_beats_file_beats_default(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert Settings().recall_limit == 10
    (tmp_path / "graphmem.toml").write_text("recall_limit = 20\nmax_hops = 3\n")
    assert Settings().recall_limit == 20
    monkeypatch.setenv("GRAPHMEM_RECALL_LIMIT", "30")
    assert (Settings().recall_limit, Settings().max_hops) == (30, 3)
    assert Settings(recall_limit=40).recall_limit == 40


def test_another_file_can_be_named(tmp_path: Path) -> None:
    path = tmp_path / "other.toml"
    path.write_text('store = "sqlite:///other.db"\n')
    assert Settings.load(path).store == "sqlite:///other.db"


def test_a_file_that_is_not_there_is_an_error_with_its_name(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match=r"absent\.toml"):
        Settings.load(tmp_path / "absent.toml")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("recall_limit", 0),
        ("seed_structural_weight", 1.5),
        ("temporal_decay_rate", float("nan")),
        ("temporal_decay_rate", 11.0),
        ("max_attempts", 0),
        ("no_such_setting", 1),
    ],
)
def test_a_value_that_does_not_fit_is_refused_with_its_name(name: str, value: float) -> None:
    with pytest.raises(InvalidInput, match=name):
        Settings(**{name: value})


def test_passwords_are_masked_where_settings_are_shown() -> None:
    shown = Settings(store="neo4j://neo4j:s3cret@db.example:7687").shown()
    assert shown["store"] == "neo4j://neo4j:***@db.example:7687"


def test_every_setting_says_what_it_is() -> None:
    assert [name for name, field in Settings.model_fields.items() if not field.description] == []


def test_an_unknown_name_in_the_file_is_refused_with_the_one_that_was_meant(tmp_path: Path) -> None:
    (tmp_path / "graphmem.toml").write_text('stroe = "memory://"\n')
    with pytest.raises(InvalidInput, match=r"^setting stroe: is unknown; did you mean store\?$"):
        Settings()


def test_a_table_of_settings_is_refused_with_where_they_stand(tmp_path: Path) -> None:
    (tmp_path / "graphmem.toml").write_text('[graphmem]\nstore = "memory://"\n')
    with pytest.raises(InvalidInput, match="settings belong at the top level, not in a table"):
        Settings()


def test_a_variable_that_names_no_setting_is_a_warning(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GRAPHMEM_RECAL_LIMIT", "3")
    monkeypatch.setenv("GRAPHMEM_UTTERLY_ELSE", "3")
    with pytest.warns(UserWarning, match="is not a setting") as told:
        Settings()
    assert [str(warning.message).partition("; ")[2] for warning in told] == ["did you mean GRAPHMEM_RECALL_LIMIT?", ""]


def test_variables_of_settings_and_of_the_tests_are_no_warning(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("GRAPHMEM_STORE", "graphmem_scope", "GRAPHMEM_TEST_NEO4J_URL", "GRAPHMEM_DATA"):
        monkeypatch.setenv(name, "value")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        Settings()


@pytest.mark.parametrize(("value", "read"), [(False, "off"), ("false", "off"), ("facts", "facts"), ("all", "all")])
def test_redact_says_what_is_redacted(value: object, read: str) -> None:
    assert Settings(redact=value).redact == read


@pytest.mark.parametrize("value", [True, "true", "1", "everything"])
def test_redact_without_saying_what_is_refused(value: object) -> None:
    with pytest.raises(InvalidInput, match=r"setting redact: .*'facts'.*'all'"):
        Settings(redact=value)


def test_the_key_of_redaction_is_never_shown() -> None:
    assert "s3cret" not in repr(Settings(redact="all", redact_key="s3cret"))
