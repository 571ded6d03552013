# SPDX-License-Identifier: Apache-2.0
"""What robots have observed at the steps before."""

from __future__ import annotations

from bisect import bisect_left
from collections import OrderedDict
from collections.abc import Mapping

import numpy as np


class Memory:
    """The last observations of B robots, by control step.

    Args:
        longest: how many are kept.
    """

    def __init__(self, longest: int) -> None:
        self._longest = longest
        self._observed: OrderedDict[int, Mapping[str, np.ndarray]] = OrderedDict()

    def keep(self, step: int, observed: Mapping[str, np.ndarray]) -> None:
        """Take what was observed at a step, by name (B, size); steps rise, and the newest may come again."""
        self._observed[step] = {name: values.copy() for name, values in observed.items()}
        if len(self._observed) > self._longest:
            self._observed.popitem(last=False)

    def at(self, name: str, steps: np.ndarray) -> np.ndarray:
        """Return what each robot observed at a step of its own (B,), or the nearest one kept: (B, size).

        Raises:
            LookupError: nothing was kept.
        """
        if not self._observed:
            raise LookupError("nothing was observed yet")
        kept, wanted = list(self._observed), set(steps.tolist())
        found: np.ndarray = self._observed[kept[-1]][name].copy()
        for step in wanted:
            after = bisect_left(kept, step)
            nearest = min(kept[max(0, after - 1) : after + 1], key=lambda each: abs(each - step))
            if len(wanted) == 1:  # as on a robot
                return self._observed[nearest][name].copy()
            found[steps == step] = self._observed[nearest][name][steps == step]
        return found
