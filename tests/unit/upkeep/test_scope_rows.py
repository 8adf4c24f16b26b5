"""Rows as lines of an export."""

from __future__ import annotations

import json

from graphmem import Attachment, Episode
from graphmem.models import Scope
from graphmem.upkeep.scope_rows import from_json, to_json

HOME = Scope("home")
PICTURE = Attachment(kind="image", description='a "grey" dog')


def test_an_episode_comes_back_with_its_attachments() -> None:
    episode = Episode(scope=HOME, text="Look!", attachments=(PICTURE,), metadata={"n": 1})
    line = json.loads(to_json("episode", episode))
    assert line["attachments"] == [{"kind": "image", "description": 'a "grey" dog'}]
    assert from_json("episode", line, HOME) == episode


def test_an_episode_without_attachments_has_no_such_field() -> None:
    assert "attachments" not in json.loads(to_json("episode", Episode(scope=HOME, text="Look!")))


def test_attachments_that_an_earlier_version_exported_in_the_metadata_are_read() -> None:
    line = {"text": "Look!", "metadata": {"attachments": json.dumps([PICTURE.model_dump(exclude_none=True)])}}
    found = from_json("episode", line, HOME)
    assert isinstance(found, Episode)
    assert (found.attachments, found.metadata) == ((PICTURE,), {})
