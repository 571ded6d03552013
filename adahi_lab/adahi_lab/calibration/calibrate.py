# SPDX-License-Identifier: Apache-2.0
"""`adahi thresholds`: measure how deviation predicts rejection, and set every gate to one rate."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import product
from pathlib import Path

import numpy as np
from scipy.stats import spearmanr

from adahi_lab.calibration.parameter_file import Calibration
from adahi_lab.calibration.recorded_world import RecordedWorld
from adahi_lab.calibration.rejection_curve import RejectionCurve, rejection_curve, threshold_for_rate
from adahi_lab.datasets.trajectories import Trajectories
from adahi_lab.evaluation.episodes import calibration_episodes
from adahi_lab.evaluation.evaluate import Comparison, play_all
from adahi_lab.evaluation.loaded_policies import Bench, Policies, PolicyFiles
from adahi_lab.evaluation.metrics import transmission_rate
from adahi_lab.evaluation.rollout import Log
from adahi_lab.evaluation.task_contract import contract_of_task
from adahi_lab.figures import Figures
from adahi_lab.methods.methods import METHODS, gates_of_methods
from adahi_lab.tasks import make
from adahi_ros.gates.gate_config import NORMALIZATIONS, ControllerConfig, DeviationTracker, ThresholdedGate
from adahi_ros.gates.registry import GATES
from adahi_ros.safety.named_limits import limits_of_task

EPISODES = 200
RATE = 0.6
SMOOTHINGS = (0.1, 0.2, 0.3, 0.5, 0.8, 1.0)  # at 1 the average is the last action
FOLDS = 5
Variant = tuple[float, str]
MEASURED = "hybrid"  # the method in which rejections are measured
RANDOM = "random"  # its threshold follows from the rate; other gates need a search
OF_PLANS = ("age", "change", "expected_error", "online")  # do not judge drafts
COARSE = ("sampled_uncertainty",)  # of few values, so of few rates: only on request
WITHOUT_CODES: Variant = (0.5, "std")  # the deviation, if there are no rejections to choose it by
Say = Callable[[str], None]


def deviations(log: Log, scale: np.ndarray, smoothing: float, normalization: str) -> np.ndarray:
    """Compute the deviations (T, E) of a logged run with other settings."""
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


def rank_correlation(log: Log, values: np.ndarray, episodes: np.ndarray) -> float:
    """Return Spearman's correlation of deviations (T, E) with the rejection of primary codes.

    Args:
        log: of hybrid inference.
        values: the deviations.
        episodes: columns to use.

    Returns:
        0 where all, or none, are rejected.
    """
    counted = log.active[:, episodes]
    deviation = values[:, episodes][counted]
    rejected = ~log.accepted[:, episodes][counted][:, 0]
    known = np.isfinite(deviation)
    deviation, rejected = deviation[known], rejected[known]
    if len(deviation) < 2 or not np.ptp(deviation) or rejected.all() or not rejected.any():
        return 0.0
    return float(spearmanr(deviation, rejected).statistic)


def best_variant(log: Log, scale: np.ndarray, variants: Iterable[Variant]) -> tuple[Variant, float | None]:
    """Choose the form of deviation that ranks rejections best, by cross-validation over episodes.

    Args:
        log: of hybrid inference.
        scale: (A,) of the actions.
        variants: pairs of smoothing and normalization.

    Returns:
        The choice on all episodes; and its cross-validated score: the mean correlation on each of `FOLDS`
        folds of the best choice on the remaining folds; None where episodes are fewer.
    """
    values = {variant: deviations(log, scale, *variant) for variant in variants}
    episodes = np.arange(log.active.shape[1])
    everything = {variant: rank_correlation(log, each, episodes) for variant, each in values.items()}
    chosen = max(everything, key=lambda variant: everything[variant])
    if len(episodes) < FOLDS:
        return chosen, None
    if len(values) == 1:
        return chosen, everything[chosen]
    held_out = []
    for fold in range(FOLDS):
        inside = episodes % FOLDS == fold
        best = max(values, key=lambda v: rank_correlation(log, values[v], episodes[~inside]))
        held_out.append(rank_correlation(log, values[best], episodes[inside]))
    return chosen, float(np.mean(held_out))


def _measured(rates: dict[str, float]) -> Figures:
    return {"measured_rates": {gate: round(rate, 4) for gate, rate in rates.items()}}


def _figures(
    curve: RejectionCurve, held_out: float | None, threshold: float, log: Log, rates: dict[str, float]
) -> Figures:
    return {
        "episodes": int(log.active.shape[1]),
        "actions": curve.actions,
        **_measured(rates),
        "rank_correlation": round(curve.rank_correlation, 4),
        # A parameter file has no null: missing figures are left out.
        **({} if held_out is None else {"rank_correlation_held_out": round(held_out, 4)}),
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


def methods_to_calibrate(policies: Policies) -> list[str]:
    """Return methods with every gate that reaches any rate; gates of codes only where codes are shared."""
    gates = [gate for gate in GATES if gate not in (*OF_PLANS, *COARSE)]
    if policies.share_codes:
        decoding = [] if policies.draft_codes is None else ["adahi_codes", "adahi_kept"]
        return [*METHODS, *decoding, *(f"{gate}:speculative" for gate in gates)]
    return [f"{gate}:replace" for gate in gates]


def searched_gates(names: Iterable[str] = METHODS) -> dict[str, str]:
    """Return the gates that need a threshold search, each with the first of these methods that has it."""
    methods: dict[str, str] = {}
    for method, gate in gates_of_methods(names).items():
        if gate != RANDOM:
            methods.setdefault(gate, method)
    return methods


def node_parameters(task: str, draft: str, folder: Path) -> dict[str, object]:
    """Return the parameters of a simulated robot's draft policy node that its task decides.

    Args:
        task: registry name.
        draft: the node's parameter `checkpoint`.
        folder: gets the contract of a task of which none is shipped.
    """
    limits = limits_of_task(make(task).spec.name)
    safety = {"safety": {"limits": limits}} if limits else {}
    contract = contract_of_task(task, folder)
    return {"checkpoint": draft, "contract": contract, **safety, "fallback": "draft"}


@dataclass(frozen=True)
class Wanted:
    """The goal of a calibration, and how the action deviation is measured.

    Attributes:
        rate: transmission rate; None for the usual one.
        smoothing: of the deviation's average; None chooses the value that ranks rejections best.
        normalization: of the deviation; None chooses the value that ranks rejections best.
        draft_temperature: at which the draft samples; None for 1.
        rejection: rejection probability, by the better fit, that sets the deviation's threshold instead of
            the rate; the resulting rate then applies to all other gates.
        methods: gates of these methods; None for every gate.
    """

    rate: float | None = None
    smoothing: float | None = None
    normalization: str | None = None
    draft_temperature: float | None = None
    rejection: float | None = None
    methods: Sequence[str] | None = None

    @classmethod
    def as_in(
        cls,
        made: Calibration,
        methods: Sequence[str],
        rate: float | None = None,
        draft_temperature: float | None = None,
    ) -> Wanted:
        """Return the settings of a calibration, with another rate or temperature where given."""
        rate = made.transmission_rate if rate is None else rate
        temperature = made.draft_temperature if draft_temperature is None else draft_temperature
        return cls(rate, made.smoothing, made.normalization, temperature, methods=methods)

    def variants(self) -> list[Variant]:
        """Return the forms of deviation to choose from."""
        smoothings = SMOOTHINGS if self.smoothing is None else (self.smoothing,)
        normalizations = NORMALIZATIONS if self.normalization is None else (self.normalization,)
        return list(product(smoothings, normalizations))


def calibrate(
    task: str,
    files: PolicyFiles,
    wanted: Wanted,
    seed: int,
    episodes: int = EPISODES,
    workers: int = 1,
    say: Say = lambda line: None,
    searched: int | None = None,
) -> Calibration:
    """Calibrate the gates.

    Args:
        task: registry name.
        files: draft and target.
        wanted: the goal of the calibration.
        seed: of the calibration episodes; no evaluation uses their numbers.
        episodes: how many.
        workers: processes.
        say: called with a description of each stage.
        searched: on how many of them thresholds are searched; None for all. A search runs them several times.

    Raises:
        ValueError: names the field, the value and what was allowed.
    """
    if episodes < 1:
        raise ValueError(f"episodes: {episodes}, must be at least 1")
    numbers = calibration_episodes(episodes)
    if searched is not None and not 1 <= searched <= episodes:
        raise ValueError(f"searched: {searched}, must be 1 to {episodes}, as many as there are episodes")

    def run(calibration: Calibration, method: str) -> Log:
        chosen = numbers if method == MEASURED else numbers[:searched]
        return play_all(Comparison(task, files, calibration, seed), [method], chosen, workers)[method].log

    return _calibrate(run, files.load(), make(task).spec.name, wanted, say)


def calibrate_recorded(
    policies: Policies, recorded: Trajectories, wanted: Wanted, seed: int, say: Say = lambda line: None
) -> Calibration:
    """Calibrate the gates in open loop, on recorded observations.

    The deviation compares each draft with the actions that hybrid inference would have executed, not with the
    recorded actions. On the robot, policies draw these actions, and they scatter more than recorded ones.

    Other arguments as of `calibrate`.
    """

    def run(calibration: Calibration, method: str) -> Log:
        bench = Bench(recorded.task, policies, calibration)
        return METHODS[method].run(bench, RecordedWorld(recorded), seed, range(len(recorded)))

    return _calibrate(run, policies, recorded.task, wanted, say)


def _calibrate(
    run: Callable[[Calibration, str], Log], policies: Policies, name: str, wanted: Wanted, say: Say
) -> Calibration:
    """Calibrate the gates with any way to run a method: see `calibrate`, also for the errors.

    Args:
        run: runs a key of `METHODS` with a calibration.
        policies: draft and target.
        name: of the task, or the kind of robot.
        wanted: the goal of the calibration.
        say: called with a description of each stage.
    """
    rejection, rate = wanted.rejection, RATE if wanted.rate is None else wanted.rate
    if rejection is None and not 0.0 < rate < 1.0:
        raise ValueError(f"rate: {rate}, must be between 0 and 1")
    if rejection is not None and not 0.0 <= rejection <= 1.0:
        raise ValueError(f"rejection: {rejection}, must be 0 to 1")
    if rejection is not None and not policies.share_codes:
        raise ValueError(f"rejection: {rejection}, must be left out where draft and target share no codes")
    variants = wanted.variants()
    temperature = 1.0 if wanted.draft_temperature is None else wanted.draft_temperature
    for variant in variants:
        ControllerConfig(ThresholdedGate("always"), *variant, temperature)  # checks them
    digests = policies.draft.digest, policies.target.digest
    base = Calibration(name, *digests, *variants[0], temperature, rate, thresholds={})

    methods = methods_to_calibrate(policies) if wanted.methods is None else wanted.methods
    searched = searched_gates(methods)
    judged = policies.share_codes and "deviation" in searched
    if judged:
        say("hybrid inference")
        hybrid = run(base, MEASURED)
        scale = policies.draft.action_scale
        variant, held_out = best_variant(hybrid, scale, variants)
        curve = measure(hybrid, scale, *variant)
    else:
        variant = wanted.smoothing or WITHOUT_CODES[0], wanted.normalization or WITHOUT_CODES[1]
    base = replace(base, smoothing=variant[0], normalization=variant[1])

    def trial(gate: str, threshold: float) -> tuple[np.ndarray, float]:
        log = run(replace(base, thresholds={gate: threshold}), searched[gate])
        return log.score[log.active], transmission_rate(log.transmitted, log.active)

    thresholds: dict[str, float] = {}
    rates: dict[str, float] = {}
    if rejection is not None:
        thresholds["deviation"] = curve.best.threshold(rejection)
        rates["deviation"] = rate = trial("deviation", thresholds["deviation"])[1]
        if rate == 1.0:
            raise ValueError(f"rejection: {rejection}, every action is transmitted; must be higher")
    for gate in searched:
        if gate not in thresholds:
            say(f"threshold of the {gate} gate for a transmission rate of {rate:.3f}")
            thresholds[gate], rates[gate] = threshold_for_rate(partial(trial, gate), rate)
    thresholds[RANDOM] = 1.0 - rate
    figures = _measured(rates)
    if judged:
        figures = _figures(curve, held_out, thresholds["deviation"], hybrid, rates)
    return replace(base, transmission_rate=rate, thresholds=thresholds, figures=dict(figures))
