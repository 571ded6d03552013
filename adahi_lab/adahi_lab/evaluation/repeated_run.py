# SPDX-License-Identifier: Apache-2.0
"""Repeats a run over DDS in process, to compute what the robot could not know."""

from __future__ import annotations

from itertools import groupby

import numpy as np

from adahi_lab.evaluation.loaded_policies import Bench
from adahi_lab.evaluation.run_record import RunRecord
from adahi_lab.methods.method import Method
from adahi_lab.tasks import make


def repeated_true_skip_ratio(run: RunRecord, bench: Bench, method: Method, seed: int) -> float | None:
    """Return the TSR of a run: the target's verdicts on skipped drafts.

    The run is repeated in process with the same seeds and a verifier. All actions must be identical, which
    holds unless replies were late.

    Returns:
        None where nothing was skipped, or the run cannot be repeated: also where a step had no action.
    """
    kept: list[np.ndarray] = []
    for episode, steps in groupby(run.steps, key=lambda step: step.episode):
        actions = [step.action for step in steps]
        log = method.run(bench, make(bench.task), seed, [episode])
        if not all(actions) or not np.array_equal(log.action[:, 0], np.array(actions, np.float32)):
            return None
        kept.append(log.accepted[~log.transmitted].all(axis=-1))
    skipped = np.concatenate(kept)
    return float(skipped.mean()) if len(skipped) else None
