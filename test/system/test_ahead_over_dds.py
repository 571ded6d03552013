"""A robot over DDS that acts by plans or intents and waits for no reply, as recommended."""

from __future__ import annotations

import numpy as np
import pytest

from adahi_lab.calibration.parameter_file import load_calibration
from adahi_lab.evaluation.loaded_policies import PolicyFiles
from adahi_lab.methods.dds_method import node_parameters
from adahi_lab.nodes.dds_run import run_over_dds
from adahi_ros.core.assets import asset
from adahi_ros.policies.backends import load_policy
from adahi_ros.protocol.records import NO_PLAN


@pytest.mark.parametrize(
    ("task", "method"), [("ball", "best"), ("ball_instructed", "corrector+age@6")]
)  # the second robot sends a goal that it does not receive
def test_what_is_recommended_goes_on_by_plans_that_it_asks_for_ahead(task: str, method: str) -> None:
    folder = asset(f"checkpoints/{task}")
    files, calibration = PolicyFiles(folder, "onnxruntime"), load_calibration(asset(f"config/{task}.yaml"))
    draft, target = node_parameters(method, task, files, calibration, 0.05)
    run = run_over_dds(task, draft, target, 1, range(1), lockstep=False)
    horizon = load_policy(folder / "plans" / "target", "onnxruntime").signature.horizon
    assert {step.proposer for step in run.steps} == {"corrector"}
    planned = [step for step in run.steps if step.plan_age != NO_PLAN]
    assert len(planned) > len(run.steps) / 2  # a loaded machine may be late
    for step in planned:
        assert 0 < step.plan_age < horizon
        assert step.expected_error > 0
        assert len(step.planned_action) == len(step.action) == 2
    assert any(step.action != step.planned_action for step in planned)  # it is corrected
    sent, replied = (sum(getattr(step, name) for step in run.steps) for name in ("transmitted", "verified"))
    assert 2 <= replied <= sent < len(run.steps) / 2
    assert all(np.isfinite(step.draft_action).all() for step in run.steps)


def test_where_an_intent_is_recommended_the_robot_acts_long_by_one() -> None:
    task = "ball_instructed"
    files = PolicyFiles(asset(f"checkpoints/{task}"), "onnxruntime")
    draft, target = node_parameters("best", task, files, load_calibration(asset(f"config/{task}.yaml")), 0.05)
    run = run_over_dds(task, draft, target, 1, range(1), lockstep=False)
    assert {step.proposer for step in run.steps} == {"intent"}
    acting = [step for step in run.steps if step.plan_age != NO_PLAN]
    assert len(acting) > len(run.steps) / 2  # a loaded machine may be late
    assert (
        max(step.plan_age for step in acting)
        > load_policy(files.folder / "plans/target", "onnxruntime").signature.horizon
    )
    assert any(step.verified for step in run.steps)
    assert not any(step.transmitted for step in acting if step.plan_age < 5)  # as its gate says
