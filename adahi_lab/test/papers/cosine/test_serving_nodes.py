"""CoSine over DDS: a verifier, drafters and robots, each a process with a node."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest
from adahi_msgs.msg import DraftStatus, EpisodeResult
from rclpy.qos import DurabilityPolicy, QoSProfile

from adahi_lab.calibration.parameter_file import load_calibration
from adahi_lab.evaluation.evaluate import Comparison
from adahi_lab.evaluation.loaded_policies import PolicyFiles
from adahi_lab.methods.dds_method import node_parameters
from adahi_lab.methods.methods import METHODS, parse_methods
from adahi_lab.nodes.dds_run import observed
from adahi_lab.papers.cosine.robots_of_nodes import Nodes, serve_robots, serving_nodes
from adahi_lab.papers.cosine.serving import COSINE, Service, Way
from adahi_lab.papers.cosine.serving_nodes import CosineEngine
from adahi_lab.papers.tokens.observed_chunks import Seen, by_robot, load_token_policy, observed_chunks
from adahi_lab.papers.tokens.texts import PolicyText, own_chunk
from adahi_lab.tasks import make
from adahi_ros.core.assets import asset
from adahi_ros.core.registry import arguments_of
from adahi_ros.core.signature import Signature
from adahi_ros.nodes.common.messages import from_status

TOKENS = asset("checkpoints/metaworld/tokens")
ROBOTS, CHUNKS, LENGTH = 2, 3, 32
PASS_S = 0.1
ALONE_S = LENGTH * PASS_S  # a chunk of the target alone takes longer
SERVICE = Service(2, draft_s=0.0, draft_more_s=0.0, pass_s=PASS_S, pass_more_s=0.0)
pytestmark = pytest.mark.timeout(300)


def test_the_namespaces_of_drafters_are_a_list_of_strings() -> None:
    (drafters, *_) = arguments_of(CosineEngine).values()
    assert drafters.default == [""]  # ROS has no empty list
    assert drafters.checked(["/a", "/b"]) == ["/a", "/b"]
    with pytest.raises(ValueError, match="must be a list of different strings"):
        drafters.checked(["/a", "/a"])


@pytest.fixture(scope="module")
def pair() -> tuple[list[list[Seen]], list[list[list[int]]], Signature]:
    """What robots see, the target's own chunks, and its signature."""
    draft, target = (load_token_policy(TOKENS / name) for name in ("draft", "target"))
    seen = by_robot(observed_chunks("metaworld", draft, target, ROBOTS, 11), target)
    seen = [own[:CHUNKS] for own in seen]
    assert [len(own) for own in seen] == [CHUNKS] * ROBOTS
    own = [[own_chunk(PolicyText(draft, target, *each)) for each in own] for own in seen]
    return seen, own, target.signature


@pytest.fixture
def nodes() -> Iterator[Nodes]:
    with serving_nodes([TOKENS / "draft"] * 2, TOKENS / "target", COSINE, SERVICE) as started:
        yield started


@pytest.mark.smoke
def test_robots_get_the_targets_own_chunks_sooner(nodes: Nodes, pair) -> None:  # type: ignore[no-untyped-def]
    seen, own, signature = pair
    made = serve_robots(nodes, seen, signature)
    assert made.chunks == [chunk for each in own for chunk in each]
    assert made.time_s < CHUNKS * ALONE_S
    nodes.processes.end()
    assert [process.exit_code for process in nodes.processes.all] == [0, 0, 0]


def test_robots_go_on_without_drafters_and_with_them_again(nodes: Nodes, pair) -> None:  # type: ignore[no-untyped-def]
    seen, own, signature = pair
    dead, silent, verifier = nodes.processes.all
    first = [[each[0]] for each in seen]
    nodes.processes.kill(dead)
    os.kill(silent.pid, signal.SIGSTOP)
    try:
        made = serve_robots(nodes, first, signature)
        assert made.chunks == [each[0] for each in own]
        assert made.time_s > ALONE_S
        for name in ("/drafter_0", "/drafter_1"):
            assert f"{name}/verify_draft: left out until it replies again" in verifier.output
    finally:
        os.kill(silent.pid, signal.SIGCONT)
    back_s = time.monotonic() + 3.0
    nodes.observer.wait_until(lambda: time.monotonic() > back_s, 10.0, "time", nodes.processes.check)
    made = serve_robots(nodes, [each[1:] for each in seen], signature)
    assert made.chunks == [chunk for each in own for chunk in each[1:]]
    assert made.time_s < (CHUNKS - 1) * ALONE_S


@pytest.mark.timeout(600)
def test_two_robots_do_as_with_the_target_alone() -> None:
    """Real robots' nodes, each with a world of its own in its namespace, share verifier and drafters."""
    task, seed, episodes, deadline_s = "metaworld", 11, {"a": 3, "b": 4}, 60.0
    (name,) = parse_methods("plan:wait=wait+never/replace", on_air=True)
    method, files = METHODS[name], PolicyFiles(TOKENS, "onnxruntime")
    known = files.load()
    calibration = replace(
        load_calibration(asset("config/ball.yaml")),
        draft=known.draft.digest,
        target=known.target.digest,
        task=make(task).spec.name,
    )
    robot, _ = node_parameters(name, task, files, calibration, deadline_s, lockstep=True)
    waiting = {"safety.hold_after_s": 60.0, "command.lockstep": True, "safety.require_enable": False}
    bench, worlds = (
        Comparison(task, files, calibration, seed).bench(),
        {each: make(task) for each in episodes},
    )
    logs = {each: method.run(bench, worlds[each], seed, [episode]) for each, episode in episodes.items()}
    service, way = replace(SERVICE, pass_s=0.0), Way(routed=True, selected=2, pipelined=True)
    with serving_nodes([TOKENS / "draft"] * 2, TOKENS / "target", way, service, tuple(episodes)) as nodes:
        steps: dict[str, list[DraftStatus]] = {each: [] for each in episodes}
        ended: dict[str, list[EpisodeResult]] = {each: [] for each in episodes}
        node = nodes.observer.node
        kept = QoSProfile(depth=1000, durability=DurabilityPolicy.TRANSIENT_LOCAL)
        for each, episode in episodes.items():
            node.create_subscription(DraftStatus, f"/{each}/draft_status", steps[each].append, 1000)
            node.create_subscription(EpisodeResult, f"/{each}/episode_result", ended[each].append, kept)
            given = {"seed": seed, **observed(task), **waiting, **robot, "robot_id": each}
            given |= {"verification.reliability": "reliable", "verifier_wait_s": 120.0}
            nodes.processes.start("draft_policy_node", given, namespace=f"/{each}")
            world = {"task": task, "seed": seed, "first_episode": episode, "episodes": 1, "lockstep": True}
            world["contract"] = given["contract"]
            nodes.processes.start("adahi_lab.nodes.robot_simulator_node", world, namespace=f"/{each}")
        for label in ("configure", "activate"):
            for each in episodes:
                assert nodes.observer.change_state(f"/{each}/draft_policy", label, 180.0)
        nodes.observer.wait_until(lambda: all(ended.values()), 300.0, "episodes")
        wanted = {each: len(log.action) for each, log in logs.items()}  # a status may come after the result
        nodes.observer.wait_until(
            lambda: all(len(steps[each]) >= wanted[each] for each in episodes), 60.0, "statuses"
        )
        verifier = nodes.processes.all[2].output
    assert "left out" not in verifier
    for each, alone in worlds.items():
        records = [from_status(message) for message in steps[each]]
        limits = np.array([alone.spec.action_low, alone.spec.action_high], np.float32)
        executed = np.clip(logs[each].action[:, 0], *limits)
        np.testing.assert_array_equal(np.array([row.action for row in records], np.float32), executed)
        assert ended[each][0].success == alone.success[0]
