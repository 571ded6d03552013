"""Runs over DDS that do what the evaluation does, bit for bit, and policies with an index."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np

from adahi_lab.calibration.parameter_file import Calibration
from adahi_lab.evaluation.evaluate import Comparison
from adahi_lab.evaluation.loaded_policies import PolicyFiles
from adahi_lab.evaluation.run_record import RunRecord
from adahi_lab.methods.dds_method import node_parameters
from adahi_lab.methods.methods import METHODS
from adahi_lab.nodes.dds_run import run_over_dds
from adahi_lab.papers.heisd.retrieval import KIND
from adahi_lab.papers.heisd.retrieval_index import make_index, save_index
from adahi_lab.tasks import make
from adahi_lab.tasks.demonstrations import collect_parallel, seen_by_robots
from adahi_ros.core.assets import asset
from adahi_ros.protocol.records import Reason

SEED, EPISODES = 11, range(3, 4)
DEADLINE_S = 60.0


def with_index(task: str, shipped: str, folder: Path) -> Path:
    """Copy shipped policies into a folder, with an index of a few demonstrations as robots see them."""
    shutil.copytree(asset(shipped), folder, ignore=shutil.ignore_patterns(f"{KIND}.*"))
    data = seen_by_robots(collect_parallel(task, 10, 0, action_noise=0.1).trajectories, task)
    index = make_index(data, 0, 2**20)
    sizes = {"observation_dim": data.observations.shape[1], "goal_dim": data.goals.shape[1]}
    save_index(folder, KIND, index, sizes, {})
    return folder


def run_as_in_process(
    name: str, task: str, files: PolicyFiles, calibration: Calibration, domain: int
) -> RunRecord:
    """Run an episode of a method over DDS, and check that it does what the evaluation does.

    Args:
        name: of the method.
        task: a key of the tasks.
        files: policies.
        calibration: of the task or of another one; its thresholds are taken for these policies.
        domain: the ROS domain.
    """
    method, world = METHODS[name], make(task)
    files = files.of_method(world.spec.name, method.checkpoints, method.backend)
    known = files.load()
    fitting = replace(calibration, draft=known.draft.digest, target=known.target.digest, task=world.spec.name)
    draft, target = node_parameters(name, task, files, fitting, DEADLINE_S, lockstep=True)
    run = run_over_dds(task, draft, target, SEED, EPISODES, domain=domain)
    log = method.run(Comparison(task, files, fitting, SEED).bench(), world, SEED, EPISODES)
    assert [row.step for row in run.steps] == list(range(len(log.action)))
    assert {row.reason for row in run.steps} == {Reason.NONE}
    assert [row.transmitted for row in run.steps] == log.transmitted[:, 0].tolist()
    limits = np.array([world.spec.action_low, world.spec.action_high], np.float32)
    executed = np.clip(log.action[:, 0], *limits)  # the robot's limits are the task's
    np.testing.assert_array_equal(np.array([row.action for row in run.steps], np.float32), executed)
    assert [episode.success for episode in run.episodes] == world.success.tolist()
    return run
