"""Fingerprints as numbers, as every message has them."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adahi_ros.protocol.request import NO_FINGERPRINT, fingerprint_number, fingerprint_text

MESSAGES = Path(__file__).resolve().parents[2] / "adahi_msgs"


@given(st.integers(1, 2**64 - 1))
def test_there_and_back(number: int) -> None:
    text = fingerprint_text(number)
    assert len(text) == 16
    assert fingerprint_number(text) == number


def test_none_is_zero_and_empty() -> None:
    assert (fingerprint_number(""), fingerprint_text(NO_FINGERPRINT)) == (0, "")


@pytest.mark.parametrize("path", sorted(MESSAGES.glob("*/*.*")), ids=lambda path: path.name)
def test_a_fingerprint_has_one_type_in_all_messages(path: Path) -> None:
    lines = [line.split() for line in path.read_text().splitlines()]
    kinds = {words[0] for words in lines if len(words) > 1 and words[1].endswith("_fingerprint")}
    assert kinds <= {"uint64"}
