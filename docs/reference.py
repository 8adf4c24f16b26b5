"""Write docs/settings.md and docs/ontology.md from the code: `make reference`."""

from __future__ import annotations

from pathlib import Path
from typing import get_args

from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

from graphmem.models import EdgeType
from graphmem.ontology import DEFAULT_ONTOLOGY, ENTITY_TYPES, FLOW_WEIGHT, MULTI_VALUED
from graphmem.settings import Settings

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

Every setting is a keyword argument of `GraphMemory.open`, a variable (`GRAPHMEM_` and its name in capitals), or a line
of `graphmem.toml` in the working directory; the first of these that has it counts. On the command line, `--config FILE`
names another file, and `graphmem config` prints what is in force. In the file, settings stand at the top, in no table:

```toml
store = "sqlite:///memory.db"
recall_limit = 20
```

An unknown name in the file or among the arguments is an error, an unknown variable a warning; both name the setting
that was probably meant.
"""

_ONTOLOGY = """# The ontology

<!-- written by `make reference` from graphmem/ontology.py -->

What kinds of entities and facts there are. The setting `ontology` names a TOML file that adds to what stands here:

```toml
entity_types = ["vehicle"]
single_valued = ["parked_at"]    # a new fact ends the one before
short_names = ["bo"]             # names of one or two characters that are names

[synonyms]                       # relation as it is said = relation as it is stored
parks_at = "parked_at"
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
    kinds = (("bool", "true or false"), ("int", "whole number"), ("float", "number"), ("Path", "file"))
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


def ontology_page() -> str:
    """Return the page of entity types, edge types and relations."""
    synonyms: dict[str, list[str]] = {}
    for word, relation in DEFAULT_ONTOLOGY.synonyms.items():
        synonyms.setdefault(relation, []).append(f"`{word}`")
    lines = [_ONTOLOGY.rstrip("\n"), "\n## Entity types\n"]
    lines.append(", ".join(f"`{kind}`" for kind in ENTITY_TYPES) + ". Any other word becomes `concept`.")
    lines += [
        "\n## Edge types\n",
        "| type | weight in recall | relations of this type where none is stated |",
        "|---|---|---|",
    ]
    for kind in EdgeType:
        relations = [f"`{name}`" for name, of in DEFAULT_ONTOLOGY.edge_type_of.items() if of is kind]
        words = ", ".join(relations) or "all others"
        lines.append(f"| `{kind.value}` | {FLOW_WEIGHT[kind]:g} | {words} |")
    lines.append("\n## Relations\n")
    lines.append("Any verb phrase is a relation. These are known; *one* says that a source has one target at a time:\n")
    lines += ["| relation | values | ends, where unstated | also said as |", "|---|---|---|---|"]
    for name in sorted({*DEFAULT_ONTOLOGY.single_valued, *MULTI_VALUED, *synonyms}):
        ends = [end or "anything" for end in DEFAULT_ONTOLOGY.signature(name)]
        shown = "" if ends == ["anything", "anything"] else " → ".join(ends)
        values = "one" if DEFAULT_ONTOLOGY.is_single_valued(name) else "many"
        lines.append(f"| `{name}` | {values} | {shown} | {', '.join(synonyms.get(name, ()))} |")
    lines.append("\n## Short names\n")
    short = ", ".join(f"`{name}`" for name in sorted(DEFAULT_ONTOLOGY.short_names))
    lines.append(f"A name has at least three characters. The exceptions: {short}, and who speaks.")
    return "\n".join(lines) + "\n"


PAGES = {"settings.md": settings_page, "ontology.md": ontology_page}

if __name__ == "__main__":
    for name, write in PAGES.items():
        (FOLDER / name).write_text(write(), encoding="utf-8")
