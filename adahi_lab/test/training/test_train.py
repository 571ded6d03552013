from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rich.progress import Progress
from test.toys import code_policy

from adahi_lab.datasets.trajectories import Trajectories
from adahi_lab.tasks.demonstrations import Demonstrations, collect_parallel
from adahi_lab.training import train, trainer, vqbet_files
from adahi_lab.training.fitting import Course, Run
from adahi_lab.training.recipes import (
    CorrectorRecipe,
    DemonstrationRecipe,
    IntentRecipe,
    ModelRecipe,
    Recipe,
)
from adahi_lab.training.train import train_recipe
from adahi_lab.training.vqbet_files import save_policy
from adahi_lab.training.vqbet_training import CodeFitConfig
from adahi_ros.core.checkpoint_files import CheckpointError
from adahi_ros.policies.backends import load_policy
from adahi_ros.policies.interface import Policy

FIT = CodeFitConfig(steps=6, batch_size=16, warmup=1)
SIZE = {"width": 4, "layers": 1, "heads": 2, "head_hidden": 4}
TOKENIZER: Any = ModelRecipe(1, {"codebook_size": 4, "latent_dim": 4, "hidden": 8}, FIT)
RECIPE = Recipe(
    DemonstrationRecipe(episodes=4, seed=0, action_noise=0.1),
    tokenizer=TOKENIZER,
    window_length=2,
    policies={"draft": ModelRecipe(2, SIZE, FIT), "target": ModelRecipe(2, {**SIZE, "width": 8}, FIT)},
)
PUPIL = CorrectorRecipe(1, {"hidden": 4}, FIT)
WITH_PUPILS = replace(RECIPE, corrector=PUPIL, distilled=PUPIL)
MADE = {"tokenizer.json", "tokenizer.safetensors"} | {
    f"{name}.{suffix}" for name in ("draft", "target") for suffix in ("json", "safetensors", "onnx")
}


class KilledError(Exception):
    """Stands for whatever ends a training run early."""


@pytest.fixture
def unexported(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have no policy wait for an export."""
    monkeypatch.setattr(train, "save_with_export", save_policy)


@pytest.fixture
def taught(unexported: None, monkeypatch: pytest.MonkeyPatch) -> dict[str, tuple[int, int, int]]:
    """Of each pupil that a recipe teaches: how large its goal is, and the seeds of its recipe and its run."""
    found: dict[str, tuple[int, int, int]] = {}

    def teach(task: str, target: Policy, data: Trajectories, how: CorrectorRecipe, course: Course) -> None:
        found[course.name] = data.goals.shape[1], how.seed, course.run.seed
        course.note([0.0], 1)

    monkeypatch.setattr(train, "train_in_simulation", teach)
    return found


def follow(out: Path, recipe: Recipe = RECIPE, **options: Any) -> dict[str, Any]:
    with Progress(disable=True) as bar:
        return train_recipe("ball", recipe, out, "adahi train policy ball", bar, **options).figures


def weights(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.glob("*.safetensors")}


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    out = tmp_path_factory.mktemp("trained") / "new"
    return out, follow(out)


def test_a_recipe_becomes_checkpoints_that_run(trained: tuple[Path, dict[str, Any]]) -> None:
    out, summary = trained
    assert {path.name for path in out.iterdir()} == MADE
    assert summary["task"] == "ball"
    assert summary["models"].keys() == {"tokenizer", "draft", "target"}
    json.dumps(summary, allow_nan=False)
    for name in ("draft", "target"):
        policy = load_policy(out / name, "onnxruntime")
        assert code_policy(policy).decoder.fingerprint == summary["fingerprint"]
        assert policy.signature.parameters == summary["models"][name]["parameters"]
        assert policy.signature.history == 2
        training = json.loads((out / f"{name}.json").read_text())["training"]
        assert (training["command"], training["seed"], training["steps"]) == ("adahi train policy ball", 2, 6)


def test_nothing_is_recorded_for_intents_alone(
    trained: tuple[Path, dict[str, Any]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    taught: list[str] = []

    def teach(task: str, target: Policy, how: IntentRecipe, course: Course) -> None:
        taught.append(course.name)
        course.note([0.0], 1)

    monkeypatch.setattr(train, "train_intent", teach)

    def record(*_: object) -> None:
        raise KilledError

    monkeypatch.setattr(trainer, "collect_parallel", record)
    out = Path(shutil.copytree(trained[0], tmp_path / "out"))
    recipe = replace(RECIPE, intent=IntentRecipe(1, {"size": 2, "hidden": 4}, FIT), corrector=PUPIL)
    summary = follow(out, recipe, only=["intent"])
    assert taught == ["intent"]
    assert (summary["task"], list(summary["models"])) == ("ball", ["intent"])
    with pytest.raises(KilledError):
        follow(out, recipe, only=["intent", "corrector"])


def test_a_goal_for_the_target_alone_is_shown_to_no_other(
    taught: dict[str, tuple[int, int, int]], tmp_path: Path
) -> None:
    for task, shown in (("ball_instructed", 0), ("ball", 2)):
        with Progress(disable=True) as bar:
            train_recipe(task, WITH_PUPILS, tmp_path / task, "", bar)
        policies = {name: load_policy(tmp_path / task / name, "torch") for name in ("draft", "target")}
        read = {name: policy.signature.goal_dim for name, policy in policies.items()}
        assert read == {"draft": shown, "target": 2}
        assert {name: each[0] for name, each in taught.items()} == {"corrector": shown, "distilled": shown}


@pytest.mark.parametrize("killed", ["tokenizer", "draft", "target"])
def test_a_stopped_run_goes_on_and_ends_with_the_same_weights(
    trained: tuple[Path, dict[str, Any]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, killed: str
) -> None:
    whole, _ = trained
    done: list[str] = []

    def run_that_counts(stop: str | None) -> Callable[..., Run]:
        def make(seed: int, state: Path, on_step: Callable[[int, float], None]) -> Run:
            name = state.name.split(".")[0]

            def step(count: int, loss: float) -> None:
                on_step(count, loss)
                done.append(name)
                if name == stop and count == 3:
                    raise KilledError

            return Run(seed, state, save_every=2, on_step=step)

        return make

    monkeypatch.setattr(
        vqbet_files, "export", lambda checkpoint, path: None
    )  # takes a second, says nothing here
    monkeypatch.setattr(trainer, "Run", run_that_counts(killed))
    out = tmp_path / "out"
    with pytest.raises(KilledError):
        follow(out)
    assert not out.exists()
    (kept,) = (tmp_path / "out.training").glob("demonstrations-*")
    assert kept.name == "demonstrations-ball-4-0-0.1-0.0.training.safetensors"
    monkeypatch.setattr(trainer, "Run", run_that_counts(None))
    follow(out)
    # Step 3 of what was killed was not saved, so it alone is done twice.
    assert {name: done.count(name) for name in done} == {"tokenizer": 6, "draft": 6, "target": 6, killed: 7}
    assert weights(out) == weights(whole)
    assert list(tmp_path.iterdir()) == [out]


def test_a_stopped_recording_goes_on_with_the_next_piece(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    recipe = DemonstrationRecipe(episodes=25, seed=0, action_noise=0.1)
    whole = collect_parallel("ball", 25, 0, 0.1, 1).trajectories
    monkeypatch.setattr(trainer, "PIECE_EPISODES", 10)
    asked: list[int] = []

    def stopping_at(number: int) -> Callable[..., Demonstrations]:
        def record(*how: Any) -> Demonstrations:
            if how[-1] == number:
                raise KilledError
            asked.append(how[-1])
            return collect_parallel(*how)

        return record

    begun = trainer.Trainer(tmp_path, "", Progress(disable=True), None)
    monkeypatch.setattr(trainer, "collect_parallel", stopping_at(20))
    with pytest.raises(KilledError):
        begun.demonstrations("ball", recipe, 1)
    monkeypatch.setattr(trainer, "collect_parallel", stopping_at(-1))
    data = begun.demonstrations("ball", recipe, 1)
    assert asked == [0, 10, 20]
    np.testing.assert_array_equal(data.observations, whole.observations)
    np.testing.assert_array_equal(data.ends, whole.ends)
    (kept,) = tmp_path.iterdir()
    assert kept.name == "demonstrations-ball-25-0-0.1-0.0.training.safetensors"


def test_a_folder_is_as_it_was_until_all_is_done(
    trained: tuple[Path, dict[str, Any]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "out"
    shutil.copytree(trained[0], out)
    (out / "chunks").mkdir()
    (out / "chunks" / "notes.txt").write_text("kept")
    before = {path: path.read_bytes() for path in out.rglob("*") if path.is_file()}

    def killed(*arguments: Any) -> None:
        raise KilledError

    with monkeypatch.context() as patch:
        patch.setattr(vqbet_files, "export", killed)
        with pytest.raises(KilledError):
            follow(out, seed=9)
    monkeypatch.setattr(vqbet_files, "export", lambda checkpoint, path: path.write_bytes(b"exported"))
    assert {path: path.read_bytes() for path in out.rglob("*") if path.is_file()} == before
    (tmp_path / "out.training" / "half").mkdir()  # what else a stopped run may leave
    follow(out, seed=9)
    assert {path.name for path in out.iterdir()} == MADE | {"chunks"}
    assert (out / "chunks" / "notes.txt").read_text() == "kept"
    assert all(before[path] != path.read_bytes() for path in out.glob("*.safetensors"))
    assert all((out / f"{name}.onnx").read_bytes() == b"exported" for name in ("draft", "target"))
    assert load_policy(out / "draft", "torch").digest
    assert list(tmp_path.iterdir()) == [out]


@pytest.mark.usefixtures("unexported")
def test_a_run_that_was_stopped_between_the_two_moves_is_mended(
    trained: tuple[Path, dict[str, Any]], tmp_path: Path
) -> None:
    shutil.copytree(trained[0], tmp_path / "out.previous")
    (tmp_path / "out.previous" / "notes.txt").write_text("kept")
    follow(tmp_path / "out", seed=9)
    assert (tmp_path / "out" / "notes.txt").read_text() == "kept"
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_where_no_folder_can_be_nothing_is_trained(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trainer, "collect_parallel", None)
    (tmp_path / "file").write_text("")
    with pytest.raises(ValueError, match=re.escape(f"out: {tmp_path / 'file'}, must be a folder")):
        follow(tmp_path / "file")
    with pytest.raises(OSError, match="file"):
        follow(tmp_path / "file" / "below")
    with pytest.raises(ValueError, match="out: /proc, where something is mounted; must be a folder within"):
        follow(Path("/proc"))


@pytest.mark.usefixtures("unexported")
def test_only_one_policy_leaves_the_tokenizer_and_the_other_alone(
    trained: tuple[Path, dict[str, Any]], tmp_path: Path
) -> None:
    before = weights(trained[0])
    for name, value in before.items():
        (tmp_path / name).write_bytes(value)
        (tmp_path / name).with_suffix(".json").write_bytes(
            (trained[0] / name).with_suffix(".json").read_bytes()
        )
    summary = follow(tmp_path, only=["draft"], seed=9)
    after = weights(tmp_path)
    assert summary["models"].keys() == {"draft"}
    assert {name for name in before if before[name] != after[name]} == {"draft.safetensors"}
    assert summary["fingerprint"] == code_policy(load_policy(tmp_path / "draft", "torch")).decoder.fingerprint


def test_a_seed_replaces_that_of_every_pupil(taught: dict[str, tuple[int, int, int]], tmp_path: Path) -> None:
    follow(tmp_path, WITH_PUPILS, seed=9)
    assert taught == {"corrector": (2, 9, 9), "distilled": (2, 9, 9)}


def test_what_cannot_be_trained_is_named(
    tmp_path: Path, demonstrations: Callable[[int], Trajectories]
) -> None:
    with pytest.raises(ValueError, match=re.escape("only: 'critic', must be of draft, target")):
        follow(tmp_path, only=["draft", "critic"])
    with pytest.raises(ValueError, match=re.escape("demos: of task 'toy', must be of 'ball'")):
        follow(tmp_path, data=demonstrations(2))
    with pytest.raises(
        CheckpointError, match=re.escape(f"{tmp_path / 'tokenizer.json'}: no such checkpoint")
    ):
        follow(tmp_path, only=["draft"])
    with (
        pytest.raises(ValueError, match="task: 'chess', expected one of ball"),
        Progress(disable=True) as bar,
    ):
        train_recipe("chess", RECIPE, tmp_path, "", bar)
    assert list(tmp_path.iterdir()) == []
    assert not tmp_path.with_name(f"{tmp_path.name}.training").exists()


@pytest.mark.usefixtures("unexported")
def test_given_demonstrations_are_learned_from(
    tmp_path: Path, demonstrations: Callable[[int], Trajectories]
) -> None:
    data = replace(demonstrations(2), task="ball")
    follow(tmp_path, data=data)
    decoder = code_policy(load_policy(tmp_path / "draft", "torch")).decoder
    assert decoder.action_scale == pytest.approx(data.actions.std(axis=0))
