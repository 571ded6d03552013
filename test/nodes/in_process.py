"""Nodes in the process of a test, in a domain that no other test has."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, TypeVar

from rclpy.node import Node
from rclpy.parameter import Parameter

from adahi_lab.nodes.domain import exclusive_domain
from adahi_lab.nodes.observer import Observer
from adahi_ros.nodes.common.executors import executor_of
from adahi_ros.nodes.common.managed import ManagedNode, autostart

DEADLINE_S = 30.0  # only a broken node is slower
M = TypeVar("M", bound=ManagedNode)


class NodesInProcess:
    """Makes nodes and spins them, each in a thread of its own.

    Attributes:
        observer: watches and calls them.
    """

    def __init__(self, observer: Observer) -> None:
        self.observer = observer
        self._over = threading.Event()
        self._threads: list[threading.Thread] = []
        self._nodes: list[Node] = []

    def start(self, kind: Callable[..., M], values: Mapping[str, Any], **options: Any) -> M:
        """Return a managed node that is active, as its process starts it."""
        given = {"autostart": True, **values}
        overrides = [Parameter(name, value=value) for name, value in given.items()]
        context = self.observer.context
        options |= {"context": context, "parameter_overrides": overrides}
        node = kind(use_global_arguments=False, **options)
        autostart(node)
        self._nodes.append(node)
        return node

    def spin(self, node: Node) -> None:
        """Spin a node until the end."""
        executor = executor_of(node)

        def spin() -> None:
            while not self._over.is_set():
                executor.spin_once(0.05)
            executor.shutdown()

        self.run(spin)

    def every(self, period_s: float, act: Callable[[], object]) -> None:
        """Do something every so often until the end."""

        def repeat() -> None:
            while not self._over.wait(period_s):
                act()

        self.run(repeat)

    def run(self, body: Callable[[], None]) -> None:
        """Run something in a thread."""
        self._threads.append(threading.Thread(target=body))
        self._threads[-1].start()

    def wait(self, done: Callable[[], bool], what: str) -> None:
        """Spin the observer until something is so."""
        self.observer.wait_until(done, DEADLINE_S, what)

    def wait_s(self, duration_s: float) -> None:
        """Spin the observer for so long."""
        end_s = time.monotonic() + duration_s
        self.wait(lambda: time.monotonic() > end_s, "time")

    def call(self, client: Any, request: Any) -> Any:
        """Call a service; return its reply."""
        return self.observer.call(client, request, DEADLINE_S)

    def close(self) -> None:
        """End all threads and nodes."""
        self._over.set()
        for thread in self._threads:
            thread.join()
        for node in self._nodes:
            node.destroy_node()


@contextmanager
def nodes_in_process() -> Iterator[NodesInProcess]:
    """Give a domain, and end what is made in it."""
    with exclusive_domain() as domain:
        observer = Observer(domain, "watcher")
        nodes = NodesInProcess(observer)
        try:
            yield nodes
        finally:
            nodes.close()
            observer.close()
