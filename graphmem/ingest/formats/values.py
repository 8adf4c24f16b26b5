"""Values of JSON exports: objects, arrays, moments, and the fields of an attachment."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any, cast

Record = dict[str, Any]
"""A JSON object."""
_MAX_DESCRIPTION = 2000


def as_dict(value: object) -> Record:
    """Return a JSON value if it is an object, else an empty one."""
    return cast("Record", value) if isinstance(value, dict) else {}


def dicts(value: object) -> list[Record]:
    """Return the objects in a JSON value that is an array, else none."""
    return [cast("Record", item) for item in as_list(value) if isinstance(item, dict)]


def file_fields(
    kind: str | None, name: object, media_type: object = None, description: object = None, url: object = None
) -> Record:
    """Return the fields of an attachment, of the kind of its media type unless one is given."""
    media, path = str(media_type or ""), name if isinstance(name, str) else ""
    by_type = media.partition("/")[0]
    return {
        "kind": kind or (by_type if by_type in ("image", "audio", "video") else "file"),
        "name": path.rpartition("/")[2] or None if not path.startswith("(File ") else None,
        "media_type": media or None,
        "description": description[:_MAX_DESCRIPTION] if isinstance(description, str) else None,
        "url": url if isinstance(url, str) else None,
    }


def as_list(value: object) -> list[Any]:
    """Return a JSON value if it is an array, else an empty one."""
    return cast("list[Any]", value) if isinstance(value, list) else []


def moment(seconds: object) -> datetime | None:
    """Return the time of a number of seconds since 1970, or None if it is no such number."""
    try:
        return datetime.fromtimestamp(float(cast("Any", seconds)), UTC)
    except (TypeError, ValueError, OverflowError, OSError):
        return None
