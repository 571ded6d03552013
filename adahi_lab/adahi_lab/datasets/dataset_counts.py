# SPDX-License-Identifier: Apache-2.0
"""Counts made while bags are read: messages, faults, missing samples, and data left out."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from adahi_lab.datasets.trajectories import Trajectories
from adahi_ros.bags.bag_reader import Received
from adahi_ros.bags.recorded_topics import absolute
from adahi_ros.bags.survey import BagCounts
from adahi_ros.contract.contract import Contract
from adahi_ros.contract.fields import NANOSECONDS, stamp_ns

PERCENTILES = (50, 95, 99)
MOST_FAULTS = 3  # in one line


@dataclass
class DatasetCounts(BagCounts):
    """Counts over all bags of a dataset."""

    counts: Counter[str] = field(default_factory=Counter)
    loss: str = ""  # of this bag, where it was cut off
    bags: list[dict[str, Any]] = field(default_factory=list)
    messages: Counter[str] = field(default_factory=Counter)
    here: Counter[str] = field(default_factory=Counter)  # in this bag
    last_ns: dict[str, int] = field(default_factory=dict)
    intervals_ns: dict[str, list[int]] = field(default_factory=lambda: defaultdict(list))
    ages_ms: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))

    def message(self, received: Received) -> None:
        """Count a message."""
        topic, now_ns = received.topic, received.received_ns
        self.here[topic] += 1
        if topic in self.last_ns:
            self.intervals_ns[topic].append(now_ns - self.last_ns[topic])
        self.last_ns[topic] = now_ns
        header = getattr(received.message, "header", None)
        if header is not None and stamp_ns(header.stamp):  # a stamp of 0 is no time
            self.ages_ms[topic].append(1e-6 * (now_ns - stamp_ns(header.stamp)))

    def why(self) -> str:
        """Return why there is no step: data left out, and the most frequent faults or missing samples."""
        found = self.survey()
        shown = list((found.refused or found.missed).values())[:MOST_FAULTS]
        faults = [f"{count} times {first}" for count, first in shown]
        left_out = [f"{count} {name.replace('_', ' ')}" for name, count in (+self.counts).items()]
        made = f"{found.observations} observations, {found.actions} actions"
        return "; ".join([made, *left_out, *faults])

    def end_of_bag(self, path: Path, namespace: str, steps: int) -> None:
        """Finish the counts of one bag with this many steps."""
        here = {absolute(topic, namespace): count for topic, count in self.here.items()}
        cut_off = {"cut_off": self.loss} if self.loss else {}
        self.bags.append({"path": str(path), "messages": here, "steps": steps, **cut_off})
        self.messages.update(self.here)
        self.here.clear()
        self.last_ns.clear()
        self.loss = ""

    def summary(self, contract: Contract, trajectories: Trajectories) -> dict[str, Any]:
        """Return the content of `dataset.json`."""
        names = (
            "failed_episodes",
            "steps_without_action",
            "repeated_steps",
            "missing_steps",
            "results_of_no_episode",
        )
        ends = ("jumps_back", "gaps", "goal_changes")
        return {
            "robot_type": contract.robot_type,
            "bags": self.bags,
            "episodes": len(trajectories),
            "steps": len(trajectories.observations),
            "observation_dim": trajectories.observations.shape[1],
            "action_dim": trajectories.actions.shape[1],
            "goal_dim": trajectories.goals.shape[1],
            "left_out": {name: self.counts[name] for name in names},
            "episodes_ended_by": {name: self.counts[name] for name in ends},
            "topics": {topic: self._topic(topic) for topic in self.messages},
            "faults": {
                name: {"count": count, "first": self.first_faults[name]}
                for name, count in self.faults.items()
            },
            "missed": {
                topic: {"count": count, "first": first} for topic, (count, first) in self.missed.items()
            },
        }

    def _topic(self, topic: str) -> dict[str, Any]:
        intervals_s = np.array(self.intervals_ns[topic]) / NANOSECONDS
        ages = self.ages_ms.get(topic)
        passed_s = float(intervals_s.sum())
        return {
            "messages": self.messages[topic],
            "rate_hz": round(len(intervals_s) / passed_s, 3) if passed_s else None,
            "largest_gap_s": round(float(intervals_s.max()), 4) if len(intervals_s) else None,
            "age_ms": None
            if not ages
            else {
                **{f"p{p}": round(float(np.percentile(ages, p)), 3) for p in PERCENTILES},
                "max": round(max(ages), 3),
            },
        }
