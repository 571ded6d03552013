# SPDX-License-Identifier: Apache-2.0
"""A long run across a link with bursts and outages: no late or lost command, no growing memory."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from adahi_lab.bench.endurance import Memory, grown, late_commands, memory_of
from adahi_lab.bench.link_ends import Stage, stage_across
from adahi_lab.bench.robot_log import Replay, RobotLog, mistimed, shortened, unaccounted
from adahi_lab.figures import Figures
from adahi_lab.link.emulator import emulated_link
from adahi_lab.link.link_profile import LinkProfile, profile_named
from adahi_ros.core.assets import asset
from adahi_ros.gates.gate_config import ControllerConfig, ThresholdedGate
from adahi_ros.nodes.launching.child_processes import NodeProcess
from adahi_ros.policies.backends import load_policy
from adahi_ros.protocol.records import Reason

LATE_S = 0.25  # beyond the deadline and the processes' wait for a processor
RATE_HZ = 30.0  # of observations
DEADLINE_S = 0.75 / RATE_HZ  # for the target's reply
START_S = 60.0
SAMPLE_S = 0.5
TICK_S = 5.0  # between two calls of `on_progress`
CUTS_S = (0.3, 1.0, 6.0)  # outages in a period
UP_SHARES = (0.285, 0.285, 0.43)  # of the other time, before each outage
GATE = ThresholdedGate("deviation", 0.9)
JOINTS = ["plate_roll_joint", "plate_pitch_joint"]
PERCENTILES = (50, 95, 99, 100)


@dataclass(frozen=True)
class SoakResult:
    """What a soak found.

    Attributes:
        minutes, rate_hz, seed: as given.
        deadline_s: for the target's reply.
        profile: of the link, as a file has it.
        observations: shown by the robot.
        steps: with a command.
        verified: of them, those with a reply of the target.
        skipped: of them, those without a request.
        fallbacks: of them, drafts executed without the target's reply, by reason.
        command_ms: from an observation to its command, by percentile.
        memory: by process.
        waited_s: longest wait for a processor in one sample period, by process. It explains commands that are
            late by no more than that. 0 where the kernel does not count it.
        faults: why the soak failed; empty if it passed.
    """

    minutes: float
    rate_hz: float
    seed: int
    deadline_s: float
    profile: Figures
    observations: int
    steps: int
    verified: int
    skipped: int
    fallbacks: Mapping[str, int]
    command_ms: Mapping[str, float]
    memory: Mapping[str, Memory]
    waited_s: Mapping[str, float]
    faults: Sequence[str]

    @property
    def passed(self) -> bool:
        return not self.faults

    def values(self) -> Figures:
        """Return everything as JSON has it."""
        growth = {name: {**asdict(each), "growth": each.growth} for name, each in self.memory.items()}
        return {"passed": self.passed, **asdict(self), "memory": growth}


def soak_profile(period_s: float = 60.0) -> LinkProfile:
    """Return the paper's link with bursts of losses; in every period it is cut for 0.3, 1 and 6 s.

    The last outage is longer than the discovery lease of the two ends.
    """
    up_s = (period_s - sum(CUTS_S)) * np.array(UP_SHARES)
    times = [pair for up, cut in zip(up_s, CUTS_S, strict=True) for pair in ((up, 0.0), (cut, 1.0))]
    states = [{"for_s": round(float(for_s), 3), **({"loss": loss} if loss else {})} for for_s, loss in times]
    return profile_named("wifi_ac_bursts").changed({"states": states})


def soak(
    minutes: float,
    profile: LinkProfile | None = None,
    seed: int = 0,
    on_progress: Callable[[float, str], None] = lambda share, what: None,
) -> SoakResult:
    """Let robot, draft policy and verifier run across a link, and watch them.

    Args:
        minutes: how long, from the first verified step.
        profile: of the link; None for `soak_profile`.
        seed: of all draws.
        on_progress: called every few seconds with the elapsed share of the time, and the state.

    Raises:
        LinkUnavailable: this machine refuses to emulate a link.
        DdsRunError: a node has ended.
        TimeoutError: no step was verified at first.
    """
    profile = soak_profile() if profile is None else profile
    folder = asset("checkpoints/ball")
    with emulated_link(profile, seed) as link, stage_across(link) as stage:
        nodes = _start(stage, folder, seed)
        pids = {name: node.pid for name, node in nodes.items()}
        pids["link"] = int(link.robot.net.parts[2])  # a file of its process
        stage.wait(lambda: any(record.verified for record in stage.log.records), "verified step", START_S)
        sizes, waits = _watch(stage, pids, 60.0 * minutes, on_progress)
        stage.processes.end()
        stage.log.read()
        crashes = _crashes(nodes)
    part = stage.log.since(0.0)
    latencies_ms, reasons = 1e3 * part.latencies_s(), part.reasons()
    memory = {name: memory_of(samples) for name, samples in sizes.items()}
    waited = {name: float(max(np.diff(samples), default=0.0)) for name, samples in waits.items()}
    late = late_commands(latencies_ms, 1e3 * (DEADLINE_S + LATE_S + sum(waited.values())))
    verified = sum(record.verified for record in part.records)
    skipped = reasons.pop(Reason.NONE, 0) - verified
    return SoakResult(
        minutes,
        RATE_HZ,
        seed,
        DEADLINE_S,
        profile.values(),
        len(part.shown),
        len(part.records),
        verified,
        skipped,
        {reason.name.lower(): count for reason, count in sorted(reasons.items())},
        {f"p{each}": float(np.percentile(latencies_ms, each)) for each in PERCENTILES},
        memory,
        waited,
        [*crashes, *_wrong_steps(stage.log, folder, seed), *late, *grown(memory)],
    )


def _start(stage: Stage, folder: Path, seed: int) -> dict[str, NodeProcess]:
    draft = {
        "checkpoint": str(folder / "draft"),
        "seed": seed,
        "gate": {"name": GATE.name, "threshold": GATE.threshold},
        "deadline_s": DEADLINE_S,
        "verifier_wait_s": START_S,
        "command": {"lockstep": True},  # the log finds the observation of each command by its stamp
    }
    verifier = {"checkpoint": str(folder / "target"), "seed": seed}
    robot = {"seed": seed, "rate_hz": RATE_HZ, "joint_names": JOINTS}
    return {
        "draft_policy_node": stage.start_draft(draft, RATE_HZ),
        "target_verifier_node": stage.start_verifier(verifier),
        "recording_robot_node": stage.start_robot(robot),
    }


def _crashes(nodes: Mapping[str, NodeProcess]) -> list[str]:
    codes = [f"{name}: ended with code {node.exit_code}" for name, node in nodes.items() if node.exit_code]
    return codes + [str(node.fault("failed")) for node in nodes.values() if "Traceback" in node.output]


def _wrong_steps(log: RobotLog, folder: Path, seed: int) -> list[str]:
    draft, target = (load_policy(folder / name, "onnxruntime") for name in ("draft", "target"))
    differences = Replay(draft, target, ControllerConfig(GATE), seed).differences(log)
    found = (unaccounted(log), mistimed(log.records, DEADLINE_S), differences)
    return [fault for faults in found for fault in shortened(faults)]


def _watch(
    stage: Stage, pids: Mapping[str, int], seconds: float, on_progress: Callable[[float, str], None]
) -> tuple[dict[str, list[int]], dict[str, list[float]]]:
    """Return each process's resident bytes, and its wait for a processor so far, until the time is over."""
    sizes: dict[str, list[int]] = {name: [] for name in pids}
    waits: dict[str, list[float]] = {name: [] for name in pids}
    start_s = time.monotonic()
    reported_s = start_s
    while (now_s := time.monotonic()) - start_s < seconds:
        next_s = now_s + SAMPLE_S
        stage.processes.check()
        for name, pid in pids.items():
            sizes[name].append(resident_bytes(pid))
            waits[name].append(waited_s(pid))
        if now_s - reported_s >= TICK_S:
            reported_s = now_s
            verified = sum(record.verified for record in stage.log.records)
            on_progress((now_s - start_s) / seconds, f"{len(stage.log.records)} steps, {verified} verified")
        stage.wait(lambda: time.monotonic() >= next_s, "time")  # noqa: B023
    return sizes, waits


def resident_bytes(pid: int) -> int:
    """Return the resident memory of a process, counted page by page: the kernel's sum is only approximate."""
    with open(f"/proc/{pid}/smaps_rollup") as file:
        (line,) = (line for line in file if line.startswith("Rss:"))
    return 1024 * int(line.split()[1])


def waited_s(pid: int) -> float:
    """Return how long the first thread of a process, the working one, has waited for a processor."""
    try:
        return 1e-9 * int(Path(f"/proc/{pid}/schedstat").read_text().split()[1])
    except FileNotFoundError:  # a kernel without CONFIG_SCHED_INFO
        return 0.0
