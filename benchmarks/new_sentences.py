# SPDX-License-Identifier: Apache-2.0
"""What remains of success in Meta-World with new sentences of trained words.

    benchmarks/new_sentences.py --episodes 300 --seed 4242

World, policies and episodes are those of `adahi evaluate metaworld`; only the sentence that the target
reads is another. Sentences are sums of random vectors of their words, so this measures a bag of words, no
language model.
"""

from __future__ import annotations

from dataclasses import replace

import typer
from rich.table import Table

from adahi_ros.cli.terminal import console
from adahi_ros.lab.evaluation.episodes import evaluation_episodes
from adahi_ros.lab.evaluation.evaluate import Comparison, outcome_figures, play_all
from adahi_ros.lab.methods.methods import METHODS, parse_methods
from adahi_ros.lab.tasks.metaworld import MetaWorld
from adahi_ros.lab.tasks.metaworld_scenes import SHARED, Suite
from adahi_ros.lab.tasks.task_interface import Task

NEW = {  # chosen once, before anything was measured
    "open the drawer": "pull the drawer open",
    "close the drawer": "push to close the drawer",
    "open the window": "slide the window open",
    "close the window": "slide to close the window",
    "turn the faucet on": "faucet on",
    "turn the faucet off": "faucet off",
    "lock the door": "turn to lock the door",
    "unlock the door": "turn to unlock the door",
    "press the handle down": "push the handle down",
    "pull the handle up": "lift the handle up",
    "slide the plate into the net": "push the plate into the net",
    "slide the plate away from the net": "pull the plate away from the net",
    "slide the plate to the left": "push the plate left",
    "slide the plate to the right": "push the plate right",
    "reach for the mark": "reach to the mark",
    "push the puck to the mark": "slide the puck to the mark",
    "lift the puck to the mark": "pull the puck up to the mark",
}


def reworded(suite: Suite) -> Suite:
    """Return the suite with the new sentences.

    Raises:
        ValueError: a sentence has a word that no training had, or is not new.
    """
    words = {word for sentence in NEW for word in sentence.split()}
    for sentence in NEW.values():
        if sentence in NEW or not words.issuperset(sentence.split()):
            raise ValueError(f"sentence: {sentence!r}, must be new, and have trained words only")
    scenes = tuple(
        replace(scene, errands=tuple(replace(each, sentence=NEW[each.sentence]) for each in scene.errands))
        for scene in suite.scenes
    )
    return replace(suite, scenes=scenes)


class Reworded(Comparison):
    """A comparison in the world with the new sentences."""

    def world(self) -> Task:
        """See `Comparison`."""
        return MetaWorld(reworded(SHARED))


def measure(
    methods: str = "plan_1,corrector_20+1,best,intent,intent_of_plan",
    episodes: int = 300,
    seed: int = 4242,
    workers: int = 1,
) -> None:
    """Print the table."""
    trained = Comparison.shipped("metaworld", seed)
    new = Reworded(trained.task, trained.files, trained.calibration, seed)
    names = parse_methods(methods)
    numbers = evaluation_episodes(episodes)
    found = [play_all(each, names, numbers, workers) for each in (trained, new)]
    table = Table(
        "method", "trained sentences", "new sentences", "share that remains", "requests/episode, new",
        title=f"metaworld, {episodes} episodes, seed {seed}, new sentences of trained words",
    )  # fmt: skip
    for name in names:
        before, after = (outcome_figures(each[name]) for each in found)
        table.add_row(
            METHODS[name].label,
            f"{before['success_rate']:.3f}",
            f"{after['success_rate']:.3f}",
            f"{after['success_rate'] / before['success_rate']:.2f}",
            f"{after['calls_per_episode']:.1f}",
        )
    console.print(table)


if __name__ == "__main__":
    typer.run(measure)
