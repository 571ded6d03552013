# SPDX-License-Identifier: Apache-2.0
"""A search: a study shared by workers; each takes the next trial, or one abandoned by another worker.

Every draw is addressed. A trial's suggestion depends on the seed, on the number of earlier trials, and on the
results of finished ones. Its result depends on the suggestion and on the seeds of its recipe. So one worker
is reproducible, also if killed and restarted. Several workers are reproducible for the first, uniform trials;
later suggestions depend on which trials have ended.
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

from adahi_lab.parallel import run_alike
from adahi_lab.tuning.trend import PRUNERS
from adahi_lab.tuning.trial import COSTS, FIGURES, Attempt, Ground, Meter

STARTUP = 8  # trials drawn at random, before suggestions from results
MOST_WORKERS = 10  # that one trial may crash before it is abandoned
FAULT = "fault"
SURPLUS = "surplus"
GROUND = "ground"


class _SurplusError(RuntimeError):
    """Two workers began the last trial; one of them is redundant."""


@dataclass(frozen=True)
class Plan:
    """The task of workers; picklable.

    Attributes:
        ground: common basis of the trials.
        storage: URL of the database.
        name: of the study in it.
        trials: how many, without reassigned ones.
        seed: of the suggestions.
        price_per_hour: of this worker.
        lost_after_s: time without a heartbeat after which a worker's trial goes to another.
    """

    ground: Ground
    storage: str
    name: str
    trials: int
    seed: int = 0
    price_per_hour: float = 0.0
    lost_after_s: int = 60

    def study(self) -> Study:
        """Open or create the study.

        Raises:
            ValueError: the database cannot be opened, or it has another study of that name.
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
        question = self._question()
        if study.user_attrs.setdefault(GROUND, question) != question:
            raise ValueError(
                f"out: there is a study of {self.name!r} of another space, seed or checkpoints; must be "
                "another folder or storage"
            )
        study.set_user_attr(GROUND, question)
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

    def _question(self) -> dict[str, object]:
        """Return what must be the same for all workers, as JSON data."""
        ground = self.ground
        return {
            "space": repr(ground.space),
            "seeds": [self.seed, ground.seed],
            "policies": [ground.calibration.draft, ground.calibration.target],
        }


def without_password(storage: str) -> str:
    """Return a database's URL without its password.

    Raises:
        ValueError: it is no URL.
    """
    try:
        return make_url(storage).render_as_string(hide_password=True)
    except ArgumentError:
        raise ValueError("storage: no URL of a database, must be DIALECT://USER@HOST/NAME or alike") from None


def number_of(trials: Sequence[FrozenTrial], number: int) -> int:
    """Return the number of trials started before one, by its number; attempts at a trial count once."""
    return sum(each.number < number and not _again(each) for each in trials)


def _again(trial: FrozenTrial) -> bool:
    retried = RetryHeartbeatStaleTrialCallback.retried_trial_number(trial) is not None
    return retried or SURPLUS in trial.user_attrs


class AddressedSampler(TPESampler):
    """Optuna's tree-structured Parzen estimator (Bergstra et al., 2011), with separate draws for each trial.

    Args:
        seed: of all draws.
    """

    def __init__(self, seed: int) -> None:
        self._seed = seed
        super().__init__(seed=seed)

    def before_trial(self, study: Study, trial: FrozenTrial) -> None:
        """See `BaseSampler`: restarts with the draws of this trial."""
        number = number_of(study.get_trials(deepcopy=False), trial.number)
        drawn = int(np.random.SeedSequence((self._seed, number)).generate_state(1)[0])
        super().__init__(seed=drawn, n_startup_trials=STARTUP)
        super().before_trial(study, trial)


def work(plan: Plan, say: Callable[[str], None] = print) -> None:
    """Take trials until the planned number has ended.

    Args:
        plan: the worker's task.
        say: called with a description of each trial.
    """
    study = plan.study()
    reported_waiting = False
    while True:
        fail_stale_trials(study)
        trials = study.get_trials(deepcopy=False)
        states = {trial.state for trial in trials}
        started = number_of(trials, len(trials))
        if started < plan.trials or TrialState.WAITING in states:
            reported_waiting = False
            _take_one(study, plan, say)
        elif TrialState.RUNNING in states:
            if not reported_waiting:
                say("waiting for the trials of other workers, should one be lost")
            reported_waiting = True
            time.sleep(1.0)
        else:
            return


def run(plan: Plan, workers: int, say: Callable[[str], None]) -> None:
    """Let workers on this machine take trials until all have ended.

    Raises:
        ValueError: as `Plan.study`.
        RuntimeError: the workers vanished before that; the same command continues.
    """
    study = plan.study()  # creates the tables before the workers start
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
            # A worker that ends, or an I/O error, is no fault of the trial: another worker continues it.
            status = 130 if isinstance(lost, KeyboardInterrupt) else f"trial {number}: {lost}"
            raise SystemExit(status) from lost
        success, rate = (study.trials[trial.number].user_attrs[name] for name in FIGURES[:2])
        say(f"trial {number}: {value:.3f}, success {success:.3f} at a transmission rate of {rate:.3f}")
        return value

    try:
        study.optimize(objective, n_trials=1, catch=(ValueError, RuntimeError))
    except ValueError as error:
        if "Cannot tell" not in str(error):  # otherwise another worker continues the trial
            raise


def _number(study: Study, trial: Trial, plan: Plan) -> int:
    """Return the number of a trial's first attempt; end a duplicate of the last trial."""
    trials = study.get_trials(deepcopy=False)
    first = RetryHeartbeatStaleTrialCallback.retried_trial_number(trials[trial.number])
    number = number_of(trials, trial.number if first is None else first)
    if first is None and number >= plan.trials:
        trial.set_user_attr(SURPLUS, True)
        raise _SurplusError
    return number


@dataclass(frozen=True)
class Row:
    """The results of a trial over all its attempts.

    Attributes:
        number: of the trial.
        attempt: number in the study of the last attempt; its folder has the checkpoints.
        state: complete, pruned, failed or running.
        value: the objective; None without one.
        params: the settings.
        stages: objective after each evaluated part of the training.
        figures: of the evaluation; empty without one.
        workers: their number.
        costs: by `COSTS`, of all of them.
        fault: why it failed; empty if it did not.
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
    """Return the results of every trial, in the order of their beginnings."""
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
    """Return the numbers of the Pareto-optimal trials in success and transmission rate."""
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
