from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

import adahi_ros
from adahi_lab.calibration.parameter_file import Calibration
from adahi_ros.cli.app import app
from adahi_ros.policies.backends import load_policy
from test.bags.conftest import bag, contract, contract_file, contract_values, in_bag, lines

__all__ = ["bag", "contract", "contract_file", "contract_values", "in_bag", "lines"]

Run = Callable[..., Result]
Fails = Callable[..., str]
Measured = Callable[..., tuple[Result, dict[str, Any]]]


@pytest.fixture(scope="session")
def run() -> Run:
    """From arguments to what the command prints as it ends with a status, 0 by default."""

    def invoke(*arguments: object, status: int = 0) -> Result:
        result = CliRunner().invoke(app, [*map(str, arguments)], catch_exceptions=False)
        assert result.exit_code == status, result.output
        return result

    return invoke


@pytest.fixture
def measured(run: Run, tmp_path: Path) -> Measured:
    """From arguments to what the command prints, and the figures that it writes; no number is infinite."""

    def invoke(*arguments: object) -> tuple[Result, dict[str, Any]]:
        path = tmp_path / "figures" / "of.json"
        result = run(*arguments, "--json", path)
        assert f"figures: {path}" in result.output.replace("\n", "")
        return result, json.loads(path.read_text(), parse_constant=pytest.fail)

    return invoke


@pytest.fixture(scope="session")
def loaded_by_help() -> Callable[[str], set[str]]:
    """From a verb to the packages that its help loads, in a process of its own."""

    def ask(verb: str) -> set[str]:
        program = (
            "import sys; from adahi_ros.cli.app import app\n"
            f"try: app([*'{verb}'.split(), '--help'])\n"
            "except SystemExit: pass\n"
            "print(*sorted({name.split('.')[0] for name in sys.modules}), file=sys.stderr)\n"
        )
        ended = subprocess.run(
            [sys.executable, "-c", program],
            cwd=Path(adahi_ros.__file__).parents[1],
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert ended.returncode == 0, ended.stderr
        assert "Usage" in ended.stdout
        return set(ended.stderr.split())

    return ask


@pytest.fixture
def recipe() -> dict[str, Any]:
    """What trains a tokenizer and a draft in no time."""
    fit = {"steps": 3, "batch_size": 8}
    size = {"width": 4, "layers": 1, "heads": 2, "head_hidden": 4}
    return {
        "demonstrations": {"episodes": 2, "seed": 0, "action_noise": 0.1},
        "tokenizer": {"seed": 0, "size": {"codebook_size": 4, "hidden": 8}, "fit": fit},
        "window_length": 2,
        "policies": {"draft": {"seed": 0, "size": size, "fit": fit}},
    }


@pytest.fixture
def calibrated(checkpoints: Path, tmp_path: Path) -> Path:
    draft, target = (load_policy(checkpoints / name, "torch").digest for name in ("draft", "target"))
    thresholds = {"deviation": 0.4, "uncertainty": 0.984, "random": 0.4}
    path = tmp_path / "given.yaml"
    Calibration("ball", draft, target, 0.5, "std", 1.0, 0.6, thresholds).save(path, "deviation", "by hand")
    return path


@pytest.fixture
def toy(checkpoints: Path, calibrated: Path) -> list[object]:
    """The options that take the toy policies with their calibration."""
    return ["--checkpoints", checkpoints, "--calibration", calibrated, "--backend", "torch", "--workers", 1]


@pytest.fixture
def unexported(monkeypatch: pytest.MonkeyPatch) -> None:
    """Correctors are trained, and not exported."""
    monkeypatch.setattr("adahi_lab.training.corrector_training.export", lambda *arguments: None)
