"""CoSine over DDS: a verifier, drafters and robots, each a process with a node."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator

import pytest

from adahi_lab.papers.cosine.robots_of_nodes import Nodes, serve_robots, serving_nodes
from adahi_lab.papers.cosine.serving import COSINE, Service
from adahi_lab.papers.tokens.observed_chunks import Seen, by_robot, load_token_policy, observed_chunks
from adahi_lab.papers.tokens.texts import PolicyText, own_chunk
from adahi_ros.core.assets import asset
from adahi_ros.core.signature import Signature

TOKENS = asset("checkpoints/metaworld/tokens")
ROBOTS, CHUNKS, LENGTH = 2, 3, 32
PASS_S = 0.1
ALONE_S = LENGTH * PASS_S  # a chunk of the target alone takes longer
SERVICE = Service(2, draft_s=0.0, draft_more_s=0.0, pass_s=PASS_S, pass_more_s=0.0)
pytestmark = pytest.mark.timeout(300)


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
