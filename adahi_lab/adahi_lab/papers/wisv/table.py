# SPDX-License-Identifier: Apache-2.0
"""WISV on the token policy: accepted length, rounds, bytes, latency and success, by both ways to upload.

    .venv/bin/python -m adahi_lab.papers.wisv.table TASK FOLDER [--episodes 50] [--lessons FILE] [--rows FILE]

All methods decode greedily, and draft again behind a refused token; they differ in which tokens they keep.
Verdicts do not depend on the way to upload, so each runs once and both are counted. Latencies are modelled:
mean round trips, bytes at the link's rate, and lost messages sent again; no compute. `--lessons` trains the
heads of the ablations on the lessons of `adahi train states`, which it reads from the file, or makes and
writes. With `--rows`, what a file has is not measured again.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import Annotated

import numpy as np
import torch
import typer
from rich.console import Console

from adahi_lab.evaluation.episodes import evaluation_episodes
from adahi_lab.evaluation.evaluate import batches
from adahi_lab.evaluation.loaded_policies import PolicyFiles
from adahi_lab.evaluation.metrics import mcnemar, wilson_interval
from adahi_lab.evaluation.rollout import rollout
from adahi_lab.link.link_profile import LinkProfile, profile_named
from adahi_lab.papers.tokens.token_policy import TokenPolicy
from adahi_lab.papers.tokens.token_sequence import TokenDistribution
from adahi_lab.papers.wisv.hidden_states import (
    CHANNEL_BYTES,
    STEPS,
    DecidedTokens,
    HiddenStates,
    StateHead,
    bits_bytes,
)
from adahi_lab.papers.wisv.state_lessons import StateLessons, lessons
from adahi_lab.papers.wisv.train_states import train_states
from adahi_lab.reporting.tables import narrow_table, number
from adahi_lab.tasks import make
from adahi_ros.acceptance.interface import Verdict
from adahi_ros.core.proposal import Proposal
from adahi_ros.core.tensor_files import read_tensors
from adahi_ros.gates.gate_config import ControllerConfig, ThresholdedGate
from adahi_ros.protocol.window import reply_bytes, request_bytes
from adahi_ros.robot.controller import Controller
from adahi_ros.server.verifier import TargetVerifier

SEED = 11
HEAD = "wisv.safetensors"
EXACT = "speculative, greedy"
LINKS = ("wired", "wifi_ac", "5g", "wifi_bad")
LESSON_EPISODES = 100


@dataclass(eq=False)
class Watched(HiddenStates):
    """The rule; keeps how it decided, on a given channel.

    Attributes:
        made: of every request.
        link: round trip in ms, and loss; None where they are not known.
        reads: what the head reads: `states`, `logits` or `distance`.
        within: keeps tokens so many bins off instead; None for the head.
        given: the head, where it has no file.
        code_out: of the draft, (K, D) and (K,): makes logits of its states.
    """

    made: list[DecidedTokens] = field(default_factory=list)
    link: tuple[float, float] | None = None
    reads: str = "states"
    within: float | None = None
    given: StateHead | None = None
    code_out: tuple[np.ndarray, np.ndarray] | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        self.head = self.given or self.head

    def verify(self, draft: Proposal, target: Proposal, draws: np.ndarray) -> Verdict:
        """See `Acceptance`."""
        channel = np.tile(self.link or (np.nan, np.nan), (len(draft.actions), 1))
        return super().verify(replace(draft, data={**draft.data, "channel": channel}), target, draws)

    def decide(self, draft: Proposal, target: Proposal) -> DecidedTokens:
        """See `HiddenStates`."""
        self.made.append(super().decide(draft, target))
        return self.made[-1]

    def risk(
        self, draft: Proposal, theirs: TokenDistribution, of: np.ndarray, channel: np.ndarray
    ) -> np.ndarray:
        """See `HiddenStates`."""
        ours = draft.distribution
        assert ours is not None
        best = theirs.probabilities[:, : of.shape[1]].argmax(axis=-1)[of]
        apart = np.abs(ours.codes[of] - best)[:, None].astype(np.float64)
        if self.within is not None:
            near: np.ndarray = apart[:, 0] > self.within
            return near.astype(np.float64)
        if self.reads == "states":
            return super().risk(draft, theirs, of, channel)
        assert self.head is not None
        if self.reads == "distance":
            return self.head.risk(apart, channel)
        assert self.code_out is not None
        weight, bias = self.code_out
        logits = np.log(np.maximum(theirs.probabilities[:, : of.shape[1]][of], 1e-7))
        drafted = draft.data["states"][of] / STEPS @ weight.T + bias
        return self.head.risk(np.concatenate([logits, drafted], axis=1), channel)


@dataclass
class Played:
    """Episodes of one method.

    Attributes:
        success: of each episode.
        accepted: mean per round, of drafted tokens before the first that is not kept.
        actions: mean per round, decided.
        requests: mean per episode.
        mismatching: share of the requests in which a token is not the target's.
        first, states: bytes of a request without and with all states, means.
        second: bytes of the second message, where there is one, mean.
        kept: share of the mismatches that were kept, of those that were decided.
    """

    success: list[bool]
    accepted: float
    actions: float
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
        backend: of both.
    """

    def __init__(self, task: str, folder: Path, backend: str) -> None:
        self.task, self.world, self.folder = task, make(task), folder
        self.files = PolicyFiles(folder, backend)
        policies = self.files.load()
        self.draft, self.target = policies.draft, policies.target
        assert isinstance(self.draft, TokenPolicy)
        assert isinstance(self.target, TokenPolicy)
        weights = read_tensors(folder / "draft.safetensors")
        self.code_out = weights["code_out.weight"], weights["code_out.bias"]
        self.size = self.code_out[0].shape[1]

    def play(self, rule: Callable[[], Watched], episodes: int) -> Played:
        """Run a method in so many episodes."""
        success: list[bool] = []
        rows: list[np.ndarray] = []
        read, tokens = self.target.signature, self.target.draws
        for numbers in batches(list(evaluation_episodes(episodes))):
            watched = rule()
            gate = ControllerConfig(ThresholdedGate("never", 0.0))
            controller = Controller(self.draft, gate, "chunk_prefix")
            verifier = TargetVerifier(self.target, "replace")
            verifier.acceptance, verifier._judges = watched, True
            log = rollout(self.world, controller, verifier, SEED, numbers)
            success += self.world.success.tolist()
            asked = [step for step in range(len(log.active)) if log.transmitted[step].any()]
            last = np.full(len(numbers), -read.history)
            for step, made in zip(asked, watched.made, strict=True):
                who = np.flatnonzero(log.transmitted[step])
                real = log.active[step, who]
                gap = np.minimum(step - last[who], read.history)
                last[who] = step
                length = made.judge.accepted.cumprod(axis=1).sum(axis=1)
                counted = made.mismatch & (np.arange(made.mismatch.shape[1]) <= length[:, None])
                columns = (
                    length,
                    made.length / read.action_dim,
                    made.mismatch.sum(axis=1),
                    gap,
                    counted.sum(axis=1),
                    (counted & made.judge.accepted[:, : counted.shape[1]]).sum(axis=1),
                )
                rows.append(np.stack(columns, axis=1)[real])
        accepted, actions, wrong, gap, judged, kept = np.concatenate(rows).T

        def size(rows: float, states: float, goal: bool) -> float:
            data = CHANNEL_BYTES + bits_bytes(tokens) + int(states) * self.size
            goals = read.goal_dim if goal else 0
            numbers = int(rows) * read.observation_dim
            return float(request_bytes(numbers, 0, goals, 0, tokens, rule_data=data))

        brief = [size(each, 0, each == read.history) for each in gap]
        whole = [size(each, tokens, each == read.history) for each in gap]
        more = [size(0, each, False) for each in wrong if each]
        return Played(
            success=success,
            accepted=float(accepted.mean()),
            actions=float(actions.mean()),
            requests=len(accepted) / len(success),
            mismatching=float((wrong > 0).mean()),
            first=float(np.mean(brief)),
            states=float(np.mean(whole)),
            second=float(np.mean(more)) if more else 0.0,
            kept=float(kept.sum() / max(1.0, judged.sum())),
        )


def channel_of(link: LinkProfile) -> tuple[float, float]:
    """Return what a robot measures on a link."""
    lost = 1.0 - (1.0 - link.mean_loss()) ** 2
    return link.rtt_mean_ms + link.transfer_ms(2000.0), lost


def methods_of(bench: Bench, lessons_file: Path | None) -> dict[str, Callable[[], Watched]]:
    """Return what makes the rule of each method, by name."""
    file = str(bench.folder / HEAD)
    found: dict[str, Callable[[], Watched]] = {
        EXACT: lambda: Watched(file, tolerance=0.0),
        "WISV, channel not known": lambda: Watched(file),
    }
    for name in LINKS:
        link = channel_of(profile_named(name))
        found[f"WISV on {name}"] = lambda link=link: Watched(file, link=link)  # type: ignore[misc]
    for bins in (4.0, 32.0):
        found[f"within {bins:.0f} bins"] = lambda bins=bins: Watched(file, within=bins)  # type: ignore[misc]
    found["every token kept"] = lambda: Watched(file, tolerance=1.0)
    if lessons_file is None:
        return found
    if not lessons_file.exists():
        made = lessons(bench.task, bench.files, 0, LESSON_EPISODES, 1)
        np.savez(lessons_file, **{each.name: getattr(made, each.name) for each in fields(made)})
    with np.load(lessons_file) as arrays:
        data = StateLessons(**{name: arrays[name] for name in arrays.files})
    for reads in ("logits", "distance", "target", "draft"):
        head, figures = train_states(data, 0, reads)
        print(f"head on {reads}: ranks {figures['area']} of the pairs right")
        if reads in ("logits", "distance"):
            found[f"a head on {reads}"] = lambda reads=reads, head=head: Watched(  # type: ignore[misc]
                file, reads=reads, given=head, code_out=bench.code_out
            )
    return found


def main(
    task: str,
    folder: Path,
    episodes: Annotated[int, typer.Option(min=1, help="Of each method")] = 50,
    lessons_file: Annotated[Path | None, typer.Option("--lessons", help="For the ablations")] = None,
    rows: Annotated[Path | None, typer.Option(help="JSON file of what is measured already")] = None,
    backend: str = "onnxruntime",
) -> None:
    """Print both tables."""
    torch.set_num_threads(1)
    bench = Bench(task, folder, backend)
    known = json.loads(rows.read_text()) if rows is not None and rows.exists() else {}
    played: dict[str, Played] = {}
    for name, rule in methods_of(bench, lessons_file).items():
        played[name] = Played(**known[name]) if name in known else bench.play(rule, episodes)
        if rows is not None:
            rows.write_text(json.dumps({each: asdict(values) for each, values in played.items()}))
    own, read = np.array(played[EXACT].success), bench.target.signature
    table = narrow_table(
        f"{task}: chunks of {read.horizon} actions, {bench.target.draws} tokens, {episodes} episodes, "
        f"seed {SEED}",
        ["method"],
        ["success", "95 %", "McNemar", "kept", "length", "actions", "rounds", "rounds 2", "kB up", "kB 2"],
        "McNemar: episodes that only this method, only greedy speculation solves; p. Kept: share of the "
        "mismatches. Length: drafted tokens of a round before the first that is not kept. Actions: decided "
        "in a round. Rounds, kB: of an episode; 2: hidden states of mismatches only, in a second message",
    )
    for name, each in played.items():
        pair = mcnemar(np.array(each.success), own)
        low, high = wilson_interval(sum(each.success), len(each.success))
        table.add_row(
            name,
            number(float(np.mean(each.success))),
            f"{low:.2f}-{high:.2f}",
            "" if name == EXACT else str(pair),
            number(each.kept, 2),
            number(each.accepted, 1),
            number(each.actions, 2),
            *(number(each.rounds(at_once), 1) for at_once in (True, False)),
            *(number(each.bytes_up(at_once) / 1e3, 1) for at_once in (True, False)),
        )
    console = Console(width=140)
    console.print(table)
    down = reply_bytes(read.horizon * read.action_dim, bench.target.draws)
    waits = narrow_table(
        f"{task}: what a robot waits in an episode, in ms, at once and mismatch first",
        ["link"],
        ["greedy", "WISV at once", "WISV mismatch first", "waits less", "fewer rounds", "longer"],
        "Greedy: speculation that keeps no mismatch, and sends no hidden states. Less, fewer, longer: WISV "
        "at once, against it; longer is the accepted length. A model of the link, without compute",
    )
    for name in LINKS:
        link, exact, wisv = profile_named(name), played[EXACT], played[f"WISV on {name}"]
        plain = replace(exact, states=exact.first).waiting_ms(link, True, down)
        once, first = (wisv.waiting_ms(link, at_once, down) for at_once in (True, False))
        waits.add_row(
            name,
            number(plain, 0),
            number(once, 0),
            number(first, 0),
            f"{1 - once / plain:.1%}",
            f"{1 - wisv.requests / exact.requests:.1%}",
            f"{wisv.accepted / exact.accepted - 1:.1%}",
        )
    console.print(waits)


if __name__ == "__main__":
    typer.run(main)
