"""A verifier that anyone may ask says so, once."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from adahi_lab.nodes.domain import exclusive_domain, loopback_environment
from adahi_ros.nodes.launching.modules import MODULES
from adahi_ros.nodes.server.exposure import exposure

ON = {"ROS_SECURITY_ENABLE": "true", "ROS_SECURITY_STRATEGY": "Enforce"}


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({}, ""),
        ({"ROS_SECURITY_ENABLE": ""}, "ROS_SECURITY_ENABLE: '', not 'true': anyone in this domain"),
        ({"ROS_SECURITY_ENABLE": "True"}, "ROS_SECURITY_ENABLE: 'True', not 'true'"),  # rcl is as strict
        ({"ROS_SECURITY_STRATEGY": "Permissive"}, "ROS_SECURITY_STRATEGY: 'Permissive', not 'Enforce'"),
    ],
)
def test_it_says_what_is_not_as_it_must_be(changes: dict[str, str], says: str) -> None:
    message = exposure(ON | changes)
    assert message.startswith(says)
    assert bool(message) == bool(says)


def test_without_variables_security_is_off() -> None:
    assert exposure({}).startswith("ROS_SECURITY_ENABLE: '', not 'true'")


def test_a_verifier_without_security_warns_once() -> None:
    command = [sys.executable, "-m", MODULES["target_verifier_node"], "--ros-args", "-p", "checkpoint:=none"]
    with exclusive_domain() as domain:
        environment = {**os.environ, **loopback_environment(domain), "ROS_SECURITY_ENABLE": "false"}
        ended = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert ended.returncode == 1  # it could not be configured, and had said all by then
    (warning,) = (line for line in ended.stderr.splitlines() if "ROS_SECURITY_ENABLE" in line)
    assert warning.startswith("[WARN]")
    assert "docs/how_to/secure.md" in warning
