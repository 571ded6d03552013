# SPDX-License-Identifier: Apache-2.0
"""The methods that are compared, by name."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

from adahi_lab.evaluation.loaded_policies import USUAL_BACKEND, PolicyFiles
from adahi_lab.methods.actors import DRAFT
from adahi_lab.methods.file_methods import FILE_GRAMMAR, file_method, is_file_method
from adahi_lab.methods.method import Method
from adahi_lab.methods.method_names import ALIASES, GRAMMAR, ORACLE_GRAMMAR, SHOWN, is_template, parsed
from adahi_lab.methods.recommended import BEST
from adahi_ros.acceptance.registry import ACCEPTANCES, BY_TARGET
from adahi_ros.core.gone_names import gone
from adahi_ros.core.registry import arguments_of
from adahi_ros.core.texts import abridged, nearest
from adahi_ros.gates.registry import GATES
from adahi_ros.proposers.registry import PROPOSERS

PLANS = (2, 4, 8)  # steps; periods of plans that are compared by default
COMPARED = (
    *("adahi", "hybrid", "draft", "target", "random", "uncertainty", "random_cool", "oracle", "distilled"),
    "best",
    *(f"plan_{steps}" for steps in PLANS),
)
DRAFTLESS = ("target",)  # the robot drafts at every step of the others


class Methods(dict[str, Method]):
    """Methods by name: `COMPARED` as entries, and any other valid name."""

    def __missing__(self, name: str) -> Method:
        """Return the method that a name means.

        Raises:
            KeyError: the name is unknown.
            ValueError: a number or an argument in the name is wrong.
        """
        method = BEST if name == BEST.name else file_method(name) or parsed(name)
        if method is None:
            raise KeyError(name)
        return method

    def __contains__(self, name: object) -> bool:
        """Whether `[name]` returns one; raises as it does, except KeyError."""
        try:
            return bool(self[str(name)])
        except KeyError:
            return False


METHODS = Methods()
METHODS.update({name: METHODS[name] for name in COMPARED})


def gates_of_methods(names: Iterable[str] = METHODS) -> dict[str, str]:
    """Return the keys of the thresholds that methods need from a calibration, by method."""
    keys = {name: METHODS[name].calibrated for name in names}
    return {name: key for name, key in keys.items() if key is not None}


def parse_methods(text: str, on_air: bool = False, own: bool = False) -> list[str]:
    """Split a comma-separated list of methods.

    Args:
        text: the list.
        on_air: only methods that a robot can run over ROS are allowed.
        own: classes in files are allowed.

    Raises:
        ValueError: a method is not allowed, cannot be made from its file, or the list is empty.
    """
    names = list(dict.fromkeys(name.strip() for name in text.split(",") if name.strip()))

    def allows(name: str) -> bool:
        return own if is_file_method(name) else runs_on_robot(METHODS[name]) or not on_air

    files = [abridged(name, SHOWN) for name in names if is_file_method(name)]
    if files and not own:
        raise ValueError(
            f"methods: {files[0]!r}: a class in a file runs only in process; "
            "to run it over DDS, install it as a package"
        )
    unknown = [name for name in names if name not in METHODS or not allows(name)]
    if unknown or not names:
        refused = ", ".join(abridged(name, SHOWN) for name in unknown)
        question = ""
        if unknown and unknown[0] not in METHODS:
            question = _gone_part(unknown[0]) or nearest(unknown[0], METHODS)
        raise ValueError(
            f"methods: {refused or text!r}{question}, must be of {', '.join(filter(allows, METHODS))}, "
            f"or {GRAMMAR}" + f", or {ORACLE_GRAMMAR}" * (not on_air) + f", or {FILE_GRAMMAR}" * own
        )
    for name in filter(is_file_method, names):
        METHODS[name].on()  # raises its fault
    return names


def _gone_part(name: str) -> str:
    """Return what replaces the first part of a method's name that existed; empty without one."""
    parts = re.findall(r"[a-z]+(?:_[a-z]+)*", re.sub(r"=[^:@+]*", "", name))
    known = {*PROPOSERS, *GATES, *ACCEPTANCES}
    return next((f": {part}{gone(part)}" for part in parts if part not in known and gone(part)), "")


def for_task(text: str, task: str, folder: Path) -> str:
    """Return methods as they are on a task: its name for {task}, for {checkpoints} the policies' folder.

    Args:
        text: as `parse_methods` takes it.
        task: by its spec's name.
        folder: of its policies; a method may have its own.

    Raises:
        ValueError: a method's own policies are not shipped for the task.
    """

    def written(name: str) -> str:
        if not is_template(name):
            return name.replace("{checkpoints}", str(folder))
        files = PolicyFiles(folder, USUAL_BACKEND).of_method(task, ALIASES[name].checkpoints, "")
        return ALIASES[name].method.replace("{checkpoints}", str(files.folder))

    return ",".join(written(name.strip()) for name in text.split(",")).replace("{task}", task)


def on_every_task(plans: bool) -> list[str]:
    """Return the names in `METHODS` that every task has: without recommended or distilled ones.

    Args:
        plans: each also has a target that plans.
    """
    special = (BEST.name, "distilled")
    return [name for name in METHODS if name not in special and (plans or not METHODS[name].by_plans)]


def runs_on_robot(method: Method) -> bool:
    """Return whether a robot can run a method over ROS."""
    if method.source is not None:
        return method.name == BEST.name
    known = method.own is None and method.gate in GATES and method.proposer in PROPOSERS
    rule = method.acceptance
    arguments = {} if rule == BY_TARGET else arguments_of(ACCEPTANCES[rule])
    return known and method.acceptance_arguments.keys() <= arguments.keys()


def gated(name: str) -> Method:
    """Return a method of a draft that a robot can run.

    Raises:
        ValueError: it is another.
    """
    method = METHODS[parse_methods(name, on_air=True)[0]]
    if method.by_plans or method.proposer != DRAFT:
        raise ValueError(f"methods: {name}, must be one that drafts")
    return method


def on_task(name: str, task: str) -> Method:
    """Return a method that a robot can run, as it is on a task.

    Raises:
        ValueError: it is another; or nothing is recommended for the task.
    """
    return METHODS[parse_methods(name, on_air=True)[0]].on(task)
