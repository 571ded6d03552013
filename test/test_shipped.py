"""What is shipped belongs together: weights, their export, their calibration, the recipe."""

from __future__ import annotations

from pathlib import Path

import onnxruntime
import pytest
import yaml

from adahi_ros.assets import asset
from adahi_ros.policy.checkpoint import load_checkpoint
from adahi_ros.policy.onnx_backend import DIGEST
from adahi_ros.policy.recipe import load_recipe
from adahi_ros.speculation.parameter_file import load_calibration
from adahi_ros.tasks import make, names

POLICIES = ("draft", "target")


@pytest.fixture(params=sorted(names()))
def task(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def folder(task: str) -> Path:
    return asset(f"checkpoints/{task}")


@pytest.mark.parametrize("name", POLICIES)
def test_the_export_is_of_the_weights_beside_it(task: str, name: str) -> None:
    session = onnxruntime.InferenceSession(folder(task) / f"{name}.onnx", providers=["CPUExecutionProvider"])
    made_of = session.get_modelmeta().custom_metadata_map[DIGEST]
    assert made_of == load_checkpoint(folder(task) / name).digest()


def test_the_calibration_is_of_the_shipped_policies(task: str) -> None:
    calibration = load_calibration(asset(f"config/{task}.yaml"))
    assert calibration.task == task
    for name in POLICIES:
        assert getattr(calibration, name) == load_checkpoint(folder(task) / name).digest()


def test_the_parameters_of_the_robots_node_are_the_tasks(task: str) -> None:
    parameters = yaml.safe_load(asset(f"config/{task}.yaml").read_text())["/**"]["ros__parameters"]
    spec = make(task).spec
    assert tuple(name for name in parameters["joint_names"] if name) == spec.joint_names
    assert tuple(parameters["command"]["joint_names"]) == spec.commanded
    assert parameters["command"]["field"] == spec.command_field
    assert parameters["control_rate_hz"] == spec.control_rate_hz


@pytest.mark.parametrize("name", POLICIES)
def test_the_recipe_is_what_the_policy_was_made_by(task: str, name: str) -> None:
    checkpoint = load_checkpoint(folder(task) / name)
    recipe = load_recipe(asset(f"config/recipes/{task}.yaml")).policies[name]
    assert checkpoint.training["command"].split(" --")[0] == f"adahi train {task}"
    assert checkpoint.training["seed"] == recipe.seed
    assert checkpoint.training["steps"] == recipe.fit.steps
    assert recipe.size.items() <= checkpoint.config.items()
