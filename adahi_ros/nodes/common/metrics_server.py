# SPDX-License-Identifier: Apache-2.0
"""Serves metrics to Prometheus, over HTTP without a password.

At most `PLACES` connections are open, in threads. A new one ends the oldest: slow clients keep no other out.
"""

from __future__ import annotations

import math
import socket
import sys
from collections.abc import Callable, Iterable
from contextlib import suppress
from socketserver import ThreadingTCPServer
from threading import Thread
from typing import Any

from adahi_ros.nodes.common.parameters import ParameterError

try:
    from prometheus_client import CollectorRegistry, Metric
    from prometheus_client.exposition import MetricsHandler
except ImportError:
    needed = "pip install -r requirements/metrics.txt"
    raise ParameterError(f"prometheus_client: not installed; metrics need it: {needed}") from None

PLACES = 4
POLL_S = 0.1  # longest delay of the end


def metric(name: str, what: str, rows: Iterable[tuple[dict[str, str], float]]) -> Metric:
    """Return a metric of labelled values: a counter if its name ends with `_total`, else a gauge."""
    made = Metric(name.removesuffix("_total"), what, "counter" if name.endswith("_total") else "gauge")
    for labels, value in rows:
        made.add_sample(name, labels, value)
    return made


def histogram(name: str, what: str, bounds: Iterable[float], counts: Iterable[int], total: float) -> Metric:
    """Return a histogram.

    Args:
        name: of the metric.
        what: for people.
        bounds: of the buckets, without infinity.
        counts: of the values in each bucket, one more than bounds.
        total: sum of the values.
    """
    made, upto = Metric(name, what, "histogram"), 0
    for bound, count in zip([*bounds, math.inf], counts, strict=True):
        upto += count
        made.add_sample(f"{name}_bucket", {"le": f"{bound:g}" if bound < math.inf else "+Inf"}, upto)
    made.add_sample(f"{name}_count", {}, upto)
    made.add_sample(f"{name}_sum", {}, total)
    return made


class MetricsServer(ThreadingTCPServer):
    """Serves metrics until it is closed.

    Args:
        field: option or parameter of the port, for errors.
        host: IPv4 address to listen at.
        port: 0 for any free one.
        collect: makes the metrics; called in a thread for each request.

    Raises:
        ParameterError: nothing can listen there.
    """

    allow_reuse_address = daemon_threads = True
    block_on_close = False

    def __init__(self, field: str, host: str, port: int, collect: Callable[[], Iterable[Metric]]) -> None:
        self.collect = collect
        self._open: list[socket.socket] = []
        registry = CollectorRegistry(auto_describe=False)
        registry.register(self)
        try:
            super().__init__((host, port), MetricsHandler.factory(registry))
        except OSError as error:
            raise ParameterError(
                f"{field}: {port}, cannot listen at {host!r} ({error.strerror}); must be a free port, at an "
                "address of this machine"
            ) from None
        Thread(target=self.serve_forever, args=(POLL_S,), daemon=True).start()

    def process_request(self, request: Any, client_address: Any) -> None:
        """See `BaseServer`; end the oldest connections if there are too many."""
        while len(self._open) >= PLACES:
            self._end(self._open.pop(0))
        self._open.append(request)
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        """See `BaseServer`."""
        with suppress(ValueError):
            self._open.remove(request)
        super().shutdown_request(request)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """See `BaseServer`; a client that leaves is no error."""
        if not isinstance(sys.exc_info()[1], OSError):
            super().handle_error(request, client_address)

    def close(self) -> None:
        """Stop listening, end all connections, and forget what makes the metrics."""
        self.shutdown()
        self.server_close()
        self.collect = tuple
        for each in self._open:
            self._end(each)

    def _end(self, connection: socket.socket) -> None:
        with suppress(OSError):
            connection.shutdown(socket.SHUT_RDWR)
