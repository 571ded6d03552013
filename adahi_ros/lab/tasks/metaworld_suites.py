# SPDX-License-Identifier: Apache-2.0
"""Suites of Meta-World: scenes that tasks share, and the library's MT10 and MT50 as they come."""

from __future__ import annotations

from dataclasses import dataclass

from adahi_ros.core.assets import asset
from adahi_ros.core.yaml_files import read_yaml
from adahi_ros.lab.tasks.metaworld_scenes import SCENES, Scene

AXES = ("x", "y", "z")
QUATERNION = ("qx", "qy", "qz", "qw")


@dataclass(frozen=True)
class Original:
    """A task of the library as it comes, a scene in which one thing can be asked for.

    Attributes:
        name: the library's, which is its scripted policy's, too.
        sentence: what is asked for, as it is told.
    """

    name: str
    sentence: str

    @property
    def policy(self) -> str:
        """The library's task whose scripted policy does it."""
        return self.name

    @property
    def errands(self) -> tuple[Original, ...]:
        """All that can be asked for."""
        return (self,)


@dataclass(frozen=True)
class Suite:
    """Scenes that are one task of ours.

    Attributes:
        name: registry name.
        scenes: that an episode may be in.
        things: what the robot sees beside the hand and the gripper.
        shows_scene: whether it sees which scene it is in.
        max_steps: an episode's length at most.
        success_text: the criterion, for people.
    """

    name: str
    scenes: tuple[Scene | Original, ...]
    things: tuple[str, ...]
    shows_scene: bool
    max_steps: int
    success_text: str


def _original(name: str, scenes: tuple[Original, ...]) -> Suite:
    """Return a suite of the library: its observation, without the goal, and its time."""
    things = tuple(
        f"{thing}_{entry}"
        for thing in ("first", "second")
        for entry in (*(f"{axis}_m" for axis in AXES), *QUATERNION)
    )
    return Suite(name, scenes, things, False, 500, "what the sentence asks for is done, as the library tells")


_SAID = read_yaml(asset("config/metaworld/sentences.yaml"))
ORIGINALS = {name: Original(name, sentence) for name, sentence in _SAID["sentences"].items()}
"""By the library's names."""

SHARED = Suite(
    "metaworld",
    SCENES,
    tuple(f"{thing}_{axis}_m" for thing in ("part", "thing") for axis in AXES),
    True,
    240,
    "what the sentence asks for is done, and nothing else before",
)
MT10 = _original("metaworld_10", tuple(ORIGINALS[name] for name in _SAID["mt10"]))
MT50 = _original("metaworld_50", tuple(ORIGINALS.values()))
