# SPDX-License-Identifier: Apache-2.0
"""Whether a robot's numbers are in the units and the order of those that a policy learnt from.

An arm somewhat outside of the learnt range is normal, and a number in another unit may be inside. So all
entries of one unit are judged together, by how well something explains them: the unit as it is, another one,
or two swapped entries. Each explanation costs

    sum over entries of log(1 + (d / TAIL)^2),    d: distance from the learnt range, in widths of this range

as by a Cauchy distribution outside of the range. One that is much cheaper than the unit as it is, is likely.
Where another unit makes numbers smaller by F, log(F) is added for each entry: small numbers fit most ranges.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from adahi_ros.core.signature import Feature, Quantity, Ranges

UNITS = ((180.0 / math.pi, "rad", "degrees"), (100.0, "0 to 1", "0 to 100"), (1000.0, "m", "mm"))
"""Of a large number in a small unit its factor, the large unit and the small one."""
TAIL = 0.1  # widths
NARROW = 0.25  # of the median of its group is the least width: a joint that moved little may be elsewhere
CONSTANT = 0.05  # of the value: likewise, for an entry that was constant
UNIT_GAIN, SWAP_GAIN = 1.5, 3.0  # what another unit, or swapped joints, must save
FEW_GAIN = 1.0  # divided by the entries, and added to the former: few are less sure
BOTH = 1.0  # the least cost of each of two swapped entries
ABSURD = math.log1p((10.0 / TAIL) ** 2)  # the cost of an entry that is wrong without an explanation
NOISE, STILL, MOVED = 0.002, 0.05, 1.5  # widths between which a motion is odd, and what it costs each entry
CLAMPED = 0.05  # of the learnt range: a few demonstrations may leave the limits
AS_GOOD = 1.0  # other units that save nearly as much are named, too


def unlike(robots: Quantity, learnt: Ranges, values: np.ndarray) -> str:
    """Return which of the robot's numbers is unlike those that a policy learnt from, for people; else ''.

    Args:
        robots: names and units of D numbers.
        learnt: ranges of at least these.
        values: (N, D) of the robot.
    """
    low, high = _ends(learnt, len(robots.names))
    entry, why = _explained(low, high, values, robots.units)
    if not why:
        return ""
    far = np.maximum(low[entry] - values[:, entry], values[:, entry] - high[entry])
    is_now, range_ = values[np.argmax(far), entry], f"{low[entry]:.4g} to {high[entry]:.4g}"
    return f"{robots.names[entry]} is {is_now:.4g}; the policy learnt {range_}: {_named(robots, why)}"


def beyond(robots: Quantity, learnt: Ranges) -> str:
    """Return which range of a policy's data is unlike the robot's limits, for people; else ''."""
    values = np.stack(_ends(learnt, len(robots.names)))
    entry, why = _explained(robots.low, robots.high, values, robots.units, of_robot=False)
    if not why:
        return ""
    ranges = [f"{low[entry]:.4g} to {high[entry]:.4g}" for low, high in (values, (robots.low, robots.high))]
    return (
        f"{robots.names[entry]}: the policy learnt {ranges[0]}, the robot's limits allow {ranges[1]}: "
        f"{_named(robots, why)}"
    )


def clamped(robots: Quantity, learnt: Ranges) -> str:
    """Return which range of a policy's data leaves the robot's limits most, for people; else ''."""
    low, high = _ends(learnt, len(robots.names))
    with np.errstate(invalid="ignore", divide="ignore"):
        shares = np.maximum(robots.low - low, high - robots.high) / (high - low)
    shares = np.nan_to_num(shares, nan=-math.inf)
    entry = int(shares.argmax())
    if not shares[entry] > CLAMPED:
        return ""
    allowed = f"the limits allow {robots.low[entry]:.4g} to {robots.high[entry]:.4g}"
    return f"{robots.names[entry]}: the policy learnt {low[entry]:.4g} to {high[entry]:.4g}, {allowed}"


def unlike_in(
    features: Sequence[Feature],
    learnt: Ranges,
    robots: Mapping[str, Quantity],
    observed: Mapping[str, np.ndarray] | None = None,
) -> str:
    """Return what is unlike in a policy's features, for people; else ''.

    Args:
        features: with the ranges, one after the other.
        learnt: see above.
        robots: by name, the robot's numbers.
        observed: by name, (N, size) or more of the robot; None compares its limits.
    """
    begin = 0
    for feature in features:
        part = Ranges(**{name: each[begin : begin + feature.size] for name, each in vars(learnt).items()})
        begin += feature.size
        if feature.name in robots:
            numbers = robots[feature.name]
            size = len(numbers.names)
            found = beyond(numbers, part) if observed is None else ""
            if observed is not None and feature.name in observed:
                found = unlike(numbers, part, observed[feature.name][:, :size])
            if found:
                return f"{feature.name}: {found}"
    return ""


def _named(robots: Quantity, why: str | int) -> str:
    return f"swapped with {robots.names[why]}?" if isinstance(why, int) else why


def _ends(ranges: Ranges, size: int) -> tuple[np.ndarray, np.ndarray]:
    unknown = (math.nan,) * size
    low, high = ranges.minimum or ranges.q01 or unknown, ranges.maximum or ranges.q99 or unknown
    return np.array(low[:size]), np.array(high[:size])


def _explained(
    low: np.ndarray, high: np.ndarray, values: np.ndarray, units: Sequence[int], of_robot: bool = True
) -> tuple[int, str | int]:
    """Return the entry that shows best that values are in another unit or order, and the likely reason.

    Args:
        low: (D,) of the range, NaN where unknown.
        high: likewise.
        values: (N, D), NaN where unknown.
        units: D numbers; entries with the same have one unit.
        of_robot: the values are the robot's, else the policy's.

    Returns:
        The entry; why, for people, or the entry that it is swapped with. Empty if there is nothing to say.
    """
    known = np.isfinite(low) & np.isfinite(high) & np.isfinite(values).all(axis=0)
    for unit in dict.fromkeys(units):
        rows = np.flatnonzero(known & (np.array(units) == unit))
        if not len(rows):
            continue
        width = high[rows] - low[rows]
        least = CONSTANT * np.maximum(np.abs(low[rows]), np.abs(high[rows]))
        width = np.maximum(np.maximum(width, least), NARROW * np.median(width))
        rows, width = rows[width > 0.0], width[width > 0.0]
        entry, why = _group_explained(low[rows], high[rows], width, values[:, rows], of_robot)
        if why != "":
            return int(rows[entry]), int(rows[why]) if isinstance(why, int) else why
    return 0, ""


def _group_explained(
    low: np.ndarray, high: np.ndarray, width: np.ndarray, values: np.ndarray, of_robot: bool
) -> tuple[int, str | int]:
    def costs(of: np.ndarray) -> np.ndarray:
        """Return the cost in each range (D,) of the worst of values (N, D), or (N, D, 1) for all pairs."""
        distance = np.maximum(np.maximum(low - of, of - high), 0.0) / width
        worst: np.ndarray = np.log1p((distance / TAIL) ** 2).max(axis=0)
        return worst

    size = len(low)
    if not size:
        return 0, ""
    as_it_is = costs(values)
    entry, total = int(np.argmax(as_it_is)), as_it_is.sum()
    span = np.ptp(values, axis=0) / width
    gains = {}
    for factor, large, small in UNITS:
        for times, pair in ((factor, (large, small)), (1.0 / factor, (small, large))):
            why = "{} instead of {}".format(*(pair if of_robot else pair[::-1]))
            gains[why] = total - costs(values * times).sum() - max(0.0, -math.log(times)) * size
            if of_robot:  # samples of a robot that moved, but little in its unit as it is
                gains[why] += MOVED * ((span > NOISE) & (span < STILL) & (span * times > NARROW)).sum()
    best = max(gains.values())
    if best > UNIT_GAIN + FEW_GAIN / size:
        return entry, f"{', or '.join(why for why, gain in gains.items() if gain > best - AS_GOOD)}?"
    if of_robot and size > 1:  # limits of a small workspace fit another joint by chance
        of_pairs = costs(values[:, :, None])  # (D, D), of the first's value in the second's range
        saved = as_it_is[:, None] + as_it_is - of_pairs - of_pairs.T - math.log(size * (size - 1) / 2)
        saved[np.minimum.outer(as_it_is, as_it_is) < BOTH] = -math.inf
        one, other = divmod(int(np.argmax(saved)), size)
        if saved[one, other] > SWAP_GAIN:
            return one, other
    return entry, "another unit, or another joint?" if as_it_is[entry] > ABSURD else ""
