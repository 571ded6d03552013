from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import gymnasium as gym
import numpy as np
import pytest

from adahi_lab.tasks import minari_demonstrations
from adahi_lab.tasks.demonstrations import Demonstrations
from adahi_lab.tasks.task_interface import TaskSpec

minari = pytest.importorskip("minari")
pytestmark = pytest.mark.filterwarnings("ignore::UserWarning:minari")  # misses an author, a licence ...

KITCHEN = TaskSpec(
    name="kitchen",
    joint_names=tuple(f"joint{i}" for i in range(9)),
    state_names=tuple(f"entry{i}" for i in range(50)),
    frame_id="world",
    goal_dim=0,
    action_names=tuple(f"action{i}" for i in range(9)),
    action_low=np.full(9, -2.0),
    action_high=np.full(9, 2.0),
    control_rate_hz=12.5,
    max_steps=280,
    success_text="all done",
    subtask_names=("all",),
)
REACH = replace(
    KITCHEN,
    name="reach",
    command_names=KITCHEN.joint_names,
    joint_names=("a", "b"),
    state_names=("c",),
    goal_dim=2,
)
LENGTHS = (4, 7)
DATASET = "D4RL/kitchen/complete-v2"


@pytest.fixture
def load(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Demonstrations]:
    """Read a dataset for a task of which there is only the spec: a kitchen takes a second to make."""

    def read(spec: TaskSpec = KITCHEN, dataset: str = DATASET) -> Demonstrations:
        monkeypatch.setattr(minari_demonstrations, "make", {spec.name: SimpleNamespace(spec=spec)}.get)
        return minari_demonstrations.load_minari(dataset, spec.name)

    return read


def box(width: int, limit: float = np.inf) -> gym.spaces.Box:
    return gym.spaces.Box(-limit, limit, (width,), np.float64)


KITCHEN_SPACE = gym.spaces.Dict(
    {
        "observation": box(59),
        "desired_goal": gym.spaces.Dict({"kettle": box(7)}),
        "achieved_goal": gym.spaces.Dict({"kettle": box(7)}),
    }
)


def drawn(space: gym.Space, steps: int) -> dict | np.ndarray:
    if isinstance(space, gym.spaces.Dict):
        return {key: drawn(part, steps) for key, part in space.items()}
    return np.stack([space.sample() for _ in range(steps)])


@pytest.fixture(autouse=True)
def _minari_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path / "minari"))


def record(space: gym.Space, poison: tuple[str, int] | None = None, drop: int = 0) -> list:
    """Store a dataset in Minari's format; return what is in it.

    `poison` makes a value of that field and episode not finite, `drop` leaves out last observations.
    """
    space.seed(3)
    actions = box(9, 1.0)
    actions.seed(4)
    buffers = []
    for number, steps in enumerate(LENGTHS):
        observed, acted = drawn(space, steps + 1 - drop), drawn(actions, steps)
        if poison is not None and poison[1] == number:
            field = acted if poison[0] == "actions" else observed[poison[0]]
            field[2, 5] = np.nan
        buffers.append(
            minari.data_collector.EpisodeBuffer(
                id=number,
                observations=observed,
                actions=acted,
                rewards=[0.0] * steps,
                terminations=[False] * steps,
                truncations=[False] * (steps - 1) + [True],
                infos={},
            )
        )
    minari.create_dataset_from_buffers(
        DATASET, buffers, observation_space=space, action_space=actions, data_format="hdf5"
    )
    return buffers


def test_the_kitchens_layout_becomes_observations_and_joint_velocities(
    load: Callable[..., Demonstrations],
) -> None:
    buffers = record(KITCHEN_SPACE)
    found = load()
    assert (found.attempted, found.failed) == (2, 0)
    assert found.trajectories.task == "kitchen"
    assert found.trajectories.goals.shape == (2, 0)
    spans = list(found.trajectories.spans())
    assert [end - start for start, end in spans] == list(LENGTHS)
    for (start, end), buffer in zip(spans, buffers, strict=True):
        observed = buffer.observations["observation"][:-1].astype(np.float32)
        np.testing.assert_array_equal(found.trajectories.observations[start:end], observed)
        velocity = (2.0 * buffer.actions).astype(np.float32)
        np.testing.assert_array_equal(found.trajectories.actions[start:end], velocity)


def test_a_folder_does_as_well_as_an_id(load: Callable[..., Demonstrations], tmp_path: Path) -> None:
    record(KITCHEN_SPACE)
    by_id = load().trajectories
    for folder in (tmp_path / "minari" / DATASET, tmp_path / "minari" / DATASET / "data"):
        by_folder = load(dataset=str(folder)).trajectories
        np.testing.assert_array_equal(by_folder.observations, by_id.observations)


@pytest.mark.parametrize("kind", ["box", "dictionary"])
def test_goals_are_split_from_observations_and_actions_keep_their_units(
    load: Callable[..., Demonstrations], kind: str
) -> None:
    parts = gym.spaces.Dict({"observation": box(3), "desired_goal": box(2)})
    buffers = record(box(5) if kind == "box" else parts)
    found = load(REACH).trajectories
    for number, (start, end) in enumerate(found.spans()):
        seen, goal = (
            (buffers[number].observations[:, :3], buffers[number].observations[0, 3:])
            if kind == "box"
            else (
                buffers[number].observations["observation"],
                buffers[number].observations["desired_goal"][0],
            )
        )
        np.testing.assert_array_equal(found.observations[start:end], seen[:-1].astype(np.float32))
        np.testing.assert_array_equal(found.goals[number], goal.astype(np.float32))
        np.testing.assert_array_equal(found.actions[start:end], buffers[number].actions.astype(np.float32))


@pytest.mark.parametrize("field", ["observation", "actions"])
def test_what_is_not_finite_is_refused_by_dataset_episode_and_field(
    load: Callable[..., Demonstrations], field: str
) -> None:
    record(KITCHEN_SPACE, poison=(field, 1))
    message = f"{DATASET}: episode 1: {field}: nan at step 2, entry 5"
    with pytest.raises(ValueError, match=message):
        load()


def test_what_does_not_fit_the_task_is_refused(load: Callable[..., Demonstrations]) -> None:
    record(KITCHEN_SPACE)
    wider = replace(KITCHEN, state_names=(*KITCHEN.state_names, "one_more"))
    with pytest.raises(ValueError, match=r"episode 0: observation: shape \(5, 59\), expected \(steps, 60\)"):
        load(wider)
    fewer = replace(KITCHEN, action_names=("only",), command_names=("only",))
    with pytest.raises(ValueError, match=r"episode 0: actions: shape \(4, 9\), expected \(steps, 1\)"):
        load(fewer)
    with pytest.raises(ValueError, match="desired_goal: a dict, expected a box of 7 entries"):
        load(replace(KITCHEN, goal_dim=7))


def test_a_missing_key_is_named_with_those_there_are(load: Callable[..., Demonstrations]) -> None:
    record(gym.spaces.Dict({"pixels": box(59), "proprioception": box(9)}))
    with pytest.raises(ValueError, match="no 'observation', which must be one of pixels, proprioception"):
        load()


def test_an_episode_without_its_last_observation_is_refused(load: Callable[..., Demonstrations]) -> None:
    record(KITCHEN_SPACE, drop=1)
    with pytest.raises(ValueError, match=r"episode 0: observations: 4 rows, expected one more than actions"):
        load()


@pytest.mark.parametrize("name", ["made up", "made_up", "/made/up-v0", "made-v"])
def test_what_is_neither_a_folder_nor_an_id_is_reported_before_minari_runs(
    load: Callable[..., Demonstrations], monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.delattr(minari, "load_dataset")
    with pytest.raises(FileNotFoundError, match=f"^{name}: no such folder, and no id .*'{DATASET}'$"):
        load(dataset=name)


@pytest.mark.parametrize(
    ("raised", "expected", "message"),
    [
        (
            ValueError("Couldn't find any version\nfor dataset made/up."),
            FileNotFoundError,
            r"^made/up-v0: not stored here nor on Minari's server \(Couldn't find any version for dataset",
        ),
        (
            ImportError("huggingface_hub is missing"),
            ImportError,
            "^made/up-v0: .* huggingface_hub is missing$",
        ),
        (AssertionError(), FileNotFoundError, r"^made/up-v0: .* cannot be downloaded \(AssertionError\)"),
        (  # without internet
            ConnectionError("no route\nto host"),
            FileNotFoundError,
            "no route to host.*'minari download made/up-v0'",
        ),
    ],
)
def test_a_dataset_that_minari_does_not_give_is_one_line_that_says_why(
    load: Callable[..., Demonstrations],
    monkeypatch: pytest.MonkeyPatch,
    raised: Exception,
    expected: type[Exception],
    message: str,
) -> None:
    def refuse(dataset: str, download: bool) -> None:
        assert download
        raise raised

    monkeypatch.setattr(minari, "load_dataset", refuse)
    with pytest.raises(expected, match=message) as caught:
        load(dataset="made/up-v0")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("metadata", [None, "{", '{"action_space": 3}'])
def test_a_folder_that_is_not_of_a_dataset_is_named(
    load: Callable[..., Demonstrations], tmp_path: Path, metadata: str | None
) -> None:
    if metadata is not None:
        (tmp_path / "metadata.json").write_text(metadata)
    with pytest.raises(ValueError, match="not the folder of a Minari dataset") as caught:
        load(dataset=str(tmp_path))
    assert str(caught.value).startswith(f"{tmp_path}: ")


def test_without_minari_the_error_says_how_to_install_it(
    load: Callable[..., Demonstrations], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "minari", None)
    with pytest.raises(ImportError, match="pip install minari"):
        load()
