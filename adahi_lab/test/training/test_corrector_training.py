"""A corrector learns corrections and how unsure it is, by its seed alone."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from adahi_lab.training.corrector_data import Examples
from adahi_lab.training.corrector_training import running, train_corrector
from adahi_lab.training.fitting import FitConfig, Run
from adahi_lab.training.train_corrector import expect_as_held_out
from adahi_ros.policies.corrector.corrector_network import LOG_VARIANCE, CorrectorNetwork


def test_training_finds_the_correction_and_where_it_is_unsure() -> None:
    draw = np.random.default_rng(4)
    read = draw.normal(size=(1000, 3)).astype(np.float32)
    noise = np.where(read[:, :1] > 0.0, 1.0, 0.05) * draw.normal(size=(1000, 1))
    wanted = (read[:, 1:2] + noise).astype(np.float32)
    network, _ = train_corrector(read, wanted, 16, FitConfig(200, 128, 1e-2), Run(2))
    correction, log_variance = running(network)(read)
    calm = read[:, 0] < -0.3
    assert np.abs(correction - read[:, 1:2])[calm].mean() < 0.15
    assert np.median(log_variance[read[:, 0] > 0.3]) > np.median(log_variance[calm]) + 2.0
    assert ((log_variance >= LOG_VARIANCE[0]) & (log_variance <= LOG_VARIANCE[1])).all()


def test_the_seed_decides_and_a_run_of_other_examples_is_not_resumed(tmp_path: Path) -> None:
    draw, fit = np.random.default_rng(4), FitConfig(3, 16, warmup=0)
    read, wanted = (draw.normal(size=(50, each)).astype(np.float32) for each in (4, 2))
    run = Run(1, tmp_path / "state.safetensors")
    network, losses = train_corrector(read, wanted, 8, fit, run)
    again, same = train_corrector(read, wanted, 8, fit, Run(1))
    assert same == losses
    for name, value in network.state_dict().items():
        assert torch.equal(again.state_dict()[name], value), name
    assert train_corrector(read, wanted, 8, fit, run)[1] == losses
    for changed in (
        lambda: train_corrector(read, -wanted, 8, fit, run),
        lambda: train_corrector(read[::-1].copy(), wanted, 8, fit, run),
        lambda: train_corrector(read, wanted, 4, fit, run),
    ):
        with pytest.raises(ValueError, match="from a run with other settings or data"):
            changed()


@pytest.mark.parametrize("bias", [-30.0, 0.0, 20.0], ids=["below its bounds", "within", "above"])
def test_the_expected_error_is_calibrated_wherever_the_network_began(bias: float) -> None:
    network = CorrectorNetwork(2, 4, torch.zeros(3), torch.ones(3))
    with torch.no_grad():
        network.layers[-1].get_parameter("bias")[-1] = bias
    tests = Examples(*np.split(np.random.default_rng(5).standard_normal((50, 5), np.float32), [3], axis=1))
    found = expect_as_held_out(network, tests)
    assert found["expected_error"] == pytest.approx(found["error"], rel=0.01)
