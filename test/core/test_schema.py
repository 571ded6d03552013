"""What dataclasses of files refuse, and how: by field, value and what is allowed."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

import pytest
from pydantic import Field

from adahi_ros.core.schema import (
    Listed,
    Schema,
    Text,
    above,
    at_least,
    checked,
    load,
    one_of,
    within,
)


@dataclass(frozen=True)
class Part(Schema):
    name: Text
    share: Annotated[float, within(0, 1)] = 0.5
    as_: Text = ""

    def __post_init__(self) -> None:
        if self.name == self.as_:
            raise ValueError(f"as: {self.as_!r}, must differ from name")


@dataclass(frozen=True)
class Whole(Schema):
    count: Annotated[int, at_least(1)]
    rate: Annotated[float, above(0, 10)] = 1.0
    kind: Annotated[str, one_of(("a", "b"))] = "a"
    here: bool = False
    parts: Annotated[Listed[Part], Field(max_length=2)] = ()
    named: dict[str, Part] = field(default_factory=dict)


PART = {"name": "x"}


def test_what_a_file_says_becomes_dataclasses() -> None:
    made = checked(Whole, {"count": 2, "rate": 1, "parts": [{**PART, "as": "y"}], "named": {"z": PART}})
    assert made == Whole(2, 1.0, parts=(Part("x", as_="y"),), named={"z": Part("x")})
    assert isinstance(made.rate, float)


@pytest.mark.parametrize(
    ("values", "fault"),
    [
        ([], "file: [], must be a mapping"),
        ({}, "count: missing"),
        ({"cuont": 1}, "cuont: unknown, must be one of count, rate, kind, here, parts, named"),
        ({"count": True}, "count: True, must be an integer of at least 1"),
        ({"count": 1.0}, "count: 1.0, must be an integer"),
        ({"count": 1, "rate": "1"}, "rate: '1', must be a number above 0 and at most 10"),
        ({"count": 1, "rate": float("nan")}, "rate: nan, must be a number"),
        ({"count": 1, "rate": 10**400}, "rate: 1000"),
        ({"count": 1, "kind": ["a"]}, "kind: ['a'], must be one of a, b"),
        ({"count": 1, "here": 1}, "here: 1, must be true or false"),
        ({"count": 1, "parts": "x"}, "parts: 'x', must be a list"),
        ({"count": 1, "parts": [PART, 3]}, "parts[1]: 3, must be a mapping"),
        ({"count": 1, "parts": [{"name": ""}]}, "parts[0].name: '', must be a text"),
        ({"count": 1, "parts": [{**PART, "as": "x"}]}, "parts[0].as: 'x', must differ from name"),
        ({"count": 1, "parts": [PART] * 3}, "parts: "),
        (
            {"count": 1, "named": {"z": {**PART, "share": 2}}},
            "named.z.share: 2, must be a number from 0 to 1",
        ),
        ({"count": 1, "named": {3: PART}}, "named[3]: 3, must be a text"),
    ],
)
def test_a_fault_names_field_value_and_what_is_allowed(values: Any, fault: str) -> None:
    with pytest.raises(ValueError, match=f"^{re.escape(fault)}"):
        checked(Whole, values)


def test_a_fault_is_short_whatever_the_file_says(tmp_path: Path) -> None:
    path = tmp_path / "whole.yaml"
    for text in (f"count: {'x' * 70_000}", f"{'x' * 70_000}: 1", f"count: {[[['x'] * 99] * 9] * 99}"):
        path.write_text(text)
        with pytest.raises(ValueError, match=f"^{re.escape(str(path))}: ") as caught:
            load(Whole, path)
        assert len(str(caught.value)) < 2000
