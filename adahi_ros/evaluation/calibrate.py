"""`adahi calibrate`: measure how deviation tells rejection, and set every gate to one rate."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from adahi_ros.evaluation.evaluate import Policies
from adahi_ros.evaluation.metrics import transmission_rate
from adahi_ros.evaluation.rollout import Log, rollout
from adahi_ros.speculation.calibration import RejectionCurve, rejection_curve, threshold_for_rate
from adahi_ros.speculation.controller import Controller, ControllerConfig
from adahi_ros.speculation.deviation import DeviationTracker
from adahi_ros.speculation.gates import Gate
from adahi_ros.speculation.parameter_file import Calibration
from adahi_ros.speculation.verifier import TargetVerifier
from adahi_ros.tasks import make

FIRST_EPISODE = 1_000_000  # calibration episodes are never evaluation episodes
EPISODES = 200
SMOOTHINGS = (0.1, 0.2, 0.3, 0.5, 0.8)  # at 1 the average would be the last action alone
CALIBRATED_GATES = ("deviation", "uncertainty")
Say = Callable[[str], None]


def deviations(log: Log, scale: np.ndarray, smoothing: float, normalization: str) -> np.ndarray:
    """Compute what the deviations (T, E) of a logged run would have been with other settings."""
    tracker = DeviationTracker(scale, smoothing, normalization)
    rows = []
    for draft, executed in zip(log.draft_action, log.action, strict=True):
        rows.append(tracker.deviation(draft))
        tracker.update(executed)
    return np.stack(rows)


def measure(log: Log, scale: np.ndarray, smoothing: float, normalization: str) -> RejectionCurve:
    """Measure rejection of the primary code against one form of deviation, on a log of hybrid inference."""
    values = deviations(log, scale, smoothing, normalization)
    return rejection_curve(values[log.active], ~log.accepted[log.active][:, 0])


def _figures(curve: RejectionCurve, threshold: float, log: Log, rates: dict[str, float]) -> dict[str, Any]:
    return {
        "episodes": int(log.active.shape[1]),
        "actions": curve.actions,
        "measured_rates": {gate: round(rate, 4) for gate, rate in rates.items()},
        "rank_correlation": round(curve.rank_correlation, 4),
        "rejection_rate": [round(float(r), 4) for r in 1.0 - log.accepted[log.active].mean(axis=0)],
        "rejection_at_threshold": round(float(curve.best.rejection(np.array(threshold)).clip(0.0, 1.0)), 4),
        **{
            fit.kind: {
                "slope": round(fit.slope, 5),
                "intercept": round(fit.intercept, 5),
                "r2": round(fit.r2, 5),
            }
            for fit in (curve.linear, curve.logarithmic)
        },
        "bins": {
            "deviation": np.round(curve.deviation, 4).tolist(),
            "rejection": np.round(curve.rejection, 4).tolist(),
        },
    }


def calibrate(
    task: str,
    policies: Policies,
    rate: float,
    seed: int,
    episodes: int = EPISODES,
    smoothing: float | None = None,
    normalization: str = "std",
    draft_temperature: float = 1.0,
    rejection: float | None = None,
    say: Say = lambda line: None,
) -> Calibration:
    """Calibrate the gates.

    Args:
        task: registry name.
        policies: draft and target.
        rate: transmission rate to reach.
        seed: of the calibration episodes, which are of numbers that no evaluation uses.
        episodes: how many.
        smoothing: of the deviation's average; None takes the one that ranks rejections best.
        normalization: of the deviation.
        draft_temperature: at which the draft samples.
        rejection: a rejection probability to set the deviation's threshold at, by the better fit,
            instead of at the rate; the other gates then get the rate that this one has.
        say: told what is being done.

    Raises:
        ValueError: names the field, the value and what was allowed.
    """
    if episodes < 1:
        raise ValueError(f"episodes: {episodes}, must be at least 1")
    if rejection is None and not 0.0 < rate < 1.0:
        raise ValueError(f"rate: {rate}, must be between 0 and 1")
    if rejection is not None and not 0.0 <= rejection <= 1.0:
        raise ValueError(f"rejection: {rejection}, must be 0 to 1")
    numbers = range(FIRST_EPISODE, FIRST_EPISODE + episodes)
    verifier = TargetVerifier(policies.target)
    world = make(task)

    def run(config: ControllerConfig) -> Log:
        return rollout(world, Controller(policies.draft, config), verifier, seed, numbers)

    say(f"hybrid inference on {episodes} episodes")
    candidates = SMOOTHINGS if smoothing is None else (smoothing,)
    base = ControllerConfig(Gate("always"), candidates[0], normalization, draft_temperature)
    hybrid = run(base)
    scale = policies.draft.decoder.action_scale
    curves = {s: measure(hybrid, scale, s, normalization) for s in candidates}
    smoothing = max(candidates, key=lambda s: curves[s].rank_correlation)
    base, curve = replace(base, smoothing=smoothing), curves[smoothing]

    def rate_at(gate: str, threshold: float) -> float:
        log = run(replace(base, gate=Gate(gate, threshold)))
        return transmission_rate(log.transmitted, log.active)

    thresholds, rates = {}, {}
    if rejection is not None:
        thresholds["deviation"] = curve.best.threshold(rejection)
        rates["deviation"] = rate = rate_at("deviation", thresholds["deviation"])
        if rate == 1.0:
            raise ValueError(f"rejection: {rejection}, every action is transmitted; must be higher")
    for gate in CALIBRATED_GATES:
        if gate not in thresholds:
            say(f"threshold of the {gate} gate for a transmission rate of {rate:.3f}")
            highest = 1.0 if gate == "uncertainty" else float(2 * curve.deviation[-1])
            thresholds[gate], rates[gate] = threshold_for_rate(partial(rate_at, gate), highest, rate)
    thresholds["random"] = 1.0 - rate
    return Calibration(
        task=task,
        draft=policies.draft.digest,
        target=policies.target.digest,
        smoothing=smoothing,
        normalization=normalization,
        draft_temperature=draft_temperature,
        transmission_rate=rate,
        thresholds=thresholds,
        figures=_figures(curve, thresholds["deviation"], hybrid, rates),
    )
