"""Lines of the table of token policies, played for two episodes."""

from __future__ import annotations

from pathlib import Path

from adahi_lab.evaluation.episodes import evaluation_episodes
from adahi_lab.evaluation.evaluate import Comparison
from adahi_lab.methods.methods import for_task
from adahi_lab.papers.tokens.token_pair import GROUPS, Line, Played, given, play
from adahi_ros.core.assets import asset

TASK, SEED, EPISODES = "metaworld", 11, evaluation_episodes(2)
FOLDER = asset("checkpoints/metaworld/tokens")
LINES = {(group.name, line.name): line for group in GROUPS for line in group.lines}
STEP, CHUNK, PREFIX, MACHINES = (group.name for group in GROUPS)


def played(line: Line, folder: Path = FOLDER) -> Played:
    task, where = given(TASK, folder) if line.given else (TASK, folder)
    method = for_task(line.method, task, where)
    return play(line, method, Comparison.of_folder(task, where, SEED), EPISODES, lambda: None)
