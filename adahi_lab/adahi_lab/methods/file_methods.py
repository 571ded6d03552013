# SPDX-License-Identifier: Apache-2.0
"""User-defined methods: FILE.py:CLASS, a gate or a proposer in a file outside any package.

A file is run when first needed, not when its name is read. Faults of the file or of its class's results
raise a `ValueError` that names both.
"""

from __future__ import annotations

import inspect
import math
import re
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, fields, is_dataclass, replace
from functools import lru_cache
from hashlib import blake2b
from numbers import Real
from pathlib import Path
from traceback import extract_tb
from types import ModuleType
from typing import Any, TypeVar

import numpy as np

from adahi_lab.methods.actors import DRAFT, follows_plan
from adahi_lab.methods.method import Method
from adahi_lab.methods.method_names import named_number
from adahi_ros.acceptance.registry import ACCEPTANCES
from adahi_ros.core.files import read_bytes
from adahi_ros.core.gone_names import gone
from adahi_ros.core.proposal import Proposal
from adahi_ros.core.texts import misspelt
from adahi_ros.gates.interface import Gate, GateContext
from adahi_ros.gates.registry import GATES
from adahi_ros.policies.interface import Actor
from adahi_ros.proposers.interface import Proposer, ProposerContext
from adahi_ros.proposers.registry import PROPOSERS
from adahi_ros.robot.loop import WAIT_POLICIES

T = TypeVar("T")
FILE = re.compile(r"(.+\.py):([^\W\d]\w*)(?:@([^@]+))?")
FILE_GRAMMAR = "FILE.py:CLASS of a gate or a proposer of your own, with a threshold @NUMBER where it has any"


@dataclass(frozen=True)
class FileClass:
    """A class in a file: completes a method as its gate or its proposer.

    Attributes:
        name: of the method, as it was given.
        path: of the file.
        class_name: in it.
        digest: names the content of the file; None where it cannot be read. Every process checks this
            digest when it runs the file, so that all episodes use one method.
    """

    name: str
    path: Path
    class_name: str
    digest: str | None

    def __call__(self, method: Method, task: str) -> Method:
        """Complete a method by the attributes of the class, the same for every task; see `Method.source`."""
        made, name, proposes = self._class(), self.name, self.proposes
        if proposes == issubclass(made, Gate):
            raise ValueError(
                f"{name}: has {'both' if proposes else 'neither'} of score and propose; must have one: "
                "a gate scores, a proposer proposes"
            )
        # Its own role has its name, also if the class sets an attribute for that role.
        proposer = made.__name__ if proposes else made.proposer
        gate = made.gate if proposes else made.__name__
        if proposes:
            _check(name, "gate", gate, GATES)
        else:
            _check(name, "proposer", proposer, PROPOSERS)
        by_plans = self.by_plans if proposes else follows_plan(proposer)
        rule = made.rule or ("speculative" if proposer == DRAFT else "replace")
        _check(name, "rule", rule, ("replace",) if by_plans else ACCEPTANCES)
        _check(name, "wait_policy", made.wait_policy, WAIT_POLICIES if by_plans else ("wait",))
        return replace(
            method,
            about=(inspect.getdoc(made) or "").partition("\n")[0],
            proposer=proposer,
            gate=gate,
            at=_threshold(name, made.threshold if method.at is None else method.at),
            acceptance=rule,
            delay=int(made.wait_policy == "ahead"),
            wait_policy=made.wait_policy,
            source=None,
            own=self,
        )

    @property
    def proposes(self) -> bool:
        """See `OwnClass`."""
        return issubclass(self._class(), Proposer)

    @property
    def by_plans(self) -> bool:
        """See `OwnClass`; of a class that proposes."""
        made = self._class()
        return issubclass(made, Proposer) and bool(made.needs_plan)

    def made_gate(self) -> CheckedGate:
        """See `OwnClass`."""
        return CheckedGate(self._made(), self.name)

    def made_proposer(self, actor: Actor, rule: str) -> CheckedProposer:
        """See `OwnClass`."""
        return CheckedProposer(self._made(actor), self.name, actor.signature.action_dim, rule)

    def _class(self) -> type[ByDefault]:
        made = _class_of(self.path, self.class_name, self.digest)
        completed = _completed(made)
        kinds = [kind for kind in (Gate, Proposer) if issubclass(completed, kind)] or [Gate, Proposer]
        allowed = {name for kind in (ByDefault, *kinds) for name in dir(kind) if not name.startswith("_")}
        written = [name for each in made.__mro__ if each.__module__ == made.__module__ for name in vars(each)]
        fault = misspelt(written, allowed)
        if fault:
            raise ValueError(f"{self.name}: {fault}")
        return completed

    def _made(self, *arguments: Any) -> Any:
        make = self._class()
        try:
            inspect.signature(make).bind(*arguments)
        except TypeError as error:
            of = "the policy alone" if arguments else "no arguments"
            raise ValueError(f"{self.name}: {error}; must be made of {of}") from None
        return _called(self.name, "__init__", lambda: make(*arguments))


def is_file_method(name: str) -> bool:
    """Return whether a name is that of a class in a file: see `FILE_GRAMMAR`."""
    return FILE.fullmatch(name) is not None


def file_method(name: str) -> Method | None:
    """Return the method of a name; None for other names: see `FILE_GRAMMAR`.

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
        digest = None  # running the file reports the error
    label = class_name if at is None else f"{class_name}@{at:g}"
    return Method(name, label, at=at, source=FileClass(name, Path(path), class_name, digest))


class ByDefault:
    """Defaults for attributes of a class in a file; see `Method`."""

    proposer: Any = DRAFT
    gate: Any = "always"
    threshold: Any = None
    rule: Any = None  # by proposer
    wait_policy: Any = "wait"


def _completed(made: type) -> type[ByDefault]:
    """Return a class of a file as gate or proposer, with defaults for missing attributes."""
    kinds = [kind for method, kind in (("propose", Proposer), ("score", Gate)) if method in dir(made)]
    return type(made.__name__, (made, *kinds, ByDefault), {"__doc__": made.__doc__})


class CheckedGate(Gate):
    """A gate that checks the scores of another gate.

    Args:
        gate: user code that may be wrong.
        name: of the method.
    """

    def __init__(self, gate: Gate, name: str) -> None:
        self.blind = bool(gate.blind)
        self._gate = gate
        self._name = name

    def score(self, context: GateContext) -> np.ndarray:
        """See `Gate`.

        Raises:
            ValueError: there is not one number for each robot, or the gate raises an exception.
        """
        robots = len(context.uniforms)
        shown = read_only(context)
        score = _called(self._name, "score", lambda: np.asarray(self._gate.score(shown)))
        if score.dtype.kind not in "biuf" or score.shape != (robots,):
            raise ValueError(
                f"{self._name}: score: {score.dtype} of shape {score.shape}, must be a number for each of "
                f"the robots, of shape ({robots},)"
            )
        if np.isnan(score).any():
            robot = int(np.flatnonzero(np.isnan(score))[0])
            raise ValueError(
                f"{self._name}: score: NaN for robot {robot} at step {context.step}, must be a number; "
                "inf sends a request, -inf sends none"
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
    """A proposer that checks the proposals of another proposer.

    Args:
        proposer: user code that may be wrong.
        name: of the method.
        action_dim: A.
        rule: that judges its proposals, a key of `ACCEPTANCES`.
    """

    def __init__(self, proposer: Proposer, name: str, action_dim: int, rule: str) -> None:
        self.needs_plan, self.actor = bool(proposer.needs_plan), proposer.actor
        self._proposer = proposer
        self._name = name
        self._action_dim = action_dim
        self._rule = rule

    def propose(self, context: ProposerContext) -> Proposal | None:
        """See `Proposer`.

        Raises:
            ValueError: it is no proposal for these robots, the rule cannot verify it, or the proposer raises
                an exception.
        """
        proposal = _called(self._name, "propose", lambda: self._proposer.propose(context))
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
            raise ValueError(f"{self._name}: propose: no distribution, which the rule {self._rule} needs")
        return replace(proposal, actions=actions.astype(np.float32, copy=False))


def read_only(value: Any) -> Any:
    """Return a value with read-only views of all arrays in dataclasses and mappings.

    The robot executes the same arrays: a gate that wrote to them would change its draft.
    """
    if isinstance(value, np.ndarray):
        view = value.view()
        view.flags.writeable = False
        return view
    if isinstance(value, Mapping):
        return {name: read_only(each) for name, each in value.items()}
    if is_dataclass(type(value)):
        return replace(value, **{each.name: read_only(getattr(value, each.name)) for each in fields(value)})
    return value


def _called(name: str, what: str, ask: Callable[[], T]) -> T:
    """Return the result of user code.

    Raises:
        ValueError: the code raises an exception; names the method and the line of its file.
    """
    try:
        return ask()
    except Exception as error:  # user code may raise anything
        frames = [each for each in extract_tb(error.__traceback__) if each.filename != __file__]
        where = "".join(f" ({Path(each.filename).name}, line {each.lineno})" for each in frames[:1])
        raise ValueError(f"{name}: {what}: {type(error).__name__}: {error}{where}") from error


def _threshold(name: str, value: Any) -> float | None:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, Real) or not math.isfinite(value):
        raise ValueError(f"{name}: threshold: {value!r}, must be a finite number")
    return float(value)


def _check(name: str, field: str, value: object, allowed: Iterable[str]) -> None:
    if value not in tuple(allowed):
        raise ValueError(f"{name}: {field}: {value!r}{gone(value)}, must be one of {', '.join(allowed)}")


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
    module = ModuleType(name)
    module.__file__ = str(path)
    sys.modules[name] = module  # dataclasses look up their module here
    try:
        # An import would keep the compiled code even after a change within a second that keeps the length.
        exec(compile(content, str(path), "exec", dont_inherit=True), vars(module))
    except Exception as error:  # user code may raise anything
        del sys.modules[name]
        raise ValueError(f"{path}: cannot be run ({type(error).__name__}: {error})") from error
    return module
