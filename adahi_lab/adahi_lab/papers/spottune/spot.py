# SPDX-License-Identifier: Apache-2.0
"""Which instance to rent for a trial: the expected cost of work, by the trend of prices and revocations.

After SpotTune (Li et al., "SpotTune: Leveraging Transient Resources for Cost-efficient Hyper-parameter Tuning
in the Public Cloud", arXiv 2012.03576). It predicts an instance's revocation and price for the next hour, and
rents what does a step of training for the least expected money. There a recurrent network predicts; here a
logistic and a linear regression on the latest hours do.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from adahi_lab.papers.spottune.spot_trace import SpotTrace

LOOKS_BACK_H = 6
RIDGE = 1e-3
NEWTON_STEPS = 30


@dataclass(frozen=True)
class Rules:
    """The rules of a replay.

    Attributes:
        startup_h: from the start of an instance until it works, h.
        checkpoint_h: time between saved states, h; the work since is lost at a revocation.
        refund: an instance that is revoked in its first hour is free, as EC2's were.
    """

    startup_h: float = 0.1
    checkpoint_h: float = 0.25
    refund: bool = True


@dataclass(frozen=True)
class Outlook:
    """What is expected of each instance type, (K,), in the hour after a period.

    Attributes:
        price: mean, of an hour.
        revocation: probability.
    """

    price: np.ndarray
    revocation: np.ndarray


def signs(trace: SpotTrace, now: int) -> np.ndarray:
    """Return what is known at the end of a period, (K, F): level, trends, spread and past revocations."""
    hour, first = trace.hour, max(0, now + 1 - LOOKS_BACK_H * trace.hour)
    share = trace.prices / np.array([[each.on_demand] for each in trace.types])
    latest, past = share[:, now], share[:, first : now + 1]
    columns = [np.ones(len(share)), latest]
    columns += [latest - share[:, max(0, now - hours * hour)] for hours in (1, 3)]
    columns += [past.std(axis=1), trace.revoked[:, first : now + 1].sum(axis=1)]
    return np.stack(columns, axis=1)


class Predictor:
    """Learns the outlook from the periods before one.

    Args:
        trace: the market.
        until: number of periods to learn from.

    Raises:
        ValueError: they are too few.
    """

    def __init__(self, trace: SpotTrace, until: int) -> None:
        hour = trace.hour
        if not 2 * LOOKS_BACK_H * hour <= until <= trace.periods:
            raise ValueError(
                f"until: {until}, must be {2 * LOOKS_BACK_H * hour} to {trace.periods} periods of the trace"
            )
        self._trace = trace
        self._on_demand = np.array([each.on_demand for each in trace.types])
        times = range(LOOKS_BACK_H * hour, until - hour)
        inputs = np.concatenate([signs(trace, now) for now in times])
        prices, revoked = trace.prices, trace.revoked
        price = [prices[:, now + 1 : now + 1 + hour].mean(axis=1) / self._on_demand for now in times]
        taken = [revoked[:, now + 1 : now + 1 + hour].any(axis=1) for now in times]
        self._price = _least_squares(inputs, np.concatenate(price))
        self._revocation = _logistic(inputs, np.concatenate(taken).astype(float))

    def outlook(self, now: int) -> Outlook:
        """Return the outlook at the end of a period."""
        inputs = signs(self._trace, now)
        price = np.maximum(inputs @ self._price, 1e-3) * self._on_demand
        return Outlook(price, _sigmoid(inputs @ self._revocation))


def _sigmoid(value: np.ndarray) -> np.ndarray:
    return 1.0 / (1.0 + np.exp(-np.clip(value, -30.0, 30.0)))


def _least_squares(inputs: np.ndarray, wanted: np.ndarray) -> np.ndarray:
    ridge = RIDGE * np.eye(inputs.shape[1])
    found: np.ndarray = np.linalg.solve(inputs.T @ inputs + ridge, inputs.T @ wanted)
    return found


def _logistic(inputs: np.ndarray, wanted: np.ndarray) -> np.ndarray:
    """Fit by Newton's method, with a small ridge, so that separable data have a solution."""
    weights = np.zeros(inputs.shape[1])
    for _ in range(NEWTON_STEPS):
        expected = _sigmoid(inputs @ weights)
        slope = inputs.T @ (wanted - expected) - RIDGE * weights
        curve = (inputs * (expected * (1.0 - expected))[:, None]).T @ inputs + RIDGE * np.eye(len(weights))
        weights = weights + np.linalg.solve(curve, slope)
    return weights


Choice = tuple[int, bool]
"""An instance type by its number, and whether it is on demand."""
Chooser = Callable[[int, "Choice | None"], Choice]
"""From the present period and the present instance, None without one, to the one for the next hour."""


def on_demand(trace: SpotTrace) -> Chooser:
    """Return what rents the cheapest type for work, on demand."""
    best = min(range(len(trace.types)), key=lambda row: trace.types[row].on_demand / trace.types[row].speed)
    return lambda now, present: (best, True)


def cheapest_spot(trace: SpotTrace) -> Chooser:
    """Return what rents the type with the lowest present price for work, and keeps it until it is revoked."""
    speed = np.array([each.speed for each in trace.types])
    prices = trace.prices
    return lambda now, present: present or (int(np.argmin(prices[:, now] / speed)), False)


def by_trend(trace: SpotTrace, predictor: Predictor, rules: Rules) -> Chooser:
    """Return what rents the type with the least expected cost of work in the next hour, spot or on demand."""

    def choose(now: int, present: Choice | None) -> Choice:
        outlook = predictor.outlook(now)
        choices = [(row, fixed) for row in range(len(trace.types)) for fixed in (False, True)]
        return min(choices, key=lambda each: expected_cost(trace, outlook, rules, each, present))

    return choose


def expected_cost(
    trace: SpotTrace, outlook: Outlook, rules: Rules, choice: Choice, present: Choice | None
) -> float:
    """Return the expected price of a unit of work in the next hour.

    Args:
        trace: the market.
        outlook: of that hour.
        rules: of the replay.
        choice: what is rented then.
        present: what is rented now; its start is paid already, and its first hour may be over.
    """
    row, fixed = choice
    kind, begins = trace.types[row], choice != present
    works_h = 1.0 - rules.startup_h * begins
    if fixed:
        return kind.on_demand / (kind.speed * works_h)
    revoked = float(outlook.revocation[row])
    # A revocation comes, on average, after half of the hour, and takes the work since the last saved state.
    half_h = max(0.0, 0.5 - rules.startup_h * begins - 0.5 * rules.checkpoint_h)
    paid = 0.0 if rules.refund and begins else 0.5
    price = float(outlook.price[row]) * (1.0 - revoked + paid * revoked)
    return price / (kind.speed * ((1.0 - revoked) * works_h + revoked * half_h))


@dataclass(frozen=True)
class Bill:
    """What a trial cost.

    Attributes:
        cost: paid.
        hours: from its start to its end; infinite where the trace ends before.
        revocations: of its instances.
    """

    cost: float
    hours: float
    revocations: int


def replay(trace: SpotTrace, choose: Chooser, rules: Rules, work: float, start: int) -> Bill:
    """Replay a trial on a trace.

    Args:
        trace: the market.
        choose: decides before each hour of an instance, and after a revocation.
        rules: of the replay.
        work: to do.
        start: period at the end it begins, at least 0.
    """
    step_h, prices, taken = trace.minutes / 60, trace.prices, trace.revoked
    cost, done, saved, revocations = 0.0, 0.0, 0.0, 0
    present: Choice | None = None
    paid, age, unsaved = (
        0.0,
        0,
        0.0,
    )  # of the present instance: paid so far, periods, time since a saved state
    for now in range(start + 1, trace.periods):
        if present is None or age % trace.hour == 0:
            chosen = choose(now - 1, present)
            if chosen != present:
                saved, cost = done, cost + paid  # it saves its state before it leaves
                present, paid, age, unsaved = chosen, 0.0, 0, 0.0
        row, fixed = present
        kind = trace.types[row]
        works_h = min(step_h, max(0.0, (age + 1) * step_h - rules.startup_h))
        needs_h = (work - done) / kind.speed
        if needs_h <= works_h:
            used_h = step_h - works_h + needs_h
            paid += used_h * (kind.on_demand if fixed else prices[row, now])
            return Bill(cost + paid, (now - start - 1) * step_h + used_h, revocations)
        paid += step_h * (kind.on_demand if fixed else prices[row, now])
        done, age, unsaved = done + works_h * kind.speed, age + 1, unsaved + works_h
        if unsaved >= rules.checkpoint_h - 1e-9:
            saved, unsaved = done, 0.0
        if not fixed and taken[row, now]:
            free = rules.refund and age <= trace.hour
            cost += 0.0 if free else paid
            done, present, paid, age, unsaved = saved, None, 0.0, 0, 0.0
            revocations += 1
    return Bill(cost + paid, math.inf, revocations)
