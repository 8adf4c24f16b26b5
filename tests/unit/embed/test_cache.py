"""The cache of vectors: how much it keeps, and of whom."""

from __future__ import annotations

import numpy as np

from graphmem.embed.embedder import VectorCache, key_of
from graphmem.embed.interface import TokenVectors

ONE = np.ones(100, np.float32)  # 400 bytes, and what an entry costs


def test_cache_keeps_no_more_bytes_than_its_limit() -> None:
    cache = VectorCache(2_000)
    for number in range(10):
        cache.put(bytes([number]), ONE)
    assert 0 < cache.size <= 2_000


def test_cache_drops_what_was_used_longest_ago() -> None:
    cache = VectorCache(1_400)
    cache.put(b"a", ONE)
    cache.put(b"b", ONE)
    cache.get(b"a")
    cache.put(b"c", ONE)
    assert cache.get(b"b") is None
    assert cache.get(b"a") is not None


def test_value_above_the_limit_pushes_nothing_out() -> None:
    cache = VectorCache(1_000)
    cache.put(b"a", ONE)
    cache.put(b"b", np.ones(10_000, np.float32))
    assert cache.get(b"a") is not None


def test_same_key_again_takes_no_more_room() -> None:
    cache = VectorCache(10_000)
    cache.put(b"a", ONE)
    before = cache.size
    cache.put(b"a", ONE)
    assert cache.size == before


def test_token_vectors_count_with_all_their_arrays() -> None:
    cache = VectorCache(10**6)
    vectors = np.ones((50, 384), np.float32)
    cache.put(b"a", TokenVectors(("x",) * 50, vectors, np.zeros((50, 2), np.int64), ONE))
    assert cache.size > vectors.nbytes


def test_keys_differ_by_model_kind_and_text() -> None:
    keys = {key_of("m", "text", "t"), key_of("n", "text", "t"), key_of("m", "query", "t"), key_of("m", "text", "u")}
    assert len(keys) == 4


def test_lone_surrogate_has_a_key() -> None:
    assert key_of("m", "text", "\ud800") != key_of("m", "text", "?")
