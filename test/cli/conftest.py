from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from adahi_ros import cli
from adahi_ros.policy.backends import load_policy
from adahi_ros.speculation.parameter_file import Calibration


@pytest.fixture(scope="session")
def run() -> Callable[..., Result]:
    """From arguments to what the command prints, and its status."""
    return lambda *arguments: CliRunner().invoke(
        cli.app, [str(argument) for argument in arguments], catch_exceptions=False
    )


@pytest.fixture
def fails(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Callable[..., str]:
    """From arguments to what the command says on stderr, in one line, as it ends with status 2."""

    def main(*arguments: object) -> str:
        monkeypatch.setattr(sys, "argv", ["adahi", *map(str, arguments)])
        capsys.readouterr()
        with pytest.raises(SystemExit) as ended:
            cli.main()
        said = capsys.readouterr().err
        assert ended.value.code == 2
        assert said.startswith("adahi: ")
        assert said.count("\n") == 1, said
        return said

    return main


@pytest.fixture
def calibrated(checkpoints: Path, tmp_path: Path) -> Path:
    digests = (load_policy(checkpoints / name, "torch").digest for name in ("draft", "target"))
    thresholds = {"deviation": 0.4, "uncertainty": 0.984, "random": 0.4}
    path = tmp_path / "given.yaml"
    Calibration("ball", *digests, 0.5, "std", 1.0, 0.6, thresholds).save(path, "deviation", "by hand")
    return path


@pytest.fixture
def toy(checkpoints: Path, calibrated: Path) -> list[object]:
    """The options that take the toy policies with their calibration."""
    return ["--checkpoints", checkpoints, "--calibration", calibrated, "--backend", "torch", "--workers", 1]
