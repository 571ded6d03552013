from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from adahi_lab.cli.over_dds import _aged
from adahi_lab.methods.methods import METHODS, runs_on_robot
from adahi_ros.protocol.records import StepRecord
from test.cli.conftest import Fails, Run

pytest.importorskip("rclpy")

from adahi_lab.nodes import dds_run
from adahi_ros.nodes.launching.child_processes import NodeProcesses
from adahi_ros.nodes.monitoring.bag_recorder_node import first_message

ON_AIR = [name for name, method in METHODS.items() if runs_on_robot(method)]


def test_the_demo_needs_no_torch(tmp_path: Path) -> None:
    """As README's first command: `make demo` installs none."""
    (tmp_path / "torch.py").write_text('raise ModuleNotFoundError("torch", name="torch")\n')
    paths = os.pathsep.join([str(tmp_path), *sys.path])
    command = [sys.executable, "-m", "adahi_ros", "demo", "ball", "--report", "--episodes", "1"]
    ended = subprocess.run(
        command,
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": paths},
        capture_output=True,
        text=True,
        timeout=150,
        check=False,
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr


@pytest.mark.parametrize("name", sorted(METHODS.keys() - set(ON_AIR)))
def test_what_no_robot_can_do_is_refused_with_what_one_can(name: str, fails: Fails) -> None:
    output = fails("demo", "ball", "--methods", f"adahi,{name}")
    assert output.startswith(f"adahi: methods: '{name}', must be of {', '.join(ON_AIR)}, or PROPOSER[")


def test_the_age_of_plans_and_intents_is_named(step_record: Callable[..., StepRecord]) -> None:
    drafted, planned = step_record(), [step_record(plan_age=age, proposer="plan") for age in (0, 7, 3)]
    assert _aged([drafted]) == ""
    assert _aged([drafted, *planned]) == ", plans at most 7 steps old"
    by_intent = [step_record(plan_age=39, proposer="intent")]
    assert _aged(by_intent) == ", intents at most 39 steps old"


@pytest.mark.parametrize("deadline_s", [-1, 0.0001, 100])
def test_a_deadline_that_no_robot_takes_is_refused_before_anything_starts(
    deadline_s: float, run: Run
) -> None:
    refused = run("demo", "ball", "--deadline-s", deadline_s, status=2)
    assert "--deadline-s" in refused.output
    assert "starting" not in refused.output


def test_a_file_of_a_method_is_looked_for_in_the_folder_of_the_policies(
    toy: list[object], checkpoints: Path, fails: Fails
) -> None:
    method = "always:hidden_states:file={checkpoints}/{task}-head.safetensors:tolerance=0.1"
    output = fails("demo", "ball", *toy, "--methods", method, "--episodes", 1)
    assert f"{checkpoints}/ball-head.safetensors: no such checkpoint" in output


@pytest.mark.parametrize("lockstep", [True, False])
def test_a_robot_has_a_quota_of_requests_but_in_a_world_that_waits_for_it(
    lockstep: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    class SeenError(Exception):
        pass

    given = {}

    def start(_: Any, module: str, parameters: dict[str, Any], *prefix: Any) -> None:
        given[module] = parameters
        if module == "target_verifier_node":
            raise SeenError

    monkeypatch.setattr(NodeProcesses, "start", start)
    with pytest.raises(SeenError):
        dds_run.run_over_dds("ball", {}, {"checkpoint": "ball/target"}, 0, range(1), lockstep)
    assert given["target_verifier_node"].get("batch.quota_hz") == (0.0 if lockstep else None)


def test_a_run_waits_for_the_recorder_of_each_observed_topic() -> None:
    topics = ["/joint_states", "/task_state", "/diagnostics"]
    output = "[INFO] [1.0] [bag_recorder]: /joint_states: found a publisher, recording\n"
    for received, topic in enumerate(topics):
        assert dds_run.unrecorded("ball", output) == topics[received:]
        output += f"[INFO] [1.0] [bag_recorder]: {first_message(topic)}\n"
    assert dds_run.unrecorded("ball", output) == []


def test_all_methods_run_in_the_one_domain_that_is_shown(
    run: Run, toy: list[object], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    domains = []

    def watched(*arguments: Any, **named: Any) -> Any:
        domains.append(named["domain"])
        return run_over_dds(*arguments, **named)

    run_over_dds = dds_run.run_over_dds
    monkeypatch.setattr(dds_run, "run_over_dds", watched)
    picture = tmp_path / "demo.png"
    output = run("demo", "ball", *toy, "--methods", "draft,target", "--episodes", 1, "--picture", picture)
    (given,) = re.findall(r"watch it: \S*adahi watch --domain (\d+)\n", output.stdout)
    assert domains == [int(given)] * 2
    assert output.stdout.index("watch it") < output.stdout.index("Draft only")


def test_a_cut_suspends_the_verifiers_once_per_episode(monkeypatch: pytest.MonkeyPatch) -> None:
    sent = []
    now = [0.0]
    monkeypatch.setattr("os.kill", lambda pid, number: sent.append((pid, number)))
    monkeypatch.setattr("time.monotonic", lambda: now[0])
    cut = dds_run._Cut(1.0)
    cut.verifiers.append(7)
    for now[0], step in ((0.95, 19), (1.0, 20), (1.05, 21), (2.0, 40), (2.05, 41)):
        cut.on_step(step)
    assert sent == [(7, signal.SIGSTOP), (7, signal.SIGCONT)]


def test_a_demo_with_a_cut_says_what_each_method_lost(run: Run, toy: list[object], tmp_path: Path) -> None:
    figures, picture = tmp_path / "demo.json", tmp_path / "demo.png"
    files = ["--picture", picture, "--json", figures]
    output = run("demo", "ball", *toy, "--methods", "target", "--episodes", 1, "--cut-s", 0.5, *files).stdout
    assert re.search(r"the link was cut for 0.5 s in each of 1 episodes; failed: .+ [01]\n", output)
    assert json.loads(figures.read_text())["methods"]["target"]["fallbacks"] >= 5


def test_a_cut_is_refused_in_lockstep(fails: Fails) -> None:
    assert "lockstep: True" in fails("demo", "ball", "--lockstep", "--cut-s", 1)
