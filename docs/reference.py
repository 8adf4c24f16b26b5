"""Write the generated pages of docs/reference and the picture of the layers from the code: `make reference`."""

from __future__ import annotations

import re
import runpy
from collections.abc import Iterator
from inspect import signature
from pathlib import Path
from typing import Any, get_args

import typer
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

from graphmem.adapters.cli.app import app
from graphmem.adapters.cli.session import shared_options
from graphmem.models import EdgeType
from graphmem.ontology import DEFAULT_ONTOLOGY, ENTITY_TYPES, FLOW_WEIGHT
from graphmem.settings import Settings
from graphmem.telemetry import ATTRIBUTES, METRICS, SPANS

FOLDER = Path(__file__).parent
SECTIONS = {
    "store": "Store",
    "extractor": "Extraction",
    "embeddings": "Embeddings and search",
    "recall_limit": "Recall",
    "lpa_edge_chunk_size": "Communities and upkeep",
    "spreading_decay_lambda": "Spreading activation",
    "context_window": "Context",
}
"""First setting of each section → its title."""

_SETTINGS = """# Settings

<!-- written by `make reference` from graphmem/settings.py -->

A setting can be given as a keyword argument of `GraphMemory.open`, as an environment variable (`GRAPHMEM_` followed by
the name in capitals) or as a line of `graphmem.toml` in the working directory. An argument takes precedence over a
variable, and a variable over the file. An empty variable counts as unset. On the command line, `--config FILE` names
another file, and `graphmem config` prints the values in force. In the file, settings are top-level keys:

```toml
store = "sqlite:///memory.db"
recall_limit = 20
```

An unknown name in the file or among the arguments is an error; an unknown variable is a warning. Both messages name the
closest known setting.
"""

_ONTOLOGY = """# The ontology

<!-- written by `make reference` from graphmem/ontology.py -->

The ontology defines the kinds of entities and facts. This page lists the default; the setting `ontology` names a TOML
file that extends it:

```toml
entity_types = ["vehicle"]
single_valued = ["parked_at"]    # a new fact ends the previous one
short_names = ["bo"]             # accepted names of one or two characters

without_rules = ["shared works_at"]  # default rules of inference to leave out, by name

[synonyms]                       # relation as stated = relation as stored
parks_at = "parked_at"

[[rules]]                        # a further rule of inference
kind = "inverse"
relations = ["manages"]
implies = "reports_to"
```
"""


def settings_page() -> str:
    """Return the page of all settings, in the order in which the class has them."""
    lines = [_SETTINGS.rstrip("\n")]
    for name, field in Settings.model_fields.items():
        if name in SECTIONS:
            lines += [f"\n## {SECTIONS[name]}\n", "| setting | default | value | meaning |", "|---|---|---|---|"]
        lines.append(f"| `{name}` | {_default(field)} | {_values(field)} | {field.description} |")
    return "\n".join(lines) + "\n"


def _default(field: FieldInfo) -> str:
    value: object = field.default
    if value is None or value is PydanticUndefined:
        return ""
    return f"`{str(value).lower() if isinstance(value, bool) else value}`"


def _values(field: FieldInfo) -> str:
    """Return what a setting takes: the words, or the kind of value and its limits."""
    if choices := _choices(field.annotation):
        return ", ".join(f"`{choice}`" for choice in choices)
    kinds = (
        ("dict", "names and numbers"),
        ("tuple", "list of texts"),
        ("bool", "true or false"),
        ("int", "whole number"),
        ("float", "number"),
        ("Path", "file"),
    )
    kind = next((words for name, words in kinds if name in str(field.annotation)), "text")
    signs = {"ge": "≥", "gt": ">", "le": "≤", "lt": "<"}
    limits = [
        f"{sign} {value:g}"
        for name, sign in signs.items()
        for limit in field.metadata
        if (value := getattr(limit, name, None)) is not None
    ]
    return ", ".join([kind, *limits])


def _choices(annotation: object) -> list[str]:
    inner = get_args(annotation)
    words = [one for one in inner if isinstance(one, str)]
    return [*words, *(word for one in inner if not isinstance(one, (str, type)) for word in _choices(one))]


_MULTI_VALUED = (
    "created uses implements part_of relates_to mentioned_in supersedes conflicts_with prefers decided similar_to"
).split()


def ontology_page() -> str:
    """Return the page of entity types, edge types and relations."""
    synonyms: dict[str, list[str]] = {}
    for word, relation in DEFAULT_ONTOLOGY.synonyms.items():
        synonyms.setdefault(relation, []).append(f"`{word}`")
    lines = [_ONTOLOGY.rstrip("\n"), "\n## Entity types\n"]
    lines.append(", ".join(f"`{kind}`" for kind in ENTITY_TYPES) + ". Another word is stored as `concept`, and")
    lines.append("itself as the property `declared_type`.")
    lines += [
        "\n## Edge types\n",
        "| type | weight in recall | relations that get this type unless one is stated |",
        "|---|---|---|",
    ]
    for kind in EdgeType:
        relations = [f"`{name}`" for name, of in DEFAULT_ONTOLOGY.edge_type_of.items() if of is kind]
        words = ", ".join(relations) or "all others"
        lines.append(f"| `{kind.value}` | {FLOW_WEIGHT[kind]:g} | {words} |")
    lines.append("\n## Relations\n")
    lines.append(
        "Any verb phrase can be a relation. The relations below are known. *One* value: a source has one target"
    )
    lines.append("at a time. The default types are given to source and target if none are stated.\n")
    lines += ["| relation | values | default types | synonyms |", "|---|---|---|---|"]
    for name in sorted({*DEFAULT_ONTOLOGY.single_valued, *_MULTI_VALUED, *synonyms}):
        ends = [end or "anything" for end in DEFAULT_ONTOLOGY.signature(name)]
        shown = "" if ends == ["anything", "anything"] else " → ".join(ends)
        values = "one" if DEFAULT_ONTOLOGY.is_single_valued(name) else "many"
        lines.append(f"| `{name}` | {values} | {shown} | {', '.join(synonyms.get(name, ()))} |")
    lines += ["\n## Rules of inference\n", "See [Infer facts from others](../how-to/infer.md).\n"]
    lines += ["| rule | implies | factor of the confidence |", "|---|---|---|"]
    lines += [f"| {rule.name} | `{rule.conclusion}` | {rule.confidence:g} |" for rule in DEFAULT_ONTOLOGY.rules]
    lines.append("\n## Short names\n")
    short = ", ".join(f"`{name}`" for name in sorted(DEFAULT_ONTOLOGY.short_names))
    lines += [
        "A name has at least three characters. Exceptions are the names of speakers; in `add_facts` names of known "
        f"entities and numbers as objects; and {short}."
    ]
    return "\n".join(lines) + "\n"


_CLI = """# Command line

<!-- written by `make reference` from graphmem/adapters/cli -->

`graphmem COMMAND --help` prints the help of a command, `graphmem -V` the version, and `graphmem --install-completion`
installs shell completion. `graphmem demo` shows most of the commands at work on a bundled conversation.

A DATE is `2026`, `2026-01`, `2026-01-31` (its start, in UTC) or an ISO 8601 time with an offset. Commands that only
read never create a store: a missing store is an error. `init`, `remember`, `ingest`, `import`, `demo`, `mcp` and
`worker` create one.

## Output

On a terminal, commands print tables; in a pipe, aligned text without colors or boxes (as wide as `COLUMNS` says, from
60 on, else 120 characters; longer text wraps). With `--json`, standard output has exactly one JSON document; a command
that fails with 2 or 3 prints none, except for `doctor` with 3. Remarks, refused lines and errors go to standard error.
Progress bars are shown on terminals only. Control characters in stored text are removed.

## Exit codes

| code | meaning |
|---|---|
| 0 | success |
| 1 | failure; `ingest` refused all that it read; `doctor` found a problem |
| 2 | invalid command line, setting or file name |
| 3 | the store is unavailable, damaged, or written by a newer version |
| 4 | nothing found |
| 5 | done, but some lines were refused |
| 130 | interrupted |
"""


def cli_page() -> str:
    """Return the page of all commands with their arguments and options."""
    program: Any = typer.main.get_command(app)
    context = type(program.make_context("graphmem", ["help"], resilient_parsing=True))
    root = context(program, info_name="graphmem")
    shared = signature(shared_options).parameters
    lines = [_CLI.rstrip("\n"), "\n## Options of every command\n", "They can be given before or after the command.\n"]
    lines += _parameters([p for p in program.params if p.name in shared], root)
    lines += ["\n## Commands\n", "| command | purpose |", "|---|---|"]
    commands = list(_commands(program.commands))
    lines += [
        f"| [`{name}`](#{name.replace(' ', '-')}) | {_cell(each.get_short_help_str(200))} |" for name, each in commands
    ]
    for name, each in commands:
        inside = context(each, parent=root, info_name=name)
        lines += [f"\n### {name}\n", f"`{each.get_usage(inside).removeprefix('Usage: ')}`\n", each.help.rstrip()]
        if own := [p for p in each.params if p.name not in shared]:
            lines += ["", *_parameters(own, inside)]
    return "\n".join(lines) + "\n"


def _commands(commands: dict[str, Any], group: str = "") -> Iterator[tuple[str, Any]]:
    """Yield the commands and those of groups, with their full names."""
    for name, each in commands.items():
        if (inner := getattr(each, "commands", None)) is not None:
            yield from _commands(inner, f"{group}{name} ")
        else:
            yield f"{group}{name}", each


def _parameters(parameters: list[Any], context: Any) -> Iterator[str]:
    yield from ("| argument or option | meaning |", "|---|---|")
    for parameter in parameters:
        form, meaning = parameter.get_help_record(context)
        kind = "" if parameter.param_type_name == "argument" else " TEXT" if "<str" in form else " N"
        form = re.sub(" <.*>", kind, form)
        yield f"| `{form}` | {_cell(meaning)} |"


def _cell(text: str) -> str:
    """Return text on one line that ends no cell of a table."""
    return re.sub(r"([][|])", r"\\\1", " ".join(text.split())).replace("<", "&lt;")


_TELEMETRY = """# Spans and metrics

<!-- written by `make reference` from graphmem/telemetry.py -->

How to record them: [Monitor](../how-to/monitor.md).

## Metrics
"""


def telemetry_page() -> str:
    """Return the page of the names of spans, attributes and metrics."""
    lines = [_TELEMETRY.rstrip("\n"), "", "| metric | kind | labels | meaning |", "|---|---|---|---|"]
    for name, metric in METRICS.items():
        labels = ", ".join(f"`{label}`" for label in metric.labels)
        lines.append(f"| `{name}` | {metric.kind} | {labels} | {metric.help} |")
    lines += ["\n## Spans\n", "| span | covers |", "|---|---|"]
    lines += [f"| `{name}` | {what} |" for name, what in SPANS.items()]
    lines += ["\n## Attributes of spans\n", "| attribute | meaning |", "|---|---|"]
    lines += [f"| `{name}` | {what} |" for name, what in ATTRIBUTES.items()]
    return "\n".join(lines) + "\n"


PAGES = {
    "reference/settings.md": settings_page,
    "reference/ontology.md": ontology_page,
    "reference/cli.md": cli_page,
    "reference/telemetry.md": telemetry_page,
    "images/layers.svg": runpy.run_path(str(FOLDER / "layers.py"))["picture"],
}

if __name__ == "__main__":
    for name, write in PAGES.items():
        (FOLDER / name).write_text(write(), encoding="utf-8")
