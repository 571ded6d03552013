# SPDX-License-Identifier: Apache-2.0
"""The windows that all peers send: those of running episodes with the draft policy."""

from __future__ import annotations

from itertools import islice
from pathlib import Path

import numpy as np

from adahi_lab.evaluation.episodes import evaluation_episodes
from adahi_lab.peers.driving import BACKEND, Observations
from adahi_lab.tasks import make
from adahi_lab.tasks.episodes import episodes
from adahi_ros.core.assets import asset
from adahi_ros.core.proposal import CodeDistribution
from adahi_ros.core.signature import GOAL, OBSERVATION
from adahi_ros.gates.gate_config import ControllerConfig, ThresholdedGate
from adahi_ros.policies.backends import load_policy
from adahi_ros.robot.controller import Controller, Step


def write_observations(task: str, calls: int, out: Path, seed: int = 0) -> None:
    """Let the draft policy run episodes one after the other and write the first control steps of them.

    Args:
        task: has checkpoints among the shipped ones.
        calls: N, how many steps.
        out: safetensors file to write, see `Observations`.
        seed: of every draw.

    Raises:
        ValueError: no such task.
        FileNotFoundError: the task has no checkpoints.
    """
    draft = load_policy(asset(f"checkpoints/{task}") / "draft", BACKEND)
    world = make(task)
    controller = Controller(draft, ControllerConfig(ThresholdedGate("never")))
    steps: list[Step] = []
    for episode in evaluation_episodes(calls):  # each lasts at least a step
        for _ in islice(episodes(world, seed, [episode], controller), calls - len(steps)):
            step = controller.begin({OBSERVATION: world.observation, GOAL: world.goal})
            world.step(controller.finish(step, None))
            steps.append(step)
        if len(steps) == calls:
            break
    signature, drawn = draft.signature, [_drawn(step) for step in steps]
    Observations(
        np.concatenate([signature.window(step.observations) for step in steps]),
        np.concatenate([signature.condition(step.observations) for step in steps]),
        np.concatenate([each.codes for each in drawn]),
        np.concatenate([each.counts for each in drawn]),
    ).save(out)


def _drawn(step: Step) -> CodeDistribution:
    assert step.proposal is not None
    assert step.proposal.distribution is not None
    return step.proposal.distribution
