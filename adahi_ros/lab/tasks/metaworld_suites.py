# SPDX-License-Identifier: Apache-2.0
"""Suites of Meta-World: scenes that tasks share, and the library's MT10 and MT50 as they come."""

from __future__ import annotations

from dataclasses import dataclass

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


ORIGINALS = {
    name: Original(name, sentence)
    for name, sentence in {
        "assembly-v3": "put the nut onto the peg",
        "basketball-v3": "throw the ball into the basket",
        "bin-picking-v3": "bring the block to the other bin",
        "box-close-v3": "put the lid onto the box",
        "button-press-topdown-v3": "press the button from above",
        "button-press-topdown-wall-v3": "press the button from above behind the wall",
        "button-press-v3": "press the button",
        "button-press-wall-v3": "press the button behind the wall",
        "coffee-button-v3": "press the button of the coffee machine",
        "coffee-pull-v3": "pull the mug from the coffee machine",
        "coffee-push-v3": "push the mug under the coffee machine",
        "dial-turn-v3": "turn the dial",
        "disassemble-v3": "take the nut off the peg",
        "door-close-v3": "close the door",
        "door-lock-v3": "lock the door",
        "door-open-v3": "open the door",
        "door-unlock-v3": "unlock the door",
        "drawer-close-v3": "close the drawer",
        "drawer-open-v3": "open the drawer",
        "faucet-close-v3": "turn the faucet off",
        "faucet-open-v3": "turn the faucet on",
        "hammer-v3": "hammer the nail",
        "hand-insert-v3": "put the block into the hole by hand",
        "handle-press-side-v3": "press the handle down from the side",
        "handle-press-v3": "press the handle down",
        "handle-pull-side-v3": "pull the handle up from the side",
        "handle-pull-v3": "pull the handle up",
        "lever-pull-v3": "pull the lever up",
        "peg-insert-side-v3": "put the peg into the hole from the side",
        "peg-unplug-side-v3": "pull the peg out of the hole to the side",
        "pick-out-of-hole-v3": "lift the puck out of the hole",
        "pick-place-v3": "lift the puck to the mark",
        "pick-place-wall-v3": "lift the puck over the wall to the mark",
        "plate-slide-back-side-v3": "slide the plate out of the net to the side",
        "plate-slide-back-v3": "slide the plate out of the net",
        "plate-slide-side-v3": "slide the plate into the net from the side",
        "plate-slide-v3": "slide the plate into the net",
        "push-back-v3": "pull the block back to the mark",
        "push-v3": "push the puck to the mark",
        "push-wall-v3": "push the puck round the wall to the mark",
        "reach-v3": "reach for the mark",
        "reach-wall-v3": "reach over the wall for the mark",
        "shelf-place-v3": "put the block onto the shelf",
        "soccer-v3": "kick the ball into the goal",
        "stick-pull-v3": "pull the box with the stick",
        "stick-push-v3": "push the box with the stick",
        "sweep-into-v3": "sweep the block into the hole",
        "sweep-v3": "sweep the block off the table",
        "window-close-v3": "close the window",
        "window-open-v3": "open the window",
    }.items()
}
"""By the library's names; the sentences are ours, for the library has none."""

MT10_NAMES = (
    "reach-v3",
    "push-v3",
    "pick-place-v3",
    "door-open-v3",
    "drawer-open-v3",
    "drawer-close-v3",
    "button-press-topdown-v3",
    "peg-insert-side-v3",
    "window-open-v3",
    "window-close-v3",
)

SHARED = Suite(
    "metaworld",
    SCENES,
    tuple(f"{thing}_{axis}_m" for thing in ("part", "thing") for axis in AXES),
    True,
    240,
    "what the sentence asks for is done, and nothing else before",
)
MT10 = _original("metaworld_10", tuple(ORIGINALS[name] for name in MT10_NAMES))
MT50 = _original("metaworld_50", tuple(ORIGINALS.values()))
