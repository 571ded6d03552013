# SPDX-License-Identifier: Apache-2.0
"""The separate DDS domain of a run's nodes, on this machine or across an emulated link."""

from __future__ import annotations

import fcntl
import os
import shlex
from collections.abc import Iterator
from contextlib import contextmanager

from adahi_lab.link.link_commands import SERVER_PREFIX
from adahi_ros.core.domains import DOMAINS, lock_of


@contextmanager
def exclusive_domain() -> Iterator[int]:
    """Hold a ROS domain that no other holder on this machine has.

    The lock ends with the process.

    Raises:
        RuntimeError: all are held.
    """
    start = os.getpid() % len(DOMAINS)
    for domain in (*DOMAINS[start:], *DOMAINS[:start]):
        path = lock_of(domain)
        try:
            lock = path.open("a")
        except PermissionError:  # another user's
            continue
        with lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                continue
            os.utime(path)  # to know the newest
            yield domain
            return
    raise RuntimeError(f"ROS_DOMAIN_ID: {DOMAINS[0]} to {DOMAINS[-1]} are all held by other runs")


def loopback_environment(domain: int) -> dict[str, str]:
    """Return the variables that keep a process in a domain and on this machine."""
    variables = {"ROS_DOMAIN_ID": str(domain), "ROS_AUTOMATIC_DISCOVERY_RANGE": "LOCALHOST"}
    if os.environ.get("ROS_DISTRO") == "humble":  # supports only the older variable
        variables["ROS_LOCALHOST_ONLY"] = "1"
    return variables


def link_environment(domain: int) -> dict[str, str]:
    """Return the variables that keep a process in a domain and on its emulated link."""
    # The link's namespaces are isolated, so a whole subnet belongs to the run.
    return {"ROS_DOMAIN_ID": str(domain), "ROS_AUTOMATIC_DISCOVERY_RANGE": "SUBNET"}


def server_prefix() -> tuple[str, ...]:
    """Return the command prefix that runs a process at the server's end of `adahi lab link run`, or ()."""
    return tuple(shlex.split(os.environ.get(SERVER_PREFIX, "")))


def run_environment(domain: int) -> dict[str, str]:
    """Return the variables of a run's processes: in its domain, and on this machine or its emulated link."""
    return link_environment(domain) if server_prefix() else loopback_environment(domain)
