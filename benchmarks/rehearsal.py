"""What parts of a control step cost in a loop, after a pause, and after a pause and a rehearsal.

    .venv/bin/python benchmarks/rehearsal.py [--json FILE]

Between two steps a robot's processor sleeps, or does other things: here it reads as much memory as a larger
policy's weights take. Prints medians; asserts nothing.
"""

from __future__ import annotations

import json
import time
from array import array
from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import numpy as np
import typer
from adahi_msgs.srv import VerifyDraft
from rclpy.serialization import deserialize_message, serialize_message
from rich.console import Console
from rich.table import Table

from adahi_ros.assets import asset
from adahi_ros.nodes.common.messages import to_request
from adahi_ros.nodes.robot.question import Question, judged
from adahi_ros.nodes.robot.rehearsal import AHEAD_S
from adahi_ros.policy.backends import load_policy
from adahi_ros.policy.drafting import draft_action
from adahi_ros.wire.request import VerificationRequest
from adahi_ros.wire.window import WireWindow
from adahi_ros.wire.window_updates import SentWindows

WEIGHTS_BYTES = 20_000_000  # of a target of five million
PAUSE_S = 0.02


def parts_of_a_step() -> dict[str, Callable[[], object]]:
    """Return what a robot does in a step of the kitchen, with one observation."""
    policy = load_policy(asset("checkpoints/kitchen") / "draft", "onnxruntime")
    spec, rng = policy.spec, np.random.default_rng(0)
    window = rng.normal(size=(1, spec.window_length, spec.observation_dim)).astype(np.float32)
    goal = np.zeros((1, spec.goal_dim), np.float32)
    uniforms = rng.random((1, spec.codebooks))
    draft = draft_action(policy, window, goal, uniforms, 1.0)
    request = VerificationRequest(window, goal, draft.codes, draft.counts)
    question = Question(request, 0, 0, WireWindow.of(window[0], goal[0]))
    answer = VerifyDraft.Response(
        codes=array("H", draft.codes[0].tolist()),
        accepted=[True] * spec.codebooks,
        offset=array("f", np.zeros(spec.chunk_length * spec.action_dim, np.float32)),
    )
    received = serialize_message(answer)

    def write() -> None:
        update = SentWindows().update(WireWindow.of(window[0], goal[0]))
        serialize_message(to_request(request, update, "robot", 0, 0, 0, 0))

    def read() -> None:
        verification = judged(
            spec, question, deserialize_message(received, VerifyDraft.Response), 0.0
        ).verification
        assert verification is not None
        verification.chunks(policy.decoder)

    return {
        "draft": lambda: draft_action(policy, window, goal, uniforms, 1.0),
        "write the question": write,
        "read and judge the answer": read,
    }


def main(
    rounds: Annotated[int, typer.Option(min=1, help="Repetitions of every part.")] = 200,
    json_file: Annotated[Path | None, typer.Option("--json", help="Write the figures to this file.")] = None,
) -> None:
    """Time the parts of a control step in a loop, after a pause, and after a pause and a rehearsal.

    A pause is 20 ms of sleep, and 20 MB that are read.
    """
    others = np.ones(WEIGHTS_BYTES // 4, np.float32)

    def pause() -> None:
        time.sleep(PAUSE_S)
        others.sum()

    def rehearsed(part: Callable[[], object]) -> None:
        pause()
        part()
        time.sleep(AHEAD_S)

    before: dict[str, Callable[[Callable[[], object]], object]] = {
        "in a loop": lambda part: part(),
        "after a pause": lambda part: pause(),
        "and a rehearsal": rehearsed,
    }
    taken: dict[str, dict[str, float]] = {}
    for name, part in parts_of_a_step().items():
        times_us: dict[str, list[float]] = {when: [] for when in before}
        for _ in range(rounds):
            for when, prepare in before.items():
                prepare(part)
                start = time.perf_counter()
                part()
                times_us[when].append(1e6 * (time.perf_counter() - start))
        taken[name] = {when: float(np.median(values)) for when, values in times_us.items()}
    table = Table(title=f"median of {rounds}, us", title_justify="left")
    table.add_column("part")
    for when in before:
        table.add_column(when, justify="right")
    for name, values in taken.items():
        table.add_row(name, *(f"{values[when]:.0f}" for when in before))
    Console().print(table)
    if json_file is not None:
        json_file.write_text(json.dumps({"median_us": taken}, indent=2) + "\n")


if __name__ == "__main__":
    typer.run(main)
