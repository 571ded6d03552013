"""`adahi train corrector`, on bags of a toy robot."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from copy import deepcopy
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import yaml

from adahi_lab.datasets.trajectories import Trajectories
from adahi_ros.core.assets import asset
from adahi_ros.policies.corrector.corrector_checkpoint import load_corrector
from adahi_ros.policies.intent.intent import load_encoder, load_intent
from adahi_ros.policies.registry import POLICIES
from test.bags import conftest as toy
from test.bags.conftest import run
from test.bags.seeing import Still
from test.tiny_intents import STUDENT

pytestmark = pytest.mark.usefixtures("unexported")


@pytest.fixture
def folder(make_checkpoints: Callable[..., Path], tmp_path: Path) -> Path:
    """A folder with a target that plans eight actions."""
    folder = tmp_path / "plans"
    folder.mkdir()
    source = make_checkpoints(chunk_length=8)
    for path in source.iterdir():
        if path.name.startswith(("target", "tokenizer")):
            shutil.copy(path, folder)
    return folder


@pytest.fixture
def recipe(recipe_of: Callable[..., str], tmp_path: Path) -> Path:
    """A recipe with a corrector that is hardly trained."""
    corrector = {"seed": 3, "size": {"hidden": 4}, "fit": {"steps": 5}, "samples": 2}
    path = tmp_path / "recipe.yaml"
    path.write_text(yaml.safe_dump({**yaml.safe_load(recipe_of(1, target=1)), "corrector": corrector}))
    return path


@pytest.fixture
def options(contract_file: Path, recipe: Path, folder: Path) -> list[Any]:
    return ["--contract", contract_file, "--recipe", recipe, "--out", folder, "--backend", "torch"]


def test_a_corrector_comes_of_bags_alone(
    bag: Path, options: list[Any], folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    figures = folder / "figures.json"
    words = ["train", "corrector", bag, *options, "--seed", 5, "--held-out", 0.25, "--json", figures]
    monkeypatch.setattr("sys.argv", ["adahi", *map(str, words)])
    text = run(*words)
    checkpoint = load_corrector(folder / "corrector")
    sizes = {"observation_dim": 6, "goal_dim": 2, "action_dim": 2, "horizon": 8, "hidden": 4}
    assert checkpoint.config == sizes
    training = checkpoint.training
    assert training["command"].startswith(f"adahi train corrector {bag} --contract ")
    assert training["seed"] == 5
    assert (training["episodes"], training["held_out"]["episodes"]) == (12, 3)
    assert training["examples"] == 12 * 29 * 4
    stated = json.loads(figures.read_text())
    assert stated == {
        "task": "toy",
        "seed": 5,
        "left_out": 0,
        "corrector": {name: training[name] for name in ("episodes", "examples", "held_out")},
    }
    assert "1,392 examples of 12 episodes" in text
    assert "3 episodes held out: plans are" in text


def test_intents_come_of_bags_alone_too(bag: Path, options: list[Any], recipe: Path, folder: Path) -> None:
    student = {"seed": 3, "size": {"size": 3, "hidden": 4}, "fit": {"steps": 5}, "hidden": 4}
    values = yaml.safe_load(recipe.read_text())
    values |= {"intent": student, "intent_of_plan": {**student, "reads_extra": False, "replies": 2}}
    recipe.write_text(yaml.safe_dump(values))
    text = run("train", "corrector", bag, *options, "--intent")
    for name, extra_dim in (("intent", 2), ("intent_of_plan", 0)):
        assert f"{folder / name}: 360 examples of 12 episodes" in text
        assert load_encoder(folder / name).sizes.extra_dim == extra_dim
        assert (load_intent(folder / name).encoder is None) == (extra_dim > 0)


def test_no_encoder_reads_a_goal_that_its_target_does_not_read(
    bag: Path,
    options: list[Any],
    recipe: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    fails: Callable[..., str],
) -> None:
    monkeypatch.setitem(POLICIES.shipped, "still", partial(Still, horizon=3))
    (tmp_path / "still.yaml").write_text("kind: still")
    values = yaml.safe_load(recipe.read_text())
    recipe.write_text(yaml.safe_dump({**values, "intent": STUDENT}))
    said = fails("train", "corrector", bag, *options, "--intent", "--target", tmp_path / "still.yaml")
    assert "intent: the target reads nothing that the robot does not; must have intent_of_plan" in said


def test_a_recipe_without_intents_is_refused_where_they_are_wanted(
    bag: Path, options: list[Any], fails: Callable[..., str]
) -> None:
    message = fails("train", "corrector", bag, *options, "--intent")
    assert "--recipe: must have intent_of_plan or intent with --intent" in message


def test_the_whole_part_of_a_cut_bag_is_learnt_from_where_requested(
    bag: Path, options: list[Any], folder: Path, tmp_path: Path, fails: Callable[..., str]
) -> None:
    half = Path(shutil.copytree(bag, tmp_path / "half"))
    (file,) = half.glob("*.mcap")
    file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])
    words = ["train", "corrector", half, *options]
    assert f"{half}: {file.name}: expected a rosbag2, " in fails(*words)
    text = run(*words, "--incomplete")
    assert f"{half}: cut off or damaged: {file.name}: no whole record at byte " in text
    assert 3 < load_corrector(folder / "corrector").training["episodes"] < 12


def test_episodes_that_failed_are_learnt_from(
    demonstrations: Callable[[int], Trajectories],
    in_bag: Callable[..., Path],
    options: list[Any],
    folder: Path,
) -> None:
    data = demonstrations(2).episodes([0, 1, 2])
    failed = toy.Line("episode_result", toy.result(0, 1, False), 0)
    lines = [
        line if line.topic != "episode_result" else failed._replace(received_ns=line.received_ns)
        for line in toy.recorded(data)
    ]
    words = ["train", "corrector", in_bag(lines), *options]
    run(*words)
    assert load_corrector(folder / "corrector").training["episodes"] == 3


def test_a_gripper_with_a_ros_action_is_learnt_from_its_measured_position(
    bag: Path, options: list[Any], folder: Path, contract_values: dict[str, Any], tmp_path: Path
) -> None:
    values = deepcopy(contract_values)
    arm = values["actions"].pop("action")
    channel = {"topic": "hand", "type": "control_msgs/action/GripperCommand"}
    values["actions"] = {
        "action.arm": {**arm, "select": arm["select"][:1]},
        "action.hand": {"channel": channel, "select": ["position.right_joint"]},
    }
    (tmp_path / "gripping.yaml").write_text(yaml.safe_dump(values))
    text = run("train", "corrector", bag, *options, "--contract", tmp_path / "gripping.yaml")
    assert "contract: action.hand, goals of a ROS action are in no bag; the measured position counts" in text
    assert load_corrector(folder / "corrector").training["episodes"] == 12


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        (["--held-out", 1], "held_out: 1.0, must be above 0 and below 1"),
        (["--recipe", "none.yaml"], "--recipe: none.yaml, no such file"),
        (["--recipe", asset("config/recipes/kitchen.yaml")], "kitchen.yaml: recipe.corrector: missing"),
        (["--instruction", "go"], "--instruction: 'go', must be left out: the target takes no instruction"),
        (["--target", "nothing/target"], "no such checkpoint"),
        (["--contract", "swarm"], "toy: no step has an observation and an action, expected at least one"),
        (
            ["--target", "checkpoints/swarm/plans/target"],
            "target: checkpoints/swarm/plans/target: action_dim: the draft's is 2, the target's 8",
        ),
    ],
)
def test_what_cannot_be_used_is_reported_by_field_and_value(
    bag: Path, options: list[Any], folder: Path, fails: Callable[..., str], changed: list[Any], message: str
) -> None:
    assert message in fails("train", "corrector", bag, *options, *changed)
    assert not (folder / "corrector.json").exists()


def test_a_target_of_single_actions_is_refused(
    bag: Path, options: list[Any], checkpoints: Path, fails: Callable[..., str]
) -> None:
    text = fails("train", "corrector", bag, *options, "--target", checkpoints / "target")
    assert "target.horizon: 1, must be at least 2" in text


def test_a_robot_of_which_nothing_is_shipped_needs_a_target(
    bag: Path, contract_file: Path, tmp_path: Path, fails: Callable[..., str]
) -> None:
    text = fails("train", "corrector", bag, "--contract", contract_file, "--out", tmp_path / "new")
    assert "--target: none, must be given: none that plans for 'toy' is shipped" in text


def test_a_shipped_corrector_is_replaced_on_demand_alone(bag: Path, fails: Callable[..., str]) -> None:
    out = Path("checkpoints/ball/plans").resolve()
    before = (out / "corrector.json").read_bytes()
    text = fails("train", "corrector", bag, "--contract", "ball", "--out", out)
    assert "is shipped; must be another place, or give --overwrite" in text
    assert (out / "corrector.json").read_bytes() == before


def test_what_is_no_bag_is_named(tmp_path: Path, options: list[Any], fails: Callable[..., str]) -> None:
    assert str(tmp_path / "none") in fails("train", "corrector", tmp_path / "none", *options)
