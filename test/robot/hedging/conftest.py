"""A robot that knows two verifiers, in simulated time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from adahi_ros.policies.interface import Policy
from adahi_ros.robot.diagnosis import News
from adahi_ros.robot.hedged_transport import HedgedTransport
from adahi_ros.robot.transport import Transport
from test.robot.conftest import DRAFT, Robot
from test.robot.simulated import SimulatedLink, SimulatedVerifier

PERIOD_S = 0.2
SLOW = (0.03, 0.03)  # each way
QUICK = (0.005, 0.005)


class BackupLink(SimulatedLink):
    """A link of the same time as another."""

    def __init__(self, verifier: SimulatedVerifier, seed: int, first: SimulatedLink) -> None:
        self.first = first
        super().__init__(verifier, seed)

    @property
    def now_s(self) -> float:
        return self.first.now_s

    @now_s.setter
    def now_s(self, value: float) -> None:
        pass


class HedgedRobot(Robot):
    """A robot of two verifiers, `first` and `backup`; `link` and `verifier` are those of the first."""

    def __init__(self, policy: Policy, hedge: str, hedge_unknown: bool = False, **named: Any) -> None:
        self.hedge, self.hedge_unknown = hedge, hedge_unknown
        self.news: list[News] = []
        super().__init__(policy, **named)

    def transport(self) -> Transport:
        self.link.now_s = 1e6  # a machine that was not started today
        self.backup = SimulatedVerifier(self.policy, self.verifier._plans)
        self.backup_link = BackupLink(self.backup, 7, self.link)
        links: dict[str, Transport] = {"first": self.link, "backup": self.backup_link}
        self.hedged = HedgedTransport(
            links, self.hedge, lambda: self.link.now_s, self.news.append, self.hedge_unknown
        )
        return self.hedged

    @property
    def next_arrival_s(self) -> float:
        return min(self.link.next_arrival_s, self.backup_link.next_arrival_s)

    def steps(self, count: int, episode: int = 1, first: int = 0) -> None:
        for step in range(first, first + count):
            self.see(episode, step)
            self.pass_time(PERIOD_S)

    def figure(self, name: str) -> Any:
        return self.hedged.figures[name]

    @property
    def texts(self) -> list[str]:
        return [news.text for news in self.news]


MakeHedged = Callable[..., HedgedRobot]


@pytest.fixture
def make_hedged(fixed_policy: Callable[..., Policy]) -> MakeHedged:
    def make(hedge: str = "late", **named: Any) -> HedgedRobot:
        return HedgedRobot(fixed_policy(DRAFT), hedge, **named)

    return make


@pytest.fixture
def robot(make_hedged: MakeHedged) -> HedgedRobot:
    return make_hedged().connect()


def requests_to(link: SimulatedLink) -> int:
    return len(link.updates)


def bytes_about(step: int, *links: SimulatedLink) -> int:
    """Return what was sent of the request of a step, of an episode that is the only one."""
    return sum(
        size
        for link in links
        for (request, _), size in zip(link.updates, link.sent.values(), strict=True)
        if request.step == step
    )
