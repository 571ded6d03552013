# SPDX-License-Identifier: Apache-2.0
"""Compares methods: a row for each on each task, and one for a random gate at the same rate.

A row is written as soon as it is measured. It is measured again only if its inputs change.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass, fields, replace
from hashlib import blake2b
from pathlib import Path

import numpy as np
from scipy.optimize import brentq

from adahi_lab.calibration.parameter_file import WITHOUT_THRESHOLD
from adahi_lab.evaluation.evaluate import (
    Comparison,
    Outcome,
    Run,
    outcome_figures,
    paired_with,
    played,
    reference_among,
)
from adahi_lab.evaluation.loaded_policies import INTENTS, Bench
from adahi_lab.evaluation.method_needs import demands, traffic
from adahi_lab.figures import Figures
from adahi_lab.methods.method import Method
from adahi_lab.methods.method_names import printed
from adahi_lab.methods.methods import METHODS
from adahi_lab.tasks import make
from adahi_lab.training.working_folder import locked
from adahi_ros import __version__
from adahi_ros.core.files import LARGEST_WEIGHTS, read_bytes, read_json
from adahi_ros.core.written_files import replacing
from adahi_ros.proposers.intent import IntentProposer

RANDOM = "random"
GONE_BY = (  # of a row
    *("key", "success", "success_rate", "success_ci95", "transmission_rate", "steps_per_episode"),
    *("calls_per_episode", "bytes_per_episode", "needs", "weights_on_robot"),
)
ITSELF, BASELINE = "itself", "random at the same rate"


@dataclass(frozen=True)
class Entry(Run):
    """What is measured for one row.

    Attributes:
        name: of the method, as it was given.
        kind: `ITSELF`, or `BASELINE` with a random gate instead of its gate.
    """

    name: str
    kind: str

    def key(self, bench: Bench) -> Figures:
        """Return everything the measurement depends on, as plain JSON."""
        policies, calibration = bench.policies, bench.calibration
        method = self.method.on(self.comparison.task)
        gate, threshold = method.threshold(bench)
        actors = {each.name: getattr(policies, each.name) for each in fields(policies)}
        compared = self.comparison
        link, swap = compared.link, compared.swap
        changes = ("action_noise", "drift", "sensor_noise_m")
        return {
            "task": self.comparison.task,
            "method": self.name,
            "kind": self.kind,
            "gate": gate,
            "threshold": threshold,
            "as": printed(method),
            "file": _content(method),
            "episodes": len(self.episodes),
            "seed": self.comparison.seed,
            "backend": self.comparison.files.backend,
            "digests": {name: None if actor is None else actor.digest for name, actor in actors.items()},
            "deviation": [calibration.smoothing, calibration.normalization],
            "draft_temperature": calibration.draft_temperature,
            "version": __version__,
            **({} if link is None else {"link": asdict(link)}),
            **({} if swap is None else {"swap": asdict(swap)}),
            **{name: value for name in changes if (value := getattr(compared, name))},
        }


def _content(method: Method) -> str | None:
    """Name the content of a method's file: its class, or weights of its gate or rule; None without one."""
    if method.own is not None:
        return method.own.digest
    file = {**method.gate_arguments, **method.acceptance_arguments}.get("file")
    return (
        None if file is None else blake2b(read_bytes(Path(file), LARGEST_WEIGHTS), digest_size=16).hexdigest()
    )


class Rows:
    """Rows in a file of JSON, which is complete at any time.

    Args:
        path: of the file; it need not exist.

    Raises:
        ValueError: the file has no rows.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._rows = self._read()

    def _read(self) -> list[Figures]:
        if not self._path.exists():
            return []
        try:
            return [_whole(row) for row in read_json(self._path)["rows"]]
        except (ValueError, LookupError, TypeError) as error:
            raise ValueError(f"{self._path}: not rows of 'adahi lab compare' ({error!r})") from None

    def find(self, key: Figures) -> Figures | None:
        """Return the row of a key; None where there is none."""
        return next((row for row in self._rows if row["key"] == key), None)

    def add(self, row: Figures) -> None:
        """Add a row, replace the method's rows with another key, and write the file.

        Rows that another run has written meanwhile are kept.
        """
        same = ("task", "method", "kind", "episodes", "seed", "link", "action_noise")
        about = [row["key"].get(name) for name in same]
        self._path.parent.mkdir(parents=True, exist_ok=True)
        with locked(self._path.resolve().parent):
            rows = [each for each in self._read() if [each["key"].get(name) for name in same] != about]
            self._rows = [*rows, row]
            with replacing(self._path) as partial:
                partial.write_text(json.dumps({"rows": self._rows}, indent=1) + "\n")


def _whole(row: Figures) -> Figures:
    """Return a row with all required fields; raises `KeyError`, `TypeError` or `ValueError`."""
    missing = [name for name in GONE_BY if name not in row]
    if missing:
        raise KeyError(*missing)
    key, success = dict(row["key"]), row["success"]
    if len(success) != key["episodes"] or not set(success) <= {0, 1}:
        raise ValueError(f"success: of {key['episodes']} episodes, must be 0 or 1 for each")
    low, high = row["success_ci95"]
    for value in (low, high, row["success_rate"], row["transmission_rate"]):
        if not isinstance(value, int | float | None):
            raise ValueError(f"success_ci95, success_rate, transmission_rate: {value!r}, must be numbers")
    return row


def entries(
    comparison: Comparison, names: Sequence[str], episodes: Sequence[int]
) -> tuple[list[Entry], dict[str, str]]:
    """Return the entries to measure, and by name why some methods cannot run on this task."""
    found, skipped = [], {}
    for name in names:
        method = METHODS[name]
        try:
            on = comparison.of_method(method)
            method.threshold(on.bench())
        except ValueError as error:
            skipped[name] = str(error)
        else:
            found.append(Entry(method, on, episodes, name, ITSELF))
    return found, skipped


def random_baseline(entry: Entry, figures: Figures) -> Entry | None:
    """Return a method with a random gate of the same rate instead of its gate.

    Args:
        entry: the method.
        figures: of it.

    Returns:
        None where it requests always or never, or its behaviour is unknown.
    """
    rate = figures["transmission_rate"]
    method = entry.method.on(entry.comparison.task)
    no_threshold = method.gate in WITHOUT_THRESHOLD and not method.by_plans
    unknown = method.own_proposer is not None or method.horizon is not None
    if not 0.0 < rate < 1.0 or no_threshold or unknown:
        return None
    chance = rate
    if method.by_plans:
        plans = entry.comparison.files.load().plans
        assert plans is not None
        horizon = plans.signature.horizon
        if method.proposer in INTENTS:  # which last longer than a plan
            horizon = int(method.proposer_arguments.get("steps", IntentProposer.steps))
        chance = chance_between_plans(rate, figures["steps_per_episode"], horizon, method.delay)
    baseline = replace(method, gate=RANDOM, gate_arguments={}, at=1.0 - chance, own=None)
    return replace(entry, kind=BASELINE, method=baseline)


def chance_between_plans(rate: float, steps: float, horizon: int, late: int = 0) -> float:
    """Return the probability of a request per step that gives a robot with plans this overall rate.

    It requests at its first step, and where its plan ends. Between, it requests with probability p at each
    step, except while it waits. On average requests are w + (1 - (1 - p)^(T - w)) / p steps apart.

    Args:
        rate: requests per step.
        steps: of an episode, on average.
        horizon: T, actions of a plan.
        late: control steps until a reply arrives; w + 1 unless it arrives at once.
    """
    waits = max(0, late - 1)
    apart = (steps - 1.0) / max(rate * steps - 1.0, 1e-9)

    def beyond(chance: float) -> float:
        return waits - math.expm1((horizon - waits) * math.log1p(-chance)) / chance - apart

    least, most = 1e-9, 1.0 - 1e-9
    if beyond(least) <= 0.0:  # it requests less often than its plans end
        return 0.0
    return 1.0 if beyond(most) >= 0.0 else float(brentq(beyond, least, most))


def measure(
    wanted: Sequence[Entry],
    rows: Rows,
    workers: int,
    on_row: Callable[[Entry, bool], None] = lambda entry, measured: None,
) -> list[Figures]:
    """Return the rows of some entries; measure the missing ones.

    Args:
        wanted: entries to measure.
        rows: existing ones; new ones are added.
        workers: processes.
        on_row: called with each entry when its row is ready, and whether it was measured now.
    """
    keys = [entry.key(entry.comparison.bench()) for entry in wanted]
    missing = []
    for entry, key in zip(wanted, keys, strict=True):
        if rows.find(key) is None:
            missing.append((entry, key))
        else:
            on_row(entry, False)
    with closing(played([entry for entry, _ in missing], workers)) as ended:
        for index, outcome in ended:
            entry, key = missing[index]
            rows.add({"key": key, **_figures(entry, outcome)})
            on_row(entry, True)
    found = [rows.find(key) for key in keys]
    return [row for row in found if row is not None]


def _figures(entry: Entry, outcome: Outcome) -> Figures:
    needed = demands(entry.method, entry.comparison.bench())
    sent = traffic(outcome.log, needed, make(entry.comparison.task).spec)
    return {
        **outcome_figures(outcome),
        "success": [int(each) for each in outcome.success],
        "bytes_per_episode": None if sent is None else dict(zip(("up", "down"), sent, strict=True)),
        "needs": list(needed.needs),
        "weights_on_robot": needed.weights,
    }


def standings(found: Sequence[Figures], baselines: Sequence[Figures]) -> dict[str, Figures]:
    """Return figures by method, each compared with the target and with a random gate.

    Args:
        found: rows of the methods themselves, on one task.
        baselines: rows with random gates instead of their gates.
    """
    by_chance = {row["key"]["method"]: row for row in baselines}
    success = {row["key"]["method"]: np.array(row["success"], dtype=bool) for row in found}
    reference = reference_among(list(success))
    figures: dict[str, Figures] = {}
    for row in found:
        name, baseline = row["key"]["method"], by_chance.get(row["key"]["method"])
        own = success[name]
        figures[name] = {
            **_shown(row),
            "against": None if name == reference else paired_with(own, reference, success[reference]),
            "random": None
            if baseline is None
            else {
                **_shown(baseline),
                "against": paired_with(own, RANDOM, np.array(baseline["success"], dtype=bool)),
            },
        }
    return figures


def _shown(row: Figures) -> Figures:
    about = {"gate": row["key"]["gate"], "threshold": row["key"]["threshold"]}
    return {**about, **{name: value for name, value in row.items() if name not in ("key", "success")}}
