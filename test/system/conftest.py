"""A domain that no other test has, with real nodes in processes of their own."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from adahi_lab.nodes.domain import exclusive_domain, loopback_environment
from adahi_lab.nodes.observer import Observer
from adahi_ros.nodes.launching.child_processes import node_processes
from test.system.recorder import Recorder
from test.system.stage import HeldVerifier, Robot, Scene, Stage, describe_policy

# As between a robot and a server, also in this process. A process that is killed during a write can leave
# shared memory locked, and the next writer waits for a second. Hundreds of segments lose messages.
UDP_ONLY = {"FASTDDS_BUILTIN_TRANSPORTS": "UDPv4"}


@contextmanager
def staged() -> Iterator[Stage]:
    """Yield an empty domain."""
    with (
        pytest.MonkeyPatch.context() as environment,
        exclusive_domain() as domain,
        node_processes(loopback_environment(domain) | UDP_ONLY) as processes,
    ):
        for name, value in UDP_ONLY.items():
            environment.setenv(name, value)
        observer = Observer(domain, "test")
        try:
            yield Stage(domain, observer, processes)
        finally:
            observer.close()


@pytest.fixture(scope="module")
def stage() -> Iterator[Stage]:
    """An empty domain."""
    with staged() as stage:
        yield stage


@pytest.fixture
def robot(stage: Stage) -> Robot:
    """A robot that the test plays."""
    return Robot(stage)


@pytest.fixture(scope="module")
def recorders(stage: Stage) -> Iterator[Callable[..., Recorder]]:
    """From a folder and the arguments of `adahi record` to one that runs."""
    made: list[Recorder] = []

    def start(folder: Path, *arguments: Any) -> Recorder:
        made.append(Recorder(stage, folder, *arguments))
        return made[-1]

    yield start
    for each in made:
        each.process.kill()
        each.process.wait()


@pytest.fixture(scope="module")
def scene(stage: Stage, exported: Path) -> Iterator[Scene]:
    """A draft policy that runs, between a robot and a verifier that are both played by the test."""
    verifier = HeldVerifier(stage, describe_policy(exported / "draft"))
    try:
        scene = Scene(stage, Robot(stage), verifier, exported)
        yield scene
        stage.processes.end()
        assert scene.process.exit_code == 0
        assert "Traceback" not in scene.process.output
    finally:
        verifier.close()
