from __future__ import annotations

import math
import os
import time
from pathlib import Path

import pytest

from adahi_ros.core.yaml_files import LARGEST, parse_yaml, read_yaml

MERGES = "a: &a {x: 1, y: 2}\n" + "".join(
    f"{new}: &{new}\n  <<: [{', '.join([f'*{old}'] * 9)}]\n"
    for old, new in zip("abcdefgh", "bcdefghi", strict=True)
)


def test_a_merge_key_gives_what_is_not_repeated() -> None:
    text = "a: &a {x: 1, y: 2}\nb: {<<: *a, y: 3}\n"
    assert parse_yaml(text) == {"a": {"x": 1, "y": 2}, "b": {"x": 1, "y": 3}}


def test_an_empty_file_says_nothing() -> None:
    assert parse_yaml("") is None


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("a: [1", "not YAML: "),
        ("[" * 5000, "nested too deeply"),
        ("a: !!float ''", "a tag does not fit its value"),
        ("a: !!bool maybe", "a tag does not fit its value"),
        ("a: !!timestamp never", "a tag does not fit its value"),
        (f"a: {':'.join(['1'] * 200)}.5", "a tag does not fit its value"),
        ("a: &a [*a]", "an alias names what it is in"),
        ("a: &a {<<: *a}", "an alias names what it is in"),
        (
            "a: &a [1, 1, 1, 1, 1, 1, 1, 1, 1]\n"
            + "".join(
                f"{new}: &{new} [{', '.join([f'*{old}'] * 9)}]\n"
                for old, new in zip("abcdef", "bcdefg", strict=True)
            ),
            "entries with aliases written out, must be 100000 at most",
        ),
        (MERGES, "entries with aliases written out, must be 100000 at most"),
        (f"a: {':'.join(['1'] * 100_000)}", "a number of 199999 characters, must be 1000 at most"),
        (f"a: 0x{'f' * 2000}", "a number of 2002 characters, must be 1000 at most"),
        ("j: {velocity: 1.0}\nj: {velocity: 9.0}", "'j': there twice in a mapping, must be once"),
        ("{a: 1, 'a': 2}", "'a': there twice in a mapping, must be once"),
    ],
)
def test_what_is_no_plain_data_of_bearable_size_is_reported(text: str, fault: str) -> None:
    started = time.process_time()
    with pytest.raises(ValueError, match=fault):
        parse_yaml(text)
    assert time.process_time() - started < 5.0


def test_a_file_is_read_up_to_a_size(tmp_path: Path) -> None:
    path = tmp_path / "large.yaml"
    path.write_text("a: 1\n" + "#" * (LARGEST - 5))
    assert read_yaml(path) == {"a": 1}
    path.write_text("a: 1\n" + "#" * (LARGEST - 4))
    with pytest.raises(ValueError, match=f"{LARGEST + 1} bytes, must be at most {LARGEST}"):
        read_yaml(path)


def test_what_never_ends_is_not_read(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.yaml")
    (tmp_path / "link.yaml").symlink_to("/dev/zero")
    for name in ("pipe.yaml", "link.yaml"):
        with pytest.raises(ValueError, match="a device, pipe or socket, must be a file"):
            read_yaml(tmp_path / name)
    with pytest.raises(IsADirectoryError):
        read_yaml(tmp_path)
    with pytest.raises(FileNotFoundError):
        read_yaml(tmp_path / "missing.yaml")


def test_angles_are_read_as_xacro_reads_them() -> None:
    values = parse_yaml("{a: !degrees 180, b: !degrees -90.0, c: !radians 1.5}")
    assert values == {"a": math.pi, "b": -math.pi / 2, "c": 1.5}


@pytest.mark.parametrize("text", ["!degrees x", "!degrees [1]", "!degrees {}", "!degrees"])
def test_an_angle_that_is_no_number_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="not YAML"):
        parse_yaml(f"a: {text}")
