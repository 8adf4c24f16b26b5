"""Griffe extension for the reference of the API, which corrects types and defaults of parameters.

Griffe reads the code without running it, so it doesn't know the constructor that pydantic makes: each field of a model
would be shown as required and without its type. To parameters that share a description it gives the type of the first.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import griffe

BASE = "graphmem.models.Model"


class CorrectParameters(griffe.Extension):
    """Gives models a constructor with their fields, and each documented parameter its own type and default."""

    def on_package(self, *, pkg: griffe.Module, **_: Any) -> None:
        """Go through the classes of a package that was loaded."""
        base = pkg.modules_collection[BASE].canonical_path
        objects = list(_objects(pkg))
        models = [each for each in objects if isinstance(each, griffe.Class) and base in [b.path for b in each.mro()]]
        for model, constructor in [(model, _constructor(model, base)) for model in models]:
            if constructor is not None:
                model.set_member("__init__", constructor)
        for each in objects:
            if isinstance(each, griffe.Function) or "__init__" in each.members:  # a dataclass has none yet
                _correct(each)


def _objects(part: griffe.Object) -> Iterator[griffe.Class | griffe.Function]:
    for member in part.members.values():
        if isinstance(member, (griffe.Class, griffe.Function)):
            yield member
        if isinstance(member, (griffe.Module, griffe.Class)):
            yield from _objects(member)


def _correct(described: griffe.Class | griffe.Function) -> None:
    for section in described.docstring.parsed if described.docstring else ():
        for shown in section.value if isinstance(section, griffe.DocstringSectionParameters) else ():
            if shown.name in described.parameters:
                parameter = described.parameters[shown.name]
                shown.annotation, shown.value = parameter.annotation, parameter.default


def _constructor(model: griffe.Class, base: str) -> griffe.Function | None:
    lines = [model, *model.mro()]
    if any("__init__" in line.members for line in lines if line.path != base):
        return None
    fields: dict[str, griffe.Attribute] = {}
    for line in reversed(lines):
        fields |= {name: field for name, field in line.attributes.items() if _is_field(field)}
    keyword = griffe.ParameterKind.keyword_only
    parameters = [
        griffe.Parameter(name, annotation=_type(field), kind=keyword, default=_default(field))
        for name, field in fields.items()
    ]
    return griffe.Function("__init__", parameters=griffe.Parameters(*parameters))


def _is_field(attribute: griffe.Attribute) -> bool:
    kind = attribute.annotation
    return kind is not None and "ClassVar" not in str(kind) and not attribute.name.startswith("_")


def _type(field: griffe.Attribute) -> str | griffe.Expr | None:
    """Return the type of a field without what validates it."""
    kind = field.annotation
    if isinstance(kind, griffe.ExprSubscript) and str(kind.left) == "Annotated":
        return kind.slice.elements[0] if isinstance(kind.slice, griffe.ExprTuple) else kind
    return kind


def _default(field: griffe.Attribute) -> str | griffe.Expr | None:
    """Return the default of a field, also that of ``Field(default=…)``; "…" for one that is made at each call."""
    value = field.value
    if not isinstance(value, griffe.ExprCall) or str(value.function) != "Field":
        return value
    given = {a.name: a.value for a in value.arguments if isinstance(a, griffe.ExprKeyword)}
    first = next((a for a in value.arguments if not isinstance(a, griffe.ExprKeyword)), None)
    return given.get("default", "…" if "default_factory" in given else first)
