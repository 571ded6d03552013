# SPDX-License-Identifier: Apache-2.0
"""What a trial costs: seconds of a core and of a worker, and its price, over all workers that it had."""

from __future__ import annotations

import time
from dataclasses import dataclass, field

from optuna.trial import Trial

HOUR_S = 3600.0
COSTS = ("cpu_s", "wall_s", "cost")


@dataclass
class Meter:
    """Counts from now on, on top of what the workers before have noted.

    Attributes:
        trial: notes it, and hands it on to whom it is given to next.
        price_per_hour: of this worker.
    """

    trial: Trial
    price_per_hour: float
    _before: dict[str, float] = field(init=False)
    _cpu: float = field(default_factory=time.process_time)
    _wall: float = field(default_factory=time.monotonic)

    def __post_init__(self) -> None:
        self._before = {name: self.trial.user_attrs.get(name, 0.0) for name in COSTS}

    def note(self) -> None:
        """Note the costs so far.

        Raises:
            UpdateFinishedTrialError: the trial is somebody else's by now.
        """
        wall = time.monotonic() - self._wall
        spent = time.process_time() - self._cpu, wall, wall / HOUR_S * self.price_per_hour
        for name, value in zip(COSTS, spent, strict=True):
            self.trial.set_user_attr(name, round(self._before[name] + value, 6))
