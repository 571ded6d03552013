"""Metrics over HTTP: what Prometheus reads, and what clients cannot do to it."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator
from contextlib import closing
from typing import Any
from urllib.request import Request, urlopen

import pytest

pytest.importorskip("rclpy")
pytest.importorskip("prometheus_client")

from prometheus_client import Metric
from prometheus_client.openmetrics.parser import text_string_to_metric_families as open_metrics
from prometheus_client.parser import text_string_to_metric_families

from adahi_ros.nodes.common.metrics_server import PLACES, MetricsServer, histogram, metric
from adahi_ros.nodes.common.parameters import ParameterError

DEADLINE_S = 30.0
Samples = dict[tuple[str, tuple[tuple[str, str], ...]], float]


def read(url: str, **headers: str) -> str:
    with urlopen(Request(url, headers=headers), timeout=DEADLINE_S) as reply:
        text: str = reply.read().decode()
    return text


def place(server: MetricsServer) -> tuple[str, int]:
    host, port = server.server_address[:2]
    return str(host), port


def at(server: MetricsServer) -> str:
    return "http://{}:{}/metrics".format(*place(server))


def samples(url: str) -> Samples:
    """From names and labels to values, by the parser of prometheus_client."""
    families = list(text_string_to_metric_families(read(url)))
    found = [sample for family in families for sample in family.samples]
    values = {(each.name, tuple(sorted(each.labels.items()))): each.value for each in found}
    assert len(values) == len(found), "Prometheus refuses two samples of one name and label"
    return values


def two() -> Iterator[Metric]:
    yield metric("adahi_two", "Two", [({"robot": 'a"\\\n'}, 2.0)])
    yield metric("adahi_steps_total", "Steps", [({}, 3)])
    yield histogram("adahi_size", "Sizes", (1, 2.5), [4, 0, 1], 14.5)


@pytest.fixture
def serve() -> Iterator[Callable[..., MetricsServer]]:
    """From what makes metrics to a server at a free port."""
    made: list[MetricsServer] = []

    def serve(collect: Any = two, host: str = "127.0.0.1", port: int = 0) -> MetricsServer:
        made.append(MetricsServer("metrics_port", host, port, collect))
        return made[-1]

    yield serve
    for each in made:
        each.close()


def test_text_is_read_by_the_parsers_of_prometheus(serve: Callable[..., MetricsServer]) -> None:
    url = at(serve())
    upto = {"1": 4.0, "2.5": 4.0, "+Inf": 5.0}
    buckets: Samples = {("adahi_size_bucket", (("le", bound),)): count for bound, count in upto.items()}
    expected: Samples = {
        ("adahi_two", (("robot", 'a"\\\n'),)): 2.0,
        ("adahi_steps_total", ()): 3.0,
        **buckets,
        ("adahi_size_count", ()): 5.0,
        ("adahi_size_sum", ()): 14.5,
    }
    assert samples(url) == expected
    families = open_metrics(read(url, Accept="application/openmetrics-text; version=1.0.0"))
    assert [(each.name, each.type) for each in families] == [
        ("adahi_two", "gauge"),
        ("adahi_steps", "counter"),
        ("adahi_size", "histogram"),
    ]


def test_it_listens_at_one_address_alone(serve: Callable[..., MetricsServer]) -> None:
    server = serve(host="127.0.0.2")
    assert samples(at(server))
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", server.server_address[1]), DEADLINE_S)


@pytest.mark.parametrize(
    ("host", "fault"),
    [("127.0.0.1", "Address already in use"), ("203.0.113.1", "Cannot assign"), ("x.invalid", "")],
)
def test_where_it_cannot_listen_the_parameter_is_named(
    serve: Callable[..., MetricsServer], host: str, fault: str
) -> None:
    port = serve().server_address[1]
    with pytest.raises(ParameterError, match=rf"^metrics_port: {port}, cannot listen at '{host}' \({fault}"):
        serve(host=host, port=port)


def test_clients_that_send_nothing_end_for_others(serve: Callable[..., MetricsServer]) -> None:
    server = serve()
    idle = [socket.create_connection(place(server), DEADLINE_S) for _ in range(PLACES + 2)]
    assert samples(at(server))
    assert [each.recv(1) for each in idle[:3]] == [b""] * 3  # the first come had to leave
    for each in idle:
        each.close()


def test_an_error_costs_one_reply_and_a_closed_server_keeps_nothing(
    serve: Callable[..., MetricsServer], capfd: pytest.CaptureFixture[str]
) -> None:
    faults = [ZeroDivisionError("of a test")]

    def once() -> Iterator[Metric]:
        if faults:
            raise faults.pop()
        return two()

    server = serve(once)
    with pytest.raises(OSError):  # noqa: PT011  the connection ends without a reply
        read(at(server))
    assert samples(at(server))
    waiting = socket.create_connection(place(server), DEADLINE_S)
    assert samples(at(server))  # so the one that waits was accepted before
    server.close()
    with closing(waiting):
        assert waiting.recv(1) == b""
    assert list(server.collect()) == []
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(place(server), DEADLINE_S)
    assert "ZeroDivisionError: of a test" in capfd.readouterr().err
