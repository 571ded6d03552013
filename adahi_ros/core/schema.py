# SPDX-License-Identifier: Apache-2.0
"""Dataclasses that check the content of a file: strict types, known fields, errors with field and value.

    @dataclass(frozen=True)
    class Door(Schema):
        width_m: Annotated[float, within(0.5, 2.0)]
        names: Listed[str] = ()

    door = checked(Door, {"width_m": 1})

The YAML parser limits size and nesting first (core/yaml_files.py).
"""

from __future__ import annotations

import reprlib
from collections.abc import Callable, Collection
from dataclasses import fields
from pathlib import Path
from typing import Annotated, Any, ClassVar, TypeVar

from pydantic import (
    BeforeValidator,
    ConfigDict,
    GetCoreSchemaHandler,
    TypeAdapter,
    ValidationError,
    WrapValidator,
)
from pydantic_core import CoreSchema, ErrorDetails, core_schema

from adahi_ros.core.gone_names import gone
from adahi_ros.core.texts import abridged
from adahi_ros.core.yaml_files import read_yaml

T = TypeVar("T")
STRICT = ConfigDict(
    strict=True,
    extra="forbid",
    arbitrary_types_allowed=True,
    alias_generator=lambda name: name.rstrip("_"),  # a field `as_` is `as` in the file
    populate_by_name=True,
)
LARGEST = 3.4028234663852886e38  # of float32

SHOWN = reprlib.Repr()
SHOWN.maxlevel = 2  # a few lines of YAML make a list of billions
SHOWN.maxlist = SHOWN.maxtuple = SHOWN.maxdict = 30
SHOWN.maxstring = SHOWN.maxother = SHOWN.maxlong = 100

WORDS = {
    "bool_type": "true or false",
    "dataclass_type": "a mapping",
    "dict_type": "a mapping",
    "finite_number": "a finite number",
    "float_type": "a number",
    "int_type": "an integer",
    "invalid_key": "a mapping from names",
    "list_type": "a list",
    "string_type": "a text",
    "too_long": "of {max_length} entries at most",
    "too_short": "of {min_length} entries at least",
    "tuple_type": "a list",
}
"""Allowed values, by pydantic's type of an error."""


class Schema:
    """Base of dataclasses that are made from the mappings of a file.

    pydantic dataclasses check every construction; standard dataclasses only files.
    """

    __pydantic_config__: ClassVar[ConfigDict] = STRICT

    @classmethod
    def prepared(cls, values: dict[object, object]) -> dict[object, object]:
        """Return the content of a file by the names of the fields, before any check."""
        return values

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        schema = handler(source)
        inner: Any = schema
        while inner["type"] != "dataclass":
            inner = inner["schema"]
        inner["strict"] = False  # takes a mapping; its fields stay strict
        return core_schema.no_info_before_validator_function(cls._known, schema)

    @classmethod
    def _known(cls, values: object) -> object:
        if not isinstance(values, dict):
            return values
        values = cls.prepared(dict(values))
        names = [field.name.rstrip("_") for field in fields(cls) if field.init]  # type: ignore[arg-type]
        for name in values:
            if name not in names:
                raise ValueError(f"{name}: unknown{gone(name)}, must be one of {', '.join(names)}")
        return values


def must(words: str, holds: Callable[[Any], object] = lambda value: True) -> WrapValidator:
    """Return the check of a field: of its type, and of `holds`; the words describe what is allowed."""

    def check(value: Any, handler: Callable[[Any], Any]) -> Any:
        try:
            made = handler(value)
        except ValidationError:
            raise ValueError(f"must {words}") from None
        if not holds(made):
            raise ValueError(f"must {words}")
        return made

    return WrapValidator(check)


def within(least: float, most: float, what: str = "a number") -> WrapValidator:
    """Return the check of a number from `least` to `most`."""
    return must(f"be {what} from {least:g} to {most:g}", lambda value: least <= value <= most)


def above(least: float, most: float = LARGEST) -> WrapValidator:
    """Return the check of a number above `least` and not above `most`."""
    words = f"be a number above {least:g}" + ("" if most == LARGEST else f" and at most {most:g}")
    return must(words, lambda value: least < value <= most)


def one_of(allowed: Collection[str]) -> WrapValidator:
    """Return the check of one of some texts."""
    return must(f"be one of {', '.join(allowed)}", lambda value: value in allowed)


def at_least(least: int) -> WrapValidator:
    """Return the check of an integer."""
    return must(f"be an integer of at least {least}", lambda value: value >= least)


Text = Annotated[str, must("be a text", bool)]
Listed = Annotated[
    tuple[T, ...], BeforeValidator(lambda value: tuple(value) if isinstance(value, list) else value)
]
"""A list in the file."""


def checked(kind: Any, values: object, where: str = "", strict: bool | None = None) -> Any:
    """Make a type from the content of a file.

    Args:
        kind: a dataclass, or any type that pydantic can check.
        values: plain data.
        where: their path in the file.
        strict: for a type that is no `Schema`, do not convert true or '1' to a number; a `Schema` is always
            strict.

    Raises:
        ValueError: names the field, its value and what was allowed.
    """
    try:
        return TypeAdapter(kind).validate_python(values, strict=strict)
    except ValidationError as error:
        # An unknown field often is a misspelt one, which is then missing.
        first = min(error.errors(include_url=False), key=lambda each: each["type"] == "missing")
        raise ValueError(abridged(_fault(first, where))) from None


def load(kind: type[T], path: Path) -> T:
    """Make a dataclass from the content of a YAML file.

    Raises:
        OSError: there is no such file, or it cannot be read.
        ValueError: names the file, the field, its value and what was allowed.
    """
    try:
        made: T = checked(kind, read_yaml(path))
        return made
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None


def shown(value: object) -> str:
    """Return a value, shortened for a message."""
    return SHOWN.repr(value)


def _fault(error: ErrorDetails, where: str) -> str:
    """Return one line; validators' texts that start with "must" get the field as prefix."""
    parts = [part for part in error["loc"] if part != "[key]"]
    steps = (f"[{part}]" if isinstance(part, int) else f".{part}" for part in parts)
    path = f"{where}{''.join(steps)}".removeprefix(".")
    if error["type"] == "missing":
        return f"{path}: missing"
    context = error.get("ctx", {})
    if error["type"] != "value_error":
        words = WORDS.get(error["type"], error["msg"].removeprefix("Input should be "))
        fault = f"must be {words.format(**context)}"
    else:
        fault = str(context["error"])
    if fault.startswith("must"):
        was = gone(error["input"]) if fault.startswith("must be one of") else ""
        return f"{path or 'file'}: {shown(error['input'])}{was}, {fault}"
    joint = "" if not path or fault.startswith("[") else "."
    return f"{path}{joint}{fault}"
