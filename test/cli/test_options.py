"""Numbers that no verb can work with are refused as the command line is read; texts name verbs that exist."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Annotated, Any, get_args, get_origin, get_type_hints

import pytest
import typer
from typer.models import OptionInfo

from adahi_ros.cli.app import app
from adahi_ros.cli.verbs import GROUPS, VERBS
from adahi_ros.core.assets import asset
from test.cli.conftest import Fails


def numbers(verbs: typer.Typer, path: str = "") -> Iterator[tuple[str, OptionInfo]]:
    """Yield every option that takes a float, by its verb and name."""
    for group in verbs.registered_groups:
        assert group.typer_instance is not None
        yield from numbers(group.typer_instance, f"{path}{group.name} ")
    for verb in verbs.registered_commands:
        assert verb.callback is not None
        verb_name = verb.name or verb.callback.__name__
        for name, hint in get_type_hints(verb.callback, include_extras=True).items():
            if get_origin(hint) is Annotated and float in (hint.__origin__, *get_args(hint.__origin__)):
                yield f"{path}{verb_name} {name}", hint.__metadata__[0]


FLOATS = dict(numbers(app))


def checked(option: str, value: float) -> float:
    """Return what becomes of a value once it has been read, its range aside."""
    check: Any = FLOATS[option].callback
    result: float = check(SimpleNamespace(name=option.split()[-1]), value)
    return result


def test_options_are_found() -> None:
    assert {
        "evaluate rate",
        "demo deadline_s",
        "lab link set loss",
        "lab bench soak minutes",
    } <= FLOATS.keys()


@pytest.mark.parametrize("option", FLOATS)
def test_what_is_no_finite_number_is_refused(option: str) -> None:
    for value in (math.nan, math.inf, -math.inf):
        with pytest.raises(ValueError, match=rf"^{option.split()[-1]}: {value}, must be"):
            checked(option, value)


@pytest.mark.parametrize("option", FLOATS)
def test_every_number_has_a_range(option: str) -> None:
    least = FLOATS[option].min
    if option.endswith(" rate"):
        for value in (0.0, 1.0, 1.5, -0.1):
            with pytest.raises(ValueError, match=f"rate: {value}, must be between 0 and 1"):
                checked(option, value)
        assert checked(option, 0.5) == 0.5
    else:
        assert least is not None
        assert checked(option, least) == least


@pytest.mark.parametrize("verb", ["evaluate", "demo", "thresholds"])
def test_a_rate_is_refused_before_anything_is_loaded(verb: str, fails: Fails) -> None:
    output = fails(verb, "ball", "--checkpoints", "/nowhere", "--rate", "1.5")
    assert output == "adahi: rate: 1.5, must be between 0 and 1\n"


VERB = re.compile(r"[`'\"]adahi ((?:[a-z][a-z-]*)(?: [a-z][a-z-]*)*)")


@pytest.mark.parametrize("folder", ["adahi_ros", "adahi_lab", "launch", "tools", "benchmarks", "config"])
def test_messages_and_docstrings_name_verbs_that_exist(folder: str) -> None:
    known = {*VERBS, *GROUPS}
    files = [path for path in asset(folder).rglob("*") if path.suffix in (".py", ".yaml", ".xml", ".j2")]
    wrong = {
        f"{path.name}: {words}"
        for path in files
        if path.name != "gone_names.py"
        for words in VERB.findall(path.read_text())
        if not any(words == verb or words.startswith(f"{verb} ") for verb in known)
    }
    assert not wrong
