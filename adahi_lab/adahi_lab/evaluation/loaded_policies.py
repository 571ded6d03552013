# SPDX-License-Identifier: Apache-2.0
"""Loads what a comparison of methods needs: a task, its policies, a calibration."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

from adahi_lab.calibration.parameter_file import Calibration, load_calibration
from adahi_lab.evaluation.step_link import Across
from adahi_ros.acceptance.interface import codes_differ, difference
from adahi_ros.core.assets import asset, shipped
from adahi_ros.core.signature import IMAGE_FEATURES, Signature
from adahi_ros.policies.backends import is_policy, load_policy
from adahi_ros.policies.corrector.corrector import Corrector
from adahi_ros.policies.corrector.corrector_checkpoint import load_corrector
from adahi_ros.policies.intent.intent import Intent, load_intent
from adahi_ros.policies.interface import Actor, Policy

INTENTS: tuple[str, ...] = ("intent", "intent_of_plan")
DRAFT_CODES = "draft_codes"  # beside the draft
GOAL_ONCE = "goal_once"  # the yardstick in tasks where no other policy on the robot gets the goal
ON_ROBOT = ("draft", DRAFT_CODES, "corrector", "distilled", *INTENTS)
USUAL_BACKEND = "onnxruntime"
PLANS = "plans"  # folder beside draft and target: a target that plans, and the corrector of its plans


@dataclass(frozen=True)
class Policies:
    """A draft and a target; with the same tokenizer, if both have one.

    Attributes:
        draft, target: the two.
        draft_codes: the draft with offsets for the target's codes, to decode replies, where there is one.
        plans: a target that plans, where there is one.
        corrector: of its plans, where there is one.
        distilled: a policy for the robot with that target's average actions, where there is one.
        intent: acts by what an encoder beside that target sends, where there is one.
        intent_of_plan: acts by what the robot's encoder finds in that target's plans, where there is one.
        goal_once: a policy for a robot that is given the goal, where there is one.

    Raises:
        ValueError: they do not match; names what differs.
    """

    draft: Policy
    target: Policy
    plans: Policy | None = None
    corrector: Corrector | None = None
    distilled: Policy | None = None
    intent: Intent | None = None
    intent_of_plan: Intent | None = None
    draft_codes: Policy | None = None
    goal_once: Policy | None = None

    def __post_init__(self) -> None:
        draft, target = self.draft.signature, self.target.signature
        if draft.codes is not None and target.codes is not None:
            fault = codes_differ(draft, target)
        else:
            fault = difference("action_dim", draft.action_dim, target.action_dim)
        fault = fault or _reads_differently(draft, target)
        if fault is not None:
            raise ValueError(fault)
        for kind in ("plans", "corrector", "distilled", *INTENTS, DRAFT_CODES, GOAL_ONCE):
            self._check_speaks_of_the_same(kind, getattr(self, kind))
        for kind in ON_ROBOT:
            actor = getattr(self, kind)
            if actor is not None and actor.signature.image_dim:
                raise ValueError(f"{kind}: reads {IMAGE_FEATURES}, of images that a robot only sends")

    def _check_speaks_of_the_same(self, kind: str, other: Actor | None) -> None:
        if other is None:
            return
        theirs = _sizes(other.signature)
        for name, wanted in _sizes(self.target.signature).items():
            found = theirs[name]
            untold = name in ("image_dim", "goal_dim") and found == 0  # these may be for the target only
            if found != wanted and not (untold and kind != "plans"):
                raise ValueError(
                    f"{name}: that of {kind} is {found}, the target's {wanted}; must be the same"
                )

    def check_goal_is_for_target(self) -> None:
        """Check that no policy on the robot reads a goal, except `goal_once`.

        Raises:
            ValueError: one does; names it.
        """
        for name in ON_ROBOT:
            actor = getattr(self, name)
            if actor is not None and actor.signature.goal_dim:
                raise ValueError(f"{name}: reads a goal, which this task tells to the target alone")

    @property
    def share_codes(self) -> bool:
        """Whether the target understands the draft's codes."""
        return codes_differ(self.draft.signature, self.target.signature) is None


def _sizes(signature: Signature) -> dict[str, int]:
    """Return the sizes of a robot's observation, of images it only sends, of its goal and its action."""
    return {
        "observation_dim": signature.observation_dim - signature.image_dim,
        "image_dim": signature.image_dim,
        "goal_dim": signature.goal_dim,
        "action_dim": signature.action_dim,
    }


def _reads_differently(draft: Signature, target: Signature) -> str | None:
    """Name the first feature with different sizes in the two; a feature may be in one only."""
    sizes = {each.name: each.size for each in (*draft.features, *draft.conditions)}
    for each in (*target.features, *target.conditions):
        fault = difference(each.name, sizes.get(each.name, each.size), each.size)
        if fault is not None:
            return fault
    return None


@dataclass(frozen=True)
class PolicyFiles:
    """Where policies are loaded from; sent to worker processes instead of the policies.

    Attributes:
        folder: of the checkpoints.
        backend: inference backend.
    """

    folder: Path
    backend: str

    @classmethod
    def of_task(cls, task: str) -> PolicyFiles:
        """Return the policies that are shipped for a task, by its spec's name; there may be none."""
        folder = f"checkpoints/{task}"
        return cls(asset(folder) if shipped(folder) else Path(folder), USUAL_BACKEND)

    def of_method(self, task: str, checkpoints: str, backend: str) -> PolicyFiles:
        """Return the policies of a method instead of a task's own; files that a user chose stay.

        Args:
            task: by its spec's name.
            checkpoints: see `Method`.
            backend: see `Method`.

        Raises:
            ValueError: nothing is shipped for the task.
        """
        usual = self.folder.resolve() == self.of_task(task).folder.resolve()
        where = checkpoints.replace("{task}", task)
        if where and usual and not shipped(where):
            raise ValueError(f"task: {task!r}, there is no {where}, the policies of this method")
        return PolicyFiles(
            asset(where) if where and usual else self.folder,
            backend if backend and self.backend == USUAL_BACKEND else self.backend,
        )

    def load(self) -> Policies:
        """Load the policies, once per process and state of the files."""
        newest = max((path.stat().st_mtime_ns for path in self.folder.rglob("*")), default=0)
        return _load(self, newest)


@lru_cache(maxsize=4)
def _load(files: PolicyFiles, newest_ns: int) -> Policies:
    folder, backend = files.folder, files.backend

    def there(path: Path) -> Policy | None:
        return load_policy(path, backend) if is_policy(path) else None

    def of_codes(name: str, otherwise: str) -> Policy:
        """Return the policy of that name; one of plans where a task has no policies that speak codes."""
        beside = folder / PLANS / otherwise
        alone = is_policy(beside) and not is_policy(folder / name)
        return load_policy(beside if alone else folder / name, backend)

    policies = Policies(
        of_codes("draft", "distilled"),
        of_codes("target", "target"),
        distilled=there(folder / PLANS / "distilled"),
        draft_codes=there(folder / DRAFT_CODES),
        goal_once=there(folder / PLANS / GOAL_ONCE),
    )
    return with_plans(policies, plans_in(folder / PLANS), backend)


class PlanFiles(NamedTuple):
    """A target that plans, and what acts by its replies, each DIRECTORY/NAME; None for a missing one.

    Attributes:
        plans, corrector, intent, intent_of_plan: see `Policies`.
    """

    plans: Path | None = None
    corrector: Path | None = None
    intent: Path | None = None
    intent_of_plan: Path | None = None

    def without_intents(self, but: Collection[str] = ()) -> PlanFiles:
        """Return them without intents, except those with these names."""
        return self._replace(**{name: None for name in INTENTS if name not in but})


def plans_in(folder: Path) -> PlanFiles:
    """Return the files of a folder with a target that plans."""
    paths = (folder / name for name in ("target", "corrector", *INTENTS))
    return PlanFiles(*(path if is_policy(path) else None for path in paths))


def with_plans(policies: Policies, files: PlanFiles, backend: str) -> Policies:
    """Return policies with those of files; without a file, a policy stays.

    Raises:
        ValueError: one cannot be loaded, or does not match.
    """
    load: dict[str, Callable[[Path], Any]] = {
        PLANS: lambda path: load_policy(path, backend),
        "corrector": lambda path: Corrector(load_corrector(path)),
        **dict.fromkeys(INTENTS, lambda path: load_intent(path, with_encoder=True)),
    }
    found = files._asdict().items()
    return replace(policies, **{name: load[name](path) for name, path in found if path is not None})


def check_fits(calibration: Calibration, task: str, policies: Policies) -> None:
    """Check that a calibration was made for a task, by its spec's name, and for these policies.

    Raises:
        ValueError: it was made for others.
    """
    made_for = (calibration.task, calibration.draft, calibration.target)
    if made_for != (task, policies.draft.digest, policies.target.digest):
        raise ValueError(
            f"calibration: made for other policies or another task ({calibration.task}); run "
            f"'adahi thresholds {task}' for these or pass --rate"
        )


def uncalibrated(task: str, policies: Policies) -> Calibration:
    """Return a calibration without thresholds, for methods that need none.

    Args:
        task: by its spec's name.
        policies: of it.
    """
    digests = policies.draft.digest, policies.target.digest
    return Calibration(
        task,
        *digests,
        smoothing=0.5,
        normalization="std",
        draft_temperature=1.0,
        transmission_rate=1.0,
        thresholds={},
    )


def calibration_in(file: Path | None, task: str, policies: Policies) -> Calibration:
    """Return the calibration in a file, or one without thresholds where there is no file.

    Raises:
        ValueError: it was made for another task, by its spec's name, or for other policies.
    """
    found = uncalibrated(task, policies) if file is None else load_calibration(file)
    check_fits(found, task, policies)
    return found


@dataclass(frozen=True)
class Bench:
    """A task with its policies and their calibration.

    Attributes:
        task: what `make` takes.
        policies: draft and target.
        calibration: thresholds of the gates.
        across: the link between robot and target; None where replies arrive within the step, or as late as a
            method says.
    """

    task: str
    policies: Policies
    calibration: Calibration
    across: Across | None = None
