# SPDX-License-Identifier: Apache-2.0
"""ROS domains of this machine: held by runs, each by a locked file, or used by any program."""

from __future__ import annotations

import fcntl
from pathlib import Path

DOMAINS = range(1, 102)  # their ports do not overlap Linux's ephemeral ports
LOCKS = Path("/tmp")  # not TMPDIR: all holders on this machine must use one folder

UDP = (Path("/proc/net/udp"), Path("/proc/net/udp6"))
FIRST_PORT, PORTS, UNICAST = 7400, 250, 10  # of DDS: domain 0, ports of a domain, its first program's


def lock_of(domain: int) -> Path:
    """Return the lock file that a run holds while it uses this domain."""
    return LOCKS / f"adahi_ros_domain_{domain}.lock"


def held_domains() -> list[int]:
    """Return the domains held by runs on this machine, the newest first."""
    held: list[tuple[float, int]] = []
    for domain in DOMAINS:
        try:
            with lock_of(domain).open() as lock:
                fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            held.append((lock_of(domain).stat().st_mtime, domain))
        except OSError:  # never held by a run, or held by another user's
            continue
    return [domain for _, domain in sorted(held, reverse=True)]


def used_domains() -> list[int]:
    """Return the domains that programs on this machine use, by the ports that DDS opens."""
    found = set()
    for file in UDP:
        lines = file.read_text().splitlines()[1:] if file.is_file() else ()
        ports = (int(line.split()[1].rpartition(":")[2], 16) - FIRST_PORT for line in lines)
        found |= {port // PORTS for port in ports if port >= 0 and port % PORTS in (0, UNICAST)}
    return sorted(found & {0, *DOMAINS})
