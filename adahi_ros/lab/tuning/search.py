# SPDX-License-Identifier: Apache-2.0
"""A search: a study that workers share, each of which takes the next trial, or one that another left.

Every draw is addressed: what is suggested to a trial hangs on the seed, on how many began before it, and on
what those said that have ended; what comes of it, on that and on the seeds of its recipe. So one worker finds
the same whenever it is asked, killed or not. Several find the same as long as draws are uniform (the first
trials); then it counts which of them have ended.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import optuna
from optuna.exceptions import UpdateFinishedTrialError
from optuna.samplers import TPESampler
from optuna.storages import RDBStorage, RetryHeartbeatStaleTrialCallback, fail_stale_trials
from optuna.study import Study
from optuna.trial import FrozenTrial, Trial, TrialState
from sqlalchemy.engine import make_url
from sqlalchemy.exc import ArgumentError, SQLAlchemyError

from adahi_ros.lab.parallel import run_alike
from adahi_ros.lab.tuning.trend import PRUNERS
from adahi_ros.lab.tuning.trial import COSTS, FIGURES, Attempt, Ground, Meter

STARTUP = 8  # trials that are drawn at random, before those that follow from what was found
MOST_WORKERS = 10  # that one trial may bring down, before it is given up
FAULT = "fault"
SURPLUS = "surplus"
GROUND = "ground"


class _SurplusError(RuntimeError):
    """Two workers began the last trial; one of them is not needed."""


@dataclass(frozen=True)
class Plan:
    """What workers are told; pickles.

    Attributes:
        ground: what trials begin with.
        storage: URL of the database.
        name: of the study in it.
        trials: how many, without those that were given to another worker.
        seed: of what is suggested.
        price_per_hour: of this worker.
        lost_after_s: without a sign of life, a worker is given up, and its trial goes to another.
    """

    ground: Ground
    storage: str
    name: str
    trials: int
    seed: int = 0
    price_per_hour: float = 0.0
    lost_after_s: int = 60

    def study(self) -> Study:
        """Open the study, or begin it.

        Raises:
            ValueError: the database cannot be opened, or there is a study of that name that searches
                something else.
        """
        optuna.logging.set_verbosity(optuna.logging.WARNING)
        study = optuna.create_study(
            storage=self._opened(),
            study_name=self.name,
            direction="maximize",
            load_if_exists=True,
            sampler=AddressedSampler(self.seed),
            pruner=PRUNERS[self.ground.space.stages.stop](self.ground.space.stages.count),
        )
        told = self._told()
        if study.user_attrs.setdefault(GROUND, told) != told:
            raise ValueError(
                f"out: there is a study of {self.name!r} of another space, seed or checkpoints; must be "
                "another folder or storage"
            )
        study.set_user_attr(GROUND, told)
        return study

    def _opened(self) -> RDBStorage:
        """Open the database."""
        try:
            return RDBStorage(
                self.storage,
                engine_kwargs={"connect_args": {"timeout": 60}} if self.storage.startswith("sqlite") else {},
                heartbeat_interval=max(1, self.lost_after_s // 3),
                grace_period=self.lost_after_s,
                heartbeat_stale_trial_callback=RetryHeartbeatStaleTrialCallback(
                    max_retry=MOST_WORKERS, inherit_intermediate_values=True
                ),
            )
        except SQLAlchemyError as error:
            shown = without_password(self.storage)
            reason = str(error).replace(self.storage, shown).splitlines()[0]
            raise ValueError(f"storage: {shown!r}, cannot be opened: {reason}") from None

    def _told(self) -> dict[str, Any]:
        """Return what must be the same for all workers, as JSON has it."""
        ground = self.ground
        return {
            "space": repr(ground.space),
            "seeds": [self.seed, ground.seed],
            "policies": [ground.calibration.draft, ground.calibration.target],
        }


def without_password(storage: str) -> str:
    """Return a database's URL as everybody may read it.

    Raises:
        ValueError: it is none.
    """
    try:
        return make_url(storage).render_as_string(hide_password=True)
    except ArgumentError:
        raise ValueError("storage: no URL of a database, must be DIALECT://USER@HOST/NAME or alike") from None


def number_of(trials: Sequence[FrozenTrial], number: int) -> int:
    """Return how many trials began before one, by its number; attempts at the same trial count as one."""
    return sum(each.number < number and not _again(each) for each in trials)


def _again(trial: FrozenTrial) -> bool:
    retried = RetryHeartbeatStaleTrialCallback.retried_trial_number(trial) is not None
    return retried or SURPLUS in trial.user_attrs


class AddressedSampler(TPESampler):
    """Optuna's tree-structured Parzen estimator (Bergstra et al., 2011), with draws of each trial's own.

    Args:
        seed: of all.
    """

    def __init__(self, seed: int) -> None:
        self._seed = seed
        super().__init__(seed=seed)

    def before_trial(self, study: Study, trial: FrozenTrial) -> None:
        """See `BaseSampler`: begins again with the draws of this trial."""
        number = number_of(study.get_trials(deepcopy=False), trial.number)
        drawn = int(np.random.SeedSequence((self._seed, number)).generate_state(1)[0])
        super().__init__(seed=drawn, n_startup_trials=STARTUP)
        super().before_trial(study, trial)


def work(plan: Plan, say: Callable[[str], None] = print) -> None:
    """Take trials until there are as many as planned and all of them have ended.

    Args:
        plan: what to do.
        say: told of each trial.
    """
    study = plan.study()
    told_waiting = False
    while True:
        fail_stale_trials(study)
        trials = study.get_trials(deepcopy=False)
        states = {trial.state for trial in trials}
        begun = number_of(trials, len(trials))
        if begun < plan.trials or TrialState.WAITING in states:
            told_waiting = False
            _take_one(study, plan, say)
        elif TrialState.RUNNING in states:
            if not told_waiting:
                say("waiting for the trials of other workers, should one be lost")
            told_waiting = True
            time.sleep(1.0)
        else:
            return


def run(plan: Plan, workers: int, say: Callable[[str], None]) -> None:
    """Have workers on this machine take trials, until all have ended.

    Raises:
        ValueError: as `Plan.study`.
        RuntimeError: the workers vanished before that; the same again goes on where they were.
    """
    study = plan.study()  # one makes the tables, before all want to
    if workers == 1:
        work(plan, say)
        return
    ended = run_alike(work, (plan, say), workers)
    left = [trial for trial in study.get_trials(deepcopy=False) if not trial.state.is_finished()]
    if left or len(rows(study)) < plan.trials:
        raise RuntimeError(f"workers: all {workers} vanished before the end ({ended}); run the same again")
    if any(ended):
        say(f"workers: {sum(map(bool, ended))} of {workers} vanished ({ended}); the others went on")


def _take_one(study: Study, plan: Plan, say: Callable[[str], None]) -> None:
    def objective(trial: Trial) -> float:
        number = _number(study, trial, plan)
        meter = Meter(trial, plan.price_per_hour)
        try:
            value = Attempt(trial, plan.ground, meter).run()
        except optuna.TrialPruned as stopped:
            say(f"trial {number}: {stopped}")
            raise
        except UpdateFinishedTrialError:
            raise
        except (ValueError, RuntimeError) as fault:
            trial.set_user_attr(FAULT, str(fault))
            say(f"trial {number}: failed: {fault}")
            raise
        except (KeyboardInterrupt, OSError) as lost:
            # A worker that ends, or cannot read or write, is no fault of the trial: another goes on with it.
            status = 130 if isinstance(lost, KeyboardInterrupt) else f"trial {number}: {lost}"
            raise SystemExit(status) from lost
        success, rate = (study.trials[trial.number].user_attrs[name] for name in FIGURES[:2])
        say(f"trial {number}: {value:.3f}, success {success:.3f} at a transmission rate of {rate:.3f}")
        return value

    try:
        study.optimize(objective, n_trials=1, catch=(ValueError, RuntimeError))
    except ValueError as error:
        if "Cannot tell" not in str(error):  # else it was given to another worker, who goes on with it
            raise


def _number(study: Study, trial: Trial, plan: Plan) -> int:
    """Return a trial's number, that of the first attempt at it; ends one that was begun beside the last."""
    trials = study.get_trials(deepcopy=False)
    first = RetryHeartbeatStaleTrialCallback.retried_trial_number(trials[trial.number])
    number = number_of(trials, trial.number if first is None else first)
    if first is None and number >= plan.trials:
        trial.set_user_attr(SURPLUS, True)
        raise _SurplusError
    return number


@dataclass(frozen=True)
class Row:
    """What became of a trial, all attempts at it together.

    Attributes:
        number: of the trial.
        attempt: number in the study of the last attempt, whose folder has its checkpoints.
        state: complete, pruned, failed or running.
        value: the objective; None without one.
        params: what was tried.
        stages: objective after each part of the training that was looked at.
        figures: of the evaluation; empty without one.
        workers: that it took.
        costs: by `COSTS`, of all of them.
        fault: why it failed; empty where it did not.
    """

    number: int
    attempt: int
    state: str
    value: float | None
    params: dict[str, Any]
    stages: list[float]
    figures: dict[str, float]
    workers: int
    costs: dict[str, float]
    fault: str


def rows(study: Study) -> list[Row]:
    """Return what became of every trial, in the order in which they began."""
    trials = study.get_trials(deepcopy=False)
    last = {
        number: trial
        for trial in trials
        if SURPLUS not in trial.user_attrs
        for retried in [RetryHeartbeatStaleTrialCallback.retried_trial_number(trial)]
        for number in [number_of(trials, trial.number if retried is None else retried)]
    }
    found = []
    for number, trial in sorted(last.items()):
        attrs = dict(trial.user_attrs)
        costs = {name: attrs.pop(name, 0.0) for name in COSTS}
        vanished = "every worker that took it vanished" if trial.state == TrialState.FAIL else ""
        fault = attrs.pop(FAULT, vanished)
        history = RetryHeartbeatStaleTrialCallback.retry_history(trial)
        ended = trial.state == TrialState.COMPLETE
        found.append(
            Row(
                number,
                trial.number,
                trial.state.name.lower(),
                trial.value if ended else None,
                dict(trial.params),
                [value for _, value in sorted(trial.intermediate_values.items())],
                attrs if ended else {},
                1 + len(history),
                costs,
                fault,
            )
        )
    return found


def efficient(found: Sequence[Row]) -> set[int]:
    """Return the numbers of those that no other beats in success without asking more often, or vice versa."""
    points = {
        row.number: (row.figures["success_rate"], -row.figures["transmission_rate"])
        for row in found
        if row.figures
    }
    return {
        number
        for number, (success, sent) in points.items()
        if not any(
            other != (success, sent) and other[0] >= success and other[1] >= sent for other in points.values()
        )
    }
