# SPDX-License-Identifier: Apache-2.0
"""What is usually wrong around a robot, in the order in which it matters, each with what to do."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from adahi_ros.contract.contract import Channel, Contract
from adahi_ros.contract.published import Endpoints, instead, names_of, why_silent
from adahi_ros.core.health_level import Level
from adahi_ros.core.signature import OBSERVATION
from adahi_ros.protocol.description import Described, Description, Wants
from adahi_ros.protocol.request import PROTOCOL_VERSION
from adahi_ros.robot.compatibility import named_values
from adahi_ros.robot.diagnosis import LATE
from adahi_ros.robot.prefetch import outlasted

ALONE = {"ROS_LOCALHOST_ONLY": "1", "ROS_AUTOMATIC_DISCOVERY_RANGE": "LOCALHOST"}
"""Settings that find no other machine."""
SKEW_S = 0.05  # between clocks; more is worth a warning
BEYOND, ABSURD = 0.05, 1.0  # widths of a limit beyond it, for a warning and for an error
FREE_BYTES, FULL_BYTES = 5e9, 5e8  # on the disk, for a warning and for an error
PAGE = "docs/how_to/troubleshooting.md"
UNITS = "correct `apply` in the contract (unit, sign, zero), the driver, or the limits"
ORDER = "correct the order of `select` in the contract, or the driver's names of its joints"
START = "start its driver, or correct topic or type in the contract"
RUNS = "its driver runs: look at its log, and give qos in the contract as the driver has it (best_effort?)"
BOOL = "std_msgs/msg/Bool"
SERVER, GOAL = "/_action/send_goal", "_SendGoal"  # of a ROS action
PICTURES = "docs/how_to/cameras.md"


class Finding(NamedTuple):
    """The result of a check.

    Attributes:
        level: severity.
        text: a sentence for people.
        action: what to do; empty where nothing is.
    """

    level: Level
    text: str
    action: str = ""


@dataclass(frozen=True)
class Robot:
    """A robot as its parameters describe it.

    Attributes:
        node: full name of its node.
        contract: of the robot.
        topics: full name and subscription of what it observes.
        commands: type of the messages or goals, by the full name of topic or ROS action.
        wants: what a verifier must fit.
        limited: a warning about its limits; empty without.
        service: full name of `describe_target`.
        ahead: no command waits for a reply.
        executed: most actions of a plan.
        deadline_s: its parameter.
        simulated: it takes the time from /clock.
        shared: others may command, too.
        enable: full name of the deadman's topic; empty where none is required.
    """

    node: str
    contract: Contract
    topics: Mapping[str, Channel]
    commands: Mapping[str, str]
    wants: Wants
    limited: str
    service: str
    ahead: bool
    executed: int
    deadline_s: float
    simulated: bool = False
    shared: bool = False
    enable: str = ""


@dataclass(frozen=True)
class Surroundings:
    """What was seen of a robot, and around it, in some seconds.

    Attributes:
        domain: ROS domain.
        environment: variables.
        nodes: full names of the others.
        domains: others that programs on this machine use.
        middleware: the rmw.
        other_vendors: nodes with another vendor's DDS.
        leads_s: how far the clock of a node, or of a topic's publishers, is ahead, by its name.
        published, subscribed: endpoints of topics.
        services: types, by full name.
        health: level and message of nodes, by the names in /diagnostics.
        rates: messages per second, by the full name of each topic that had one.
        observations: how many the robot's node would make.
        refused: why messages make none, for people, by field: the topic without its first slash, and names.
        missed: why steps make none, by topic without its first slash.
        pictures: what is wrong with the images of cameras, for people.
        measured_twice: joints that two publishers measure, for people; empty without.
        values: (3, S), quantiles of the observations' numbers; (0, S) without one.
        driver: why the driver's state allows no motion; empty where it does.
        described: the verifier's answer; None without one.
        absence: why `verify_draft` is not there although a verifier is; empty without.
        trips_s: times from requests for a description to the answers.
        versions: for people.
        gpu: for people; a fault of it begins with "no ".
        free_bytes: on the disk of the current folder.
    """

    domain: int
    environment: Mapping[str, str]
    nodes: Sequence[str]
    domains: Sequence[int]
    middleware: str
    other_vendors: Sequence[str]
    leads_s: Mapping[str, float]
    published: Endpoints
    subscribed: Endpoints
    services: Mapping[str, Sequence[str]]
    health: Mapping[str, tuple[Level, str]]
    rates: Mapping[str, float]
    described: Described | None
    absence: str
    trips_s: Sequence[float]
    measured_twice: str
    driver: str
    versions: str
    gpu: str
    free_bytes: float
    observations: int = 0
    refused: Mapping[str, str] = field(default_factory=dict)
    missed: Mapping[str, str] = field(default_factory=dict)
    pictures: Sequence[str] = ()
    values: np.ndarray = field(default_factory=lambda: np.zeros((0, 0)))

    @property
    def target(self) -> Description | None:
        """The target, where its description can be read."""
        return None if self.described is None else self.described.description


Findings = Iterator[Finding]


def _ok(text: str) -> Finding:
    return Finding(Level.OK, text)


def _warning(text: str, action: str) -> Finding:
    return Finding(Level.WARN, text, action)


def _error(text: str, action: str) -> Finding:
    return Finding(Level.ERROR, text, action)


def domain(seen: Surroundings) -> Findings:
    """Look for other nodes in this domain."""
    if seen.nodes:
        yield _ok(f"domain {seen.domain} has these other nodes: {', '.join(seen.nodes)}")
        return
    there = ", ".join(map(str, seen.domains))
    action = "start driver and verifier; the same ROS_DOMAIN_ID everywhere, and no firewall between them"
    if there:
        action = f"wait and repeat; if the programs in domain {there} are yours: export ROS_DOMAIN_ID=..."
    yield _error(f"domain {seen.domain} has no other node", action)


def middleware(seen: Surroundings) -> Findings:
    """Look at the settings of the middleware, and for others'."""
    for name, value in ALONE.items():
        if seen.environment.get(name) == value:
            fault = f"{name} is {value}: nodes of other machines are not found"
            yield _warning(fault, "unset it, or launch with peers")
    if seen.other_vendors:
        fault = f"{', '.join(seen.other_vendors)}: another middleware than {seen.middleware}"
        yield _warning(fault, "the same RMW_IMPLEMENTATION everywhere: services fail otherwise")
    else:
        yield _ok(seen.middleware)


def clocks(seen: Surroundings, robot: Robot) -> Findings:
    """Compare the clocks of other nodes with this machine's."""
    far = {name: lead_s for name, lead_s in seen.leads_s.items() if abs(lead_s) > SKEW_S}
    for name, lead_s in far.items():
        when = f"{abs(lead_s):.3g} s {'ahead' if lead_s > 0.0 else 'behind, or its messages are late'}"
        level = Level.ERROR if abs(lead_s) > robot.contract.max_age_s else Level.WARN
        yield Finding(level, f"the clock of {name} is {when}", "synchronise the clocks (chrony)")
    clock = seen.published.get("/clock", ())
    if robot.simulated and not clock:
        fault = "use_sim_time is true, but /clock has no publisher: time stands still"
        yield _error(fault, "start the simulator, or set use_sim_time to false")
    elif clock and not robot.simulated:
        fault = f"{names_of(clock)} publishes /clock, but use_sim_time is false"
        yield _warning(fault, "set use_sim_time to true at all nodes of a simulation")
    elif not far:
        yield _ok(f"{len(seen.leads_s)} compared, all within {SKEW_S:g} s")


def topics(seen: Surroundings, robot: Robot) -> Findings:
    """Look for each topic that the contract observes."""
    fps = robot.contract.rate_hz
    for topic, channel in robot.topics.items():
        if topic not in seen.rates:
            fault = why_silent(topic, channel, seen.published)
            runs = channel.kind in {each.kind for each in seen.published.get(topic, ())}
            yield _error(fault, "give --namespace" if fault.endswith("?") else RUNS if runs else START)
            continue
        is_now = f"{topic} has {seen.rates[topic]:.3g} messages per second"
        if channel.topic == robot.contract.paced_by and seen.rates[topic] * LATE < fps:
            yield _warning(f"{is_now}, fps is {fps:g}", "raise its rate, or lower fps and record again")
        else:
            yield _ok(is_now)


def observations(seen: Surroundings, robot: Robot) -> Findings:
    """Repeat why messages make no observations."""
    level = Level.WARN if seen.observations else Level.ERROR
    slow = "the topic is slow or loses messages: raise its rate or tolerance_ms; compress images"
    yield from (Finding(level, fault, f"{PAGE}#no-steps") for fault in seen.refused.values())
    silent = {channel.topic for topic, channel in robot.topics.items() if topic not in seen.rates}
    named = {topic.lstrip("/") for topic in silent} | {field.partition(".")[0] for field in seen.refused}
    yield from (Finding(level, fault, slow) for topic, fault in seen.missed.items() if topic not in named)
    yield from (_warning(fault, PICTURES) for fault in seen.pictures)
    if seen.observations:
        yield _ok(f"{seen.observations} were made")
    else:
        yield _error("none can be made", "correct what is above first")


def publishers(seen: Surroundings, robot: Robot) -> Findings:
    """Look for two programs that do the same."""
    if seen.measured_twice:
        yield _error(f"two programs measure {seen.measured_twice}", "end one of them")
    others = {
        topic: [each for each in seen.published.get(topic, ()) if each.node != robot.node]
        for topic in robot.commands
        if not robot.shared
    }
    for topic, found in others.items():
        if found:
            fault = f"{names_of(found)} sends commands on {topic}"
            yield _error(fault, "end it, or allow it by safety.shared_command: true")
    if not seen.measured_twice and not any(others.values()):
        yield _ok("no other program commands or measures the same joints")


def deadman(seen: Surroundings, robot: Robot) -> Findings:
    """Look for a deadman on another topic than the robot's."""
    if not robot.enable:
        return
    pressed, there = seen.published.get(robot.enable, ()), instead(robot.enable, BOOL, seen.published)
    if pressed or not there.partition(" ")[0].endswith("/enable"):
        yield _ok(f"{names_of(pressed)} presses it" if pressed else f"none on {robot.enable} yet")
    else:
        fault = f"nothing publishes {robot.enable}; there is {there}"
        yield _warning(fault, "start the deadman in the robot's namespace: adahi enable --namespace ...")


def units(seen: Surroundings, robot: Robot) -> Findings:
    """Compare the robot's numbers with its limits, and with those that the target learnt from."""
    if not len(seen.values):
        return
    own, median = robot.wants.offered.quantities[OBSERVATION], seen.values[1]
    far = np.nan_to_num(np.maximum(own.low - median, median - own.high) / (own.high - own.low))
    worst, beyond = int(np.argmax(far)), [own.names[place] for place in np.flatnonzero(far > BEYOND)]
    if beyond:
        allowed = f"{own.low[worst]:.4g} to {own.high[worst]:.4g}"
        fault = f"{own.names[worst]} is {median[worst]:.4g}, the limits allow {allowed}"
        also = ", ".join(name for name in beyond if name != own.names[worst])
        level = Level.ERROR if far[worst] > ABSURD else Level.WARN
        yield Finding(level, f"{fault}{also and f'; also beyond: {also}'}", UNITS)
    observed = named_values(robot.contract, seen.values)
    unlike = "" if seen.target is None else robot.wants.unlike(seen.target, observed)
    if unlike:
        yield _error(unlike, ORDER if "swapped" in unlike else UNITS)
    elif not beyond:
        of = "the limits" if seen.target is None else "the limits, and the data of the target"
        yield _ok(f"{len(own.names)} numbers fit {of}")


def limits(seen: Surroundings, robot: Robot) -> Findings:
    """Look whether there are limits; those that hide each other are refused with the parameters."""
    page = "docs/how_to/set_up_a_robot.md#2-write-the-limits"
    yield _warning(robot.limited, page) if robot.limited else _ok("all commands are limited")


def controller(seen: Surroundings, robot: Robot) -> Findings:
    """Look whether a controller takes the commands, and whether the driver allows motion."""
    taken = set()
    for topic, kind in robot.commands.items():
        goals = [each.removesuffix(GOAL) for each in seen.services.get(f"{topic}{SERVER}", ())]
        if kind in goals:
            taken.add(topic)
        elif goals:
            fault = f"the controller of {topic} takes {', '.join(goals)}, the contract says {kind}"
            yield _error(fault, "load a controller of that type, or correct the contract's")
        elif kind in {each.kind for each in seen.subscribed.get(topic, ())}:
            taken.add(topic)
        else:
            there = instead(topic, kind, seen.subscribed)
            fault = f"no controller takes {kind} on {topic}{there and f'; there is {there}'}"
            yield _error(fault, "start the driver, activate its controller, or correct the contract's topic")
    if seen.driver:
        yield _error(seen.driver, "start the driver, or clear its fault")
    elif len(taken) == len(robot.commands):
        yield _ok(f"commands are taken on {', '.join(robot.commands)}")


def verifier(seen: Surroundings, robot: Robot) -> Findings:
    """Look for a verifier that fits."""
    if robot.service not in seen.services:
        there = [name for name in seen.services if name.endswith("/describe_target")]
        action = "start it; the same ROS_DOMAIN_ID, no firewall, or peers (docs/how_to/wifi.md)"
        loading = robot.service.replace("describe_target", "target_verifier/load_target")
        if loading in seen.services:
            action = "its node is there: wait until it has loaded its policy; look at its log"
        elif there:
            action = f"give verifier_namespace:={there[0].rpartition('/')[0]}, here --verifier-namespace"
        fault = f"{robot.service} is not there{(there and f'; there is {there[0]}') or ''}"
        yield _error(f"no verifier: {fault}", action)
    elif seen.described is None:
        yield _error("the verifier does not answer", "look at its log: is it active?")
    elif seen.target is None:
        action = f"install the same version at both ends: this protocol is {PROTOCOL_VERSION}"
        yield _error(f"the verifier's description: {seen.described.fault}", action)
    elif seen.absence:
        yield _error(seen.absence, "set verification.reliability alike")
    elif fault := robot.wants.mismatch(seen.target) or "":
        yield _error(f"the verifier does not fit: {fault}", f"{PAGE}#a-verifier-of-another-kind")
    else:
        yield _ok(f"the verifier has target {seen.target.target!r}, which fits")


def round_trip(seen: Surroundings, robot: Robot) -> Findings:
    """Compare the round trip with the plan, or with the deadline; the target's own time comes on top."""
    if seen.target is None or not seen.trips_s:
        return
    took_s, period_s = float(np.median(seen.trips_s)), robot.contract.period_s
    trip = f"it takes {1e3 * took_s:.3g} ms, to which the time of the target comes"
    steps = min(seen.target.signature.horizon, robot.executed)
    if robot.ahead:
        fault = outlasted(took_s, steps, period_s)
        text, action = fault or f"{trip}; a plan lasts {steps * period_s:.3g} s", "docs/how_to/wifi.md"
    else:
        fault = "late" if took_s > robot.deadline_s else ""
        text, action = f"{trip}; deadline_s is {robot.deadline_s:g}", "raise it, or use wait_policy: ahead"
    yield _error(text, action) if fault else _ok(text)


def health(seen: Surroundings, robot: Robot) -> Findings:
    """Repeat what nodes report themselves."""
    for name, (level, message) in seen.health.items():
        yield Finding(level, f"{name}: {message}", PAGE if level else "")


def versions(seen: Surroundings) -> Findings:
    """Show the versions at this end; the verifier's protocol is compared above."""
    yield _ok(f"{seen.versions}, protocol {PROTOCOL_VERSION}")


def gpu(seen: Surroundings) -> Findings:
    """Look whether a GPU can be used."""
    yield _warning(seen.gpu, "reinstall its driver") if seen.gpu.startswith("no ") else _ok(seen.gpu)


def disk(seen: Surroundings) -> Findings:
    """Look whether bags have room."""
    free, action = f"{seen.free_bytes / 1e9:.1f} GB are free for bags here", "free some, or record elsewhere"
    if seen.free_bytes < FREE_BYTES:
        yield Finding(Level.ERROR if seen.free_bytes < FULL_BYTES else Level.WARN, free, action)
    else:
        yield _ok(free)


AROUND: tuple[Callable[[Surroundings], Findings], ...] = (domain, middleware)
OF_ROBOT: tuple[Callable[[Surroundings, Robot], Findings], ...] = (
    *(clocks, topics, observations, publishers, deadman, units),
    *(limits, controller, verifier, round_trip, health),
)
OF_MACHINE: tuple[Callable[[Surroundings], Findings], ...] = (versions, gpu, disk)


def check(seen: Surroundings, robot: Robot | None) -> Iterator[tuple[str, Finding]]:
    """Yield the findings of all checks in the order in which they matter, each with the check's name.

    Args:
        seen: what was seen.
        robot: None without parameters; then its checks are left out.
    """
    for each in AROUND:
        yield from ((each.__name__, found) for found in each(seen))
    for of_robot in OF_ROBOT if robot is not None else ():
        assert robot is not None
        yield from ((of_robot.__name__.replace("_", " "), found) for found in of_robot(seen, robot))
    for each in OF_MACHINE:
        yield from ((each.__name__, found) for found in each(seen))
