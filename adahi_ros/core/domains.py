# SPDX-License-Identifier: Apache-2.0
"""ROS domains held by runs on this machine, each by a locked file."""

from __future__ import annotations

import fcntl
from pathlib import Path

DOMAINS = range(1, 102)  # their ports do not overlap Linux's ephemeral ports
LOCKS = Path("/tmp")  # not TMPDIR: all holders on this machine must use one folder


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
