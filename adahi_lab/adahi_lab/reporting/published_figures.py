# SPDX-License-Identifier: Apache-2.0
"""The figures of the ADAHI paper (its Table I), to compare with ours."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Reported:
    """One row of the paper's table; None where it has no number."""

    success_rate: float | None = None
    mse: float | None = None
    true_skip_ratio: float | None = None
    transmission_rate: float | None = None


NOT_REPORTED = Reported()
REPORTED: dict[str, dict[str, Reported]] = {
    "kitchen": {
        "adahi": Reported(0.394, 1.640, 0.607, 0.543),
        "hybrid": Reported(0.430, 1.630),
        "draft": Reported(0.060, 2.419),
        "target": Reported(0.430, 1.623),
        "random": Reported(0.325, 1.998, 0.539, 0.543),
    },
    "ball": {
        "adahi": Reported(0.811, None, 0.553, 0.603),
        "hybrid": Reported(0.834),
        "draft": Reported(0.001),
        "target": Reported(0.850),
        "random": Reported(0.726, None, 0.343, 0.603),
    },
    "swarm": {
        "adahi": Reported(0.294, 1.2434, 0.504, 0.591),
        "hybrid": Reported(0.295, 1.2359),
        "draft": Reported(0.065, 3.9010),
        "target": Reported(0.303, 1.2342),
        "random": Reported(0.230, 2.1291, 0.395, 0.591),
    },
}
