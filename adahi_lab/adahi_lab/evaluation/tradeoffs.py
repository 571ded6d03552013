# SPDX-License-Identifier: Apache-2.0
"""The benefit of transmissions: the runs behind the paper's figures."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass

import numpy as np

from adahi_lab.evaluation.evaluate import Comparison, outcome_figures, play_all
from adahi_lab.evaluation.loaded_policies import Policies
from adahi_lab.evaluation.run_metrics import spread
from adahi_lab.evaluation.step_latency import measure_costs, simulated_latency, throughput
from adahi_lab.evaluation.sweep import RATES, SWEPT, Point, areas, fixed_methods, sweep
from adahi_lab.evaluation.traces import Trace
from adahi_lab.figures import Figures
from adahi_lab.link.link_profile import LinkProfile
from adahi_lab.methods.methods import DRAFTLESS
from adahi_lab.tasks import make

LATENCY_METHODS = ("adahi", "hybrid", "draft", "target", "random")
WORST = 2.5  # percentile of throughput that the paper calls its worst case
Progress = Callable[[str, int], None]


@dataclass(frozen=True)
class Tradeoffs:
    """Results on one task.

    Attributes:
        latency: figures by method, with `per_action_latency_ms`.
        throughput: actions per second of windows, by method.
        sweep: success against transmission rate.
        trace: one episode of ADAHI.
    """

    latency: Mapping[str, Figures]
    throughput: dict[str, np.ndarray]
    sweep: list[Point]
    trace: Trace


def episodes_run(episodes: int, policies: Policies) -> int:
    """Return how many episodes `measure_tradeoffs` runs in all, for progress."""
    return episodes * (len(fixed_methods(policies)) + len(SWEPT) * len(RATES) + len(LATENCY_METHODS))


def measure_tradeoffs(
    comparison: Comparison,
    link: LinkProfile,
    episodes: Sequence[int],
    workers: int,
    over_dds: Mapping[str, Figures] | None = None,
    on_done: Progress = lambda name, episodes: None,
) -> Tradeoffs:
    """Measure success against latency and against transmission rate.

    Args:
        comparison: the task, its policies and their calibration.
        link: on which latency is simulated.
        episodes: of each method and of each point of success against transmission rate.
        workers: processes.
        over_dds: figures of `adahi demo`, by method, instead of the simulated latency.
        on_done: called with a method and the number of its episodes that have just ended.
    """
    policies = comparison.files.load()
    outcomes = play_all(comparison, LATENCY_METHODS, episodes, workers, on_done)
    costs = measure_costs(policies.draft, policies.target)
    spec = make(comparison.task).spec
    latency, rates = {}, {}
    for name, outcome in outcomes.items():
        drafts = name not in DRAFTLESS
        times = simulated_latency(outcome.log, drafts, costs, link, comparison.seed, episodes)
        rates[name] = throughput(times, outcome.log.active, round(spec.control_rate_hz))
        latency[name] = {
            **outcome_figures(outcome),
            "per_action_latency_ms": spread(times[outcome.log.active]),
            "actions_per_s": {
                "mean": float(rates[name].mean()),
                "worst": float(np.percentile(rates[name], WORST)),
            },
        }
    if over_dds:
        rates = {name: np.array(figures["throughput_per_s"]) for name, figures in over_dds.items()}
    points = sweep(comparison, episodes, workers, fixed=fixed_methods(policies), on_done=on_done)
    adahi = outcomes["adahi"].log
    threshold = comparison.calibration.thresholds["deviation"]
    return Tradeoffs(
        latency=dict(over_dds) if over_dds else latency,
        throughput=rates,
        sweep=points,
        trace=Trace.from_log(adahi, 0, spec.control_rate_hz, threshold),
    )


def tradeoff_figures(found: Mapping[str, Tradeoffs]) -> Figures:
    """Return the figures of each task, as they are written."""
    return {
        task: {
            "latency": tradeoffs.latency,
            "sweep": [asdict(point) for point in tradeoffs.sweep],
            "area": {
                name: {**asdict(each), "rates": list(each.rates)}
                for name, each in areas(tradeoffs.sweep).items()
            },
        }
        for task, tradeoffs in found.items()
    }
