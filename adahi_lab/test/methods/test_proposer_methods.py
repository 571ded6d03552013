"""Methods of proposers that draft and may go by plans: their names, and what they do in episodes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from test.toys import assert_same, played

from adahi_lab.calibration.parameter_file import Calibration
from adahi_lab.evaluation.episodes import evaluation_episodes
from adahi_lab.evaluation.loaded_policies import RETRIEVAL, Bench, PolicyFiles
from adahi_lab.evaluation.rollout import Log
from adahi_lab.methods.methods import METHODS
from adahi_lab.training.retrieval_index import make_index, save_index
from adahi_ros.core.trajectories import Trajectories
from adahi_ros.policies.retrieval import load_retrieval


@pytest.fixture(scope="module")
def bench(
    files: PolicyFiles,
    calibration: Calibration,
    demonstrations: Callable[[int], Trajectories],
    tmp_path_factory: pytest.TempPathFactory,
) -> Bench:
    data = demonstrations(2)
    index, _ = make_index(data, 1, 4, 2**20)
    folder = tmp_path_factory.mktemp("index")
    sizes = {"observation_dim": 6, "goal_dim": 2, "horizon": 4, "neighbours": 4}
    save_index(folder, RETRIEVAL, index, sizes, {})
    policies = replace(files.load(), retrieval=load_retrieval(folder / RETRIEVAL))
    return Bench("ball", policies, calibration)


def run(bench: Bench, name: str) -> Log:
    return played(bench, name, evaluation_episodes(3))


def test_no_more_is_retrieved_than_the_target_plans(bench: Bench) -> None:
    with pytest.raises(ValueError, match="the target plans only 8 actions"):
        METHODS["retrieval_9:never"].threshold(bench)


@pytest.mark.parametrize(
    "name", ["retrieval_8:expected_error@0.4", "retrieval:expected_error@0.1", "retrieval_4:age@3"]
)
def test_episodes_are_the_same_again(bench: Bench, name: str) -> None:
    assert_same(run(bench, name), run(bench, name))


def test_who_is_never_verified_asks_nothing_and_does_what_was_retrieved(bench: Bench) -> None:
    log = run(bench, "retrieval_4:never")
    assert not log.transmitted.any()
    np.testing.assert_array_equal(log.action, log.draft_action)


def test_a_plan_is_executed_unasked_and_then_the_neighbours_decide(bench: Bench) -> None:
    requested = run(bench, "retrieval_4:expected_error@-1")  # so sure that none is skipped but on a plan
    every = run(bench, "retrieval_4:age@3")
    np.testing.assert_array_equal(every.transmitted[:, 0].nonzero()[0] % 4, 0)
    assert requested.transmitted[requested.active].all()
    skipped = run(bench, "retrieval_4:expected_error@1000")
    assert not skipped.transmitted.any()
