from __future__ import annotations

import asyncio
import re
import signal
from pathlib import Path
from types import SimpleNamespace

import pytest

from adahi_lab.nodes.task_encoders import encoder_parameters
from adahi_ros.contract.parsing import ContractError
from adahi_ros.core.assets import asset_files
from adahi_ros.nodes.launching.exits import fail_with_it, leave_interrupts_to_launch


def exited(code: int, shutting_down: bool = False) -> None:
    event = SimpleNamespace(process_name="target_verifier_node-1", returncode=code)
    fail_with_it(event, SimpleNamespace(is_shutdown=shutting_down))


def test_a_node_that_has_died_is_an_error() -> None:
    for code in (1, -9):
        with pytest.raises(RuntimeError, match=f"target_verifier_node-1 has died, exit code {code}"):
            exited(code)


def test_a_node_that_was_requested_to_end_is_none() -> None:
    for code in (0, -2, -15):
        exited(code)
    exited(-9, shutting_down=True)


def test_an_interrupt_breaks_off_nothing_that_launch_does() -> None:
    async def interrupted() -> bool:
        signal.raise_signal(signal.SIGINT)
        return True

    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        leave_interrupts_to_launch(None)
        assert asyncio.run(asyncio.wait_for(interrupted(), 1.0))
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        leave_interrupts_to_launch(None)
        assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGINT, before)


@pytest.mark.parametrize("path", asset_files("launch", "**/*.launch.*"), ids=lambda path: path.name)
def test_no_launch_file_evaluates_python(path: Path) -> None:
    """Its arguments come from a command line, and launch would run them."""
    assert not re.search(r"PythonExpression|\beval\b", path.read_text())


def test_a_verifier_has_the_encoder_of_robots_that_have_none() -> None:
    assert encoder_parameters("ball_seen") == {"encoder": "ball_instructed"}
    for task in ("ball", "ball_camera", "a world that somebody described"):
        assert encoder_parameters(task) == {}


def test_a_broken_shipped_contract_is_reported_and_not_taken_for_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "torn.yaml").write_text("images_for_target: true\n")
    monkeypatch.setattr("adahi_lab.nodes.task_encoders.shipped", lambda relative: True)
    monkeypatch.setattr("adahi_ros.contract.parsing.asset", lambda relative: tmp_path / "torn.yaml")
    with pytest.raises(ContractError, match="robot_type: missing"):
        encoder_parameters("torn")
