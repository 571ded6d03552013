"""What a verifier serves to Prometheus, over HTTP."""

from __future__ import annotations

import socket
import sys
import time
from collections import Counter
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("prometheus_client")

from adahi_msgs.srv import VerifyDraft

from adahi_ros.nodes.server.robot_messages import from_request
from adahi_ros.nodes.server.target_verifier_node import TargetVerifierNode
from adahi_ros.protocol.request import PROTOCOL_VERSION
from adahi_ros.server.service import NAMED_MOST, OTHERS
from test.nodes.conftest import Make
from test.nodes.test_metrics_server import Samples, samples


def free_port() -> int:
    with closing(socket.create_server(("127.0.0.1", 0))) as found:
        return int(found.getsockname()[1])


@pytest.fixture
def start(make_node: Make, exported: Path) -> Callable[..., tuple[TargetVerifierNode, str]]:
    """From parameters to an active verifier with metrics, and where they are."""

    def start(**parameters: Any) -> tuple[TargetVerifierNode, str]:
        port = free_port()
        given = {"checkpoint": str(exported / "target"), "autostart": False, "metrics_port": port}
        node: TargetVerifierNode = make_node(TargetVerifierNode, given={**given, **parameters})
        node.trigger_configure()
        node.trigger_activate()
        return node, f"http://127.0.0.1:{port}/metrics"

    return start


def ask(node: TargetVerifierNode, robot_id: str, **changes: Any) -> None:
    good = {"protocol": PROTOCOL_VERSION, "observation_window": [0.5] * 18, "goal": [0.1, -0.1]}
    request = VerifyDraft.Request(**{**good, "robot_id": robot_id, **changes})
    node._service.replies([from_request(request)], time.monotonic())


def of(found: Samples, name: str) -> dict[tuple[str, ...], float]:
    """The values of a metric, by those of its labels."""
    return {
        tuple(value for _, value in labels): found[name, labels] for name_, labels in found if name_ == name
    }


def test_requests_replies_and_batches_are_those_that_were_served(
    start: Callable[..., tuple[TargetVerifierNode, str]],
) -> None:
    node, url = start(robots=["r1", "r2"])
    assert of(samples(url), "adahi_verifier_requests_total") == {("r1",): 0.0, ("r2",): 0.0}
    for _ in range(2):
        ask(node, "r1")
    ask(node, "r2", protocol=PROTOCOL_VERSION + 1)
    node._service.spent(3, 0.004)
    node._service.spent(200, 7.0)
    node._service.unheard(SimpleNamespace(robot_id="r1"), "reliable")  # type: ignore[arg-type]
    found = samples(url)
    assert of(found, "adahi_verifier_requests_total") == {("r1",): 2.0, ("r2",): 1.0}
    replies = of(found, "adahi_verifier_replies_total")
    assert replies == {(name,): float(count) for name, count in node._service.counts.replies.items()}
    assert replies["protocol_mismatch",] == 1.0
    assert of(found, "adahi_verifier_lost_replies_total") == {(): 1.0}
    sizes, times = (of(found, f"adahi_verifier_batch_{name}_bucket") for name in ("size", "seconds"))
    assert [sizes[bound,] for bound in ("2", "4", "128", "+Inf")] == [0.0, 1.0, 1.0, 2.0]
    assert [times[bound,] for bound in ("0.0025", "0.005", "5", "+Inf")] == [0.0, 1.0, 1.0, 2.0]
    assert of(found, "adahi_verifier_batch_size_sum") == {(): 203.0}
    assert of(found, "adahi_verifier_batch_seconds_sum") == {(): pytest.approx(7.004)}


def test_invented_names_make_no_more_rows(start: Callable[..., tuple[TargetVerifierNode, str]]) -> None:
    node, url = start(robots=["r1"])
    for number in range(3 * NAMED_MOST):
        ask(node, f'"\n{number}')
    ask(node, "r1")
    requests = of(samples(url), "adahi_verifier_requests_total")
    assert len(requests) == NAMED_MOST + 1
    assert (requests["r1",], requests[OTHERS,]) == (1.0, 2.0 * NAMED_MOST + 1)
    assert requests['"?0',] == 1.0


def test_metrics_follow_the_life_of_the_node(start: Callable[..., tuple[TargetVerifierNode, str]]) -> None:
    node, url = start()
    ask(node, "r1")
    active = samples(url)
    assert of(active, "adahi_verifier_active") == {(): 1.0}
    assert of(active, "adahi_verifier_waiting_requests") == {(): 0.0}
    node.trigger_deactivate()
    resting = samples(url)
    assert of(resting, "adahi_verifier_active") == {(): 0.0}
    assert of(resting, "adahi_verifier_requests_total") == {("r1",): 1.0}
    node.trigger_cleanup()
    with pytest.raises(OSError, match="refused"):
        samples(url)
    node.trigger_configure()
    assert (
        of(samples(url), "adahi_verifier_requests_total") == {}
    )  # of another target: Prometheus sees a reset


def test_memory_is_that_of_process_and_gpu(
    start: Callable[..., tuple[TargetVerifierNode, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    node, url = start()
    found = samples(url)
    assert of(found, "adahi_verifier_memory_bytes")[()] > 1e6
    assert of(found, "adahi_verifier_device_memory_bytes") == {}
    cuda = SimpleNamespace(
        memory_allocated=Counter({"cuda:1": 5}).__getitem__,
        max_memory_allocated=Counter({"cuda:1": 7}).__getitem__,
        get_device_properties=lambda device: SimpleNamespace(total_memory=100),
    )
    monkeypatch.setitem(sys.modules, "torch", SimpleNamespace(cuda=cuda))
    target = node._service.targets.named("")
    object.__setattr__(target, "device", "cuda:1")
    found = samples(url)
    device = [of(found, f"adahi_verifier_device_memory{name}_bytes")[()] for name in ("", "_peak", "_total")]
    assert device == [5.0, 7.0, 100.0]


@pytest.mark.parametrize(
    ("missing", "fault"),
    [(False, "metrics_port: {}, cannot listen at '127.0.0.1'"), (True, "prometheus_client: not")],
)
def test_a_node_that_cannot_serve_metrics_says_why(
    make_node: Make, exported: Path, monkeypatch: pytest.MonkeyPatch, missing: bool, fault: str
) -> None:
    if missing:
        monkeypatch.setitem(sys.modules, "prometheus_client", None)
        for name in ("common.metrics_server", "server.verifier_metrics"):
            monkeypatch.delitem(sys.modules, f"adahi_ros.nodes.{name}", raising=False)
    with closing(socket.create_server(("127.0.0.1", 0))) as taken:
        port = taken.getsockname()[1]
        given = {"checkpoint": str(exported / "target"), "autostart": False, "metrics_port": port}
        node = make_node(TargetVerifierNode, given=given)
        node.trigger_configure()
    assert node.last_error.startswith(fault.format(port))
