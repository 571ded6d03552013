"""A task's file that runs foreign code is named where it is loaded."""

from __future__ import annotations

from pathlib import Path

import pytest

from adahi_ros.lab.tasks import gymnasium_task
from adahi_ros.lab.tasks.gymnasium_task import described_expert


def test_the_modules_that_a_file_runs_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Named:
        expert = "json:loads"

    monkeypatch.setattr(gymnasium_task, "load_description", lambda path: Named)
    with pytest.warns(UserWarning, match=r"task\.yaml: imports and runs the code of json"):
        described_expert(tmp_path / "task.yaml")
    Named.expert = "adahi_ros.lab.tasks.inverted_pendulum_expert:act"
    gymnasium_task._warn_of_code(tmp_path, ("adahi_ros.lab.tasks",))
