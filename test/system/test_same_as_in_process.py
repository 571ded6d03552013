"""A run over DDS does what the rollout of the evaluation does, bit for bit."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import yaml

from adahi_lab.datasets.trajectories import Trajectories
from adahi_lab.evaluation.rollout import rollout
from adahi_lab.evaluation.task_contract import contract_values
from adahi_lab.nodes.dds_run import run_over_dds
from adahi_lab.tasks import make
from adahi_lab.training.fitting import Run
from adahi_lab.training.vqbet_files import load_tokenizer, save_policy
from adahi_lab.training.vqbet_training import CodeFitConfig, train_policy
from adahi_ros.gates.gate_config import ControllerConfig, ThresholdedGate
from adahi_ros.nodes.launching.child_processes import DdsRunError
from adahi_ros.policies.backends import load_policy
from adahi_ros.protocol.records import Reason, StepRecord
from adahi_ros.robot.controller import Controller
from adahi_ros.server.verifier import TargetVerifier

SEED = 11
THRESHOLD = 0.8  # the deviation of these drafts is above it in some steps and below it in others


@pytest.fixture(scope="module")
def histories(
    exported: Path, demonstrations: Callable[[int], Trajectories], tmp_path_factory: pytest.TempPathFactory
) -> Path:
    """The same policies, and `longer`: a target that reads five observations, where the draft reads three."""
    folder = tmp_path_factory.mktemp("histories") / "policies"
    shutil.copytree(exported, folder)
    size = {"width": 8, "layers": 1, "heads": 2, "head_hidden": 8}
    fit = CodeFitConfig(10, 64, warmup=0)
    model, _ = train_policy(demonstrations(2), load_tokenizer(folder), 5, size, fit, Run(0))
    save_policy(folder, "longer", model, {})
    return folder


def test_lockstep_over_dds_equals_the_rollout(histories: Path) -> None:
    seen: list[StepRecord] = []
    run = run_over_dds(
        "ball",
        {"checkpoint": str(histories / "draft"), "gate.threshold": THRESHOLD, "deadline_s": 20.0},
        {"checkpoint": str(histories / "longer")},
        SEED,
        range(4, 6),
        on_status=seen.append,
    )
    assert tuple(seen) == run.steps
    assert [outcome.episode for outcome in run.episodes] == [4, 5]
    draft, target = (load_policy(histories / each, "onnxruntime") for each in ("draft", "longer"))
    controller = Controller(draft, ControllerConfig(ThresholdedGate("deviation", THRESHOLD)))
    for outcome in run.episodes:
        rows = [row for row in run.steps if row.episode == outcome.episode]
        world = make("ball")
        log = rollout(world, controller, TargetVerifier(target), SEED, [outcome.episode])
        assert [row.step for row in rows] == list(range(len(log.action))) == list(range(outcome.steps))
        assert all(row.reason is Reason.NONE for row in rows)
        # The robot's limits are the task's: what the world would clip is not sent.
        executed = np.clip(
            log.action[:, 0], *np.array([world.spec.action_low, world.spec.action_high], np.float32)
        )
        np.testing.assert_array_equal(np.array([row.action for row in rows], np.float32), executed)
        assert [row.transmitted for row in rows] == log.transmitted[:, 0].tolist()
        assert 0 < sum(row.transmitted for row in rows) < len(rows)
        for row, accepted in zip(rows, log.accepted[:, 0], strict=True):
            assert row.accepted == (tuple(accepted) if row.transmitted else ())
        assert outcome.success == bool(world.success[0])


def test_a_robot_of_two_controllers_does_as_one_of_one(exported: Path, tmp_path: Path) -> None:
    """The plate's joints on a topic each: one envelope, one step of the world."""
    values = contract_values(make("ball"))
    whole = values["actions"].pop("action")
    for part, path in zip(("pitch", "roll"), whole["select"], strict=True):
        channel = {**whole["channel"], "topic": f"{part}_controller/joint_trajectory"}
        values["actions"][f"action.{part}"] = {**whole, "channel": channel, "select": [path]}
    (tmp_path / "plate.yaml").write_text(yaml.safe_dump(values, sort_keys=False))
    draft = {"checkpoint": str(exported / "draft"), "gate.threshold": THRESHOLD, "deadline_s": 20.0}
    target = {"checkpoint": str(exported / "target")}
    one, two = (
        run_over_dds("ball", {**draft, **contract}, target, SEED, range(1))
        for contract in ({}, {"contract": str(tmp_path / "plate.yaml")})
    )
    assert [row.action for row in two.steps] == [row.action for row in one.steps]
    assert two.episodes == one.episodes


def test_an_error_shows_what_the_node_reported(exported: Path) -> None:
    draft = {"checkpoint": str(exported / "draft"), "gate.name": "sometimes"}
    with pytest.raises(DdsRunError, match=r"draft_policy_node did not configure(.|\n)*'sometimes'"):
        run_over_dds("ball", draft, {"checkpoint": str(exported / "target")}, 0, range(1))


def test_a_node_that_ends_early_is_an_error(exported: Path) -> None:
    verifier = {"checkpoint": "/nowhere/target"}
    with pytest.raises(DdsRunError, match=r"target_verifier_node ended early(.|\n)*/nowhere/target"):
        run_over_dds("ball", {"checkpoint": str(exported / "draft")}, verifier, 0, range(1))


def test_real_time(exported: Path) -> None:
    run = run_over_dds(
        "ball",
        {"checkpoint": str(exported / "draft"), "gate.name": "random", "gate.threshold": 0.5},
        {"checkpoint": str(exported / "target")},
        SEED,
        range(1),
        lockstep=False,
    )
    assert [outcome.episode for outcome in run.episodes] == [0]
    steps = [row.step for row in run.steps if row.episode == 0]
    assert steps == sorted(set(steps))
    assert len(steps) <= run.episodes[0].steps
