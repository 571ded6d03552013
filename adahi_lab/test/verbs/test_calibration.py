from __future__ import annotations

from pathlib import Path

import pytest

from adahi_lab.calibration.parameter_file import load_calibration
from adahi_ros.core.assets import asset
from test.cli.conftest import Fails, Measured


def test_calibrate_writes_parameters_a_picture_and_figures(
    checkpoints: Path, tmp_path: Path, measured: Measured, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("adahi_lab.calibration.rejection_curve.MOST_TRIALS", 2)  # how near says nothing here
    out = tmp_path / "new" / "ball.yaml"
    picture = tmp_path / "calibrate.png"
    options = ["--rate", 0.5, "--episodes", 6, "--smoothing", 0.5, "--out", out]
    options += ["--picture", picture, "--workers", 1]
    result, written = measured(
        "thresholds", "ball", "--checkpoints", checkpoints, "--backend", "torch", *options
    )
    found = load_calibration(out)
    assert found.thresholds == written["thresholds"]
    assert found.thresholds.keys() == {"deviation", "uncertainty", "oracle", "random"}
    assert found.transmission_rate == found.thresholds["random"] == 0.5
    assert found.smoothing == 0.5
    assert picture.is_file()
    assert "threshold, deviation gate" in result.output
    assert f"parameters: {out}\n" in result.output
    assert (
        f"other verbs take them with --calibration {out}, else {asset('config/ball.yaml')}" in result.output
    )


def test_a_rate_and_a_rejection_contradict_each_other(fails: Fails) -> None:
    output = fails("thresholds", "ball", "--rate", 0.5, "--rejection", 0.6)
    assert output == "adahi: rate: 0.5, must be left out where rejection (0.6) is given\n"
