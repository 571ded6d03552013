"""Every method of `adahi methods` runs over DDS, and does what the evaluation does, bit for bit."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from adahi_lab.calibration.parameter_file import Calibration, load_calibration
from adahi_lab.evaluation.evaluate import Comparison
from adahi_lab.evaluation.loaded_policies import PolicyFiles
from adahi_lab.methods.dds_method import node_parameters
from adahi_lab.methods.methods import METHODS, for_task, on_task, parse_methods
from adahi_lab.nodes.dds_run import run_over_dds
from adahi_lab.nodes.domain import exclusive_domain
from adahi_lab.papers.heisd.retrieval import KIND
from adahi_lab.papers.heisd.retrieval_index import make_index, save_index
from adahi_lab.papers.literature import Line, lines
from adahi_lab.tasks import make
from adahi_lab.tasks.demonstrations import collect_parallel, seen_by_robots
from adahi_ros.core.assets import asset
from adahi_ros.protocol.records import Reason

TASK, SEED, EPISODES = "ball", 11, range(3, 4)
TOKENS = "checkpoints/metaworld/tokens"
DEADLINE_S = 60.0


@pytest.fixture(scope="module")
def domain() -> Iterator[int]:
    """A ROS domain for all runs."""
    with exclusive_domain() as number:
        yield number


def with_index(task: str, shipped: str, folder: Path) -> Path:
    """Copy shipped policies into a folder, with an index of a few demonstrations as robots see them."""
    shutil.copytree(asset(shipped), folder, ignore=shutil.ignore_patterns(f"{KIND}.*"))
    data = seen_by_robots(collect_parallel(task, 10, 0, action_noise=0.1).trajectories, task)
    index, _ = make_index(data, 0, 4, 2**20)
    sizes = {"observation_dim": data.observations.shape[1], "goal_dim": data.goals.shape[1]}
    save_index(folder, KIND, index, {**sizes, "horizon": 8, "neighbours": 4}, {})
    return folder


@pytest.fixture(scope="module")
def policies(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Those of the ball."""
    return with_index(TASK, "checkpoints/ball", tmp_path_factory.mktemp("ball") / "policies")


@pytest.fixture(scope="module")
def tokens(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Those of Meta-World that emit tokens."""
    return with_index("metaworld", TOKENS, tmp_path_factory.mktemp("metaworld") / "policies")


@pytest.fixture(scope="module")
def calibration() -> Calibration:
    """The shipped one, with a threshold of the gate that has none."""
    found = load_calibration(asset("config/ball.yaml"))
    return replace(found, thresholds={**found.thresholds, "sampled_uncertainty": 0.5})


@pytest.mark.timeout(300)
@pytest.mark.parametrize("line", lines(), ids=lambda line: line.name)
def test_it_does_as_in_process(
    line: Line, calibration: Calibration, domain: int, request: pytest.FixtureRequest
) -> None:
    task = line.task or TASK
    shipped = line.checkpoints.replace("{task}", task)
    if shipped in ("", TOKENS):
        folder: Path = request.getfixturevalue("tokens" if shipped else "policies")
    else:
        folder = asset(shipped)
    (name,) = parse_methods(for_task(line.method, task, folder), on_air=True)
    files = PolicyFiles(folder, line.backend or "onnxruntime")
    known = files.load()
    fitting = replace(calibration, draft=known.draft.digest, target=known.target.digest)
    fitting = replace(fitting, task=make(task).spec.name)
    draft, target = node_parameters(name, task, files, fitting, DEADLINE_S, lockstep=True)
    run = run_over_dds(task, draft, target, SEED, EPISODES, domain=domain)
    bench = Comparison(task, files, fitting, SEED).bench()
    world = make(task)
    log = METHODS[name].run(bench, world, SEED, EPISODES)
    assert [row.step for row in run.steps] == list(range(len(log.action)))
    assert {row.reason for row in run.steps} == {Reason.NONE}
    assert [row.transmitted for row in run.steps] == log.transmitted[:, 0].tolist()
    limits = np.array([world.spec.action_low, world.spec.action_high], np.float32)
    executed = np.clip(log.action[:, 0], *limits)  # the robot's limits are the task's
    np.testing.assert_array_equal(np.array([row.action for row in run.steps], np.float32), executed)
    assert [episode.success for episode in run.episodes] == world.success.tolist()


def test_each_line_is_a_method_that_a_robot_runs() -> None:
    for line in lines():
        assert on_task(for_task(line.method, TASK, Path("folder")), line.task or TASK).name
