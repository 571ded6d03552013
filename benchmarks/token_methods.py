# SPDX-License-Identifier: Apache-2.0
"""KERV and HeiSD on the token policy: passes saved, accepted length and success, in one process.

    .venv/bin/python benchmarks/token_methods.py TASK FOLDER [--episodes 200] [--proposer NAME] [--rows FILE]

Every method decodes one action per control step, greedily, as OpenVLA's methods do. With `--rows`, what a
file has is not measured again. HeiSD needs an index in FOLDER: `adahi lab index TASK --out FOLDER`. For times
see benchmarks/method_cost.py.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from rich.console import Console

from adahi_ros.acceptance.action_tokens import ActionJudge
from adahi_ros.acceptance.blocks import Blocks
from adahi_ros.acceptance.compensated import Compensated
from adahi_ros.acceptance.interface import Acceptance, Verdict
from adahi_ros.core.proposal import Proposal
from adahi_ros.gates.gate_config import ControllerConfig, ThresholdedGate
from adahi_ros.lab.evaluation.episodes import evaluation_episodes
from adahi_ros.lab.evaluation.evaluate import batches
from adahi_ros.lab.evaluation.loaded_policies import RETRIEVAL
from adahi_ros.lab.evaluation.metrics import mcnemar, wilson_interval
from adahi_ros.lab.evaluation.rollout import rollout
from adahi_ros.lab.reporting.tables import narrow_table, number
from adahi_ros.lab.tasks import make
from adahi_ros.policies.backends import load_policy
from adahi_ros.policies.interface import Actor
from adahi_ros.policies.retrieval import load_retrieval
from adahi_ros.policies.tokens.token_policy import TokenPolicy
from adahi_ros.proposers.retrieval import DraftAndRetrieval
from adahi_ros.robot.controller import Controller
from adahi_ros.server.verifier import TargetVerifier

SEED = 11
TARGET, SPECULATIVE = "target", "speculative, exact"
COMPENSATED, TOOL_PATH = "compensated", "tool_path"
METHODS: dict[str, tuple[str, Mapping[str, Any]]] = {
    TARGET: (COMPENSATED, {"first": 0.0, "last": 0.0, "every": 0}),
    SPECULATIVE: (COMPENSATED, {"first": 0.0, "last": 0.0, "every": 0}),
    "KERV": (COMPENSATED, {}),
    "HeiSD": (TOOL_PATH, {}),
    "KERV's threshold alone": (COMPENSATED, {"every": 0}),
    "KERV's filter alone": (COMPENSATED, {"first": 0.0, "last": 0.0}),
    "KERV, filter at every step": (COMPENSATED, {"every": 1}),
    "relaxed, 9 bins (Spec-VLA)": (COMPENSATED, {"first": 9.0, "last": 9.0, "every": 0}),
    "HeiSD, all verified": (TOOL_PATH, {"skipped": 0}),
    "retrieved actions alone": (TOOL_PATH, {"skipped": 1_000_000, "above": 0.0}),
}
"""By name, the proposer and its arguments."""
GATES = {COMPENSATED: "always", TOOL_PATH: "expected_error"}


class Watched(Acceptance):
    """Verifies as the rule of a proposer does; keeps how.

    Args:
        proposer: a key of `GATES`.
        alone: the target decodes by itself, token by token.
    """

    needs_codes = True
    needs_actions = True

    def __init__(self, proposer: str, alone: bool) -> None:
        self._proposer, self._alone = proposer, alone
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
        judge, actions, completed = self._decided(draft, target)
        self.passes.append(judge.passes.copy())
        self.accepted.append(judge.accepted.cumprod(axis=1).sum(axis=1))
        self.completed.append(completed)
        return judge.verdict(judge.action_of(judge.tokens) if actions is None else actions)

    def _decided(
        self, draft: Proposal, target: Proposal
    ) -> tuple[ActionJudge, np.ndarray | None, np.ndarray]:
        """Return the judge, the actions if they are not its tokens, and how many entries were predicted."""
        none = np.zeros(len(target.actions), dtype=np.int64)
        if self._alone:
            judge = ActionJudge(draft, target)
            judge.end[:] = 0
            while not judge.done:
                judge.known = np.minimum(judge.known, judge.position + 1)  # nothing is known ahead
                judge.test()
                judge.read(0)
            return judge, None, none
        if self._proposer == TOOL_PATH:
            return Blocks().decide(draft, target), None, none
        made = Compensated().decide(draft, target)
        return made.judge, made.actions, made.completed.sum(axis=1)


@dataclass
class Played:
    """Episodes of one method.

    Attributes:
        success: of each episode.
        passes, completed: means per action, of the target's passes and of predicted entries.
        accepted: mean per request, of drafted tokens before the first that is not kept.
        requests: share of the control steps with one.
        second: mean number of further passes per action.
        actions: of all episodes.
    """

    success: list[bool]
    passes: float
    accepted: float
    completed: float
    requests: float
    second: float
    actions: int


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
        proposer, arguments = METHODS[name]
        config = ControllerConfig(ThresholdedGate(GATES[proposer], 0.0))
        actor: Actor = self.draft
        if proposer == TOOL_PATH:
            actor = DraftAndRetrieval(self.draft, load_retrieval(self.folder / RETRIEVAL))
        controller = Controller(actor, config, proposer, arguments=arguments)
        rule = Watched(proposer, name == TARGET)
        verifier = TargetVerifier(self.target, COMPENSATED)
        verifier.acceptance = rule
        return controller, verifier, rule

    def play(self, name: str, episodes: int) -> Played:
        """Run a method in so many episodes."""
        success: list[bool] = []
        counts: list[list[np.ndarray]] = []
        for numbers in batches(list(evaluation_episodes(episodes))):
            controller, verifier, rule = self.parts(name)
            log = rollout(self.world, controller, verifier, SEED, numbers)
            success += self.world.success.tolist()
            # The evaluation verifies every draft, also of robots that sent none or have ended.
            of_each = rule.passes, rule.accepted, rule.completed
            counts.append([log.transmitted[log.active], *(np.stack(each)[log.active] for each in of_each)])
        sent, passes, accepted, completed = (np.concatenate(each) for each in zip(*counts, strict=True))
        return Played(
            success=success,
            requests=float(sent.mean()),
            passes=float((sent * passes).mean()),
            second=float((sent * (passes - 1)).mean()),
            accepted=float(accepted[sent].mean()) if sent.any() else 0.0,
            completed=float(completed.mean()),
            actions=len(sent),
        )


def main(
    task: str,
    folder: Path,
    episodes: Annotated[int, typer.Option(min=1, help="Of each method")] = 200,
    proposer: Annotated[str, typer.Option(help="Only methods of compensated or tool_path")] = "",
    rows: Annotated[Path | None, typer.Option(help="JSON file of what is measured already")] = None,
    backend: str = "onnxruntime",
) -> None:
    """Print the table."""
    bench = Bench(task, folder, backend)
    known = json.loads(rows.read_text()) if rows is not None and rows.exists() else {}
    played: dict[str, Played] = {}
    if proposer not in ("", *GATES):
        raise typer.BadParameter(f"proposer: {proposer!r}, must be one of {', '.join(GATES)}")
    for name, (of, _) in METHODS.items():
        if proposer and of != proposer and name not in (TARGET, SPECULATIVE):
            continue
        played[name] = Played(**known[name]) if name in known else bench.play(name, episodes)
        if rows is not None:
            rows.write_text(json.dumps({each: asdict(values) for each, values in played.items()}))
    size = bench.target.signature.action_dim
    table = narrow_table(
        f"{task}: one action per request, {episodes} episodes, seed {SEED}, {backend}",
        ["method"],
        ["success", "95 %", "McNemar", "requests", "accepted", "passes", "saved", "predicted"],
        "McNemar: episodes that only this method, only the target alone solves; p. Requests: share of the "
        f"steps. Accepted: drafted tokens of {size} before the first that is not kept. Passes: of the "
        "target, per action. Saved: passes after the first of a request, against exact speculation. "
        "Predicted: entries per action",
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
            number(each.requests, 2),
            "" if name == TARGET or not each.requests else number(each.accepted, 2),
            number(each.passes, 2),
            "" if name in (TARGET, SPECULATIVE) else f"{1 - each.second / exact:.0%}",
            number(each.completed, 2) if each.completed else "",
        )
    Console(width=140).print(table)


if __name__ == "__main__":
    typer.run(main)
