"""A DDS domain of one's own on this machine, for runs that must not hear each other."""

from __future__ import annotations

import fcntl
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

DOMAINS = range(1, 102)  # their ports stay clear of those that Linux hands out


@contextmanager
def exclusive_domain() -> Iterator[int]:
    """Hold a ROS domain that no other holder on this machine has.

    The lock goes with the process, however it ends.

    Raises:
        RuntimeError: all are held.
    """
    start = os.getpid() % len(DOMAINS)
    for domain in (*DOMAINS[start:], *DOMAINS[:start]):
        path = Path(tempfile.gettempdir()) / f"adahi_ros_domain_{domain}.lock"
        try:
            lock = path.open("a")
        except PermissionError:  # another user's
            continue
        with lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                continue
            yield domain
            return
    raise RuntimeError(f"ROS_DOMAIN_ID: {DOMAINS[0]} to {DOMAINS[-1]} are all held by other runs")


def loopback_environment(domain: int) -> dict[str, str]:
    """Return the variables that keep a process in a domain and on this machine."""
    variables = {"ROS_DOMAIN_ID": str(domain), "ROS_AUTOMATIC_DISCOVERY_RANGE": "LOCALHOST"}
    if os.environ.get("ROS_DISTRO") == "humble":  # knows only the older variable
        variables["ROS_LOCALHOST_ONLY"] = "1"
    return variables
