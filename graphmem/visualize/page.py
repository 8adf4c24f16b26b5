"""Rendering of a picture in one of the formats, and the renderer of the self-contained interactive HTML page."""

from __future__ import annotations

import base64
import hashlib
import json
from datetime import datetime
from functools import cache
from importlib.resources import files
from string import Template
from typing import Any, Literal, get_args

from graphmem.errors import InvalidInput
from graphmem.visualize import formats
from graphmem.visualize.picture import Picture, caption, kinds, line, words

_SCRIPTS = (
    "cytoscape.min.js",
    "d3-dispatch.min.js",
    "d3-quadtree.min.js",
    "d3-timer.min.js",
    "d3-force.min.js",
    "page.js",
)
_QUOTED = 400  # maximum characters of an episode


def render_page(picture: Picture) -> str:
    """Return the HTML page with the data embedded as JSON; a content security policy allows only its own scripts."""
    scripts = [_asset(name) for name in _SCRIPTS]
    return Template(_asset("page.html")).substitute(
        title=_escaped_text(caption(picture)),
        hashes=" ".join(f"'sha256-{_digest(text)}'" for text in scripts),
        style=_asset("page.css"),
        data=_escaped_json(_data(picture)),
        licence=_asset("d3.LICENSE"),
        scripts="\n".join(f"<script>{text}</script>" for text in scripts),
    )


@cache
def _asset(name: str) -> str:
    return files("graphmem.visualize").joinpath("assets", name).read_text("utf-8")


def _digest(script: str) -> str:
    return base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()


def _escaped_text(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _escaped_json(value: Any) -> str:
    """Return JSON escaped for embedding in an HTML script element."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _data(picture: Picture) -> dict[str, Any]:
    found = kinds(picture)
    kind_of = {i: number for number, kind in enumerate(found) for i in kind.nodes}
    return {
        "title": caption(picture),
        "drawnAt": _time(picture.drawn_at),
        "moment": None if picture.as_of is None else _time(picture.as_of.valid),
        "byCommunity": bool(picture.groups),
        "kinds": [{"name": k.name, "summary": k.summary, "color": k.color, "size": len(k.nodes)} for k in found],
        "nodes": [
            {
                "name": line(node.name),
                "type": line(node.entity_type),
                "summary": line(node.summary),
                "kind": kind_of[place],
                "seed": node.is_seed,
            }
            for place, node in enumerate(picture.nodes)
        ],
        "links": [
            {
                "source": link.source,
                "target": link.target,
                "relation": words(link.relation),
                "type": link.edge_type.value,
                "fact": line(link.fact),
                "confidence": round(link.confidence, 2),
                "from": _time(link.valid_from),
                "to": None if link.valid_to is None else _time(link.valid_to),
                "sources": link.sources,
            }
            for link in picture.links
        ],
        "sources": [
            {
                "text": _cut(source.text),
                "at": _time(source.occurred_at),
                "who": line(source.speaker or source.title or ""),
            }
            for source in picture.sources
        ],
    }


def _cut(text: str) -> str:
    shown = line(text[:_QUOTED])
    return shown if len(text) <= _QUOTED else f"{shown} …"


def _time(moment: datetime) -> float:
    """Return milliseconds since 1970, the unit of JavaScript dates."""
    return moment.timestamp() * 1000


PictureFormat = Literal["html", "mermaid", "dot", "ascii"]
FORMATS: tuple[PictureFormat, ...] = get_args(PictureFormat)


def render(picture: Picture, form: PictureFormat) -> str:
    """Return a picture as text.

    Parameters
    ----------
    picture
        The picture to render; for ``html`` read it `with_past`.
    form
        ``html``: an interactive page in one file; ``mermaid``: a flow chart for Markdown; ``dot``: a digraph for
        Graphviz; ``ascii``: a tree of lines.

    Raises
    ------
    InvalidInput
        If the format is unknown.
    """
    match form:
        case "html":
            return render_page(picture)
        case "mermaid":
            return formats.render_mermaid(picture)
        case "dot":
            return formats.render_dot(picture)
        case "ascii":
            return formats.render_tree(picture)
        case _:  # pyright: ignore[reportUnnecessaryComparison]
            raise InvalidInput(f"format {form!r}: expected one of {', '.join(FORMATS)}")
