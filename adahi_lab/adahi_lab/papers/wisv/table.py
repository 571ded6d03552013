# SPDX-License-Identifier: Apache-2.0
"""WISV on the token policy: accepted length, rounds, bytes, latency and success, by both ways to upload.

    .venv/bin/python -m adahi_lab.papers.wisv.table TASK FOLDER [--calibrate] [--episodes 100] [--workers 2]

Two forms: in one, the draft continues behind a refused token, round after round, until the chunk is complete,
as in the paper; in the other, on a robot, each round ends with actions, and the next one reads a new
observation. All methods decode greedily, and differ in which tokens they keep. Verdicts do not depend on the
way to upload, so each runs once and both are counted. Latencies are modelled: mean round trips, bytes at the
link's rate, and lost messages sent again; no compute. `--calibrate` compares tolerances on a slow link, on
other episodes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from rich.console import Console

from adahi_lab.evaluation.episodes import calibration_episodes, evaluation_episodes
from adahi_lab.evaluation.evaluate import batches
from adahi_lab.evaluation.loaded_policies import PolicyFiles
from adahi_lab.evaluation.metrics import mcnemar, wilson_interval
from adahi_lab.evaluation.rollout import rollout
from adahi_lab.history import History
from adahi_lab.link.link_profile import LinkProfile, profile_named
from adahi_lab.papers.tokens.token_policy import TokenPolicy
from adahi_lab.papers.tokens.token_sequence import TokenDistribution
from adahi_lab.papers.wisv.chunk_rounds import DRAFTED, in_rounds
from adahi_lab.papers.wisv.hidden_states import CHANNEL_BYTES, DecidedTokens, HiddenStates, bits_bytes
from adahi_lab.parallel import Job, run_jobs
from adahi_lab.reporting.tables import narrow_table, number
from adahi_lab.tasks import make
from adahi_lab.tasks.episodes import episodes, seen_by_target
from adahi_ros.acceptance.interface import Verdict
from adahi_ros.core.proposal import Proposal
from adahi_ros.gates.gate_config import ControllerConfig, ThresholdedGate
from adahi_ros.protocol.window import reply_bytes, request_bytes
from adahi_ros.robot.controller import Controller
from adahi_ros.server.verifier import TargetVerifier

SEED = 11
HEAD = "wisv.safetensors"
EXACT = "speculative, greedy"
LINKS = ("wired", "wifi_ac", "5g", "wifi_bad")
TOLERANCES = (0.1, 0.2, 0.3, 0.4, 0.5)  # compared by `--calibrate`
COLUMNS = ["success", "95 %", "McNemar", "kept", "length", "longer", "rounds", "fewer", "kB up", "kB 2"]
NOTE = (
    "McNemar: episodes that only this method, only greedy speculation solves; p. Kept: share of the "
    "mismatches. Length: drafted tokens of a round before the first that is not kept. Longer, fewer: against "
    "greedy speculation. Rounds, kB: of an episode; 2: hidden states of mismatches only"
)
CHUNK, PREFIX = "rounds within a chunk", "rounds that end with actions"


@dataclass(eq=False)
class Watched(HiddenStates):
    """The rule; keeps how it decided, on a given channel.

    Attributes:
        made: of every request.
        link: round trip in ms, and loss; NaN where they are not known.
        within: keeps tokens so many bins off instead; None for the head.
    """

    made: list[DecidedTokens] = field(default_factory=list)
    link: tuple[float, float] = (np.nan, np.nan)
    within: float | None = None

    def verify(self, draft: Proposal, target: Proposal, draws: np.ndarray) -> Verdict:
        """See `Acceptance`."""
        channel = np.tile(self.link, (len(draft.actions), 1))
        return super().verify(replace(draft, data={**draft.data, "channel": channel}), target, draws)

    def decide(self, draft: Proposal, target: Proposal) -> DecidedTokens:
        """See `HiddenStates`."""
        self.made.append(super().decide(draft, target))
        return self.made[-1]

    def risk(
        self, draft: Proposal, theirs: TokenDistribution, of: np.ndarray, channel: np.ndarray
    ) -> np.ndarray:
        """See `HiddenStates`."""
        if self.within is None:
            return super().risk(draft, theirs, of, channel)
        assert draft.distribution is not None
        best = theirs.probabilities[:, : of.shape[1]].argmax(axis=-1)[of]
        far: np.ndarray = np.abs(draft.distribution.codes[of] - best) > self.within
        return far.astype(np.float64)


@dataclass
class Played:
    """Episodes of one method.

    Attributes:
        success: of each episode.
        accepted: mean per round, of drafted tokens before the first that is not kept.
        requests: mean per episode.
        mismatching: share of the requests in which a token is not the target's.
        first, states: bytes of a request without and with all states, means.
        second: bytes of the second message, where there is one, mean.
        kept: share of the mismatches that were kept, of those that were decided.
    """

    success: list[bool]
    accepted: float
    requests: float
    mismatching: float
    first: float
    states: float
    second: float
    kept: float

    def rounds(self, at_once: bool) -> float:
        """Return the messages with a reply, per episode."""
        return self.requests * (1.0 if at_once else 1.0 + self.mismatching)

    def bytes_up(self, at_once: bool) -> float:
        """Return the bytes of an episode's requests."""
        return self.requests * (self.states if at_once else self.first + self.mismatching * self.second)

    def waiting_ms(self, link: LinkProfile, at_once: bool, down: float) -> float:
        """Return how long the robot waits in an episode."""
        return link.waiting_ms(self.rounds(at_once), self.bytes_up(at_once) + self.requests * down)


class Bench:
    """Task and policies.

    Args:
        task: by its registry name.
        folder: of draft and target.
    """

    def __init__(self, task: str, folder: Path) -> None:
        self.world, policies = make(task), PolicyFiles(folder, "onnxruntime").load()
        assert isinstance(policies.draft, TokenPolicy)
        assert isinstance(policies.target, TokenPolicy)
        self.draft, self.target = policies.draft, policies.target

    def by_prefix(self, rule: Watched, numbers: Sequence[int]) -> list[np.ndarray]:
        """Run episodes in which each round decides actions; return rows (R, 6) as `play` needs them."""
        controller = Controller(self.draft, ControllerConfig(ThresholdedGate("never", 0.0)), "chunk_prefix")
        verifier = TargetVerifier(self.target, "replace")
        verifier.acceptance, verifier._judges = rule, True
        log = rollout(self.world, controller, verifier, SEED, numbers)
        asked = [step for step in range(len(log.active)) if log.transmitted[step].any()]
        history, rows = self.target.signature.history, []
        last = np.full(len(numbers), -history)
        for step, made in zip(asked, rule.made, strict=True):
            who = np.flatnonzero(log.transmitted[step])
            gap = np.minimum(step - last[who], history)
            last[who] = step
            length = made.judge.accepted.cumprod(axis=1).sum(axis=1)
            counted = made.mismatch & (np.arange(made.mismatch.shape[1]) <= length[:, None])
            kept = (counted & made.judge.accepted[:, : counted.shape[1]]).sum(axis=1)
            sent = np.full(len(who), made.mismatch.shape[1])
            columns = length, made.mismatch.sum(axis=1), gap, sent, counted.sum(axis=1), kept
            rows.append(np.stack(columns, axis=1)[log.active[step, who]])
        return rows

    def by_chunk(self, rule: Watched, numbers: Sequence[int]) -> list[np.ndarray]:
        """Run episodes that execute whole chunks, decided in rounds; returns as `by_prefix`."""
        world, rows, actions = self.world, [], np.zeros(0)
        ours, theirs = (History(each.signature, len(numbers)) for each in (self.draft, self.target))
        codec, history = self.target.codec, self.target.signature.history
        for step, active in enumerate(episodes(world, SEED, numbers)):
            visible = seen_by_target(world)
            seen = ours.push(visible), theirs.push(visible)
            at = step % codec.chunk_length
            if at == 0:
                codes, made = in_rounds(self.draft, self.target, seen, rule, rule.link)
                actions, new = codec.decode(codes), min(codec.chunk_length if step else history, history)
                for index, each in enumerate(made):
                    gap = np.full(len(each.rows), 0 if index else new)
                    sent = np.minimum(DRAFTED, codec.codebooks - each.begin)
                    columns = each.accepted, each.mismatches, gap, sent, each.judged, each.kept
                    rows.append(np.stack(columns, axis=1)[active[each.rows]])
            world.step(actions[:, at])
        return rows

    def play(self, form: str, rule: Watched, numbers: Sequence[int]) -> Played:
        """Run a method in episodes."""
        success: list[bool] = []
        rows: list[np.ndarray] = []
        run, read = {PREFIX: self.by_prefix, CHUNK: self.by_chunk}[form], self.target.signature
        for part in batches(numbers):
            rule.made.clear()
            rows += run(rule, part)
            success += self.world.success.tolist()
        accepted, wrong, gap, sent, judged, kept = np.concatenate(rows).T

        def size(rows: int, tokens: int, states: int) -> float:
            data = CHANNEL_BYTES + bits_bytes(tokens) + states * self.draft.hidden_size
            goal = read.goal_dim if rows == read.history else 0
            return float(request_bytes(rows * read.observation_dim, 0, goal, 0, tokens, rule_data=data))

        each = list(zip(gap.tolist(), sent.tolist(), strict=True))
        more = [size(0, tokens, states) for tokens, states in zip(sent, wrong, strict=True) if states]
        return Played(
            success=success,
            accepted=float(accepted.mean()),
            requests=len(accepted) / len(success),
            mismatching=float((wrong > 0).mean()),
            first=float(np.mean([size(new, tokens, 0) for new, tokens in each])),
            states=float(np.mean([size(new, tokens, tokens) for new, tokens in each])),
            second=float(np.mean(more)) if more else 0.0,
            kept=float(kept.sum() / max(1.0, judged.sum())),
        )


def channel_of(link: LinkProfile) -> tuple[float, float]:
    """Return what a robot measures on a link."""
    lost = 1.0 - (1.0 - link.mean_loss()) ** 2
    return link.rtt_mean_ms + link.transfer_ms(2000.0), lost


def played(task: str, folder: Path, form: str, changes: dict[str, Any], numbers: range) -> Played:
    """Run a method, the rule with some arguments changed, in episodes."""
    return Bench(task, folder).play(form, Watched(str(folder / HEAD), **changes), numbers)


def main(
    task: str,
    folder: Path,
    episodes: Annotated[int, typer.Option(min=1, help="Of each method")] = 100,
    calibrate: Annotated[bool, typer.Option("--calibrate", help="Compare tolerances instead")] = False,
    workers: Annotated[int, typer.Option(min=1, help="Processes")] = 2,
) -> None:
    """Print the tables of both forms."""
    methods: dict[str, dict[str, Any]] = {EXACT: {"tolerance": 0.0}}
    if calibrate:
        slow = {"link": channel_of(profile_named(LINKS[-1]))}
        methods |= {f"tolerance {each}": {"tolerance": each, **slow} for each in TOLERANCES}
    else:
        methods |= {f"WISV on {name}": {"link": channel_of(profile_named(name))} for name in LINKS}
        methods["within 4 bins"] = {"within": 4.0}
    numbers = (calibration_episodes if calibrate else evaluation_episodes)(episodes)
    runs = [(form, name) for form in (CHUNK, PREFIX) for name in methods]
    jobs: list[Job[Played]] = [(played, (task, folder, form, methods[name], numbers)) for form, name in runs]
    of_all = dict(zip(runs, run_jobs(jobs, workers), strict=True))
    console, target = Console(width=140), Bench(task, folder).target
    for form in (CHUNK, PREFIX):
        exact = of_all[form, EXACT]
        table = narrow_table(
            f"{task}, {form}: {episodes} {'calibration ' if calibrate else ''}episodes, seed {SEED}",
            ["method"],
            COLUMNS,
            NOTE,
        )
        for name in methods:
            each = of_all[form, name]
            low, high = wilson_interval(sum(each.success), len(each.success))
            table.add_row(
                name,
                number(float(np.mean(each.success))),
                f"{low:.2f}-{high:.2f}",
                "" if name == EXACT else str(mcnemar(np.array(each.success), np.array(exact.success))),
                number(each.kept, 2),
                number(each.accepted, 1),
                f"{each.accepted / exact.accepted - 1:.0%}",
                number(each.rounds(at_once=True), 1),
                f"{1 - each.requests / exact.requests:.1%}",
                *(number(each.bytes_up(at_once) / 1e3, 1) for at_once in (True, False)),
            )
        console.print(table)
        if calibrate:
            continue
        waits = narrow_table(
            f"{task}, {form}: what a robot waits in an episode, in ms, at once and mismatch first",
            ["link"],
            ["greedy", "WISV at once", "WISV mismatch first", "at once waits less"],
            "Greedy: speculation that keeps no mismatch, and sends no hidden states. A model of the link, "
            "without compute",
        )
        for name in LINKS:
            link, wisv = profile_named(name), of_all[form, f"WISV on {name}"]
            down = reply_bytes(target.draws, target.draws)
            plain = replace(exact, states=exact.first).waiting_ms(link, True, down)
            once, first = (wisv.waiting_ms(link, at_once, down) for at_once in (True, False))
            waits.add_row(
                name, number(plain, 0), number(once, 0), number(first, 0), f"{1 - once / plain:.1%}"
            )
        console.print(waits)


if __name__ == "__main__":
    typer.run(main)
