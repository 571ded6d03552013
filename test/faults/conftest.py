"""Real nodes at the two ends of an emulated link, and what must hold whatever happens to them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from adahi_lab.bench.link_ends import Stage, stage_across
from adahi_lab.bench.robot_log import LogPart, Replay, Shown, mistimed, never, unaccounted
from adahi_lab.link.emulator import emulated_link
from adahi_lab.link.link_profile import LinkProfile, profile_named
from adahi_ros.gates.gate_config import ControllerConfig, ThresholdedGate
from adahi_ros.nodes.launching.child_processes import NodeProcess
from adahi_ros.policies.backends import load_policy

SEED = 5
RATE_HZ = 30.0
DEADLINE_S = 0.025
UNHURRIED_S = 60.0  # however late what was shown is, it is acted on
GATE = ThresholdedGate("random", 0.1)  # the other steps are asked about
JOINTS = ["plate_roll_joint", "plate_pitch_joint"]


class Scene:
    """A robot that steps across a link.

    Attributes:
        stage: with the nodes.
        profile: of the link where it has no fault.
        draft, verifier: the nodes that tests kill and start again.
    """

    def __init__(
        self, stage: Stage, profile: LinkProfile, checkpoints: Path, common: Mapping[str, Any]
    ) -> None:
        self.stage = stage
        self.profile = profile
        self._checkpoints = checkpoints
        self._common = dict(common)
        policies = [load_policy(checkpoints / name, "onnxruntime") for name in ("draft", "target")]
        self._replay = Replay(policies[0], policies[1], ControllerConfig(GATE), SEED)
        self.verifier = self.start_verifier()
        self.draft = self.start_draft()

    def start_verifier(self, checkpoints: Path | None = None) -> NodeProcess:
        """Start one, and wait until it serves."""
        target = (checkpoints or self._checkpoints) / "target"
        return self.stage.start_verifier({"checkpoint": str(target), "seed": SEED, **self._common})

    def start_draft(self) -> NodeProcess:
        return self.stage.start_draft(
            {
                "checkpoint": str(self._checkpoints / "draft"),
                "command": {"lockstep": True},
                "seed": SEED,
                "gate": {"name": GATE.name, "threshold": GATE.threshold},
                "deadline_s": DEADLINE_S,
                "verifier_wait_s": 60.0,
                "safety.hold_after_s": UNHURRIED_S,
                **self._common,
            },
            RATE_HZ,
            UNHURRIED_S,
        )

    def kill(self, process: NodeProcess) -> None:
        self.stage.processes.kill(process)
        assert "Traceback" not in process.output

    def resumed_since(self, at_s: float) -> int:
        """Wait until an observation of after a moment is verified; return which one of them it is, from 0.

        Which one depends on the machine: a reply is in time within 25 ms, and each miss costs a pause.
        """
        self.stage.wait(lambda: self.stage.log.since(at_s).unverified() is not None, "verified step")
        resumed = self.stage.log.since(at_s).unverified()
        assert resumed is not None
        return resumed

    def steps_since(self, at_s: float, count: int) -> LogPart:
        """Wait for the commands to so many observations of after a moment; return what became of them."""
        self.stage.wait(lambda: len(self.stage.log.since(at_s).records) >= count, f"{count} steps")
        return self.stage.log.since(at_s)

    def check(self, since_s: float, excused: Callable[[Shown], bool] = never) -> str:
        """Check that no step so far is missing or wrong, and that each waited as it must have.

        How late commands are tells how busy the machine is: that is told, and nothing is asked of it.

        Args:
            since_s: when the fault began.
            excused: from a command, as in `unaccounted`.

        Returns:
            What the fault has cost since then, for people.
        """
        log = self.stage.log
        assert unaccounted(log, excused) == []
        assert self._replay.differences(log) == []
        assert mistimed(log.records, DEADLINE_S) == []
        part = log.since(since_s)
        reasons = {reason.name: count for reason, count in part.reasons().items()}
        p95, largest = np.percentile(part.latencies_s(), [95, 100]) * 1e3
        return f"{len(part.records)} steps {reasons}, to the command p95 {p95:.1f} ms, p100 {largest:.1f} ms"


@pytest.fixture(scope="session")
def other_tokenizer(make_checkpoints: Callable[..., Path]) -> Path:
    """Policies of the same sizes that mean other actions by the same codes."""
    other = make_checkpoints(seed=1)
    load_policy(other / "target", "onnxruntime")
    return other


@contextmanager
def _scene(checkpoints: Path, robot: Mapping[str, Any], common: Mapping[str, Any]) -> Iterator[Scene]:
    profile = profile_named("wifi_ac")
    with emulated_link(profile, SEED) as link, stage_across(link) as stage:
        stage.start_robot({"seed": SEED, "rate_hz": RATE_HZ, "joint_names": JOINTS, **robot})
        scene = Scene(stage, profile, checkpoints, common)
        scene.stage.wait(lambda: scene.stage.log.since(0.0).unverified() is not None, "verified step")
        yield scene
        stage.processes.end()
        for process in stage.processes.all:
            assert process.exit_code == 0, process.output
            assert "Traceback" not in process.output


@pytest.fixture(scope="module")
def scene(exported: Path) -> Iterator[Scene]:
    """Everyone at work, and well."""
    with _scene(exported, {}, {}) as scene:
        yield scene


@pytest.fixture(scope="module")
def jumping(exported: Path) -> Iterator[Scene]:
    """The same, by a clock that is set an hour ahead, and back again, every two seconds."""
    robot = {"clock_jump_s": 3600.0, "clock_jump_period_s": 2.0}
    with _scene(exported, robot, {"use_sim_time": True}) as scene:
        yield scene
