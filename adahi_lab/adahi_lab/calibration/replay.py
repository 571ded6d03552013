# SPDX-License-Identifier: Apache-2.0
"""Runs methods on the recorded observations of a bag, and measures their actions and costs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from adahi_lab.calibration.parameter_file import Calibration
from adahi_lab.calibration.recorded_world import RecordedWorld
from adahi_lab.datasets.trajectories import Trajectories
from adahi_lab.evaluation.loaded_policies import Bench, Policies, check_fits, uncalibrated
from adahi_lab.evaluation.metrics import squared_error
from adahi_lab.evaluation.rollout import Log
from adahi_lab.evaluation.run_metrics import spread
from adahi_lab.evaluation.step_latency import Costs, measure_costs, measure_plan_costs, simulated_latency
from adahi_lab.figures import Figures
from adahi_lab.link.link_profile import LinkProfile
from adahi_lab.methods.methods import DRAFTLESS, METHODS, gates_of_methods
from adahi_lab.methods.recommended import BEST, Recommendation
from adahi_ros.contract.contract import Contract
from adahi_ros.core.signature import Signature
from adahi_ros.policies.absent import AbsentPolicy
from adahi_ros.policies.backends import load_policy

REPLAYED = ("adahi", "hybrid", "draft", "target", "random", "uncertainty")


@dataclass(frozen=True)
class Replay:
    """The results of each method on E recorded episodes, in open loop.

    Attributes:
        recorded: the episodes.
        logs: by method.
        latency_ms: by method, (T, E), modelled.
        costs: of a step on this machine.
        figures: by method, as `adahi bag evaluate --json` writes them.
    """

    recorded: Trajectories
    logs: dict[str, Log]
    latency_ms: dict[str, np.ndarray]
    costs: Costs
    figures: Mapping[str, Figures]


def load_pair(draft: Path, target: Path, backend: str, draftless: Contract | None = None) -> Policies:
    """Load a draft and its target, each FOLDER/NAME.

    Args:
        draft: on the robot.
        target: at the server.
        backend: of both.
        draftless: contract of a robot without a draft.

    Raises:
        ValueError: one cannot be loaded, or they do not match.
    """
    planning = load_policy(target, backend)
    if draftless is None:
        return Policies(load_policy(draft, backend), planning)
    sizes = draftless.number_dim, draftless.goal_dim, draftless.action.size
    return Policies(AbsentPolicy(*sizes), planning)


def calibration_of(
    found: Calibration | None, robot_type: str, policies: Policies, names: Sequence[str]
) -> Calibration:
    """Return a calibration of these policies for these methods; empty if they need no threshold.

    Raises:
        ValueError: it belongs to other policies, or is missing and a method needs a threshold.
    """
    needed = [name for name in gates_of_methods(names) if not METHODS[name].by_plans]
    if needed and found is None:
        raise ValueError(f"--calibration: none, must be given for {', '.join(needed)}")
    if needed and found is not None:
        check_fits(found, robot_type, policies)
        return found
    return uncalibrated(robot_type, policies)


def check_sizes(signature: Signature, recorded: Trajectories) -> None:
    """Check that a signature matches the sizes of a recording; the goal may be missing.

    Raises:
        ValueError: a size differs; names it.
    """
    for name, wanted, found in (
        ("observation", recorded.observations.shape[1], signature.observation_dim),
        ("goal", recorded.goals.shape[1], signature.goal_dim),
        ("action", recorded.actions.shape[1], signature.action_dim),
    ):
        if found != wanted and (name, found) != ("goal", 0):
            raise ValueError(
                f"{name}: the contract's has {wanted} entries, the policies' {found}; must agree"
            )


def replay(
    recorded: Trajectories,
    policies: Policies,
    calibration: Calibration,
    link: LinkProfile,
    seed: int,
    on_method: Callable[[str], None] = lambda name: None,
    names: Sequence[str] = REPLAYED,
    best: Recommendation | None = None,
    costs_of: Callable[[Costs], Costs] = lambda costs: costs,
) -> Replay:
    """Run methods over recorded observations.

    Latency is a model: the compute measured on this machine, plus a round trip from the link's profile for
    each request. No reply is lost. Replies are late only where a method declares them so;
    no robot waits for these.

    Args:
        recorded: what was observed and done.
        policies: draft and target, and a target that plans where a method needs one.
        calibration: of the gates, on these policies.
        link: between robot and server.
        seed: of every draw.
        on_method: called with each method before it runs.
        names: of the methods, as `METHODS` knows them.
        best: the method that `best` stands for; None for the task's recommendation.
        costs_of: corrects the measured costs of a step with these policies.

    Raises:
        ValueError: the policies have other sizes, a gate is not calibrated, or a method lacks a policy.
    """
    check_sizes(policies.draft.signature, recorded)
    bench = Bench(recorded.task, policies, calibration)
    methods = {
        name: best.method(BEST) if best is not None and name == BEST.name else METHODS[name].on(recorded.task)
        for name in names
    }
    thresholds = {name: method.threshold(bench) for name, method in methods.items()}
    costs = costs_of(measure_costs(policies.draft, policies.target))
    plan_costs = measure_plan_costs(policies) if any(method.by_plans for method in methods.values()) else {}
    own = policies.target if isinstance(policies.draft, AbsentPolicy) else policies.draft
    episodes, scale = range(len(recorded)), own.action_scale
    logs, latencies, figures = {}, {}, {}
    for name, method in methods.items():
        on_method(name)
        gate, threshold = thresholds[name]
        log = method.run(bench, RecordedWorld(recorded), seed, episodes)
        spent, waited = costs, log
        if method.by_plans:
            spent = costs_of(plan_costs.get(method.proposer, plan_costs["plan"]))
            waited = replace(log, transmitted=log.transmitted & (method.delay == 0))
        latency = simulated_latency(waited, name not in DRAFTLESS, spent, link, seed, episodes)
        logs[name], latencies[name] = log, latency
        figures[name] = {
            "gate": gate,
            "threshold": threshold,
            "mse": squared_error(recorded, log.action, log.active, scale),
            "steps": int(log.active.sum()),
            "calls": int(log.transmitted[log.active].sum()),
            **log.rates(),
            "refused": int(log.refused[log.active].sum()),
            "deviation": spread(log.deviation[log.active]),
            "modelled_latency_ms": spread(latency[log.active]),
        }
    return Replay(recorded, logs, latencies, costs, figures)
