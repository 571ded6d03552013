"""The method that retrieves drafts of plans, in episodes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from test.toys import played

from adahi_lab.calibration.parameter_file import Calibration
from adahi_lab.datasets.trajectories import Trajectories
from adahi_lab.evaluation.episodes import evaluation_episodes
from adahi_lab.evaluation.loaded_policies import Bench, PolicyFiles
from adahi_lab.evaluation.rollout import Log
from adahi_lab.methods.methods import METHODS
from adahi_lab.papers.heisd.retrieval_index import make_index, save_index


@pytest.fixture(scope="module")
def bench(files: PolicyFiles, calibration: Calibration) -> Bench:
    return Bench("ball", files.load(), calibration)


@pytest.fixture(scope="module")
def index(demonstrations: Callable[[int], Trajectories], tmp_path_factory: pytest.TempPathFactory) -> Path:
    made, _ = make_index(demonstrations(2), 1, 4, 2**20)
    folder = tmp_path_factory.mktemp("index")
    sizes = {"observation_dim": 6, "goal_dim": 2, "horizon": 4, "neighbours": 4}
    save_index(folder, "retrieval", made, sizes, {})
    return folder / "retrieval"


def method(index: Path, gate: str, horizon: int = 4) -> str:
    return f"retrieval:horizon={horizon}:file={index}+{gate}/prefix"


def run(bench: Bench, name: str) -> Log:
    return played(bench, name, evaluation_episodes(3))


def test_no_more_is_retrieved_than_the_target_plans(bench: Bench, index: Path) -> None:
    with pytest.raises(ValueError, match="the target plans only 8 actions"):
        METHODS[method(index, "never", 9)].threshold(bench)


def test_a_plan_is_executed_unasked_and_then_the_neighbours_decide(bench: Bench, index: Path) -> None:
    requested = run(bench, method(index, "expected_error@-1"))  # so sure that none is skipped but on a plan
    every = run(bench, method(index, "age@3"))
    np.testing.assert_array_equal(every.transmitted[:, 0].nonzero()[0] % 4, 0)
    assert requested.transmitted[requested.active].all()
    skipped = run(bench, method(index, "expected_error@1000"))
    assert not skipped.transmitted.any()
