"""A picture as a digraph for Graphviz."""

from __future__ import annotations

from graphmem.visualise.picture import Picture
from graphmem.visualise.style import Kind, caption, kinds, line, words


def render(picture: Picture) -> str:
    """Return the text of a digraph, one cluster for each community."""
    lines = [
        "digraph graphmem {",
        f"  label={_quoted(caption(picture))}; labelloc=t; fontname=Helvetica;",
        '  node [shape=box, style="rounded,filled", fontname=Helvetica, fontsize=11, color="#555555"];',
        '  edge [fontname=Helvetica, fontsize=9, color="#777777"];',
    ]
    for number, kind in enumerate(kinds(picture)):
        lines += _kind(picture, number, kind)
    lines += [
        f"  n{link.source} -> n{link.target} "
        f"[label={_quoted(words(link.relation))}, tooltip={_quoted(line(link.fact))}];"
        for link in picture.links
    ]
    return "\n".join([*lines, "}"]) + "\n"


def _kind(picture: Picture, number: int, kind: Kind) -> list[str]:
    nodes = [_node(picture, i, kind.colour) for i in kind.nodes]
    if not picture.groups:
        return [f"  {node}" for node in nodes]
    head = [f"  subgraph cluster_{number} {{", f'    label={_quoted(kind.name)}; color="{kind.colour}";']
    return [*head, *(f"    {node}" for node in nodes), "  }"]


def _node(picture: Picture, place: int, colour: str) -> str:
    node = picture.nodes[place]
    seed = ", penwidth=3" if node.is_seed else ""
    name, tooltip = _quoted(line(node.name)), _quoted(line(node.entity_type))
    return f'n{place} [label={name}, tooltip={tooltip}, fillcolor="{colour}"{seed}];'


def _quoted(text: str) -> str:
    """Return a quoted string; Graphviz reads escapes and HTML's character references in it."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("&", "&amp;")
    return f'"{escaped}"'
