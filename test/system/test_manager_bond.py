"""Bonds as nav2's lifecycle manager holds them: formed when a node is activated, broken however it ends.

The manager's end is played by the same bondpy: topic, names, timeout and order of calls are nav2's.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from adahi_ros.nodes.launching.child_processes import NodeProcess
from test.system.stage import Stage

bondpy = pytest.importorskip(
    "bondpy.bondpy", reason="bondpy of ROS's bond_core is not on PyPI", exc_type=ImportError
)

TIMEOUT_S = 2.0  # nav2's bond_timeout, 4.0 by default
DISABLE = "/bond_disable_heartbeat_timeout"
SOON_S = 1.0  # told, not missed


class Manager:
    """What nav2's lifecycle manager does to one node."""

    def __init__(self, stage: Stage, name: str) -> None:
        self._stage, self._name = stage, name
        self._bond: Any = None

    def change(self, label: str) -> None:
        assert self._stage.change_state(label, self._name)

    def bring_up(self) -> None:
        """Configure and activate; then wait for the bond."""
        self.change("configure")
        self.activate()

    def activate(self) -> None:
        self.change("activate")
        self._bond = bondpy.Bond(self._stage.node, "bond", self._name)
        self._bond.heartbeat_timeout = TIMEOUT_S
        self._bond.heartbeat_period = 0.1
        self._bond.start()
        # With the first heartbeat a bond is formed, from the second on it times out.
        self._stage.wait(lambda: self._bond.heartbeat_timer.timer.is_alive(), "the bond")

    def is_broken(self) -> bool:
        return bool(self._bond.is_broken())

    def broken_within(self, limit_s: float) -> float:
        """Wait until the bond is broken, and let go of it; return how long that took."""
        started = time.monotonic()
        self._stage.observer.wait_until(self.is_broken, limit_s, "the bond's end")
        self.close()
        return time.monotonic() - started

    def close(self) -> None:
        """Have no bond."""
        gone, self._bond = self._bond, None
        if gone is not None:
            gone.shutdown()
            self._stage.node.destroy_subscription(gone.sub)
            self._stage.node.destroy_publisher(gone.pub)
            if self._stage.node.has_parameter(DISABLE):  # bondpy fails to declare it at the next timeout
                self._stage.node.undeclare_parameter(DISABLE)


@pytest.fixture(params=["draft_policy", "target_verifier"])
def managed(
    stage: Stage, exported: Path, request: pytest.FixtureRequest
) -> Iterator[tuple[Manager, NodeProcess]]:
    name = request.param
    checkpoint = exported / name.split("_")[0]
    process = stage.start(f"{name}_node", autostart=False, checkpoint=str(checkpoint))
    manager = Manager(stage, name)
    yield manager, process
    manager.close()
    if process in stage.processes.all:
        stage.processes.kill(process)
    assert "Traceback" not in process.output


def test_a_bond_lasts_as_long_as_its_node_is_active(
    stage: Stage, managed: tuple[Manager, NodeProcess]
) -> None:
    manager, process = managed
    manager.bring_up()
    end = time.monotonic() + 1.5 * TIMEOUT_S
    stage.wait(lambda: time.monotonic() > end, "longer than the timeout")
    assert not manager.is_broken()
    manager.change("deactivate")
    manager.broken_within(SOON_S)
    for _ in range(2):  # and again
        manager.activate()
        manager.change("deactivate")
        manager.broken_within(SOON_S)
    manager.activate()
    stage.processes.may_end = process
    process.ask_to_end()
    manager.broken_within(SOON_S)
    stage.end(process)


def test_a_node_that_is_killed_breaks_it_within_the_timeout(
    stage: Stage, managed: tuple[Manager, NodeProcess]
) -> None:
    manager, process = managed
    manager.bring_up()
    stage.processes.kill(process)
    assert manager.broken_within(TIMEOUT_S + SOON_S) > TIMEOUT_S / 2
