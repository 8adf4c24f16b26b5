"""`graphmem init`: questions about store, extraction, embeddings and privacy, checked live, and a settings file."""

from __future__ import annotations

import json
import logging
import os
import sys
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

from graphmem.adapters.cli.session import FAILED, Session, Shared, command

if TYPE_CHECKING:
    from graphmem.settings import Settings

T = TypeVar("T")

_SENTENCE = "Maya Chen works at Initech."
_SECONDS = 120.0  # for the first extraction of a model, and for its first vectors
_CALLS, _TOKENS_IN, _TOKENS_OUT = 300, 903_000, 135_000  # per 1,000 turns, docs/concepts/extraction.md
_STORE_HINT = (
    "Neo4j 5 with Graph Data Science in a container: make neo4j-up in a checkout of graphmem, or "
    "docs/how-to/neo4j.md. Without a server: sqlite:///graphmem.db"
)
_SERVERS = ("neo4j:", "neo4j+", "bolt:", "bolt+")
_EXTRACTION = {
    "local": "facts by spaCy on this machine: free and private, English, short sentences only",
    "llm": "facts by a language model: the best ones, in any language; costs tokens",
    "none": "no facts from texts: turns are stored and searchable, ready-made triples can be added",
}
_PRIVACY = {
    "off": "store everything as it is",
    "facts": "replace personal data in facts and summaries, store texts as they are",
    "all": "replace personal data in all that is stored or sent to a model",
}
_GROUPS: dict[str, tuple[str, ...]] = {
    "Where the memory is kept. Set the password in GRAPHMEM_STORE_PASSWORD, not here.": ("store", "store_username"),
    "Whose memory it is: domain or domain/project.": ("scope",),
    "What reads facts from texts: auto, spacy, llm:PROVIDER:MODEL or none. Set its key in the provider's variable.": (
        "extractor",
    ),
    "Vectors for search: auto (the built-in model), none, or PROVIDER:MODEL.": ("embeddings",),
    "Personal data: off, facts or all. With all, set GRAPHMEM_REDACT_KEY.": ("redact",),
    "Whether to keep texts that look like prompt injections from being extracted.": ("detect_injection",),
    'Days after which superseded facts are deleted; "none" keeps the history.': ("expired_edge_retention_days",),
}


def register(app: typer.Typer) -> None:
    """Add the command to the program."""
    command(app)(init)


def init(
    session: Session,
    *,
    extractor: Annotated[
        str | None, typer.Option(metavar="NAME", help="local, llm:PROVIDER:MODEL, none, or as the setting.")
    ] = None,
    embeddings: Annotated[str | None, typer.Option(metavar="NAME", help="auto, none or PROVIDER:MODEL.")] = None,
    username: Annotated[str | None, typer.Option(help="User name for a server.")] = None,
    redact: Annotated[str | None, typer.Option(metavar="MODE", help="off, facts or all.")] = None,
    detect_injection: Annotated[bool | None, typer.Option(help="Leave suspicious texts unextracted.")] = None,
    retention_days: Annotated[
        str | None, typer.Option(metavar="DAYS", help="Days to keep superseded facts, or none.")
    ] = None,
    check: Annotated[bool, typer.Option(help="Open the store and run the models once.")] = True,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Don't ask: options, or else defaults.")] = False,
    force: Annotated[bool, typer.Option("--force", help="Replace the file if it exists.")] = False,
) -> None:
    """Ask what a memory needs, check it, and write a commented settings file.

    The file is graphmem.toml, or that of --config. Each answer is checked at once: the store is opened, and extractor
    and embedding model read one sentence. Passwords and keys are never written; the file names their variables.
    """
    file = Path(session.shared.config or "graphmem.toml")
    _require_writable(file, force=force)
    if not yes and not sys.stdin.isatty():
        typer.echo("graphmem: init asks on a terminal and there is none: pass --yes, and options for answers", err=True)
        raise typer.Exit(FAILED)
    wizard = _Wizard(session, asks=not yes, check=check)
    values: dict[str, Any] = {}
    values |= wizard.store(session.shared.store, username)
    values["scope"] = wizard.scope(session.shared.scope)
    values |= wizard.models(extractor, embeddings)
    values |= wizard.privacy(redact, detect_injection, retention_days)
    _write(file, values, force=force)
    if session.out.as_json:
        session.out.document({"file": str(file), "settings": values})
    session.out.note(f"wrote {file}; next:")
    in_file = Session(Shared(config=session.shared.config))  # the store and the scope are in the file
    begin = in_file.command_line("ingest", "chat.jsonl")
    steps = [
        in_file.command_line("doctor"),
        f"{begin}    # or: graphmem remember, or from graphmem import GraphMemory",
    ]
    for step in steps if check else reversed(steps):  # without a check there is no store that doctor could open
        session.out.command(step)


_SECRET_STORE = (
    "GRAPHMEM_STORE has a password, which isn't written; while it is set, it counts and not the store in the file. To "
    "write its store, set GRAPHMEM_STORE_PASSWORD instead and pass --store with the URL without it"
)


class _Wizard:
    """Questions with defaults; without a terminal, the defaults are the answers, and a failed check is an error."""

    def __init__(self, session: Session, *, asks: bool, check: bool) -> None:
        self._out = session.out
        self._asks = asks
        self._checks = check

    def store(self, url: str | None, username: str | None) -> dict[str, Any]:
        """Return URL and user name of a store that can be opened."""
        from graphmem.registry import masked

        def answer() -> dict[str, Any]:
            known = os.environ.get("GRAPHMEM_STORE", "")
            if masked(known) != known:
                known = ""
                self._out.note(_SECRET_STORE)
            known = known or "sqlite:///graphmem.db"
            chosen = url or self._ask("Store: an SQLite file, or neo4j://HOST:7687", known)
            values: dict[str, Any] = {"store": chosen}
            if not chosen.startswith(_SERVERS):
                if username is not None:
                    self._out.note("--username is ignored: only a server has users")
                return values
            values["store_username"] = username or self._ask("User name", "neo4j")
            if self._asks and "GRAPHMEM_STORE_PASSWORD" not in os.environ:
                secret: str = typer.prompt("Password (not written to the file)", hide_input=True, err=True)
                os.environ["GRAPHMEM_STORE_PASSWORD"] = secret  # for the checks of this run
                self._out.note("set GRAPHMEM_STORE_PASSWORD in the environment of your programs")
            return values

        return self._until_ok(answer, self._open_store, again=url is None)

    def scope(self, scope: str | None) -> str:
        """Return a valid scope."""
        from graphmem.models import Scope

        return self._until_ok(
            lambda: (
                scope or self._ask("Scope: domain or domain/project", os.environ.get("GRAPHMEM_SCOPE") or "default")
            ),
            Scope.from_text,
            again=scope is None,
        )

    def models(self, extractor: str | None, embeddings: str | None) -> dict[str, Any]:
        """Return extractor and embedding model that can read a sentence."""
        from graphmem.text.english import spacy_available

        def answer() -> dict[str, Any]:
            chosen = extractor or self._choose("Extraction", _EXTRACTION, "local" if spacy_available() else "none")
            if chosen == "llm":
                model = self._ask("Model as PROVIDER:MODEL", "openai:gpt-5-mini")
                chosen = f"llm:{model}"
            if chosen.startswith("llm:"):
                self._out.note(
                    f"estimated cost per 1,000 turns: {_CALLS} calls, {_TOKENS_IN:,} input tokens (mostly a fixed "
                    f"prompt, which providers cache), {_TOKENS_OUT:,} output tokens; see docs/concepts/extraction.md"
                )
            return {
                "extractor": "spacy" if chosen == "local" else chosen,
                "embeddings": embeddings or self._ask("Embeddings: auto, none or PROVIDER:MODEL", "auto"),
            }

        return self._until_ok(answer, self._run_models, again=extractor is None and embeddings is None)

    def privacy(self, redact: str | None, detect_injection: bool | None, retention_days: str | None) -> dict[str, Any]:
        """Return redaction, detection of injections, and the time for which history is kept."""
        if detect_injection is None:
            question = "Leave texts that look like prompt injections unextracted?"
            detect_injection = not self._asks or typer.confirm(question, default=True, err=True)
        values: dict[str, Any] = self._until_ok(
            lambda: {"redact": redact or self._choose("Personal data", _PRIVACY, "off")},
            _settings,
            again=redact is None,
        )
        if values["redact"] == "all" and "GRAPHMEM_REDACT_KEY" not in os.environ:
            self._out.note(
                "set GRAPHMEM_REDACT_KEY to a long random text, and keep it: names are replaced by its digests"
            )
        values["detect_injection"] = detect_injection

        def answer() -> dict[str, Any]:
            days = retention_days or self._ask("Days to keep superseded facts (90, or none for ever)", "none")
            return {
                **values,
                "expired_edge_retention_days": float(days) if days.replace(".", "", 1).isdecimal() else days,
            }

        return self._until_ok(answer, _settings, again=retention_days is None)

    def _ask(self, question: str, default: str) -> str:
        return typer.prompt(question, default=default, err=True) if self._asks else default

    def _choose(self, question: str, choices: Mapping[str, str], default: str) -> str:
        if not self._asks:
            return default
        self._out.pairs(choices.items())
        return self._ask(f"{question}: {', '.join(choices)}", default)

    def _until_ok(self, answer: Callable[[], T], check: Callable[[T], object], *, again: bool) -> T:
        """Return an answer that passes its check; on a terminal, ask again after one that fails."""
        from graphmem.errors import GraphMemError

        while True:
            given = answer()
            try:
                check(given)
            except GraphMemError as error:
                if not (self._asks and again):
                    raise
                self._out.note(f"{error}; another answer, or Ctrl-C to stop")
            else:
                return given

    def _open_store(self, values: Mapping[str, Any]) -> None:
        from graphmem.errors import BackendUnavailable, InvalidInput
        from graphmem.registry import masked

        settings = _settings(values)
        if masked(settings.store) != settings.store:
            raise InvalidInput("store: the URL has a password, which would be written; set GRAPHMEM_STORE_PASSWORD")
        if not self._checks:
            return
        from graphmem.memory import GraphMemory

        try:
            with GraphMemory.open(settings=settings, extractor="none", embeddings="none", background=False) as memory:
                failed = [check.detail for check in memory.admin.doctor() if not check.ok and check.name != "extractor"]
        except BackendUnavailable as error:
            raise BackendUnavailable(f"{error}. {_STORE_HINT}") from error
        self._out.note("; ".join(["store: opened", *failed]))

    def _run_models(self, values: Mapping[str, Any]) -> None:
        from graphmem.errors import ExtractionFailed

        settings = _settings({**values, "index_wait": _SECONDS})
        if not self._checks:
            return
        from graphmem.memory import GraphMemory

        with _quiet(), GraphMemory.open("memory://", settings=settings, background=False) as memory:
            memory.remember(_SENTENCE)
            if values["extractor"] == "none":
                self._out.note("extraction: none; texts are stored and searchable, and no facts are taken from them")
            else:
                left, stats = memory.flush(_SECONDS), memory.stats()
                if left or stats.failed_episodes:
                    reason = stats.errors[0].error if stats.errors else str(stats.queue)
                    raise ExtractionFailed(f"extractor {values['extractor']}: it couldn't read a sentence: {reason}")
                found = [fact.fact for fact in memory.facts("Maya Chen")]
                self._out.note(f"extraction: {_SENTENCE!r} gives {found or 'no facts'}")
            degraded = memory.search("Where does Maya work?").degraded
            self._out.note(f"search: {degraded[0] if degraded else 'ok'}")


@contextmanager
def _quiet() -> Generator[None]:
    """Keep the log of graphmem silent; the command prints the reason of a failure itself."""
    log = logging.getLogger("graphmem")
    level = log.level
    log.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        log.setLevel(level)


def _settings(values: Mapping[str, Any]) -> Settings:
    from graphmem.settings import Settings

    return Settings(**values)


def _require_writable(file: Path, *, force: bool) -> None:
    """Raise `InvalidInput` before the first question if the file can't be written at the end."""
    from graphmem.errors import InvalidInput
    from graphmem.output_files import may_write

    if file.exists() and not force:
        raise InvalidInput(f"{file}: the file exists; pass --force to replace it, or --config FILE for another")
    if not may_write(file.absolute().parent):
        raise InvalidInput(f"{file}: its folder doesn't exist or can't be written")


def _write(file: Path, values: Mapping[str, Any], *, force: bool) -> None:
    """Write the settings with comments, after a check of all of them together."""
    from graphmem.output_files import output_file

    _settings(values)
    lines = ["# Settings of graphmem, written by graphmem init. graphmem config prints all of them."]
    for comment, names in _GROUPS.items():
        lines += ["", f"# {comment}", *(f"{name} = {_toml(values[name])}" for name in names if name in values)]
    with output_file(file, force=force) as output:
        output.write(("\n".join(lines) + "\n").encode())


def _toml(value: object) -> str:
    """Return a text, a number or a truth value in TOML, which has JSON's escapes but no pairs of surrogates."""
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
