from __future__ import annotations

import os
import subprocess
import sys

import pytest

from adahi_lab.bench.link_ends import cores_of_ends
from adahi_lab.link.emulator import on_cores
from adahi_lab.link.namespaces import LinkUnavailable


def test_a_core_that_is_alone_is_that_of_both(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: {3})
    assert cores_of_ends() == ({3}, {3})


def test_a_command_runs_on_the_cores_that_it_is_given() -> None:
    core = max(os.sched_getaffinity(0))
    tell = [sys.executable, "-c", "import os; print(os.sched_getaffinity(0))"]
    shown = subprocess.run([*on_cores({core}), *tell], capture_output=True, text=True, check=True)
    assert shown.stdout.strip() == str({core})
    assert on_cores(None) == []


def test_a_machine_that_cannot_bind_to_cores_says_what_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    assert on_cores(None) == []
    with pytest.raises(LinkUnavailable, match="taskset"):
        on_cores({0})
