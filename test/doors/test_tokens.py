"""Files of tokens that cannot be used, and arguments of a door that cannot."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from test.doors.served import REASON  # isort: skip  # skips where a door cannot be opened
from adahi_ros.doors.openpi import OpenPiDoor
from adahi_ros.doors.tokens import LARGEST, Tokens, parsed
from test.certificates import self_signed

TOKEN = "0123456789abcdef"
assert REASON


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("", "no line with a name and a token"),
        ("# arm 0123456789abcdef\n", "no line with a name and a token"),
        (f"\n{TOKEN}\n", "line 2: must be a name and a token of 16 to 256 characters"),
        (f"arm {TOKEN[1:]}", "line 1: must be a name and a token of 16 to 256 characters"),
        (f"arm {TOKEN} more", "line 1: must be a name and a token of 16 to 256 characters"),
        (f"arm/1 {TOKEN}", "line 1: 'arm/1', must be a name of 1 to 32 letters, digits"),
        (f"arm {TOKEN}\nleg {TOKEN}", "line 2: has the token of 'arm', must be another one"),
    ],
)
def test_a_wrong_line_is_named_without_its_token(text: str, fault: str) -> None:
    with pytest.raises(ValueError, match=fault) as caught:
        parsed(text)
    assert TOKEN[1:] not in str(caught.value)


def test_a_name_may_change_its_token(tmp_path: Path) -> None:
    file = tmp_path / "tokens"
    file.write_text(f"arm {TOKEN}\narm {TOKEN[::-1]}\n")
    tokens = Tokens(file)
    assert {tokens.client(f"Bearer {each}") for each in (TOKEN, TOKEN[::-1])} == {"arm"}
    file.unlink()
    assert tokens.client(f"Bearer {TOKEN}") is None


@pytest.mark.parametrize(
    ("changes", "fault"),
    [
        (
            {"address": "0.0.0.0"},
            r"tokens_file: '', must name a file of tokens, because address: '0\.0\.0\.0'",
        ),
        ({"address": "gpu.example"}, "tokens_file: '', must name a file of tokens"),
        ({"address": "192.0.2.1", "tokens_file": "tokens"}, r"port: 0, cannot listen at '192\.0\.2\.1'"),
        ({"tokens_file": "none"}, "tokens_file: .*none', No such file"),
        ({"tokens_file": "large"}, f"tokens_file: .*large', {LARGEST + 1} bytes, must be at most {LARGEST}"),
        (
            {"certificate": "certificate.pem"},
            "key: '', must name a file: certificate and key belong together",
        ),
        ({"key": "key.pem"}, "certificate: '', must name a file: certificate and key belong together"),
        ({"certificate": "certificate.pem", "key": "tokens"}, "certificate: .* with key .*: "),
        ({"keys_file": "none"}, "keys_file: .*none', No such file"),
        ({"keys_file": "tokens"}, "keys_file: .*tokens', .*must be a mapping"),
        (
            {"keys_file": "keys"},
            r"keys_file: .*keys.observation.state: \[\], must be a key, or a list of keys",
        ),
        ({"keys_file": "dates"}, "keys_file: .*dates: metadata: date of object, must be numbers"),
    ],
)
def test_arguments_that_cannot_be_used_are_named(tmp_path: Path, changes: dict[str, Any], fault: str) -> None:
    self_signed(tmp_path)
    (tmp_path / "tokens").write_text(f"arm {TOKEN}\n")
    (tmp_path / "large").write_text(" " * (LARGEST + 1))
    (tmp_path / "keys").write_text("keys: {observation.state: []}\n")
    (tmp_path / "dates").write_text("metadata: {made: 2026-11-30}\n")
    of_files = ("tokens_file", "certificate", "key", "keys_file")
    given: dict[str, Any] = {
        name: str(tmp_path / value) if name in of_files else value for name, value in changes.items()
    }
    with pytest.raises(ValueError, match=fault):
        OpenPiDoor(**given).open()


def test_a_port_that_is_taken_is_named() -> None:
    first: Any = OpenPiDoor().open()
    port = int(first.address.rpartition(":")[2])
    with pytest.raises(
        ValueError, match=f"port: {port}, cannot listen at '127.0.0.1': Address already in use"
    ):
        OpenPiDoor(port=port).open()
    first.close()


def test_an_address_of_others_without_encryption_is_warned_of(tmp_path: Path) -> None:
    certificate, key = self_signed(tmp_path)
    tokens = tmp_path / "tokens"
    tokens.write_text(f"arm {TOKEN}\n")
    files: dict[str, Any] = {"certificate": str(certificate), "key": str(key)}
    for arguments, warned in (
        ({}, False),
        ({"address": "0.0.0.0"}, True),
        ({"address": "0.0.0.0", **files}, False),
    ):
        opened = OpenPiDoor(tokens_file=str(tokens), **arguments).open()
        assert ("is not encrypted" in opened.warning) is warned
        opened.close()
