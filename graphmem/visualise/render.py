"""A picture in one of the formats."""

from __future__ import annotations

from typing import Literal, get_args

from graphmem.errors import InvalidInput
from graphmem.visualise import dot, mermaid, page, tree
from graphmem.visualise.picture import Picture

PictureFormat = Literal["html", "mermaid", "dot", "ascii"]
FORMATS: tuple[PictureFormat, ...] = get_args(PictureFormat)


def render(picture: Picture, form: PictureFormat) -> str:
    """Return a picture as text.

    Parameters
    ----------
    picture
        What to draw; for ``html`` read `with_past`.
    form
        ``html``: an interactive page in one file; ``mermaid``: a flow chart for Markdown; ``dot``: a digraph for
        Graphviz; ``ascii``: a tree of lines.

    Raises
    ------
    InvalidInput
        If there is no such format.
    """
    match form:
        case "html":
            return page.render(picture)
        case "mermaid":
            return mermaid.render(picture)
        case "dot":
            return dot.render(picture)
        case "ascii":
            return tree.render(picture)
        case _:  # pyright: ignore[reportUnnecessaryComparison]
            raise InvalidInput(f"format: {form!r} is none of {', '.join(FORMATS)}")
