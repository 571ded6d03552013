# SPDX-License-Identifier: Apache-2.0
"""Options of a verb, made from the fields of a dataclass."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import MISSING, fields, is_dataclass
from functools import wraps
from inspect import Parameter, Signature, signature
from typing import Annotated, Any, get_args, get_origin, get_type_hints

from typer import Option

from adahi_ros.cli.options import finite
from adahi_ros.core.registry import Argument, arguments_of


def with_fields(verb: Callable[..., None]) -> Callable[..., None]:
    """Return a verb with an option for each field of the dataclasses that it takes; it gets them filled.

    A field is written as a parameter of a verb: its type, or `Annotated` with an option, and a default. One
    that `argument` declares has its description and bounds; a text in its `Annotated` names the option.
    """
    own = signature(verb, eval_str=True).parameters  # get_type_hints of Python 3.10 wraps defaults of None
    filled: dict[str, Any] = {
        each.name: each.annotation for each in own.values() if is_dataclass(each.annotation)
    }
    parameters: list[Parameter] = []
    for name, given in own.items():
        if name in filled:
            parameters += _options(filled[name])
        else:
            parameters.append(given.replace(kind=Parameter.KEYWORD_ONLY))

    @wraps(verb)
    def run(**given: Any) -> None:
        made = {
            name: kind(**{each.name: given.pop(each.name) for each in fields(kind)})
            for name, kind in filled.items()
        }
        verb(**given, **made)

    run.__signature__ = Signature(parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {each.name: each.annotation for each in parameters}
    return run


def _options(kind: Any) -> Iterator[Parameter]:
    """Yield a parameter for each field of a dataclass."""
    hints, declared = get_type_hints(kind, include_extras=True), arguments_of(kind)
    for each in fields(kind):
        hint = hints[each.name]
        if each.name in declared:
            hint = _described(hint, declared[each.name])
        default = Parameter.empty if each.default is MISSING else each.default
        yield Parameter(each.name, Parameter.KEYWORD_ONLY, default=default, annotation=hint)


def _described(hint: Any, about: Argument) -> Any:
    """Return the type of a field with its option, by what `argument` says of it."""
    base, *names = get_args(hint) if get_origin(hint) is Annotated else (hint,)
    check = finite if base is float else None
    return Annotated[
        base, Option(*names, min=about.low, max=about.high, callback=check, help=about.description)
    ]
