# SPDX-License-Identifier: Apache-2.0
"""Serves a verifier's counts to Prometheus."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from adahi_ros.nodes.common.metrics_server import MetricsServer, histogram, metric
from adahi_ros.nodes.server.machine import memory_figures
from adahi_ros.nodes.server.target_verifier_parameters import TargetVerifierParameters
from adahi_ros.server.service import VerificationService


def serve_metrics(
    values: TargetVerifierParameters, service: VerificationService, waiting: Callable[[], int | None]
) -> MetricsServer:
    """Serve the metrics of a verifier until the returned server is closed.

    Args:
        values: parameters of the verifier.
        service: counts.
        waiting: returns the number of requests that wait, None while the node is inactive.

    Raises:
        ParameterError: nothing can listen at the port.
    """
    service.counts.robots.update(dict.fromkeys(values.robots, 0))  # so that they are not among `OTHERS`
    collect = partial(_metrics, service, waiting)
    return MetricsServer("metrics_port", values.metrics_host, values.metrics_port, collect)


def _metrics(service: VerificationService, waiting: Callable[[], int | None]) -> Iterator[Any]:
    """Yield the metrics; in any thread, while the node counts."""
    counts, requests = service.counts, waiting()
    robots, replies = dict(counts.robots), dict(counts.replies)  # copies, made at once
    single = {
        "lost_replies_total": ("Replies that reached no client", counts.unheard),
        "active": ("1 while the node serves robots", requests is not None),
        "waiting_requests": ("Requests that wait for a batch", requests or 0),
    }
    for name, size in memory_figures(service.targets.named("").device).items():
        single[name] = f"{name.replace('_', ' ')}, of the process", size
    rows = [({"robot": robot}, count) for robot, count in robots.items()]
    yield metric("adahi_verifier_requests_total", "Requests", rows)
    rows = [({"status": status}, count) for status, count in replies.items()]
    yield metric("adahi_verifier_replies_total", "Replies; a status is ok, or why it was refused", rows)
    for name, (what, value) in single.items():
        yield metric(f"adahi_verifier_{name}", what, [({}, value)])
    for name, what, values in (
        ("batch_seconds", "Time of a batch, from its start to its replies", counts.batch_s),
        ("batch_size", "Requests of a batch", counts.batch_sizes),
    ):
        yield histogram(f"adahi_verifier_{name}", what, values.bounds, list(values.counts), values.total)
