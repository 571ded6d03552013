# SPDX-License-Identifier: Apache-2.0
"""KERV and HeiSD on the token policy: second passes saved, time, accepted length and success, in one process.

    .venv/bin/python benchmarks/token_methods.py TASK FOLDER [--episodes 200] [--timed 3] [--rows FILE]

Every method decodes one action per control step, greedily, as OpenVLA's methods do. With `--rows`, what a
file has is not measured again. Times are of single robots, in further episodes.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from rich.console import Console

from adahi_ros.acceptance.action_tokens import ActionJudge
from adahi_ros.acceptance.compensated import Compensated
from adahi_ros.acceptance.interface import Verdict
from adahi_ros.core.proposal import Proposal
from adahi_ros.gates.gate_config import ControllerConfig, ThresholdedGate
from adahi_ros.lab.evaluation.episodes import evaluation_episodes
from adahi_ros.lab.evaluation.evaluate import batches
from adahi_ros.lab.evaluation.metrics import mcnemar, wilson_interval
from adahi_ros.lab.evaluation.rollout import rollout
from adahi_ros.lab.reporting.tables import narrow_table, number
from adahi_ros.lab.tasks import make
from adahi_ros.policies.backends import load_policy
from adahi_ros.policies.tokens.token_policy import TokenPolicy
from adahi_ros.robot.controller import Controller
from adahi_ros.server.verifier import TargetVerifier

SEED = 11
TARGET, SPECULATIVE = "target", "speculative, exact"
METHODS: dict[str, Mapping[str, Any]] = {
    TARGET: {"first": 0.0, "last": 0.0, "every": 0},
    SPECULATIVE: {"first": 0.0, "last": 0.0, "every": 0},
    "relaxed, 9 bins (Spec-VLA)": {"first": 9.0, "last": 9.0, "every": 0},
    "KERV's threshold alone": {"every": 0},
    "KERV's filter alone": {"first": 0.0, "last": 0.0},
    "KERV": {},
    "KERV, filter at every step": {"every": 1},
}
"""Arguments of the proposer `compensated`."""


class Watched(Compensated):
    """The rule `compensated`; counts what it decides.

    Args:
        alone: the target decodes by itself, token by token.
    """

    def __init__(self, alone: bool) -> None:
        self._alone = alone
        self.passes: list[np.ndarray] = []
        self.accepted: list[np.ndarray] = []
        self.completed: list[np.ndarray] = []

    def verify(
        self,
        draft: Proposal,
        target: Proposal,
        draws: np.ndarray,
        round_trip_ms: np.ndarray | None = None,
    ) -> Verdict:
        """See `Acceptance`."""
        if self._alone:
            judge = ActionJudge(draft, target)
            judge.end[:] = 0
            while not judge.done:
                judge.known = np.minimum(judge.known, judge.position + 1)  # nothing is known ahead
                judge.test()
                judge.read(0)
            self._count(judge, np.zeros(judge.tokens.shape, dtype=bool))
            return judge.verdict(judge.action_of(judge.tokens))
        made = self.decide(draft, target)
        self._count(made.judge, made.completed)
        return made.judge.verdict(made.actions)

    def _count(self, judge: ActionJudge, completed: np.ndarray) -> None:
        self.passes.append(judge.passes.copy())
        self.accepted.append(judge.accepted.cumprod(axis=1).sum(axis=1))
        self.completed.append(completed.sum(axis=1))


@dataclass
class Played:
    """Episodes of one method.

    Attributes:
        success: of each episode.
        passes, accepted, completed: means per action: passes of the target, drafted tokens before the first
            that is not kept, and predicted entries.
        requests: of a control step.
        second: actions with more than one pass.
        actions: of all episodes.
        draft_ms, target_ms: medians of a control step of one robot.
    """

    success: list[bool]
    passes: float
    accepted: float
    completed: float
    requests: float
    second: float
    actions: int
    draft_ms: float = 0.0
    target_ms: float = 0.0


class Timed:
    """Measures calls of a method of an object, in ms."""

    def __init__(self, owner: Any, name: str) -> None:
        self.ms: list[float] = []
        call = getattr(owner, name)

        def measured(*arguments: Any, **named: Any) -> Any:
            started = time.perf_counter()
            made = call(*arguments, **named)
            self.ms.append(1e3 * (time.perf_counter() - started))
            return made

        setattr(owner, name, measured)


class Bench:
    """Task and policies.

    Args:
        task: by its registry name.
        folder: of draft and target.
        backend: of both.
    """

    def __init__(self, task: str, folder: Path, backend: str) -> None:
        self.world, self.folder = make(task), folder
        self.draft, self.target = (load_policy(folder / name, backend) for name in ("draft", "target"))
        assert isinstance(self.target, TokenPolicy)

    def parts(self, name: str) -> tuple[Controller, TargetVerifier, Watched]:
        """Return what runs a method."""
        config = ControllerConfig(ThresholdedGate("always", 0.0))
        controller = Controller(self.draft, config, "compensated", arguments=METHODS[name])
        rule = Watched(name == TARGET)
        verifier = TargetVerifier(self.target, "compensated")
        verifier.acceptance = rule
        return controller, verifier, rule

    def play(self, name: str, episodes: int, timed: int) -> Played:
        """Run a method in `episodes` episodes side by side, and in `timed` others one by one."""
        success, asked, active = [], 0, 0
        counts = []
        for numbers in batches(list(evaluation_episodes(episodes))):
            controller, verifier, rule = self.parts(name)
            log = rollout(self.world, controller, verifier, SEED, numbers)
            success += self.world.success.tolist()
            sent = log.active & log.transmitted
            asked, active = asked + int(sent.sum()), active + int(log.active.sum())
            # The evaluation verifies every draft; those of robots that have ended do not count.
            counts.append(
                [np.stack(each)[log.active] for each in (rule.passes, rule.accepted, rule.completed)]
            )
        passes, accepted, completed = (np.concatenate(each) for each in zip(*counts, strict=True))
        played = Played(
            success=success,
            passes=float(passes.mean()),
            accepted=float(accepted.mean()),
            completed=float(completed.mean()),
            requests=asked / active,
            second=float((passes - 1).sum() / active),
            actions=active,
        )
        controller, verifier, _ = self.parts(name)
        drafting, judging = Timed(controller, "begin"), Timed(verifier, "verdict")
        for one in evaluation_episodes(timed):
            rollout(self.world, controller, verifier, SEED, [one])
        played.draft_ms, played.target_ms = (float(np.median(each.ms)) for each in (drafting, judging))
        return played


def main(
    task: str,
    folder: Path,
    episodes: Annotated[int, typer.Option(min=1, help="Of each method")] = 200,
    timed: Annotated[int, typer.Option(min=1, help="Episodes of single robots, for times")] = 3,
    rows: Annotated[Path | None, typer.Option(help="JSON file of what is measured already")] = None,
    backend: str = "onnxruntime",
) -> None:
    """Print the table."""
    bench = Bench(task, folder, backend)
    known = json.loads(rows.read_text()) if rows is not None and rows.exists() else {}
    played: dict[str, Played] = {}
    for name in METHODS:
        played[name] = Played(**known[name]) if name in known else bench.play(name, episodes, timed)
        if rows is not None:
            rows.write_text(json.dumps({each: asdict(values) for each, values in played.items()}))
    size = bench.target.signature.action_dim
    table = narrow_table(
        f"{task}: one action per request, {episodes} episodes, seed {SEED}, {backend}",
        ["method"],
        ["success", "95 %", "McNemar", "accepted", "passes", "saved", "predicted", "draft ms", "target ms"],
        "McNemar: episodes that only this method, only the target alone solves; p. Accepted: drafted tokens "
        f"of {size} before the first that is not kept. Passes: of the target, per "
        "action. Saved: second and later passes, against exact speculation. Predicted: entries per action",
    )
    own, exact = played[TARGET].success, played[SPECULATIVE].second
    for name, each in played.items():
        pair = mcnemar(np.array(each.success), np.array(own))
        low, high = wilson_interval(sum(each.success), len(each.success))
        table.add_row(
            name,
            number(float(np.mean(each.success))),
            f"{low:.2f}-{high:.2f}",
            "" if name == TARGET else f"{pair.only_this}:{pair.only_other} ({pair.p:.2f})",
            "" if name == TARGET else number(each.accepted, 2),
            number(each.passes, 2),
            "" if name in (TARGET, SPECULATIVE) else f"{1 - each.second / exact:.0%}",
            number(each.completed, 2) if each.completed else "",
            number(each.draft_ms, 2),
            number(each.target_ms, 2),
        )
    Console(width=140).print(table)


if __name__ == "__main__":
    typer.run(main)
