"""Keys of the MCP server: what a key permits, the file of their hashes, and their verification."""

from __future__ import annotations

import json
import os
import secrets
import stat
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Generator
from contextlib import contextmanager, suppress
from datetime import datetime
from hashlib import sha256
from hmac import compare_digest
from pathlib import Path
from typing import Literal

from pydantic import Field

from graphmem.errors import GraphMemError, InvalidInput, NotFound
from graphmem.models import Model, Scope, UTCDateTime, utc_now
from graphmem.output_files import output_file

Rights = Literal["read", "write", "admin"]
"""Rights of a caller; each includes the preceding ones. ``admin`` may erase, merge and export."""

RIGHTS: tuple[Rights, ...] = ("read", "write", "admin")

_PREFIX = "gm"
_NOBODY = "0" * 64  # a hash that no token has


class Access(Model):
    """Scopes and rights of a caller.

    Attributes
    ----------
    scopes
        Scopes that are read. The first one is also written.
    rights
        Rights in these scopes.
    user
        Name of the person: "I" in questions, and the speaker of what is remembered.
    agent
        Name of the program that acts for the person.
    """

    scopes: tuple[Scope, ...] = Field(min_length=1)
    rights: Rights = "read"
    user: str | None = None
    agent: str | None = None

    def permits(self, needed: Rights) -> bool:
        """Return whether the rights include the needed ones."""
        return RIGHTS.index(self.rights) >= RIGHTS.index(needed)


class Key(Model):
    """A key as its file stores it: without its token."""

    id: str
    name: str
    token_hash: str
    access: Access
    created_at: UTCDateTime
    expires_at: UTCDateTime | None = None
    revoked_at: UTCDateTime | None = None

    @property
    def state(self) -> Literal["valid", "revoked", "expired"]:
        """Whether the key is valid now, and if not, why."""
        if self.revoked_at is not None:
            return "revoked"
        return "valid" if self.expires_at is None or utc_now() < self.expires_at else "expired"


class _Content(Model):
    version: Literal[1] = 1
    state_secret: str
    keys: tuple[Key, ...] = ()


class KeyFile:
    """File of keys, with mode 0600. It has hashes of tokens; a token is returned once, when its key is added.

    The file is read again when it changes, so that a revoked key is refused immediately by every server that uses it.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        self._read: tuple[tuple[int, ...], _Content] | None = None

    @property
    def state_secret(self) -> bytes:
        """Secret that all servers with this file share; it seals the state of unfinished calls."""
        return urlsafe_b64decode(self._content().state_secret)

    def list(self) -> tuple[Key, ...]:
        """Return all keys, oldest first.

        Raises
        ------
        InvalidInput
            If the file is missing or damaged, or if others can read it.
        """
        return self._content().keys

    def add(self, name: str, access: Access, *, expires_at: datetime | None = None) -> tuple[Key, str]:
        """Add a key and return it with its token; create the file if it doesn't exist."""
        with self._locked():
            content = self._content() if self.path.exists() else _Content(state_secret=_random_secret())
            if any(key.name == name and key.revoked_at is None for key in content.keys):
                raise InvalidInput(f"key {name!r} exists; revoke it first, or choose another name")
            key_id = secrets.token_hex(6)
            token = f"{_PREFIX}_{key_id}_{secrets.token_urlsafe(32)}"
            key = Key(
                id=key_id,
                name=name,
                token_hash=_hash(token),
                access=access,
                created_at=utc_now(),
                expires_at=expires_at,
            )
            self._write(content.changed(keys=(*content.keys, key)))
        return key, token

    def revoke(self, name_or_id: str) -> Key:
        """Revoke a key and return it; raise `NotFound` if no valid key has this name or id."""
        with self._locked():
            content = self._content()
            found = [k for k in content.keys if name_or_id in (k.name, k.id) and k.revoked_at is None]
            if not found:
                raise NotFound(f"key {name_or_id!r}: {self.path} has no valid key of this name or id")
            revoked = found[0].changed(revoked_at=utc_now())
            self._write(content.changed(keys=tuple(revoked if k.id == revoked.id else k for k in content.keys)))
        return revoked

    def verify(self, token: str) -> Key | None:
        """Return the valid key of a token; None for any other text, or if the file can't be read."""
        try:
            keys = {key.id: key for key in self._content().keys}
        except GraphMemError:
            return None
        prefix, _, rest = token.partition("_")
        key = keys.get(rest.partition("_")[0]) if prefix == _PREFIX else None
        # an unknown key takes as long as a wrong one
        matches = compare_digest(_hash(token), _NOBODY if key is None else key.token_hash)
        return key if key is not None and matches and key.state == "valid" else None

    def _content(self) -> _Content:
        try:
            found = self.path.stat()
            version = (found.st_ino, found.st_mtime_ns, found.st_size)
            if self._read is not None and self._read[0] == version:
                return self._read[1]
            data = self.path.read_bytes()
        except OSError as error:
            hint = "; graphmem keys add creates it" if isinstance(error, FileNotFoundError) else ""
            raise InvalidInput(f"keys {self.path}: {error.strerror or error}{hint}") from error
        if os.name == "posix" and found.st_mode & (stat.S_IRWXG | stat.S_IRWXO):
            raise InvalidInput(f"keys {self.path}: others can access the file; run chmod 600 {self.path}")
        try:
            content = _Content(**json.loads(data))
        except (ValueError, TypeError) as error:
            raise InvalidInput(f"keys {self.path}: the file is damaged; restore or remove it") from error
        self._read = version, content
        return content

    def _write(self, content: _Content) -> None:
        with output_file(self.path, force=True) as file:  # what it replaces was read as a file of keys
            file.write(content.model_dump_json(indent=2, exclude_none=True).encode())

    @contextmanager
    def _locked(self) -> Generator[None]:
        """Let one process at a time change the file; an error of the system is one about the file."""
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            lock = os.open(self.path.with_name(f".{self.path.name}.lock"), os.O_RDWR | os.O_CREAT, 0o600)
            try:
                with suppress(ImportError):
                    from fcntl import LOCK_EX, flock

                    flock(lock, LOCK_EX)
                yield
            finally:
                os.close(lock)
        except OSError as error:
            raise InvalidInput(f"keys {self.path}: cannot be written ({error.strerror or error})") from error


def _hash(token: str) -> str:
    # tokens have 256 random bits, so that a fast hash without salt is enough
    return sha256(token.encode("utf-8", "surrogatepass")).hexdigest()


def _random_secret() -> str:
    return urlsafe_b64encode(secrets.token_bytes(32)).decode()
