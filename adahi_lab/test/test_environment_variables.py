"""Environment variables are as before after a `with` block."""

from __future__ import annotations

import os

import pytest

from adahi_lab.environment_variables import environment_variables

NEW, OLD = "ADAHI_TEST_NEW", "ADAHI_TEST_OLD"


def test_variables_are_set_only_within_the_block(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(NEW, raising=False)
    monkeypatch.setenv(OLD, "before")
    with environment_variables({NEW: "1", OLD: "2"}):
        assert (os.environ[NEW], os.environ[OLD]) == ("1", "2")
    assert NEW not in os.environ
    assert os.environ[OLD] == "before"
