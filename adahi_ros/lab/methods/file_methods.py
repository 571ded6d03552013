# SPDX-License-Identifier: Apache-2.0
"""Methods of one's own: FILE.py:CLASS, a gate or a proposer in a file that belongs to no package.

A file is run as it is first needed, not as its name is read. What is wrong with it, or with what its class
returns, is a `ValueError` that names both.
"""

from __future__ import annotations

import inspect
import math
import re
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from functools import lru_cache
from hashlib import blake2b
from importlib.abc import SourceLoader
from importlib.util import module_from_spec, spec_from_file_location
from numbers import Real
from pathlib import Path
from traceback import extract_tb
from types import ModuleType
from typing import Any, TypeVar

import numpy as np

from adahi_ros.acceptance.registry import ACCEPTANCES
from adahi_ros.core.files import read_bytes
from adahi_ros.core.proposal import Proposal
from adahi_ros.gates.gate_config import ControllerConfig, ThresholdedGate
from adahi_ros.gates.interface import Gate, GateContext
from adahi_ros.gates.registry import GATES, WITHOUT_THRESHOLD
from adahi_ros.lab.evaluation.loaded_policies import Bench
from adahi_ros.lab.evaluation.rollout import Log, World, rollout
from adahi_ros.lab.methods.named_numbers import named_number
from adahi_ros.lab.methods.plan_methods import actor_of, target_of
from adahi_ros.proposers.interface import Proposer, ProposerContext
from adahi_ros.proposers.registry import PROPOSERS
from adahi_ros.robot.controller import Controller
from adahi_ros.robot.loop import WAIT_POLICIES
from adahi_ros.server.verifier import TargetVerifier

T = TypeVar("T")
FILE = re.compile(r"(.+\.py):([^\W\d]\w*)(?:@([^@]+))?")
FILE_GRAMMAR = "FILE.py:CLASS of a gate or a proposer of your own, with a threshold @NUMBER where it has any"


@dataclass(frozen=True)
class MethodAttributes:
    """What a class says of itself by its attributes, and what holds where it says nothing.

    Attributes:
        proposes: it is a proposer; else a gate.
        proposer: a key of `PROPOSERS`: "draft"; of a class that proposes, its own name.
        by_plans: who proposes goes on by the target's plans; else it drafts.
        gate: a key of `GATES`: "always"; of a class that scores, its own name.
        threshold: of the gate; None where it is searched.
        rule: a key of `ACCEPTANCES`: "speculative" for the shipped drafts, "replace" for all else.
        wait_policy: one of `WAIT_POLICIES`: "wait" for each reply; or "ahead", which has it a step later.
    """

    proposes: bool
    proposer: str
    by_plans: bool
    gate: str
    threshold: float | None
    rule: str
    wait_policy: str


@dataclass(frozen=True)
class FileMethod:
    """A class in a file, as a `Method`.

    Attributes:
        name: as it was given.
        path: of the file.
        class_name: in it.
        digest: names what is in the file; None where it cannot be read. Where the file is run, by whatever
            process, this must be in it: else not all episodes would be of one method.
        at: the threshold that was given; None takes the class's own.
    """

    name: str
    path: Path
    class_name: str
    digest: str | None
    at: float | None = None

    @property
    def label(self) -> str:
        """See `Method`."""
        return self.class_name if self.at is None else f"{self.class_name}@{self.at:g}"

    @property
    def about(self) -> str:
        """See `Method`: the first line that the class says of itself."""
        return (inspect.getdoc(self._class()) or "").partition("\n")[0]

    @property
    def gate(self) -> str | None:
        """See `Method`; None where its threshold is its own, or it needs none."""
        told = self.told()
        return self.name if told.threshold is None and told.gate not in WITHOUT_THRESHOLD else None

    def told(self) -> MethodAttributes:
        """Return what the class says of itself.

        Raises:
            ValueError: there is none, or it says what cannot be.
        """
        found = _told(self._class(), self.name)
        return found if self.at is None else replace(found, threshold=_threshold(self.name, self.at))

    def threshold(self, bench: Bench) -> tuple[str, float] | None:
        """See `Method`."""
        trigger = self._parts(bench)[0].config.trigger
        return trigger.name, trigger.threshold

    def run(
        self, bench: Bench, world: World, seed: int, episodes: Sequence[int], on_step: Callable[[int], None]
    ) -> Log:
        """See `Method`."""
        late = int(self.told().wait_policy == "ahead")
        return rollout(world, *self._parts(bench), seed, episodes, on_step, late=late, across=bench.across)

    def _class(self) -> type:
        return _completed(_class_of(self.path, self.class_name, self.digest))

    def _parts(self, bench: Bench) -> tuple[Controller, TargetVerifier]:
        """Return the robot's side, that remembers nothing, and the verifier."""
        told, policies = self.told(), bench.policies
        base = bench.calibration.controller("always")
        if told.by_plans:
            # Who proposes himself knows the robot by the signature of the target.
            actor = actor_of(policies, "plan" if told.proposes else told.proposer, self.name)
            target, base = target_of(policies, self.name), ControllerConfig(base.trigger)
        else:
            actor, target = policies.draft, policies.target
            fault = ACCEPTANCES[told.rule]().compatible(actor.signature, target.signature)
            if fault is not None:
                raise ValueError(f"{self.name}: {told.rule}: {fault}")
        at = told.threshold
        if at is None:
            at = 0.0 if told.gate in WITHOUT_THRESHOLD else bench.calibration.threshold(self.name)
        if told.proposes:
            made = CheckedProposer(self._made(actor), self.name, actor.signature.action_dim, told.rule)
            config = replace(base, trigger=ThresholdedGate(told.gate, at))
            controller = Controller(actor, config, told.proposer, made=made)
        else:
            trigger = ThresholdedGate(told.gate, at, CheckedGate(self._made(), self.name))
            controller = Controller(actor, replace(base, trigger=trigger), told.proposer)
        return controller, TargetVerifier(target, told.rule)

    def _made(self, *arguments: Any) -> Any:
        make = self._class()
        try:
            inspect.signature(make).bind(*arguments)
        except TypeError as error:
            of = "the policy alone" if arguments else "no arguments"
            raise ValueError(f"{self.name}: {error}; must be made of {of}") from None
        return _asked(self.name, "__init__", lambda: make(*arguments))


def file_method(name: str) -> FileMethod | None:
    """Return the method of a name; None where it is none of these: see `FILE_GRAMMAR`.

    Raises:
        ValueError: the number is not finite, or too long.
    """
    found = FILE.fullmatch(name)
    if found is None:
        return None
    path, class_name, threshold = found.groups()
    at = None if threshold is None else named_number(name, "threshold", threshold)
    if threshold is not None and at is None:
        return None
    try:
        digest = _digest(read_bytes(Path(path)))
    except (OSError, ValueError):
        digest = None  # what is wrong with it is told where it is run
    return FileMethod(name, Path(path), class_name, digest, at)


class ByDefault:
    """What holds where a class of a file says nothing; see `MethodAttributes`."""

    proposer: Any = "draft"
    gate: Any = "always"
    threshold: Any = None
    rule: Any = None  # by proposer
    wait_policy: Any = "wait"


class CheckedGate(Gate):
    """A gate whose scores are looked at before anybody goes by them.

    Args:
        gate: of somebody who may be wrong.
        name: of the method.
    """

    def __init__(self, gate: Gate, name: str) -> None:
        self.blind = bool(gate.blind)
        self._gate = gate
        self._name = name

    def score(self, context: GateContext) -> np.ndarray:
        """See `Gate`.

        Raises:
            ValueError: there is not one number for each robot, or the gate raises anything.
        """
        robots = len(context.uniforms)
        shown = read_only(context)
        score = _asked(self._name, "score", lambda: np.asarray(self._gate.score(shown)))
        if score.dtype.kind not in "biuf" or score.shape != (robots,):
            raise ValueError(
                f"{self._name}: score: {score.dtype} of shape {score.shape}, must be a number for each of "
                f"the robots, of shape ({robots},)"
            )
        if np.isnan(score).any():
            robot = int(np.flatnonzero(np.isnan(score))[0])
            raise ValueError(
                f"{self._name}: score: NaN for robot {robot} at step {context.step}, must be a number; "
                "infinity asks, -infinity does not"
            )
        return score.astype(np.float64)

    @property
    def learns(self) -> bool:
        """See `Gate`."""
        return self._gate.learns

    def learn(self, requested_at: int, fresh: np.ndarray, rows: np.ndarray) -> None:
        """See `Gate`."""
        self._gate.learn(requested_at, fresh, rows)


class CheckedProposer(Proposer):
    """A proposer whose proposals are looked at before anybody executes them.

    Args:
        proposer: of somebody who may be wrong.
        name: of the method.
        action_dim: A.
        rule: that judges its proposals, a key of `ACCEPTANCES`.
    """

    def __init__(self, proposer: Proposer, name: str, action_dim: int, rule: str) -> None:
        self.needs_plan = bool(proposer.needs_plan)
        self._proposer = proposer
        self._name = name
        self._action_dim = action_dim
        self._rule = rule

    def propose(self, context: ProposerContext) -> Proposal | None:
        """See `Proposer`.

        Raises:
            ValueError: it is no proposal for these robots, or none that the rule can judge, or the proposer
                raises anything.
        """
        proposal = _asked(self._name, "propose", lambda: self._proposer.propose(context))
        if proposal is None and self.needs_plan:
            return None
        if not isinstance(proposal, Proposal):
            raise ValueError(f"{self._name}: propose: {type(proposal).__name__}, must be a Proposal")
        actions = np.asarray(proposal.actions)
        shape, robots = actions.shape, len(context.draws)
        if actions.dtype.kind not in "iuf":
            raise ValueError(f"{self._name}: propose: actions of {actions.dtype}, must be numbers")
        if len(shape) != 3 or 0 in shape or shape[::2] != (robots, self._action_dim):
            raise ValueError(
                f"{self._name}: propose: actions of shape {shape}, must be ({robots}, T, {self._action_dim})"
            )
        if ACCEPTANCES[self._rule].needs_codes and proposal.distribution is None:
            raise ValueError(f"{self._name}: propose: no distribution, which the rule {self._rule} goes by")
        return replace(proposal, actions=actions.astype(np.float32, copy=False))


def read_only(value: Any) -> Any:
    """Return a value with all arrays in dataclasses and mappings as views that nobody can write to.

    What a gate is shown is what the robot goes on with: written to, its draft would be another.
    """
    if isinstance(value, np.ndarray):
        view = value.view()
        view.flags.writeable = False
        return view
    if isinstance(value, Mapping):
        return {name: read_only(each) for name, each in value.items()}
    if is_dataclass(value) and not isinstance(value, type):
        return replace(value, **{each.name: read_only(getattr(value, each.name)) for each in fields(value)})
    return value


def _asked(name: str, what: str, ask: Callable[[], T]) -> T:
    """Return what a stranger's code returns.

    Raises:
        ValueError: it raises anything; names the method, and the line that was run of its file.
    """
    try:
        return ask()
    except Exception as error:  # a stranger's code may raise anything
        frames = [each for each in extract_tb(error.__traceback__) if each.filename != __file__]
        where = "".join(f" ({Path(each.filename).name}, line {each.lineno})" for each in frames[:1])
        raise ValueError(f"{name}: {what}: {type(error).__name__}: {error}{where}") from error


def _completed(made: type) -> type[ByDefault]:
    """Return a class of a file as the gate or proposer that it is, with defaults of what it leaves out."""
    kinds = [kind for method, kind in (("propose", Proposer), ("score", Gate)) if method in dir(made)]
    return type(made.__name__, (made, *kinds, ByDefault), {"__doc__": made.__doc__})


def _told(made: type[ByDefault], name: str) -> MethodAttributes:
    proposes = issubclass(made, Proposer)
    if proposes == issubclass(made, Gate):
        raise ValueError(
            f"{name}: has {'both' if proposes else 'neither'} of score and propose; must have one: a gate "
            "scores, a proposer proposes"
        )
    # What it is itself has its name, whatever attributes of that kind it may have besides.
    proposer = made.__name__ if proposes else made.proposer
    gate = made.gate if proposes else made.__name__
    if proposes:
        _check(name, "gate", gate, GATES)
    else:
        _check(name, "proposer", proposer, PROPOSERS)
    who = made if proposes else PROPOSERS[proposer]  # that of drafts is no class
    by_plans = isinstance(who, type) and issubclass(who, Proposer) and bool(who.needs_plan)
    rule = made.rule or ("speculative" if proposer == "draft" else "replace")
    _check(name, "rule", rule, ("replace",) if by_plans else ACCEPTANCES)
    _check(name, "wait_policy", made.wait_policy, WAIT_POLICIES if by_plans else ("wait",))
    threshold = None if made.threshold is None else _threshold(name, made.threshold)
    return MethodAttributes(proposes, proposer, by_plans, gate, threshold, rule, made.wait_policy)


def _threshold(name: str, value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, Real) or not math.isfinite(value):
        raise ValueError(f"{name}: threshold: {value!r}, must be a finite number")
    return float(value)


def _check(name: str, field: str, value: object, allowed: Iterable[str]) -> None:
    if value not in tuple(allowed):
        raise ValueError(f"{name}: {field}: {value!r}, must be one of {', '.join(allowed)}")


def _class_of(path: Path, name: str, digest: str | None) -> type:
    """Return a class of a file.

    Raises:
        ValueError: there is no such file or class, the file cannot be run, or it has been changed.
    """
    if not path.is_file():
        raise ValueError(f"{path}: no such file")
    try:
        content = read_bytes(path)
    except (OSError, ValueError) as error:
        raise ValueError(f"{path}: cannot be read ({error})") from None
    if _digest(content) != digest:
        raise ValueError(f"{path}: was changed meanwhile, must stay as it was until all is measured")
    module = _module(path.resolve(), content)
    made = getattr(module, name, None)
    if not inspect.isclass(made):
        there = [
            each
            for each, value in vars(module).items()
            if inspect.isclass(value) and value.__module__ == module.__name__
        ]
        raise ValueError(f"{path}: has no class {name}, but {', '.join(there) or 'none at all'}")
    return made


def _digest(content: bytes) -> str:
    return blake2b(content, digest_size=16).hexdigest()


@lru_cache(maxsize=16)
def _module(path: Path, content: bytes) -> ModuleType:
    """Run what is in a file, once per process."""
    name = f"{path.stem}_{_digest(str(path).encode() + content)}"
    spec = spec_from_file_location(name, path)
    assert spec is not None
    assert isinstance(spec.loader, SourceLoader)
    module = module_from_spec(spec)
    sys.modules[name] = module  # where dataclasses look their module up
    try:
        # Not by the loader itself: it keeps what it compiled, and takes that for a file which was changed
        # within a second and is as long as before.
        exec(spec.loader.source_to_code(content, str(path)), vars(module))
    except Exception as error:  # a stranger's file may raise anything as it is run
        del sys.modules[name]
        raise ValueError(f"{path}: cannot be run ({type(error).__name__}: {error})") from error
    return module
