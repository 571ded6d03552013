from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from test.toys import Constant, played

from adahi_lab.calibration.parameter_file import Calibration
from adahi_lab.evaluation.comparison import Entry, random_baseline
from adahi_lab.evaluation.evaluate import Comparison
from adahi_lab.evaluation.loaded_policies import Bench, Policies
from adahi_lab.evaluation.method_needs import demands
from adahi_lab.evaluation.rollout import Log
from adahi_lab.methods.methods import METHODS, parse_methods, runs_on_robot
from adahi_lab.methods.oracles import HarmGate
from adahi_ros.core.proposal import Proposal
from adahi_ros.core.signature import IMAGE_FEATURES, OBSERVATION, Feature, Observations, Signature


def run(policies: Policies, calibration: Calibration, name: str) -> Log:
    return played(Bench("ball", policies, calibration), name, range(4), seed=3)


@pytest.mark.parametrize("name", ["draft+harm@{}/by_target", "plan+harm@{}"])
def test_who_asks_less_wherever_it_would_do_what_the_target_would(
    policies: Policies, calibration: Calibration, name: str
) -> None:
    logs = [run(policies, calibration, name.format(at)) for at in ("0.0", "0.5", "1000")]
    rates = [log.transmitted[log.active].mean() for log in logs]
    assert rates[0] > 0.9
    assert rates[0] > rates[1] > rates[2]
    assert (logs[2].score[1:8] >= 0.0).all()
    np.testing.assert_array_equal(logs[1].transmitted[logs[1].active], (logs[1].score > 0.5)[logs[1].active])


def test_harm_is_the_distance_to_what_the_target_would_do(
    policies: Policies, calibration: Calibration
) -> None:
    assert policies.plans is not None
    still = replace(policies, plans=Constant(policies.plans.signature, [0.05, -0.02]))
    log = run(still, calibration, "plan+harm@0.1")
    harm = log.score[log.active & ~log.transmitted]
    assert harm.max() < 1e-6  # what is planned is what would be planned
    horizon = policies.plans.signature.horizon
    assert np.flatnonzero(log.transmitted[:, 0])[:2].tolist() == [0, horizon]  # only where a plan is over


def test_its_names_are_methods_that_no_robot_can_run(policies: Policies, calibration: Calibration) -> None:
    assert parse_methods("draft+harm@0.3/by_target,plan+harm") == ["draft+harm@0.3/by_target", "plan+harm"]
    with pytest.raises(ValueError, match=r"methods: 'plan\+harm'"):
        parse_methods("plan+harm", on_air=True)
    for name in ("oracle:plan", "plan+harm@x"):
        assert name not in METHODS
    drafting, planning = METHODS["draft+harm@0.3/by_target"], METHODS["plan+harm"]
    assert not drafting.by_plans
    assert planning.by_plans
    assert not runs_on_robot(planning)
    bench = Bench("ball", policies, replace(calibration, thresholds={"plan+harm": 0.7}))
    assert planning.threshold(bench) == ("harm", 0.7)
    assert drafting.threshold(bench) == ("harm", 0.3)
    with pytest.raises(ValueError, match=r"corrector\+harm@1: there is no corrector"):
        METHODS["corrector+harm@1"].threshold(bench)
    for method in (drafting, planning):
        assert demands(method, bench).needs[-1] == "what no robot knows"


def test_chance_takes_its_place_at_its_rate(comparison: Comparison) -> None:
    figures = {"transmission_rate": 0.4, "steps_per_episode": 30.0}
    for name, proposer in (("draft+harm@0.3/by_target", "draft"), ("plan+harm@0.3", "plan")):
        baseline = random_baseline(Entry(METHODS[name], comparison, range(2), name, "itself"), figures)
        assert baseline is not None
        assert (baseline.method.proposer, baseline.method.gate) == (proposer, "random")


def test_its_target_sees_the_images_that_are_for_the_target_alone() -> None:
    """A robot tells nothing of them, so they are not among what the gate is handed."""
    features = (Feature(OBSERVATION, 2), Feature(IMAGE_FEATURES, 3))
    seen: list[np.ndarray] = []

    class Looking(Constant):
        def propose(self, observations: Observations, *how: Any) -> Proposal:
            seen.append(observations.features[IMAGE_FEATURES])
            return super().propose(observations, *how)

    class Shown:
        goal = np.zeros((1, 0))
        image_features = np.full((1, 3), 7.0, np.float32)

    target = Looking(Signature(1, 1, 2, features), [0.0, 0.0])
    gate = HarmGate(target, Shown(), np.ones(2), 0, [0])  # type: ignore[arg-type]
    context = SimpleNamespace(
        course=SimpleNamespace(intended=np.zeros((1, 2))), observed={OBSERVATION: np.ones((1, 2), np.float32)}
    )
    assert gate.score(context).tolist() == [0.0]  # type: ignore[arg-type]
    assert (seen[0] == 7.0).all()
