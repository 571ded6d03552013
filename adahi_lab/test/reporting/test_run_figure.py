from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from adahi_lab.evaluation.run_metrics import run_figures
from adahi_lab.evaluation.run_record import EpisodeRecord, RunRecord
from adahi_lab.reporting.run_figure import draw_plans, draw_run, shown_entries
from adahi_lab.reporting.style import LABEL_WIDTH, figure, label_of
from adahi_lab.tasks import make
from adahi_ros.protocol.records import StepRecord

Make = Callable[..., StepRecord]


@pytest.fixture
def by_plan(step_record: Make) -> tuple[StepRecord, ...]:
    """No plan yet, a plan as it is, one that is mended, and a robot that is held."""
    return (
        step_record(action=(0.1, 0.2)),
        step_record(step=1, transmitted=False, planned_action=(0.1, 0.0), plan_age=1, action=(0.1, 0.0)),
        step_record(step=2, planned_action=(0.1, 0.1), plan_age=2, action=(0.15, 0.1)),
        step_record(step=3, transmitted=False, action=()),
    )


def test_the_entries_that_left_the_plan_most_are_shown(step_record: Make) -> None:
    rows = [step_record(planned_action=(0.0, 0.0, 0.0), plan_age=1, action=(0.1, 0.2, 0.3))]
    assert shown_entries(rows, np.ones(3)) == [1, 2]
    assert shown_entries(rows, np.array([0.1, 1.0, 1.0])) == [0, 2]  # as shares of what there is
    assert shown_entries([step_record(action=(0.0, 0.0))], np.ones(2)) == [0, 1]  # nothing was planned


def test_what_was_planned_done_and_requested_is_where_it_happened(by_plan: tuple[StepRecord, ...]) -> None:
    drawn = figure(4.0, 3.0)
    panels = drawn.subplots(2)
    draw_plans(panels, by_plan, make("ball").spec)  # 20 Hz
    done, requests = panels[0].lines
    assert np.column_stack(done.get_data()) == pytest.approx(np.array([[0, 0.1], [0.05, 0.1], [0.1, 0.15]]))
    assert requests.get_xdata() == pytest.approx([0.0, 0.1])
    (planned,) = panels[1].collections
    assert np.asarray(planned.get_offsets()) == pytest.approx(np.array([[0.05, 0.0], [0.1, 0.1]]))
    assert list(planned.get_array()) == [1, 2]


def test_an_action_of_one_entry_takes_one_plot(step_record: Make) -> None:
    panels = figure(4.0, 3.0).subplots(2)
    rows = [step_record(planned_action=(0.5,), plan_age=1, action=(0.4,))]
    draw_plans(panels, rows, make("inverted_pendulum").spec)
    assert panels[0].figure.axes[0] is panels[0]
    assert panels[1] not in panels[0].figure.axes


def test_a_picture_has_the_whole_name_of_a_method() -> None:
    name = "plan:online:base=age:error_share=0.1:tolerance=0.5"
    lines = label_of(name).splitlines()
    assert "".join(lines) == name
    assert max(map(len, lines)) <= LABEL_WIDTH
    assert label_of("adahi") == "ADAHI"


@pytest.mark.parametrize("names", [("best", "adahi"), ("plan_8",)])
def test_a_run_by_plans_is_drawn_with_and_without_a_gate(
    by_plan: tuple[StepRecord, ...], step_record: Make, names: tuple[str, ...], tmp_path: Path
) -> None:
    episodes = (EpisodeRecord(0, 4, True),)
    drafted = RunRecord((step_record(), step_record(step=1)), episodes)
    runs = {name: drafted if name == "adahi" else RunRecord(by_plan, episodes) for name in names}
    path = tmp_path / "run.png"
    draw_run("ball", runs, {name: run_figures(run, 20) for name, run in runs.items()}, path)
    assert path.read_bytes().startswith(b"\x89PNG")
