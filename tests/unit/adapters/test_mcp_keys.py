"""The file of keys: what it stores, who may read it, and which tokens it accepts."""

from __future__ import annotations

import json
import os
import sqlite3
import stat
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path

import pytest

from graphmem import InvalidInput, NotFound
from graphmem.adapters.mcp import Access, KeyFile
from graphmem.models import Scope, utc_now

ACCESS = Access(scopes=(Scope("users", "maya"),), rights="write", user="Maya", agent="helper")


@pytest.fixture
def keys(tmp_path: Path) -> KeyFile:
    return KeyFile(tmp_path / "keys.json")


def test_a_token_gives_the_access_of_its_key(keys: KeyFile) -> None:
    key, token = keys.add("laptop", ACCESS)
    found = KeyFile(keys.path).verify(token)
    assert found == key
    assert found is not None
    assert found.access == ACCESS


def test_the_file_has_no_token_and_belongs_to_its_owner_alone(keys: KeyFile) -> None:
    _, token = keys.add("laptop", ACCESS)
    content = keys.path.read_text("utf-8")
    assert token not in content
    assert token.split("_", 2)[2] not in content
    assert stat.S_IMODE(keys.path.stat().st_mode) == 0o600


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o666])
def test_a_file_that_others_can_access_is_refused(keys: KeyFile, mode: int) -> None:
    _, token = keys.add("laptop", ACCESS)
    keys.path.chmod(mode)
    fresh = KeyFile(keys.path)
    with pytest.raises(InvalidInput, match="chmod 600"):
        fresh.list()
    assert fresh.verify(token) is None


def test_wrong_tokens_are_refused(keys: KeyFile) -> None:
    key, token = keys.add("laptop", ACCESS)
    _, other = keys.add("phone", ACCESS)
    prefix, key_id, secret = token.split("_", 2)
    wrong = [
        "",
        "gm",
        "gm_",
        token[:-1],
        f"{token}x",
        f"xx_{key_id}_{secret}",
        f"gm_{key_id}_{other.split('_', 2)[2]}",
        f"gm_{'0' * 12}_{secret}",
        key.token_hash,
        "gm_ü_\ud800",
        "x" * 1_000_000,
    ]
    assert prefix == "gm"
    assert [keys.verify(each) for each in wrong] == [None] * len(wrong)


def test_a_revoked_key_is_refused_by_readers_that_knew_it(keys: KeyFile) -> None:
    _, token = keys.add("laptop", ACCESS)
    _, other = keys.add("phone", ACCESS)
    server = KeyFile(keys.path)
    assert server.verify(token) is not None
    assert keys.revoke("laptop").state == "revoked"
    assert server.verify(token) is None
    assert server.verify(other) is not None
    with pytest.raises(NotFound):
        keys.revoke("laptop")


def test_an_expired_key_is_refused(keys: KeyFile) -> None:
    _, past = keys.add("past", ACCESS, expires_at=utc_now() - timedelta(seconds=1))
    _, future = keys.add("future", ACCESS, expires_at=utc_now() + timedelta(hours=1))
    assert keys.verify(past) is None
    assert keys.verify(future) is not None
    assert [key.state for key in keys.list()] == ["expired", "valid"]


def test_a_name_is_used_once_until_it_is_revoked(keys: KeyFile) -> None:
    first, _ = keys.add("laptop", ACCESS)
    with pytest.raises(InvalidInput, match="exists"):
        keys.add("laptop", ACCESS)
    keys.revoke(first.id)
    keys.add("laptop", ACCESS)
    assert [key.state for key in keys.list()] == ["revoked", "valid"]


def test_a_missing_file_accepts_nothing_and_says_how_to_make_one(keys: KeyFile) -> None:
    assert keys.verify("gm_000000000000_x") is None
    with pytest.raises(InvalidInput, match="graphmem keys add"):
        keys.list()


@pytest.mark.parametrize("content", ["", "{", "[]", "{}", '{"version": 2, "state_secret": "", "keys": []}'])
def test_a_damaged_file_accepts_nothing(keys: KeyFile, content: str) -> None:
    _, token = keys.add("laptop", ACCESS)
    keys.path.write_text(content)
    with pytest.raises(InvalidInput, match="damaged"):
        keys.list()
    assert keys.verify(token) is None


def test_a_file_that_can_not_be_written_stays_as_it_was(keys: KeyFile, monkeypatch: pytest.MonkeyPatch) -> None:
    keys.add("laptop", ACCESS)
    before = keys.path.read_bytes()

    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(InvalidInput, match="No space"):
        keys.add("phone", ACCESS)
    assert keys.path.read_bytes() == before
    assert {path.name for path in keys.path.parent.iterdir()} == {"keys.json", ".keys.json.lock"}


def test_keys_are_not_written_where_the_log_of_a_database_belongs(tmp_path: Path) -> None:
    sqlite3.connect(tmp_path / "memory.db").execute("CREATE TABLE t (a)").connection.close()
    with pytest.raises(InvalidInput, match="belongs to one"):
        KeyFile(tmp_path / "memory.db-wal").add("laptop", ACCESS)
    assert not (tmp_path / "memory.db-wal").exists()


def test_keys_added_at_the_same_time_are_all_stored(keys: KeyFile) -> None:
    def add(number: int) -> str:
        return KeyFile(keys.path).add(f"key {number}", ACCESS)[1]

    with ThreadPoolExecutor(8) as pool:
        tokens = list(pool.map(add, range(24)))
    assert all(keys.verify(token) for token in tokens)
    assert len({key["id"] for key in json.loads(keys.path.read_text())["keys"]}) == 24


def test_servers_with_one_file_share_a_secret(keys: KeyFile) -> None:
    keys.add("laptop", ACCESS)
    secret = keys.state_secret
    keys.add("phone", ACCESS)
    assert KeyFile(keys.path).state_secret == secret
    assert len(secret) == 32


def test_rights_include_the_preceding_ones() -> None:
    access = {rights: Access(scopes=(Scope("a"),), rights=rights) for rights in ("read", "write", "admin")}
    permitted = {name: [need for need in ("read", "write", "admin") if a.permits(need)] for name, a in access.items()}
    assert permitted == {"read": ["read"], "write": ["read", "write"], "admin": ["read", "write", "admin"]}
