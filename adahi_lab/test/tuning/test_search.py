from __future__ import annotations

import multiprocessing
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

optuna = pytest.importorskip("optuna", reason="pip install -r requirements/tune.txt")

from optuna.trial import TrialState  # noqa: E402

from adahi_lab.training import train  # noqa: E402
from adahi_lab.training.vqbet_files import save_policy  # noqa: E402
from adahi_lab.training.vqbet_training import train_policy  # noqa: E402
from adahi_lab.tuning import search  # noqa: E402
from adahi_lab.tuning.search import Plan, Row, efficient, rows, work  # noqa: E402
from adahi_lab.tuning.trial import Attempt  # noqa: E402

RATE = "policies.draft.fit.learning_rate"


def silent(line: str) -> None:
    pass


def found(plan: Plan) -> list[Row]:
    work(plan, silent)
    return rows(plan.study())


def tried(trials: list[Row]) -> list[dict[str, Any]]:
    return [row.params for row in trials]


def figures(success: float, rate: float = 0.0) -> dict[str, float]:
    return {"success_rate": success, "transmission_rate": rate, "calls_per_episode": 0.0}


@pytest.fixture
def untrained(monkeypatch: pytest.MonkeyPatch) -> None:
    """Trials whose objective is their threshold, and which take no time."""

    def run(self: Attempt) -> float:
        self._trial.set_user_attr("success_rate", self._setting.threshold)
        self._trial.set_user_attr("transmission_rate", 0.0)
        self._meter.note()
        return float(self._setting.threshold or 0.0)

    monkeypatch.setattr(Attempt, "run", run)


@pytest.mark.usefixtures("untrained")
def test_the_same_seed_tries_the_same_and_goes_on_as_if_it_had_not_ended(
    plan_in: Callable[..., Plan],
) -> None:
    once = found(plan_in("once", trials=10))
    found(plan_in("twice", trials=9))
    assert tried(found(plan_in("twice", trials=10))) == tried(once)
    assert len(once) == 10
    other = found(plan_in("other", trials=2, seed=1))
    assert all(row.params not in tried(once) for row in other)


@pytest.mark.usefixtures("untrained")
def test_another_space_or_seed_is_another_study(plan_in: Callable[..., Plan]) -> None:
    found(plan_in("out"))
    for changes in ({"price": 0.25}, {"seed": 3}):
        with pytest.raises(ValueError, match="out: there is a study of 'ball' of another space, seed or"):
            found(plan_in("out", **changes))


@pytest.mark.usefixtures("untrained")
def test_of_a_trial_that_two_began_as_the_last_one_alone_counts(
    plan_in: Callable[..., Plan], monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = plan_in("out", trials=3)
    assert len(found(plan)) == 3
    search._take_one(plan.study(), plan, silent)  # as one that had looked before the third began
    assert [row.number for row in rows(plan.study())] == [0, 1, 2]
    assert len(found(plan_in("out", trials=4))) == 4


def kill_amid(plan: Plan) -> None:
    """Have a process work, and kill it once it has saved the state of a training of its first trial."""
    process = multiprocessing.get_context("spawn").Process(target=work, args=(plan,))
    process.start()
    state = plan.ground.folder(0) / "checkpoints.training" / "draft.training.safetensors"
    while not state.is_file():
        assert process.is_alive()
        time.sleep(0.01)
    process.kill()
    process.join()
    assert not (plan.ground.folder(0) / "trained.json").exists()


@pytest.mark.timeout(600)  # three processes of torch, each of which exports
def test_a_killed_workers_trial_ends_elsewhere_as_if_undisturbed(
    plan_in: Callable[..., Plan], monkeypatch: pytest.MonkeyPatch
) -> None:
    whole, killed = plan_in("whole", trials=1), plan_in("killed", trials=1)
    kill_amid(killed)
    (left,) = killed.study().trials
    assert left.state == TrialState.RUNNING
    steps: list[int] = []
    train_draft = train_policy

    def counted(*arguments: Any) -> Any:
        run = arguments[-1]
        object.__setattr__(run, "on_step", lambda step, loss: steps.append(step))
        return train_draft(*arguments)

    monkeypatch.setattr(train, "train_policy", counted)
    ended = found(killed)
    assert 0 < steps.index(8) < 7  # of 8 steps, those after the last save alone
    undisturbed = found(whole)
    assert [row.workers for row in ended] == [2]
    assert [row.workers for row in undisturbed] == [1]
    for there, here in zip(ended, undisturbed, strict=True):
        assert (there.params, there.value, there.stages) == (here.params, here.value, here.stages)
        assert there.figures == here.figures
        weights = [
            (plan.ground.folder(row.attempt) / "checkpoints" / "draft.safetensors").read_bytes()
            for plan, row in ((killed, there), (whole, here))
        ]
        assert weights[0] == weights[1]
    assert ended[0].costs["cpu_s"] > left.user_attrs.get("cpu_s", 0.0)  # what was lost is paid for, too
    assert ended[0].costs["cost"] == pytest.approx(ended[0].costs["wall_s"], rel=1e-3)  # at 3600 an hour


def test_a_trial_that_does_badly_is_stopped_and_one_that_does_well_is_not(
    plan_in: Callable[..., Plan], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(train, "save_with_export", save_policy)

    def measure(self: Attempt, folder: Path, episodes: int) -> dict[str, float]:
        return figures(0.9 if self._trial.number < 4 else 0.1)

    monkeypatch.setattr(Attempt, "_measure", measure)
    stages = {"count": 4, "episodes": 1, "stop": "trend"}
    plan = plan_in("out", trials=6, stages=stages)
    ended = found(plan)
    assert [row.state for row in ended] == ["complete"] * 4 + ["pruned"] * 2
    assert [len(row.stages) for row in ended] == [3] * 4 + [2] * 2
    assert [plan.ground.folder(row.attempt).exists() for row in ended] == [True] * 4 + [False] * 2


def test_a_worker_that_was_given_up_leaves_its_trial_to_the_other(
    plan_in: Callable[..., Plan], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(train, "save_with_export", save_policy)
    monkeypatch.setattr(Attempt, "_measure", lambda *arguments: figures(0.5))
    plan = plan_in("out", trials=1)
    given_up: list[int] = []
    on_stage = Attempt._on_stage

    def give_up(self: Attempt, name: str, done: int, write: Any) -> None:
        if not given_up and done == 2:
            given_up.append(self._trial.number)
            study = self._trial.study
            study._storage.set_trial_state_values(self._trial._trial_id, TrialState.FAIL)
            study._storage.get_heartbeat_stale_trial_callback()(study, study.trials[self._trial.number])
        on_stage(self, name, done, write)

    monkeypatch.setattr(Attempt, "_on_stage", give_up)
    (row,) = found(plan)
    assert given_up == [0]
    assert (row.state, row.workers, row.attempt, row.value) == ("complete", 2, 1, 0.5)


def test_a_setting_that_cannot_be_trained_fails_alone(
    plan_in: Callable[..., Plan], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(train, "save_with_export", save_policy)
    monkeypatch.setattr(Attempt, "_measure", lambda *arguments: figures(0.5))
    widths = {
        "policies.draft.size.heads": {"choices": [1, 2]},
        "policies.draft.size.width": {"choices": [2, 4]},
    }
    plan = plan_in("out", trials=3, vary=widths)
    original = Attempt._train

    def diverge(self: Attempt) -> None:
        if self._trial.number == 1:
            raise RuntimeError("loss: nan at step 3; lower fit.learning_rate")
        original(self)

    monkeypatch.setattr(Attempt, "_train", diverge)
    ended = found(plan)
    assert [row.state for row in ended] == ["complete", "fail", "complete"]
    assert ended[1].fault.startswith("loss: nan at step 3")


def test_who_is_beaten_in_both_is_not_efficient() -> None:
    points = [(0.9, 0.5), (0.8, 0.2), (0.8, 0.3), (0.7, 0.2), (0.9, 0.5)]
    trials = [
        Row(number, number, "complete", 0.0, {}, [], figures(*point), 1, {}, "")
        for number, point in enumerate(points)
    ]
    assert efficient(trials) == {0, 1, 4}
