from __future__ import annotations

import pytest

from adahi_ros.yaml_files import parse_yaml


def test_aliases_are_read_as_what_they_stand_for() -> None:
    assert parse_yaml("a: &x {b: [1, 2]}\nc: *x\n") == {"a": {"b": [1, 2]}, "c": {"b": [1, 2]}}


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("a: [1", "not YAML: "),
        ("[" * 5000, "nested too deeply"),
        ("a: !!float ''", "a tag does not fit its value"),
        ("a: !!bool maybe", "a tag does not fit its value"),
        ("a: !!timestamp never", "a tag does not fit its value"),
        ("a: &a [*a]", "an alias names what it is in"),
        (
            "a: &a [1, 1, 1, 1, 1, 1, 1, 1, 1]\n"
            + "".join(
                f"{new}: &{new} [{', '.join([f'*{old}'] * 9)}]\n"
                for old, new in zip("abcdef", "bcdefg", strict=True)
            ),
            "entries with aliases written out, must be 100000 at most",
        ),
    ],
)
def test_what_is_no_plain_data_of_bearable_size_is_said(text: str, fault: str) -> None:
    with pytest.raises(ValueError, match=fault):
        parse_yaml(text)
