"""Every method of `adahi methods` runs over DDS, and does what the evaluation does, bit for bit."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from test.papers.over_dds import run_as_in_process, with_index

from adahi_lab.calibration.parameter_file import Calibration, load_calibration
from adahi_lab.evaluation.loaded_policies import PolicyFiles
from adahi_lab.methods.method_names import ALIASES
from adahi_lab.methods.methods import for_task, on_task, parse_methods
from adahi_lab.nodes.domain import exclusive_domain
from adahi_lab.papers.literature import Line, lines
from adahi_ros.core.assets import asset

TASK = "ball"
TOKENS = "checkpoints/metaworld/tokens"


@pytest.fixture(scope="module")
def domain() -> Iterator[int]:
    """A ROS domain for all runs."""
    with exclusive_domain() as number:
        yield number


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


@pytest.mark.smoke
@pytest.mark.timeout(300)
@pytest.mark.parametrize("line", lines(), ids=lambda line: line.name)
def test_it_does_as_in_process(
    line: Line, calibration: Calibration, domain: int, request: pytest.FixtureRequest
) -> None:
    task = line.task or TASK
    own = ALIASES[line.method].checkpoints.replace("{task}", task) if line.method in ALIASES else ""
    if own in ("", TOKENS):
        folder: Path = request.getfixturevalue("tokens" if own else "policies")
    else:
        folder = PolicyFiles.of_task(task).folder
    (name,) = parse_methods(for_task(line.method, task, folder), on_air=True)
    run_as_in_process(name, task, PolicyFiles(folder, "onnxruntime"), calibration, domain)


def test_each_line_is_a_method_that_a_robot_runs() -> None:
    for line in lines():
        assert on_task(for_task(line.method, TASK, Path("folder")), line.task or TASK).name
