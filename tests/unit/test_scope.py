"""Scopes as text: every text is one scope or refused, and every scope has one text."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphmem import GraphMemory, InvalidInput, Scope
from graphmem.inputs import to_scope, to_scopes

IDS = ["a/b", "a%2Fb", "a%2fb", "a%252Fb", "a b", "a%20b", "a+b", "%", "%%", "/", "//", "a/", "/a", "مستخدم", "用户/一"]
PARTS = st.text(st.sampled_from("a%2Fb/ م") | st.characters(exclude_categories=("Cs",)), min_size=1, max_size=256)


def test_users_whose_ids_look_alike_have_scopes_of_their_own() -> None:
    assert len({to_scope(f"users/{user_id}").key for user_id in IDS}) == len(IDS)
    assert {to_scope(f"users/{user_id}").project_id for user_id in IDS} == set(IDS)


def test_a_text_is_separated_at_its_first_slash_only() -> None:
    assert to_scope("users/a/b") == Scope("users", "a/b")
    assert to_scope("a%2Fb") == Scope("a%2Fb")


@given(PARTS, st.none() | PARTS)
def test_the_text_of_a_scope_is_read_back_as_that_scope(domain: str, project: str | None) -> None:
    scope = Scope(domain, project)
    assert to_scope(str(scope)) == scope
    assert Scope.from_key(scope.key) == scope


@given(PARTS)
def test_a_text_is_the_one_text_of_its_scope_or_refused(text: str) -> None:
    try:
        scope = to_scope(text)
    except InvalidInput:
        return
    assert str(scope) == text


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "Scope.domain: String should have at least 1 character"),
        ("users/", "Scope.project_id: String should have at least 1 character"),
        ("/maya", "nothing stands before the first '/'"),
        ("/", "nothing stands before the first '/'"),
        ("/a%2fb", "nothing stands before the first '/'"),
        ("users/" + "x" * 10_000, "Scope.project_id: String should have at most 256 characters"),
        ("/" * 10_000, "nothing stands before the first '/'"),
        ("م" * 257, "Scope.domain: String should have at most 256 characters"),
        ("users/\ud800", "Scope.project_id: Input should be a valid string, unable to parse"),
    ],
    ids=lambda value: f"{value!r:.30}",
)
def test_a_text_that_is_no_scope_is_refused_with_the_part_and_its_limit(text: str, reason: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        to_scope(text)
    assert reason in str(refused.value)
    assert len(str(refused.value)) < 300


@pytest.mark.parametrize("value", [42, None, b"users/maya", ["users/maya"]])
def test_what_is_no_text_is_refused(value: object) -> None:
    with pytest.raises(InvalidInput, match="expected a Scope or a text"):
        to_scope(value)  # type: ignore[arg-type]


def test_scopes_of_a_read_are_scopes_or_texts_one_or_several() -> None:
    both = (Scope("users", "a"), Scope("users", "b"))
    assert to_scopes(["users/a", Scope("users", "b"), "users/a"]) == both
    assert to_scopes("users/a") == to_scopes(both[0]) == both[:1]


def test_what_was_stored_under_a_decoded_name_is_found_under_that_name(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/memory.db"
    stored = Scope.from_key(
        "users/a%40b.org"
    )  # what in_scope("users/a%40b.org") was before texts were taken as they are
    with GraphMemory.open(url, scope=stored, extractor="none", embeddings="none", background=False) as memory:
        memory.remember("I moved to Lisbon.")
        assert memory.in_scope("users/a@b.org").stats().episodes == 1
        assert memory.in_scope("users/a%40b.org").stats().episodes == 0
        assert [str(scope) for scope in memory.admin.scopes()] == ["users/a@b.org"]
