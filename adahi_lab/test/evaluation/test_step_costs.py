from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from adahi_lab.evaluation import step_costs as module
from adahi_lab.evaluation.loaded_policies import Policies
from adahi_lab.evaluation.step_costs import BLOCK, StepCost, step_costs
from adahi_lab.reporting.tables import step_cost_table
from adahi_ros.core.proposal import ActionRange
from adahi_ros.core.signature import GOAL, OBSERVATION, Feature, Signature
from adahi_ros.policies.corrector.corrector import Correction, Corrector
from adahi_ros.policies.corrector.corrector_features import PlanView


class Watched(ActionRange, Corrector):
    """A corrector that keeps what it is shown."""

    def __init__(self) -> None:
        super().__init__(np.full(2, -1.0), np.full(2, 1.0))
        self.signature = Signature(
            1, 8, 2, (Feature(OBSERVATION, 6),), (Feature(GOAL, 2),), parameters=12_345
        )
        self.digest, self.draws, self.action_scale = "watched", 0, np.ones(2, np.float32)
        self.views: list[PlanView] = []

    def correct(self, view: PlanView) -> Correction:
        self.views.append(view)
        return Correction(view.ahead[:, 0], np.ones(1))


@pytest.fixture
def ticking(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have each step take a millisecond longer than the one before."""
    looks = iter(range(10**6))

    def clock() -> float:
        look = next(looks)
        return 1e-3 * (look // 2) * (look % 2)

    monkeypatch.setattr(module, "time", SimpleNamespace(perf_counter=clock))


@pytest.mark.usefixtures("ticking")
def test_every_policy_that_there_is_is_timed_and_warmed_up(policies: Policies) -> None:
    corrector = Watched()
    costs = step_costs(Policies(policies.draft, policies.target, policies.plans, corrector), BLOCK)
    assert list(costs) == ["draft", "target", "corrector", "target that plans"]
    # A block of each to warm up, whose ends nobody looks at, and then one that counts.
    for place, cost in enumerate(costs.values()):
        steps = np.arange((2 + place) * BLOCK, (3 + place) * BLOCK)
        assert cost.median_ms == pytest.approx(np.median(steps))
        assert cost.p99_ms == pytest.approx(np.percentile(steps, 99))
    assert costs["corrector"].parameters == 12_345
    assert costs["draft"].parameters == policies.draft.signature.parameters
    view = corrector.views[-1]
    assert (len(corrector.views), view.age.tolist(), view.left.tolist()) == (2 * BLOCK, [4], [4])


def test_without_plans_draft_and_target_are_timed(policies: Policies) -> None:
    assert list(step_costs(Policies(policies.draft, policies.target), 1)) == ["draft", "target"]


def test_the_table_has_a_line_of_each() -> None:
    table = step_cost_table({"draft": StepCost(2944, 0.03, 0.06), "corrector": StepCost(7, 0.04, 0.1)}, "")
    columns = [list(column.cells) for column in table.columns]
    assert columns == [
        ["draft", "corrector"],
        ["2,944", "7"],
        ["0.030", "0.040"],
        ["0.060", "0.100"],
    ]
