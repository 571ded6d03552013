"""What tests of targets behind servers share."""

from __future__ import annotations

from adahi_ros.policies.remote.remote import PolicyServer


class Clock:
    """Goes when it is told."""

    def __init__(self) -> None:
        self.now_s = 100.0

    def __call__(self) -> float:
        return self.now_s


def connected(server: PolicyServer) -> bool:
    return any(link.alive() for link in server._idle)
