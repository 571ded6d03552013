"""`adahi evaluate`: every method on the same episodes, in process."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from adahi_ros.evaluation.methods import METHODS
from adahi_ros.evaluation.metrics import transmission_rate, true_skip_ratio, wilson_interval
from adahi_ros.evaluation.recorded import RecordedWorld, squared_error
from adahi_ros.evaluation.rollout import rollout
from adahi_ros.policy.interface import Policy, misfit
from adahi_ros.speculation.controller import Controller
from adahi_ros.speculation.parameter_file import Calibration
from adahi_ros.speculation.verifier import TargetVerifier
from adahi_ros.tasks import make, make_expert
from adahi_ros.tasks.demonstrations import collect
from adahi_ros.trajectories import Trajectories

HELD_OUT_EPISODES = 50
HELD_OUT_SEED_OFFSET = 7_000_000  # demonstrations that no recipe trains on


@dataclass(frozen=True)
class Policies:
    """A draft and a target on one tokenizer.

    Raises:
        ValueError: they do not belong together; names what differs.
    """

    draft: Policy
    target: Policy

    def __post_init__(self) -> None:
        draft, target = self.draft, self.target
        fault = misfit(draft.spec, draft.decoder.fingerprint, target.spec, target.decoder.fingerprint)
        if fault is not None:
            raise ValueError(fault)


def held_out(task: str, seed: int) -> Trajectories:
    """Return expert episodes to compare actions with."""
    world = make(task)
    return collect(
        world, make_expert(task), HELD_OUT_EPISODES, HELD_OUT_SEED_OFFSET + seed, action_noise=0.0
    ).trajectories


def expert_error(controller: Controller, verifier: TargetVerifier, seed: int, expert: Trajectories) -> float:
    """Return the mean squared error to the expert's actions on its own observations, in action scales."""
    replay = rollout(RecordedWorld(expert), controller, verifier, seed, range(len(expert)))
    return squared_error(expert, replay.action, replay.active, controller.policy.decoder.action_scale)


def evaluate_method(
    name: str,
    task: str,
    policies: Policies,
    calibration: Calibration,
    seed: int,
    episodes: Sequence[int],
    expert: Trajectories,
    on_step: Callable[[int], None] = lambda step: None,
) -> dict[str, Any]:
    """Run one method; return its figures, as `adahi evaluate --json` writes them."""
    method = METHODS[name]
    config = calibration.controller(method.gate)
    controller = Controller(policies.draft, config)
    verifier = TargetVerifier(policies.target, method.rule)
    world = make(task)
    log = rollout(world, controller, verifier, seed, episodes, on_step)
    successes = int(world.success.sum())
    return {
        "gate": method.gate,
        "threshold": config.gate.threshold,
        "success_rate": successes / len(episodes),
        "success_ci95": list(wilson_interval(successes, len(episodes))),
        "transmission_rate": transmission_rate(log.transmitted, log.active),
        "true_skip_ratio": true_skip_ratio(log.transmitted, log.accepted, log.active),
        "mse": expert_error(controller, verifier, seed, expert),
        "rejection_rate": (1.0 - log.accepted[log.active].mean(axis=0)).tolist(),
        "steps_per_episode": float(log.active.sum() / len(episodes)),
    }
