"""Attachments of episodes, and their encoding in the metadata that stores keep."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import Field

from graphmem.errors import InvalidInput
from graphmem.models.base import Model, Properties, Text

ATTACHMENTS = "attachments"
"""Key of the attachments in stored metadata: a JSON list of their fields."""

_MAX_SHOWN = 500


class Attachment(Model):
    """Attachment of a message or document: an image, a recording or a file. Its bytes aren't stored.

    Parameters
    ----------
    kind
        ``image``, ``audio``, ``video``, ``file``, or the type of any other part.
    name
        File name.
    media_type
        Media type such as ``image/png``.
    url
        Location; data URLs are not stored.
    description
        Alternative text, caption or transcript. Search covers it like the text of the episode.
    size
        Size in bytes, if the data was in the message.
    """

    kind: Text = Field(min_length=1)
    name: Text | None = None
    media_type: Text | None = None
    url: Text | None = None
    description: Text | None = None
    size: int | None = None

    def __str__(self) -> str:
        """Return its representation in a text, such as ``[image: a dog on a beach]``."""
        shown = self.description or self.name or self.url or self.media_type
        return f"[{self.kind}: {shown[:_MAX_SHOWN]}]" if shown else f"[{self.kind}]"


def with_attachments(metadata: Properties, attachments: Sequence[Attachment]) -> Properties:
    """Return metadata as stores keep it: with the attachments as JSON."""
    if not attachments:
        return metadata
    stored = [each.model_dump(exclude_none=True) for each in attachments]
    return {**metadata, ATTACHMENTS: json.dumps(stored, ensure_ascii=False)}


def split_attachments(metadata: Properties) -> tuple[Properties, tuple[Attachment, ...]]:
    """Return stored metadata without its attachments, and these; other values under the key stay metadata."""
    found = _parsed(metadata.get(ATTACHMENTS))
    return ({k: v for k, v in metadata.items() if k != ATTACHMENTS} if found else metadata), found


def _parsed(stored: object) -> tuple[Attachment, ...]:
    try:
        rows: list[Mapping[str, Any]] = json.loads(stored) if isinstance(stored, str) else []
        return tuple(Attachment(**row) for row in rows)
    except (ValueError, TypeError, RecursionError, InvalidInput):
        return ()
