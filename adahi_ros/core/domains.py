# SPDX-License-Identifier: Apache-2.0
"""ROS domains that runs on this machine hold, each by the lock of a file."""

from __future__ import annotations

import fcntl
from pathlib import Path

DOMAINS = range(1, 102)  # their ports stay clear of those that Linux hands out
LOCKS = Path("/tmp")  # whatever TMPDIR says: all holders on this machine must see each other's


def lock_of(domain: int) -> Path:
    """Return the file whose lock a run holds as long as it is in this domain."""
    return LOCKS / f"adahi_ros_domain_{domain}.lock"


def held_domains() -> list[int]:
    """Return the domains that runs on this machine hold, the newest first."""
    held: list[tuple[float, int]] = []
    for domain in DOMAINS:
        try:
            with lock_of(domain).open() as lock:
                fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            held.append((lock_of(domain).stat().st_mtime, domain))
        except OSError:  # no run ever held it, or another user's does
            continue
    return [domain for _, domain in sorted(held, reverse=True)]
