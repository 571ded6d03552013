"""HeiSD on the robot: its metric of the tool's path; what is retrieved, skipped and verified."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from adahi_lab.datasets.trajectories import Trajectories
from adahi_lab.papers.heisd.retrieval import load_retrieval
from adahi_lab.papers.heisd.retrieval_index import make_index, save_index
from adahi_lab.papers.heisd.tool_path import ToolMetric, displacement, radius
from adahi_ros.core.assets import asset
from adahi_ros.gates.gate_config import ControllerConfig, ThresholdedGate
from adahi_ros.policies.backends import load_policy
from adahi_ros.policies.interface import Policy
from adahi_ros.robot.controller import Controller

OBSERVED, STEPS = 18, 30


def arc(of_m: float, angle: float, count: int = 5, rise: float = 0.0) -> np.ndarray:
    turned = np.linspace(0.0, angle, count)
    return np.stack([of_m * np.cos(turned), of_m * np.sin(turned), rise * turned], axis=1)


@pytest.mark.parametrize(
    ("points", "of_circle", "summed"),
    [
        (arc(0.1, np.pi / 2), 0.04739936271889894, 0.3680901537174736),
        (arc(0.1, 0.3, rise=0.02), 0.009271952768084, 0.07631309259798785),
        (arc(0.1, np.pi), 0.08443455955885107, 0.6027339492125847),
        (arc(0.05, 8 * np.pi / 5), 0.05, 0.30776835371752537),
        (np.array([[0, 0, 0], [0.01, 0, 0], [0.01, 0.02, 0]]), 0.010208445253181824, 0.0423606797749979),
    ],
)
def test_the_metric_is_that_of_the_released_code(points: np.ndarray, of_circle: float, summed: float) -> None:
    """Expected values are of `calc_r.py` in lusunn111/RoboNix-Retrieval-Augmented-Toolkit."""
    np.testing.assert_allclose(radius(points[None]), of_circle, rtol=1e-9)
    np.testing.assert_allclose(displacement(points[None]), summed, rtol=1e-9)


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> str:
    """An index of tools that move at different speeds."""
    rng, folder = np.random.default_rng(1), tmp_path_factory.mktemp("index")
    episodes = []
    for speed in np.linspace(0.0, 0.02, 10):
        seen = np.zeros((STEPS, OBSERVED), dtype=np.float32)
        seen[:, 0] = speed * np.arange(STEPS)
        seen[:, 3:] = rng.normal(size=OBSERVED - 3)
        episodes.append(seen)
    data = Trajectories(
        "metaworld",
        np.concatenate(episodes),
        rng.normal(size=(10 * STEPS, 4)).astype(np.float32) * 0.1,
        np.zeros((10, 0), np.float32),
        STEPS * np.arange(1, 11),
    )
    sizes = {"observation_dim": OBSERVED, "goal_dim": 0}
    save_index(folder, "retrieval", make_index(data, 0, 2**20), sizes, {})
    return str(folder / "retrieval")


@pytest.fixture(scope="module")
def draft() -> Policy:
    return load_policy(asset("checkpoints/metaworld/tokens") / "draft", "onnxruntime")


def controller_of(draft: Policy, index: str, **arguments: float) -> Controller:
    gate = ControllerConfig(ThresholdedGate("expected_error", 0.0))
    controller = Controller(draft, gate, "tool_path", arguments={"file": index, **arguments})
    controller.reset(1, [0])
    return controller


def sent(
    draft: Policy, index: str, speed: float, count: int, **arguments: float
) -> tuple[list[bool], list[float]]:
    """Return at which steps a request is sent, and the sign and size of the distance in bins."""
    controller = controller_of(draft, index, **arguments)
    asks, distances = [], []
    for number in range(count):
        seen = np.zeros((1, OBSERVED), dtype=np.float32)
        seen[0, 0] = speed * number
        step = controller.begin({"observation": seen})
        controller.executed(controller.finish(step, None))
        asks.append(bool(step.transmit[0]))
        assert step.proposal is not None
        made = step.proposal.actions[0]
        codec = draft.codec  # type: ignore[attr-defined]
        distances.append(float(((made[1] - made[0]) / (codec.high - codec.low) * codec.codebook_size).mean()))
    return asks, distances


def test_a_fast_tool_is_verified_after_every_two_retrieved_actions(draft: Policy, index: str) -> None:
    asks, distances = sent(draft, index, 0.02, 12)
    assert asks == [True, True, True, *[False, False, True] * 3]
    np.testing.assert_allclose(distances, [0.5] * 3 + [-0.5] * 9, atol=1e-3)


def test_the_limit_is_the_metric_that_a_share_of_the_demonstrated_paths_does_not_exceed(index: str) -> None:
    every = load_retrieval(Path(index)).index
    low, high = (ToolMetric(every, 0, share) for share in (0.25, 0.75))
    paths = 0.001 * np.arange(21)[:, None, None] * arc(1.0, 0.0, 5) * np.arange(5)[:, None]
    assert (low.fuse(paths) > low.limit).sum() > (high.fuse(paths) > high.limit).sum() > 0
    assert ToolMetric(every, 0, 0.0).limit == 0.0


def test_only_a_request_for_a_retrieved_action_has_other_candidates(draft: Policy, index: str) -> None:
    controller = controller_of(draft, index)
    counts = []
    for number in range(9):
        seen = np.zeros((1, OBSERVED), dtype=np.float32)
        seen[0, 0] = 0.02 * number
        step = controller.begin({"observation": seen})
        controller.executed(controller.finish(step, None))
        assert step.proposal is not None
        counts.append(step.proposal.actions.shape[1])
    assert counts == [2, 2, 2, 2, 2, 6, 2, 2, 6]


def test_without_an_index_the_file_is_named(draft: Policy) -> None:
    with pytest.raises(ValueError, match=r"^proposer\.file: '', must name a checkpoint"):
        sent(draft, "", 0.0, 1)
    with pytest.raises(ValueError, match=r"^proposer\.file: '.*/nowhere', cannot be loaded: "):
        sent(draft, "nowhere", 0.0, 1)


def test_a_place_outside_of_the_observation_is_refused(draft: Policy, index: str) -> None:
    with pytest.raises(ValueError, match=r"^tool: 16, must be at most 15"):
        sent(draft, index, 0.0, 1, tool=16)
